"""RESULTS.md: tables made from the stored results and from nothing else."""

from pathlib import Path

from . import protocol
from .data import LOADERS
from .ddcl import part_path
from .ddcl_stream_picture import PICTURE, draw
from .memory import INITS
from .memory import METHODS as MEMORY_METHODS
from .methods import METHODS
from .report_ddcl import ddcl_section
from .report_pseudo_supervision import pseudo_supervision_section
from .speed import CLASSIFIERS, measurement_names
from .storage import RESULTS, cell_path, read_json
from .tables import machine_lines, number, spread, table, value_range

NOT_RUN = "not run"


def add_arguments(parser):
    """Declare the options of ``python -m benchmarks report``."""
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "RESULTS.md")


def run(arguments):
    """Write the report."""
    sections = [
        "# Results\n\nMade by `python -m benchmarks report` from the files in `results/`; "
        "do not edit.",
        *(accuracy_section(arguments.results, data) for data in LOADERS),
        pseudo_supervision_section(arguments.results),
        ddcl_section(arguments.results),
        imbalance_section(read_json(arguments.results / "imbalance.json") or {}),
        speed_section(read_json(arguments.results / "speed.json") or {}),
        memory_section(read_json(arguments.results / "memory.json") or {}),
    ]
    streams = part_path(arguments.results, "stream")
    if streams.is_file():
        draw(streams).savefig(arguments.output.parent / PICTURE.name, dpi=120)
    arguments.output.write_text("\n\n".join(sections) + "\n")
    return 0


def accuracy_section(results, data):
    """Return the table of one data set, a row a method."""
    rows, cells = [], []
    for method in METHODS:
        found = stored_cells(results, data, method)
        cells += found
        rows.append([method, *(_accuracy_row(found) if found else [NOT_RUN] + [""] * 6)])
    header = ["method", "ACC", "NMI", "ARI", "clusters used", "epochs", "seconds", "seeds"]
    lines = [f"## Accuracy: {data}", ""]
    if cells:
        first = cells[0]
        lines += [
            f"{first['n_rows']} rows, {first['n_features']} features, {first['n_clusters']} "
            "classes. Mean ± standard deviation over the seeds; NMI with the geometric mean. "
            "Seconds include the pretraining a method builds on.",
            "",
        ]
    if data in protocol.NMI_OF_THE_PAPER:
        paper = protocol.NMI_OF_THE_PAPER[data]
        lines += [f"Goal: NMI {paper:.3f}, the figure of the SR-K-means paper.", ""]
    if data in protocol.DEPICT_OF_THE_PAPER:
        nmi, acc = protocol.DEPICT_OF_THE_PAPER[data]
        lines += [f"Goal of the classifiers: DEPICT's published NMI {nmi}, ACC {acc}.", ""]
    lines += table(header, rows)
    lines += _tried(cells)
    lines += machine_lines(cell["machine"] for cell in cells)
    return "\n".join(lines)


def stored_cells(results, data, method):
    """Return the stored cells of a method on a data set, in the order of their seeds."""
    folder = cell_path(results, data, method, 0).parent
    cells = [read_json(path) for path in folder.glob("seed*.json")]
    return sorted(cells, key=lambda cell: cell["seed"])


def _accuracy_row(cells):
    scores = [spread([cell[name] for cell in cells]) for name in ("acc", "nmi", "ari")]
    used = sorted({cell["n_used_clusters"] for cell in cells})
    phases = {phase: None for cell in cells for phase in cell.get("epochs", {})}
    counts = {phase: [cell["epochs"].get(phase, 0) for cell in cells] for phase in phases}
    epochs = [f"{phase} {value_range(values)}" for phase, values in counts.items()]
    return [
        *scores,
        value_range(used),
        ", ".join(epochs),
        spread([cell["seconds"] for cell in cells], digits=1),
        " ".join(str(cell["seed"]) for cell in cells),
    ]


def _tried(cells):
    """Return a table of the configurations that a label-free score chose from."""
    rows = [
        [
            f"{cell['method']} {cell['seed']}",
            ", ".join(f"{name}={value}" for name, value in entry["parameters"].items()),
            *(number(entry["label_free"][score]) for score in ("modularity", "silhouette")),
            number(entry["acc"]),
            number(entry["nmi"]),
            "chosen" if entry["chosen"] else "",
        ]
        for cell in cells
        for entry in cell["tried"]
        if len(cell["tried"]) > 1
    ]
    if not rows:
        return []
    score = next(cell["selection_score"] for cell in cells if len(cell["tried"]) > 1)
    header = ["method and seed", "parameters", "modularity", "silhouette", "ACC", "NMI", ""]
    return [
        "",
        f"Tried configurations; {score} (no labels) chooses, ACC and NMI are for information:",
        "",
        *table(header, rows),
    ]


