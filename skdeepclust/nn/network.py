"""The network every estimator holds: scaling, encoder, and what the method adds to them."""

import inspect
from dataclasses import dataclass, replace

import torch
from torch import nn

from .dual_competitive_layer import DualCompetitiveLayer, FreePrototypeLayer
from .encoders import StagedEncoder, conv_autoencoder, initialise_weights, mlp_autoencoder
from .head import LinearHead
from .scaling import InputScaling

# Multiplications in a chunk up to which its call costs as much as its arithmetic, and in a row
# from which on a chunk is kept small for the sake of a single row.
_CHEAP_CHUNK = 2**24
_COSTLY_ROW = 2**21


@dataclass(frozen=True)
class NetworkDescription:
    """What an :class:`EmbeddingNetwork` is built from, but its weights and a user's encoder.

    Parameters
    ----------
    row_shape : tuple of int
        ``(n_features,)`` or ``(C, H, W)``.
    encoder : {"auto", "mlp", "conv", "identity", "own"}
        ``"own"`` is a module or callable of the user.
    hidden_dims : tuple of int
        Widths of the MLP.
    embedding_dim : int
        Size of the embedding.
    bounded : bool
        Whether the embedding passes through tanh.
    scaling : {"standard", "common", "range"} or None
        How the input is scaled.
    dropout : float
        Rate of the noisy pass.
    dtype : str
        Name of the torch type of rows and weights.
    """

    row_shape: tuple
    encoder: str
    hidden_dims: tuple
    embedding_dim: int
    bounded: bool
    scaling: str | None
    dropout: float
    dtype: str


class EmbeddingNetwork(nn.Module):
    """Rows to embedding: ``encoder(scaling(rows))``, with a decoder for the training.

    Parameters
    ----------
    scaling : Module
        The fitted input scaling.
    encoder : Module
        Maps scaled rows to the embedding.
    decoder : Module or None, default=None
        Maps the embedding to the reconstructed levels; None for a method without one.
    dropout : sequence of float, default=()
        Rates of the noisy pass, one before each stage of the encoder.

    Attributes
    ----------
    head : LinearHead or None
        Embedding to the logits of the clusters, for a method that has a classifier;
        see :func:`add_head`.
    competition : DualCompetitiveLayer, FreePrototypeLayer or None
        Embedding of the anchors to prototypes, for a method that learns them so;
        see :func:`add_competition`.
    description : NetworkDescription or None
        What it was built from, when :func:`build_network` did it.

    Examples
    --------
    >>> import torch
    >>> from torch import nn
    >>> from skdeepclust.nn.network import EmbeddingNetwork
    >>> EmbeddingNetwork(nn.Identity(), nn.Linear(3, 2))(torch.zeros(4, 3)).shape
    torch.Size([4, 2])
    """

    def __init__(self, scaling, encoder, decoder=None, dropout=()):
        super().__init__()
        self.scaling = scaling
        self.encoder = encoder
        self.decoder = decoder
        self.dropout = tuple(dropout)
        self.head = None
        self.competition = None
        self.description = None

    def forward(self, rows):
        return self.encoder(self.scaling(rows))

    def denoise(self, rows):
        """Return the noisy embedding, the clean levels and the levels the decoder gives."""
        rows = self.scaling(rows)
        embedding = self.encoder.corrupted(rows, self.dropout)
        return embedding, self.encoder.levels(rows), self.decoder(embedding)

    @property
    def has_learnt_embedding(self):
        """Whether the embedding is more than the scaled rows."""
        return any(True for _ in self.encoder.parameters())

    @property
    def is_trainable(self):
        """Whether there is anything to train."""
        return any(parameter.requires_grad for parameter in self.parameters())


def build_network(description, scaling, *, own_encoder=None, generator=None):
    """Return the network that `description` tells of.

    Parameters
    ----------
    description : NetworkDescription
        What to build.
    scaling : InputScaling
        The fitted input scaling.
    own_encoder : Module or callable, default=None
        The user's encoder, a copy to work on, where the description says ``"own"``.
    generator : torch.Generator, default=None
        Draws the initial weights of the parts built here.

    Returns
    -------
    EmbeddingNetwork
    """
    encoder, decoder = build_autoencoder(
        description.row_shape,
        encoder=own_encoder if description.encoder == "own" else description.encoder,
        hidden_dims=description.hidden_dims,
        embedding_dim=description.embedding_dim,
        bounded=description.bounded,
        bounded_output=description.scaling == "range",
        generator=generator,
    )
    rates = _stage_rates(len(encoder.stages), description.dropout)
    network = EmbeddingNetwork(scaling, encoder, decoder, rates)
    network.description = description
    if description.encoder != "identity":
        # The user's module may compute in another type than the rows come in.
        network.to(getattr(torch, description.dtype))
    return network


