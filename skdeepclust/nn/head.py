"""The linear classifier on top of an embedding."""

import torch
from torch import nn


class LinearHead(nn.Module):
    """Logits ``weight @ z + bias``, trained in coordinates in which ``z`` has unit deviation.

    Optimisers such as Adam take steps of one size whatever the unit of the input is. A learnt
    embedding needs no scaling; rows as they come may lie in any unit.

    Parameters
    ----------
    n_clusters : int
        Number of logits, all zero at first.
    embedding_dim : int
        Width of the embedding.
    dtype : torch.dtype, default=None
        Of weights and scale.

    Examples
    --------
    >>> import torch
    >>> from skdeepclust.nn.head import LinearHead
    >>> head = LinearHead(2, 3)
    >>> head.set_scale(torch.full((3,), 5.0), torch.full((3,), 1e6))
    >>> head.write(torch.ones(2, 3), torch.zeros(2))
    >>> head.weight.shape, head.bias.shape
    (torch.Size([2, 3]), torch.Size([2]))
    """

    def __init__(self, n_clusters, embedding_dim, dtype=None):
        super().__init__()
        self.scaled_weight = nn.Parameter(torch.zeros(n_clusters, embedding_dim, dtype=dtype))
        self.scaled_bias = nn.Parameter(torch.zeros(n_clusters, dtype=dtype))
        self.register_buffer("shift", torch.zeros(embedding_dim, dtype=dtype))
        self.register_buffer("deviation", torch.ones(embedding_dim, dtype=dtype))

    @property
    def weight(self):
        """Weights for the embedding as it is, of shape (n_clusters, embedding_dim)."""
        return self.scaled_weight / self.deviation

    @property
    def bias(self):
        """Biases for the embedding as it is, of shape (n_clusters,)."""
        return self.scaled_bias - self.weight @ self.shift

    @torch.no_grad()
    def set_scale(self, shift, deviation):
        """Train in the coordinates ``(z - shift) / deviation``; :meth:`write` comes after it.

        A deviation of 0, of a constant column, counts as 1.
        """
        self.shift.copy_(shift)
        self.deviation.copy_(torch.where(deviation > 0, deviation, 1.0))

    @torch.no_grad()
    def write(self, weight, bias):
        """Set the weights and biases for the embedding as it is, both on the CPU."""
        shift, deviation = self.shift.cpu(), self.deviation.cpu()
        self.scaled_weight.copy_(weight * deviation)
        self.scaled_bias.copy_(bias + weight @ shift.to(weight.dtype))

    @torch.no_grad()
    def reorder(self, order):
        """Renumber the clusters: new id ``i`` is old id ``order[i]``."""
        for parameter in (self.scaled_weight, self.scaled_bias):
            parameter.copy_(parameter[order].clone())
