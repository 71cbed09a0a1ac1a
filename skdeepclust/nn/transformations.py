"""Families of maps whose names a network learns to tell: the pseudo parent-classes.

Map 0 of every family is the identity. Those of images are permutations of pixels, without any
interpolation, and move all channels together; those of vectors are orthogonal, so that on
whitened rows no rule on means or covariances can tell them apart. A family is drawn once and
belongs to the weights of the network.

References
----------
Learning Latent Representations in Neural Networks for Clustering through Pseudo Supervision and
Graph-based Activity Regularization, arXiv:1802.03063.
"""

import math

import torch
from torch import nn

IMAGE_FAMILIES = ("dihedral", "rotations", "flips")
VECTOR_FAMILIES = ("cyclic", "signs", "haar", "permutation")

# How many maps each family can have; None stands for any number from 2 on.
_SIZES = {
    "dihedral": (8,),
    "rotations": (4, 2),
    "flips": (4, 2),
    "cyclic": None,
    "haar": None,
    "permutation": None,
}
_DEFAULT_SIZE_OF_VECTORS = 4
# More entries than this (a gigabyte) are not worth having: whitening makes the rows narrow.
_MAX_MATRIX_ENTRIES = 2**28


class PermutationTransformations(nn.Module):
    """Maps that move the values of a row: pixels within each channel, or columns.

    Parameters
    ----------
    index : Tensor of shape (n_transforms, n_places), dtype int64
        Place ``j`` of the result of map ``p`` is place ``index[p, j]`` of the row.
    persistent : bool, default=True
        Whether `index` is part of the saved weights; that of images follows from their shape.

    Examples
    --------
    >>> import torch
    >>> from skdeepclust.nn.transformations import PermutationTransformations
    >>> swap = PermutationTransformations(torch.tensor([[0, 1], [1, 0]]))
    >>> swap(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([0, 1]))
    tensor([[1., 2.],
            [4., 3.]])
    """

    def __init__(self, index, *, persistent=True):
        super().__init__()
        self.register_buffer("index", index, persistent=persistent)

    @property
    def n_transforms(self):
        """Number of maps, the identity among them."""
        return len(self.index)

    @property
    def n_distinct_up_to_sign(self):
        """Number of maps that a rule on covariances could tell apart."""
        return len(torch.unique(self.index, dim=0))

    def forward(self, rows, labels):
        """Return each row under the map that its label names."""
        n_places = self.index.shape[1]
        by_channel = rows.reshape(len(rows), -1, n_places)
        index = self.index[labels].unsqueeze(1).expand_as(by_channel)
        return by_channel.gather(2, index).reshape(rows.shape)


class OrthogonalTransformations(nn.Module):
    """Maps of vectors by orthogonal matrices.

    Parameters
    ----------
    matrices : Tensor of shape (n_transforms, n_features, n_features)
        Map ``p`` of the row ``x`` is ``matrices[p] @ x``.

    Examples
    --------
    >>> import torch
    >>> from skdeepclust.nn.transformations import OrthogonalTransformations
    >>> signs = OrthogonalTransformations(torch.tensor([[[1.0]], [[-1.0]]]))
    >>> signs(torch.tensor([[2.0], [3.0]]), torch.tensor([0, 1]))
    tensor([[ 2.],
            [-3.]])
    """

    def __init__(self, matrices):
        super().__init__()
        self.register_buffer("matrices", matrices)

    @property
    def n_transforms(self):
        """Number of maps, the identity among them."""
        return len(self.matrices)

    @property
    def n_distinct_up_to_sign(self):
        """Number of maps that a rule on covariances could tell apart."""
        kept = []
        for matrix in self.matrices.double():
            if all(
                (matrix - sign * other).abs().max() > 1e-4 for other in kept for sign in (1, -1)
            ):
                kept.append(matrix)
        return len(kept)

    def forward(self, rows, labels):
        """Return each row under the map that its label names."""
        # All maps of a row and the choice of one cost less than a matrix a row.
        images = torch.einsum("bi,pji->bpj", rows, self.matrices)
        return images[torch.arange(len(rows), device=rows.device), labels]


