"""Several runs of the clustering phases from one pretrained network; the best one is kept."""

import math

from .phases import Phase

_BASE, _BEST = "restart base/", "restart best/"


class RestartFromBase(Phase):
    """Begin a restart: the first one remembers the network, the others go back to it."""

    name = "restart"

    def __init__(self, number):
        self.number = number

    def begin(self, run):
        if self.number == 0:
            weights = run.network.state_dict()
            run.tensors.update({_BASE + name: value.clone() for name, value in weights.items()})
        else:
            _load(run, _BASE)


class KeepBetter(Phase):
    """End a restart: keep network and state if the unsupervised objective is the lowest yet."""

    name = "compare"

    def __init__(self, names):
        self.names = names

    def begin(self, run):
        objective = run.values["objective"]
        if not objective < run.values.get("best_objective", math.inf):
            return
        weights = run.network.state_dict()
        run.tensors.update({_BEST + name: value.clone() for name, value in weights.items()})
        for name in self.names:
            run.tensors[_BEST + "state/" + name] = run.tensors[name].clone()
        kept = {name: v for name, v in run.values.items() if not name.startswith("best_")}
        run.values.update(best_objective=objective, best_values=kept)


class TakeBest(Phase):
    """Return to the best restart and drop the others."""

    name = "select"

    def __init__(self, names):
        self.names = names

    def begin(self, run):
        _load(run, _BEST)
        for name in self.names:
            run.tensors[name] = run.tensors[_BEST + "state/" + name]
        run.values = dict(run.values["best_values"])
        run.tensors = {
            name: value
            for name, value in run.tensors.items()
            if not name.startswith((_BASE, _BEST))
        }
        run.stop_reason = run.values["stop_reason"]


def with_restarts(n_init, phases, names):
    """Return the phases of `n_init` restarts.

    Parameters
    ----------
    n_init : int
        Number of restarts; 1 adds nothing.
    phases : callable
        Returns the phases of restart number i. The last one leaves ``run.values["objective"]``
        (lower is better) and ``run.values["stop_reason"]``.
    names : sequence of str
        The tensors that belong to a solution.
    """
    if n_init == 1:
        return phases(0)
    everything = []
    for number in range(n_init):
        everything += [RestartFromBase(number), *phases(number), KeepBetter(names)]
    return [*everything, TakeBest(names)]


def _load(run, prefix):
    weights = {
        name.removeprefix(prefix): value
        for name, value in run.tensors.items()
        if name.startswith(prefix) and not name.startswith(prefix + "state/")
    }
    run.network.load_state_dict(weights)
