"""The phases of pseudo supervision: learn to name transformations, then read out clusters."""

from typing import NamedTuple

import numpy as np
import torch

from .losses import (
    activity_terms,
    pooled_log_probabilities,
    pseudo_supervised_cross_entropy,
    scaled_frobenius,
    slot_table,
)
from .training.first_partition import embed_sample, embedding_sample_size
from .training.inference import distances_in_float64
from .training.phases import Phase
from .training.read_out import continued_read_out, k_means_read_out
from .training.seeds import derive_seed

# Rows of representation that are given to centres at once.
_SLICE_ROWS = 1024
# Names of the diagnostics that are added up over the batches of an epoch.
_DIAGNOSTICS = ("transformation_accuracy", "affinity", "balance")


class PseudoSupervisionPhase(Phase):
    """Give every row of a batch a random transformation, and learn to name it."""

    name = "cluster"

    def __init__(
        self,
        *,
        affinity_weight,
        balance_weight,
        coactivity_weight,
        frobenius_weight,
        frobenius_on,
        reduction,
        balance_on,
        label_sampling,
        max_epochs,
        batch_size,
        lr,
        schedule,
    ):
        self.affinity_weight = affinity_weight
        self.balance_weight = balance_weight
        self.coactivity_weight = coactivity_weight
        self.frobenius_weight = frobenius_weight
        self.frobenius_on = frobenius_on
        self.reduction = reduction
        self.balance_on = balance_on
        self.label_sampling = label_sampling
        self.max_epochs = max_epochs
        self.batch_size = batch_size
        self.lr = lr
        self.schedule = schedule

    def batch_loss(self, run, batch):
        network = run.network
        n_parents = network.description.n_transforms
        labels = self._draw_labels(len(batch.rows), n_parents, run.device)
        logits = network.softmax_inputs(batch.rows, labels)
        activity = activity_terms(
            logits, n_parents, reduction=self.reduction, balance_on=self.balance_on
        )
        self._add_diagnostics(run, logits.detach(), labels, activity, n_parents)
        classification = pseudo_supervised_cross_entropy(logits, labels, n_parents)
        return {"classification": classification, **self._regularizer(logits, activity)}

    def _regularizer(self, logits, activity):
        """Return the terms with a weight."""
        terms = {}
        if self.affinity_weight:
            terms["affinity"] = self.affinity_weight * activity.affinity
        if self.balance_weight:
            terms["balance"] = self.balance_weight * (1 - activity.balance)
        if self.coactivity_weight:
            terms["coactivity"] = self.coactivity_weight * activity.coactivity
        if self.frobenius_weight:
            inputs = logits.relu() if self.frobenius_on == "activity" else logits
            terms["frobenius"] = self.frobenius_weight * scaled_frobenius(inputs)
        return terms

    def _draw_labels(self, n_rows, n_parents, device):
        """Draw one transformation a row, from the generator that is lent to this epoch."""
        if self.label_sampling == "balanced":
            labels = torch.arange(n_rows, device=device) % n_parents
            return labels[torch.randperm(n_rows, device=device)]
        return torch.randint(n_parents, (n_rows,), device=device)

    @torch.no_grad()
    def _add_diagnostics(self, run, logits, labels, activity, n_parents):
        named = pooled_log_probabilities(logits, n_parents).argmax(dim=1)
        share = (named == labels).to(logits.dtype).mean()
        values = torch.stack([share, activity.affinity.detach(), activity.balance.detach()])
        sums = run.tensors.get("diagnostic_sums", 0.0)
        run.tensors["diagnostic_sums"] = sums + len(labels) * values

    def end_epoch(self, run):
        # The centres belong to weights that are no longer there.
        run.values["is_read_out"] = False
        run.values["n_iter"] = run.epoch + 1
        return self.diagnostics(run.tensors, len(run.rows))

    @staticmethod
    def diagnostics(tensors, n_rows):
        """Take the sums of an epoch of `n_rows` rows out of `tensors`; return the means."""
        means = tensors.pop("diagnostic_sums").double() / n_rows
        return dict(zip(_DIAGNOSTICS, means.tolist(), strict=True))


