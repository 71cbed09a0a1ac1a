"""Mutual information of a softmax classifier and its alternating forms.

Symbols: ``p_ik`` posterior of the classifier, ``q_ik`` target, ``p_k`` and ``q_k`` their column
means. Logarithms are natural and ``0 log 0 = 0``.
"""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = [
    "log_posterior",
    "entropy",
    "conditional_entropy",
    "mutual_information",
    "cross_entropy",
    "kl_divergence",
    "mi_adm_objective",
    "depict_objective",
]


def log_posterior(
    embedding: Tensor, weights: Tensor, biases: Tensor, temperature: float = 1.0
) -> Tensor:
    """Log-probabilities of a linear softmax classifier.

    ``log p_ik = l_ik - log sum_j exp(l_ij)``, ``l_ik = (weights_k . z_i + biases_k) / temperature``

    Parameters
    ----------
    embedding : Tensor of shape (n_samples, embedding_dim)
        Embedded samples.
    weights : Tensor of shape (n_clusters, embedding_dim)
        Weights of the classifier.
    biases : Tensor of shape (n_clusters,)
        Biases of the classifier.
    temperature : float, default=1.0
        Divides the logits; smaller is sharper.

    Returns
    -------
    Tensor of shape (n_samples, n_clusters)
        Log-probabilities.

    Examples
    --------
    >>> import torch
    >>> log_posterior(torch.ones(1, 1), torch.tensor([[2.0], [1.0], [0.0]]), torch.zeros(3)).exp()
    tensor([[0.6652, 0.2447, 0.0900]])
    """
    return torch.log_softmax((embedding @ weights.T + biases) / temperature, dim=1)


def entropy(proportions: Tensor) -> Tensor:
    """Entropy of one distribution, ``-sum_k p_k log p_k``.

    Parameters
    ----------
    proportions : Tensor of shape (n_clusters,)
        Probabilities of sum one.

    Returns
    -------
    Tensor of shape ()
        Entropy in nats.

    Examples
    --------
    >>> import torch
    >>> entropy(torch.tensor([0.5, 0.5, 0.0]))
    tensor(0.6931)
    """
    return -torch.xlogy(proportions, proportions).sum()


def conditional_entropy(posterior: Tensor) -> Tensor:
    """Mean entropy of the rows, ``-(1/N) sum_ik p_ik log p_ik``.

    Parameters
    ----------
    posterior : Tensor of shape (n_samples, n_clusters)
        Probabilities; each row sums to one.

    Returns
    -------
    Tensor of shape ()
        Conditional entropy in nats.

    Examples
    --------
    >>> import torch
    >>> conditional_entropy(torch.tensor([[0.5, 0.5], [1.0, 0.0]]))
    tensor(0.3466)
    """
    return -torch.xlogy(posterior, posterior).sum() / posterior.shape[0]


def mutual_information(posterior: Tensor) -> Tensor:
    """Mutual information of input and label; a discriminative clustering maximises it.

    ``I(P) = -sum_k p_k log p_k + (1/N) sum_ik p_ik log p_ik``, between 0 and ``log n_clusters``

    Parameters
    ----------
    posterior : Tensor of shape (n_samples, n_clusters)
        Probabilities; each row sums to one.

    Returns
    -------
    Tensor of shape ()
        Mutual information in nats.

    References
    ----------
    M. Jabi, M. Pedersoli, A. Mitiche, I. Ben Ayed, "Deep clustering: On the link between
    discriminative models and K-means", arXiv 1810.04246.

    Examples
    --------
    >>> import torch
    >>> mutual_information(torch.tensor([[1.0, 0.0], [0.0, 1.0]]))
    tensor(0.6931)
    """
    return entropy(posterior.mean(dim=0)) - conditional_entropy(posterior)


