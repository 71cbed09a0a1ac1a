"""ACOLGARClustering beyond the promises that all estimators share."""

import copy
import math
import warnings

import numpy as np
import pytest
import torch
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score
from torch import nn

import skdeepclust
from skdeepclust import ACOLGARClustering
from skdeepclust.exceptions import PretextWarning
from skdeepclust.losses import pseudo_supervised_cross_entropy
from skdeepclust.metrics import clustering_accuracy

pytestmark = pytest.mark.filterwarnings("ignore::skdeepclust.exceptions.PretextWarning")

SMALL = {"n_duplicates": 4, "embedding_dim": 32, "batch_size": 40, "n_init": 3, "random_state": 0}


def glyphs(n_rows=160, noise=0.1, seed=0):
    """Return noisy images of two glyphs without any symmetry, and which one each is."""
    patterns = np.zeros((2, 8, 8), dtype=np.float32)
    patterns[0, 1:7, 1] = patterns[0, 6, 1:5] = patterns[0, 1, 1:3] = 1.0
    patterns[1, 1:4, 2] = patterns[1, 3, 2:7] = patterns[1, 1:6, 6] = 1.0
    y = np.arange(n_rows) % 2
    random = np.random.default_rng(seed)
    return (patterns[y] + random.normal(0, noise, (n_rows, 8, 8))).astype(np.float32), y


@pytest.fixture(scope="module")
def planted():
    """A fit of the glyphs, which no test may change."""
    X, y = glyphs(320)
    model = ACOLGARClustering(2, **{**SMALL, "embedding_dim": 128}, max_epochs=40).fit(X)
    return model, X, y


def blobs(n_rows=200, n_features=5, n_clusters=3):
    X, y = make_blobs(n_rows, n_features, centers=n_clusters, random_state=1)
    return X.astype(np.float32), y


# -- training ------------------------------------------------------------------------------


def test_planted_glyphs_are_found(planted):
    model, X, y = planted
    assert model.history_[-1]["transformation_accuracy"] > 0.9
    assert clustering_accuracy(y, model.labels_) > 0.95
    new, new_y = glyphs(60, seed=5)
    assert clustering_accuracy(new_y, model.predict(new)) > 0.95
    assert model.readout_agreement_ == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("row_shape", "n_weights"),
    [((1, 28, 28), 6_817_408), ((1, 16, 16), 2_492_032), ((3, 32, 32), 8_784_064)],
)
def test_the_papers_networks(row_shape, n_weights):
    X = np.random.default_rng(0).random((4, *row_shape), dtype=np.float32)
    model = ACOLGARClustering(2, batch_size=160, max_epochs=1, n_init=1, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PretextWarning)
        # A batch of four rows leaves fewer duplicates; the network is built for 160 units here.
        settings = copy.copy(model)
        settings._resolved_batch_size = lambda n_rows: 160
        rows, _, statistics = settings._open_and_scan(X)
        network = settings._new_network(rows, statistics, seed=0)
    assert sum(p.numel() for p in network.parameters()) == n_weights
    assert network.head.linear.out_features == 160
    limit = math.sqrt(6 / (2048 + 160))
    assert network.head.linear.weight.detach().abs().max().item() == pytest.approx(limit, rel=1e-3)
    assert not network.head.linear.bias.any()


def test_the_first_cross_entropy_is_that_of_guessing():
    X = np.random.default_rng(0).normal(size=(400, 1, 16, 16)).astype(np.float32)
    model = ACOLGARClustering(2, lr=1e-9, max_epochs=1, n_init=1, random_state=0).fit(X)
    assert model.history_[0]["loss_classification"] == pytest.approx(math.log(8), abs=0.05)


def test_a_step_lowers_the_loss_on_its_batch(planted):
    model, X, _ = planted
    network = copy.deepcopy(model.net_.module_).eval()
    rows = torch.from_numpy(X[:64, None])
    labels = torch.arange(64) % 8
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-4)
    losses = []
    for _ in range(2):
        loss = pseudo_supervised_cross_entropy(network.softmax_inputs(rows, labels), labels, 8)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[1] < losses[0]


