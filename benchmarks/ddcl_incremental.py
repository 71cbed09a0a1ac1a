"""Block 6: small batches of a stream, from prototypes together and from fitted ones."""

from itertools import product

import numpy as np
from sklearn.cluster import MiniBatchKMeans

from skdeepclust import DDCL
from skdeepclust.metrics import clustering_accuracy

from .ddcl_accuracy import rows_and_classes

_N_FIRST, _N_MNIST = 100, 20_000
BATCH_SIZES = (16, 32, 64)
TEMPERATURES = (0.2, 0.5, 2.0)
MAX_COUNTS = (None, 200)


def measure(cells, seeds, autoencoders):
    """Stream digits and 20,000 images of MNIST once, shuffled and class by class."""
    for data in ("digits", "mnist, 64 principal components"):
        X, y = rows_and_classes(data, autoencoders)
        # In units of the paper's digits the critical temperatures are near 1.4.
        X = X if data == "digits" else X * np.float32(0.26)
        for seed in seeds:
            order = np.random.default_rng(seed).permutation(len(X))[:_N_MNIST]
            drift = order[np.argsort(y[order], kind="stable")]
            for size, temperature, start in product(BATCH_SIZES, TEMPERATURES, ("mean", "fit")):
                row = f"DDCL, from the {start}, T={temperature}, batches of {size}"
                cells.add(
                    f"{data}: shuffled",
                    row,
                    seed,
                    lambda a=(X[order], y[order], size, temperature, start, None, seed): _stream(
                        *a
                    ),
                )
            for max_count in MAX_COUNTS:
                cells.add(
                    f"{data}: class by class",
                    f"DDCL, max_count={max_count}",
                    seed,
                    lambda a=(X[drift], y[drift], 64, 0.5, "mean", max_count, seed): _stream(*a),
                )
            for order_name, rows in (("shuffled", order), ("class by class", drift)):
                cells.add(
                    f"{data}: {order_name}",
                    "MiniBatchKMeans, batches of 64",
                    seed,
                    lambda a=(X[rows], y[rows], seed): _kmeans_stream(*a),
                )


def _stream(X, y, size, temperature, start, max_count, seed):
    fixed = {"temperature_start": temperature, "temperature_end": temperature}
    # A single step leaves the prototypes where they were drawn, near the mean.
    epochs = 1 if start == "mean" else "auto"
    model = DDCL(
        10,
        temperature_scale=None,
        max_epochs=epochs,
        max_count=max_count,
        random_state=seed,
        **fixed,
    ).fit(X[:_N_FIRST])
    separations = [_separation(model.cluster_centers_)]
    for begin in range(_N_FIRST, len(X), size):
        model.partial_fit(X[begin : begin + size])
        separations.append(_separation(model.cluster_centers_))
    steps = np.diff(separations)
    return {
        "acc": clustering_accuracy(y, model.predict(X)),
        "first_separation": separations[0],
        "last_separation": separations[-1],
        "share_rising": float((steps > 0).mean()),
    }


def _separation(centers):
    pairs = np.triu_indices(len(centers), 1)
    return float(np.linalg.norm(centers[pairs[0]] - centers[pairs[1]], axis=1).mean())


def _kmeans_stream(X, y, seed):
    model = MiniBatchKMeans(10, random_state=seed)
    model.partial_fit(X[:_N_FIRST])
    for begin in range(_N_FIRST, len(X), 64):
        model.partial_fit(X[begin : begin + 64])
    return {"acc": clustering_accuracy(y, model.predict(X))}
