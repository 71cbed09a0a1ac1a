"""Peak anonymous memory of `fit` on a memmap, each case in a process of its own."""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from .machine import describe_machine
from .storage import RESULTS, plain, read_json, write_json

N_FEATURES = 784
N_CLUSTERS = 10
ROWS = (512, 6_000, 60_000)
METHODS = ("sr-kmeans", "dcn")
INITS = ("k-means++", "ward")
_HIDDEN_DIMS = (500, 500, 2000)
_EPOCHS = {"pretrain": 1, "warm_up": 1, "cluster": 2}
_SAMPLING_SECONDS = 0.005


def add_arguments(parser):
    """Declare the options of ``python -m benchmarks memory``."""
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--inits", nargs="+", choices=INITS, default=list(INITS))
    parser.add_argument("--rows", nargs="+", type=int, default=list(ROWS))
    parser.add_argument("--results", type=Path, default=RESULTS)


def run(arguments):
    """Measure all wanted cases and store each when it is done."""
    path = arguments.results / "memory.json"
    results = read_json(path) or {}
    with tempfile.TemporaryDirectory() as folder:
        for method in arguments.methods:
            for init in arguments.inits:
                for n_rows in arguments.rows:
                    case = _case(folder, method, init, n_rows)
                    found = measure(case)
                    results.setdefault(f"{method}/{init}", {})[str(n_rows)] = plain(found)
                    write_json(path, results)
                    sys.stdout.write(
                        f"{method} {init} {n_rows} rows: {found['peak_mb']:.1f} MB, "
                        f"{found['peak_over_start_mb']:.1f} MB over the start of fit\n"
                    )
                    sys.stdout.flush()
    return 0


def _case(folder, method, init, n_rows):
    """Return the description of a case; its rows are written to `folder`."""
    path = Path(folder) / f"{n_rows}.uint8"
    if not path.is_file():
        generator = np.random.default_rng(0)
        rows = generator.integers(0, 256, (n_rows, N_FEATURES), dtype=np.uint8)
        rows.tofile(path)
    return {"path": str(path), "method": method, "init": init, "n_rows": n_rows}


def measure(case):
    """Return the peak of RssAnon of a process that fits `case`, in MB.

    This process looks at the other one from outside: a thread within it would be kept waiting
    by what holds Python's lock, which is when memory peaks.
    """
    command = [sys.executable, "-m", "benchmarks.memory", json.dumps(case)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    peak, n_samples, reported = watch(command, environment)
    return {
        "peak_mb": peak,
        "peak_over_start_mb": peak - reported["start_mb"],
        **reported,
        "n_samples": n_samples,
        "epochs": _EPOCHS,
        "hidden_dims": _HIDDEN_DIMS,
        "machine": describe_machine(),
    }


def watch(command, environment):
    """Run a process that prints JSON; return its peak of RssAnon in MB, samples and content."""
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    peak, n_samples = 0.0, 0
    while child.poll() is None:
        now = anonymous_mb(child.pid)
        if now is not None:
            peak, n_samples = max(peak, now), n_samples + 1
        time.sleep(_SAMPLING_SECONDS)
    output = child.stdout.read()
    if child.returncode:
        raise RuntimeError(f"{command} ended with status {child.returncode}")
    return peak, n_samples, json.loads(output)


def anonymous_mb(pid="self"):
    """Return the anonymous resident memory of a process in MB (10**6 bytes), or None."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except (OSError, ProcessLookupError):
        return None
    for line in status.splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024 / 1e6
    return None


def fit_case(case):
    """Fit what `case` describes; return memory before and after, and the seconds."""
    from skdeepclust import DCN, SRKMeans
    from skdeepclust.pretraining import DenoisingAutoencoder

    cls = {"sr-kmeans": SRKMeans, "dcn": DCN}[case["method"]]
    X = np.memmap(case["path"], np.uint8, "r", shape=(case["n_rows"], N_FEATURES))
    warm_up = {"warm_up_epochs": _EPOCHS["warm_up"]} if cls is SRKMeans else {}
    estimator = cls(
        N_CLUSTERS,
        **warm_up,
        hidden_dims=_HIDDEN_DIMS,
        batch_size=256,
        max_epochs=_EPOCHS["cluster"],
        pretrain=DenoisingAutoencoder(max_epochs=_EPOCHS["pretrain"], batch_size=256),
        init=case["init"],
        device="cpu",
        random_state=0,
    )
    start = anonymous_mb()
    started = time.perf_counter()
    estimator.fit(X)
    seconds = time.perf_counter() - started
    return {"start_mb": start, "end_mb": anonymous_mb(), "seconds": seconds}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(fit_case(json.loads(sys.argv[1]))))
