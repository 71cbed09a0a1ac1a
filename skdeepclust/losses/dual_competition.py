"""Soft quantisation of dual competitive learning, its exact decomposition, and its other terms.

Symbols: ``z_i`` embedded sample, ``p_k`` prototype, ``q_ik`` assignment with rows of sum one,
``D_ik = |z_i - p_k|^2``, ``T`` temperature. Logarithms are natural.

References
----------
G. Cirrincione, "DDCL: Deep Dual Competitive Learning: A Differentiable End-to-End Framework for
Unsupervised Prototype-Based Representation Learning", arXiv 2604.01740.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from .mutual_information import entropy
from .soft_kmeans import squared_distances

__all__ = [
    "QuantizationParts",
    "assignment_imbalance",
    "prototype_attraction",
    "prototype_overlap",
    "quantization_parts",
    "simplex_projection",
    "sparse_assignments",
    "splitting_temperatures",
    "update_prototypes",
]


class QuantizationParts(NamedTuple):
    """The soft quantisation error of each row and the two terms it splits into.

    Parameters
    ----------
    quantization : Tensor of shape (n_samples,)
        ``sum_k q_ik |z_i - p_k|^2``.
    reconstruction : Tensor of shape (n_samples,)
        ``|z_i - sum_k q_ik p_k|^2``, the squared error of the mixed prototype.
    spread : Tensor of shape (n_samples,)
        ``sum_k q_ik |p_k - sum_j q_ij p_j|^2``, the variance of the prototypes under the
        assignment.
    """

    quantization: Tensor
    reconstruction: Tensor
    spread: Tensor


def quantization_parts(
    embedding: Tensor, prototypes: Tensor, assignments: Tensor
) -> QuantizationParts:
    """Return the soft quantisation error of each row, and what it is made of.

    ``sum_k q_ik |z_i - p_k|^2 = |z_i - m_i|^2 + sum_k q_ik |p_k - m_i|^2``,
    ``m_i = sum_k q_ik p_k``

    The identity holds for any assignments whose rows sum to one. The second term is summed as it
    stands, not taken as a difference, so it is never negative.

    Parameters
    ----------
    embedding : Tensor of shape (n_samples, embedding_dim)
        Embedded samples.
    prototypes : Tensor of shape (n_clusters, embedding_dim)
        Prototypes.
    assignments : Tensor of shape (n_samples, n_clusters)
        Assignments; rows sum to one.

    Returns
    -------
    QuantizationParts

    References
    ----------
    G. Cirrincione, "DDCL: Deep Dual Competitive Learning", arXiv 2604.01740.

    Examples
    --------
    >>> import torch
    >>> prototypes = torch.tensor([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0]])
    >>> q = torch.tensor([[0.5, 0.25, 0.25]])
    >>> [float(part) for part in quantization_parts(torch.tensor([[1.0, 0.0]]), prototypes, q)]
    [2.0, 0.5, 1.5]
    """
    mixed = assignments @ prototypes
    return QuantizationParts(
        quantization=(assignments * squared_distances(embedding, prototypes)).sum(dim=1),
        reconstruction=(embedding - mixed).square().sum(dim=1),
        spread=(assignments * squared_distances(mixed, prototypes)).sum(dim=1),
    )


def assignment_imbalance(assignments: Tensor) -> Tensor:
    """Divergence of the mean assignment from equal proportions.

    ``KL(q_mean | uniform) = log K + sum_k q_k log q_k``, between 0 and ``log K``

    Parameters
    ----------
    assignments : Tensor of shape (n_samples, n_clusters)
        Assignments; rows sum to one.

    Returns
    -------
    Tensor of shape ()
        Divergence in nats.

    Examples
    --------
    >>> import torch
    >>> assignment_imbalance(torch.tensor([[1.0, 0.0], [1.0, 0.0]]))
    tensor(0.6931)
    """
    return math.log(assignments.shape[1]) - entropy(assignments.mean(dim=0))


def prototype_overlap(prototypes: Tensor, squared_width: float | Tensor) -> Tensor:
    """Mean closeness of the pairs of prototypes; minimised, it pushes them apart.

    ``2 / (K (K - 1)) sum_{j < k} exp(-|p_j - p_k|^2 / squared_width)``, between 0 and 1; 0 for a
    single prototype

    Parameters
    ----------
    prototypes : Tensor of shape (n_clusters, embedding_dim)
        Prototypes.
    squared_width : float or Tensor of shape ()
        Squared distance over which the repulsion falls off, such as the trace of the covariance.

    Returns
    -------
    Tensor of shape ()
        Mean closeness.

    Examples
    --------
    >>> import torch
    >>> prototype_overlap(torch.tensor([[0.0], [0.0], [9.0]]), 1.0)
    tensor(0.3333)
    """
    n_clusters = len(prototypes)
    if n_clusters == 1:
        return prototypes.sum() * 0
    first, second = torch.triu_indices(n_clusters, n_clusters, offset=1, device=prototypes.device)
    distances = (prototypes[first] - prototypes[second]).square().sum(dim=1)
    return torch.exp(-distances / squared_width).mean()


def prototype_attraction(prototypes: Tensor, assignments: Tensor) -> Tensor:
    """Gradient of the mean spread with respect to the prototypes, the assignments held fixed.

    ``(2/N) sum_i q_ik (p_k - m_i)``, ``m_i = sum_j q_ij p_j``

    Descent along it moves the prototypes that share samples towards each other.

    Parameters
    ----------
    prototypes : Tensor of shape (n_clusters, embedding_dim)
        Prototypes.
    assignments : Tensor of shape (n_samples, n_clusters)
        Assignments; rows sum to one.

    Returns
    -------
    Tensor of shape (n_clusters, embedding_dim)
        Gradient.

    Examples
    --------
    >>> import torch
    >>> prototype_attraction(torch.tensor([[0.0], [2.0]]), torch.tensor([[0.5, 0.5]]))
    tensor([[-1.],
            [ 1.]])
    """
    means = assignments.mean(dim=0).unsqueeze(1)
    mixed = assignments.T @ (assignments @ prototypes) / len(assignments)
    return 2 * (means * prototypes - mixed)


def splitting_temperatures(
    largest_variance: float, entropy_weight: float | None = None
) -> tuple[float, float]:
    """Temperatures between which prototypes that coincide come apart.

    Near the mean of the samples the differences of prototypes grow along the direction of
    the largest variance ``lambda`` if ``lambda (4 / T - 2 gamma / T^2) > 1``, for the soft
    quantisation error plus ``gamma`` times the negative entropy of the assignments. Without
    entropy that is ``T < 4 lambda``; with ``gamma = T``, the free energy, ``T < 2 lambda``. Derived
    by linearising; an extension of this package.

    Parameters
    ----------
    largest_variance : float
        Largest eigenvalue of the covariance of the embedding.
    entropy_weight : float or None, default=None
        ``gamma``; None stands for the temperature itself.

    Returns
    -------
    lowest, highest : float
        Open interval of temperatures; both nan where prototypes stay together at any.

    Examples
    --------
    >>> splitting_temperatures(2.75, 0.0), splitting_temperatures(2.75)
    ((0.0, 11.0), (0.0, 5.5))
    """
    if entropy_weight is None:
        return 0.0, 2 * largest_variance
    half = 2 * largest_variance
    discriminant = half * (half - entropy_weight)
    if discriminant <= 0:
        return math.nan, math.nan
    highest = half + math.sqrt(discriminant)
    # The product of the roots, since their difference cancels for small weights.
    return half * entropy_weight / highest, highest


def simplex_projection(rows: Tensor) -> Tensor:
    """Closest point of the probability simplex to each row, in Euclidean distance.

    ``max(v_k - threshold, 0)``, with the threshold that makes the sum one

    Parameters
    ----------
    rows : Tensor of shape (n_samples, n_clusters)
        Finite values.

    Returns
    -------
    Tensor of shape (n_samples, n_clusters)
        Rows are not negative and sum to one.

    Examples
    --------
    >>> import torch
    >>> simplex_projection(torch.tensor([[1.2, 0.7, 0.1]]))
    tensor([[0.7500, 0.2500, 0.0000]])
    """
    # The result does not depend on a shift of the row, the rounding of its sums does.
    rows = rows - rows.amax(dim=1, keepdim=True)
    descending = rows.sort(dim=1, descending=True).values
    counts = torch.arange(1, rows.shape[1] + 1, dtype=rows.dtype, device=rows.device)
    thresholds = (descending.cumsum(dim=1) - 1) / counts
    n_positive = (descending > thresholds).sum(dim=1, keepdim=True)
    return (rows - thresholds.gather(1, n_positive - 1)).clamp_min(0)


def sparse_assignments(embedding: Tensor, prototypes: Tensor, temperature: float) -> Tensor:
    """Assignments that minimise distances plus a quadratic in place of the negative entropy.

    ``argmin_q sum_k q_k D_k + (T / 2) |q|^2``, over the simplex: the projection of ``-D / T``.
    Prototypes that are clearly farther than the nearest have exactly zero.

    Parameters
    ----------
    embedding : Tensor of shape (n_samples, embedding_dim)
        Embedded samples.
    prototypes : Tensor of shape (n_clusters, embedding_dim)
        Prototypes.
    temperature : float
        Greater than zero.

    Returns
    -------
    Tensor of shape (n_samples, n_clusters)
        Rows are not negative and sum to one.

    Examples
    --------
    >>> import torch
    >>> sparse_assignments(torch.tensor([[0.0]]), torch.tensor([[1.0], [1.0], [3.0]]), 1.0)
    tensor([[0.5000, 0.5000, 0.0000]])
    """
    return simplex_projection(-squared_distances(embedding, prototypes) / temperature)


def update_prototypes(
    prototypes: Tensor,
    counts: Tensor,
    embedding: Tensor,
    assignments: Tensor,
    max_count: float = math.inf,
) -> tuple[Tensor, Tensor]:
    """One step of the Widrow-Hoff rule on a batch of a stream, with a falling rate.

    ``c_k <- min(c_k + sum_i q_ik, max_count)``,
    ``p_k <- p_k + (1 / c_k) sum_i q_ik (z_i - p_k)``

    Without a limit the prototypes are running soft means. With one the rate never falls below
    ``1 / max_count``, so that they follow a drift; a batch that weighs more than the limit counts
    in full, which keeps every prototype in the convex hull of itself and the batch.

    Parameters
    ----------
    prototypes : Tensor of shape (n_clusters, embedding_dim)
        Prototypes so far.
    counts : Tensor of shape (n_clusters,)
        Weight of the samples each has seen.
    embedding : Tensor of shape (n_samples, embedding_dim)
        The embedded batch.
    assignments : Tensor of shape (n_samples, n_clusters)
        Its assignments; rows sum to one.
    max_count : float, default=inf
        Limit of the counts.

    Returns
    -------
    prototypes : Tensor of shape (n_clusters, embedding_dim)
    counts : Tensor of shape (n_clusters,)

    Examples
    --------
    >>> import torch
    >>> one_hot = torch.tensor([[1.0, 0.0], [1.0, 0.0]])
    >>> prototypes, counts = torch.tensor([[0.0], [9.0]]), torch.tensor([2.0, 5.0])
    >>> update_prototypes(prototypes, counts, torch.tensor([[2.0], [4.0]]), one_hot)
    (tensor([[1.5000],
            [9.0000]]), tensor([4., 5.]))
    """
    weights = assignments.sum(dim=0)
    counts = torch.maximum((counts + weights).clamp(max=max_count), weights)
    shifts = assignments.T @ embedding - weights.unsqueeze(1) * prototypes
    # A prototype that has never had a sample has no count to divide by, and nothing to add.
    rates = torch.where(counts > 0, 1 / counts, 0.0)
    return prototypes + rates.unsqueeze(1) * shifts, counts
