"""Both routes to a data set, on small made-up files and a stub for OpenML."""

import dataclasses
import hashlib
import os
import sys
import warnings
from urllib.error import URLError

import numpy as np
import pandas as pd
import pytest
from sklearn.utils import Bunch

from skdeepclust import datasets
from skdeepclust.datasets import (
    _cifar10,
    _fashion_mnist,
    _loading,
    _mnist,
    _usps,
    fetch_cifar10,
    fetch_fashion_mnist,
    fetch_mnist,
    fetch_usps,
)

N_TRAIN, N_TEST = 12, 5

# Loader, its module and the name of its specification there.
ROUTES = {
    "mnist": (fetch_mnist, _mnist, "MNIST"),
    "usps": (fetch_usps, _usps, "USPS"),
    "fashion_mnist": (fetch_fashion_mnist, _fashion_mnist, "FASHION_MNIST"),
    "cifar10": (fetch_cifar10, _cifar10, "CIFAR10"),
}
SHAPES = {
    "mnist": (1, 28, 28),
    "usps": (1, 16, 16),
    "fashion_mnist": (1, 28, 28),
    "cifar10": (3, 32, 32),
}
OPENML = {
    "mnist": ("mnist_784", 1),
    "usps": ("USPS", 2),
    "fashion_mnist": ("Fashion-MNIST", 1),
    "cifar10": ("CIFAR_10", 1),
}


@pytest.fixture(params=list(ROUTES))
def name(request):
    return request.param


@pytest.fixture
def small(name, monkeypatch):
    """The loader, with train and test parts on OpenML of 12 and 5 rows."""
    fetch, module, constant = ROUTES[name]
    specification = dataclasses.replace(getattr(module, constant), n_train=N_TRAIN, n_test=N_TEST)
    monkeypatch.setattr(module, constant, specification)
    return fetch


def made_up(name):
    """Images (n, C, H, W) as integers 0..255 (USPS: thousandths of -1..1) and labels 0..9."""
    generator = np.random.default_rng(len(name))
    low, high = (-1000, 1001) if name == "usps" else (0, 256)
    pixels = generator.integers(low, high, size=(N_TRAIN + N_TEST, *SHAPES[name]))
    labels = np.arange(N_TRAIN + N_TEST) % 10
    return pixels, labels


def write_file(folder, name, **changes):
    """Write the made-up data as the file of a folder."""
    pixels, labels = made_up(name)
    if name == "usps":
        images = ((pixels[:, 0] + 1000) / 2000).astype(np.float32)
    elif name == "cifar10":
        images = pixels.transpose(0, 2, 3, 1).astype(np.uint8)
    else:
        images = pixels[:, 0].astype(np.uint8)
    labels = labels.astype(np.uint8)
    arrays = {
        "X_train": images[:N_TRAIN],
        "y_train": labels[:N_TRAIN],
        "X_test": images[N_TRAIN:],
        "y_test": labels[N_TRAIN:],
    }
    arrays.update(changes)
    path = folder / f"{name}.npz"
    np.savez_compressed(path, **{key: a for key, a in arrays.items() if a is not None})
    return path


def stub_openml(monkeypatch, name, **changes):
    """Let fetch_openml answer with the made-up data in OpenML's form; return its calls."""
    pixels, labels = made_up(name)
    data = pixels.reshape(len(pixels), -1)
    data = data / 1000 if name == "usps" else data
    target = np.array([str(label + (name == "usps")) for label in labels], dtype=object)
    answer = Bunch(data=data, target=target)
    answer.update(changes)
    calls = []

    def fetch_openml(**arguments):
        calls.append(arguments)
        return answer

    monkeypatch.setattr(_loading, "fetch_openml", fetch_openml)
    return calls


def no_network(**arguments):
    raise URLError("no route to host")


