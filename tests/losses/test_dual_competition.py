"""The worked examples and invariants of dual competitive learning."""

import itertools
import math
from types import SimpleNamespace

import pytest
import torch

from skdeepclust.losses import (
    assignment_imbalance,
    conditional_entropy,
    critical_temperature,
    log_soft_assignments,
    prototype_attraction,
    prototype_overlap,
    quantization_parts,
    simplex_projection,
    soft_assignments,
    soft_kmeans_free_energy,
    sparse_assignments,
    splitting_temperatures,
    squared_distances,
    update_prototypes,
)
from skdeepclust.nn.dual_competitive_layer import DualCompetitiveLayer


def _double(values):
    return torch.tensor(values, dtype=torch.float64)


@pytest.fixture
def dual():
    """Four centred samples, the weights of a dual layer, its prototypes at temperature 1."""
    embedding = _double([[2, 0], [1, 1], [-1, 0], [-2, -1]])
    weights = _double([[2, 0], [1, 1], [0, 1], [1, 2]])
    prototypes = _double([[0.75, 0], [-1, -0.25]])
    return SimpleNamespace(
        embedding=embedding,
        weights=weights,
        prototypes=prototypes,
        assignments=soft_assignments(embedding, prototypes, 1.0),
    )


def _layer(weights):
    layer = DualCompetitiveLayer(*weights.shape).double()
    with torch.no_grad():
        layer.weights.copy_(weights)
    return layer


def _quantization(embedding, prototypes, temperature, *, detached=False, part="quantization"):
    assignments = soft_assignments(embedding, prototypes, temperature)
    if detached:
        assignments = assignments.detach()
    return getattr(quantization_parts(embedding, prototypes, assignments), part).mean()


# -- worked examples -----------------------------------------------------------------------


def test_prototypes_of_the_layer(dual, close):
    close(_layer(dual.weights)(dual.embedding), dual.prototypes, atol=1e-15)


def test_assignments_of_the_example(dual, close):
    close(
        squared_distances(dual.embedding, dual.prototypes),
        [[1.5625, 9.0625], [1.0625, 5.5625], [3.0625, 0.0625], [8.5625, 1.5625]],
        atol=1e-14,
    )
    expected = [[0.999447, 0.000553], [0.989013, 0.010987], [0.047426, 0.952574]]
    close(dual.assignments, [*expected, [0.000911, 0.999089]], atol=1e-6)
    close(dual.assignments.mean(dim=0), [0.509199, 0.490801], atol=1e-6)


def test_terms_of_the_example(dual, close):
    quantization = quantization_parts(dual.embedding, dual.prototypes, dual.assignments)[0].mean()
    imbalance = assignment_imbalance(dual.assignments)
    negative_entropy = -conditional_entropy(dual.assignments)
    overlap = prototype_overlap(dual.prototypes, 3.0)
    ridge = dual.prototypes.square().sum()
    close(imbalance, 0.000169264, atol=1e-9)
    close(negative_entropy, -0.065835388, atol=1e-9)
    close(overlap, 0.352866, atol=1e-6)
    close(ridge, 1.625, atol=1e-12)
    close(quantization, 1.113060515, atol=1e-9)
    total = quantization + 0.1 * imbalance + 0.05 * negative_entropy + 0.2 * overlap
    close(total + 1e-3 / 2 * ridge, 1.181171388, atol=1e-9)
    close(soft_kmeans_free_energy(dual.embedding, dual.prototypes, 1.0) / 4, 1.047225126, 1e-9)


@pytest.mark.parametrize(
    ("part", "detached", "expected"),
    [
        ("quantization", True, [[-0.705531, -0.494051], [0.487728, 0.248651]]),
        ("quantization", False, [[-0.841582, -0.521686], [0.546027, 0.265178]]),
        ("reconstruction", True, [[-0.755848, -0.501239], [0.538046, 0.255839]]),
        ("reconstruction", False, [[-0.770954, -0.510849], [0.559128, 0.266302]]),
    ],
)
def test_gradients_of_the_prototypes(dual, close, part, detached, expected):
    prototypes = dual.prototypes.clone().requires_grad_()
    _quantization(dual.embedding, prototypes, 1.0, detached=detached, part=part).backward()
    close(prototypes.grad, expected, atol=1e-6)


