"""Relations between the objectives, in the form and under the conditions that can be proved."""

import math

import pytest
import torch

from skdeepclust.losses import closed_form_targets as closed
from skdeepclust.losses import (
    cross_entropy,
    depict_objective,
    exact_targets,
    kl_divergence,
    log_posterior,
    mi_adm_objective,
    mutual_information,
    soft_assignments,
    soft_kmeans_objective,
    squared_distances,
    weighted_centers,
)

TIGHT = {"rtol": 0, "atol": 1e-12}


# --- both target updates are minima of their objectives ------------------------------------


@pytest.mark.parametrize(
    ("sharpness", "objective"),
    [(1.0, depict_objective), (2.0, lambda q, log_p: -mi_adm_objective(q, log_p))],
)
def test_projected_gradient_vanishes_at_the_exact_targets(posterior, sharpness, objective):
    def projected_gradient(targets, step=1e-6):
        gradient = torch.empty_like(targets)
        for index in range(targets.numel()):
            shift = torch.zeros_like(targets)
            shift.view(-1)[index] = step
            upper = objective(targets + shift, posterior.log())
            lower = objective(targets - shift, posterior.log())
            gradient.view(-1)[index] = (upper - lower) / (2 * step)
        return gradient - gradient.mean(dim=1, keepdim=True)

    exact = exact_targets(posterior.log(), sharpness, 1.0).targets
    assert projected_gradient(exact).abs().max() < 1e-8
    # The closed form is close to the minimum, and is not it.
    assert projected_gradient(closed(posterior.log(), sharpness, 1.0)).abs().max() > 1e-4


def test_divergence_dominates_the_quadratic_penalties(random_stochastic):
    def chain(targets, posterior):
        difference = targets - posterior
        return (
            kl_divergence(targets, posterior.log()).item(),
            difference.abs().sum(1).square().mean().item() / 2,
            difference.square().sum(1).mean().item() / 2,
        )

    example = chain(
        torch.tensor([[0.8, 0.1, 0.1]], dtype=torch.float64),
        torch.tensor([[0.5, 0.3, 0.2]], dtype=torch.float64),
    )
    assert example == pytest.approx((0.196827, 0.18, 0.07), abs=5e-6)
    for _ in range(50):
        divergence, absolute, squared = chain(random_stochastic(10, 4), random_stochastic(10, 4))
        assert divergence >= absolute >= squared > 0
    same = random_stochastic(10, 4)
    assert chain(same, same) == pytest.approx((0, 0, 0), abs=1e-15)


# --- regularised mutual information and soft K-means ----------------------------------------


def regularised_without_normaliser(embedding, assignments, regularization, with_bias=True):
    """``-A + l |weights|^2 - (2/N) sum log Z`` at the weights that minimise it, and its parts."""
    proportions = assignments.mean(0)
    weights = assignments.T @ embedding / (regularization * len(embedding))
    biases = proportions.log() / 2 if with_bias else torch.zeros_like(proportions)
    log_probabilities = log_posterior(embedding, weights, biases)
    normaliser = torch.logsumexp(embedding @ weights.T + biases, dim=1)
    penalty = regularization * weights.square().sum()
    regularised = -mi_adm_objective(assignments, log_probabilities) + penalty
    return regularised - 2 * normaliser.mean(), regularised, normaliser, weights


def test_equality_on_the_balanced_example(example, close):
    value, regularised, normaliser, weights = regularised_without_normaliser(
        example.embedding, example.assignments, 0.25
    )
    close(weights, [[1.4, 0.21], [-0.4, -0.21]], atol=1e-14)
    close(normaliser, [1.206404, 1.012504, 0.121888, 0.313163])
    close(normaliser.mean(), 0.663490)
    close(regularised, 0.362187)
    close(2 * normaliser.mean(), 1.326980)
    close(value, -0.964793)
    objective = soft_kmeans_objective(
        example.embedding, example.assignments, example.centers, example.temperature
    )
    torch.testing.assert_close(value, objective / (4 * 0.5), **TIGHT)


def test_equality_fails_without_balance(example, close):
    assignments = torch.tensor(
        [[0.9, 0.1], [0.8, 0.2], [0.7, 0.3], [0.1, 0.9]], dtype=torch.float64
    )
    value, *_ = regularised_without_normaliser(example.embedding, assignments, 0.25)
    close(value, -0.902158)
    centers = weighted_centers(assignments, example.embedding)
    scatter = (assignments.mean(0).square() * centers.square().sum(1)).sum()
    negative_entropy = torch.xlogy(assignments, assignments).sum() / 4
    torch.testing.assert_close(value, negative_entropy - scatter / 0.25, **TIGHT)
    objective = soft_kmeans_objective(example.embedding, assignments, centers, 0.5)
    close(objective / (4 * 0.5), -0.852945)


@pytest.mark.parametrize("n_clusters", [2, 3, 5])
def test_equality_on_random_balanced_assignments(generator, random_stochastic, n_clusters):
    rows = random_stochastic(8, n_clusters)
    assignments = torch.cat([rows.roll(shift, dims=1) for shift in range(n_clusters)])
    n_samples, regularization = len(assignments), 0.3
    embedding = torch.randn(n_samples, 3, generator=generator, dtype=torch.float64)
    temperature = regularization * n_clusters
    centers = weighted_centers(assignments, embedding)
    objective = soft_kmeans_objective(embedding, assignments, centers, temperature)
    objective = objective / (n_samples * temperature)
    value, *_ = regularised_without_normaliser(embedding, assignments, regularization)
    torch.testing.assert_close(value, objective, **TIGHT)
    value, *_ = regularised_without_normaliser(embedding, assignments, regularization, False)
    assert (value - objective).item() == pytest.approx(-math.log(n_clusters), abs=1e-12)


