"""Accuracy, purity and renaming, against counts made by hand."""

import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest

from skdeepclust.metrics import align_labels, clustering_accuracy, purity_score

# Ten samples; class by cluster:       cluster 0  1  2  3
#                          class "a"           3  1  0  0
#                          class "b"           2  0  0  1
#                          class "c"           0  0  2  1
CLASSES = list("aaaabbbccc")
CLUSTERS = [0, 0, 0, 1, 0, 0, 3, 2, 2, 3]


def test_accuracy_of_a_rectangular_table():
    # a-0 (3), c-2 (2), b-3 (1): six of ten; cluster 1 is left over.
    assert clustering_accuracy(CLASSES, CLUSTERS) == 0.6
    # The same table on its side.
    assert clustering_accuracy(CLUSTERS, CLASSES) == 0.6


def test_accuracy_is_not_the_greedy_matching():
    # Class by cluster [[5, 4], [4, 0]]: greedy takes 5 + 0, the best matching takes 4 + 4.
    classes = [0] * 9 + [1] * 4
    clusters = [0] * 5 + [1] * 4 + [0] * 4
    assert clustering_accuracy(classes, clusters) == pytest.approx(8 / 13)


def test_purity_by_hand():
    # Majorities 3, 1, 2, 1 of ten.
    assert purity_score(CLASSES, CLUSTERS) == 0.7
    # The other way round the majorities are 3, 2, 2.
    assert purity_score(CLUSTERS, CLASSES) == 0.7
    assert purity_score([0, 0, 1, 1], [0, 0, 0, 0]) == 0.5
    assert purity_score([0, 0, 1, 1], [0, 1, 2, 3]) == 1.0


@pytest.mark.parametrize("score", [clustering_accuracy, purity_score])
def test_scores_return_python_floats_and_ignore_names(score):
    value = score(["x", "x", "y"], [True, True, False])
    assert type(value) is float
    assert value == 1.0
    assert score([], []) == 1.0


@pytest.mark.parametrize(
    "convert",
    [
        list,
        tuple,
        np.array,
        lambda labels: np.array(labels, dtype=object),
        lambda labels: np.array(labels, dtype="S"),
        pd.Series,
        lambda labels: pd.Series(labels, dtype="category"),
        pl.Series,
    ],
)
def test_any_container_of_strings(convert):
    assert clustering_accuracy(convert(CLASSES), CLUSTERS) == 0.6
    assert purity_score(convert(CLASSES), CLUSTERS) == 0.7
    assert len(align_labels(convert(CLASSES), CLUSTERS)) == 10


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint64, np.float32, ">i4"])
def test_any_number_type(dtype):
    clusters = np.array(CLUSTERS, dtype=dtype)
    assert clustering_accuracy(CLASSES, clusters) == 0.6
    assert purity_score(CLASSES, clusters) == 0.7


def test_many_clusters_do_not_overflow_narrow_dtypes():
    labels = np.arange(256, dtype=np.uint8)
    assert clustering_accuracy(labels, labels[::-1]) == 1.0


def test_align_renames_a_permutation_back():
    reference = np.array([0, 0, 1, 1, 2, 2, 2])
    permuted = np.array([5, 5, 9, 9, 1, 1, 9])
    np.testing.assert_array_equal(align_labels(reference, permuted), [0, 0, 1, 1, 2, 2, 1])


def test_align_keeps_labels_that_already_agree():
    labels = np.array([3, 1, 1, 0, 7])
    np.testing.assert_array_equal(align_labels(labels, labels), labels)


def test_align_gives_extra_ids_new_names():
    # 8 -> 4 (two samples), 6 -> 2 (one); 2, 3 and 4 of `labels` are left over.
    reference = np.array([4, 4, 4, 4, 2, 2])
    labels = np.array([8, 8, 4, 3, 6, 2])
    aligned = align_labels(reference, labels)
    assert aligned[0] == aligned[1] == 4
    assert len(set(aligned)) == 5
    assert set(aligned) == {2, 4, 5, 6, 7}


