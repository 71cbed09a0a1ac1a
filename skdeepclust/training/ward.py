"""Ward's agglomeration, exact, in memory proportional to the data."""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import cdist

__all__ = ["in_order_of_appearance", "ward_labels"]


def ward_labels(
    points: np.ndarray, n_clusters: int, *, sizes: np.ndarray | None = None
) -> np.ndarray:
    """Partition points by Ward's minimum variance criterion.

    The hierarchy is the one of ``scipy.cluster.hierarchy.ward``, found by following chains of
    nearest neighbours. The costs of joining one group to all others are computed from the means
    of the groups when they are needed, so no matrix of distances is held: memory is
    ``O(n_points * n_features)``, time ``O(n_points**2 * n_features)``.

    Parameters
    ----------
    points : ndarray of shape (n_points, n_features)
        Finite values; not changed.
    n_clusters : int
        Number of clusters, at most ``n_points``.
    sizes : ndarray of shape (n_points,), default=None
        Number of rows each point is the mean of; one each if None.

    Returns
    -------
    labels : ndarray of shape (n_points,), dtype=int64
        Ids 0 to ``n_clusters - 1``, numbered in the order in which they first appear.

    References
    ----------
    Daniel Müllner, "Modern hierarchical, agglomerative clustering algorithms", arXiv 1109.2378.

    Examples
    --------
    >>> import numpy as np
    >>> from skdeepclust.training.ward import ward_labels
    >>> ward_labels(np.array([[0.0], [9.0], [1.0], [8.0]]), n_clusters=2)
    array([0, 1, 0, 1])
    """
    n_points = len(points)
    first, second, cost = _merges(points, sizes)
    # A stable sort: equal costs are joined in the order in which the chains met them.
    kept = np.argsort(cost, kind="stable")[: n_points - n_clusters]
    links = coo_array((np.ones(len(kept)), (first[kept], second[kept])), shape=(n_points,) * 2)
    labels = connected_components(links, directed=False)[1]
    return in_order_of_appearance(labels)


def in_order_of_appearance(labels: np.ndarray) -> np.ndarray:
    """Renumber labels 0, 1, ... in the order in which they first appear."""
    _, first_rows, inverse = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(len(first_rows), dtype=np.int64)
    rank[np.argsort(first_rows)] = np.arange(len(first_rows))
    return rank[inverse]


def _merges(
    points: np.ndarray, sizes: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """List all merges: a point of each of the two groups, and the growth of the variance."""
    means = np.array(points, dtype=np.float64)
    sizes = np.ones(len(means)) if sizes is None else np.array(sizes, dtype=np.float64)
    name = np.arange(len(means))
    barred = np.zeros(len(means))  # inf: merged away, or a link of the present chain
    n_groups = len(means)
    merges = []
    chain: list[int] = []
    steps: list[float] = []  # cost between neighbouring links of the chain
    while n_groups > 1:
        if 2 * (n_groups + 1) < len(means):
            barred[chain] = 0.0
            alive = barred == 0.0
            chain = list(np.cumsum(alive)[chain] - 1)
            means, sizes, name, barred = (array[alive] for array in (means, sizes, name, barred))
            barred[chain] = np.inf
        if not chain:
            chain = [int(np.argmin(barred))]
            barred[chain] = np.inf
        tip = chain[-1]
        # From differences, not from an expanded square: equal rows are at distance zero exactly.
        costs = cdist(means[tip : tip + 1], means, "sqeuclidean")[0]
        costs *= sizes
        costs /= sizes + sizes[tip]
        costs += barred
        nearest = int(np.argmin(costs))
        step = float(costs[nearest] * sizes[tip])
        if not steps or step < steps[-1]:
            chain.append(nearest)
            steps.append(step)
            barred[nearest] = np.inf
            continue
        kept = chain[-2]
        merges.append((name[kept], name[tip], steps[-1]))
        # This form keeps the mean of two equal rows exactly equal to them.
        means[kept] += (means[tip] - means[kept]) * (sizes[tip] / (sizes[kept] + sizes[tip]))
        sizes[kept] += sizes[tip]
        barred[kept] = 0.0
        n_groups -= 1
        del chain[-2:], steps[-2:]
    if not merges:
        return np.empty(0, dtype=int), np.empty(0, dtype=int), np.empty(0)
    first, second, cost = (np.array(column) for column in zip(*merges, strict=True))
    return first, second, cost
