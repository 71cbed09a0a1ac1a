"""DCN beyond the promises that all estimators share."""

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs

from skdeepclust import DCN
from skdeepclust.pretraining import DenoisingAutoencoder


@pytest.fixture(scope="module")
def blobs():
    return make_blobs(n_samples=240, centers=4, n_features=5, cluster_std=0.6, random_state=3)


def test_identity_encoder_is_k_means(blobs):
    start = blobs[0][[0, 60, 120, 180]]
    model = DCN(4, encoder="identity", init=start, tol=0, max_epochs=100).fit(blobs[0])
    lloyd = KMeans(4, init=start, n_init=1, tol=0, algorithm="lloyd").fit(blobs[0])
    np.testing.assert_allclose(model.cluster_centers_, lloyd.cluster_centers_, atol=1e-12)
    np.testing.assert_array_equal(model.labels_, lloyd.labels_)
    assert model.score(blobs[0]) == pytest.approx(-lloyd.inertia_ / len(blobs[0]))


def test_probabilities_are_one_hot(blobs):
    model = DCN(4, encoder="identity", random_state=0).fit(blobs[0])
    probabilities = model.predict_proba(blobs[0])
    assert set(np.unique(probabilities)) == {0.0, 1.0}
    np.testing.assert_array_equal(probabilities.argmax(axis=1), model.labels_)


def test_stream_moves_centres_as_running_means():
    X = np.array([[1.0, 0.0], [-1.0, 0.0]])
    model = DCN(2, encoder="identity", init=X, max_epochs=1).fit(np.repeat(X, 100, axis=0))
    # 100 rows at each centre, then one row each: the worked example of the running mean.
    model.partial_fit(np.array([[0.8, 0.2], [-0.5, 0.5]]))
    np.testing.assert_allclose(
        model.cluster_centers_, [[0.998020, 0.001980], [-0.995050, 0.004950]], atol=5e-7
    )


def _fit(X, **params):
    autoencoder = DenoisingAutoencoder(max_epochs=2, dropout=0)
    settings = {"hidden_dims": (8,), "embedding_dim": 3, "max_epochs": 12, "tol": 0}
    return DCN(4, pretrain=autoencoder, random_state=0, **{**settings, **params}).fit(X)


def test_each_weight_scales_its_own_term(blobs):
    frozen = {"lr": 1e-12, "max_epochs": 1, "batch_size": 240}
    plain = _fit(blobs[0], **frozen).history_[-1]
    clustering = _fit(blobs[0], clustering_weight=3.0, **frozen).history_[-1]
    reconstruction = _fit(blobs[0], reconstruction_weight=5.0, **frozen).history_[-1]
    assert clustering["loss_clustering"] == pytest.approx(3 * plain["loss_clustering"], rel=1e-5)
    assert clustering["loss_reconstruction"] == pytest.approx(plain["loss_reconstruction"])
    assert reconstruction["loss_reconstruction"] == pytest.approx(
        5 * plain["loss_reconstruction"], rel=1e-5
    )


def test_embedding_is_not_bounded_and_labels_are_those_of_predict(blobs):
    model = _fit(blobs[0], scaling=None)
    assert np.abs(model.transform(blobs[0])).max() > 1
    np.testing.assert_array_equal(model.predict(blobs[0]), model.labels_)


def test_default_pretraining_has_no_corruption(blobs):
    model = DCN(4, hidden_dims=(8,), embedding_dim=2, max_epochs=1, random_state=0).fit(blobs[0])
    assert set(model.net_.module_.dropout) == {0.0}
