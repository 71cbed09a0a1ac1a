"""Scores of a network of ACOL-GAR: by K-means as the method says, and by other read-outs."""

from dataclasses import replace

import numpy as np
import torch
from sklearn.cluster import AgglomerativeClustering
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import (
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
)
from sklearn.metrics import normalized_mutual_info_score
from sklearn.pipeline import make_pipeline

from skdeepclust.metrics import clustering_accuracy, purity_score
from skdeepclust.training.inference import distances_in_float64
from skdeepclust.training.read_out import k_means_read_out

from .pseudo_supervision_protocol import N_INIT

# Train rows that K-means is fitted to.
MAX_FITTED_ROWS = 8192
# Of pixels the simple rules see this many principal components.
_N_COMPONENTS = 50


def kmeans_scores(F, y, new_F, new_y, n_clusters):
    """Return scores of K-means fitted to train rows, and to the scored rows themselves."""
    found = k_means_read_out(F, n_clusters, "k-means++", n_init=N_INIT, random_state=0)
    centers = torch.from_numpy(found.centers)
    labels = distances_in_float64(torch.from_numpy(new_F), centers).argmin(dim=1).numpy()
    refitted = k_means_read_out(new_F, n_clusters, "k-means++", n_init=N_INIT, random_state=0)
    return {
        "train": label_scores(y, found.labels),
        "unseen": label_scores(new_y, labels),
        "unseen, refitted": label_scores(new_y, refitted.labels),
        "agreement": found.agreement,
    }


def label_scores(y, labels):
    """Return ACC (one cluster a class), purity and NMI."""
    return {
        "acc": clustering_accuracy(y, labels),
        "purity": purity_score(y, labels),
        "nmi": normalized_mutual_info_score(y, labels, average_method="geometric"),
    }


def read_outs(model, split):
    """Return the scores of other ways to read clusters, out of the network and of its input."""
    network, n_clusters = model.net_.module_, split.n_clusters
    kept = rows_to_fit(len(split.X))
    X, y, new_X, new_y = split.X[kept], split.y[kept], split.new_X, split.new_y
    F, new_F = model.transform(X), model.transform(new_X)
    with torch.no_grad():
        Z, new_Z = (
            network.head.linear(torch.from_numpy(f))[:, :: network.head.n_parents].numpy()
            for f in (F, new_F)
        )
        scaled = [network.scaling(_as_rows(x, split.image_shape)) for x in (X, new_X)]
    averaged = [averaged_representation(model, x) for x in (X, new_X)]
    pairs = {
        "representation": (F, new_F),
        "unit length": (_unit(F), _unit(new_F)),
        "softmax inputs of the identity": (Z, new_Z),
        "averaged over the transformations": averaged,
        "input": (_flat(X), _flat(new_X)),
        "input as it is scaled": tuple(s.flatten(1).numpy() for s in scaled),
    }
    found = {
        name: kmeans_scores(f, y, new_f, new_y, n_clusters) for name, (f, new_f) in pairs.items()
    }
    found["slots, merged"] = {"unseen": label_scores(new_y, merged_slots(Z, F, new_Z, n_clusters))}
    return found


def rows_to_fit(n_rows):
    """Return the numbers of the rows that K-means is fitted to."""
    if n_rows <= MAX_FITTED_ROWS:
        return np.arange(n_rows)
    return np.sort(np.random.default_rng(0).choice(n_rows, MAX_FITTED_ROWS, replace=False))


def averaged_representation(model, X):
    """Return the representation averaged over the transformations."""
    network = model.net_.module_
    plain = network.description
    # Not on a copy: transformations may be functions without a name, which no copy can carry.
    network.description = replace(plain, averages=True)
    try:
        return model.transform(X)
    finally:
        network.description = plain


def merged_slots(Z, F, new_Z, n_clusters):
    """Return clusters of scored rows: slots joined by Ward's agglomeration of their means."""
    slots = Z.argmax(axis=1)
    used = np.unique(slots)
    if len(used) <= n_clusters:
        groups = np.arange(len(used))
    else:
        means = np.stack([F[slots == slot].mean(axis=0) for slot in used])
        groups = AgglomerativeClustering(n_clusters).fit_predict(means)
    return groups[new_Z[:, used].argmax(axis=1)]


def simple_rules(model, split):
    """Return how well a linear and a quadratic discriminant name the transformations.

    Those of vectors are the estimator's own; of images, of the leading principal components of
    the pixels. Both are scored on the unseen rows.
    """
    if split.image_shape is None:
        return {
            "linear": model.pretext_linear_score_,
            "quadratic": model.pretext_quadratic_score_,
        }
    family = model.net_.module_.transformations
    kept = rows_to_fit(len(split.X))
    mapped, labels = _mapped(family, _as_rows(split.X[kept], split.image_shape))
    new_mapped, new_labels = _mapped(family, _as_rows(split.new_X, split.image_shape))
    rules = {
        "linear": LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.01),
        # The solver by singular values refuses covariances that are not of full rank.
        "quadratic": QuadraticDiscriminantAnalysis(solver="eigen", shrinkage=0.01),
    }
    return {
        name: make_pipeline(PCA(min(_N_COMPONENTS, *mapped.shape), random_state=0), rule)
        .fit(mapped, labels)
        .score(new_mapped, new_labels)
        for name, rule in rules.items()
    }


def _mapped(family, rows):
    """Return the flattened rows under one transformation each, in turn, and its number."""
    labels = torch.arange(len(rows)) % family.n_transforms
    with torch.no_grad():
        return family(rows, labels).flatten(1).numpy(), labels.numpy()


def _as_rows(X, image_shape):
    rows = torch.from_numpy(X.astype(np.float32))
    return rows if image_shape is None else rows.reshape(-1, *image_shape)


def _flat(X):
    return X.reshape(len(X), -1).astype(np.float32)


def _unit(F):
    return F / np.maximum(np.linalg.norm(F, axis=1, keepdims=True), 1e-12)
