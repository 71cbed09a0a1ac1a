"""Estimators in files: settings, weights and fitted attributes, and nothing that runs."""

import copy
import importlib
import math
import os
from dataclasses import asdict

import numpy as np
import torch
from sklearn.frozen import FrozenEstimator
from sklearn.utils._param_validation import validate_parameter_constraints
from sklearn.utils.validation import check_is_fitted

from . import __version__
from ._archive import NotStorableError, Packer, Unpacker, decoding, read_archive, write_archive
from ._network_estimator import is_fitted_name, is_frozen
from ._stored_networks import (
    checked_description,
    is_natural,
    is_shape,
    needs_transforms,
    rebuild,
    require,
)
from ._validation import open_rows
from .training.checkpoint import check_optimizer_state, optimizer_state
from .training.streaming import RowBuffer

# The only classes that a file can name.
_ESTIMATORS = {
    "ACOLGARClustering": "skdeepclust.acol_gar",
    "DCN": "skdeepclust.dcn",
    "DDCL": "skdeepclust.ddcl",
    "DEPICT": "skdeepclust.depict",
    "DenoisingAutoencoder": "skdeepclust.pretraining.autoencoder",
    "MIADMClustering": "skdeepclust.mi_adm",
    "SRKMeans": "skdeepclust.sr_kmeans",
}
# Parameters that may hold what only code can make; `load` takes it back.
_USERS_PARAMETERS = ("encoder", "callbacks", "init", "pretrain", "transforms")
_USERS = {"$": "user"}

# More rows in a pass were never chosen by any version.
_MAX_CHUNK_ROWS = 4096


def load(
    path,
    *,
    encoder=None,
    callbacks=None,
    init=None,
    pretrain=None,
    transforms=None,
    device="auto",
):
    """Return the estimator that :meth:`SRKMeans.save` and its like wrote to `path`.

    No code of the file is run: it names one of the estimators of this package and holds
    numbers and text. What the user's code had made is handed in again.

    Parameters
    ----------
    path : str or path-like
        The file.
    encoder : Module or callable, default=None
        The user's encoder, when the estimator was fitted with one. A copy is given the
        weights of the file.
    callbacks : list, default=None
        skorch callbacks for further fits, when the estimator had any; ``[]`` does without.
    init : str, clusterer or array, default=None
        How further fits find their first partition, when `init` was a clusterer; any other
        `init` will do.
    pretrain : transformer or None, default=None
        For further fits, when `pretrain` held an encoder or callbacks of the user.
    transforms : list of callable, default=None
        The user's transformations, when an :class:`ACOLGARClustering` was fitted with some.
    device : str, default="auto"
        Where to put the network. ``"auto"`` is what the estimator's own `device` says, or the
        CPU where that device is missing.

    Returns
    -------
    estimator : SRKMeans or another estimator of this package
        With the parameters, the predictions and the state for `partial_fit` of the one that
        was saved. A `random_state` that is an instance comes back in the state it had.

    Raises
    ------
    FileFormatError
        When the file is something else, damaged, altered, or of a newer format.
    ValueError
        When an argument is missing, or does not fit what is in the file.

    Examples
    --------
    >>> import os, tempfile
    >>> from sklearn.datasets import make_blobs
    >>> from skdeepclust import DCN, load
    >>> X, y = make_blobs(n_samples=60, centers=3, random_state=0)
    >>> model = DCN(n_clusters=3, encoder="identity", random_state=0).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(os.path.join(folder, "model.zip"))
    ...     loaded = load(os.path.join(folder, "model.zip"))
    >>> loaded.n_clusters
    3
    """
    document, tensors = read_archive(path, "model")
    given = {
        "encoder": encoder,
        "callbacks": callbacks,
        "init": init,
        "pretrain": pretrain,
        "transforms": transforms,
    }
    given = {name: value for name, value in given.items() if value is not None}
    unpacker = _ModelUnpacker(path, tensors, device)
    estimator = unpacker.estimator(document.get("estimator"), given)
    unpacker.check_all_used()
    return estimator


