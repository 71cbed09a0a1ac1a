import numpy as np
import pytest
import torch
from sklearn.cluster import KMeans

from skdeepclust.losses import (
    log_soft_assignments,
    soft_assignments,
    soft_kmeans_batch_loss,
    soft_kmeans_free_energy,
    soft_kmeans_objective,
    squared_distances,
    update_center_statistics,
    weighted_centers,
)

FIRST_ASSIGNMENTS = [
    [0.937027, 0.062973],
    [0.895482, 0.104518],
    [0.077845, 0.922155],
    [0.085021, 0.914979],
]


def random_embedding(generator, n_samples=50, embedding_dim=3):
    return torch.randn(n_samples, embedding_dim, generator=generator, dtype=torch.float64)


def test_weighted_centers_and_distances_of_the_example(example, close):
    close(weighted_centers(example.assignments, example.embedding), example.centers, atol=1e-15)
    close(
        squared_distances(example.embedding, example.centers),
        [[0.101025, 1.451025], [0.019025, 1.093025], [2.044025, 0.808025], [1.820025, 0.632025]],
        atol=1e-14,
    )


@pytest.mark.parametrize(
    ("dtype", "offset", "rtol"), [(torch.float64, 1e6, 1e-12), (torch.float32, 1e3, 1e-6)]
)
def test_distances_stay_accurate_far_from_the_origin(generator, dtype, offset, rtol):
    embedding = (random_embedding(generator) + offset).to(dtype)
    centers = (random_embedding(generator, 4) + offset).to(dtype)
    # Differences of the rounded inputs are the truth; nothing cancels in them.
    differences = embedding.double()[:, None, :] - centers.double()[None, :, :]
    expected = differences.square().sum(dim=2)
    actual = squared_distances(embedding, centers)
    assert actual.dtype == dtype
    torch.testing.assert_close(actual.double(), expected, rtol=rtol, atol=10 * rtol)
    # The same without the shift is useless, so the tolerance above does test the shift.
    naive = (
        embedding.square().sum(1, keepdim=True)
        + centers.square().sum(1)
        - 2 * embedding @ centers.T
    )
    assert (naive.double() - expected).abs().max() > 100 * 10 * rtol


def test_distance_of_a_center_to_itself_is_not_negative(generator):
    centers = random_embedding(generator, 40, 20).float() * 7
    distances = squared_distances(centers, centers)
    assert (distances >= 0).all()
    torch.testing.assert_close(distances.diagonal(), torch.zeros(40), atol=1e-2, rtol=0)


def test_objective_of_the_example(example, close):
    embedding, assignments = example.embedding, example.assignments
    within = (assignments * squared_distances(embedding, example.centers)).sum()
    close(within, 2.275900)
    close((assignments * assignments.log()).sum(), -1.650971)
    objective = soft_kmeans_objective(embedding, assignments, example.centers, 0.5)
    close(objective, -1.929585)
    close(objective / (4 * 0.5), -0.964793)


def test_scatter_identity(example, close):
    embedding, assignments = example.embedding, example.assignments
    within = (assignments * squared_distances(embedding, example.centers)).sum()
    between = (assignments.sum(0) * example.centers.square().sum(1)).sum()
    close(within - embedding.square().sum(), -1.104100)
    close(-between, -1.104100)


def test_scatter_identity_on_random_data(generator, random_stochastic):
    embedding, assignments = random_embedding(generator), random_stochastic(50, 4)
    centers = weighted_centers(assignments, embedding)
    within = (assignments * squared_distances(embedding, centers)).sum()
    between = (assignments.sum(0) * centers.square().sum(1)).sum()
    torch.testing.assert_close(within - embedding.square().sum(), -between, rtol=1e-12, atol=1e-12)


def test_one_alternation_of_the_example(example, close):
    embedding, temperature = example.embedding, example.temperature
    assignments = soft_assignments(embedding, example.centers, temperature)
    close(assignments, FIRST_ASSIGNMENTS)
    centers = weighted_centers(assignments, embedding)
    close(centers, [[0.796693, 0.078716], [-0.294170, -0.078353]])
    close(soft_kmeans_objective(embedding, assignments, example.centers, temperature), -1.992566)
    close(soft_kmeans_objective(embedding, assignments, centers, temperature), -2.031801)
    close(
        soft_assignments(embedding, centers, temperature),
        [[0.963278, 0.036722], [0.925528, 0.074472], [0.036447, 0.963553], [0.073466, 0.926534]],
    )


