"""The phase that finds the first partition of the embedding."""

import numpy as np
import torch
from sklearn.utils import check_random_state

from .partition import NAMED_INITS, first_partition
from .phases import Phase
from .seeds import derive_seed

__all__ = ["NAMED_INITS", "FirstPartitionPhase", "embedding_sample_size", "means_of_labels"]

# The first partition sees at most this many rows and values of embedding (64 MB in float32);
# the remaining rows are given to the nearest mean.
_MAX_PARTITION_ROWS = 100_000
_MAX_PARTITION_VALUES = 16 * 2**20


class FirstPartitionPhase(Phase):
    """Partition the clean embedding as `init` says.

    Leaves ``run.tensors["labels"]`` (int64, all rows) and ``run.tensors["centers"]`` (float64).

    Parameters
    ----------
    init : object
        As in every clusterer.
    n_clusters : int
        Number of clusters.
    restart : int, default=0
        Which of several restarts this is; each draws its own random numbers.
    """

    name = "initialise"

    def __init__(self, init, n_clusters, restart=0):
        self.init = init
        self.n_clusters = n_clusters
        self.restart = restart

    def begin(self, run):
        seed = derive_seed(run.seed, "first partition", self.restart)
        sample = self._sample(run, seed)
        embedding = run.embed() if sample is None else embed_sample(run, sample)
        found = first_partition(embedding.numpy(), self.n_clusters, self.init, random_state=seed)
        centers = torch.from_numpy(np.asarray(found.centers, dtype=np.float64))
        if sample is None:
            labels = torch.from_numpy(np.asarray(found.labels, dtype=np.int64))
        else:
            labels = run.forward(run.rows, lambda z: _nearest(z, centers))
        run.tensors["labels"] = labels
        run.tensors["centers"] = centers
        run.values["init_used"] = found.init_used

    def _sample(self, run, seed):
        """Return the rows to partition when there are too many, else None."""
        n_rows = len(run.rows)
        is_labels = np.ndim(self.init) == 1 and not isinstance(self.init, str)
        limit = embedding_sample_size(run)
        if n_rows <= limit or is_labels:
            return None
        limit = max(limit, min(n_rows, 20 * self.n_clusters))
        chosen = check_random_state(seed).choice(n_rows, limit, replace=False)
        return torch.from_numpy(np.sort(chosen))


def embedding_sample_size(run):
    """Return how many rows of embedding may be held for the first partition."""
    width = embedding_width(run.network, run.rows)
    return min(_MAX_PARTITION_ROWS, max(1, _MAX_PARTITION_VALUES // width))


def embedding_width(network, rows):
    """Return the size of the embedding that `network` gives of `rows`."""
    probe = rows.empty(1).zero_().to(network.scaling.shift.device)
    network.eval()
    with torch.inference_mode():
        return network(probe).shape[1]


def embed_sample(run, index):
    """Return the clean embedding of the rows at `index`."""
    run.network.eval()
    blocks = []
    size = run.chunk_rows
    with torch.inference_mode():
        for part in index.split(size):
            padded = run.rows.empty(size).zero_()
            run.rows.gather(part, out=padded)
            blocks.append(run.network(padded.to(run.device))[: len(part)].cpu())
    return torch.cat(blocks)


def means_of_labels(run, labels, n_clusters):
    """Return the mean embedding of each label, float64, gathered chunk by chunk."""
    sums, counts = None, torch.zeros(n_clusters, dtype=torch.float64)
    for start, stop, z in run.forward.chunks(run.rows):
        if sums is None:
            sums = torch.zeros(n_clusters, z.shape[1], dtype=torch.float64)
        part = labels[start:stop]
        sums.index_add_(0, part, z.double())
        counts += torch.bincount(part, minlength=n_clusters)
    return sums / counts.clamp(min=1).unsqueeze(1)


def _nearest(z, centers):
    return torch.cdist(z.double().cpu(), centers).argmin(dim=1)
