"""The tables of DDCL: beside K-means, streams, size, and what became of the paper's claims."""

from statistics import mean, median

from .ddcl import PARTS, part_path
from .ddcl_stream_picture import PICTURE
from .report_ddcl_claims import claims_table
from .storage import read_json
from .tables import machine_lines, number, spread, spread_of_known, table, value_range

_SCORES = {"acc": "ACC", "nmi": "NMI", "ari": "ARI"}
# What a part shows beside the scores.
_FIGURES = {
    "accuracy": {"quantization_error": "quantisation error", "seconds": "seconds"},
    "stream": {
        "final_acc": "ACC of all rows at the end",
        "quantization_error": "quantisation error",
        "rows_per_second": "rows a second after the start",
        "start_seconds": "seconds of the start",
    },
    "size": {
        "peak_over_start_mb": "MB beside the rows",
        "seconds": "seconds",
        "quantization_error": "quantisation error",
    },
    "low-dimensional": {"soft separation": "separation", "soft concentration": "concentration"},
    "frozen": {
        "soft prototype_spread": "prototype spread",
        "largest_gradient_difference": "largest difference of gradients",
    },
    "end-to-end": {
        "variance_share": "variance left",
        "displacement_ratio": "displacement ratio",
        "has_collapsed": "share collapsed",
    },
    "incremental": {
        "first_separation": "first separation",
        "last_separation": "last separation",
        "share_rising": "share of rising steps",
    },
}
_NOTES = {
    "accuracy": "Each method with its defaults but for what it says. The quantisation error is the "
    "mean squared distance to the nearest centre. All seeds of a table see the same rows.",
    "stream": "60,000 training images of MNIST, 64 principal components of all images, in batches "
    "of 256. A batch is predicted before it is learnt; ACC matches all predictions of the pass.",
    "size": "1,000,000 rows of 64 features in float32, 100 clusters, each fit in a process of its "
    "own that holds the rows before it starts.",
    "low-dimensional": "1,797 digits divided by 16. But for the defaults, temperatures are in the "
    "units of the data, as in the paper; there the largest variance is 0.70. The paper reports "
    "0.576 for 2 to 0.5, 0.563 for fixed 0.5 and 0.549 with separation.",
    "high-dimensional": "100 standardised rows, two clusters; ACC of 20 seeds. The paper reports "
    "0.807 for 200 columns.",
    "frozen": "10,000 test images of MNIST, 4,000 of CIFAR-10; 1,024 anchors but where it says "
    "all. The paper's ACC for CIFAR-10, 0.265 with both losses, is of a pretrained ResNet-18, "
    "which is not used here. The difference of the gradients is at fixed assignments and "
    "prototypes, in float64.",
    "end-to-end": "1,797 digits, MLP 64-64-16. The guards are the pretrained autoencoder, the "
    "reconstruction and losses in units of the embedding. The paper reports 0.378 for the bare "
    "error, 0.229 for the reconstruction and 0.170 for DeepCluster.",
    "incremental": "Rows divided by 16 (digits) or scaled alike (20,000 images of MNIST); the "
    "first 100 rows start the prototypes, near the mean or by a fit. Prototypes at the mean come "
    "apart below a temperature of about 1.4.",
}


def ddcl_section(results):
    """Return the tables of all parts."""
    parts = {part: read_json(part_path(results, part)) or {} for part in PARTS}
    lines = [
        "## DDCL",
        "",
        "What the paper claims, on these data; the tables below have all figures.",
        "",
        *claims_table(parts),
    ]
    machines = []
    for part, title in PARTS.items():
        found = parts[part]
        lines += ["", f"### {title[0].upper()}{title[1:]}", ""]
        if not found:
            lines.append("not run")
            continue
        if part in _NOTES:
            lines += [_NOTES[part], ""]
        lines += _SECTIONS.get(part, _tables)(found, _FIGURES.get(part, {}))
        if part == "stream":
            lines += [f"![Accuracy over the stream]({PICTURE.name})", ""]
        machines += [cell["machine"] for rows in found.values() for cell in _all_cells(rows)]
    return "\n".join([*lines, *machine_lines(machines)])