@pytest.mark.parametrize(
    ("temperature", "expected"),
    [
        (0.5, [0.937027, 0.895482, 0.077845, 0.085021]),
        (0.1, [0.999999, 0.999978, 0.000004, 0.000007]),
    ],
)
def test_assignments_sharpen_as_the_temperature_falls(example, close, temperature, expected):
    assignments = soft_assignments(example.embedding, example.centers, temperature)
    close(assignments[:, 0], expected)


def test_mixture_prior_of_the_example(example, close):
    log_prior = torch.tensor([0.7, 0.3], dtype=torch.float64).log()
    close(
        soft_assignments(example.embedding, example.centers, 0.5, log_prior),
        [[0.972004, 0.027996], [0.952361, 0.047639], [0.164557, 0.835443], [0.178184, 0.821816]],
    )


def test_mixture_prior_minimises_the_objective_with_prior(example, random_stochastic):
    log_prior = torch.tensor([0.7, 0.3], dtype=torch.float64).log()
    arguments = (example.centers, 0.5, log_prior)
    best = soft_assignments(example.embedding, *arguments)
    value = soft_kmeans_objective(example.embedding, best, *arguments)
    for _ in range(20):
        other = 0.9 * best + 0.1 * random_stochastic(4, 2)
        assert soft_kmeans_objective(example.embedding, other, *arguments) > value


def test_equal_prior_changes_nothing(example):
    log_prior = torch.full((2,), -np.log(2.0), dtype=torch.float64)
    torch.testing.assert_close(
        soft_assignments(example.embedding, example.centers, 0.5, log_prior),
        soft_assignments(example.embedding, example.centers, 0.5),
        rtol=1e-14,
        atol=0,
    )


@pytest.mark.parametrize("temperature", [1e-320, 1e-8, 1e-3, 1.0, 1e8])
def test_rows_sum_to_one_at_any_temperature(generator, temperature):
    embedding, centers = random_embedding(generator), random_embedding(generator, 5)
    assignments = soft_assignments(embedding, centers, temperature)
    assert (assignments >= 0).all()
    torch.testing.assert_close(
        assignments.sum(1), torch.ones(50, dtype=torch.float64), atol=1e-12, rtol=0
    )
    labels = squared_distances(embedding, centers).argmin(1)
    torch.testing.assert_close(assignments.argmax(1), labels)


def test_log_assignments_keep_what_underflows(example):
    assignments = soft_assignments(example.embedding, example.centers, 1e-4)
    logarithms = log_soft_assignments(example.embedding, example.centers, 1e-4)
    assert (assignments == 0).any()
    assert torch.isfinite(logarithms).all()
    # Row 0: the distances 0.101025 and 1.451025 differ by 1.35.
    torch.testing.assert_close(
        logarithms[0], torch.tensor([0.0, -13500.0], dtype=torch.float64), rtol=1e-10, atol=1e-10
    )


def test_permutation_of_samples_and_clusters(generator, random_stochastic):
    embedding, centers = random_embedding(generator), random_embedding(generator, 4)
    samples, clusters = torch.randperm(50, generator=generator), torch.tensor([2, 0, 3, 1])
    assignments = soft_assignments(embedding, centers, 0.7)
    permuted = soft_assignments(embedding[samples], centers[clusters], 0.7)
    torch.testing.assert_close(permuted, assignments[samples][:, clusters], rtol=1e-12, atol=0)
    torch.testing.assert_close(
        weighted_centers(permuted, embedding[samples]),
        weighted_centers(assignments, embedding)[clusters],
        rtol=1e-12,
        atol=1e-14,
    )


def test_shift_moves_centers_only_but_changes_the_objective(example, close):
    embedding, temperature = example.embedding, example.temperature
    shifted, shifted_centers = embedding + 1, example.centers + 1
    torch.testing.assert_close(
        soft_assignments(shifted, shifted_centers, temperature),
        soft_assignments(embedding, example.centers, temperature),
        rtol=1e-12,
        atol=0,
    )
    close(weighted_centers(example.assignments, shifted), shifted_centers, atol=1e-14)
    objective = soft_kmeans_objective(shifted, example.assignments, shifted_centers, temperature)
    close(objective, -11.929585)


