"""Block 1: do prototypes that start together come apart, and at which temperatures?"""

from functools import partial
from itertools import product

import numpy as np
from sklearn.datasets import make_blobs, make_circles, make_moons
from sklearn.preprocessing import StandardScaler

from skdeepclust import DDCL

from .ddcl_cells import partition_scores

_N_ROWS = 500
MULTIPLES = (0.25, 0.5, 1.0, 2.5, 5.0, 20.0)
# In units of the deviation of the rows; near the mean prototypes start at about a tenth of it.
_APART = 0.2


def measure(cells, seeds, autoencoders):
    """Fit at fixed temperatures, both losses with and without the entropy, from both starts."""
    choices = {
        "layer": ("dual", "free"),
        "loss": ("quantization", "reconstruction"),
        "entropy_weight": ("temperature", 0.0),
        "init": ("normal", "samples"),
        "temperature_start": MULTIPLES,
    }
    for seed, shape, *values in product(seeds[:3], SHAPES, *choices.values()):
        params = dict(zip(choices, values, strict=True))
        params["temperature_end"] = params["temperature_start"]
        row = ", ".join(map(str, (shape, *values)))
        cells.add("shapes", row, seed, partial(_fit, shape, params, seed))


def _spiral(generator):
    t = np.sqrt(generator.uniform(0.05, 1, _N_ROWS)) * 3 * np.pi
    y = generator.integers(0, 2, _N_ROWS)
    angle = t + np.pi * y
    noise = generator.normal(scale=0.5, size=(_N_ROWS, 2))
    return (t**2)[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1) + noise, y


SHAPES = {
    "moons": lambda seed: make_moons(_N_ROWS, noise=0.05, random_state=seed),
    "circles": lambda seed: make_circles(_N_ROWS, noise=0.05, factor=0.5, random_state=seed),
    "spiral": lambda seed: _spiral(np.random.default_rng(seed)),
    "blobs": lambda seed: make_blobs(_N_ROWS, centers=4, random_state=seed),
}


def rows_and_classes(shape, seed):
    """Return the standardised rows and classes of a toy shape."""
    X, y = SHAPES[shape](seed)
    return StandardScaler().fit_transform(X), y


def _fit(shape, params, seed):
    X, y = rows_and_classes(shape, seed)
    model = DDCL(len(np.unique(y)), balance_weight=0, ridge=0, random_state=seed, **params).fit(X)
    history = model.history_
    series = {name: np.array([record[name] for record in history]) for name in SERIES}
    varied = all(series[name].std() > 1e-9 for name in SERIES)
    pairs = {
        f"corr {a}, {b}": float(np.corrcoef(series[a], series[b])[0, 1]) if varied else None
        for a, b in (SERIES[:2], SERIES[::2])
    }
    return {
        **partition_scores(X, y, model.labels_, model.cluster_centers_),
        "separation": history[-1]["separation"],
        "is_apart": bool(history[-1]["separation"] > _APART),
        "smallest_spread": min(record["prototype_spread"] for record in history),
        **pairs,
    }


SERIES = ("separation", "assignment_variance", "concentration")
