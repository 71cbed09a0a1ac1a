"""What X may be, what it may not be, and that it is never written to."""

import functools

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import torch
from sklearn.frozen import FrozenEstimator
from torch import nn

from skdeepclust.exceptions import ClusterCollapseWarning
from skdeepclust.pretraining import DenoisingAutoencoder

from .estimators import (
    CASES,
    CLUSTERERS,
    IDENTITY_CLUSTERERS,
    IMAGE_SHAPE,
    PRETRAINED_VECTORS,
    VECTOR_CLUSTERERS,
    VECTORS,
    assert_same_arrays,
    each,
    flat_images,
    read_outs,
    separated_blobs,
)

SEPARATED = VECTORS + IDENTITY_CLUSTERERS
SEPARATED_CLUSTERERS = VECTOR_CLUSTERERS + IDENTITY_CLUSTERERS


def _whole_numbers(dtype="float32"):
    """Return three groups of values that int8, bfloat16 and all larger types can hold."""
    X, _ = separated_blobs()
    return (X * 3 + 40).round().clip(0, 127).astype(dtype)


@functools.cache
def _fitted_to_whole_numbers(case):
    return case.new().fit(_whole_numbers())


def _memmap(X, folder):
    path = folder / "rows.dat"
    X.tofile(path)
    return np.memmap(path, dtype=X.dtype, mode="r", shape=X.shape)


def _strided(X):
    wide = np.zeros((2 * len(X), 3 * X.shape[1]), dtype=X.dtype)
    wide[::2, ::3] = X
    return wide[::2, ::3]


def _reversed(X):
    return np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1]


CONTAINERS = {
    "float64": lambda X, _: X.astype("float64"),
    "float16": lambda X, _: X.astype("float16"),
    "longdouble": lambda X, _: X.astype(np.longdouble),
    "int8": lambda X, _: X.astype("int8"),
    "uint8": lambda X, _: X.astype("uint8"),
    "uint16": lambda X, _: X.astype("uint16"),
    "uint64": lambda X, _: X.astype("uint64"),
    "int64": lambda X, _: X.astype("int64"),
    "big-endian float32": lambda X, _: X.astype(">f4"),
    "big-endian float64": lambda X, _: X.astype(">f8"),
    "big-endian int32": lambda X, _: X.astype(">i4"),
    "Fortran order": lambda X, _: np.asfortranarray(X),
    "strided view": lambda X, _: _strided(X),
    "reversed view": lambda X, _: _reversed(X),
    "memmap": _memmap,
    "uint8 memmap": lambda X, folder: _memmap(X.astype("uint8"), folder),
    "list of lists": lambda X, _: X.tolist(),
    "object array of numbers": lambda X, _: X.astype(object),
    "CSR matrix": lambda X, _: sp.csr_matrix(X),
    "CSR array": lambda X, _: sp.csr_array(X),
    "CSC array": lambda X, _: sp.csc_array(X),
    "uint8 CSR": lambda X, _: sp.csr_array(X.astype("uint8")),
    "pandas": lambda X, _: pd.DataFrame(X),
    "pandas of mixed types": lambda X, _: pd.DataFrame(X).astype({0: "int64", 1: "Float32"}),
    "polars": lambda X, _: pl.DataFrame(X),
    "polars of mixed types": lambda X, _: pl.DataFrame(X).with_columns(
        pl.col("column_0").cast(pl.Int16)
    ),
    "tensor": lambda X, _: torch.from_numpy(X.copy()),
    "uint8 tensor": lambda X, _: torch.from_numpy(X.astype("uint8")),
    "float64 tensor": lambda X, _: torch.from_numpy(X.astype("float64")),
    "bfloat16 tensor": lambda X, _: torch.from_numpy(X.copy()).bfloat16(),
    "tensor with gradients": lambda X, _: torch.from_numpy(X.copy()).requires_grad_(),
    "transposed tensor": lambda X, _: torch.from_numpy(np.ascontiguousarray(X.T)).T,
}