def save_estimator(estimator, path):
    """Write `estimator` to `path`; the method `save` of every estimator."""
    if not hasattr(estimator, "_stream_buffer"):
        check_is_fitted(estimator)
    estimator._validate_params()
    packer = _ModelPacker()
    content = packer.estimator(estimator, may_leave_out=True)
    document = {"package_version": __version__, "estimator": content}
    write_archive(path, "model", document, packer.tensors)


class _ModelPacker(Packer):
    """Packs the estimators of this package, and what belongs to them."""

    def pack_object(self, value, name):
        if is_frozen(value):
            return {"$": "frozen", "estimator": self.estimator(value.estimator, name)}
        if type(value).__name__ in _ESTIMATORS:
            return {"$": "estimator", **self.estimator(value, name)}
        if isinstance(value, RowBuffer):
            rows = self.pack(value.contents(), name)
            return {"$": "row buffer", "n_wanted": value.n_wanted, "rows": rows}
        if isinstance(value, np.random.RandomState):
            return {"$": "random state", "state": self._random_state(value, name)}
        return super().pack_object(value, name)

    def estimator(self, estimator, name="", *, may_leave_out=False):
        """Return class, parameters and fitted state; the user's own parts may be left out."""
        kind = type(estimator).__name__
        if kind not in _ESTIMATORS or type(estimator) is not _class_of(kind):
            raise NotStorableError(
                f"save can store {', '.join(_ESTIMATORS)}, not the class {kind}; use pickle or "
                "joblib for it."
            )
        prefix = f"{name}/" if name else ""
        parameters = {}
        for key, value in estimator.get_params(deep=False).items():
            may_leave = may_leave_out and key in _USERS_PARAMETERS
            parameters[key] = self._parameter(value, f"{prefix}parameters/{key}", may_leave)
        attributes = {
            key: self.pack(value, f"{prefix}attributes/{key}")
            for key, value in vars(estimator).items()
            if is_fitted_name(key) and key not in parameters and key != "net_"
        }
        content = {"class": kind, "parameters": parameters, "attributes": attributes}
        if hasattr(estimator, "_sklearn_output_config"):
            content["output"] = dict(estimator._sklearn_output_config)
        if hasattr(estimator, "net_"):
            content["network"] = self._network(estimator.net_, f"{prefix}network")
        return content

    def _parameter(self, value, name, may_leave_out):
        packer = _ModelPacker()
        try:
            packed = packer.pack(value, name)
        except NotStorableError as error:
            if not may_leave_out:
                raise NotStorableError(
                    f"{error}; set the parameter to numbers, text, lists or an array, or use "
                    "pickle or joblib."
                ) from error
            return _USERS
        self.tensors.update(packer.tensors)
        return packed

    def _network(self, net, name):
        weights = net.module_.state_dict()
        optimizer = optimizer_state(getattr(net, "optimizer_", None)) or net.optimizer_state_
        return {
            "description": self.pack(asdict(net.module_.description), name),
            "weights": self.pack(dict(weights), name),
            "optimizer": self.pack(optimizer, f"{name}/optimizer"),
        }

    def _random_state(self, random_state, name):
        state = random_state.get_state(legacy=False)
        if state["bit_generator"] != "MT19937":
            raise NotStorableError(f"a file can hold a RandomState of MT19937 only ({name})")
        return self.pack(list(random_state.get_state()), name)


