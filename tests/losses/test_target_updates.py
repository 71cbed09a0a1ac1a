import math

import pytest
import torch

from skdeepclust.losses import (
    closed_form_targets,
    exact_targets,
    mi_adm_objective,
    mutual_information,
    self_training_targets,
    target_objective,
    update_cluster_mass,
)

LOG_PRIOR = torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64).log()

# name: (sharpness, balance, prior, exact solver?, targets, column means)
TABLE = {
    "mutual information": (
        (2.0, 1.0, None, False),
        [
            [0.885899, 0.082211, 0.031889],
            [0.017301, 0.708049, 0.274649],
            [0.189663, 0.215609, 0.594728],
            [0.556142, 0.404621, 0.039238],
        ],
        [0.412251, 0.352623, 0.235126],
    ),
    "mutual information, exact": (
        (2.0, 1.0, None, True),
        [
            [0.884766, 0.083453, 0.031780],
            [0.017113, 0.711818, 0.271070],
            [0.189236, 0.218652, 0.592112],
            [0.552520, 0.408582, 0.038898],
        ],
        [0.410909, 0.355626, 0.233465],
    ),
    "depict": (
        (1.0, 1.0, None, False),
        [
            [0.673147, 0.198635, 0.128218],
            [0.089311, 0.553443, 0.357246],
            [0.262428, 0.271034, 0.466538],
            [0.477805, 0.394780, 0.127415],
        ],
        [0.375673, 0.354473, 0.269854],
    ),
    "depict, exact": (
        (1.0, 1.0, None, True),
        [
            [0.669102, 0.200364, 0.130533],
            [0.087832, 0.552333, 0.359835],
            [0.258472, 0.270899, 0.470629],
            [0.473577, 0.397078, 0.129345],
        ],
        [0.372246, 0.355169, 0.272585],
    ),
    "depict, balance 0.5": (
        (1.0, 0.5, None, False),
        [
            [0.682600, 0.199270, 0.118130],
            [0.092896, 0.569497, 0.337607],
            [0.274955, 0.280934, 0.444112],
            [0.485512, 0.396856, 0.117631],
        ],
        None,
    ),
    "mutual information, penalty weight 2": (
        (1.5, 0.5, None, False),
        [
            [0.811184, 0.130483, 0.058333],
            [0.042735, 0.661528, 0.295737],
            [0.243682, 0.256661, 0.499657],
            [0.533967, 0.402427, 0.063606],
        ],
        None,
    ),
    "mutual information, prior": (
        (2.0, 1.0, LOG_PRIOR, False),
        [
            [0.913535, 0.065667, 0.020798],
            [0.023397, 0.741696, 0.234907],
            [0.258816, 0.227903, 0.513282],
            [0.621821, 0.350432, 0.027747],
        ],
        [0.454392, 0.346424, 0.199183],
    ),
    "mutual information, prior, exact": (
        (2.0, 1.0, LOG_PRIOR, True),
        [
            [0.920267, 0.061272, 0.018461],
            [0.025504, 0.748867, 0.225629],
            [0.280655, 0.228906, 0.490439],
            [0.640487, 0.334330, 0.025183],
        ],
        [0.466728, 0.343344, 0.189928],
    ),
    "depict, prior": (
        (1.0, 1.0, LOG_PRIOR, False),
        [
            [0.741268, 0.169433, 0.089299],
            [0.120051, 0.576243, 0.303707],
            [0.341955, 0.273564, 0.384482],
            [0.552897, 0.353854, 0.093249],
        ],
        [0.439043, 0.343273, 0.217684],
    ),
    "depict, prior, exact": (
        (1.0, 1.0, LOG_PRIOR, True),
        [
            [0.745823, 0.166545, 0.087632],
            [0.122597, 0.574904, 0.302499],
            [0.347440, 0.271546, 0.381014],
            [0.558739, 0.349352, 0.091910],
        ],
        [0.443650, 0.340587, 0.215763],
    ),
}


