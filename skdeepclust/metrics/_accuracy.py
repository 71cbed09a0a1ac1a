"""Accuracy under the best one-to-one matching of clusters and classes."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from skdeepclust.metrics._contingency import check_label_pair, contingency


def clustering_accuracy(labels_true: Any, labels_pred: Any) -> float:
    """Share of samples that are right under the best matching of clusters and classes.

    Cluster ids carry no meaning, so each cluster is first paired with at most one class, and
    each class with at most one cluster, such that as many samples as possible agree (the
    Hungarian method). With more clusters than classes the samples of the clusters left over
    count as wrong; with fewer, those of the classes left over do.

    Parameters
    ----------
    labels_true : array-like of shape (n_samples,)
        The known classes: numbers, booleans or strings.
    labels_pred : array-like of shape (n_samples,)
        The cluster of each sample; its kind of label need not be that of ``labels_true``.

    Returns
    -------
    accuracy : float
        Between 0 and 1; 1 means that both labellings are the same up to the names of the
        labels. As with scikit-learn's clustering scores, two empty labellings score 1.

    Raises
    ------
    ValueError
        If an argument is not 1-D, holds NaN, or the two differ in length.
    TypeError
        If an argument mixes labels that cannot be compared, such as numbers and strings.

    See Also
    --------
    purity_score : Lets several clusters share a class.
    align_labels : Renames clusters by the same matching.
    sklearn.metrics.normalized_mutual_info_score : A score without a matching.

    References
    ----------
    Junyuan Xie, Ross Girshick, Ali Farhadi: "Unsupervised Deep Embedding for Clustering
    Analysis", arXiv:1511.06335.

    Examples
    --------
    >>> from skdeepclust.metrics import clustering_accuracy
    >>> clustering_accuracy(["cat", "cat", "dog", "dog"], [1, 1, 0, 1])
    0.75
    """
    true, predicted = check_label_pair(labels_true, labels_pred, "labels_true", "labels_pred")
    if len(true) == 0:
        return 1.0
    counts, _, _, _ = contingency(true, predicted, "labels_true", "labels_pred")
    classes, clusters = linear_sum_assignment(counts, maximize=True)
    return float(counts[classes, clusters].sum() / len(true))


def align_labels(reference: Any, labels: Any) -> NDArray[Any]:
    """Rename the ids in ``labels`` so that they agree best with ``reference``.

    The partition stays as it is: two samples share a label afterwards exactly when they did
    before. Only the names change, by the one-to-one matching under which most samples agree.

    Parameters
    ----------
    reference : array-like of shape (n_samples,)
        The labelling whose ids are to be used: known classes or an earlier clustering.
    labels : array-like of shape (n_samples,)
        The labelling to rename.

    Returns
    -------
    aligned : ndarray of shape (n_samples,)
        ``labels`` in the ids of ``reference``. Where ``labels`` has more ids than
        ``reference``, those left over get ids that ``reference`` does not have: the integers
        that follow its largest id, or ``"extra_0"``, ``"extra_1"``, ... if its ids are no
        numbers.

    Raises
    ------
    ValueError
        If an argument is not 1-D, holds NaN, or the two differ in length.
    TypeError
        If an argument mixes labels that cannot be compared, such as numbers and strings.

    See Also
    --------
    clustering_accuracy : The share of samples that agree after this renaming.

    Examples
    --------
    >>> from skdeepclust.metrics import align_labels
    >>> align_labels([0, 0, 1, 1, 2], [2, 2, 0, 0, 1])
    array([0, 0, 1, 1, 2])

    A third cluster that the reference does not know:

    >>> align_labels([0, 0, 0, 1, 1], [7, 7, 5, 9, 9])
    array([0, 0, 2, 1, 1])
    """
    reference, labels = check_label_pair(reference, labels, "reference", "labels")
    if len(labels) == 0:
        return reference.copy()
    counts, reference_ids, label_ids, codes = contingency(reference, labels, "reference", "labels")
    matched_reference, matched_labels = linear_sum_assignment(counts, maximize=True)
    left_over = np.setdiff1d(np.arange(len(label_ids)), matched_labels)
    extra_ids = _unused_ids(reference_ids, len(left_over))

    # The names of all ids, first the matched ones, then in the order of `label_ids`.
    names = np.concatenate([reference_ids[matched_reference], extra_ids])
    order = np.argsort(np.concatenate([matched_labels, left_over]))
    return names[order][codes]


def _unused_ids(ids: NDArray[Any], n_unused: int) -> NDArray[Any]:
    """Return ids that are not among the sorted ``ids``, of a dtype that joins theirs."""
    if n_unused == 0:
        return ids[:0]
    if ids.dtype.kind in "biuf":
        first = int(np.floor(ids[-1])) + 1
        numbers = [first + offset for offset in range(n_unused)]
        # A dtype as narrow as that of `ids`, but never one in which the new ids overflow.
        return np.asarray(numbers, dtype=np.result_type(ids.dtype, np.min_scalar_type(numbers[-1])))
    taken = set(ids.tolist())
    candidates = (f"extra_{number}" for number in range(n_unused + len(taken)))
    names = [name for name in candidates if name not in taken][:n_unused]
    return np.asarray(names, dtype=object if ids.dtype.kind == "O" else None)
