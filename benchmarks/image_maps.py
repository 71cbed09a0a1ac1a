"""Maps of images beside turns and mirrors, which the method is told not to learn from."""

import math

import torch
from torch.nn import functional


def _affine(matrix):
    """Return a map that resamples images by the inverse of `matrix`, zeros around them."""

    def apply(rows):
        theta = torch.tensor(matrix, dtype=rows.dtype, device=rows.device).expand(len(rows), 2, 3)
        grid = functional.affine_grid(theta, rows.shape, align_corners=False)
        return functional.grid_sample(rows, grid, align_corners=False)

    return apply


def _turn(degrees):
    angle = math.radians(degrees)
    return _affine(
        [[math.cos(angle), -math.sin(angle), 0.0], [math.sin(angle), math.cos(angle), 0.0]]
    )


def _shift(down, right):
    return lambda rows: rows.roll((down, right), dims=(-2, -1))


def _permute(seed):
    def apply(rows):
        n_pixels = rows.shape[-2] * rows.shape[-1]
        order = torch.randperm(n_pixels, generator=torch.Generator().manual_seed(seed))
        return rows.flatten(2)[:, :, order.to(rows.device)].reshape(rows.shape)

    return apply


IMAGE_MAPS = {
    "mirror": [lambda rows: rows.flip(-1)],
    "shear": [_affine([[1, s, 0], [0, 1, 0]]) for s in (0.5, -0.5)],
    "scale": [_affine([[s, 0, 0], [0, s, 0]]) for s in (1.5, 0.75)],
    "translate": [_shift(3, 0), _shift(-3, 0), _shift(0, 3), _shift(0, -3)],
    "pixel permutation": [_permute(seed) for seed in range(7)],
    "turns by 45 degrees": [_turn(45 * k) for k in range(1, 8)],
}