class CallableTransformations(nn.Module):
    """The user's own maps, after the identity.

    Parameters
    ----------
    callables : sequence of callable
        Each takes a batch of rows, a Tensor of shape ``(n, *row_shape)``, and returns one of
        the same shape.
    """

    def __init__(self, callables):
        super().__init__()
        # Not registered: what they are made of is neither trained nor saved here.
        self._callables = list(callables)

    @property
    def n_transforms(self):
        """Number of maps, the identity among them."""
        return len(self._callables) + 1

    @property
    def n_distinct_up_to_sign(self):
        """Number of maps that a rule on covariances could tell apart; all, for want of facts."""
        return self.n_transforms

    def forward(self, rows, labels):
        """Return each row under the map that its label names."""
        result = rows.clone()
        for number, transform in enumerate(self._callables, start=1):
            chosen = (labels == number).nonzero(as_tuple=True)[0]
            if len(chosen):
                result[chosen] = self._mapped(number, transform, rows[chosen])
        return result

    def _mapped(self, number, transform, rows):
        mapped = transform(rows)
        if not isinstance(mapped, torch.Tensor) or mapped.shape != rows.shape:
            found = tuple(mapped.shape) if hasattr(mapped, "shape") else type(mapped).__name__
            raise ValueError(
                f"transforms[{number - 1}] gave {found} for a batch of shape {tuple(rows.shape)}; "
                "each of the transforms must return a Tensor of the same shape."
            )
        return mapped


