"""The network that learns to name transformations: representation, and pooled softmax units.

References
----------
Learning Latent Representations in Neural Networks for Clustering through Pseudo Supervision and
Graph-based Activity Regularization, arXiv:1802.03063.
"""

from dataclasses import dataclass, replace

import torch
from torch import nn

from .encoders import StagedEncoder, initialise_weights, relu_conv_encoder, relu_mlp_encoder
from .network import EmbeddingNetwork, users_encoder, with_weights
from .scaling import InputScaling, PrincipalWhitening
from .transformations import (
    IMAGE_FAMILIES,
    VECTOR_FAMILIES,
    CallableTransformations,
    OrthogonalTransformations,
    PermutationTransformations,
    image_transformations,
)

_DROPOUT_OF_MLP = 0.2
_DROPOUT_OF_HEAD = {True: 0.5, False: 0.2}


@dataclass(frozen=True)
class TransformationNetworkDescription:
    """What a :class:`TransformationNetwork` is built from, but its weights and a user's parts.

    Parameters
    ----------
    row_shape : tuple of int
        ``(n_features,)`` or ``(C, H, W)``.
    encoder : {"auto", "mlp", "conv", "own"}
        ``"own"`` is a module or callable of the user.
    hidden_dims : tuple of int
        Widths of the MLP.
    embedding_dim : int
        Width of the representation.
    scaling : {"whiten", "standard", "common", "range", "unit"} or None
        How the input is scaled.
    whitened_dim : int or None
        Number of principal components, with ``scaling="whiten"``.
    dtype : str
        Name of the torch type of rows and weights.
    transforms : str
        Name of the family, or ``"own"``.
    n_transforms, n_duplicates : int
        Numbers of maps, and of softmax units for each of them.
    averages : bool
        Whether the representation is the mean over all maps of a row.
    normalizes : bool
        Whether the representation is given unit length.
    """

    row_shape: tuple
    encoder: str
    hidden_dims: tuple
    embedding_dim: int
    scaling: str | None
    whitened_dim: int | None
    dtype: str
    transforms: str
    n_transforms: int
    n_duplicates: int
    averages: bool
    normalizes: bool

    @property
    def is_image(self):
        """Whether rows are images; their maps act before the scaling, those of vectors after."""
        return len(self.row_shape) == 3

    @property
    def encoder_shape(self):
        """Shape of a row that the encoder is given."""
        return self.row_shape if self.whitened_dim is None else (self.whitened_dim,)


class AutoClusteringHead(nn.Module):
    """Affine map to softmax units, of which each parent has several duplicates.

    Unit ``j`` belongs to parent ``j mod n_parents``. The pooling of the units is part of the
    loss, :func:`~skdeepclust.losses.pooled_log_probabilities`.

    Parameters
    ----------
    embedding_dim : int
        Width of the representation.
    n_parents, n_duplicates : int
        Numbers of parents, and of units for each of them.
    dropout : float, default=0.0
        Rate on the representation during training.

    Examples
    --------
    >>> import torch
    >>> from skdeepclust.nn.transformation_network import AutoClusteringHead
    >>> AutoClusteringHead(16, n_parents=8, n_duplicates=20)(torch.zeros(3, 16)).shape
    torch.Size([3, 160])
    """

    def __init__(self, embedding_dim, n_parents, n_duplicates, dropout=0.0):
        super().__init__()
        self.n_parents = n_parents
        self.dropout = nn.Dropout(dropout)
        self.linear = nn.Linear(embedding_dim, n_parents * n_duplicates)

    def forward(self, representation):
        return self.linear(self.dropout(representation))

    def slots(self, representation, parent=0):
        """Return the softmax over the duplicates of one parent, shape (n, n_duplicates)."""
        logits = self.linear(representation).unflatten(1, (-1, self.n_parents))
        return logits[:, :, parent].softmax(dim=1)


class TransformationNetwork(EmbeddingNetwork):
    """Rows to representation, and transformed rows to the softmax inputs of a head.

    Parameters
    ----------
    description : TransformationNetworkDescription
        What is built; see there.
    scaling : InputScaling
        The fitted input scaling.
    encoder : Module
        Maps scaled rows to the representation.
    transformations : Module
        The family of maps.
    """

    def __init__(self, description, scaling, encoder, transformations):
        super().__init__(scaling, encoder)
        self.transformations = transformations
        self.head = AutoClusteringHead(
            description.embedding_dim,
            description.n_transforms,
            description.n_duplicates,
            _DROPOUT_OF_HEAD[description.is_image],
        )
        self.description = description

    def forward(self, rows):
        if self.description.averages:
            views = range(self.transformations.n_transforms)
            representation = sum(self._view(rows, number) for number in views) / len(views)
        else:
            representation = self.encoder(self.scaling(rows))
        if self.description.normalizes:
            representation = nn.functional.normalize(representation)
        return representation

    def transformed(self, rows, labels):
        """Return the representation of each row under the map that its label names."""
        if self.description.is_image:
            return self.encoder(self.scaling(self.transformations(rows, labels)))
        return self.encoder(self.transformations(self.scaling(rows), labels))

    def softmax_inputs(self, rows, labels):
        """Return the softmax inputs of each row under the map that its label names."""
        return self.head(self.transformed(rows, labels))

    def _view(self, rows, number):
        return self.transformed(rows, torch.full((len(rows),), number, device=rows.device))