@pytest.mark.parametrize(
    "changes",
    [
        {"affinity_weight": 0.0},
        {"balance_weight": 0.0},
        {"frobenius_weight": 0.0},
        {"coactivity_weight": 1e-4},
        {"frobenius_on": "activity"},
        {"gar_reduction": "pooled"},
        {"gar_reduction": "global"},
        {"balance_on": "sums"},
        {"label_sampling": "balanced"},
        {"lr_schedule": "cosine"},
        {"transforms": "rotations"},
        {"transforms": "flips", "n_transforms": 2},
    ],
    ids=str,
)
def test_every_variant_of_the_objective_acts(changes):
    X, _ = glyphs(80)
    plain = ACOLGARClustering(2, **SMALL, max_epochs=2).fit(X)
    other = ACOLGARClustering(2, **SMALL, max_epochs=2, **changes).fit(X)
    weights = [model.net_.module_.encoder.stages[0][0].weight for model in (plain, other)]
    assert not torch.equal(*weights)
    absent = {f"loss_{name.removesuffix('_weight')}" for name, v in changes.items() if v == 0.0}
    assert absent.isdisjoint(other.history_[0])


def test_one_duplicate_is_the_plain_classifier():
    X, _ = glyphs(80)
    model = ACOLGARClustering(2, **{**SMALL, "n_duplicates": 1}, max_epochs=1).fit(X)
    assert model.net_.module_.head.linear.out_features == 8
    assert model.history_[0]["affinity"] == 0.0
    assert model.history_[0]["balance"] == 1.0


def test_balanced_labels_are_equally_often_in_a_batch():
    model = ACOLGARClustering(2, label_sampling="balanced")
    phase = model._training_phase(80)
    labels = phase._draw_labels(50, 8, torch.device("cpu"))
    assert set(torch.bincount(labels, minlength=8).tolist()) == {6, 7}


# -- data that leave less to transform -----------------------------------------------------


def test_images_that_are_not_square_are_told():
    X = glyphs(80)[0][:, :, :6]
    with pytest.warns(PretextWarning, match="8 x 6 pixels are not square"):
        model = ACOLGARClustering(2, **SMALL, max_epochs=1).fit(X)
    assert model.net_.module_.description.transforms == "flips"
    assert model.net_.module_.description.n_transforms == 4


@pytest.mark.parametrize("kind", ["one feature", "rank one"])
def test_a_single_direction_of_variance(kind):
    line = np.concatenate([np.random.default_rng(0).normal(m, 0.3, 60) for m in (0, 6)])
    X = line[:, None] if kind == "one feature" else np.outer(line, [1.0, -2.0, 0.5])
    model = ACOLGARClustering(2, **SMALL, max_epochs=20).fit(X.astype(np.float32))
    assert model.net_.module_.description.n_transforms == 2
    assert adjusted_rand_score(np.repeat([0, 1], 60), model.labels_) > 0.95


def test_rows_that_are_all_equal():
    X = np.ones((60, 4), dtype=np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = ACOLGARClustering(2, **SMALL, max_epochs=2).fit(X)
    assert (model.labels_ == 0).all()
    np.testing.assert_array_equal(model.predict_proba(X).argmax(axis=1), 0)


def test_few_rows_have_fewer_duplicates():
    X, _ = blobs(30)
    with pytest.warns(PretextWarning, match="n_duplicates=20 for each of 4 .* 30 rows.* 7 dup"):
        model = ACOLGARClustering(3, embedding_dim=16, max_epochs=2, random_state=0).fit(X)
    assert model.net_.module_.head.linear.out_features == 28


def test_a_pretext_that_covariances_betray():
    random = np.random.default_rng(0)
    X = (random.normal(size=(800, 4)) * [1, 4, 16, 64]).astype(np.float32)
    with pytest.warns(PretextWarning, match="Covariances alone name"):
        model = ACOLGARClustering(
            3, **SMALL, scaling="common", transforms="permutation", max_epochs=1
        ).fit(X)
    assert model.pretext_quadratic_score_ > 0.7
    whitened = ACOLGARClustering(3, **SMALL, transforms="permutation", max_epochs=1).fit(X)
    assert whitened.pretext_quadratic_score_ < 0.4
    assert whitened.pretext_linear_score_ < 0.4


@pytest.mark.parametrize("shape", [(300, 400), (200, 30), (900, 12)])
@pytest.mark.parametrize("scaling", ["standard", "whiten"])
def test_probes_of_collinear_and_of_few_rows(shape, scaling):
    X = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    X[:, 1], X[:, 2] = X[:, 0], 3.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PretextWarning)
        model = ACOLGARClustering(3, **SMALL, scaling=scaling, max_epochs=1).fit(X)
    # One of four, give or take four standard errors of 100 rows.
    assert 0.07 < model.pretext_linear_score_ < 0.43
    assert 0 <= model.pretext_quadratic_score_ <= 1


