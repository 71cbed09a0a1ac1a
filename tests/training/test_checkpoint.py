"""A fit that was killed anywhere goes on to the very result of one that never was."""

import json
import multiprocessing
import os
import signal
import sys
import warnings

import numpy as np
import pytest
import torch
from numpy.testing import assert_array_equal
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs
from sklearn.frozen import FrozenEstimator
from skorch.callbacks import Callback, EarlyStopping

from skdeepclust import DCN, SRKMeans, load
from skdeepclust.exceptions import FileFormatError, FitInterruptedWarning
from skdeepclust.pretraining import DenoisingAutoencoder
from skdeepclust.training import TrainingCheckpoint
from skdeepclust.training.first_partition import FirstPartitionPhase
from skdeepclust.training.run import Run

X, _ = make_blobs(n_samples=90, n_features=6, centers=3, cluster_std=4.0, random_state=0)


def autoencoder(**params):
    small = {"hidden_dims": (8,), "embedding_dim": 3, "random_state": 0, "max_epochs": 9}
    # A tolerance that some epochs miss, so that the state of the plateau matters; patience
    # beyond the last epoch in which a test ends the fit.
    return DenoisingAutoencoder(**{**small, "tol": 0.01, "n_iter_no_change": 6, **params})


def clusterer(cls, **params):
    small = {"n_clusters": 5, "hidden_dims": (8,), "embedding_dim": 3, "random_state": 0}
    # Labels that keep changing, so that the training goes on to the end.
    training = {"pretrain": autoencoder(), "max_epochs": 11, "tol": 0.0, "lr": 0.03}
    return cls(**{**small, **training, **params})


FITS = {
    "SRKMeans, 2 restarts": lambda **p: clusterer(
        SRKMeans, n_init=2, annealing=0.9, max_epochs=5, **p
    ),
    "DCN": lambda **p: clusterer(DCN, **p),
    "identity": lambda **p: clusterer(SRKMeans, encoder="identity", pretrain=None, **p),
    "images": lambda **p: clusterer(SRKMeans, image_shape=(1, 2, 3), lr=1e-3, max_epochs=4, **p),
    "DenoisingAutoencoder": autoencoder,
}


class At(Callback):
    """Do something at the end of an epoch, before it is stored."""

    def __init__(self, phase, epoch, action):
        self.phase = phase
        self.epoch = epoch
        self.action = action

    def on_epoch_end(self, net, **kwargs):
        run = net.run_
        if (run.phase.name, run.epoch) == (self.phase, self.epoch) and self.action is not None:
            self.action(run)


def kill(*args, **kwargs):
    os.kill(os.getpid(), signal.SIGKILL)


def kill_in_second_restart(run):
    phases = [record["phase"] for record in run.history if record["epoch"] == 1]
    if phases.count("cluster") == 2:
        kill()


def write_and_kill(checkpoint, run, phase_is_finished=False, write=TrainingCheckpoint.write):
    write(checkpoint, run, phase_is_finished)
    if (run.phase.name, run.epoch) == ("cluster", 10):
        kill()


def replace_third_time(*paths, calls=[], replace=os.replace):  # noqa: B006
    calls.append(paths)
    if len(calls) == 3:
        kill()
    replace(*paths)


def fit_in_child(name, path, patch, callback, every_n_epochs, results):
    """Fit with a checkpoint in a process of its own, and write down all that came of it."""
    if patch is not None:
        pytest.MonkeyPatch().setattr(*patch)
    callbacks = [] if path is None else [TrainingCheckpoint(path, every_n_epochs)]
    callbacks += [] if callback is None else [callback]
    model = FITS[name](callbacks=callbacks).fit(X)
    np.savez(results, **outcome(model))


def outcome(model):
    """Return all results of a fit as arrays."""
    weights = {f"weight {k}": v.numpy() for k, v in model.net_.module_.state_dict().items()}
    names = ["labels_", "cluster_centers_", "temperature_", "objective_", "n_iter_"]
    attributes = {name: getattr(model, name) for name in names if hasattr(model, name)}
    records = [{k: v for k, v in record.items() if k != "seconds"} for record in model.history_]
    texts = {"history": json.dumps(records), "stop_reason": str(model.stop_reason_)}
    return {**weights, **attributes, **texts, "transform": model.transform(X)}


def assert_same_outcome(found, expected):
    assert set(found) == set(expected)
    for name in expected:
        assert_array_equal(found[name], expected[name], err_msg=name)


