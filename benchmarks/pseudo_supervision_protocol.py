"""What is run for ACOL-GAR: data, and variants of the default, each different in one thing."""

from dataclasses import dataclass

import numpy as np

from skdeepclust.datasets import fetch_cifar10, fetch_fashion_mnist, fetch_mnist, fetch_usps

from .data import load_data
from .image_encoders import NETWORKS
from .image_maps import IMAGE_MAPS

SEEDS = (0, 1)
N_INIT = 10

_WITHOUT_DUPLICATES = {"n_duplicates": 1, "frobenius_weight": 0.0}
_WITHOUT_REGULARIZATION = {"affinity_weight": 0.0, "balance_weight": 0.0, "frobenius_weight": 0.0}
_SAME_FOR_ALL = {
    "default": {},
    "untrained": {"lr": 1e-12, "max_epochs": 1},
    "classification only": _WITHOUT_DUPLICATES,
}
VARIANTS_OF_IMAGES = {
    **_SAME_FOR_ALL,
    "duplicates, not regularized": _WITHOUT_REGULARIZATION,
    "no balance": {"balance_weight": 0.0},
    "no affinity": {"affinity_weight": 0.0},
    "no Frobenius": {"frobenius_weight": 0.0},
    "Frobenius on activity": {"frobenius_on": "activity"},
    **{f"{k} duplicates": {"n_duplicates": k} for k in (2, 5, 10, 40)},
    "cosine from 3e-3": {"lr": 3e-3, "lr_schedule": "cosine"},
    "half turn": {"transforms": "rotations", "n_transforms": 2},
    "rotations": {"transforms": "rotations"},
    "flips": {"transforms": "flips"},
    **{name: {"transforms": maps} for name, maps in IMAGE_MAPS.items()},
}
VARIANTS_OF_VECTORS = {
    **_SAME_FOR_ALL,
    **{name: {"transforms": name} for name in ("signs", "haar", "permutation")},
    "8 cyclic": {"n_transforms": 8},
    "standardised, not whitened": {"scaling": "standard"},
}


@dataclass
class Split:
    """Rows to train on and rows to score on; the labels only score.

    Attributes
    ----------
    X, new_X : ndarray
        Rows to train on, and rows to score on; the same where there is no test set.
    y, new_y : ndarray
        Their classes.
    image_shape : tuple of int or None
        ``(C, H, W)`` of images.
    """

    X: np.ndarray
    y: np.ndarray
    new_X: np.ndarray
    new_y: np.ndarray
    image_shape: tuple[int, int, int] | None = None

    @property
    def n_clusters(self):
        """The number of classes, which K-means is told."""
        return len(np.unique(self.y))


_IMAGES = {
    "usps": fetch_usps,
    "mnist": fetch_mnist,
    "fashion-mnist": fetch_fashion_mnist,
    "cifar10": fetch_cifar10,
}
_VECTORS = ("pbmc68k", "text20", "text77")
DATA = (*_IMAGES, *_VECTORS)


def load_split(name):
    """Return the :class:`Split` called `name`."""
    if name in _VECTORS:
        data = load_data(name)
        return Split(data.X, data.y, data.X, data.y)
    train, test = (_IMAGES[name](subset=subset) for subset in ("train", "test"))
    return Split(train.data, train.target, test.data, test.target, train.image_shape)


def variants_of(name):
    """Return the variants that fit the data called `name`."""
    return VARIANTS_OF_VECTORS if name in _VECTORS else VARIANTS_OF_IMAGES


def networks_of(name):
    """Return the networks that fit the data called `name`."""
    return {"default": {}} if name in _VECTORS else NETWORKS
