"""The benchmark of ACOL-GAR on glyphs made here: cells, their report and their picture."""

from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks import pseudo_supervision, report_pseudo_supervision, storage, time_to_accuracy
from benchmarks.image_encoders import NETWORKS
from benchmarks.image_maps import IMAGE_MAPS
from benchmarks.pseudo_supervision_protocol import Split
from skdeepclust import ACOLGARClustering


@pytest.fixture
def made_up_images(monkeypatch):
    random = np.random.default_rng(0)
    y = np.arange(64) % 2
    X = random.random((64, 12, 12), dtype=np.float32) / 4
    X[y == 0, 2:10, 3] = X[y == 0, 9, 3:8] = X[y == 1, 2:6, 2:6] = 1
    X = X.reshape(64, -1)
    split = Split(X[:48], y[:48], X[48:], y[48:], (1, 12, 12))
    monkeypatch.setattr(pseudo_supervision, "load_split", lambda name: split)


def _arguments(folder, **changes):
    options = {"data": ["mnist"], "network": "three strides", "variants": ["default", "flips"]}
    options |= {"seeds": [0], "epochs": 3, "every": 2, "force": False, "results": folder}
    return SimpleNamespace(**{**options, **changes})


@pytest.fixture
def stored(tmp_path, made_up_images):
    with pytest.warns(UserWarning, match="duplicates"):
        assert pseudo_supervision.run(_arguments(tmp_path)) == 0
    return tmp_path


def test_cells_have_their_curve_and_are_not_run_again(stored):
    (cell,) = pseudo_supervision.stored_cells(stored, "mnist", "three strides", "flips")
    assert cell["finished"]
    assert [point["epoch"] for point in cell["curve"]] == [2, 3]
    for point in cell["curve"]:
        assert 0.5 <= point["unseen"]["acc"] <= point["unseen"]["purity"] <= 1
    assert cell["curve"][0]["training_seconds"] < cell["curve"][1]["training_seconds"]
    # K-means of two glyphs' pixels is right in any case.
    assert cell["read_outs"]["input"]["unseen"]["acc"] == 1
    assert pseudo_supervision.cells(_arguments(stored)) == []
    more = pseudo_supervision.cells(_arguments(stored, epochs=4, seeds=[0, 1]))
    assert len(more) == 4


def test_scoring_draws_nothing_from_the_training(tmp_path, made_up_images):
    cells = []
    for every in (1, 3):
        folder = tmp_path / str(every)
        with pytest.warns(UserWarning, match="duplicates"):
            pseudo_supervision.run(_arguments(folder, variants=["default"], every=every))
        cells += pseudo_supervision.stored_cells(folder, "mnist", "three strides", "default")
    assert cells[0]["curve"][-1]["loss"] == cells[1]["curve"][-1]["loss"]


def test_a_broken_variant_costs_its_cell_alone(tmp_path, made_up_images, monkeypatch):
    broken = {"encoder": "broken"}
    monkeypatch.setitem(pseudo_supervision.variants_of("mnist"), "broken", broken)
    with pytest.warns(UserWarning, match="duplicates"):
        assert pseudo_supervision.run(_arguments(tmp_path, variants=["broken", "default"])) == 1
    assert [path.parent.name for path in tmp_path.rglob("seed0.json")] == ["default"]


def test_unknown_names_are_told(tmp_path):
    with pytest.raises(SystemExit, match="mnist has no nothing; there are: default, "):
        pseudo_supervision.run(_arguments(tmp_path, variants=["nothing"]))
    with pytest.raises(SystemExit, match="text20 has no paper; there are: default"):
        pseudo_supervision.run(_arguments(tmp_path, data=["text20"], network="paper"))


def test_report_and_picture(stored):
    lines = report_pseudo_supervision.pseudo_supervision_section(stored).splitlines()
    assert [line.split(" | ")[1] for line in lines if line.startswith("| three strides | ")] == [
        "default",
        "flips",
        "0",
        "0",
    ]
    storage.write_json(
        storage.cell_path(stored, "mnist", "umap+gmm", 0),
        {"seconds": 75.0, "acc": 0.9, "machine": {"threads": 1}},
    )
    figure = time_to_accuracy.draw(stored)
    labels = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert any(label.startswith("three strides, seed 0") for label in labels)
    assert any(label.startswith("UMAP + GMM") for label in labels)


def test_report_says_what_each_part_adds(tmp_path):
    found = {}
    parts = {"classification only": 0.5, "duplicates, not regularized": 0.625, "default": 0.75}
    for variant, nmi in parts.items():
        found["paper", variant] = [
            {"curve": [{"epoch": 60, "unseen": {"nmi": nmi + shift}}]} for shift in (-0.1, 0.1)
        ]
    # A longer training is compared where the others end.
    found["paper", "default"][0]["curve"] += [{"epoch": 200, "unseen": {"nmi": 0.9}}]
    (_, line) = report_pseudo_supervision._contributions(found)
    assert "NMI 0.500 by itself" in line
    assert "by +0.125, and the regularization (GAR) by +0.125 more, to 0.750" in line
    del found["paper", "default"]
    assert report_pseudo_supervision._contributions(found) == []


def test_networks_and_maps_fit_the_estimator(made_up_images):
    X = pseudo_supervision.load_split("mnist").X
    settings = {"image_shape": (1, 12, 12), "n_duplicates": 2, "n_init": 1, "max_epochs": 1}
    for parameters in NETWORKS.values():
        model = ACOLGARClustering(2, **settings, random_state=0, **parameters).fit(X)
        assert model.transform(X).shape == (48, parameters.get("embedding_dim", 2048))
    for maps in IMAGE_MAPS.values():
        model = ACOLGARClustering(2, **settings, transforms=maps, embedding_dim=8).fit(X)
        assert model.net_.module_.transformations.n_transforms == len(maps) + 1
