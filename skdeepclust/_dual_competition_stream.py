"""The step of dual competitive learning on one batch of a stream."""

import math

import torch

from .losses import (
    assignments_of_distances,
    simplex_projection,
    squared_distances,
    update_prototypes,
)
from .training.inference import ChunkedForward, in_float64

# Keeps the logarithm of the running proportions finite for a cluster without rows.
_TINY = 1e-12


def update_stream(estimator, rows, state):
    """Learn from one batch of a stream: assign, then move each prototype by a falling rate.

    Returns the changed attributes, the mean quantisation error and the batch's proportions.
    """
    network = estimator.net_.module_
    forward = ChunkedForward(network, estimator._chunk_rows, estimator._current_device())
    embedding = forward(rows)
    z = in_float64(embedding)
    prototypes = torch.from_numpy(estimator.cluster_centers_)
    temperature, proportions = estimator.temperature_, state["proportions"]
    distances = squared_distances(z, prototypes)
    if estimator.assignment == "sparse":
        q = simplex_projection(-distances / temperature)
    else:
        # A cluster that has had much is farther away for new rows.
        weight = estimator.balance_weight * estimator.scale_**2 / temperature
        log_prior = -weight * (proportions + _TINY).log()
        q = assignments_of_distances(distances, temperature, log_prior)
    error = float((q * distances).sum()) / len(z)
    max_count = math.inf if estimator.max_count is None else float(estimator.max_count)
    prototypes, counts = update_prototypes(prototypes, state["counts"], z, q, max_count)
    n_seen = state["n_seen"] + len(z)
    share = len(z) / n_seen
    of_batch = q.mean(dim=0)
    proportions = (1 - share) * proportions + share * of_batch
    changed = {
        **state,
        "step": state["step"] + 1,
        "counts": counts,
        "proportions": proportions,
        "n_seen": n_seen,
    }
    attributes = {"cluster_centers_": prototypes.numpy(), "_stream_state": changed}
    # The encoder has not moved, so its embedding serves for the labels as well.
    labelling = estimator._labelling({**vars(estimator), **attributes})
    attributes["labels_"] = forward.read_out(embedding, labelling).numpy()
    return attributes, error, of_batch
