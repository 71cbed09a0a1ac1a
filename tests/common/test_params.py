"""scikit-learn's manners: parameters, copies, pipelines, searches, frames, the user's objects."""

import copy
import io
import pickle

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone, is_clusterer
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags
from skorch.callbacks import EarlyStopping, LRScheduler

from .estimators import (
    CASES,
    CLUSTERERS,
    PRETRAINED_VECTORS,
    TRAINED,
    VECTOR_CLUSTERERS,
    VECTORS,
    CountEpochs,
    assert_labels_agree,
    assert_same_arrays,
    each,
    read_outs,
    users_module,
    weights,
)


def _joblib(estimator):
    stream = io.BytesIO()
    joblib.dump(estimator, stream)
    stream.seek(0)
    return joblib.load(stream)


COPIES = {
    "pickle": lambda estimator: pickle.loads(pickle.dumps(estimator)),
    "joblib": _joblib,
    "deepcopy": copy.deepcopy,
}


@each(CASES)
@pytest.mark.parametrize("way", COPIES)
def test_copies_predict_alike(case, way):
    duplicate = COPIES[way](case.fitted)
    assert_same_arrays(read_outs(duplicate, case.X), read_outs(case.fitted, case.X))
    if case.is_clusterer:
        assert_labels_agree(duplicate, case.X)


@each(CASES)
@pytest.mark.parametrize("way", COPIES)
def test_copies_learn_on_alike(case, way):
    original = case.fitted_copy().partial_fit(case.X[:30])
    duplicate = COPIES[way](original)
    before = read_outs(original, case.X)
    duplicate.partial_fit(case.X[30:60])
    # The original is not touched by what its copy learns.
    assert_same_arrays(read_outs(original, case.X), before)
    original.partial_fit(case.X[30:60])
    assert_same_arrays(read_outs(original, case.X), read_outs(duplicate, case.X))


@each(CASES)
def test_copies_of_a_waiting_stream(case):
    estimator = case.new().partial_fit(case.X[:20])
    duplicate = pickle.loads(pickle.dumps(estimator))
    for each_one in (estimator, duplicate):
        each_one.partial_fit(case.X[20:60])
    assert_same_arrays(read_outs(duplicate, case.X), read_outs(estimator, case.X))


@each(CASES)
def test_clone_is_unfitted_and_fits_alike(case):
    """dreamquark-ai/tabnet#512: no search because arguments were changed in the constructor."""
    duplicate = clone(case.fitted)
    assert not hasattr(duplicate, "net_")
    ours, theirs = duplicate.get_params(deep=False), case.fitted.get_params(deep=False)
    assert ours.keys() == theirs.keys()
    for name, value in theirs.items():
        assert isinstance(ours[name], type(value)), name
    assert_same_arrays(read_outs(duplicate.fit(case.X), case.X), read_outs(case.fitted, case.X))


@each(CASES)
def test_the_constructor_stores_what_it_is_given(case):
    settings = case.new().get_params(deep=False)
    estimator = case.estimator_class(**settings)
    assert set(vars(estimator)) == set(settings)
    for name, value in settings.items():
        assert getattr(estimator, name) is value


@each(CASES)
def test_set_params_round_trip(case):
    estimator = case.new()
    estimator.set_params(max_epochs=2, lr=0.01).set_params(**case.new().get_params(deep=False))
    fitted = estimator.fit(case.X)
    assert_same_arrays(read_outs(fitted, case.X), read_outs(case.fitted, case.X))


@each(PRETRAINED_VECTORS)
def test_nested_parameters(case):
    estimator = case.new().set_params(pretrain__max_epochs=1).fit(case.X)
    assert [record["phase"] for record in estimator.history_].count("pretrain") == 1


@each(CASES)
def test_kind(case):
    """PriorLabs/tabpfn-extensions#38: an estimator that was not recognised as its kind."""
    assert is_clusterer(case.fitted) == case.is_clusterer
    assert get_tags(case.fitted).estimator_type == ("clusterer" if case.is_clusterer else None)
    assert get_tags(case.fitted).transformer_tags is not None


@each(CASES)
def test_repr_is_short(case):
    assert len(repr(case.fitted)) < 1000
    assert case.estimator_class.__name__ in case.fitted._repr_html_()


# -- the user's own objects ----------------------------------------------------------------


