"""The command line: ``python -m benchmarks COMMAND``."""

import argparse
import importlib
import sys

COMMANDS = {
    "accuracy": "cluster quality in cells of (method, data set, seed)",
    "imbalance": "what a prior of the cluster proportions does",
    "pseudo-supervision": "training curves and ablations of ACOL-GAR",
    "ddcl": "DDCL beside K-means, on streams, and the experiments of its paper",
    "time-to-accuracy": "picture of the accuracy of ACOL-GAR over time",
    "speed": "ratios to bare loops and to other packages",
    "memory": "peak memory of fit",
    "report": "write RESULTS.md from the stored results",
}


def main(argv=None):
    """Run the command that `argv` names; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    subparsers = parser.add_subparsers(dest="command", required=True)
    for name, text in COMMANDS.items():
        module = importlib.import_module("benchmarks." + name.replace("-", "_"))
        subparser = subparsers.add_parser(name, help=text, description=module.__doc__)
        module.add_arguments(subparser)
        subparser.set_defaults(run=module.run)
    arguments = parser.parse_args(argv)
    return arguments.run(arguments)


if __name__ == "__main__":
    sys.exit(main())
