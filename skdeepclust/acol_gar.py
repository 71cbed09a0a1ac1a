"""ACOL-GAR: clusters from learning to name transformations (Kilinc and Uysal, 2018)."""

import copy
from numbers import Integral, Real

import torch
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from ._network_estimator import DESCRIPTION, POSITIVE_INTEGER
from ._pretext_probe import probe
from ._pseudo_supervision_phases import PseudoSupervisionPhase, ReadOutPhase, read_out_attributes
from ._pseudo_supervision_stream import stream_state, stream_update
from ._transformation_building import Settings, new_transformation_network
from ._warnings import warn_user
from .base import COMMON_CONSTRAINTS, DeepClusterer
from .exceptions import PretextWarning
from .losses import distance_memberships, pooled_log_probabilities
from .nn.transformations import IMAGE_FAMILIES, VECTOR_FAMILIES
from .training.first_partition import NAMED_INITS
from .training.inference import ChunkedForward, distances_in_float64, in_float64
from .training.run import Run

# The paper's batch; larger data are cut into batches of about this size.
_BATCH_SIZE = 400
_HIDDEN_DIMS = (512, 512)
# Training that names so little more than chance has found nothing in the data.
_LEAST_GAIN = 0.05

_NON_NEGATIVE = Interval(Real, 0, None, closed="left")


