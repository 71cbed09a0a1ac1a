"""Imbalanced classes: what a given or adaptive prior changes against the uniform one."""

import sys
from pathlib import Path

import numpy as np
import torch
from sklearn.frozen import FrozenEstimator

from skdeepclust import DEPICT, MIADMClustering, SRKMeans
from skdeepclust._class_prior import matched_by_size
from skdeepclust.datasets import fetch_mnist
from skdeepclust.losses import (
    critical_temperature,
    penalized_soft_assignments,
    rescaled_soft_assignments,
    soft_assignments,
    weighted_centers,
)
from skdeepclust.pretraining import DenoisingAutoencoder
from skdeepclust.training.partition import first_partition

from .accuracy import label_scores
from .data import load_data
from .machine import describe_machine
from .storage import RESULTS, plain, read_json, write_json

SEEDS = (0, 1, 2, 3, 4)
# The largest class has so many times the rows of the smallest; between them a geometric series.
_RATIO = 10
_SHARE_OF_CRITICAL = 0.1
_FROZEN_STEPS = 100
# Without a warm-up, and with larger steps than the default: trained until it agrees with the
# start, a network of few rows hardly leaves it, whatever the prior.
_TRAINING = {"warm_up_epochs": 0, "max_epochs": 30, "lr": 1e-3}
_PRETRAINING = {"mnist 1:10": {"max_epochs": 60}, "pbmc68k": {"max_epochs": 200}}
DATA = tuple(_PRETRAINING)


def add_arguments(parser):
    """Declare the options of ``python -m benchmarks imbalance``."""
    parser.add_argument("--data", nargs="+", choices=DATA, default=list(DATA))
    parser.add_argument("--seeds", nargs="+", type=int, default=list(SEEDS))
    parser.add_argument("--results", type=Path, default=RESULTS)


def run(arguments):
    """Measure what is not stored: all methods and priors of one data set and seed at a time."""
    path = arguments.results / "imbalance.json"
    for name in arguments.data:
        for seed in arguments.seeds:
            results = read_json(path) or {}
            if str(seed) in results.get(name, {}):
                continue
            cells = measure(*load(name, seed), seed, _PRETRAINING[name])
            results.setdefault(name, {})[str(seed)] = plain(
                {"cells": cells, "machine": describe_machine()}
            )
            write_json(path, results)
            sys.stdout.write(f"{name} seed {seed}: {len(cells)} cells\n")
            sys.stdout.flush()
    return 0


def load(name, seed):
    """Return rows and classes; which classes of MNIST are large depends on the seed."""
    if name == "pbmc68k":
        data = load_data(name)
        return data.X, data.y
    mnist = fetch_mnist(subset="test")
    return imbalanced(mnist.data, mnist.target.astype(int), seed)


def imbalanced(X, y, seed, ratio=_RATIO):
    """Return a random subset whose class sizes fall in a geometric series from 1 to 1 / ratio."""
    generator = np.random.default_rng(seed)
    classes = generator.permutation(np.unique(y))
    largest = np.bincount(y).min()
    sizes = largest * float(ratio) ** -np.linspace(0, 1, len(classes))
    chosen = [
        generator.choice(np.flatnonzero(y == c), round(size), replace=False)
        for c, size in zip(classes, sizes, strict=True)
    ]
    rows = np.sort(np.concatenate(chosen))
    return X[rows], y[rows]


def measure(X, y, seed, pretraining):
    """Return the scores of each method and prior, all from one autoencoder and one start."""
    autoencoder = DenoisingAutoencoder(random_state=seed, **pretraining).fit(X)
    embedding = autoencoder.transform(X)
    proportions = np.unique(y, return_counts=True)[1] / len(y)
    n_clusters = len(proportions)
    start = first_partition(embedding, n_clusters, "k-means++", random_state=seed).labels
    # The proportions are known, not whose they are.
    given = matched_by_size(torch.from_numpy(proportions), torch.from_numpy(start)).numpy()
    labels = {"start / none": start}
    common = {
        "pretrain": FrozenEstimator(autoencoder),
        "init": start,
        "random_state": seed,
        **_TRAINING,
    }
    for cls in (MIADMClustering, DEPICT):
        for prior_name, prior in (("uniform", None), ("given", given), ("adaptive", "adaptive")):
            model = cls(n_clusters, class_prior=prior, **_update_of(cls, prior), **common)
            labels[f"{cls.__name__} / {prior_name}"] = model.fit(X).labels_
    for prior_name, prior in (("uniform", None), ("given", given)):
        model = SRKMeans(n_clusters, class_prior=prior, **common)
        labels[f"SRKMeans / {prior_name}"] = model.fit(X).labels_
    for name, found in soft_kmeans_variants(embedding, start, given).items():
        labels[f"soft K-means, embedding fixed / {name}"] = found
    return {
        name: {**label_scores(y, found), "n_used_clusters": len(np.unique(found))}
        for name, found in labels.items()
    }


def _update_of(cls, prior):
    """Return the exact update where there is a prior: the closed form is further off then."""
    return {"q_update": "exact"} if cls is MIADMClustering and prior is not None else {}


def soft_kmeans_variants(embedding, start, prior):
    """Return the labels after the alternation of assignments and centres on a fixed embedding."""
    z = torch.from_numpy(embedding).double()
    d = torch.from_numpy(prior)
    temperature = _SHARE_OF_CRITICAL * float(critical_temperature(z))
    rules = {
        "uniform": lambda c: soft_assignments(z, c, temperature),
        "given, (a) mixture weights": lambda c: soft_assignments(z, c, temperature, d.log()),
        "given, (b) penalty": lambda c: penalized_soft_assignments(z, c, temperature, 1.0, d.log()),
        "given, (c) rescaled": lambda c: rescaled_soft_assignments(z, c, temperature, d),
    }
    return {name: _alternate(z, start, len(prior), assign) for name, assign in rules.items()}


def _alternate(z, start, n_clusters, assign):
    assignments = torch.nn.functional.one_hot(torch.from_numpy(start).long(), n_clusters).double()
    centers = weighted_centers(assignments, z)
    for _ in range(_FROZEN_STEPS):
        assignments = assign(centers)
        centers = weighted_centers(assignments, z)
    return assign(centers).argmax(dim=1).numpy()
