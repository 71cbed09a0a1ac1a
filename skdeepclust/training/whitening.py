"""Principal components of centred columns, fitted to a sample of the rows."""

import numpy as np
import torch
from sklearn.decomposition import PCA

from ..nn.scaling import PrincipalWhitening, fit_scaling, resolve_scaling

# Values of the sample that is decomposed (64 MB in float32), and its most rows.
_MAX_SAMPLE_VALUES = 16 * 2**20
_MAX_SAMPLE_ROWS = 20_000
# Components are kept until they carry this share of the variance, up to so many.
_WANTED_VARIANCE = 0.9
_MAX_COMPONENTS = 64
# Deviations below this share of the largest one are noise and not blown up to 1, and
# components below the other are rounding.
_LEAST_DEVIATION = 1e-3
_ROUNDING_DEVIATION = 1e-6


def fit_whitening(rows, statistics, n_clusters, seed, *, keeps_width=False):
    """Return the whitening of vectors: the components that carry 90 % of the variance.

    At least ``n_clusters - 1`` and at most 64 of them are kept, and no more than there are
    directions in which the rows differ. They are found from at most 20,000 rows.

    Parameters
    ----------
    rows : RowSource
        Vectors.
    statistics : ColumnStatistics
        Of all rows.
    n_clusters : int
        Number of clusters.
    seed : int
        Draws the sample.
    keeps_width : bool, default=False
        Whether the rows stay as wide as they are: zeros follow the components.

    Returns
    -------
    PrincipalWhitening
    """
    # Columns that share a unit keep their proportions: the small ones hold noise.
    name = resolve_scaling(statistics, "auto", rows.row_shape)
    scaling = fit_scaling(statistics, name, rows.row_shape, rows.dtype)
    sample = scaling(_sample(rows, seed)).numpy()
    components, deviations = _principal_components(sample, n_clusters, seed)
    divided = components / np.maximum(deviations, _LEAST_DEVIATION * deviations[0])[:, None]
    if keeps_width:
        divided = np.pad(divided, [(0, rows.n_features - len(divided)), (0, 0)])
    matrix = torch.from_numpy(np.ascontiguousarray(divided.T)).to(rows.dtype)
    return PrincipalWhitening(scaling.shift, scaling.factor, matrix)


def _sample(rows, seed):
    limit = min(_MAX_SAMPLE_ROWS, max(10 * _MAX_COMPONENTS, _MAX_SAMPLE_VALUES // rows.n_features))
    if len(rows) <= limit:
        return rows.read(0, len(rows)).clone()
    chosen = np.random.default_rng(seed).choice(len(rows), limit, replace=False)
    return rows.gather(torch.from_numpy(np.sort(chosen)), out=rows.empty(limit))


def _principal_components(sample, n_clusters, seed):
    """Return components and their deviations; one of each where all rows are equal."""
    n_most = min(_MAX_COMPONENTS, *sample.shape)
    if not np.ptp(sample, axis=0).any():
        return np.eye(1, sample.shape[1]), np.ones(1)
    decomposition = PCA(n_most, random_state=seed).fit(sample)
    deviations = np.sqrt(decomposition.explained_variance_)
    n_wanted = 1 + int(
        np.searchsorted(np.cumsum(decomposition.explained_variance_ratio_), _WANTED_VARIANCE)
    )
    n_real = int((deviations > _ROUNDING_DEVIATION * deviations[0]).sum())
    n_kept = min(max(n_wanted, n_clusters - 1), n_most, n_real)
    return decomposition.components_[:n_kept], deviations[:n_kept]