class _ModelUnpacker(Unpacker):
    """The reverse of :class:`_ModelPacker`."""

    def __init__(self, path, tensors, device):
        super().__init__(tensors)
        self._path = path
        self._device = device

    def unpack_object(self, kind, value):
        if kind == "frozen":
            return FrozenEstimator(self.estimator(value["estimator"], {}))
        if kind == "estimator":
            return self.estimator(value, {})
        if kind == "row buffer":
            buffer = RowBuffer(_natural(value["n_wanted"]))
            buffer.add(open_rows(self.unpack(value["rows"]), dtype="keep"))
            return buffer
        if kind == "random state":
            random_state = np.random.RandomState()
            random_state.set_state(tuple(self.unpack(value["state"])))
            return random_state
        return super().unpack_object(kind, value)

    def estimator(self, content, given):
        """Return the estimator that `content` tells of, with what the user has `given`."""
        with self._decoding("class"):
            cls = _class_of(content["class"])
        self._check_given(cls, given)
        with self._decoding("parameters"):
            parameters = self._parameters(cls, content["parameters"])
        with self._decoding("network"):
            network = content.get("network")
            description = network and checked_description(self.unpack(network["description"]))
        own_encoder = self._take_given(parameters, description, given)
        with self._decoding("parameters"):
            estimator = cls(**parameters)
            estimator._validate_params()
        with self._decoding("attributes"):
            estimator.__dict__.update(self._attributes(content))
        if description:
            own = own_encoder, given.get("transforms")
            estimator.net_ = self._net(estimator, network, description, *own)
        with self._decoding("attributes"):
            _check_state(estimator)
        return estimator

    def check_all_used(self):
        """Raise when the file holds tensors that nothing refers to."""
        with self._decoding("weights"):
            require(self.used == set(self._tensors), "unknown tensors among them")

    def _decoding(self, what):
        return decoding(self._path, what)

    def _check_given(self, cls, given):
        for name in given:
            if name not in cls._get_param_names():
                raise ValueError(
                    f"load was given {name}, but {os.fspath(self._path)!r} holds a "
                    f"{cls.__name__}, which has no such parameter; leave it out."
                )
        constraints = {name: cls._parameter_constraints[name] for name in given}
        validate_parameter_constraints(constraints, given, caller_name="load")

    def _parameters(self, cls, packed):
        """Return the stored parameters; the user's own are marked."""
        for name in packed:
            require(name in cls._get_param_names(), f"{cls.__name__} has no parameter {name!r}")
        return {
            name: _USERS if value == _USERS and name in _USERS_PARAMETERS else self.unpack(value)
            for name, value in packed.items()
        }

    def _take_given(self, parameters, description, given):
        """Put what was given in place; return the encoder that the network needs, or None."""
        needed = {name for name, value in parameters.items() if value is _USERS}
        has_own_network = description is not None and description.encoder == "own"
        pretrain = given.get("pretrain")
        own_encoder = given.get("encoder")
        if own_encoder is None and "pretrain" in needed and is_frozen(pretrain):
            own_encoder = pretrain.estimator.encoder
        if has_own_network and (own_encoder is None or isinstance(own_encoder, str)):
            needed.add("encoder")
        has_own_transforms = needs_transforms(description)
        if has_own_transforms:
            needed.add("transforms")
        missing = [name for name in _USERS_PARAMETERS if name in needed - set(given)]
        if missing:
            words = ", ".join(f"{name}=..." for name in missing)
            raise ValueError(
                f"{os.fspath(self._path)!r} was saved from an estimator whose "
                f"{' and '.join(missing)} a file cannot hold, since they are code; pass them "
                f"again: load(path, {words})."
            )
        if "encoder" in given and "encoder" not in needed and not has_own_network:
            raise ValueError(
                f"load was given encoder, but {os.fspath(self._path)!r} holds a network with "
                f"encoder={parameters.get('encoder')!r}; leave it out."
            )
        if "transforms" in given and "transforms" not in needed:
            raise ValueError(
                f"load was given transforms, but {os.fspath(self._path)!r} holds a network with "
                f"transforms={parameters['transforms']!r}; leave it out."
            )
        parameters.update({name: given[name] for name in given if name != "encoder"})
        if parameters.get("encoder") is _USERS:
            parameters["encoder"] = given["encoder"]
        return own_encoder if has_own_network else None

    def _attributes(self, content):
        attributes = {}
        for name, value in content["attributes"].items():
            known = is_fitted_name(name) and not name.startswith("__") and name != "net_"
            require(known, f"unknown attribute {name!r}")
            attributes[name] = self.unpack(value)
        if "output" in content:
            output = content["output"]
            require(
                all(type(part) in (str, type(None)) for pair in output.items() for part in pair),
                "unknown output",
            )
            attributes["_sklearn_output_config"] = dict(output)
        return attributes

    def _net(self, estimator, network, description, own_encoder, own_transforms):
        with self._decoding("weights"):
            weights = self.unpack(network["weights"])
            require(all(isinstance(w, torch.Tensor) for w in weights.values()), "no tensors")
        given = {"encoder": own_encoder, "transforms": own_transforms}
        given = [name for name, value in given.items() if value is not None]
        if not given:
            with self._decoding("network"):
                module = rebuild(description, weights)
        else:
            try:
                module = rebuild(description, weights, own_encoder, own_transforms)
            except ValueError as error:
                raise ValueError(
                    f"{' or '.join(given)} does not fit the weights in "
                    f"{os.fspath(self._path)!r}: {error}"
                ) from error
        device = self._network_device(estimator)
        net = estimator._new_net(module.to(device), device)
        with self._decoding("optimiser"):
            stored = self.unpack(network["optimizer"])
            if stored is not None:
                check_optimizer_state(stored, [p for p in module.parameters() if p.requires_grad])
                net.optimizer_state_ = stored
        return net

    def _network_device(self, estimator):
        if self._device == "auto":
            try:
                return estimator._device()
            except ValueError:
                return torch.device("cpu")
        asked = copy.copy(estimator)
        asked.device = self._device
        return asked._device()


