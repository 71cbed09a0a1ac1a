"""The training phases of dual competitive learning on an embedding that stays as it is."""

import math

import torch

from .losses import (
    assignment_imbalance,
    log_soft_assignments,
    prototype_attraction,
    prototype_overlap,
    quantization_parts,
)
from .nn.dual_competitive_layer import DualCompetitiveLayer
from .training.embedded_rows import EmbeddedRows
from .training.first_partition import embed_sample
from .training.phases import Phase
from .training.seeds import torch_generator

# Diagnostics that are added up over the batches of an epoch.
_SUMMED = (
    "quantization_error",
    "reconstruction_error",
    "prototype_spread",
    "concentration",
    "assignment_variance",
)
# A learnt embedding of up to so many values is kept over the steps (128 MB in float32).
_MAX_KEPT_VALUES = 32 * 2**20
# Up to so many columns the covariance of all rows is formed; above, that of the anchors serves.
_MAX_COVARIANCE_COLUMNS = 2_048
# The objective of a solution is taken on up to so many rows.
_MAX_OBJECTIVE_ROWS = 4_096


class AnchorPhase(Phase):
    """Draw the anchors and the first prototypes of a restart.

    Parameters
    ----------
    restart : int
        Number of the restart; each draws its own.
    n_anchors : int
        How many.
    at_samples : bool
        Whether the first prototypes lie half way to anchors, and not near the mean.
    """

    name = "anchors"

    def __init__(self, restart, n_anchors, at_samples):
        self.restart = restart
        self.n_anchors = n_anchors
        self.at_samples = at_samples

    def begin(self, run):
        layer = run.network.competition
        generator = torch_generator(run.seed, "anchors", self.restart)
        anchors = torch.randperm(len(run.rows), generator=generator)[: self.n_anchors]
        run.tensors["anchors"] = anchors.sort().values
        layer.draw(generator)
        if self.at_samples:
            chosen = torch.randperm(self.n_anchors, generator=generator)[: layer.n_clusters]
            run.tensors["first_anchors"] = chosen


