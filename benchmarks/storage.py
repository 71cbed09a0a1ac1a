"""Results on disk: JSON files below one folder, each written whole or not at all."""

import json
import os
from pathlib import Path

RESULTS = Path(__file__).parent / "results"


def cell_path(results, data, method, seed):
    """Return where the accuracy cell of `data`, `method` and `seed` is stored."""
    return Path(results) / "accuracy" / data / method / f"seed{seed}.json"


def write_json(path, content):
    """Write `content` to `path`; an interrupted write leaves the old file."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(f".{os.getpid()}.tmp")
    unfinished.write_text(json.dumps(content, indent=1, allow_nan=False) + "\n")
    unfinished.replace(path)


def read_json(path):
    """Return the content of the JSON file at `path`, or None where there is no such file."""
    path = Path(path)
    return json.loads(path.read_text()) if path.is_file() else None


def plain(value):
    """Return `value` with everything JSON lacks replaced: arrays, NumPy numbers, objects, nan."""
    if isinstance(value, dict):
        return {str(key): plain(entry) for key, entry in value.items()}
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [plain(entry) for entry in value]
    if isinstance(value, float) and value - value != 0:
        return None
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return str(value)
