"""The phases of the methods that train a softmax classifier on targets of its own."""

import torch

from ._class_prior import prior_of_run
from ._target_rules import adaptive_log_prior
from ._warm_up import begin_plateau, stop_when_settled
from .losses import log_posterior, squared_distances, update_cluster_mass
from .pretraining.autoencoder import denoising_pass
from .training.embedded_rows import EmbeddedRows, mean_squared_change
from .training.inference import ChunkedForward, in_float64
from .training.phases import Phase
from .training.streaming import step_size, stream_steps

# The adaptive prior is so much of the uniform one. Without it nothing would resist a collapse.
_UNIFORM_SHARE = 0.1
# The variance within the clusters counts as at least this share of that between the centres.
_LEAST_SHARE_WITHIN = 0.05


class ClassifierPhase(Phase):
    """What both phases share: the posterior of a noisy pass, and that of all clean rows."""

    def __init__(
        self,
        *,
        temperature,
        reconstruction_weight,
        hidden_weight,
        l2_regularization,
        max_epochs,
        batch_size,
        lr,
    ):
        self.temperature = temperature
        self.reconstruction_weight = reconstruction_weight
        self.hidden_weight = hidden_weight
        self.l2_regularization = l2_regularization
        self.max_epochs = max_epochs
        self.batch_size = batch_size
        self.lr = lr

    def _loss_terms(self, run, batch, cross_entropy_of):
        """Return the terms of the loss; `cross_entropy_of` is given the noisy log-posterior."""
        network, terms = run.network, {}
        if network.decoder is None:
            embedding = network(batch.rows)
        else:
            embedding, loss = denoising_pass(network, batch.rows, self.hidden_weight)
            terms["reconstruction"] = self.reconstruction_weight * loss
        head = network.head
        terms["clustering"] = cross_entropy_of(
            log_posterior(embedding, head.weight, head.bias, self.temperature)
        )
        if self.l2_regularization:
            # Half, since the mutual information holds the cross-entropy twice.
            terms["l2"] = 0.5 * self.l2_regularization * head.weight.square().sum()
        return terms

    def log_posterior_of_all(self, run):
        """Return the clean log-posterior of all rows, float64."""
        read = posterior_of_head(run.network.head, self.temperature)
        blocks = [read(z) for _, _, z in EmbeddedRows(run)]
        return torch.cat(blocks)


class HeadWarmUpPhase(ClassifierPhase):
    """Train network and head towards the first partition."""

    name = "warm_up"

    def begin(self, run):
        start_head(run)
        begin_plateau(run)

    def batch_loss(self, run, batch):
        labels = run.tensors["labels"][batch.row_numbers].to(run.device)
        return self._loss_terms(
            run, batch, lambda log_p: torch.nn.functional.nll_loss(log_p, labels)
        )

    def end_epoch(self, run):
        found = self.log_posterior_of_all(run).argmax(dim=1)
        agreement = float((found == run.tensors["labels"]).double().mean())
        stop_when_settled(run, agreement)
        return {"agreement_with_init": agreement}


class TargetPhase(ClassifierPhase):
    """Train on fixed targets, then refresh them from the clean posterior of all rows."""

    name = "cluster"

    def __init__(self, *, rule, prior, prior_is_ordered, tol, **settings):
        super().__init__(**settings)
        self.rule = rule
        self.prior = prior
        self.prior_is_ordered = prior_is_ordered
        self.tol = tol

    def begin(self, run):
        head = run.network.head
        if not (head.weight.any() or head.bias.any()):
            # As it was built: there was no warm-up.
            start_head(run)
        if isinstance(self.prior, torch.Tensor):
            run.tensors["log_prior"] = prior_of_run(
                self.prior, run, is_ordered=self.prior_is_ordered
            )
        self._refresh(run)

    def batch_loss(self, run, batch):
        targets = run.tensors["targets"][batch.row_numbers]

        def cross_entropy(log_p):
            fixed = targets.to(device=log_p.device, dtype=log_p.dtype)
            return -(fixed * log_p).sum() / len(fixed)

        return self._loss_terms(run, batch, cross_entropy)

    def end_epoch(self, run):
        before = run.tensors["targets"]
        log_p = self._refresh(run)
        change = mean_squared_change(run.tensors["targets"], before)
        objective = self.rule.objective(log_p, run.tensors.get("log_prior"))
        objective += self.l2_regularization * float(run.network.head.weight.detach().square().sum())
        run.values.update(objective=objective, n_iter=run.epoch + 1)
        if change <= self.tol:
            run.stop(
                f"the targets changed by {change:.3g} (mean square), no more than tol={self.tol:g}"
            )
        run.values["stop_reason"] = run.stop_reason or f"max_epochs={self.max_epochs} reached"
        return {
            "objective": objective,
            "target_change": change,
            "n_used_clusters": len(torch.unique(log_p.argmax(dim=1))),
        }

    def _refresh(self, run):
        """Set targets, column means and adaptive prior; return the log-posterior."""
        log_p = self.log_posterior_of_all(run)
        if isinstance(self.prior, str):
            run.tensors["log_prior"] = self._adapted_prior(run, log_p)
        run.tensors["targets"] = self.rule.targets(log_p, run.tensors.get("log_prior"))
        mass = (self.rule.mass_power * log_p).exp().mean(dim=0)
        run.tensors["mass"], run.tensors["marginal"] = mass, log_p.exp().mean(dim=0)
        return log_p

    @staticmethod
    def _adapted_prior(run, log_p):
        before = run.tensors.get("targets")
        proportions = log_p.exp().mean(dim=0) if before is None else before.mean(dim=0)
        return adaptive_log_prior(proportions, _UNIFORM_SHARE)


