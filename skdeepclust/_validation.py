"""The one door for data: arrays, frames, CSR, memmaps and tensors become row sources.

A row source reads, casts and copies one batch at a time, so that `X` is never copied whole.
"""

import numbers

import numpy as np
import scipy.sparse as sp
import torch
from sklearn.utils.validation import check_array

# Rows read at once when statistics are gathered or finiteness is checked: about 4 MB.
_SCAN_BYTES = 4 * 2**20

_TORCH_DTYPES = {"float32": torch.float32, "float64": torch.float64}


class RowSource:
    """Rows of `X` as tensors of one dtype and shape, read batch by batch.

    Parameters
    ----------
    n_rows : int
        Number of rows.
    row_shape : tuple of int
        Shape of one row as the network sees it, ``(n_features,)`` or ``(C, H, W)``.
    dtype : {"float32", "float64"}
        Type of the tensors that are handed out.
    may_be_nonfinite : bool
        False for integer data, where the check for nan and infinity can be left out.
    """

    def __init__(self, n_rows, row_shape, dtype, may_be_nonfinite):
        self.n_rows = n_rows
        self.row_shape = tuple(row_shape)
        self.dtype = _TORCH_DTYPES[dtype]
        self.may_be_nonfinite = may_be_nonfinite

    def __len__(self):
        return self.n_rows

    @property
    def n_features(self):
        """Number of values in a row."""
        return int(np.prod(self.row_shape))

    def read(self, start, stop, out=None):
        """Return rows `start` to `stop` as a tensor of shape ``(stop - start, *row_shape)``.

        With `out`, a contiguous tensor of at least that many rows, the result is a view of it.
        """
        return self._deliver(self._slice(start, stop), stop - start, out)

    def gather(self, index, out=None):
        """Return the rows at the integer tensor `index`; see :meth:`read` for `out`."""
        return self._deliver(self._take(index), len(index), out)

    def scan_step(self):
        """Return how many rows make one step of a pass over the data."""
        itemsize = torch.empty((), dtype=self.dtype).element_size()
        return max(1, _SCAN_BYTES // max(1, self.n_features * itemsize))

    def empty(self, n_rows):
        """Return an uninitialised buffer for `n_rows` rows."""
        return torch.empty((n_rows, *self.row_shape), dtype=self.dtype)

    def _deliver(self, block, n_rows, out):
        tensor = block if isinstance(block, torch.Tensor) else _owned_tensor(block)
        tensor = tensor.reshape(n_rows, *self.row_shape)
        if out is None:
            return tensor.to(self.dtype)
        return out[:n_rows].copy_(tensor)


class _ArrayRows(RowSource):
    """Rows of a NumPy array or memmap of any byte order and memory layout."""

    def __init__(self, array, row_shape, dtype):
        super().__init__(len(array), row_shape, dtype, array.dtype.kind == "f")
        # np.take is the fast way to gather, but copies the whole array when its memory
        # is not in C order; fancy indexing copies the wanted rows only.
        self._plain = array.flags.c_contiguous and array.dtype.isnative
        self._array = np.asarray(array)

    def gather(self, index, out=None):
        index = index.numpy()
        same_type = self._array.dtype == _numpy_dtype(self.dtype)
        if out is not None and self._plain and same_type and out.device.type == "cpu":
            view = out[: len(index)]
            target = view.numpy().reshape(len(index), *self._array.shape[1:])
            np.take(self._array, index, axis=0, out=target, mode="clip")
            return view
        return self._deliver(self._take(index), len(index), out)

    def _slice(self, start, stop):
        return self._native(self._array[start:stop])

    def _take(self, index):
        if self._plain:
            return np.take(self._array, np.asarray(index), axis=0)
        return self._native(self._array[np.asarray(index)])

    @staticmethod
    def _native(block):
        return block if block.dtype.isnative else block.astype(block.dtype.newbyteorder("="))


class _TensorRows(RowSource):
    """Rows of a torch tensor, on whatever device it lies."""

    def __init__(self, tensor, row_shape, dtype):
        tensor = tensor.detach()
        super().__init__(len(tensor), row_shape, dtype, tensor.is_floating_point())
        self._tensor = tensor

    def _slice(self, start, stop):
        return self._tensor[start:stop]

    def _take(self, index):
        return self._tensor.index_select(0, index.to(self._tensor.device))

    def gather(self, index, out=None):
        tensor = self._tensor
        fits = (
            out is not None
            and tensor.dtype == out.dtype
            and tensor.device == out.device
            and tensor.shape[1:] == out.shape[1:]
        )
        if fits:
            view = out[: len(index)]
            return torch.index_select(tensor, 0, index, out=view)
        return self._deliver(self._take(index), len(index), out)


class _SparseRows(RowSource):
    """Rows of a CSR matrix; a batch at a time becomes dense."""

    def __init__(self, matrix, row_shape, dtype):
        super().__init__(matrix.shape[0], row_shape, dtype, matrix.dtype.kind == "f")
        self._matrix = matrix

    def _slice(self, start, stop):
        return self._matrix[start:stop].toarray()

    def _take(self, index):
        return self._matrix[np.asarray(index)].toarray()


class _PandasRows(RowSource):
    """Rows of a pandas frame of numeric columns."""

    def __init__(self, frame, row_shape, dtype):
        super().__init__(len(frame), row_shape, dtype, True)
        self._frame = frame
        self._numpy_dtype = _numpy_dtype(self.dtype)

    def _slice(self, start, stop):
        return self._convert(self._frame.iloc[start:stop])

    def _take(self, index):
        return self._convert(self._frame.take(np.asarray(index)))

    def _convert(self, block):
        return block.to_numpy(dtype=self._numpy_dtype, na_value=np.nan)


class _PolarsRows(RowSource):
    """Rows of a polars frame of numeric columns."""

    def __init__(self, frame, row_shape, dtype):
        super().__init__(len(frame), row_shape, dtype, True)
        self._frame = frame
        self._numpy_dtype = _numpy_dtype(self.dtype)

    def _slice(self, start, stop):
        return self._frame[start:stop].to_numpy().astype(self._numpy_dtype, copy=False)

    def _take(self, index):
        return self._frame[np.asarray(index)].to_numpy().astype(self._numpy_dtype, copy=False)


def open_rows(X, *, image_shape=None, dtype="float32", estimator_name="estimator"):
    """Open `X` as a row source, or say in words why it cannot be read.

    Parameters
    ----------
    X : array-like, sparse matrix, data frame or tensor
        Rows are samples. Two dimensions are vectors (or images, with `image_shape`), three
        are images of one channel ``(n, H, W)``, four are images ``(n, C, H, W)``.
    image_shape : tuple of int or None, default=None
        ``(C, H, W)`` when the rows of a two-dimensional `X` are images.
    dtype : {"float32", "float64", "keep"}, default="float32"
        Type of the tensors handed out; ``"keep"`` leaves float32 and float64 as they are
        and reads everything else as float64.
    estimator_name : str, default="estimator"
        Name used in messages.

    Returns
    -------
    RowSource
        The opened rows.

    Raises
    ------
    TypeError, ValueError
        For data that are not numeric, not of two to four dimensions, or empty.

    Examples
    --------
    >>> import numpy as np
    >>> from skdeepclust._validation import open_rows
    >>> rows = open_rows(np.arange(6, dtype="uint8").reshape(3, 2))
    >>> rows.read(1, 3)
    tensor([[2., 3.],
            [4., 5.]])
    """
    X = _as_container(X, estimator_name)
    shape = tuple(X.shape)
    _check_sizes(shape, estimator_name)
    row_shape = _row_shape(shape, image_shape)
    if dtype == "keep":
        dtype = "float32" if _is_float32(X) else "float64"
    if isinstance(X, torch.Tensor):
        return _TensorRows(X, row_shape, dtype)
    if sp.issparse(X):
        return _SparseRows(X, row_shape, dtype)
    if isinstance(X, np.ndarray):
        return _ArrayRows(X, row_shape, dtype)
    kind = _PandasRows if hasattr(X, "iloc") else _PolarsRows
    return kind(X, row_shape, dtype)


def check_finite(block, dtype_name, estimator_name="estimator"):
    """Raise scikit-learn's error when the tensor `block` holds nan or infinity."""
    # The sum is nan or infinite when any entry is, and costs one fast pass.
    if bool(torch.isfinite(block.sum())) or bool(torch.isfinite(block).all()):
        return
    if bool(torch.isnan(block).any()):
        raise ValueError(
            f"Input X contains NaN.\n{estimator_name} does not accept missing values encoded as "
            "NaN natively. Fill or drop them first, for example with "
            "sklearn.impute.SimpleImputer in a Pipeline."
        )
    raise ValueError(
        f"Input X contains infinity or a value too large for dtype('{dtype_name}'). Clip, "
        "scale or drop such values before fitting."
    )


def check_image_shape(image_shape):
    """Return `image_shape` as a tuple of three positive integers, or None."""
    if image_shape is None:
        return None
    try:
        shape = tuple(image_shape)
    except TypeError:
        shape = ()
    valid = len(shape) == 3 and all(isinstance(s, numbers.Integral) and s > 0 for s in shape)
    if not valid:
        raise ValueError(
            f"image_shape must be None or three positive integers (C, H, W), got {image_shape!r}."
        )
    return tuple(int(s) for s in shape)


def _as_container(X, estimator_name):
    """Return `X` as an array, tensor, CSR matrix or numeric frame, without copying those."""
    if isinstance(X, torch.Tensor):
        return _check_tensor(X)
    if isinstance(X, (torch.utils.data.Dataset, torch.utils.data.DataLoader)):
        raise TypeError(
            f"X is a {type(X).__name__}, which cannot be indexed and split as scikit-learn does. "
            "Pass the array or tensor behind it (for data larger than memory a numpy.memmap)."
        )
    if sp.issparse(X):
        # The data are left for the check by batch; other formats than CSR are converted.
        return check_array(X, accept_sparse="csr", ensure_all_finite=False, **_LENIENT)
    if isinstance(X, np.ndarray) and X.dtype.kind in "fiub" and not isinstance(X, np.matrix):
        if 2 <= X.ndim <= 4:
            return X
    elif _is_numeric_frame(X):
        return X
    try:
        array = check_array(
            X,
            dtype="numeric",
            allow_nd=True,
            ensure_all_finite=False,
            estimator=estimator_name,
            **_LENIENT,
        )
    except (TypeError, ValueError) as error:
        # scikit-learn names neither the argument nor a remedy here, or prints all of X.
        raise _error_of_kind(X, error) from None
    if array.dtype.kind not in "fiub":
        error = TypeError(
            f"X holds values of type {array.dtype}, which are not numbers; convert them first, for "
            "example times to seconds."
        )
        raise _error_of_kind(array, error)
    return array


_LENIENT = {"ensure_min_samples": 0, "ensure_min_features": 0}


def _error_of_kind(X, error):
    """Return what to raise instead of `error`, which scikit-learn raised about `X`."""
    try:
        values = np.asarray(X)
    except (TypeError, ValueError):
        return type(error)(f"X cannot be read as one array: {error}")
    if values.dtype.kind == "c":
        return ValueError("Complex data not supported: X is complex; pass X.real or abs(X).")
    try:
        values.astype(np.float64)
    except (TypeError, ValueError) as conversion:
        return type(conversion)(
            f"X holds values that are not numbers: {conversion}. Encode categories first, for "
            "example with sklearn.preprocessing.OneHotEncoder in a Pipeline."
        )
    if values.dtype.kind in "US":
        return ValueError("X holds numbers as text; convert them with X.astype(float).")
    return error


def _check_tensor(tensor):
    if tensor.is_complex():
        raise ValueError(
            "Complex data not supported: X is a complex tensor; pass X.abs() or X.real."
        )
    if tensor.layout != torch.strided:
        raise TypeError(
            f"X is a tensor of layout {tensor.layout}; pass X.to_dense() or a scipy.sparse CSR "
            "matrix."
        )
    if not 2 <= tensor.ndim <= 4:
        raise ValueError(
            f"Expected 2D array, got {tensor.ndim}D array instead. Reshape your data either using "
            "X.reshape(-1, 1) if it has a single feature or X.reshape(1, -1) if it contains a "
            "single sample."
        )
    return tensor


def _is_numeric_frame(X):
    """Whether `X` is a pandas or polars frame whose columns are all numbers or booleans."""
    if hasattr(X, "iloc") and hasattr(X, "dtypes") and hasattr(X, "columns"):
        import pandas
        import pandas.api.types as types

        return all(
            (types.is_numeric_dtype(d) or types.is_bool_dtype(d))
            and not types.is_complex_dtype(d)
            and not isinstance(d, pandas.SparseDtype)
            for d in X.dtypes
        )
    if type(X).__module__.split(".")[0] == "polars" and hasattr(X, "schema"):
        import polars

        return all(d.is_numeric() or d == polars.Boolean for d in X.dtypes)
    return False


def _is_float32(X):
    if hasattr(X, "dtype"):
        return str(X.dtype).replace("torch.", "") == "float32"
    return all(str(d).lower() == "float32" for d in X.dtypes)


def _check_sizes(shape, estimator_name):
    if not 2 <= len(shape) <= 4:
        raise ValueError(
            f"Found array with dim {len(shape)}, while dim <= 4 is required by {estimator_name}: "
            "pass vectors (n, n_features) or images (n, H, W) or (n, C, H, W)."
        )
    if shape[0] == 0:
        raise ValueError(
            f"Found array with 0 sample(s) (shape={shape}) while a minimum of 1 is required by "
            f"{estimator_name}."
        )
    if min(shape[1:]) == 0:
        raise ValueError(
            f"Found array with 0 feature(s) (shape={shape}) while a minimum of 1 is required by "
            f"{estimator_name}."
        )


def _row_shape(shape, image_shape):
    """Return the shape of one row as the network sees it."""
    if len(shape) == 2:
        if image_shape is None:
            return shape[1:]
        wanted = int(np.prod(image_shape))
        if wanted != shape[1]:
            raise ValueError(
                f"image_shape={image_shape} has {wanted} values an image, but X has {shape[1]} "
                "features; pass the (C, H, W) whose product is the number of features."
            )
        return image_shape
    found = (1, *shape[1:]) if len(shape) == 3 else shape[1:]
    if len(shape) == 4 and shape[1] > 4 and shape[3] <= 4:
        raise ValueError(
            f"X of shape {shape} looks like channels-last images; this package takes "
            "(n, C, H, W): pass X.transpose(0, 3, 1, 2)."
        )
    if image_shape is not None and image_shape != found:
        raise ValueError(
            f"image_shape={image_shape} differs from the images in X, which are {found}; leave "
            "image_shape=None for three- and four-dimensional X."
        )
    return found


def _numpy_dtype(torch_dtype):
    return np.dtype(str(torch_dtype).removeprefix("torch."))


def _owned_tensor(block):
    """Return a tensor over `block`; torch wants writable memory with positive strides."""
    wide_unsigned = block.dtype.kind == "u" and block.dtype.itemsize > 1
    if wide_unsigned or block.dtype.itemsize > 8:
        # Types that torch lacks, or can hold but not compute with.
        block = block.astype(np.float64)
    if not (block.flags.writeable and block.flags.c_contiguous):
        block = block.copy(order="C")
    return torch.from_numpy(block)
