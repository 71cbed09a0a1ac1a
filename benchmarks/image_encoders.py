"""Cheaper networks for ACOL-GAR than the paper's, each different from it in one or two things."""

import torch
from torch import nn

from skdeepclust.nn.encoders import initialise_weights


def _convolutional(maps, strides, n_pooled, dropout, n_hidden):
    """Return a builder of 3 x 3 convolutions with ReLU, then one wide layer.

    Parameters
    ----------
    maps, strides : sequence of int
        Of each convolution.
    n_pooled : set of int
        Numbers of the convolutions that are followed by pooling and dropout.
    dropout : float
        Rate after pooling.
    n_hidden : int
        Width of the last layer.
    """

    def build(input_shape, embedding_dim):
        layers, channels = [], input_shape[0]
        for number, (n_maps, stride) in enumerate(zip(maps, strides, strict=True)):
            layers += [nn.Conv2d(channels, n_maps, 3, stride, padding=1), nn.ReLU()]
            if number in n_pooled:
                layers += [nn.MaxPool2d(2), nn.Dropout(dropout)]
            channels = n_maps
        body = nn.Sequential(*layers, nn.Flatten())
        with torch.no_grad():
            n_flat = body(torch.zeros(1, *input_shape)).shape[1]
        network = nn.Sequential(body, nn.Linear(n_flat, embedding_dim), nn.ReLU())
        # The estimator lends torch's generator while it builds.
        initialise_weights(network, generator=None)
        return network.to(memory_format=torch.channels_last)

    return {"encoder": build, "embedding_dim": n_hidden}


_PAPERS = ((32, 32, 64, 64), (1, 1, 1, 1), {1, 3})
IMAGE_ENCODERS = {
    "net: 512 wide": _convolutional(*_PAPERS, 0.25, 512),
    "net: no dropout": _convolutional(*_PAPERS, 0.0, 2048),
    "net: half the maps": _convolutional((16, 16, 32, 32), (1, 1, 1, 1), {1, 3}, 0.25, 2048),
    "net: first stride 2": _convolutional((32, 32, 64, 64), (2, 1, 1, 1), {1, 3}, 0.25, 2048),
    "net: strides for pooling": _convolutional((32, 32, 64, 64), (1, 2, 1, 2), set(), 0.0, 2048),
    "net: two convolutions": _convolutional((32, 64), (1, 2), set(), 0.0, 1024),
    "net: two convolutions, both stride 2": _convolutional((32, 64), (2, 2), set(), 0.0, 1024),
}
