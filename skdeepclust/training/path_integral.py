"""Agglomeration of a nearest-neighbour graph by path integrals."""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components
from sklearn.neighbors import NearestNeighbors

from .ward import in_order_of_appearance, ward_labels

__all__ = ["PathIntegralGroups", "path_integral_labels", "transition_weights"]

# Weight of one more step of a path. The series below rely on its being small.
STEP_WEIGHT = 0.01
# A path of this many more steps weighs 1e-16 of the first: nothing in float64.
_SERIES_LENGTH = 8
# Smaller tables are dense, because a sparse one costs tens of microseconds to make.
_DENSE_CELLS = 2**14


def path_integral_labels(
    points: np.ndarray, n_clusters: int, *, n_neighbors: int = 20
) -> np.ndarray:
    """Partition points by agglomeration with the path integral as the measure of a group.

    A random walk goes along the graph of nearest neighbours. The path integral of a group ``C``
    with transition probabilities ``T_CC`` and ``z = 0.01`` is

        ``S(C) = 1' (I - z T_CC)^-1 1 / |C|**2``,

    the weight of all walks that stay in the group. Two groups ``A`` and ``B`` with union ``U``
    have the affinity ``S(A|U) - S(A) + S(B|U) - S(B)``, where ``S(A|U)`` counts the walks from
    ``A`` to ``A`` that stay in ``U``. Every point starts in the group of its nearest neighbour;
    the two groups with the largest affinity are joined until ``n_clusters`` are left. Groups that
    no walk leaves and re-enters have affinity zero: where only such pairs are left, Ward's
    criterion on the means of the groups says which are joined.

    Memory is ``O(n_points * (n_features + n_neighbors))``: no matrix of distances is held.

    Parameters
    ----------
    points : ndarray of shape (n_points, n_features)
        Finite values; not changed.
    n_clusters : int
        Number of clusters, at most ``n_points``.
    n_neighbors : int, default=20
        Number of edges that leave a point, at most ``n_points - 1`` of them.

    Returns
    -------
    labels : ndarray of shape (n_points,), dtype=int64
        Ids 0 to ``n_clusters - 1``, numbered in the order in which they first appear.

    Notes
    -----
    Walks are counted between leaving their group for the first and coming back for the last time;
    those of more than four steps there are left out. An affinity is too small by less than 2e-10,
    in practice by about a millionth of itself.

    References
    ----------
    Wei Zhang, Deli Zhao, Xiaogang Wang, "Agglomerative clustering via maximum incremental path
    integral", Pattern Recognition 46 (2013).

    Examples
    --------
    >>> import numpy as np
    >>> from skdeepclust.training.path_integral import path_integral_labels
    >>> points = np.array([[0.0], [10.0], [1.0], [3.0], [11.0], [13.0]])
    >>> path_integral_labels(points, n_clusters=2, n_neighbors=2)
    array([0, 1, 0, 0, 1, 1])
    """
    n_points = len(points)
    if n_clusters >= n_points:
        return np.arange(n_points)
    neighbors, weights = transition_weights(points, n_neighbors)
    nearest = csr_array(
        (np.ones(n_points), neighbors[:, 1], np.arange(n_points + 1)), shape=(n_points, n_points)
    )
    n_groups, labels = connected_components(nearest, directed=False)
    if n_groups < n_clusters:
        labels = np.arange(n_points)
    labels = _merge_best_pairs(PathIntegralGroups(neighbors, weights, labels), n_clusters)
    n_groups = labels.max() + 1
    if n_groups > n_clusters:
        sizes = np.bincount(labels)
        means = np.stack([np.bincount(labels, weights=column) for column in points.T], axis=1)
        labels = ward_labels(means / sizes[:, None], n_clusters, sizes=sizes)[labels]
    return labels


def transition_weights(points: np.ndarray, n_neighbors: int) -> tuple[np.ndarray, np.ndarray]:
    """Compute the random walk on the graph of nearest neighbours.

    The weight of an edge is ``exp(-squared distance / width)``, that of staying is 1, and the
    weights that leave a point sum to 1 after normalisation. ``width`` is the mean squared distance
    to the neighbours (to at least three of them), doubled until no point is cut off from its
    nearest neighbour (weight below 1e-5).

    Parameters
    ----------
    points : ndarray of shape (n_points, n_features)
        At least two points.
    n_neighbors : int
        Number of edges that leave a point, at most ``n_points - 1`` of them.

    Returns
    -------
    neighbors : ndarray of shape (n_points, n_neighbors + 1)
        The point itself, then its neighbours, the nearest first.
    weights : ndarray of shape (n_points, n_neighbors + 1)
        Probability of the step to each of them.
    """
    n_points = len(points)
    n_neighbors = min(n_neighbors, n_points - 1)
    search = NearestNeighbors(n_neighbors=min(max(n_neighbors, 3), n_points - 1)).fit(points)
    # Without an argument a point is not its own neighbour, also where others are equal to it.
    distances, indices = search.kneighbors()
    squared = distances**2
    width = squared.mean()
    if width == 0.0:
        width = 1.0
    while np.exp(-squared[:, 0].max() / width) < 1e-5:
        width *= 2.0
    neighbors = np.column_stack((np.arange(n_points), indices[:, :n_neighbors]))
    weights = np.column_stack((np.ones(n_points), np.exp(-squared[:, :n_neighbors] / width)))
    return neighbors, weights / weights.sum(axis=1, keepdims=True)


