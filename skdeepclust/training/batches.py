"""Shuffled batches by whole slices: no per-row indexing, no global generator, no copy of X."""

from typing import NamedTuple

import torch


class Batch(NamedTuple):
    """Rows of one training step, and where they stand in X.

    Parameters
    ----------
    rows : Tensor of shape (n, *row_shape)
        Unscaled rows on the training device. The memory is reused by the next batch.
    row_numbers : Tensor of shape (n,)
        Row numbers in X, on the CPU.
    """

    rows: torch.Tensor
    row_numbers: torch.Tensor


class SlicingIterator:
    """One shuffled pass over a row source.

    The batches are of nearly equal size and at most `batch_size` rows: every row is seen
    once an epoch and no batch is so small that its gradient is noise.

    Parameters
    ----------
    rows : RowSource
        The data.
    batch_size : int
        Most rows in a batch.
    device : torch.device
        Where the batches go.
    generator : torch.Generator or None
        Draws the order; None keeps the order of the rows.
    """

    def __init__(self, rows, batch_size, device, generator=None):
        self.rows = rows
        self.device = torch.device(device)
        self.generator = generator
        self.n_batches = -(-len(rows) // batch_size)

    def __len__(self):
        return self.n_batches

    def __iter__(self):
        n_rows = len(self.rows)
        if self.generator is None:
            order = torch.arange(n_rows)
        else:
            order = torch.randperm(n_rows, generator=self.generator)
        # A fresh allocation a batch costs page faults that exceed the copy itself.
        buffer = self.rows.empty(-(-n_rows // self.n_batches))
        for index in torch.tensor_split(order, self.n_batches):
            rows = self.rows.gather(index, out=buffer)
            yield Batch(rows.to(self.device), index)