def cross_entropy(targets: Tensor, log_posterior: Tensor) -> Tensor:
    """Cross-entropy of soft targets, ``-(1/N) sum_ik q_ik log p_ik``.

    This is the network's loss of the alternating methods, for fixed targets.

    Parameters
    ----------
    targets : Tensor of shape (n_samples, n_clusters)
        Target probabilities.
    log_posterior : Tensor of shape (n_samples, n_clusters)
        Log-probabilities of the classifier.

    Returns
    -------
    Tensor of shape ()
        Cross-entropy in nats.

    Examples
    --------
    >>> import torch
    >>> cross_entropy(torch.tensor([[1.0, 0.0]]), torch.tensor([[0.25, 0.75]]).log())
    tensor(1.3863)
    """
    # A target of zero counts nothing, also where the classifier's probability underflows to zero.
    finite = log_posterior.masked_fill(targets == 0, 0.0)
    return -(targets * finite).sum() / targets.shape[0]


def kl_divergence(targets: Tensor, log_posterior: Tensor) -> Tensor:
    """Mean divergence of the posterior from the targets.

    ``KL(Q || P) = (1/N) sum_ik q_ik log(q_ik / p_ik)``

    Parameters
    ----------
    targets : Tensor of shape (n_samples, n_clusters)
        Target probabilities.
    log_posterior : Tensor of shape (n_samples, n_clusters)
        Log-probabilities of the classifier.

    Returns
    -------
    Tensor of shape ()
        Divergence in nats, never negative but for rounding.

    Examples
    --------
    >>> import torch
    >>> kl_divergence(torch.tensor([[1.0, 0.0]]), torch.tensor([[0.5, 0.5]]).log())
    tensor(0.6931)
    """
    return cross_entropy(targets, log_posterior) - conditional_entropy(targets)


def mi_adm_objective(targets: Tensor, log_posterior: Tensor) -> Tensor:
    """Alternating form of the mutual information; targets and classifier maximise it in turn.

    ``A(P, Q) = (1/N) sum_ik q_ik log p_ik - sum_k q_k log q_k - KL(Q || P)``

    ``A(P, P)`` is the mutual information ``I(P)``, and ``I(Q) = A(P, Q) + 2 KL(Q || P)``. For
    fixed targets, maximising ``A`` is minimising :func:`cross_entropy`.

    Parameters
    ----------
    targets : Tensor of shape (n_samples, n_clusters)
        Target probabilities ``Q``.
    log_posterior : Tensor of shape (n_samples, n_clusters)
        Log-probabilities ``log P`` of the classifier.

    Returns
    -------
    Tensor of shape ()
        The functional; larger is better.

    References
    ----------
    M. Jabi, M. Pedersoli, A. Mitiche, I. Ben Ayed, "Deep clustering: On the link between
    discriminative models and K-means", arXiv 1810.04246.

    Examples
    --------
    >>> import torch
    >>> posterior = torch.tensor([[0.75, 0.25], [0.25, 0.75]])
    >>> mi_adm_objective(posterior, posterior.log()), mutual_information(posterior)
    (tensor(0.1308), tensor(0.1308))
    """
    return (
        entropy(targets.mean(dim=0))
        - cross_entropy(targets, log_posterior)
        - kl_divergence(targets, log_posterior)
    )


def depict_objective(targets: Tensor, log_posterior: Tensor, balance: float = 1.0) -> Tensor:
    """Relative-entropy objective of DEPICT with equal prior proportions, to be minimised.

    ``F(P, Q) = KL(Q || P) + balance * sum_k q_k log q_k``

    Parameters
    ----------
    targets : Tensor of shape (n_samples, n_clusters)
        Target probabilities ``Q``.
    log_posterior : Tensor of shape (n_samples, n_clusters)
        Log-probabilities ``log P`` of the classifier.
    balance : float, default=1.0
        Weight of the balance term; the paper has 1.

    Returns
    -------
    Tensor of shape ()
        The objective; smaller is better.

    References
    ----------
    K. Ghasedi Dizaji, A. Herandi, C. Deng, W. Cai, H. Huang, "Deep Clustering via Joint
    Convolutional Autoencoder Embedding and Relative Entropy Minimization", arXiv 1704.06327.

    Examples
    --------
    >>> import torch
    >>> posterior = torch.tensor([[0.75, 0.25], [0.25, 0.75]])
    >>> depict_objective(posterior, posterior.log())
    tensor(-0.6931)
    """
    return kl_divergence(targets, log_posterior) - balance * entropy(targets.mean(dim=0))