def _all_cells(rows):
    return [cell for seeds in rows.values() for cell in seeds.values()]


def _tables(found, figures):
    lines = []
    for title, rows in found.items():
        every = _all_cells(rows)
        scores = {key: name for key, name in _SCORES.items() if any(key in c for c in every)}
        present = {key: name for key, name in figures.items() if any(key in c for c in every)}
        header = [title, *scores.values(), *present.values(), "seeds"]
        body = []
        for row, seeds in rows.items():
            cells = list(seeds.values())
            body.append(
                [
                    row,
                    *(spread_of_known([c.get(key) for c in cells]) for key in scores),
                    *(_figure([c.get(key) for c in cells]) for key in present),
                    str(len(cells)),
                ]
            )
        lines += [*table(header, body), ""]
    return lines


def _figure(values):
    known = [float(value) for value in values if value is not None]
    if not known:
        return ""
    if 0 < max(map(abs, known)) < 1e-3:
        return f"{mean(known):.1e}"
    return spread(known, digits=0 if mean(known) >= 1000 else 3)


def _identity(found, _):
    rows = [
        [f"{title}, {row}", f"{cell['largest_relative_error']:.1e}"]
        + [f"{cell['smallest_spread']:.1e}"]
        for title, cells in found.items()
        for row, seeds in cells.items()
        for cell in seeds.values()
    ]
    return [*table(["", "largest relative error", "smallest prototype spread"], rows), ""]


def _structure(found, _):
    """Return how far apart prototypes are at the end, by objective and temperature."""
    groups = {}
    for row, seeds in found["shapes"].items():
        _, layer, loss, entropy, init, multiple = row.split(", ")
        key = layer, loss, entropy, init
        groups.setdefault(key, {}).setdefault(float(multiple), []).extend(seeds.values())
    multiples = sorted({m for group in groups.values() for m in group})
    body = [
        [
            *key,
            *(
                f"{mean(c['is_apart'] for c in group[m]):.2f} ({_median(group[m]):.2f})"
                for m in multiples
            ),
        ]
        for key, group in groups.items()
    ]
    header = ["layer", "loss", "entropy_weight", "init", *(f"{m:g}" for m in multiples)]
    cells = _all_cells(found["shapes"])
    sizes = value_range([len(group[m]) for group in groups.values() for m in multiples])
    correlations = [
        [name.removeprefix("corr "), number(min(known)), number(median(known)), number(max(known))]
        for name in cells[0]
        if name.startswith("corr ")
        for known in [[c[name] for c in cells if c[name] is not None]]
    ]
    return [
        "Moons, circles, a spiral and blobs, 500 standardised rows each, at fixed temperatures in "
        "units of the largest variance. Share of fits whose prototypes are apart at the end, and "
        f"their median distance in units of the deviation of the rows; {sizes} fits a figure. "
        "Theory: with the quantisation error prototypes at the mean come apart below 4 without "
        "the entropy and below 2 with it, with the reconstruction at every temperature.",
        "",
        *table(header, body),
        "",
        *table(["correlation over the epochs", "least", "median", "largest"], correlations),
        "",
    ]


def _high_dimensional(found, _):
    lines = []
    for generator, rows in found.items():
        cells = {}
        for row, seeds in rows.items():
            method, _, columns = row.rpartition(", ")
            accuracies = [cell["acc"] for cell in seeds.values()]
            cells.setdefault(method, {})[int(columns.split()[0])] = spread(accuracies)
        columns = sorted({d for found in cells.values() for d in found})
        body = [[method, *(found.get(d, "") for d in columns)] for method, found in cells.items()]
        lines += [*table([f"columns: {generator}", *map(str, columns)], body), ""]
    return lines


def _median(cells):
    return median(cell["separation"] for cell in cells)


_SECTIONS = {
    "identity": _identity,
    "structure": _structure,
    "high-dimensional": _high_dimensional,
}