def _copy_of(X):
    """Return a copy of any container, to compare with later."""
    if isinstance(X, torch.Tensor | pl.DataFrame):
        return X.clone()
    return [row.copy() for row in X] if isinstance(X, list) else X.copy()


def _same(X, before):
    if isinstance(X, list):
        return X == before
    if isinstance(X, torch.Tensor):
        return torch.equal(X, before)
    if isinstance(X, pl.DataFrame):
        return X.equals(before)
    if sp.issparse(X):
        return (X != before).nnz == 0
    return bool(np.all(np.asarray(X) == np.asarray(before)))


@each(SEPARATED)
@pytest.mark.parametrize("name", CONTAINERS)
def test_containers(case, name, tmp_path):
    """skorch-dev/skorch#758: "expected Float but found Double" for ordinary input."""
    plain = _whole_numbers()
    X = CONTAINERS[name](plain, tmp_path)
    before = _copy_of(X)
    estimator, expected = case.new().fit(X), _fitted_to_whole_numbers(case)
    if case.is_clusterer:
        np.testing.assert_array_equal(estimator.labels_, expected.labels_)
        np.testing.assert_array_equal(estimator.predict(X), expected.labels_)
    if case.trains:
        assert_same_arrays(read_outs(estimator, X), read_outs(expected, plain))
        assert_same_arrays(
            read_outs(expected, X if not hasattr(X, "columns") else plain),
            read_outs(expected, plain),
        )
    else:
        np.testing.assert_allclose(estimator.transform(X), plain)
    estimator.partial_fit(X)
    assert _same(X, before)


@each(SEPARATED)
def test_booleans(case):
    X = np.random.default_rng(0).random((90, 6)) < np.repeat([[0.05], [0.5], [0.95]], 30, axis=0)
    plain = X.astype("float32")
    estimator, expected = case.new().fit(X), case.new().fit(plain)
    if case.is_clusterer:
        np.testing.assert_array_equal(estimator.labels_, expected.labels_)
    for boolean in (torch.from_numpy(X), pd.DataFrame(X), pl.DataFrame(X), sp.csr_array(X)):
        again = case.new().fit(boolean)
        np.testing.assert_array_equal(again.transform(boolean), estimator.transform(X))


@each(CASES)
def test_writable_rows_are_not_written_to(case):
    """collinleiber/ClustPy#68: X was overwritten by mistake (read-only X is used elsewhere)."""
    X = case.X.copy()
    estimator = case.new().fit(X)
    read_outs(estimator, X)
    estimator.partial_fit(X).fit(X)
    if case.is_clusterer:
        estimator.score(X)
        estimator.fit_predict(X)
    estimator.fit_transform(X)
    np.testing.assert_array_equal(X, case.X)


_IMAGES = {
    "n, C, H, W": lambda X, _: X,
    "n, H, W": lambda X, _: X[:, 0],
    "uint8": lambda X, _: X.astype("uint8"),
    "float64": lambda X, _: X.astype("float64"),
    "big-endian": lambda X, _: X.astype(">f4"),
    "Fortran order": lambda X, _: np.asfortranarray(X),
    "reversed view": lambda X, _: np.ascontiguousarray(X[::-1, :, ::-1, ::-1])[::-1, :, ::-1, ::-1],
    "uint8 memmap": lambda X, folder: _memmap(X.astype("uint8"), folder),
    "tensor": lambda X, _: torch.from_numpy(X),
    "uint8 tensor, n, H, W": lambda X, _: torch.from_numpy(X[:, 0].astype("uint8")),
}


@each([case for case in CASES if case.setup == "images"])
@pytest.mark.parametrize("name", _IMAGES)
def test_images(case, name, tmp_path):
    X = _IMAGES[name](flat_images().reshape(-1, *IMAGE_SHAPE), tmp_path)
    estimator = case.new(image_shape=None).fit(X)
    assert estimator.n_features_in_ == np.prod(IMAGE_SHAPE)
    expected = read_outs(case.fitted, case.X)
    assert_same_arrays(read_outs(estimator, X), expected)
    # Rows that were flattened on the way are the same images.
    assert_same_arrays(read_outs(estimator, case.X), expected)
    assert_same_arrays(read_outs(case.fitted, X), expected)


