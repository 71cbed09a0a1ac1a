"""Small worked examples shared by the tests of the losses; all in float64."""

from types import SimpleNamespace

import pytest
import torch


@pytest.fixture
def posterior():
    """Posterior of four samples over three clusters."""
    return torch.tensor(
        [[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.3, 0.3, 0.4], [0.5, 0.4, 0.1]], dtype=torch.float64
    )


@pytest.fixture
def example():
    """Four embedded samples, two clusters, balanced assignments, their weighted means."""
    return SimpleNamespace(
        embedding=torch.tensor(
            [[1.0, 0.0], [0.8, 0.2], [-0.6, 0.7], [-0.2, -0.9]], dtype=torch.float64
        ),
        assignments=torch.tensor(
            [[0.9, 0.1], [0.8, 0.2], [0.2, 0.8], [0.1, 0.9]], dtype=torch.float64
        ),
        centers=torch.tensor([[0.7, 0.105], [-0.2, -0.105]], dtype=torch.float64),
        regularization=0.25,
        temperature=0.5,
    )


@pytest.fixture
def generator():
    return torch.Generator().manual_seed(0)


@pytest.fixture
def close():
    """Compare with numbers printed to six decimals."""

    def compare(actual, expected, atol=5e-6):
        expected = torch.as_tensor(expected, dtype=torch.float64)
        torch.testing.assert_close(actual.double(), expected, atol=atol, rtol=0)

    return compare


@pytest.fixture
def random_stochastic(generator):
    """Maker of random row-stochastic matrices: Dirichlet rows, sharper for small values."""

    def make(n_samples, n_clusters, concentration=1.0):
        gamma = torch.full((n_samples, n_clusters), concentration, dtype=torch.float64)
        sample = torch._standard_gamma(gamma, generator=generator).clamp_min(1e-12)
        return sample / sample.sum(dim=1, keepdim=True)

    return make
