"""SRKMeans beyond the promises that all estimators share."""

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs, make_moons
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import adjusted_rand_score

from skdeepclust import SRKMeans
from skdeepclust.losses import soft_assignments, weighted_centers
from skdeepclust.pretraining import DenoisingAutoencoder
from skdeepclust.training.streaming import step_size

F2 = np.array([[1.0, 0.0], [0.8, 0.2], [-0.6, 0.7], [-0.2, -0.9]])
F2_Q = np.array([[0.9, 0.1], [0.8, 0.2], [0.2, 0.8], [0.1, 0.9]])


@pytest.fixture(scope="module")
def blobs():
    return make_blobs(n_samples=240, centers=4, n_features=5, cluster_std=0.6, random_state=3)


def _identity(**params):
    return SRKMeans(2, encoder="identity", centered=False, random_state=0, **params)


def test_one_epoch_on_four_points_equals_the_worked_example():
    # From the centres of the example, lambda = 0.25 and two clusters: T = 0.5.
    centers = np.array([[0.7, 0.105], [-0.2, -0.105]])
    model = _identity(entropy_regularization=0.25, init=centers, max_epochs=1, tol=0).fit(F2)
    np.testing.assert_allclose(
        model.cluster_centers_, [[0.796693, 0.078716], [-0.294170, -0.078353]], atol=5e-6
    )
    np.testing.assert_allclose(
        model.predict_proba(F2),
        [[0.963278, 0.036722], [0.925528, 0.074472], [0.036447, 0.963553], [0.073466, 0.926534]],
        atol=5e-6,
    )


def test_objective_never_rises_under_exact_alternation(blobs):
    model = SRKMeans(
        4, encoder="identity", init="random", tol=0, max_epochs=15, random_state=0
    ).fit(blobs[0])
    objectives = [record["objective"] for record in model.history_]
    assert np.diff(objectives).max() <= 1e-12
    assert objectives[0] > objectives[-1]


@pytest.mark.parametrize("centered", [True, False])
def test_small_temperature_equals_one_step_of_lloyd(blobs, centered):
    start = blobs[0][[0, 60, 120, 180]]
    model = SRKMeans(
        4,
        encoder="identity",
        init=start,
        entropy_regularization=1e-8,
        max_epochs=1,
        tol=0,
        centered=centered,
    ).fit(blobs[0])
    lloyd = KMeans(4, init=start, n_init=1, max_iter=1, tol=0, algorithm="lloyd").fit(blobs[0])
    np.testing.assert_allclose(model.cluster_centers_, lloyd.cluster_centers_, atol=1e-12)


def test_small_temperature_converges_to_k_means(blobs):
    start = blobs[0][[0, 60, 120, 180]]
    model = SRKMeans(
        4, encoder="identity", init=start, entropy_regularization=1e-8, tol=0, max_epochs=100
    ).fit(blobs[0])
    lloyd = KMeans(4, init=start, n_init=1, tol=0, algorithm="lloyd").fit(blobs[0])
    np.testing.assert_allclose(model.cluster_centers_, lloyd.cluster_centers_, atol=1e-12)
    np.testing.assert_array_equal(model.labels_, lloyd.labels_)


def test_assignments_follow_a_shift_of_the_data(blobs):
    X = blobs[0]
    shifted = X + 7.5
    one = SRKMeans(4, encoder="identity", init=X[:4], max_epochs=3).fit(X)
    two = SRKMeans(4, encoder="identity", init=shifted[:4], max_epochs=3).fit(shifted)
    np.testing.assert_allclose(two.cluster_centers_, one.cluster_centers_ + 7.5, atol=1e-9)
    np.testing.assert_allclose(two.predict_proba(shifted), one.predict_proba(X), atol=1e-9)


def test_auto_temperature_follows_the_scale_of_the_data(blobs):
    X = blobs[0]
    model = SRKMeans(4, encoder="identity", random_state=0)
    plain = model.fit(X).labels_
    for factor in (1e-9, 1e9):
        assert adjusted_rand_score(plain, model.fit(X * factor).labels_) == 1.0


def test_temperature_above_the_critical_value_merges_the_centres():
    X = np.random.default_rng(0).normal(size=(300, 2))
    critical = 2 * np.linalg.eigvalsh(np.cov(X.T, bias=True))[-1]
    settings = {"encoder": "identity", "init": X[:2], "max_epochs": 400, "tol": 0}
    spread = {}
    for share in (0.9, 1.1):
        model = SRKMeans(2, entropy_regularization=share * critical / 2, **settings).fit(X)
        spread[share] = np.ptp(model.cluster_centers_, axis=0).max()
    assert spread[1.1] < 1e-3 < 0.1 < spread[0.9]