# -- awkward values ------------------------------------------------------------------------


def _awkward(X, kind):
    X = X.astype("float64")
    if kind == "constant column":
        X[:, 1] = 7.0
    elif kind == "zero column":
        X[:, 1] = 0.0
    elif kind == "zero rows":
        X[::10] = 0.0
    elif kind == "one feature":
        X = X[:, :1]
    elif kind == "one column times 1e12":
        X[:, 0] *= 1e12
    elif kind == "one column times 1e-12":
        X[:, 0] *= 1e-12
    elif kind == "all times 1e12":
        X *= 1e12
    elif kind == "all times 1e-12":
        X *= 1e-12
    elif kind == "far from the origin":
        X += 1e5
    elif kind == "zero column and one times 1e6":
        X[:, 0] = 0.0
        X[:, 1] *= 1e6
    return X


@each(SEPARATED)
@pytest.mark.parametrize(
    "kind",
    [
        "constant column",
        "zero column",
        "zero rows",
        "one feature",
        "one column times 1e12",
        "one column times 1e-12",
        "all times 1e12",
        "all times 1e-12",
        "far from the origin",
        "zero column and one times 1e6",
    ],
)
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_awkward_values_stay_finite(case, kind):
    """fferroni/DEC-Keras#9: nan within one pass, on 17 plain columns."""
    X, y = separated_blobs()
    X = _awkward(X, kind)
    estimator = case.new().fit(X)
    for name, array in read_outs(estimator, X).items():
        assert np.isfinite(array).all(), name
    losses = [record["loss"] for record in estimator.history_ if "loss" in record]
    assert np.isfinite(losses).all()
    if case.is_clusterer:
        np.testing.assert_array_equal(estimator.predict(X), estimator.labels_)
        # Not every method has centres.
        assert np.isfinite(getattr(estimator, "cluster_centers_", 0.0)).all()
        assert np.isfinite(estimator.score(X))


@each(SEPARATED_CLUSTERERS)
@pytest.mark.parametrize("factor", [1e12, 1e-12])
def test_the_unit_of_the_data_does_not_matter(case, factor):
    X, _ = separated_blobs()
    expected = case.new().fit(X.astype("float64"))
    estimator = case.new().fit(X.astype("float64") * factor)
    np.testing.assert_array_equal(estimator.labels_, expected.labels_)


# -- what raises ---------------------------------------------------------------------------


def _with(X, value):
    X = X.copy()
    X[2, 1] = value
    return X


def _ones(*shape):
    return np.ones(shape, dtype="float32")


