"""Every public estimator once, with parameters that make it cheap, in several set-ups.

A new estimator joins all tests of this folder by one line in `ESTIMATORS`.
"""

import copy
import functools

import numpy as np
import pytest
import torch
from sklearn.datasets import make_blobs
from skorch.callbacks import Callback
from torch import nn

from skdeepclust import DCN, DDCL, DEPICT, ACOLGARClustering, MIADMClustering, SRKMeans
from skdeepclust.pretraining import DenoisingAutoencoder

N_FEATURES = 6
IMAGE_SHAPE = (1, 6, 6)
EMBEDDING_DIM = 4
N_CLUSTERS = 3

_PRETRAINER = DenoisingAutoencoder(max_epochs=2)
_CLUSTERER = {"n_clusters": N_CLUSTERS, "max_epochs": 3, "pretrain": _PRETRAINER}

_JOINT = {"encoder": "mlp", "train_encoder": True, "anchors": 40, "batch_size": 50}
_JOINT["max_epochs"] = 20

# One line an estimator: the class, and what makes it cheap.
ESTIMATORS = [
    (DenoisingAutoencoder, {"max_epochs": 3}),
    (SRKMeans, {**_CLUSTERER, "warm_up_epochs": 2}),
    (DCN, _CLUSTERER),
    (MIADMClustering, {**_CLUSTERER, "warm_up_epochs": 2}),
    (DEPICT, {**_CLUSTERER, "warm_up_epochs": 2}),
    (DDCL, {**_CLUSTERER, "encoder": "mlp", "max_epochs": 60}),
    (DDCL, {**_CLUSTERER, **_JOINT}),
    (
        ACOLGARClustering,
        {
            "n_clusters": N_CLUSTERS,
            "max_epochs": 3,
            "n_duplicates": 2,
            "batch_size": 24,
            "n_init": 2,
        },
    ),
]


def takes_pretraining(estimator_class):
    """Whether the class starts from an autoencoder, and can do without a network at all."""
    return "pretrain" in estimator_class._get_param_names()


def users_module():
    """Return a module as a user writes it: with batch normalisation, not ending in tanh."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        return nn.Sequential(
            nn.Linear(N_FEATURES, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, EMBEDDING_DIM)
        )


def wide_module():
    """Return a module with more units than there are groups of rows, ending in ReLU."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        return nn.Sequential(nn.Linear(N_FEATURES, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU())


SETUPS = {
    "vectors": {"hidden_dims": (16,)},
    "images": {"encoder": "conv", "image_shape": IMAGE_SHAPE},
    "module": {"encoder": users_module()},
    "identity": {"encoder": "identity", "pretrain": None},
}


def overlapping_blobs(n_rows=150, seed=0):
    """Return rows of three groups that touch, so that some rows change their cluster."""
    X, _ = make_blobs(n_rows, N_FEATURES, centers=N_CLUSTERS, cluster_std=4.0, random_state=seed)
    return X.astype(np.float32)


def separated_blobs(n_rows=150, seed=0, n_features=N_FEATURES):
    """Return rows of three groups far apart, and their true labels."""
    centers = 20.0 * np.eye(N_CLUSTERS, n_features)
    X, y = make_blobs(n_rows, centers=centers, cluster_std=1.0, random_state=seed)
    return X.astype(np.float32), y


def flat_images(n_rows=60, seed=0, noise=40.0):
    """Return images of three noisy patterns in turn as rows, values 0..255."""
    random = np.random.default_rng(seed)
    n_values = int(np.prod(IMAGE_SHAPE))
    patterns = random.integers(0, 256, size=(N_CLUSTERS, n_values))
    images = patterns[np.arange(n_rows) % N_CLUSTERS] + random.normal(0, noise, (n_rows, n_values))
    return images.clip(0, 255).round().astype(np.float32)


