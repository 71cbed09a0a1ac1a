"""Cross-entropy of pooled softmax units: the classification of pseudo parent-classes.

The softmax of a row spans all units, ``n_parents * n_duplicates`` of them. Unit ``j`` belongs to
parent ``j mod n_parents``; the units of one parent are its duplicates.
"""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["pooled_log_probabilities", "pseudo_supervised_cross_entropy"]


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
