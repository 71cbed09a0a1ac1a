"""The networks against the sizes that follow from the papers' description."""

import pytest
import torch
from torch import nn

from skdeepclust.nn.encoders import conv_autoencoder, initialise_weights, mlp_autoencoder
from skdeepclust.nn.network import EmbeddingNetwork, build_autoencoder


def _n_parameters(*parts):
    return sum(p.numel() for part in parts for p in part.parameters())


# Image shape, embedding size, sides after each convolution, parameters of encoder and decoder.
SIZES = [
    ((1, 28, 28), 10, (13, 7), 178_211),
    ((1, 16, 16), 10, (7, 4), 143_561),
    ((1, 32, 32), 68, (17, 9), 681_669),
    ((3, 32, 32), 20, (17, 9), 296_023),
    ((3, 55, 55), 41, (28, 13), 789_044),
]


@pytest.mark.parametrize(("shape", "width", "sides", "n_parameters"), SIZES)
def test_conv_autoencoder_has_the_published_size(shape, width, sides, n_parameters):
    encoder, decoder = conv_autoencoder(shape, width, bounded=True, bounded_output=True)
    assert _n_parameters(encoder, decoder) == n_parameters
    levels = encoder.levels(torch.zeros(2, *shape))
    assert [tuple(level.shape[2:]) for level in levels[1:]] == [(s, s) for s in sides]


@pytest.mark.parametrize(
    "shape", [(1, 8, 8), (1, 1, 1), (2, 2, 3), (3, 5, 4), (1, 7, 30), (3, 96, 64), (1, 31, 29)]
)
def test_decoder_gives_back_every_level_of_any_image_size(shape):
    encoder, decoder = conv_autoencoder(shape, 4, bounded=True, bounded_output=True)
    rows = torch.zeros(2, *shape)
    wanted = [level.shape for level in encoder.levels(rows)]
    assert [level.shape for level in decoder(encoder(rows))] == wanted


def test_mlp_autoencoder_flattens_images_and_gives_them_back():
    encoder, decoder = mlp_autoencoder((1, 4, 3), (5,), 2, bounded=False, bounded_output=False)
    levels = decoder(encoder(torch.zeros(3, 1, 4, 3)))
    assert [tuple(level.shape) for level in levels] == [(3, 1, 4, 3), (3, 5)]


def test_bounded_embedding_stays_within_one():
    encoder, _ = mlp_autoencoder((4,), (8,), 2, bounded=True, bounded_output=False)
    assert encoder(1e6 * torch.ones(5, 4)).abs().max() <= 1


def test_weights_come_from_the_generator_and_follow_glorot():
    encoder, _ = mlp_autoencoder((300,), (200,), 2, bounded=True, bounded_output=False)
    state = torch.get_rng_state()
    initialise_weights(encoder, torch.Generator().manual_seed(0))
    assert torch.equal(state, torch.get_rng_state())
    weight = encoder.stages[0][0].weight.detach()
    bound = (6 / (300 + 200)) ** 0.5
    assert weight.abs().max() <= bound
    # A uniform distribution on (-b, b) has the deviation b / sqrt(3).
    assert weight.std() == pytest.approx(bound / 3**0.5, rel=0.01)
    assert encoder.stages[0][0].bias.abs().max() == 0


def test_noisy_pass_draws_its_own_mask_and_clean_levels_are_clean():
    encoder, decoder = mlp_autoencoder((50,), (40,), 3, bounded=True, bounded_output=False)
    network = EmbeddingNetwork(nn.Identity(), encoder, decoder, (0.5, 0.0))
    rows = torch.ones(4, 50)
    noisy, levels, reconstructions = network.denoise(rows)
    assert torch.equal(levels[0], rows)
    assert not torch.equal(noisy, network(rows))
    assert len(levels) == len(reconstructions) == 2


def _build(encoder, **changes):
    settings = {
        "hidden_dims": (6,),
        "embedding_dim": 3,
        "bounded": True,
        "bounded_output": False,
        "generator": torch.Generator().manual_seed(0),
    }
    return build_autoencoder((4,), encoder=encoder, **{**settings, **changes})


def test_users_encoder_gets_a_tanh_unless_it_ends_in_one():
    plain, _ = _build(nn.Linear(4, 3))
    assert isinstance(plain.stages[0][-1], nn.Tanh)
    ending = nn.Sequential(nn.Linear(4, 3), nn.Sequential(nn.Tanh()))
    assert _build(ending)[0].stages[0] is ending
    assert _build(nn.Linear(4, 3), bounded=False)[0].stages[0].bias is not None


def test_users_callable_is_given_shape_and_width():
    seen = []

    def build(input_shape, embedding_dim):
        seen.append((input_shape, embedding_dim))
        return nn.Linear(input_shape[0], embedding_dim)

    _build(build)
    assert seen == [((4,), 3)]


@pytest.mark.parametrize(
    ("encoder", "error", "match"),
    [
        (nn.Linear(4, 2), ValueError, r"\(2, 2\).*expected \(2, 3\)"),
        (nn.Linear(5, 3), ValueError, "encoder could not be applied"),
        (nn.Unflatten(1, (2, 2)), ValueError, "encoder gave an output of shape"),
        (lambda shape, width: "no module", TypeError, "must return a torch.nn.Module"),
    ],
)
def test_encoder_that_does_not_fit_is_named(encoder, error, match):
    with pytest.raises(error, match=match):
        _build(encoder)


def test_conv_encoder_needs_images():
    with pytest.raises(ValueError, match="image_shape"):
        _build("conv")
