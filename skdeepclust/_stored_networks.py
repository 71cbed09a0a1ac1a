"""Networks in files: the checked description, and the network that weights are put into."""

import copy

from .nn.network import NetworkDescription, check_size, rebuild_network
from .nn.transformation_network import (
    TransformationNetworkDescription,
    n_built_values,
    rebuild_transformation_network,
)
from .training.seeds import isolated_torch_randomness

_ENCODERS = {"auto", "mlp", "conv", "identity", "own"}
_SCALINGS = {"standard", "common", "range", "unit", "whiten", None}
_DTYPES = {"float16", "bfloat16", "float32", "float64"}


def checked_description(fields):
    """Return the description of a network after checking each field.

    Parameters
    ----------
    fields : dict
        As a file holds them.

    Raises
    ------
    TypeError, ValueError
        When they are not those of any network.
    """
    if "transforms" in fields:
        found = TransformationNetworkDescription(**fields)
        _check_transformations(found)
    else:
        found = NetworkDescription(**fields)
        require(type(found.bounded) is bool, "bounded is not true or false")
        require(type(found.dropout) is float and 0 <= found.dropout < 1, "dropout is no rate")
    require(is_shape(found.row_shape), "row_shape is no shape")
    require(found.encoder in _ENCODERS, "unknown encoder")
    widths = found.hidden_dims
    require(type(widths) is tuple and all(map(is_natural, widths)), "hidden_dims are no widths")
    require(is_natural(found.embedding_dim), "embedding_dim is no size")
    require(found.scaling in _SCALINGS, "unknown scaling")
    require(found.dtype in _DTYPES, "unknown type")
    return found


def _check_transformations(found):
    require(type(found.transforms) is str, "transforms is no name")
    for name in ("n_transforms", "n_duplicates"):
        require(is_natural(getattr(found, name)), f"{name} is no number")
    for name in ("averages", "normalizes"):
        require(type(getattr(found, name)) is bool, f"{name} is not true or false")
    whitens = found.scaling == "whiten"
    is_width = is_natural(found.whitened_dim) if whitens else found.whitened_dim is None
    require(is_width, "whitened_dim is no size")


def needs_transforms(description):
    """Whether the network was fitted with transformations of the user's code."""
    return getattr(description, "transforms", None) == "own"


def rebuild(description, weights, own_encoder=None, own_transforms=None):
    """Return the network that `description` and `weights` were taken from.

    Parameters
    ----------
    description : NetworkDescription or TransformationNetworkDescription
        Checked.
    weights : dict of str to Tensor
        Its `state_dict`.
    own_encoder : Module or callable, default=None
        The user's encoder, which is copied.
    own_transforms : list of callable, default=None
        The user's transformations.

    Raises
    ------
    ValueError
        When they do not fit each other.
    """
    own_encoder = copy.deepcopy(own_encoder)
    # Layers draw their first weights from the global generator, which is not to move.
    with isolated_torch_randomness(0):
        if isinstance(description, NetworkDescription):
            check_size(description, weights)
            return rebuild_network(description, weights, own_encoder=own_encoder)
        check_size(description, weights, n_built_values)
        return rebuild_transformation_network(
            description, weights, own_encoder=own_encoder, own_transforms=own_transforms or ()
        )


def is_shape(value):
    """Whether `value` is the shape of a vector or an image."""
    return type(value) is tuple and len(value) in (1, 3) and all(map(is_natural, value))


def is_natural(value):
    """Whether `value` is a positive integer."""
    return type(value) is int and value > 0


def require(condition, detail):
    """Raise ValueError with `detail` unless `condition` holds."""
    if not condition:
        raise ValueError(detail)
