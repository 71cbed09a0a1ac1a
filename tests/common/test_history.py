"""What a fit leaves on record, and what it prints."""

import warnings

import numpy as np
import pandas as pd
import pytest

from skdeepclust.exceptions import PretextWarning

from .estimators import CASES, CLUSTERERS, VECTORS, assert_same_arrays, each, weights


def _losses(record):
    return [value for name, value in record.items() if name.startswith("loss_")]


@each(CASES)
def test_terms_sum_to_the_loss(case):
    """michaal94/torch_DCEC#6: the logged clustering loss was another one."""
    n_losses = 0
    for record in case.fitted.history_:
        if "loss" in record:
            np.testing.assert_allclose(sum(_losses(record)), record["loss"], rtol=1e-6)
            n_losses += 1
        assert np.isfinite([v for v in record.values() if isinstance(v, float)]).all()
    assert n_losses > 0 or not case.trains


@each(CASES)
def test_phases_and_epochs(case):
    records = case.fitted.history_
    phases = list(dict.fromkeys(record["phase"] for record in records))
    assert all(isinstance(phase, str) for phase in phases)
    for phase in phases:
        epochs = [record["epoch"] for record in records if record["phase"] == phase]
        assert epochs == list(range(1, len(epochs) + 1))
    if case.trains:
        assert phases[0] == case.first_phase
    main = "cluster" if case.is_clusterer else "pretrain"
    assert case.fitted.n_iter_ == [record["phase"] for record in records].count(main)
    assert all(record["seconds"] >= 0 for record in records)


@each(CLUSTERERS)
def test_the_number_of_used_clusters_is_on_record(case):
    """wvangansbeke/Unsupervised-Classification#113: a stuck loss, and nothing to see why."""
    last = case.fitted.history_[-1]
    assert last["n_used_clusters"] == len(np.unique(case.fitted.labels_))


@each(CASES)
def test_as_a_frame(case):
    frame = pd.DataFrame(case.fitted.history_)
    assert len(frame) == len(case.fitted.history_)
    assert {"phase", "epoch", "seconds"} <= set(frame.columns)
    terms = frame.filter(regex="^loss_").sum(axis=1)
    if "loss" in frame:
        known = frame["loss"].notna()
        np.testing.assert_allclose(terms[known], frame.loc[known, "loss"], rtol=1e-6)


@each(CASES)
def test_history_after_partial_fit(case):
    estimator = case.fitted_copy()
    n_records = len(estimator.history_)
    estimator.partial_fit(case.X).partial_fit(case.X)
    new = estimator.history_[n_records:]
    assert [record["phase"] for record in new] == ["stream", "stream"]
    assert new[1]["epoch"] == new[0]["epoch"] + 1
    for record in new:
        if "loss" in record:
            np.testing.assert_allclose(sum(_losses(record)), record["loss"], rtol=1e-6)
    # The history that was handed out before does not grow behind the user's back.
    assert len(case.fitted.history_) == n_records


@each(CASES)
def test_why_it_ended(case):
    estimator = case.new(**case.all_epochs).fit(case.X)
    assert isinstance(estimator.stop_reason_, str) and estimator.stop_reason_
    if not case.all_epochs:
        n_epochs = case.settings["max_epochs"]
        assert estimator.stop_reason_ == f"max_epochs={n_epochs} reached"
        return
    changes = {"tol": 10.0} if case.is_clusterer else {"tol": 0.999, "n_iter_no_change": 1}
    early = case.new(**changes).fit(case.X)
    assert "tol" in early.stop_reason_
    assert early.n_iter_ <= 2


@each(CASES)
def test_y_changes_nothing(case):
    """rymc/n2d#7, wvangansbeke#64: code that needs labels to run at all."""
    y = np.arange(len(case.X)) % 2
    estimator = case.new().fit(case.X, y)
    assert_same_arrays(weights(estimator), weights(case.fitted))
    first, second = case.fitted_copy(), case.fitted_copy()
    assert_same_arrays(weights(first.partial_fit(case.X, y)), weights(second.partial_fit(case.X)))
    if case.is_clusterer:
        np.testing.assert_array_equal(case.new().fit_predict(case.X, y), case.fitted.labels_)
        assert case.fitted.score(case.X, y) == case.fitted.score(case.X)
    np.testing.assert_array_equal(
        case.new().fit_transform(case.X, y), case.fitted.transform(case.X)
    )


@each(CASES)
def test_verbose_0_writes_nothing(case, capfd):
    """ClustPy#81: a progress bar with no off switch."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # Three epochs are too few to learn the transformations, which is told.
        warnings.simplefilter("ignore", PretextWarning)
        estimator = case.new(verbose=0).fit(case.X)
        estimator.partial_fit(case.X).transform(case.X)
        if case.is_clusterer:
            estimator.predict(case.X)
    assert capfd.readouterr() == ("", "")


@each(VECTORS)
@pytest.mark.parametrize("with_rich", [True, False])
def test_verbose_1_shows_progress(case, with_rich, capfd, monkeypatch):
    if not with_rich:
        # What an import finds when rich is not installed.
        monkeypatch.setitem(__import__("sys").modules, "rich.progress", None)
    estimator = case.new(verbose=1).fit(case.X)
    out, err = capfd.readouterr()
    assert case.first_phase in out and "loss" in out
    assert err == ""
    assert_same_arrays(weights(estimator), weights(case.fitted))