def _merge_best_pairs(groups: PathIntegralGroups, n_clusters: int) -> np.ndarray:
    """Join the pair of largest affinity until enough is done or no pair has any."""
    waiting = []
    alive = set(range(groups.n_ids))
    for group in range(groups.n_ids):
        others, affinities = groups.affinities(group)
        pairs = zip((-affinities).tolist(), others.tolist(), strict=True)
        waiting += [(cost, group, other) for cost, other in pairs if other > group]
    heapq.heapify(waiting)
    while len(alive) > n_clusters and waiting:
        _, first, second = heapq.heappop(waiting)
        if first not in alive or second not in alive:
            continue
        merged = groups.merge(first, second)
        alive -= {first, second}
        alive.add(merged)
        others, affinities = groups.affinities(merged)
        for affinity, other in zip(affinities.tolist(), others.tolist(), strict=True):
            heapq.heappush(waiting, (-affinity, other, merged))
    return in_order_of_appearance(groups.labels)


class PathIntegralGroups:
    """A partition of the points of a graph that knows the affinities of its groups.

    A merged group gets a new id; the ids of its two parts are not used again.

    Parameters
    ----------
    neighbors, weights : ndarray of shape (n_points, n_edges)
        Targets and probabilities of the steps from each point, as ``transition_weights`` gives.
    labels : ndarray of shape (n_points,)
        Group of each point; ids 0, 1, ... without gaps.

    Attributes
    ----------
    labels : ndarray of shape (n_points,)
        Present group of each point.
    n_ids : int
        One more than the largest id in use.
    """

    def __init__(self, neighbors: np.ndarray, weights: np.ndarray, labels: np.ndarray):
        n_points, n_edges = neighbors.shape
        graph = csr_array(
            (weights.ravel(), neighbors.ravel(), np.arange(0, n_points * n_edges + 1, n_edges)),
            shape=(n_points, n_points),
        )
        self._neighbors = neighbors
        self._weights = weights
        self._incoming = graph.T.tocsr()
        self.labels = np.array(labels, dtype=np.int64)
        self.n_ids = int(self.labels.max()) + 1
        order = np.argsort(self.labels, kind="stable")
        starts = np.cumsum(np.bincount(self.labels))[:-1]
        self._members = dict(enumerate(np.split(order, starts)))
        # The same graph with all edges between different groups at zero.
        inner_weights = weights * (self.labels[neighbors] == self.labels[:, None])
        self._inner_weights = inner_weights
        self._inner = csr_array(
            (inner_weights.ravel(), graph.indices, graph.indptr), shape=graph.shape
        )
        self._inner_transposed = self._inner.T
        # Weights of all walks inside the group of a point that start, and that end, there.
        self._starting = _sum_of_walks(self._inner)
        self._ending = _sum_of_walks(self._inner_transposed)
        self._position = np.empty(n_points, dtype=np.int64)

    def path_integral(self, group: int) -> float:
        """Return ``S`` of a group: the weight of all walks inside it over its size squared."""
        members = self._members[group]
        return float(self._starting[members].sum() / len(members) ** 2)

    def merge(self, first: int, second: int) -> int:
        """Join two groups and return the id of the new one."""
        merged = self.n_ids
        self.n_ids += 1
        members = np.concatenate((self._members.pop(first), self._members.pop(second)))
        self._members[merged] = members
        self.labels[members] = merged
        inside = self.labels[self._neighbors[members]] == merged
        self._inner_weights[members] = self._weights[members] * inside
        steps = self._steps_inside(members)
        self._starting[members] = _sum_of_walks(steps)
        self._ending[members] = _sum_of_walks(steps.T)
        return merged

    def affinities(self, group: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the groups with which a group has a positive affinity, and the affinities."""
        members = self._members[group]
        others, outgoing, incoming = self._edges_to_others(group)
        here = self._walks_from_here(members, others, outgoing, incoming)
        there = self._walks_from_there(members, others, outgoing, incoming)
        sizes = np.array([len(self._members[other]) for other in others.tolist()])
        affinity = here / len(members) ** 2 + there / sizes**2
        return others[affinity > 0.0], affinity[affinity > 0.0]

    def _walks_from_here(
        self, members: np.ndarray, others: np.ndarray, outgoing: _Edges, incoming: _Edges
    ) -> np.ndarray:
        """Weigh the walks from a group to itself that visit another, for each other group."""
        n_points, shape, z = len(self.labels), (len(members), len(others)), STEP_WEIGHT
        # At each point of the others: all walks that arrive there, and all that depart from it.
        arriving = outgoing.sum_at_far(self._ending[members][outgoing.near], n_points)
        departing = incoming.sum_at_far(self._starting[members][incoming.near], n_points)
        later = self._inner @ departing
        visit = arriving * (departing + z * later)
        visit += (self._inner_transposed @ arriving) * (z**2 * later)
        once = np.bincount(self.labels, weights=visit, minlength=self.n_ids)[others]
        back = incoming.table(arriving[incoming.far], shape)
        again = outgoing.table(departing[outgoing.far], shape)
        return z**2 * once + z**4 * (back * again).sum(axis=0)

    def _walks_from_there(
        self, members: np.ndarray, others: np.ndarray, outgoing: _Edges, incoming: _Edges
    ) -> np.ndarray:
        """Weigh the walks from each other group to itself that visit this one."""
        n_points, shape, z = len(self.labels), (len(members), len(others)), STEP_WEIGHT
        # At each member, for each other group: all its walks that arrive, and that depart.
        arriving = incoming.table(self._ending[incoming.far], shape)
        departing = outgoing.table(self._starting[outgoing.far], shape)
        steps = self._steps_inside(members)
        later = steps @ departing
        visit = arriving * (departing + z * later)
        visit += (steps.T @ arriving) * (z**2 * later)
        back = outgoing.sum_at_far(outgoing.look_up(arriving), n_points)
        again = incoming.sum_at_far(incoming.look_up(departing), n_points)
        twice = np.bincount(self.labels, weights=back * again, minlength=self.n_ids)[others]
        return z**2 * visit.sum(axis=0) + z**4 * twice

    def _edges_to_others(self, group: int) -> tuple[np.ndarray, _Edges, _Edges]:
        """Find the groups joined to one by edges both ways, and the edges."""
        members = self._members[group]
        targets = self._neighbors[members]
        entering = self._incoming[members]
        rows = np.arange(len(members))
        reached, reaching = np.zeros((2, self.n_ids), dtype=bool)
        reached[self.labels[targets]] = True
        reaching[self.labels[entering.indices]] = True
        reached[group] = False
        others = np.flatnonzero(reached & reaching)
        column = np.full(self.n_ids, -1)
        column[others] = np.arange(len(others))
        outgoing = _Edges(
            np.repeat(rows, targets.shape[1]),
            targets.ravel(),
            self._weights[members].ravel(),
            column[self.labels[targets.ravel()]],
        )
        incoming = _Edges(
            np.repeat(rows, np.diff(entering.indptr)),
            entering.indices,
            entering.data,
            column[self.labels[entering.indices]],
        )
        return others, outgoing.with_column(), incoming.with_column()

    def _steps_inside(self, members: np.ndarray) -> csr_array:
        """Return the steps between the members of one group as a matrix."""
        self._position[members] = np.arange(len(members))
        weights = self._inner_weights[members]
        kept = weights > 0.0
        columns = self._position[self._neighbors[members][kept]]
        starts = np.concatenate(([0], np.cumsum(kept.sum(axis=1))))
        return csr_array((weights[kept], columns, starts), shape=(len(members),) * 2)


class _Edges(NamedTuple):
    """Edges between the members of one group (near) and points of other groups (far)."""

    near: np.ndarray
    far: np.ndarray
    weight: np.ndarray
    column: np.ndarray  # of the far point's group in a table; negative where it has none

    def with_column(self) -> _Edges:
        """Keep the edges whose far point has a column."""
        return _Edges(*(part[self.column >= 0] for part in self))

    def sum_at_far(self, values: np.ndarray, n_points: int) -> np.ndarray:
        """Sum weight times value over the edges of each far point."""
        return np.bincount(self.far, weights=self.weight * values, minlength=n_points)

    def table(self, values: np.ndarray, shape: tuple[int, int]) -> np.ndarray | csr_array:
        """Sum weight times value over the edges of each member to each other group."""
        if shape[0] * shape[1] <= _DENSE_CELLS:
            cells = self.near * shape[1] + self.column
            sums = np.bincount(cells, self.weight * values, minlength=shape[0] * shape[1])
            return sums.reshape(shape)
        return coo_array((self.weight * values, (self.near, self.column)), shape=shape).tocsr()

    def look_up(self, table: np.ndarray | csr_array) -> np.ndarray:
        """Return the entry of a table that belongs to each edge."""
        return np.asarray(table[self.near, self.column]).ravel()


def _sum_of_walks(steps: csr_array) -> np.ndarray:
    """Sum the weights of all walks that start at each point."""
    total = np.ones(steps.shape[0])
    for _ in range(_SERIES_LENGTH):
        total = 1.0 + STEP_WEIGHT * (steps @ total)
    return total
