"""The curves of a training show what its history holds."""

import subprocess
import sys

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from skdeepclust import DDCL
from skdeepclust.plotting import TrainingHistoryDisplay

X = make_blobs(n_samples=60, centers=3, random_state=0)[0]


def test_every_diagnostic_has_its_curve():
    model = DDCL(3, max_epochs=5, random_state=0).fit(X)
    display = TrainingHistoryDisplay.from_estimator(model)
    drawn = {"separation", "concentration", "assignment_variance", "attraction", "temperature"}
    drawn |= {"reconstruction_error", "prototype_spread", "total_variance", "largest_variance"}
    assert drawn | {"n_used_clusters", "loss"} <= set(display.axes_)
    for name, axes in display.axes_.items():
        expected = [record.get(name, np.nan) for record in model.history_]
        np.testing.assert_allclose(axes.lines[0].get_ydata(), expected)


def test_records_without_a_diagnostic_leave_a_gap():
    display = TrainingHistoryDisplay([{"epoch": 1, "loss": 2.0}, {"epoch": 1, "error": 1}])
    np.testing.assert_array_equal(display.curves_["loss"], [2.0, np.nan])
    assert list(display.curves_) == ["loss", "error"]


def test_a_given_figure_is_drawn_in():
    from matplotlib.figure import Figure

    figure = Figure()
    display = TrainingHistoryDisplay([{"loss": 1.0}]).plot(figure=figure)
    assert display.figure_ is figure
    assert len(figure.axes) == 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: TrainingHistoryDisplay([]), "history is empty"),
        (lambda: TrainingHistoryDisplay([{"loss": 1.0}]).plot(names=["los"]), "loss"),
        (lambda: TrainingHistoryDisplay([{"loss": 1.0}]).plot(names=[]), "names"),
        (lambda: TrainingHistoryDisplay.from_estimator(DDCL(3)), "fit it first"),
    ],
)
def test_what_cannot_be_drawn_is_said(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_neither_torch_nor_matplotlib_is_imported_early():
    code = "import sys, skdeepclust.plotting; print({'torch', 'matplotlib'} & set(sys.modules))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "set()"
