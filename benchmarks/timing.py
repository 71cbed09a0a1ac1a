"""Timing of alternatives in turn, and the ratio of their medians."""

import gc
import time
from statistics import median
from typing import NamedTuple


class Seconds(NamedTuple):
    """Seconds on the clock, and seconds this process spent computing.

    With one thread the two agree on an idle machine. On a shared one the clock also counts what
    other processes take.
    """

    clock: float
    cpu: float

    @classmethod
    def now(cls):
        """Return the present state of both clocks."""
        return cls(time.perf_counter(), time.process_time())

    def since(self, start, n_calls=1):
        """Return the seconds of each of `n_calls` calls since `start`."""
        return Seconds((self.clock - start.clock) / n_calls, (self.cpu - start.cpu) / n_calls)


def time_in_turn(alternatives, n_runs=7, n_calls=1):
    """Time callables in the order A B A B ..., after one round of warm-up.

    Parameters
    ----------
    alternatives : dict of str to callable
    n_runs : int, default=7
        Timed rounds.
    n_calls : int, default=1
        Calls in a row that make one run; for short ones.

    Returns
    -------
    seconds : dict of str to list of Seconds
        Seconds of a call, one entry a run.
    """
    seconds = {name: [] for name in alternatives}
    for number in range(n_runs + 1):
        for name, call in alternatives.items():
            gc.collect()
            started = Seconds.now()
            for _ in range(n_calls):
                call()
            elapsed = Seconds.now().since(started, n_calls)
            if number:
                seconds[name].append(elapsed)
    return seconds


def compare(ours, reference, **further):
    """Return medians and ratios of two lists of :class:`Seconds` whose entries took turns.

    Returns
    -------
    comparison : dict
        ``seconds`` and ``reference_seconds`` (medians on the clock) and their ``ratio``; the
        same three for the processor with the prefix ``cpu_``; all ``runs``.
    """
    result = {"n_runs": len(ours), **further}
    for prefix, clock in (("", "clock"), ("cpu_", "cpu")):
        own = median(getattr(run, clock) for run in ours)
        other = median(getattr(run, clock) for run in reference)
        result |= {
            f"{prefix}seconds": own,
            f"{prefix}reference_seconds": other,
            f"{prefix}ratio": own / other,
        }
    return {**result, "runs": ours, "reference_runs": reference}