def test_assignment_blocks_agree_only_for_centers_of_equal_norm(example):
    def difference(centers):
        weights = centers / example.temperature
        classifier_form = torch.softmax(2 * example.embedding @ weights.T, dim=1)
        distance_form = soft_assignments(example.embedding, centers, example.temperature)
        return (classifier_form - distance_form).abs().max()

    assert difference(example.centers) > 0.05
    norms = example.centers.norm(dim=1, keepdim=True)
    assert difference(example.centers / norms) < 1e-12


def test_assignment_block_of_the_classifier_form_has_the_stated_offset(example):
    weights = example.centers / example.temperature
    offset = example.temperature * weights.square().sum(1)
    torch.testing.assert_close(
        torch.softmax(2 * example.embedding @ weights.T - offset, dim=1),
        torch.softmax(-squared_distances(example.embedding, example.centers) / 0.5, dim=1),
        **TIGHT,
    )


# --- when the mutual information cannot decrease ---------------------------------------------


def test_information_of_the_targets_in_the_example(posterior, close):
    logarithms = posterior.log()
    targets = closed(logarithms, 2.0, 1.0)
    close(mutual_information(targets), 0.356540)
    close(mi_adm_objective(targets, logarithms), 0.223248)
    close(kl_divergence(targets, logarithms), 0.066646)
    close(mutual_information(exact_targets(logarithms, 2.0, 1.0).targets), 0.355717)


def test_targets_that_do_not_lower_the_functional_raise_the_information(random_stochastic):
    satisfied = 0
    for _ in range(100):
        posterior, targets = random_stochastic(12, 3), random_stochastic(12, 3)
        logarithms = posterior.log()
        for candidate in (targets, closed(logarithms, 2.0, 1.0)):
            if mi_adm_objective(candidate, logarithms) >= mutual_information(posterior):
                satisfied += 1
                gain = mutual_information(candidate) - mutual_information(posterior)
                assert gain >= 2 * kl_divergence(candidate, logarithms) - 1e-12
    assert satisfied > 50


def overlapping_classes(generator):
    means = torch.tensor([[1.5, 0.0], [-0.75, 1.3], [-0.75, -1.3]], dtype=torch.float64)
    noise = torch.randn(60, 2, generator=generator, dtype=torch.float64)
    return means.repeat(20, 1) + noise, means


def fit_head(embedding, targets, weights, biases, l2=0.0):
    """Minimise ``2 CE + l2 |weights|^2`` until the gradient is below 1e-8."""
    weights, biases = weights.clone().requires_grad_(), biases.clone().requires_grad_()
    optimiser = torch.optim.LBFGS(
        [weights, biases],
        max_iter=2000,
        tolerance_grad=1e-10,
        tolerance_change=0,
        line_search_fn="strong_wolfe",
    )

    def closure():
        optimiser.zero_grad()
        loss = 2 * cross_entropy(targets, log_posterior(embedding, weights, biases))
        loss = loss + l2 * weights.square().sum()
        loss.backward()
        return loss

    optimiser.step(closure)
    closure()
    assert max(weights.grad.abs().max(), biases.grad.abs().max()) < 1e-8
    return weights.detach(), biases.detach()


def test_information_never_decreases_with_exact_targets_and_a_converged_head(generator):
    embedding, means = overlapping_classes(generator)
    weights, biases = 0.3 * means, torch.zeros(3, dtype=torch.float64)
    information, functional = [], []
    # Without a penalty the weights about double in every round; four rounds keep them moderate.
    for _ in range(4):
        logarithms = log_posterior(embedding, weights, biases)
        posterior = logarithms.exp()
        information.append(mutual_information(posterior).item())
        targets = exact_targets(logarithms, 2.0, 1.0).targets
        functional.append(mi_adm_objective(targets, logarithms).item())
        assert functional[-1] >= information[-1] - 1e-12

        weights, biases = fit_head(embedding, targets, weights, biases)
        new_logarithms = log_posterior(embedding, weights, biases)
        new_posterior = new_logarithms.exp()
        functional.append(mi_adm_objective(targets, new_logarithms).item())
        assert cross_entropy(targets, new_logarithms) <= cross_entropy(targets, logarithms) + 1e-12
        torch.testing.assert_close(new_posterior.mean(0), targets.mean(0), rtol=0, atol=1e-8)
        gain = mutual_information(new_posterior).item() - information[-1]
        assert gain >= kl_divergence(targets, new_logarithms).item() - 1e-7
    assert torch.tensor(information).double().diff().min() >= -1e-9
    assert torch.tensor(functional).double().diff().min() >= -1e-9
    assert information[-1] > information[0] + 0.1


def test_penalty_on_the_weights_appears_in_the_information(generator):
    embedding, means = overlapping_classes(generator)
    l2 = 0.05
    weights, biases = 0.3 * means, torch.zeros(3, dtype=torch.float64)
    targets = exact_targets(log_posterior(embedding, weights, biases), 2.0, 1.0).targets
    weights, biases = fit_head(embedding, targets, weights, biases, l2)
    logarithms = log_posterior(embedding, weights, biases)
    penalty = l2 * weights.square().sum()
    assert penalty > 1e-3
    torch.testing.assert_close(
        mutual_information(logarithms.exp()) - penalty,
        (mi_adm_objective(targets, logarithms) - penalty)
        + kl_divergence(targets, logarithms)
        - penalty,
        rtol=0,
        atol=1e-7,
    )