def test_centred_objective_does_not_depend_on_the_origin(example, close):
    for offset in (0.0, 1.0, -30.0):
        embedding = example.embedding + offset
        objective = soft_kmeans_objective(
            embedding,
            example.assignments,
            example.centers + offset,
            example.temperature,
            mean=embedding.mean(0),
        )
        close(objective, -1.679585)


def test_objective_never_increases_under_alternation(generator):
    embedding, temperature = random_embedding(generator, 80), 0.8
    centers = embedding[:5]
    values = []
    for _ in range(30):
        assignments = soft_assignments(embedding, centers, temperature)
        values.append(soft_kmeans_objective(embedding, assignments, centers, temperature))
        centers = weighted_centers(assignments, embedding)
        values.append(soft_kmeans_objective(embedding, assignments, centers, temperature))
    assert torch.stack(values).diff().max() < 1e-10
    assert values[-1] < values[0] - 1


def test_free_energy(example, close, generator):
    close(soft_kmeans_free_energy(example.embedding, example.centers, 0.5), 1.387434)
    embedding, centers = random_embedding(generator), random_embedding(generator, 4)
    for log_prior in (None, torch.tensor([0.4, 0.3, 0.2, 0.1], dtype=torch.float64).log()):
        assignments = soft_assignments(embedding, centers, 0.3, log_prior)
        objective = soft_kmeans_objective(embedding, assignments, centers, 0.3, log_prior)
        torch.testing.assert_close(
            soft_kmeans_free_energy(embedding, centers, 0.3, log_prior),
            objective + embedding.square().sum(),
            rtol=1e-12,
            atol=1e-12,
        )


def test_assignments_are_those_of_an_isotropic_gaussian_mixture(generator):
    embedding, centers = random_embedding(generator), random_embedding(generator, 4)
    temperature = 0.6
    components = torch.distributions.MultivariateNormal(
        centers, covariance_matrix=temperature / 2 * torch.eye(3, dtype=torch.float64)
    )
    responsibilities = torch.softmax(components.log_prob(embedding[:, None, :]), dim=1)
    torch.testing.assert_close(
        soft_assignments(embedding, centers, temperature), responsibilities, rtol=1e-11, atol=1e-14
    )


@pytest.mark.parametrize("offset", [0.0, 1000.0])
def test_zero_temperature_is_one_step_of_lloyd(generator, offset):
    embedding = random_embedding(generator, 200, 4) + offset
    start = embedding[:5]
    assignments = soft_assignments(embedding, start, 5 * 1e-8)
    kmeans = KMeans(5, init=start.numpy(), n_init=1, max_iter=1, tol=0, algorithm="lloyd")
    kmeans.fit(embedding.numpy())
    np.testing.assert_allclose(
        weighted_centers(assignments, embedding).numpy(),
        kmeans.cluster_centers_,
        rtol=0,
        atol=1e-12 * max(1.0, offset),
    )


def test_zero_temperature_converges_where_kmeans_does(generator):
    embedding = random_embedding(generator, 200, 4)
    centers = embedding[:5]
    kmeans = KMeans(5, init=centers.numpy(), n_init=1, max_iter=300, tol=0, algorithm="lloyd")
    kmeans.fit(embedding.numpy())
    for _ in range(kmeans.n_iter_ + 1):
        assignments = soft_assignments(embedding, centers, 5 * 1e-8)
        centers = weighted_centers(assignments, embedding)
    np.testing.assert_allclose(centers.numpy(), kmeans.cluster_centers_, rtol=0, atol=1e-12)
    inertia = soft_kmeans_free_energy(embedding, centers, 5 * 1e-8)
    np.testing.assert_allclose(inertia.item(), kmeans.inertia_, rtol=1e-12)


def test_batch_loss_is_the_objective_up_to_scale_and_entropy(example):
    loss = soft_kmeans_batch_loss(example.embedding, example.assignments, example.centers, 2.0)
    # Scatter identity: -1.1041 in total, times 2 over 4 rows.
    torch.testing.assert_close(loss.item(), -1.1041 / 2, rtol=1e-12, atol=0)