@pytest.fixture
def by_folder(name, small, tmp_path, monkeypatch):
    """The loader with a folder set and no network."""
    write_file(tmp_path, name)
    monkeypatch.setenv("SKDEEPCLUST_DATA", str(tmp_path))
    monkeypatch.setattr(_loading, "fetch_openml", no_network)
    return small


@pytest.mark.parametrize("subset", ["all", "train", "test"])
def test_both_routes_give_the_same(name, small, subset, tmp_path, monkeypatch):
    write_file(tmp_path, name)
    monkeypatch.setenv("SKDEEPCLUST_DATA", str(tmp_path))
    monkeypatch.setattr(_loading, "fetch_openml", no_network)
    local = small(subset=subset)
    monkeypatch.delenv("SKDEEPCLUST_DATA")
    calls = stub_openml(monkeypatch, name)
    remote = small(subset=subset, data_home="somewhere", cache=False)

    assert len(calls) == 1
    assert (calls[0]["name"], calls[0]["version"]) == OPENML[name]
    assert calls[0]["data_home"] == "somewhere"
    assert calls[0]["cache"] is False
    assert local.source == f"folder: {name}.npz"
    assert remote.source == "openml"
    assert local.keys() == remote.keys()
    for bunch in (local, remote):
        n_rows = {"all": 17, "train": 12, "test": 5}[subset]
        assert bunch.n_rows == n_rows
        assert bunch.data.shape == (n_rows, np.prod(SHAPES[name]))
        assert bunch.data.dtype == (np.float32 if name == "usps" else np.uint8)
        assert bunch.data.flags.c_contiguous
        assert bunch.images.shape == (n_rows, *SHAPES[name])
        assert np.shares_memory(bunch.images, bunch.data)
        assert bunch.image_shape == SHAPES[name]
        assert bunch.target.dtype == np.int64
        assert len(bunch.target_names) == 10
        assert bunch.frame is None
        assert f"{n_rows} rows" in bunch.DESCR
        assert bunch.source in bunch.DESCR
    for key in ("data", "target", "images", "feature_names", "target_names"):
        np.testing.assert_array_equal(local[key], remote[key])


def test_values_and_row_order(name, by_folder):
    bunch = by_folder()
    pixels, labels = made_up(name)
    expected = (pixels + 1000) / 2000 if name == "usps" else pixels
    np.testing.assert_allclose(bunch.images, expected, atol=1e-7)
    np.testing.assert_array_equal(bunch.target, labels)
    np.testing.assert_array_equal(by_folder(subset="train").data, bunch.data[:N_TRAIN])
    np.testing.assert_array_equal(by_folder(subset="test").data, bunch.data[N_TRAIN:])


def test_feature_names_tell_the_pixel(name, by_folder):
    bunch = by_folder()
    names = bunch.feature_names
    assert len(set(names)) == len(names) == bunch.data.shape[1]
    _, height, width = SHAPES[name]
    position = 2 * width + 5  # third row, sixth column of the first channel
    if name == "cifar10":
        assert names[position] == "red_2_5"
        assert names[height * width + position] == "green_2_5"
        assert names[-1] == "blue_31_31"
    else:
        assert names[position] == "pixel_2_5"
    assert bunch.images[0, 0, 2, 5] == bunch.data[0, position]


def test_return_X_y(by_folder):
    bunch = by_folder(subset="test")
    X, y = by_folder(subset="test", return_X_y=True)
    np.testing.assert_array_equal(X, bunch.data)
    np.testing.assert_array_equal(y, bunch.target)


def test_as_frame(by_folder):
    plain = by_folder()
    bunch = by_folder(as_frame=True)
    assert isinstance(bunch.data, pd.DataFrame)
    assert isinstance(bunch.target, pd.Series)
    assert list(bunch.data.columns) == plain.feature_names
    assert list(bunch.frame.columns) == [*plain.feature_names, "target"]
    np.testing.assert_array_equal(bunch.data.to_numpy(), plain.data)
    np.testing.assert_array_equal(bunch.frame["target"].to_numpy(), plain.target)
    assert set(bunch.data.dtypes) == {plain.data.dtype}
    X, y = by_folder(as_frame=True, return_X_y=True)
    assert isinstance(X, pd.DataFrame)
    assert y.name == "target"