@pytest.mark.parametrize("name", TABLE)
def test_targets_of_the_example(posterior, close, name):
    (sharpness, balance, log_prior, exact), expected, proportions = TABLE[name]
    if exact:
        targets = exact_targets(posterior.log(), sharpness, balance, log_prior).targets
    else:
        targets = closed_form_targets(posterior.log(), sharpness, balance, log_prior)
    close(targets, expected)
    if proportions is not None:
        close(targets.mean(0), proportions)


def test_self_training_targets_of_the_example(posterior, close):
    targets = self_training_targets(posterior.log())
    close(
        targets,
        [
            [0.890190, 0.077513, 0.032297],
            [0.018051, 0.693141, 0.288809],
            [0.191308, 0.204062, 0.604629],
            [0.570198, 0.389255, 0.040547],
        ],
    )
    close(targets.mean(0), [0.417437, 0.340993, 0.241571])


@pytest.mark.parametrize(
    ("sharpness", "balance", "log_prior", "expected"),
    [
        (2.0, 1.0, None, 0.875317),
        (2.0, 1.0, LOG_PRIOR, 0.842291),
        (1.0, 1.0, None, 0.015868),
        (1.0, 0.5, None, 0.010211),
    ],
)
def test_certificate_of_the_example(posterior, close, sharpness, balance, log_prior, expected):
    solution = exact_targets(posterior.log(), sharpness, balance, log_prior)
    close(solution.objective, expected)
    close(solution.lower_bound, expected)
    assert abs(solution.objective - solution.lower_bound) < 1e-12
    assert 5 < solution.n_iter <= 21
    mass = posterior**sharpness
    prior = torch.full((3,), 1 / 3, dtype=torch.float64) if log_prior is None else log_prior.exp()
    normalisers = (mass * (prior / solution.targets.mean(0)) ** balance).sum(1)
    close(-normalisers.log().mean(), expected)


def test_closed_and_exact_forms_differ_more_with_a_prior(posterior):
    def largest_difference(log_prior):
        exact = exact_targets(posterior.log(), 2.0, 1.0, log_prior).targets
        return (exact - closed_form_targets(posterior.log(), 2.0, 1.0, log_prior)).abs().max()

    assert largest_difference(None).item() == pytest.approx(0.0040, abs=5e-5)
    assert largest_difference(LOG_PRIOR).item() == pytest.approx(0.0228, abs=5e-5)


@pytest.mark.parametrize("log_prior", [None, LOG_PRIOR])
@pytest.mark.parametrize(("sharpness", "balance"), [(2.0, 1.0), (1.0, 1.0), (1.0, 0.3), (1.5, 5.0)])
def test_exact_targets_satisfy_the_fixed_point(random_stochastic, sharpness, balance, log_prior):
    posterior = random_stochastic(40, 3, 0.5)
    solution = exact_targets(posterior.log(), sharpness, balance, log_prior)
    targets = solution.targets
    prior = torch.full((3,), 1 / 3, dtype=torch.float64) if log_prior is None else log_prior.exp()
    unnormalised = posterior**sharpness * (prior / targets.mean(0)) ** balance
    expected = unnormalised / unnormalised.sum(1, keepdim=True)
    torch.testing.assert_close(targets, expected, atol=1e-10, rtol=0)
    torch.testing.assert_close(
        targets.sum(1), torch.ones(40, dtype=torch.float64), atol=1e-12, rtol=0
    )