def test_batch_loss_gradient_of_the_example(example, close):
    embedding = example.embedding.requires_grad_()
    soft_kmeans_batch_loss(embedding, example.assignments, example.centers, 2.0).backward()
    close(
        embedding.grad,
        [[-0.61, -0.084], [-0.52, -0.063], [0.02, 0.063], [0.11, 0.084]],
        atol=1e-14,
    )


@pytest.mark.parametrize("centred", [False, True])
def test_batch_loss_against_its_definition(generator, random_stochastic, centred):
    embedding = random_embedding(generator, 7).requires_grad_()
    assignments, centers = random_stochastic(7, 4), random_embedding(generator, 4)
    mean = torch.tensor([0.5, -1.0, 2.0], dtype=torch.float64) if centred else torch.zeros(3)
    weight = 13.0
    loss = soft_kmeans_batch_loss(
        embedding, assignments, centers, weight, mean=mean if centred else None
    )
    distances = (embedding[:, None, :] - centers).square().sum(2)
    definition = (assignments * distances).sum(1) - (embedding - mean).square().sum(1)
    torch.testing.assert_close(loss, weight * definition.mean(), rtol=1e-12, atol=1e-12)
    (gradient,) = torch.autograd.grad(loss, embedding)
    expected = -2 * weight * (assignments @ centers - mean) / 7
    torch.testing.assert_close(gradient, expected, rtol=1e-12, atol=1e-12)


def test_centred_batch_loss_ignores_a_common_shift(example):
    def loss(offset):
        embedding = example.embedding + offset
        return soft_kmeans_batch_loss(
            embedding, example.assignments, example.centers + offset, 2.0, embedding.mean(0)
        )

    torch.testing.assert_close(loss(100.0), loss(0.0), rtol=1e-11, atol=0)


def test_gradients_of_assignments_and_free_energy(generator):
    embedding = random_embedding(generator, 4).requires_grad_()
    centers = random_embedding(generator, 3).requires_grad_()
    assert torch.autograd.gradcheck(lambda z, c: soft_assignments(z, c, 0.7), (embedding, centers))
    energy = soft_kmeans_free_energy(embedding, centers, 0.7)
    gradient, center_gradient = torch.autograd.grad(energy, (embedding, centers))
    # Envelope: the derivative of the minimum is that of the distances at fixed assignments.
    assignments = soft_assignments(embedding, centers, 0.7).detach()
    pulls = 2 * (embedding[:, None, :] - centers) * assignments[:, :, None]
    torch.testing.assert_close(gradient, pulls.sum(1), rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(center_gradient, -pulls.sum(0), rtol=1e-10, atol=1e-12)


def test_streaming_statistics_of_the_example(example, close):
    batch = torch.tensor([[0.9, 0.1], [-0.4, -0.3]], dtype=torch.float64)
    assignments = soft_assignments(batch, example.centers, example.temperature)
    close(assignments, [[0.918639, 0.081361], [0.069655, 0.930345]])
    weights = torch.tensor([0.5, 0.5], dtype=torch.float64)
    sums = weights[:, None] * example.centers
    before = sums.clone()
    new_weights, new_sums = update_center_statistics(weights, sums, assignments, batch, 0.2)
    close(new_weights, [0.498829, 0.501171])
    close(new_sums, [[0.359891, 0.049097], [-0.109891, -0.069097]])
    close(new_sums / new_weights[:, None], [[0.721472, 0.098424], [-0.219269, -0.137871]])
    assert torch.equal(sums, before)


def test_streaming_at_rate_one_is_the_full_step(example):
    junk = torch.full((2, 2), 1e30, dtype=torch.float64)
    weights, sums = update_center_statistics(
        junk[0], junk, example.assignments, example.embedding, 1.0
    )
    torch.testing.assert_close(sums / weights[:, None], example.centers, rtol=1e-14, atol=1e-15)


def test_float32_stays_float32(example):
    embedding, centers = example.embedding.float(), example.centers.float()
    assignments = soft_assignments(embedding, centers, 1e-3)
    assert assignments.dtype == torch.float32
    assert weighted_centers(assignments, embedding).dtype == torch.float32
    assert soft_kmeans_batch_loss(embedding, assignments, centers, 1e3).dtype == torch.float32
