"""DCN: K-means and an autoencoder trained in turn, the hard baseline of the family."""

from numbers import Real

import numpy as np
import torch
from sklearn.cluster import KMeans
from sklearn.utils._param_validation import Interval

from .base import COMMON_CONSTRAINTS, DeepClusterer
from .losses import (
    hard_kmeans_batch_loss,
    nearest_centers,
    summed_reconstruction_loss,
    update_running_centers,
)
from .pretraining import DenoisingAutoencoder
from .training.first_partition import embed_sample, embedding_sample_size
from .training.inference import ChunkedForward, distances_in_float64
from .training.phases import Phase
from .training.restarts import with_restarts
from .training.seeds import derive_seed
from .training.streaming import stream_record, stream_steps

# Weight of the first partition against the rows that come after it, in rows a cluster.
_INITIAL_COUNT = 100.0
# Epochs between two full runs of K-means that put drifting centres right.
_RESYNC_EPOCHS = 10


class HardKMeansPhase(Phase):
    """One optimiser step with stored assignments, then new assignments and running means."""

    name = "cluster"
    written_in_place = ("labels",)

    def __init__(
        self, *, reconstruction_weight, clustering_weight, max_epochs, batch_size, lr, tol
    ):
        self.reconstruction_weight = reconstruction_weight
        self.clustering_weight = clustering_weight
        self.max_epochs = max_epochs
        self.batch_size = batch_size
        self.lr = lr
        self.tol = tol

    def begin(self, run):
        n_clusters = len(run.tensors["centers"])
        run.tensors["counts"] = torch.full((n_clusters,), _INITIAL_COUNT, dtype=torch.float64)
        run.tensors["labels"] = _all_labels(run)

    def batch_loss(self, run, batch):
        network = run.network
        rows = network.scaling(batch.rows)
        embedding = network.encoder(rows)
        labels = run.tensors["labels"][batch.row_numbers].to(run.device)
        centers = run.tensors["centers"].to(run.device, embedding.dtype)
        terms = {
            "clustering": self.clustering_weight
            * hard_kmeans_batch_loss(embedding, labels, centers)
        }
        if network.decoder is not None:
            terms["reconstruction"] = self.reconstruction_weight * summed_reconstruction_loss(
                network.decoder(embedding)[0], rows
            )
        return terms

    def after_step(self, run, batch):
        # Dropout or batch normalisation of a user's encoder must not act on the centres.
        run.network.eval()
        with torch.no_grad():
            embedding = run.network(batch.rows).double().cpu()
        run.network.train()
        _absorb(run.tensors, embedding, batch.row_numbers)

    def end_epoch(self, run):
        if not run.network.is_trainable:
            self._lloyd_epoch(run)
        elif (run.epoch + 1) % _RESYNC_EPOCHS == 0:
            _resync(run)
        before = run.tensors["labels"]
        labels, inertia = _all_labels(run, with_inertia=True)
        changed = float((labels != before).double().mean())
        run.tensors["labels"] = labels
        record = run.values.get("epoch_losses", {})
        run.values["objective"] = record.get("reconstruction", 0.0) + (
            self.clustering_weight * inertia / len(run.rows)
        )
        run.values["n_iter"] = run.epoch + 1
        if changed <= self.tol:
            run.stop(f"{changed:.2%} of the labels changed, no more than tol={self.tol:g}")
        reason = run.stop_reason or f"max_epochs={self.max_epochs} reached"
        run.values["stop_reason"] = reason
        return {
            "label_change": changed,
            "objective": run.values["objective"],
            "n_used_clusters": len(torch.unique(labels)),
        }

    @staticmethod
    def _lloyd_epoch(run):
        """Without weights to train, an epoch is one step of Lloyd's algorithm."""
        centers = run.tensors["centers"]
        labels = run.tensors["labels"]
        sums = torch.zeros_like(centers)
        for start, stop, z in run.forward.chunks(run.rows):
            sums.index_add_(0, labels[start:stop], z.double())
        counts = torch.bincount(labels, minlength=len(centers)).unsqueeze(1)
        run.tensors["centers"] = torch.where(counts > 0, sums / counts.clamp(min=1), centers)


