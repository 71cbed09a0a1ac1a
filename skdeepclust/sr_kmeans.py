"""SR-K-means: soft, regularised K-means on an embedding that is trained with it."""

from numbers import Integral, Real

import torch
from sklearn.utils._param_validation import Interval, StrOptions

from ._class_prior import continued_prior, log_class_prior, names_clusters
from ._soft_kmeans_phases import SoftKMeansPhase, WarmUpPhase, update_stream
from .base import COMMON_CONSTRAINTS, DeepClusterer
from .losses import soft_assignments, squared_distances
from .training.inference import in_float64
from .training.restarts import with_restarts
from .training.streaming import stream_record


class SRKMeans(DeepClusterer):
    """Soft, regularised K-means in a learnt embedding.

    With the embedding ``z``, assignments ``q``, centres ``theta`` and temperature
    ``T = entropy_regularization * n_clusters`` it minimises::

        sum_ik q_ik |z_i - theta_k|^2 + T sum_ik q_ik log q_ik - sum_i |z_i|^2

    in turn: ``q = softmax(-|z - theta|^2 / T)`` and ``theta`` = weighted means, both exact and
    on all rows once an epoch; then the network is trained for an epoch with both fixed, on
    ``clustering_weight`` times this objective a row plus the reconstruction loss of a
    denoising autoencoder. The last term keeps embedding and centres from shrinking to a point;
    tanh bounds the embedding. The paper's code scales the clustering term by ``1 / T``, a
    thousandfold of the reconstruction: the embedding then runs into the corners of -1..1,
    where its gradients vanish and no row changes its cluster any more. Here the weight is a
    parameter of its own.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    entropy_regularization : float or "auto", default="auto"
        Weight of the entropy of the assignments, the paper's lambda. Towards 0 the method
        becomes hard K-means. ``"auto"`` takes a tenth of the critical value, above which all
        centres merge, measured on the first embedding; it follows the scale of the data.
    annealing : float or None, default=None
        Factor below 1 by which the temperature falls every epoch, from just below the
        critical value to that of `entropy_regularization`. None keeps it constant.
    clustering_weight : float, default=0.1
        Weight of the clustering term in the network's loss. Too little, and the reconstruction
        undoes the first partition, on few rows above all; too much, and the embedding runs
        into its corners (``saturated_share`` in `history_`).
    class_prior : array-like of shape (n_clusters,) or None, default=None
        Expected proportions ``d``: ``q`` becomes proportional to ``d_k exp(-|z - theta_k|^2 / T)``.
        They tolerate imbalance and do not enforce it. With labels or centres as `init` they
        are in that order, else the largest goes to the largest cluster of the first partition
        and so on. None is the uniform prior.
    centered : bool, default=True
        Whether ``|z_i|^2`` in the last term is taken from the mean of the embedding, so that
        a common shift gains nothing. The paper's objective has False.
    encoder : {"auto", "mlp", "conv", "identity"}, Module or callable, default="auto"
        ``"auto"`` is an MLP for vectors and a convolutional network for images;
        ``"identity"`` makes this soft K-means on `X`. A `torch.nn.Module` is worked on as a
        copy; a callable is given ``(input_shape, embedding_dim)`` and returns one. A module
        that does not end in tanh is followed by one.
    hidden_dims : "auto" or sequence of int, default="auto"
        Widths of the MLP: ``(500, 500, 2000)``, or ``(128, 64)`` below 5,000 rows.
    embedding_dim : int, default=10
        Size of the embedding.
    image_shape : tuple of int or None, default=None
        ``(C, H, W)`` when the rows of a two-dimensional `X` are images.
    scaling : {"auto", "standard", "common", "range"} or None, default="auto"
        Input scaling inside the network; see
        :class:`~skdeepclust.pretraining.DenoisingAutoencoder`. With ``encoder="identity"``
        ``"auto"`` means none.
    pretrain : "auto", transformer or None, default="auto"
        An unfitted transformer of `skdeepclust.pretraining`, whose clone is trained with the
        network of this estimator; a fitted one as `sklearn.frozen.FrozenEstimator`, whose
        network is copied; None starts from random weights. ``"auto"`` is
        ``DenoisingAutoencoder()``.
    init : str, clusterer or array, default="auto"
        How the embedding is first partitioned: ``"path-integral"`` and ``"ward"`` are
        agglomerations (of a random subsample above some ten thousand rows), ``"k-means++"``
        and ``"random"`` K-means from that start. Or any scikit-learn clusterer (a clone is
        fitted; a fitted one as `sklearn.frozen.FrozenEstimator`), labels of shape
        (n_samples,) or centres of shape (n_clusters, embedding_dim), whose order is kept.
        ``"auto"`` is ``"path-integral"``, and ``"k-means++"`` with ``encoder="identity"``.
    n_init : int, default=1
        Restarts from one pretrained network; the lowest objective is kept.
    warm_up_epochs : int, default=30
        Most epochs in which the embedding is trained towards the first partition before the
        assignments are refreshed. They end earlier when the agreement stops growing.
    max_epochs : int, default=30
        Most epochs of the clustering phase.
    batch_size : int or "auto", default="auto"
        Most rows in a batch; ``"auto"`` is a 64th of the rows, between 16 and 256.
    lr : float, default=1e-3
        Learning rate of Adam in the clustering phase.
    tol : float, default=1e-5
        Training ends when the mean squared change of the assignments in an epoch is smaller.
    device : str, default="auto"
        ``"auto"`` is CUDA where there is one, else the CPU; or any torch device.
    callbacks : list or None, default=None
        skorch callbacks; copies are used. Monitor ``"train_loss"``: no rows are held out.
    warm_start : bool, default=False
        Whether `fit` continues from the fitted state, with the same cluster ids.
    verbose : int, default=0
        1 shows progress.
    random_state : int, RandomState or None, default=None
        Determines weights, order, noise and first partition.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,), int64
        Clusters of the training rows, or of the rows of the last `partial_fit`.
    cluster_centers_ : ndarray of shape (n_clusters, embedding_dim)
        Centres in the embedding.
    temperature_ : float
        Temperature of the assignments, in squared units of the embedding.
    objective_ : float
        Weighted objective a row plus reconstruction loss after the last epoch.
    init_used_ : str
        What found the first partition.
    n_iter_ : int
        Epochs of the clustering phase.
    stop_reason_ : str
        Why it ended.
    history_ : list of dict
        One record an epoch; the columns ``loss_*`` sum to ``loss``.
    net_ : ClusteringNet
        The skorch net; ``net_.module_`` is the network.
    n_features_in_ : int
        Values in a row.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Column names, when `X` has names that are all strings.

    See Also
    --------
    DCN : The hard method of the same family.
    sklearn.cluster.KMeans : Without an embedding.

    Notes
    -----
    An epoch costs about three passes through the encoder and decoder for each row, and one
    further encoder pass for the refresh of the assignments; memory beyond `X` grows by the
    ``n_samples * n_clusters`` assignments only.

    References
    ----------
    Deep clustering: On the link between discriminative models and K-means, arXiv:1810.04246.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from skdeepclust import SRKMeans
    >>> X, y = make_blobs(n_samples=150, centers=3, random_state=0)
    >>> model = SRKMeans(n_clusters=3, encoder="identity", random_state=0).fit(X)
    >>> model.predict_proba(X[:2]).shape
    (2, 3)
    """

    _parameter_constraints = {
        **COMMON_CONSTRAINTS,
        "entropy_regularization": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "annealing": [Interval(Real, 0, 1, closed="neither"), None],
        "clustering_weight": [Interval(Real, 0, None, closed="left")],
        "class_prior": ["array-like", None],
        "centered": ["boolean"],
        "warm_up_epochs": [Interval(Integral, 0, None, closed="left")],
    }

    def __init__(
        self,
        n_clusters=8,
        *,
        entropy_regularization="auto",
        annealing=None,
        clustering_weight=0.1,
        class_prior=None,
        centered=True,
        encoder="auto",
        hidden_dims="auto",
        embedding_dim=10,
        image_shape=None,
        scaling="auto",
        pretrain="auto",
        init="auto",
        n_init=1,
        warm_up_epochs=30,
        max_epochs=30,
        batch_size="auto",
        lr=1e-3,
        tol=1e-5,
        device="auto",
        callbacks=None,
        warm_start=False,
        verbose=0,
        random_state=None,
    ):
        self.n_clusters = n_clusters
        self.entropy_regularization = entropy_regularization
        self.annealing = annealing
        self.clustering_weight = clustering_weight
        self.class_prior = class_prior
        self.centered = centered
        self.encoder = encoder
        self.hidden_dims = hidden_dims
        self.embedding_dim = embedding_dim
        self.image_shape = image_shape
        self.scaling = scaling
        self.pretrain = pretrain
        self.init = init
        self.n_init = n_init
        self.warm_up_epochs = warm_up_epochs
        self.max_epochs = max_epochs
        self.batch_size = batch_size
        self.lr = lr
        self.tol = tol
        self.device = device
        self.callbacks = callbacks
        self.warm_start = warm_start
        self.verbose = verbose
        self.random_state = random_state

    def score(self, X, y=None):
        """Return the negative soft K-means objective of `X`, a row.

        ``min_q sum_k q_k |z - theta_k|^2 + T sum_k q_k log q_k``, negated and averaged. It must
        not choose `n_clusters`, since more clusters always score better, nor compare different
        embeddings, since a smaller one scores better.

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
        self._check_is_ready()
        centers = torch.from_numpy(self.cluster_centers_)

        temperature, log_prior = self.temperature_, self._log_prior_fitted

        def energy(z):
            z = in_float64(z)
            logits = -squared_distances(z, centers.to(z.device)) / temperature
            if log_prior is not None:
                logits = logits + log_prior.to(z.device)
            return -temperature * torch.logsumexp(logits, dim=1)

        return -float(self._forward(X, energy).mean())

    def _log_prior(self):
        return log_class_prior(self.class_prior, self.n_clusters)

    def _cluster_phase(self, n_rows, kind=SoftKMeansPhase):
        return kind(
            n_clusters=self.n_clusters,
            entropy_regularization=self.entropy_regularization,
            annealing=self.annealing,
            clustering_weight=self.clustering_weight,
            hidden_weight=self._hidden_weight(),
            log_prior=self._log_prior(),
            prior_is_ordered=names_clusters(self.init),
            centered=self.centered,
            max_epochs=self.warm_up_epochs if kind is WarmUpPhase else self.max_epochs,
            batch_size=self._resolved_batch_size(n_rows),
            lr=self.lr,
            tol=self.tol,
        )

    def _phases(self, run, warm):
        cluster = self._cluster_phase(len(run.rows))
        if warm:
            return [cluster]
        first = []
        if self.warm_up_epochs and run.network.is_trainable:
            first = [self._cluster_phase(len(run.rows), kind=WarmUpPhase)]
        return with_restarts(
            self.n_init,
            lambda i: [self._first_partition(i), *first, cluster],
            ("centers", "targets") + (() if self.class_prior is None else ("log_prior",)),
        )

    def _restore_method(self, run):
        run.tensors["centers"] = torch.from_numpy(self.cluster_centers_.copy())
        run.values["init_used"] = self.init_used_
        prior = continued_prior(self._log_prior(), self._log_prior_fitted)
        if prior is not None:
            run.tensors["log_prior"] = prior

    def _method_attributes(self, run):
        centers = run.tensors["centers"]
        temperature = run.values.get("temperature")
        if temperature is None:
            # Interrupted before the first epoch: the first partition is all there is.
            phase = self._cluster_phase(len(run.rows))
            phase.begin(run)
            temperature = run.values["temperature"]
        weights = run.tensors["targets"].mean(dim=0)
        return {
            "cluster_centers_": centers.numpy().copy(),
            "temperature_": temperature,
            "objective_": run.values.get("objective", float("nan")),
            "init_used_": run.values["init_used"],
            "_log_prior_fitted": run.tensors.get("log_prior"),
            "_stream_state": {
                # The rows of the fit count as the batches they made, so that the first
                # batches of a stream do not outweigh them.
                "step": -(-len(run.rows) // self._resolved_batch_size(len(run.rows))),
                "seed": run.seed,
                "weights": weights,
                "sums": weights.unsqueeze(1) * centers,
            },
        }

    def _assignment(self, attributes):
        centers = torch.from_numpy(attributes["cluster_centers_"])
        temperature, log_prior = attributes["temperature_"], attributes["_log_prior_fitted"]

        def assign(z):
            z = in_float64(z)
            prior = None if log_prior is None else log_prior.to(z.device)
            return soft_assignments(z, centers.to(z.device), temperature, prior)

        return assign

    def _reorder(self, run, order):
        run.tensors["centers"] = run.tensors["centers"][order]
        run.tensors["targets"] = run.tensors["targets"][:, order]
        if "log_prior" in run.tensors:
            run.tensors["log_prior"] = run.tensors["log_prior"][order]

    def _stream_step(self, rows, state):
        phase = self._cluster_phase(len(rows))
        changed, losses = update_stream(self, phase, rows, state)
        n_used = int((changed.pop("weights_of_batch") > 0.5 / len(rows)).sum())
        changed["record"] = stream_record(state["step"], losses, n_used_clusters=n_used)
        return changed
