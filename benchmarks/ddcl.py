"""DDCL: beside K-means, on streams, on a million rows, and the paper's experiments again."""

import importlib
import tempfile
from pathlib import Path

from .ddcl_cells import Cells
from .pretrained import PretrainedAutoencoders
from .storage import RESULTS

PARTS = {
    "accuracy": "beside K-means and mini-batch K-means",
    "stream": "one pass over MNIST, shuffled and class by class, beside mini-batch K-means",
    "size": "a million rows: memory and time beside mini-batch K-means",
    "identity": "the decomposition of the error over 100,000 steps",
    "structure": "block 1: toy shapes at temperatures below and above the critical one",
    "low-dimensional": "block 2: digits with the schedules of the temperature",
    "high-dimensional": "block 3: more columns than rows",
    "frozen": "block 4: thousands of images through frozen encoders",
    "end-to-end": "block 5: encoders that are trained with the prototypes",
    "incremental": "block 6: small batches of a stream",
}


def add_arguments(parser):
    """Declare the options of ``python -m benchmarks ddcl``."""
    default_cache = Path(tempfile.gettempdir()) / "skdeepclust-benchmarks"
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--seeds", nargs="+", type=int, default=list(range(10)))
    parser.add_argument("--force", action="store_true", help="run stored cells again")
    parser.add_argument(
        "--cache", type=Path, default=default_cache, help="folder for fitted autoencoders"
    )
    parser.add_argument("--results", type=Path, default=RESULTS)


def run(arguments):
    """Run the parts that are wanted; each cell is stored when it is done."""
    autoencoders = PretrainedAutoencoders(arguments.cache)
    for part in arguments.parts:
        module = importlib.import_module("benchmarks.ddcl_" + part.replace("-", "_"))
        cells = Cells(part_path(arguments.results, part), is_forced=arguments.force)
        module.measure(cells, arguments.seeds, autoencoders)
    return 0


def part_path(results, part):
    """Return where the cells of a part are stored."""
    return Path(results) / "ddcl" / f"{part}.json"
