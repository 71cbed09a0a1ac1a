"""Row sources: data of any container, read, cast and copied one batch at a time."""

import numpy as np
import torch

# Bytes read at once when statistics are gathered or finiteness is checked. They stay in the
# processor's cache, and what is computed from them is too small to leave holes in the heap.
_SCAN_BYTES = 2**19

_TORCH_DTYPES = {"float32": torch.float32, "float64": torch.float64}


class RowSource:
    """Rows of `X` as tensors of one dtype and shape, read batch by batch.

    Parameters
    ----------
    n_rows : int
        Number of rows.
    row_shape : tuple of int
        Shape of one row as the network sees it, ``(n_features,)`` or ``(C, H, W)``.
    dtype : {"float32", "float64"}
        Type of the tensors that are handed out.
    may_be_nonfinite : bool
        False for integer data, where the check for nan and infinity can be left out.
    """

    def __init__(self, n_rows, row_shape, dtype, may_be_nonfinite):
        self.n_rows = n_rows
        self.row_shape = tuple(row_shape)
        self.dtype = _TORCH_DTYPES[dtype]
        self.may_be_nonfinite = may_be_nonfinite

    def __len__(self):
        return self.n_rows

    @property
    def n_features(self):
        """Number of values in a row."""
        return int(np.prod(self.row_shape))

    def read(self, start, stop, out=None):
        """Return rows `start` to `stop` as a tensor of shape ``(stop - start, *row_shape)``.

        With `out`, a contiguous tensor of at least that many rows, the result is a view of it.
        """
        return self._deliver(self._slice(start, stop), stop - start, out)

    def gather(self, index, out=None):
        """Return the rows at the integer tensor `index`; see :meth:`read` for `out`."""
        return self._deliver(self._take(index), len(index), out)

    def scan_step(self):
        """Return how many rows make one step of a pass over the data."""
        itemsize = torch.empty((), dtype=self.dtype).element_size()
        return max(1, _SCAN_BYTES // max(1, self.n_features * itemsize))

    def empty(self, n_rows):
        """Return an uninitialised buffer for `n_rows` rows."""
        return torch.empty((n_rows, *self.row_shape), dtype=self.dtype)

    def _deliver(self, block, n_rows, out):
        tensor = block if isinstance(block, torch.Tensor) else _owned_tensor(block)
        tensor = tensor.reshape(n_rows, *self.row_shape)
        if out is None:
            return tensor.to(self.dtype)
        return out[:n_rows].copy_(tensor)


class ArrayRows(RowSource):
    """Rows of a NumPy array or memmap of any byte order and memory layout."""

    def __init__(self, array, row_shape, dtype):
        super().__init__(len(array), row_shape, dtype, array.dtype.kind == "f")
        # np.take is the fast way to gather, but copies the whole array when its memory
        # is not in C order; fancy indexing copies the wanted rows only.
        self._plain = array.flags.c_contiguous and array.dtype.isnative
        self._array = np.asarray(array)

    def gather(self, index, out=None):
        index = index.numpy()
        same_type = self._array.dtype == _numpy_dtype(self.dtype)
        if out is not None and self._plain and same_type and out.device.type == "cpu":
            view = out[: len(index)]
            target = view.numpy().reshape(len(index), *self._array.shape[1:])
            np.take(self._array, index, axis=0, out=target, mode="clip")
            return view
        return self._deliver(self._take(index), len(index), out)

    def _slice(self, start, stop):
        return self._native(self._array[start:stop])

    def _take(self, index):
        if self._plain:
            return np.take(self._array, np.asarray(index), axis=0)
        return self._native(self._array[np.asarray(index)])

    @staticmethod
    def _native(block):
        return block if block.dtype.isnative else block.astype(block.dtype.newbyteorder("="))


class TensorRows(RowSource):
    """Rows of a torch tensor, on whatever device it lies."""

    def __init__(self, tensor, row_shape, dtype):
        tensor = tensor.detach()
        super().__init__(len(tensor), row_shape, dtype, tensor.is_floating_point())
        self._tensor = tensor

    def _slice(self, start, stop):
        return self._tensor[start:stop]

    def _take(self, index):
        return self._tensor.index_select(0, index.to(self._tensor.device))

    def gather(self, index, out=None):
        tensor = self._tensor
        fits = (
            out is not None
            and tensor.dtype == out.dtype
            and tensor.device == out.device
            and tensor.shape[1:] == out.shape[1:]
        )
        if fits:
            view = out[: len(index)]
            return torch.index_select(tensor, 0, index, out=view)
        return self._deliver(self._take(index), len(index), out)


class SparseRows(RowSource):
    """Rows of a CSR matrix; a batch at a time becomes dense."""

    def __init__(self, matrix, row_shape, dtype):
        super().__init__(matrix.shape[0], row_shape, dtype, matrix.dtype.kind == "f")
        self._matrix = matrix

    def _slice(self, start, stop):
        return self._matrix[start:stop].toarray()

    def _take(self, index):
        return self._matrix[np.asarray(index)].toarray()


class PandasRows(RowSource):
    """Rows of a pandas frame of numeric columns."""

    def __init__(self, frame, row_shape, dtype):
        super().__init__(len(frame), row_shape, dtype, True)
        self._frame = frame
        self._numpy_dtype = _numpy_dtype(self.dtype)

    def _slice(self, start, stop):
        return self._convert(self._frame.iloc[start:stop])

    def _take(self, index):
        return self._convert(self._frame.take(np.asarray(index)))

    def _convert(self, block):
        return block.to_numpy(dtype=self._numpy_dtype, na_value=np.nan)


class PolarsRows(RowSource):
    """Rows of a polars frame of numeric columns."""

    def __init__(self, frame, row_shape, dtype):
        super().__init__(len(frame), row_shape, dtype, True)
        self._frame = frame
        self._numpy_dtype = _numpy_dtype(self.dtype)

    def _slice(self, start, stop):
        return self._frame[start:stop].to_numpy().astype(self._numpy_dtype, copy=False)

    def _take(self, index):
        return self._frame[np.asarray(index)].to_numpy().astype(self._numpy_dtype, copy=False)


def _numpy_dtype(torch_dtype):
    return np.dtype(str(torch_dtype).removeprefix("torch."))


def _owned_tensor(block):
    """Return a tensor over `block`; torch wants writable memory with positive strides."""
    wide_unsigned = block.dtype.kind == "u" and block.dtype.itemsize > 1
    if wide_unsigned or block.dtype.itemsize > 8:
        # Types that torch lacks, or can hold but not compute with.
        block = block.astype(np.float64)
    # A single row of a reversed view counts as contiguous although its stride is negative.
    forward = min(block.strides) >= 0
    if not (block.flags.writeable and block.flags.c_contiguous and forward):
        block = block.copy(order="C")
    return torch.from_numpy(block)
