"""The methods of the accuracy table. None of them is given labels."""

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
from sklearn.cluster import AgglomerativeClustering, KMeans
from sklearn.frozen import FrozenEstimator
from sklearn.mixture import GaussianMixture

from skdeepclust import DCN, SRKMeans
from skdeepclust.training.partition import first_partition

from . import protocol
from .label_free import LabelFreeScores
from .machine import is_installed
from .pretrained import PretrainedAutoencoders


class NotInstalledError(ImportError):
    """A method needs a package that is not there; the cell stays `not run`."""


@dataclass
class Problem:
    """What a method is given: rows, number of clusters, image shape and seed."""

    data_name: str
    X: np.ndarray
    n_clusters: int
    image_shape: tuple[int, int, int] | None
    seed: int
    autoencoders: PretrainedAutoencoders

    def autoencoder(self, **changes):
        """Return the fitted autoencoder of this data set and seed, and how it was made."""
        parameters = {
            **protocol.autoencoder_parameters(self.data_name),
            **changes,
            "image_shape": self.image_shape,
            "random_state": self.seed,
        }
        return self.autoencoders.get(self.X, parameters)

    def unit_range(self):
        """Return the rows for methods without a scaling of their own; pixels in 0..1."""
        rows = self.X.reshape(len(self.X), -1).astype(np.float32)
        return rows / np.float32(255) if self.X.dtype == np.uint8 else rows


@dataclass
class Outcome:
    """What a method returns.

    Attributes
    ----------
    labels : ndarray of shape (n_rows,)
    parameters : dict
    space : {"input", "pretrained embedding"}
        Where the label-free scores are measured.
    points : ndarray of shape (n_rows, n_dimensions)
        The rows in that space.
    details : dict
        Epochs a phase, seconds of the pretraining and the like.
    tried : list of dict
        Every configuration that was fitted, each with its labels.
    """

    labels: np.ndarray
    parameters: dict
    space: str
    points: np.ndarray
    details: dict = field(default_factory=dict)
    tried: list = field(default_factory=list)


def kmeans(problem):
    """K-means on the input."""
    rows = problem.unit_range()
    model = KMeans(problem.n_clusters, random_state=problem.seed, **protocol.KMEANS)
    return Outcome(model.fit_predict(rows), protocol.KMEANS, "input", rows)


def autoencoder_kmeans(problem):
    """K-means on the embedding that SR-K-means starts from."""
    model = KMeans(problem.n_clusters, random_state=problem.seed, **protocol.KMEANS)
    return _on_embedding(problem, model, protocol.KMEANS)


def autoencoder_ward(problem):
    """Ward's agglomeration of the embedding that SR-K-means starts from."""
    return _on_embedding(problem, AgglomerativeClustering(problem.n_clusters), {"linkage": "ward"})


def autoencoder_path_integral(problem):
    """Path-integral agglomeration of the embedding that SR-K-means starts from."""
    return _path_integral(problem, *problem.autoencoder())


def short_autoencoder_path_integral(problem):
    """Path-integral agglomeration after a short pretraining, to show what its length does."""
    return _path_integral(problem, *problem.autoencoder(**protocol.SHORT_AUTOENCODER))


def _path_integral(problem, autoencoder, record):
    embedding = autoencoder.transform(problem.X)
    found = first_partition(
        embedding, problem.n_clusters, "path-integral", random_state=problem.seed
    )
    details = {"pretraining": record, "epochs": {"pretrain": record["epochs"]}}
    return Outcome(found.labels, {}, "pretrained embedding", embedding, details)


