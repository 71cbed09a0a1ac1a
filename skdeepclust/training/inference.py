"""The one door of every predict-like pass: chunks of one constant shape.

Matrix products of different shapes round differently in float32. When every pass has the same
shape, the last chunk filled up with zeros, and its rows are aligned alike, a row gets the same
bits in any company.
"""

import torch

from .._validation import check_finite
from .alignment import AlignedProducts

# Rows that show whether a network still gives numbers.
_PROBE_ROWS = 32


@torch.inference_mode()
def embedding_is_finite(network, rows, device):
    """Whether the first rows have a finite embedding: weights can overflow in the last step."""
    probe = rows.read(0, min(_PROBE_ROWS, len(rows))).to(device)
    return bool(torch.isfinite(network(probe)).all())


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
        """Return ``then(network(rows))`` for all rows, on the CPU."""
        result = None
        for start, stop, chunk in self.chunks(rows, then, estimator_name=estimator_name):
            if result is None:
                result = torch.empty((len(rows), *chunk.shape[1:]), dtype=chunk.dtype)
            result[start:stop] = chunk
        return result

    @torch.inference_mode()
    def chunks(self, rows, then=None, *, estimator_name="estimator"):
        """Yield ``start, stop, then(network(rows[start:stop]))``, padding already dropped."""
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
                    value = self.network(buffer[start : start + size].to(self.device))
                    if then is not None:
                        value = then(value)
                yield block_start + start, block_start + start + n_valid, value[:n_valid].cpu()
