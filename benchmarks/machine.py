"""What a figure was measured on."""

import importlib.metadata
import os
import platform
import subprocess
from datetime import UTC, datetime

import torch

_PACKAGES = (
    "skdeepclust",
    "scikit-learn",
    "torch",
    "skorch",
    "numpy",
    "scipy",
    "umap-learn",
    "clustpy",
)


def describe_machine():
    """Return versions, processor, number of threads, load and date as a dictionary."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": _commit(),
        "system": platform.system(),
        "cpu": _cpu_model(),
        "n_cpus": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "load": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
        "versions": {"python": platform.python_version(), **_package_versions()},
    }


def is_installed(package):
    """Whether the distribution `package` is installed."""
    try:
        importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def _package_versions():
    return {name: importlib.metadata.version(name) for name in _PACKAGES if is_installed(name)}


def _cpu_model():
    try:
        with open("/proc/cpuinfo") as lines:
            for line in lines:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or "unknown"


def _commit():
    """Return the short id of the checked-out commit, marked when files differ from it."""
    command = ["git", "-C", os.path.dirname(os.path.abspath(__file__)), "describe"]
    command += ["--always", "--dirty=+", "--match="]
    try:
        found = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return found.stdout.strip()
