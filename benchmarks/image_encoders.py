"""Cheaper networks for ACOL-GAR than the paper's, each different from it in one or two things."""

import torch
from torch import nn

from skdeepclust.nn.encoders import initialise_weights


def _convolutional(maps, strides, dropouts, n_hidden, *, pools=False, normalizes=False):
    """Return a builder of 3 x 3 convolutions with ReLU, then one wide layer.

    Parameters
    ----------
    maps, strides : sequence of int
        Of each convolution.
    dropouts : sequence of float
        Rate after each convolution.
    n_hidden : int
        Width of the last layer.
    pools : bool
        Whether the convolutions with dropout are followed by pooling too.
    normalizes : bool
        Whether batch normalization comes before each ReLU.
    """

    def build(input_shape, embedding_dim):
        layers, channels = [], input_shape[0]
        for n_maps, stride, dropout in zip(maps, strides, dropouts, strict=True):
            layers += [nn.Conv2d(channels, n_maps, 3, stride, padding=1)]
            layers += [nn.BatchNorm2d(n_maps), nn.ReLU()] if normalizes else [nn.ReLU()]
            if dropout is not None:
                layers += [nn.MaxPool2d(2)] if pools else []
                layers += [nn.Dropout(dropout)]
            channels = n_maps
        body = nn.Sequential(*layers, nn.Flatten())
        with torch.no_grad():
            n_flat = body(torch.zeros(1, *input_shape)).shape[1]
        network = nn.Sequential(body, nn.Linear(n_flat, embedding_dim), nn.ReLU())
        # The estimator lends torch's generator while it builds.
        initialise_weights(network, generator=None)
        return network.to(memory_format=torch.channels_last)

    return {"encoder": build, "embedding_dim": n_hidden}


_PAPERS = (32, 32, 64, 64), (1, 1, 1, 1)
_AT_POOLS = (None, 0.2, None, 0.3)
NETWORKS = {
    "paper": {},
    "512 wide": _convolutional(*_PAPERS, _AT_POOLS, 512, pools=True),
    "no dropout": _convolutional(*_PAPERS, (None, 0.0, None, 0.0), 2048, pools=True),
    "half the maps": _convolutional((16, 16, 32, 32), (1, 1, 1, 1), _AT_POOLS, 2048, pools=True),
    "two strides": _convolutional((32, 64), (2, 2), (None, None), 1024),
    "two strides, dropout": _convolutional((32, 64), (2, 2), (None, 0.3), 1024),
    "two strides, three convolutions": _convolutional(
        (32, 64, 64), (2, 2, 1), (None, None, 0.3), 1024
    ),
    "three strides": _convolutional((32, 64, 64), (2, 2, 2), (None, None, 0.3), 1024),
    "three strides, batch norm": _convolutional(
        (32, 64, 64), (2, 2, 2), (None, None, 0.3), 1024, normalizes=True
    ),
    "stride, then pool": _convolutional((32, 64), (2, 1), (None, 0.3), 1024, pools=True),
}
