"""`save` and `load`: the same estimator comes back, and a wrong file is told in clear words."""

import json
import pickle
import warnings
import zipfile

import numpy as np
import pandas as pd
import pytest
import safetensors.torch
import torch
from numpy.testing import assert_array_equal
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from skorch.callbacks import EarlyStopping
from torch import nn

from skdeepclust import DCN, SRKMeans, load
from skdeepclust.exceptions import FileFormatError
from skdeepclust.pretraining import DenoisingAutoencoder

X, _ = make_blobs(n_samples=60, n_features=16, centers=3, random_state=0)
X = X.astype(np.float32)
IMAGES = X.reshape(60, 1, 4, 4)


def autoencoder(**params):
    params = {"hidden_dims": (8,), "embedding_dim": 4, "max_epochs": 2, "random_state": 0, **params}
    return DenoisingAutoencoder(**params)


def clusterer(cls=SRKMeans, **params):
    small = {"n_clusters": 3, "hidden_dims": (8,), "embedding_dim": 4, "max_epochs": 2}
    return cls(**{**small, "pretrain": autoencoder(), "random_state": 0, **params})


def own_encoder():
    return nn.Sequential(nn.Linear(16, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Linear(6, 4))


CASES = {
    "SRKMeans": lambda: clusterer(class_prior=[1.0, 2.0, 1.0]),
    "SRKMeans of float64, identity": lambda: clusterer(encoder="identity", pretrain=None),
    "SRKMeans of images": lambda: clusterer(encoder="conv", image_shape=(1, 4, 4)),
    "DCN": lambda: clusterer(DCN, n_init=2),
    "DenoisingAutoencoder": autoencoder,
}


@pytest.fixture(scope="module")
def fitted():
    data = {"SRKMeans of float64, identity": X.astype(np.float64)}
    return {name: make().fit(data.get(name, X)) for name, make in CASES.items()}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.zip"


def assert_same(found, expected, rows=X):
    """Compare everything that a user can see, bit for bit."""
    assert type(found) is type(expected)
    assert_same_values(found.get_params(deep=False), expected.get_params(deep=False))
    names = {name for name in vars(expected) if name.endswith("_") and name != "net_"}
    assert names == {name for name in vars(found) if name.endswith("_") and name != "net_"}
    for name in names:
        assert_same_values(getattr(found, name), getattr(expected, name))
    assert_array_equal(found.transform(rows), expected.transform(rows), strict=True)
    if hasattr(expected, "predict_proba"):
        assert_array_equal(found.predict_proba(rows), expected.predict_proba(rows), strict=True)


def assert_same_values(found, expected):
    assert type(found) is type(expected)
    if isinstance(expected, dict):
        assert list(found) == list(expected)
        # Two fits take different times.
        names = [name for name in expected if name != "seconds"]
        found, expected = ([part[name] for name in names] for part in (found, expected))
    if isinstance(expected, (list, tuple)):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_same_values(one, other)
    elif isinstance(expected, (np.ndarray, np.generic)):
        assert_array_equal(found, expected, strict=True)
    elif isinstance(expected, FrozenEstimator):
        assert_same(found.estimator, expected.estimator)
    elif hasattr(expected, "get_params"):
        assert_same_values(found.get_params(deep=False), expected.get_params(deep=False))
    else:
        assert found == expected or (found != found and expected != expected)


@pytest.mark.parametrize("name", CASES)
def test_round_trip_is_bit_equal_and_streams_continue(name, fitted, path):
    model = pickle.loads(pickle.dumps(fitted[name]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.save(path)
        loaded = load(path)
    assert_same(loaded, model)
    # The second stop holds the moments of the optimiser, the third is that of a loaded model
    # which has not trained since.
    for rows in (X[:20], X[20:50]):
        assert_same(loaded.partial_fit(rows), model.partial_fit(rows))
        loaded.save(path)
        loaded = load(path)
        loaded.save(path)
        loaded = load(path)
        assert_same(loaded, model)


def test_same_model_makes_the_same_bytes(fitted, tmp_path):
    for name in ("one", "two"):
        fitted["SRKMeans"].save(tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_unfitted_is_refused(path):
    with pytest.raises(NotFittedError, match="Call 'fit'"):
        SRKMeans().save(path)
    assert not path.exists()


@pytest.mark.parametrize("rows", [X, IMAGES], ids=["vectors", "images"])
def test_buffered_stream_continues(rows, path):
    model = clusterer(DCN).partial_fit(rows[:10])
    model.save(path)
    loaded = load(path)
    with pytest.raises(NotFittedError, match="has 10 rows and needs 20 more"):
        loaded.predict(rows)
    for part in (rows[10:25], rows[25:40], rows[40:]):
        model.partial_fit(part)
        loaded.partial_fit(part)
    assert_same(loaded, model, rows)


def test_parameters_keep_their_types(path):
    params = {
        "n_clusters": np.int64(3),
        "lr": np.float32(1e-3),
        "tol": 1,
        "class_prior": np.array([0.2, 0.3, 0.5], dtype=">f8"),
        "init": np.arange(60) % 3,
        "device": torch.device("cpu"),
        "hidden_dims": [8],
        "image_shape": (1, 4, 4),
        "encoder": "mlp",
        "centered": np.bool_(True),
        "callbacks": (),
    }
    clusterer(**params).fit(X).save(path)
    found = load(path).get_params(deep=False)
    params["class_prior"] = np.array([0.2, 0.3, 0.5])
    assert_same_values({name: found[name] for name in params}, params)


def test_random_state_instance_comes_back_in_its_state(path):
    generator = np.random.RandomState(7)
    clusterer(random_state=generator).fit(X).save(path)
    assert load(path).random_state.randint(10**6) == generator.randint(10**6)


def test_column_names_and_output_container_survive(path):
    frame = pd.DataFrame(X, columns=[f"gene {i}" for i in range(16)])
    model = clusterer().set_output(transform="pandas").fit(frame)
    model.save(path)
    loaded = load(path)
    pd.testing.assert_frame_equal(loaded.transform(frame), model.transform(frame))
    assert_array_equal(loaded.feature_names_in_, frame.columns.to_numpy())
    with pytest.raises(ValueError, match="feature names"):
        loaded.predict(frame[frame.columns[::-1]])


def test_frozen_autoencoder_is_stored_with_its_weights(path):
    pretrain = FrozenEstimator(autoencoder().fit(X))
    model = clusterer(pretrain=pretrain).fit(X)
    model.save(path)
    loaded = load(path)
    assert_same(loaded, model)
    assert_array_equal(loaded.fit(X).labels_, model.labels_)


def test_global_random_states_stay(fitted, path):
    numpy_state, torch_state = np.random.get_state()[1].copy(), torch.random.get_rng_state()
    fitted["SRKMeans"].save(path)
    load(path)
    assert_array_equal(np.random.get_state()[1], numpy_state)
    assert torch.equal(torch.random.get_rng_state(), torch_state)


# -- what the user made ------------------------------------------------------------------------


def test_own_module_is_asked_for_and_not_changed(path):
    encoder = own_encoder()
    model = clusterer(encoder=encoder).fit(X).partial_fit(X[:30])
    model.save(path)
    with pytest.raises(
        ValueError, match=r"encoder a file cannot hold.*load\(path, encoder=\.\.\.\)"
    ):
        load(path)
    fresh = own_encoder()
    before = {name: value.clone() for name, value in fresh.state_dict().items()}
    loaded = load(path, encoder=fresh)
    assert loaded.encoder is fresh
    assert all(torch.equal(before[name], value) for name, value in fresh.state_dict().items())
    assert_array_equal(loaded.predict_proba(X), model.predict_proba(X), strict=True)
    loaded.partial_fit(X[30:])
    model.partial_fit(X[30:])
    assert_array_equal(loaded.predict_proba(X), model.predict_proba(X), strict=True)


def test_own_callable_is_asked_for(path):
    def build(input_shape, embedding_dim):
        return nn.Linear(*input_shape, embedding_dim)

    model = clusterer(DCN, encoder=build).fit(X)
    model.save(path)
    loaded = load(path, encoder=build)
    assert_array_equal(loaded.transform(X), model.transform(X), strict=True)


def test_wrong_encoders_are_told(fitted, path):
    clusterer(encoder=own_encoder()).fit(X).save(path)
    with pytest.raises(ValueError, match="(?s)encoder does not fit the weights .*size mismatch"):
        load(path, encoder=nn.Sequential(nn.Linear(16, 5), nn.ReLU(), nn.Linear(5, 4)))
    with pytest.raises(ValueError, match="'encoder' parameter of load must be"):
        load(path, encoder=3)
    fitted["SRKMeans"].save(path)
    with pytest.raises(ValueError, match="holds a network with encoder='auto'; leave it out"):
        load(path, encoder=own_encoder())
    fitted["DenoisingAutoencoder"].save(path)
    with pytest.raises(ValueError, match="DenoisingAutoencoder, which has no such parameter"):
        load(path, init="ward")


def test_everything_missing_is_named_at_once(path):
    pretrain = FrozenEstimator(autoencoder(encoder=own_encoder()).fit(X))
    own = {
        "callbacks": [EarlyStopping(monitor="train_loss")],
        "init": KMeans(),
        "pretrain": pretrain,
    }
    model = clusterer(**own).fit(X)
    model.save(path)
    with pytest.raises(ValueError, match="encoder=..., callbacks=..., init=..., pretrain=..."):
        load(path)
    # The encoder stands in the transformer as well.
    loaded = load(path, **own)
    assert {name: getattr(loaded, name) for name in own} == own
    assert loaded.encoder == "auto"
    assert_array_equal(loaded.predict_proba(X), model.predict_proba(X), strict=True)
    loaded = load(path, encoder=own_encoder(), callbacks=[], init="ward", pretrain=autoencoder())
    assert (loaded.encoder, loaded.callbacks, loaded.init) == ("auto", [], "ward")
    assert_array_equal(loaded.predict_proba(X), model.predict_proba(X), strict=True)


def test_what_cannot_be_stored_is_refused(path):
    class Mine(SRKMeans):
        pass

    small = {"encoder": "identity", "pretrain": None}
    with pytest.raises(TypeError, match="not the class Mine; use pickle"):
        Mine(3, **small).fit(X).save(path)
    with pytest.raises(TypeError, match="cannot hold a Series .*class_prior"):
        clusterer(class_prior=pd.Series([1.0, 1.0, 1.0]), **small).fit(X).save(path)
    assert not path.exists()


def test_device_of_training_need_not_be_there(fitted, path):
    model = pickle.loads(pickle.dumps(fitted["SRKMeans"])).set_params(device="cuda:7")
    model.save(path)
    loaded = load(path)
    assert loaded.device == "cuda:7"
    assert_array_equal(loaded.predict_proba(X), model.predict_proba(X), strict=True)
    assert load(path, device="cpu").net_.module_.scaling.shift.device.type == "cpu"
    with pytest.raises(ValueError, match="device='cuda:7' cannot be used here"):
        load(path, device="cuda:7")


# -- files -------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", ["os.replace", "os.fsync", "safetensors.torch.save"])
def test_failure_while_saving_leaves_the_old_file(step, fitted, path, monkeypatch):
    fitted["SRKMeans"].save(path)
    before = path.read_bytes()

    def fail(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(step, fail)
    with pytest.raises(KeyboardInterrupt):
        fitted["DCN"].save(path)
    assert path.read_bytes() == before
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_nothing_is_unpickled(fitted, path, monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("unpickled")

    for name in ("pickle.load", "pickle.loads", "pickle.Unpickler", "torch.load"):
        monkeypatch.setattr(name, refuse)
    fitted["SRKMeans"].save(path)
    load(path)
    with zipfile.ZipFile(path) as archive:
        assert archive.namelist() == ["model.json", "weights.safetensors"]
        json.loads(archive.read("model.json"))
        weights = safetensors.torch.load(archive.read("weights.safetensors"))
    assert weights["network/encoder.stages.0.0.weight"].shape == (8, 16)


def test_missing_file_and_folder():
    with pytest.raises(FileNotFoundError):
        load("no such file")
    with pytest.raises(IsADirectoryError):
        load(".")


def test_cut_short_at_any_length(fitted, path):
    fitted["SRKMeans"].save(path)
    content = path.read_bytes()
    for length in [0, 1, 30, *range(100, len(content), len(content) // 40), len(content) - 1]:
        path.write_bytes(content[:length])
        with pytest.raises(FileFormatError, match="model.zip"):
            load(path)


def test_flipped_bytes_are_noticed_or_harmless(fitted, path):
    model = fitted["SRKMeans of float64, identity"]
    model.save(path)
    content = path.read_bytes()
    random = np.random.RandomState(0)
    n_noticed = 0
    headers = [*range(60), *range(len(content) - 200, len(content))]
    for position in [*headers, *random.randint(len(content), size=200)]:
        changed = bytearray(content)
        changed[position] ^= 1 << random.randint(8)
        path.write_bytes(changed)
        try:
            loaded = load(path)
        except FileFormatError:
            n_noticed += 1
        else:
            assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert n_noticed > 200


def rewrite(path, change=None, change_tensors=None, **options):
    """Write the file at `path` again, with its document or tensors changed."""
    with zipfile.ZipFile(path) as archive:
        document = json.loads(archive.read("model.json"))
        tensors = safetensors.torch.load(archive.read("weights.safetensors"))
    if change is not None:
        change(document)
    if change_tensors is not None:
        change_tensors(tensors)
    with zipfile.ZipFile(path, "w", **options) as archive:
        archive.writestr("model.json", json.dumps(document))
        archive.writestr("weights.safetensors", safetensors.torch.save(tensors))


def setter(*keys, value):
    def change(document):
        for key in keys[:-1]:
            document = document[key]
        assert keys[-1] in document
        document[keys[-1]] = value

    return change


ATTRIBUTES = ("estimator", "attributes")
NETWORK = ("estimator", "network", "description")

ALTERED = {
    "class": setter("estimator", "class", value="Popen"),
    "class of a module": setter("estimator", "class", value="os.system"),
    "class of no text": setter("estimator", "class", value=["SRKMeans"]),
    "no estimator": setter("estimator", value=None),
    "format": setter("format", value="something else"),
    "format version": setter("format_version", value="1"),
    "parameter of another type": setter("estimator", "parameters", "max_epochs", value="many"),
    "parameter of another kind": setter("estimator", "parameters", "encoder", value={"$": "call"}),
    "unknown parameter": lambda d: d["estimator"]["parameters"].update(code="exit()"),
    "unknown attribute": lambda d: d["estimator"]["attributes"].update(fit=1),
    "reserved attribute": lambda d: d["estimator"]["attributes"].update(__class__=1),
    "missing attribute": lambda d: d["estimator"]["attributes"].pop("_row_shape"),
    "missing centres": lambda d: d["estimator"]["attributes"].pop("cluster_centers_"),
    "centres of another type": setter(*ATTRIBUTES, "cluster_centers_", value="here"),
    "labels of another type": setter(*ATTRIBUTES, "labels_", value=[0, 1]),
    "history of another type": setter(*ATTRIBUTES, "history_", value=3),
    "stream state of another type": setter(*ATTRIBUTES, "_stream_state", value=None),
    "huge chunk": setter(*ATTRIBUTES, "_chunk_rows", value=10**12),
    "number of features": setter(*ATTRIBUTES, "n_features_in_", value=17),
    "tensor of no name": setter(*ATTRIBUTES, "labels_", value={"$": "array", "name": "none"}),
    "huge width": setter(*NETWORK, "hidden_dims", value={"$": "tuple", "items": [10**14]}),
    "many widths": setter(*NETWORK, "hidden_dims", value={"$": "tuple", "items": [1] * 10**5}),
    "huge embedding": setter(*NETWORK, "embedding_dim", value=10**30),
    "huge images": setter(
        *NETWORK, "row_shape", value={"$": "tuple", "items": [10**9, 10**9, 10**9]}
    ),
    "another encoder": setter(*NETWORK, "encoder", value="conv"),
    "unknown encoder": setter(*NETWORK, "encoder", value="eval"),
    "unknown type": setter(*NETWORK, "dtype", value="load"),
    "another width": setter(*NETWORK, "hidden_dims", value={"$": "tuple", "items": [7]}),
    "unknown field": lambda d: d["estimator"]["network"]["description"].update(code="exit()"),
    "no weights": setter("estimator", "network", "weights", value={}),
    "wild optimiser": setter("estimator", "network", "optimizer", value={"state": "x"}),
}


@pytest.mark.parametrize("name", ALTERED)
def test_altered_document_is_refused(name, fitted, path):
    fitted["SRKMeans"].save(path)
    rewrite(path, ALTERED[name])
    with pytest.raises(FileFormatError, match="model.zip"):
        load(path)


def _reshape(tensors):
    name = "network/encoder.stages.0.0.weight"
    tensors[name] = tensors[name].T.contiguous()


ALTERED_TENSORS = {
    "one is missing": lambda tensors: tensors.pop("network/encoder.stages.0.0.weight"),
    "one is too many": lambda tensors: tensors.update(more=torch.zeros(1)),
    "one has another shape": _reshape,
    "scaling has another shape": lambda t: t.update({"network/scaling.shift": torch.zeros(3, 16)}),
    "centres have another width": lambda t: t.update(
        {"attributes/cluster_centers_": torch.zeros(3, 5, dtype=torch.float64)}
    ),
}


@pytest.mark.parametrize("name", ALTERED_TENSORS)
def test_altered_tensors_are_refused(name, fitted, path):
    fitted["SRKMeans"].save(path)
    rewrite(path, change_tensors=ALTERED_TENSORS[name])
    with pytest.raises(FileFormatError, match="model.zip"):
        load(path)


def test_optimiser_of_another_network_is_refused(fitted, path):
    pickle.loads(pickle.dumps(fitted["DCN"])).partial_fit(X[:20]).save(path)

    def change(tensors):
        name = next(name for name in tensors if name.endswith("exp_avg"))
        tensors[name] = torch.zeros(2, 2)

    rewrite(path, change_tensors=change)
    with pytest.raises(FileFormatError, match="optimiser"):
        load(path)


@pytest.mark.parametrize("text", ["[" * 10**5, "{", "[NaN]", "[1]", "\xff", '{"format": 1e999}'])
def test_other_json_is_refused(text, fitted, path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("model.json", text.encode("latin-1"))
        archive.writestr("weights.safetensors", safetensors.torch.save({}))
    with pytest.raises(FileFormatError, match="is not a model of skdeepclust"):
        load(path)


def test_newer_format_is_told(fitted, path):
    fitted["SRKMeans"].save(path)
    rewrite(path, setter("format_version", value=2))
    with pytest.raises(FileFormatError, match="newer skdeepclust, in format version 2.*Upgrade"):
        load(path)


def test_parameter_that_came_later_takes_its_default(fitted, path):
    fitted["SRKMeans"].save(path)
    rewrite(path, lambda document: document["estimator"]["parameters"].pop("annealing"))
    assert load(path).annealing is None


def test_compressed_entries_are_refused_unread(fitted, path):
    fitted["SRKMeans"].save(path)
    rewrite(path, compression=zipfile.ZIP_DEFLATED)
    with pytest.raises(FileFormatError, match="compressed"):
        load(path)


@pytest.mark.parametrize("entries", [{}, {"a.txt": "b"}, {"checkpoint.json": "{}"}])
def test_other_archives_are_told(entries, path):
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    with pytest.raises(FileFormatError, match="not a model"):
        load(path)


def test_file_format_error_is_a_value_error():
    assert issubclass(FileFormatError, ValueError)
