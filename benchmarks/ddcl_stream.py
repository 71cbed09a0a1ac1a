"""One pass over a stream of MNIST: predict a batch first, then learn it."""

import time

import numpy as np
from sklearn.cluster import MiniBatchKMeans

from skdeepclust import DDCL
from skdeepclust.metrics import clustering_accuracy

from .ddcl_accuracy import rows_and_classes
from .ddcl_cells import quantization_error

N_ROWS, BATCH_SIZE = 60_000, 256
# Batches between two points of the curves.
_EVERY = 5
ORDERS = ("shuffled", "class by class")
METHODS = {
    "DDCL": lambda seed: DDCL(10, random_state=seed),
    "DDCL, max_count=1000": lambda seed: DDCL(10, max_count=1_000, random_state=seed),
    "DDCL, sparse": lambda seed: DDCL(10, assignment="sparse", random_state=seed),
    "MiniBatchKMeans": lambda seed: MiniBatchKMeans(10, random_state=seed),
}


def measure(cells, seeds, autoencoders):
    """Stream the training images in both orders; the methods take turns seed by seed."""
    X, y = rows_and_classes("mnist, 64 principal components", autoencoders)
    X, y = X[:N_ROWS], y[:N_ROWS]
    for order in ORDERS:
        for seed in seeds:
            rows = np.random.default_rng(seed).permutation(N_ROWS)
            if order == "class by class":
                rows = rows[np.argsort(y[rows], kind="stable")]
            for method in METHODS:
                cells.add(
                    order, method, seed, lambda m=method, s=seed, r=rows: _pass(m, s, X[r], y[r])
                )


def _pass(method, seed, X, y):
    model, seconds, first = METHODS[method](seed), 0.0, 0.0
    predicted, curve = [], []
    n_first = BATCH_SIZE
    for number, start in enumerate(range(0, len(X), BATCH_SIZE)):
        batch = X[start : start + BATCH_SIZE]
        if start >= n_first:
            predicted.append(model.predict(batch))
        started = time.perf_counter()
        model.partial_fit(batch)
        elapsed = time.perf_counter() - started
        # The first call starts the method as a fit does, and is told apart.
        seconds, first = (seconds + elapsed, first) if start else (seconds, elapsed)
        if predicted and number % _EVERY == 0:
            labels = np.concatenate(predicted)
            known = y[n_first : n_first + len(labels)]
            curve.append([start + len(batch), clustering_accuracy(known, labels)])
    labels = np.concatenate(predicted)
    return {
        "acc": clustering_accuracy(y[n_first:], labels),
        "final_acc": clustering_accuracy(y, model.predict(X)),
        "quantization_error": quantization_error(X, model.cluster_centers_),
        "rows_per_second": (len(X) - n_first) / seconds,
        "start_seconds": first,
        "curve": curve,
        "seconds": first + seconds,
    }