def test_gradient_of_the_weights_and_a_step(dual, close):
    layer = _layer(dual.weights)
    energy = soft_kmeans_free_energy(dual.embedding, layer(dual.embedding), 1.0) / 4
    energy.backward()
    close(
        layer.weights.grad,
        [
            [-0.352765, 0.243864],
            [-0.299895, 0.184095],
            [0.176383, -0.121932],
            [0.476278, -0.306027],
        ],
        atol=1e-6,
    )
    with torch.no_grad():
        layer.weights -= layer.weights.grad
        prototypes = layer(dual.embedding)
    close(prototypes, [[1.283591, 0.194043], [-1.351452, -0.372530]], atol=1e-6)
    close(soft_kmeans_free_energy(dual.embedding, prototypes, 1.0) / 4, 0.587363, atol=1e-6)
    close(_quantization(dual.embedding, prototypes, 1.0), 0.599985, atol=1e-6)


@pytest.mark.parametrize("part", ["quantization", "reconstruction"])
def test_both_losses_pull_the_samples_alike(dual, close, part):
    embedding = dual.embedding.clone().requires_grad_()
    parts = quantization_parts(embedding, dual.prototypes, dual.assignments)
    getattr(parts, part).mean().backward()
    expected = [[0.625484, 0.000069], [0.134614, 0.501373], [-0.041498, 0.119072]]
    close(embedding.grad, [*expected, [-0.500797, -0.375114]], atol=1e-6)


def test_parts_of_one_sample(close):
    z, q = _double([[1, 0]]), _double([[0.5, 0.25, 0.25]])
    prototypes = _double([[0, 0], [2, 0], [0, 2]])
    close(torch.cat(quantization_parts(z, prototypes, q)), [2.0, 0.5, 1.5], atol=1e-15)
    expected = [[-0.5, -0.5], [0.75, -0.25], [-0.25, 0.75]]
    close(prototype_attraction(prototypes, q), expected, atol=1e-15)


def test_parts_of_the_example(dual, close):
    parts = quantization_parts(dual.embedding, dual.prototypes, dual.assignments)
    close(parts.quantization.mean(), 1.113060515, atol=1e-9)
    close(parts.reconstruction.mean(), 1.068134278, atol=1e-9)
    close(parts.spread.mean(), 0.044926237, atol=1e-9)
    attraction = prototype_attraction(dual.prototypes, dual.assignments)
    close(attraction, [[0.050317, 0.007188], [-0.050317, -0.007188]], atol=1e-6)
    close(attraction.norm(), 0.071882, atol=1e-6)


def test_splitting_temperatures_of_the_example(dual):
    variance = float(critical_temperature(dual.embedding)) / 2
    assert variance == pytest.approx(2.75)
    assert splitting_temperatures(variance, 0.0) == (0.0, pytest.approx(11.0))
    assert splitting_temperatures(variance) == (0.0, pytest.approx(5.5))


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([0.5, 0.3, -0.1], [0.6, 0.4, 0]),
        ([1.2, 0.7, 0.1], [0.75, 0.25, 0]),
        ([0.2, 0.2, 0.2], [1 / 3, 1 / 3, 1 / 3]),
        ([3, 0, 0], [1, 0, 0]),
        ([-1, -2, -3], [1, 0, 0]),
        ([0.6, 0.4, 0], [0.6, 0.4, 0]),
    ],
)
def test_projections_of_the_example(close, rows, expected):
    close(simplex_projection(_double([rows])), [expected], atol=1e-15)


# -- the decomposition ---------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e2])
@pytest.mark.parametrize("offset", [0.0, 1e3])
def test_the_parts_add_up(generator, random_stochastic, scale, offset):
    for n_clusters in (1, 2, 7):
        embedding = torch.randn(40, 5, generator=generator, dtype=torch.float64) * scale + offset
        prototypes = torch.randn(n_clusters, 5, generator=generator, dtype=torch.float64)
        prototypes = prototypes * scale + offset
        q = random_stochastic(40, n_clusters, 0.3)
        parts = quantization_parts(embedding, prototypes, q)
        # Far from the origin the mixed prototype itself is rounded to this.
        atol = 1e-13 * offset * scale
        torch.testing.assert_close(
            parts.quantization, parts.reconstruction + parts.spread, rtol=1e-10, atol=atol
        )
        assert (parts.spread >= 0).all()


