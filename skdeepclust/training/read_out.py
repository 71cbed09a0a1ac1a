"""K-means on a finished representation, and how sure its partition is."""

from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score, confusion_matrix

from .partition import KMEANS_RESOLUTION, first_partition, partition_means
from .scaled_rows import ScaledRows

# How a run is named that starts from the clusters of an earlier representation.
_EARLIER = "earlier clusters"


class ReadOut(NamedTuple):
    """A converged partition of rows of a representation.

    Parameters
    ----------
    labels : ndarray of shape (n_samples,), int64
        Cluster of every row.
    centers : ndarray of shape (n_clusters, n_features), float64
        Means of the clusters.
    agreement : float or None
        Mean adjusted Rand index between this partition and those of the other restarts; None
        where there was none.
    init_used : str
        How the partition started.
    """

    labels: np.ndarray
    centers: np.ndarray
    agreement: float | None
    init_used: str


def k_means_read_out(
    embedding: np.ndarray,
    n_clusters: int,
    init: Any,
    *,
    n_init: int,
    random_state: int,
    labels_before: np.ndarray | None = None,
) -> ReadOut:
    """Run K-means to convergence; of several runs the lowest inertia is kept.

    Parameters
    ----------
    embedding : ndarray of shape (n_samples, n_features)
        Rows of the representation.
    n_clusters : int
        Number of clusters.
    init : str, clusterer or array-like
        ``"k-means++"`` and ``"random"`` have `n_init` restarts. Whatever else
        :func:`~skdeepclust.training.partition.first_partition` takes gives the start of one run.
    n_init : int
        Number of restarts; 0 leaves the one from the earlier labels.
    random_state : int
        Seed of the restarts.
    labels_before : ndarray of shape (n_samples,) or None, default=None
        Clusters of the rows in an earlier representation. A further run starts from their
        means, and the ids of whichever is kept are matched to them one to one, so that most
        rows keep theirs.

    Returns
    -------
    ReadOut

    Examples
    --------
    >>> import numpy as np
    >>> from skdeepclust.training.read_out import k_means_read_out
    >>> rows = np.array([[0.0], [1.0], [8.0], [9.0]])
    >>> found = k_means_read_out(rows, 2, "k-means++", n_init=3, random_state=0)
    >>> sorted(found.centers.ravel().tolist()), found.agreement
    ([0.5, 8.5], 1.0)
    """
    rows = ScaledRows(embedding)
    if rows.distinct(n_clusters + 1, resolution=KMEANS_RESOLUTION)[1] is not None:
        # Fewer rows can be told from each other than there are clusters.
        if labels_before is not None:
            return _read_out(embedding, labels_before, n_clusters, None, _EARLIER)
        start = first_partition(embedding, n_clusters, init, random_state=random_state)
        return ReadOut(start.labels, start.centers, None, start.init_used)
    runs = _restarts(rows, n_clusters, init, n_init, random_state)
    if labels_before is not None:
        start = rows.scaled(partition_means(embedding, labels_before, n_clusters))
        runs.append((_EARLIER, _fit(rows, n_clusters, start, random_state)))
    init_used, best = min(runs, key=lambda run: run[1].inertia_)
    scores = [adjusted_rand_score(best.labels_, run.labels_) for _, run in runs if run is not best]
    labels = best.labels_
    if labels_before is not None:
        labels = _with_earlier_ids(labels, labels_before, n_clusters)
    agreement = float(np.mean(scores)) if scores else None
    return _read_out(embedding, labels, n_clusters, agreement, init_used)


def _restarts(rows, n_clusters, init, n_init, random_state):
    """Return the name and the K-means of each run that `init` asks for."""
    if isinstance(init, str) and init in ("k-means++", "random"):
        seeds = range(random_state, random_state + n_init)
        return [(init, _fit(rows, n_clusters, init, seed)) for seed in seeds]
    start = first_partition(rows.embedding, n_clusters, init, random_state=random_state)
    return [
        (start.init_used, _fit(rows, n_clusters, rows.scaled(start.centers), random_state))
    ]


def _with_earlier_ids(labels, labels_before, n_clusters):
    overlap = confusion_matrix(labels, labels_before, labels=np.arange(n_clusters))
    _, earlier = linear_sum_assignment(overlap, maximize=True)
    return earlier[labels]


def _fit(rows: ScaledRows, n_clusters: int, init: Any, random_state: int) -> KMeans:
    k_means = KMeans(n_clusters, init=init, n_init=1, random_state=random_state, copy_x=False)
    return k_means.fit(rows.take(slice(None)))


def _read_out(
    embedding: np.ndarray,
    labels: np.ndarray,
    n_clusters: int,
    agreement: float | None,
    init_used: str,
) -> ReadOut:
    labels = labels.astype(np.int64)
    centers = partition_means(embedding, labels, n_clusters)
    return ReadOut(labels, centers, agreement, init_used)
