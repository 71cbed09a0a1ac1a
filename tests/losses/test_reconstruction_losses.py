import pytest
import torch

from skdeepclust.losses import multilevel_reconstruction_loss, summed_reconstruction_loss


@pytest.fixture
def levels():
    targets = [[1.0, 0.0, -1.0, 0.5]], [[0.2, -0.1]], [[1.0]]
    reconstructions = [[0.5, 0.0, -1.0, 0.0]], [[0.0, 0.1]], [[0.5]]
    return (
        [torch.tensor(level, dtype=torch.float64) for level in reconstructions],
        [torch.tensor(level, dtype=torch.float64) for level in targets],
    )


@pytest.mark.parametrize(
    ("level_weights", "expected"),
    [
        (None, 0.154),
        ([1.0, 0.1, 0.1], 0.154),
        ([1.0, 1.0, 1.0], 0.415),
        ([1.0, 0.0, 0.0], 0.125),
        ([0.0, 1.0, 0.0], 0.04),
        ([0.0, 0.0, 1.0], 0.25),
    ],
)
def test_loss_of_the_example(levels, close, level_weights, expected):
    close(multilevel_reconstruction_loss(*levels, level_weights), expected, atol=1e-14)


def test_input_alone_is_the_mean_squared_error(levels, close):
    reconstructions, targets = levels
    close(multilevel_reconstruction_loss(reconstructions[:1], targets[:1]), 0.125, atol=1e-15)


def test_every_axis_but_the_first_is_a_unit(close):
    images, maps = torch.zeros(2, 1, 3, 3).double(), torch.zeros(2, 5, 2, 2).double()
    loss = multilevel_reconstruction_loss([images + 2, maps], [images, maps + 3])
    close(loss, 4 + 0.1 * 9, atol=1e-14)


def test_gradients_flow_into_both_sides(levels):
    reconstructions, targets = levels
    reconstruction, target = reconstructions[1].requires_grad_(), targets[1].requires_grad_()
    loss = multilevel_reconstruction_loss(reconstructions, targets)
    left, right = torch.autograd.grad(loss, (reconstruction, target))
    # 0.1 * 2 * (reconstruction - target) / 2 units
    torch.testing.assert_close(left, torch.tensor([[-0.02, 0.02]], dtype=torch.float64))
    torch.testing.assert_close(right, -left)


def test_summed_loss(levels):
    reconstructions, targets = levels
    assert summed_reconstruction_loss(reconstructions[0], targets[0]).item() == 0.5
    rows = torch.cat([targets[0], reconstructions[0]])
    assert summed_reconstruction_loss(reconstructions[0].expand(2, 4), rows).item() == 0.25


def test_wrong_levels_and_shapes_are_refused(levels):
    reconstructions, targets = levels
    with pytest.raises(ValueError, match="reconstructions has 2 levels and targets has 3"):
        multilevel_reconstruction_loss(reconstructions[:2], targets)
    with pytest.raises(ValueError, match="level_weights has 2 entries for 3 levels"):
        multilevel_reconstruction_loss(reconstructions, targets, [1.0, 1.0])
    with pytest.raises(ValueError, match=r"shape \(1, 1\) but its target has shape \(1, 4\)"):
        multilevel_reconstruction_loss([reconstructions[2]], [targets[0]])
    with pytest.raises(ValueError, match=r"shape \(1, 1\) but its target has shape \(1, 4\)"):
        summed_reconstruction_loss(reconstructions[2], targets[0])