def test_the_spread_is_a_quadratic_form_of_the_assignments(generator, random_stochastic):
    prototypes = torch.randn(4, 3, generator=generator, dtype=torch.float64)
    q = random_stochastic(10, 4)
    covariances = torch.diag_embed(q) - q.unsqueeze(2) * q.unsqueeze(1)
    assert torch.linalg.eigvalsh(covariances).min() > -1e-15
    assert covariances.sum(dim=2).abs().max() < 1e-15
    expected = torch.einsum("kd,nkj,jd->n", prototypes, covariances, prototypes)
    parts = quantization_parts(torch.zeros(10, 3, dtype=torch.float64), prototypes, q)
    torch.testing.assert_close(parts.spread, expected)
    torch.testing.assert_close(
        prototype_attraction(prototypes, q), 2 * covariances.mean(dim=0) @ prototypes
    )


@pytest.mark.parametrize("part", ["quantization", "reconstruction", "spread"])
def test_gradients_are_those_of_differences(dual, part):
    def loss(embedding, prototypes):
        return _quantization(embedding, prototypes, 0.7, part=part)

    inputs = dual.embedding.clone().requires_grad_(), dual.prototypes.clone().requires_grad_()
    assert torch.autograd.gradcheck(loss, inputs, eps=1e-6, atol=1e-8)


def test_gradient_of_the_spread_through_the_assignments(dual, close):
    z, temperature = dual.embedding[:1].clone().requires_grad_(), 0.7
    _quantization(z, dual.prototypes, temperature, part="spread").backward()
    q = soft_assignments(z.detach(), dual.prototypes, temperature)
    mixed = q @ dual.prototypes
    spreads = (dual.prototypes - mixed).square().sum(dim=1)
    expected = 2 / temperature * (q * spreads) @ (dual.prototypes - mixed)
    close(z.grad, expected, atol=1e-14)


def test_the_free_energy_has_the_gradient_of_fixed_assignments(dual):
    weights = dual.weights.clone().requires_grad_()
    embedding = dual.embedding.clone().requires_grad_()

    def gradients(loss):
        prototypes = embedding.mean(dim=0) + weights.T @ (embedding - embedding.mean(dim=0)) / 4
        return torch.autograd.grad(loss(prototypes), (weights, embedding))

    def full(prototypes):
        q = log_soft_assignments(embedding, prototypes, 1.3).exp()
        parts = quantization_parts(embedding, prototypes, q)
        return parts.quantization.mean() - 1.3 * conditional_entropy(q)

    fixed = gradients(lambda p: _quantization(embedding, p, 1.3, detached=True))
    energy = gradients(lambda p: soft_kmeans_free_energy(embedding, p, 1.3) / 4)
    for one, other, third in zip(gradients(full), fixed, energy, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-13)
        torch.testing.assert_close(third, other, rtol=1e-12, atol=1e-13)


# -- splitting -----------------------------------------------------------------------------


def _growth(embedding, temperature, *, entropy_weight, part, n_clusters=2):
    """Return the measured rate at which a small difference along the leading direction grows."""
    centered = embedding - embedding.mean(dim=0)
    _, vectors = torch.linalg.eigh(centered.T @ centered / len(embedding))
    shifts = _double(range(n_clusters)) - (n_clusters - 1) / 2
    difference = 1e-5 * shifts.unsqueeze(1) * vectors[:, -1]
    prototypes = (embedding.mean(dim=0) + difference).requires_grad_()
    q = soft_assignments(embedding, prototypes, temperature)
    loss = getattr(quantization_parts(embedding, prototypes, q), part).mean()
    loss = loss - entropy_weight * conditional_entropy(q)
    (gradient,) = torch.autograd.grad(loss, prototypes)
    return float(-(gradient * difference).sum() / difference.square().sum())


@pytest.mark.parametrize(
    ("temperature", "rates"),
    [(4.0, (1.75, 0.375, 2.75)), (8.0, (0.375, -0.3125, 1.375)), (20.0, (-0.45, -0.725, 0.55))],
)
def test_growth_of_the_example(dual, temperature, rates):
    bare, free, reconstruction = rates
    grow = {"embedding": dual.embedding, "temperature": temperature}
    assert _growth(**grow, entropy_weight=0, part="quantization") == pytest.approx(bare, abs=1e-4)
    assert _growth(**grow, entropy_weight=temperature, part="quantization") == pytest.approx(
        free, abs=1e-4
    )
    assert _growth(**grow, entropy_weight=0, part="reconstruction") == pytest.approx(
        reconstruction, abs=1e-4
    )


