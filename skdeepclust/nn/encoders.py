"""Encoders and decoders: an MLP for vectors, strided convolutions for images.

Both are lists of stages. The values between the stages are what a multi-level denoising
autoencoder reconstructs, so encoder and decoder of a pair mirror each other exactly.

References
----------
Deep Clustering via Joint Convolutional Autoencoder Embedding and Relative Entropy
Minimization, arXiv:1704.06327.
"""

import torch
from torch import nn

_NEGATIVE_SLOPE = 0.01
_N_MAPS = 50
# Convolutions are stacked, each halving the sides, until the larger side is at most this.
_TARGET_SIDE = 13
_LEAST_SIDE_TO_POOL = 12


class StagedEncoder(nn.Module):
    """Stages applied one after another, with dropout after each when a pass is noisy.

    Parameters
    ----------
    stages : list of Module
        The last one gives the embedding.

    Examples
    --------
    >>> import torch
    >>> from torch import nn
    >>> from skdeepclust.nn.encoders import StagedEncoder
    >>> encoder = StagedEncoder([nn.Flatten(), nn.Linear(4, 2)])
    >>> encoder(torch.zeros(3, 2, 2)).shape
    torch.Size([3, 2])
    """

    def __init__(self, stages):
        super().__init__()
        self.stages = nn.ModuleList(stages)

    def forward(self, rows):
        for stage in self.stages:
            rows = stage(rows)
        return rows

    def levels(self, rows):
        """Return the clean input of every stage: what the decoder is to give back."""
        values = [rows]
        for stage in self.stages[:-1]:
            values.append(stage(values[-1]))
        return values

    def corrupted(self, rows, dropout):
        """Return the embedding of a pass with dropout `dropout[i]` before stage i."""
        for stage, rate in zip(self.stages, dropout, strict=True):
            if rate > 0:
                rows = nn.functional.dropout(rows, rate)
            rows = stage(rows)
        return rows


class StagedDecoder(nn.Module):
    """Stages from the embedding back to the input, each giving one level.

    Parameters
    ----------
    stages : list of Module
        The first takes the embedding, the last gives the reconstructed input.
    """

    def __init__(self, stages):
        super().__init__()
        self.stages = nn.ModuleList(stages)

    def forward(self, embedding):
        """Return the reconstructed levels, the input first."""
        values = []
        for stage in self.stages:
            embedding = stage(embedding)
            values.append(embedding)
        return values[::-1]


def mlp_autoencoder(row_shape, hidden_dims, embedding_dim, *, bounded, bounded_output):
    """Return an MLP encoder and the decoder that mirrors it.

    Parameters
    ----------
    row_shape : tuple of int
        Shape of one row; images are flattened.
    hidden_dims : sequence of int
        Widths of the hidden layers.
    embedding_dim : int
        Size of the embedding.
    bounded : bool
        Whether the embedding passes through tanh.
    bounded_output : bool
        Whether the reconstructed input passes through tanh (rows scaled to -1..1).

    Returns
    -------
    encoder : StagedEncoder
    decoder : StagedDecoder

    Examples
    --------
    >>> import torch
    >>> from skdeepclust.nn.encoders import mlp_autoencoder
    >>> encoder, decoder = mlp_autoencoder((8,), (6, 4), 2, bounded=True, bounded_output=False)
    >>> [tuple(level.shape) for level in decoder(encoder(torch.zeros(3, 8)))]
    [(3, 8), (3, 6), (3, 4)]
    """
    n_features = int(torch.Size(row_shape).numel())
    widths = [n_features, *hidden_dims, embedding_dim]
    encoder, decoder = [], []
    for depth, (wide, narrow) in enumerate(zip(widths[:-1], widths[1:], strict=True)):
        is_embedding = depth == len(widths) - 2
        layers = [nn.Flatten()] if depth == 0 and len(row_shape) > 1 else []
        layers += [nn.Linear(wide, narrow), *_activation(bounded, is_embedding)]
        encoder.append(nn.Sequential(*layers))
        layers = [nn.Linear(narrow, wide), *_activation(bounded_output, depth == 0)]
        if depth == 0 and len(row_shape) > 1:
            layers.append(nn.Unflatten(1, row_shape))
        decoder.insert(0, nn.Sequential(*layers))
    return StagedEncoder(encoder), StagedDecoder(decoder)


