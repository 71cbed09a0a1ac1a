"""A row gets the same bits in any company: any subset, order, number of rows or thread."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from .estimators import CASES, assert_same_arrays, each, read_outs


def _many_rows(case):
    """Return more rows than two chunks hold, all different."""
    return np.concatenate([case.X * factor for factor in (1.0, 0.9, 0.8, 0.7, 0.6)])[:600]


def _rows_of(arrays, index):
    return {name: array[index] for name, array in arrays.items()}


@each(CASES)
def test_order(case):
    X = _many_rows(case)
    order = np.random.default_rng(0).permutation(len(X))
    expected = _rows_of(read_outs(case.fitted, X), order)
    assert_same_arrays(read_outs(case.fitted, X[order]), expected)


@each(CASES)
@pytest.mark.parametrize("n_rows", [1, 2, 15, 16, 17, 255, 256, 257])
def test_number_of_rows(case, n_rows):
    X = _many_rows(case)
    everything = read_outs(case.fitted, X)
    for start in (0, 3, len(X) - n_rows):
        index = np.arange(start, start + n_rows)
        assert_same_arrays(read_outs(case.fitted, X[index]), _rows_of(everything, index))


@each(CASES)
def test_row_by_row(case):
    X = case.X[:20]
    everything = read_outs(case.fitted, X)
    for i in range(len(X)):
        assert_same_arrays(read_outs(case.fitted, X[i : i + 1]), _rows_of(everything, [i]))


@each(CASES)
def test_batch_size_is_of_training_alone(case):
    """PriorLabs/TabPFN#850: a setting meant for memory changed the predictions."""
    expected = read_outs(case.fitted, case.X)
    for batch_size in (1, 7, 10_000):
        estimator = case.fitted_copy().set_params(batch_size=batch_size)
        assert_same_arrays(read_outs(estimator, case.X), expected)


@each(CASES)
def test_several_threads_at_once(case):
    X = _many_rows(case)
    everything = read_outs(case.fitted, X)
    parts = [np.random.default_rng(i).permutation(len(X))[: 40 + 31 * i] for i in range(12)]
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda index: read_outs(case.fitted, X[index]), parts))
    for index, result in zip(parts, results, strict=True):
        assert_same_arrays(result, _rows_of(everything, index))


@each(CASES)
def test_a_second_call_gives_the_same(case):
    assert_same_arrays(read_outs(case.fitted, case.X), read_outs(case.fitted, case.X))


@each(CASES)
def test_dtypes_and_shapes(case):
    outs = read_outs(case.fitted, case.X)
    assert outs["transform"].dtype == np.float32
    assert outs["transform"].shape[0] == len(case.X)
    assert len(case.fitted.get_feature_names_out()) == outs["transform"].shape[1]
    if case.is_clusterer:
        assert outs["predict"].dtype == np.int64
        assert outs["predict_proba"].dtype == np.float64
        width = outs["transform"].shape[1]
        assert getattr(case.fitted, "cluster_centers_", np.empty((3, width))).shape == (3, width)