@pytest.mark.parametrize("entropy_weight", [0.0, None, 0.5, 3.0, 9.0])
def test_growth_changes_sign_at_the_splitting_temperatures(generator, entropy_weight):
    embedding = torch.randn(200, 4, generator=generator, dtype=torch.float64) * _double(
        [3, 1, 1, 1]
    )
    variance = float(critical_temperature(embedding)) / 2
    lowest, highest = splitting_temperatures(variance, entropy_weight)
    assert 0 <= lowest < highest
    for temperature, grows in (
        (lowest * 0.98, False),
        (lowest * 1.02 or 0.1 * highest, True),
        (highest * 0.98, True),
        (highest * 1.02, False),
    ):
        if temperature > 0:
            weight = temperature if entropy_weight is None else entropy_weight
            rate = _growth(
                embedding, temperature, entropy_weight=weight, part="quantization", n_clusters=3
            )
            assert (rate > 0) == grows, temperature


def test_much_entropy_keeps_prototypes_together():
    assert all(map(math.isnan, splitting_temperatures(1.0, 2.0)))
    assert all(map(math.isnan, splitting_temperatures(1.0, 5.0)))


def test_prototypes_that_coincide_stay_together(dual):
    prototypes = dual.prototypes[[0, 0, 1]].clone().requires_grad_()
    _quantization(dual.embedding, prototypes, 1.0).backward()
    assert torch.equal(prototypes.grad[0], prototypes.grad[1])


# -- limits, other terms, projection -------------------------------------------------------


def test_limits_of_the_temperature(dual):
    distances = squared_distances(dual.embedding, dual.prototypes)
    cold = _quantization(dual.embedding, dual.prototypes, 1e-6)
    torch.testing.assert_close(cold, distances.amin(dim=1).mean())
    warm = _quantization(dual.embedding, dual.prototypes, 1e9)
    torch.testing.assert_close(warm, distances.mean())


def test_a_single_prototype(dual):
    prototype = dual.embedding.mean(dim=0, keepdim=True).requires_grad_()
    q = torch.ones(4, 1, dtype=torch.float64)
    parts = quantization_parts(dual.embedding, prototype, q)
    assert parts.spread.abs().max() == 0
    assert assignment_imbalance(q) == 0
    loss = parts.quantization.mean() + prototype_overlap(prototype, 1.0)
    loss.backward()
    assert prototype.grad.abs().max() < 1e-15


def test_imbalance_is_that_of_the_mean_assignment():
    assert assignment_imbalance(torch.eye(3)) == pytest.approx(0.0, abs=1e-6)
    one = torch.tensor([[1.0, 0.0, 0.0]]).repeat(5, 1)
    assert assignment_imbalance(one) == pytest.approx(math.log(3))


def _closest_by_enumeration(row):
    """Return the projection of a row: of all supports, the one that is closest and feasible."""
    best = None
    for size in range(1, len(row) + 1):
        for support in map(list, itertools.combinations(range(len(row)), size)):
            candidate = torch.zeros_like(row)
            candidate[support] = row[support] - (row[support].sum() - 1) / size
            distance = (candidate - row).square().sum()
            if candidate.min() >= 0 and (best is None or distance < best[0]):
                best = distance, candidate
    return best[1]


@pytest.mark.parametrize("n_clusters", [1, 2, 3, 5])
def test_projection_is_the_closest_point(generator, n_clusters):
    rows = 2 * torch.randn(60, n_clusters, generator=generator, dtype=torch.float64)
    found = simplex_projection(rows)
    expected = torch.stack([_closest_by_enumeration(row) for row in rows])
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-14)
    torch.testing.assert_close(simplex_projection(found), found, rtol=0, atol=1e-15)
    torch.testing.assert_close(simplex_projection(rows + 7), found, rtol=0, atol=1e-14)
    shrunk = (found[1:] - found[:-1]).norm(dim=1) <= (rows[1:] - rows[:-1]).norm(dim=1) + 1e-14
    assert shrunk.all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_projection_of_huge_rows_stays_on_the_simplex(generator, dtype):
    rows = (torch.randn(50, 8, generator=generator) * 1e8 - 1e12).to(dtype)
    found = simplex_projection(rows)
    torch.testing.assert_close(found.sum(dim=1), torch.ones(50, dtype=dtype))
    assert (found >= 0).all()


