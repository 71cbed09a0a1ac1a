"""The two networks of the speed benchmarks, and estimators and bare loops that use them."""

import copy
from dataclasses import dataclass

import torch

from skdeepclust import DCN, DEPICT, MIADMClustering, SRKMeans

from .bare import BareClassifier, BareDCN, BareSRKMeans

N_CLUSTERS = 10
BATCH_SIZE = 256


@dataclass(frozen=True)
class Widths:
    """Layer widths of an MLP encoder."""

    n_features: int
    hidden_dims: tuple[int, ...]
    embedding_dim: int = 10


NETWORKS = {
    "784-500-500-2000-10": Widths(784, (500, 500, 2000)),
    "64-64-10": Widths(64, (64,)),
}

_ESTIMATORS = {
    "sr-kmeans": SRKMeans,
    "dcn": DCN,
    "mi-adm": MIADMClustering,
    "depict": DEPICT,
}


def make_estimator(method, network, **parameters):
    """Return an unfitted estimator with the network called `network` and no pretraining.

    It starts from given centres, because finding some is no part of what is timed.
    """
    if method != "dcn":
        # The joint phase is what is timed.
        parameters = {"warm_up_epochs": 0, **parameters}
    widths = NETWORKS[network]
    generator = torch.Generator().manual_seed(0)
    centers = torch.randn(N_CLUSTERS, widths.embedding_dim, generator=generator).tanh()
    return _ESTIMATORS[method](
        N_CLUSTERS,
        hidden_dims=widths.hidden_dims,
        embedding_dim=widths.embedding_dim,
        pretrain=None,
        init=centers.numpy(),
        batch_size=BATCH_SIZE,
        tol=0.0,
        device="cpu",
        random_state=0,
        **parameters,
    )


def bare_loop(X, estimator, network, centers, temperature):
    """Return the hand-written loop of what `estimator` does, on a copy of `network`."""
    network = copy.deepcopy(network)
    common = (torch.from_numpy(X), network, centers.clone(), BATCH_SIZE, estimator.lr)
    if isinstance(estimator, DCN):
        return BareDCN(*common)
    if isinstance(estimator, (MIADMClustering, DEPICT)):
        return BareClassifier(*common, is_depict=isinstance(estimator, DEPICT))
    return BareSRKMeans(*common, temperature, estimator.clustering_weight)