class ACOLGARClustering(DeepClusterer):
    """Deep clustering by pseudo supervision and graph-based activity regularization.

    A network is given every row under a random transformation, such as a quarter turn, and
    learns which one it was. Each transformation has several softmax units, its duplicates,
    whose probabilities are added up, so the classification leaves free which of them fires;
    the regularization of their activity makes them exclude each other and be used equally. What
    tells the duplicates apart are the kinds of rows there are. K-means on the last hidden layer
    then reads out the clusters; the network never sees their number. Minimised is

    ``-(1/B) sum_i log Y_{i, t_i} + affinity_weight * affinity +
    balance_weight * (1 - balance) + frobenius_weight * |Z|^2``

    with ``Y`` the summed softmax of the inputs ``Z``, ``t`` the transformations, and affinity
    and balance of the positive part of ``Z``.

    Which transformations are used decides what is found: clusters are told apart by how
    recognisable a transformation of them is. Rotations and flips reveal digits. Upright
    photographs betray their orientation by other things than what they show. The families for
    vectors are this package's own; they act on whitened rows. On the single cells and the text
    embeddings they were tried on, none of them came up to K-means on the same rows, and
    ``"signs"`` came nearest: compare with :class:`sklearn.cluster.KMeans` before relying on them.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters, used by the final K-means alone; see :meth:`recluster`.
    transforms : str or list of callable, default="auto"
        ``"dihedral"`` (square images: four quarter turns, each also mirrored), ``"rotations"``,
        ``"flips"`` (keep the shape of images that are not square); ``"cyclic"`` (powers of one
        rotation of vectors), ``"signs"``, ``"haar"`` (random rotations), ``"permutation"``.
        ``"auto"`` is the first that fits. Callables take and return a batch as a Tensor; the
        identity is put before them.
    n_transforms : int or None, default=None
        Number of transformations, the identity among them; None is 8 for ``"dihedral"``, else 4.
        Vectors with a single direction of variance have two, identity and change of sign.
    n_duplicates : int, default=20
        Softmax units of each transformation, not the number of clusters. Reduced, with a
        warning, where a batch has fewer rows than there are units.
    affinity_weight : float, default=0.1
        Weight of the affinity.
    balance_weight : float, default=1.0
        Weight of ``1 - balance``.
    coactivity_weight : float, default=0.0
        Weight of the unnormalised affinity.
    frobenius_weight : float, default=1e-6
        Weight of the squared softmax inputs of a batch of 400; other batches are scaled to it.
    frobenius_on : {"logits", "activity"}, default="logits"
        Whether that term sees the softmax inputs, so that it revives silent ones, or their
        positive part.
    gar_reduction : {"mean", "pooled", "global"}, default="mean"
        How the ratios of the transformations are put together; see
        :func:`~skdeepclust.losses.activity_terms`.
    balance_on : {"squares", "sums"}, default="squares"
        Whether the use of a unit is its summed squared activity or its summed activity.
    label_sampling : {"random", "balanced"}, default="random"
        Whether the transformations of a batch are drawn independently or equally often.
    encoder : {"auto", "mlp", "conv"}, Module or callable, default="auto"
        ``"auto"`` is an MLP for vectors and the paper's convolutional network for images. A
        `torch.nn.Module` is worked on as a copy; a callable is given ``(input_shape,
        embedding_dim)`` and returns one. It is to end in ReLU.
    hidden_dims : "auto" or sequence of int, default="auto"
        Widths of the MLP; ``"auto"`` is ``(512, 512)``.
    embedding_dim : "auto" or int, default="auto"
        Width of the representation; ``"auto"`` is 2048 for images and 256 for vectors.
    image_shape : tuple of int or None, default=None
        ``(C, H, W)`` when the rows of a two-dimensional `X` are images.
    scaling : {"auto", "whiten", "unit", "standard", "common", "range"} or None, default="auto"
        Input scaling inside the network. ``"auto"`` maps images to 0..1 and whitens vectors:
        the principal components with 90 % of the variance, from columns that are standardised
        unless they share a unit. A module
        as `encoder` is given as many values as there are columns. On vectors that are not
        whitened the transformations are betrayed by variances.
    readout : {"k-means", "slots"}, default="k-means"
        What `predict` and `predict_proba` read: distances to the centres, or the softmax over
        the duplicates of the identity, mapped to clusters by `slot_table_`. The loss sees the
        sum of the duplicates alone, so they need not tell the clusters apart. Neither is
        calibrated.
    test_time_averaging : bool, default=False
        Whether the representation of a row is the mean over all its transformations. The network
        has learnt to tell these apart, so the mean blurs it: measured, it made clusters of
        digits worse.
    representation_norm : {"l2"} or None, default=None
        ``"l2"`` gives the representation unit length before it is clustered.
    init : str, clusterer or array, default="k-means++"
        How K-means on the representation starts; see :class:`~skdeepclust.SRKMeans`.
    n_init : int, default=10
        Restarts of K-means with ``init="k-means++"`` or ``"random"``; the lowest inertia is kept.
    max_epochs : int, default=400
        Epochs of the training.
    batch_size : int or "auto", default="auto"
        Most rows in a batch; ``"auto"`` is 400. At most all rows.
    lr : float, default=1e-3
        Learning rate of Adam.
    lr_schedule : {"constant", "cosine"}, default="constant"
        Course of the learning rate over the epochs.
    device : str, default="auto"
        ``"auto"`` is CUDA where there is one, else the CPU; or any torch device.
    callbacks : list or None, default=None
        skorch callbacks; copies are used. Monitor ``"train_loss"``: no rows are held out.
    warm_start : bool, default=False
        Whether `fit` continues from the fitted state, with the same cluster ids.
    verbose : int, default=0
        1 shows progress.
    random_state : int, RandomState or None, default=None
        Determines weights, order, transformations and K-means.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,), int64
        Clusters of the training rows, or of the rows of the last `partial_fit`.
    cluster_centers_ : ndarray of shape (n_clusters, embedding_dim)
        Centres in the representation. With more values of it than 16 million they are found
        from a random sample of the rows.
    inertia_ : float
        Summed squared distance of the training rows to their centres.
    temperature_ : float
        Mean squared distance to the own centre, the unit of the distances in `predict_proba`.
    readout_agreement_ : float or None
        Mean adjusted Rand index between the chosen K-means partition and those of the other
        restarts. Well below 1, the representation has several partitions of about that
        inertia, and an accuracy may change much from one fit to the next.
    init_used_ : str
        How K-means started.
    slot_table_ : ndarray of shape (n_duplicates, n_clusters) or None
        Share of each cluster among the training rows of a slot; None where the representation
        is averaged or normalised, which the slots are not made for.
    n_active_slots_ : int or None
        Duplicates of the identity that are the strongest one of some training row.
    pretext_linear_score_, pretext_quadratic_score_ : float or None
        Accuracy of naming the transformations of vectors by their means, and covariances,
        alone; None for images, for few rows and for rows that are all equal. Where the second
        one is high the network need not look at clusters.
    n_iter_ : int
        Epochs of the training.
    stop_reason_ : str
        Why it ended.
    history_ : list of dict
        One record an epoch; the columns ``loss_*`` sum to ``loss``. ``transformation_accuracy``
        is the share of rows whose transformation was named; it need not come near 1.
    net_ : ClusteringNet
        The skorch net; ``net_.module_`` is the network.
    n_features_in_ : int
        Values in a row.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Column names, when `X` has names that are all strings.

    Warns
    -----
    PretextWarning
        If the transformations are betrayed by covariances, or could not be learnt at all.

    See Also
    --------
    SRKMeans : Clusters by the reconstruction of the rows.

    Notes
    -----
    A sample of at most five batches of rows is kept in the fitted estimator, and in its file,
    for `partial_fit`.

    References
    ----------
    Learning Latent Representations in Neural Networks for Clustering through Pseudo Supervision
    and Graph-based Activity Regularization, arXiv:1802.03063.

    Examples
    --------
    >>> import numpy as np
    >>> from skdeepclust import ACOLGARClustering
    >>> random = np.random.default_rng(0)
    >>> glyphs = np.zeros((2, 1, 8, 8), dtype="float32")
    >>> glyphs[0, 0, 1:7, 1] = glyphs[0, 0, 6, 1:5] = 1.0
    >>> glyphs[1, 0, 1:4, 2] = glyphs[1, 0, 3, 2:7] = glyphs[1, 0, 1:6, 6] = 1.0
    >>> X = np.repeat(glyphs, 40, axis=0) + random.normal(0, 0.1, (80, 1, 8, 8))
    >>> model = ACOLGARClustering(
    ...     n_clusters=2, n_duplicates=4, embedding_dim=64, max_epochs=40, random_state=0
    ... )
    >>> labels = model.fit_predict(X.astype("float32"))
    >>> bool((labels[:40] == labels[0]).all() and (labels[40:] == 1 - labels[0]).all())
    True
    """

    _bounded_embedding = False
    _parameter_constraints = {
        **{
            name: value
            for name, value in COMMON_CONSTRAINTS.items()
            if name not in ("pretrain", "tol")
        },
        "transforms": [StrOptions({"auto", *IMAGE_FAMILIES, *VECTOR_FAMILIES}), list, tuple],
        "n_transforms": [Interval(Integral, 2, None, closed="left"), None],
        "n_duplicates": [POSITIVE_INTEGER],
        "affinity_weight": [_NON_NEGATIVE],
        "balance_weight": [_NON_NEGATIVE],
        "coactivity_weight": [_NON_NEGATIVE],
        "frobenius_weight": [_NON_NEGATIVE],
        "frobenius_on": [StrOptions({"logits", "activity"})],
        "gar_reduction": [StrOptions({"mean", "pooled", "global"})],
        "balance_on": [StrOptions({"squares", "sums"})],
        "label_sampling": [StrOptions({"random", "balanced"})],
        "encoder": [StrOptions({"auto", "mlp", "conv"}), callable],
        "embedding_dim": [StrOptions({"auto"}), POSITIVE_INTEGER],
        "scaling": [
            StrOptions({"auto", "whiten", "unit", "standard", "common", "range"}),
            None,
        ],
        "readout": [StrOptions({"k-means", "slots"})],
        "test_time_averaging": ["boolean"],
        "representation_norm": [StrOptions({"l2"}), None],
        "init": [StrOptions(set(NAMED_INITS)), HasMethods(["fit"]), "array-like"],
        "lr_schedule": [StrOptions({"constant", "cosine"})],
    }

    def __init__(
        self,
        n_clusters=8,
        *,
        transforms="auto",
        n_transforms=None,
        n_duplicates=20,
        affinity_weight=0.1,
        balance_weight=1.0,
        coactivity_weight=0.0,
        frobenius_weight=1e-6,
        frobenius_on="logits",
        gar_reduction="mean",
        balance_on="squares",
        label_sampling="random",
        encoder="auto",
        hidden_dims="auto",
        embedding_dim="auto",
        image_shape=None,
        scaling="auto",
        readout="k-means",
        test_time_averaging=False,
        representation_norm=None,
        init="k-means++",
        n_init=10,
        max_epochs=400,
        batch_size="auto",
        lr=1e-3,
        lr_schedule="constant",
        device="auto",
        callbacks=None,
        warm_start=False,
        verbose=0,
        random_state=None,
    ):
        self.n_clusters = n_clusters
        self.transforms = transforms
        self.n_transforms = n_transforms
        self.n_duplicates = n_duplicates
        self.affinity_weight = affinity_weight
        self.balance_weight = balance_weight
        self.coactivity_weight = coactivity_weight
        self.frobenius_weight = frobenius_weight
        self.frobenius_on = frobenius_on
        self.gar_reduction = gar_reduction
        self.balance_on = balance_on
        self.label_sampling = label_sampling
        self.encoder = encoder
        self.hidden_dims = hidden_dims
        self.embedding_dim = embedding_dim
        self.image_shape = image_shape
        self.scaling = scaling
        self.readout = readout
        self.test_time_averaging = test_time_averaging
        self.representation_norm = representation_norm
        self.init = init
        self.n_init = n_init
        self.max_epochs = max_epochs
        self.batch_size = batch_size
        self.lr = lr
        self.lr_schedule = lr_schedule
        self.device = device
        self.callbacks = callbacks
        self.warm_start = warm_start
        self.verbose = verbose
        self.random_state = random_state

    def recluster(self, X, n_clusters):
        """Return a copy whose clusters are read anew from the representation of `X`.

        The network has never seen a number of clusters and is not trained again. Fewer clusters
        merge what is alike, more of them split it by style.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or images (n_samples, C, H, W)
            Rows to cluster, those of the fit or others.
        n_clusters : int
            Number of clusters.

        Returns
        -------
        ACOLGARClustering
            Fitted, with `labels_` of `X`; this estimator is not changed.

        Raises
        ------
        ValueError
            If there are fewer rows than clusters.
        """
        self._check_is_ready()
        other = copy.deepcopy(self).set_params(n_clusters=n_clusters)
        other._validate_params()
        rows = other._open_fitted_rows(X)
        other._check_enough_rows(rows)
        other._scan(rows)
        net = other.net_
        run = Run(
            rows,
            net.module_,
            net,
            seed=other._stream_state["seed"],
            device=other._current_device(),
            chunk_rows=other._chunk_rows,
        )
        run.phase = other._read_out_phase()
        run.history, run.stop_reason = list(other.history_), other.stop_reason_
        scores = other.pretext_linear_score_, other.pretext_quadratic_score_
        run.values.update(n_iter=other.n_iter_, pretext_scores=scores)
        run.phase.begin(run)
        described = {name: vars(other)[name] for name in DESCRIPTION if name in vars(other)}
        other._take_over(other._finished_attributes(run, described, keep_ids=False))
        # Nothing was trained, so there is nothing new to tell of the transformations.
        DeepClusterer._warn_of_unused(other, other.labels_)
        return other

    def score(self, X, y=None):
        """Return the negative cross-entropy of naming all transformations of each row of `X`.

        It tells nothing of `n_clusters`, which the network does not know. Memorised rows have a
        better score than new ones.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or images (n_samples, C, H, W)
            Rows to score.
        y : ignored
            There for the sake of pipelines.

        Returns
        -------
        score : float
            Larger is better; minus the logarithm of the number of transformations for a
            network that tells none of them.
        """
        self._check_is_ready()
        rows = self._open_fitted_rows(X)
        network = self.net_.module_
        n_transforms = network.transformations.n_transforms

        def log_probability_of_truth(chunk):
            values = []
            for number in range(n_transforms):
                labels = torch.full((len(chunk),), number, device=chunk.device)
                logits = network.softmax_inputs(chunk, labels)
                values.append(pooled_log_probabilities(logits, n_transforms)[:, number])
            return torch.stack(values).mean(dim=0).unsqueeze(1)

        forward = ChunkedForward(log_probability_of_truth, self._chunk_rows, self._current_device())
        return float(forward(rows, estimator_name=type(self).__name__).double().mean())

    def partial_fit(self, X, y=None):
        """Learn from the next rows of a stream.

        A new estimator keeps rows until there are ``10 * n_clusters`` and a whole batch (400),
        and starts as `fit` does. From then on new rows wait until there are as many as softmax
        units; a training step is taken then, on batches that are half new and half a sample of
        all rows so far, and the centres are found anew in that sample. Cluster ids keep their
        meaning. Predictions change in such calls alone.

        A pass in chunks is not the same as `fit`. A stream sorted by class is split evenly, as
        the balance of the units wants, and nothing is promised for data that change.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or images (n_samples, C, H, W)
            The next rows.
        y : ignored
            There for the sake of pipelines.

        Returns
        -------
        self : object
            The estimator; `labels_` is of these rows.
        """
        return super().partial_fit(X, y)

    # -- fit -------------------------------------------------------------------------------

    def _resolved_batch_size(self, n_rows):
        wanted = _BATCH_SIZE if self.batch_size == "auto" else int(self.batch_size)
        return min(wanted, n_rows)

    def _resolved_hidden_dims(self, n_rows):
        if isinstance(self.hidden_dims, str):
            return _HIDDEN_DIMS
        return super()._resolved_hidden_dims(n_rows)

    def _pretrainer(self):
        return None

    def _has_partition(self, run):
        return True

    def _new_network(self, rows, statistics, seed):
        if self.readout == "slots" and (self.test_time_averaging or self.representation_norm):
            raise ValueError(
                "readout='slots' reads a head that was trained on the representation as it is; "
                "set test_time_averaging=False and representation_norm=None."
            )
        settings = Settings(
            n_clusters=self.n_clusters,
            transforms=self.transforms,
            n_transforms=self.n_transforms,
            n_duplicates=self.n_duplicates,
            encoder=self.encoder,
            hidden_dims=self._resolved_hidden_dims(len(rows)),
            embedding_dim=self.embedding_dim,
            scaling=self.scaling,
            averages=bool(self.test_time_averaging),
            normalizes=self.representation_norm == "l2",
        )
        batch_size = self._resolved_batch_size(len(rows))
        return new_transformation_network(settings, rows, statistics, seed, batch_size)

    def _training_phase(self, n_rows):
        return PseudoSupervisionPhase(
            affinity_weight=self.affinity_weight,
            balance_weight=self.balance_weight,
            coactivity_weight=self.coactivity_weight,
            frobenius_weight=self.frobenius_weight,
            frobenius_on=self.frobenius_on,
            reduction=self.gar_reduction,
            balance_on=self.balance_on,
            label_sampling=self.label_sampling,
            max_epochs=self.max_epochs,
            batch_size=self._resolved_batch_size(n_rows),
            lr=self.lr,
            schedule=self.lr_schedule,
        )

    def _read_out_phase(self):
        return ReadOutPhase(init=self.init, n_init=self.n_init, n_clusters=self.n_clusters)

    def _phases(self, run, warm):
        probe(run)
        return [self._training_phase(len(run.rows)), self._read_out_phase()]

    def _restore_method(self, run):
        run.tensors["labels_before"] = self._nearest_labels(run.rows)
        run.tensors["centers"] = torch.from_numpy(self.cluster_centers_)

    def _nearest_labels(self, rows):
        """Return the nearest centre of each row in the fitted representation."""
        forward = ChunkedForward(self.net_.module_, self._chunk_rows, self._current_device())
        centers = torch.from_numpy(self.cluster_centers_)
        return forward(rows, lambda z: distances_in_float64(z, centers).argmin(dim=1))

    def _method_attributes(self, run):
        if not run.values.get("is_read_out"):
            # Interrupted, or asked for before the end: the clusters of these weights.
            self._read_out_phase().read_out(run)
        centers, counts = run.tensors["centers"], run.tensors["slot_counts"]
        linear, quadratic = run.values["pretext_scores"]
        return {
            **read_out_attributes(
                run.network, centers, run.values["inertia"], len(run.rows), counts
            ),
            "readout_agreement_": run.values["agreement"],
            "init_used_": run.values["init_used"],
            "pretext_linear_score_": linear,
            "pretext_quadratic_score_": quadratic,
            "_readout_fitted": self.readout,
            "_stream_state": stream_state(run, self._resolved_batch_size(len(run.rows))),
        }

    def _reorder(self, run, order):
        run.tensors["centers"] = run.tensors["centers"][order]
        run.tensors["slot_counts"] = run.tensors["slot_counts"][:, order]
        run.tensors["labels"] = torch.argsort(order)[run.tensors["labels"]]

    def _assignment(self, attributes):
        if attributes["_readout_fitted"] == "slots":
            head = attributes["net_"].module_.head
            table = torch.from_numpy(attributes["slot_table_"])
            return lambda z: in_float64(head.slots(z)) @ table.to(in_float64(z[:0]).device)
        centers = torch.from_numpy(attributes["cluster_centers_"])
        unit = attributes["temperature_"]
        return lambda z: distance_memberships(distances_in_float64(z, centers), unit)

    def _warn_of_unused(self, labels):
        super()._warn_of_unused(labels)
        accuracy = self.history_[-1]["transformation_accuracy"]
        n_transforms = self.net_.module_.transformations.n_transforms
        if accuracy < 1 / n_transforms + _LEAST_GAIN:
            warn_user(
                f"After {self.n_iter_} epochs the network names {accuracy:.0%} of "
                f"{n_transforms} transformations, hardly more than chance, so its representation "
                "tells little of clusters. Train longer, or choose other transforms.",
                PretextWarning,
            )

    # -- streams ---------------------------------------------------------------------------

    def _n_rows_to_start(self):
        batch_size = _BATCH_SIZE if self.batch_size == "auto" else int(self.batch_size)
        return max(super()._n_rows_to_start(), batch_size)

    def _is_stream_state(self, state, n_clusters):
        labels, sample, waiting = (
            state[name] for name in ("reservoir_labels", "reservoir_rows", "waiting")
        )
        fits = len(labels) == len(sample) and labels.dtype == torch.int64
        fits &= sample.shape[1:] == waiting.shape[1:] == self._row_shape
        return fits and bool(((labels >= 0) & (labels < n_clusters)).all())

    def _stream_step(self, rows, state):
        phase = self._training_phase(_BATCH_SIZE if self.batch_size == "auto" else self.batch_size)
        return stream_update(self, phase, rows, state)