def build_transformation_network(
    description, scaling, transformations, *, own_encoder=None, generator=None
):
    """Return the network that `description` tells of.

    Parameters
    ----------
    description : TransformationNetworkDescription
        What to build.
    scaling : InputScaling
        The fitted input scaling.
    transformations : Module
        The family of maps.
    own_encoder : Module or callable, default=None
        The user's encoder, a copy to work on, where the description says ``"own"``.
    generator : torch.Generator, default=None
        Draws the initial weights of the parts built here.

    Returns
    -------
    TransformationNetwork
    """
    shape, width = description.encoder_shape, description.embedding_dim
    if description.encoder == "own":
        encoder = StagedEncoder([users_encoder(own_encoder, shape, width)])
    else:
        encoder = _named_encoder(description)
        initialise_weights(encoder, generator)
    network = TransformationNetwork(description, scaling, encoder, transformations)
    initialise_weights(network.head, generator)
    return network.to(getattr(torch, description.dtype))


def rebuild_transformation_network(description, weights, *, own_encoder=None, own_transforms=()):
    """Return the network that `description` and `weights` were taken from, ready to predict.

    Parameters
    ----------
    description : TransformationNetworkDescription
        Of the network.
    weights : dict of str to Tensor
        Its `state_dict`.
    own_encoder : Module or callable, default=None
        As in :func:`build_transformation_network`.
    own_transforms : sequence of callable, default=()
        The user's own maps.

    Returns
    -------
    TransformationNetwork

    Raises
    ------
    ValueError
        When the weights are those of another network.
    """
    scaling = _scaling_of(description, weights)
    transformations = _transformations_of(description, weights, own_transforms)
    network = build_transformation_network(
        description, scaling, transformations, own_encoder=own_encoder
    )
    return with_weights(network, weights)


def n_built_values(description):
    """Return how many weights the parts have that are built here, without building them."""
    has_own_encoder = description.encoder == "own"
    stand_in = replace(description, encoder="mlp") if has_own_encoder else description
    with torch.device("meta"):
        network = build_transformation_network(stand_in, nn.Identity(), nn.Identity())
    parts = network.head if has_own_encoder else network
    return sum(parameter.numel() for parameter in parts.parameters())


def _named_encoder(description):
    shape, width = description.encoder_shape, description.embedding_dim
    if description.encoder == "conv" and not description.is_image:
        raise ValueError(
            f"encoder='conv' needs images, but X has rows of shape {shape}; pass "
            "image_shape=(C, H, W) or X of shape (n, C, H, W)."
        )
    if description.encoder == "mlp" or not description.is_image:
        return relu_mlp_encoder(shape, description.hidden_dims, width, dropout=_DROPOUT_OF_MLP)
    return relu_conv_encoder(shape, width)


def _scaling_of(description, weights):
    parts = [weights["scaling.shift"].clone(), weights["scaling.factor"].clone()]
    if any(part.shape not in {(), description.row_shape} for part in parts):
        raise ValueError("the scaling does not fit the rows")
    if description.scaling != "whiten":
        return InputScaling(*parts)
    components = weights["scaling.components"].clone()
    if components.shape != (*description.row_shape, description.whitened_dim):
        raise ValueError(f"components of shape {tuple(components.shape)} do not fit the rows")
    return PrincipalWhitening(*parts, components)


def _transformations_of(description, weights, own_transforms):
    """Return the family of maps; that of vectors is part of the weights."""
    if description.transforms == "own":
        found = CallableTransformations(own_transforms)
    elif description.transforms in IMAGE_FAMILIES and description.is_image:
        found = image_transformations(
            description.transforms, description.n_transforms, description.row_shape
        )
    elif description.transforms in VECTOR_FAMILIES and not description.is_image:
        found = _vector_family_of(description.encoder_shape[0], weights)
    else:
        raise ValueError(f"unknown transforms {description.transforms!r}")
    if found.n_transforms != description.n_transforms:
        raise ValueError(
            f"transforms: {description.n_transforms} maps were stored, the identity among them, "
            f"but there are {found.n_transforms}"
        )
    return found


def _vector_family_of(n_features, weights):
    if "transformations.index" in weights:
        index = weights["transformations.index"].clone()
        expected = torch.arange(n_features).expand(len(index), -1)
        if index.dtype != torch.int64 or not torch.equal(index.sort(dim=1)[0], expected):
            raise ValueError("transformations.index holds no orders of the columns")
        return PermutationTransformations(index)
    matrices = weights["transformations.matrices"].clone()
    if matrices.shape[1:] != (n_features, n_features):
        raise ValueError(f"matrices of shape {tuple(matrices.shape)} do not fit the rows")
    return OrthogonalTransformations(matrices)