class DCN(DeepClusterer):
    """Deep clustering network: K-means on an embedding that is trained to suit it.

    Minimises ``(1/n) sum_i [reconstruction_weight * |x_i - x'_i|^2 +
    clustering_weight * |z_i - mu_{s_i}|^2]`` over the autoencoder, the assignments ``s`` and
    the centres ``mu`` in turn: an optimiser step on a batch with its stored assignments, then
    each row is given to its nearest centre, which moves as a running mean. Every 10 epochs the
    centres are put right by full K-means.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    reconstruction_weight : float, default=1.0
        Weight of the squared error summed over the features.
    clustering_weight : float, default=1.0
        Weight of the squared distance to the centre.
    encoder : {"auto", "mlp", "conv", "identity"}, Module or callable, default="auto"
        ``"auto"`` is an MLP for vectors and a convolutional network for images;
        ``"identity"`` makes this plain K-means. A `torch.nn.Module` is worked on as a copy; a
        callable is given ``(input_shape, embedding_dim)`` and returns one.
    hidden_dims : "auto" or sequence of int, default="auto"
        Widths of the MLP: ``(500, 500, 2000)``, or ``(128, 64)`` below 5,000 rows.
    embedding_dim : int, default=10
        Size of the embedding.
    image_shape : tuple of int or None, default=None
        ``(C, H, W)`` when the rows of a two-dimensional `X` are images.
    scaling : {"auto", "standard", "common", "range"} or None, default="auto"
        Input scaling inside the network; see
        :class:`~skdeepclust.pretraining.DenoisingAutoencoder`.
    pretrain : "auto", transformer or None, default="auto"
        An unfitted transformer of `skdeepclust.pretraining`, whose clone is trained with the
        network of this estimator; a fitted one as `sklearn.frozen.FrozenEstimator`, whose
        network is copied; None starts from random weights. ``"auto"`` is an autoencoder
        without corruption.
    init : str, clusterer or array, default="k-means++"
        How the embedding is first partitioned; see :class:`~skdeepclust.SRKMeans`.
    n_init : int, default=1
        Restarts from one pretrained network; the lowest objective is kept.
    max_epochs : int, default=50
        Most epochs of the clustering phase.
    batch_size : int or "auto", default="auto"
        Most rows in a batch; ``"auto"`` is a 64th of the rows, between 16 and 256.
    lr : float, default=1e-4
        Learning rate of Adam.
    tol : float, default=1e-3
        Training ends when no larger share of the labels changes in an epoch.
    device : str, default="auto"
        ``"auto"`` is CUDA where there is one, else the CPU; or any torch device.
    callbacks : list or None, default=None
        skorch callbacks; copies are used. Monitor ``"train_loss"``: no rows are held out.
    warm_start : bool, default=False
        Whether `fit` continues from the fitted state, with the same cluster ids.
    verbose : int, default=0
        1 shows progress.
    random_state : int, RandomState or None, default=None
        Determines weights, order and first partition.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,), int64
        Clusters of the training rows, or of the rows of the last `partial_fit`.
    cluster_centers_ : ndarray of shape (n_clusters, embedding_dim)
        Centres in the embedding.
    objective_ : float
        Value of the objective after the last epoch.
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
    SRKMeans : The soft, regularised method of the same family.

    References
    ----------
    Towards K-means-friendly Spaces: Simultaneous Deep Learning and Clustering,
    arXiv:1610.04794.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from skdeepclust import DCN
    >>> X, y = make_blobs(n_samples=150, centers=3, random_state=0)
    >>> dcn = DCN(n_clusters=3, encoder="identity", random_state=0).fit(X)
    >>> dcn.predict_proba(X[:1]).tolist()[0].count(1.0)
    1
    """

    _bounded_embedding = False
    _parameter_constraints = {
        **COMMON_CONSTRAINTS,
        "reconstruction_weight": [Interval(Real, 0, None, closed="left")],
        "clustering_weight": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        n_clusters=8,
        *,
        reconstruction_weight=1.0,
        clustering_weight=1.0,
        encoder="auto",
        hidden_dims="auto",
        embedding_dim=10,
        image_shape=None,
        scaling="auto",
        pretrain="auto",
        init="k-means++",
        n_init=1,
        max_epochs=50,
        batch_size="auto",
        lr=1e-4,
        tol=1e-3,
        device="auto",
        callbacks=None,
        warm_start=False,
        verbose=0,
        random_state=None,
    ):
        self.n_clusters = n_clusters
        self.reconstruction_weight = reconstruction_weight
        self.clustering_weight = clustering_weight
        self.encoder = encoder
        self.hidden_dims = hidden_dims
        self.embedding_dim = embedding_dim
        self.image_shape = image_shape
        self.scaling = scaling
        self.pretrain = pretrain
        self.init = init
        self.n_init = n_init
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
        """Return the negative mean squared distance of `X` to the nearest centre.

        It must not choose `n_clusters`, since more clusters always score better, nor compare
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
        nearest = self._forward(X, lambda z: distances_in_float64(z, centers).amin(dim=1))
        return -float(nearest.mean())

    def _default_pretrainer(self):
        return self._with_own_architecture(DenoisingAutoencoder(dropout=0.0, hidden_weight=0.0))

    def _cluster_phase(self, n_rows):
        return HardKMeansPhase(
            reconstruction_weight=self.reconstruction_weight,
            clustering_weight=self.clustering_weight,
            max_epochs=self.max_epochs,
            batch_size=self._resolved_batch_size(n_rows),
            lr=self.lr,
            tol=self.tol,
        )

    def _phases(self, run, warm):
        cluster = self._cluster_phase(len(run.rows))
        if warm:
            return [cluster]
        return with_restarts(
            self.n_init, lambda i: [self._first_partition(i), cluster], ("centers", "labels")
        )

    def _restore_method(self, run):
        run.tensors["centers"] = torch.from_numpy(self.cluster_centers_.copy())

    def _method_attributes(self, run):
        counts = torch.bincount(run.tensors["labels"], minlength=self.n_clusters)
        return {
            "cluster_centers_": run.tensors["centers"].numpy().copy(),
            "objective_": run.values.get("objective", float("nan")),
            "_stream_state": {"step": 0, "seed": run.seed, "counts": counts.double()},
        }

    def _assignment(self, attributes):
        nearest = self._labelling(attributes)
        n_clusters = len(attributes["cluster_centers_"])
        return lambda z: torch.nn.functional.one_hot(nearest(z), n_clusters).double()

    def _labelling(self, attributes):
        centers = torch.from_numpy(attributes["cluster_centers_"])
        return lambda z: distances_in_float64(z, centers).argmin(dim=1)

    def _reorder(self, run, order):
        run.tensors["centers"] = run.tensors["centers"][order]
        run.tensors["labels"] = torch.argsort(order)[run.tensors["labels"]]

    def _stream_step(self, rows, state):
        step = state["step"]
        centers = torch.from_numpy(self.cluster_centers_.copy())
        network = self.net_.module_
        forward = ChunkedForward(network, self._chunk_rows, self._current_device())
        labels = forward(rows, lambda z: nearest_centers(z.double().cpu(), centers))
        tensors = {"labels": labels, "centers": centers, "counts": state["counts"].clone()}
        phase = self._cluster_phase(len(rows))
        losses = stream_steps(self.net_, phase, rows, tensors, seed=state["seed"], step=step)
        for start, stop, z in forward.chunks(rows):
            _absorb(tensors, z.double(), torch.arange(start, stop))
        return {
            "cluster_centers_": tensors["centers"].numpy(),
            "_stream_state": {**state, "step": step + 1, "counts": tensors["counts"]},
            "record": stream_record(
                step, losses, n_used_clusters=len(np.unique(tensors["labels"]))
            ),
        }


def _absorb(tensors, embedding, index):
    """Give rows to their nearest centres, which move as running means."""
    centers = tensors["centers"]
    labels = nearest_centers(embedding, centers)
    tensors["labels"][index] = labels
    tensors["centers"], tensors["counts"] = update_running_centers(
        centers, tensors["counts"], embedding, labels
    )


def _all_labels(run, with_inertia=False):
    """Return the nearest centre of every row, and the summed squared distance if wanted."""
    centers = run.tensors["centers"]
    labels = torch.empty(len(run.rows), dtype=torch.int64)
    inertia = 0.0
    for start, stop, z in run.forward.chunks(run.rows):
        distances, labels[start:stop] = distances_in_float64(z, centers).min(dim=1)
        inertia += float(distances.sum())
    return (labels, inertia) if with_inertia else labels


def _resync(run):
    """Replace the centres by those of K-means started from them."""
    n_rows = len(run.rows)
    centers = run.tensors["centers"].numpy()
    limit = embedding_sample_size(run)
    if n_rows > limit:
        order = np.random.default_rng(derive_seed(run.seed, "resync", run.epoch))
        sample = torch.from_numpy(np.sort(order.choice(n_rows, limit, replace=False)))
        embedding = embed_sample(run, sample)
    else:
        embedding = run.embed()
    if len(torch.unique(embedding, dim=0)) < len(centers):
        return
    found = KMeans(len(centers), init=centers, n_init=1).fit(embedding.double().numpy())
    run.tensors["centers"] = torch.from_numpy(found.cluster_centers_)
