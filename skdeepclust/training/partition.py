"""The first partition of an embedding, which training then refines."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.frozen import FrozenEstimator

from .path_integral import path_integral_labels
from .scaled_rows import ScaledRows
from .ward import ward_labels

__all__ = ["FirstPartition", "first_partition"]

NAMED_INITS = ("k-means++", "random", "ward", "path-integral")

# Largest number of rows that is clustered whole; a random subsample of larger ones is.
# One idle thread takes about 7 seconds for Ward and 10 for path integrals then.
MAX_WARD_ROWS = 20_000
MAX_PATH_INTEGRAL_ROWS = 10_000
# Ward takes time as rows**2 * dimensions: this is the largest number of rows at 10 dimensions.
MAX_WARD_PRODUCTS = MAX_WARD_ROWS**2 * 10
# Numbers in the copy that k-means works on, 64 MiB.
MAX_KMEANS_VALUES = 2**23

# K-means expands the squares of its distances, so it sees no smaller part of the data's range.
KMEANS_RESOLUTION = 2.0**-23


class FirstPartition(NamedTuple):
    """A partition of an embedding.

    Attributes
    ----------
    labels : ndarray of shape (n_samples,), dtype=int64
        Cluster of each row.
    centers : ndarray of shape (n_clusters, n_features), dtype=float64
        Mean of the rows of each cluster, or the centres the user gave. A cluster without rows has
        a copy of the centre of another.
    init_used : str
        What found the partition: ``"k-means++"``, ``"random"``, ``"ward"``, ``"path-integral"``,
        ``"labels"``, ``"centers"``, the class name of a clusterer, or ``"distinct rows"`` where
        there are not more distinct rows than clusters.
    """

    labels: np.ndarray
    centers: np.ndarray
    init_used: str


def first_partition(
    embedding: np.ndarray, n_clusters: int, init: Any, *, random_state: int
) -> FirstPartition:
    """Find the first partition of an embedding.

    The named ways use every id from 0 to ``n_clusters - 1``, or, where there are fewer distinct
    rows than clusters, one id a distinct row, consecutive from 0. Rows beyond a documented number
    are not clustered themselves: a random subsample is, and the others join the nearest centre
    (k-means) or the cluster of the nearest row of the subsample (Ward, path integrals).

    Parameters
    ----------
    embedding : ndarray of shape (n_samples, n_features), dtype float32 or float64
        Finite values; not changed.
    n_clusters : int
        Number of clusters.
    init : str, clusterer or array-like
        - ``"k-means++"``, ``"random"``: k-means, best of ten runs from seeds chosen in this way;
          of at most 8 388 608 values (rows times dimensions). Ward's agglomeration, which
          compares differences, stands in where clusters would be closer than a ten-millionth of
          the range of the data.
        - ``"ward"``: Ward's agglomeration; of at most 20 000 rows up to ten dimensions, then of
          fewer, in inverse proportion to the square root of the number of dimensions.
        - ``"path-integral"``: agglomeration of the graph of 20 nearest neighbours by path
          integrals; of at most 10 000 rows.
        - a scikit-learn clusterer: a clone is fitted on the embedding, with ``n_clusters`` where
          it has such a parameter that is not None, and with ``random_state`` where its own is
          None. Noise (label -1) joins the nearest centre.
        - ``FrozenEstimator`` around a fitted clusterer: its ``predict``, or else its ``labels_``.
        - array of shape (n_samples,): labels. Integers from 0 to ``n_clusters - 1`` are kept as
          they are; other values are numbered in sorted order.
        - array of shape (n_clusters, n_features): centres; row ``k`` becomes cluster ``k``.
    random_state : int
        Seed of the subsample, of k-means and of a clusterer that has none of its own.

    Returns
    -------
    partition : FirstPartition
        Named tuple of ``labels``, ``centers`` and ``init_used``.

    Raises
    ------
    ValueError
        If ``init`` is an unknown name, does not fit the embedding, or gives more clusters than
        ``n_clusters``; if the embedding is not finite.
    TypeError
        If ``init`` is none of the above.

    Examples
    --------
    >>> import numpy as np
    >>> from skdeepclust.training.partition import first_partition
    >>> embedding = np.array([[0.0, 1.0], [8.0, 8.0], [0.0, 0.0], [8.0, 9.0]])
    >>> labels, centers, init_used = first_partition(embedding, 2, "ward", random_state=0)
    >>> labels
    array([0, 1, 0, 1])
    >>> centers
    array([[0. , 0.5],
           [8. , 8.5]])
    """
    if not (np.isfinite(embedding.min()) and np.isfinite(embedding.max())):
        raise ValueError("embedding holds nan or infinite values, so it cannot be clustered.")
    if isinstance(init, str):
        rows = ScaledRows(embedding)
        labels, init_used = _named_partition(rows, n_clusters, init, random_state)
    elif isinstance(init, FrozenEstimator):
        labels = _frozen_labels(embedding, n_clusters, init)
        init_used = type(init.estimator).__name__
    elif hasattr(init, "get_params") and not isinstance(init, type):
        labels = _clusterer_labels(embedding, n_clusters, init, random_state)
        init_used = type(init).__name__
    else:
        values = _as_array(init)
        if values.ndim == 2:
            centers = _centers_of_user(values, n_clusters, embedding.shape[1])
            rows = ScaledRows(embedding)
            return FirstPartition(rows.nearest(rows.scaled(centers)), centers, "centers")
        labels = _labels_of_user(values, n_clusters, len(embedding))
        init_used = "labels"
    return FirstPartition(labels, partition_means(embedding, labels, n_clusters), init_used)


def _named_partition(
    rows: ScaledRows, n_clusters: int, init: str, random_state: int
) -> tuple[np.ndarray, str]:
    """Cluster rows in one of the named ways; return labels and the name of the way."""
    if init not in NAMED_INITS:
        raise ValueError(
            f"init={init!r} is not known. Choose one of {', '.join(map(repr, NAMED_INITS))}, a "
            "clusterer, an array of labels or an array of centres."
        )
    distinct, labels = rows.distinct(n_clusters + 1)
    if labels is not None:
        return labels, "distinct rows"
    if init in ("k-means++", "random"):
        visible, too_close = rows.distinct(n_clusters + 1, resolution=KMEANS_RESOLUTION)
        if too_close is None:
            distinct = visible
        else:
            init = "ward"
    n_features = rows.embedding.shape[1]
    if init == "ward":
        max_rows = min(MAX_WARD_ROWS, int((MAX_WARD_PRODUCTS / n_features) ** 0.5))
    elif init == "path-integral":
        max_rows = MAX_PATH_INTEGRAL_ROWS
    else:
        max_rows = MAX_KMEANS_VALUES // n_features
    max_rows = max(max_rows, 10 * n_clusters)
    if len(rows) <= max_rows:
        return _labels_by_name(rows.take(slice(None)), n_clusters, init, random_state), init
    chosen = np.random.RandomState(random_state).choice(len(rows), max_rows, replace=False)
    # With these there are enough distinct rows in the subsample for every cluster to have one.
    chosen = np.union1d(chosen, distinct)
    sample = rows.take(chosen)
    sample_labels = _labels_by_name(sample, n_clusters, init, random_state)
    if init in ("ward", "path-integral"):
        labels = sample_labels[rows.nearest(sample)]
    else:
        labels = rows.nearest(partition_means(sample, sample_labels, n_clusters))
    labels[chosen] = sample_labels
    return labels, init


def _labels_by_name(points: np.ndarray, n_clusters: int, init: str, random_state: int):
    """Cluster points; there must be more distinct ones than clusters."""
    if init == "ward":
        return ward_labels(points, n_clusters)
    if init == "path-integral":
        return path_integral_labels(points, n_clusters)
    k_means = KMeans(n_clusters, init=init, n_init=10, random_state=random_state, copy_x=False)
    return k_means.fit_predict(points).astype(np.int64)


def partition_means(embedding: np.ndarray, labels: np.ndarray, n_clusters: int) -> np.ndarray:
    """Compute the mean of each cluster; copies of others stand for the means of empty ones."""
    counts = np.bincount(labels, minlength=n_clusters)
    sums = [np.bincount(labels, weights=column, minlength=n_clusters) for column in embedding.T]
    used, unused = np.flatnonzero(counts), np.flatnonzero(counts == 0)
    means = np.stack(sums, axis=1) / np.maximum(counts, 1)[:, None]
    means[unused] = means[used[np.arange(len(unused)) % len(used)]]
    return means


def _clusterer_labels(
    embedding: np.ndarray, n_clusters: int, init: Any, random_state: int
) -> np.ndarray:
    """Fit a clone of a clusterer and return its labels."""
    if not hasattr(init, "fit_predict"):
        raise TypeError(f"init={init!r} has no fit_predict: give a clusterer, such as KMeans().")
    clusterer = clone(init)
    settings = clusterer.get_params()
    changes = {
        name: random_state
        for name, value in settings.items()
        if value is None and (name == "random_state" or name.endswith("__random_state"))
    }
    # None means something else there: a threshold decides, or nothing is joined in the end.
    if settings.get("n_clusters") is not None:
        changes["n_clusters"] = n_clusters
    # A copy, because the clusterer may be one that overwrites its input (copy=False).
    labels = clusterer.set_params(**changes).fit_predict(np.array(embedding))
    return _labels_without_noise(embedding, labels, n_clusters, init)


def _frozen_labels(embedding: np.ndarray, n_clusters: int, init: FrozenEstimator) -> np.ndarray:
    """Return the labels that a fitted clusterer gives the embedding."""
    n_samples, n_features = embedding.shape
    fitted_features = getattr(init, "n_features_in_", n_features)
    if fitted_features != n_features:
        raise ValueError(
            f"init={init!r} was fitted on {fitted_features} features, the embedding has "
            f"{n_features}: fit it on the embedding (transform gives it), or give the clusterer "
            "unfitted."
        )
    if hasattr(init, "predict"):
        labels = init.predict(np.array(embedding))
    else:
        labels = getattr(init, "labels_", None)
        if labels is None or len(labels) != n_samples:
            found = "no labels_" if labels is None else f"labels_ of {len(labels)} rows"
            raise ValueError(
                f"init={init!r} has no predict, and {found} where the embedding has {n_samples} "
                "rows: fit it on these rows, or give the clusterer unfitted."
            )
    return _labels_without_noise(embedding, labels, n_clusters, init)


def _labels_without_noise(
    embedding: np.ndarray, labels: np.ndarray, n_clusters: int, init: Any
) -> np.ndarray:
    """Turn what a clusterer found into ids; noise joins the cluster with the nearest centre."""
    labels = np.array(labels)
    noise = labels == -1
    if noise.all():
        raise ValueError(
            f"init={init!r} found no cluster, all {len(labels)} rows are noise; n_clusters="
            f"{n_clusters}: change its parameters."
        )
    ids, n_found = _as_ids(labels[~noise], n_clusters)
    if n_found > n_clusters:
        raise ValueError(
            f"init={init!r} found {n_found} clusters, but n_clusters={n_clusters}: set its "
            f"parameters so that it finds no more, or use n_clusters={n_found}."
        )
    labels = np.zeros(len(noise), dtype=np.int64)
    labels[~noise] = ids
    if noise.any():
        rows = ScaledRows(embedding)
        used = np.unique(ids)
        centers = rows.scaled(partition_means(embedding[~noise], ids, n_clusters)[used])
        labels[noise] = used[rows.nearest(centers)[noise]]
    return labels


def _as_ids(labels: np.ndarray, n_clusters: int) -> tuple[np.ndarray, int]:
    """Number label values, unless they are ids already; return ids and number of values."""
    values, inverse = np.unique(labels, return_inverse=True)
    if values.dtype.kind in "biuf":
        whole = values == np.floor(values)
        if whole.all() and values[0] >= 0 and values[-1] < n_clusters:
            return labels.astype(np.int64), len(values)
    return inverse.astype(np.int64), len(values)


def _as_array(init: Any) -> np.ndarray:
    """Turn labels or centres into an array of one or two dimensions."""
    try:
        values = np.asarray(init)
    except ValueError as error:
        raise ValueError(f"init cannot be turned into an array: {error}") from error
    if isinstance(init, type) or values.ndim == 0:
        raise TypeError(
            f"init={init!r} is not a name, a clusterer (an instance, not the class), an array of "
            "labels or an array of centres."
        )
    if values.ndim > 2:
        raise ValueError(
            f"init is an array of {values.ndim} dimensions: give labels (1) or centres (2)."
        )
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise ValueError(
            f"init holds {np.count_nonzero(~np.isfinite(values))} nan or infinite values among "
            f"{values.size}: give finite labels or centres."
        )
    return values


def _labels_of_user(values: np.ndarray, n_clusters: int, n_samples: int) -> np.ndarray:
    """Check labels given as an array and turn them into ids."""
    if len(values) != n_samples:
        raise ValueError(
            f"init holds {len(values)} labels, but there are {n_samples} rows: give one label a "
            "row, or centres as an array of shape (n_clusters, n_features of the embedding)."
        )
    try:
        labels, n_found = _as_ids(values, n_clusters)
    except TypeError as error:
        raise ValueError(f"init holds labels that cannot be compared: {error}") from error
    if n_found > n_clusters:
        raise ValueError(
            f"init holds {n_found} different labels, but n_clusters={n_clusters}: give at most "
            f"n_clusters different ones, or use n_clusters={n_found}."
        )
    return labels


def _centers_of_user(values: np.ndarray, n_clusters: int, n_features: int) -> np.ndarray:
    """Check centres given as an array."""
    if values.shape != (n_clusters, n_features):
        raise ValueError(
            f"init has shape {values.shape}, but centres of {n_clusters} clusters of this "
            f"embedding have shape {(n_clusters, n_features)}: give such an array, or labels as "
            "an array of one dimension."
        )
    try:
        return values.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"init holds centres that are not numbers: {error}") from error
