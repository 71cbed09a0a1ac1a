"""The first partition: every way to ask for one, and what wrong requests are told."""

import warnings

import numpy as np
import pytest
from sklearn.cluster import DBSCAN, AgglomerativeClustering, Birch, KMeans
from sklearn.datasets import make_blobs
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skdeepclust.training import partition as module
from skdeepclust.training.partition import NAMED_INITS, first_partition

# Hand-made: three pairs, means (0, 0.5), (8, 8.5), (-9, 0).
PAIRS = np.array([[0.0, 1], [8, 8], [-9, 1], [0, 0], [8, 9], [-9, -1]])
PAIR_LABELS = np.array([0, 1, 2, 0, 1, 2])
PAIR_MEANS = np.array([[0, 0.5], [8, 8.5], [-9, 0]])


@pytest.fixture(autouse=True)
def no_warning_and_no_global_random_number():
    state = np.random.get_state()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield
    np.testing.assert_array_equal(np.random.get_state()[1], state[1])
    assert np.random.get_state()[2] == state[2]


def blobs(n_samples=300, dtype=np.float64):
    rows, labels = make_blobs(
        n_samples, 3, centers=5, cluster_std=0.3, center_box=(-9, 9), random_state=3
    )
    return rows.astype(dtype), labels


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("init", NAMED_INITS)
def test_named_inits_find_separated_clusters(init, dtype):
    rows, expected = blobs(dtype=dtype)
    before = rows.copy()
    labels, centers, init_used = first_partition(rows, 5, init, random_state=0)
    assert adjusted_rand_score(expected, labels) == 1.0
    assert labels.dtype == np.int64
    assert centers.dtype == np.float64
    means = [rows[labels == k].mean(axis=0, dtype=np.float64) for k in range(5)]
    np.testing.assert_allclose(centers, means, rtol=1e-12)
    assert init_used == init
    np.testing.assert_array_equal(rows, before)


@pytest.mark.parametrize("init", NAMED_INITS)
def test_pairs_by_hand(init):
    labels, centers, _ = first_partition(PAIRS, 3, init, random_state=0)
    assert adjusted_rand_score(PAIR_LABELS, labels) == 1.0
    np.testing.assert_allclose(centers[labels[:3]], PAIR_MEANS, atol=1e-12)


@pytest.mark.parametrize("init", NAMED_INITS)
def test_the_same_seed_gives_the_same_partition(init):
    rows = np.random.default_rng(0).normal(size=(200, 4))
    first, again = (first_partition(rows, 6, init, random_state=5) for _ in range(2))
    np.testing.assert_array_equal(first.labels, again.labels)
    np.testing.assert_array_equal(first.centers, again.centers)


@pytest.mark.parametrize("init", NAMED_INITS)
@pytest.mark.parametrize("scale", [1e-150, 1e-12, 1.0, 1e12, 1e150])
def test_the_unit_of_the_embedding_does_not_matter(init, scale):
    rows, expected = blobs(100)
    labels, centers, _ = first_partition(rows * scale, 5, init, random_state=0)
    assert adjusted_rand_score(expected, labels) == 1.0
    means = first_partition(rows, 5, labels, random_state=0).centers
    np.testing.assert_allclose(centers / scale, means, rtol=1e-12)


@pytest.mark.parametrize("init", NAMED_INITS)
@pytest.mark.parametrize("n_distinct", [1, 3, 5, 6])
def test_duplicated_rows(init, n_distinct):
    rows = np.tile(np.random.default_rng(0).normal(size=(n_distinct, 3)), (20, 1))
    labels, centers, init_used = first_partition(rows, 5, init, random_state=0)
    np.testing.assert_array_equal(np.unique(labels), np.arange(min(n_distinct, 5)))
    assert centers.shape == (5, 3)
    if n_distinct <= 5:
        assert init_used == "distinct rows"
        np.testing.assert_allclose(centers[labels], rows, rtol=1e-12)
        # The centres of ids that no row has are those of others.
        for center in centers[n_distinct:]:
            assert np.isclose(center, rows).all(axis=1).any()


@pytest.mark.parametrize("init", NAMED_INITS)
def test_negative_zero_is_no_other_row_than_zero(init, monkeypatch):
    # One row at a time, so that rows are compared across pieces.
    monkeypatch.setattr("skdeepclust.training.scaled_rows._CHUNK_VALUES", 2)
    rows = np.array([[0.0, 1.0], [-0.0, 1.0], [0.0, -1.0]])
    labels = first_partition(rows, 3, init, random_state=0).labels
    np.testing.assert_array_equal(labels, [0, 0, 1])


