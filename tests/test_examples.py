"""Every example runs, with less data and fewer epochs than by default, and leaves what it says."""

import importlib.util
import pathlib

import pytest

from skdeepclust.pretraining import DenoisingAutoencoder

EXAMPLES = pathlib.Path(__file__).parents[1] / "examples"
PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"


def load_example(name):
    """Import an example from its file."""
    specification = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def few_epochs():
    return {
        "pretrain": DenoisingAutoencoder(max_epochs=2),
        "warm_up_epochs": 2,
        "max_epochs": 2,
    }


def scores_in(line):
    """Return the numbers of a printed line that are scores: three decimals."""
    return [float(word) for word in line.split() if len(word.partition(".")[2]) == 3]


def test_every_example_is_tested_and_short():
    found = {path.stem for path in EXAMPLES.glob("*.py")}
    assert found == {
        "cluster_digits",
        "pipeline_and_search",
        "plot_mi_kmeans_link",
        "recluster_digits",
        "resume_training",
        "stream_digits",
    }
    for path in EXAMPLES.glob("*.py"):
        assert len(path.read_text().splitlines()) <= 100, path.name


@pytest.mark.filterwarnings("ignore::skdeepclust.exceptions.PretextWarning")
def test_recluster_digits(tmp_path, capsys):
    picture = tmp_path / "digits.png"
    load_example("recluster_digits").main(picture, epochs=10)
    lines = capsys.readouterr().out.splitlines()
    finer = [scores_in(line.replace(",", ""))[1] for line in lines if "pure" in line]
    # More clusters are purer, and ten epochs find more than chance.
    assert len(finer) == 3 and 0.2 < finer[0] < finer[1] < finer[2] < 1
    assert any("holds the digits" in line for line in lines)
    assert picture.read_bytes().startswith(PNG_SIGNATURE)


def test_cluster_digits(tmp_path, capsys):
    picture = tmp_path / "digits.png"
    load_example("cluster_digits").main(
        picture, n_samples=300, pretraining_epochs=5, warm_up_epochs=2, max_epochs=2
    )
    lines = capsys.readouterr().out.splitlines()
    for name in ("KMeans on pixels", "SRKMeans"):
        (line,) = [line for line in lines if line.startswith(name)]
        accuracy, nmi, ari = scores_in(line)
        # Chance is about 0.1 to 0.2 in accuracy, and 0 in the adjusted Rand index.
        assert 0.4 < accuracy <= 1 and 0.4 < nmi <= 1 and 0.2 < ari <= 1
    assert picture.read_bytes().startswith(PNG_SIGNATURE)


def test_stream_digits(tmp_path, capsys):
    picture = tmp_path / "stream.png"
    load_example("stream_digits").main(picture, n_samples=400, n_first=150, **few_epochs())
    out = capsys.readouterr().out
    # Five batches of 50 are one line of the table, with a score of each method.
    (line,) = [line for line in out.splitlines() if line.startswith("   250")]
    assert len(scores_in(line)) == 2
    assert picture.read_bytes().startswith(PNG_SIGNATURE)


def test_pipeline_and_search(tmp_path, capsys):
    model_file = tmp_path / "model.zip"
    load_example("pipeline_and_search").main(model_file, n_samples=200, max_epochs=2)
    out = capsys.readouterr().out
    assert "the loaded model predicts the same clusters: True" in out
    assert "srkmeans0" in out
    assert model_file.is_file()


@pytest.mark.parametrize("cut_after", [1, 3])
def test_resume_training(tmp_path, capsys, cut_after):
    checkpoint_file = tmp_path / "run.ckpt"
    load_example("resume_training").main(
        checkpoint_file, n_samples=200, cut_after=cut_after, **few_epochs()
    )
    out = capsys.readouterr().out
    assert f"power cut after {cut_after} epochs" in out
    assert out.count("is there: True") == 1 and out.count("is there: False") == 1
    assert "same labels: True" in out
    assert "same embedding, bit for bit: True" in out
    assert not checkpoint_file.exists()


def test_plot_mi_kmeans_link(tmp_path, capsys):
    picture = tmp_path / "link.png"
    load_example("plot_mi_kmeans_link").main(picture, n_rounds=6)
    lines = capsys.readouterr().out.splitlines()
    for beginning in ("   Sum of both objectives", "   K-means"):
        (line,) = [line for line in lines if line.startswith(beginning)]
        left, right = line.partition(": ")[2].partition(". The")[0].split(", ")
        assert float(left) == float(right)
    falls = {line[3:16].strip(): float(line[16:]) for line in lines if line[-4:-2] in ("e-", "e+")}
    assert falls["exact targets"] == 0
    assert falls["closed form"] > 1e-4 and falls["mini-batches"] > 1e-4
    assert picture.read_bytes().startswith(PNG_SIGNATURE)