BAD_DATA = {
    "nan": (lambda X: _with(X, np.nan), ValueError, ["Input X contains NaN", "SimpleImputer"]),
    "inf": (lambda X: _with(X, np.inf), ValueError, ["Input X contains infinity", "[Cc]lip"]),
    "-inf": (lambda X: _with(X, -np.inf), ValueError, ["Input X contains infinity"]),
    "nan in the last row of a frame": (
        lambda X: pd.DataFrame(np.vstack([X[:-1], X[-1:] * np.nan])),
        ValueError,
        ["Input X contains NaN"],
    ),
    "pandas NA": (
        lambda X: pd.DataFrame(X).astype("Float64").mask(pd.DataFrame(X) > 3),
        ValueError,
        ["Input X contains NaN"],
    ),
    "polars null": (
        lambda X: pl.DataFrame(X).with_columns(
            pl.when(pl.col("column_0") > 0).then(pl.col("column_0"))
        ),
        ValueError,
        ["Input X contains NaN"],
    ),
    "nan in CSR": (lambda X: sp.csr_array(_with(X, np.nan)), ValueError, ["contains NaN"]),
    "nan in a tensor": (
        lambda X: torch.from_numpy(_with(X, np.nan)),
        ValueError,
        ["Input X contains NaN"],
    ),
    "too large for float32": (
        lambda X: _with(X.astype("float64"), 1e300),
        ValueError,
        ["Input X contains infinity or a value too large for dtype\\('float32'\\)"],
    ),
    "no rows": (lambda X: X[:0], ValueError, ["0 sample\\(s\\)", "minimum of 1 is required"]),
    "no columns": (lambda X: X[:, :0], ValueError, ["0 feature\\(s\\)", "minimum of 1 is req"]),
    "one dimension": (lambda X: X[:, 0], ValueError, ["Expected 2D array", "Reshape"]),
    "one-dimensional tensor": (
        lambda X: torch.from_numpy(X.copy())[:, 0],
        ValueError,
        ["Expected 2D array", "Reshape"],
    ),
    "five dimensions": (lambda X: _ones(9, 1, 2, 2, 2), ValueError, ["5", "dim <= 4|images"]),
    "a number": (lambda X: 3.0, ValueError, ["Expected 2D array", "[Rr]eshape"]),
    "strings": (
        lambda X: np.array([["a", "b"], ["c", "d"]] * 30),
        ValueError,
        ["\\bX\\b", "[Ee]ncode"],
    ),
    "strings in a frame": (
        lambda X: pd.DataFrame({"a": ["u", "v"] * 30, "b": range(60)}),
        ValueError,
        ["\\bX\\b", "[Ee]ncode"],
    ),
    "strings in a polars frame": (
        lambda X: pl.DataFrame({"a": ["u", "v"] * 30, "b": range(60)}),
        ValueError,
        ["\\bX\\b", "[Ee]ncode"],
    ),
    "objects": (
        lambda X: np.array([[{"a": 1}, 2.0]] * 60, dtype=object),
        TypeError,
        ["\\bX\\b", "argument must be .* string.* number", "[Cc]onvert|[Ee]ncode"],
    ),
    "numbers as text": (
        lambda X: X.astype(str),
        ValueError,
        ["\\bX\\b", "astype\\(float\\)"],
    ),
    "times": (
        lambda X: pd.DataFrame({"a": pd.to_datetime(["2020-01-01"] * 60)}),
        TypeError,
        ["X holds values of type datetime64", "convert"],
    ),
    "ragged lists": (lambda X: [[1.0, 2.0], [3.0]], ValueError, ["X cannot be read as one array"]),
    "complex": (lambda X: X + 1j, ValueError, ["Complex data not supported", "\\.real"]),
    "complex tensor": (
        lambda X: torch.from_numpy(X + 1j),
        ValueError,
        ["Complex data not supported", "X.real"],
    ),
    "sparse tensor": (
        lambda X: torch.from_numpy(X.copy()).to_sparse(),
        TypeError,
        ["layout", "to_dense"],
    ),
    "Dataset": (
        lambda X: torch.utils.data.TensorDataset(torch.from_numpy(X.copy())),
        TypeError,
        ["X is a TensorDataset", "memmap"],
    ),
    "DataLoader": (
        lambda X: torch.utils.data.DataLoader(torch.from_numpy(X.copy())),
        TypeError,
        ["X is a DataLoader", "memmap"],
    ),
    "channels last": (lambda X: _ones(60, 8, 9, 3), ValueError, ["channels-last", "transpose"]),
}


def _assert_raises(call, kind, patterns):
    with pytest.raises(kind) as raised:
        call()
    for pattern in patterns:
        raised.match(pattern)


@each(VECTORS)
@pytest.mark.parametrize("name", BAD_DATA)
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_bad_data(case, name, method):
    """skorch-dev/skorch#588: a Dataset cannot be split; say so and offer the memmap."""
    make, kind, patterns = BAD_DATA[name]
    estimator = case.new()
    _assert_raises(lambda: getattr(estimator, method)(make(case.X)), kind, patterns)
    assert not hasattr(estimator, "net_")


@each(CASES)
@pytest.mark.parametrize("name", ["nan", "inf", "no rows", "one dimension", "strings", "complex"])
def test_bad_data_after_fit(case, name):
    make, kind, patterns = BAD_DATA[name]
    X = make(case.X)
    for method in ("predict", "predict_proba", "transform", "score"):
        if case.is_clusterer or method == "transform":
            _assert_raises(lambda m=method: getattr(case.fitted, m)(X), kind, patterns)