@pytest.mark.parametrize("init", NAMED_INITS)
def test_one_cluster(init):
    rows, _ = blobs(50)
    labels, centers, _ = first_partition(rows, 1, init, random_state=0)
    np.testing.assert_array_equal(labels, np.zeros(50))
    np.testing.assert_allclose(centers[0], rows.mean(axis=0), rtol=1e-12)


@pytest.mark.parametrize("init", NAMED_INITS)
def test_clusters_that_are_tiny_beside_the_range_of_the_data(init):
    rows = np.repeat([[1.0, 1], [0, 0], [1e-10, 0], [0, 1e-10], [1e-10, 1e-10]], 20, axis=0)
    rows[-1] += 1e-11
    labels, _, init_used = first_partition(rows, 5, init, random_state=0)
    np.testing.assert_array_equal(np.unique(labels), np.arange(5))
    assert init_used == ("path-integral" if init == "path-integral" else "ward")


@pytest.mark.parametrize(
    ("init", "limit"),
    [
        ("ward", "MAX_WARD_ROWS"),
        ("path-integral", "MAX_PATH_INTEGRAL_ROWS"),
        ("k-means++", "MAX_KMEANS_VALUES"),
    ],
)
def test_large_embeddings_are_partitioned_by_a_subsample(init, limit, monkeypatch):
    clustered = []
    whole = module._labels_by_name

    def watched(points, *arguments):
        clustered.append(len(points))
        return whole(points, *arguments)

    monkeypatch.setattr(module, "_labels_by_name", watched)
    monkeypatch.setattr(module, limit, 300)
    rows, expected = blobs(2000)
    labels = first_partition(rows, 5, init, random_state=0).labels
    assert adjusted_rand_score(expected, labels) == 1.0
    n_rows = 100 if init == "k-means++" else 300
    # The first distinct rows come on top, as far as they were not drawn.
    assert n_rows <= clustered[0] <= n_rows + 6


def test_a_subsample_holds_enough_distinct_rows(monkeypatch):
    monkeypatch.setattr(module, "MAX_WARD_ROWS", 50)
    rows = np.zeros((5000, 2))
    rows[[7, 2000, 4999]] = [[9, 0], [0, 8], [0, 9]]
    expected = np.zeros(5000)
    expected[[7, 2000, 4999]] = [1, 2, 2]
    labels = first_partition(rows, 3, "ward", random_state=0).labels
    np.testing.assert_array_equal(labels, expected)


def test_labels_of_the_user_keep_their_ids():
    labels, centers, init_used = first_partition(PAIRS, 4, [3, 1, 0, 3, 1, 0], random_state=0)
    np.testing.assert_array_equal(labels, [3, 1, 0, 3, 1, 0])
    np.testing.assert_array_equal(centers[[3, 1, 0]], PAIR_MEANS)
    np.testing.assert_array_equal(centers[2], PAIR_MEANS[2])
    assert init_used == "labels"


@pytest.mark.parametrize(
    "init",
    [
        ["b", "c", "a", "b", "c", "a"],
        np.array([7.5, 9.0, -1.0, 7.5, 9.0, -1.0]),
        np.array([20, 30, 10, 20, 30, 10], dtype=np.uint8),
    ],
)
def test_other_label_values_are_numbered_in_sorted_order(init):
    labels, centers, _ = first_partition(PAIRS, 3, init, random_state=0)
    np.testing.assert_array_equal(labels, [1, 2, 0, 1, 2, 0])
    np.testing.assert_array_equal(centers, PAIR_MEANS[[2, 0, 1]])


def test_centers_of_the_user_keep_their_values_and_order():
    given = [[-8.0, 0], [500, 500], [1, 1], [7, 7]]
    labels, centers, init_used = first_partition(PAIRS, 4, given, random_state=0)
    np.testing.assert_array_equal(labels, [2, 3, 0, 2, 3, 0])
    np.testing.assert_array_equal(centers, given)
    assert init_used == "centers"


def test_a_clusterer_is_cloned_and_told_the_number_of_clusters():
    rows, expected = blobs()
    clusterer = KMeans(n_init=3)
    labels, _, init_used = first_partition(rows, 5, clusterer, random_state=0)
    assert adjusted_rand_score(expected, labels) == 1.0
    assert init_used == "KMeans"
    assert clusterer.n_clusters == 8
    assert clusterer.random_state is None
    assert not hasattr(clusterer, "labels_")
    noisy = np.random.default_rng(0).normal(size=(200, 4))
    pipeline = make_pipeline(StandardScaler(), KMeans(5, n_init=1))
    first, again = (first_partition(noisy, 5, pipeline, random_state=1) for _ in range(2))
    np.testing.assert_array_equal(first.labels, again.labels)


