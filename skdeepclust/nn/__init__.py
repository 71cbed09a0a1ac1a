"""Torch modules that know nothing of clustering methods."""