def sr_kmeans(problem):
    """SR-K-means, its settings chosen by the label-free score."""
    autoencoder, record = problem.autoencoder()
    embedding = autoencoder.transform(problem.X)
    scores = LabelFreeScores(embedding)
    starts = _first_partitions(problem, embedding, scores)
    start_name = max(starts, key=lambda name: starts[name]["label_free"][protocol.SELECTION_SCORE])
    tried = []
    for candidate in protocol.SR_KMEANS_CANDIDATES:
        model = SRKMeans(
            problem.n_clusters,
            pretrain=FrozenEstimator(autoencoder),
            image_shape=problem.image_shape,
            random_state=problem.seed,
            init=starts[start_name]["labels"],
            **{**protocol.SR_KMEANS, **candidate},
        ).fit(problem.X)
        tried.append(
            {
                "parameters": candidate,
                "labels": model.labels_,
                "label_free": scores(model.labels_),
                "epochs": _epochs(record, model),
                "stop_reason": model.stop_reason_,
            }
        )
    chosen = max(tried, key=lambda entry: entry["label_free"][protocol.SELECTION_SCORE])
    for entry in tried:
        entry["chosen"] = entry is chosen
    return Outcome(
        chosen["labels"],
        {**protocol.SR_KMEANS, "init": start_name, **chosen["parameters"]},
        "pretrained embedding",
        embedding,
        {
            "first_partitions": {name: start["label_free"] for name, start in starts.items()},
            "pretraining": record,
            "epochs": chosen["epochs"],
            "stop_reason": chosen["stop_reason"],
        },
        tried,
    )


def _first_partitions(problem, embedding, scores):
    """Return the candidates for the first partition with their label-free scores."""
    found = {}
    for name in protocol.SR_KMEANS_INITS:
        start = first_partition(embedding, problem.n_clusters, name, random_state=problem.seed)
        found[name] = {"labels": start.labels, "label_free": scores(start.labels)}
    return found


def dcn(problem):
    """DCN, from the autoencoder that the protocol gives it."""
    autoencoder, record = problem.autoencoder(**protocol.DCN_AUTOENCODER)
    model = DCN(
        problem.n_clusters,
        pretrain=FrozenEstimator(autoencoder),
        image_shape=problem.image_shape,
        random_state=problem.seed,
        **protocol.DCN,
    ).fit(problem.X)
    details = {
        "pretraining": record,
        "epochs": _epochs(record, model),
        "stop_reason": model.stop_reason_,
    }
    embedding = autoencoder.transform(problem.X)
    return Outcome(model.labels_, protocol.DCN, "pretrained embedding", embedding, details)


def umap_gaussian_mixture(problem):
    """A Gaussian mixture on UMAP's coordinates."""
    _require("umap-learn")
    from umap import UMAP

    rows = problem.unit_range()
    coordinates = UMAP(random_state=problem.seed, **protocol.UMAP).fit_transform(rows)
    mixture = GaussianMixture(problem.n_clusters, n_init=1, random_state=problem.seed)
    # Close clusters of UMAP have covariances that float32 cannot invert.
    labels = mixture.fit_predict(coordinates.astype(np.float64))
    return Outcome(labels, protocol.UMAP, "input", rows)


def clustpy_dcn(problem):
    """ClustPy's DCN with its defaults."""
    return _clustpy(problem, "DCN")


def clustpy_idec(problem):
    """ClustPy's IDEC with its defaults."""
    return _clustpy(problem, "IDEC")


def _clustpy(problem, name):
    _require("clustpy")
    import clustpy.deep

    rows = problem.unit_range()
    model = getattr(clustpy.deep, name)(n_clusters=problem.n_clusters, random_state=problem.seed)
    return Outcome(model.fit_predict(rows), {}, "input", rows)


def _on_embedding(problem, model, parameters):
    autoencoder, record = problem.autoencoder()
    embedding = autoencoder.transform(problem.X)
    details = {"pretraining": record, "epochs": {"pretrain": record["epochs"]}}
    labels = model.fit_predict(embedding)
    return Outcome(labels, parameters, "pretrained embedding", embedding, details)


def _epochs(record, model):
    """Return the epochs of each phase, those of the shared pretraining among them."""
    return {"pretrain": record["epochs"], **Counter(e["phase"] for e in model.history_)}


def _require(package):
    if not is_installed(package):
        raise NotInstalledError(f"{package} is not installed")


METHODS = {
    "kmeans": kmeans,
    "ae+kmeans": autoencoder_kmeans,
    "ae+ward": autoencoder_ward,
    "ae+path-integral": autoencoder_path_integral,
    "short-ae+path-integral": short_autoencoder_path_integral,
    "sr-kmeans": sr_kmeans,
    "dcn": dcn,
    "umap+gmm": umap_gaussian_mixture,
    "clustpy-dcn": clustpy_dcn,
    "clustpy-idec": clustpy_idec,
}