def test_as_frame_without_pandas_names_it(by_folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="as_frame=True needs pandas"):
        by_folder(as_frame=True)


def test_checksum_of_the_file_and_of_the_arrays(name, small, tmp_path, monkeypatch):
    path = write_file(tmp_path, name)
    monkeypatch.setenv("SKDEEPCLUST_DATA", str(tmp_path))
    expected = hashlib.sha256(path.read_bytes()).hexdigest()
    assert small().checksum == small(subset="test").checksum == expected

    monkeypatch.delenv("SKDEEPCLUST_DATA")
    stub_openml(monkeypatch, name)
    bunch = small(subset="test")
    both = bunch.data.tobytes() + bunch.target.tobytes()
    assert bunch.checksum == hashlib.sha256(both).hexdigest()


def test_openml_without_pandas_uses_the_other_parser(name, small, monkeypatch):
    monkeypatch.delenv("SKDEEPCLUST_DATA", raising=False)
    calls = stub_openml(monkeypatch, name)
    small()
    monkeypatch.setattr(_loading.importlib.util, "find_spec", lambda module: None)
    small()
    assert [call["parser"] for call in calls] == ["auto", "liac-arff"]


def test_missing_file_is_told_and_openml_asked(name, small, tmp_path, monkeypatch):
    monkeypatch.setenv("SKDEEPCLUST_DATA", str(tmp_path))
    stub_openml(monkeypatch, name)
    with pytest.warns(UserWarning, match=f"has no file {name}.npz; fetching") as caught:
        assert small().source == "openml"
    assert caught[0].filename == __file__


@pytest.mark.parametrize("value", [None, ""])
def test_without_a_folder_nothing_is_warned(name, small, value, monkeypatch):
    if value is None:
        monkeypatch.delenv("SKDEEPCLUST_DATA", raising=False)
    else:
        monkeypatch.setenv("SKDEEPCLUST_DATA", value)
    stub_openml(monkeypatch, name)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert small().source == "openml"


def test_neither_route_names_both(name, small, tmp_path, monkeypatch):
    monkeypatch.setattr(_loading, "fetch_openml", no_network)
    monkeypatch.delenv("SKDEEPCLUST_DATA", raising=False)
    with pytest.raises(OSError, match="could not be loaded") as caught:
        small()
    message = str(caught.value)
    openml_name, version = OPENML[name]
    assert "SKDEEPCLUST_DATA (it is not set)" in message
    assert f"{name}.npz" in message
    assert "X_train" in message and "y_test" in message
    assert f"{openml_name!r}, version {version}" in message
    assert "no route to host" in message
    assert isinstance(caught.value.__cause__, URLError)

    monkeypatch.setenv("SKDEEPCLUST_DATA", str(tmp_path / "absent"))
    with (
        pytest.warns(UserWarning, match="has no file"),
        pytest.raises(OSError, match="absent', which has no such file"),
    ):
        small()


@pytest.mark.parametrize("subset", ["validation", None, ["train"]])
def test_unknown_subset(by_folder, subset):
    with pytest.raises(ValueError, match="subset must be 'all', 'train' or 'test', got"):
        by_folder(subset=subset)


