"""Matrix products whose rows get the same bits at any place in a chunk.

A product with few columns is computed as scalar products, whose kernel treats a row that
starts at a multiple of 16 bytes differently from one that does not. Where the length of a row
is no such multiple, neighbouring rows round differently; zeros at its end cure that.
"""

import torch
from torch.nn import functional
from torch.overrides import TorchFunctionMode

_ALIGNMENT_BYTES = 16


class AlignedProducts(TorchFunctionMode):
    """Inside this block linear layers and matrix products see rows of 16 n bytes.

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
        if func in _PRODUCTS and not kwargs:
            return _product(func, *args)
        return func(*args, **kwargs)


_PRODUCTS = {torch.matmul, torch.Tensor.matmul, torch.Tensor.__matmul__, torch.mm, torch.Tensor.mm}


def _linear(input, weight, bias=None):
    n_missing = _missing_columns(input)
    if n_missing:
        input = functional.pad(input, (0, n_missing))
        weight = functional.pad(weight, (0, n_missing))
    return functional.linear(input, weight, bias)


def _product(func, left, right):
    n_missing = _missing_columns(left)
    if n_missing and right.ndim > 1:
        left = functional.pad(left, (0, n_missing))
        right = functional.pad(right.mT, (0, n_missing)).mT
    return func(left, right)


def _missing_columns(tensor):
    return -tensor.shape[-1] % max(1, _ALIGNMENT_BYTES // tensor.element_size())
