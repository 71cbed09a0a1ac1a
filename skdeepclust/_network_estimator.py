"""What all estimators with a network share: reading X, building, fitting state, transform."""

import copy
import functools
import operator
from numbers import Integral, Real

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.frozen import FrozenEstimator
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from ._validation import check_finite, check_image_shape, open_rows
from ._warnings import warn_user
from .exceptions import FitInterruptedWarning
from .nn.network import NetworkDescription, build_network, inference_chunk_rows
from .nn.scaling import ColumnStatistics, fit_scaling, resolve_scaling
from .training.checkpoint import find_checkpoint, settings_of
from .training.inference import ChunkedForward
from .training.net import ClusteringNet, fresh_callbacks
from .training.progress import EpochProgress
from .training.run import Run
from .training.seeds import derive_seed, draw_seed, isolated_torch_randomness, torch_generator
from .training.sklearn_callbacks import CallbackSupportMixin

# Below this many rows the wide network of the papers has more weights than there is to learn.
_SMALL_DATA_ROWS = 5_000
_SMALL_HIDDEN_DIMS = (128, 64)
_LARGE_HIDDEN_DIMS = (500, 500, 2000)

# The attributes that describe the rows of X; a waiting stream has them too.
DESCRIPTION = ("n_features_in_", "feature_names_in_", "_row_shape", "_dtype")

POSITIVE_INTEGER = Interval(Integral, 1, None, closed="left")

NETWORK_CONSTRAINTS = {
    "encoder": [StrOptions({"auto", "mlp", "conv", "identity"}), callable],
    "hidden_dims": [StrOptions({"auto"}), list, tuple],
    "embedding_dim": [POSITIVE_INTEGER],
    "image_shape": [list, tuple, None],
    "scaling": [StrOptions({"auto", "standard", "common", "range"}), None],
}

TRAINING_CONSTRAINTS = {
    "max_epochs": [POSITIVE_INTEGER],
    "batch_size": [StrOptions({"auto"}), POSITIVE_INTEGER],
    "lr": [Interval(Real, 0, None, closed="neither")],
    "tol": [Interval(Real, 0, None, closed="left")],
    "device": [str, torch.device],
    "callbacks": [list, tuple, None],
    "warm_start": ["boolean"],
    "verbose": ["verbose"],
    "random_state": ["random_state"],
}