def test_sparse_assignments_minimise_their_objective(generator, random_stochastic, dual):
    temperature = 3.0
    found = sparse_assignments(dual.embedding, dual.prototypes, temperature)
    distances = squared_distances(dual.embedding, dual.prototypes)

    def objective(q):
        return (q * distances).sum(dim=1) + temperature / 2 * q.square().sum(dim=1)

    for _ in range(50):
        assert (objective(random_stochastic(4, 2, 0.5)) >= objective(found) - 1e-14).all()


# -- the layer -----------------------------------------------------------------------------


def test_prototypes_stay_in_the_span_of_the_anchors(generator):
    anchors = torch.randn(6, 30, generator=generator, dtype=torch.float64)
    layer = DualCompetitiveLayer(6, 3, generator).double()
    optimizer = torch.optim.Adam(layer.parameters(), lr=0.1)
    for _ in range(30):
        optimizer.zero_grad()
        _quantization(anchors, layer(anchors), 1.0).backward()
        optimizer.step()
    centered = anchors - anchors.mean(dim=0)
    basis = torch.linalg.svd(centered, full_matrices=False).Vh[:5]
    with torch.no_grad():
        offsets = layer(anchors) - anchors.mean(dim=0)
    outside = offsets - offsets @ basis.T @ basis
    assert outside.norm() < 1e-10 * offsets.norm()


def test_the_layer_moves_with_its_anchors(generator):
    anchors = torch.randn(8, 3, generator=generator)
    layer = DualCompetitiveLayer(8, 4, generator)
    with torch.no_grad():
        found = layer(anchors)
        torch.testing.assert_close(layer(anchors + 5), found + 5)
        torch.testing.assert_close(layer(3 * anchors), 3 * found)
        order = torch.randperm(8, generator=generator)
        layer.weights.copy_(layer.weights[order].clone())
        torch.testing.assert_close(layer(anchors[order]), found)


def test_prototypes_start_between_the_mean_and_anchors(generator):
    anchors = torch.randn(8, 3, generator=generator)
    layer = DualCompetitiveLayer(8, 2)
    layer.place_at(torch.tensor([5, 1]), anchors)
    with torch.no_grad():
        torch.testing.assert_close(layer(anchors), (anchors[[5, 1]] + anchors.mean(dim=0)) / 2)


# -- streams -------------------------------------------------------------------------------


def test_update_of_the_example(dual, close):
    counts = _double([3, 3])
    found, counts = update_prototypes(
        dual.prototypes, counts, dual.embedding[:2], dual.assignments[:2]
    )
    close(counts, [4.988460, 3.011540], atol=1e-6)
    close(found, [[1.050005, 0.198260], [-0.992153, -0.245394]], atol=1e-6)


def test_single_samples_give_running_means(generator):
    rows = torch.randn(60, 3, generator=generator, dtype=torch.float64)
    owners = torch.arange(60) % 2
    one_hot = torch.eye(2, dtype=torch.float64)[owners]
    prototypes, counts = torch.full((2, 3), 7.0, dtype=torch.float64), _double([0, 0])
    for i in range(60):
        prototypes, counts = update_prototypes(
            prototypes, counts, rows[i : i + 1], one_hot[i : i + 1]
        )
    expected = torch.stack([rows[owners == k].mean(dim=0) for k in (0, 1)])
    torch.testing.assert_close(prototypes, expected)
    assert counts.tolist() == [30, 30]


@pytest.mark.parametrize("max_count", [4.0, math.inf])
def test_updates_stay_in_the_hull(generator, random_stochastic, max_count):
    prototypes, counts = torch.zeros(3, 1, dtype=torch.float64), torch.zeros(3).double()
    for _ in range(30):
        rows = torch.rand(20, 1, generator=generator, dtype=torch.float64)
        prototypes, counts = update_prototypes(
            prototypes, counts, rows, random_stochastic(20, 3), max_count
        )
        assert prototypes.min() >= 0
        assert prototypes.max() <= 1


