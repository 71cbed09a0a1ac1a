"""How often each label of one labelling meets each label of another."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def as_labels(labels: Any, name: str) -> NDArray[Any]:
    """Return ``labels`` as a 1-D array of values that can be told apart."""
    array = np.asarray(labels)
    if array.ndim != 1:
        raise ValueError(
            f"{name} must be 1-D, one label for each sample, got an array of shape {array.shape}."
        )
    if array.dtype.kind in "fc" and not np.isfinite(array).all():
        raise ValueError(
            f"{name} holds {np.count_nonzero(~np.isfinite(array))} NaN or infinite labels "
            f"among {len(array)}; remove these samples or give them a label of their own."
        )
    return array


def check_label_pair(
    first: Any, second: Any, first_name: str, second_name: str
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return both labellings as arrays of the same length."""
    first_array = as_labels(first, first_name)
    second_array = as_labels(second, second_name)
    if len(first_array) != len(second_array):
        raise ValueError(
            f"{first_name} and {second_name} must label the same samples: {first_name} has "
            f"{len(first_array)} labels, {second_name} has {len(second_array)}."
        )
    return first_array, second_array


def contingency(
    rows: NDArray[Any], columns: NDArray[Any], rows_name: str, columns_name: str
) -> tuple[NDArray[np.int64], NDArray[Any], NDArray[Any], NDArray[np.intp]]:
    """Return the counts, the row values, the column values and each sample's column."""
    row_values, row_codes = _distinct(rows, rows_name)
    column_values, column_codes = _distinct(columns, columns_name)
    shape = (len(row_values), len(column_values))
    cells = np.ravel_multi_index((row_codes, column_codes), shape) if len(rows) else row_codes
    counts = np.bincount(cells, minlength=shape[0] * shape[1]).reshape(shape)
    return counts, row_values, column_values, column_codes


def _distinct(labels: NDArray[Any], name: str) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Return the sorted distinct labels and the position of each sample's label."""
    try:
        values, codes = np.unique(labels, return_inverse=True)
    except TypeError as error:
        kinds = sorted({type(label).__name__ for label in labels})
        raise TypeError(
            f"{name} must hold labels of one kind, got a mix of {', '.join(kinds)}; "
            "convert them, for example with numpy.asarray(labels, dtype=str)."
        ) from error
    return values, codes
