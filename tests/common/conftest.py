"""Fixtures of the tests over all estimators."""

import numpy as np
import pytest
import torch


@pytest.fixture
def numpy_seed():
    """Seed NumPy's global generator with a number, and restore its state afterwards."""
    state = np.random.get_state()
    yield np.random.seed
    np.random.set_state(state)


@pytest.fixture
def default_float64():
    """A user who has set torch's default type to float64."""
    dtype = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(dtype)
