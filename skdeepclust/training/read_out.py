"""K-means on a finished representation, and how sure its partition is."""

from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score, confusion_matrix

from .partition import KMEANS_RESOLUTION, first_partition, partition_means
from .scaled_rows import ScaledRows


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
    embedding: np.ndarray, n_clusters: int, init: Any, *, n_init: int, random_state: int
) -> ReadOut:
    """Run K-means to convergence; of several restarts the lowest inertia is kept.

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
        Number of restarts.
    random_state : int
        Seed of the restarts.

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
    is_restarted = isinstance(init, str) and init in ("k-means++", "random")
    has_few_rows = _has_few_rows(rows, n_clusters)
    if has_few_rows or not is_restarted:
        start = first_partition(embedding, n_clusters, init, random_state=random_state)
        if has_few_rows:
            return ReadOut(start.labels, start.centers, None, start.init_used)
        run = _fit(rows, n_clusters, rows.scaled(start.centers), random_state)
        return _read_out(embedding, run.labels_, n_clusters, None, start.init_used)
    seeds = range(random_state, random_state + n_init)
    runs = [_fit(rows, n_clusters, init, seed) for seed in seeds]
    best = min(runs, key=lambda run: run.inertia_)
    scores = [adjusted_rand_score(best.labels_, run.labels_) for run in runs if run is not best]
    agreement = float(np.mean(scores)) if scores else None
    return _read_out(embedding, best.labels_, n_clusters, agreement, init)


def continued_read_out(
    embedding: np.ndarray, labels: np.ndarray, centers: np.ndarray, *, random_state: int
) -> ReadOut:
    """Run K-means from the means of earlier labels, and keep the ids of these clusters.

    Parameters
    ----------
    embedding : ndarray of shape (n_samples, n_features)
        Rows of the representation as it is now.
    labels : ndarray of shape (n_samples,)
        Their clusters before the representation has changed.
    centers : ndarray of shape (n_clusters, n_features)
        The centres of that time. Clusters without rows stay there.
    random_state : int
        Seed of what K-means draws for clusters that run empty.

    Returns
    -------
    ReadOut
        Cluster ids are matched one to one to the earlier ones, so that most rows keep theirs.
    """
    rows = ScaledRows(embedding)
    used, ids = np.unique(labels, return_inverse=True)
    if not _has_few_rows(rows, len(used)):
        start = rows.scaled(partition_means(embedding, ids, len(used)))
        found = _fit(rows, len(used), start, random_state).labels_
        overlap = confusion_matrix(found, ids, labels=np.arange(len(used)))
        ids = linear_sum_assignment(overlap, maximize=True)[1][found]
    centers = centers.copy()
    centers[used] = partition_means(embedding, ids, len(used))
    return ReadOut(used[ids].astype(np.int64), centers, None, "earlier clusters")


def _has_few_rows(rows: ScaledRows, n_clusters: int) -> bool:
    """Whether no more rows can be told from each other than there are clusters."""
    return rows.distinct(n_clusters + 1, resolution=KMEANS_RESOLUTION)[1] is not None


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
