"""MIADMClustering and DEPICT beyond the promises that all estimators share."""

import warnings

import numpy as np
import pytest
import torch
from sklearn.datasets import make_blobs
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import normalized_mutual_info_score

from skdeepclust import DEPICT, MIADMClustering
from skdeepclust.exceptions import SortedStreamWarning
from skdeepclust.losses import (
    closed_form_targets,
    exact_targets,
    mutual_information,
    self_training_targets,
    update_cluster_mass,
)
from skdeepclust.pretraining import DenoisingAutoencoder
from skdeepclust.training.streaming import step_size

BOTH = pytest.mark.parametrize("cls", [MIADMClustering, DEPICT], ids=lambda cls: cls.__name__)


@pytest.fixture(scope="module")
def blobs():
    return make_blobs(n_samples=240, centers=4, n_features=5, cluster_std=0.6, random_state=3)


@pytest.fixture(scope="module")
def imbalanced():
    """Two groups that touch, 400 and 40 rows."""
    return make_blobs([400, 40], centers=[[0.0, 0.0], [4.0, 0.0]], random_state=0)


def _identity(cls, n_clusters=4, **params):
    settings = {"encoder": "identity", "max_epochs": 3, "random_state": 0, **params}
    return cls(n_clusters, **settings)


def _targets(model, X):
    """Return the log-posterior of `X`, float64."""
    return torch.from_numpy(model.predict_proba(X)).log()


@BOTH
def test_classifier_begins_as_the_discriminant_of_the_first_partition(cls, blobs):
    X, y = blobs
    # An epoch at a vanishing learning rate leaves the head where it began.
    model = _identity(cls, init=y, warm_up_epochs=0, max_epochs=1, lr=1e-30).fit(X)
    means = np.array([X[y == k].mean(axis=0) for k in range(4)])
    distances = ((X[:, None] - means) ** 2).sum(axis=2)
    variance = distances[np.arange(len(X)), y].mean() / X.shape[1]
    expected = np.exp(-(distances - distances.min(axis=1, keepdims=True)) / (2 * variance))
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(X), expected, rtol=0, atol=1e-9)


@BOTH
@pytest.mark.parametrize("encoder", ["identity", "auto"])
def test_separated_groups_are_found(cls, encoder, blobs):
    X, y = blobs
    settings = {"hidden_dims": (16,), "pretrain": DenoisingAutoencoder(max_epochs=20)}
    model = _identity(cls, **({} if encoder == "identity" else {"encoder": "auto", **settings}))
    labels = model.fit_predict(X)
    assert normalized_mutual_info_score(y, labels) > 0.95
    assert model.history_[-1]["loss"] == pytest.approx(
        sum(v for k, v in model.history_[-1].items() if k.startswith("loss_"))
    )


def test_objectives_are_those_of_the_posterior(blobs):
    X, _ = blobs
    information = _identity(MIADMClustering).fit(X)
    posterior = _targets(information, X).exp()
    assert information.objective_ == pytest.approx(-float(mutual_information(posterior)))
    assert information.score(X) == pytest.approx(-information.objective_)
    entropy = _identity(DEPICT, target="paper", balance=0.5).fit(X)
    expected = exact_targets(_targets(entropy, X), 1.0, 0.5).objective
    assert entropy.objective_ == pytest.approx(float(expected), abs=1e-9)
    assert entropy.score(X) == pytest.approx(-entropy.objective_, abs=1e-9)


@pytest.mark.parametrize("name", ["closed", "exact", "penalty", "paper", "released"])
def test_targets_are_those_of_the_method(name, blobs, monkeypatch):
    """The targets an epoch ends with are the method's update of the posterior it ends with."""
    X, y = blobs
    # Unequal clusters, since the paper's DEPICT does nothing to balanced ones.
    keep = (y > 1) | (np.arange(len(y)) % 3 == 0)
    X, y = X[keep], y[keep]
    model, update = {
        "closed": (MIADMClustering(), lambda p: closed_form_targets(p, 2.0, 1.0)),
        "exact": (MIADMClustering(q_update="exact"), lambda p: exact_targets(p, 2.0, 1.0).targets),
        "penalty": (
            MIADMClustering(penalty_weight=2.0),
            lambda p: closed_form_targets(p, 1.5, 0.5),
        ),
        "paper": (
            DEPICT(target="paper", balance=0.5),
            lambda p: closed_form_targets(p, 1.0, 0.5),
        ),
        "released": (DEPICT(), self_training_targets),
    }[name]
    found = {}
    take = type(model)._method_attributes
    monkeypatch.setattr(
        type(model),
        "_method_attributes",
        lambda self, run: found.update(run.tensors) or take(self, run),
    )
    model.set_params(
        n_clusters=4, encoder="identity", init=y, temperature=50.0, max_epochs=2, random_state=0
    ).fit(X)
    expected = update(_targets(model, X))
    np.testing.assert_allclose(found["targets"].numpy(), expected.numpy(), rtol=0, atol=1e-9)
    # Not a trivial posterior: the updates differ from it and from each other.
    assert 0.01 < float((expected - _targets(model, X).exp()).abs().max())


