"""The clustering phase of SR-K-means and its streaming step."""

import numpy as np
import torch

from ._class_prior import prior_of_run
from ._warm_up import begin_plateau, stop_when_settled
from .losses import (
    soft_assignments,
    soft_kmeans_batch_loss,
    soft_kmeans_objective,
    squared_distances,
)
from .pretraining.autoencoder import denoising_pass
from .training.embedded_rows import EmbeddedRows, mean_squared_change
from .training.inference import ChunkedForward
from .training.phases import Phase
from .training.streaming import step_size, stream_steps

# Share of the critical temperature, at which all centres merge, that "auto" stands for, and
# share from which annealing begins.
_AUTO_SHARE = 0.1
_ANNEALING_SHARE = 0.9
# A cluster with a smaller share of the rows is empty; its centre moves to the row that is
# farthest from all centres.
_EMPTY_SHARE = 1e-6
# The warm-up's temperature in units of the critical one, and the weight of its cross-entropy
# against the reconstruction. So warm an assignment is content only when the clusters lie well
# apart; in a colder warm-up they touch, and the objective of soft K-means then merges them.
# Above the critical temperature, clusters that lie together do not part.
_WARM_UP_SHARE = 1.0
_WARM_UP_WEIGHT = 1.0
# An embedding value beyond this counts as saturated: its gradient through tanh is below 2 %.
_SATURATED = 0.99


class SoftKMeansPhase(Phase):
    """Train the network with assignments and centres fixed, then refresh both on all rows."""

    name = "cluster"

    def __init__(
        self,
        *,
        n_clusters,
        entropy_regularization,
        annealing,
        clustering_weight,
        hidden_weight,
        log_prior,
        prior_is_ordered,
        centered,
        max_epochs,
        batch_size,
        lr,
        tol,
    ):
        self.n_clusters = n_clusters
        self.entropy_regularization = entropy_regularization
        self.annealing = annealing
        self.clustering_weight = clustering_weight
        self.hidden_weight = hidden_weight
        self.log_prior = log_prior
        self.prior_is_ordered = prior_is_ordered
        self.centered = centered
        self.max_epochs = max_epochs
        self.batch_size = batch_size
        self.lr = lr
        self.tol = tol

    def begin(self, run):
        if self.log_prior is not None:
            run.tensors["log_prior"] = prior_of_run(
                self.log_prior, run, is_ordered=self.prior_is_ordered
            )
        self._set_temperatures(run)
        run.tensors["targets"] = self._assign_all(run, EmbeddedRows(run))

    def batch_loss(self, run, batch):
        tensors = run.tensors
        targets = tensors["targets"][batch.row_numbers]
        mean = tensors.get("mean")
        embedding, reconstruction = denoising_pass(run.network, batch.rows, self.hidden_weight)
        where = {"device": embedding.device, "dtype": embedding.dtype}
        clustering = soft_kmeans_batch_loss(
            embedding,
            targets.to(**where),
            tensors["centers"].to(**where),
            weight=self.clustering_weight,
            mean=None if mean is None else mean.to(**where),
        )
        return {"clustering": clustering, "reconstruction": reconstruction}

    def end_epoch(self, run):
        embedded = EmbeddedRows(run)
        before = run.tensors["targets"]
        n_reseeded = self._move_centers(run, embedded)
        cooling = self._cool(run)
        targets = run.tensors["targets"] = self._assign_all(run, embedded)
        change = mean_squared_change(targets, before)
        objective = self._objective(run, embedded)
        record = {
            "objective": objective,
            "assignment_change": change,
            "temperature": run.values["temperature"],
            "n_used_clusters": len(torch.unique(targets.argmax(dim=1))),
        }
        if n_reseeded:
            record["n_reseeded_clusters"] = n_reseeded
        if run.network.is_trainable:
            record["saturated_share"] = embedded.share_beyond(_SATURATED)
        run.values.update(objective=objective, n_iter=run.epoch + 1)
        if change <= self.tol and not n_reseeded and not cooling:
            run.stop(
                f"the assignments changed by {change:.3g} (mean square), no more than "
                f"tol={self.tol:g}"
            )
        run.values["stop_reason"] = run.stop_reason or f"max_epochs={self.max_epochs} reached"
        return record

    def _set_temperatures(self, run):
        """Set the present and the final temperature, once the embedding is known."""
        embedded = EmbeddedRows(run)
        critical = embedded.critical_temperature()
        if self.entropy_regularization == "auto":
            final = _AUTO_SHARE * critical
        else:
            final = float(self.entropy_regularization) * self.n_clusters
        # All rows equal: any positive temperature gives the same assignments.
        final = final if final > 0 else 1.0
        start = final if self.annealing is None else max(final, _ANNEALING_SHARE * critical)
        run.values.update(temperature=start, final_temperature=final)

    def _cool(self, run):
        """Lower the temperature by one step; return whether it is still above its end."""
        present, final = run.values["temperature"], run.values["final_temperature"]
        if self.annealing is not None and present > final:
            present = max(final, present * self.annealing)
            run.values["temperature"] = present
        return present > final

    def _move_centers(self, run, embedded):
        """Set the centres to the means weighted by the old assignments, on the new embedding."""
        targets = run.tensors["targets"]
        weights = targets.sum(dim=0)
        sums = torch.zeros_like(run.tensors["centers"])
        total = torch.zeros_like(sums[0])
        for start, stop, z in embedded:
            sums += targets[start:stop].T @ z
            total += z.sum(dim=0)
        if self.centered:
            run.tensors["mean"] = total / len(run.rows)
        empty = weights < _EMPTY_SHARE * len(run.rows)
        safe = torch.where(empty, 1.0, weights).unsqueeze(1)
        centers = torch.where(empty.unsqueeze(1), run.tensors["centers"], sums / safe)
        n_reseeded = 0
        for cluster in torch.nonzero(empty).flatten():
            distance, row = embedded.farthest_row(centers)
            if distance > 0:
                centers[cluster] = row
                n_reseeded += 1
        run.tensors["centers"] = centers
        return n_reseeded

    def _assign_all(self, run, embedded):
        """Return the exact assignments of all rows for the present centres."""
        targets = torch.empty(len(run.rows), self.n_clusters, dtype=torch.float64)
        for start, stop, z in embedded:
            targets[start:stop] = soft_assignments(
                z,
                run.tensors["centers"],
                run.values["temperature"],
                run.tensors.get("log_prior"),
            )
        if self.centered and "mean" not in run.tensors:
            run.tensors["mean"] = embedded.mean()
        return targets

    def _objective(self, run, embedded):
        """Return the weighted objective a row plus the reconstruction loss of the epoch."""
        value = 0.0
        for start, stop, z in embedded:
            value += float(
                soft_kmeans_objective(
                    z,
                    run.tensors["targets"][start:stop],
                    run.tensors["centers"],
                    run.values["temperature"],
                    run.tensors.get("log_prior"),
                    run.tensors.get("mean"),
                )
            )
        losses = run.values.get("epoch_losses", {})
        weight = self.clustering_weight if run.network.is_trainable else 1.0
        return weight * value / len(run.rows) + losses.get("reconstruction", 0.0)