def test_align_with_fewer_ids_than_the_reference():
    np.testing.assert_array_equal(align_labels(["a", "b", "b", "c"], [0, 1, 1, 1]), list("abbb"))


def test_align_extra_strings_do_not_collide():
    reference = ["extra_0", "extra_0", "b", "b"]
    aligned = align_labels(reference, [0, 0, 1, 2])
    assert list(aligned[:2]) == ["extra_0", "extra_0"]
    assert sorted(aligned[2:]) == ["b", "extra_1"]


def test_align_extra_strings_are_not_cut_short():
    aligned = align_labels(np.array(["a", "a"]), [0, 1])
    assert sorted(aligned) == ["a", "extra_0"]


@pytest.mark.parametrize(
    ("reference", "new_id"),
    [
        (np.array([255, 255, 255], dtype=np.uint8), 256),
        (np.array([127, 127, 127], dtype=np.int8), 128),
        (np.array([True, True, True]), 2),
        (np.array([-1, -1, -1]), 0),
        (np.array([1.5, 1.5, 1.5]), 2.0),
    ],
)
def test_align_extra_numbers_do_not_wrap_around(reference, new_id):
    aligned = align_labels(reference, [0, 0, 1])
    np.testing.assert_array_equal(aligned, [reference[0], reference[0], new_id])


def test_align_keeps_the_dtype_of_the_reference():
    reference = np.array([0, 0, 1, 1], dtype=np.int32)
    assert align_labels(reference, [5, 5, 6, 7]).dtype == np.int32
    assert align_labels(np.array([], dtype=np.int32), []).dtype == np.int32


def test_accuracy_is_the_agreement_after_alignment():
    generator = np.random.default_rng(0)
    for n_classes, n_clusters in [(3, 3), (3, 7), (7, 3), (1, 4)]:
        classes = generator.integers(n_classes, size=200)
        clusters = generator.integers(n_clusters, size=200)
        aligned = align_labels(classes, clusters)
        assert np.mean(aligned == classes) == clustering_accuracy(classes, clusters)
        assert clustering_accuracy(clusters, aligned) == 1.0
        assert purity_score(classes, clusters) >= clustering_accuracy(classes, clusters)


@pytest.mark.parametrize("function", [clustering_accuracy, purity_score, align_labels])
def test_inputs_are_left_alone(function):
    first = np.array([0, 1, 1, 2])
    second = np.array([1, 0, 0, 0])
    first.setflags(write=False)
    second.setflags(write=False)
    function(first, second)
    np.testing.assert_array_equal(second, [1, 0, 0, 0])


@pytest.mark.parametrize(
    ("function", "names"),
    [
        (clustering_accuracy, ("labels_true", "labels_pred")),
        (purity_score, ("labels_true", "labels_pred")),
        (align_labels, ("reference", "labels")),
    ],
)
class TestWrongInput:
    def test_different_lengths(self, function, names):
        with pytest.raises(ValueError, match=f"{names[0]} has 3 labels, {names[1]} has 2"):
            function([0, 1, 2], [0, 1])

    def test_not_one_dimensional(self, function, names):
        with pytest.raises(ValueError, match=rf"{names[0]} must be 1-D.*\(2, 1\)"):
            function([[0], [1]], [0, 1])
        with pytest.raises(ValueError, match=rf"{names[1]} must be 1-D.*\(2, 2\)"):
            function([0, 1], np.eye(2))
        with pytest.raises(ValueError, match=rf"{names[1]} must be 1-D.*\(\)"):
            function([0, 1], 3)

    def test_missing_labels(self, function, names):
        with pytest.raises(ValueError, match=f"{names[1]} holds 1 NaN or infinite labels among 2"):
            function([0, 1], [0.0, np.nan])

    def test_mixed_kinds(self, function, names):
        with pytest.raises(TypeError, match=f"{names[0]} must hold labels of one kind.*int, str"):
            function(np.array([1, "a"], dtype=object), [0, 1])


def test_importing_metrics_and_datasets_does_not_import_torch():
    code = (
        "import sys, skdeepclust.metrics, skdeepclust.datasets; "
        "sys.exit('torch' in sys.modules or 'skorch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
