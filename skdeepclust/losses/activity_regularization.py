"""Graph-based activity regularization (GAR) in its row-sum form, linear in the units.

The activity ``C`` of a block is the positive part of its softmax inputs, one column a duplicate.
With the co-activation matrix ``N = C'C`` and its diagonal ``v``, the duplicates of a block are
mutually exclusive when ``N`` is diagonal (affinity 0) and equally used when ``v`` is constant
(balance 1). No matrix of duplicates by duplicates is formed: the off-diagonal mass of ``N`` is
``sum_i (sum_j C_ij)^2 - sum_ij C_ij^2``.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

__all__ = [
    "ActivityTerms",
    "activity_affinity",
    "activity_balance",
    "activity_coactivity",
    "activity_terms",
    "scaled_frobenius",
]

# A block with less activity than this is silent: the ratios are 0 / 0 there.
_SILENT = 1e-12
# Rows of a batch in the paper's experiments; the weight of the Frobenius term is meant for them.
_REFERENCE_BATCH_SIZE = 400


class ActivityTerms(NamedTuple):
    """What the regularizer is built from.

    Parameters
    ----------
    affinity : Tensor of shape ()
        Between 0 (duplicates exclude each other) and 1.
    balance : Tensor of shape ()
        Between 0 and 1 (duplicates are used equally).
    coactivity : Tensor of shape ()
        Off-diagonal mass of the co-activation matrices, not normalised.
    """

    affinity: Tensor
    balance: Tensor
    coactivity: Tensor


def activity_affinity(activity: Tensor, *, offset: float = 0.0) -> Tensor:
    """How often duplicates are active together, relative to their activity.

    ``(sum_ij N_ij - tr N) / ((k - 1) tr N)`` with ``N = C'C``; 0 for a single duplicate and for a
    silent block.

    Parameters
    ----------
    activity : Tensor of shape (batch_size, n_duplicates, ...)
        Non-negative activity ``C``; further axes are further blocks.
    offset : float, default=0.0
        Added to the denominator. The authors' code has 1e-7, which biases the ratio of small
        activities towards 0.

    Returns
    -------
    Tensor of shape (...)
        One value between 0 and 1 a block.

    References
    ----------
    O. Kilinc, I. Uysal, "GAR: An efficient and scalable Graph-based Activity Regularization for
    semi-supervised learning", arXiv 1705.07219.

    Examples
    --------
    >>> import torch
    >>> activity_affinity(torch.tensor([[2.0, 0.5], [0.5, 1.5], [0.0, 0.0]]))
    tensor(0.5185)
    """
    n_duplicates = activity.shape[1]
    activity = _at_least_float32(activity)
    mass = activity.square().sum(dim=(0, 1))
    together = activity.sum(dim=1).square().sum(dim=0) - mass
    return _ratio(together, (n_duplicates - 1) * mass, silent=mass < _SILENT, offset=offset)


def activity_balance(
    activity: Tensor, *, balance_on: str = "squares", offset: float = 0.0
) -> Tensor:
    """How evenly the duplicates are used.

    ``(s^2 - sum_j v_j^2) / ((k - 1) sum_j v_j^2)`` with ``v`` the diagonal of ``C'C`` and ``s``
    its sum; 1 for a single duplicate, 0 for a silent block.

    Parameters
    ----------
    activity : Tensor of shape (batch_size, n_duplicates, ...)
        Non-negative activity ``C``; further axes are further blocks.
    balance_on : {"squares", "sums"}, default="squares"
        Whether ``v_j`` is the sum of squares of column ``j`` or its plain sum.
    offset : float, default=0.0
        Added to the denominator of the ratio as it is printed, as in the authors' code (1e-7);
        0 normalises ``v`` first, so that the ratio does not change with the size of ``C``.

    Returns
    -------
    Tensor of shape (...)
        One value between 0 and 1 a block.

    References
    ----------
    O. Kilinc, I. Uysal, "GAR: An efficient and scalable Graph-based Activity Regularization for
    semi-supervised learning", arXiv 1705.07219.

    Examples
    --------
    >>> import torch
    >>> activity_balance(torch.tensor([[2.0, 0.5], [0.5, 1.5], [0.0, 0.0]]))
    tensor(0.8740)
    """
    n_duplicates = activity.shape[1]
    usage = _usage(activity, balance_on)
    if n_duplicates == 1:
        return torch.ones_like(usage[0])
    total = usage.sum(dim=0)
    silent = total < _SILENT
    if not offset:
        usage = usage / torch.where(silent, 1.0, total)
        total = usage.sum(dim=0)
    squares = usage.square().sum(dim=0)
    return _ratio(total.square() - squares, (n_duplicates - 1) * squares, silent, offset)


def activity_coactivity(activity: Tensor) -> Tensor:
    """Off-diagonal mass of the co-activation matrix, ``sum_ij N_ij - tr N``.

    Parameters
    ----------
    activity : Tensor of shape (batch_size, n_duplicates, ...)
        Non-negative activity ``C``; further axes are further blocks.

    Returns
    -------
    Tensor of shape (...)
        One value a block, not normalised.

    References
    ----------
    O. Kilinc, I. Uysal, "GAR: An efficient and scalable Graph-based Activity Regularization for
    semi-supervised learning", arXiv 1705.07219.

    Examples
    --------
    >>> import torch
    >>> activity_coactivity(torch.tensor([[2.0, 0.5], [0.5, 1.5], [0.0, 0.0]]))
    tensor(3.5000)
    """
    activity = _at_least_float32(activity)
    return activity.sum(dim=1).square().sum(dim=0) - activity.square().sum(dim=(0, 1))


def activity_terms(
    logits: Tensor, n_parents: int, *, reduction: str = "mean", balance_on: str = "squares"
) -> ActivityTerms:
    """Affinity, balance and coactivity of the positive part of softmax inputs.

    Parameters
    ----------
    logits : Tensor of shape (batch_size, n_parents * n_duplicates)
        Inputs ``Z`` of the softmax; unit ``j`` belongs to parent ``j mod n_parents``.
    n_parents : int
        Number of parents.
    reduction : {"mean", "pooled", "global"}, default="mean"
        ``"mean"`` averages the ratios of the parents; ``"pooled"`` divides the sum of their
        numerators by that of their denominators; ``"global"`` takes all units as one block, as
        the original GAR does. A block is all rows and some columns, whatever the labels.
    balance_on : {"squares", "sums"}, default="squares"
        As in :func:`activity_balance`.

    Returns
    -------
    ActivityTerms
        The loss is ``affinity_weight * affinity + balance_weight * (1 - balance) + ...``.

    Raises
    ------
    ValueError
        If `reduction` is none of the three words.

    References
    ----------
    O. Kilinc, I. Uysal, "Learning Latent Representations in Neural Networks for Clustering
    through Pseudo Supervision and Graph-based Activity Regularization", arXiv 1802.03063.

    Examples
    --------
    >>> import torch
    >>> logits = torch.tensor(
    ...     [[2, -1, 0.5, -2], [0.5, -0.5, 1.5, -1], [-1, 2, -2, 0.5], [-0.5, 1, -1, -1]]
    ... )
    >>> activity_terms(logits, 2)
    ActivityTerms(affinity=tensor(0.4497), balance=tensor(0.4869), coactivity=tensor(5.5000))
    """
    activity = _at_least_float32(logits).relu()
    if reduction == "global":
        return _terms_of_blocks(activity, balance_on)
    blocks = activity.unflatten(1, (-1, n_parents))
    if reduction == "mean":
        return _terms_of_blocks(blocks, balance_on)
    if reduction == "pooled":
        return _pooled_terms(blocks, balance_on)
    raise ValueError(f"reduction must be 'mean', 'pooled' or 'global', got {reduction!r}")


def scaled_frobenius(logits: Tensor) -> Tensor:
    """Squared Frobenius norm of softmax inputs, as if the batch had 400 rows.

    ``(400 / B) sum_ij Z_ij^2``

    The paper's sum over a batch of 400 grows with the batch, while the cross-entropy beside it
    is a mean. On the inputs as they are, rather than their positive part, the term draws
    duplicates that have died back towards 0.

    Parameters
    ----------
    logits : Tensor of shape (batch_size, n_units)
        Inputs ``Z`` of the softmax, or their positive part.

    Returns
    -------
    Tensor of shape ()
        The term.

    References
    ----------
    O. Kilinc, I. Uysal, "GAR: An efficient and scalable Graph-based Activity Regularization for
    semi-supervised learning", arXiv 1705.07219.

    Examples
    --------
    >>> import torch
    >>> scaled_frobenius(torch.ones(200, 3))
    tensor(1200.)
    """
    logits = _at_least_float32(logits)
    return logits.square().sum() * (_REFERENCE_BATCH_SIZE / len(logits))


def _terms_of_blocks(blocks: Tensor, balance_on: str) -> ActivityTerms:
    return ActivityTerms(
        activity_affinity(blocks).mean(),
        activity_balance(blocks, balance_on=balance_on).mean(),
        activity_coactivity(blocks).sum(),
    )


def _pooled_terms(blocks: Tensor, balance_on: str) -> ActivityTerms:
    n_duplicates = blocks.shape[1]
    together = activity_coactivity(blocks).sum()
    mass = blocks.square().sum()
    usage = _usage(blocks, balance_on)
    if n_duplicates == 1:
        balance = torch.ones_like(mass)
    else:
        usage = usage / usage.sum().clamp(min=_SILENT)
        squares = usage.square().sum()
        products = usage.sum(dim=0).square().sum() - squares
        balance = _ratio(products, (n_duplicates - 1) * squares, mass < _SILENT)
    affinity = _ratio(together, (n_duplicates - 1) * mass, mass < _SILENT)
    return ActivityTerms(affinity, balance, together)


def _usage(activity: Tensor, balance_on: str) -> Tensor:
    """Return ``v``, of shape (n_duplicates, ...)."""
    activity = _at_least_float32(activity)
    if balance_on == "squares":
        return activity.square().sum(dim=0)
    if balance_on == "sums":
        return activity.sum(dim=0)
    raise ValueError(f"balance_on must be 'squares' or 'sums', got {balance_on!r}")


def _ratio(numerator: Tensor, denominator: Tensor, silent: Tensor, offset: float = 0.0) -> Tensor:
    """Return numerator / denominator, and a constant 0 where a block is silent."""
    if offset:
        return numerator / (denominator + offset)
    # Both places need it: a gradient through 0 / 0 would be nan even where it is masked.
    silent = silent | (denominator <= 0)
    return torch.where(silent, 0.0, numerator / torch.where(silent, 1.0, denominator))


def _at_least_float32(values: Tensor) -> Tensor:
    """Half precision cannot hold the fourth powers of the activity."""
    return values.float() if values.element_size() < 4 else values
