"""Pooled cross-entropy and activity regularization against worked numbers and identities."""

import math

import pytest
import torch

from skdeepclust.losses import (
    activity_affinity,
    activity_balance,
    activity_coactivity,
    activity_terms,
    pooled_log_probabilities,
    pseudo_supervised_cross_entropy,
    scaled_frobenius,
)

Z = torch.tensor(
    [[2, -1, 0.5, -2], [0.5, -0.5, 1.5, -1], [-1, 2, -2, 0.5], [-0.5, 1, -1, -1]],
    dtype=torch.float64,
)
LABELS = torch.tensor([0, 0, 1, 1])
# The columns of each parent: unit j belongs to parent j mod 2.
BLOCKS = [Z.relu()[:, 0::2], Z.relu()[:, 1::2]]
ROW_SHIFTS = torch.tensor([[1.0], [2.0], [-3.0], [0.5]], dtype=torch.float64)


def numerical_gradient(function, at, step=1e-6):
    gradient = torch.zeros_like(at)
    for place in range(at.numel()):
        shift = torch.zeros_like(at).view(-1)
        shift[place] = step
        shift = shift.view_as(at)
        gradient.view(-1)[place] = (function(at + shift) - function(at - shift)) / (2 * step)
    return gradient


def gradient_of(function, at):
    at = at.clone().requires_grad_()
    function(at).backward()
    return at.grad