def test_matrices_for_too_many_columns_are_refused():
    X = np.zeros((8, 9_000), dtype=np.float32)
    X[:, 0] = range(8)
    with pytest.raises(ValueError, match="4 matrices of 9000 x 9000 .* scaling='whiten'"):
        ACOLGARClustering(3, **SMALL, scaling="standard").fit(X)


def test_a_pretext_that_tells_nothing():
    X = np.random.default_rng(0).normal(size=(800, 4)).astype(np.float32)
    with pytest.warns(PretextWarning, match="hardly more than chance"):
        ACOLGARClustering(3, **SMALL, max_epochs=2).fit(X)


def test_warnings_point_at_the_line_of_the_user():
    X, _ = blobs(30)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ACOLGARClustering(3, embedding_dim=16, max_epochs=1, random_state=0).fit(X)
    assert caught
    assert {entry.filename for entry in caught} == {__file__}


# -- transformations of the user -----------------------------------------------------------


def test_own_transformations_and_their_file(tmp_path):
    X, _ = glyphs(80)
    own = [lambda rows: rows.flip(-1), lambda rows: rows.rot90(1, (-2, -1))]
    model = ACOLGARClustering(2, **SMALL, transforms=own, max_epochs=2).fit(X)
    assert model.net_.module_.description.n_transforms == 3
    model.save(tmp_path / "model.zip")
    with pytest.raises(ValueError, match=r"load\(path, transforms=\.\.\.\)"):
        skdeepclust.load(tmp_path / "model.zip")
    loaded = skdeepclust.load(tmp_path / "model.zip", transforms=own)
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert loaded.score(X) == model.score(X)
    with pytest.raises(ValueError, match="3 maps were stored"):
        skdeepclust.load(tmp_path / "model.zip", transforms=own[:1])
    plain = ACOLGARClustering(2, **SMALL, max_epochs=1).fit(X)
    plain.save(tmp_path / "plain.zip")
    with pytest.raises(ValueError, match="transforms='auto'; leave it out"):
        skdeepclust.load(tmp_path / "plain.zip", transforms=own)


@pytest.mark.parametrize(
    ("changes", "kind", "message"),
    [
        ({"transforms": "turns"}, ValueError, "transforms"),
        ({"transforms": []}, TypeError, "list of callables"),
        ({"transforms": [1]}, TypeError, "list of callables"),
        ({"transforms": "cyclic"}, ValueError, "'cyclic' is not for images.*'dihedral'"),
        ({"n_transforms": 5}, ValueError, "n_transforms=5 does not fit transforms='dihedral'"),
        ({"transforms": [torch.flip], "n_transforms": 3}, ValueError, "n_transforms=3"),
        ({"scaling": "whiten"}, ValueError, "scaling='whiten' is for vectors"),
        ({"readout": "slots", "test_time_averaging": True}, ValueError, "readout='slots'"),
        ({"readout": "slots", "representation_norm": "l2"}, ValueError, "readout='slots'"),
        ({"encoder": "identity"}, ValueError, "encoder"),
        ({"hidden_dims": (8, -1)}, ValueError, "hidden_dims"),
    ],
)
def test_parameters_that_cannot_work(changes, kind, message):
    with pytest.raises(kind, match=message):
        ACOLGARClustering(2, **SMALL, **changes).fit(glyphs(40)[0])


