"""A million rows of 64 features and 100 clusters: memory beside the rows, and time."""

import json
import os
import sys
import time

import numpy as np

from .ddcl_cells import quantization_error
from .memory import anonymous_mb, watch

N_ROWS, N_FEATURES, N_CLUSTERS = 1_000_000, 64, 100
METHODS = ("DDCL", "MiniBatchKMeans")


def measure(cells, seeds, autoencoders):
    """Fit each method in a process of its own, the two in turn, three times."""
    for seed in seeds[:3]:
        for method in METHODS:
            cells.add("1,000,000 rows", method, seed, lambda m=method, s=seed: _watched(m, s))


def _watched(method, seed):
    command = [sys.executable, "-m", "benchmarks.ddcl_size", method, str(seed)]
    peak, _, found = watch(command, os.environ)
    # The rows lie in memory before the fit starts.
    return {**found, "peak_over_start_mb": peak - found["start_mb"]}


def rows(seed):
    """Return rows around as many centres as there are clusters, drawn in float32."""
    generator = np.random.default_rng(seed)
    centers = generator.normal(size=(N_CLUSTERS, N_FEATURES)).astype(np.float32)
    X = generator.standard_normal((N_ROWS, N_FEATURES), dtype=np.float32)
    for start in range(0, N_ROWS, 10_000):
        X[start : start + 10_000] += centers[generator.integers(0, N_CLUSTERS, 10_000)]
    return X


def _fit(method, seed):
    from sklearn.cluster import MiniBatchKMeans

    from skdeepclust import DDCL

    X = rows(seed)
    model = {"DDCL": DDCL, "MiniBatchKMeans": MiniBatchKMeans}[method](
        N_CLUSTERS, random_state=seed
    )
    start = anonymous_mb()
    started = time.perf_counter()
    model.fit(X)
    seconds = time.perf_counter() - started
    error = quantization_error(X[:100_000], model.cluster_centers_)
    return {"start_mb": start, "seconds": seconds, "quantization_error": error}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(_fit(sys.argv[1], int(sys.argv[2]))))
