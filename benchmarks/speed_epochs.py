"""Seconds of a joint epoch, the estimator's and the bare loop's taking turns in one fit."""

import torch
from skorch.callbacks import Callback

from .bare import forward_in_batches
from .speed_networks import bare_loop, make_estimator
from .timing import Seconds, compare, time_in_turn


class BetweenEpochs(Callback):
    """Calls a function at the beginning of each epoch of the clustering phase."""

    def __init__(self, call):
        # skorch copies callbacks with all they hold, but a function stays one and the same.
        self.call = call

    def on_epoch_begin(self, net, **kwargs):
        if net.run_.phase.name == "cluster":
            self.call(net)


def epoch_ratio(X, network_name, method, n_runs):
    """Return the comparison of the epochs.

    An epoch of the estimator is all from one `on_epoch_begin` to the next: batches, refresh of
    the targets, history, the snapshot that Ctrl-C goes back to. Between two of them the bare
    loop, on a copy of the network, trains one of its own.
    """
    ours, bare = [], []
    state = {"loop": None, "ended": None}

    def take_turns(net):
        now = Seconds.now()
        if state["ended"] is not None:
            ours.append(now.since(state["ended"]))
        run = net.run_
        if state["loop"] is None:
            temperature = run.values.get("temperature")
            state["loop"] = bare_loop(
                X, estimator, run.network, run.tensors["centers"], temperature
            )
        # The order and the noise of the estimator's epoch must not depend on the bare loop.
        with torch.random.fork_rng(devices=[]):
            started = Seconds.now()
            state["loop"].epoch()
            bare.append(Seconds.now().since(started))
        run.network.train()
        state["ended"] = Seconds.now()

    # One epoch warms up, and the last one has no beginning after it.
    estimator = make_estimator(
        method, network_name, max_epochs=n_runs + 2, callbacks=[BetweenEpochs(take_turns)]
    )
    estimator.fit(X)
    n_rows, n_features = X.shape
    return compare(ours[1:], bare[1 : len(ours)], n_rows=n_rows, n_features=n_features)


def refresh_ratio(X, network_name, method, n_runs):
    """Return the refresh of a classifier's targets against one bare forward pass of all rows."""
    tensor = torch.from_numpy(X)
    seconds = {}

    def time_refresh(net):
        if seconds:
            return
        run = net.run_
        run.network.eval()
        alternatives = {
            "refresh": lambda: run.phase._refresh(run),
            "forward": lambda: forward_in_batches(run.network, tensor, run.chunk_rows),
        }
        seconds.update(time_in_turn(alternatives, n_runs))
        run.network.train()

    make_estimator(method, network_name, max_epochs=1, callbacks=[BetweenEpochs(time_refresh)]).fit(
        X
    )
    return compare(seconds["refresh"], seconds["forward"], n_rows=len(X))
