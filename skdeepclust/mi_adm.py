"""Mutual information of input and cluster, maximised by alternating directions."""

from numbers import Real

from sklearn.utils._param_validation import Interval, StrOptions

from ._classifier import CLASSIFIER_CONSTRAINTS, DeepClassifier
from ._target_rules import MutualInformationRule


class MIADMClustering(DeepClassifier):
    """Clusters of a softmax classifier that tell most of their rows.

    With the posterior ``p = softmax((theta_k . z + b_k) / temperature)`` of the embedding and
    its column means ``p_k`` it maximises the mutual information
    ``I(P) = -sum_k p_k log p_k + mean_i sum_k p_ik log p_ik``: equal clusters, sure assignments.
    With targets ``Q`` in place of ``P`` where that makes the problem easy, and the penalty
    ``KL(Q || P)``, it alternates::

        Q = argmax  mean_i sum_k q_ik log p_ik - sum_k q_k log q_k - KL(Q || P)
        network, head = argmin  -mean_i sum_k q_ik log p_ik + reconstruction loss

    The first step is made on all rows once an epoch, by ``q ~ p^2 / sqrt(sum_i p^2)`` or
    exactly; the second is an epoch of training.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    q_update : {"closed", "exact"}, default="closed"
        The published closed form, which takes the row normalisers for equal, or the iterated
        exact solution. They differ most with an unequal `class_prior`.
    class_prior : array-like of shape (n_clusters,), "adaptive" or None, default=None
        Expected proportions of the clusters, which the targets are drawn towards. With labels
        or centres as `init` they are in that order, else the largest goes to the largest
        cluster of the first partition and so on. ``"adaptive"`` takes the proportions of the
        targets of the last epoch, mixed with a tenth of equal ones; None is equal ones.
    penalty_weight : float, default=1.0
        Weight ``a`` of ``KL(Q || P)``: ``q ~ p^((1 + a) / a)``. A larger one sharpens less.
    l2_regularization : float, default=0.0
        Weight of the squared weights of the head.
    temperature : float, default=1.0
        Divides the logits; smaller is sharper.
    reconstruction_weight : float, default=1.0
        Weight of the reconstruction loss against the cross-entropy.
    encoder : {"auto", "mlp", "conv", "identity"}, Module or callable, default="auto"
        ``"auto"`` is an MLP for vectors and a convolutional network for images;
        ``"identity"`` makes this a linear softmax classifier of `X`. A `torch.nn.Module` is
        worked on as a copy; a callable is given ``(input_shape, embedding_dim)`` and returns
        one. A module that does not end in tanh is followed by one.
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
        How the embedding is first partitioned; see :class:`~skdeepclust.SRKMeans`. The
        classifier begins as the linear discriminant of that partition.
    n_init : int, default=1
        Restarts from one pretrained network; the lowest objective is kept.
    warm_up_epochs : int, default=30
        Most epochs in which network and classifier are trained towards the first partition
        before the targets are refreshed. They end earlier when the loss stops falling.
    max_epochs : int, default=30
        Most epochs of the clustering phase.
    batch_size : int or "auto", default="auto"
        Most rows in a batch; ``"auto"`` is a 64th of the rows, between 16 and 256.
    lr : float, default=1e-4
        Learning rate of Adam.
    tol : float, default=1e-7
        Training ends when the mean squared change of the targets in an epoch is smaller.
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
    objective_ : float
        Negative mutual information after the last epoch, plus the weighted squared weights.
    init_used_ : str
        What found the first partition.
    n_iter_ : int
        Epochs of the clustering phase.
    stop_reason_ : str
        Why it ended.
    history_ : list of dict
        One record an epoch; the columns ``loss_*`` sum to ``loss``.
    net_ : ClusteringNet
        The skorch net; ``net_.module_`` is the network, ``net_.module_.head`` the classifier.
    n_features_in_ : int
        Values in a row.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Column names, when `X` has names that are all strings.

    See Also
    --------
    DEPICT : Targets without the squaring.
    SRKMeans : The soft K-means that the paper links this to.

    Notes
    -----
    The clusters are drawn towards equal sizes: of an imbalanced data set large classes are
    split unless `class_prior` says otherwise. The same holds for streams, where running
    column means take the place of the sums: rows sorted by class break them, and a batch of
    such proportions warns. The mutual information need not rise every epoch: the closed form,
    mini-batches and the reconstruction loss are outside the proof.

    References
    ----------
    Deep clustering: On the link between discriminative models and K-means, arXiv:1810.04246.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from skdeepclust import MIADMClustering
    >>> X, y = make_blobs(n_samples=150, centers=3, random_state=0)
    >>> model = MIADMClustering(n_clusters=3, encoder="identity", random_state=0).fit(X)
    >>> model.predict_proba(X[:2]).shape
    (2, 3)
    """

    _parameter_constraints = {
        **CLASSIFIER_CONSTRAINTS,
        "q_update": [StrOptions({"closed", "exact"})],
        "penalty_weight": [Interval(Real, 0, None, closed="neither")],
        "l2_regularization": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        n_clusters=8,
        *,
        q_update="closed",
        class_prior=None,
        penalty_weight=1.0,
        l2_regularization=0.0,
        temperature=1.0,
        reconstruction_weight=1.0,
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
        lr=1e-4,
        tol=1e-7,
        device="auto",
        callbacks=None,
        warm_start=False,
        verbose=0,
        random_state=None,
    ):
        self.n_clusters = n_clusters
        self.q_update = q_update
        self.class_prior = class_prior
        self.penalty_weight = penalty_weight
        self.l2_regularization = l2_regularization
        self.temperature = temperature
        self.reconstruction_weight = reconstruction_weight
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

    def _rule(self):
        return MutualInformationRule(float(self.penalty_weight), self.q_update == "exact")
