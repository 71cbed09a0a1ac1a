"""The two routes to a data set and the Bunch they end in."""

import hashlib
import importlib.util
import os
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import fetch_openml
from sklearn.utils import Bunch

from skdeepclust.datasets._folder import (
    FOLDER_VARIABLE,
    PARTS,
    arrays_wanted,
    check_range,
    find_file,
    read_file,
)
from skdeepclust.datasets._specifications import Specification


def load_images(
    specification: Specification,
    *,
    subset: str,
    return_X_y: bool,
    as_frame: bool,
    data_home: str | os.PathLike[str] | None,
    cache: bool,
) -> Any:
    """Return the data set as a Bunch or as ``(X, y)``, from the folder or from OpenML."""
    if not isinstance(subset, str) or subset not in PARTS:
        raise ValueError(f"subset must be 'all', 'train' or 'test', got {subset!r}.")
    path = find_file(specification)
    if path is not None:
        images, target, checksum = read_file(path, specification, subset)
        source = f"folder: {path.name}"
    else:
        images, target = _from_openml(specification, subset, data_home, cache)
        checksum = _checksum_of_arrays(images, target)
        source = "openml"

    data = images.reshape(len(images), -1)
    bunch = Bunch(
        data=data,
        target=target,
        frame=None,
        images=images,
        image_shape=specification.image_shape,
        feature_names=_feature_names(specification),
        target_names=np.array(specification.target_names),
        DESCR=_describe(specification, subset, source, len(data)),
        source=source,
        n_rows=len(data),
        checksum=checksum,
    )
    if as_frame:
        _convert_to_frame(bunch)
    return (bunch.data, bunch.target) if return_X_y else bunch


def _from_openml(
    specification: Specification,
    subset: str,
    data_home: str | os.PathLike[str] | None,
    cache: bool,
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return images (n, C, H, W) and labels from OpenML, in our scale and label code."""
    folder = os.environ.get(FOLDER_VARIABLE)
    if folder:
        warnings.warn(
            f"{FOLDER_VARIABLE} is set to {folder!r}, which has no file "
            f"{specification.file_name}; fetching the data from OpenML.",
            UserWarning,
            stacklevel=4,
        )
    try:
        fetched = fetch_openml(
            name=specification.openml_name,
            version=specification.openml_version,
            data_home=data_home,
            cache=cache,
            as_frame=False,
            # The other parser is slow, but does not need pandas.
            parser="auto" if importlib.util.find_spec("pandas") else "liac-arff",
        )
    except (OSError, ValueError) as error:
        raise OSError(_neither_route(specification, folder, error)) from error
    try:
        return _in_our_form(fetched, specification, subset)
    except ValueError as error:
        raise OSError(
            f"OpenML sent {specification.openml_name!r} in another form than expected: {error}. "
            "Clear its cached copy in data_home and fetch it again."
        ) from error


def _neither_route(specification: Specification, folder: str | None, error: Exception) -> str:
    """Say why both routes failed and how to open either of them."""
    state = f"is set to {folder!r}, which has no such file" if folder else "is not set"
    return (
        f"{specification.title} could not be loaded. Either set the environment variable "
        f"{FOLDER_VARIABLE} (it {state}) to a folder with a file {specification.file_name} that "
        f"holds {arrays_wanted(specification)}; or connect to the network, so that scikit-learn "
        f"can fetch {specification.openml_name!r}, version {specification.openml_version}, from "
        f"OpenML (it failed with {type(error).__name__}: {error})."
    )


def _in_our_form(
    fetched: Bunch, specification: Specification, subset: str
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Cut out the subset, then bring its scale, label code, dtype and shape into our form."""
    n_train, n_rows = specification.n_train, specification.n_train + specification.n_test
    wanted_shape = (n_rows, int(np.prod(specification.image_shape)))
    if fetched.data.shape != wanted_shape:
        raise ValueError(f"the data has shape {fetched.data.shape} instead of {wanted_shape}")
    rows = {"all": slice(None), "train": slice(n_train), "test": slice(n_train, None)}[subset]
    pixels = fetched.data[rows]
    low, high = specification.openml_pixel_range
    check_range(pixels, low, high, "pixels")
    if specification.dtype == "float32":
        pixels = (np.asarray(pixels, dtype=np.float64) - low) / (high - low)
    images = np.ascontiguousarray(pixels, dtype=specification.dtype)
    # Labels arrive as strings; through float, because some writers say "1.0".
    target = np.asarray(fetched.target[rows]).astype(np.float64).astype(np.int64)
    target -= specification.openml_first_label
    check_range(target, 0, len(specification.target_names) - 1, "labels counted from 0")
    return images.reshape(-1, *specification.image_shape), target


def _checksum_of_arrays(images: NDArray[Any], target: NDArray[np.int64]) -> str:
    """Return the SHA-256 sum of the bytes of both arrays, one after the other."""
    digest = hashlib.sha256(images.data)
    digest.update(target.data)
    return digest.hexdigest()


def _feature_names(specification: Specification) -> list[str]:
    """Name each column by colour, row and column of its pixel."""
    channels, height, width = specification.image_shape
    prefixes = ("pixel",) if channels == 1 else ("red", "green", "blue")
    return [
        f"{prefix}_{row}_{column}"
        for prefix in prefixes
        for row in range(height)
        for column in range(width)
    ]


def _describe(specification: Specification, subset: str, source: str, n_rows: int) -> str:
    """Return the text for ``DESCR``."""
    low, high = specification.pixel_range
    channels, height, width = specification.image_shape
    return (
        f"{specification.title}\n\n{specification.description}\n\n"
        f"Here: {n_rows} rows (subset={subset!r}) from {source}; each row is an image of "
        f"{channels} x {height} x {width} (channels, height, width), {specification.dtype}, "
        f"{low}..{high}.\n"
    )


def _convert_to_frame(bunch: Bunch) -> None:
    """Turn data and target into pandas objects, as ``as_frame=True`` does in scikit-learn."""
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError("as_frame=True needs pandas: pip install pandas") from error
    bunch.data = pd.DataFrame(bunch.data, columns=bunch.feature_names, copy=False)
    bunch.target = pd.Series(bunch.target, name="target")
    bunch.frame = pd.concat([bunch.data, bunch.target], axis=1)
