"""Input scaling: fitted in one pass, and sensible for what people hand over."""

import numpy as np
import pytest
import torch

from skdeepclust.nn.scaling import ColumnStatistics, fit_scaling, resolve_scaling


def _statistics(X, block=7):
    statistics = ColumnStatistics(X.shape[1])
    for start in range(0, len(X), block):
        statistics.update(torch.from_numpy(X[start : start + block]))
    return statistics


def test_statistics_equal_numpys_far_from_the_origin():
    X = np.random.default_rng(0).normal(1e6, 1e-2, size=(101, 3))
    statistics = _statistics(X)
    np.testing.assert_allclose(statistics.mean, X.mean(axis=0), rtol=1e-14)
    np.testing.assert_allclose(statistics.variance, X.var(axis=0), rtol=1e-6)
    np.testing.assert_array_equal(statistics.minimum, X.min(axis=0))


def test_constant_column_has_no_variance_and_stays_at_zero():
    X = np.full((10, 2), 0.1)
    X[:, 1] = np.arange(10)
    statistics = _statistics(X)
    assert statistics.variance[0] == 0
    scaled = fit_scaling(statistics, "standard", (2,), torch.float64)(torch.from_numpy(X))
    assert scaled[:, 0].abs().max() < 1e-15
    assert scaled[:, 1].var(unbiased=False) == pytest.approx(1)


def test_range_maps_pixels_to_minus_one_and_one():
    X = np.array([[0.0, 255.0], [127.5, 0.0]])
    scaled = fit_scaling(_statistics(X), "range", (2,), torch.float32)(torch.tensor(X).float())
    assert scaled.tolist() == [[-1, 1], [0, -1]]


def test_no_scaling_changes_nothing():
    X = np.array([[3.0, 4.0]])
    assert fit_scaling(_statistics(X), None, (2,), torch.float64)(torch.tensor(X)).tolist() == [
        [3, 4]
    ]


def test_auto_tells_images_shared_units_and_mixed_units_apart():
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, size=(50, 6)).astype(float)
    mixed = pixels * np.array([1, 1, 1, 1, 1, 1000])
    assert resolve_scaling(_statistics(pixels), "auto", (1, 2, 3)) == "range"
    assert resolve_scaling(_statistics(pixels), "auto", (6,)) == "common"
    assert resolve_scaling(_statistics(mixed), "auto", (6,)) == "standard"
    assert resolve_scaling(_statistics(mixed), None, (6,)) is None


def test_nearly_constant_pixels_are_not_blown_up():
    pixels = np.random.default_rng(0).integers(0, 256, size=(1000, 5)).astype(float)
    pixels[:, 0] = 0
    pixels[3, 0] = 255
    statistics = _statistics(pixels)
    kind = resolve_scaling(statistics, "auto", (5,))
    scaled = fit_scaling(statistics, kind, (5,), torch.float64)(torch.from_numpy(pixels))
    assert scaled.abs().max() < 6
