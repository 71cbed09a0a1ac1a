"""Entropy-regularised soft K-means with centers that are weighted means.

Symbols: ``z_i`` row of the embedding, ``theta_k`` center, ``q_ik`` soft assignment,
``D_ik = |z_i - theta_k|^2``, ``T`` temperature (``lambda * n_clusters`` in the paper's words),
``d_k`` prior proportion of a cluster. All tensors of one call share one dtype and one device;
nothing is cast.
"""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = [
    "squared_distances",
    "soft_assignments",
    "log_soft_assignments",
    "weighted_centers",
    "soft_kmeans_objective",
    "soft_kmeans_free_energy",
    "soft_kmeans_batch_loss",
    "update_center_statistics",
]


def squared_distances(embedding: Tensor, centers: Tensor) -> Tensor:
    """Squared Euclidean distance of every row to every center.

    ``D_ik = |z_i|^2 + |theta_k|^2 - 2 z_i . theta_k``, clipped at zero.

    Rows and centers are first shifted by the mean of the centers. This leaves the distances
    unchanged and avoids the cancellation of large squares when the data lie far from the origin.

    Parameters
    ----------
    embedding : Tensor of shape (n_samples, embedding_dim)
        Rows to compare.
    centers : Tensor of shape (n_clusters, embedding_dim)
        Cluster centers.

    Returns
    -------
    Tensor of shape (n_samples, n_clusters)
        Squared distances, never negative.

    Examples
    --------
    >>> import torch
    >>> squared_distances(torch.tensor([[3.0, 4.0]]), torch.tensor([[0.0, 0.0], [3.0, 0.0]]))
    tensor([[25., 16.]])
    """
    origin = centers.detach().mean(dim=0)
    embedding = embedding - origin
    centers = centers - origin
    squared = (
        embedding.square().sum(dim=1, keepdim=True)
        + centers.square().sum(dim=1)
        - 2 * embedding @ centers.T
    )
    return squared.clamp_min(0)