def imbalance_section(results):
    """Return the tables of the priors, one a data set."""
    lines = [
        "## Imbalanced classes",
        "",
        "A given prior holds the true proportions, of which the largest goes to the largest "
        "cluster of the start, and so on. All rows of a table share autoencoder and start, "
        "k-means, of each seed.",
    ]
    header = ["method / prior", "ACC", "NMI", "ARI", "clusters used", "seeds"]
    for data, seeds in results.items():
        cells = [seed["cells"] for seed in seeds.values()]
        rows = [
            [
                name,
                *(spread([cell[name][score] for cell in cells]) for score in ("acc", "nmi", "ari")),
                value_range([cell[name]["n_used_clusters"] for cell in cells]),
                " ".join(seeds),
            ]
            for name in cells[0]
        ]
        lines += ["", f"{data}:", "", *table(header, rows)]
        lines += machine_lines(seed["machine"] for seed in seeds.values())
    return "\n".join(lines if results else [*lines[:1], "", NOT_RUN])


def speed_section(results):
    """Return the table of the speed ratios."""
    rows = []
    for name in measurement_names():
        entry = results.get(name)
        if entry is None:
            rows.append([name, NOT_RUN] + [""] * 5)
            continue
        parts = {"": entry} if "ratio" in entry else entry
        for part, comparison in parts.items():
            if isinstance(comparison, dict) and "ratio" in comparison:
                rows.append(_speed_row(name, part, comparison))
    header = ["what", "seconds", "reference", "ratio", "processor ratio", "runs", "goal"]
    lines = [
        "## Speed",
        "",
        "Medians of runs that took turns, with one thread. The reference of an epoch, of predict "
        "and of partial_fit is the bare PyTorch loop; of the others the package in their name. "
        "The processor ratio counts the seconds spent computing; on a busy machine it is the "
        "steadier one.",
        "",
        *table(header, rows),
        *machine_lines(entry["machine"] for entry in results.values()),
    ]
    return "\n".join(lines)


def _speed_row(name, part, comparison):
    return [
        f"{name} ({part})" if part else name,
        f"{comparison['seconds']:.4g}",
        f"{comparison['reference_seconds']:.4g}",
        f"{comparison['ratio']:.2f}",
        f"{comparison['cpu_ratio']:.2f}",
        str(comparison["n_runs"]),
        _speed_goal(name, part),
    ]


def _speed_goal(name, part):
    kind, method, network = name.split("/") if name.count("/") == 2 else (name, "", "")
    if kind == "epoch" and method in CLASSIFIERS:
        goal = protocol.MAX_EPOCH_RATIO_OF_CLASSIFIERS.get(network)
        return "" if goal is None else f"<= {goal:.2f}"
    if kind == "epoch":
        return f"<= {protocol.MAX_EPOCH_RATIO[network]:.2f}"
    if kind == "refresh" and network in protocol.MAX_EPOCH_RATIO_OF_CLASSIFIERS:
        return f"<= {protocol.MAX_REFRESH_RATIO:.2f}"
    if name == "pseudo-supervision/acol-gar":
        return f"<= {protocol.MAX_EPOCH_RATIO_OF_PSEUDO_SUPERVISION:.2f}"
    if kind == "predict" and part == "same chunks":
        return f"<= {protocol.MAX_PREDICT_RATIO:.2f}"
    return ""


def memory_section(results):
    """Return the table of memory peaks."""
    rows, machines = [], []
    for method in MEMORY_METHODS:
        for init in INITS:
            cases = {int(n): case for n, case in results.get(f"{method}/{init}", {}).items()}
            machines += [case["machine"] for case in cases.values()]
            for n_rows in sorted(cases) or [None]:
                rows.append([f"{method}, init {init}", *_memory_row(cases, n_rows)])
    header = ["what", "rows", "peak MB", "over 512 rows", "over 6,000 rows", "seconds"]
    lines = [
        "## Memory",
        "",
        "Peak anonymous memory (RssAnon) of a process that fits a uint8 memmap of 784 features, "
        "MLP 784-500-500-2000-10, a few epochs of each phase. Goals at 60,000 rows: at most "
        f"{protocol.MAX_MEMORY_OVER_512_ROWS_MB} MB over 512 rows and at most "
        f"{protocol.MAX_MEMORY_OVER_6000_ROWS_MB} MB over 6,000 rows.",
        "",
        *table(header, rows),
        *machine_lines(machines),
    ]
    return "\n".join(lines)


def _memory_row(cases, n_rows):
    if n_rows is None:
        return [NOT_RUN] + [""] * 4
    peak = cases[n_rows]["peak_mb"]
    over = [
        f"{peak - cases[base]['peak_mb']:+.1f}" if base in cases and base < n_rows else ""
        for base in (512, 6_000)
    ]
    return [str(n_rows), f"{peak:.1f}", *over, f"{cases[n_rows]['seconds']:.1f}"]