@pytest.mark.parametrize("damage", ["cut", "empty", "no archive", "other bytes"])
def test_damaged_file_is_an_error(name, by_folder, damage):
    path = os.path.join(os.environ["SKDEEPCLUST_DATA"], f"{name}.npz")
    with open(path, "rb") as file:
        content = file.read()
    with open(path, "wb") as file:
        if damage == "cut":
            file.write(content[: len(content) // 2])
        elif damage == "no archive":
            np.save(file, np.zeros(3))
        elif damage == "other bytes":
            middle = len(content) // 4
            file.write(content[:middle] + bytes(64) + content[middle + 64 :])
    with pytest.raises(OSError, match="is damaged or is not the") as caught:
        by_folder()
    assert f"{name}.npz" in str(caught.value)
    assert "SKDEEPCLUST_DATA" in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"X_test": None}, "X_test is not a file"),
        ({"y_train": None}, "y_train is not a file"),
        ({"X_train": np.zeros((N_TRAIN, 7, 7), np.uint8)}, "X_train must have shape"),
        ({"y_train": np.zeros(N_TRAIN)}, "y_train must be 1-D integers"),
        ({"y_train": np.zeros((N_TRAIN, 1), int)}, "y_train must be 1-D integers"),
        ({"y_train": np.zeros(3, int)}, "X_train must have shape"),
        ({"y_test": np.full(N_TEST, 10)}, "y_test must lie in 0..9, got 10..10"),
        ({"y_test": np.full(N_TEST, -1)}, "y_test must lie in 0..9, got -1..-1"),
        ({"y_test": np.array([None] * N_TEST)}, "allow_pickle=False"),
    ],
)
def test_file_with_other_arrays_is_an_error(name, by_folder, tmp_path, changes, reason):
    write_file(tmp_path, name, **changes)
    with pytest.raises(OSError, match=reason):
        by_folder()


@pytest.mark.parametrize("name", ["usps"], indirect=True)
@pytest.mark.parametrize("value", [np.nan, -1.0, 255.0])
def test_usps_file_in_another_scale_is_an_error(name, by_folder, tmp_path, value):
    images = np.zeros((N_TRAIN, 16, 16), np.float32)
    images[3, 2, 1] = value
    write_file(tmp_path, name, X_train=images)
    with pytest.raises(OSError, match="X_train must lie in 0..1"):
        by_folder()
    assert by_folder(subset="test").n_rows == N_TEST


@pytest.mark.parametrize("change", ["rows", "scale", "labels", "words"])
def test_openml_in_another_form_is_an_error(name, small, change, monkeypatch):
    monkeypatch.delenv("SKDEEPCLUST_DATA", raising=False)
    pixels, labels = made_up(name)
    data = pixels.reshape(len(pixels), -1)
    changes = {
        "rows": {"data": data[:-1]},
        "scale": {"data": np.full(data.shape, 256.0)},
        "labels": {"target": labels + 2},
        "words": {"target": np.array(["one"] * len(labels))},
    }
    stub_openml(monkeypatch, name, **changes[change])
    with pytest.raises(OSError, match="OpenML sent .* in another form than expected"):
        small()


@pytest.mark.parametrize(
    ("name", "n_train", "n_test"),
    [
        ("mnist", 60_000, 10_000),
        ("usps", 7_291, 2_007),
        ("fashion_mnist", 60_000, 10_000),
        ("cifar10", 50_000, 10_000),
    ],
)
def test_where_openml_rows_are_split(name, n_train, n_test, monkeypatch):
    monkeypatch.delenv("SKDEEPCLUST_DATA", raising=False)
    n_features = int(np.prod(SHAPES[name]))
    # One row repeated without memory; the labels alone tell the parts.
    data = np.broadcast_to(np.ones(n_features, np.uint8), (n_train + n_test, n_features))
    target = np.repeat([1, 2], [n_train, n_test])
    stub_openml(monkeypatch, name, data=data, target=target)
    _, y = ROUTES[name][0](subset="test", return_X_y=True)
    assert len(y) == n_test
    assert set(y) == {1 if name == "usps" else 2}


def test_public_names():
    assert sorted(datasets.__all__) == [
        "fetch_cifar10",
        "fetch_fashion_mnist",
        "fetch_mnist",
        "fetch_usps",
    ]