@pytest.mark.parametrize(
    "clusterer",
    [AgglomerativeClustering(None, distance_threshold=5.0), Birch(n_clusters=None, threshold=2.0)],
)
def test_a_number_of_clusters_that_is_none_stays_none(clusterer):
    labels, centers, _ = first_partition(PAIRS, 4, clusterer, random_state=0)
    assert adjusted_rand_score(PAIR_LABELS, labels) == 1.0
    np.testing.assert_array_equal(np.unique(labels), [0, 1, 2])
    assert np.isfinite(centers).all()


def test_a_clusterer_that_overwrites_its_input_gets_a_copy():
    rows, _ = blobs(60)
    before = rows.copy()
    rows.flags.writeable = False
    first_partition(rows, 5, KMeans(copy_x=False), random_state=0)
    np.testing.assert_array_equal(rows, before)


def test_noise_joins_the_nearest_center():
    rows = np.vstack((PAIRS, [[4.5, 4.4], [3.5, 3.4]]))
    assert list(DBSCAN(eps=2.5, min_samples=2).fit_predict(rows)) == [0, 1, 2, 0, 1, 2, 3, 3]
    labels, centers, _ = first_partition(rows[:7], 3, DBSCAN(2.5, min_samples=2), random_state=0)
    # (4.5, 4.4) is 5.95 from (0, 0.5) and 5.39 from (8, 8.5).
    np.testing.assert_array_equal(labels, [0, 1, 2, 0, 1, 2, 1])
    np.testing.assert_allclose(centers[1], [20.5 / 3, 21.4 / 3])


def test_frozen_clusterers_are_used_as_they_are():
    fitted = KMeans(3, init=PAIR_MEANS[[2, 0, 1]], n_init=1).fit(PAIRS)
    labels, _, init_used = first_partition(PAIRS, 3, FrozenEstimator(fitted), random_state=0)
    np.testing.assert_array_equal(labels, [1, 2, 0, 1, 2, 0])
    assert init_used == "KMeans"
    only_labels = DBSCAN(eps=2.5, min_samples=2).fit(PAIRS)
    labels, _, _ = first_partition(PAIRS, 3, FrozenEstimator(only_labels), random_state=0)
    np.testing.assert_array_equal(labels, PAIR_LABELS)


@pytest.mark.parametrize(
    ("init", "error", "parts"),
    [
        ("k-mean", ValueError, ["'k-mean'", "'k-means++'"]),
        (None, TypeError, ["None"]),
        (3, TypeError, ["3"]),
        (KMeans, TypeError, ["instance"]),
        (StandardScaler(), TypeError, ["StandardScaler", "fit_predict"]),
        ([0, 1, 2], ValueError, ["3 labels", "6 rows"]),
        ([0, 1, 2, 3, 4, 5], ValueError, ["6 different labels", "n_clusters=3"]),
        ([0, 1, np.nan, 0, 1, 2], ValueError, ["1 nan", "6"]),
        ([0, "a", None, 0, 1, 2], ValueError, ["compared"]),
        ([[0, 1], [2]], ValueError, ["array"]),
        (np.zeros((2, 2)), ValueError, ["(2, 2)", "(3, 2)"]),
        (np.zeros((3, 5)), ValueError, ["(3, 5)", "(3, 2)"]),
        (np.zeros((6, 1)), ValueError, ["(6, 1)", "one dimension"]),
        (np.full((3, 2), np.inf), ValueError, ["6 nan or infinite", "6"]),
        ([["a", "b"]] * 3, ValueError, ["numbers"]),
        (np.zeros((3, 2, 1)), ValueError, ["3 dimensions"]),
        (make_pipeline(KMeans(4)), ValueError, ["found 4 clusters", "n_clusters=3"]),
        (DBSCAN(eps=0.1), ValueError, ["6 rows are noise", "n_clusters=3"]),
        (FrozenEstimator(KMeans(3).fit(np.eye(3))), ValueError, ["3 features", "has 2"]),
        (FrozenEstimator(DBSCAN().fit(PAIRS[:4])), ValueError, ["4 rows", "6 rows"]),
        (FrozenEstimator(DBSCAN()), ValueError, ["no labels_", "6 rows"]),
    ],
)
def test_wrong_requests_are_told_what_is_wrong(init, error, parts):
    with pytest.raises(error) as raised:
        first_partition(PAIRS, 3, init, random_state=0)
    for part in ["init", *parts]:
        assert part in str(raised.value)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_an_embedding_that_is_not_finite_is_refused(value):
    rows = PAIRS.copy()
    rows[3, 1] = value
    with pytest.raises(ValueError, match="embedding"):
        first_partition(rows, 2, "ward", random_state=0)