@each(TRAINED)
def test_callbacks_lists_and_modules_stay_as_they_are(case):
    """skorch-dev/skorch#818, keras-team/keras#4081, adriangb/scikeras#70."""
    counter, scheduler, module = CountEpochs(log=[]), LRScheduler(), users_module()
    callbacks = [counter, ("schedule", scheduler), CountEpochs]
    changes = {"encoder": module} if case.setup == "module" else {}
    estimator = case.new(callbacks=callbacks, **changes)
    before = {name: value.clone() for name, value in module.state_dict().items()}
    scheduler_before = dict(vars(scheduler))
    pretrain = getattr(estimator, "pretrain", None)
    estimator.fit(case.X).partial_fit(case.X)
    assert estimator.callbacks is callbacks
    assert callbacks == [counter, ("schedule", scheduler), CountEpochs]
    assert vars(counter) == {"log": []}
    assert vars(scheduler) == scheduler_before
    assert module.training and all(p.grad is None for p in module.parameters())
    for name, value in module.state_dict().items():
        assert value.equal(before[name]), name
    assert pretrain is None or not hasattr(pretrain, "net_")
    clone(estimator)


@each(TRAINED)
def test_every_form_of_callback_is_called(case):
    callbacks = [CountEpochs(), CountEpochs, ("named", CountEpochs()), ("class", CountEpochs)]
    estimator = case.new(callbacks=callbacks).fit(case.X)
    called = dict(estimator.net_.callbacks_)
    counters = [c for c in called.values() if isinstance(c, CountEpochs)]
    assert [c.n_epochs_ for c in counters] == [len(estimator.history_)] * 4
    assert {"named", "class"} <= set(called)


@each(TRAINED)
def test_a_second_fit_starts_with_fresh_callbacks(case):
    estimator = case.new(callbacks=[CountEpochs()])
    for _ in range(2):
        estimator.fit(case.X)
        counter = dict(estimator.net_.callbacks_)["CountEpochs"]
        assert counter.n_epochs_ == len(estimator.history_)


@each(VECTORS)
def test_callbacks_do_not_change_the_result(case):
    patient = EarlyStopping(monitor="train_loss", patience=1_000)
    estimator = case.new(callbacks=[CountEpochs(), patient]).fit(case.X)
    assert_same_arrays(weights(estimator), weights(case.fitted))


@each(VECTORS)
def test_a_learning_rate_schedule_acts(case):
    """A schedule that sets the rate to nearly 0 leaves the weights of the first epoch."""
    schedule = LRScheduler(policy="StepLR", step_size=1, gamma=1e-12)
    estimator = case.new(callbacks=[schedule], **case.without_pretraining).fit(case.X)
    assert np.isfinite(estimator.transform(case.X)).all()


# -- composition ---------------------------------------------------------------------------


@each(CASES)
def test_in_a_pipeline(case):
    pipeline = make_pipeline("passthrough", case.new()).fit(case.X)
    expected = read_outs(case.fitted, case.X)
    assert_same_arrays({name: getattr(pipeline, name)(case.X) for name in expected}, expected)
    np.testing.assert_array_equal(
        pipeline.get_feature_names_out(), case.fitted.get_feature_names_out()
    )


@each(VECTORS)
def test_as_a_step_before_another(case):
    embedding = make_pipeline(case.new(), StandardScaler()).fit_transform(case.X)
    assert embedding.shape == (len(case.X), 4)
    assert np.isfinite(embedding).all()


@each(CLUSTERERS)
def test_cross_val_predict(case):
    found = cross_val_predict(case.new(), case.X, cv=2)
    assert found.shape == (len(case.X),)
    assert set(found) <= {0, 1, 2}


@each(VECTOR_CLUSTERERS)
def test_cross_val_predict_of_probabilities(case):
    found = cross_val_predict(case.new(), case.X, cv=2, method="predict_proba")
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=0, atol=1e-6)
    assert found.shape == (len(case.X), 3)


@each(VECTORS)
def test_feature_union(case):
    union = FeatureUnion([("plain", "passthrough"), ("embedding", case.new())]).fit(case.X)
    expected = np.hstack([case.X, case.fitted.transform(case.X)])
    np.testing.assert_array_equal(union.transform(case.X), expected)
    assert len(union.get_feature_names_out()) == expected.shape[1]


@each(VECTORS)
@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_set_output(case, frame):
    estimator = case.fitted_copy()
    library = "pandas" if frame is pd.DataFrame else "polars"
    found = estimator.set_output(transform=library).transform(case.X)
    assert isinstance(found, frame)
    assert list(found.columns) == list(estimator.get_feature_names_out())
    assert list(found.columns)[0] == f"{type(estimator).__name__.lower()}0"
    np.testing.assert_array_equal(found.to_numpy(), case.fitted.transform(case.X))


