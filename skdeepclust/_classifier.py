"""What the methods that train a softmax classifier without labels share."""

from numbers import Integral, Real

import torch
from sklearn.utils._param_validation import Interval, StrOptions

from ._class_prior import continued_prior, log_class_prior, names_clusters
from ._classifier_phases import (
    HeadWarmUpPhase,
    TargetPhase,
    posterior_of_head,
    update_stream,
)
from ._warnings import warn_user
from .base import COMMON_CONSTRAINTS, DeepClusterer
from .exceptions import SortedStreamWarning
from .nn.network import add_head
from .training.restarts import with_restarts
from .training.streaming import stream_record

CLASSIFIER_CONSTRAINTS = {
    **COMMON_CONSTRAINTS,
    "class_prior": ["array-like", StrOptions({"adaptive"}), None],
    "temperature": [Interval(Real, 0, None, closed="neither")],
    "reconstruction_weight": [Interval(Real, 0, None, closed="left")],
    "warm_up_epochs": [Interval(Integral, 0, None, closed="left")],
}

# A batch of a stream with at least so many rows a cluster is looked at: whether its
# proportions are those of the stream so far. Their divergence, in units of log n_clusters, is
# 1 for a batch of one class in a balanced stream; a random batch of that size has about a
# tenth for 10 clusters.
_LOOKED_AT_ROWS_PER_CLUSTER = 2
_SORTED_DIVERGENCE = 0.5


class DeepClassifier(DeepClusterer):
    """Base of the methods with a softmax head and targets; not for direct use.

    A method says how its targets are found (`_rule`).
    """

    # Methods without this parameter have none.
    l2_regularization = 0.0

    def _rule(self):
        """Return the rule that finds the targets."""
        raise NotImplementedError

    def _new_network(self, rows, statistics, seed):
        network = super()._new_network(rows, statistics, seed)
        probe = rows.empty(1).zero_()
        was_training = network.training
        with torch.inference_mode():
            width = network.eval()(probe.to(network.scaling.shift.device)).shape[1]
        add_head(network.train(was_training), self.n_clusters, width)
        return network

    def _prior(self):
        """Return "adaptive", the log-proportions, or None."""
        if isinstance(self.class_prior, str):
            return self.class_prior
        return log_class_prior(self.class_prior, self.n_clusters)

    def _phase_settings(self, n_rows):
        return {
            "temperature": self.temperature,
            "reconstruction_weight": self.reconstruction_weight,
            "hidden_weight": self._hidden_weight(),
            "l2_regularization": self.l2_regularization,
            "batch_size": self._resolved_batch_size(n_rows),
            "lr": self.lr,
        }

    def _cluster_phase(self, n_rows):
        return TargetPhase(
            rule=self._rule(),
            prior=self._prior(),
            prior_is_ordered=names_clusters(self.init),
            tol=self.tol,
            max_epochs=self.max_epochs,
            **self._phase_settings(n_rows),
        )

    def _phases(self, run, warm):
        n_rows = len(run.rows)
        cluster = self._cluster_phase(n_rows)
        if warm:
            return [cluster]
        first = []
        if self.warm_up_epochs:
            settings = self._phase_settings(n_rows)
            first = [HeadWarmUpPhase(max_epochs=self.warm_up_epochs, **settings)]
        kept = ["targets", "mass", "marginal"]
        if self.class_prior is not None:
            kept.append("log_prior")
        return with_restarts(
            self.n_init, lambda i: [self._first_partition(i), *first, cluster], kept
        )

    def _has_partition(self, run):
        return "labels" in run.tensors or "targets" in run.tensors

    def _restore_method(self, run):
        run.values["init_used"] = self.init_used_
        prior = self._prior()
        if isinstance(prior, torch.Tensor):
            run.tensors["log_prior"] = continued_prior(prior, self._log_prior_fitted)

    def _method_attributes(self, run):
        if "mass" not in run.tensors:
            # Interrupted before the first epoch: the first partition is all there is.
            self._cluster_phase(len(run.rows)).begin(run)
        return {
            "objective_": run.values.get("objective", float("nan")),
            "init_used_": run.values["init_used"],
            "_log_prior_fitted": run.tensors.get("log_prior"),
            "_temperature_fitted": float(self.temperature),
            "_stream_state": {
                # The rows of the fit count as the batches they made, so that the first
                # batches of a stream do not outweigh them.
                "step": -(-len(run.rows) // self._resolved_batch_size(len(run.rows))),
                "seed": run.seed,
                "mass": run.tensors["mass"],
                "marginal": run.tensors["marginal"],
            },
        }

    def _assignment(self, attributes):
        head = attributes["net_"].module_.head
        read = posterior_of_head(head, attributes["_temperature_fitted"])
        return lambda z: read(z).exp()

    def _n_fitted_clusters(self):
        return len(self.net_.module_.head.scaled_bias)

    def _reorder(self, run, order):
        run.network.head.reorder(order)
        run.tensors["targets"] = run.tensors["targets"][:, order]
        for name in ("mass", "marginal", "log_prior"):
            if name in run.tensors:
                run.tensors[name] = run.tensors[name][order]

    def _stream_step(self, rows, state):
        changed, marginal, losses = update_stream(self, self._cluster_phase(len(rows)), rows, state)
        self._warn_of_sorted_rows(len(rows), marginal, state["marginal"])
        n_used = int((marginal > 0.5 / len(rows)).sum())
        record = stream_record(state["step"], losses, n_used_clusters=n_used)
        return {"_stream_state": changed, "record": record}

    def _warn_of_sorted_rows(self, n_rows, marginal, so_far):
        if n_rows < _LOOKED_AT_ROWS_PER_CLUSTER * self.n_clusters or self.n_clusters == 1:
            return
        tiny = torch.finfo(marginal.dtype).tiny
        ratio = marginal.clamp(min=tiny) / so_far.clamp(min=tiny)
        divergence = float((marginal * ratio.log()).sum())
        if divergence > _SORTED_DIVERGENCE * float(torch.log(torch.tensor(self.n_clusters))):
            warn_user(
                "The proportions of the clusters in this batch are far from those of the stream so "
                f"far (divergence {divergence:.2f}). {type(self).__name__} balances its clusters "
                "and splits a class that comes alone; shuffle the stream, or pass larger batches.",
                SortedStreamWarning,
            )

    def score(self, X, y=None):
        """Return the negative objective of `X`.

        It must not choose `n_clusters`: more clusters can always tell more of the rows.

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
        head = self.net_.module_.head
        log_p = self._forward(X, posterior_of_head(head, self._temperature_fitted))
        return -self._rule().objective(log_p, self._log_prior_fitted)