def half_normal(n_rows, n_columns, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(n_rows, n_columns, generator=generator, dtype=torch.float64).abs()


def close(found, expected, atol=5e-7):
    expected = torch.as_tensor(expected, dtype=torch.float64)
    torch.testing.assert_close(torch.as_tensor(found).double(), expected, rtol=0, atol=atol)


# -- the cross-entropy ---------------------------------------------------------------------


def test_pooled_probabilities_of_the_worked_example():
    expected = [[0.947258, 0.052742], [0.862852, 0.137148], [0.052742, 0.947258]]
    close(pooled_log_probabilities(Z, 2).exp()[:3], expected)
    close(pooled_log_probabilities(Z, 2).exp()[3], [0.239969, 0.760031])


def test_pooling_is_the_sum_of_the_softmax():
    softmax = Z.softmax(dim=1)
    expected = torch.stack([softmax[:, [0, 2]].sum(1), softmax[:, [1, 3]].sum(1)], dim=1)
    close(pooled_log_probabilities(Z, 2).exp(), expected, atol=1e-14)


def test_cross_entropy_of_the_worked_example():
    close(pseudo_supervised_cross_entropy(Z, LABELS, 2), 0.132569)
    rows = [0.054184, 0.147512, 0.054184, 0.274396]
    for row, expected in enumerate(rows):
        found = pseudo_supervised_cross_entropy(Z[row : row + 1], LABELS[row : row + 1], 2)
        close(found, expected)


def test_gradient_of_the_cross_entropy():
    expected = [
        [-0.010780, 0.009639, -0.002405, 0.003546],
        [-0.009221, 0.021342, -0.025066, 0.012945],
        [0.009639, -0.010780, 0.003546, -0.002405],
        [0.037343, -0.052841, 0.022649, -0.007151],
    ]

    def loss(logits):
        return pseudo_supervised_cross_entropy(logits, LABELS, 2)

    close(gradient_of(loss, Z), expected)
    close(gradient_of(loss, Z), numerical_gradient(loss, Z), atol=1e-9)


def test_one_duplicate_is_a_plain_softmax():
    expected = torch.nn.functional.cross_entropy(Z, torch.tensor([0, 2, 1, 3]))
    close(pseudo_supervised_cross_entropy(Z, torch.tensor([0, 2, 1, 3]), 4), expected, atol=1e-14)


def test_extreme_inputs_stay_finite():
    logits = torch.tensor([[1e4, -1e4, -1e4, -1e4]], requires_grad=True)
    loss = pseudo_supervised_cross_entropy(logits, torch.tensor([1]), 2)
    loss.backward()
    assert loss.item() == pytest.approx(2e4 - math.log(2))
    assert torch.isfinite(logits.grad).all()


def test_rows_may_be_shifted_in_the_cross_entropy_alone():
    close(pseudo_supervised_cross_entropy(Z + ROW_SHIFTS, LABELS, 2), 0.132569)
    shifted, plain = activity_terms(Z + ROW_SHIFTS, 2), activity_terms(Z, 2)
    assert abs(shifted.affinity - plain.affinity) > 0.01
    assert abs(shifted.balance - plain.balance) > 0.01


def test_duplicates_may_change_places():
    swapped = Z[:, [2, 1, 0, 3]]
    close(pooled_log_probabilities(swapped, 2), pooled_log_probabilities(Z, 2), atol=1e-14)
    for found, expected in zip(activity_terms(swapped, 2), activity_terms(Z, 2), strict=True):
        close(found, expected, atol=1e-14)


def test_uninformative_rows_cost_the_logarithm_of_the_parents():
    loss = pseudo_supervised_cross_entropy(torch.zeros(5, 16), torch.arange(5), 8)
    assert loss.item() == pytest.approx(math.log(8))


# -- affinity, balance, coactivity ---------------------------------------------------------


def test_ratios_of_the_worked_example():
    close([activity_affinity(block) for block in BLOCKS], [0.518519, 0.380952])
    close([activity_balance(block) for block in BLOCKS], [0.874036, 0.099751])
    sums = [activity_balance(block, balance_on="sums") for block in BLOCKS]
    close(sums, [0.975610, 0.324324])


@pytest.mark.parametrize(
    ("reduction", "affinity", "balance"),
    [
        ("mean", 0.449735, 0.486893),
        ("pooled", 0.458333, 0.481013),
        ("global", 0.152778, 0.638819),
    ],
)
def test_reductions_of_the_worked_example(reduction, affinity, balance):
    found = activity_terms(Z, 2, reduction=reduction)
    close(found.affinity, affinity)
    close(found.balance, balance)


def test_coactivity_and_frobenius_of_the_worked_example():
    close(activity_terms(Z, 2).coactivity, 5.5)
    close(scaled_frobenius(Z) * len(Z) / 400, 25.5)
    close(scaled_frobenius(Z.relu()) * len(Z) / 400, 12.0)


def test_whole_regularizer_of_the_worked_example():
    terms = activity_terms(Z, 2)
    frobenius = scaled_frobenius(Z) * len(Z) / 400
    regularizer = 0.1 * terms.affinity + (1 - terms.balance) + 1e-6 * frobenius
    close(regularizer, 0.558106)
    close(regularizer + pseudo_supervised_cross_entropy(Z, LABELS, 2), 0.690675)


def test_original_form_of_the_worked_example():
    terms = activity_terms(Z, 2, reduction="global")
    frobenius = scaled_frobenius(Z.relu()) * len(Z) / 400
    close(3 * terms.affinity + (1 - terms.balance) + 1e-6 * frobenius, 0.819527)


def test_blocks_whose_ratios_are_known():
    one_hot = torch.eye(3, dtype=torch.float64).repeat(2, 1)
    single = torch.zeros(4, 3, dtype=torch.float64)
    single[:, 1] = 1.0
    counts = torch.eye(3, dtype=torch.float64)[[0, 0, 1, 2]]
    for block, affinity, balance in [
        (one_hot, 0.0, 1.0),
        (torch.ones(4, 3), 1.0, 1.0),
        (single, 0.0, 0.0),
        (counts, 0.0, 5 / 6),
    ]:
        close(activity_affinity(block), affinity, atol=1e-6)
        close(activity_balance(block), balance, atol=1e-6)


def test_independent_columns():
    """Rectified normal columns tend to 1 / pi, half-normal ones to twice that."""
    generator = torch.Generator().manual_seed(0)
    rectified = torch.randn(20_000, 6, generator=generator, dtype=torch.float64).relu()
    assert activity_affinity(rectified).item() == pytest.approx(1 / math.pi, abs=0.005)
    assert activity_affinity(half_normal(20_000, 6)).item() == pytest.approx(2 / math.pi, abs=0.005)
    assert activity_balance(rectified).item() == pytest.approx(1.0, abs=0.001)


@pytest.mark.parametrize("scale", [10.0, 0.1, 1e-3])
def test_ratios_do_not_change_with_the_size_of_the_activity(scale):
    block = half_normal(30, 5)
    close(activity_affinity(scale * block), activity_affinity(block), atol=1e-12)
    for balance_on in ("squares", "sums"):
        found = activity_balance(scale * block, balance_on=balance_on)
        close(found, activity_balance(block, balance_on=balance_on), atol=1e-12)


@pytest.mark.parametrize("seed", range(20))
def test_ratios_lie_between_0_and_1(seed):
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(9, 12, generator=generator)
    for reduction in ("mean", "pooled", "global"):
        terms = activity_terms(logits, 3, reduction=reduction)
        assert 0 <= terms.affinity <= 1
        assert 0 <= terms.balance <= 1


def test_row_sums_give_what_the_matrices_give():
    block = half_normal(12, 5)
    matrix = block.T @ block
    usage = matrix.diag()
    off_diagonal = matrix.sum() - matrix.trace()
    products = torch.outer(usage, usage)
    close(activity_affinity(block), off_diagonal / (4 * matrix.trace()), atol=1e-12)
    expected = (products.sum() - products.trace()) / (4 * products.trace())
    close(activity_balance(block), expected, atol=1e-12)
    close(activity_coactivity(block), off_diagonal, atol=1e-10)
    differences = (usage[:, None] - usage[None, :]).square().triu().sum()
    close(1 - activity_balance(block), differences / (4 * usage.square().sum()), atol=1e-12)


def test_reductions_agree_with_blocks_taken_one_by_one():
    generator = torch.Generator().manual_seed(3)
    logits = torch.randn(10, 12, generator=generator, dtype=torch.float64)
    blocks = [logits.relu()[:, parent::3] for parent in range(3)]
    terms = activity_terms(logits, 3)
    close(terms.affinity, sum(map(activity_affinity, blocks)) / 3, atol=1e-12)
    close(terms.balance, sum(map(activity_balance, blocks)) / 3, atol=1e-12)
    close(terms.coactivity, sum(map(activity_coactivity, blocks)), atol=1e-10)


# -- gradients -----------------------------------------------------------------------------


def test_gradient_of_the_affinity():
    found = gradient_of(activity_affinity, BLOCKS[0])
    close(found[:2], [[-0.159122, 0.515775], [0.367627, -0.082305]])
    close(found[2:], torch.zeros(2, 2))


def test_gradient_of_the_balance():
    found = gradient_of(activity_balance, BLOCKS[0])
    close(found[:2], [[-0.399680, 0.169864], [-0.099920, 0.509592]])
    close(found[2:], torch.zeros(2, 2))


@pytest.mark.parametrize("reduction", ["mean", "pooled", "global"])
@pytest.mark.parametrize("balance_on", ["squares", "sums"])
@pytest.mark.parametrize("term", ["affinity", "balance", "coactivity"])
def test_gradients_match_finite_differences(reduction, balance_on, term):
    def value(logits):
        return getattr(activity_terms(logits, 2, reduction=reduction, balance_on=balance_on), term)

    found = gradient_of(value, Z)
    close(found, numerical_gradient(value, Z), atol=1e-8)
    assert (found[Z < 0] == 0).all()


def test_gradient_of_the_frobenius_term_reaches_negative_inputs():
    close(gradient_of(scaled_frobenius, Z), 2 * 400 / len(Z) * Z, atol=1e-9)


def test_descent_on_the_affinity_lets_the_winner_of_a_row_grow():
    block = half_normal(7, 4)
    gradient = gradient_of(activity_affinity, block)
    row_sums = block.sum(dim=1, keepdim=True)
    threshold = row_sums * block.square().sum() / row_sums.square().sum()
    assert ((gradient < 0) == (block > threshold)).all()


def test_ratios_are_homogeneous_of_degree_zero():
    block = half_normal(7, 4)
    for ratio in (activity_affinity, activity_balance):
        close((block * gradient_of(ratio, block)).sum(), 0.0, atol=1e-12)


# -- edges ---------------------------------------------------------------------------------


@pytest.mark.parametrize("reduction", ["mean", "pooled", "global"])
def test_silent_units_give_finite_terms_and_no_gradient(reduction):
    logits = -torch.ones(5, 6)
    logits[:, 0::3] = 1.0

    def total(values):
        terms = activity_terms(values, 3, reduction=reduction)
        return terms.affinity - terms.balance

    for values in (logits, -torch.ones(5, 6)):
        assert torch.isfinite(total(values))
        gradient = gradient_of(total, values)
        assert torch.isfinite(gradient).all()
        assert (gradient[:, 1::3] == 0).all()


def test_one_duplicate_has_nothing_to_regularize():
    for reduction in ("mean", "pooled"):
        terms = activity_terms(Z, 4, reduction=reduction)
        assert (terms.affinity, terms.balance) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("scale", "balance", "affinity"),
    [
        (1.0, 0.874036, 0.518519),
        (0.1, 0.874000, 0.518518),
        (0.01, 0.619308, 0.518442),
        (0.001, 0.000212, 0.510949),
    ],
)
def test_the_constant_of_the_authors_biases_small_activities(scale, balance, affinity):
    block = scale * BLOCKS[0]
    close(activity_balance(block, offset=1e-7), balance)
    close(activity_affinity(block, offset=1e-7), affinity)
    close(activity_balance(block), 0.874036)


def test_half_precision_is_raised_before_the_fourth_powers():
    logits = (200 * half_normal(400, 160)).to(torch.float16)
    terms = activity_terms(logits, 8)
    exact = activity_terms(logits.double(), 8)
    assert terms.balance.dtype == torch.float32
    close(terms.balance, exact.balance, atol=1e-4)
    close(terms.affinity, exact.affinity, atol=1e-4)


def test_balance_of_ideal_slots_in_a_batch_of_400():
    """Even slots that are used equally reach .71 there, since counts fluctuate."""
    generator = torch.Generator().manual_seed(0)
    values = []
    for _ in range(200):
        slots = torch.randint(20, (50,), generator=generator)
        values.append(activity_balance(torch.eye(20)[slots]))
    assert torch.stack(values).mean().item() == pytest.approx(0.713, abs=0.01)


def test_wrong_words():
    with pytest.raises(ValueError, match="reduction must be 'mean', 'pooled' or 'global', got 'a'"):
        activity_terms(Z, 2, reduction="a")
    with pytest.raises(ValueError, match="balance_on must be 'squares' or 'sums', got 'a'"):
        activity_terms(Z, 2, balance_on="a")
