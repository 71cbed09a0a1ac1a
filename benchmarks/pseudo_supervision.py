"""ACOL-GAR: training curves on unseen rows, ablations, transformations and read-outs."""

import copy
import sys
import time
import traceback
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from sklearn.cluster import AgglomerativeClustering
from sklearn.metrics import normalized_mutual_info_score
from skorch.callbacks import Callback

from skdeepclust import ACOLGARClustering
from skdeepclust._validation import open_rows
from skdeepclust.datasets import fetch_fashion_mnist, fetch_mnist, fetch_usps
from skdeepclust.metrics import clustering_accuracy, purity_score
from skdeepclust.training.inference import distances_in_float64
from skdeepclust.training.read_out import k_means_read_out

from .image_encoders import IMAGE_ENCODERS
from .image_maps import IMAGE_MAPS
from .machine import describe_machine
from .storage import RESULTS, plain, read_json, write_json

SEEDS = (0, 1)
N_INIT = 10
# Train rows that the K-means of the curve is fitted to.
_MAX_FITTED_ROWS = 8192

_WITHOUT_DUPLICATES = {"n_duplicates": 1, "frobenius_weight": 0.0}
_WITHOUT_REGULARIZATION = {"affinity_weight": 0.0, "balance_weight": 0.0, "frobenius_weight": 0.0}
VARIANTS = {
    "default": {},
    "untrained": {"lr": 1e-12, "max_epochs": 1},
    "classification only": _WITHOUT_DUPLICATES,
    "duplicates, not regularized": _WITHOUT_REGULARIZATION,
    "no balance": {"balance_weight": 0.0},
    "no affinity": {"affinity_weight": 0.0},
    "no Frobenius": {"frobenius_weight": 0.0},
    "Frobenius on activity": {"frobenius_on": "activity"},
    **{f"{k} duplicates": {"n_duplicates": k} for k in (2, 5, 10, 40)},
    "half turn": {"transforms": "rotations", "n_transforms": 2},
    "rotations": {"transforms": "rotations"},
    "flips": {"transforms": "flips"},
    **{name: {"transforms": maps} for name, maps in IMAGE_MAPS.items()},
    **IMAGE_ENCODERS,
}


def _fetch(loader):
    train, test = loader(subset="train"), loader(subset="test")
    return (train.data, train.target), (test.data, test.target), train.image_shape


LOADERS = {"usps": fetch_usps, "mnist": fetch_mnist, "fashion-mnist": fetch_fashion_mnist}


def add_arguments(parser):
    """Declare the options of ``python -m benchmarks pseudo-supervision``."""
    parser.add_argument("--data", nargs="+", choices=LOADERS, default=["usps"])
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=list(VARIANTS))
    parser.add_argument("--seeds", nargs="+", type=int, default=list(SEEDS))
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--every", type=int, default=20, help="epochs between two points")
    parser.add_argument("--force", action="store_true", help="run stored cells again")
    parser.add_argument("--results", type=Path, default=RESULTS)


def run(arguments):
    """Run the cells that are not stored with as many epochs; return 1 if one failed."""
    n_failed = 0
    for name in arguments.data:
        for seed in arguments.seeds:
            for variant in arguments.variants:
                path = result_path(arguments.results, name, variant, seed)
                stored = read_json(path)
                is_done = stored is not None and stored["epochs"] >= arguments.epochs
                if is_done and stored["finished"] and not arguments.force:
                    continue
                try:
                    measure(name, variant, seed, arguments.epochs, arguments.every, path)
                except Exception:
                    traceback.print_exc()
                    n_failed += 1
    return 1 if n_failed else 0


def result_path(results, data, variant, seed):
    """Return where a cell is stored."""
    folder = "".join(c for c in variant.replace(" ", "-") if c not in ",:")
    return Path(results) / "pseudo_supervision" / data / folder / f"seed{seed}.json"


def measure(data, variant, seed, epochs, every, path):
    """Train one variant, storing each point of its curve when it is there."""
    (X, y), (new_X, new_y), image_shape = _fetch(LOADERS[data])
    n_clusters = len(np.unique(y))
    cell = {
        "data": data,
        "variant": variant,
        "seed": seed,
        "epochs": epochs,
        "n_rows": len(X),
        "n_new_rows": len(new_X),
        "finished": False,
        "curve": [],
        "machine": describe_machine(),
    }
    new_rows = open_rows(new_X, image_shape=image_shape)

    def add_point(run):
        point = {**run.history[-1], **scores(run, new_rows, y, new_y, n_clusters)}
        point["training_seconds"] = sum(record["seconds"] for record in run.history)
        cell["curve"].append(plain(point))
        write_json(path, cell)
        _say(f"{data} {variant} seed {seed} epoch {point['epoch']}: {_summary(point)}")

    parameters = {"max_epochs": epochs, **VARIANTS[variant]}
    started = time.perf_counter()
    model = ACOLGARClustering(
        n_clusters,
        image_shape=image_shape,
        random_state=seed,
        n_init=N_INIT,
        callbacks=[AtEpochs(add_point, every, parameters["max_epochs"])],
        **parameters,
    ).fit(X)
    cell.update(
        read_outs=read_outs(model, X, y, new_X, new_y),
        n_active_slots=model.n_active_slots_,
        seconds=time.perf_counter() - started,
        finished=True,
    )
    write_json(path, plain(cell))


