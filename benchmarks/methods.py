"""The methods of the accuracy table. None of them is given labels."""

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
from sklearn.cluster import KMeans
from sklearn.frozen import FrozenEstimator
from sklearn.mixture import GaussianMixture

from skdeepclust import DCN, DEPICT, MIADMClustering, SRKMeans
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

    @property
    def is_vectors(self):
        """Whether distances of the input mean something."""
        return self.data_name in protocol.VECTORS

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
    return _named_partition(problem, "ward", *problem.autoencoder())


def autoencoder_path_integral(problem):
    """Path-integral agglomeration of the embedding that SR-K-means starts from."""
    return _named_partition(problem, "path-integral", *problem.autoencoder())


def short_autoencoder_path_integral(problem):
    """Path-integral agglomeration after a short pretraining, to show what its length does."""
    short = problem.autoencoder(**protocol.SHORT_AUTOENCODER)
    return _named_partition(problem, "path-integral", *short)


def _named_partition(problem, name, autoencoder, record):
    embedding = autoencoder.transform(problem.X)
    found = first_partition(embedding, problem.n_clusters, name, random_state=problem.seed)
    details = {"pretraining": record, "epochs": {"pretrain": record["epochs"]}}
    return Outcome(found.labels, {}, "pretrained embedding", embedding, details)


def sr_kmeans(problem):
    """SR-K-means, its settings chosen by the label-free score."""
    return _from_chosen_start(problem, "sr-kmeans", SRKMeans)


def mi_adm(problem):
    """MI-ADM, its settings chosen by the label-free score."""
    return _from_chosen_start(problem, "mi-adm", MIADMClustering)


def depict(problem):
    """DEPICT, its settings chosen by the label-free score."""
    return _from_chosen_start(problem, "depict", DEPICT)


def _from_chosen_start(problem, method, cls):
    """Fit `cls` with each candidate of the protocol from the chosen start; the score chooses."""
    settings = protocol.settings_of(method, problem.data_name)
    autoencoder, record = problem.autoencoder()
    space, points = _selection_space(problem, autoencoder)
    scores = LabelFreeScores(points)
    starts, start_name = _first_partitions(problem, autoencoder, scores)
    tried = []
    for candidate in protocol.candidates_of(method, problem.data_name):
        model = cls(
            problem.n_clusters,
            pretrain=FrozenEstimator(autoencoder),
            image_shape=problem.image_shape,
            random_state=problem.seed,
            init=starts[start_name]["labels"],
            **{**settings, **candidate},
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
        {**settings, "init": start_name, **chosen["parameters"]},
        space,
        points,
        {
            "first_partitions": {name: start["label_free"] for name, start in starts.items()},
            "pretraining": record,
            "epochs": chosen["epochs"],
            "stop_reason": chosen["stop_reason"],
        },
        tried,
    )


def _selection_space(problem, autoencoder):
    """Return the name of the space whose graph gives the score, and the rows in it."""
    if problem.is_vectors:
        return "input", problem.unit_range()
    return "pretrained embedding", autoencoder.transform(problem.X)


def _first_partitions(problem, autoencoder, scores):
    """Return the candidates for the first partition with their scores, and the best one's name."""
    spaces = {"": autoencoder.transform(problem.X)}
    if problem.is_vectors:
        spaces[" of the input"] = problem.unit_range()
    found = {}
    for space, points in spaces.items():
        for name in protocol.SR_KMEANS_INITS:
            start = first_partition(points, problem.n_clusters, name, random_state=problem.seed)
            found[name + space] = {"labels": start.labels, "label_free": scores(start.labels)}
    best = max(found, key=lambda name: found[name]["label_free"][protocol.SELECTION_SCORE])
    return found, best


def chosen_start(problem):
    """The first partition that the label-free score chooses for SR-K-means."""
    autoencoder, record = problem.autoencoder()
    space, points = _selection_space(problem, autoencoder)
    starts, name = _first_partitions(problem, autoencoder, LabelFreeScores(points))
    details = {"pretraining": record, "epochs": {"pretrain": record["epochs"]}}
    return Outcome(starts[name]["labels"], {"init": name}, space, points, details)


def dcn(problem):
    """DCN, from k-means on the embedding of the autoencoder that the protocol gives it."""
    return _dcn(problem, *problem.autoencoder(**protocol.DCN_AUTOENCODER))


def dcn_chosen_start(problem):
    """DCN from the start of SR-K-means."""
    start = chosen_start(problem)
    outcome = _dcn(problem, *problem.autoencoder(), init=start.labels)
    outcome.parameters = {**outcome.parameters, **start.parameters}
    return outcome


def _dcn(problem, autoencoder, record, **init):
    settings = protocol.settings_of("dcn", problem.data_name)
    model = DCN(
        problem.n_clusters,
        pretrain=FrozenEstimator(autoencoder),
        image_shape=problem.image_shape,
        random_state=problem.seed,
        **init,
        **settings,
    ).fit(problem.X)
    details = {
        "pretraining": record,
        "epochs": _epochs(record, model),
        "stop_reason": model.stop_reason_,
    }
    embedding = autoencoder.transform(problem.X)
    return Outcome(model.labels_, settings, "pretrained embedding", embedding, details)


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
    "chosen-start": chosen_start,
    "sr-kmeans": sr_kmeans,
    "mi-adm": mi_adm,
    "depict": depict,
    "dcn": dcn,
    "dcn+chosen-start": dcn_chosen_start,
    "umap+gmm": umap_gaussian_mixture,
    "clustpy-dcn": clustpy_dcn,
    "clustpy-idec": clustpy_idec,
}
