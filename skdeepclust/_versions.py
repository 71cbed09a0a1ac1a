"""Versions to put into a report of a fault."""

import importlib.metadata
import platform
import sys

_PACKAGES = (
    "skdeepclust",
    "scikit-learn",
    "torch",
    "skorch",
    "numpy",
    "scipy",
    "safetensors",
    "pandas",
    "polars",
    "matplotlib",
    "rich",
)


def show_versions():
    """Print the versions of Python, of the system and of the packages that matter here.

    Examples
    --------
    >>> from skdeepclust import show_versions
    >>> show_versions()  # doctest: +ELLIPSIS
    python: ...
    """
    lines = [f"python: {sys.version.split()[0]}", f"system: {platform.platform()}"]
    for package in _PACKAGES:
        try:
            version = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            version = "not installed"
        lines.append(f"{package}: {version}")
    import torch

    lines.append(f"torch threads: {torch.get_num_threads()}")
    lines.append(f"cuda available: {torch.cuda.is_available()}")
    sys.stdout.write("\n".join(lines) + "\n")