def conv_autoencoder(row_shape, embedding_dim, *, bounded, bounded_output):
    """Return a convolutional encoder for ``(C, H, W)`` images and the decoder mirroring it.

    Each convolution has 50 maps and stride 2; kernel and padding (4 for an even side, 5 for
    an odd one) are those that a transposed convolution inverts exactly.

    Parameters
    ----------
    row_shape : tuple of int
        ``(C, H, W)``.
    embedding_dim : int
        Size of the embedding.
    bounded, bounded_output : bool
        As in :func:`mlp_autoencoder`.

    Returns
    -------
    encoder : StagedEncoder
    decoder : StagedDecoder

    Examples
    --------
    >>> import torch
    >>> from skdeepclust.nn.encoders import conv_autoencoder
    >>> encoder, decoder = conv_autoencoder((1, 28, 28), 10, bounded=True, bounded_output=True)
    >>> [tuple(level.shape[1:]) for level in decoder(encoder(torch.zeros(1, 1, 28, 28)))]
    [(1, 28, 28), (50, 13, 13), (50, 7, 7)]
    """
    channels, *sides = row_shape
    encoder, decoder = [], []
    while len(encoder) < 2 or max(sides) > _TARGET_SIDE:
        kernel, padding, sides = _halving(sides)
        first = not encoder
        encoder.append(
            nn.Sequential(
                nn.Conv2d(channels, _N_MAPS, kernel, stride=2, padding=padding),
                nn.LeakyReLU(_NEGATIVE_SLOPE),
            )
        )
        decoder.insert(
            0,
            nn.Sequential(
                nn.ConvTranspose2d(_N_MAPS, channels, kernel, stride=2, padding=padding),
                *_activation(bounded_output, first),
            ),
        )
        channels = _N_MAPS
    n_flat = channels * sides[0] * sides[1]
    encoder.append(
        nn.Sequential(nn.Flatten(), nn.Linear(n_flat, embedding_dim), *_activation(bounded, True))
    )
    decoder.insert(
        0,
        nn.Sequential(
            nn.Linear(embedding_dim, n_flat),
            nn.LeakyReLU(_NEGATIVE_SLOPE),
            nn.Unflatten(1, (channels, *sides)),
        ),
    )
    # Channels last takes a quarter less time on CPUs, and is what tensor cores want.
    parts = StagedEncoder(encoder), StagedDecoder(decoder)
    return tuple(part.to(memory_format=torch.channels_last) for part in parts)


def relu_mlp_encoder(row_shape, hidden_dims, embedding_dim, *, dropout):
    """Return an MLP with ReLU after every layer, the last one included, and dropout between.

    Parameters
    ----------
    row_shape : tuple of int
        Shape of one row; images are flattened.
    hidden_dims : sequence of int
        Widths of the hidden layers.
    embedding_dim : int
        Width of the last layer.
    dropout : float
        Rate after each hidden layer.

    Returns
    -------
    StagedEncoder

    Examples
    --------
    >>> import torch
    >>> from skdeepclust.nn.encoders import relu_mlp_encoder
    >>> relu_mlp_encoder((1, 4, 4), (8,), 5, dropout=0.2)(torch.zeros(3, 1, 4, 4)).shape
    torch.Size([3, 5])
    """
    stages, width = [nn.Flatten()], int(torch.Size(row_shape).numel())
    for hidden_dim in hidden_dims:
        stages.append(nn.Sequential(nn.Linear(width, hidden_dim), nn.ReLU(), nn.Dropout(dropout)))
        width = hidden_dim
    stages.append(nn.Sequential(nn.Linear(width, embedding_dim), nn.ReLU()))
    return StagedEncoder(stages)