def test_exact_targets_agree_with_a_general_optimiser(posterior):
    logits = posterior.log().clone().requires_grad_()
    optimiser = torch.optim.LBFGS(
        [logits],
        max_iter=500,
        tolerance_grad=1e-11,
        tolerance_change=0,
        line_search_fn="strong_wolfe",
    )

    def closure():
        optimiser.zero_grad()
        targets = torch.softmax(logits, dim=1)
        objective = target_objective(targets, posterior.log(), 2.0, 1.0, LOG_PRIOR)
        objective.backward()
        return objective

    optimiser.step(closure)
    solution = exact_targets(posterior.log(), 2.0, 1.0, LOG_PRIOR)
    torch.testing.assert_close(
        torch.softmax(logits.detach(), dim=1), solution.targets, atol=1e-6, rtol=0
    )


def test_lower_bound_holds_before_convergence(random_stochastic):
    log_posterior = random_stochastic(40, 4, 0.3).log()
    best = exact_targets(log_posterior, 2.0, 3.0).objective
    bounds = [
        exact_targets(log_posterior, 2.0, 3.0, max_iter=steps).lower_bound for steps in range(1, 8)
    ]
    assert max(bounds) <= best + 1e-12
    assert bounds[0] < best - 1e-6
    solution = exact_targets(log_posterior, 2.0, 3.0, max_iter=2)
    assert solution.n_iter == 2
    assert solution.objective > best


def test_exact_targets_beat_closed_form_and_posterior(random_stochastic):
    for _ in range(50):
        posterior = random_stochastic(12, 3, 0.5)
        logarithms = posterior.log()
        exact = mi_adm_objective(exact_targets(logarithms, 2.0, 1.0).targets, logarithms)
        closed = mi_adm_objective(closed_form_targets(logarithms, 2.0, 1.0), logarithms)
        assert exact >= closed - 1e-12
        assert exact >= mutual_information(posterior) - 1e-12


def test_published_depict_update_does_not_sharpen_balanced_posteriors(close):
    posterior = torch.tensor([[0.7, 0.3], [0.3, 0.7]], dtype=torch.float64)
    close(closed_form_targets(posterior.log(), 1.0, 1.0), posterior, atol=1e-15)
    close(
        closed_form_targets(posterior.log(), 2.0, 1.0), [[0.844828, 0.155172], [0.155172, 0.844828]]
    )


def test_uniform_column_means_leave_depict_targets_unchanged(random_stochastic):
    rows = random_stochastic(20, 4)
    posterior = torch.cat([rows.roll(shift, dims=1) for shift in range(4)])
    targets = closed_form_targets(posterior.log(), 1.0, 1.0)
    torch.testing.assert_close(targets, posterior, atol=1e-12, rtol=0)


@pytest.mark.parametrize("solver", [closed_form_targets, lambda *a: exact_targets(*a).targets])
def test_limits_of_the_parameters(posterior, solver):
    logarithms = posterior.log()
    tolerance = {"atol": 1e-7, "rtol": 0}
    torch.testing.assert_close(solver(logarithms, 1.0, 0.0), posterior, **tolerance)
    torch.testing.assert_close(solver(logarithms, 1.0, 1e-8), posterior, **tolerance)
    penalty_weight = 1e8
    torch.testing.assert_close(
        solver(logarithms, (1 + penalty_weight) / penalty_weight, 1 / penalty_weight),
        posterior,
        **tolerance,
    )
    equal = torch.full((3,), -math.log(3), dtype=torch.float64)
    torch.testing.assert_close(
        solver(logarithms, 2.0, 1.0, equal), solver(logarithms, 2.0, 1.0), atol=1e-12, rtol=0
    )


@pytest.mark.parametrize("solver", [closed_form_targets, lambda *a: exact_targets(*a).targets])
def test_permutations(random_stochastic, generator, solver):
    logarithms = random_stochastic(30, 4).log()
    samples, clusters = torch.randperm(30, generator=generator), torch.tensor([2, 0, 3, 1])
    targets = solver(logarithms, 2.0, 1.0)
    permuted = solver(logarithms[samples][:, clusters], 2.0, 1.0)
    torch.testing.assert_close(permuted, targets[samples][:, clusters], atol=1e-11, rtol=0)
    assert (targets >= 0).all()
    torch.testing.assert_close(
        targets.sum(1), torch.ones(30, dtype=torch.float64), atol=1e-12, rtol=0
    )