@each([case for case in CLUSTERERS if case.setup in ("images", "module")])
def test_grid_search(case):
    search = GridSearchCV(case.new(callbacks=[CountEpochs()]), {"n_clusters": [2, 3]}, cv=2)
    search.fit(case.X)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert vars(search.best_estimator_.callbacks[0]) == {"log": None}
    assert_labels_agree(search.best_estimator_, case.X)


@each(VECTOR_CLUSTERERS)
def test_grid_search_in_two_processes(case):
    """skorch-dev/skorch#794: callbacks, as instance, class and pair, in other processes."""
    callbacks = [CountEpochs(log=[]), CountEpochs, ("stop", EarlyStopping(monitor="train_loss"))]
    grid = {"max_epochs": [1, 3]}
    serial, parallel = (
        GridSearchCV(case.new(callbacks=callbacks), grid, cv=2, n_jobs=n_jobs, error_score="raise")
        for n_jobs in (None, 2)
    )
    serial.fit(case.X)
    parallel.fit(case.X)
    np.testing.assert_allclose(
        parallel.cv_results_["mean_test_score"], serial.cv_results_["mean_test_score"], rtol=1e-5
    )
    assert vars(callbacks[0]) == {"log": []}


# -- names of columns ----------------------------------------------------------------------

NAMES = ["u", "v", "w", "x", "y", "z"]
FRAMES = {
    "pandas": lambda X: pd.DataFrame(X, columns=NAMES),
    "polars": lambda X: pl.DataFrame(X, schema=NAMES),
}


@each(VECTORS)
@pytest.mark.parametrize("library", FRAMES)
def test_names_are_kept_and_compared(case, library):
    """ClustPy 0.0.3 predicted silently for reordered columns (34 % agreement)."""
    frame = FRAMES[library](case.X)
    estimator = case.new().fit(frame)
    assert list(estimator.feature_names_in_) == NAMES
    assert_same_arrays(read_outs(estimator, frame), read_outs(case.fitted, case.X))
    with pytest.raises(ValueError, match="(?s)feature names should match.*same order"):
        estimator.transform(frame[NAMES[::-1]])
    with pytest.raises(ValueError, match="(?s)feature names should match.*missing:\n- z"):
        estimator.transform(frame[NAMES[:-1]])
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        estimator.transform(case.X)
    with pytest.raises(ValueError, match="(?s)feature names should match"):
        estimator.partial_fit(frame[NAMES[::-1]])
    with pytest.warns(UserWarning, match="was fitted without feature names"):
        case.fitted.transform(frame)


@each(VECTORS)
def test_names_of_a_waiting_stream(case):
    """Rows of reordered frames must not be mixed while they are buffered."""
    frame = FRAMES["pandas"](case.X)
    estimator = case.new().partial_fit(frame[:10])
    with pytest.raises(ValueError, match="feature names should match"):
        estimator.partial_fit(frame[NAMES[::-1]][10:60])
    estimator.partial_fit(frame[10:60])
    assert list(estimator.feature_names_in_) == NAMES


@each(VECTORS)
def test_mixed_and_numbered_names(case):
    """scikit-learn PR #25018, BinPro/CONCOCT#338: mixed str/int column names."""
    mixed = pd.DataFrame(case.X, columns=["u", 1, "w", "x", "y", "z"])
    with pytest.raises(TypeError, match="[Ff]eature names are only supported if all input"):
        case.new().fit(mixed)
    numbered = pd.DataFrame(case.X)
    estimator = case.new().fit(numbered)
    assert not hasattr(estimator, "feature_names_in_")
    assert_same_arrays(read_outs(estimator, case.X), read_outs(case.fitted, case.X))


@each(VECTORS)
def test_names_of_an_earlier_fit_do_not_stay(case):
    estimator = case.new().fit(FRAMES["pandas"](case.X))
    estimator.fit(case.X)
    assert not hasattr(estimator, "feature_names_in_")


@each(VECTORS)
def test_frames_of_another_index(case):
    """Rows are counted by place, whatever the index says."""
    frame = FRAMES["pandas"](case.X)
    frame.index = np.random.default_rng(0).permutation(len(frame)) * 3
    estimator = case.new().fit(frame)
    expected = read_outs(case.fitted, case.X)
    assert_same_arrays(read_outs(estimator, frame), expected)
    if case.is_clusterer:
        np.testing.assert_array_equal(estimator.labels_, case.fitted.labels_)
