"""DDCL: dual competitive learning, prototypes as the outputs of a layer (Cirrincione, 2026)."""

import math
from numbers import Integral, Real

import torch
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from ._dual_competition_phase import AnchorPhase, DualCompetitionPhase
from ._dual_competition_stream import update_stream
from ._joint_competition_phase import JointCompetitionPhase
from ._network_estimator import POSITIVE_INTEGER
from .base import COMMON_CONSTRAINTS, DeepClusterer
from .losses import (
    quantization_parts,
    soft_assignments,
    splitting_temperatures,
    squared_distances,
)
from .nn.dual_competitive_layer import DualCompetitiveLayer, FreePrototypeLayer
from .nn.network import add_competition
from .training.first_partition import NAMED_INITS, FirstPartitionPhase, embedding_width
from .training.inference import in_float64
from .training.restarts import with_restarts
from .training.seeds import torch_generator
from .training.streaming import stream_record

# Up to so many rows all of them are anchors, and a step sees all.
_MAX_WHOLE_ROWS = 4_096
_MIN_ANCHORS = 1_024
_ANCHORS_PER_CLUSTER = 10
_BATCH_SIZE = 256
# Steps of a fit on all rows at once, and the least on batches.
_WHOLE_STEPS = 200
_BATCH_STEPS = 600
# Rates of Adam for the weights of anchors, and for free prototypes in units of the deviation.
_RATES = {"dual": 0.1, "free": 0.01}

# What belongs to a solution, beside the weights.
_DRAWN_INITS = ("normal", "samples")
_KEPT = ("centers", "center", "anchors", "anchor_embedding", "proportions")

_POSITIVE = Interval(Real, 0, None, closed="neither")
_NON_NEGATIVE = Interval(Real, 0, None, closed="left")


