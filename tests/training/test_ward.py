"""Ward's agglomeration against hand-computed costs and scipy's matrix of distances."""

import numpy as np
import pytest
from scipy.cluster.hierarchy import fcluster, ward
from sklearn.metrics import adjusted_rand_score

from skdeepclust.training.ward import ward_labels


def test_joins_the_cheapest_pairs_first():
    points = np.array([[20.0], [0.0], [5.0], [1.0], [6.0]])
    np.testing.assert_array_equal(ward_labels(points, 3), [0, 1, 2, 1, 2])
    # {0, 1} with {5, 6}: 2*2/4 * 25 = 25; {5, 6} with {20}: 2*1/3 * 14.5**2 = 140.2.
    np.testing.assert_array_equal(ward_labels(points, 2), [0, 1, 1, 1, 1])


def test_sizes_weigh_the_costs():
    points = np.array([[0.0], [3.0], [7.0]])
    # One row each: joining 0 and 3 costs 9/2, joining 3 and 7 costs 16/2.
    np.testing.assert_array_equal(ward_labels(points, 2), [0, 0, 1])
    # Sizes 10, 10, 1: 0 and 3 cost 5 * 9 = 45, 3 and 7 cost 10/11 * 16 = 14.5.
    labels = ward_labels(points, 2, sizes=np.array([10, 10, 1]))
    np.testing.assert_array_equal(labels, [0, 1, 1])


@pytest.mark.parametrize("n_clusters", [1, 2, 7, 50, 299, 300])
def test_agrees_with_scipy(n_clusters):
    points = np.random.default_rng(0).normal(size=(300, 4))
    expected = fcluster(ward(points), n_clusters, "maxclust")
    assert adjusted_rand_score(expected, ward_labels(points, n_clusters)) == 1.0


def test_ties_and_equal_rows_give_the_asked_number_of_clusters():
    points = np.random.default_rng(0).integers(0, 3, size=(200, 2)).astype(float)
    n_distinct = len(np.unique(points, axis=0))
    for n_clusters in range(1, n_distinct + 1):
        assert len(np.unique(ward_labels(points, n_clusters))) == n_clusters
    # Equal rows are at distance zero, so they are joined before all others.
    labels = ward_labels(points, n_distinct)
    assert len(np.unique(np.column_stack((points, labels)), axis=0)) == n_distinct


def test_does_not_change_its_input():
    points = np.random.default_rng(0).normal(size=(30, 2))
    points.flags.writeable = False
    sizes = np.ones(30)
    sizes.flags.writeable = False
    assert ward_labels(points, 3, sizes=sizes).dtype == np.int64