def test_annealing_ends_at_the_final_temperature(blobs):
    model = SRKMeans(
        4, encoder="identity", entropy_regularization=0.01, annealing=0.5, random_state=0
    ).fit(blobs[0])
    temperatures = [record["temperature"] for record in model.history_]
    assert temperatures[0] > temperatures[-1] == model.temperature_ == pytest.approx(0.04)
    assert all(np.diff(temperatures) <= 0)


def test_prior_tolerates_imbalance_as_the_worked_example_says():
    centers = np.array([[0.7, 0.105], [-0.2, -0.105]])
    model = _identity(
        entropy_regularization=0.25, init=centers, class_prior=[7, 3], max_epochs=1, tol=0
    ).fit(F2)
    expected_q = np.array(
        [[0.972004, 0.027996], [0.952361, 0.047639], [0.164557, 0.835443], [0.178184, 0.821816]]
    )
    expected = weighted_centers(torch.tensor(expected_q), torch.tensor(F2))
    np.testing.assert_allclose(model.cluster_centers_, expected, atol=5e-6)


@pytest.mark.parametrize(
    ("prior", "match"), [([0.5], "shape"), ([1, 0], "positive"), ([1, np.nan], "positive")]
)
def test_impossible_prior_is_named(prior, match):
    with pytest.raises(ValueError, match=f"class_prior.*{match}"):
        _identity(class_prior=prior).fit(F2)


def test_restarts_keep_the_lowest_objective(blobs):
    settings = {"encoder": "identity", "init": "random", "random_state": 5, "max_epochs": 30}
    many = SRKMeans(4, n_init=6, **settings).fit(blobs[0])
    compared = [r["objective"] for r in many.history_ if r["phase"] == "cluster"]
    assert many.objective_ == min(compared)
    assert many.n_iter_ <= len(compared)


def test_network_objective_of_restarts_is_that_of_the_kept_weights(blobs):
    model = SRKMeans(
        4,
        n_init=3,
        init="random",
        max_epochs=2,
        warm_up_epochs=1,
        pretrain=None,
        hidden_dims=(8,),
        embedding_dim=3,
        random_state=0,
    ).fit(blobs[0])
    np.testing.assert_array_equal(model.labels_, model.predict(blobs[0]))
    ends = [r["objective"] for r in model.history_ if r["phase"] == "cluster"][1::2]
    assert model.objective_ == min(ends)


def test_embedding_width_is_not_tied_to_the_number_of_clusters(blobs):
    model = SRKMeans(
        4,
        embedding_dim=7,
        hidden_dims=(8,),
        max_epochs=2,
        warm_up_epochs=2,
        pretrain=DenoisingAutoencoder(max_epochs=2),
        random_state=0,
    ).fit(blobs[0])
    assert model.cluster_centers_.shape == (4, 7)
    assert model.transform(blobs[0]).shape == (240, 7)


def test_frozen_pretraining_is_reused_and_not_changed(blobs):
    X = blobs[0]
    autoencoder = DenoisingAutoencoder(
        hidden_dims=(8,), embedding_dim=3, max_epochs=2, random_state=0
    ).fit(X)
    before = autoencoder.transform(X)
    model = SRKMeans(
        4, pretrain=FrozenEstimator(autoencoder), max_epochs=2, warm_up_epochs=2, random_state=0
    ).fit(X)
    np.testing.assert_array_equal(autoencoder.transform(X), before)
    assert "pretrain" not in {record["phase"] for record in model.history_}
    assert model.cluster_centers_.shape == (4, 3)


def test_fitted_pretraining_names_the_frozen_estimator(blobs):
    autoencoder = DenoisingAutoencoder(hidden_dims=(8,), max_epochs=1).fit(blobs[0])
    with pytest.raises(ValueError, match="FrozenEstimator"):
        SRKMeans(4, pretrain=autoencoder).fit(blobs[0])


def test_unbounded_pretraining_is_refused(blobs):
    autoencoder = DenoisingAutoencoder(hidden_dims=(8,), max_epochs=1, bounded=False).fit(blobs[0])
    with pytest.raises(ValueError, match="bounded=True"):
        SRKMeans(4, pretrain=FrozenEstimator(autoencoder)).fit(blobs[0])