class DDCL(DeepClusterer):
    """Clustering by dual competitive learning: prototypes are combinations of samples.

    The prototypes are the outputs of a linear layer that is given the transposed embedding: each
    is the mean plus a trained combination of anchor samples. Softmax assignments follow from
    the distances, and one differentiable objective trains everything by gradient descent while
    the temperature falls:

    ``mean_i sum_k q_ik |z_i - p_k|^2 + entropy_weight * mean_i sum_k q_ik log q_ik
    + balance_weight * KL(mean q | uniform) + separation_weight * overlap
    + ridge / 2 * sum_k |p_k|^2``,  ``q_ik ~ exp(-|z_i - p_k|^2 / T)``

    The first term is exactly the squared error of the mixed prototype plus the variance of the
    prototypes under the assignment. The latter holds the prototypes together; they come apart
    because the assignments react, as soon as the temperature is below
    `critical_temperature_`.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    loss : {"quantization", "reconstruction"}, default="quantization"
        ``"reconstruction"`` leaves the variance of the prototypes out; above all at high
        temperatures prototypes then leave the data.
    entropy_weight : "temperature" or float, default="temperature"
        Weight of the negative entropy. The temperature itself makes the objective a free energy,
        whose prototypes are soft means; 0 is the bare loss of the paper.
    balance_weight : float, default=0.1
        Weight of the balance of the clusters, in units of the variance of the embedding.
    separation_weight : float, default=0.0
        Weight of the repulsion of the prototypes.
    ridge : float, default=1e-3
        Weight of the squared distance of the prototypes from the mean.
    temperature_start, temperature_end : float, default=2.0 and 0.5
        The temperature falls geometrically between them.
    temperature_scale : {"auto"} or None, default="auto"
        ``"auto"`` takes them in units of the largest variance of the embedding along any
        direction, None as they are.
    layer : {"dual", "free"}, default="dual"
        ``"free"`` makes the prototypes weights of their own instead of combinations of anchors,
        the plain competitive layer, for comparison.
    anchors : "auto", "all" or int, default="auto"
        Samples that the prototypes are made of: all, or so many drawn at random. ``"auto"`` is
        all of at most 4,096 rows, else 1,024 or ten a cluster. With all of them every step sees
        all rows.
    assignment : {"softmax", "sparse"}, default="softmax"
        Assignments of `partial_fit`: softmax with a penalty on large clusters, or the projection
        on the simplex, which leaves far prototypes at zero.
    max_count : float or None, default=None
        Limit of the weight a prototype remembers of a stream. None is a running mean; with a
        limit prototypes follow a drift.
    encoder : {"auto", "mlp", "conv", "identity"}, Module or callable, default="identity"
        ``"identity"`` clusters the rows as they are. Anything else is pretrained as `pretrain`
        says, and then changed only with ``train_encoder=True``.
    hidden_dims : "auto" or sequence of int, default="auto"
        Widths of the MLP.
    embedding_dim : int, default=10
        Size of the embedding; ``"identity"`` does not use it.
    image_shape : tuple of int or None, default=None
        ``(C, H, W)`` when the rows of a two-dimensional `X` are images.
    scaling : {"auto", "standard", "common", "range"} or None, default="auto"
        Input scaling inside the network; none with ``encoder="identity"`` and ``"auto"``.
    pretrain : "auto", transformer or None, default="auto"
        How the encoder is learnt; see :class:`~skdeepclust.SRKMeans`.
    train_encoder : bool, default=False
        Whether the encoder is trained with the prototypes: after 30 % of the steps, by which the
        temperature has reached its end. A warning tells of an embedding that loses its
        variance, and one that has lost it goes back to its last good state.
    normalize_embedding : bool, default=True
        Whether losses are in units of the present variance of an embedding that is trained, and
        not of the variance before. In fixed units the encoder gains by shrinking.
    encoder_lr : float, default=1e-5
        Learning rate of the encoder. An epoch should move the embedding a tenth as far as the
        prototypes, ``displacement_ratio`` in `history_`; a faster encoder makes clusters of its
        own.
    reconstruction_weight : float, default=1.0
        Weight of the reconstruction while the encoder is trained, for an encoder that has a
        decoder. Without it the quantisation error is least for a constant embedding.
    init : str, clusterer or array, default="normal"
        ``"normal"`` draws the weights, which puts all prototypes near the mean, ``"samples"``
        puts them half way between the mean and samples drawn at random. Whatever
        else :class:`~skdeepclust.SRKMeans` takes gives the first prototypes, and the training
        stays at the final temperature, in which they are not drawn together first.
    n_init : int, default=1
        Restarts; the lowest objective is kept.
    max_epochs : "auto" or int, default="auto"
        Passes over the rows; ``"auto"`` is 200 with all anchors, else at least 600 steps.
    batch_size : "auto" or int, default="auto"
        Most rows in a batch; ``"auto"`` is all rows with all anchors, else 256.
    lr : "auto" or float, default="auto"
        Learning rate of Adam for the layer; ``"auto"`` is 0.1, and 0.01 for free prototypes.
    device : str, default="auto"
        ``"auto"`` is CUDA where there is one, else the CPU; or any torch device.
    callbacks : list or None, default=None
        skorch callbacks; copies are used. Monitor ``"train_loss"``: no rows are held out.
    warm_start : bool, default=False
        Whether `fit` continues from the fitted prototypes, with the same cluster ids and at the
        final temperature.
    verbose : int, default=0
        1 shows progress.
    random_state : int, RandomState or None, default=None
        Determines weights, anchors and order.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,), int64
        Clusters of the training rows, or of the rows of the last `partial_fit`.
    cluster_centers_ : ndarray of shape (n_clusters, embedding_dim)
        The prototypes, in units of the embedding.
    temperature_ : float
        Final temperature, in squared units of the embedding.
    critical_temperature_ : float
        Temperature below which prototypes at the mean come apart, in the same units; nan where
        they do at none.
    scale_ : float
        Square root of the total variance of the embedding; losses are in units of its square.
    objective_ : float
        Mean objective of the last epoch.
    n_iter_ : int
        Epochs of the training.
    stop_reason_ : str
        Why it ended.
    history_ : list of dict
        One record an epoch; the columns ``loss_*`` sum to ``loss``, and
        ``quantization_error`` is ``reconstruction_error`` plus ``prototype_spread``.
    net_ : ClusteringNet
        The skorch net; ``net_.module_`` is the network.
    n_features_in_ : int
        Values in a row.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Column names, when `X` has names that are all strings.

    See Also
    --------
    SRKMeans : Soft K-means with exact steps, on an embedding that is trained with it.

    References
    ----------
    DDCL: Deep Dual Competitive Learning: A Differentiable End-to-End Framework for Unsupervised
    Prototype-Based Representation Learning, arXiv:2604.01740.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from skdeepclust import DDCL
    >>> X, y = make_blobs(n_samples=150, centers=3, random_state=0)
    >>> model = DDCL(n_clusters=3, random_state=0).fit(X)
    >>> model.predict_proba(X[:2]).shape
    (2, 3)
    """

    _bounded_embedding = False
    _parameter_constraints = {
        **{name: value for name, value in COMMON_CONSTRAINTS.items() if name != "tol"},
        "loss": [StrOptions({"quantization", "reconstruction"})],
        "entropy_weight": [_NON_NEGATIVE, StrOptions({"temperature"})],
        "balance_weight": [_NON_NEGATIVE],
        "separation_weight": [_NON_NEGATIVE],
        "ridge": [_NON_NEGATIVE],
        "temperature_start": [_POSITIVE],
        "temperature_end": [_POSITIVE],
        "temperature_scale": [StrOptions({"auto"}), None],
        "anchors": [StrOptions({"auto", "all"}), POSITIVE_INTEGER],
        "assignment": [StrOptions({"softmax", "sparse"})],
        "max_count": [_POSITIVE, None],
        "layer": [StrOptions(set(_RATES))],
        "train_encoder": ["boolean"],
        "normalize_embedding": ["boolean"],
        "encoder_lr": [_POSITIVE],
        "reconstruction_weight": [_NON_NEGATIVE],
        "lr": [_POSITIVE, StrOptions({"auto"})],
        "init": [StrOptions({*_DRAWN_INITS, *NAMED_INITS}), HasMethods(["fit"]), "array-like"],
        "max_epochs": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        n_clusters=8,
        *,
        loss="quantization",
        entropy_weight="temperature",
        balance_weight=0.1,
        separation_weight=0.0,
        ridge=1e-3,
        temperature_start=2.0,
        temperature_end=0.5,
        temperature_scale="auto",
        layer="dual",
        anchors="auto",
        assignment="softmax",
        max_count=None,
        encoder="identity",
        hidden_dims="auto",
        embedding_dim=10,
        image_shape=None,
        scaling="auto",
        pretrain="auto",
        train_encoder=False,
        normalize_embedding=True,
        encoder_lr=1e-5,
        reconstruction_weight=1.0,
        init="normal",
        n_init=1,
        max_epochs="auto",
        batch_size="auto",
        lr="auto",
        device="auto",
        callbacks=None,
        warm_start=False,
        verbose=0,
        random_state=None,
    ):
        self.n_clusters = n_clusters
        self.loss = loss
        self.entropy_weight = entropy_weight
        self.balance_weight = balance_weight
        self.separation_weight = separation_weight
        self.ridge = ridge
        self.temperature_start = temperature_start
        self.temperature_end = temperature_end
        self.temperature_scale = temperature_scale
        self.layer = layer
        self.anchors = anchors
        self.assignment = assignment
        self.max_count = max_count
        self.encoder = encoder
        self.hidden_dims = hidden_dims
        self.embedding_dim = embedding_dim
        self.image_shape = image_shape
        self.scaling = scaling
        self.pretrain = pretrain
        self.train_encoder = train_encoder
        self.normalize_embedding = normalize_embedding
        self.encoder_lr = encoder_lr
        self.reconstruction_weight = reconstruction_weight
        self.init = init
        self.n_init = n_init
        self.max_epochs = max_epochs
        self.batch_size = batch_size
        self.lr = lr
        self.device = device
        self.callbacks = callbacks
        self.warm_start = warm_start
        self.verbose = verbose
        self.random_state = random_state

    def decompose(self, X):
        """Return the soft quantisation error of each row and the two terms it splits into.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or images (n_samples, C, H, W)
            Rows.

        Returns
        -------
        parts : dict of str to ndarray of shape (n_samples,)
            ``"quantization_error"`` is the sum of ``"reconstruction_error"`` (of the mixed
            prototype) and ``"prototype_spread"``.
        """
        self._check_is_ready()
        centers, assign = torch.from_numpy(self.cluster_centers_), self._assignment(vars(self))

        def parts(z):
            where = in_float64(z).device
            return torch.stack(
                quantization_parts(in_float64(z), centers.to(where), assign(z)), dim=1
            )

        names = ("quantization_error", "reconstruction_error", "prototype_spread")
        return dict(zip(names, self._forward(X, parts).numpy().T, strict=True))

    def score(self, X, y=None):
        """Return the negative mean soft quantisation error of `X`.

        It must not choose `n_clusters`, since more clusters always score better.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or images (n_samples, C, H, W)
            Rows to score.
        y : ignored
            There for the sake of pipelines.

        Returns
        -------
        score : float
            Larger is better.
        """
        return -float(self.decompose(X)["quantization_error"].mean())

    # -- fit -------------------------------------------------------------------------------

    def _n_anchors(self, n_rows):
        if self.anchors == "auto":
            if n_rows <= _MAX_WHOLE_ROWS:
                return n_rows
            return min(n_rows, max(_MIN_ANCHORS, _ANCHORS_PER_CLUSTER * self.n_clusters))
        return n_rows if self.anchors == "all" else min(n_rows, int(self.anchors))

    def _resolved_batch_size(self, n_rows):
        if self.batch_size != "auto":
            return min(n_rows, int(self.batch_size))
        return n_rows if self._n_anchors(n_rows) == n_rows else min(n_rows, _BATCH_SIZE)

    def _resolved_max_epochs(self, n_rows):
        if self.max_epochs != "auto":
            return int(self.max_epochs)
        n_steps = math.ceil(n_rows / self._resolved_batch_size(n_rows))
        return _WHOLE_STEPS if n_steps == 1 else math.ceil(_BATCH_STEPS / n_steps)

    def _new_network(self, rows, statistics, seed):
        if self.train_encoder and self._has_identity_encoder():
            raise ValueError(
                "train_encoder=True needs an encoder to train, but encoder='identity' has none; "
                "set encoder='auto' or pass a module."
            )
        network = super()._new_network(rows, statistics, seed)
        generator = torch_generator(seed, "prototypes")
        add_competition(network, self._new_layer(network, rows, generator))
        return network

    def _new_layer(self, network, rows, generator=None):
        if self.layer == "dual":
            return DualCompetitiveLayer(self._n_anchors(len(rows)), self.n_clusters, generator)
        return FreePrototypeLayer(self.n_clusters, embedding_width(network, rows), generator)

    def _cluster_phase(self, n_rows, has_centers=False):
        settings = {
            "loss": self.loss,
            "balance_weight": self.balance_weight,
            "entropy_weight": self.entropy_weight,
            "separation_weight": self.separation_weight,
            "ridge": self.ridge,
            "temperature_start": self.temperature_end if has_centers else self.temperature_start,
            "temperature_end": self.temperature_end,
            "is_relative": self.temperature_scale == "auto",
            "has_centers": has_centers,
            "max_epochs": self._resolved_max_epochs(n_rows),
            "batch_size": self._resolved_batch_size(n_rows),
            "lr": _RATES[self.layer] if self.lr == "auto" else self.lr,
        }
        if not self.train_encoder:
            return DualCompetitionPhase(**settings)
        return JointCompetitionPhase(
            normalize_embedding=self.normalize_embedding,
            encoder_lr=self.encoder_lr,
            reconstruction_weight=self.reconstruction_weight,
            hidden_weight=self._hidden_weight(),
            **settings,
        )

    def _draws_prototypes(self):
        return isinstance(self.init, str) and self.init in _DRAWN_INITS

    def _phases(self, run, warm):
        n_rows = len(run.rows)
        if warm:
            return [self._anchor_phase(n_rows, 0), self._cluster_phase(n_rows, has_centers=True)]
        drawn = self._draws_prototypes()
        cluster = self._cluster_phase(n_rows, has_centers=not drawn)

        def phases(restart):
            first = [] if drawn else [self._first_partition(restart)]
            return [self._anchor_phase(n_rows, restart), *first, cluster]

        return with_restarts(self.n_init, phases, _KEPT)

    def _anchor_phase(self, n_rows, restart):
        at_samples = isinstance(self.init, str) and self.init == "samples"
        return AnchorPhase(restart, self._n_anchors(n_rows), at_samples)

    def _first_partition(self, restart=0):
        init = "k-means++" if self._draws_prototypes() else self.init
        return FirstPartitionPhase(init, self.n_clusters, restart)

    def _restore_method(self, run):
        run.tensors["centers"] = torch.from_numpy(self.cluster_centers_.copy())
        # Its prototypes are placed when the anchors are drawn; the rows may be others.
        add_competition(run.network, self._new_layer(run.network, run.rows))

    def _method_attributes(self, run):
        if "center" not in run.tensors:
            # Interrupted before the first epoch: the first prototypes are all there is.
            self._anchor_phase(len(run.rows), 0).begin(run)
            self._cluster_phase(len(run.rows), has_centers=True).begin(run)
        unit = run.values["scale"] ** 2
        weight = None if self.entropy_weight == "temperature" else float(self.entropy_weight)
        critical = splitting_temperatures(run.values["largest_variance"], weight)[1]
        n_rows = len(run.rows)
        proportions = run.tensors.get("proportions")
        if proportions is None:
            proportions = torch.full((self.n_clusters,), 1 / self.n_clusters, dtype=torch.float64)
        return {
            "cluster_centers_": run.tensors["centers"].numpy().copy(),
            "temperature_": run.values["temperature"],
            "critical_temperature_": critical * unit,
            "scale_": run.values["scale"],
            "objective_": run.values.get("objective", float("nan")),
            "_stream_state": {
                "step": 0,
                "seed": run.seed,
                "n_seen": n_rows,
                "counts": n_rows * proportions,
                "proportions": proportions.clone(),
            },
        }

    def _assignment(self, attributes):
        centers = torch.from_numpy(attributes["cluster_centers_"])
        temperature = attributes["temperature_"]

        def assign(z):
            z = in_float64(z)
            return soft_assignments(z, centers.to(z.device), temperature)

        return assign

    def _labelling(self, attributes):
        centers = torch.from_numpy(attributes["cluster_centers_"])

        def nearest(z):
            z = in_float64(z)
            return squared_distances(z, centers.to(z.device)).argmin(dim=1)

        # The nearest prototype is the most probable one at any temperature.
        return nearest

    def _reorder(self, run, order):
        run.tensors["centers"] = run.tensors["centers"][order]
        if "proportions" in run.tensors:
            run.tensors["proportions"] = run.tensors["proportions"][order]
        run.network.competition.reorder(order)

    def _stream_step(self, rows, state):
        changed, error, proportions = update_stream(self, rows, state)
        n_used = int((proportions > 0.5 / len(rows)).sum())
        changed["record"] = stream_record(
            state["step"], {}, quantization_error=error, n_used_clusters=n_used
        )
        return changed
