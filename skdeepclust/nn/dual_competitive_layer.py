"""The layers that make prototypes: combinations of samples, or free vectors."""

import torch
from torch import nn

# Distance of drawn free prototypes from the mean of the samples, in each coordinate.
_FREE_DEVIATION = 0.01


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
        self.weights = nn.Parameter(torch.empty(n_anchors, n_clusters))
        self.draw(generator)

    @property
    def n_clusters(self):
        """Number of prototypes."""
        return self.weights.shape[1]

    @torch.no_grad()
    def draw(self, generator=None):
        """Draw all weights anew.

        Parameters
        ----------
        generator : torch.Generator or None, default=None
            On the CPU.
        """
        self.weights.copy_(torch.empty(self.weights.shape).normal_(generator=generator))

    @torch.no_grad()
    def place_at(self, chosen, anchors):
        """Put each prototype half way from the mean to one of the anchors.

        Half way, because an anchor may be far from all others.

        Parameters
        ----------
        chosen : Tensor of shape (n_clusters,), dtype int64
            Numbers of the anchors.
        anchors : Tensor of shape (n_anchors, embedding_dim)
            Embedded anchors, for layers whose weights do not refer to them.
        """
        self.weights.zero_()
        numbers = torch.arange(self.n_clusters, device=self.weights.device)
        self.weights[chosen.to(numbers.device), numbers] = len(anchors) / 2

    @torch.no_grad()
    def place(self, prototypes, anchors):
        """Set the smallest weights that give these prototypes, as far as the anchors span.

        Parameters
        ----------
        prototypes : Tensor of shape (n_clusters, embedding_dim)
            Wanted prototypes.
        anchors : Tensor of shape (n_anchors, embedding_dim)
            Embedded anchors.
        """
        mean = anchors.mean(dim=0)
        centered = (anchors - mean) / len(anchors)
        self.weights.copy_(torch.linalg.pinv(centered.T) @ (prototypes.to(mean) - mean).T)

    @torch.no_grad()
    def reorder(self, order):
        """Renumber the prototypes.

        Parameters
        ----------
        order : Tensor of shape (n_clusters,), dtype int64
            New number ``i`` is old number ``order[i]``.
        """
        self.weights.copy_(self.weights[:, order.to(self.weights.device)].clone())

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


class FreePrototypeLayer(nn.Module):
    """Prototypes that are weights themselves: the competitive layer the dual one is compared to.

    Parameters
    ----------
    n_clusters : int
        Number of prototypes.
    embedding_dim : int
        Size of the embedding.
    generator : torch.Generator or None, default=None
        Draws the first prototypes close to the mean of a centred embedding.

    Examples
    --------
    >>> import torch
    >>> from skdeepclust.nn.dual_competitive_layer import FreePrototypeLayer
    >>> FreePrototypeLayer(n_clusters=2, embedding_dim=3)(torch.zeros(5, 3)).shape
    torch.Size([2, 3])
    """

    def __init__(self, n_clusters, embedding_dim, generator=None):
        super().__init__()
        self.prototypes = nn.Parameter(torch.empty(n_clusters, embedding_dim))
        self.draw(generator)

    @property
    def n_clusters(self):
        """Number of prototypes."""
        return len(self.prototypes)

    @torch.no_grad()
    def draw(self, generator=None):
        """Draw all prototypes anew, close to the origin.

        Parameters
        ----------
        generator : torch.Generator or None, default=None
            On the CPU.
        """
        drawn = torch.empty(self.prototypes.shape).normal_(generator=generator)
        self.prototypes.copy_(_FREE_DEVIATION * drawn)

    @torch.no_grad()
    def place_at(self, chosen, anchors):
        """Put each prototype half way from the mean to one of the anchors.

        Parameters
        ----------
        chosen : Tensor of shape (n_clusters,), dtype int64
            Numbers of the anchors.
        anchors : Tensor of shape (n_anchors, embedding_dim)
            Embedded anchors.
        """
        self.prototypes.copy_((anchors[chosen] + anchors.mean(dim=0)) / 2)

    @torch.no_grad()
    def place(self, prototypes, anchors):
        """Set the prototypes.

        Parameters
        ----------
        prototypes : Tensor of shape (n_clusters, embedding_dim)
            Wanted prototypes.
        anchors : ignored
            There for the sake of the dual layer.
        """
        self.prototypes.copy_(prototypes)

    @torch.no_grad()
    def reorder(self, order):
        """Renumber the prototypes.

        Parameters
        ----------
        order : Tensor of shape (n_clusters,), dtype int64
            New number ``i`` is old number ``order[i]``.
        """
        self.prototypes.copy_(self.prototypes[order.to(self.prototypes.device)].clone())

    def forward(self, anchors):
        """Return the prototypes.

        Parameters
        ----------
        anchors : ignored
            There for the sake of the dual layer.

        Returns
        -------
        Tensor of shape (n_clusters, embedding_dim)
        """
        return self.prototypes