@each(CASES)
def test_another_number_of_features_after_fit(case):
    n = case.X.shape[1]
    name = type(case.fitted).__name__
    for wrong in (case.X[:, :-1], np.hstack([case.X, case.X])):
        message = f"X has {wrong.shape[1]} features, but {name} is expecting {n} features as input"
        with pytest.raises(ValueError, match=message):
            case.fitted.transform(wrong)


@each([case for case in CASES if case.setup == "images"])
def test_images_of_another_shape_after_fit(case):
    images = case.X.reshape(-1, *IMAGE_SHAPE)
    for wrong in (_ones(4, 1, 7, 6), _ones(4, 1, 4, 9), _ones(4, 3, 6, 6), _ones(4, 5, 6)):
        shape = wrong.shape[1:] if wrong.ndim == 4 else (1, *wrong.shape[1:])
        _assert_raises(
            lambda w=wrong: case.fitted.transform(w),
            ValueError,
            [str(shape).strip("()"), "1, 6, 6", "reshape"],
        )
    case.fitted.transform(images)


class _WrongShape(nn.Module):
    def __init__(self, *shape):
        super().__init__()
        self.layer = nn.Linear(6, int(np.prod(shape)))
        self.shape = shape

    def forward(self, rows):
        return self.layer(rows).reshape(len(rows), *self.shape)


BAD_PARAMETERS = {
    "image_shape product": ({"image_shape": (1, 2, 4)}, ValueError, ["image_shape", "8", "6"]),
    "image_shape of two": ({"image_shape": (2, 3)}, ValueError, ["image_shape", "C, H, W"]),
    "conv without images": ({"encoder": "conv"}, ValueError, ["encoder", "image_shape"]),
    "batch_size": ({"batch_size": -1}, ValueError, ["batch_size", "-1", "int in the range"]),
    "batch_size of 0": ({"batch_size": 0}, ValueError, ["batch_size", "Got 0"]),
    "max_epochs": ({"max_epochs": 0}, ValueError, ["max_epochs"]),
    "lr": ({"lr": 0.0}, ValueError, ["'lr'", "Got 0.0"]),
    "lr nan": ({"lr": float("nan")}, ValueError, ["'lr'", "nan"]),
    "device": ({"device": "warp"}, ValueError, ["device='warp'", "'auto', 'cpu'"]),
    "device not here": ({"device": "cuda:77"}, ValueError, ["device='cuda:77'", "'cpu'"]),
    "hidden_dims": ({"hidden_dims": (16, 0)}, ValueError, ["hidden_dims", "positive"]),
    "hidden_dims of floats": ({"hidden_dims": (1.5,)}, ValueError, ["hidden_dims", "integers"]),
    "embedding_dim": ({"embedding_dim": 0}, ValueError, ["embedding_dim", "Got 0"]),
    "encoder name": ({"encoder": "resnet"}, ValueError, ["encoder", "'conv'"]),
    "encoder width": (
        {"encoder": nn.Linear(6, 5)},
        ValueError,
        ["encoder", r"\(2, 5\)", r"\(2, 4\)", "embedding_dim"],
    ),
    "encoder of three dimensions": (
        {"encoder": _WrongShape(2, 2)},
        ValueError,
        ["encoder", r"\(2, 2, 2\)", r"\(2, 4\)", "flatten"],
    ),
    "encoder input": ({"encoder": nn.Linear(7, 4)}, ValueError, ["encoder", r"\(6,\)"]),
    "encoder class": ({"encoder": nn.ReLU}, (TypeError, ValueError), ["encoder"]),
    "encoder callable": (
        {"encoder": lambda input_shape, embedding_dim: 3},
        TypeError,
        ["encoder", "int", "torch.nn.Module"],
    ),
    "scaling": ({"scaling": "minmax"}, ValueError, ["scaling", "'range'"]),
    "random_state": ({"random_state": "seed"}, ValueError, ["random_state"]),
}
BAD_PARAMETERS_OF_CLUSTERERS = {
    "n_clusters": ({"n_clusters": 0}, ValueError, ["n_clusters", "Got 0"]),
    "too many clusters": (
        {"n_clusters": 151},
        ValueError,
        ["n_samples=150", "n_clusters=151", "fewer clusters"],
    ),
    "init": ({"init": "kmeans"}, ValueError, ["init", "k-means\\+\\+"]),
    "init labels": ({"init": [0, 1, 2]}, ValueError, ["init", "3 labels", "150 rows"]),
    "init centres": ({"init": np.zeros((3, 9))}, ValueError, ["init", r"\(3, 9\)", r"\(3, 4\)"]),
}
BAD_PRETRAIN = {
    "pretrain": ({"pretrain": "moco"}, ValueError, ["pretrain"]),
    "pretrain of another package": (
        {"pretrain": __import__("sklearn.decomposition").decomposition.PCA()},
        TypeError,
        ["pretrain", "PCA", "Pipeline"],
    ),
}


