"""Share of samples that belong to the majority class of their cluster."""

from typing import Any

from skdeepclust.metrics._contingency import check_label_pair, contingency


def purity_score(labels_true: Any, labels_pred: Any) -> float:
    """Share of samples that belong to the majority class of their cluster.

    Several clusters may have the same majority class, so purity never falls when a cluster is
    split and is 1 when every sample is a cluster of its own. Compare it only between
    clusterings with the same number of clusters.

    Parameters
    ----------
    labels_true : array-like of shape (n_samples,)
        The known classes: numbers, booleans or strings.
    labels_pred : array-like of shape (n_samples,)
        The cluster of each sample; its kind of label need not be that of ``labels_true``.

    Returns
    -------
    purity : float
        Between 0 and 1, never below :func:`clustering_accuracy`; 1 means that no cluster mixes
        classes. As with scikit-learn's clustering scores, two empty labellings score 1.

    Raises
    ------
    ValueError
        If an argument is not 1-D, holds NaN, or the two differ in length.
    TypeError
        If an argument mixes labels that cannot be compared, such as numbers and strings.

    See Also
    --------
    clustering_accuracy : Matches each cluster with at most one class.
    sklearn.metrics.homogeneity_score : The same idea, measured by entropy.

    Examples
    --------
    >>> from skdeepclust.metrics import purity_score
    >>> purity_score(["cat", "cat", "dog", "dog"], [0, 1, 2, 2])
    1.0
    """
    true, predicted = check_label_pair(labels_true, labels_pred, "labels_true", "labels_pred")
    if len(true) == 0:
        return 1.0
    counts, _, _, _ = contingency(true, predicted, "labels_true", "labels_pred")
    return float(counts.max(axis=0).sum() / len(true))