class ReadOutPhase(Phase):
    """Partition the representation of the rows as they are, without any transformation."""

    name = "read_out"

    def __init__(self, *, init, n_init, n_clusters):
        self.init = init
        self.n_init = n_init
        self.n_clusters = n_clusters

    def begin(self, run):
        self.read_out(run)
        n_used = len(torch.unique(run.tensors["labels"]))
        # The clusters are those of the last epoch.
        run.history[-1] = {**run.history[-1], "n_used_clusters": n_used}

    def read_out(self, run):
        """Leave labels, centres, slot counts, inertia and agreement in `run`.

        Labels of an earlier representation that are there keep their ids.
        """
        run.network.eval()
        seed = derive_seed(run.seed, "read out")
        sample = self._sample(run, seed)
        embedding = run.embed() if sample is None else embed_sample(run, sample)
        before = run.tensors.pop("labels_before", None)
        if before is not None:
            found = continued_read_out(
                embedding.numpy(),
                (before if sample is None else before[sample]).numpy(),
                run.tensors["centers"].numpy(),
                random_state=seed,
            )
        else:
            found = k_means_read_out(
                embedding.numpy(),
                self.n_clusters,
                self._init_of(sample),
                n_init=self.n_init,
                random_state=seed,
            )
        run.tensors["centers"] = torch.from_numpy(found.centers)
        run.values.update(agreement=found.agreement, init_used=found.init_used, is_read_out=True)
        # Where all rows were embedded they are not embedded again.
        blocks = run.forward.chunks(run.rows) if sample is not None else slices_of(embedding)
        self._assign_all(run, blocks)

    def _assign_all(self, run, blocks):
        """Give every row to its nearest centre, and count which slots the clusters use."""
        found = assign_rows(blocks, len(run.rows), run.tensors["centers"], run.network.head)
        run.tensors["labels"] = found.labels
        run.tensors["slot_counts"] = found.slot_counts
        run.values["inertia"] = found.inertia

    def _sample(self, run, seed):
        """Return the rows to run K-means on when there are too many, else None."""
        limit = max(embedding_sample_size(run), 20 * self.n_clusters)
        if len(run.rows) <= limit:
            return None
        chosen = np.random.default_rng(seed).choice(len(run.rows), limit, replace=False)
        return torch.from_numpy(np.sort(chosen))

    def _init_of(self, sample):
        """Return `init`; labels of all rows become those of the sample."""
        is_labels = np.ndim(self.init) == 1 and not isinstance(self.init, str)
        return self.init if sample is None or not is_labels else np.asarray(self.init)[sample]


class AssignedRows(NamedTuple):
    """Rows given to their nearest centres.

    Parameters
    ----------
    labels : Tensor of shape (n_rows,), int64
        Nearest centre.
    inertia : float
        Summed squared distance to it.
    slot_counts : Tensor of shape (n_duplicates, n_clusters), int64
        Rows of each cluster by their strongest duplicate of the identity.
    """

    labels: torch.Tensor
    inertia: float
    slot_counts: torch.Tensor


def read_out_attributes(network, centers, inertia, n_rows, slot_counts):
    """Return the fitted attributes that a partition of `n_rows` rows gives.

    The head was trained on the representation as it is, so an averaged or normalised one has
    no slots.
    """
    has_slots = not (network.description.averages or network.description.normalizes)
    return {
        "cluster_centers_": centers.numpy().copy(),
        "inertia_": inertia,
        "temperature_": inertia / n_rows,
        "slot_table_": slot_table(slot_counts).numpy() if has_slots else None,
        "n_active_slots_": int((slot_counts.sum(dim=1) > 0).sum()) if has_slots else None,
    }


def slices_of(embedding):
    """Yield ``start, stop, z`` of an embedding that is there, as a pass over rows would."""
    for start in range(0, len(embedding), _SLICE_ROWS):
        z = embedding[start : start + _SLICE_ROWS]
        yield start, start + len(z), z


@torch.no_grad()
def assign_rows(blocks, n_rows, centers, head):
    """Give rows, as blocks of representation, to their nearest centres.

    Parameters
    ----------
    blocks : iterable of (start, stop, Tensor)
        The representation, block by block.
    n_rows : int
        Number of rows in all.
    centers : Tensor of shape (n_clusters, embedding_dim)
        Where to give them.
    head : AutoClusteringHead
        Tells the slot of each row.
    """
    device = head.linear.weight.device
    n_slots, n_clusters = head.linear.out_features // head.n_parents, len(centers)
    labels = torch.empty(n_rows, dtype=torch.int64)
    counts = torch.zeros(n_slots * n_clusters, dtype=torch.int64)
    inertia = 0.0
    for start, stop, z in blocks:
        distances, labels[start:stop] = distances_in_float64(z, centers).min(dim=1)
        inertia += float(distances.sum())
        slots = head.slots(z.to(device)).argmax(dim=1).cpu()
        counts += torch.bincount(slots * n_clusters + labels[start:stop], minlength=len(counts))
    return AssignedRows(labels, inertia, counts.reshape(n_slots, n_clusters))