@each(VECTORS)
@pytest.mark.parametrize("name", BAD_PARAMETERS)
def test_bad_parameters(case, name):
    changes, kind, patterns = BAD_PARAMETERS[name]
    _assert_raises(lambda: case.new(**changes).fit(case.X), kind, patterns)


@each(VECTOR_CLUSTERERS)
@pytest.mark.parametrize("name", BAD_PARAMETERS_OF_CLUSTERERS)
def test_bad_parameters_of_clusterers(case, name):
    changes, kind, patterns = BAD_PARAMETERS_OF_CLUSTERERS[name]
    _assert_raises(lambda: case.new(**changes).fit(case.X), kind, patterns)


@each(PRETRAINED_VECTORS)
@pytest.mark.parametrize("name", BAD_PRETRAIN)
def test_bad_pretrain(case, name):
    changes, kind, patterns = BAD_PRETRAIN[name]
    _assert_raises(lambda: case.new(**changes).fit(case.X), kind, patterns)


@each(PRETRAINED_VECTORS)
def test_a_bare_fitted_pretrain(case):
    """scikit-learn's clone would unfit it without a word."""
    pretrain = DenoisingAutoencoder(max_epochs=1, hidden_dims=(16,), embedding_dim=4).fit(case.X)
    _assert_raises(
        lambda: case.new(pretrain=pretrain).fit(case.X),
        ValueError,
        ["pretrain is already fitted", "FrozenEstimator", "clone"],
    )
    estimator = case.new(pretrain=FrozenEstimator(pretrain))
    if not estimator._bounded_embedding or pretrain.bounded:
        estimator.fit(case.X)
        assert "pretrain" not in {record["phase"] for record in estimator.history_}


@each(PRETRAINED_VECTORS)
def test_a_frozen_pretrain_for_rows_of_another_shape(case):
    pretrain = DenoisingAutoencoder(max_epochs=1, hidden_dims=(16,), embedding_dim=4)
    frozen = FrozenEstimator(pretrain.fit(case.X[:, :5]))
    _assert_raises(
        lambda: case.new(pretrain=frozen).fit(case.X), ValueError, ["pretrain", "5", "6", "same"]
    )


@each(CLUSTERERS)
def test_fewer_rows_than_clusters(case):
    _assert_raises(
        lambda: case.new(n_clusters=8).fit(case.X[:7]),
        ValueError,
        ["n_samples=7", "n_clusters=8", "fewer clusters"],
    )


@each(VECTOR_CLUSTERERS)
@pytest.mark.filterwarnings(f"ignore::{ClusterCollapseWarning.__module__}.ClusterCollapseWarning")
def test_batches_of_one_row(case):
    """Nothing in the training needs two rows."""
    estimator = case.new(batch_size=1, max_epochs=1).fit(case.X[:12])
    assert np.isfinite(estimator.transform(case.X)).all()
    estimator.partial_fit(case.X[:1])
    assert np.isfinite(estimator.predict_proba(case.X)).all()