@pytest.mark.parametrize(
    "solver",
    [
        lambda p: closed_form_targets(p, 2.0, 1.0),
        lambda p: exact_targets(p, 2.0, 1.0).targets,
        self_training_targets,
    ],
)
@pytest.mark.parametrize("tiny", [1e-300, 0.0])
def test_vanishing_probabilities_give_no_nan(solver, tiny):
    posterior = torch.tensor([[1.0, tiny, tiny], [tiny, 1.0, tiny]], dtype=torch.float64)
    targets = solver(posterior.log())
    assert torch.isfinite(targets).all()
    torch.testing.assert_close(
        targets.sum(1), torch.ones(2, dtype=torch.float64), atol=1e-12, rtol=0
    )
    assert targets.argmax(1).tolist() == [0, 1]


def test_full_data_mass_makes_batches_equal_to_the_whole(random_stochastic):
    logarithms = random_stochastic(30, 4).log()
    for sharpness in (1.0, 2.0):
        mass = torch.logsumexp(sharpness * logarithms, dim=0)
        whole = closed_form_targets(logarithms, sharpness, 1.0)
        batch = closed_form_targets(logarithms[3:9], sharpness, 1.0, log_mass=mass)
        torch.testing.assert_close(batch, whole[3:9], atol=1e-14, rtol=0)
        alone = closed_form_targets(logarithms[3:9], sharpness, 1.0)
        assert (alone - whole[3:9]).abs().max() > 1e-3
    mass = torch.logsumexp(logarithms, dim=0)
    batch = self_training_targets(logarithms[3:9], log_mass=mass)
    torch.testing.assert_close(batch, self_training_targets(logarithms)[3:9], atol=1e-14, rtol=0)


BATCH = torch.tensor([[0.6, 0.3, 0.1], [0.2, 0.2, 0.6]], dtype=torch.float64)


@pytest.mark.parametrize(
    ("sharpness", "start", "mass", "targets"),
    [
        (
            2.0,
            [0.21, 0.1625, 0.0675],
            [0.208, 0.143, 0.091],
            [[0.744320, 0.224421, 0.031259], [0.063240, 0.076270, 0.860490]],
        ),
        (
            1.0,
            [0.4, 0.375, 0.225],
            [0.4, 0.35, 0.25],
            [[0.572954, 0.306257, 0.120789], [0.170539, 0.182313, 0.647148]],
        ),
    ],
)
def test_streaming_mass_and_targets_of_the_example(
    posterior, close, sharpness, start, mass, targets
):
    before = update_cluster_mass(
        torch.zeros(3, dtype=torch.float64), posterior.log(), sharpness, 1.0
    )
    close(before, start, atol=1e-14)
    after = update_cluster_mass(before, BATCH.log(), sharpness, 0.2)
    close(after, mass, atol=1e-14)
    close(closed_form_targets(BATCH.log(), sharpness, 1.0, log_mass=after.log()), targets)


def test_streaming_at_rate_one_is_the_full_update(posterior):
    junk = torch.full((3,), 1e30, dtype=torch.float64)
    mass = update_cluster_mass(junk, posterior.log(), 2.0, 1.0)
    torch.testing.assert_close(
        closed_form_targets(posterior.log(), 2.0, 1.0, log_mass=mass.log()),
        closed_form_targets(posterior.log(), 2.0, 1.0),
        atol=1e-14,
        rtol=0,
    )


def test_float32_converges_and_stays_float32(posterior, close):
    solution = exact_targets(posterior.float().log(), 2.0, 1.0)
    assert solution.targets.dtype == torch.float32
    assert solution.n_iter < 30
    close(solution.targets, exact_targets(posterior.log(), 2.0, 1.0).targets, atol=2e-6)
