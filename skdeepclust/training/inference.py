"""The one door of every predict-like pass: chunks of one constant shape.

Matrix products of different shapes round differently in float32. When every pass has the same
shape, the last chunk filled up with zeros, and its rows are aligned alike, a row gets the same
bits in any company.
"""

import torch

from .._validation import check_finite
from .alignment import AlignedProducts

# Values of embedding that are read out at once. What follows the network are many small
# operations, of which each costs more than its arithmetic on a single chunk would.
_BLOCK_VALUES = 2**14

# Rows that show whether a network still gives numbers.
_PROBE_ROWS = 32


@torch.inference_mode()
def embedding_is_finite(network, rows, device):
    """Whether the first rows have a finite embedding: weights can overflow in the last step."""
    probe = rows.read(0, min(_PROBE_ROWS, len(rows))).to(device)
    return bool(torch.isfinite(network(probe)).all())


def in_float64(tensor):
    """Return `tensor` in float64; mps has none, so it moves to the CPU there."""
    return tensor.cpu().double() if tensor.device.type == "mps" else tensor.double()


def distances_in_float64(z, centers):
    """Return squared distances of a block to centres, with the same bits at any place in it."""
    z = in_float64(z)
    # The way by matrix products would cancel digits, and round by the place of a row.
    mode = "donot_use_mm_for_euclid_dist"
    return torch.cdist(z, centers.to(z.device), compute_mode=mode).square()


class ChunkedForward:
    """Apply a network, and what follows it, to chunks of constant shape.

    Parameters
    ----------
    network : Module
        The network; it has to be in evaluation mode.
    chunk_rows : int
        Rows in each chunk.
    device : torch.device or str
        Where the network lies.

    Examples
    --------
    >>> import numpy as np
    >>> from torch import nn
    >>> from skdeepclust._validation import open_rows
    >>> from skdeepclust.training.inference import ChunkedForward
    >>> forward = ChunkedForward(nn.Identity(), chunk_rows=2, device="cpu")
    >>> forward(open_rows(np.ones((3, 2)))).shape
    torch.Size([3, 2])
    """

    def __init__(self, network, chunk_rows, device):
        self.network = network
        self.chunk_rows = chunk_rows
        self.device = torch.device(device)

    def __call__(self, rows, then=None, *, estimator_name="estimator"):
        """Return ``then(network(rows))`` for all rows, on the CPU.

        `then` is given blocks of embedding of one constant shape; it works row by row.
        """
        if then is None:
            return _joined(len(rows), self.chunks(rows, estimator_name=estimator_name))
        pieces = self._embedded(rows, estimator_name)
        return _joined(len(rows), self._read_outs(len(rows), pieces, then))

    def read_out(self, embedding, then):
        """Return ``then(embedding)`` with the bits that a call with the rows would give.

        `embedding` is what a call without `then` has returned.
        """
        n_rows, size = len(embedding), self.chunk_rows
        pieces = (
            (start, min(start + size, n_rows), embedding[start : start + size].to(self.device))
            for start in range(0, n_rows, size)
        )
        return _joined(n_rows, self._read_outs(n_rows, pieces, then))

    def chunks(self, rows, *, estimator_name="estimator"):
        """Yield ``start, stop, network(rows[start:stop])`` on the CPU, padding dropped."""
        for start, stop, z in self._embedded(rows, estimator_name):
            yield start, stop, z.cpu()

    @torch.inference_mode()
    def _embedded(self, rows, estimator_name):
        """Yield ``start, stop, network(rows[start:stop])`` on the device."""
        size = self.chunk_rows
        block_rows = size * max(1, min(rows.scan_step(), len(rows)) // size)
        buffer = rows.empty(block_rows)
        for block_start in range(0, len(rows), block_rows):
            block_stop = min(block_start + block_rows, len(rows))
            block = rows.read(block_start, block_stop, out=buffer)
            if rows.may_be_nonfinite:
                check_finite(block, str(rows.dtype).removeprefix("torch."), estimator_name)
            for start in range(0, len(block), size):
                n_valid = min(size, len(block) - start)
                if n_valid < size:
                    buffer[start + n_valid : start + size] = 0
                with AlignedProducts():
                    z = self.network(buffer[start : start + size].to(self.device))
                yield block_start + start, block_start + start + n_valid, z[:n_valid]

    @torch.inference_mode()
    def _read_outs(self, n_rows, pieces, then):
        """Yield ``start, stop, then(embedding[start:stop])`` on the CPU."""
        block, first = None, 0
        for start, stop, z in pieces:
            if block is None:
                block = z.new_empty((self._rows_of_a_block(z.shape[1]), *z.shape[1:]))
            block[start - first : stop - first] = z
            if stop - first == len(block) or stop == n_rows:
                block[stop - first :] = 0
                with AlignedProducts():
                    value = then(block)
                yield first, stop, value[: stop - first].cpu()
                first = stop

    def _rows_of_a_block(self, width):
        """Return how many rows of embedding are read out at once: whole chunks."""
        return self.chunk_rows * max(1, _BLOCK_VALUES // (self.chunk_rows * width))


def _joined(n_rows, pieces):
    """Return one tensor of ``start, stop, values`` pieces."""
    result = None
    for start, stop, values in pieces:
        if result is None:
            result = torch.empty((n_rows, *values.shape[1:]), dtype=values.dtype)
        result[start:stop] = values
    return result
