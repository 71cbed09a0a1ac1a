"""Streams: the buffer before the start, ids that keep their meaning, memory that stays flat."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.metrics import adjusted_rand_score

from .estimators import (
    CLUSTERERS,
    IDENTITY_CLUSTERERS,
    VECTOR_CLUSTERERS,
    VECTORS,
    assert_labels_agree,
    assert_same_arrays,
    each,
    read_outs,
    separated_blobs,
)

SEPARATED = VECTOR_CLUSTERERS + IDENTITY_CLUSTERERS


@each(CLUSTERERS)
def test_rows_are_buffered_until_there_are_enough(case):
    """online-ml/river#872: predict before anything was learnt raised an internal error."""
    estimator = case.new()
    assert "10 * n_clusters" in type(estimator).partial_fit.__doc__
    for n_rows, start in ((10, 0), (1, 10), (18, 11)):
        assert estimator.partial_fit(case.X[start : start + n_rows]) is estimator
        n_seen = start + n_rows
        message = f"has {n_seen} rows and needs {30 - n_seen} more"
        for method in ("predict", "predict_proba", "transform", "score"):
            with pytest.raises(NotFittedError, match=message):
                getattr(estimator, method)(case.X)
        assert not hasattr(estimator, "labels_")
    estimator.partial_fit(case.X[29:30])
    assert_labels_agree(estimator, case.X[29:30])


@each(CLUSTERERS)
def test_the_start_is_the_fit_of_the_buffered_rows(case):
    estimator = case.new().partial_fit(case.X[:10]).partial_fit(case.X[10:40])
    expected = case.new().fit(case.X[:40])
    assert_same_arrays(read_outs(estimator, case.X), read_outs(expected, case.X))


@each(VECTORS)
def test_not_fitted_at_all(case):
    with pytest.raises(NotFittedError):
        case.new().transform(case.X)


@each(CLUSTERERS)
def test_the_buffer_refuses_other_columns(case):
    """scikit-learn#12430: both numbers and the estimator."""
    estimator = case.new().partial_fit(case.X[:5])
    n = case.X.shape[1]
    name = type(estimator).__name__
    wrong = np.hstack([case.X, case.X])
    message = f"X has {2 * n} features, but {name} is expecting {n} features"
    with pytest.raises(ValueError, match=message):
        estimator.partial_fit(wrong)
    estimator.partial_fit(case.X[5:40])
    assert_labels_agree(estimator, case.X[5:40])


@each(CLUSTERERS)
def test_fit_forgets_the_buffer(case):
    estimator = case.new().partial_fit(case.X[:20] + 1000).fit(case.X)
    assert_same_arrays(read_outs(estimator, case.X), read_outs(case.fitted, case.X))


@each(SEPARATED)
def test_ids_keep_their_meaning(case):
    """python-kmedoids#29, smile#117: the same id for the same thing."""
    X, y = separated_blobs(300)
    estimator = case.new(**case.accurate).fit(X[:150])
    assert adjusted_rand_score(y[:150], estimator.labels_) == 1.0
    before = estimator.predict(X)
    for start in range(150, 300, 10):
        estimator.partial_fit(X[start : start + 10])
        np.testing.assert_array_equal(estimator.labels_, before[start : start + 10])
    np.testing.assert_array_equal(estimator.predict(X), before)


@each(SEPARATED)
def test_ids_keep_their_meaning_when_one_group_stays_away(case):
    X, y = separated_blobs(300)
    estimator = case.new(**case.accurate).fit(X[:150])
    before = estimator.predict(X)
    rest = X[150:][y[150:] != 0]
    for start in range(0, 90, 9):
        estimator.partial_fit(rest[start : start + 9])
    np.testing.assert_array_equal(estimator.predict(X), before)


@each(SEPARATED)
def test_warm_starts_keep_ids(case):
    X, y = separated_blobs(150)
    estimator = case.new(warm_start=True, **case.accurate).fit(X)
    before = estimator.labels_
    for _ in range(3):
        estimator.fit(X)
        np.testing.assert_array_equal(estimator.labels_, before)
    # On rows without one group, its id is not given to another group; a few rows at most, the
    # farthest ones, may be given to a cluster that would be empty otherwise.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator.set_params(max_epochs=1).fit(X[y != 0])
    assert (estimator.predict(X[y != 0]) == before[y != 0]).mean() > 0.95


@each(VECTOR_CLUSTERERS)
def test_a_warm_start_with_other_settings_is_refused(case):
    estimator = case.fitted_copy().set_params(warm_start=True)
    with pytest.raises(ValueError, match="n_clusters=4 differs from the 3.*warm_start=False"):
        estimator.set_params(n_clusters=4).fit(case.X)
    with pytest.raises(ValueError, match="shape.*warm_start=False"):
        estimator.set_params(n_clusters=3).fit(case.X[:, :4])
    assert_same_arrays(read_outs(estimator, case.X), read_outs(case.fitted, case.X))


@each(CLUSTERERS)
def test_single_rows(case):
    estimator = case.fitted_copy()
    if case.setup == "module" and case.pretrains and case.trains_on_streams:
        with pytest.raises(ValueError, match="more than 1 value per channel"):
            estimator.partial_fit(case.X[:1])
        assert_same_arrays(read_outs(estimator, case.X), read_outs(case.fitted, case.X))
        return
    for i in range(5):
        estimator.partial_fit(case.X[i : i + 1])
        assert_labels_agree(estimator, case.X[i : i + 1])


@each(IDENTITY_CLUSTERERS)
def test_a_thousand_calls(case):
    """History and pickle stay as they are, and `labels_` is of the last call's rows."""
    X, _ = separated_blobs(150)
    estimator = case.new().fit(X)
    sizes = {}
    for call in range(1, 1001):
        start = call * 7 % 140
        estimator.partial_fit(X[start : start + 5])
        if call in (300, 1000):
            sizes[call] = len(pickle.dumps(estimator))
    assert len(estimator.labels_) == 5
    assert len(estimator.history_) <= 300
    assert [record["epoch"] for record in estimator.history_][-2:] == sorted(
        record["epoch"] for record in estimator.history_[-2:]
    )
    assert sizes[1000] <= 1.02 * sizes[300]


@each(VECTORS)
def test_the_pickle_of_a_trained_network_stays_flat(case):
    estimator = case.fitted_copy()
    sizes = []
    for call in range(60):
        estimator.partial_fit(case.X[:32])
        estimator.history_ = estimator.history_[-5:]
        if call in (10, 59):
            sizes.append(len(pickle.dumps(estimator)))
    assert sizes[1] <= 1.02 * sizes[0]


@each(SEPARATED)
def test_a_stream_finds_the_groups(case):
    X, y = separated_blobs(600)
    estimator = case.new(**case.accurate)
    for start in range(0, 600, 25):
        estimator.partial_fit(X[start : start + 25])
    assert adjusted_rand_score(y, estimator.predict(X)) == 1.0