def test_families_of_images_are_not_for_vectors():
    with pytest.raises(ValueError, match="'dihedral' is not for vectors.*image_shape"):
        ACOLGARClustering(2, **SMALL, transforms="dihedral").fit(blobs()[0])


# -- read-outs -----------------------------------------------------------------------------


def test_memberships_are_those_of_the_distances(planted):
    model, X, _ = planted
    distances = ((model.transform(X)[:, None] - model.cluster_centers_) ** 2).sum(axis=2)
    assert model.temperature_ == pytest.approx(distances.min(axis=1).mean(), rel=1e-5)
    assert model.inertia_ == pytest.approx(distances.min(axis=1).sum(), rel=1e-5)
    weights = np.exp(-(distances - distances.min(axis=1, keepdims=True)) / model.temperature_)
    expected = weights / weights.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(X), expected, atol=1e-5)


def test_slots_are_mapped_to_clusters(planted):
    _, X, _ = planted
    model = ACOLGARClustering(2, **SMALL, readout="slots", max_epochs=20).fit(X)
    head = model.net_.module_.head
    with torch.no_grad():
        slots = head.slots(torch.from_numpy(model.transform(X))).double().numpy()
    np.testing.assert_allclose(model.predict_proba(X), slots @ model.slot_table_, atol=1e-6)
    np.testing.assert_allclose(model.slot_table_.sum(axis=1), 1.0)
    assert model.n_active_slots_ == len(np.unique(slots.argmax(axis=1)))
    np.testing.assert_array_equal(model.predict(X), model.labels_)


def test_the_slot_table_of_the_worked_example():
    from skdeepclust.losses import slot_table

    table = slot_table(torch.tensor([[8, 2], [1, 9], [3, 3]]))
    expected = [[0.75, 0.25], [1 / 6, 5 / 6], [0.5, 0.5]]
    torch.testing.assert_close(table, torch.tensor(expected, dtype=torch.float64))
    memberships = torch.tensor([0.6, 0.3, 0.1]) @ torch.tensor([[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]])
    torch.testing.assert_close(memberships, torch.tensor([0.65, 0.35]))


def test_distance_memberships_of_the_worked_example():
    from skdeepclust.losses import distance_memberships

    found = distance_memberships(torch.tensor([[1.0, 9.0, 10.0], [5.0, 5.0, 8.0]]).double(), 2.0)
    expected = [[0.971416, 0.017792, 0.010791], [0.449816, 0.449816, 0.100368]]
    torch.testing.assert_close(found, torch.tensor(expected).double(), rtol=0, atol=5e-7)
    certain = distance_memberships(torch.tensor([[1.0, 9.0]]).double(), 0.0)
    assert certain.tolist() == [[1.0, 0.0]]


def test_averaging_over_the_transformations(planted):
    model, X, _ = planted
    averaged = ACOLGARClustering(2, **SMALL, test_time_averaging=True, max_epochs=2).fit(X)
    network = averaged.net_.module_
    rows = torch.from_numpy(X[:5, None])
    with torch.no_grad():
        views = [
            network.encoder(network.scaling(network.transformations(rows, torch.full((5,), p))))
            for p in range(8)
        ]
    expected = torch.stack(views).mean(dim=0).numpy()
    np.testing.assert_allclose(averaged.transform(X[:5]), expected, atol=1e-5)
    # The average does not depend on how an image lies.
    turned = np.rot90(X[:5], axes=(1, 2)).copy()
    np.testing.assert_allclose(averaged.transform(turned), expected, atol=1e-5)
    assert averaged.slot_table_ is None and averaged.n_active_slots_ is None


def test_representations_of_unit_length(planted):
    _, X, _ = planted
    model = ACOLGARClustering(2, **SMALL, representation_norm="l2", max_epochs=2).fit(X)
    np.testing.assert_allclose(np.linalg.norm(model.transform(X), axis=1), 1.0, atol=1e-5)


