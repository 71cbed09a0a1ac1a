"""Streams of pseudo supervision: steps on new and sampled rows, centres that keep their ids."""

import numpy as np
import torch

from ._pseudo_supervision_phases import assign_rows, read_out_attributes, slices_of
from ._reservoir import MixedRows, Reservoir, draw_reservoir, with_new_rows
from ._row_sources import TensorRows
from .training.inference import ChunkedForward
from .training.read_out import continued_read_out
from .training.seeds import derive_seed
from .training.streaming import stream_record, stream_steps

# Rows of the sample that the centres are found from, in batches. All of them are embedded
# again after each training step.
_RESERVOIR_BATCHES = 5


def stream_state(run, batch_size):
    """Return the state with which a stream continues from a finished run."""
    generator = np.random.default_rng(derive_seed(run.seed, "reservoir"))
    size = _RESERVOIR_BATCHES * batch_size
    reservoir = draw_reservoir(run.rows, run.tensors["labels"], size, generator)
    return {"step": 0, "seed": run.seed, **_packed(reservoir), "waiting": run.rows.empty(0)}


def stream_update(estimator, phase, rows, state):
    """Learn from `rows`; return what changes of the fitted attributes.

    Nothing is trained before there are as many new rows as softmax units, since affinity and
    balance of fewer rows are noise. Each batch then is half new, half from the reservoir. The
    clusters are found in the reservoir: K-means from the means of its rows in the
    representation as it has become, each new cluster having the id of the old one that it
    shares most rows with.

    Parameters
    ----------
    estimator : ACOLGARClustering
        Fitted; its network is trained, the rest of it is not changed.
    phase : PseudoSupervisionPhase
        Gives the loss of a batch.
    rows : RowSource
        Rows of this call.
    state : dict
        What :func:`stream_state` or the last call left.
    """
    step, seed = state["step"], state["seed"]
    generator = np.random.default_rng(derive_seed(seed, "stream rows", step))
    before = Reservoir(state["reservoir_rows"], state["reservoir_labels"], state["n_seen"])
    labels = estimator._nearest_labels(rows)
    size = max(len(before.rows), _RESERVOIR_BATCHES * phase.batch_size)
    reservoir = with_new_rows(before, rows, labels, size, generator)
    waiting = state["waiting"]
    state = {**state, "step": step + 1}
    network = estimator.net_.module_
    if len(waiting) + len(rows) < network.head.linear.out_features:
        waiting = torch.cat([waiting, rows.read(0, len(rows))])
        record = stream_record(step, {}, n_used_clusters=len(torch.unique(reservoir.labels)))
        return {
            "_stream_state": {**state, **_packed(reservoir), "waiting": waiting},
            "record": record,
        }
    mixed = MixedRows(waiting, rows, before.rows, generator)
    tensors = {}
    losses = stream_steps(estimator.net_, phase, mixed, tensors, seed=seed, step=step)
    forward = ChunkedForward(network, estimator._chunk_rows, estimator._current_device())
    changed, reservoir = _read_out_again(forward, reservoir, estimator.cluster_centers_, seed, step)
    return {
        **changed,
        "_stream_state": {**state, **_packed(reservoir), "waiting": waiting[:0].clone()},
        "record": stream_record(
            step,
            losses,
            **phase.diagnostics(tensors, len(mixed)),
            n_used_clusters=len(torch.unique(reservoir.labels)),
        ),
    }


def _read_out_again(forward, reservoir, centers, seed, step):
    """Return the changed attributes of the clusters, and the reservoir with new labels."""
    sampled = reservoir.rows
    rows = TensorRows(sampled, sampled.shape[1:], str(sampled.dtype).removeprefix("torch."))
    embedding = forward(rows)
    found = continued_read_out(
        embedding.numpy(),
        reservoir.labels.numpy(),
        centers,
        random_state=derive_seed(seed, "stream read out", step),
    )
    network, centers = forward.network, torch.from_numpy(found.centers)
    assigned = assign_rows(slices_of(embedding), len(rows), centers, network.head)
    attributes = {
        **read_out_attributes(network, centers, assigned.inertia, len(rows), assigned.slot_counts),
        "readout_agreement_": None,
        "init_used_": found.init_used,
    }
    return attributes, reservoir._replace(labels=assigned.labels)


def _packed(reservoir):
    return {
        "reservoir_rows": reservoir.rows,
        "reservoir_labels": reservoir.labels,
        "n_seen": reservoir.n_seen,
    }
