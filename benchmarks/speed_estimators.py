"""Seconds of predict, partial_fit and whole fits against bare code and other packages."""

import copy
from statistics import median

import torch
from sklearn.cluster import MiniBatchKMeans

from skdeepclust import DCN, SRKMeans

from .bare import forward_in_batches
from .machine import is_installed
from .speed_networks import BATCH_SIZE, N_CLUSTERS, bare_loop, make_estimator
from .timing import compare, time_in_turn

_PLAIN_BATCHES = (256, 1024)
_PARTIAL_ROWS = (1, 64, 1000)
_CLUSTPY_EPOCHS = {"pretrain": 2, "cluster": 3}
_CENTER_EPOCHS = 10


def predict_ratios(X, network_name, method, n_runs):
    """Return `predict` against the bare forward pass, in the same chunks and in the best batches.

    The bare pass ends at the embedding; `predict` also checks the rows and finds the clusters.
    """
    estimator = make_estimator(method, network_name, max_epochs=1).fit(X)
    network = estimator.net_.module_
    tensor = torch.from_numpy(X)
    chunk_rows = estimator._chunk_rows
    sizes = {chunk_rows, *_PLAIN_BATCHES, len(X)}
    alternatives = {"predict": lambda: estimator.predict(X)}
    for size in sorted(sizes):
        alternatives[size] = lambda size=size: forward_in_batches(network, tensor, size)
    seconds = time_in_turn(alternatives, n_runs)
    best = min(sizes, key=lambda size: median(run.cpu for run in seconds[size]))
    return {
        "same chunks": compare(seconds["predict"], seconds[chunk_rows], batch_size=chunk_rows),
        "best batches": compare(seconds["predict"], seconds[best], batch_size=best),
        "n_rows": len(X),
    }


def partial_fit_ratios(X, network_name, method, n_runs):
    """Return `partial_fit` against the bare step: assign, train, embed again, assign."""
    estimator = make_estimator(method, network_name, max_epochs=1).fit(X)
    centers = torch.from_numpy(estimator.cluster_centers_.copy())
    temperature = getattr(estimator, "temperature_", None)
    results = {}
    for n_rows in _PARTIAL_ROWS:
        rows = X[:n_rows]
        copied = copy.deepcopy(estimator)
        loop = bare_loop(rows, estimator, estimator.net_.module_, centers, temperature)
        n_calls = max(1, 64 // n_rows)
        seconds = time_in_turn(
            {
                "partial_fit": lambda copied=copied, rows=rows: copied.partial_fit(rows),
                "bare": lambda loop=loop: _bare_stream_step(loop),
            },
            n_runs,
            n_calls,
        )
        results[f"{n_rows} rows"] = compare(seconds["partial_fit"], seconds["bare"])
    return results


def _bare_stream_step(loop):
    """Assign the rows of `loop`, train on them in their order, embed and assign them again."""
    loop.refresh()
    loop.network.train()
    for index in torch.arange(len(loop.X)).split(loop.batch_size):
        loop.step(loop.X[index], index)
    loop.network.eval()
    loop.refresh()


def mini_batch_kmeans_ratios(X, method, n_runs):
    """Return the estimator without a network against scikit-learn's MiniBatchKMeans."""
    centers = X[:N_CLUSTERS].copy()
    cls = {"sr-kmeans": SRKMeans, "dcn": DCN}[method]
    # Neither has a network here, so both are K-means.
    ours = cls(
        N_CLUSTERS,
        encoder="identity",
        init=centers,
        batch_size=BATCH_SIZE,
        max_epochs=_CENTER_EPOCHS,
        tol=0.0,
        device="cpu",
        random_state=0,
    )
    theirs = MiniBatchKMeans(
        N_CLUSTERS,
        init=centers,
        n_init=1,
        batch_size=BATCH_SIZE,
        max_iter=_CENTER_EPOCHS,
        max_no_improvement=None,
        random_state=0,
    )
    fits = time_in_turn({"ours": lambda: ours.fit(X), "theirs": lambda: theirs.fit(X)}, n_runs)
    predicts = time_in_turn(
        {"ours": lambda: ours.predict(X), "theirs": lambda: theirs.predict(X)}, n_runs
    )
    rows = X[:BATCH_SIZE]
    partial = time_in_turn(
        {"ours": lambda: ours.partial_fit(rows), "theirs": lambda: theirs.partial_fit(rows)},
        n_runs,
        n_calls=20,
    )
    named = {
        f"fit, {_CENTER_EPOCHS} epochs": fits,
        "predict": predicts,
        f"partial_fit of {BATCH_SIZE} rows": partial,
    }
    return {key: compare(found["ours"], found["theirs"]) for key, found in named.items()}


def clustpy_ratio(X, n_runs):
    """Return a whole fit of DCN against ClustPy's, equal in widths, batches and epochs."""
    if not is_installed("clustpy"):
        return None
    from clustpy.deep import DCN as ClustPyDCN

    from skdeepclust.pretraining import DenoisingAutoencoder

    epochs = _CLUSTPY_EPOCHS
    pretrain = DenoisingAutoencoder(
        dropout=0.0,
        hidden_weight=0.0,
        max_epochs=epochs["pretrain"],
        batch_size=BATCH_SIZE,
        device="cpu",
    )
    ours = DCN(
        N_CLUSTERS,
        hidden_dims=(500, 500, 2000),
        pretrain=pretrain,
        max_epochs=epochs["cluster"],
        batch_size=BATCH_SIZE,
        tol=0.0,
        device="cpu",
        random_state=0,
    )
    theirs = ClustPyDCN(
        N_CLUSTERS,
        batch_size=BATCH_SIZE,
        pretrain_epochs=epochs["pretrain"],
        clustering_epochs=epochs["cluster"],
        embedding_size=10,
        device="cpu",
        random_state=0,
    )
    seconds = time_in_turn({"ours": lambda: ours.fit(X), "theirs": lambda: theirs.fit(X)}, n_runs)
    return compare(seconds["ours"], seconds["theirs"], n_rows=len(X), epochs=epochs)