@pytest.mark.parametrize("init", ["ward", "random", "path-integral"])
def test_starts_of_the_read_out(init, planted):
    _, X, y = planted
    model = ACOLGARClustering(2, **{**SMALL, "embedding_dim": 128}, init=init, max_epochs=40)
    assert clustering_accuracy(y, model.fit(X).labels_) > 0.95
    assert model.init_used_ == init


def test_other_numbers_of_clusters_without_training(planted):
    model, X, y = planted
    before = model.predict_proba(X)
    finer = model.recluster(X, 4)
    assert finer.n_clusters == 4 and len(np.unique(finer.labels_)) == 4
    np.testing.assert_array_equal(finer.predict(X), finer.labels_)
    np.testing.assert_array_equal(finer.transform(X), model.transform(X))
    # Each of the four lies within one glyph.
    for cluster in range(4):
        assert len(np.unique(y[finer.labels_ == cluster])) == 1
    assert finer.recluster(X, 2).n_iter_ == model.n_iter_
    assert adjusted_rand_score(finer.recluster(X, 2).labels_, model.labels_) == 1.0
    assert (model.recluster(X[:50], 1).labels_ == 0).all()
    np.testing.assert_array_equal(model.predict_proba(X), before)
    assert finer.history_[-1]["n_used_clusters"] == 4
    # After a call of a stream that only waits there is no epoch of training on record.
    waiting = copy.deepcopy(model).partial_fit(X[:2])
    assert len(np.unique(waiting.recluster(X, 3).labels_)) == 3
    with pytest.raises(ValueError, match="n_samples=3 should be >= n_clusters=5"):
        model.recluster(X[:3], 5)


def test_score_is_the_cross_entropy_of_all_views(planted):
    model, X, _ = planted
    rows = torch.from_numpy(X[:10, None])
    network = model.net_.module_
    losses = []
    with torch.no_grad():
        for number in range(8):
            labels = torch.full((10,), number)
            logits = network.softmax_inputs(rows, labels)
            losses.append(pseudo_supervised_cross_entropy(logits, labels, 8).item())
    assert model.score(X[:10]) == pytest.approx(-np.mean(losses), rel=1e-4)


# -- streams -------------------------------------------------------------------------------


def test_a_stream_waits_for_as_many_rows_as_there_are_units(planted):
    model, X, _ = planted
    model = copy.deepcopy(model)
    n_units = model.net_.module_.head.linear.out_features
    before = model.transform(X)
    model.partial_fit(X[: n_units - 1])
    np.testing.assert_array_equal(model.transform(X), before)
    assert len(model._stream_state["waiting"]) == n_units - 1
    model.partial_fit(X[:1])
    assert not np.array_equal(model.transform(X), before)
    assert len(model._stream_state["waiting"]) == 0
    assert len(model._stream_state["reservoir_rows"]) <= 200


def test_a_stream_of_glyphs_keeps_ids(planted):
    model, X, _ = planted
    model = copy.deepcopy(model).set_params(lr=1e-4)
    before = model.predict(X)
    for seed in range(6):
        model.partial_fit(glyphs(60, seed=seed)[0])
    assert (model.predict(X) == before).mean() > 0.99


def test_a_new_stream_needs_a_batch():
    X, y = glyphs(120)
    model = ACOLGARClustering(2, **SMALL, max_epochs=5).partial_fit(X[:39])
    with pytest.raises(Exception, match="has 39 rows and needs 1 more"):
        model.predict(X)
    model.partial_fit(X[39:40])
    assert model.n_iter_ == 5


def test_pixels_of_bytes_and_a_users_module():
    X = np.random.default_rng(0).integers(0, 256, (60, 3, 8, 8)).astype(np.uint8)
    encoder = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 32))
    model = ACOLGARClustering(2, **SMALL, encoder=encoder, max_epochs=2).fit(X)
    assert model.transform(X).shape == (60, 32)
    assert model.net_.module_.scaling(torch.tensor(255.0)).item() <= 1.001
