"""The multi-level denoising autoencoder that the discriminative methods start from."""

from numbers import Integral, Real

from sklearn.utils._param_validation import Interval

from .._network_estimator import NETWORK_CONSTRAINTS, TRAINING_CONSTRAINTS, NetworkEstimator
from ..losses import multilevel_reconstruction_loss
from ..training.phases import Phase
from ..training.seeds import draw_seed
from ..training.sklearn_callbacks import fit_report, with_callbacks
from ..training.streaming import bounded, stream_record, stream_steps, weights_kept_on_failure


class ReconstructionPhase(Phase):
    """Minimise the multi-level reconstruction loss alone.

    Parameters
    ----------
    hidden_weight : float
        Weight of the hidden levels against the input level.
    max_epochs, batch_size, lr
        As in :class:`DenoisingAutoencoder`.
    tol : float
        Least relative improvement of the loss that counts.
    n_iter_no_change : int
        Epochs without one after which the phase ends.
    """

    name = "pretrain"
    schedule = "cosine"

    def __init__(self, *, hidden_weight, max_epochs, batch_size, lr, tol, n_iter_no_change):
        self.hidden_weight = hidden_weight
        self.max_epochs = max_epochs
        self.batch_size = batch_size
        self.lr = lr
        self.tol = tol
        self.n_iter_no_change = n_iter_no_change

    def begin(self, run):
        run.values["plateau"] = [float("inf"), 0]

    def batch_loss(self, run, batch):
        _, loss = denoising_pass(run.network, batch.rows, self.hidden_weight)
        return {"reconstruction": loss}

    def end_epoch(self, run):
        best, n_stale = run.values["plateau"]
        loss = run.values["epoch_losses"].get("reconstruction", 0.0)
        n_stale = 0 if loss < best * (1 - self.tol) else n_stale + 1
        run.values["plateau"] = [min(best, loss), n_stale]
        if n_stale >= self.n_iter_no_change:
            run.stop(
                f"the reconstruction loss improved by less than tol={self.tol:g} (relative) for "
                f"n_iter_no_change={self.n_iter_no_change} epochs"
            )
        return {}


def denoising_pass(network, rows, hidden_weight):
    """Return the noisy embedding of `rows` and the reconstruction loss of the pass."""
    embedding, levels, reconstructions = network.denoise(rows)
    levels = levels[: len(reconstructions)]
    weights = [1.0] + [hidden_weight] * (len(reconstructions) - 1)
    return embedding, multilevel_reconstruction_loss(reconstructions, levels, weights)