class AtEpochs(Callback):
    """Calls a function with the run every so many epochs, and after the last one."""

    def __init__(self, call, every, last):
        self.call = call
        self.every = every
        self.last = last

    def on_epoch_end(self, net, **kwargs):
        epoch = net.run_.epoch + 1
        if epoch % self.every == 0 or epoch == self.last:
            # K-means of the evaluation must not be part of what the training draws.
            with torch.random.fork_rng(devices=[]):
                self.call(net.run_)


def scores(run, new_rows, y, new_y, n_clusters):
    """Return the scores of K-means on the representation as it is."""
    index = torch.arange(len(run.rows))
    if len(index) > _MAX_FITTED_ROWS:
        generator = np.random.default_rng(0)
        chosen = generator.choice(len(index), _MAX_FITTED_ROWS, replace=False)
        index = torch.from_numpy(np.sort(chosen))
    sample = open_rows(run.rows.gather(index, out=run.rows.empty(len(index))).numpy())
    return kmeans_scores(
        run.forward(sample).numpy(),
        y[index.numpy()],
        run.forward(new_rows).numpy(),
        new_y,
        n_clusters,
    )


def kmeans_scores(F, y, new_F, new_y, n_clusters):
    """Return scores of K-means fitted to train rows, and to the unseen rows themselves."""
    found = k_means_read_out(F, n_clusters, "k-means++", n_init=N_INIT, random_state=0)
    centers = torch.from_numpy(found.centers)
    labels = distances_in_float64(torch.from_numpy(new_F), centers).argmin(dim=1).numpy()
    refitted = k_means_read_out(new_F, n_clusters, "k-means++", n_init=N_INIT, random_state=0)
    return {
        "train": label_scores(y, found.labels),
        "unseen": label_scores(new_y, labels),
        "unseen, refitted": label_scores(new_y, refitted.labels),
        "agreement": found.agreement,
    }


def label_scores(y, labels):
    """Return ACC (one cluster a class), purity and NMI."""
    return {
        "acc": clustering_accuracy(y, labels),
        "purity": purity_score(y, labels),
        "nmi": normalized_mutual_info_score(y, labels, average_method="geometric"),
    }


def read_outs(model, X, y, new_X, new_y):
    """Return the scores of other ways to read clusters out of the trained network."""
    network, n_clusters = model.net_.module_, model.n_clusters
    F, new_F = model.transform(X), model.transform(new_X)
    with torch.no_grad():
        Z, new_Z = (
            network.head.linear(torch.from_numpy(f))[:, :: network.head.n_parents].numpy()
            for f in (F, new_F)
        )
    averaged = averaging_copy(model)
    pairs = {
        "representation": (F, new_F),
        "unit length": (_unit(F), _unit(new_F)),
        "softmax inputs of the identity": (Z, new_Z),
        "averaged over the transformations": (averaged.transform(X), averaged.transform(new_X)),
    }
    found = {
        name: kmeans_scores(*_limited(f, y), new_f, new_y, n_clusters)
        for name, (f, new_f) in pairs.items()
    }
    found["slots, merged"] = {"unseen": label_scores(new_y, merged_slots(Z, F, new_Z, n_clusters))}
    return found


def averaging_copy(model):
    """Return the estimator with its representation averaged over the transformations."""
    other = copy.deepcopy(model)
    network = other.net_.module_
    network.description = replace(network.description, averages=True)
    return other


def merged_slots(Z, F, new_Z, n_clusters):
    """Return clusters of unseen rows: slots joined by Ward's agglomeration of their means."""
    slots = Z.argmax(axis=1)
    used = np.unique(slots)
    if len(used) <= n_clusters:
        groups = np.arange(len(used))
    else:
        means = np.stack([F[slots == slot].mean(axis=0) for slot in used])
        groups = AgglomerativeClustering(n_clusters).fit_predict(means)
    return groups[new_Z[:, used].argmax(axis=1)]


def _limited(F, y):
    if len(F) <= _MAX_FITTED_ROWS:
        return F, y
    chosen = np.random.default_rng(0).choice(len(F), _MAX_FITTED_ROWS, replace=False)
    return F[chosen], y[chosen]


def _unit(F):
    return F / np.maximum(np.linalg.norm(F, axis=1, keepdims=True), 1e-12)


def _summary(point):
    unseen = point["unseen"]
    return (
        f"ACC {unseen['acc']:.3f} NMI {unseen['nmi']:.3f} transformations "
        f"{point['transformation_accuracy']:.3f} agreement {point['agreement']:.3f} after "
        f"{point['training_seconds']:.0f} s"
    )


def _say(line):
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
