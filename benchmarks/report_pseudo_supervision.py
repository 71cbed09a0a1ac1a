"""The tables of ACOL-GAR: variants at the end of their training, and curves over time."""

from itertools import product
from statistics import mean

from . import time_to_accuracy
from .pseudo_supervision import stored_cells
from .pseudo_supervision_protocol import DATA, networks_of, variants_of
from .tables import machine_lines, number, spread, spread_of_known, table, value_range

_RULES = ("linear", "quadratic")


def pseudo_supervision_section(results):
    """Return the tables of all data sets with stored cells."""
    lines = [
        "## ACOL-GAR",
        "",
        "Trained on the train rows. ACC matches clusters to classes one to one, purity gives each "
        "its most frequent class. The unseen rows are given to the centres of K-means on the "
        "train rows (at most 8,192 of them); refitted is K-means on the unseen rows themselves. "
        "Vectors have no test set: there the rows trained on are the rows scored. The variants of "
        "a network are compared after as many epochs as each of them has; longer trainings are on "
        "the curves.",
    ]
    for data in DATA:
        found = _finished(results, data)
        if found:
            cells = [cell for group in found.values() for cell in group]
            lines += ["", f"{data}:", "", *_variants(found), *_contributions(found)]
            lines += [*_read_outs(found), *_curves(found)]
            if data == time_to_accuracy.DATA:
                lines += ["", f"![Accuracy over time]({time_to_accuracy.PICTURE.name})"]
            lines += machine_lines(cell["machine"] for cell in cells)
    return "\n".join(lines if len(lines) > 3 else [*lines[:2], "not run"])


def _finished(results, data):
    """Return the finished cells of each pair of a network and a variant that has any."""
    found = {}
    for pair in product(networks_of(data), variants_of(data)):
        cells = [cell for cell in stored_cells(results, data, *pair) if cell["finished"]]
        if cells:
            found[pair] = cells
    return found


def _compared_points(found):
    """Return the last points that fit an equal comparison, one for each cell of each pair.

    Those are the last ones up to the epoch that every trained cell of the network has reached:
    a default that trained longer than its ablations would win by its epochs.
    """
    shared = {}
    for (network, variant), cells in found.items():
        if variant != "untrained":
            last = min(cell["curve"][-1]["epoch"] for cell in cells)
            shared[network] = min(last, shared.get(network, last))
    return {
        (network, variant): [
            [point for point in cell["curve"] if point["epoch"] <= shared.get(network, 1)][-1]
            for cell in cells
        ]
        for (network, variant), cells in found.items()
    }


def _variants(found):
    header = ["network", "variant", "ACC", "purity", "NMI", "ACC refitted"]
    header += ["transformations named", *(f"by a {rule} rule" for rule in _RULES)]
    header += ["affinity", "balance", "agreement", "slots used", "epochs", "training s", "seeds"]
    rows = []
    for pair, last in _compared_points(found).items():
        cells = found[pair]
        unseen = [point["unseen"] for point in last]
        rows.append(
            [
                *pair,
                *(spread([scores[key] for scores in unseen]) for key in ("acc", "purity", "nmi")),
                spread([point["unseen, refitted"]["acc"] for point in last]),
                spread([point["transformation_accuracy"] for point in last]),
                *(spread_of_known([cell["pretext"][rule] for cell in cells]) for rule in _RULES),
                *(
                    spread([point[key] for point in last])
                    for key in ("affinity", "balance", "agreement")
                ),
                value_range([cell["n_active_slots"] for cell in cells]),
                value_range([point["epoch"] for point in last]),
                spread([point["training_seconds"] for point in last], digits=0),
                " ".join(str(cell["seed"]) for cell in cells),
            ]
        )
    return table(header, rows)


def _contributions(found):
    """Return, for each network, what duplicates and their regularization add to the NMI."""
    lines = []
    compared = _compared_points(found)
    for network in dict.fromkeys(network for network, _ in found):
        steps = ("classification only", "duplicates, not regularized", "default")
        points = [compared.get((network, variant)) for variant in steps]
        if all(points):
            alone, duplicated, full = (
                mean(point["unseen"]["nmi"] for point in group) for group in points
            )
            lines += [
                "",
                f"With the {network} network, naming the transformations gives NMI {alone:.3f} by "
                f"itself; the duplicates of ACOL change it by {duplicated - alone:+.3f}, and the "
                f"regularization (GAR) by {full - duplicated:+.3f} more, to {full:.3f}.",
            ]
    return lines


def _read_outs(found):
    lines = []
    for (network, _), cells in _defaults(found):
        rows = []
        for name in cells[0]["read_outs"]:
            unseen = [cell["read_outs"][name]["unseen"] for cell in cells]
            scores = (spread([s[key] for s in unseen]) for key in ("acc", "purity", "nmi"))
            rows.append([name, *scores])
        header = [f"read-out, {network} network", "ACC", "purity", "NMI"]
        lines += ["", *table(header, rows)]
    return ["", "Other ways to read clusters out of the same networks:", *lines] if lines else []


def _curves(found):
    rows = [
        [
            network,
            str(cell["seed"]),
            str(point["epoch"]),
            f"{point['training_seconds']:.0f}",
            number(point["unseen"]["acc"]),
            number(point["unseen"]["nmi"]),
            number(point["transformation_accuracy"]),
            number(point["affinity"]),
            number(point["agreement"]),
        ]
        for (network, _), cells in _defaults(found)
        for cell in cells
        for point in cell["curve"]
    ]
    header = ["network", "seed", "epoch", "training s", "ACC", "NMI", "transformations named"]
    return ["", *table([*header, "affinity", "agreement"], rows)] if rows else []


def _defaults(found):
    return [(pair, cells) for pair, cells in found.items() if pair[1] == "default"]