def posterior_of_head(head, temperature):
    """Return the function from a chunk of embedding to its log-posterior, float64."""
    weight, bias = in_float64(head.weight.detach()), in_float64(head.bias.detach())

    def read(z):
        z = in_float64(z)
        return log_posterior(z, weight.to(z.device), bias.to(z.device), temperature)

    return read


def start_head(run):
    """Set the head to the linear discriminant of the first partition.

    With centres ``m_k`` and one variance ``s^2`` within all clusters the posterior of a
    Gaussian mixture is linear: ``m_k . z / s^2 - |m_k|^2 / (2 s^2)``. Each row is then most
    likely in the cluster of the nearest mean, and as sure of it as the clusters lie apart.
    """
    labels = run.tensors["labels"]
    head = run.network.head
    n_clusters, width = head.weight.shape
    embedded = EmbeddedRows(run)
    sums = torch.zeros(n_clusters, width, dtype=torch.float64)
    for start, stop, z in embedded:
        sums.index_add_(0, labels[start:stop], z)
    counts = torch.bincount(labels, minlength=n_clusters)
    is_empty = counts == 0
    centers = sums / counts.clamp(min=1).unsqueeze(1)
    mean = sums.sum(dim=0) / len(labels)
    centers[is_empty] = mean
    squares = 0.0
    for start, stop, z in embedded:
        distances = squared_distances(z, centers)
        squares += float(distances.gather(1, labels[start:stop].unsqueeze(1)).sum())
    # Rows at their centres would make the classifier endlessly sure.
    spread = float((centers - mean).square().sum(dim=1).mean())
    variance = max(squares / len(labels), _LEAST_SHARE_WITHIN * spread) / centers.shape[1]
    # All rows equal: any positive variance will do.
    factor = 1 / variance if variance > 0 else 1.0
    if not run.network.has_learnt_embedding:
        squares_of_columns = sum((z - mean).square().sum(dim=0) for _, _, z in embedded)
        head.set_scale(mean, (squares_of_columns / len(labels)).sqrt())
    head.write(factor * centers, -0.5 * factor * centers.square().sum(dim=1))


def update_stream(estimator, phase, rows, state):
    """Learn from one batch of a stream; return the changed state, its marginal and the losses.

    The rows are embedded, the running column means move by a decreasing rate, the targets of
    the batch are balanced with them, and the network takes its steps.
    """
    step = state["step"]
    network = estimator.net_.module_
    forward = ChunkedForward(network, estimator._chunk_rows, estimator._current_device())
    log_p = forward(rows, posterior_of_head(network.head, phase.temperature))
    rate = step_size(step + 1)
    mass = update_cluster_mass(state["mass"], log_p, phase.rule.mass_power, rate)
    batch_marginal = log_p.exp().mean(dim=0)
    marginal = (1 - rate) * state["marginal"] + rate * batch_marginal
    prior = phase.prior
    if isinstance(prior, str):
        prior = adaptive_log_prior(marginal, _UNIFORM_SHARE)
    elif prior is not None:
        prior = estimator._log_prior_fitted
    targets = phase.rule.targets(log_p, prior, mass.log())
    losses = stream_steps(
        estimator.net_, phase, rows, {"targets": targets}, seed=state["seed"], step=step
    )
    changed = {**state, "step": step + 1, "mass": mass, "marginal": marginal}
    return changed, batch_marginal, losses
