"""Transformers that learn an embedding without labels; alone or as `pretrain=` of a clusterer."""

from .autoencoder import DenoisingAutoencoder

__all__ = ["DenoisingAutoencoder"]
