"""Path integrals against the worked example and against dense inverses."""

import math

import numpy as np
import pytest
from sklearn.datasets import make_moons
from sklearn.metrics import adjusted_rand_score

from skdeepclust.training.path_integral import (
    PathIntegralGroups,
    path_integral_labels,
    transition_weights,
)

LINE = np.array([[0.0], [1.0], [3.0], [10.0], [11.0], [13.0]])


def dense_transitions(points, n_neighbors):
    neighbors, weights = transition_weights(points, n_neighbors)
    transitions = np.zeros((len(points), len(points)))
    np.put_along_axis(transitions, neighbors, weights, axis=1)
    return transitions


def walks(transitions, rows, start):
    """Weight of the walks inside `rows` from and to `start`, by the definition."""
    inside = np.linalg.inv(np.eye(len(rows)) - 0.01 * transitions[np.ix_(rows, rows)])
    here = np.isin(rows, start)
    return inside[np.ix_(here, here)].sum() / len(start) ** 2


def dense_affinity(transitions, first, second):
    union = np.concatenate((first, second))
    return sum(
        walks(transitions, union, part) - walks(transitions, part, part) for part in (first, second)
    )


def test_transition_weights_of_the_worked_example():
    neighbors, weights = transition_weights(LINE, 2)
    # Squared distances to three neighbours sum to 110 + 86 + 62 + 59 + 69 + 113 = 499.
    width = 499 / 18
    np.testing.assert_array_equal(neighbors[[0, 4]], [[0, 1, 2], [4, 3, 5]])
    row = np.array([1.0, math.exp(-1 / width), math.exp(-9 / width)])
    np.testing.assert_allclose(weights[0], row / row.sum(), rtol=1e-12)
    np.testing.assert_allclose(weights.sum(axis=1), 1.0, rtol=1e-12)


def test_path_integrals_and_affinities_of_the_worked_example():
    groups = PathIntegralGroups(*transition_weights(LINE, 2), np.array([0, 0, 1, 2, 2, 3]))
    assert groups.path_integral(0) == pytest.approx(0.50358854, abs=5e-9)
    assert groups.path_integral(1) == pytest.approx(1.00387835, abs=5e-9)
    others, affinities = groups.affinities(0)
    # {0, 1} has an affinity with {3} only: that with {10, 11} is exactly zero.
    np.testing.assert_array_equal(others, [1])
    assert affinities[0] == pytest.approx(2.698e-5, abs=5e-9)


def test_width_is_doubled_until_nobody_is_cut_off():
    points = np.append(np.arange(20.0), 10_000.0)[:, None]
    squared = np.sort((points - points.T) ** 2, axis=1)[:, 1:4]
    # Alone, the mean would leave the outlier exp(-20.98), one doubling leaves exp(-10.49).
    ratio = squared[-1, 0] / squared.mean()
    assert 11.6 < ratio < 23.0
    _, weights = transition_weights(points, 3)
    assert weights[-1, 1] / weights[-1, 0] == pytest.approx(math.exp(-ratio / 2), rel=1e-9)


@pytest.mark.parametrize("dense_cells", [0, 2**14])
def test_affinities_equal_those_of_dense_inverses_after_merging(dense_cells, monkeypatch):
    monkeypatch.setattr("skdeepclust.training.path_integral._DENSE_CELLS", dense_cells)
    points = np.random.default_rng(0).normal(size=(150, 2))
    labels = 3 * (points[:, 0] > 0) + (points[:, 1] > 0.5) + (points[:, 1] > -0.5)
    groups = PathIntegralGroups(*transition_weights(points, 8), labels)
    merged = groups.merge(0, 1)
    assert merged == 6
    transitions = dense_transitions(points, 8)
    alive = np.unique(groups.labels)
    np.testing.assert_array_equal(alive, [2, 3, 4, 5, 6])
    for group in alive:
        rows = np.flatnonzero(groups.labels == group)
        assert groups.path_integral(group) == pytest.approx(
            walks(transitions, rows, rows), rel=1e-13
        )
        found = dict(zip(*(part.tolist() for part in groups.affinities(group)), strict=True))
        for other in alive[alive != group]:
            others = np.flatnonzero(groups.labels == other)
            expected = dense_affinity(transitions, rows, others)
            # The dense difference itself is exact to about 1e-16 only.
            assert found.get(other, 0.0) == pytest.approx(expected, rel=2e-6, abs=1e-15)


def test_partition_equals_that_of_the_plain_algorithm():
    points = np.random.default_rng(1).normal(size=(60, 2))
    transitions = dense_transitions(points, 5)
    distances = ((points[:, None] - points[None]) ** 2).sum(axis=2) + np.diag(np.full(60, np.inf))
    groups = [{row} for row in range(60)]
    for row, nearest in enumerate(distances.argmin(axis=1)):
        union = set().union(*(group for group in groups if group & {row, nearest}))
        groups = [group for group in groups if not group & union] + [union]
    assert len(groups) > 10
    for n_clusters in range(len(groups) - 1, 2, -1):
        rows = [np.array(sorted(group)) for group in groups]
        affinities = {
            (i, j): dense_affinity(transitions, rows[i], rows[j])
            for i in range(len(rows))
            for j in range(i)
        }
        i, j = max(affinities, key=affinities.get)
        union = groups[i] | groups[j]
        groups = [group for group in groups if not group & union] + [union]
        expected = np.empty(60, dtype=int)
        for label, group in enumerate(groups):
            expected[list(group)] = label
        labels = path_integral_labels(points, n_clusters, n_neighbors=5)
        assert adjusted_rand_score(expected, labels) == 1.0


def test_finds_curved_clusters():
    points, expected = make_moons(400, noise=0.05, random_state=0)
    labels = path_integral_labels(points, 2)
    assert adjusted_rand_score(expected, labels) == 1.0


def test_groups_without_affinity_are_joined_by_ward():
    # Four groups of 30 far apart: no walk leads from one to another.
    noise = np.random.default_rng(0).normal(scale=0.01, size=(120, 1))
    points = np.repeat([0.0, 100.0, 1000.0, 1200.0], 30)[:, None] + noise
    expected = np.repeat([0, 0, 1, 1], 30)
    np.testing.assert_array_equal(path_integral_labels(points, 2), expected)
    np.testing.assert_array_equal(path_integral_labels(points, 1), np.zeros(120))


def test_more_clusters_than_pairs_of_neighbours():
    points = np.random.default_rng(0).normal(size=(12, 2))
    for n_clusters in range(1, 13):
        labels = path_integral_labels(points, n_clusters)
        np.testing.assert_array_equal(np.unique(labels), np.arange(n_clusters))


def test_equal_rows():
    points = np.repeat([[0.0], [1.0], [5.0]], 40, axis=0)
    expected = np.repeat([0, 1, 2], 40)
    np.testing.assert_array_equal(path_integral_labels(points, 3), expected)
    assert len(np.unique(path_integral_labels(np.zeros((30, 2)), 2))) == 2
