"""Target updates of the alternating methods: closed forms and an exact solver.

Symbols: ``p_ik`` posterior of the classifier, ``q_ik`` target, ``q_k`` its column means, ``d_k``
prior proportion of a cluster, ``s`` sharpness, ``g`` balance. Everything is computed from
logarithms, so that vanishing probabilities do no harm; prefer float64.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from .mutual_information import conditional_entropy, cross_entropy, entropy

__all__ = [
    "ExactTargets",
    "target_objective",
    "closed_form_targets",
    "self_training_targets",
    "exact_targets",
    "update_cluster_mass",
]


def target_objective(
    targets: Tensor,
    log_posterior: Tensor,
    sharpness: float,
    balance: float,
    log_prior: Tensor | None = None,
) -> Tensor:
    """Convex function of the targets that every target update minimises.

    ``(1/N) sum_ik q_ik log q_ik - sharpness (1/N) sum_ik q_ik log p_ik
    + balance * KL(q || d)``, with ``q_k`` the column means

    The mutual-information method has ``sharpness=2, balance=1`` (then this is
    ``log K - A(P, Q)``), with weight ``alpha`` on ``KL(Q || P)`` it has
    ``sharpness=(1 + alpha) / alpha, balance=1 / alpha``; DEPICT has ``sharpness=1``.

    Parameters
    ----------
    targets : Tensor of shape (n_samples, n_clusters)
        Target probabilities ``Q``.
    log_posterior : Tensor of shape (n_samples, n_clusters)
        Log-probabilities ``log P`` of the classifier.
    sharpness : float
        Weight of the cross-entropy.
    balance : float
        Weight of the divergence of the cluster proportions from the prior.
    log_prior : Tensor of shape (n_clusters,), default=None
        Logarithms ``log d_k`` of the prior proportions; None stands for ``1 / n_clusters``.

    Returns
    -------
    Tensor of shape ()
        The objective; smaller is better.

    Examples
    --------
    >>> import torch
    >>> posterior = torch.tensor([[0.75, 0.25], [0.25, 0.75]])
    >>> target_objective(posterior, posterior.log(), sharpness=1.0, balance=1.0)
    tensor(0.)
    """
    proportions = targets.mean(dim=0)
    if log_prior is None:
        log_prior = _equal_log_prior(targets)
    divergence = -entropy(proportions) - (proportions * log_prior).sum()
    return (
        sharpness * cross_entropy(targets, log_posterior)
        - conditional_entropy(targets)
        + balance * divergence
    )


def closed_form_targets(
    log_posterior: Tensor,
    sharpness: float,
    balance: float,
    log_prior: Tensor | None = None,
    log_mass: Tensor | None = None,
) -> Tensor:
    """Approximate minimum of :func:`target_objective` in one pass.

    ``q_ik ~ p_ik^s (d_k / sum_i p_ik^s)^(g / (1 + g))``, rows normalised, with ``s`` the
    sharpness and ``g`` the balance. For the mutual-information method this is
    ``p_ik^2 / sqrt(sum_i p_ik^2)``, for DEPICT ``p_ik / sqrt(sum_i p_ik)``.

    It is exact only where the row normalisers ``Z_i`` are all equal; :func:`exact_targets` is
    exact always. The difference grows with an unequal prior.

    Parameters
    ----------
    log_posterior : Tensor of shape (n_samples, n_clusters)
        Log-probabilities ``log P`` of the classifier.
    sharpness : float
        Power ``s`` of the posterior.
    balance : float
        Weight ``g`` of the balance term, at least 0.
    log_prior : Tensor of shape (n_clusters,), default=None
        Logarithms ``log d_k`` of the prior proportions; None stands for equal ones.
    log_mass : Tensor of shape (n_clusters,), default=None
        Logarithms of the column sums (or means: a common factor cancels) of ``p_ik^s`` over the
        whole data. None takes those of the rows given, which is right only when they are the
        whole data.

    Returns
    -------
    Tensor of shape (n_samples, n_clusters)
        Targets; each row sums to one.

    References
    ----------
    M. Jabi, M. Pedersoli, A. Mitiche, I. Ben Ayed, "Deep clustering: On the link between
    discriminative models and K-means", arXiv 1810.04246.

    K. Ghasedi Dizaji, A. Herandi, C. Deng, W. Cai, H. Huang, "Deep Clustering via Joint
    Convolutional Autoencoder Embedding and Relative Entropy Minimization", arXiv 1704.06327.

    Examples
    --------
    >>> import torch
    >>> posterior = torch.tensor([[0.7, 0.3], [0.3, 0.7]])
    >>> closed_form_targets(posterior.log(), sharpness=2.0, balance=1.0)
    tensor([[0.8448, 0.1552],
            [0.1552, 0.8448]])
    >>> closed_form_targets(posterior.log(), sharpness=1.0, balance=1.0)
    tensor([[0.7000, 0.3000],
            [0.3000, 0.7000]])
    """
    return _log_closed_form(log_posterior, sharpness, balance, log_prior, log_mass).exp()


def self_training_targets(
    log_posterior: Tensor, log_mass: Tensor | None = None, log_prior: Tensor | None = None
) -> Tensor:
    """Squared posterior over cluster frequency, ``q_ik ~ p_ik^2 d_k / sum_i p_ik``.

    The target of deep embedded clustering, which DEPICT's released code uses in place of the
    published ``p_ik / sqrt(sum_i p_ik)``. It sharpens; the published one only balances.

    Parameters
    ----------
    log_posterior : Tensor of shape (n_samples, n_clusters)
        Log-probabilities ``log P`` of the classifier.
    log_mass : Tensor of shape (n_clusters,), default=None
        Logarithms of the column sums or means of ``p_ik`` over the whole data; None takes those
        of the rows given.
    log_prior : Tensor of shape (n_clusters,), default=None
        Logarithms ``log d_k`` of the prior proportions, an extension of this package; None
        stands for equal ones.

    Returns
    -------
    Tensor of shape (n_samples, n_clusters)
        Targets; each row sums to one.

    References
    ----------
    J. Xie, R. Girshick, A. Farhadi, "Unsupervised Deep Embedding for Clustering Analysis",
    arXiv 1511.06335.

    Examples
    --------
    >>> import torch
    >>> self_training_targets(torch.tensor([[0.75, 0.25], [0.25, 0.75]]).log())
    tensor([[0.9000, 0.1000],
            [0.1000, 0.9000]])
    """
    if log_mass is None:
        log_mass = torch.logsumexp(log_posterior, dim=0)
    return torch.softmax(2 * log_posterior + _log_balance_factors(log_mass, 1.0, log_prior), dim=1)


class ExactTargets(NamedTuple):
    """Result of :func:`exact_targets`.

    Attributes
    ----------
    targets : Tensor of shape (n_samples, n_clusters)
        Targets; each row sums to one.
    objective : Tensor of shape ()
        Value of :func:`target_objective` at the targets.
    lower_bound : Tensor of shape ()
        ``-(1/N) sum_i log Z_i``: no targets at all have a smaller objective. Its distance from
        ``objective`` certifies the solution.
    n_iter : int
        Number of iterations made.
    """

    targets: Tensor
    objective: Tensor
    lower_bound: Tensor
    n_iter: int


def exact_targets(
    log_posterior: Tensor,
    sharpness: float,
    balance: float,
    log_prior: Tensor | None = None,
    tol: float = 1e-12,
    max_iter: int = 1000,
) -> ExactTargets:
    """Minimum of :func:`target_objective`, with a certificate.

    The minimum satisfies ``q_ik = p_ik^s (d_k / q_k)^g / Z_i``, where the column means ``q_k``
    depend on the targets themselves. Starting from the closed form, iterate

    ``Q = softmax(s log p_ik + g (log d_k - log v_k))``,
    ``v <- normalise((v_k^g * mean_i q_ik)^(1 / (1 + g)))``.

    For any proportions ``v`` the value ``-(1/N) sum_i log Z_i(v)`` bounds the objective of all
    targets from below; it lies below the objective of ``Q`` itself by exactly ``g KL(q || v)``.

    The solver is an extension of this package.

    Parameters
    ----------
    log_posterior : Tensor of shape (n_samples, n_clusters)
        Log-probabilities ``log P`` of the classifier, of the whole data.
    sharpness : float
        Power ``s`` of the posterior.
    balance : float
        Weight ``g`` of the balance term, at least 0. Near the solution an iteration leaves at
        most ``g / (1 + g)`` of the error.
    log_prior : Tensor of shape (n_clusters,), default=None
        Logarithms ``log d_k`` of the prior proportions; None stands for equal ones.
    tol : float, default=1e-12
        The iteration ends when no proportion changes by more; a few units of rounding of the
        dtype are allowed where they are larger.
    max_iter : int, default=1000
        Most iterations made. The certificate tells how good an unfinished result is.

    Returns
    -------
    ExactTargets
        Targets, objective, lower bound and number of iterations.

    Examples
    --------
    >>> import torch
    >>> posterior = torch.tensor([[0.9, 0.1], [0.6, 0.4]], dtype=torch.float64)
    >>> solution = exact_targets(posterior.log(), sharpness=1.0, balance=1.0)
    >>> bool(solution.objective - solution.lower_bound < 1e-12)
    True
    """
    tolerance = max(tol, 4 * torch.finfo(log_posterior.dtype).eps)
    if log_prior is None:
        log_prior = _equal_log_prior(log_posterior)
    logits = sharpness * log_posterior
    log_proportions = _log_column_means(
        _log_closed_form(log_posterior, sharpness, balance, log_prior, None)
    )
    n_iter, change = 0, math.inf
    while change >= tolerance and n_iter < max_iter:
        log_targets = torch.log_softmax(
            logits + _log_balance_factors(log_proportions, balance, log_prior), dim=1
        )
        previous = log_proportions
        log_proportions = torch.log_softmax(
            (balance * previous + _log_column_means(log_targets)) / (1 + balance), dim=0
        )
        change = (log_proportions.exp() - previous.exp()).abs().max().item()
        n_iter += 1
    balanced = logits + _log_balance_factors(log_proportions, balance, log_prior)
    targets = torch.softmax(balanced, dim=1)
    return ExactTargets(
        targets=targets,
        objective=target_objective(targets, log_posterior, sharpness, balance, log_prior),
        lower_bound=-torch.logsumexp(balanced, dim=1).mean(),
        n_iter=n_iter,
    )


def update_cluster_mass(
    cluster_mass: Tensor, log_posterior: Tensor, sharpness: float, rate: float
) -> Tensor:
    """One step of the running column means that streaming targets are balanced with.

    ``V_k <- (1 - rate) V_k + rate * mean_i p_ik^s``

    Its logarithm is the ``log_mass`` of :func:`closed_form_targets`. An extension of this package.

    Parameters
    ----------
    cluster_mass : Tensor of shape (n_clusters,)
        Running averages ``V``.
    log_posterior : Tensor of shape (batch_size, n_clusters)
        Log-probabilities of the batch.
    sharpness : float
        Power ``s`` of the posterior: 2 for the mutual-information method, 1 for DEPICT.
    rate : float
        Step between 0 and 1.

    Returns
    -------
    Tensor of shape (n_clusters,)
        New averages; the argument is left as it was.

    Examples
    --------
    >>> import torch
    >>> update_cluster_mass(torch.tensor([0.5, 0.5]), torch.tensor([[0.8, 0.2]]).log(), 1.0, 0.5)
    tensor([0.6500, 0.3500])
    """
    batch_mass = (sharpness * log_posterior).exp().mean(dim=0)
    return (1 - rate) * cluster_mass + rate * batch_mass


def _log_balance_factors(log_mass: Tensor, exponent: float, log_prior: Tensor | None) -> Tensor:
    """``exponent * (log d_k - log_mass_k)``; a cluster without any mass is left alone."""
    log_ratio = -log_mass if log_prior is None else log_prior - log_mass
    return exponent * log_ratio.masked_fill(torch.isneginf(log_mass), 0.0)


def _log_closed_form(
    log_posterior: Tensor,
    sharpness: float,
    balance: float,
    log_prior: Tensor | None,
    log_mass: Tensor | None,
) -> Tensor:
    """Logarithms of the closed-form targets."""
    logits = sharpness * log_posterior
    if log_mass is None:
        log_mass = torch.logsumexp(logits, dim=0)
    exponent = balance / (1 + balance)
    return torch.log_softmax(logits + _log_balance_factors(log_mass, exponent, log_prior), dim=1)


def _equal_log_prior(like: Tensor) -> Tensor:
    """``log(1 / n_clusters)`` for every column."""
    n_clusters = like.shape[1]
    return like.new_full((n_clusters,), -math.log(n_clusters))


def _log_column_means(log_targets: Tensor) -> Tensor:
    """Logarithms of the column means of ``exp(log_targets)``."""
    return torch.logsumexp(log_targets, dim=0) - math.log(log_targets.shape[0])
