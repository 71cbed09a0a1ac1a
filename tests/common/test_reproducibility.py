"""One integer decides everything, and global states stay as they were."""

import hashlib
import json
import os
import pickle
import random
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch

from .estimators import (
    CASES,
    TRAINED,
    VECTORS,
    assert_same_arrays,
    each,
    read_outs,
    weights,
)

ROOT = Path(__file__).parents[2]


def _global_states():
    """Return all global states that a library could change by mistake."""
    return {
        "numpy": pickle.dumps(np.random.get_state()),
        "torch": torch.get_rng_state().numpy().tobytes(),
        "python": random.getstate(),
        "threads": torch.get_num_threads(),
        "default dtype": torch.get_default_dtype(),
        "gradients": torch.is_grad_enabled(),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "warnings": list(warnings.filters),
        "numpy errors": np.geterr(),
        "environment": dict(os.environ),
    }


def _assert_unchanged(before):
    after = _global_states()
    for name, state in before.items():
        assert after[name] == state, f"the global state of {name} was changed"


def _outcome(estimator, X):
    return {**weights(estimator), **read_outs(estimator, X)}


@each(CASES)
def test_same_seed_gives_the_same_bits(case):
    """skorch-dev/skorch#33: two fits of one estimator with an integer seed."""
    estimator = case.new().fit(case.X)
    expected = _outcome(case.fitted, case.X)
    assert_same_arrays(_outcome(estimator, case.X), expected)
    estimator.fit(case.X)
    assert_same_arrays(_outcome(estimator, case.X), expected)


@each(TRAINED)
def test_another_seed_gives_other_weights(case):
    """CSOgroup/cellcharter#122: a random_state that was stored and never used."""
    other = case.new(random_state=1).fit(case.X)
    before, after = weights(case.fitted), weights(other)
    assert any(not np.array_equal(before[name], after[name]) for name in before)


@each(VECTORS)
def test_numpy_integers_are_integers(case):
    estimator = case.new(random_state=np.int64(0)).fit(case.X)
    assert_same_arrays(weights(estimator), weights(case.fitted))


@each(VECTORS)
def test_random_state_instances(case):
    first, second = (case.new(random_state=np.random.RandomState(5)).fit(case.X) for _ in range(2))
    assert_same_arrays(_outcome(first, case.X), _outcome(second, case.X))
    # An instance moves on, as in scikit-learn: a second fit with it is another one.
    before = weights(first)
    first.fit(case.X)
    assert any(not np.array_equal(before[name], array) for name, array in weights(first).items())


@each(CASES)
def test_none_draws_exactly_one_integer(case, numpy_seed):
    numpy_seed(3)
    np.random.randint(np.iinfo(np.int32).max)
    expected = pickle.dumps(np.random.get_state())
    numpy_seed(3)
    case.new(random_state=None).fit(case.X)
    assert pickle.dumps(np.random.get_state()) == expected


@each(VECTORS)
def test_none_follows_the_global_seed(case, numpy_seed):
    fits = []
    for _ in range(2):
        numpy_seed(11)
        fits.append(case.new(random_state=None).fit(case.X))
    assert_same_arrays(weights(fits[0]), weights(fits[1]))


@each(CASES)
def test_global_states_stay(case):
    """OpenDeepClustering#3, and skorch's predict, which moves torch's global generator."""
    before = _global_states()
    estimator = case.new()
    _assert_unchanged(before)
    estimator.fit(case.X)
    _assert_unchanged(before)
    for method in ("predict", "transform", "predict_proba", "score", "partial_fit", "fit_predict"):
        if hasattr(estimator, method):
            getattr(estimator, method)(case.X)
            _assert_unchanged(before)


@each(CASES)
def test_global_states_stay_when_a_stream_begins(case):
    before = _global_states()
    estimator = case.new()
    for start in range(0, 60, 10):
        estimator.partial_fit(case.X[start : start + 10])
    _assert_unchanged(before)


@each(CASES)
def test_a_failed_fit_leaves_global_states(case):
    X = case.X.copy()
    X[3, 2] = np.nan
    before = _global_states()
    with pytest.raises(ValueError, match="NaN"):
        case.new().fit(X)
    _assert_unchanged(before)


@each(CASES)
def test_gradients_switched_off_by_the_user(case):
    with torch.no_grad():
        estimator = case.new().fit(case.X)
        assert not torch.is_grad_enabled()
    assert_same_arrays(_outcome(estimator, case.X), _outcome(case.fitted, case.X))


@each(CASES)
def test_default_dtype_float64(case, default_float64):
    """Trained from other random numbers, but trained, and in float32 as ever."""
    estimator = case.new().fit(case.X)
    assert torch.get_default_dtype() == torch.float64
    outs = read_outs(estimator, case.X)
    assert outs["transform"].dtype == np.float32
    assert all(np.isfinite(array).all() for array in outs.values())
    estimator.partial_fit(case.X[:40])
    assert torch.get_default_dtype() == torch.float64
    # What was fitted under one default reads out the same under the other.
    torch.set_default_dtype(torch.float32)
    expected = read_outs(case.fitted, case.X)
    torch.set_default_dtype(torch.float64)
    assert_same_arrays(read_outs(case.fitted, case.X), expected)


def _digest(case):
    """Return a short text that stands for all bits of a fit."""
    digest = hashlib.sha256()
    for name, array in sorted(_outcome(case.fitted, case.X).items()):
        digest.update(name.encode() + array.tobytes())
    return digest.hexdigest()


_FRESH_PROCESS = """
import json, sys, torch
torch.set_num_threads(int(sys.argv[1]))
from tests.common.estimators import CASES
from tests.common.test_reproducibility import _digest
print(json.dumps({str(case): _digest(case) for case in CASES}))
"""


def _run_python(code, *arguments):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_fresh_process_gives_the_same_bits():
    found = json.loads(_run_python(_FRESH_PROCESS, str(torch.get_num_threads())))
    assert found == {str(case): _digest(case) for case in CASES}


_WITHOUT_MAIN_GUARD = """
import multiprocessing
multiprocessing.set_start_method("spawn")
import numpy as np
from skdeepclust import SRKMeans
X = np.random.default_rng(0).normal(size=(60, 4))
model = SRKMeans(2, max_epochs=1, warm_up_epochs=0, hidden_dims=(8,), random_state=0).fit(X)
assert not multiprocessing.active_children()
print(len(model.predict(X)))
"""


def test_a_script_without_main_guard_under_spawn():
    """pytorch/pytorch#31465: workers break where processes are spawned; there are none here."""
    assert _run_python(_WITHOUT_MAIN_GUARD) == "60\n"
