"""Scores for clusterings, in the manner of :mod:`sklearn.metrics.cluster`."""

from skdeepclust.metrics._accuracy import align_labels, clustering_accuracy
from skdeepclust.metrics._purity import purity_score

__all__ = ["align_labels", "clustering_accuracy", "purity_score"]