def test_released_target_does_not_take_a_balance(blobs):
    with pytest.raises(ValueError, match="balance=0.5.*target='paper'"):
        _identity(DEPICT, balance=0.5).fit(blobs[0])


def test_penalty_on_the_weights_makes_them_smaller(blobs):
    norms = [
        float(
            _identity(MIADMClustering, l2_regularization=l2, lr=0.1, max_epochs=20, tol=0)
            .fit(blobs[0])
            .net_.module_.head.weight.detach()
            .norm()
        )
        for l2 in (0.0, 1.0)
    ]
    assert norms[1] < 0.8 * norms[0]


@BOTH
def test_larger_temperature_is_less_sure(cls, blobs):
    X = blobs[0]
    sure = [
        _identity(cls, temperature=t, lr=1e-30).fit(X).predict_proba(X).max(axis=1).mean()
        for t in (1.0, 50.0, 500.0)
    ]
    assert sure[0] > sure[1] + 0.01 > sure[2] + 0.02


@BOTH
def test_temperature_of_the_fit_stays_with_the_model(cls, blobs):
    model = _identity(cls, temperature=50.0).fit(blobs[0])
    before = model.predict_proba(blobs[0])
    model.set_params(temperature=1.0)
    np.testing.assert_array_equal(model.predict_proba(blobs[0]), before)


@BOTH
@pytest.mark.parametrize("warm_up_epochs", [0, 2])
def test_restarts_keep_the_lowest_objective(cls, warm_up_epochs, blobs):
    model = _identity(
        cls, init="random", n_init=4, warm_up_epochs=warm_up_epochs, random_state=5
    ).fit(blobs[0])
    assert len(np.unique(model.labels_)) == 4
    ends = {}
    for record in model.history_:
        if record["phase"] == "cluster":
            ends.setdefault(record["epoch"], []).append(record["objective"])
    assert model.objective_ == min(ends[max(ends)])
    np.testing.assert_array_equal(model.labels_, model.predict(blobs[0]))


@BOTH
def test_frozen_pretraining_gets_no_head(cls, blobs):
    X = blobs[0]
    autoencoder = DenoisingAutoencoder(
        hidden_dims=(8,), embedding_dim=3, max_epochs=2, random_state=0
    ).fit(X)
    before = autoencoder.transform(X)
    model = cls(
        4, pretrain=FrozenEstimator(autoencoder), max_epochs=2, warm_up_epochs=2, random_state=0
    ).fit(X)
    np.testing.assert_array_equal(autoencoder.transform(X), before)
    assert autoencoder.net_.module_.head is None
    assert model.net_.module_.head.weight.shape == (4, 3)
    assert "pretrain" not in {record["phase"] for record in model.history_}


@BOTH
def test_unit_of_the_rows_does_not_matter(cls, blobs):
    X, _ = blobs
    far = X * 1e9 + 1e10
    plain = _identity(cls, lr=0.05, temperature=30.0).fit(X)
    scaled = _identity(cls, lr=0.05, temperature=30.0).fit(far)
    probabilities = plain.predict_proba(X)
    assert 0.3 < probabilities.max(axis=1).mean() < 0.99
    np.testing.assert_allclose(scaled.predict_proba(far), probabilities, atol=1e-4)


