"""Image data sets of the deep clustering literature, from a local folder or from OpenML."""

from skdeepclust.datasets._cifar10 import fetch_cifar10
from skdeepclust.datasets._fashion_mnist import fetch_fashion_mnist
from skdeepclust.datasets._mnist import fetch_mnist
from skdeepclust.datasets._usps import fetch_usps

__all__ = ["fetch_cifar10", "fetch_fashion_mnist", "fetch_mnist", "fetch_usps"]
