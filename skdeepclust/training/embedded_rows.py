"""The clean embedding of all rows, for what is refreshed once an epoch."""

import torch

from ..losses import critical_temperature, squared_distances

# Rows of a cached embedding that are worked on at once.
SLICE_ROWS = 16_384


class EmbeddedRows:
    """The clean embedding of all rows in float64 slices.

    A learnt embedding is small and computed once. That of the identity is `X` itself and is
    read again at each pass instead of being copied.
    """

    def __init__(self, run):
        self._run = run
        self._cached = run.embed() if run.network.has_learnt_embedding else None

    def __iter__(self):
        if self._cached is None:
            for start, stop, z in self._run.forward.chunks(self._run.rows):
                yield start, stop, z.double()
            return
        for start in range(0, len(self._cached), SLICE_ROWS):
            z = self._cached[start : start + SLICE_ROWS]
            yield start, start + len(z), z.double()

    def mean(self):
        """Return the mean of the embedding."""
        return sum(z.sum(dim=0) for _, _, z in self) / len(self._run.rows)

    def critical_temperature(self):
        """Return the temperature at and above which all centres merge into one."""
        if self._cached is not None:
            return float(critical_temperature(self._cached.double()))
        mean = self.mean()
        covariance = sum((z - mean).T @ (z - mean) for _, _, z in self) / len(self._run.rows)
        return 2 * float(torch.linalg.eigvalsh(covariance)[-1])

    def farthest_row(self, centers):
        """Return the largest squared distance to the nearest centre, and that row."""
        best, best_row = -1.0, None
        for _, _, z in self:
            nearest = squared_distances(z, centers).amin(dim=1)
            value, place = nearest.max(dim=0)
            if float(value) > best:
                best, best_row = float(value), z[place].clone()
        return best, best_row

    def share_beyond(self, limit):
        """Return the share of embedding values whose size is above `limit`."""
        return float((self._cached.abs() > limit).float().mean())


def mean_squared_change(targets, before):
    """Return the mean of ``(targets - before)^2`` without a temporary of their size."""
    total = 0.0
    for new, old in zip(targets.split(SLICE_ROWS), before.split(SLICE_ROWS), strict=True):
        total += float((new - old).square().sum())
    return total / targets.numel()
