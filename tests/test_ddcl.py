"""DDCL beyond the promises that all estimators share."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import cdist
from scipy.stats import special_ortho_group
from sklearn.datasets import load_digits, make_blobs
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score
from torch import nn

from skdeepclust import DDCL
from skdeepclust.exceptions import EncoderCollapseWarning
from skdeepclust.pretraining import DenoisingAutoencoder


@pytest.fixture(scope="module")
def blobs():
    return make_blobs(n_samples=240, centers=4, n_features=5, cluster_std=0.6, random_state=3)


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:600] / 16, y[:600]


def _fit(X, n_clusters=4, **params):
    return DDCL(n_clusters, **{"random_state": 0, **params}).fit(X)


# -- the objective -------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["quantization", "reconstruction"])
@pytest.mark.parametrize("layer", ["dual", "free"])
@pytest.mark.parametrize("entropy_weight", ["temperature", 0.0])
def test_the_error_is_the_sum_of_its_parts_in_every_epoch(blobs, loss, layer, entropy_weight):
    model = _fit(blobs[0], loss=loss, layer=layer, entropy_weight=entropy_weight)
    history = pd.DataFrame(model.history_)
    assert len(history) == model.n_iter_ == 200
    parts = history["reconstruction_error"] + history["prototype_spread"]
    np.testing.assert_allclose(history["quantization_error"], parts, rtol=1e-10)
    assert (history["prototype_spread"] >= 0).all()
    terms = history[[name for name in history if name.startswith("loss_")]].sum(axis=1)
    np.testing.assert_allclose(history["loss"], terms, rtol=1e-6)


def test_clear_clusters_are_found_from_any_start(blobs):
    X, y = blobs
    one_of_each = np.stack([X[y == label][0] for label in range(4)])
    for init in ("normal", "samples", "k-means++", one_of_each):
        model = _fit(X, init=init)
        assert adjusted_rand_score(y, model.labels_) == 1.0
    assert adjusted_rand_score(y, _fit(X, layer="free").labels_) == 1.0
    assert adjusted_rand_score(y, _fit(X, anchors=40, batch_size=64).labels_) == 1.0


def test_decomposition_of_each_row(blobs):
    model = _fit(blobs[0])
    parts = model.decompose(blobs[0])
    squares = cdist(blobs[0], model.cluster_centers_, "sqeuclidean")
    q = model.predict_proba(blobs[0])
    np.testing.assert_allclose(parts["quantization_error"], (q * squares).sum(axis=1), rtol=1e-6)
    both = parts["reconstruction_error"] + parts["prototype_spread"]
    np.testing.assert_allclose(parts["quantization_error"], both, rtol=1e-10)
    assert model.score(blobs[0]) == -parts["quantization_error"].mean()


def test_probabilities_are_those_of_the_temperature(blobs):
    model = _fit(blobs[0])
    squares = cdist(blobs[0], model.cluster_centers_, "sqeuclidean")
    exponents = np.exp(-(squares - squares.min(axis=1, keepdims=True)) / model.temperature_)
    expected = exponents / exponents.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(blobs[0]), expected, atol=1e-6)


def test_a_single_prototype_is_the_mean(blobs):
    model = _fit(blobs[0], n_clusters=1, ridge=0.0)
    np.testing.assert_allclose(model.cluster_centers_[0], blobs[0].mean(axis=0), atol=1e-3)


def test_the_weights_count(blobs):
    """A strong ridge and a strong repulsion move the prototypes as they say."""

    def spread(**params):
        centers = _fit(blobs[0], **params).cluster_centers_
        return np.square(centers - centers.mean(axis=0)).sum()

    assert spread(ridge=1.0) < 0.8 * spread() < 0.8 * spread(separation_weight=2.0)


# -- critical temperature ------------------------------------------------------------------


@pytest.mark.parametrize(("entropy_weight", "multiple"), [("temperature", 2), (0.0, 4)])
@pytest.mark.parametrize("layer", ["dual", "free"])
def test_prototypes_come_apart_below_the_critical_temperature(
    blobs, entropy_weight, multiple, layer
):
    X = blobs[0]
    largest = np.linalg.eigvalsh(np.cov(X.T, bias=True))[-1]

    def separations(temperature):
        model = _fit(
            X,
            entropy_weight=entropy_weight,
            layer=layer,
            balance_weight=0.0,
            temperature_start=temperature,
            temperature_end=temperature,
        )
        assert model.critical_temperature_ == pytest.approx(multiple * largest)
        history = pd.DataFrame(model.history_)
        return history["separation"].iloc[[0, -1]]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        before, after = separations(1.2 * multiple)
    assert after < 0.1 * before or after < 1e-3
    before, after = separations(0.5 * multiple)
    assert after > 0.3 > before


def test_the_reconstruction_loss_leaves_the_data_at_high_temperature(blobs):
    """Without the spread nothing holds the prototypes, and they do not collapse either."""
    hot = {"entropy_weight": 0.0, "temperature_start": 5.0, "temperature_end": 5.0}
    far = np.linalg.norm(blobs[0] - blobs[0].mean(axis=0), axis=1).max()
    model = _fit(blobs[0], loss="reconstruction", **hot)
    distances = np.linalg.norm(model.cluster_centers_ - blobs[0].mean(axis=0), axis=1)
    assert distances.max() > far


# -- the dual layer ------------------------------------------------------------------------


def test_prototypes_stay_in_the_span_of_few_long_rows():
    random = np.random.default_rng(0)
    X = random.normal(size=(30, 200))
    model = _fit(X, n_clusters=3)
    centered = X - X.mean(axis=0)
    basis = np.linalg.svd(centered, full_matrices=False)[2][:29]
    offsets = model.cluster_centers_ - X.mean(axis=0)
    outside = offsets - offsets @ basis.T @ basis
    assert np.abs(outside).max() < 1e-10 * np.abs(offsets).max()


def test_long_rows_give_what_their_coordinates_give():
    """The step on an orthonormal basis of the rows is the step on the rows."""
    X, _ = make_blobs(40, 300, centers=3, cluster_std=4.0, random_state=0)
    rotation = PCA(39, svd_solver="full").fit(X)
    long, short = _fit(X, n_clusters=3), _fit(rotation.transform(X), n_clusters=3)
    np.testing.assert_array_equal(long.labels_, short.labels_)
    mapped = rotation.inverse_transform(short.cluster_centers_)
    np.testing.assert_allclose(long.cluster_centers_, mapped, atol=1e-6)
    assert long.objective_ == pytest.approx(short.objective_, rel=1e-8)


def test_moving_scaling_and_turning_the_rows(blobs):
    X = blobs[0]
    model = _fit(X)
    turn = special_ortho_group(5, seed=0).rvs()
    for image, changed in [
        (lambda rows: rows + 100.0, X + 100.0),
        (lambda rows: 50.0 * rows, 50.0 * X),
        (lambda rows: rows @ turn, X @ turn),
    ]:
        other = _fit(changed)
        np.testing.assert_array_equal(other.labels_, model.labels_)
        expected = image(model.cluster_centers_)
        np.testing.assert_allclose(other.cluster_centers_, expected, atol=1e-6 * np.ptp(changed))
        probabilities = other.predict_proba(changed)
        np.testing.assert_allclose(probabilities, model.predict_proba(X), atol=1e-5)


def test_all_anchors_by_number(blobs):
    every, counted = _fit(blobs[0], anchors="all"), _fit(blobs[0], anchors=len(blobs[0]))
    np.testing.assert_array_equal(every.cluster_centers_, counted.cluster_centers_)


def test_few_anchors_cost_little(digits):
    X = digits[0]
    every, some = _fit(X, n_clusters=10), _fit(X, n_clusters=10, anchors=100)

    def error(model):
        return np.square(model.transform(X) - model.cluster_centers_[model.labels_]).sum()

    assert error(some) < 1.05 * error(every)


# -- restarts, warm starts -----------------------------------------------------------------


def test_restarts_keep_the_lowest_objective(digits):
    params = {"n_clusters": 10, "init": "samples", "max_epochs": 40}
    gains = []
    for seed in range(4):
        single = _fit(digits[0], random_state=seed, **params)
        several = _fit(digits[0], random_state=seed, n_init=4, **params)
        assert len(several.history_) == 160
        gains.append(single.objective_ - several.objective_)
    # The first restart is the single fit; at times it is the best one.
    assert min(gains) >= 0
    assert max(gains) > 0


def test_a_warm_start_keeps_ids_and_prototypes(digits):
    X = digits[0]
    model = _fit(X, n_clusters=10, warm_start=True)
    before, labels = model.cluster_centers_, model.labels_
    model.fit(X[:500])
    assert (model.labels_ == labels[:500]).mean() > 0.9
    nearest = cdist(model.cluster_centers_, before).argmin(axis=1)
    np.testing.assert_array_equal(nearest, np.arange(10))


# -- streams -------------------------------------------------------------------------------


def test_a_stream_goes_on_from_the_fit(blobs):
    X = blobs[0]
    model = _fit(X, balance_weight=0.0)
    before, q = model.cluster_centers_.copy(), model.predict_proba(X[:20])
    counts = len(X) * model.predict_proba(X).mean(axis=0)
    model.partial_fit(X[:20])
    weights = q.sum(axis=0)
    shifts = (q.T @ X[:20] - weights[:, None] * before) / (counts + weights)[:, None]
    # The counts are those of the last epoch, a step before the end.
    np.testing.assert_allclose(model.cluster_centers_, before + shifts, atol=1e-3)
    assert np.abs(model.cluster_centers_ - before).max() > 1e-4


@pytest.mark.parametrize("assignment", ["softmax", "sparse"])
def test_a_limit_of_the_counts_follows_a_drift(blobs, assignment):
    X, y = blobs

    def error_after_drift(max_count):
        model = _fit(X, assignment=assignment, max_count=max_count)
        for step in range(100):
            model.partial_fit(X[step % 6 :: 6] + 0.03 * step)
        return np.square(cdist(X + 3.0, model.cluster_centers_).min(axis=1)).mean()

    assert error_after_drift(100.0) < 0.3 * error_after_drift(None)


def test_a_stream_starts_by_itself(blobs):
    X, y = blobs
    order = np.random.default_rng(0).permutation(len(X))
    model = DDCL(4, random_state=0)
    for start in range(0, 240, 40):
        model.partial_fit(X[order[start : start + 40]])
    assert adjusted_rand_score(y, model.predict(X)) > 0.95


def test_the_state_of_a_stream_does_not_grow(blobs):
    model = _fit(blobs[0])

    def size():
        state = model._stream_state
        return sum(value.nbytes for value in state.values() if hasattr(value, "nbytes"))

    model.partial_fit(blobs[0][:50])
    before = size()
    for _ in range(50):
        model.partial_fit(blobs[0][:50])
    assert size() == before


# -- a trained encoder ---------------------------------------------------------------------


def _linear(input_shape, embedding_dim):
    return nn.Linear(input_shape[0], embedding_dim)


def test_an_unguarded_encoder_is_told_of(digits):
    unguarded = DDCL(
        10,
        encoder=_linear,
        pretrain=None,
        train_encoder=True,
        normalize_embedding=False,
        reconstruction_weight=0.0,
        entropy_weight=0.0,
        encoder_lr=3e-3,
        max_epochs=300,
        random_state=0,
    )
    with pytest.warns(EncoderCollapseWarning, match="variance of the embedding fell"):
        unguarded.fit(digits[0])
    # It stopped or not, but the state is one that still tells rows apart.
    assert len(np.unique(unguarded.labels_)) > 1


def test_a_lost_embedding_goes_back_to_its_last_good_state(digits):
    model = DDCL(
        10,
        encoder=_linear,
        pretrain=None,
        train_encoder=True,
        normalize_embedding=False,
        reconstruction_weight=0.0,
        encoder_lr=1e-2,
        max_epochs=400,
        random_state=0,
    )
    with pytest.warns(EncoderCollapseWarning, match="Training stopped"):
        model.fit(digits[0])
    assert "the state before was taken" in model.stop_reason_
    history = pd.DataFrame(model.history_)
    kept = model.transform(digits[0]).var(axis=0).sum()
    assert kept > 0.15 * history["total_variance"].iloc[0]


@pytest.mark.filterwarnings("error")
def test_the_defaults_keep_a_trained_encoder(digits):
    model = DDCL(
        10,
        encoder=_linear,
        pretrain=DenoisingAutoencoder(max_epochs=20),
        train_encoder=True,
        max_epochs=100,
        random_state=0,
    ).fit(digits[0])
    history = pd.DataFrame(model.history_).query("phase == 'cluster'")
    assert history["total_variance"].iloc[-1] > 0.5 * history["total_variance"].iloc[0]
    ratios = history["displacement_ratio"].dropna()
    # The encoder rests for 30 of the 100 epochs.
    assert len(ratios) == 70
    assert ratios.mean() < 1


def test_a_frozen_encoder_stays(digits):
    pretrained = {"encoder": _linear, "pretrain": DenoisingAutoencoder(max_epochs=3)}
    short = _fit(digits[0], max_epochs=2, **pretrained).transform(digits[0])
    long = _fit(digits[0], max_epochs=50, **pretrained).transform(digits[0])
    np.testing.assert_array_equal(short, long)


# -- wrong input ---------------------------------------------------------------------------


def test_nothing_to_train(blobs):
    with pytest.raises(ValueError, match="train_encoder=True needs an encoder.*'identity'"):
        _fit(blobs[0], train_encoder=True)


def test_large_offsets_lose_no_digits(blobs):
    X, y = blobs
    assert adjusted_rand_score(y, _fit(X + 1e7).labels_) == 1.0
