"""K-means of a finished representation, and the reservoir that streams find it in."""

import numpy as np
import pytest
import torch
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from skdeepclust._reservoir import MixedRows, Reservoir, draw_reservoir, with_new_rows
from skdeepclust._validation import open_rows
from skdeepclust.training.read_out import continued_read_out, k_means_read_out


@pytest.fixture
def groups():
    centers = 30.0 * np.eye(3, 5)
    return make_blobs(120, centers=centers, random_state=0)


def rows_of(values):
    return open_rows(np.asarray(values, dtype=np.float32).reshape(-1, 1))


# -- the read-out --------------------------------------------------------------------------


def test_centres_are_the_means_of_the_labels(groups):
    X, y = groups
    found = k_means_read_out(X, 3, "k-means++", n_init=4, random_state=0)
    assert adjusted_rand_score(y, found.labels) == 1.0
    for cluster in range(3):
        np.testing.assert_allclose(found.centers[cluster], X[found.labels == cluster].mean(axis=0))
    assert found.agreement == 1.0
    assert found.init_used == "k-means++"


def test_restarts_that_disagree_are_told():
    X = np.random.default_rng(0).normal(size=(200, 2))
    found = k_means_read_out(X, 7, "random", n_init=8, random_state=0)
    assert 0.3 < found.agreement < 0.95


def test_one_run_has_nothing_to_agree_with(groups):
    assert k_means_read_out(groups[0], 3, "random", n_init=1, random_state=0).agreement is None


def test_labels_as_a_start_keep_their_ids(groups):
    X, y = groups
    wanted = (y + 1) % 3
    found = k_means_read_out(X, 3, wanted, n_init=4, random_state=0)
    np.testing.assert_array_equal(found.labels, wanted)
    assert found.init_used == "labels"


def test_fewer_distinct_rows_than_clusters():
    X = np.repeat([[0.0, 1.0], [2.0, 3.0]], 10, axis=0)
    found = k_means_read_out(X, 3, "k-means++", n_init=2, random_state=0)
    assert len(np.unique(found.labels)) == 2
    assert found.centers.shape == (3, 2)
    assert found.agreement is None


def test_ids_survive_a_change_of_the_representation(groups):
    X, y = groups
    moved = X @ np.linalg.qr(np.random.default_rng(1).normal(size=(5, 5)))[0] + 7
    found = continued_read_out(moved, y, np.zeros((3, 5)), random_state=0)
    np.testing.assert_array_equal(found.labels, y)


def test_a_cluster_without_rows_stays_where_it_was(groups):
    X, y = groups
    before = np.stack([X[y == k].mean(axis=0) for k in range(3)])
    found = continued_read_out(X[y != 1], y[y != 1], before, random_state=0)
    np.testing.assert_array_equal(found.labels, y[y != 1])
    np.testing.assert_array_equal(found.centers[1], before[1])


# -- the reservoir -------------------------------------------------------------------------


def stream(n_rows, size, step, seed):
    generator = np.random.default_rng(seed)
    values = np.arange(n_rows)
    first = rows_of(values[:step])
    reservoir = draw_reservoir(first, torch.arange(len(first)), size, generator)
    for start in range(step, n_rows, step):
        rows = rows_of(values[start : start + step])
        labels = torch.arange(start, start + len(rows))
        reservoir = with_new_rows(reservoir, rows, labels, size, generator)
    return reservoir


@pytest.mark.parametrize(("n_rows", "size", "step"), [(100, 10, 7), (20, 30, 6), (40, 10, 40)])
def test_rows_and_labels_stay_together(n_rows, size, step):
    reservoir = stream(n_rows, size, step, seed=0)
    assert reservoir.n_seen == n_rows
    assert len(reservoir.rows) == min(size, n_rows)
    np.testing.assert_array_equal(reservoir.rows[:, 0].numpy(), reservoir.labels.numpy())
    assert len(torch.unique(reservoir.labels)) == len(reservoir.labels)


def test_each_row_is_kept_equally_often():
    counts = np.zeros(60)
    for seed in range(2000):
        counts[stream(60, 12, 9, seed).labels.numpy()] += 1
    # Each stays with probability 1/5; four standard deviations of the count are 72.
    assert abs(counts - 400).max() < 80


def test_the_reservoir_before_is_not_changed():
    before = Reservoir(torch.zeros(4, 1), torch.zeros(4, dtype=torch.int64), 4)
    after = with_new_rows(
        before, rows_of([9.0] * 50), torch.full((50,), 9), 4, np.random.default_rng(0)
    )
    assert (before.rows == 0).all() and (before.labels == 0).all() and before.n_seen == 4
    assert (after.rows == 9).any()


def test_new_and_old_rows_take_turns():
    mixed = MixedRows(
        torch.tensor([[1.0], [2.0]]),
        rows_of([3.0, 4.0, 5.0]),
        torch.tensor([[-1.0]]),
        np.random.default_rng(0),
    )
    assert len(mixed) == 10
    assert mixed.read(0, 10)[:, 0].tolist() == [1, -1, 2, -1, 3, -1, 4, -1, 5, -1]
    assert mixed.gather(torch.tensor([8, 1, 2]))[:, 0].tolist() == [5, -1, 2]