@BOTH
def test_unused_clusters_come_last(cls):
    X, y = make_blobs(60, centers=[[0, 0], [9, 9]], cluster_std=0.3, random_state=0)
    labels = np.where(y == 0, 1, 3)
    with pytest.warns(UserWarning, match="2 clusters are used"):
        model = _identity(cls, init=labels, lr=1e-30).fit(X)
    assert set(model.labels_) == {0, 1}
    np.testing.assert_array_equal(model.predict(X), model.labels_)


# --- proportions ---------------------------------------------------------------------------


@BOTH
def test_prior_keeps_a_large_class_whole(cls, imbalanced):
    X, y = imbalanced
    scores = {}
    for name, prior in {
        "uniform": None, "given": [1, 10], "adaptive": "adaptive"
    }.items():  # fmt: skip
        model = _identity(
            cls, 2, class_prior=prior, max_epochs=60, lr=3e-2, tol=0, init="k-means++"
        ).fit(X)
        scores[name] = normalized_mutual_info_score(y, model.labels_)
    assert scores["given"] > scores["uniform"]
    assert scores["adaptive"] > scores["uniform"]


@BOTH
def test_prior_goes_to_clusters_by_size_or_in_the_users_order(cls, imbalanced):
    X, y = imbalanced
    prior = np.array([0.1, 0.9])
    by_size = _identity(cls, 2, class_prior=prior, init="k-means++", lr=1e-30).fit(X)
    sizes = np.bincount(by_size.labels_)
    assert np.exp(by_size._log_prior_fitted.numpy())[sizes.argmax()] == pytest.approx(0.9)
    in_order = _identity(cls, 2, class_prior=prior, init=y, lr=1e-30).fit(X)
    np.testing.assert_allclose(np.exp(in_order._log_prior_fitted.numpy()), prior)


@BOTH
def test_warm_start_keeps_whose_proportion_is_whose(cls, imbalanced):
    X, _ = imbalanced
    model = _identity(cls, 2, class_prior=[0.1, 0.9], init="k-means++", warm_start=True).fit(X)
    before = model._log_prior_fitted.clone()
    model.fit(X)
    assert torch.equal(model._log_prior_fitted, before)


@BOTH
@pytest.mark.parametrize(
    ("prior", "match"),
    [([1, 2, 3], r"shape \(3,\), expected \(4,\)"), ([1, 1, 1, 0], "positive"), ("even", "prior")],
)
def test_impossible_prior_is_named(cls, prior, match, blobs):
    with pytest.raises(ValueError, match=match):
        _identity(cls, class_prior=prior).fit(blobs[0])


# --- streams -------------------------------------------------------------------------------


@BOTH
def test_stream_balances_with_running_means(cls, blobs):
    X, _ = blobs
    model = _identity(cls, temperature=50.0).fit(X)
    mass, step = model._stream_state["mass"].clone(), model._stream_state["step"]
    log_p = _targets(model, X[:16])
    power = 2.0 if cls is MIADMClustering else 1.0
    expected = update_cluster_mass(mass, log_p, power, step_size(step + 1))
    model.partial_fit(X[:16])
    np.testing.assert_allclose(model._stream_state["mass"].numpy(), expected.numpy(), atol=1e-9)


@BOTH
def test_batch_of_one_class_warns_and_a_shuffled_one_does_not(cls, blobs):
    X, y = blobs
    order = np.random.default_rng(0).permutation(len(X))
    model = _identity(cls).fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for part in np.array_split(X[order], 8):
            model.partial_fit(part)
    with pytest.warns(SortedStreamWarning, match="shuffle the stream"):
        model.partial_fit(X[y == 0][:30])


@BOTH
def test_sorted_stream_splits_the_class_that_comes_alone(cls):
    """What the warning says is what happens."""
    X, y = make_blobs(800, centers=4, n_features=5, cluster_std=2.5, random_state=3)
    shuffled = np.random.default_rng(0).permutation(len(X))
    ends = {}
    for name, order in {"shuffled": shuffled, "sorted": np.argsort(y, kind="stable")}.items():
        model = _identity(cls, lr=0.3).fit(X[shuffled[:200]])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SortedStreamWarning)
            for _ in range(5):
                for part in np.array_split(X[order], 20):
                    model.partial_fit(part)
        ends[name] = normalized_mutual_info_score(y, model.predict(X))
    assert ends["shuffled"] > 0.9
    assert ends["sorted"] < ends["shuffled"] - 0.05
