"""The denoising autoencoder alone: as a transformer, in a pipeline, on a stream."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits, make_blobs
from sklearn.pipeline import make_pipeline

from skdeepclust.metrics import clustering_accuracy
from skdeepclust.pretraining import DenoisingAutoencoder


@pytest.fixture(scope="module")
def blobs():
    return make_blobs(n_samples=200, centers=4, n_features=6, random_state=0)


def _autoencoder(**params):
    settings = {"hidden_dims": (16,), "embedding_dim": 3, "max_epochs": 5, "random_state": 0}
    return DenoisingAutoencoder(**{**settings, **params})


def test_reconstruction_loss_falls_and_is_recorded(blobs):
    autoencoder = _autoencoder(max_epochs=20).fit(blobs[0])
    losses = [record["loss_reconstruction"] for record in autoencoder.history_]
    assert losses[-1] < 0.7 * losses[0]
    assert {record["phase"] for record in autoencoder.history_} == {"pretrain"}
    assert autoencoder.n_iter_ == len(losses)


def test_training_ends_on_a_plateau_and_says_so(blobs):
    autoencoder = _autoencoder(max_epochs=50, tol=0.5, n_iter_no_change=3).fit(blobs[0])
    assert autoencoder.n_iter_ < 50
    assert "n_iter_no_change=3" in autoencoder.stop_reason_
    assert "max_epochs=2" in _autoencoder(max_epochs=2).fit(blobs[0]).stop_reason_


def test_embedding_in_a_pipeline_with_memory(blobs, tmp_path):
    pipeline = make_pipeline(
        _autoencoder(), KMeans(4, n_init=3, random_state=0), memory=str(tmp_path)
    )
    first = pipeline.fit_predict(blobs[0])
    np.testing.assert_array_equal(clone(pipeline).fit_predict(blobs[0]), first)
    assert any(tmp_path.rglob("*.pkl"))


def test_bounded_is_the_range_of_the_embedding(blobs):
    X = 100 * blobs[0]
    assert np.abs(_autoencoder(bounded=True, scaling=None).fit_transform(X)).max() <= 1
    assert np.abs(_autoencoder(bounded=False, scaling=None).fit_transform(X)).max() > 1


def test_no_dropout_makes_noisy_and_clean_passes_equal(blobs):
    autoencoder = _autoencoder(dropout=0.0).fit(blobs[0])
    assert set(autoencoder.net_.module_.dropout) == {0.0}


def test_hidden_weight_counts(blobs):
    without = _autoencoder(hidden_weight=0.0, max_epochs=1).fit(blobs[0]).history_[0]["loss"]
    with_hidden = _autoencoder(hidden_weight=10.0, max_epochs=1).fit(blobs[0]).history_[0]["loss"]
    assert with_hidden > 1.5 * without


def test_stream_learns_and_embeds_every_call(blobs):
    autoencoder = _autoencoder()
    X = blobs[0]
    for _ in range(30):
        for start in range(0, 200, 50):
            autoencoder.partial_fit(X[start : start + 50])
    losses = [record["loss"] for record in autoencoder.history_]
    assert np.mean(losses[-4:]) < 0.7 * np.mean(losses[:4])
    assert autoencoder.transform(X).shape == (200, 3)


def test_warm_start_continues_from_the_weights(blobs):
    autoencoder = _autoencoder(max_epochs=15).fit(blobs[0])
    first = autoencoder.history_[0]["loss"]
    autoencoder.set_params(warm_start=True).fit(blobs[0])
    assert autoencoder.history_[0]["loss"] < first
    with pytest.raises(ValueError, match="warm_start"):
        autoencoder.fit(blobs[0][:, :4])


def test_convolutional_embedding_keeps_two_digits_apart():
    X, y = load_digits(n_class=2, return_X_y=True)
    autoencoder = DenoisingAutoencoder(image_shape=(1, 8, 8), max_epochs=5, random_state=0)
    embedding = autoencoder.fit_transform(X)
    labels = KMeans(2, n_init=5, random_state=0).fit_predict(embedding)
    assert clustering_accuracy(y, labels) > 0.95
