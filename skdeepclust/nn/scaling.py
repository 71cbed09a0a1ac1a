"""Input scaling as a layer: fitted from statistics of the data, never trained."""

import torch
from torch import nn

# Columns whose ranges differ by no more than this factor (largest against median) are taken
# to share one unit, as pixels, gene expressions or embedding coordinates do. Dividing each
# of those by its own deviation would blow up nearly constant ones.
_SHARED_UNIT_FACTOR = 10.0


class InputScaling(nn.Module):
    """Affine map ``(x - shift) * factor`` whose buffers are part of the saved weights.

    Parameters
    ----------
    shift : Tensor
        Subtracted from each row; broadcast against the shape of a row.
    factor : Tensor
        Multiplied afterwards.

    Examples
    --------
    >>> import torch
    >>> from skdeepclust.nn.scaling import InputScaling
    >>> InputScaling(torch.tensor(1.0), torch.tensor(2.0))(torch.tensor([[1.0, 2.0]]))
    tensor([[0., 2.]])
    """

    def __init__(self, shift, factor):
        super().__init__()
        self.register_buffer("shift", shift)
        self.register_buffer("factor", factor)

    def forward(self, rows):
        return (rows - self.shift) * self.factor


class PrincipalWhitening(InputScaling):
    """Centred columns, then the leading principal components with unit variance.

    Parameters
    ----------
    shift, factor : Tensor of shape (n_features,)
        As of :class:`InputScaling`.
    components : Tensor of shape (n_features, n_components)
        Each component divided by its deviation.

    Examples
    --------
    >>> import torch
    >>> from skdeepclust.nn.scaling import PrincipalWhitening
    >>> whitening = PrincipalWhitening(torch.zeros(2), torch.ones(2), torch.ones(2, 1))
    >>> whitening(torch.tensor([[1.0, 2.0]]))
    tensor([[3.]])
    """

    def __init__(self, shift, factor, components):
        super().__init__(shift, factor)
        self.register_buffer("components", components)

    def forward(self, rows):
        return super().forward(rows) @ self.components


class ColumnStatistics:
    """Range, mean and variance of each column, gathered block by block in float64.

    Attributes
    ----------
    n_rows : int
        Rows seen so far.
    minimum, maximum, mean : Tensor of shape (n_features,)
        In the units of the data.
    """

    def __init__(self, n_features):
        self.n_rows = 0
        self.minimum = torch.full((n_features,), torch.inf, dtype=torch.float64)
        self.maximum = torch.full((n_features,), -torch.inf, dtype=torch.float64)
        self.mean = torch.zeros(n_features, dtype=torch.float64)
        self._squares = torch.zeros(n_features, dtype=torch.float64)

    def update(self, block):
        """Add the rows of `block`, a tensor of shape (n, n_features)."""
        block = block.double()
        self.minimum = torch.minimum(self.minimum, block.amin(0))
        self.maximum = torch.maximum(self.maximum, block.amax(0))
        # The pairwise update of Chan, Golub and LeVeque keeps the variance of far-off data.
        n_new = len(block)
        n_total = self.n_rows + n_new
        mean_new = block.mean(0)
        delta = mean_new - self.mean
        self._squares += (block - mean_new).square().sum(0)
        self._squares += delta.square() * (self.n_rows * n_new / n_total)
        self.mean += delta * (n_new / n_total)
        self.n_rows = n_total

    @property
    def variance(self):
        """Variance of each column (divided by the number of rows), exactly 0 if constant."""
        variance = self._squares / self.n_rows
        return torch.where(self.minimum == self.maximum, 0.0, variance)


def resolve_scaling(statistics, scaling, row_shape):
    """Return the scaling that ``"auto"`` stands for: images are mapped to one range, vectors
    are divided by one deviation when their columns share a unit, else each by its own.
    """
    if scaling != "auto":
        return scaling
    if len(row_shape) == 3:
        return "range"
    ranges = statistics.maximum - statistics.minimum
    ranges = ranges[ranges > 0]
    if not len(ranges) or ranges.max() <= _SHARED_UNIT_FACTOR * ranges.median():
        return "common"
    return "standard"


def fit_scaling(statistics, scaling, row_shape, dtype):
    """Return the :class:`InputScaling` that `scaling` asks for.

    Parameters
    ----------
    statistics : ColumnStatistics
        Of the flattened rows.
    scaling : {"standard", "common", "range", "unit", None}
        ``"range"`` maps the whole value range to -1..1, ``"unit"`` to 0..1, ``"standard"``
        gives each column mean 0 and deviation 1, ``"common"`` centres the columns and divides
        all by one deviation, None changes nothing.
    row_shape : tuple of int
        ``(n_features,)`` or ``(C, H, W)``.
    dtype : torch.dtype
        Of the rows.

    Returns
    -------
    InputScaling
    """
    if scaling is None:
        shift, factor = torch.zeros((), dtype=dtype), torch.ones((), dtype=dtype)
    elif scaling == "range":
        low, high = statistics.minimum.min(), statistics.maximum.max()
        shift, factor = (low + high) / 2, _safe_inverse((high - low) / 2)
    elif scaling == "unit":
        low, high = statistics.minimum.min(), statistics.maximum.max()
        shift, factor = low, _safe_inverse(high - low)
    else:
        variance = statistics.variance
        if scaling == "common":
            variance = variance.mean()
        shift, factor = statistics.mean, _safe_inverse(variance.sqrt())
    if shift.ndim:
        shift = shift.reshape(row_shape)
    if factor.ndim:
        factor = factor.reshape(row_shape)
    return InputScaling(shift.to(dtype), factor.to(dtype))


def _safe_inverse(spread):
    """Return 1 / spread, and 1 where the spread is 0: a constant column stays at 0."""
    return torch.where(spread > 0, 1.0 / spread, 1.0)
