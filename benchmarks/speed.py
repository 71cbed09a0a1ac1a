"""Speed: the estimators against bare loops, scikit-learn and ClustPy, in one process."""

import math
import os
import sys
from pathlib import Path

import numpy as np
import torch

from .machine import describe_machine
from .speed_epochs import epoch_ratio, refresh_ratio
from .speed_estimators import (
    clustpy_ratio,
    mini_batch_kmeans_ratios,
    partial_fit_ratios,
    predict_ratios,
)
from .speed_networks import NETWORKS
from .speed_pseudo_supervision import IMAGE_SHAPE, pseudo_supervision_ratios
from .storage import RESULTS, plain, read_json, write_json

CENTER_METHODS = ("sr-kmeans", "dcn")
CLASSIFIERS = ("mi-adm", "depict")
METHODS = CENTER_METHODS + CLASSIFIERS
_OF_NETWORKS = {
    "epoch": epoch_ratio,
    "refresh": refresh_ratio,
    "predict": predict_ratios,
    "partial-fit": partial_fit_ratios,
}
# The others have no targets of a classifier, or no bare counterpart was written.
_METHODS_OF_PART = {"refresh": CLASSIFIERS, "partial-fit": CENTER_METHODS}
PARTS = (*_OF_NETWORKS, "mini-batch-k-means", "clustpy", "pseudo-supervision")
_ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def add_arguments(parser):
    """Declare the options of ``python -m benchmarks speed``."""
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--networks", nargs="+", choices=NETWORKS, default=list(NETWORKS))
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--runs", type=int, default=7, help="timed runs of each alternative")
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--results", type=Path, default=RESULTS)


def run(arguments):
    """Measure the wanted parts and store each when it is done."""
    _use_one_thread()
    path = arguments.results / "speed.json"
    results = read_json(path) or {}
    for key in measurement_names(arguments.networks, arguments.methods, arguments.parts):
        entry = measure(key, arguments.rows, arguments.runs)
        if entry is None:
            sys.stdout.write(f"{key}: not run\n")
            continue
        results[key] = plain({**entry, "machine": describe_machine()})
        write_json(path, results)
        sys.stdout.write(f"{key}: {_summary(entry)}\n")
        sys.stdout.flush()
    return 0


def measurement_names(networks=NETWORKS, methods=METHODS, parts=PARTS):
    """Return the names of the measurements: ``part/method/network`` or ``part/method``."""
    names = [
        f"{part}/{method}/{network}"
        for network in networks
        for method in methods
        for part in parts
        if part in _OF_NETWORKS and method in _METHODS_OF_PART.get(part, METHODS)
    ]
    if "mini-batch-k-means" in parts:
        names += [f"mini-batch-k-means/{m}" for m in methods if m in CENTER_METHODS]
    names += ["clustpy/dcn"] if "clustpy" in parts else []
    return names + (["pseudo-supervision/acol-gar"] if "pseudo-supervision" in parts else [])


def measure(name, n_rows, n_runs):
    """Return the measurement called `name`, or None if what it needs is not installed."""
    part, method, *network = name.split("/")
    if network:
        X = noise(n_rows, NETWORKS[network[0]].n_features)
        return _OF_NETWORKS[part](X, network[0], method, n_runs)
    if part == "pseudo-supervision":
        return pseudo_supervision_ratios(noise(n_rows // 10, math.prod(IMAGE_SHAPE)), n_runs)
    if part == "clustpy":
        return clustpy_ratio(noise(n_rows // 4, 784), n_runs)
    return mini_batch_kmeans_ratios(noise(n_rows, 64), method, n_runs)


def noise(n_rows, n_features):
    """Return rows without any structure: training never ends early on them."""
    return np.random.default_rng(0).standard_normal((n_rows, n_features), dtype=np.float32)


def _use_one_thread():
    """Start this command anew with one thread, unless it has one already."""
    if all(os.environ.get(name) == value for name, value in _ONE_THREAD.items()):
        torch.set_num_threads(1)
        return
    command = [sys.executable, "-m", "benchmarks", *sys.argv[1:]]
    os.execve(sys.executable, command, {**os.environ, **_ONE_THREAD})


def _summary(entry):
    if "ratio" in entry:
        return f"{entry['seconds']:.4f} s / {entry['reference_seconds']:.4f} s = " + (
            f"{entry['ratio']:.3f} (processor {entry['cpu_ratio']:.3f})"
        )
    return "; ".join(f"{key} {_summary(e)}" for key, e in entry.items() if isinstance(e, dict))
