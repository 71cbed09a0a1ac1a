"""The CIFAR-10 photographs."""

import os
from typing import Any

from skdeepclust.datasets._loading import load_images
from skdeepclust.datasets._specifications import Specification

CIFAR10 = Specification(
    title="CIFAR-10",
    file_name="cifar10.npz",
    image_shape=(3, 32, 32),
    dtype="uint8",
    target_names=(
        "airplane",
        "automobile",
        "bird",
        "cat",
        "deer",
        "dog",
        "frog",
        "horse",
        "ship",
        "truck",
    ),
    openml_name="CIFAR_10",
    openml_version=1,
    n_train=50_000,
    n_test=10_000,
    description=(
        "Colour photographs of ten kinds of objects. The whole set has 50,000 training and "
        "10,000 test images; a file in a folder may hold fewer, and pictures that were once "
        "stored as JPEG differ slightly from the originals: compare `n_rows` and `checksum` "
        "before comparing results.\n"
        "Alex Krizhevsky: Learning Multiple Layers of Features from Tiny Images, 2009."
    ),
    channels_last_in_folder=True,
)


def fetch_cifar10(
    *,
    subset: str = "all",
    return_X_y: bool = False,
    as_frame: bool = False,
    data_home: str | os.PathLike[str] | None = None,
    cache: bool = True,
) -> Any:
    """Load the CIFAR-10 photographs.

    The file ``cifar10.npz`` is read from the folder that the environment variable
    ``SKDEEPCLUST_DATA`` names; where there is none, scikit-learn fetches
    ``CIFAR_10`` (version 1) from OpenML. Both ways give the same form.

    =================   ==========================
    Classes                                     10
    Rows                           50,000 + 10,000
    Image                              3 x 32 x 32
    Pixels                           uint8, 0..255
    =================   ==========================

    The file in the folder holds images as (row, column, channel); they are turned. It may hold
    fewer images than the whole set: ``n_rows`` tells, and results from files with different
    ``checksum`` are not to be compared.

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

        data : ndarray of shape (n_rows, 3072), or DataFrame
            One image a row, in the order channel, row, column.
        target : ndarray of shape (n_rows,), or Series
            The classes, 0..9.
        frame : DataFrame or None
            Data and target together, if ``as_frame=True``.
        images : ndarray of shape (n_rows, 3, 32, 32)
            The same memory as ``data``, as images.
        image_shape : tuple
            ``(3, 32, 32)``, to be handed to an estimator that gets ``data``.
        feature_names, target_names : list and ndarray of str
            Names of the columns and of the classes.
        DESCR : str
            What the data is, and where these rows come from.
        source : str
            ``"folder: cifar10.npz"`` or ``"openml"``.
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
    Alex Krizhevsky: Learning Multiple Layers of Features from Tiny Images, 2009.

    Examples
    --------
    A folder with a made-up file of three images:

    >>> import os, tempfile
    >>> from unittest import mock
    >>> import numpy as np
    >>> from skdeepclust.datasets import fetch_cifar10
    >>> images, labels = np.zeros((3, 32, 32, 3), "uint8"), np.array([7, 2, 1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(os.path.join(folder, "cifar10.npz"), X_test=images, y_test=labels)
    ...     with mock.patch.dict(os.environ, SKDEEPCLUST_DATA=folder):
    ...         cifar10 = fetch_cifar10(subset="test")
    >>> cifar10.data.shape, cifar10.image_shape, cifar10.source
    ((3, 3072), (3, 32, 32), 'folder: cifar10.npz')
    """
    return load_images(
        CIFAR10,
        subset=subset,
        return_X_y=return_X_y,
        as_frame=as_frame,
        data_home=data_home,
        cache=cache,
    )
