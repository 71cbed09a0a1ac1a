"""The layer whose outputs are prototypes: combinations of the samples it is given."""

import torch
from torch import nn


class DualCompetitiveLayer(nn.Module):
    """Prototypes as weighted combinations of anchors, samples with a row of weights each.

    ``p_k = mean + (1/m) sum_i W_ik (z_i - mean)`` for ``m`` anchors ``z_i``

    The weights are all that is trained; a gradient step on them moves the prototypes fastest
    along the leading principal directions of the anchors, and never out of their span. The
    division by ``m`` keeps the weights near one whatever the number of anchors.

    Parameters
    ----------
    n_anchors : int
        Number of samples whose embedding makes the prototypes.
    n_clusters : int
        Number of prototypes.
    generator : torch.Generator or None, default=None
        Draws the first weights from the normal distribution, which puts the prototypes close to
        the mean.

    References
    ----------
    G. Cirrincione, "DDCL: Deep Dual Competitive Learning: A Differentiable End-to-End Framework
    for Unsupervised Prototype-Based Representation Learning", arXiv 2604.01740.

    Examples
    --------
    >>> import torch
    >>> from skdeepclust.nn.dual_competitive_layer import DualCompetitiveLayer
    >>> layer = DualCompetitiveLayer(n_anchors=2, n_clusters=1)
    >>> with torch.no_grad():
    ...     _ = layer.weights.copy_(torch.tensor([[2.0], [0.0]]))
    >>> layer(torch.tensor([[1.0, 0.0], [3.0, 0.0]])).tolist()
    [[1.0, 0.0]]
    """

    def __init__(self, n_anchors, n_clusters, generator=None):
        super().__init__()
        weights = torch.empty(n_anchors, n_clusters)
        self.weights = nn.Parameter(weights.normal_(generator=generator))

    def place_at(self, anchors):
        """Put each prototype half way from the mean to one of these anchors.

        Half way, because an anchor may be far from all others.

        Parameters
        ----------
        anchors : Tensor of shape (n_clusters,), dtype int64
            Their numbers.
        """
        n_anchors, n_clusters = self.weights.shape
        with torch.no_grad():
            self.weights.zero_()
            self.weights[anchors, torch.arange(n_clusters)] = n_anchors / 2

    def forward(self, anchors):
        """Return the prototypes.

        Parameters
        ----------
        anchors : Tensor of shape (n_anchors, embedding_dim)
            Embedded anchors; their order is that of the weights.

        Returns
        -------
        Tensor of shape (n_clusters, embedding_dim)
        """
        mean = anchors.mean(dim=0)
        return mean + self.weights.T @ (anchors - mean) / len(anchors)
