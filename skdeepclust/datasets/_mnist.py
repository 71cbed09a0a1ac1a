"""The MNIST handwritten digits."""

import os
from typing import Any

from skdeepclust.datasets._loading import load_images
from skdeepclust.datasets._specifications import DIGITS, Specification

MNIST = Specification(
    title="MNIST handwritten digits",
    file_name="mnist.npz",
    image_shape=(1, 28, 28),
    dtype="uint8",
    target_names=DIGITS,
    openml_name="mnist_784",
    openml_version=1,
    n_train=60_000,
    n_test=10_000,
    description=(
        "70,000 grey images of handwritten digits, light strokes on dark ground; the 60,000 "
        "training images come first.\n"
        "Yann LeCun, Corinna Cortes, Christopher J. C. Burges: The MNIST database of "
        "handwritten digits."
    ),
)


def fetch_mnist(
    *,
    subset: str = "all",
    return_X_y: bool = False,
    as_frame: bool = False,
    data_home: str | os.PathLike[str] | None = None,
    cache: bool = True,
) -> Any:
    """Load the MNIST handwritten digits.

    The file ``mnist.npz`` is read from the folder that the environment variable
    ``SKDEEPCLUST_DATA`` names; where there is none, scikit-learn fetches
    ``mnist_784`` (version 1) from OpenML. Both ways give the same form.

    =================   ==========================
    Classes                                     10
    Rows                           60,000 + 10,000
    Image                              1 x 28 x 28
    Pixels                           uint8, 0..255
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

        data : ndarray of shape (n_rows, 784), or DataFrame
            One image a row, in the order channel, row, column.
        target : ndarray of shape (n_rows,), or Series
            The classes, 0..9.
        frame : DataFrame or None
            Data and target together, if ``as_frame=True``.
        images : ndarray of shape (n_rows, 1, 28, 28)
            The same memory as ``data``, as images.
        image_shape : tuple
            ``(1, 28, 28)``, to be handed to an estimator that gets ``data``.
        feature_names, target_names : list and ndarray of str
            Names of the columns and of the classes.
        DESCR : str
            What the data is, and where these rows come from.
        source : str
            ``"folder: mnist.npz"`` or ``"openml"``.
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
    Yann LeCun, Corinna Cortes, Christopher J. C. Burges: The MNIST database of handwritten
    digits.

    Examples
    --------
    A folder with a made-up file of three images:

    >>> import os, tempfile
    >>> from unittest import mock
    >>> import numpy as np
    >>> from skdeepclust.datasets import fetch_mnist
    >>> images, labels = np.zeros((3, 28, 28), "uint8"), np.array([7, 2, 1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(os.path.join(folder, "mnist.npz"), X_test=images, y_test=labels)
    ...     with mock.patch.dict(os.environ, SKDEEPCLUST_DATA=folder):
    ...         mnist = fetch_mnist(subset="test")
    >>> mnist.data.shape, mnist.image_shape, mnist.source
    ((3, 784), (1, 28, 28), 'folder: mnist.npz')
    """
    return load_images(
        MNIST,
        subset=subset,
        return_X_y=return_X_y,
        as_frame=as_frame,
        data_home=data_home,
        cache=cache,
    )
