"""The real files, where SKDEEPCLUST_DATA names a folder that holds them."""

import os
from pathlib import Path

import numpy as np
import pytest

from skdeepclust.datasets import fetch_cifar10, fetch_fashion_mnist, fetch_mnist, fetch_usps

pytestmark = pytest.mark.skipif(
    not os.environ.get("SKDEEPCLUST_DATA"),
    reason="SKDEEPCLUST_DATA names no folder with the real data files",
)

# Class counts of the published data sets.
MNIST_TRAIN = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
MNIST_TEST = [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
USPS_TRAIN = [1194, 1005, 731, 658, 652, 556, 664, 645, 542, 644]
USPS_TEST = [359, 264, 198, 166, 200, 160, 170, 147, 166, 177]


def needs(file_name):
    """Skip if the user's folder has no such file, so that no test goes to the network."""
    folder = Path(os.environ["SKDEEPCLUST_DATA"])
    if not (folder / file_name).is_file():
        pytest.skip(f"SKDEEPCLUST_DATA has no {file_name}")


@pytest.mark.parametrize(
    ("fetch", "file_name", "train", "test", "n_features"),
    [
        (fetch_mnist, "mnist.npz", MNIST_TRAIN, MNIST_TEST, 784),
        (fetch_usps, "usps.npz", USPS_TRAIN, USPS_TEST, 256),
        (fetch_fashion_mnist, "fashion_mnist.npz", [6000] * 10, [1000] * 10, 784),
    ],
)
def test_class_counts(fetch, file_name, train, test, n_features):
    needs(file_name)
    bunch = fetch()
    assert bunch.data.shape == (sum(train) + sum(test), n_features)
    assert bunch.source == f"folder: {file_name}"
    np.testing.assert_array_equal(np.bincount(bunch.target[: sum(train)]), train)
    np.testing.assert_array_equal(np.bincount(bunch.target[sum(train) :]), test)
    np.testing.assert_array_equal(fetch(subset="test").data, bunch.data[sum(train) :])


def test_mnist_has_the_known_mean_and_spread():
    needs("mnist.npz")
    X, _ = fetch_mnist(subset="train", return_X_y=True)
    assert X.dtype == np.uint8
    assert X.mean() / 255 == pytest.approx(0.1307, abs=5e-5)
    assert X.std() / 255 == pytest.approx(0.3081, abs=5e-5)


def test_usps_lies_between_0_and_1():
    needs("usps.npz")
    X, _ = fetch_usps(return_X_y=True)
    assert X.dtype == np.float32
    assert (X.min(), X.max()) == (0, 1)


def test_fashion_mnist_names_its_classes():
    needs("fashion_mnist.npz")
    bunch = fetch_fashion_mnist(subset="test")
    with np.load(Path(os.environ["SKDEEPCLUST_DATA"]) / "fashion_mnist.npz") as archive:
        np.testing.assert_array_equal(bunch.target_names, archive["label_names"])


def test_cifar10_is_turned_to_channels_first():
    needs("cifar10.npz")
    bunch = fetch_cifar10(subset="test")
    with np.load(Path(os.environ["SKDEEPCLUST_DATA"]) / "cifar10.npz") as archive:
        stored = archive["X_test"]
        np.testing.assert_array_equal(bunch.target_names, archive["label_names"])
    assert bunch.n_rows == len(stored)
    np.testing.assert_array_equal(bunch.images, np.moveaxis(stored, -1, 1))
    np.testing.assert_array_equal(np.bincount(bunch.target), [len(stored) // 10] * 10)