def test_a_limited_count_follows_a_drift(generator):
    one = torch.ones(8, 1, dtype=torch.float64)
    free = limited = torch.zeros(1, 1, dtype=torch.float64)
    count = limited_count = _double([0])
    for center in (0.0, 5.0):
        for _ in range(50):
            rows = center + torch.randn(8, 1, generator=generator, dtype=torch.float64)
            free, count = update_prototypes(free, count, rows, one)
            limited, limited_count = update_prototypes(limited, limited_count, rows, one, 40.0)
    assert abs(float(free) - 2.5) < 0.5
    assert abs(float(limited) - 5) < 0.6


def test_copies_of_a_prototype_leave_it(dual):
    rows = dual.prototypes[:1].repeat(5, 1)
    one_hot = _double([[1, 0]]).repeat(5, 1)
    found, _ = update_prototypes(dual.prototypes, _double([2, 2]), rows, one_hot)
    torch.testing.assert_close(found, dual.prototypes)


# -- the energy of independent assignments -------------------------------------------------

_SMOOTHING = 1e-3


def _smoothed(q):
    return ((q + _SMOOTHING) * (q + _SMOOTHING).log()).sum(dim=-1)


def _energy(embedding, prototypes, q, *, balance, entropy_weight, separation, width, ridge):
    energy = quantization_parts(embedding, prototypes, q).quantization.mean()
    energy = energy + balance * _smoothed(q.mean(dim=0)) + entropy_weight * _smoothed(q).mean()
    energy = energy + separation * prototype_overlap(prototypes, width)
    return energy + ridge / 2 * prototypes.square().sum()


def test_a_step_of_the_assignments_of_the_example(dual, close):
    q = torch.full((4, 2), 0.5, dtype=torch.float64)
    distances = squared_distances(dual.embedding, dual.prototypes)
    close((q * distances).sum(dim=1).mean(), 3.8125, atol=1e-12)
    q = simplex_projection(q - 0.1 * distances)
    close(q, [[0.875, 0.125], [0.725, 0.275], [0.35, 0.65], [0.15, 0.85]], atol=1e-12)
    close((q * distances).sum(dim=1).mean(), 2.13125, atol=1e-12)
    ridge = 1e-3
    prototypes = 2 * q.T @ dual.embedding / 4 / (2 * q.mean(dim=0) + ridge).unsqueeze(1)
    close(prototypes, [[0.868221, 0.273549], [-0.959516, -0.302313]], atol=1e-6)
    weights = {"balance": 0, "entropy_weight": 0, "separation": 0, "width": 1.0, "ridge": ridge}
    close(_energy(dual.embedding, prototypes, q, **weights), 2.083314762, atol=1e-9)


@pytest.mark.parametrize(
    ("balance", "entropy_weight", "separation"), [(0, 0, 0), (0.1, 0.5, 0), (0.3, 0.1, 0.2)]
)
def test_projected_descent_lowers_the_energy_at_every_step(
    generator, random_stochastic, balance, entropy_weight, separation
):
    embedding = torch.randn(30, 2, generator=generator, dtype=torch.float64)
    n_clusters, width, ridge = 3, 2.0, 1e-2
    prototypes = torch.randn(n_clusters, 2, generator=generator, dtype=torch.float64)
    q = random_stochastic(30, n_clusters)
    weights = {
        "balance": balance,
        "entropy_weight": entropy_weight,
        "separation": separation,
        "width": width,
        "ridge": ridge,
    }
    step = 1 / (2 + ridge + 4 * separation / ((n_clusters - 1) * width))
    step_of_q = _SMOOTHING / max(balance + entropy_weight, 1e-2)

    def gradients():
        inputs = prototypes.clone().requires_grad_(), q.clone().requires_grad_()
        energy = _energy(embedding, *inputs, **weights)
        return float(energy.detach()), *torch.autograd.grad(energy, inputs)

    energy, of_prototypes, _ = gradients()
    for _ in range(400):
        prototypes = prototypes - step * of_prototypes
        _, _, of_q = gradients()
        q = simplex_projection(q - step_of_q * len(q) * of_q)
        before, (energy, of_prototypes, _) = energy, gradients()
        assert energy <= before + 1e-12 * max(1, abs(before))
    # The bound on the step is needed: a far larger one climbs.
    prototypes = prototypes - 20 * step * (of_prototypes + 1e-3)
    for _ in range(5):
        prototypes = prototypes - 20 * step * gradients()[1]
    assert gradients()[0] > energy + 1