class NetworkEstimator(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, CallbackSupportMixin, BaseEstimator
):
    """Base of the estimators that hold a skorch net; not for direct use."""

    # Whether the embedding passes through tanh.
    _bounded_embedding = True

    def transform(self, X):
        """Return the embedding of `X` (not distances to centres, as KMeans does).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or images (n_samples, C, H, W)
            Rows to embed.

        Returns
        -------
        embedding : ndarray of shape (n_samples, embedding_dim)
            float32, or the type of `X` with ``encoder="identity"``.
        """
        self._check_is_ready()
        return self._forward(X).numpy()

    def _check_is_ready(self):
        """Raise NotFittedError unless there is a fitted state."""
        check_is_fitted(self)

    def save(self, path):
        """Write the fitted estimator to a file that :func:`skdeepclust.load` reads.

        The file is a zip of ``model.json`` and ``weights.safetensors``. It holds settings,
        weights and fitted attributes, and the buffered rows of a stream that has not started;
        never code. What only code can make is left out, and is to be handed to `load`: a
        module or callable as `encoder`, `callbacks`, a clusterer as `init`, and a `pretrain`
        transformer with such parts. Left out as well are callbacks set by scikit-learn's
        ``set_callbacks`` and the history of skorch in ``net_.history``.

        Parameters
        ----------
        path : str or path-like
            Where to write. An older file is replaced in one step, when the new one is whole.

        Raises
        ------
        NotFittedError
            Before the first `fit` or `partial_fit`.
        TypeError
            For the instance of a subclass, or a parameter that a file cannot hold.

        Examples
        --------
        >>> import os, tempfile
        >>> from sklearn.datasets import make_blobs
        >>> from skdeepclust import SRKMeans, load
        >>> X, y = make_blobs(n_samples=60, centers=3, random_state=0)
        >>> model = SRKMeans(n_clusters=3, encoder="identity", random_state=0).fit(X)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.save(os.path.join(folder, "model.zip"))
        ...     loaded = load(os.path.join(folder, "model.zip"))
        >>> bool((loaded.predict(X) == model.labels_).all())
        True
        """
        # It knows all estimators, and so cannot be imported before them.
        from ._persistence import save_estimator

        save_estimator(self, path)

    @property
    def _n_features_out(self):
        return self._embedding_dim

    def __sklearn_is_fitted__(self):
        return hasattr(self, "net_")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.three_d_array = True
        tags.transformer_tags.preserves_dtype = ["float32"]
        if self._has_identity_encoder():
            tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    # -- reading X -------------------------------------------------------------------------

    def _open_training_rows(self, X):
        """Return the rows of `X` and the attributes that describe its columns."""
        image_shape = check_image_shape(self.image_shape)
        name = type(self).__name__
        dtype = "keep" if self._has_identity_encoder() else "float32"
        rows = open_rows(X, image_shape=image_shape, dtype=dtype, estimator_name=name)
        # scikit-learn writes the names of columns at once; a fit that fails later must not
        # leave them behind, so a shallow copy takes them.
        probe = copy.copy(self)
        probe.__dict__.pop("feature_names_in_", None)
        validate_data(probe, X, reset=True, skip_check_array=True, ensure_2d=False)
        described = {
            "n_features_in_": rows.n_features,
            "_row_shape": rows.row_shape,
            "_dtype": dtype,
        }
        if hasattr(probe, "feature_names_in_"):
            described["feature_names_in_"] = probe.feature_names_in_
        return rows, described

    def _open_fitted_rows(self, X):
        """Return the rows of `X` after comparing names, number and shape with the fit's."""
        name = type(self).__name__
        validate_data(self, X, reset=False, skip_check_array=True, ensure_2d=False)
        rows = open_rows(X, dtype=self._dtype, estimator_name=name)
        if len(rows.row_shape) == 1:
            if rows.n_features != self.n_features_in_:
                raise ValueError(
                    f"X has {rows.n_features} features, but {name} is expecting "
                    f"{self.n_features_in_} features as input"
                    + (
                        f" (images of shape {self._row_shape})."
                        if len(self._row_shape) == 3
                        else "."
                    )
                )
            rows.row_shape = self._row_shape
        elif rows.row_shape != self._row_shape:
            raise ValueError(
                f"X has rows of shape {rows.row_shape}, but {name} was fitted on rows of shape "
                f"{self._row_shape}; resize, crop or reshape the images to the fitted shape."
            )
        return rows

    def _open_and_scan(self, X):
        """Return rows, described columns and statistics; all of X has been found finite."""
        rows, described = self._open_training_rows(X)
        return rows, described, self._scan(rows)

    def _scan(self, rows):
        """Check all rows for nan and infinity and return the statistics of the columns."""
        statistics = ColumnStatistics(rows.n_features)
        for block in self._finite_blocks(rows):
            statistics.update(block.reshape(len(block), -1))
        return statistics

    def _check_finite(self, rows):
        """Check all rows for nan and infinity before any of them changes the state."""
        for _ in self._finite_blocks(rows):
            pass

    def _finite_blocks(self, rows):
        """Yield all rows in blocks in which there is no nan or infinity."""
        step = rows.scan_step()
        for start in range(0, len(rows), step):
            block = rows.read(start, min(start + step, len(rows)))
            if rows.may_be_nonfinite:
                dtype_name = str(rows.dtype).removeprefix("torch.")
                check_finite(block, dtype_name, type(self).__name__)
            yield block
        # Later passes need not look again.
        rows.may_be_nonfinite = False

    def _validate_changed_params(self):
        """Validate the parameters unless they are the ones of the last call.

        On small batches of a stream the check would cost as much as the step.
        """
        values = [getattr(self, name) for name in _parameter_names(type(self))]
        checked = self.__dict__.get("_checked_values", [])
        same = len(checked) == len(values) and all(map(operator.is_, checked, values))
        if not same:
            self._validate_params()
            self._checked_values = values

    def _forward(self, X, then=None):
        """Return ``then(embedding)`` of the rows of `X`, through the one inference door."""
        rows = self._open_fitted_rows(X)
        forward = ChunkedForward(self.net_.module_, self._chunk_rows, self._current_device())
        return forward(rows, then, estimator_name=type(self).__name__)

    def _current_device(self):
        """Return where the fitted network lies; it may have been loaded elsewhere."""
        return self.net_.module_.scaling.shift.device

    def _has_identity_encoder(self):
        return isinstance(self.encoder, str) and self.encoder == "identity"

    # -- building --------------------------------------------------------------------------

    def _device(self):
        """Return the torch device that `device` names, or say why it cannot be used."""
        if self.device == "auto":
            return torch.device("cuda" if torch.cuda.is_available() else "cpu")
        try:
            device = torch.device(self.device)
            torch.empty(0, device=device)
        except (RuntimeError, AssertionError) as error:
            raise ValueError(
                f"device={self.device!r} cannot be used here: {str(error).splitlines()[0]}. Pass "
                "'auto', 'cpu', or a device that this PyTorch build and machine have."
            ) from error
        return device

    def _resolved_batch_size(self, n_rows):
        """Return `batch_size`; ``"auto"`` gives small data at least some steps an epoch."""
        if self.batch_size == "auto":
            return int(min(256, max(16, n_rows // 64)))
        return int(self.batch_size)

    def _resolved_hidden_dims(self, n_rows):
        if isinstance(self.hidden_dims, str):
            return _SMALL_HIDDEN_DIMS if n_rows < _SMALL_DATA_ROWS else _LARGE_HIDDEN_DIMS
        for width in self.hidden_dims:
            if not isinstance(width, (int, np.integer)) or width < 1:
                raise ValueError(
                    f"hidden_dims must hold positive integers, got {self.hidden_dims!r}."
                )
        return tuple(int(width) for width in self.hidden_dims)

    def _build_network(self, rows, statistics, seed, *, bounded, dropout):
        """Return a new network with fitted scaling and weights drawn from `seed`."""
        is_named = isinstance(self.encoder, str)
        scaling = self.scaling
        if is_named and self.encoder == "identity" and scaling == "auto":
            scaling = None
        scaling = resolve_scaling(statistics, scaling, rows.row_shape)
        description = NetworkDescription(
            row_shape=rows.row_shape,
            encoder=self.encoder if is_named else "own",
            hidden_dims=self._resolved_hidden_dims(len(rows)),
            embedding_dim=int(self.embedding_dim),
            bounded=bool(bounded),
            scaling=scaling,
            dropout=float(dropout),
            dtype=str(rows.dtype).removeprefix("torch."),
        )
        with isolated_torch_randomness(derive_seed(seed, "construction")):
            return build_network(
                description,
                fit_scaling(statistics, scaling, rows.row_shape, rows.dtype),
                own_encoder=None if is_named else copy.deepcopy(self.encoder),
                generator=torch_generator(seed, "weights"),
            )

    def _start_run(self, rows, network, seed, report=None):
        """Return the run of one fit around `network`."""
        device = self._device()
        net = self._new_net(network, device)
        chunk_rows = inference_chunk_rows(network, rows.row_shape)
        run = Run(
            rows, net.module_, net, seed=seed, device=device, chunk_rows=chunk_rows, report=report
        )
        run.checkpoint = find_checkpoint(net.callbacks)
        if run.checkpoint is not None:
            run.checkpoint.settings_ = settings_of(self)
        return run

    def _new_net(self, network, device):
        """Return the skorch net around `network`, with copies of the callbacks."""
        callbacks = fresh_callbacks(self.callbacks)
        if self.verbose:
            callbacks.insert(0, ("epoch_progress", EpochProgress()))
        return ClusteringNet(network, callbacks=callbacks, device=device).initialize()

    def _draw_seed(self):
        """Return the seed of a fit: that of its checkpoint, where a killed fit left one."""
        seed = draw_seed(self.random_state)
        checkpoint = find_checkpoint(self.callbacks)
        if checkpoint is None:
            return seed
        return checkpoint.seed_to_use(seed, is_free=self.random_state is None)

    # -- fitted state ----------------------------------------------------------------------

    def _network_attributes(self, run, described):
        """Return the fitted attributes that every estimator has."""
        probe = run.rows.empty(1).zero_().to(run.device)
        run.network.eval()
        with torch.inference_mode():
            embedding_dim = run.network(probe).shape[1]
        return {
            **described,
            "net_": run.net,
            "history_": run.history,
            "stop_reason_": run.stop_reason,
            "_embedding_dim": embedding_dim,
            "_chunk_rows": run.chunk_rows,
        }

    def _take_over(self, attributes):
        """Set the whole fitted state in one step; nothing of an earlier fit stays."""
        keep = {
            name: value
            for name, value in vars(self).items()
            if name in self._get_param_names() or not is_fitted_name(name)
        }
        self.__dict__ = {**keep, **attributes}

    def _copy_of_fitted_network(self):
        """Return a copy to train on, so that a failed fit leaves the fitted one alone."""
        return copy.deepcopy(self.net_.module_)

    def _check_same_row_shape(self, rows):
        """Refuse to continue from weights that were fitted to rows of another shape."""
        if rows.row_shape != self._row_shape:
            raise ValueError(
                f"X has rows of shape {rows.row_shape}, but warm_start=True continues from a fit "
                f"on rows of shape {self._row_shape}; set warm_start=False to start anew."
            )

    def _warn_interrupted(self, run):
        """Tell once what an interrupted fit has left behind."""
        epochs = f" after {len(run.history)} finished epochs" if run.history else ""
        warn_user(
            f"{type(self).__name__}.fit was interrupted{epochs}; the estimator holds the state of "
            "the last finished epoch and can be used.",
            FitInterruptedWarning,
        )


def is_fitted_name(name):
    """Whether an attribute belongs to the fitted state rather than to scikit-learn."""
    return name.endswith("_") or name in {
        "_embedding_dim",
        "_chunk_rows",
        "_dtype",
        "_row_shape",
        "_stream_state",
        "_stream_buffer",
        "_log_prior_fitted",
        "_temperature_fitted",
        "_readout_fitted",
    }


def is_frozen(estimator):
    """Whether `estimator` is wrapped in scikit-learn's FrozenEstimator."""
    return isinstance(estimator, FrozenEstimator)


@functools.cache
def _parameter_names(cls):
    return cls._get_param_names()
