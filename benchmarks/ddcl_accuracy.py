"""DDCL with its defaults beside K-means and mini-batch K-means, on the same rows."""

import time

import numpy as np
from sklearn.cluster import KMeans, MiniBatchKMeans
from sklearn.decomposition import PCA

from skdeepclust import DDCL

from .data import load_data
from .ddcl_cells import partition_scores

METHODS = {
    "DDCL": lambda k, seed: DDCL(k, random_state=seed),
    "DDCL, temperature_end=0.1": lambda k, seed: DDCL(k, temperature_end=0.1, random_state=seed),
    "KMeans, n_init=10": lambda k, seed: KMeans(k, n_init=10, random_state=seed),
    "KMeans, n_init=1": lambda k, seed: KMeans(k, n_init=1, random_state=seed),
    "MiniBatchKMeans": lambda k, seed: MiniBatchKMeans(k, random_state=seed),
}
DATA = (
    "digits",
    "usps",
    "mnist, 64 principal components",
    "mnist, frozen autoencoder",
    "text20",
    "text77",
    "pbmc68k",
)
# One encoder for all seeds, which are those of the clustering: its own would hide their spread.
AUTOENCODER = {"hidden_dims": [500, 500], "max_epochs": 20, "random_state": 0}


def measure(cells, seeds, autoencoders):
    """Fit every method with every seed to all data sets."""
    for name in DATA:
        # All cells may be there already; loading takes longer than looking.
        loaded = []

        def data(name=name, loaded=loaded):
            if not loaded:
                loaded.append(rows_and_classes(name, autoencoders))
            return loaded[0]

        for seed in seeds:
            for method in METHODS:
                cells.add(name, method, seed, lambda m=method, s=seed, d=data: _fit(m, s, *d()))


def rows_and_classes(name, autoencoders):
    """Return the rows of a data set, or of its embedding, as float32 and their classes."""
    base, _, space = name.partition(", ")
    data = load_data(base)
    X = data.X.reshape(len(data.X), -1)
    if space == "frozen autoencoder":
        parameters = {**AUTOENCODER, "embedding_dim": 10}
        return autoencoders.get(data.X, parameters)[0].transform(data.X), data.y
    X = X.astype(np.float32) / {"digits": 16, "mnist": 255}.get(base, 1)
    if space:
        X = PCA(64, random_state=0).fit_transform(X)
    return X.astype(np.float32), data.y


def _fit(method, seed, X, y):
    model = METHODS[method](len(np.unique(y)), seed)
    started = time.perf_counter()
    model.fit(X)
    seconds = time.perf_counter() - started
    scores = partition_scores(X, y, model.labels_, model.cluster_centers_)
    return {**scores, "seconds": seconds, "n_rows": len(X), "n_features": X.shape[1]}
