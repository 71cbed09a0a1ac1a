"""Cross-entropy of pooled softmax units: the classification of pseudo parent-classes.

The softmax of a row spans all units, ``n_parents * n_duplicates`` of them. Unit ``j`` belongs to
parent ``j mod n_parents``; the units of one parent are its duplicates.
"""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = [
    "distance_memberships",
    "pooled_log_probabilities",
    "pseudo_supervised_cross_entropy",
    "slot_table",
]


def pooled_log_probabilities(logits: Tensor, n_parents: int) -> Tensor:
    """Logarithm of the probability of every parent, summed over its duplicates.

    ``log Y_ip = logsumexp_{j of p} Z_ij - logsumexp_j Z_ij``

    Finite where the pooled probability itself would be 0.

    Parameters
    ----------
    logits : Tensor of shape (batch_size, n_parents * n_duplicates)
        Inputs ``Z`` of the softmax.
    n_parents : int
        Number of parents.

    Returns
    -------
    Tensor of shape (batch_size, n_parents)
        Log-probabilities; the exponentials of a row sum to 1.

    References
    ----------
    O. Kilinc, I. Uysal, "Learning Latent Representations in Neural Networks for Clustering
    through Pseudo Supervision and Graph-based Activity Regularization", arXiv 1802.03063.

    Examples
    --------
    Two parents with two duplicates each:

    >>> import torch
    >>> pooled_log_probabilities(torch.tensor([[2.0, -1.0, 0.5, -2.0]]), 2).exp()
    tensor([[0.9473, 0.0527]])
    """
    by_parent = logits.unflatten(1, (-1, n_parents))
    return by_parent.logsumexp(dim=1) - logits.logsumexp(dim=1, keepdim=True)


def pseudo_supervised_cross_entropy(logits: Tensor, labels: Tensor, n_parents: int) -> Tensor:
    """Mean cross-entropy of the pooled probabilities.

    ``-(1/B) sum_i log Y_{i, t_i}``

    Parameters
    ----------
    logits : Tensor of shape (batch_size, n_parents * n_duplicates)
        Inputs ``Z`` of the softmax.
    labels : Tensor of shape (batch_size,), dtype int64
        Parent ``t`` of every row.
    n_parents : int
        Number of parents.

    Returns
    -------
    Tensor of shape ()
        The loss term; ``log(n_parents)`` for rows that tell nothing.

    References
    ----------
    O. Kilinc, I. Uysal, "Learning Latent Representations in Neural Networks for Clustering
    through Pseudo Supervision and Graph-based Activity Regularization", arXiv 1802.03063.

    Examples
    --------
    >>> import torch
    >>> pseudo_supervised_cross_entropy(torch.zeros(3, 4), torch.tensor([0, 1, 1]), 2)
    tensor(0.6931)
    """
    return torch.nn.functional.nll_loss(pooled_log_probabilities(logits, n_parents), labels)


def distance_memberships(distances: Tensor, temperature: float) -> Tensor:
    """Memberships of rows in clusters that fall with the squared distance to the centres.

    ``q_ic = exp(-D_ic / temperature) / sum_c' exp(-D_ic' / temperature)``

    They are no posterior: the method defines none.

    Parameters
    ----------
    distances : Tensor of shape (n_samples, n_clusters)
        Squared distances ``D``.
    temperature : float
        Unit of the distances. Where it is 0 the nearest centre has everything.

    Returns
    -------
    Tensor of shape (n_samples, n_clusters)
        Rows sum to 1; the largest one is that of the nearest centre.

    Examples
    --------
    >>> import torch
    >>> distance_memberships(torch.tensor([[1.0, 9.0, 10.0], [5.0, 5.0, 8.0]]), 2.0)
    tensor([[0.9714, 0.0178, 0.0108],
            [0.4498, 0.4498, 0.1004]])
    """
    excess = distances - distances.amin(dim=1, keepdim=True)
    temperature = max(temperature, torch.finfo(distances.dtype).tiny)
    return (-excess / temperature).softmax(dim=1)


def slot_table(counts: Tensor) -> Tensor:
    """Share of each cluster among the rows of a slot, with one row added to each.

    A slot is a duplicate of the identity; a row is in the slot with its largest softmax input.
    The memberships of a row are its softmax over the duplicates, times this table.

    Parameters
    ----------
    counts : Tensor of shape (n_duplicates, n_clusters)
        Numbers of rows.

    Returns
    -------
    Tensor of shape (n_duplicates, n_clusters), float64
        Rows sum to 1.

    Examples
    --------
    >>> import torch
    >>> slot_table(torch.tensor([[8, 2], [1, 9], [3, 3]]))
    tensor([[0.7500, 0.2500],
            [0.1667, 0.8333],
            [0.5000, 0.5000]], dtype=torch.float64)
    """
    smoothed = counts.double() + 1
    return smoothed / smoothed.sum(dim=1, keepdim=True)