@pytest.fixture(scope="module")
def processes():
    """Processes that begin with the package imported and nothing run."""
    if sys.platform == "win32":
        pytest.fail("this test kills processes, which needs another way on this system")
    context = multiprocessing.get_context("forkserver")
    # The first optimiser of a process would import the last one, which takes seconds.
    context.set_forkserver_preload(["skdeepclust.sr_kmeans", "skdeepclust.dcn", "torch._dynamo"])
    return context


def run_child(processes, *args):
    child = processes.Process(target=fit_in_child, args=args)
    child.start()
    child.join(300)
    return child.exitcode


@pytest.fixture(scope="module")
def uninterrupted(processes, tmp_path_factory):
    """Return the outcome of a fit in a process of its own, without any checkpoint."""
    outcomes = {}

    def outcome_of(name):
        if name not in outcomes:
            path = tmp_path_factory.mktemp("uninterrupted") / "outcome.npz"
            assert run_child(processes, name, None, None, None, 1, path) == 0
            outcomes[name] = np.load(path)
        return outcomes[name]

    return outcome_of


KILLS = {
    "pretrain": ("SRKMeans, 2 restarts", None, At("pretrain", 3, kill)),
    "between": ("SRKMeans, 2 restarts", (FirstPartitionPhase, "begin", kill), None),
    "cluster": ("SRKMeans, 2 restarts", None, At("cluster", 3, kill)),
    "second restart": ("SRKMeans, 2 restarts", None, At("cluster", 2, kill_in_second_restart)),
    "while writing": ("SRKMeans, 2 restarts", ("os.replace", replace_third_time), None),
    "after all phases": ("SRKMeans, 2 restarts", (Run, "end", kill), None),
    "DCN, pretrain": ("DCN", None, At("pretrain", 0, kill)),
    "DCN, cluster": ("DCN", None, At("cluster", 10, kill)),
    "DCN, last epoch": ("DCN", (TrainingCheckpoint, "write", write_and_kill), None),
    "images": ("images", None, At("cluster", 2, kill)),
    "no weights": ("identity", None, At("cluster", 3, kill)),
    "autoencoder": ("DenoisingAutoencoder", None, At("pretrain", 5, kill)),
}


@pytest.mark.parametrize("place", KILLS)
def test_killed_fit_ends_as_if_it_never_was(place, processes, uninterrupted, tmp_path):
    name, patch, callback = KILLS[place]
    path, results = tmp_path / "run.ckpt", tmp_path / "outcome.npz"
    every_n_epochs = 3 if place == "cluster" else 1
    code = run_child(processes, name, path, patch, callback, every_n_epochs, results)
    assert code == -signal.SIGKILL
    assert not results.exists()
    # Killed in its first epoch, a fit has stored nothing.
    assert path.exists() == (place != "DCN, pretrain")
    assert run_child(processes, name, path, None, None, every_n_epochs, results) == 0
    assert_same_outcome(np.load(results), uninterrupted(name))
    assert not path.exists()


class Stop(Exception):
    pass


def stop(run):
    raise Stop


def stopped(make, path, phase="cluster", epoch=3, **params):
    """Leave the checkpoint of a fit that an error ended at `epoch` (from 0) of `phase`."""
    with pytest.raises(Stop):
        make(callbacks=[TrainingCheckpoint(path), At(phase, epoch, stop)], **params).fit(X)
    assert path.exists()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.ckpt"


def test_checkpoint_changes_no_result_and_is_not_changed(path):
    checkpoint = TrainingCheckpoint(path)
    before = dict(vars(checkpoint))
    model = FITS["DCN"](callbacks=[("store", checkpoint)]).fit(X)
    assert_same_outcome(outcome(model), outcome(FITS["DCN"]().fit(X)))
    assert vars(checkpoint) == before
    assert not path.exists()


def test_epochs_that_were_stored_are_not_run_again(path):
    stopped(FITS["DCN"], path)
    seen = []

    class Epochs(Callback):
        def on_epoch_end(self, net, **kwargs):
            seen.append((net.run_.phase.name, net.run_.epoch))

    model = FITS["DCN"](callbacks=[TrainingCheckpoint(path), Epochs()]).fit(X)
    assert seen == [("cluster", epoch) for epoch in range(3, 11)]
    assert model.n_iter_ == 11


def test_every_n_epochs(path):
    callbacks = [TrainingCheckpoint(path, every_n_epochs=5), At("cluster", 8, stop)]
    with pytest.raises(Stop):
        FITS["identity"](callbacks=callbacks).fit(X)
    assert _stored_place(path) == [1, 5]


