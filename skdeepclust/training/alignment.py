"""Matrix products whose rows get the same bits at any place in a chunk.

A product with few columns is computed as scalar products, by kernels that treat what starts
at a multiple of 16 bytes differently from what does not. Where the length of a row is no such
multiple, neighbouring rows round differently; zeros at their ends cure that.
"""

import torch
from torch.nn import functional
from torch.overrides import TorchFunctionMode

_ALIGNMENT_BYTES = 16


class AlignedProducts(TorchFunctionMode):
    """Inside this block linear layers and matrix products see aligned rows.

    Examples
    --------
    >>> import torch
    >>> from skdeepclust.training.alignment import AlignedProducts
    >>> rows, layer = torch.ones(16, 9), torch.nn.Linear(9, 4)
    >>> with torch.inference_mode(), AlignedProducts():
    ...     bool((layer(rows) == layer(rows)[0]).all())
    True
    """

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func is functional.linear:
            return _linear(*args, **kwargs)
        if func in _PRODUCTS and not kwargs and args[1].ndim == 2:
            left, right = args
            # Rows of the second factor would have to be aligned as well; as columns they are.
            return functional.linear(*_aligned(left, right.mT.contiguous()))
        return func(*args, **kwargs)


_PRODUCTS = {torch.matmul, torch.Tensor.matmul, torch.Tensor.__matmul__, torch.mm, torch.Tensor.mm}


def _linear(input, weight, bias=None):
    return functional.linear(*_aligned(input, weight), bias)


def _aligned(*factors):
    """Fill up the last dimension of both factors with zeros, to a multiple of 16 bytes."""
    n_values = max(1, _ALIGNMENT_BYTES // factors[0].element_size())
    n_missing = -factors[0].shape[-1] % n_values
    if not n_missing:
        return factors
    return [functional.pad(factor, (0, n_missing)) for factor in factors]