class DualCompetitionPhase(Phase):
    """Train the layer that makes the prototypes; the encoder stays as it is.

    The embedding is centred and divided by the square root of its total variance, once, so that
    no weight of the loss depends on its units.
    """

    name = "cluster"

    def __init__(
        self,
        *,
        loss,
        balance_weight,
        entropy_weight,
        separation_weight,
        ridge,
        temperature_start,
        temperature_end,
        is_relative,
        has_centers,
        max_epochs,
        batch_size,
        lr,
    ):
        self.loss = loss
        self.balance_weight = balance_weight
        self.entropy_weight = entropy_weight
        self.separation_weight = separation_weight
        self.ridge = ridge
        self.temperature_start = temperature_start
        self.temperature_end = temperature_end
        self.is_relative = is_relative
        self.has_centers = has_centers
        self.max_epochs = max_epochs
        self.batch_size = batch_size
        self.lr = lr

    # -- the embedding in units of the losses ------------------------------------------------

    def begin(self, run):
        embedded = EmbeddedRows(run)
        center = embedded.mean()
        total = sum(float((z - center).square().sum()) for _, _, z in embedded) / len(run.rows)
        # All rows equal: any scale and any temperature give the same clusters.
        run.values.update(scale=math.sqrt(total) or 1.0, step=0)
        run.tensors["center"] = center
        anchors = self.scaled(run, embed_sample(run, run.tensors["anchors"]))
        run.values["largest_variance"] = largest_variance(run, embedded, anchors) or 1.0
        run.values["total_variance"] = total / run.values["scale"] ** 2
        self._keep_embedding(run, anchors)
        if self.has_centers:
            centers = self.scaled(run, run.tensors["centers"])
            place(run, centers if "basis" not in run.tensors else centers @ run.tensors["basis"])
        elif "first_anchors" in run.tensors:
            chosen = run.tensors.pop("first_anchors")
            run.network.competition.place_at(chosen, run.tensors["anchor_embedding"])
        self.set_centers(run)

    def _keep_embedding(self, run, anchors):
        """Keep what does not change: the anchors, and the embedding where it fits."""
        tensors = run.tensors
        for name in ("basis", "embedding"):
            tensors.pop(name, None)
        is_dual = isinstance(run.network.competition, DualCompetitiveLayer)
        if is_dual and len(anchors) == len(run.rows) < anchors.shape[1]:
            # Prototypes never leave the span of the anchors, so that distances in an
            # orthonormal basis of it are all there is to compute.
            tensors["basis"] = torch.linalg.svd(anchors, full_matrices=False).Vh.T
            anchors = anchors @ tensors["basis"]
        tensors["anchor_embedding"] = anchors
        n_values = len(run.rows) * anchors.shape[1]
        if run.network.has_learnt_embedding and n_values <= _MAX_KEPT_VALUES:
            tensors["embedding"] = run.embed()

    def scaled(self, run, z):
        """Return an embedding in units of the losses, in the precision of the layer."""
        z = z.to(next(run.network.competition.parameters()).dtype)
        return (z - run.tensors["center"].to(z)) / run.values["scale"]

    def features(self, run, batch):
        """Return the scaled embedding of a batch and of the anchors."""
        tensors, device = run.tensors, run.device
        anchors = tensors["anchor_embedding"].to(device)
        if len(anchors) == len(run.rows):
            return anchors[batch.row_numbers.to(device)], anchors
        if "embedding" in tensors:
            return self.scaled(run, tensors["embedding"][batch.row_numbers].to(device)), anchors
        # Nothing of the encoder is trained, so neither are its running statistics.
        run.network.eval()
        with torch.no_grad():
            return self.scaled(run, run.network(batch.rows)), anchors

    # -- training --------------------------------------------------------------------------

    def trained_parameters(self, network):
        return list(network.competition.parameters())

    def temperature(self, run):
        """Return the temperature of the present step, in units of the scaled embedding."""
        share = min(1.0, run.values["step"] / max(1, self.n_cooling_steps(run) - 1))
        ratio = self.temperature_end / self.temperature_start
        unit = run.values["largest_variance"] if self.is_relative else run.values["scale"] ** -2
        return unit * self.temperature_start * ratio**share

    def n_steps(self, run):
        """Return the number of steps of the phase."""
        return self.max_epochs * -(-len(run.rows) // self.batch_size)

    def n_cooling_steps(self, run):
        """Return the number of steps after which the temperature stays at its end."""
        return self.n_steps(run)

    def batch_loss(self, run, batch):
        z, anchors = self.features(run, batch)
        prototypes = run.network.competition(anchors)
        return self.competition_terms(run, z, prototypes)

    def competition_terms(self, run, z, prototypes):
        """Return the terms of the loss of embedded rows, and add up their diagnostics."""
        temperature = self.temperature(run)
        log_q = log_soft_assignments(z, prototypes, temperature)
        q = log_q.exp()
        parts = quantization_parts(z, prototypes, q)
        self._add_diagnostics(run, parts, q, prototypes)
        return self._terms(parts, log_q, q, prototypes, temperature)

    def _terms(self, parts, log_q, q, prototypes, temperature):
        is_quantization = self.loss == "quantization"
        terms = {"data": (parts.quantization if is_quantization else parts.reconstruction).mean()}
        weight = temperature if self.entropy_weight == "temperature" else self.entropy_weight
        if weight:
            terms["entropy"] = weight * (q * log_q).sum(dim=1).mean()
        if self.balance_weight:
            terms["balance"] = self.balance_weight * assignment_imbalance(q)
        if self.separation_weight:
            # The scaled embedding has the trace 1.
            terms["separation"] = self.separation_weight * prototype_overlap(prototypes, 1.0)
        if self.ridge:
            terms["ridge"] = self.ridge / 2 * prototypes.square().sum()
        return terms

    def after_step(self, run, batch):
        run.values["step"] += 1

    @torch.no_grad()
    def _add_diagnostics(self, run, parts, q, prototypes):
        squares = q.square().sum(dim=1)
        # The Frobenius norm of diag(q) - q q^T without forming it.
        norms = (squares - 2 * q.pow(3).sum(dim=1) + squares.square()).clamp_min(0).sqrt()
        values = torch.stack([part.double().sum() for part in (*parts, squares, norms)])
        tensors = run.tensors
        tensors["diagnostic_sums"] = tensors.get("diagnostic_sums", 0.0) + values.cpu()
        tensors["assignment_sums"] = tensors.get("assignment_sums", 0.0) + q.double().sum(0).cpu()
        tensors["attraction"] = prototype_attraction(prototypes, q).norm().cpu()

    # -- after an epoch --------------------------------------------------------------------

    def end_epoch(self, run):
        self.set_centers(run)
        tensors, values = run.tensors, run.values
        means = tensors.pop("diagnostic_sums") / len(run.rows)
        record = dict(zip(_SUMMED, means.tolist(), strict=True))
        proportions = tensors["proportions"] = tensors.pop("assignment_sums") / len(run.rows)
        record["separation"] = _mean_distance(tensors["centers"]) / values["scale"]
        record["attraction"] = float(tensors.pop("attraction"))
        record["temperature"] = values["temperature"]
        unit = values["scale"] ** 2
        record["total_variance"] = unit * values["total_variance"]
        record["largest_variance"] = unit * values["largest_variance"]
        record["n_used_clusters"] = int((proportions > 0.5 / len(run.rows)).sum())
        values.update(objective=self._objective(run), n_iter=run.epoch + 1)
        values["stop_reason"] = run.stop_reason or f"max_epochs={self.max_epochs} reached"
        return record

    @torch.no_grad()
    def _objective(self, run):
        """Return the loss of the present prototypes, by which restarts are compared."""
        anchors = run.tensors["anchor_embedding"].to(run.device)
        z = anchors
        if len(anchors) < len(run.rows) or len(anchors) > _MAX_OBJECTIVE_ROWS:
            generator = torch_generator(run.seed, "objective")
            sample = torch.randperm(len(run.rows), generator=generator)[:_MAX_OBJECTIVE_ROWS]
            sample = sample.sort().values
            whole = len(anchors) == len(run.rows)
            z = anchors[sample] if whole else self.scaled(run, embed_sample(run, sample))
        prototypes, temperature = run.network.competition(anchors), self.temperature(run)
        log_q = log_soft_assignments(z.to(run.device), prototypes, temperature)
        q = log_q.exp()
        parts = quantization_parts(z, prototypes, q)
        return float(sum(self._terms(parts, log_q, q, prototypes, temperature).values()))

    def set_centers(self, run):
        """Leave prototypes and temperature in units of the embedding."""
        tensors, scale = run.tensors, run.values["scale"]
        with torch.no_grad():
            prototypes = run.network.competition(tensors["anchor_embedding"].to(run.device))
        prototypes = prototypes.detach().cpu().double()
        if "basis" in tensors:
            prototypes = prototypes @ tensors["basis"].T
        tensors["centers"] = tensors["center"] + scale * prototypes
        run.values["temperature"] = self.temperature(run) * scale**2


def place(run, prototypes):
    """Set the layer so that it gives these prototypes, as far as anchors span."""
    anchors = run.tensors["anchor_embedding"]
    run.network.competition.place(prototypes, anchors)


def largest_variance(run, embedded, anchors):
    """Return the largest variance of the scaled embedding along any direction."""
    if anchors.shape[1] <= _MAX_COVARIANCE_COLUMNS and len(anchors) < len(run.rows):
        return embedded.critical_temperature() / 2 / run.values["scale"] ** 2
    centered = anchors - anchors.mean(dim=0)
    return float(torch.linalg.svdvals(centered)[0]) ** 2 / len(anchors)


def _mean_distance(centers):
    """Return the mean distance of two prototypes; 0 for a single one."""
    if len(centers) == 1:
        return 0.0
    return float(torch.pdist(centers).mean())
