"""Reconstruction losses of denoising autoencoders."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

__all__ = ["multilevel_reconstruction_loss", "summed_reconstruction_loss"]

_HIDDEN_LEVEL_WEIGHT = 0.1


def multilevel_reconstruction_loss(
    reconstructions: Sequence[Tensor],
    targets: Sequence[Tensor],
    level_weights: Sequence[float] | None = None,
) -> Tensor:
    """Weighted sum of the mean squared errors of the input and of hidden activations.

    ``R = sum_l weight_l * (1/N) sum_i |h_i^l - g_i^l|^2 / |h^l|``

    ``h^0`` is the clean input, ``h^l`` the clean activation of encoder layer ``l``, ``g^l`` its
    reconstruction by the decoder from the corrupted embedding, and ``|h^l|`` the number of units.
    Gradients flow into the targets too, as in the released code; detach them to prevent it.

    Parameters
    ----------
    reconstructions : sequence of Tensor, each of shape (batch_size, ...)
        Outputs of the decoder, level 0 (the input) first.
    targets : sequence of Tensor, each of the shape of its reconstruction
        Clean input and clean activations in the same order.
    level_weights : sequence of float, default=None
        One weight a level. None gives 1 to the input and 0.1 to every hidden level, as the
        released code does; the paper's formula has 1 everywhere.

    Returns
    -------
    Tensor of shape ()
        The loss.

    Raises
    ------
    ValueError
        If numbers of levels or shapes differ.

    References
    ----------
    K. Ghasedi Dizaji, A. Herandi, C. Deng, W. Cai, H. Huang, "Deep Clustering via Joint
    Convolutional Autoencoder Embedding and Relative Entropy Minimization", arXiv 1704.06327.

    Examples
    --------
    >>> import torch
    >>> reconstructions = [torch.zeros(1, 2), torch.zeros(1, 1)]
    >>> targets = [torch.ones(1, 2), torch.ones(1, 1)]
    >>> multilevel_reconstruction_loss(reconstructions, targets)
    tensor(1.1000)
    """
    n_levels = len(targets)
    if n_levels == 0 or len(reconstructions) != n_levels:
        raise ValueError(
            f"reconstructions has {len(reconstructions)} levels and targets has {n_levels}; "
            "give one reconstruction for every target, and at least the input."
        )
    if level_weights is None:
        level_weights = [1.0] + [_HIDDEN_LEVEL_WEIGHT] * (n_levels - 1)
    elif len(level_weights) != n_levels:
        raise ValueError(
            f"level_weights has {len(level_weights)} entries for {n_levels} levels; "
            "give one weight a level."
        )
    loss = targets[0].new_zeros(())
    for weight, reconstruction, target in zip(level_weights, reconstructions, targets, strict=True):
        _check_same_shape(reconstruction, target)
        loss = loss + weight * (reconstruction - target).square().mean()
    return loss


def summed_reconstruction_loss(reconstruction: Tensor, target: Tensor) -> Tensor:
    """Squared error summed over the features and averaged over the rows.

    ``(1/N) sum_i |x_i - g_i|^2``

    The form used by deep clustering networks; it is the mean squared error times the number of
    features.

    Parameters
    ----------
    reconstruction : Tensor of shape (batch_size, ...)
        Output of the decoder.
    target : Tensor of the same shape
        Input to be reconstructed.

    Returns
    -------
    Tensor of shape ()
        The loss.

    Raises
    ------
    ValueError
        If the shapes differ.

    References
    ----------
    B. Yang, X. Fu, N. D. Sidiropoulos, M. Hong, "Towards K-means-friendly Spaces: Simultaneous
    Deep Learning and Clustering", arXiv 1610.04794.

    Examples
    --------
    >>> import torch
    >>> summed_reconstruction_loss(torch.zeros(2, 3), torch.ones(2, 3))
    tensor(3.)
    """
    _check_same_shape(reconstruction, target)
    return (reconstruction - target).square().sum() / target.shape[0]


def _check_same_shape(reconstruction: Tensor, target: Tensor) -> None:
    """Refuse shapes that would be broadcast silently."""
    if reconstruction.shape != target.shape:
        raise ValueError(
            f"reconstruction has shape {tuple(reconstruction.shape)} but its target has shape "
            f"{tuple(target.shape)}; the decoder must return the shape of the encoder's level."
        )