def test_stream_step_is_the_worked_running_average():
    # A fitted state with S = (.5, .5) and the example's centres, continued by two rows.
    centers = np.array([[0.7, 0.105], [-0.2, -0.105]])
    model = _identity(entropy_regularization=0.25, init=centers, max_epochs=1, tol=0).fit(F2)
    theta = model.cluster_centers_.copy()
    weights = model._stream_state["weights"].clone()
    step = model._stream_state["step"]
    batch = torch.tensor([[0.9, 0.1], [-0.4, -0.3]], dtype=torch.float64)
    model.partial_fit(batch.numpy())
    q = soft_assignments(batch, torch.tensor(theta), 0.5)
    rate = step_size(step + 1)
    new_weights = (1 - rate) * weights + rate * q.mean(dim=0)
    sums = (1 - rate) * weights[:, None] * torch.tensor(theta) + rate * q.T @ batch / 2
    np.testing.assert_allclose(model.cluster_centers_, sums / new_weights[:, None], atol=1e-12)


def test_stream_at_rate_one_is_one_full_step(blobs, monkeypatch):
    X = blobs[0]
    start = X[[0, 60, 120, 180]]
    settings = {"encoder": "identity", "init": start, "entropy_regularization": 0.1, "tol": 0}
    streamed = SRKMeans(4, max_epochs=1, **settings).fit(X)
    fitted = SRKMeans(4, max_epochs=2, **settings).fit(X)
    monkeypatch.setattr("skdeepclust._soft_kmeans_phases.step_size", lambda step: 1.0)
    streamed.partial_fit(X)
    np.testing.assert_allclose(streamed.cluster_centers_, fitted.cluster_centers_, atol=1e-12)


def test_empty_cluster_moves_to_the_farthest_row():
    X = np.array([[0.0, 0.0], [0.1, 0.0], [0.0, 0.1], [9.0, 9.0]])
    far_away = np.array([[0.0, 0.0], [1e3, 1e3]])
    model = SRKMeans(
        2, encoder="identity", init=far_away, entropy_regularization=1e-3, max_epochs=5
    ).fit(X)
    assert model.history_[0]["n_reseeded_clusters"] == 1
    assert sorted(np.bincount(model.labels_)) == [1, 3]


def test_clustering_weight_scales_its_term_alone(blobs):
    autoencoder = DenoisingAutoencoder(
        hidden_dims=(8,), embedding_dim=3, max_epochs=1, random_state=0
    ).fit(blobs[0])
    records = {}
    for weight in (0.0, 0.25, 0.5):
        model = SRKMeans(
            4,
            clustering_weight=weight,
            pretrain=FrozenEstimator(autoencoder),
            max_epochs=1,
            warm_up_epochs=0,
            batch_size=240,
            lr=1e-12,
            random_state=0,
        ).fit(blobs[0])
        records[weight] = model.history_[-1]
    assert records[0.0]["loss_clustering"] == 0
    assert records[0.5]["loss_clustering"] == pytest.approx(
        2 * records[0.25]["loss_clustering"], rel=1e-5
    )
    assert records[0.5]["loss_reconstruction"] == pytest.approx(
        records[0.25]["loss_reconstruction"], rel=1e-6
    )


def test_warm_up_keeps_a_partition_that_k_means_cannot_have():
    X, moons = make_moons(300, noise=0.05, random_state=0)
    model = SRKMeans(
        2,
        init=moons,
        hidden_dims=(32, 16),
        embedding_dim=4,
        warm_up_epochs=60,
        max_epochs=5,
        pretrain=DenoisingAutoencoder(max_epochs=20),
        random_state=0,
    ).fit(X)
    agreement = [r["agreement_with_init"] for r in model.history_ if r["phase"] == "warm_up"]
    assert agreement[0] < 0.85
    assert agreement[-1] > 0.97
    # The versions of torch differ by some hundredths.
    assert adjusted_rand_score(moons, model.labels_) > 0.75
    without = clone(model).set_params(warm_up_epochs=0).fit(X)
    assert adjusted_rand_score(moons, without.labels_) < 0.6


def test_score_is_the_negative_free_energy_of_the_example():
    centers = np.array([[0.7, 0.105], [-0.2, -0.105]])
    model = _identity(entropy_regularization=0.25, init=centers, max_epochs=1).fit(F2)
    model.cluster_centers_ = centers
    # -T sum_i log sum_k exp(-D_ik / T) = 1.387434 for the four rows.
    assert model.score(F2) == pytest.approx(-1.387434 / 4, abs=2e-6)
