"""Cluster a stream of digits batch by batch, beside MiniBatchKMeans on the same stream.

Every batch is first predicted and only then learnt from, so each row counts once, as new. All
predictions so far are matched with the digits together, which would fail if the meaning of a
cluster id changed on the way.

Usage: python examples/stream_digits.py [PICTURE]
"""

import sys
import time

import numpy as np
from matplotlib.figure import Figure
from sklearn.cluster import MiniBatchKMeans
from sklearn.datasets import load_digits

from skdeepclust import SRKMeans
from skdeepclust.metrics import clustering_accuracy

BATCH = 50
REPORT_EVERY = 5
COLOURS = {"SRKMeans": "#bd1f01", "MiniBatchKMeans": "#717581"}


def main(picture="stream_digits.png", n_samples=None, n_first=300, **settings):
    """Run both methods over the stream and draw; `settings` go to SRKMeans."""
    X, classes = load_digits(return_X_y=True)
    X, classes = X[:n_samples], classes[:n_samples]
    methods = {
        "SRKMeans": SRKMeans(n_clusters=10, random_state=0, **settings),
        "MiniBatchKMeans": MiniBatchKMeans(n_clusters=10, random_state=0),
    }
    print(f"The first {n_first} rows start each method; the other {len(X) - n_first} arrive in")
    print(f"batches of {BATCH} and are predicted before they are learnt. Accuracy so far:\n")
    curves, summary = {}, []
    for name, method in methods.items():
        start = time.perf_counter()
        curves[name], kept = run(method, X, classes, n_first)
        summary.append(f"{name}: {time.perf_counter() - start:.1f} s; {kept:.1%} of the first")
    print_table(curves)
    print()
    for line in summary:
        print(f"{line} {n_first} rows have their first id at the end")
    draw(curves, picture)
    print(f"\nThe two curves: {picture}")


def run(method, X, classes, n_first):
    """Return the accuracy after each batch, and the share of first rows that keep their id."""
    first_ids = method.partial_fit(X[:n_first]).predict(X[:n_first])
    predicted, curve = [], {}
    for begin in range(n_first, len(X), BATCH):
        batch = X[begin : begin + BATCH]
        predicted.extend(method.predict(batch))
        method.partial_fit(batch)
        n_seen = len(predicted)
        curve[n_seen] = clustering_accuracy(classes[n_first : n_first + n_seen], predicted)
    return curve, np.mean(method.predict(X[:n_first]) == first_ids)


def print_table(curves):
    """Print one line every few batches, with one column a method."""
    print(f"{'rows':>6}" + "".join(f"{name:>18}" for name in curves))
    rows_seen = list(next(iter(curves.values())))
    for n_seen in [*rows_seen[REPORT_EVERY - 1 : -1 : REPORT_EVERY], rows_seen[-1]]:
        print(f"{n_seen:6}" + "".join(f"{curve[n_seen]:18.3f}" for curve in curves.values()))


def draw(curves, picture):
    """Draw accuracy against the rows of the stream."""
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.subplots()
    for name, curve in curves.items():
        axes.plot(curve.keys(), curve.values(), color=COLOURS[name], linewidth=2, label=name)
    axes.set(xlabel="rows of the stream so far", ylabel="accuracy so far", ylim=(0, 1))
    axes.set_title("Digits in a stream: predicted first, then learnt")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", alpha=0.3)
    axes.legend(frameon=False, loc="lower right")
    figure.savefig(picture, dpi=120)


if __name__ == "__main__":
    main(*sys.argv[1:])
