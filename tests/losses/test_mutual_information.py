import math

import pytest
import torch

from skdeepclust.losses import (
    closed_form_targets,
    conditional_entropy,
    cross_entropy,
    depict_objective,
    entropy,
    exact_targets,
    kl_divergence,
    log_posterior,
    mi_adm_objective,
    mutual_information,
)


def test_log_posterior_of_the_example(example, close):
    weights = torch.tensor([[1.4, 0.21], [-0.4, -0.21]], dtype=torch.float64)
    biases = torch.full((2,), 0.5 * math.log(0.5), dtype=torch.float64)
    close(
        log_posterior(example.embedding, weights, biases).exp(),
        [[0.858149, 0.141851], [0.821127, 0.178873], [0.313028, 0.686972], [0.323442, 0.676558]],
    )


@pytest.mark.parametrize(
    ("temperature", "expected"),
    [
        (0.5, [[0.866813, 0.117310, 0.015876]]),
        (1.0, [[0.665241, 0.244728, 0.090031]]),
        (2.0, [[0.506480, 0.307196, 0.186324]]),
    ],
)
def test_temperature_of_the_posterior(close, temperature, expected):
    weights = torch.tensor([[2.0], [1.0], [0.0]], dtype=torch.float64)
    one = torch.ones(1, 1, dtype=torch.float64)
    actual = log_posterior(one, weights, torch.zeros(3, dtype=torch.float64), temperature)
    close(actual.exp(), expected)


def test_mutual_information_of_the_example(posterior, close):
    close(posterior.mean(0), [0.4, 0.375, 0.225], atol=1e-15)
    close(entropy(posterior.mean(0)), 1.069950)
    close(conditional_entropy(posterior), 0.933003)
    close(mutual_information(posterior), 0.136946)


def test_objectives_of_the_example(posterior, close):
    logarithms = posterior.log()
    close(mi_adm_objective(posterior, logarithms), 0.136946)
    close(mi_adm_objective(closed_form_targets(logarithms, 2.0, 1.0), logarithms), 0.223248)
    close(mi_adm_objective(exact_targets(logarithms, 2.0, 1.0).targets, logarithms), 0.223295)
    close(depict_objective(posterior, logarithms), -1.069950)
    close(depict_objective(closed_form_targets(logarithms, 1.0, 1.0), logarithms), -1.082676)
    close(depict_objective(exact_targets(logarithms, 1.0, 1.0).targets, logarithms), -1.082744)


def test_objectives_against_their_definitions(random_stochastic):
    posterior, targets = random_stochastic(30, 4), random_stochastic(30, 4)
    proportions = targets.mean(0)
    fit = (targets * posterior.log()).sum() / 30
    divergence = (targets * (targets / posterior).log()).sum() / 30
    balance = -(proportions * proportions.log()).sum()
    tolerance = {"rtol": 1e-12, "atol": 1e-13}
    logarithms = posterior.log()
    torch.testing.assert_close(cross_entropy(targets, logarithms), -fit, **tolerance)
    torch.testing.assert_close(kl_divergence(targets, logarithms), divergence, **tolerance)
    torch.testing.assert_close(
        mi_adm_objective(targets, logarithms), fit + balance - divergence, **tolerance
    )
    torch.testing.assert_close(
        depict_objective(targets, logarithms, 0.7), divergence - 0.7 * balance, **tolerance
    )


@pytest.mark.parametrize("concentration", [0.05, 1.0, 20.0])
def test_bounds_and_identities(random_stochastic, concentration):
    for n_clusters in (2, 5):
        posterior = random_stochastic(40, n_clusters, concentration)
        targets = random_stochastic(40, n_clusters, concentration)
        logarithms = posterior.log()
        information = mutual_information(posterior)
        assert -1e-12 <= information <= math.log(n_clusters) + 1e-12
        torch.testing.assert_close(
            mi_adm_objective(posterior, logarithms), information, atol=1e-12, rtol=0
        )
        torch.testing.assert_close(
            mutual_information(targets),
            mi_adm_objective(targets, logarithms) + 2 * kl_divergence(targets, logarithms),
            atol=1e-12,
            rtol=0,
        )


def test_extreme_posteriors():
    one_hot = torch.eye(3, dtype=torch.float64)
    assert mutual_information(one_hot).item() == pytest.approx(math.log(3), abs=1e-15)
    merged = torch.tensor([[1.0, 0.0, 0.0]] * 4, dtype=torch.float64)
    assert mutual_information(merged).item() == 0
    equal = torch.full((4, 3), 1 / 3, dtype=torch.float64)
    assert mutual_information(equal).item() == pytest.approx(0, abs=1e-15)


def test_targets_of_zero_count_nothing():
    targets = torch.tensor([[1.0, 0.0], [0.0, 1.0]], dtype=torch.float64)
    logarithms = torch.tensor([[0.0, -torch.inf], [-torch.inf, 0.0]], dtype=torch.float64)
    logarithms.requires_grad_()
    loss = cross_entropy(targets, logarithms)
    (gradient,) = torch.autograd.grad(loss, logarithms)
    assert loss.item() == 0
    assert torch.equal(gradient, -targets / 2)
    assert kl_divergence(targets, logarithms).item() == 0
    assert mi_adm_objective(targets, logarithms).item() == pytest.approx(math.log(2))


def test_cross_entropy_gradient_is_posterior_minus_targets(posterior, random_stochastic):
    logits = posterior.log().requires_grad_()
    targets = random_stochastic(4, 3)
    loss = cross_entropy(targets, torch.log_softmax(logits, dim=1))
    (gradient,) = torch.autograd.grad(loss, logits)
    torch.testing.assert_close(gradient, (posterior - targets) / 4, rtol=1e-12, atol=1e-15)


def test_gradients_of_the_information(posterior):
    assert torch.autograd.gradcheck(
        lambda logits: mutual_information(torch.softmax(logits, dim=1)),
        posterior.log().requires_grad_(),
    )
