"""Labels, predictions and probabilities agree in every state; ids are numbered as promised."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from skdeepclust.exceptions import ClusterCollapseWarning

from .estimators import (
    CLUSTERERS,
    N_CLUSTERS,
    TRAINED_CLUSTERERS,
    VECTOR_CLUSTERERS,
    assert_labels_agree,
    each,
    flat_images,
    separated_blobs,
)


@each(CLUSTERERS)
def test_after_fit(case):
    assert case.fitted.labels_.dtype.kind == "i"
    assert len(case.fitted.labels_) == len(case.X)
    assert_labels_agree(case.fitted, case.X)


@each(CLUSTERERS)
def test_after_partial_fit_labels_are_of_the_rows_of_that_call(case):
    """scikit-learn#6794: what `labels_` means after `partial_fit` has to be said and kept."""
    estimator = case.fitted_copy()
    for rows in (case.X[:20], case.X[20:57], case.X[57:58].repeat(2, axis=0)):
        estimator.partial_fit(rows)
        assert len(estimator.labels_) == len(rows)
        assert_labels_agree(estimator, rows)


@each(CLUSTERERS)
def test_after_the_partial_fit_that_starts_a_stream(case):
    estimator = case.new()
    estimator.partial_fit(case.X[:20]).partial_fit(case.X[20:55])
    assert len(estimator.labels_) == 35
    assert_labels_agree(estimator, case.X[20:55])


@each(CLUSTERERS)
def test_after_a_warm_start_ids_stay(case):
    estimator = case.new(**case.accurate).fit(case.X).set_params(warm_start=True, max_epochs=1)
    before = estimator.labels_
    estimator.fit(case.X)
    assert_labels_agree(estimator, case.X)
    # One further epoch moves border rows; a permutation of ids would move most rows.
    assert (estimator.labels_ == before).mean() > 0.7


@each(CLUSTERERS)
def test_after_restarts(case):
    estimator = case.new(n_init=2, init="random").fit(case.X)
    assert_labels_agree(estimator, case.X)


@each(CLUSTERERS)
@pytest.mark.parametrize("n_clusters", [1, 7])
def test_used_ids_are_consecutive_from_0(case, n_clusters):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ClusterCollapseWarning)
        estimator = case.new(n_clusters=n_clusters).fit(case.X)
    used = np.unique(estimator.labels_)
    np.testing.assert_array_equal(used, np.arange(len(used)))
    assert_labels_agree(estimator, case.X)


@each(CLUSTERERS)
def test_fewer_distinct_points_than_clusters(case):
    """The unused ids come last, and one warning says how many were used and asked for."""
    X = case.X[:3].repeat(20, axis=0)
    estimator = case.new(n_clusters=5)
    with pytest.warns(ConvergenceWarning) as caught:
        estimator.fit(X)
    collapses = [w for w in caught if issubclass(w.category, ConvergenceWarning)]
    assert [w.category for w in collapses] == [ClusterCollapseWarning]
    message = str(collapses[0].message)
    assert message.startswith("3 clusters") and "n_clusters=5" in message
    assert "Lower n_clusters" in message
    np.testing.assert_array_equal(np.unique(estimator.labels_), [0, 1, 2])
    assert_labels_agree(estimator, X)
    # Points that are equal in X share a cluster, others do not.
    assert adjusted_rand_score(np.arange(3).repeat(20), estimator.labels_) == 1.0


@each(CLUSTERERS)
def test_all_rows_equal(case):
    X = case.X[:1].repeat(40, axis=0)
    with pytest.warns(ClusterCollapseWarning, match=f"1 clusters.*n_clusters={N_CLUSTERS}"):
        estimator = case.new().fit(X)
    assert (estimator.labels_ == 0).all()
    assert np.isfinite(estimator.predict_proba(X)).all()
    assert_labels_agree(estimator, X)


@each(VECTOR_CLUSTERERS)
def test_as_many_rows_as_clusters(case):
    estimator = case.new(n_clusters=8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ClusterCollapseWarning)
        estimator.fit(case.X[:8])
    assert_labels_agree(estimator, case.X[:8])


@each(CLUSTERERS)
def test_sixteen_points_and_eleven_clusters(case):
    """scikit-learn#23141, #13476: fewer labels than asked, or gaps, without a word."""
    X = case.X[:16]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        estimator = case.new(n_clusters=11).fit(X)
    used = np.unique(estimator.labels_)
    np.testing.assert_array_equal(used, np.arange(len(used)))
    collapses = [str(w.message) for w in caught if w.category is ClusterCollapseWarning]
    assert len(collapses) == (len(used) < 11)
    if collapses:
        assert collapses[0].startswith(f"{len(used)} clusters")
        assert "n_clusters=11" in collapses[0]


@each(VECTOR_CLUSTERERS)
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.filterwarnings("error::sklearn.exceptions.ConvergenceWarning")
def test_three_blobs_never_collapse(case, seed):
    """ANTsX/ANTsRNet#27: all samples in one cluster."""
    X, y = separated_blobs(600, seed=seed)
    estimator = case.new(random_state=seed).fit(X)
    assert len(np.unique(estimator.labels_)) == 3


@each(VECTOR_CLUSTERERS)
@pytest.mark.parametrize("n_of_rows", [(950, 25, 25), (1000,)], ids=["imbalanced", "one blob"])
def test_imbalance_and_a_single_blob_are_never_silent(case, n_of_rows):
    """XifengGuo/DEC-keras#8, #10: fewer predicted clusters than asked, unbalanced data."""
    centers = 15.0 * np.eye(3, 6)[: len(n_of_rows)]
    X, _ = make_blobs(list(n_of_rows), centers=centers, random_state=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        estimator = case.new().fit(X)
    assert estimator.predict_proba(X).shape == (1000, 3)
    n_used = len(np.unique(estimator.labels_))
    told = [str(w.message) for w in caught if issubclass(w.category, ConvergenceWarning)]
    assert len(told) == (n_used < 3)
    if told:
        assert told[0].startswith(f"{n_used} clusters") and "n_clusters=3" in told[0]


@each(TRAINED_CLUSTERERS)
def test_training_does_not_spoil_a_clear_partition(case):
    """vlukiyanov/pt-dec#21: the loss fell and the clustering got worse."""
    if case.setup == "images":
        X, y = flat_images(noise=10.0), np.arange(60) % N_CLUSTERS
    else:
        X, y = separated_blobs()
    n_epochs = max(25, case.settings["max_epochs"])
    estimator = case.new(**{"max_epochs": n_epochs, **case.all_epochs, **case.accurate}).fit(X)
    assert adjusted_rand_score(y, estimator.labels_) > 0.98
    assert_labels_agree(estimator, X)
