"""From the parameters of an estimator to its family of transformations and its network."""

import copy
from dataclasses import dataclass

from ._warnings import warn_user
from .exceptions import PretextWarning
from .nn.scaling import fit_scaling
from .nn.transformation_network import (
    TransformationNetworkDescription,
    build_transformation_network,
)
from .nn.transformations import (
    IMAGE_FAMILIES,
    VECTOR_FAMILIES,
    CallableTransformations,
    image_transformations,
    padded_transformations,
    vector_transformations,
)
from .training.seeds import derive_seed, isolated_torch_randomness, torch_generator
from .training.whitening import fit_whitening

_EMBEDDING_DIM_OF_IMAGES = 2048
_EMBEDDING_DIM_OF_VECTORS = 256


@dataclass(frozen=True)
class Settings:
    """The parameters of an estimator that shape its network, as the user gave them."""

    n_clusters: int
    transforms: object
    n_transforms: int | None
    n_duplicates: int
    encoder: object
    hidden_dims: tuple
    embedding_dim: object
    scaling: str | None
    averages: bool
    normalizes: bool


def new_transformation_network(settings, rows, statistics, seed, batch_size):
    """Return a network with fitted scaling, drawn transformations and drawn weights.

    Parameters
    ----------
    settings : Settings
        Parameters of the estimator.
    rows : RowSource
        Training rows.
    statistics : ColumnStatistics
        Of these rows.
    seed : int
        Of the fit.
    batch_size : int
        Rows of a batch: it has to hold one for each softmax unit.
    """
    is_image = len(rows.row_shape) == 3
    scaling_name, scaling = _fitted_scaling(settings, rows, statistics, seed)
    whitened_dim = scaling.components.shape[1] if scaling_name == "whiten" else None
    family, transformations = _transformations(settings, rows, scaling, seed)
    embedding_dim = settings.embedding_dim
    if isinstance(embedding_dim, str):
        embedding_dim = _EMBEDDING_DIM_OF_IMAGES if is_image else _EMBEDDING_DIM_OF_VECTORS
    is_named = isinstance(settings.encoder, str)
    description = TransformationNetworkDescription(
        row_shape=rows.row_shape,
        encoder=settings.encoder if is_named else "own",
        hidden_dims=settings.hidden_dims,
        embedding_dim=int(embedding_dim),
        scaling=scaling_name,
        whitened_dim=whitened_dim,
        dtype=str(rows.dtype).removeprefix("torch."),
        transforms=family,
        n_transforms=transformations.n_transforms,
        n_duplicates=_fitting_duplicates(settings, transformations.n_transforms, batch_size),
        averages=settings.averages,
        normalizes=settings.normalizes,
    )
    with isolated_torch_randomness(derive_seed(seed, "construction")):
        return build_transformation_network(
            description,
            scaling,
            transformations,
            own_encoder=None if is_named else copy.deepcopy(settings.encoder),
            generator=torch_generator(seed, "weights"),
        )


def _fitted_scaling(settings, rows, statistics, seed):
    is_image = len(rows.row_shape) == 3
    name = settings.scaling
    if name == "auto":
        name = "unit" if is_image else "whiten"
    if name != "whiten":
        return name, fit_scaling(statistics, name, rows.row_shape, rows.dtype)
    if is_image:
        raise ValueError(
            "scaling='whiten' is for vectors, but X has images; use 'auto', 'unit' or 'range'."
        )
    # A module of the user has a fixed width; a callable is told it.
    keeps_width = not isinstance(settings.encoder, str) and hasattr(settings.encoder, "parameters")
    seed = derive_seed(seed, "whitening")
    return name, fit_whitening(rows, statistics, settings.n_clusters, seed, keeps_width=keeps_width)


def _transformations(settings, rows, scaling, seed):
    """Return the name of the family and its maps."""
    transforms = settings.transforms
    if not isinstance(transforms, str):
        return "own", _users_transformations(transforms, settings.n_transforms)
    is_image = len(rows.row_shape) == 3
    if transforms == "auto":
        transforms = _default_family(rows.row_shape)
    known = IMAGE_FAMILIES if is_image else VECTOR_FAMILIES
    if transforms not in known:
        raise ValueError(
            f"transforms={transforms!r} is not for {'images' if is_image else 'vectors'}; choose "
            f"one of {', '.join(map(repr, known))}, or pass image_shape=(C, H, W) if the rows of "
            "X are images."
        )
    if is_image:
        return transforms, image_transformations(transforms, settings.n_transforms, rows.row_shape)
    n_features = n_moved = rows.n_features
    if hasattr(scaling, "components"):
        # Zeros may follow the components, to keep the width of the rows.
        n_features = scaling.components.shape[1]
        n_moved = max(1, int(scaling.components.any(dim=0).sum()))
    generator = torch_generator(seed, "transformations")
    found = vector_transformations(
        transforms, settings.n_transforms, n_moved, generator, rows.dtype
    )
    return transforms, padded_transformations(found, n_features)


def _default_family(row_shape):
    if len(row_shape) == 1:
        return "cyclic"
    _, height, width = row_shape
    if height == width:
        return "dihedral"
    warn_user(
        f"The images of {height} x {width} pixels are not square, so the quarter turns are left "
        "out of the transformations: 4 are used in place of 8. Crop or pad the images to use all.",
        PretextWarning,
    )
    return "flips"


def _users_transformations(transforms, n_transforms):
    if not transforms or not all(map(callable, transforms)):
        raise TypeError(
            f"transforms must be 'auto', a name, or a list of callables, got {transforms!r}."
        )
    if n_transforms not in (None, len(transforms) + 1):
        raise ValueError(
            f"n_transforms={n_transforms}, but transforms holds {len(transforms)} callables and "
            f"the identity comes before them; leave n_transforms=None."
        )
    return CallableTransformations(transforms)


def _fitting_duplicates(settings, n_transforms, batch_size):
    """Return `n_duplicates`, or as many as a batch has rows for."""
    n_most = max(1, batch_size // n_transforms)
    if settings.n_duplicates > n_most:
        warn_user(
            f"n_duplicates={settings.n_duplicates} for each of {n_transforms} transformations are "
            f"more softmax units than the {batch_size} rows of a batch can balance; {n_most} "
            "duplicates are used. Pass more rows, a larger batch_size or fewer n_duplicates.",
            PretextWarning,
        )
    return min(settings.n_duplicates, n_most)