def _class_of(name):
    require(name in _ESTIMATORS, f"unknown class {name!r}")
    return getattr(importlib.import_module(_ESTIMATORS[name]), name)


def _check_state(estimator):
    """Raise ValueError when the fitted attributes do not belong together."""
    state = vars(estimator)
    if "net_" not in state and "_stream_buffer" not in state:
        return
    row_shape = state["_row_shape"]
    require(is_shape(row_shape), "_row_shape is no shape")
    n_features = math.prod(row_shape)
    require(state["n_features_in_"] == n_features, "n_features_in_ and _row_shape differ")
    if "feature_names_in_" in state:
        require(state["feature_names_in_"].shape == (n_features,), "names of other columns")
    if "_stream_buffer" in state:
        rows = state["_stream_buffer"].contents()
        require(rows.shape[1:] == row_shape, "rows of another shape are buffered")
    if "net_" in state:
        _check_fitted_state(estimator, state)


def _check_fitted_state(estimator, state):
    network = estimator.net_.module_
    require(network.description.row_shape == state["_row_shape"], "shapes of rows differ")
    require(type(state["_chunk_rows"]) is int, "_chunk_rows is no number")
    require(0 < state["_chunk_rows"] <= _MAX_CHUNK_ROWS, "_chunk_rows is out of range")
    require(state["_dtype"] in ("keep", "float32"), "unknown _dtype")
    history = state["history_"]
    require(type(history) is list and all(type(r) is dict for r in history), "history_ is no list")
    require(type(state["n_iter_"]) is int, "n_iter_ is no number")
    require(type(state["stop_reason_"]) in (str, type(None)), "stop_reason_ is no text")
    stream = state["_stream_state"]
    require(type(stream["step"]) is int and type(stream["seed"]) is int, "_stream_state")
    # A row of zeros goes all the way, so that parts that do not fit each other are told now.
    dtype = getattr(torch, network.description.dtype)
    with torch.inference_mode():
        device = estimator._current_device()
        embedding = network(torch.zeros(1, *state["_row_shape"], dtype=dtype, device=device))
        require(embedding.shape == (1, state["_embedding_dim"]), "_embedding_dim differs")
        if "cluster_centers_" in state or "labels_" in state:
            n_clusters = estimator._n_fitted_clusters()
            probabilities = estimator._assignment(state)(embedding)
            require(probabilities.shape == (1, n_clusters), "centres of another number")
            require(estimator._is_stream_state(stream, n_clusters), "_stream_state")
            labels = state["labels_"]
            require(labels.ndim == 1 and labels.dtype.kind == "i", "labels_ are no labels")


def _natural(value):
    require(is_natural(value), f"{value!r} is no number of rows")
    return value
