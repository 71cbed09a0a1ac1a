"""Fitted state is set last: what fails or is interrupted leaves a usable estimator."""

import copy
import re
import signal
import warnings

import numpy as np
import pytest
from skorch.callbacks import EarlyStopping

from skdeepclust.exceptions import (
    ClusterCollapseWarning,
    FitInterruptedWarning,
    TrainingDivergedError,
)

from .estimators import (
    CASES,
    CLUSTERERS,
    PRETRAINED,
    TRAINED,
    TRAINED_CLUSTERERS,
    VECTOR_CLUSTERERS,
    VECTORS,
    AtEpoch,
    assert_labels_agree,
    assert_same_arrays,
    each,
    read_outs,
    users_module,
    weights,
)


def _state(estimator, X):
    """Return everything a failed call must not change."""
    fitted = {
        name: value
        for name, value in vars(estimator).items()
        if name.endswith("_") and isinstance(value, (int, float, str, list, np.ndarray))
    }
    return {**weights(estimator), **read_outs(estimator, X)}, fitted


def _assert_same_state(estimator, X, before):
    arrays, fitted = _state(estimator, X)
    assert_same_arrays(arrays, before[0])
    assert fitted.keys() == before[1].keys()
    for name, value in before[1].items():
        np.testing.assert_equal(fitted[name], value, err_msg=name)


def _spoil(case, kind):
    X = case.X.copy()
    if kind == "nan":
        X[-1, 3] = np.nan
    elif kind == "inf":
        X[-1, 3] = np.inf
    elif kind == "columns":
        X = X[:, :-1]
    elif kind == "strings":
        X = X.astype(str).astype(object)
        X[0, 0] = "many"
    return X


@each(CASES)
@pytest.mark.parametrize("kind", ["nan", "inf", "strings"])
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_bad_rows_leave_the_fitted_state(case, method, kind):
    estimator = case.fitted_copy()
    before = _state(estimator, case.X)
    with pytest.raises(ValueError):
        getattr(estimator, method)(_spoil(case, kind))
    _assert_same_state(estimator, case.X, before)


@each(CASES)
def test_a_partial_fit_with_other_columns_leaves_the_fitted_state(case):
    """scikit-learn#12430: the message has to name both numbers and the estimator."""
    estimator = case.fitted_copy()
    before = _state(estimator, case.X)
    n_columns = case.X.shape[1]
    name = type(estimator).__name__
    message = f"X has {n_columns - 1} features, but {name} is expecting {n_columns} features"
    with pytest.raises(ValueError, match=message):
        estimator.partial_fit(_spoil(case, "columns"))
    _assert_same_state(estimator, case.X, before)


@each(CASES)
def test_wrong_parameters_leave_the_fitted_state(case):
    estimator = case.fitted_copy()
    before = _state(estimator, case.X)
    with pytest.raises(ValueError, match="batch_size"):
        estimator.set_params(batch_size=-3).fit(case.X)
    _assert_same_state(estimator, case.X, before)


@each(CASES)
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_bad_rows_leave_an_unfitted_estimator_unfitted(case, method):
    estimator = case.new()
    names = set(vars(estimator))
    with pytest.raises(ValueError, match="NaN"):
        getattr(estimator, method)(_spoil(case, "nan"))
    assert set(vars(estimator)) == names
    getattr(estimator, method)(case.X)
    estimator.transform(case.X)


# -- divergence ----------------------------------------------------------------------------


@each(TRAINED)
@pytest.mark.parametrize("warm_start", [False, True])
def test_a_diverging_fit(case, warm_start):
    """xianglin226/scMDC#18: nan was discovered only by the K-means after the pretraining."""
    estimator = case.fitted_copy()
    before = _state(estimator, case.X)
    # With no pretraining between, the rate of the estimator is the one that diverges.
    changes = case.without_pretraining
    estimator.set_params(lr=1e8, warm_start=warm_start, max_epochs=60, batch_size=16, **changes)
    if case.is_clusterer:
        estimator.set_params(**case.all_epochs)
    with pytest.raises(TrainingDivergedError) as raised:
        estimator.fit(case.X)
    _assert_names_the_place(raised.value, lr=1e8)
    _assert_same_state(estimator, case.X, before)


def _assert_names_the_place(error, lr):
    """scverse/scvi-tools#1455: the message alone must tell what to change."""
    assert isinstance(error, FloatingPointError)
    found = re.search(
        r"phase '\w+', epoch \d+(?:, batch \d+ of \d+)?, with lr=(\S+)\. Lower the learning rate",
        str(error),
    )
    assert found, str(error)
    # A cosine schedule may have lowered it a little.
    assert 0.5 * lr < float(found[1]) <= lr