def rebuild_network(description, weights, *, own_encoder=None):
    """Return the network that `description` and `weights` were taken from, ready to predict.

    Parameters
    ----------
    description : NetworkDescription
        Of the network.
    weights : dict of str to Tensor
        Its `state_dict`.
    own_encoder : Module or callable, default=None
        As in :func:`build_network`.

    Returns
    -------
    EmbeddingNetwork

    Raises
    ------
    ValueError
        When the weights are those of another network.
    """
    scaling = InputScaling(weights["scaling.shift"].clone(), weights["scaling.factor"].clone())
    for part in scaling.buffers():
        if part.shape not in {(), description.row_shape}:
            raise ValueError(f"scaling of shape {tuple(part.shape)} does not fit the rows")
    network = build_network(description, scaling, own_encoder=own_encoder)
    if "head.scaled_weight" in weights:
        add_head(network, *weights["head.scaled_weight"].shape)
    if "competition.weights" in weights:
        add_competition(network, DualCompetitiveLayer(*weights["competition.weights"].shape))
    if "competition.prototypes" in weights:
        add_competition(network, FreePrototypeLayer(*weights["competition.prototypes"].shape))
    return with_weights(network, weights)


def with_weights(network, weights):
    """Return `network` with `weights`, ready to predict; ValueError if they are another's."""
    try:
        network.load_state_dict(weights)
    except RuntimeError as error:
        raise ValueError(str(error)) from error
    return network.eval()


def add_head(network, n_clusters, embedding_dim):
    """Give `network` a linear head from the embedding to `n_clusters` logits, all zero.

    Parameters
    ----------
    network : EmbeddingNetwork
        Changed in place.
    n_clusters : int
        Number of logits.
    embedding_dim : int
        Width of the embedding.
    """
    like = network.scaling.shift
    network.head = LinearHead(n_clusters, embedding_dim, like.dtype).to(like.device)


def add_competition(network, layer):
    """Give `network` the layer that makes its prototypes, in double precision where there is.

    Differences of close prototypes and of nearly sure assignments lose too many digits in
    single precision, and the layer is small.

    Parameters
    ----------
    network : EmbeddingNetwork
        Changed in place.
    layer : DualCompetitiveLayer or FreePrototypeLayer
        The layer.
    """
    device = network.scaling.shift.device
    dtype = torch.float32 if device.type == "mps" else torch.float64
    network.competition = layer.to(device=device, dtype=dtype)


def check_size(description, weights, n_built_values=None):
    """Raise ValueError when the network described would be larger than its weights.

    Parameters
    ----------
    description : NetworkDescription
        Of a network that was not built yet.
    weights : dict of str to Tensor
        Its `state_dict`.
    n_built_values : callable, default=None
        Counts the weights of the parts that are built for another kind of description.
    """
    n_values = sum(weight.numel() for weight in weights.values())
    count = n_built_values or _n_built_values
    if len(description.hidden_dims) > len(weights) or count(description) > n_values:
        raise ValueError(f"the network described is larger than its {n_values} weights")


def _n_built_values(description):
    """Return how many weights the parts have that are built here, without building them."""
    stand_in = description
    if description.encoder == "own":
        stand_in = replace(description, encoder="mlp")
    with torch.device("meta"):
        network = build_network(stand_in, nn.Identity())
    if description.encoder == "own":
        network = network.decoder
    return sum(parameter.numel() for parameter in network.parameters())


def _stage_rates(n_stages, dropout):
    """Return the dropout rate before each stage: the input and the first hidden layer.

    The input of the embedding layer stays whole: level 2 is what it is built from.
    """
    return [
        dropout if depth == 0 or (depth == 1 and n_stages > 2) else 0.0 for depth in range(n_stages)
    ]


