"""Checkpoints of a running fit: what was lost by a kill or a power cut is not trained again."""

import contextlib
import hashlib
import os
from numbers import Integral

import torch
from skorch.callbacks import Callback
from torch import nn

from .._archive import NotStorableError, Packer, Unpacker, decoding, read_archive, write_archive

# Parameters that do not change what a run computes; the seed is compared on its own.
_FREE_PARAMETERS = ("callbacks", "device", "random_state", "verbose")


class TrainingCheckpoint(Callback):
    """Store a running fit after its epochs; the next fit of the same kind goes on from there.

    Put it into `callbacks` and give it a path of its own for every fit. When the file is there
    as `fit` begins, the fit continues after the last epoch that was stored, and ends with the
    very weights, labels, centres and records of a fit that was never interrupted, on the same
    machine and number of threads. A `random_state` of None takes the seed of the file. The
    file is removed when a fit ends well; it stays after a kill, Ctrl-C or an error.

    The file is in the format of :meth:`skdeepclust.SRKMeans.save`: weights, optimiser, targets
    and records, never code, replaced in one step. The state of other callbacks is not in it:
    the patience of an `EarlyStopping`, or the step of an `LRScheduler`, begins anew.

    Parameters
    ----------
    path : str or path-like
        The file. In a grid search the candidates would get into each other's way.
    every_n_epochs : int, default=1
        Epochs between two files; the end of a phase is always stored. Writing takes about
        three times the size of the weights, besides the targets.

    Examples
    --------
    >>> import os, tempfile
    >>> from sklearn.datasets import make_blobs
    >>> from skdeepclust import SRKMeans
    >>> from skdeepclust.training import TrainingCheckpoint
    >>> X, y = make_blobs(n_samples=60, centers=3, random_state=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     checkpoint = TrainingCheckpoint(os.path.join(folder, "run.ckpt"), every_n_epochs=5)
    ...     model = SRKMeans(3, encoder="identity", callbacks=[checkpoint]).fit(X)
    ...     os.listdir(folder)
    []
    """

    def __init__(self, path, every_n_epochs=1):
        self.path = path
        self.every_n_epochs = every_n_epochs

    def initialize(self):
        """Check the parameters; called by skorch when a fit begins."""
        if not isinstance(self.path, (str, os.PathLike)):
            kind = type(self.path).__name__
            raise TypeError(f"path of TrainingCheckpoint must be a str or a path, got {kind}.")
        if not isinstance(self.every_n_epochs, Integral) or self.every_n_epochs < 1:
            raise ValueError(
                "every_n_epochs of TrainingCheckpoint must be a positive integer, got "
                f"{self.every_n_epochs!r}."
            )
        return self

    def seed_to_use(self, seed, is_free):
        """Return the seed of the file where there is one; `seed` must agree unless it is free."""
        self.initialize()
        if not os.path.exists(self.path):
            return seed
        document, _ = read_archive(self.path, "checkpoint")
        with decoding(self.path, "seed"):
            stored = int(document["seed"])
        if not is_free and stored != seed:
            self._refuse([f"the seed of random_state ({stored} in the file, {seed} now)"])
        return stored

    def restore(self, run, phases):
        """Put the stored state into `run`; return the phase and epoch to go on from."""
        self.fit_ = {
            **self.settings_,
            "phases": [phase.name for phase in phases],
            "n_samples": len(run.rows),
            "shape of a row of X": list(run.rows.row_shape),
            "digest of X": _digest_of_rows(run.rows),
        }
        if not os.path.exists(self.path):
            return 0, 0
        document, tensors = read_archive(self.path, "checkpoint")
        with decoding(self.path, "description of the fit"):
            differences = self._differences(document["fit"])
        if differences:
            self._refuse(differences)
        with decoding(self.path, "state"):
            state = Unpacker(tensors).unpack(document["state"])
            phase, epoch = state["next"]
            if not (0 <= phase <= len(phases) and 0 <= epoch):
                raise ValueError(f"there is no epoch {epoch} of phase {phase}")
            if not all(isinstance(value, torch.Tensor) for value in state["tensors"].values()):
                raise ValueError("tensors are missing")
            run.network.load_state_dict(state["network"])
            run.tensors, run.values = dict(state["tensors"]), dict(state["values"])
            run.history = list(state["history"])
            run.stop_reason = state["stop_reason"]
            run.phase_index = min(phase, len(phases) - 1)
            # The snapshot has to know what this phase writes in place.
            run.phase = phases[run.phase_index]
            self.optimizer_state_ = state["optimizer"]
        run.keep_snapshot()
        return phase, epoch

    def restore_optimizer(self, optimizer):
        """Put the stored moments and rates into the optimiser of the phase that goes on."""
        state, self.optimizer_state_ = self.optimizer_state_, None
        with decoding(self.path, "optimiser"):
            load_optimizer_state(optimizer, state)

    def write(self, run, phase_is_finished=False):
        """Store `run` as it is after an epoch, or after the last one of a phase."""
        if not phase_is_finished and (run.epoch + 1) % self.every_n_epochs:
            return
        place = (run.phase_index, run.epoch + 1)
        state = {
            "next": (run.phase_index + 1, 0) if phase_is_finished else place,
            "network": dict(run.network.state_dict()),
            "tensors": run.tensors,
            "values": run.values,
            "history": run.history,
            "stop_reason": run.stop_reason,
            "optimizer": optimizer_state(getattr(run.net, "optimizer_", None)),
        }
        packer = Packer()
        document = {"seed": run.seed, "fit": self.fit_, "state": packer.pack(state, "state")}
        write_archive(self.path, "checkpoint", document, packer.tensors)

    def remove(self):
        """Delete the file: the fit has ended well."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)

    def _differences(self, stored):
        """Return in words what the fit in the file has otherwise than this one."""
        names = [*self.fit_, *(name for name in stored if name not in self.fit_)]
        pairs = [(name, stored.get(name), self.fit_.get(name)) for name in names]
        return [
            f"{name} ({_in_words(old)} in the file, {_in_words(new)} now)"
            for name, old, new in pairs
            if old != new
        ]

    def _refuse(self, differences):
        raise ValueError(
            f"The checkpoint {os.fspath(self.path)!r} is of another fit, which differs in "
            f"{', '.join(differences)}. Delete the file to start anew, or give TrainingCheckpoint "
            "another path."
        )


def find_checkpoint(callbacks):
    """Return the TrainingCheckpoint among skorch callbacks, or None.

    Parameters
    ----------
    callbacks : list or None
        Callbacks and pairs of name and callback.
    """
    callbacks = [entry[1] if isinstance(entry, tuple) else entry for entry in callbacks or []]
    found = [callback for callback in callbacks if isinstance(callback, TrainingCheckpoint)]
    if len(found) > 1:
        raise ValueError(f"callbacks holds {len(found)} TrainingCheckpoint; pass one at most.")
    return found[0] if found else None


def settings_of(estimator):
    """Return what tells the fits of two estimators apart, as JSON can hold it."""
    settings = {"estimator": type(estimator).__name__}
    for name, value in estimator.get_params(deep=False).items():
        if name not in _FREE_PARAMETERS:
            packer = _SettingsPacker()
            settings[name] = packer.pack(value, name)
            if packer.tensors:
                settings[name] = {"value": settings[name], "digest": _digest(packer.tensors)}
    return settings


class _SettingsPacker(Packer):
    """Describes what a file cannot hold by name and by the values in it."""

    def pack_object(self, value, name):
        kind = type(value).__qualname__
        if isinstance(value, nn.Module):
            # The weights are in the checkpoint; only the architecture has to be the same.
            return {"class": kind, "text": str(value)}
        if hasattr(value, "get_params"):
            found = {
                key: self.pack(item, f"{name}/{key}")
                for key, item in value.get_params(deep=False).items()
                if key not in ("callbacks", "verbose")
            }
            for key, item in vars(value).items():
                if key == "net_":
                    item = dict(item.module_.state_dict())
                elif not key.endswith("_"):
                    continue
                with contextlib.suppress(NotStorableError):
                    Packer.pack(self, item, f"{name}/{key}")
            return {"class": kind, "parameters": found}
        return {"class": getattr(value, "__qualname__", kind)}


def optimizer_state(optimizer):
    """Return the state of `optimizer` (None gives None) in lists and dicts of names."""
    if optimizer is None:
        return None
    state = optimizer.state_dict()
    return {
        "state": [[index, dict(values)] for index, values in state["state"].items()],
        "param_groups": [dict(group) for group in state["param_groups"]],
    }


def load_optimizer_state(optimizer, stored):
    """Put what :func:`optimizer_state` returned into `optimizer`."""
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    check_optimizer_state(stored, parameters)
    state = {
        index: {name: _laid_out_as(parameters[index], value) for name, value in values.items()}
        for index, values in stored["state"]
    }
    optimizer.load_state_dict({"state": state, "param_groups": stored["param_groups"]})


def _laid_out_as(parameter, value):
    """Return a moment with its numbers in memory as those of `parameter` are.

    Files hold contiguous tensors, and torch's fused optimisers pair the numbers of a
    channels-last weight with those of its moments by their place in memory.
    """
    if not isinstance(value, torch.Tensor) or value.shape != parameter.shape:
        return value
    return torch.empty_like(parameter, dtype=value.dtype, device=value.device).copy_(value)


def check_optimizer_state(stored, parameters):
    """Raise ValueError when `stored` is not the state of an optimiser over `parameters`."""
    indices = [index for group in stored["param_groups"] for index in group["params"]]
    if indices != list(range(len(parameters))):
        raise ValueError(f"the state is not that of {len(parameters)} parameters")
    for index, values in stored["state"]:
        for name, value in values.items():
            is_tensor = isinstance(value, torch.Tensor)
            if is_tensor and value.ndim and value.shape != parameters[index].shape:
                raise ValueError(f"{name} of parameter {index} has shape {tuple(value.shape)}")


def _digest_of_rows(rows):
    """Return a digest of all values of X, read block by block."""
    digest = hashlib.blake2b(digest_size=16)
    step = rows.scan_step()
    for start in range(0, len(rows), step):
        block = rows.read(start, min(start + step, len(rows)))
        digest.update(block.cpu().contiguous().reshape(-1).numpy())
    return digest.hexdigest()


def _digest(tensors):
    digest = hashlib.blake2b(digest_size=16)
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy())
    return digest.hexdigest()


def _in_words(packed):
    """Return a packed setting as a message shows it."""
    text = repr(packed)
    return text if len(text) <= 60 else text[:57] + "..."
