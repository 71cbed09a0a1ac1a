"""The picture of ACOL-GAR's accuracy over the seconds of its training, beside UMAP + GMM."""

from pathlib import Path

from .pseudo_supervision import stored_cells
from .pseudo_supervision_protocol import networks_of
from .storage import RESULTS, cell_path, read_json

DATA = "mnist"
PICTURE = Path(__file__).parent / "time_to_accuracy.png"
# The goal: this accuracy within this time on two cores.
_GOAL_ACC, _GOAL_SECONDS = 0.97, 600


def add_arguments(parser):
    """Declare the options of ``python -m benchmarks time-to-accuracy``."""
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--output", type=Path, default=PICTURE)


def run(arguments):
    """Draw the picture from the stored cells."""
    draw(arguments.results).savefig(arguments.output, dpi=150)
    return 0


def draw(results):
    """Return the figure."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.subplots()
    for network in networks_of(DATA):
        for cell in stored_cells(results, DATA, network, "default"):
            seconds = [point["training_seconds"] for point in cell["curve"]]
            accuracies = [point["unseen"]["acc"] for point in cell["curve"]]
            label = f"{network}, seed {cell['seed']}, threads: {cell['machine']['threads']}"
            axes.plot(seconds, accuracies, marker=".", label=label)
    umap = read_json(cell_path(results, DATA, "umap+gmm", 0))
    if umap is not None:
        label = f"UMAP + GMM, all 70,000 rows, threads: {umap['machine']['threads']}"
        axes.plot(umap["seconds"], umap["acc"], "k*", markersize=12, label=label)
    axes.axhline(_GOAL_ACC, color="0.7", linestyle=":")
    axes.axvline(_GOAL_SECONDS, color="0.7", linestyle=":", label="goal: 0.97 within 10 minutes")
    axes.set(
        xscale="log",
        xlabel="seconds of training",
        ylabel="accuracy on the 10,000 unseen rows",
        title="ACOL-GAR on MNIST",
    )
    axes.legend(loc="lower right", fontsize="small")
    return figure
