"""The families of maps: group facts, worked examples, application by label."""

import itertools

import pytest
import torch

from skdeepclust.nn.transformations import (
    CallableTransformations,
    image_transformations,
    vector_transformations,
)

SQUARE = torch.tensor([[[[1, 2], [3, 4]]]])
DIHEDRAL = [
    [[1, 2], [3, 4]],
    [[2, 4], [1, 3]],
    [[4, 3], [2, 1]],
    [[3, 1], [4, 2]],
    [[2, 1], [4, 3]],
    [[4, 2], [3, 1]],
    [[3, 4], [1, 2]],
    [[1, 3], [2, 4]],
]
FLIPS = [
    [[1, 2, 3], [4, 5, 6]],
    [[6, 5, 4], [3, 2, 1]],
    [[3, 2, 1], [6, 5, 4]],
    [[4, 5, 6], [1, 2, 3]],
]
INVERSE = [0, 3, 2, 1, 4, 5, 6, 7]


def images_of(transformations, row):
    """Return `row` under all maps, one a row of the result."""
    n = transformations.n_transforms
    return transformations(row.expand(n, *row.shape[1:]), torch.arange(n))


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def vectors(family, n_transforms=None, n_features=6, seed=0):
    return vector_transformations(family, n_transforms, n_features, generator(seed), torch.float64)


def test_dihedral_maps_of_the_worked_example():
    found = images_of(image_transformations("dihedral", None, (1, 2, 2)), SQUARE)
    assert found.squeeze(1).tolist() == DIHEDRAL


def test_flips_of_the_worked_example():
    row = torch.tensor([[FLIPS[0]]])
    found = images_of(image_transformations("flips", None, (1, 2, 3)), row)
    assert found.squeeze(1).tolist() == FLIPS


@pytest.mark.parametrize(
    ("family", "n_transforms"),
    [("dihedral", 8), ("rotations", 4), ("rotations", 2), ("flips", 4), ("flips", 2)],
)
def test_image_families_are_groups_of_bijections(family, n_transforms):
    transformations = image_transformations(family, n_transforms, (2, 5, 5))
    row = torch.rand(1, 2, 5, 5, generator=generator())
    images = images_of(transformations, row)
    torch.testing.assert_close(images[0], row[0], rtol=0, atol=0)
    assert len(torch.unique(images.flatten(1), dim=0)) == n_transforms
    for image, channel in itertools.product(images, range(2)):
        assert torch.equal(image[channel].flatten().sort()[0], row[0, channel].flatten().sort()[0])
    for first, second in itertools.product(range(n_transforms), repeat=2):
        composed = transformations(images[first : first + 1], torch.tensor([second]))
        assert any(torch.equal(composed[0], image) for image in images)


def test_inverses_of_the_dihedral_maps():
    transformations = image_transformations("dihedral", None, (1, 4, 4))
    row = torch.rand(1, 1, 4, 4, generator=generator())
    images = images_of(transformations, row)
    back = transformations(images, torch.tensor(INVERSE))
    torch.testing.assert_close(back, row.expand_as(back), rtol=0, atol=0)


def test_a_batch_of_mixed_labels_equals_one_image_at_a_time():
    transformations = image_transformations("dihedral", None, (3, 4, 4))
    rows = torch.rand(20, 3, 4, 4, generator=generator())
    labels = torch.randint(8, (20,), generator=generator(1))
    together = transformations(rows, labels)
    for number in range(20):
        alone = transformations(rows[number : number + 1], labels[number : number + 1])
        assert torch.equal(together[number : number + 1], alone)


@pytest.mark.parametrize("family", ["cyclic", "signs", "haar", "permutation"])
def test_vector_families_are_orthogonal_and_start_with_the_identity(family):
    transformations = vectors(family)
    assert transformations.n_transforms == 4
    rows = torch.eye(6, dtype=torch.float64)
    for number in range(4):
        matrix = transformations(rows, torch.full((6,), number)).T
        torch.testing.assert_close(matrix.T @ matrix, rows, rtol=0, atol=1e-12)
        assert torch.equal(matrix, rows) == (number == 0)