def _stored_place(path):
    from skdeepclust._archive import Unpacker, read_archive

    document, tensors = read_archive(path, "checkpoint")
    return list(Unpacker(tensors).unpack(document["state"]["next"]))


def test_random_state_none_takes_the_seed_of_the_file(path):
    np.random.seed(0)
    expected = outcome(FITS["DCN"](random_state=None).fit(X))
    np.random.seed(0)
    stopped(FITS["DCN"], path, "pretrain", 1, random_state=None)
    np.random.seed(5)
    model = FITS["DCN"](random_state=None, callbacks=[TrainingCheckpoint(path)]).fit(X)
    following = np.random.randint(10**6)
    assert_same_outcome(outcome(model), expected)
    # One number was drawn, as always.
    np.random.seed(5)
    np.random.randint(10)
    assert following == np.random.randint(10**6)


def test_interrupt_keeps_the_file(path):
    def interrupt(run):
        raise KeyboardInterrupt

    model = FITS["DCN"](callbacks=[TrainingCheckpoint(path), At("cluster", 4, interrupt)])
    with pytest.raises(KeyboardInterrupt), pytest.warns(FitInterruptedWarning):
        model.fit(X)
    assert path.exists()
    model.set_params(callbacks=[TrainingCheckpoint(path)]).fit(X)
    assert_same_outcome(outcome(model), outcome(FITS["DCN"]().fit(X)))


def test_interrupt_after_resuming_returns_to_the_stored_epoch(path):
    def interrupt(run):
        raise KeyboardInterrupt

    stopped(FITS["identity"], path, epoch=4)
    model = FITS["identity"](callbacks=[TrainingCheckpoint(path), At("cluster", 4, interrupt)])
    with pytest.raises(KeyboardInterrupt), pytest.warns(FitInterruptedWarning):
        model.fit(X)
    assert model.n_iter_ == len(model.history_) == 4


def test_stream_that_starts_goes_on(path):
    with pytest.raises(Stop):
        FITS["DCN"](callbacks=[TrainingCheckpoint(path), At("cluster", 3, stop)]).partial_fit(X)
    model = FITS["DCN"](callbacks=[TrainingCheckpoint(path)]).partial_fit(X)
    assert_same_outcome(outcome(model), outcome(FITS["DCN"]().partial_fit(X)))
    assert not path.exists()


def test_stop_of_another_callback_is_stored(path):
    patient = {"monitor": "train_loss", "patience": 2, "threshold": 0.9}
    expected = FITS["DCN"](callbacks=[EarlyStopping(**patient)]).fit(X)
    assert expected.n_iter_ < 11
    last = expected.n_iter_ - 1

    class StopLate(TrainingCheckpoint):
        def write(self, run, phase_is_finished=False):
            super().write(run, phase_is_finished)
            if run.phase.name == "cluster" and run.epoch == last:
                raise Stop

    with pytest.raises(Stop):
        FITS["DCN"](callbacks=[StopLate(path), EarlyStopping(**patient)]).fit(X)
    model = FITS["DCN"](callbacks=[TrainingCheckpoint(path), EarlyStopping(**patient)]).fit(X)
    assert_same_outcome(outcome(model), outcome(expected))


OTHER_FITS = {
    "lr": (clusterer, {"cls": DCN, "lr": 1e-2}, r"lr \(0.03 in the file, 0.01 now\)"),
    "class": (clusterer, {"cls": SRKMeans}, r"estimator \('DCN' in the file, 'SRKMeans' now\)"),
    "epochs": (clusterer, {"cls": DCN, "max_epochs": 13}, r"max_epochs \(11 in the file, 13 now"),
    "init": (clusterer, {"cls": DCN, "init": KMeans(n_init=3)}, "init "),
    "pretrain": (clusterer, {"cls": DCN, "pretrain": autoencoder(lr=1e-2)}, "pretrain "),
    "seed": (clusterer, {"cls": DCN, "random_state": 1}, "seed of random_state"),
}


@pytest.mark.parametrize("name", OTHER_FITS)
def test_checkpoint_of_other_settings_is_refused(name, path):
    stopped(FITS["DCN"], path)
    before = path.read_bytes()
    make, params, words = OTHER_FITS[name]
    message = f"is of another fit, .*{words}.*Delete the file to start anew, or .* another path"
    with pytest.raises(ValueError, match=message):
        make(**params, callbacks=[TrainingCheckpoint(path)]).fit(X)
    assert path.read_bytes() == before


