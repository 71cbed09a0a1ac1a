"""The data sets of the benchmarks; the labels are kept apart from what the methods see."""

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

from skdeepclust.datasets import fetch_mnist, fetch_usps


@dataclass
class Data:
    """Rows to cluster and the labels to score the clusters with.

    Attributes
    ----------
    name : str
        Key in :data:`LOADERS`.
    X : ndarray of shape (n_rows, n_features)
        As the file holds it: images are flattened, uint8 stays uint8.
    y : ndarray of shape (n_rows,)
        Classes, for the reported scores only.
    image_shape : tuple of int or None
        ``(C, H, W)`` of image data.
    """

    name: str
    X: np.ndarray
    y: np.ndarray
    image_shape: tuple[int, int, int] | None = None

    @property
    def n_clusters(self):
        """The number of classes, which every method is told."""
        return len(np.unique(self.y))


def load_data(name):
    """Return the :class:`Data` called `name`."""
    return LOADERS[name](name)


def _usps(name):
    usps = fetch_usps(subset="all")
    return Data(name, usps.data, usps.target, usps.image_shape)


def _mnist(name):
    mnist = fetch_mnist(subset="test" if name == "mnist-test" else "all")
    return Data(name, mnist.data, mnist.target, mnist.image_shape)


def _digits(name):
    digits = load_digits()
    return Data(name, digits.data.astype(np.float32), digits.target, (1, 8, 8))


def _vectors_of(file_name):
    """Return a loader of arrays X and y of a file in the folder SKDEEPCLUST_DATA."""

    def load(name):
        folder = os.environ.get("SKDEEPCLUST_DATA")
        path = Path(folder or ".").expanduser() / file_name
        if not folder or not path.is_file():
            raise OSError(
                f"data set {name!r} needs {file_name} in the folder that the environment "
                "variable SKDEEPCLUST_DATA names."
            )
        with np.load(path) as arrays:
            return Data(name, arrays["X"], arrays["y"].astype(np.int64))

    return load


LOADERS = {
    "usps": _usps,
    "mnist-test": _mnist,
    "mnist": _mnist,
    "digits": _digits,
    "pbmc68k": _vectors_of("pbmc68k_reduced.npz"),
    "text20": _vectors_of("text_embeddings.npz"),
    "text77": _vectors_of("text_embeddings_banking77.npz"),
}