def relu_conv_encoder(row_shape, embedding_dim):
    """Return a network of pseudo supervision for ``(C, H, W)`` images; ReLU throughout.

    The six layers of the paper: two pairs of 3 x 3 convolutions of 32 and 64 maps, each pair
    followed by pooling that halves the sides and by dropout of 0.2 and 0.3, then a wide layer.
    Images of fewer than 12 pixels a side leave nothing to pool; they have one convolution of 32
    and one of 64 maps, the second one of stride 2.

    Parameters
    ----------
    row_shape : tuple of int
        ``(C, H, W)``.
    embedding_dim : int
        Width of the last layer.

    Returns
    -------
    StagedEncoder

    References
    ----------
    Learning Latent Representations in Neural Networks for Clustering through Pseudo Supervision
    and Graph-based Activity Regularization, arXiv:1802.03063.

    Examples
    --------
    >>> import torch
    >>> from skdeepclust.nn.encoders import relu_conv_encoder
    >>> relu_conv_encoder((1, 28, 28), 2048)(torch.zeros(2, 1, 28, 28)).shape
    torch.Size([2, 2048])
    """
    channels, *sides = row_shape
    if max(sides) < _LEAST_SIDE_TO_POOL:
        stages = [
            nn.Sequential(nn.Conv2d(channels, 32, 3, padding=1), nn.ReLU()),
            nn.Sequential(nn.Conv2d(32, 64, 3, stride=2, padding=1), nn.ReLU()),
        ]
        sides = [(side + 1) // 2 for side in sides]
    else:
        stages = [_pooled_pair(channels, 32, sides, 0.2)]
        sides = _halved(sides)
        stages.append(_pooled_pair(32, 64, sides, 0.3))
        sides = _halved(sides)
    n_flat = 64 * sides[0] * sides[1]
    stages.append(nn.Sequential(nn.Flatten(), nn.Linear(n_flat, embedding_dim), nn.ReLU()))
    return StagedEncoder(stages).to(memory_format=torch.channels_last)


def _pooled_pair(channels, n_maps, sides, dropout):
    """Return two convolutions, pooling and dropout; a side of one pixel is not pooled."""
    return nn.Sequential(
        nn.Conv2d(channels, n_maps, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(n_maps, n_maps, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d([min(2, side) for side in sides]),
        nn.Dropout(dropout),
    )


def _halved(sides):
    return [max(1, side // 2) for side in sides]


def initialise_weights(module, generator):
    """Draw Glorot-uniform weights and zero biases from `generator`, in place."""
    for layer in module.modules():
        if isinstance(layer, (nn.Linear, nn.Conv2d, nn.ConvTranspose2d)):
            nn.init.xavier_uniform_(layer.weight, generator=generator)
            nn.init.zeros_(layer.bias)


def _activation(bounded, is_outermost):
    """Return the activation of a stage: tanh or none at the ends, LeakyReLU between."""
    if not is_outermost:
        return [nn.LeakyReLU(_NEGATIVE_SLOPE)]
    return [nn.Tanh()] if bounded else []


def _halving(sides):
    """Return kernel, padding and resulting sides of a stride-2 convolution.

    ``(side + 2 * padding - kernel)`` is even for each choice, so the transposed convolution
    of the same kernel and padding restores the side without output padding.
    """
    kernel, padding, halved = [], [], []
    for side in sides:
        if side % 2:
            size, pad = 5, 2
        elif side == 2:
            size, pad = 4, 1
        else:
            size, pad = 4, 2 if 28 < side <= 32 else 0
        kernel.append(size)
        padding.append(pad)
        halved.append((side + 2 * pad - size) // 2 + 1)
    return tuple(kernel), tuple(padding), halved