def test_weights_of_a_frozen_autoencoder_tell_fits_apart(path):
    frozen = [FrozenEstimator(autoencoder(random_state=seed).fit(X)) for seed in (0, 0, 1)]
    frozen[2].estimator.random_state = 0
    stopped(FITS["DCN"], path, pretrain=frozen[0])
    with pytest.raises(ValueError, match="another fit, which differs in pretrain"):
        FITS["DCN"](pretrain=frozen[2], callbacks=[TrainingCheckpoint(path)]).fit(X)
    model = FITS["DCN"](pretrain=frozen[1], callbacks=[TrainingCheckpoint(path)]).fit(X)
    assert_same_outcome(outcome(model), outcome(FITS["DCN"](pretrain=frozen[0]).fit(X)))


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (X[:-1], r"n_samples \(90 in the file, 89 now\)"),
        (X[:, :-1], r"shape of a row of X \(\[6\] in the file, \[5\] now\)"),
        (X[::-1], "digest of X"),
        (np.where(np.arange(90 * 6).reshape(90, 6) == 77, 0, X), "digest of X"),
    ],
    ids=["fewer rows", "fewer columns", "another order", "one value"],
)
def test_checkpoint_of_other_data_is_refused(rows, words, path):
    stopped(FITS["DCN"], path)
    with pytest.raises(ValueError, match=f"another fit, .*{words}"):
        FITS["DCN"](callbacks=[TrainingCheckpoint(path)]).fit(rows)


def test_warm_start_is_another_fit(path):
    stopped(FITS["DCN"], path, warm_start=True)
    model = FITS["DCN"](warm_start=True).fit(X)
    with pytest.raises(ValueError, match="phases"):
        model.set_params(callbacks=[TrainingCheckpoint(path)]).fit(X)


def test_what_does_not_change_the_result_may_differ(path, capsys):
    stopped(FITS["DCN"], path)
    params = {"verbose": 1, "device": "cpu", "callbacks": [TrainingCheckpoint(path)]}
    model = FITS["DCN"](**params).fit(X.astype(np.float32))
    expected = FITS["DCN"]().fit(X)
    assert_array_equal(model.labels_, expected.labels_)
    assert_array_equal(model.cluster_centers_, expected.cluster_centers_)


def test_own_encoder_with_other_first_weights_goes_on(path):
    def make(seed, **params):
        torch.manual_seed(seed)
        return FITS["DCN"](encoder=torch.nn.Linear(6, 3), **params)

    stopped(lambda **params: make(0, **params), path)
    model = make(1, callbacks=[TrainingCheckpoint(path)]).fit(X)
    assert_same_outcome(outcome(model), outcome(make(0).fit(X)))


@pytest.mark.parametrize("content", [b"", b"something else", b"PK\x05\x06" + bytes(18)])
def test_damaged_file_is_told_and_left(content, path):
    path.write_bytes(content)
    with pytest.raises(FileFormatError, match="run.ckpt"):
        FITS["DCN"](callbacks=[TrainingCheckpoint(path)]).fit(X)
    assert path.read_bytes() == content


def test_models_and_checkpoints_are_told_apart(path):
    FITS["identity"]().fit(X).save(path)
    with pytest.raises(FileFormatError, match="is a model of skdeepclust, not a checkpoint"):
        FITS["identity"](callbacks=[TrainingCheckpoint(path)]).fit(X)
    os.unlink(path)
    stopped(FITS["identity"], path)
    with pytest.raises(FileFormatError, match="is a checkpoint of skdeepclust, not a model"):
        load(path)


def test_failed_write_leaves_the_last_checkpoint(path, monkeypatch):
    stopped(FITS["identity"], path)
    before = path.read_bytes()

    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        FITS["identity"](callbacks=[TrainingCheckpoint(path)]).fit(X)
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


def test_wrong_arguments(path):
    for checkpoint, kind, words in [
        (TrainingCheckpoint(3), TypeError, "path of TrainingCheckpoint .* got int"),
        (TrainingCheckpoint(path, 0), ValueError, "every_n_epochs .* positive integer, got 0"),
        (TrainingCheckpoint(path, 1.5), ValueError, "every_n_epochs .* positive integer, got 1.5"),
    ]:
        with pytest.raises(kind, match=words):
            FITS["identity"](callbacks=[checkpoint]).fit(X)
    with pytest.raises(ValueError, match="2 TrainingCheckpoint; pass one at most"):
        FITS["identity"](callbacks=[TrainingCheckpoint(path), TrainingCheckpoint(path)]).fit(X)


def test_no_warnings(path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stopped(FITS["DCN"], path)
        FITS["DCN"](callbacks=[TrainingCheckpoint(path)]).fit(X)
