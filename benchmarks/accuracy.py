"""Accuracy cells: one (method, data set, seed) each, stored when done."""

import sys
import tempfile
import time
import traceback
from pathlib import Path

import numpy as np
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from skdeepclust.metrics import clustering_accuracy

from . import protocol
from .data import LOADERS, load_data
from .label_free import LabelFreeScores
from .machine import describe_machine
from .methods import METHODS, NotInstalledError, Problem
from .pretrained import PretrainedAutoencoders
from .storage import RESULTS, cell_path, plain, read_json, write_json


def add_arguments(parser):
    """Declare the options of ``python -m benchmarks accuracy``."""
    default_cache = Path(tempfile.gettempdir()) / "skdeepclust-benchmarks"
    parser.add_argument("--data", nargs="+", choices=LOADERS, default=list(LOADERS))
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--seeds", nargs="+", type=int, default=list(protocol.SEEDS))
    parser.add_argument(
        "--budget", type=float, metavar="SECONDS", help="start no further cell after this time"
    )
    parser.add_argument("--force", action="store_true", help="run stored cells again")
    parser.add_argument(
        "--cache", type=Path, default=default_cache, help="folder for fitted autoencoders"
    )
    parser.add_argument("--results", type=Path, default=RESULTS)


def run(arguments):
    """Run the cells that are wanted and not stored; return 1 if one of them failed."""
    autoencoders = PretrainedAutoencoders(arguments.cache)
    started = time.perf_counter()
    n_failed = 0
    for name, seed, method in cells(arguments):
        if arguments.budget is not None and time.perf_counter() - started >= arguments.budget:
            _say(f"the budget of {arguments.budget:g} s is spent")
            break
        try:
            cell = run_cell(load_data(name), method, seed, autoencoders)
        except NotInstalledError as error:
            _say(f"{name} {method} seed {seed}: not run, {error}")
        except Exception:
            # One broken method must not cost the other cells of a long night.
            traceback.print_exc()
            _say(f"{name} {method} seed {seed}: failed")
            n_failed += 1
        else:
            write_json(cell_path(arguments.results, name, method, seed), cell)
            _say(
                f"{name} {method} seed {seed}: ACC {cell['acc']:.3f} NMI {cell['nmi']:.3f} "
                f"ARI {cell['ari']:.3f} in {cell['seconds']:.1f} s"
            )
    return 1 if n_failed else 0


def cells(arguments):
    """Return the wanted (data set, seed, method) that are not stored, those of one autoencoder
    next to each other.
    """
    return [
        (name, seed, method)
        for name in arguments.data
        for seed in arguments.seeds
        for method in arguments.methods
        if arguments.force or read_json(cell_path(arguments.results, name, method, seed)) is None
    ]


def run_cell(data, method, seed, autoencoders):
    """Return the content of one cell.

    ``seconds`` are those of the method with the pretraining it builds on, whether or not the
    autoencoder was taken from the cache.
    """
    problem = Problem(
        data.name, data.X, data.n_clusters, data.image_shape, seed, TimedAutoencoders(autoencoders)
    )
    started = time.perf_counter()
    outcome = METHODS[method](problem)
    seconds = time.perf_counter() - started
    pretraining = outcome.details.get("pretraining", {})
    seconds += pretraining.get("seconds", 0.0) - problem.autoencoders.seconds
    return plain(
        {
            "method": method,
            "data": data.name,
            "seed": seed,
            **label_scores(data.y, outcome.labels),
            "n_rows": len(data.X),
            "n_features": data.X.shape[1],
            "n_clusters": data.n_clusters,
            "n_used_clusters": len(np.unique(outcome.labels)),
            "seconds": seconds,
            "parameters": outcome.parameters,
            "label_free": {
                "space": outcome.space,
                **LabelFreeScores(outcome.points)(outcome.labels),
            },
            **outcome.details,
            "tried": [_scored(data.y, entry) for entry in outcome.tried],
            "selection_score": protocol.SELECTION_SCORE if outcome.tried else None,
            "machine": describe_machine(),
        }
    )


def label_scores(classes, labels):
    """Return ACC, NMI (geometric mean) and ARI of `labels` against `classes`."""
    return {
        "acc": clustering_accuracy(classes, labels),
        "nmi": normalized_mutual_info_score(classes, labels, average_method="geometric"),
        "ari": adjusted_rand_score(classes, labels),
    }


class TimedAutoencoders:
    """Hands out autoencoders and counts the seconds that takes."""

    def __init__(self, autoencoders):
        self._autoencoders = autoencoders
        self.seconds = 0.0

    def get(self, X, parameters):
        """Return what :meth:`PretrainedAutoencoders.get` does."""
        started = time.perf_counter()
        found = self._autoencoders.get(X, parameters)
        self.seconds += time.perf_counter() - started
        return found


def _scored(classes, entry):
    """Replace the labels of a tried configuration by its scores, for information only."""
    kept = {name: value for name, value in entry.items() if name != "labels"}
    return {**kept, **label_scores(classes, entry["labels"])}


def _say(line):
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