@each(PRETRAINED)
def test_a_diverging_pretraining_is_found_before_the_first_partition(case):
    pretrain = case.new().pretrain.set_params(lr=1e8, max_epochs=60, batch_size=16, tol=0.0)
    estimator = case.new(pretrain=pretrain)
    with pytest.raises(TrainingDivergedError, match="phase 'pretrain', epoch .*lr=") as raised:
        estimator.fit(case.X)
    assert "batch " in str(raised.value) and "transformer" in str(raised.value)
    assert not hasattr(estimator, "net_")


@each(TRAINED)
def test_divergence_in_the_very_last_step(case):
    """The loss of the last batch is finite, but its step leaves weights that are not."""
    changes = case.without_pretraining
    estimator = case.fitted_copy().set_params(
        lr=1e37, max_epochs=1, batch_size=10_000, warm_start=True, **changes
    )
    before = _state(estimator, case.X)
    try:
        estimator.fit(case.X)
    except TrainingDivergedError:
        _assert_same_state(estimator, case.X, before)
    # A bounded embedding may have survived: whatever is read out has to be a number.
    assert all(np.isfinite(array).all() for array in read_outs(estimator, case.X).values())


def _poison(net):
    """Make the weights nan, as a bug in a user's callback could."""
    for parameter in net.module_.parameters():
        parameter.data.mul_(float("nan"))


@each(VECTORS)
def test_nan_at_epoch_3_is_told_at_epoch_3(case):
    """scverse/scvi-tools#511, #873: a run of three days returned only nan."""
    name = "pretrain__max_epochs" if case.is_clusterer and case.pretrains else "max_epochs"
    phase = case.first_phase
    estimator = case.new(callbacks=[AtEpoch(_poison, phase, 3, "on_epoch_begin")])
    estimator.set_params(**{name: 4})
    with pytest.raises(TrainingDivergedError, match=f"phase '{phase}', epoch 3, batch 1 of"):
        estimator.fit(case.X)
    assert not hasattr(estimator, "net_")


@each([case for case in TRAINED if case.trains_on_streams])
def test_a_diverging_partial_fit(case):
    """Weights are put back, and a lower rate is heeded by the next call."""
    estimator = case.fitted_copy().set_params(lr=1e37, batch_size=8)
    before = _state(estimator, case.X)
    with pytest.raises(
        TrainingDivergedError, match=r"partial_fit call \d+ with lr=1e\+37.*[Ll]ower"
    ):
        estimator.partial_fit(case.X)
    _assert_same_state(estimator, case.X, before)
    estimator.set_params(lr=1e-3).partial_fit(case.X)
    assert all(np.isfinite(array).all() for array in read_outs(estimator, case.X).values())
    # A step of Adam moves a weight by about its rate, not by what was tried before.
    after = weights(estimator)
    for name, array in before[0].items():
        if name in after and array.dtype.kind == "f":
            assert np.abs(after[name] - array).max() < 1.0, name


# -- interruptions -------------------------------------------------------------------------


def _ctrl_c(net):
    signal.raise_signal(signal.SIGINT)


