"""What all clusterers share: scikit-learn's contract, with the fitted state set last."""

import copy
from abc import abstractmethod

import numpy as np
import torch
from sklearn.base import ClusterMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import ClassifierTags
from sklearn.utils._param_validation import HasMethods, StrOptions
from sklearn.utils.validation import check_is_fitted

from ._network_estimator import (
    DESCRIPTION,
    NETWORK_CONSTRAINTS,
    POSITIVE_INTEGER,
    TRAINING_CONSTRAINTS,
    NetworkEstimator,
    is_frozen,
)
from ._validation import open_rows
from ._warnings import warn_user
from .exceptions import ClusterCollapseWarning
from .pretraining import DenoisingAutoencoder
from .training.first_partition import NAMED_INITS, FirstPartitionPhase
from .training.inference import ChunkedForward
from .training.sklearn_callbacks import fit_report, with_callbacks
from .training.streaming import RowBuffer, bounded, weights_kept_on_failure

COMMON_CONSTRAINTS = {
    **NETWORK_CONSTRAINTS,
    **TRAINING_CONSTRAINTS,
    "n_clusters": [POSITIVE_INTEGER],
    "pretrain": [StrOptions({"auto"}), HasMethods(["fit", "transform"]), None],
    "init": [StrOptions({"auto", *NAMED_INITS}), HasMethods(["fit"]), "array-like"],
    "n_init": [POSITIVE_INTEGER],
}

# A stream starts when there are this many rows for each cluster.
_START_ROWS_PER_CLUSTER = 10


