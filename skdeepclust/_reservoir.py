"""A bounded sample of a stream, and batches that mix it with what is new."""

from typing import NamedTuple

import numpy as np
import torch

from ._row_sources import RowSource


class Reservoir(NamedTuple):
    """A uniform sample of all rows so far (algorithm R), with the cluster of each.

    Parameters
    ----------
    rows : Tensor of shape (n_kept, *row_shape)
        The sample.
    labels : Tensor of shape (n_kept,), int64
        Clusters of its rows.
    n_seen : int
        Number of rows it stands for.
    """

    rows: torch.Tensor
    labels: torch.Tensor
    n_seen: int


def draw_reservoir(rows, labels, size, generator):
    """Return a reservoir of at most `size` of the rows of a source.

    Parameters
    ----------
    rows : RowSource
        Rows to sample from.
    labels : Tensor of shape (n_rows,)
        Their clusters.
    size : int
        Most rows to keep.
    generator : numpy Generator
        Draws the sample.
    """
    chosen = torch.arange(len(rows))
    if len(rows) > size:
        chosen = torch.from_numpy(np.sort(generator.choice(len(rows), size, replace=False)))
    kept = rows.gather(chosen, out=rows.empty(len(chosen)))
    return Reservoir(kept, labels[chosen].clone(), len(rows))


def with_new_rows(reservoir, rows, labels, size, generator):
    """Return the reservoir after `rows` have passed; the one given is not changed.

    Parameters
    ----------
    reservoir : Reservoir
        The sample of the rows before.
    rows : RowSource
        New rows, in the order of the stream.
    labels : Tensor of shape (n_rows,)
        Their clusters.
    size : int
        Most rows to keep.
    generator : numpy Generator
        Draws which rows stay.
    """
    n_before, n_new = len(reservoir.rows), len(rows)
    n_kept = min(size, n_before + n_new)
    free = np.arange(n_before, n_kept)
    counts = reservoir.n_seen + 1 + np.arange(len(free), n_new)
    places = np.concatenate([free, generator.integers(0, counts)])
    staying = np.flatnonzero(places < n_kept)
    # Of rows that fall on one place the last one stays there.
    row_of_place = dict(zip(places[staying].tolist(), staying.tolist(), strict=True))
    kept = rows.empty(n_kept)
    kept_labels = torch.empty(n_kept, dtype=torch.int64)
    kept[:n_before], kept_labels[:n_before] = reservoir.rows, reservoir.labels
    if row_of_place:
        index = torch.tensor(list(row_of_place.values()))
        targets = torch.tensor(list(row_of_place))
        kept[targets] = rows.gather(index, out=rows.empty(len(index)))
        kept_labels[targets] = labels[index]
    return Reservoir(kept, kept_labels, reservoir.n_seen + n_new)


class MixedRows(RowSource):
    """Rows of a stream in turn with rows drawn from a reservoir.

    Parameters
    ----------
    waiting : Tensor of shape (n_waiting, *row_shape)
        New rows of earlier calls, which come first.
    rows : RowSource
        New rows of this call.
    reservoir : Tensor of shape (n_kept, *row_shape)
        What to mix them with.
    generator : numpy Generator
        Draws from the reservoir.
    """

    def __init__(self, waiting, rows, reservoir, generator):
        n_new = len(waiting) + len(rows)
        dtype = str(rows.dtype).removeprefix("torch.")
        super().__init__(2 * n_new, rows.row_shape, dtype, may_be_nonfinite=False)
        self._waiting = waiting
        self._rows = rows
        self._reservoir = reservoir
        self._drawn = torch.from_numpy(generator.integers(0, len(reservoir), n_new))

    def _slice(self, start, stop):
        return self._take(torch.arange(start, stop))

    def _take(self, index):
        # Even rows are new, odd ones are of the reservoir.
        block = self.empty(len(index))
        is_new = index % 2 == 0
        place = index // 2
        waiting = is_new & (place < len(self._waiting))
        current = is_new & ~waiting
        block[waiting] = self._waiting[place[waiting]]
        if current.any():
            block[current] = self._rows.gather(place[current] - len(self._waiting))
        block[~is_new] = self._reservoir[self._drawn[place[~is_new]]]
        return block
