"""The skorch net: its chain of small methods runs the phases that a method declares."""

import copy
import math
import time

import torch
from skorch import NeuralNet
from skorch.callbacks import Callback, EarlyStopping
from torch import nn

from ..exceptions import TrainingDivergedError
from .batches import SlicingIterator
from .checkpoint import load_optimizer_state
from .inference import embedding_is_finite
from .phases import takes_steps
from .seeds import derive_seed, isolated_torch_randomness, torch_generator

# A loss that is this many times the first one of its phase has diverged: a saturating network
# may keep it from ever becoming infinite.
_DIVERGED_RATIO = 1e6


class ClusteringNet(NeuralNet):
    """A skorch net that trains phase after phase and keeps epoch sums only.

    Against skorch's own loop: no rows are held out, the rows are shuffled from the seed of the
    estimator, batches are slices into a reused buffer, the losses of an epoch are added up on
    the device, a loss that is not finite ends the training, and Ctrl-C is never swallowed.

    Parameters
    ----------
    module : EmbeddingNetwork
        The network to train.
    callbacks : list or None, default=None
        skorch callbacks; they see each phase as one training.
    device : str or torch.device, default="cpu"
        Where to train.
    """

    # In a net that was loaded, the state its next optimiser begins with.
    optimizer_state_ = None

    def __init__(self, module, *, callbacks=None, device="cpu", **kwargs):
        kwargs = {"criterion": nn.Identity, "train_split": None, "verbose": 0, **kwargs}
        super().__init__(module, callbacks=callbacks, device=device, **kwargs)

    def __deepcopy__(self, memo):
        # skorch would pickle the module to copy it, which fails for one that holds a function
        # of the user's.
        other = type(self).__new__(type(self))
        memo[id(self)] = other
        other.__dict__ = {name: copy.deepcopy(value, memo) for name, value in vars(self).items()}
        return other

    @property
    def _default_callbacks(self):
        # Epoch sums, times and progress are this net's own; skorch's would need batch records.
        return []

    def initialize_optimizer(self, triggered_directly=None):
        """Leave the optimiser to the phases: each starts a fresh one."""
        return self

    def start_optimizer(self, phase, parameters):
        """Hold a fresh optimiser of `phase` over `parameters`."""
        with self._current_init_context("optimizer"):
            self.optimizer_ = phase.optimizer(parameters)
        if self.optimizer_state_ is not None:
            load_optimizer_state(self.optimizer_, self.optimizer_state_)
            self.optimizer_state_ = None

    def run_phase(self, run, first_epoch):
        """Run the present phase of `run` from `first_epoch` on."""
        phase = run.phase
        self.run_ = run
        try:
            if first_epoch == 0:
                if phase.max_epochs > 0:
                    run.stop_reason = None
                run.values.pop("best_loss", None)
                run.values.pop("loss_limit", None)
                phase.begin(run)
            if phase.max_epochs > 0 and run.stop_reason is None:
                self._train_phase(phase, run, first_epoch)
        finally:
            self.module_.eval()
            self.__dict__.pop("run_", None)

    def _train_phase(self, phase, run, first_epoch):
        parameters = phase.trained_parameters(self.module_)
        self._drop_optimizer()
        # A schedule or a stopper reads the epochs of its own training from there.
        self.initialize_history()
        if parameters and takes_steps(phase):
            self.start_optimizer(phase, parameters)
            if first_epoch:
                run.checkpoint.restore_optimizer(self.optimizer_)
        self.notify("on_train_begin", X=run.rows, y=None)
        if run.report:
            run.report.begin_phase(phase)
        try:
            self.fit_loop(run.rows, epochs=phase.max_epochs, first_epoch=first_epoch)
        finally:
            self.notify("on_train_end", X=run.rows, y=None)
            self._drop_optimizer()
        if run.stop_reason is None:
            run.stop_reason = f"max_epochs={phase.max_epochs} reached"
        if run.report:
            run.report.end_phase(phase)

    def fit_loop(self, X, y=None, epochs=None, *, first_epoch=0):
        """Run the epochs of the present phase, until it asks to stop."""
        run = self.run_
        phase = run.phase
        datasets = {"dataset_train": X, "dataset_valid": None}
        for epoch in range(first_epoch, epochs):
            run.epoch = epoch
            started = time.perf_counter()
            with isolated_torch_randomness(self._seed("noise"), run.device):
                self._set_learning_rate(phase.learning_rate(epoch))
                self.notify("on_epoch_begin", **datasets)
                if run.report:
                    run.report.begin_epoch()
                iterator = self.get_iterator(X, training=True)
                self.run_single_epoch(iterator, True, "train", self.train_step)
                self.module_.eval()
                trained = hasattr(self, "optimizer_")
                if trained and not embedding_is_finite(self.module_, X, run.device):
                    self._raise_diverged(None, len(iterator), "embedding became nan or infinite")
                diagnostics = phase.end_epoch(run)
                self._record(diagnostics, time.perf_counter() - started)
                stopped_by_callback = self._notify_epoch_end(datasets)
            run.keep_snapshot()
            if run.report and run.report.end_epoch():
                run.stop("a scikit-learn callback asked to stop")
            if stopped_by_callback:
                run.stop("a skorch callback asked to stop")
            if run.checkpoint is not None:
                run.checkpoint.write(run)
            if run.stop_reason is not None:
                break

    def get_iterator(self, dataset, training=False):
        """Return the batches of one epoch; none when there is nothing to train."""
        run = self.run_
        if not hasattr(self, "optimizer_"):
            return []
        order = torch_generator(*self._stream("order"))
        return SlicingIterator(dataset, run.phase.batch_size, run.device, order)

    def run_single_epoch(self, iterator, training, prefix, step_fn, **fit_params):
        """Run all batches; keep the weighted sums of the loss terms."""
        self._set_training(training)
        wants_batches = self._a_callback_overrides("on_batch_begin", "on_batch_end")
        self._notifies_gradients = self._a_callback_overrides("on_grad_computed")
        sums, n_seen, is_cpu = {}, 0, self.run_.device.type == "cpu"
        for number, batch in enumerate(iterator):
            if wants_batches:
                self.notify("on_batch_begin", batch=batch, training=training)
            step = step_fn(batch, **fit_params)
            n_rows = len(batch.row_numbers)
            # Losses are added up on the device; asking a GPU for each would stall it.
            for name, value in step["terms"].items():
                sums[name] = sums.get(name, 0.0) + value.detach() * n_rows
            n_seen += n_rows
            if is_cpu:
                self._check_loss(step["loss"].item(), number, len(iterator))
            if wants_batches:
                self.history.record_batch(prefix + "_loss", step["loss"].item())
                self.history.record_batch(prefix + "_batch_size", n_rows)
                self.notify("on_batch_end", batch=batch, training=training, **step)
        means = {name: float(value) / n_seen for name, value in sums.items()}
        if not is_cpu:
            self._check_loss(sum(means.values()), None, len(iterator))
        self.run_.values["epoch_losses"] = means

    def train_step(self, batch, **fit_params):
        """Take one optimiser step on `batch`."""
        self.optimizer_.zero_grad(set_to_none=True)
        step = self.train_step_single(batch, **fit_params)
        self.optimizer_.step()
        self.run_.phase.after_step(self.run_, batch)
        return step

    def train_step_single(self, batch, **fit_params):
        """Return the loss of `batch` and leave its gradients in the parameters."""
        with torch.enable_grad():
            terms = self.run_.phase.batch_loss(self.run_, batch)
            loss = sum(terms.values())
            loss.backward()
        if self._notifies_gradients:
            named = list(self.module_.named_parameters())
            self.notify("on_grad_computed", named_parameters=named, batch=batch)
        return {"loss": loss, "terms": terms, "y_pred": None}

    def _drop_optimizer(self):
        """Forget the optimiser; its moments are twice the size of the weights."""
        if hasattr(self, "optimizer_"):
            del self.optimizer_

    def _seed(self, *names):
        return derive_seed(*self._stream(*names))

    def _stream(self, *names):
        """Return what a random stream of this epoch is derived from."""
        run = self.run_
        return run.seed, run.phase_index, run.phase.name, run.epoch, *names

    def _set_learning_rate(self, lr):
        if not hasattr(self, "optimizer_") or self.run_.phase.schedule == "constant":
            # A constant rate may be under the control of a user's LRScheduler.
            return
        for group in self.optimizer_.param_groups:
            group["lr"] = lr

    def _record(self, diagnostics, seconds):
        """Add one record to the run's history and to skorch's."""
        run = self.run_
        losses = run.values.pop("epoch_losses", {})
        record = {"phase": run.phase.name, "epoch": run.epoch + 1}
        if losses:
            record["loss"] = sum(losses.values())
            record.update({f"loss_{name}": value for name, value in losses.items()})
        record.update(diagnostics)
        record["seconds"] = seconds
        run.history.append(record)
        for name, value in record.items():
            if name != "epoch":
                self.history.record(name, value)
        if losses:
            best = min(record["loss"], run.values.get("best_loss", record["loss"]))
            run.values["best_loss"] = best
            self.history.record("train_loss", record["loss"])
            self.history.record("train_loss_best", record["loss"] <= best)

    def _notify_epoch_end(self, datasets):
        """Notify the callbacks; return whether skorch's EarlyStopping asked to stop.

        EarlyStopping asks by raising KeyboardInterrupt, the same exception as Ctrl-C, which
        has to propagate. It has run out of patience exactly when it is the one that asks.
        """
        try:
            self.notify("on_epoch_end", **datasets)
        except KeyboardInterrupt:
            stoppers = [c for _, c in self.callbacks_ if isinstance(c, EarlyStopping)]
            if not any(getattr(c, "misses_", -1) == c.patience for c in stoppers):
                raise
            return True
        return False

    def _a_callback_overrides(self, *hooks):
        return any(
            getattr(type(callback), hook) is not getattr(Callback, hook)
            for _, callback in self.callbacks_
            for hook in hooks
        )

    def _check_loss(self, loss, number, n_batches):
        """Raise if the loss is no number, or has left all proportion to the first of the phase."""
        limit = self.run_.values.setdefault("loss_limit", _DIVERGED_RATIO * (1 + abs(loss)))
        if not abs(loss) <= limit < math.inf:
            what = f"loss grew to {loss:.3g}" if math.isfinite(loss) else None
            self._raise_diverged(number, n_batches, what)

    def _raise_diverged(self, number, n_batches, what=None):
        run = self.run_
        where = run.where() + (f", batch {number + 1} of {n_batches}" if number is not None else "")
        lr = self.optimizer_.param_groups[0]["lr"]
        raise TrainingDivergedError(
            f"The {what or 'loss became nan or infinite'} in {where}, with lr={lr:g}. Lower the "
            "learning rate (lr=... of the estimator, or of its pretrain transformer in the phase "
            "'pretrain') or keep scaling='auto'."
        )


def fresh_callbacks(callbacks):
    """Return copies of the user's skorch callbacks, so that a fit changes none of them.

    What cannot be copied, such as an open writer, is shared.
    """
    return [_fresh_callback(entry) for entry in callbacks or []]


def _fresh_callback(entry):
    if isinstance(entry, tuple):
        name, callback = entry
        return name, _fresh_callback(callback)
    if isinstance(entry, type):
        return entry
    fresh = copy.copy(entry)
    for name, value in vars(entry).items():
        try:
            setattr(fresh, name, copy.deepcopy(value))
        except (TypeError, AttributeError, copy.Error, RuntimeError):
            setattr(fresh, name, value)
    return fresh
