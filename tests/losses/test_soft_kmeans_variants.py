import pytest
import torch

from skdeepclust.losses import (
    critical_temperature,
    exact_targets,
    log_posterior,
    log_soft_assignments,
    penalized_soft_assignments,
    rescaled_soft_assignments,
    rescaled_soft_kmeans_objective,
    soft_assignments,
    soft_kmeans_batch_loss,
    soft_kmeans_objective,
    softmax_head_from_centers,
    weighted_centers,
)

PRIOR = torch.tensor([0.7, 0.3], dtype=torch.float64)


@pytest.mark.parametrize(
    ("log_prior", "expected"),
    [
        (
            None,
            [
                [0.937163, 0.062837],
                [0.895698, 0.104302],
                [0.078011, 0.921989],
                [0.085201, 0.914799],
            ],
        ),
        (
            PRIOR.log(),
            [
                [0.957951, 0.042049],
                [0.929167, 0.070833],
                [0.114453, 0.885547],
                [0.124549, 0.875451],
            ],
        ),
    ],
)
def test_penalized_assignments_of_the_example(example, close, log_prior, expected):
    assignments = penalized_soft_assignments(
        example.embedding, example.centers, example.temperature, 1.0, log_prior
    )
    close(assignments, expected)


def test_penalty_moves_proportions_towards_the_prior(example):
    log_assignments = log_soft_assignments(example.embedding, example.centers, 0.5)
    proportions = [
        exact_targets(log_assignments, 1.0, balance, PRIOR.log()).targets.mean(0)[0].item()
        for balance in (0.0, 0.5, 2.0, 20.0, 200.0)
    ]
    assert proportions == sorted(proportions)
    assert 0.695 < proportions[-1] < 0.7
    assert proportions[0] == pytest.approx(0.498844, abs=5e-6)  # mean of .937, .895, .078, .085
    torch.testing.assert_close(
        penalized_soft_assignments(example.embedding, example.centers, 0.5, 0.0, PRIOR.log()),
        soft_assignments(example.embedding, example.centers, 0.5),
        rtol=1e-12,
        atol=0,
    )


def test_rescaled_assignments_of_the_example(example, close):
    assignments = rescaled_soft_assignments(
        example.embedding, example.centers, example.temperature, PRIOR
    )
    close(
        assignments,
        [[0.955142, 0.044858], [0.912644, 0.087356], [0.032495, 0.967505], [0.048446, 0.951554]],
    )


def test_rescaled_objective_with_prior_equal_to_proportions(example, close):
    assignments = torch.tensor(
        [[0.9, 0.1], [0.8, 0.2], [0.7, 0.3], [0.1, 0.9]], dtype=torch.float64
    )
    centers = weighted_centers(assignments, example.embedding)
    proportions = torch.tensor([0.625, 0.375], dtype=torch.float64)
    objective = rescaled_soft_kmeans_objective(
        example.embedding, assignments, centers, example.temperature, proportions
    )
    close(objective, -0.902158)


def test_rescaled_blocks_minimise_the_rescaled_objective(example, random_stochastic, generator):
    arguments = (example.temperature, PRIOR)
    best = rescaled_soft_assignments(example.embedding, example.centers, *arguments)

    def objective(assignments, centers):
        return rescaled_soft_kmeans_objective(example.embedding, assignments, centers, *arguments)

    value = objective(best, example.centers)
    best_centers = weighted_centers(best, example.embedding)
    center_value = objective(best, best_centers)
    assert center_value < value
    for _ in range(20):
        assert objective(0.9 * best + 0.1 * random_stochastic(4, 2), example.centers) > value
        step = 0.1 * torch.randn(2, 2, generator=generator, dtype=torch.float64)
        assert objective(best, best_centers + step) > center_value


def test_rescaled_form_with_equal_proportions_is_the_plain_one(example):
    equal = torch.tensor([0.5, 0.5], dtype=torch.float64)
    torch.testing.assert_close(
        rescaled_soft_assignments(example.embedding, example.centers, 0.5, equal),
        soft_assignments(example.embedding, example.centers, 0.5),
        rtol=1e-12,
        atol=0,
    )
    plain = soft_kmeans_objective(example.embedding, example.assignments, example.centers, 0.5)
    torch.testing.assert_close(
        rescaled_soft_kmeans_objective(
            example.embedding, example.assignments, example.centers, 0.5, equal
        ),
        plain / (4 * 0.5),
        rtol=1e-12,
        atol=0,
    )


def test_batch_loss_gradient_of_the_rescaled_form(example):
    embedding = example.embedding.requires_grad_()
    scaled = 2 * PRIOR * example.assignments
    weight = 1 / example.temperature
    loss = soft_kmeans_batch_loss(embedding, scaled, example.centers, weight)
    (gradient,) = torch.autograd.grad(loss, embedding)
    expected = -2 / (example.regularization * 4) * (PRIOR * example.assignments) @ example.centers
    torch.testing.assert_close(gradient, expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("temperature", [1e-320, 1e-3])
def test_rescaled_assignments_at_tiny_temperature(example, temperature):
    assignments = rescaled_soft_assignments(example.embedding, example.centers, temperature, PRIOR)
    assert torch.isfinite(assignments).all()
    assert assignments.argmax(1).tolist() == [0, 0, 1, 1]


def test_softmax_head_of_the_example(example, close):
    assignments = soft_assignments(example.embedding, example.centers, 0.5)
    centers = weighted_centers(assignments, example.embedding)
    weights, biases = softmax_head_from_centers(centers, assignments.mean(0), 0.5)
    close(
        log_posterior(example.embedding, weights, biases).exp(),
        [[0.898386, 0.101614], [0.858865, 0.141135], [0.251345, 0.748655], [0.327089, 0.672911]],
    )


def test_equal_variances_give_linear_logits(example):
    # Squared distances differ from a linear classifier by a term common to all clusters.
    weights = 2 * example.centers / 0.5
    biases = -example.centers.square().sum(1) / 0.5
    torch.testing.assert_close(
        log_posterior(example.embedding, weights, biases),
        log_soft_assignments(example.embedding, example.centers, 0.5),
        rtol=1e-12,
        atol=1e-12,
    )


def test_critical_temperature_of_the_example(example, close):
    close(critical_temperature(example.embedding), 2 * 0.450950, atol=1e-5)


@pytest.mark.parametrize(("factor", "splits"), [(0.98, True), (1.02, False)])
@pytest.mark.parametrize("n_clusters", [2, 3])
def test_merged_centers_split_just_below_the_critical_temperature(
    example, generator, factor, splits, n_clusters
):
    temperature = factor * critical_temperature(example.embedding).item()
    noise = torch.randn(n_clusters, 2, generator=generator, dtype=torch.float64)
    centers = example.embedding.mean(0) + 1e-4 * (noise - noise.mean(0))
    start = centers.std(0).norm()
    for _ in range(300):
        assignments = soft_assignments(example.embedding, centers, temperature)
        centers = weighted_centers(assignments, example.embedding)
    spread = centers.std(0).norm()
    assert (spread > 10 * start) if splits else (spread < start / 10)
