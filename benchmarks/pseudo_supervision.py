"""ACOL-GAR: training curves on unseen rows, ablations, transformations and read-outs."""

import sys
import time
import traceback
from pathlib import Path

import torch
from skorch.callbacks import Callback

from skdeepclust import ACOLGARClustering
from skdeepclust._validation import open_rows

from .machine import describe_machine
from .pseudo_supervision_protocol import (
    DATA,
    N_INIT,
    SEEDS,
    load_split,
    networks_of,
    variants_of,
)
from .pseudo_supervision_scores import kmeans_scores, read_outs, rows_to_fit, simple_rules
from .storage import RESULTS, plain, read_json, write_json


def add_arguments(parser):
    """Declare the options of ``python -m benchmarks pseudo-supervision``."""
    parser.add_argument("--data", nargs="+", choices=DATA, default=["usps"])
    parser.add_argument("--variants", nargs="+", help="by default all that fit the data")
    parser.add_argument("--network", help="by default the estimator's own")
    parser.add_argument("--seeds", nargs="+", type=int, default=list(SEEDS))
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--every", type=int, default=20, help="epochs between two points")
    parser.add_argument("--force", action="store_true", help="run stored cells again")
    parser.add_argument("--results", type=Path, default=RESULTS)


def run(arguments):
    """Run the cells that are not stored with as many epochs; return 1 if one failed."""
    n_failed = 0
    for cell in cells(arguments):
        path = result_path(arguments.results, *cell)
        try:
            measure(*cell, arguments.epochs, arguments.every, path)
        except Exception:
            # One broken variant must not cost the other cells of a long night.
            traceback.print_exc()
            n_failed += 1
    return 1 if n_failed else 0


def cells(arguments):
    """Return the wanted (data set, network, variant, seed) not stored with as many epochs."""
    wanted = []
    for name in arguments.data:
        network = arguments.network or next(iter(networks_of(name)))
        variants = arguments.variants or list(variants_of(name))
        _check_known(name, [network], networks_of(name))
        _check_known(name, variants, variants_of(name))
        for seed in arguments.seeds:
            for variant in variants:
                cell = name, network, variant, seed
                stored = read_json(result_path(arguments.results, *cell))
                is_done = (
                    stored is not None
                    and stored["finished"]
                    and stored["epochs"] >= arguments.epochs
                )
                if arguments.force or not is_done:
                    wanted.append(cell)
    return wanted


def _check_known(data, names, known):
    unknown = ", ".join(sorted(set(names) - set(known)))
    if unknown:
        raise SystemExit(f"{data} has no {unknown}; there are: {', '.join(known)}")


def result_path(results, data, network, variant, seed):
    """Return where a cell is stored."""
    folders = (
        "".join(c for c in name.replace(" ", "-") if c != ",") for name in (network, variant)
    )
    return Path(results, "pseudo_supervision", data, *folders, f"seed{seed}.json")


def stored_cells(results, data, network, variant):
    """Return the stored cells of a variant, in the order of their seeds."""
    folder = result_path(results, data, network, variant, 0).parent
    cells = [read_json(path) for path in folder.glob("seed*.json")]
    return sorted(cells, key=lambda cell: cell["seed"])


def measure(data, network, variant, seed, epochs, every, path):
    """Train one variant, storing each point of its curve when it is there."""
    split = load_split(data)
    cell = {
        "data": data,
        "network": network,
        "variant": variant,
        "seed": seed,
        "epochs": epochs,
        "n_rows": len(split.X),
        "n_new_rows": len(split.new_X),
        "finished": False,
        "curve": [],
        "machine": describe_machine(),
    }
    new_rows = open_rows(split.new_X, image_shape=split.image_shape)

    def add_point(run):
        point = {**run.history[-1], **scores(run, new_rows, split)}
        point["training_seconds"] = sum(record["seconds"] for record in run.history)
        cell["curve"].append(plain(point))
        write_json(path, cell)
        _say(f"{data} {network} {variant} seed {seed} epoch {point['epoch']}: {_summary(point)}")

    parameters = {
        "max_epochs": epochs,
        **networks_of(data)[network],
        **variants_of(data)[variant],
    }
    started = time.perf_counter()
    model = ACOLGARClustering(
        split.n_clusters,
        image_shape=split.image_shape,
        random_state=seed,
        n_init=N_INIT,
        callbacks=[AtEpochs(add_point, every, parameters["max_epochs"])],
        **parameters,
    ).fit(split.X)
    cell.update(
        read_outs=read_outs(model, split),
        pretext=simple_rules(model, split),
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


def scores(run, new_rows, split):
    """Return the scores of K-means on the representation as it is."""
    kept = rows_to_fit(len(split.X))
    index = torch.from_numpy(kept)
    sample = open_rows(run.rows.gather(index, out=run.rows.empty(len(index))).numpy())
    return kmeans_scores(
        run.forward(sample).numpy(),
        split.y[kept],
        run.forward(new_rows).numpy(),
        split.new_y,
        split.n_clusters,
    )


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
