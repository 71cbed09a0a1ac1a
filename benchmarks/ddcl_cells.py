"""Cells of the benchmarks of DDCL: one (row of a table, seed) each, stored when done."""

import sys
import time

import numpy as np
from scipy.spatial.distance import cdist

from .accuracy import label_scores
from .machine import describe_machine
from .storage import plain, read_json, write_json


class Cells:
    """The cells of one file.

    Parameters
    ----------
    path : path-like
        The JSON file.
    is_forced : bool, default=False
        Whether stored cells are measured again.
    """

    def __init__(self, path, is_forced=False):
        self._path = path
        self._is_forced = is_forced
        self.found = read_json(path) or {}

    def add(self, table, row, seed, measure):
        """Store what `measure` returns, a dictionary, unless the cell is there already."""
        seeds = self.found.setdefault(table, {}).setdefault(row, {})
        if str(seed) in seeds and not self._is_forced:
            return
        started = time.perf_counter()
        cell = measure()
        cell.setdefault("seconds", time.perf_counter() - started)
        seeds[str(seed)] = plain({**cell, "machine": describe_machine()})
        write_json(self._path, self.found)
        shown = {k: round(v, 4) for k, v in seeds[str(seed)].items() if isinstance(v, float)}
        sys.stdout.write(f"{table} | {row} | seed {seed}: {shown}\n")
        sys.stdout.flush()


def partition_scores(X, y, labels, centers):
    """Return ACC, NMI, ARI, the mean squared distance to the nearest centre and clusters used."""
    return {
        **label_scores(y, labels),
        "quantization_error": quantization_error(X, centers),
        "n_used_clusters": len(np.unique(labels)),
    }


def quantization_error(X, centers, chunk=8_192):
    """Return the mean squared distance of the rows to the nearest centre."""
    parts = (X[start : start + chunk] for start in range(0, len(X), chunk))
    return sum(cdist(part, centers, "sqeuclidean").min(axis=1).sum() for part in parts) / len(X)
