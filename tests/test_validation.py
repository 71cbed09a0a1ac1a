"""The one door for data: what a row source hands out, and what it never does."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import torch

from skdeepclust._validation import check_finite, check_image_shape, open_rows

ROWS = np.arange(60, dtype="float32").reshape(12, 5)

CONTAINERS = {
    "array": lambda: ROWS,
    "float64": lambda: ROWS.astype("float64"),
    "float16": lambda: ROWS.astype("float16"),
    "longdouble": lambda: ROWS.astype(np.longdouble),
    "uint8": lambda: ROWS.astype("uint8"),
    "uint32": lambda: ROWS.astype("uint32"),
    "int64": lambda: ROWS.astype("int64"),
    "big-endian": lambda: ROWS.astype(">f4"),
    "big-endian uint16": lambda: ROWS.astype(">u2"),
    "Fortran": lambda: np.asfortranarray(ROWS),
    "reversed": lambda: ROWS[::-1].copy()[::-1],
    "read-only": lambda: np.broadcast_to(ROWS, ROWS.shape),
    "masked": lambda: np.ma.masked_array(ROWS),
    "list": lambda: ROWS.tolist(),
    "objects": lambda: ROWS.astype(object),
    "CSR": lambda: sp.csr_matrix(ROWS),
    "COO": lambda: sp.coo_array(ROWS),
    "pandas": lambda: pd.DataFrame(ROWS, index=range(12, 0, -1)),
    "pandas nullable": lambda: pd.DataFrame(ROWS).astype({0: "Int32", 1: "Float64"}),
    "polars": lambda: pl.DataFrame(ROWS),
    "tensor": lambda: torch.from_numpy(ROWS.copy()),
    "int tensor": lambda: torch.from_numpy(ROWS.astype("int16")),
    "transposed tensor": lambda: torch.from_numpy(ROWS.T.copy()).T,
    "tensor with gradients": lambda: torch.from_numpy(ROWS.copy()).requires_grad_(),
}

each_container = pytest.mark.parametrize("make", CONTAINERS.values(), ids=CONTAINERS)


@each_container
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.filterwarnings("error:.*writable:UserWarning")
def test_read(make, dtype):
    rows = open_rows(make(), dtype=dtype)
    expected = torch.from_numpy(ROWS.astype(dtype))
    assert (len(rows), rows.n_features, rows.row_shape) == (12, 5, (5,))
    for start, stop in ((0, 12), (3, 4), (5, 5), (7, 12)):
        found = rows.read(start, stop)
        assert found.dtype == expected.dtype
        assert not found.requires_grad
        assert torch.equal(found, expected[start:stop])


@each_container
def test_gather(make):
    rows = open_rows(make())
    for index in ([3], [11, 0, 0, 5], []):
        index = torch.tensor(index, dtype=torch.int64)
        found = rows.gather(index)
        assert found.dtype == torch.float32
        assert torch.equal(found, torch.from_numpy(ROWS)[index])


@each_container
def test_into_a_buffer(make):
    """The result is a view of the buffer; what lies behind it is left alone."""
    rows = open_rows(make())
    buffer = rows.empty(8).fill_(-1.0)
    for call, expected in (
        (lambda: rows.read(4, 7, out=buffer), ROWS[4:7]),
        (lambda: rows.gather(torch.tensor([9, 2, 2]), out=buffer), ROWS[[9, 2, 2]]),
    ):
        found = call()
        assert found.data_ptr() == buffer.data_ptr()
        np.testing.assert_array_equal(found.numpy(), expected)
        assert (buffer[3:] == -1).all()


@each_container
def test_what_is_read_can_be_written_to_without_harm(make):
    X = make()
    before = open_rows(X).read(0, 12).clone()
    rows = open_rows(X)
    rows.read(0, 12, out=rows.empty(12)).zero_()
    rows.gather(torch.arange(12)).zero_()
    assert torch.equal(open_rows(X).read(0, 12), before)


@pytest.mark.parametrize(
    ("make", "wanted"),
    [
        (lambda: ROWS, torch.float32),
        (lambda: ROWS.astype(">f4"), torch.float32),
        (lambda: ROWS.astype("float64"), torch.float64),
        (lambda: ROWS.astype("float16"), torch.float64),
        (lambda: ROWS.astype("int64"), torch.float64),
        (lambda: torch.from_numpy(ROWS.copy()), torch.float32),
        (lambda: torch.from_numpy(ROWS.copy()).double(), torch.float64),
        (lambda: pd.DataFrame(ROWS), torch.float32),
        (lambda: pd.DataFrame(ROWS).astype({0: "float64"}), torch.float64),
        (lambda: pl.DataFrame(ROWS), torch.float32),
        (lambda: sp.csr_array(ROWS), torch.float32),
    ],
)
def test_keep_leaves_floating_types(make, wanted):
    rows = open_rows(make(), dtype="keep")
    assert rows.dtype == wanted
    found = rows.read(0, 12)
    assert found.dtype == wanted
    np.testing.assert_array_equal(found.numpy(), ROWS)


@pytest.mark.parametrize(
    "make", [lambda X: X, np.asfortranarray, lambda X: X.astype(">f4"), torch.from_numpy]
)
def test_images(make):
    images = np.arange(2 * 3 * 4 * 5, dtype="float32").reshape(2, 3, 4, 5)
    rows = open_rows(make(images))
    assert (rows.row_shape, rows.n_features) == ((3, 4, 5), 60)
    np.testing.assert_array_equal(rows.read(0, 2).numpy(), images)
    rows = open_rows(make(images[:, 0].copy()))
    assert rows.row_shape == (1, 4, 5)
    np.testing.assert_array_equal(rows.gather(torch.tensor([1])).numpy(), images[1:, :1])
    rows = open_rows(make(images.reshape(2, 60)), image_shape=(3, 4, 5))
    np.testing.assert_array_equal(rows.read(1, 2).numpy(), images[1:])


def test_arrays_are_not_copied(tmp_path):
    np.save(tmp_path / "rows.npy", ROWS)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    for X in (mapped, np.asfortranarray(ROWS), ROWS[::2, ::-1]):
        assert np.shares_memory(open_rows(X)._array, X)
    tensor = torch.from_numpy(ROWS.copy())
    assert open_rows(tensor)._tensor.data_ptr() == tensor.data_ptr()


def test_integers_need_no_check_for_nan():
    assert not open_rows(ROWS.astype("uint8")).may_be_nonfinite
    assert not open_rows(torch.from_numpy(ROWS.astype("int64"))).may_be_nonfinite
    assert open_rows(ROWS).may_be_nonfinite
    assert open_rows(pd.DataFrame(ROWS)).may_be_nonfinite


def test_missing_values_of_frames_are_nan():
    frame = pd.DataFrame({"a": pd.array([1, None], dtype="Int64"), "b": [2.0, 3.0]})
    assert torch.isnan(open_rows(frame).read(0, 2)).tolist() == [[False, False], [True, False]]
    frame = pl.DataFrame({"a": [1, None], "b": [2.0, 3.0]})
    assert torch.isnan(open_rows(frame).read(0, 2)).tolist() == [[False, False], [True, False]]


def test_finite_numbers_whose_sum_overflows_pass():
    check_finite(torch.full((4, 4), 3e38), "float32")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (float("nan"), "(?s)contains NaN.*Robot does not accept.*SimpleImputer"),
        (float("inf"), "contains infinity or a value too large for dtype\\('float32'\\)"),
        (-float("inf"), "contains infinity"),
    ],
)
def test_check_finite_raises(value, message):
    block = torch.zeros(3, 3)
    block[1, 2] = value
    with pytest.raises(ValueError, match=message):
        check_finite(block, "float32", "Robot")


def test_opposite_infinities_do_not_cancel():
    with pytest.raises(ValueError, match="infinity"):
        check_finite(torch.tensor([[float("inf"), -float("inf")]]), "float32")


def test_image_shapes():
    assert check_image_shape(None) is None
    assert check_image_shape([1, np.int64(2), 3]) == (1, 2, 3)
    for wrong in ((1, 2), (1, 2, 0), (1, 2, 3.0), 5, "abc", (1, -2, 3), (1, 2, 3, 4)):
        with pytest.raises(ValueError, match="image_shape must be None or three positive int"):
            check_image_shape(wrong)
    with pytest.raises(ValueError, match=r"got \(8, 8\); for grey images pass \(1, 8, 8\)"):
        check_image_shape((8, 8))


@pytest.mark.parametrize(
    ("X", "image_shape", "message"),
    [
        (np.ones((4, 6)), (1, 2, 4), "image_shape=\\(1, 2, 4\\) has 8 values.*6 features"),
        (np.ones((4, 1, 2, 3)), (1, 3, 2), "image_shape=\\(1, 3, 2\\) differs.*\\(1, 2, 3\\)"),
        (np.ones((4, 28, 28, 3)), None, "channels-last.*transpose\\(0, 3, 1, 2\\)"),
        (torch.ones(4, 28, 28, 1), None, "channels-last.*transpose\\(0, 3, 1, 2\\)"),
        (np.ones((0, 6)), None, "0 sample"),
        (np.ones((6, 0)), None, "0 feature"),
        (np.ones((2, 1, 0, 3)), None, "0 feature"),
        (torch.ones(6), None, "Expected 2D array, got 1D"),
        (np.ones((1, 1, 1, 1, 1)), None, "dim 5"),
        ([["a", "b"]], None, "X holds values that are not numbers.*OneHotEncoder"),
        ([["1", "2"]], None, "X holds numbers as text.*astype\\(float\\)"),
        (np.ones((2, 2)) * 1j, None, "Complex data not supported: X is complex; pass X.real"),
        ([[1.0], [1.0, 2.0]], None, "X cannot be read as one array"),
    ],
)
def test_what_cannot_be_read(X, image_shape, message):
    with pytest.raises(ValueError, match=message):
        open_rows(X, image_shape=image_shape)


def test_error_messages_are_short():
    """A message never holds the data."""
    with pytest.raises(ValueError) as raised:
        open_rows(np.ones((1000, 50)) + 1j)
    assert len(str(raised.value)) < 200