class Case:
    """One estimator in one set-up, and data for it."""

    def __init__(self, estimator_class, cheap, setup):
        self.estimator_class = estimator_class
        self.setup = setup
        self.is_clusterer = "n_clusters" in cheap
        self.trains = setup != "identity"
        # Dual competition moves only prototypes on a stream, whatever a fit trains.
        self.trains_on_streams = self.trains and estimator_class is not DDCL
        self.pretrains = takes_pretraining(estimator_class)
        self.settings = {
            **cheap,
            **SETUPS[setup],
            "embedding_dim": EMBEDDING_DIM,
            "random_state": 0,
        }
        self.X = flat_images() if setup == "images" else overlapping_blobs()
        # The tests' data are read-only, so that no call can write into them unnoticed.
        self.X.flags.writeable = False

    def __str__(self):
        joint = " (trained encoder)" if self.settings.get("train_encoder") else ""
        return f"{self.estimator_class.__name__}{joint}-{self.setup}"

    def new(self, **changes):
        """Return an unfitted estimator; the user's objects in it are its own."""
        return self.estimator_class(**{**copy.deepcopy(self.settings), **changes})

    @functools.cached_property
    def fitted(self):
        """An estimator fitted to `X`, shared by tests that do not change it."""
        return self.new().fit(self.X)

    @property
    def without_pretraining(self):
        """The change that leaves the main training as the first one."""
        return {"pretrain": None} if self.pretrains else {}

    @property
    def accurate(self):
        """The changes with which clear groups are found exactly."""
        if self.pretrains:
            return {}
        # A representation of rectified units needs more of them than there are groups.
        changes = {"hidden_dims": (64,), "embedding_dim": 64, "max_epochs": 25}
        return {**changes, "encoder": wide_module()} if self.setup == "module" else changes

    @property
    def first_phase(self):
        """The name of the phase that a cold fit of a network begins with."""
        return "cluster" if self.is_clusterer and not self.pretrains else "pretrain"

    @property
    def all_epochs(self):
        """The change without which a fit may end before `max_epochs`."""
        return {"tol": 0.0} if "tol" in self.estimator_class._get_param_names() else {}

    def fitted_copy(self):
        """Return a fitted estimator that a test may change."""
        return copy.deepcopy(self.fitted)


CASES = [
    Case(cls, cheap, setup)
    for cls, cheap in ESTIMATORS
    for setup in SETUPS
    if setup != "identity" or (takes_pretraining(cls) and "train_encoder" not in cheap)
]
CLUSTERERS = [case for case in CASES if case.is_clusterer]
TRAINED = [case for case in CASES if case.trains]
TRAINED_CLUSTERERS = [case for case in CLUSTERERS if case.trains]
VECTORS = [case for case in CASES if case.setup == "vectors"]
VECTOR_CLUSTERERS = [case for case in VECTORS if case.is_clusterer]
PRETRAINED = [case for case in TRAINED_CLUSTERERS if case.pretrains]
PRETRAINED_VECTORS = [case for case in VECTOR_CLUSTERERS if case.pretrains]
IDENTITY_CLUSTERERS = [case for case in CASES if case.setup == "identity"]


def each(cases):
    """Return the mark that runs a test once for each of `cases`, as its argument `case`."""
    return pytest.mark.parametrize("case", cases, ids=str)


def weights(estimator):
    """Return all weights and buffers of a fitted estimator as arrays by name."""
    state = estimator.net_.module_.state_dict()
    return {name: value.cpu().numpy().copy() for name, value in state.items()}


def read_outs(estimator, X):
    """Return what the predict-like methods give for `X`, by the name of the method."""
    names = ("predict", "predict_proba", "transform")
    return {name: getattr(estimator, name)(X) for name in names if hasattr(estimator, name)}


def assert_same_arrays(found, expected):
    """Assert that two dicts hold the same arrays, bit for bit."""
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        assert found[name].dtype == array.dtype, name
        np.testing.assert_array_equal(found[name], array, err_msg=name)


def assert_labels_agree(estimator, X):
    """Assert promise 1: labels, predictions and probabilities say the same of `X`."""
    probabilities = estimator.predict_proba(X)
    assert probabilities.shape == (len(X), estimator.n_clusters)
    assert (probabilities >= 0).all()
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, rtol=0, atol=1e-6)
    np.testing.assert_array_equal(estimator.predict(X), estimator.labels_)
    np.testing.assert_array_equal(probabilities.argmax(axis=1), estimator.labels_)


class CountEpochs(Callback):
    """A user's callback with a list as parameter and a counter as state."""

    def __init__(self, log=None):
        self.log = log

    def initialize(self):
        self.n_epochs_ = 0
        return self

    def on_epoch_end(self, net, **kwargs):
        self.n_epochs_ += 1
        if self.log is not None:
            self.log.append(self.n_epochs_)


class AtEpoch(Callback):
    """Call `action(net)` when the given epoch of the given phase begins, ends or has a batch."""

    def __init__(self, action, phase, epoch, hook="on_epoch_end"):
        self.action = action
        self.phase = phase
        self.epoch = epoch
        self.hook = hook

    def on_epoch_begin(self, net, **kwargs):
        self._act(net, "on_epoch_begin")

    def on_batch_end(self, net, **kwargs):
        self._act(net, "on_batch_end")

    def on_epoch_end(self, net, **kwargs):
        self._act(net, "on_epoch_end")

    def _act(self, net, hook):
        run = net.run_
        if (run.phase.name, run.epoch + 1, hook) == (self.phase, self.epoch, self.hook):
            self.action(net)
