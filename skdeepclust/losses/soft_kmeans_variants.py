"""Companions of soft K-means: proportions of clusters, classifier form, critical temperature.

Symbols as in the soft K-means module: ``T`` temperature, ``D_ik`` squared distance of row ``i``
to center ``theta_k``, ``d_k`` prior proportion of a cluster, ``K`` number of clusters.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .soft_kmeans import log_soft_assignments, soft_kmeans_batch_loss
from .target_updates import closed_form_targets

__all__ = [
    "penalized_soft_assignments",
    "rescaled_soft_assignments",
    "rescaled_soft_kmeans_objective",
    "softmax_head_from_centers",
    "critical_temperature",
]


def penalized_soft_assignments(
    embedding: Tensor,
    centers: Tensor,
    temperature: float,
    balance: float,
    log_prior: Tensor | None = None,
) -> Tensor:
    """Soft assignments drawn towards given cluster proportions by a penalty.

    Approximate minimum over ``Q`` of the soft K-means objective divided by ``n_samples * T`` plus
    ``balance * KL(mean_i q_i || d)``. With ``p_ik = softmax_k(-D_ik / T)``:

    ``q_ik ~ p_ik (d_k / sum_i p_ik)^(balance / (1 + balance))``, rows normalised.

    The exact minimum is ``exact_targets(log_soft_assignments(...), 1.0, balance, log_prior)``.
    This variant is an extension of this package.

    Parameters
    ----------
    embedding : Tensor of shape (n_samples, embedding_dim)
        All samples: the column sums run over the rows given.
    centers : Tensor of shape (n_clusters, embedding_dim)
        Cluster centers.
    temperature : float
        Temperature ``T > 0``.
    balance : float
        Weight of the penalty, at least 0; at 0 this is :func:`soft_assignments`.
    log_prior : Tensor of shape (n_clusters,), default=None
        Logarithms of the wanted cluster proportions; None stands for equal ones.

    Returns
    -------
    Tensor of shape (n_samples, n_clusters)
        Assignments; each row sums to one.

    Examples
    --------
    >>> import torch
    >>> embedding = torch.tensor([[0.0], [0.0], [1.0]])
    >>> centers = torch.tensor([[0.0], [1.0]])
    >>> penalized_soft_assignments(embedding, centers, temperature=1.0, balance=1.0)
    tensor([[0.6995, 0.3005],
            [0.6995, 0.3005],
            [0.2395, 0.7605]])
    """
    log_assignments = log_soft_assignments(embedding, centers, temperature)
    return closed_form_targets(log_assignments, 1.0, balance, log_prior)


def rescaled_soft_assignments(
    embedding: Tensor, centers: Tensor, temperature: float, prior: Tensor
) -> Tensor:
    """Soft assignments of the objective rescaled by unequal cluster proportions.

    ``q_ik = softmax_k( K d_k (2 z_i . theta_k - |theta_k|^2) / T )``

    It minimises :func:`rescaled_soft_kmeans_objective` for given centers. With equal proportions
    it is :func:`soft_assignments`; otherwise ``|z_i|^2`` does not cancel and the result depends
    on the origin. This variant is an extension of this package.

    Parameters
    ----------
    embedding : Tensor of shape (n_samples, embedding_dim)
        Embedded samples.
    centers : Tensor of shape (n_clusters, embedding_dim)
        Cluster centers.
    temperature : float
        Temperature ``T > 0``.
    prior : Tensor of shape (n_clusters,)
        Cluster proportions ``d_k``, positive, of sum one.

    Returns
    -------
    Tensor of shape (n_samples, n_clusters)
        Assignments; each row sums to one.

    Examples
    --------
    >>> import torch
    >>> embedding, centers = torch.tensor([[0.5]]), torch.tensor([[1.0], [-1.0]])
    >>> rescaled_soft_assignments(embedding, centers, 1.0, torch.tensor([0.75, 0.25]))
    tensor([[0.7311, 0.2689]])
    """
    scores = 2 * embedding @ centers.T - centers.square().sum(dim=1)
    scale = prior * centers.shape[0]
    # The best score is taken out before the division for the same reason as in the logits above.
    scaled = scores * scale
    return torch.softmax((scaled - scaled.amax(dim=1, keepdim=True)) / temperature, dim=1)


def rescaled_soft_kmeans_objective(
    embedding: Tensor,
    assignments: Tensor,
    centers: Tensor,
    temperature: float,
    prior: Tensor,
) -> Tensor:
    """Objective of :func:`rescaled_soft_assignments`, averaged over the samples.

    ``(1/N) sum_ik q_ik [ (K d_k / T) (D_ik - |z_i|^2) + log q_ik ]``

    With equal proportions it is :func:`soft_kmeans_objective` divided by ``N T``. The centers
    that minimise it are :func:`weighted_centers`.

    Parameters
    ----------
    embedding : Tensor of shape (n_samples, embedding_dim)
        Embedded samples.
    assignments : Tensor of shape (n_samples, n_clusters)
        Soft assignments.
    centers : Tensor of shape (n_clusters, embedding_dim)
        Cluster centers.
    temperature : float
        Temperature ``T > 0``.
    prior : Tensor of shape (n_clusters,)
        Cluster proportions ``d_k``, positive, of sum one.

    Returns
    -------
    Tensor of shape ()
        The objective; smaller is better.

    Examples
    --------
    >>> import torch
    >>> embedding = torch.tensor([[1.0], [-1.0]])
    >>> prior = torch.tensor([0.5, 0.5])
    >>> rescaled_soft_kmeans_objective(embedding, torch.eye(2), embedding, 0.1, prior)
    tensor(-10.)
    """
    scaled_assignments = assignments * prior * centers.shape[0]
    linear = soft_kmeans_batch_loss(embedding, scaled_assignments, centers, 1.0 / temperature)
    return linear + torch.xlogy(assignments, assignments).sum() / embedding.shape[0]


def softmax_head_from_centers(
    centers: Tensor, proportions: Tensor, temperature: float
) -> tuple[Tensor, Tensor]:
    """Weights and biases of the softmax classifier that corresponds to the centers.

    ``weights_k = theta_k / T``, ``biases_k = log(proportions_k) / 2``

    The classifier has half the logit scale of :func:`soft_assignments` and leaves out
    ``|theta_k|^2``; the labels of the two can differ.

    Parameters
    ----------
    centers : Tensor of shape (n_clusters, embedding_dim)
        Cluster centers.
    proportions : Tensor of shape (n_clusters,)
        Column means of the soft assignments.
    temperature : float
        Temperature ``T > 0``.

    Returns
    -------
    weights : Tensor of shape (n_clusters, embedding_dim)
        Weights of the classifier.
    biases : Tensor of shape (n_clusters,)
        Biases of the classifier.

    References
    ----------
    M. Jabi, M. Pedersoli, A. Mitiche, I. Ben Ayed, "Deep clustering: On the link between
    discriminative models and K-means", arXiv 1810.04246.

    Examples
    --------
    >>> import torch
    >>> centers = torch.tensor([[1.0], [-1.0]])
    >>> weights, biases = softmax_head_from_centers(centers, torch.tensor([1.0, 1.0]) / 2, 0.5)
    >>> weights, biases
    (tensor([[ 2.],
            [-2.]]), tensor([-0.3466, -0.3466]))
    """
    return centers / temperature, proportions.log() / 2


def critical_temperature(embedding: Tensor) -> Tensor:
    """Temperature above which all centers merge in the mean of the embedding.

    ``T_critical = 2 * largest eigenvalue of (1/N) sum_i (z_i - mean)(z_i - mean)^T``

    The configuration with all centers at the mean is a stable fixed point of the alternation of
    assignments and centers if and only if the temperature is larger. Derived by linearising the
    alternation; an extension of this package.

    Parameters
    ----------
    embedding : Tensor of shape (n_samples, embedding_dim)
        Embedded samples.

    Returns
    -------
    Tensor of shape ()
        The critical temperature.

    Examples
    --------
    >>> import torch
    >>> critical_temperature(torch.tensor([[2.0, 0.0], [-2.0, 0.0]]))
    tensor(8.)
    """
    centered = embedding - embedding.mean(dim=0)
    covariance = centered.T @ centered / embedding.shape[0]
    return 2 * torch.linalg.eigvalsh(covariance)[-1].clamp_min(0)