def _assignment_logits(
    distances: Tensor, temperature: float, log_prior: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Logits ``(min_j D_ij - D_ik) / T + log d_k`` and the row minima of ``D``."""
    # With the minimum taken out, the nearest center keeps the logit 0 at any temperature: the
    # division can overflow for the other centers only, where minus infinity is the right limit.
    smallest = distances.amin(dim=1, keepdim=True)
    logits = (smallest - distances) / temperature
    if log_prior is not None:
        logits = logits + log_prior
    return logits, smallest


def soft_assignments(
    embedding: Tensor,
    centers: Tensor,
    temperature: float,
    log_prior: Tensor | None = None,
) -> Tensor:
    """Soft assignments that minimise the soft K-means objective for given centers.

    ``q_ik = d_k exp(-D_ik / T) / sum_j d_j exp(-D_ij / T)``

    The minimum is exact. As the temperature tends to zero, rows become one-hot and one step of
    assignments and centers becomes one step of Lloyd's algorithm. A prior only weights the
    clusters as a mixture model does: it tolerates imbalance and does not enforce it.

    Parameters
    ----------
    embedding : Tensor of shape (n_samples, embedding_dim)
        Embedded samples.
    centers : Tensor of shape (n_clusters, embedding_dim)
        Cluster centers.
    temperature : float
        Temperature ``T > 0``; ``lambda * n_clusters`` in the paper.
    log_prior : Tensor of shape (n_clusters,), default=None
        Logarithms ``log d_k`` of the cluster proportions; None stands for equal ones. The prior
        is an extension of this package.

    Returns
    -------
    Tensor of shape (n_samples, n_clusters)
        Assignments; each row sums to one.

    References
    ----------
    M. Jabi, M. Pedersoli, A. Mitiche, I. Ben Ayed, "Deep clustering: On the link between
    discriminative models and K-means", arXiv 1810.04246.

    Examples
    --------
    >>> import torch
    >>> embedding = torch.tensor([[0.0], [1.0]])
    >>> soft_assignments(embedding, torch.tensor([[0.0], [2.0]]), temperature=2.0)
    tensor([[0.8808, 0.1192],
            [0.5000, 0.5000]])
    """
    return assignments_of_distances(squared_distances(embedding, centers), temperature, log_prior)


def assignments_of_distances(
    distances: Tensor, temperature: float, log_prior: Tensor | None = None
) -> Tensor:
    """Soft assignments for squared distances that are known already; see `soft_assignments`.

    Parameters
    ----------
    distances : Tensor of shape (n_samples, n_clusters)
        Squared distances of samples and centers.
    temperature : float
        Temperature ``T > 0``.
    log_prior : Tensor of shape (n_clusters,), default=None
        Logarithms of the cluster proportions; None stands for equal ones.

    Returns
    -------
    Tensor of shape (n_samples, n_clusters)
        Assignments; each row sums to one.

    Examples
    --------
    >>> assignments_of_distances(torch.tensor([[0.0, 0.0]]), temperature=1.0)
    tensor([[0.5000, 0.5000]])
    """
    logits, _ = _assignment_logits(distances, temperature, log_prior)
    return torch.softmax(logits, dim=1)


def log_soft_assignments(
    embedding: Tensor,
    centers: Tensor,
    temperature: float,
    log_prior: Tensor | None = None,
) -> Tensor:
    """Logarithms of :func:`soft_assignments`, computed without leaving log-space.

    ``log q_ik = log d_k - D_ik / T - log sum_j d_j exp(-D_ij / T)``

    Parameters
    ----------
    embedding : Tensor of shape (n_samples, embedding_dim)
        Embedded samples.
    centers : Tensor of shape (n_clusters, embedding_dim)
        Cluster centers.
    temperature : float
        Temperature ``T > 0``.
    log_prior : Tensor of shape (n_clusters,), default=None
        Logarithms of the cluster proportions; None stands for equal ones.

    Returns
    -------
    Tensor of shape (n_samples, n_clusters)
        Log-assignments.

    Examples
    --------
    >>> import torch
    >>> embedding = torch.tensor([[0.0]])
    >>> log_soft_assignments(embedding, torch.tensor([[0.0], [30.0]]), temperature=1.0)
    tensor([[   0., -900.]])
    """
    logits, _ = _assignment_logits(squared_distances(embedding, centers), temperature, log_prior)
    return torch.log_softmax(logits, dim=1)


def weighted_centers(assignments: Tensor, embedding: Tensor) -> Tensor:
    """Centers that minimise the soft K-means objective for given assignments.

    ``theta_k = sum_i q_ik z_i / sum_i q_ik``

    Parameters
    ----------
    assignments : Tensor of shape (n_samples, n_clusters)
        Soft or one-hot assignments.
    embedding : Tensor of shape (n_samples, embedding_dim)
        Embedded samples.

    Returns
    -------
    Tensor of shape (n_clusters, embedding_dim)
        Weighted means. A cluster of total weight zero gets ``nan``: the caller decides where an
        empty cluster starts anew.

    Examples
    --------
    >>> import torch
    >>> assignments = torch.tensor([[1.0, 0.0], [0.5, 0.5]])
    >>> weighted_centers(assignments, torch.tensor([[0.0], [3.0]]))
    tensor([[1.],
            [3.]])
    """
    return (assignments.T @ embedding) / assignments.sum(dim=0).unsqueeze(1)


def soft_kmeans_objective(
    embedding: Tensor,
    assignments: Tensor,
    centers: Tensor,
    temperature: float,
    log_prior: Tensor | None = None,
    mean: Tensor | None = None,
) -> Tensor:
    """Regularised soft K-means objective, summed over the samples.

    ``L = sum_ik q_ik D_ik + T sum_ik q_ik log q_ik - sum_i |z_i|^2``

    A prior adds ``-T sum_ik q_ik log d_k``. A mean replaces ``|z_i|^2`` by ``|z_i - mean|^2``,
    which makes the objective independent of the origin. Both are extensions of this package.

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
    log_prior : Tensor of shape (n_clusters,), default=None
        Logarithms of the cluster proportions; None leaves the term out.
    mean : Tensor of shape (embedding_dim,), default=None
        Mean of the embedding; None stands for the origin.

    Returns
    -------
    Tensor of shape ()
        The objective; smaller is better.

    References
    ----------
    M. Jabi, M. Pedersoli, A. Mitiche, I. Ben Ayed, "Deep clustering: On the link between
    discriminative models and K-means", arXiv 1810.04246.

    Examples
    --------
    >>> import torch
    >>> embedding = torch.tensor([[1.0], [-1.0]])
    >>> soft_kmeans_objective(embedding, torch.eye(2), embedding, temperature=0.1)
    tensor(-2.)
    """
    within = (assignments * squared_distances(embedding, centers)).sum()
    negative_entropy = torch.xlogy(assignments, assignments).sum()
    if log_prior is not None:
        negative_entropy = negative_entropy - (assignments.sum(dim=0) * log_prior).sum()
    total = (embedding if mean is None else embedding - mean).square().sum()
    return within + temperature * negative_entropy - total


def soft_kmeans_free_energy(
    embedding: Tensor,
    centers: Tensor,
    temperature: float,
    log_prior: Tensor | None = None,
) -> Tensor:
    """Smallest value over the assignments of the distance and entropy terms.

    ``min_Q [ sum_ik q_ik D_ik + T sum_ik q_ik log (q_ik / d_k) ]
    = -T sum_i log sum_k d_k exp(-D_ik / T)``

    Without a prior ``d_k`` is left out (not ``1 / K``), as in :func:`soft_kmeans_objective`.

    Parameters
    ----------
    embedding : Tensor of shape (n_samples, embedding_dim)
        Embedded samples.
    centers : Tensor of shape (n_clusters, embedding_dim)
        Cluster centers.
    temperature : float
        Temperature ``T > 0``.
    log_prior : Tensor of shape (n_clusters,), default=None
        Logarithms of the cluster proportions; None leaves the factor out.

    Returns
    -------
    Tensor of shape ()
        The free energy.

    Examples
    --------
    >>> import torch
    >>> soft_kmeans_free_energy(torch.tensor([[0.0]]), torch.tensor([[1.0], [-1.0]]), 1.0)
    tensor(0.3069)
    """
    logits, smallest = _assignment_logits(
        squared_distances(embedding, centers), temperature, log_prior
    )
    return (smallest.squeeze(1) - temperature * torch.logsumexp(logits, dim=1)).sum()


def soft_kmeans_batch_loss(
    noisy_embedding: Tensor,
    assignments: Tensor,
    centers: Tensor,
    weight: float,
    mean: Tensor | None = None,
) -> Tensor:
    """Clustering term of the network's loss, for fixed assignments and centers.

    ``(weight / B) sum_i sum_k q_ik (|z_i - theta_k|^2 - |z_i|^2)
    = (weight / B) sum_i [ -2 z_i . m_i + sum_k q_ik |theta_k|^2 ]``,
    ``m_i = sum_k q_ik theta_k``

    The term is linear in ``z`` with the gradient ``-2 weight m_i / B``: it has no minimum in free
    ``z``, so the embedding must be bounded (for example by tanh). With a mean, ``|z_i|^2`` is
    replaced by ``|z_i - mean|^2`` and ``m_i`` by ``m_i - mean`` in the gradient: a common
    shift of the embedding then gains nothing. The mean is an extension of this package.

    Rows of ``assignments`` need not sum to one: ``K d_k q_ik`` gives the loss that belongs to
    :func:`rescaled_soft_assignments`.

    Parameters
    ----------
    noisy_embedding : Tensor of shape (batch_size, embedding_dim)
        Embedding of the corrupted batch; gradients flow into it.
    assignments : Tensor of shape (batch_size, n_clusters)
        Fixed soft assignments of these rows.
    centers : Tensor of shape (n_clusters, embedding_dim)
        Fixed centers.
    weight : float
        Scale of the term; the paper's code uses ``1 / temperature``. It is an argument of its
        own, so that the temperature can change without changing the step size.
    mean : Tensor of shape (embedding_dim,), default=None
        Fixed mean of the whole embedding; None stands for the origin.

    Returns
    -------
    Tensor of shape ()
        The loss term.

    References
    ----------
    M. Jabi, M. Pedersoli, A. Mitiche, I. Ben Ayed, "Deep clustering: On the link between
    discriminative models and K-means", arXiv 1810.04246.

    Examples
    --------
    >>> import torch
    >>> embedding = torch.tensor([[0.5], [-0.5]])
    >>> centers = torch.tensor([[1.0], [-1.0]])
    >>> soft_kmeans_batch_loss(embedding, torch.eye(2), centers, weight=10.0)
    tensor(0.)
    """
    if mean is not None:
        noisy_embedding = noisy_embedding - mean
        centers = centers - mean
    cross = (noisy_embedding * (assignments @ centers)).sum()
    center_norms = (assignments.sum(dim=0) * centers.square().sum(dim=1)).sum()
    return weight / noisy_embedding.shape[0] * (center_norms - 2 * cross)


def update_center_statistics(
    cluster_weights: Tensor,
    weighted_sums: Tensor,
    assignments: Tensor,
    embedding: Tensor,
    rate: float,
) -> tuple[Tensor, Tensor]:
    """One step of the running averages from which streaming centers are made.

    ``S_k <- (1 - rate) S_k + rate * mean_i q_ik``,
    ``M_k <- (1 - rate) M_k + rate * mean_i q_ik z_i``, centers ``theta_k = M_k / S_k``

    With a fixed encoder this is online expectation-maximisation of a mixture of equal isotropic
    Gaussians. At rate one the centers are :func:`weighted_centers` of the batch. An extension of
    this package.

    Parameters
    ----------
    cluster_weights : Tensor of shape (n_clusters,)
        Running averages ``S``.
    weighted_sums : Tensor of shape (n_clusters, embedding_dim)
        Running averages ``M``.
    assignments : Tensor of shape (batch_size, n_clusters)
        Soft assignments of the batch.
    embedding : Tensor of shape (batch_size, embedding_dim)
        Clean embedding of the batch.
    rate : float
        Step between 0 and 1.

    Returns
    -------
    cluster_weights : Tensor of shape (n_clusters,)
        New averages; the arguments are left as they were.
    weighted_sums : Tensor of shape (n_clusters, embedding_dim)
        New averages.

    Examples
    --------
    >>> import torch
    >>> weights, sums = update_center_statistics(
    ...     torch.ones(1), torch.zeros(1, 1), torch.ones(2, 1), torch.tensor([[1.0], [3.0]]), 0.5
    ... )
    >>> sums / weights
    tensor([[1.]])
    """
    batch_size = embedding.shape[0]
    batch_weights = assignments.sum(dim=0) / batch_size
    batch_sums = assignments.T @ embedding / batch_size
    # Written as a convex combination, not with lerp, so that rate 1 forgets the past exactly.
    return (
        (1 - rate) * cluster_weights + rate * batch_weights,
        (1 - rate) * weighted_sums + rate * batch_sums,
    )
