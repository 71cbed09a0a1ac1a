"""The one door for data: arrays, frames, CSR, memmaps and tensors become row sources.

A row source reads, casts and copies one batch at a time, so that `X` is never copied whole.
"""

import numbers

import numpy as np
import scipy.sparse as sp
import torch
from sklearn.utils.validation import check_array

from ._row_sources import ArrayRows, PandasRows, PolarsRows, SparseRows, TensorRows


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
        return TensorRows(X, row_shape, dtype)
    if sp.issparse(X):
        return SparseRows(X, row_shape, dtype)
    if isinstance(X, np.ndarray):
        return ArrayRows(X, row_shape, dtype)
    kind = PandasRows if hasattr(X, "iloc") else PolarsRows
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
        remedy = f"; for grey images pass {(1, *shape)}" if len(shape) == 2 else ""
        raise ValueError(
            "image_shape must be None or three positive integers (C, H, W), got "
            f"{image_shape!r}{remedy}."
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
        wrong_type = TypeError(
            f"X holds values of type {array.dtype}, which are not numbers; convert them first, for "
            "example times to seconds."
        )
        raise _error_of_kind(array, wrong_type)
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
    if isinstance(X, torch.Tensor):
        return X.dtype == torch.float32
    if hasattr(X, "dtype"):
        # In any byte order.
        return X.dtype.kind == "f" and X.dtype.itemsize == 4
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