class WarmUpPhase(SoftKMeansPhase):
    """Train the network towards the first partition, whatever shape its clusters have.

    The exact assignments give every row to the nearest centre. A partition of another kind,
    such as Ward's, would be lost at the first of them, so the embedding is first made to
    agree with it: by the cross-entropy of the partition and the soft assignments of the noisy
    embedding. The objective of soft K-means itself cannot do that, since it moves a row
    towards its centre alone, and two clusters with neighbouring centres into one corner.
    """

    name = "warm_up"

    def begin(self, run):
        labels = run.tensors["labels"]
        one_hot = torch.nn.functional.one_hot(labels, self.n_clusters)
        run.tensors["targets"] = one_hot.double()
        embedded = EmbeddedRows(run)
        self._move_centers(run, embedded)
        # All rows equal: any positive temperature will do.
        temperature = _WARM_UP_SHARE * embedded.critical_temperature() or 1.0
        run.values["warm_up_temperature"] = temperature
        begin_plateau(run)

    def batch_loss(self, run, batch):
        embedding, reconstruction = denoising_pass(run.network, batch.rows, self.hidden_weight)
        labels = run.tensors["labels"][batch.row_numbers].to(embedding.device)
        centers = run.tensors["centers"].to(embedding.device, embedding.dtype)
        logits = -squared_distances(embedding, centers) / run.values["warm_up_temperature"]
        cross_entropy = torch.nn.functional.cross_entropy(logits, labels)
        return {
            "clustering": _WARM_UP_WEIGHT * cross_entropy,
            "reconstruction": reconstruction,
        }

    def end_epoch(self, run):
        embedded = EmbeddedRows(run)
        self._move_centers(run, embedded)
        agreement = self._agreement(run, embedded)
        stop_when_settled(run, agreement)
        return {
            "agreement_with_init": agreement,
            "saturated_share": embedded.share_beyond(_SATURATED),
        }

    @staticmethod
    def _agreement(run, embedded):
        """Return the share of rows whose nearest centre is that of their first cluster."""
        n_agreeing = 0
        for start, stop, z in embedded:
            nearest = squared_distances(z, run.tensors["centers"]).argmin(dim=1)
            n_agreeing += int((nearest == run.tensors["labels"][start:stop]).sum())
        return n_agreeing / len(run.rows)


def update_stream(estimator, phase, rows, state):
    """Learn from one batch of a stream; return the changed attributes and the losses.

    The rows are embedded and assigned, the network takes its steps, the rows are embedded
    again, and the running averages of assignments and weighted sums move by a decreasing rate.
    """
    step = state["step"]
    network = estimator.net_.module_
    forward = ChunkedForward(network, estimator._chunk_rows, estimator._current_device())
    assign = estimator._assignment(vars(estimator))
    targets = forward(rows, assign)
    weights, sums = state["weights"], state["sums"]
    centers = torch.from_numpy(estimator.cluster_centers_)
    tensors = {"targets": targets, "centers": centers}
    if phase.centered:
        tensors["mean"] = sums.sum(dim=0) / weights.sum()
    losses = stream_steps(estimator.net_, phase, rows, tensors, seed=state["seed"], step=step)
    rate = step_size(step + 1)
    mean_sums = torch.zeros_like(sums)
    for start, stop, z in forward.chunks(rows):
        mean_sums += targets[start:stop].T @ z.double() / len(rows)
    batch_weights = targets.mean(dim=0)
    weights = (1 - rate) * weights + rate * batch_weights
    sums = (1 - rate) * sums + rate * mean_sums
    # A cluster that is not met for long keeps its centre: weight and sum shrink alike, and are
    # held away from underflow.
    vanishing = weights < np.finfo(np.float64).tiny ** 0.5
    weights = torch.where(vanishing, state["weights"], weights)
    sums = torch.where(vanishing.unsqueeze(1), state["sums"], sums)
    changed = {
        "cluster_centers_": (sums / weights.unsqueeze(1)).numpy(),
        "_stream_state": {**state, "step": step + 1, "weights": weights, "sums": sums},
        "weights_of_batch": batch_weights,
    }
    return changed, losses
