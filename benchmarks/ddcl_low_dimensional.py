"""Block 2: digits divided by 16, with temperatures as they are in the paper."""

from sklearn.cluster import KMeans

from skdeepclust import DDCL

from .ddcl_accuracy import rows_and_classes
from .ddcl_cells import partition_scores

_SCHEDULES = {
    "temperature 2 to 0.5": (2.0, 0.5),
    "temperature 0.5": (0.5, 0.5),
    "temperature 0.1": (0.1, 0.1),
    "temperature 2": (2.0, 2.0),
}
_PAPER = {"temperature_scale": None, "entropy_weight": 0.0}
VARIANTS = {
    **{
        f"bare error, {name}": {**_PAPER, "temperature_start": start, "temperature_end": end}
        for name, (start, end) in _SCHEDULES.items()
    },
    "bare error, start at samples": {**_PAPER, "init": "samples"},
    "bare error, separation_weight=0.1": {**_PAPER, "separation_weight": 0.1},
    "bare error, free prototypes": {**_PAPER, "layer": "free"},
    "reconstruction": {**_PAPER, "loss": "reconstruction"},
    "free energy": {"temperature_scale": None},
    "free energy, temperature 0.5": {"temperature_scale": None, "temperature_start": 0.5},
    "free energy, separation_weight=0.1": {"temperature_scale": None, "separation_weight": 0.1},
    "free energy, free prototypes": {"temperature_scale": None, "layer": "free"},
    "defaults": {},
}


def measure(cells, seeds, autoencoders):
    """Fit every variant and K-means with every seed."""
    X, y = rows_and_classes("digits", autoencoders)
    for seed in seeds:
        models = {name: DDCL(10, random_state=seed, **p) for name, p in VARIANTS.items()}
        models["KMeans, n_init=1"] = KMeans(10, n_init=1, random_state=seed)
        models["KMeans, n_init=10"] = KMeans(10, n_init=10, random_state=seed)
        for name, model in models.items():
            cells.add("digits", name, seed, lambda m=model: scores_of(m, X, y))


def scores_of(model, X, y):
    """Fit and score a clusterer; of DDCL the last diagnostics are kept."""
    model.fit(X)
    kept = ("quantization_error", "separation", "concentration", "prototype_spread")
    last = model.history_[-1] if hasattr(model, "history_") else {}
    return {
        **partition_scores(X, y, model.labels_, model.cluster_centers_),
        **{f"soft {name}": last[name] for name in kept if name in last},
    }