class DenoisingAutoencoder(NetworkEstimator):
    """Embedding learnt by giving back the clean input from a corrupted one.

    The encoder sees the input and its first hidden layer with dropout; the decoder has to give
    back the clean input and, with a smaller weight, the clean hidden activations:
    ``R = |x - x'|^2 / |x| + hidden_weight * sum_l |h_l - h'_l|^2 / |h_l|``, each averaged
    over the rows.

    Parameters
    ----------
    encoder : {"auto", "mlp", "conv", "identity"}, Module or callable, default="auto"
        ``"auto"`` is an MLP for vectors and a convolutional network for images. A
        `torch.nn.Module` is worked on as a copy; a callable is given
        ``(input_shape, embedding_dim)`` and returns one. For those the input level alone is
        given back, through an MLP decoder.
    hidden_dims : "auto" or sequence of int, default="auto"
        Widths of the MLP: ``(500, 500, 2000)``, or ``(128, 64)`` below 5,000 rows.
    embedding_dim : int, default=10
        Size of the embedding.
    image_shape : tuple of int or None, default=None
        ``(C, H, W)`` when the rows of a two-dimensional `X` are images.
    scaling : {"auto", "standard", "common", "range"} or None, default="auto"
        Input scaling inside the network, fitted on the first `X`: ``"range"`` maps the whole
        value range to -1..1 (``"auto"`` for images), ``"common"`` centres the columns and
        divides all by one deviation (``"auto"`` for vectors whose columns share one unit),
        ``"standard"`` divides each column by its own (``"auto"`` for other vectors).
    dropout : float, default=0.1
        Rate of the corruption of the input and of the first hidden layer.
    hidden_weight : float, default=0.1
        Weight of the hidden levels in the loss.
    bounded : bool, default=True
        Whether the embedding passes through tanh, as :class:`~skdeepclust.SRKMeans` needs.
    max_epochs : int, default=60
        Most epochs; the learning rate falls to 0 along a cosine.
    batch_size : int or "auto", default="auto"
        Most rows in a batch; ``"auto"`` is a 64th of the rows, between 16 and 256.
    lr : float, default=1e-3
        Learning rate of Adam.
    tol : float, default=1e-4
        Least relative improvement of the loss that counts as one.
    n_iter_no_change : int, default=10
        Epochs without an improvement after which training ends.
    device : str, default="auto"
        ``"auto"`` is CUDA where there is one, else the CPU; or any torch device.
    callbacks : list or None, default=None
        skorch callbacks; copies are used. Monitor ``"train_loss"``: no rows are held out.
    warm_start : bool, default=False
        Whether `fit` continues from the fitted weights.
    verbose : int, default=0
        1 shows progress.
    random_state : int, RandomState or None, default=None
        Determines weights, order and noise.

    Attributes
    ----------
    net_ : ClusteringNet
        The skorch net; ``net_.module_`` is the network.
    history_ : list of dict
        One record an epoch.
    n_iter_ : int
        Epochs of the last fit.
    stop_reason_ : str
        Why it ended.
    n_features_in_ : int
        Values in a row.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Column names, when `X` has names that are all strings.

    See Also
    --------
    skdeepclust.SRKMeans : Clusters such an embedding.

    References
    ----------
    Deep Clustering via Joint Convolutional Autoencoder Embedding and Relative Entropy
    Minimization, arXiv:1704.06327.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from skdeepclust.pretraining import DenoisingAutoencoder
    >>> X = load_digits().data[:200]
    >>> autoencoder = DenoisingAutoencoder(embedding_dim=4, max_epochs=2, random_state=0)
    >>> autoencoder.fit_transform(X).shape
    (200, 4)
    """

    _parameter_constraints = {
        **NETWORK_CONSTRAINTS,
        **TRAINING_CONSTRAINTS,
        "dropout": [Interval(Real, 0, 1, closed="left")],
        "hidden_weight": [Interval(Real, 0, None, closed="left")],
        "bounded": ["boolean"],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        *,
        encoder="auto",
        hidden_dims="auto",
        embedding_dim=10,
        image_shape=None,
        scaling="auto",
        dropout=0.1,
        hidden_weight=0.1,
        bounded=True,
        max_epochs=60,
        batch_size="auto",
        lr=1e-3,
        tol=1e-4,
        n_iter_no_change=10,
        device="auto",
        callbacks=None,
        warm_start=False,
        verbose=0,
        random_state=None,
    ):
        self.encoder = encoder
        self.hidden_dims = hidden_dims
        self.embedding_dim = embedding_dim
        self.image_shape = image_shape
        self.scaling = scaling
        self.dropout = dropout
        self.hidden_weight = hidden_weight
        self.bounded = bounded
        self.max_epochs = max_epochs
        self.batch_size = batch_size
        self.lr = lr
        self.tol = tol
        self.n_iter_no_change = n_iter_no_change
        self.device = device
        self.callbacks = callbacks
        self.warm_start = warm_start
        self.verbose = verbose
        self.random_state = random_state

    @with_callbacks
    def fit(self, X, y=None):
        """Train on `X`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or images (n_samples, C, H, W)
            Training rows; never copied whole.
        y : ignored
            There for the sake of pipelines.

        Returns
        -------
        self : DenoisingAutoencoder
        """
        self._validate_params()
        rows, described, statistics = self._open_and_scan(X)
        seed = self._draw_seed()
        if self.warm_start and self.__sklearn_is_fitted__():
            self._check_same_row_shape(rows)
            network = self._copy_of_fitted_network()
        else:
            network = self.build_network(rows, statistics, seed)
        report = fit_report(self, X, y, lambda: None)
        run = self._start_run(rows, network, seed, report)
        try:
            run.execute([self.phase(len(rows))])
        except KeyboardInterrupt:
            if run.return_to_snapshot():
                run.stop_reason = "interrupted by Ctrl-C"
                self._take_over(self._fitted_attributes(run, described))
                self._warn_interrupted(run)
            raise
        self._take_over(self._fitted_attributes(run, described))
        run.end()
        return self

    def partial_fit(self, X, y=None):
        """Train one pass over `X`; the first call also fits the input scaling.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or images (n_samples, C, H, W)
            The next rows of a stream.
        y : ignored
            There for the sake of pipelines.

        Returns
        -------
        self : DenoisingAutoencoder
        """
        self._validate_params()
        if not self.__sklearn_is_fitted__():
            rows, described, statistics = self._open_and_scan(X)
            seed = draw_seed(self.random_state)
            run = self._start_run(rows, self.build_network(rows, statistics, seed), seed)
            attributes = self._fitted_attributes(run, described)
        else:
            rows = self._open_fitted_rows(X)
            self._scan(rows)
            attributes = {}
        self._stream(rows, attributes)
        return self

    def build_network(self, rows, statistics, seed):
        """Return a new network for `rows`; used by the clusterers too."""
        return self._build_network(
            rows, statistics, seed, bounded=self.bounded, dropout=self.dropout
        )

    def phase(self, n_rows):
        """Return the training phase for `n_rows` rows; used by the clusterers too."""
        return ReconstructionPhase(
            hidden_weight=self.hidden_weight,
            max_epochs=self.max_epochs,
            batch_size=self._resolved_batch_size(n_rows),
            lr=self.lr,
            tol=self.tol,
            n_iter_no_change=self.n_iter_no_change,
        )

    def _stream(self, rows, attributes):
        """Train on `rows`, then take over what changed together with `attributes`."""
        state = {**vars(self), **attributes}
        step, seed = state["_stream_state"]["step"], state["_stream_state"]["seed"]
        net, phase = state["net_"], self.phase(len(rows))
        with weights_kept_on_failure(net):
            losses = stream_steps(net, phase, rows, {}, seed=seed, step=step)
            changed = {
                "history_": bounded([*state["history_"], stream_record(step, losses)]),
                "_stream_state": {"step": step + 1, "seed": seed},
            }
            self.__dict__.update({**attributes, **changed})

    def _fitted_attributes(self, run, described):
        return {
            **self._network_attributes(run, described),
            "n_iter_": len(run.history),
            "_stream_state": {"step": 0, "seed": run.seed},
        }