def build_autoencoder(
    row_shape,
    *,
    encoder,
    hidden_dims,
    embedding_dim,
    bounded,
    bounded_output,
    generator,
):
    """Return the encoder and decoder that the parameters of an estimator ask for.

    Parameters
    ----------
    row_shape : tuple of int
        ``(n_features,)`` or ``(C, H, W)``.
    encoder : {"auto", "mlp", "conv", "identity"}, Module or callable
        As in every estimator. A module must be the caller's own copy.
    hidden_dims : sequence of int
        Widths of the MLP, and of the MLP decoder beside a user's encoder.
    embedding_dim : int
        Size of the embedding.
    bounded : bool
        Whether the embedding has to lie in -1..1; a user's encoder that does not end in
        tanh gets one.
    bounded_output : bool
        Whether the scaled rows lie in -1..1.
    generator : torch.Generator
        Draws the initial weights of the parts built here.

    Returns
    -------
    encoder : Module
    decoder : Module or None
    """
    if encoder == "identity":
        return StagedEncoder([nn.Flatten()]), None
    kwargs = {"bounded": bounded, "bounded_output": bounded_output}
    is_image = len(row_shape) == 3
    if encoder == "conv" or (encoder == "auto" and is_image):
        if not is_image:
            raise ValueError(
                f"encoder='conv' needs images, but X has rows of shape {row_shape}; pass "
                "image_shape=(C, H, W) or X of shape (n, C, H, W)."
            )
        parts = conv_autoencoder(row_shape, embedding_dim, **kwargs)
    elif encoder in ("auto", "mlp"):
        parts = mlp_autoencoder(row_shape, hidden_dims, embedding_dim, **kwargs)
    else:
        own = users_encoder(encoder, row_shape, embedding_dim)
        own = StagedEncoder([_bounded(own) if bounded else own])
        # The hidden levels of a user's encoder are unknown, so the input alone is given back.
        _, decoder = mlp_autoencoder(row_shape, hidden_dims, embedding_dim, **kwargs)
        decoder = InputDecoder(decoder)
        initialise_weights(decoder, generator)
        return own, decoder
    for part in parts:
        initialise_weights(part, generator)
    return parts


class InputDecoder(nn.Module):
    """A decoder that gives back the input level only."""

    def __init__(self, decoder):
        super().__init__()
        self.decoder = decoder

    def forward(self, embedding):
        return self.decoder(embedding)[:1]


def users_encoder(encoder, row_shape, embedding_dim):
    """Return the user's module, built by the user's callable where that is what was given."""
    if not isinstance(encoder, nn.Module):
        if not _takes_shape_and_dim(encoder):
            raise TypeError(
                f"encoder={encoder!r} cannot be called with (input_shape, embedding_dim); pass a "
                "torch.nn.Module (an instance, not the class), or a callable that takes these two "
                "and returns one."
            )
        encoder = encoder(row_shape, embedding_dim)
        if not isinstance(encoder, nn.Module):
            raise TypeError(
                "encoder was called with (input_shape, embedding_dim) and returned "
                f"{type(encoder).__name__}; it must return a torch.nn.Module."
            )
    was_training = encoder.training
    encoder.eval()
    parameter = next(encoder.parameters(), torch.empty(()))
    probe = torch.zeros(2, *row_shape, dtype=parameter.dtype, device=parameter.device)
    try:
        with torch.inference_mode():
            found = tuple(encoder(probe).shape)
    except (RuntimeError, ValueError, TypeError, AttributeError) as error:
        raise ValueError(
            f"encoder could not be applied to two rows of shape {row_shape}: {error}"
        ) from error
    encoder.train(was_training)
    if found != (2, embedding_dim):
        raise ValueError(
            f"encoder gave an output of shape {found} for two rows of shape {row_shape}, expected "
            f"(2, {embedding_dim}); set embedding_dim to the width of the encoder's output, and "
            "flatten it to two dimensions."
        )
    return encoder


def _bounded(module):
    """Return `module` followed by tanh unless it ends in one."""
    last = module
    while isinstance(last, nn.Sequential) and len(last):
        last = last[-1]
    return module if isinstance(last, nn.Tanh) else nn.Sequential(module, nn.Tanh())


def inference_chunk_rows(network, row_shape):
    """Return how many rows every inference pass takes, from the cost of a row.

    A single row costs as much as a full chunk, and many small chunks cost more than one large.
    Convolutions reuse each weight many times a row, so 16 rows fill the processor; a matrix
    product needs some hundred, and a cheap one a thousand to outweigh the cost of its call.
    """
    if any(isinstance(m, nn.modules.conv._ConvNd) for m in network.modules()):
        return 16
    n_weights = sum(parameter.numel() for parameter in network.encoder.parameters())
    values_per_row = max(n_weights, row_shape[0])
    for chunk_rows in (1024, 512, 256):
        if chunk_rows * values_per_row <= _CHEAP_CHUNK:
            return chunk_rows
    return 256 if values_per_row <= _COSTLY_ROW else 128


def _takes_shape_and_dim(encoder):
    """Whether the callable `encoder` takes (input_shape, embedding_dim)."""
    try:
        inspect.signature(encoder).bind((1,), 1)
    except TypeError:
        return False
    except ValueError:
        # Some built-in callables have no signature; calling them will tell.
        return True
    return True
