"""Hard K-means terms of deep clustering networks, whose centers are running means.

A batch's loss is ``reconstruction_weight * summed_reconstruction_loss(...) + clustering_weight *
hard_kmeans_batch_loss(...)``.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .soft_kmeans import squared_distances

__all__ = ["nearest_centers", "hard_kmeans_batch_loss", "update_running_centers"]


def nearest_centers(embedding: Tensor, centers: Tensor) -> Tensor:
    """Index of the nearest center of every row, ``argmin_k |z_i - mu_k|^2``.

    Parameters
    ----------
    embedding : Tensor of shape (n_samples, embedding_dim)
        Embedded samples.
    centers : Tensor of shape (n_clusters, embedding_dim)
        Cluster centers.

    Returns
    -------
    Tensor of shape (n_samples,), dtype int64
        Labels.

    Examples
    --------
    >>> import torch
    >>> nearest_centers(torch.tensor([[0.9], [-2.0]]), torch.tensor([[-1.0], [1.0]]))
    tensor([1, 0])
    """
    return squared_distances(embedding, centers).argmin(dim=1)


def hard_kmeans_batch_loss(embedding: Tensor, labels: Tensor, centers: Tensor) -> Tensor:
    """Mean squared distance of the rows to the centers they are assigned to.

    ``(1/B) sum_i |z_i - mu_{s_i}|^2``, with labels ``s`` and centers ``mu`` fixed

    Parameters
    ----------
    embedding : Tensor of shape (batch_size, embedding_dim)
        Embedded batch; gradients flow into it.
    labels : Tensor of shape (batch_size,), dtype int64
        Stored assignments of these rows.
    centers : Tensor of shape (n_clusters, embedding_dim)
        Cluster centers.

    Returns
    -------
    Tensor of shape ()
        The loss term.

    References
    ----------
    B. Yang, X. Fu, N. D. Sidiropoulos, M. Hong, "Towards K-means-friendly Spaces: Simultaneous
    Deep Learning and Clustering", arXiv 1610.04794.

    Examples
    --------
    >>> import torch
    >>> embedding, centers = torch.tensor([[0.0], [3.0]]), torch.tensor([[1.0], [-1.0]])
    >>> hard_kmeans_batch_loss(embedding, torch.tensor([0, 0]), centers)
    tensor(2.5000)
    """
    return (embedding - centers[labels]).square().sum() / embedding.shape[0]


def update_running_centers(
    centers: Tensor, counts: Tensor, embedding: Tensor, labels: Tensor
) -> tuple[Tensor, Tensor]:
    """Centers and counts after the rows of a batch have been absorbed one after another.

    For each row: ``c_k <- c_k + 1``, ``mu_k <- mu_k + (z_i - mu_k) / c_k`` with ``k = s_i``. For
    given labels the order does not matter, and the result is
    ``mu_k + sum_{i: s_i = k} (z_i - mu_k) / (c_k + m_k)`` with ``m_k`` rows in cluster ``k``.

    Parameters
    ----------
    centers : Tensor of shape (n_clusters, embedding_dim)
        Centers before the batch.
    counts : Tensor of shape (n_clusters,)
        Counts before the batch, of integer or floating dtype. A start at a large count makes the
        centers move slowly; with a count of zero a center becomes the mean of its rows.
    embedding : Tensor of shape (batch_size, embedding_dim)
        Clean embedding of the batch.
    labels : Tensor of shape (batch_size,), dtype int64
        Assignments of these rows.

    Returns
    -------
    centers : Tensor of shape (n_clusters, embedding_dim)
        New centers; the arguments are left as they were.
    counts : Tensor of shape (n_clusters,)
        New counts, of the dtype given.

    References
    ----------
    B. Yang, X. Fu, N. D. Sidiropoulos, M. Hong, "Towards K-means-friendly Spaces: Simultaneous
    Deep Learning and Clustering", arXiv 1610.04794.

    Examples
    --------
    >>> import torch
    >>> centers, counts = torch.tensor([[0.0], [5.0]]), torch.tensor([1, 1])
    >>> update_running_centers(centers, counts, torch.tensor([[3.0], [3.0]]), torch.tensor([0, 0]))
    (tensor([[2.],
            [5.]]), tensor([3, 1]))
    """
    # A product with one-hot rows, unlike index_add, sums in a fixed order on every device.
    membership = torch.nn.functional.one_hot(labels, centers.shape[0])
    batch_counts = membership.sum(dim=0)
    membership = membership.to(embedding.dtype)
    new_counts = counts + batch_counts.to(counts.dtype)
    shift = membership.T @ embedding - batch_counts.to(centers.dtype).unsqueeze(1) * centers
    divisor = new_counts.clamp_min(1).to(centers.dtype).unsqueeze(1)
    return centers + shift / divisor, new_counts
