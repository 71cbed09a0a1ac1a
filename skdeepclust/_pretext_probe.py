"""Can a simple rule name the transformations? Then the network need not look at clusters."""

import copy

import numpy as np
import torch
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import (
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
)

from ._warnings import warn_user
from .exceptions import PretextWarning
from .training.seeds import derive_seed

_MAX_ROWS = 5_000
_MAX_VALUES = 4 * 2**20
# Fewer rows for each map say nothing about means and covariances.
_MIN_ROWS_PER_TRANSFORM = 10
# Of wider rows the rules see the leading principal components.
_MAX_COMPONENTS = 128
_REGULARIZATION = 0.01
# Above this share of the way from chance to certainty the transformations are betrayed by
# covariances alone.
_TRIVIAL_SHARE = 0.6


def pretext_scores(rows, transformations, seed):
    """Return how well means, and covariances, tell the transformations of vectors apart.

    Half of at most 5,000 rows, each under a random map, train a linear and a quadratic
    discriminant; the other half gives their accuracy.

    Parameters
    ----------
    rows : Tensor of shape (n_rows, n_features)
        Rows as the transformations act on them.
    transformations : Module
        The family of maps.
    seed : int
        Draws the maps.

    Returns
    -------
    linear, quadratic : float or None
        Accuracies; None for too few rows, and for rows that are all equal.
    """
    n_transforms = transformations.n_transforms
    random = np.random.default_rng(seed)
    n_rows = min(_MAX_ROWS, len(rows))
    if n_rows < 2 * _MIN_ROWS_PER_TRANSFORM * n_transforms:
        return None, None
    if bool((rows == rows[0]).all()):
        return None, None
    chosen = torch.from_numpy(random.permutation(len(rows))[:n_rows])
    # In turn, so that each half has all maps equally often.
    labels = np.arange(n_rows) // 2 % n_transforms
    with torch.no_grad():
        mapped = transformations(rows[chosen], torch.from_numpy(labels)).double().numpy()
    train, test = slice(0, None, 2), slice(1, None, 2)
    if mapped.shape[1] > _MAX_COMPONENTS:
        n_components = min(_MAX_COMPONENTS, len(mapped[train]))
        components = PCA(n_components, svd_solver="randomized", random_state=seed)
        mapped = components.fit(mapped[train]).transform(mapped)
    # The default solver of the quadratic rule refuses collinear columns and fewer rows than
    # columns; this one takes both.
    rules = (
        LinearDiscriminantAnalysis(solver="lsqr", shrinkage=_REGULARIZATION),
        QuadraticDiscriminantAnalysis(solver="eigen", shrinkage=_REGULARIZATION),
    )
    linear, quadratic = (
        float(rule.fit(mapped[train], labels[train]).score(mapped[test], labels[test]))
        for rule in rules
    )
    return linear, quadratic


def probe(run):
    """Leave the scores of a run on vectors in it, and warn where they are high.

    Parameters
    ----------
    run : Run
        With its network, before it is trained.
    """
    network = run.network
    scores = None, None
    if not network.description.is_image:
        scores = pretext_scores(
            network.scaling(_some_rows(run)).cpu(),
            copy.deepcopy(network.transformations).cpu(),
            derive_seed(run.seed, "probe"),
        )
    run.values["pretext_scores"] = scores
    if is_trivial(scores[1], network.transformations):
        warn_user(
            f"Covariances alone name {scores[1]:.0%} of the transformations, so the network need "
            "not look at clusters. Keep scaling='auto', or choose other transforms.",
            PretextWarning,
        )


def _some_rows(run):
    """Return as many rows as a probe takes, spread over all of them."""
    n_wanted = min(_MAX_ROWS, max(500, _MAX_VALUES // run.rows.n_features))
    n_rows = min(n_wanted, len(run.rows))
    index = torch.linspace(0, len(run.rows) - 1, n_rows).long()
    return run.rows.gather(index, out=run.rows.empty(n_rows)).to(run.device)


def is_trivial(quadratic, transformations):
    """Whether covariances name the transformations so well that clusters need not be seen."""
    if quadratic is None:
        return False
    n_transforms = transformations.n_transforms
    chance = 1 / n_transforms
    # A change of sign leaves covariances alone.
    cap = transformations.n_distinct_up_to_sign / n_transforms
    return quadratic > chance + _TRIVIAL_SHARE * (cap - chance) and cap > chance