def _fit_interrupted(estimator, X):
    """Fit until Ctrl-C; return the interruption warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with pytest.raises(KeyboardInterrupt):
            estimator.fit(X)
    assert not [w for w in caught if issubclass(w.category, ClusterCollapseWarning)]
    return [w for w in caught if w.category is FitInterruptedWarning]


def _phases(estimator):
    return list(dict.fromkeys(record["phase"] for record in estimator.history_))


@each(CASES)
@pytest.mark.parametrize("hook", ["on_epoch_end", "on_batch_end"])
def test_ctrl_c_in_each_phase(case, hook):
    """The state of the last finished epoch is there, told once, and the interrupt goes on."""
    if hook == "on_batch_end" and not case.trains:
        hook = "on_epoch_begin"
    whole = case.fitted
    for phase in _phases(whole):
        estimator = case.new(callbacks=[AtEpoch(_ctrl_c, phase, 2, hook)])
        if sum(record["phase"] == phase for record in whole.history_) < 2:
            continue
        told = _fit_interrupted(estimator, case.X)
        assert len(told) == 1
        assert "last finished epoch" in str(told[0].message)
        assert estimator.history_[-1]["phase"] == phase
        assert estimator.history_[-1]["epoch"] == 1
        n_records = len(estimator.history_)
        for found, expected in zip(estimator.history_, whole.history_[:n_records], strict=True):
            assert found.get("loss") == expected.get("loss")
        assert "Ctrl-C" in estimator.stop_reason_
        assert np.isfinite(estimator.transform(case.X)).all()
        if case.is_clusterer:
            assert_labels_agree(estimator, case.X)
            used = np.unique(estimator.labels_)
            np.testing.assert_array_equal(used, np.arange(len(used)))


@each(CASES)
def test_ctrl_c_before_the_first_epoch_ends(case):
    phase = _phases(case.fitted)[0]
    hook = "on_batch_end" if case.trains else "on_epoch_begin"
    estimator = case.new(callbacks=[AtEpoch(_ctrl_c, phase, 1, hook)])
    told = _fit_interrupted(estimator, case.X)
    if case.trains:
        # Nothing was learnt yet.
        assert not told
        assert not hasattr(estimator, "net_")
    else:
        # The first partition is there, and a clustering of the identity needs no more.
        assert len(told) == 1
        assert_labels_agree(estimator, case.X)


@each(CASES)
def test_ctrl_c_before_the_first_epoch_ends_leaves_the_fitted_state(case):
    phase = _phases(case.fitted)[0]
    if not case.trains:
        return
    estimator = case.fitted_copy()
    before = _state(estimator, case.X)
    estimator.set_params(callbacks=[AtEpoch(_ctrl_c, phase, 1, "on_batch_end")])
    assert not _fit_interrupted(estimator, case.X)
    _assert_same_state(estimator, case.X, before)


@each(CLUSTERERS)
def test_ctrl_c_in_a_warm_start_keeps_ids(case):
    estimator = case.fitted_copy()
    before = estimator.labels_
    estimator.set_params(
        warm_start=True,
        callbacks=[AtEpoch(_ctrl_c, "cluster", 1, "on_epoch_begin")],
        **case.all_epochs,
    )
    X = case.X
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitInterruptedWarning)
        with pytest.raises(KeyboardInterrupt):
            estimator.fit(X)
    np.testing.assert_array_equal(estimator.labels_, before)
    assert_labels_agree(estimator, X)


@each(VECTOR_CLUSTERERS)
def test_an_interrupted_fit_can_go_on(case):
    estimator = case.new(callbacks=[AtEpoch(_ctrl_c, case.first_phase, 2)])
    _fit_interrupted(estimator, case.X)
    estimator.set_params(callbacks=None)
    estimator.partial_fit(case.X[:30])
    assert_labels_agree(estimator, case.X[:30])
    estimator.set_params(warm_start=True).fit(case.X)
    assert_labels_agree(estimator, case.X)


@each(TRAINED)
def test_early_stopping_is_no_interruption(case):
    """skorch's EarlyStopping raises KeyboardInterrupt to stop, which is not Ctrl-C."""
    # No epoch improves the loss by a billion; by a factor would do only for positive losses.
    stopper = EarlyStopping(monitor="train_loss", patience=2, threshold=1e9, threshold_mode="abs")
    changes = case.all_epochs if case.is_clusterer else {}
    estimator = case.new(max_epochs=6, callbacks=[stopper], **changes)
    with warnings.catch_warnings():
        warnings.simplefilter("error", FitInterruptedWarning)
        estimator.fit(case.X)
    last = estimator.history_[-1]
    assert last["epoch"] <= 3
    if last["epoch"] == 3:
        assert "callback" in estimator.stop_reason_
    if case.is_clusterer:
        assert_labels_agree(estimator, case.X)


@each([case for case in TRAINED_CLUSTERERS if case.setup == "module"])
def test_deep_copies_carry_what_cannot_be_pickled(case):
    # A user's module often holds a function without a name, which pickle refuses.
    module = users_module()
    module.register_forward_hook(lambda module, inputs, output: output)
    model = case.new(encoder=module).fit(case.X)
    before, start = read_outs(model, case.X), weights(model)
    copied = copy.deepcopy(model)
    assert_same_arrays(read_outs(copied, case.X), before)
    for _ in range(2):
        copied.partial_fit(case.X)
    # The optimiser of the copy has moved the weights of the copy, and those alone.
    assert_same_arrays(weights(model), start)
    assert_same_arrays(read_outs(model, case.X), before)
    has_moved = any((weights(copied)[name] != value).any() for name, value in start.items())
    assert has_moved == case.trains_on_streams
    again = copy.deepcopy(copied).partial_fit(case.X)
    assert_same_arrays(read_outs(copied.partial_fit(case.X), case.X), read_outs(again, case.X))
