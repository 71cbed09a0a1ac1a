"""The USPS handwritten digits."""

import os
from typing import Any

from skdeepclust.datasets._loading import load_images
from skdeepclust.datasets._specifications import DIGITS, Specification

USPS = Specification(
    title="USPS handwritten digits",
    file_name="usps.npz",
    image_shape=(1, 16, 16),
    dtype="float32",
    target_names=DIGITS,
    openml_name="USPS",
    openml_version=2,
    n_train=7_291,
    n_test=2_007,
    description=(
        "9,298 grey images of digits from envelopes, light strokes on dark ground; the 7,291 "
        "training images come first. The test images are known to be the harder ones.\n"
        "The classic files hold values from -1 to 1; here they are moved to 0..1.\n"
        "Jonathan J. Hull: A database for handwritten text recognition research, 1994."
    ),
    openml_pixel_range=(-1, 1),
    openml_first_label=1,
)


def fetch_usps(
    *,
    subset: str = "all",
    return_X_y: bool = False,
    as_frame: bool = False,
    data_home: str | os.PathLike[str] | None = None,
    cache: bool = True,
) -> Any:
    """Load the USPS handwritten digits.

    The file ``usps.npz`` is read from the folder that the environment variable
    ``SKDEEPCLUST_DATA`` names; where there is none, scikit-learn fetches
    ``USPS`` (version 2) from OpenML. Both ways give the same form.

    =================   ==========================
    Classes                                     10
    Rows                             7,291 + 2,007
    Image                              1 x 16 x 16
    Pixels                           float32, 0..1
    =================   ==========================

    Parameters
    ----------
    subset : {"all", "train", "test"}, default="all"
        The rows to return; ``"all"`` is the training part followed by the test part.
    return_X_y : bool, default=False
        If True, return ``(data, target)`` instead of a Bunch.
    as_frame : bool, default=False
        If True, data and target are pandas objects.
    data_home : str or path-like, default=None
        Where scikit-learn keeps what it downloads; None is its own default. It plays no part
        when the file is read from the folder.
    cache : bool, default=True
        Whether scikit-learn keeps what it downloads.

    Returns
    -------
    bunch : :class:`~sklearn.utils.Bunch`
        Dictionary-like object with the attributes

        data : ndarray of shape (n_rows, 256), or DataFrame
            One image a row, in the order channel, row, column.
        target : ndarray of shape (n_rows,), or Series
            The classes, 0..9.
        frame : DataFrame or None
            Data and target together, if ``as_frame=True``.
        images : ndarray of shape (n_rows, 1, 16, 16)
            The same memory as ``data``, as images.
        image_shape : tuple
            ``(1, 16, 16)``, to be handed to an estimator that gets ``data``.
        feature_names, target_names : list and ndarray of str
            Names of the columns and of the classes.
        DESCR : str
            What the data is, and where these rows come from.
        source : str
            ``"folder: usps.npz"`` or ``"openml"``.
        n_rows : int
            Number of rows returned.
        checksum : str
            SHA-256 sum of the file; for OpenML of the bytes of the returned ``data`` followed
            by those of ``target``.

    (data, target) : tuple
        If ``return_X_y=True``.

    Raises
    ------
    ValueError
        If ``subset`` is none of the three words.
    OSError
        If the data is found neither way, or what was found is damaged.

    Warns
    -----
    UserWarning
        If ``SKDEEPCLUST_DATA`` is set, but its folder lacks the file, so that OpenML is asked.

    References
    ----------
    Jonathan J. Hull: A database for handwritten text recognition research, 1994.

    Examples
    --------
    A folder with a made-up file of three images:

    >>> import os, tempfile
    >>> from unittest import mock
    >>> import numpy as np
    >>> from skdeepclust.datasets import fetch_usps
    >>> images, labels = np.zeros((3, 16, 16), "float32"), np.array([7, 2, 1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(os.path.join(folder, "usps.npz"), X_test=images, y_test=labels)
    ...     with mock.patch.dict(os.environ, SKDEEPCLUST_DATA=folder):
    ...         usps = fetch_usps(subset="test")
    >>> usps.data.shape, usps.image_shape, usps.source
    ((3, 256), (1, 16, 16), 'folder: usps.npz')
    """
    return load_images(
        USPS,
        subset=subset,
        return_X_y=return_X_y,
        as_frame=as_frame,
        data_home=data_home,
        cache=cache,
    )
