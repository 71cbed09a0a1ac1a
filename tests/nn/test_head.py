"""The linear head: written and read in the units of the embedding, trained in its own."""

import pytest
import torch

from skdeepclust.nn.head import LinearHead


@pytest.fixture
def scaled_head():
    head = LinearHead(3, 2, torch.float64)
    head.set_scale(torch.tensor([5.0, -1e3]), torch.tensor([1e6, 0.0]))
    return head


def test_what_is_written_is_read(scaled_head):
    weight = torch.tensor([[1.0, 2.0], [3.0, -4.0], [0.5, 0.0]], dtype=torch.float64)
    bias = torch.tensor([0.1, 0.2, -0.3], dtype=torch.float64)
    scaled_head.write(weight, bias)
    torch.testing.assert_close(scaled_head.weight, weight)
    torch.testing.assert_close(scaled_head.bias, bias)
    scaled_head.reorder(torch.tensor([2, 0, 1]))
    torch.testing.assert_close(scaled_head.weight, weight[[2, 0, 1]])
    torch.testing.assert_close(scaled_head.bias, bias[[2, 0, 1]])


def test_gradients_are_those_of_scaled_rows(scaled_head):
    z = torch.tensor([[7.0e6, -900.0]], dtype=torch.float64)
    (z @ scaled_head.weight.T + scaled_head.bias).sum().backward()
    # A deviation of 0 counts as 1.
    expected = torch.tensor([(7.0e6 - 5.0) / 1e6, 100.0], dtype=torch.float64)
    torch.testing.assert_close(scaled_head.scaled_weight.grad, expected.expand(3, 2))
    torch.testing.assert_close(scaled_head.scaled_bias.grad, torch.ones(3, dtype=torch.float64))