def image_transformations(family, n_transforms, row_shape):
    """Return a family of permutations of the pixels of ``(C, H, W)`` images.

    Parameters
    ----------
    family : {"dihedral", "rotations", "flips"}
        ``"dihedral"``: counter-clockwise by 0 to 3 quarter turns, then the same four mirrored
        left to right. ``"rotations"``: the four quarter turns, or identity and half turn.
        ``"flips"``: identity, half turn, left to right, upside down, or the first two; they
        keep the shape of an image that is not square.
    n_transforms : int or None
        Number of maps; None is the largest the family has.
    row_shape : tuple of int
        ``(C, H, W)``.

    Returns
    -------
    PermutationTransformations

    Raises
    ------
    ValueError
        If the family has no such number of maps, or needs square images.

    Examples
    --------
    >>> import torch
    >>> from skdeepclust.nn.transformations import image_transformations
    >>> turns = image_transformations("rotations", None, (1, 2, 2))
    >>> turns(torch.tensor([[[[1, 2], [3, 4]]]]), torch.tensor([1]))
    tensor([[[[2, 4],
              [1, 3]]]])
    """
    _, height, width = row_shape
    n_transforms = resolve_size(family, n_transforms)
    if family != "flips" and height != width:
        raise ValueError(
            f"transforms={family!r} needs square images, but X has images of {height} x {width} "
            "pixels; use transforms='flips'."
        )
    pixels = torch.arange(height * width).reshape(height, width)
    if family == "flips":
        maps = [pixels, pixels.flip(0, 1), pixels.flip(1), pixels.flip(0)][:n_transforms]
    else:
        turns = [torch.rot90(pixels, quarter) for quarter in range(4)]
        if family == "dihedral":
            maps = turns + [turned.flip(1) for turned in turns]
        else:
            maps = turns[:: 4 // n_transforms]
    index = torch.stack([moved.flatten() for moved in maps])
    return PermutationTransformations(index, persistent=False)


def vector_transformations(family, n_transforms, n_features, generator, dtype):
    """Return a family of orthogonal maps of vectors.

    Parameters
    ----------
    family : {"cyclic", "signs", "haar", "permutation"}
        ``"cyclic"``: rotations by multiples of ``2 pi / n_transforms`` in randomly drawn planes,
        powers of one matrix; of an odd number of features one axis stays. ``"signs"``: changes
        of sign by the rows of a Hadamard matrix. ``"haar"``: random orthogonal matrices.
        ``"permutation"``: random orders of the columns.
    n_transforms : int or None
        Number of maps; None is 4.
    n_features : int
        Length of a row. A single feature has identity and change of sign, whatever the family.
    generator : torch.Generator
        Draws what is random.
    dtype : torch.dtype
        Of the rows.

    Returns
    -------
    OrthogonalTransformations or PermutationTransformations

    Raises
    ------
    ValueError
        If the family has no such number of maps, or its matrices would fill a gigabyte.
    """
    if n_features == 1:
        return OrthogonalTransformations(torch.tensor([[[1.0]], [[-1.0]]], dtype=dtype))
    n_transforms = resolve_size(family, n_transforms)
    if family == "permutation":
        orders = [torch.arange(n_features)]
        orders += [torch.randperm(n_features, generator=generator) for _ in range(n_transforms - 1)]
        return PermutationTransformations(torch.stack(orders))
    if n_transforms * n_features**2 > _MAX_MATRIX_ENTRIES:
        raise ValueError(
            f"transforms={family!r} needs {n_transforms} matrices of {n_features} x {n_features} "
            "for X as it is scaled; use scaling='whiten', which keeps fewer columns, or "
            "transforms='permutation'."
        )
    if family == "signs":
        signs = _hadamard(n_transforms)[:, torch.arange(n_features) % n_transforms]
        matrices = torch.diag_embed(signs)
    elif family == "haar":
        matrices = torch.stack(
            [torch.eye(n_features, dtype=torch.float64)]
            + [_rotation(n_features, generator) for _ in range(n_transforms - 1)]
        )
    else:
        matrices = _cyclic_matrices(n_transforms, n_features, generator)
    return OrthogonalTransformations(matrices.to(dtype))


def padded_transformations(transformations, n_features):
    """Return maps that leave the columns alone which follow those of `transformations`.

    Parameters
    ----------
    transformations : OrthogonalTransformations or PermutationTransformations
        Maps of the leading columns.
    n_features : int
        Number of columns in all.
    """
    if isinstance(transformations, PermutationTransformations):
        index = transformations.index
        rest = torch.arange(index.shape[1], n_features).expand(len(index), -1)
        return PermutationTransformations(torch.cat([index, rest], dim=1))
    matrices = transformations.matrices
    rest = torch.eye(n_features - matrices.shape[1], dtype=matrices.dtype)
    return OrthogonalTransformations(
        torch.stack([torch.block_diag(matrix, rest) for matrix in matrices])
    )


def resolve_size(family, n_transforms):
    """Return how many maps a named family has, or say which numbers there are."""
    sizes = _sizes_of(family, n_transforms)
    if n_transforms is None:
        return sizes[0] if sizes else _DEFAULT_SIZE_OF_VECTORS
    if sizes is not None and n_transforms not in sizes:
        wanted = " or ".join(map(str, sorted(sizes)))
        raise ValueError(
            f"n_transforms={n_transforms} does not fit transforms={family!r}, which has {wanted}."
        )
    return n_transforms


def _sizes_of(family, n_transforms):
    if family == "signs":
        # A Hadamard matrix of Sylvester's kind has a power of two of rows.
        largest = n_transforms or _DEFAULT_SIZE_OF_VECTORS
        powers = [2**power for power in range(1, largest.bit_length() + 1)]
        return tuple(sorted(powers, key=lambda size: size != _DEFAULT_SIZE_OF_VECTORS))
    return _SIZES[family]


def _hadamard(size):
    matrix = torch.ones(1, 1, dtype=torch.float64)
    while len(matrix) < size:
        matrix = torch.cat([torch.cat([matrix, matrix], 1), torch.cat([matrix, -matrix], 1)])
    return matrix


def _rotation(n_features, generator):
    """Return a rotation drawn uniformly from all of them, float64."""
    normal = torch.randn(n_features, n_features, generator=generator, dtype=torch.float64)
    orthogonal, triangle = torch.linalg.qr(normal)
    # With these signs the distribution is uniform; without, it depends on the algorithm.
    orthogonal = orthogonal * triangle.diagonal().sign()
    if torch.linalg.det(orthogonal) < 0:
        orthogonal[:, 0] = -orthogonal[:, 0]
    return orthogonal


def _cyclic_matrices(n_transforms, n_features, generator):
    planes = _rotation(n_features, generator)
    matrices = [torch.eye(n_features, dtype=torch.float64)]
    for number in range(1, n_transforms):
        angle = 2 * math.pi * number / n_transforms
        turn = torch.tensor(
            [[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]],
            dtype=torch.float64,
        )
        blocks = [turn] * (n_features // 2) + [torch.ones(1, 1, dtype=torch.float64)] * (
            n_features % 2
        )
        matrices.append(planes @ torch.block_diag(*blocks) @ planes.T)
    return torch.stack(matrices)
