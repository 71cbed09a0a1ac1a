"""The logic of the benchmarks, on numbers worked out by hand and on methods made up here."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

from benchmarks import accuracy, methods, report, storage
from benchmarks.data import Data
from benchmarks.label_free import LabelFreeScores, modularity, symmetric_neighbor_graph
from benchmarks.timing import Seconds, compare, time_in_turn

# Two triangles, joined by the edge 2-3.
_EDGES = [(0, 1), (0, 2), (1, 2), (3, 4), (3, 5), (4, 5), (2, 3)]


@pytest.fixture
def two_triangles():
    first, second = np.array(_EDGES).T
    one_way = sp.coo_array((np.ones(7), (first, second)), shape=(6, 6))
    return (one_way + one_way.T).tocsr()


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        # 3 of 7 edges and 7 of 14 ends of edges are in each triangle.
        ([0, 0, 0, 1, 1, 1], 2 * (3 / 7 - 1 / 4)),
        (["b", "b", "b", "a", "a", "a"], 2 * (3 / 7 - 1 / 4)),
        ([0, 0, 0, 0, 0, 0], 0.0),
        # No edge is within a cluster; the degrees are 2, 2, 3, 3, 2, 2.
        ([0, 1, 2, 3, 4, 5], -(4 * 4 + 2 * 9) / 14**2),
    ],
)
def test_modularity(two_triangles, labels, expected):
    assert modularity(two_triangles, labels) == pytest.approx(expected, abs=1e-12)


def test_neighbor_graph_joins_what_either_side_names():
    # 3 is the nearest of nobody, but names 1.
    graph = symmetric_neighbor_graph(np.array([[0.0], [1.0], [1.9], [10.0]]), n_neighbors=1)
    expected = np.zeros((4, 4))
    for i, j in [(0, 1), (1, 2), (2, 3)]:
        expected[i, j] = expected[j, i] = 1
    np.testing.assert_array_equal(graph.toarray(), expected)


def test_label_free_scores_prefer_the_right_partition():
    points = np.concatenate([np.zeros((20, 2)), np.full((20, 2), 9.0)])
    points += np.random.default_rng(0).standard_normal(points.shape)
    scores = LabelFreeScores(points)
    right, wrong = scores(np.arange(40) // 20), scores(np.arange(40) % 2)
    assert right["modularity"] > wrong["modularity"]
    assert right["silhouette"] > wrong["silhouette"]
    assert scores(np.zeros(40))["silhouette"] is None


def _arguments(folder, **changes):
    options = {"data": ["digits"], "methods": ["made-up"], "seeds": [0, 1], "budget": None}
    options |= {"force": False, "cache": folder / "cache", "results": folder}
    return SimpleNamespace(**{**options, **changes})


@pytest.fixture
def made_up_method(monkeypatch):
    """A method that gives four rows their classes but for one, and counts its calls."""
    data = Data("digits", np.eye(4, dtype=np.float32), np.array([0, 0, 1, 1]))
    seeds = []

    def method(problem):
        assert not hasattr(problem, "y")
        seeds.append(problem.seed)
        labels = np.array([1, 1, 0, 1])
        tried = [
            {
                "parameters": {},
                "labels": labels,
                "label_free": {"modularity": 0.5, "silhouette": float("nan")},
                "chosen": True,
            }
        ]
        return methods.Outcome(labels, {"size": np.int64(3)}, "input", problem.X, tried=tried)

    monkeypatch.setitem(methods.METHODS, "made-up", method)
    monkeypatch.setattr(accuracy, "load_data", lambda name: data)
    return seeds


def test_cells_are_stored_and_not_run_again(tmp_path, made_up_method):
    assert accuracy.run(_arguments(tmp_path)) == 0
    assert accuracy.run(_arguments(tmp_path)) == 0
    assert made_up_method == [0, 1]
    assert accuracy.run(_arguments(tmp_path, seeds=[1], force=True)) == 0
    assert made_up_method == [0, 1, 1]
    cell = json.loads((tmp_path / "accuracy/digits/made-up/seed1.json").read_text())
    # Three of four rows; the pairs of rows that agree give ARI = (1 - 1) / (2.5 - 1) = 0.
    assert cell["acc"] == 0.75
    assert cell["ari"] == pytest.approx(0.0)
    assert cell["parameters"] == {"size": 3}
    assert cell["tried"][0]["acc"] == 0.75
    assert cell["tried"][0]["label_free"]["silhouette"] is None
    assert "labels" not in cell["tried"][0]
    assert cell["machine"]["versions"]["python"]


def test_budget_starts_no_further_cell(tmp_path, made_up_method):
    accuracy.run(_arguments(tmp_path, budget=0))
    assert made_up_method == []


def test_a_broken_method_costs_its_cell_alone(tmp_path, made_up_method, monkeypatch):
    def broken(problem):
        raise ValueError("broken")

    def absent(problem):
        raise methods.NotInstalledError("nothing-of-the-kind is not installed")

    monkeypatch.setitem(methods.METHODS, "broken", broken)
    monkeypatch.setitem(methods.METHODS, "absent", absent)
    arguments = _arguments(tmp_path, methods=["absent", "broken", "made-up"], seeds=[0])
    assert accuracy.run(arguments) == 1
    assert [p.parent.name for p in tmp_path.glob("accuracy/digits/*/*.json")] == ["made-up"]


def test_interrupted_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "a" / "b.json"
    storage.write_json(path, {"kept": 1})
    with pytest.raises(ValueError):
        storage.write_json(path, {"bad": float("nan")})
    assert storage.read_json(path) == {"kept": 1}
    assert storage.read_json(tmp_path / "none.json") is None


def test_alternatives_take_turns():
    calls = []
    seconds = time_in_turn(
        {"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}, n_runs=2
    )
    assert calls == ["a", "b"] * 3
    assert {name: len(runs) for name, runs in seconds.items()} == {"a": 2, "b": 2}


def test_ratio_is_that_of_the_medians():
    ours = [Seconds(3.0, 2.0), Seconds(90.0, 2.2), Seconds(3.3, 2.1)]
    reference = [Seconds(3.0, 1.0), Seconds(2.0, 1.4), Seconds(4.0, 1.5)]
    found = compare(ours, reference)
    assert found["ratio"] == pytest.approx(3.3 / 3.0)
    assert found["cpu_ratio"] == pytest.approx(2.1 / 1.4)


def test_report_says_what_was_not_run(tmp_path, made_up_method):
    accuracy.run(_arguments(tmp_path))
    output = tmp_path / "RESULTS.md"
    assert report.run(SimpleNamespace(results=tmp_path, output=output)) == 0
    lines = output.read_text().splitlines()
    # The other data sets have their own tables.
    lines = lines[lines.index("## Accuracy: digits") :]
    made_up = next(line for line in lines if line.startswith("| made-up |"))
    assert made_up.split(" | ")[1] == "0.750 ± 0.000"
    assert "| dcn | not run |  |  |  |  |  |  |" in lines
    assert "| epoch/sr-kmeans/784-500-500-2000-10 | not run |  |  |  |  |  |" in lines
    assert "| sr-kmeans, init ward | not run |  |  |  |  |" in lines


def test_spread_is_that_of_a_sample():
    assert report.spread([0.5]) == "0.500"
    # The sample standard deviation of 1, 2, 3 is 1.
    assert report.spread([1, 2, 3], digits=1) == "2.0 ± 1.0"
