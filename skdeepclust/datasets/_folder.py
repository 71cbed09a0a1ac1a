"""Reading a data set from the folder that SKDEEPCLUST_DATA names."""

import hashlib
import os
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdeepclust.datasets._specifications import Specification

FOLDER_VARIABLE = "SKDEEPCLUST_DATA"
PARTS = {"all": ("train", "test"), "train": ("train",), "test": ("test",)}

# A file that is cut off, is no archive, lacks an array or holds another kind of array.
_READ_ERRORS = (
    OSError,
    EOFError,
    KeyError,
    TypeError,
    ValueError,
    zipfile.BadZipFile,
    zlib.error,
)


def find_file(specification: Specification) -> Path | None:
    """Return the data file in the user's folder, or None if there is none."""
    folder = os.environ.get(FOLDER_VARIABLE)
    if not folder:
        return None
    path = Path(folder).expanduser() / specification.file_name
    return path if path.is_file() else None


def read_file(
    path: Path, specification: Specification, subset: str
) -> tuple[NDArray[Any], NDArray[np.int64], str]:
    """Return images (n, C, H, W), labels and the SHA-256 sum of the file."""
    try:
        with open(path, "rb") as file:
            checksum = hashlib.file_digest(file, "sha256").hexdigest()
            file.seek(0)
            with np.load(file, allow_pickle=False) as archive:
                labels = [_read_labels(archive, part, specification) for part in PARTS[subset]]
                images = _read_images(
                    archive, [len(part) for part in labels], specification, subset
                )
    except _READ_ERRORS as error:
        raise OSError(
            f"The file {str(path)!r}, found through {FOLDER_VARIABLE}, is damaged or is not the "
            f"{specification.title} data: {error}. Replace it, or remove it to fetch the data "
            f"from OpenML instead. It must be a NumPy archive with {arrays_wanted(specification)}."
        ) from error
    return images, np.concatenate(labels), checksum


def arrays_wanted(specification: Specification) -> str:
    """Describe the arrays of a data file."""
    shape = ", ".join(str(length) for length in specification.folder_image_shape)
    low, high = specification.pixel_range
    return (
        f"the arrays X_train and X_test of shape (n, {shape}), dtype {specification.dtype}, "
        f"values {low}..{high}, and y_train and y_test of shape (n,), integers 0..9"
    )


def check_range(values: NDArray[Any], low: float, high: float, name: str) -> None:
    """Raise ValueError if a value lies outside ``low``..``high`` or is NaN."""
    lowest, highest = values.min(), values.max()
    if not (lowest >= low and highest <= high):
        raise ValueError(f"{name} must lie in {low}..{high}, got {lowest}..{highest}")


def _read_labels(archive: Any, part: str, specification: Specification) -> NDArray[np.int64]:
    """Return the labels of one part."""
    labels = archive[f"y_{part}"]
    if labels.ndim != 1 or labels.dtype.kind not in "iu":
        raise ValueError(
            f"y_{part} must be 1-D integers, got shape {labels.shape}, dtype {labels.dtype}"
        )
    check_range(labels, 0, len(specification.target_names) - 1, f"y_{part}")
    return labels.astype(np.int64)


def _read_images(
    archive: Any, n_rows: list[int], specification: Specification, subset: str
) -> NDArray[Any]:
    """Return the images of all parts; besides the result one part at most is in memory."""
    images = np.empty((sum(n_rows), *specification.image_shape), dtype=specification.dtype)
    start = 0
    for part, n_part in zip(PARTS[subset], n_rows, strict=True):
        stored = archive[f"X_{part}"]
        wanted_shape = (n_part, *specification.folder_image_shape)
        if stored.shape != wanted_shape or stored.dtype != images.dtype:
            raise ValueError(
                f"X_{part} must have shape {wanted_shape} and dtype {images.dtype}, "
                f"got shape {stored.shape}, dtype {stored.dtype}"
            )
        check_range(stored, *specification.pixel_range, f"X_{part}")
        if specification.channels_last_in_folder:
            stored = stored.transpose(0, 3, 1, 2)
        images[start : start + n_part] = stored.reshape(n_part, *specification.image_shape)
        start += n_part
    return images
