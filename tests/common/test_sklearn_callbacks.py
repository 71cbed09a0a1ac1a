"""scikit-learn's own callbacks, set by `set_callbacks` on an estimator or on what holds it."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.callback import ProgressBar, ScoringMonitor
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from .estimators import (
    CASES,
    VECTOR_CLUSTERERS,
    VECTORS,
    assert_same_arrays,
    each,
    separated_blobs,
    weights,
)


class Recorder:
    """A callback in scikit-learn's protocol that notes what it is told, and may ask to stop."""

    def __init__(self, stop_after=None):
        self.stop_after = stop_after
        self.begun = []
        self.ended = []
        self.labels = []

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context):
        self.begun.append(context.task_name)

    def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
        self.ended.append(context.task_name)
        if fitted_estimator is not None and hasattr(fitted_estimator, "labels_"):
            self.labels.append(fitted_estimator.labels_)
        return context.task_name == "epoch" and self.ended.count("epoch") == self.stop_after


@each(CASES)
def test_every_task_is_told(case):
    recorder = Recorder()
    estimator = case.new().set_callbacks(recorder).fit(case.X)
    assert recorder.begun[0] == recorder.ended[-1] == "fit"
    assert sorted(recorder.begun) == sorted(recorder.ended)
    assert recorder.ended.count("epoch") == len(estimator.history_)
    phases = {record["phase"] for record in estimator.history_}
    assert phases <= set(recorder.ended)
    assert_same_arrays(weights(estimator), weights(case.fitted))


@each(VECTORS)
def test_true_stops(case):
    estimator = case.new().set_callbacks(Recorder(stop_after=1)).fit(case.X)
    first = estimator.history_[0]["phase"]
    assert [record["phase"] for record in estimator.history_].count(first) == 1
    if not case.is_clusterer:
        assert "scikit-learn callback" in estimator.stop_reason_


@each(VECTOR_CLUSTERERS)
def test_the_estimator_so_far_can_be_used(case):
    recorder = Recorder()
    estimator = case.new().set_callbacks(recorder).fit(case.X)
    assert recorder.labels
    assert all(len(labels) == len(case.X) for labels in recorder.labels)
    np.testing.assert_array_equal(np.unique(recorder.labels[-1]), np.unique(estimator.labels_))


@each(VECTORS)
def test_callbacks_survive_clone_and_are_no_parameter(case):
    recorder = Recorder()
    estimator = clone(case.new().set_callbacks(recorder))
    assert estimator.get_params().keys() == case.new().get_params().keys()
    estimator.fit(case.X)
    assert recorder.ended or estimator._skl_callbacks[0].ended


@pytest.mark.filterwarnings("ignore::skdeepclust.exceptions.PretextWarning")
@each(VECTORS)
@pytest.mark.filterwarnings("error")
def test_progress_bar(case, capsys):
    estimator = case.new().set_callbacks(ProgressBar()).fit(case.X)
    out = capsys.readouterr().out
    assert type(estimator).__name__ in out
    assert "100%" in out


@each(VECTOR_CLUSTERERS)
def test_progress_bar_on_a_search(case, capsys):
    search = GridSearchCV(case.new(), {"n_clusters": [2, 3]}, cv=2).set_callbacks(ProgressBar())
    search.fit(case.X)
    out = capsys.readouterr().out
    assert "GridSearchCV" in out
    assert type(case.fitted).__name__ in out


@each(VECTOR_CLUSTERERS)
def test_progress_bar_on_a_pipeline(case, capsys):
    pipeline = make_pipeline(StandardScaler(), case.new()).set_callbacks(ProgressBar())
    pipeline.fit(case.X)
    assert type(case.fitted).__name__ in capsys.readouterr().out


@each(VECTOR_CLUSTERERS)
def test_scoring_monitor_with_labels(case):
    X, y = separated_blobs()
    monitor = ScoringMonitor(scoring="adjusted_rand_score")
    changes = {**case.all_epochs, **case.accurate}
    estimator = case.new(**changes).set_callbacks(monitor).fit(X, y)
    records = monitor.get_logs().data
    scores = [r["adjusted_rand_score"] for r in records if "adjusted_rand_score" in r]
    n_cluster_epochs = [record["phase"] for record in estimator.history_].count("cluster")
    assert len([r for r in records if r["task_name"] == "epoch"]) >= n_cluster_epochs
    assert len(scores) >= n_cluster_epochs
    assert scores[-1] == 1.0


@each(VECTOR_CLUSTERERS)
def test_scoring_monitor_without_labels_does_no_harm(case):
    """It scores only when y is given; our history records without."""
    estimator = case.new().set_callbacks(ScoringMonitor(scoring="adjusted_rand_score"))
    estimator.fit(case.X)
    assert_same_arrays(weights(estimator), weights(case.fitted))
    assert estimator.history_


@each(VECTORS)
def test_an_error_ends_the_report(case):
    """After a failed fit the next one can be reported again."""
    recorder = Recorder()
    estimator = case.new().set_callbacks(recorder)
    with pytest.raises(ValueError, match="NaN"):
        estimator.fit(np.full_like(case.X, np.nan))
    estimator.fit(case.X)
    assert recorder.ended[-1] == "fit"