@pytest.mark.parametrize("family", ["cyclic", "haar", "permutation"])
def test_drawn_families_follow_the_seed(family):
    row = torch.rand(1, 6, generator=generator(), dtype=torch.float64)
    assert torch.equal(images_of(vectors(family), row), images_of(vectors(family), row))
    assert not torch.equal(images_of(vectors(family), row), images_of(vectors(family, seed=1), row))


@pytest.mark.parametrize(("n_transforms", "n_features"), [(4, 6), (8, 5), (3, 2)])
def test_cyclic_maps_are_powers_of_one(n_transforms, n_features):
    matrices = vectors("cyclic", n_transforms, n_features).matrices
    for number in range(n_transforms):
        power = torch.linalg.matrix_power(matrices[1], number)
        torch.testing.assert_close(matrices[number], power, rtol=0, atol=1e-12)
    identity = torch.eye(n_features, dtype=torch.float64)
    power = torch.linalg.matrix_power(matrices[1], n_transforms)
    torch.testing.assert_close(power, identity, rtol=0, atol=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_cyclic_maps_of_the_plane(seed):
    row = torch.tensor([[1.0, 2.0]], dtype=torch.float64)
    found = images_of(vectors("cyclic", 4, 2, seed), row)
    expected = torch.tensor([[1, 2], [-2, 1], [-1, -2], [2, -1]], dtype=torch.float64)
    torch.testing.assert_close(found, expected)


def test_signs_of_the_worked_example():
    row = torch.tensor([[1.0, 2.0, 3.0, 4.0]], dtype=torch.float64)
    found = images_of(vectors("signs", 4, 4), row)
    assert found.tolist() == [[1, 2, 3, 4], [1, -2, 3, -4], [1, 2, -3, -4], [1, -2, -3, 4]]


def test_how_many_maps_differ_by_more_than_a_sign():
    assert vectors("cyclic", 4).n_distinct_up_to_sign == 2
    assert vectors("cyclic", 8).n_distinct_up_to_sign == 4
    assert vectors("cyclic", 4, 5).n_distinct_up_to_sign == 4
    assert vectors("signs").n_distinct_up_to_sign == 4
    assert vectors("haar").n_distinct_up_to_sign == 4
    assert vectors("permutation").n_distinct_up_to_sign == 4


@pytest.mark.parametrize("family", ["cyclic", "signs", "haar", "permutation"])
def test_a_single_feature_has_its_sign(family):
    found = images_of(vectors(family, None, 1), torch.tensor([[3.0]], dtype=torch.float64))
    assert found.tolist() == [[3.0], [-3.0]]


def test_own_maps_come_after_the_identity():
    transformations = CallableTransformations([lambda rows: -rows, lambda rows: 2 * rows])
    rows = torch.tensor([[1.0], [1.0], [1.0]])
    assert transformations(rows, torch.tensor([0, 1, 2])).tolist() == [[1.0], [-1.0], [2.0]]
    assert rows.tolist() == [[1.0], [1.0], [1.0]]


def test_an_own_map_that_changes_the_shape():
    transformations = CallableTransformations([lambda rows: rows[:, :1]])
    with pytest.raises(ValueError, match=r"transforms\[0\] gave \(2, 1\).*\(2, 3\)"):
        transformations(torch.ones(2, 3), torch.tensor([1, 1]))


@pytest.mark.parametrize(
    ("family", "n_transforms", "row_shape", "message"),
    [
        ("dihedral", 4, (1, 4, 4), "n_transforms=4 does not fit transforms='dihedral'.* has 8"),
        ("rotations", 3, (1, 4, 4), "n_transforms=3 .* has 2 or 4"),
        ("dihedral", None, (1, 4, 5), "square images, but X has images of 4 x 5.*flips"),
    ],
)
def test_image_families_that_do_not_exist(family, n_transforms, row_shape, message):
    with pytest.raises(ValueError, match=message):
        image_transformations(family, n_transforms, row_shape)


def test_a_number_of_signs_that_no_hadamard_matrix_has():
    with pytest.raises(ValueError, match="n_transforms=6 does not fit transforms='signs'"):
        vectors("signs", 6)
    assert vectors("signs", 16).n_transforms == 16