class DeepClusterer(ClusterMixin, NetworkEstimator):
    """Base of the clusterers; not for direct use.

    A method says which phases it runs, how an embedding becomes probabilities, and what of a
    finished run it keeps. The rest, from reading `X` to the order of cluster ids, is here.
    """

    @abstractmethod
    def _phases(self, run, warm):
        """Return the phases that follow pretraining and the first partition."""

    @abstractmethod
    def _method_attributes(self, run):
        """Return the fitted attributes of the method, and its state for streams."""

    @abstractmethod
    def _assignment(self, attributes):
        """Return the function from a chunk of embedding to a chunk of probabilities."""

    def _has_partition(self, run):
        """Whether `run` has got as far as its first partition."""
        return "centers" in run.tensors

    def _labelling(self, attributes):
        """Return the function from a chunk of embedding to the argmax of its probabilities."""
        assign = self._assignment(attributes)
        return lambda z: assign(z).argmax(dim=1)

    @abstractmethod
    def _reorder(self, run, order):
        """Renumber the clusters of a run: new id ``i`` is old id ``order[i]``."""

    @abstractmethod
    def _stream_step(self, rows, state):
        """Learn from `rows`; return what changed of the fitted attributes."""

    @abstractmethod
    def _restore_method(self, run):
        """Put the fitted state of the method back into a run that continues from it."""

    @with_callbacks
    def fit(self, X, y=None):
        """Cluster `X`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or images (n_samples, C, H, W)
            Training rows; arrays, frames, CSR matrices, memmaps and tensors are read batch by
            batch and never copied whole.
        y : ignored
            Not used for training. Callbacks that score against labels are given it.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        ValueError
            For parameters or data that cannot work; the message names them.
        TrainingDivergedError
            When the loss becomes nan or infinite. An earlier fitted state is kept.
        """
        self._validate_params()
        rows, described, statistics = self._open_and_scan(X)
        self._check_enough_rows(rows)
        warm = self.warm_start and self.__sklearn_is_fitted__()
        seed = self._draw_seed()
        run = self._prepare_run(rows, statistics, seed, warm, report=None)
        run.report = fit_report(self, X, y, lambda: self._attributes_so_far(run, described))
        self._execute(run, described, warm)
        return self

    def partial_fit(self, X, y=None):
        """Learn from the next rows of a stream.

        A new estimator keeps rows until there are ``10 * n_clusters`` and starts as `fit` does;
        from then on each call takes one gradient step a row batch and updates the running
        statistics of the clusters. After `fit` it continues from there. Cluster ids never
        change their meaning. `labels_` is of the rows of this call alone.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or images (n_samples, C, H, W)
            The next rows.
        y : ignored
            There for the sake of pipelines.

        Returns
        -------
        self : object
            The estimator.
        """
        if not self.__sklearn_is_fitted__():
            self._validate_params()
            self._buffer_or_start(X)
            return self
        self._validate_changed_params()
        rows = self._open_fitted_rows(X)
        self._check_finite(rows)
        with weights_kept_on_failure(self.net_):
            changed = self._stream_step(rows, self._stream_state)
            attributes = {**vars(self), **changed}
            if "labels_" not in changed:
                changed["labels_"] = self._labels(rows, attributes)
            changed["history_"] = bounded([*self.history_, changed.pop("record")])
            self.__dict__.update(changed)
        return self

    def predict(self, X):
        """Return the cluster of each row: the argmax of :meth:`predict_proba`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or images (n_samples, C, H, W)
            Rows to assign.

        Returns
        -------
        labels : ndarray of shape (n_samples,), int64
        """
        self._check_is_ready()
        return self._forward(X, self._labelling(vars(self))).numpy()

    def predict_proba(self, X):
        """Return how strongly each row belongs to each cluster.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or images (n_samples, C, H, W)
            Rows to assign.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_clusters), float64
            Rows sum to 1. They are assignment scores of the method, not calibrated.
        """
        self._check_is_ready()
        return self._forward(X, self._assignment(vars(self))).numpy()

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        # A clusterer is no classifier, but scikit-learn's checks of sparse input read from here
        # how many columns predict_proba may have.
        tags.classifier_tags = ClassifierTags(multi_class=True)
        return tags

    # -- fit, step by step -----------------------------------------------------------------

    def _prepare_run(self, rows, statistics, seed, warm, report):
        """Return the run of a fit, its network built, copied or taken from `pretrain`."""
        if warm:
            self._check_same_row_shape(rows)
            if self.n_clusters != self._n_fitted_clusters():
                raise ValueError(
                    f"n_clusters={self.n_clusters} differs from the {self._n_fitted_clusters()} "
                    "clusters of the fit that warm_start=True continues; set warm_start=False."
                )
            network = self._copy_of_fitted_network()
        else:
            network = self._new_network(rows, statistics, seed)
        return self._start_run(rows, network, seed, report)

    def _new_network(self, rows, statistics, seed):
        pretrainer = self._pretrainer()
        if not is_frozen(pretrainer):
            builder = pretrainer if pretrainer is not None else self._default_pretrainer()
            return builder.build_network(rows, statistics, seed)
        fitted = pretrainer.estimator
        if fitted._row_shape != rows.row_shape:
            raise ValueError(
                f"pretrain was fitted on rows of shape {fitted._row_shape}, but X has rows of "
                f"shape {rows.row_shape}; fit it on data of the same shape."
            )
        if self._bounded_embedding and not fitted.bounded:
            raise ValueError(
                f"{type(self).__name__} needs a bounded embedding, but pretrain was fitted with "
                "bounded=False; fit DenoisingAutoencoder(bounded=True)."
            )
        return fitted._copy_of_fitted_network()

    def _pretrainer(self):
        """Return the transformer to learn the encoder with: unfitted, frozen, or None."""
        if self.pretrain is None:
            return None
        if isinstance(self.pretrain, str):
            return None if self._has_identity_encoder() else self._default_pretrainer()
        own = self.pretrain.estimator if is_frozen(self.pretrain) else self.pretrain
        if not isinstance(own, DenoisingAutoencoder):
            raise TypeError(
                "pretrain must be 'auto', None or a transformer of skdeepclust.pretraining, got "
                f"{type(own).__name__}; put other transformers before the clusterer in a Pipeline."
            )
        if is_frozen(self.pretrain):
            check_is_fitted(own)
            return self.pretrain
        if own.__sklearn_is_fitted__():
            raise ValueError(
                "pretrain is already fitted, and scikit-learn's clone would unfit it. Pass "
                "sklearn.frozen.FrozenEstimator(pretrain) to reuse it, or an unfitted one to train "
                "it anew."
            )
        if self._has_identity_encoder():
            raise ValueError(
                "encoder='identity' has nothing to pretrain; set pretrain=None or another encoder."
            )
        return self._with_own_architecture(clone(own))

    def _default_pretrainer(self):
        return self._with_own_architecture(DenoisingAutoencoder())

    def _hidden_weight(self):
        """Return the weight of hidden layers in the reconstruction, that of the pretraining."""
        pretrainer = self._pretrainer()
        pretrainer = getattr(pretrainer, "estimator", pretrainer) or self._default_pretrainer()
        return pretrainer.hidden_weight

    def _with_own_architecture(self, pretrainer):
        """Give `pretrainer` the network of this estimator; its training stays its own."""
        shared = ("encoder", "hidden_dims", "embedding_dim", "image_shape", "scaling")
        params = {name: getattr(self, name) for name in shared}
        return pretrainer.set_params(**params, bounded=self._bounded_embedding)

    def _all_phases(self, run, warm):
        if warm:
            self._restore_method(run)
            return self._phases(run, warm=True)
        pretrainer = self._pretrainer()
        trains = pretrainer is not None and not is_frozen(pretrainer)
        first = [pretrainer.phase(len(run.rows))] if trains else []
        return [*first, *self._phases(run, warm=False)]

    def _first_partition(self, restart=0):
        init = self.init
        if isinstance(init, str) and init == "auto":
            # Agglomeration follows the shapes that clusters have in a learnt embedding; without
            # one, the start that suits the objective itself.
            init = "k-means++" if self._has_identity_encoder() else "path-integral"
        return FirstPartitionPhase(init, self.n_clusters, restart)

    def _execute(self, run, described, warm):
        try:
            run.execute(self._all_phases(run, warm))
        except KeyboardInterrupt:
            self._keep_last_epoch(run, described, warm)
            raise
        attributes = self._finished_attributes(run, described, keep_ids=warm)
        self._take_over(attributes)
        run.end()
        self._warn_of_unused(attributes["labels_"])

    def _keep_last_epoch(self, run, described, warm):
        """Take over the last finished epoch; one within pretraining is given a partition."""
        if not run.return_to_snapshot():
            return
        if not warm and not self._has_partition(run):
            self._first_partition().begin(run)
        run.stop_reason = "interrupted by Ctrl-C"
        self._take_over(self._finished_attributes(run, described, keep_ids=warm))
        self._warn_interrupted(run)

    def _finished_attributes(self, run, described, keep_ids):
        """Return all fitted attributes of a run; after a cold fit used ids come first."""
        attributes = self._run_attributes(run, described)
        labels = self._labels(run.rows, attributes)
        if not keep_ids:
            used = np.unique(labels)
            if len(used) and used[-1] != len(used) - 1:
                unused = np.setdiff1d(np.arange(self.n_clusters), used)
                self._reorder(run, torch.from_numpy(np.concatenate([used, unused])))
                attributes = self._run_attributes(run, described)
                labels = self._labels(run.rows, attributes)
        attributes["labels_"] = labels
        return attributes

    def _run_attributes(self, run, described):
        return {
            **self._network_attributes(run, described),
            "n_iter_": run.values.get("n_iter", 0),
            **self._method_attributes(run),
        }

    def _attributes_so_far(self, run, described):
        """Return the fitted attributes as if the fit ended now, or None without a partition."""
        if not self._has_partition(run):
            return None
        # What a method adds to the run for this must not reach the training that goes on.
        run = copy.copy(run)
        run.tensors, run.values = dict(run.tensors), dict(run.values)
        attributes = self._run_attributes(run, described)
        return {**attributes, "labels_": self._labels(run.rows, attributes)}

    def _labels(self, rows, attributes):
        """Return the clusters of `rows` as `predict` will give them."""
        network = attributes["net_"].module_
        forward = ChunkedForward(network, attributes["_chunk_rows"], network.scaling.shift.device)
        return forward(rows, self._labelling(attributes)).numpy()

    def _n_fitted_clusters(self):
        return len(self.cluster_centers_)

    def _check_enough_rows(self, rows):
        if len(rows) < self.n_clusters:
            raise ValueError(
                f"n_samples={len(rows)} should be >= n_clusters={self.n_clusters}; pass more "
                "samples or ask for fewer clusters."
            )

    def _warn_of_unused(self, labels):
        n_used = len(np.unique(labels))
        if n_used < self.n_clusters:
            warn_user(
                f"{n_used} clusters are used of the n_clusters={self.n_clusters} asked for: the "
                "data may hold fewer distinct groups. Lower n_clusters, or try another init.",
                ClusterCollapseWarning,
            )

    # -- streams ---------------------------------------------------------------------------

    def _is_stream_state(self, state, n_clusters):
        """Whether what a file holds can be the state of a stream of `n_clusters` clusters."""
        tensors = [part for part in state.values() if isinstance(part, torch.Tensor)]
        return all(len(part) == n_clusters for part in tensors)

    def _n_rows_to_start(self):
        """Return how many rows a stream needs before it starts."""
        return _START_ROWS_PER_CLUSTER * self.n_clusters

    def _buffer_or_start(self, X):
        """Keep the rows of `X`; start the clustering when there are enough."""
        buffer = getattr(self, "_stream_buffer", None)
        if buffer is None:
            rows, described = self._open_training_rows(X)
        else:
            rows = self._open_fitted_rows(X)
            described = {name: vars(self)[name] for name in DESCRIPTION if name in vars(self)}
        self._scan(rows)
        grown = RowBuffer(self._n_rows_to_start(), buffer)
        grown.add(rows)
        if grown.n_missing:
            self.__dict__.update({**described, "_stream_buffer": grown})
            return
        everything = open_rows(grown.contents(), dtype="keep")
        everything.row_shape = rows.row_shape
        statistics = self._scan(everything)
        run = self._prepare_run(everything, statistics, self._draw_seed(), False, None)
        self._execute(run, described, warm=False)
        self.labels_ = self._labels(rows, vars(self))

    def _check_is_ready(self):
        buffer = getattr(self, "_stream_buffer", None)
        if buffer is not None and not self.__sklearn_is_fitted__():
            raise NotFittedError(
                f"This {type(self).__name__} instance is not fitted yet: partial_fit has "
                f"{len(buffer)} rows and needs {buffer.n_missing} more before it can start."
            )
        super()._check_is_ready()
