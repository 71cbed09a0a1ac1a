"""Block 5: an encoder 64-64-16 that is trained with the prototypes, on digits."""

import warnings
from itertools import product

import numpy as np
import torch
from sklearn.cluster import KMeans
from sklearn.frozen import FrozenEstimator
from torch import nn

from skdeepclust import DDCL
from skdeepclust.exceptions import EncoderCollapseWarning
from skdeepclust.training.seeds import isolated_torch_randomness

from .accuracy import label_scores
from .ddcl_accuracy import rows_and_classes

_NETWORK = {"hidden_dims": [64], "embedding_dim": 16}
GUARDS = {
    "none": {"pretrain": None, "reconstruction_weight": 0.0, "normalize_embedding": False},
    "units of the embedding": {"pretrain": None, "reconstruction_weight": 0.0},
    "all": {},
}
LOSSES = {
    "bare error": {"entropy_weight": 0.0},
    "free energy": {},
    "reconstruction": {"loss": "reconstruction", "entropy_weight": 0.0},
    "reconstruction and entropy": {"loss": "reconstruction"},
}
RATES = (1e-5, 1e-4, 1e-3)


def measure(cells, seeds, autoencoders):
    """Train with every loss, guard and rate; DeepCluster and K-means on the same rows."""
    X, y = rows_and_classes("digits", autoencoders)
    for seed in seeds:
        encoder = autoencoders.get(X, {**_NETWORK, "random_state": seed})[0]
        for name, features in _floors(X, encoder, seed).items():
            cells.add("digits", name, seed, lambda f=features, s=seed: _kmeans(f, y, s))
        for reset in (True, False):
            name = f"DeepCluster, {'new' if reset else 'kept'} head"
            cells.add("digits", name, seed, lambda r=reset, s=seed: _deep_cluster(X, y, s, r))
        for guard, loss, rate in product(GUARDS, LOSSES, RATES):
            for scale in ("auto", None) if guard == "none" else ("auto",):
                params = {**GUARDS[guard], **LOSSES[loss], "encoder_lr": rate}
                if guard == "all":
                    params["pretrain"] = FrozenEstimator(encoder)
                unit = "relative" if scale else "absolute"
                row = f"{loss}, guards {guard}, encoder_lr={rate:g}, {unit} temperature"
                params["temperature_scale"] = scale
                cells.add("digits", row, seed, lambda p=params, s=seed: _train(X, y, s, p))


def _train(X, y, seed, params):
    settings = {"encoder": "mlp", "train_encoder": True, **_NETWORK, **params}
    model = DDCL(10, random_state=seed, **settings)
    with warnings.catch_warnings():
        # What they say is in the cell.
        warnings.simplefilter("ignore", EncoderCollapseWarning)
        model.fit(X)
    records = [record for record in model.history_ if "total_variance" in record]
    ratios = [record["displacement_ratio"] for record in records if "displacement_ratio" in record]
    return {
        **label_scores(y, model.labels_),
        "n_used_clusters": len(np.unique(model.labels_)),
        "variance_share": records[-1]["total_variance"] / records[0]["total_variance"],
        "displacement_ratio": float(np.mean(ratios)) if ratios else None,
        "has_collapsed": "collapsed" in model.stop_reason_,
    }


def _floors(X, encoder, seed):
    with torch.no_grad():
        untrained = _new_encoder(X.shape[1], seed)(torch.from_numpy(X)).numpy()
    return {
        "KMeans on the rows": X,
        "KMeans on an untrained encoder": untrained,
        "KMeans on the autoencoder": encoder.transform(X),
    }


def _kmeans(features, y, seed):
    labels = KMeans(10, n_init=10, random_state=seed).fit_predict(features)
    return label_scores(y, labels)


# -- DeepCluster -----------------------------------------------------------------------------

_EPOCHS, _RELABEL_EPOCHS, _BATCH_SIZE, _LR = 100, 5, 256, 1e-3


def _new_encoder(n_features, seed):
    with isolated_torch_randomness(seed):
        return nn.Sequential(nn.Linear(n_features, 64), nn.ReLU(), nn.Linear(64, 16))


def _deep_cluster(X, y, seed, resets_head):
    """Alternate K-means on the features with learning its labels (arXiv:1807.05520)."""
    rows, encoder = torch.from_numpy(X), _new_encoder(X.shape[1], seed)
    generator = torch.Generator().manual_seed(seed)
    head = nn.Linear(16, 10)
    _draw(head, generator)
    for epoch in range(_EPOCHS):
        if epoch % _RELABEL_EPOCHS == 0:
            labels = torch.from_numpy(_pseudo_labels(encoder, rows, seed)).long()
            shares = torch.bincount(labels, minlength=10)[labels]
            if resets_head:
                _draw(head, generator)
            parameters = [*encoder.parameters(), *head.parameters()]
            optimizer = torch.optim.Adam(parameters, lr=_LR)
        order = torch.multinomial(1 / shares, len(rows), replacement=True, generator=generator)
        for batch in order.split(_BATCH_SIZE):
            loss = nn.functional.cross_entropy(head(encoder(rows[batch])), labels[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return label_scores(y, _pseudo_labels(encoder, rows, seed))


def _draw(head, generator):
    with torch.no_grad():
        head.weight.normal_(std=0.01, generator=generator)
        head.bias.zero_()


def _pseudo_labels(encoder, rows, seed):
    with torch.no_grad():
        features = encoder(rows).numpy()
    # scikit-learn's K-means gives an emptied cluster the row farthest from its centre.
    return KMeans(10, n_init=3, random_state=seed).fit_predict(features).astype(np.int64)
