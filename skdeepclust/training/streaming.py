"""State of endless streams: a buffer until there is enough to start, and a bounded history."""

from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import torch

from ..exceptions import TrainingDivergedError
from .batches import SlicingIterator
from .inference import embedding_is_finite
from .seeds import derive_seed, isolated_torch_randomness

# Records kept of a stream; older ones are dropped so that memory stays flat.
MAX_HISTORY = 256


class RowBuffer:
    """Rows of the first calls of `partial_fit`, kept until there are enough to start.

    Parameters
    ----------
    n_wanted : int
        Rows needed to start.
    earlier : RowBuffer or None, default=None
        A buffer whose rows come first; it is not changed.
    """

    def __init__(self, n_wanted, earlier=None):
        self.n_wanted = n_wanted
        self._blocks = list(earlier._blocks) if earlier is not None else []

    def __len__(self):
        return sum(len(block) for block in self._blocks)

    @property
    def n_missing(self):
        """Rows still wanted."""
        return max(0, self.n_wanted - len(self))

    def add(self, rows):
        """Copy all rows of the source `rows` into the buffer."""
        self._blocks.append(rows.read(0, len(rows)).clone().cpu().numpy())

    def contents(self):
        """Return all buffered rows as one array."""
        return np.concatenate(self._blocks)


def step_size(step, delay=10.0, decay=0.6):
    """Return the Robbins-Monro rate ``(step + delay) ** -decay`` of call `step`, from 1.

    Examples
    --------
    >>> from skdeepclust.training.streaming import step_size
    >>> round(step_size(1), 4)
    0.2372
    """
    return float((step + delay) ** -decay)


def bounded(history):
    """Return the newest records of `history`."""
    return history[-MAX_HISTORY:]


def stream_steps(net, phase, rows, tensors, *, seed, step):
    """Train one pass over `rows` in their order; return the mean of each loss term.

    Every row takes part in one gradient step. The optimiser stays with the net between calls.

    Parameters
    ----------
    net : ClusteringNet
        The fitted net.
    phase : Phase
        Gives the loss of a batch.
    rows : RowSource
        Rows of this call.
    tensors : dict of str to Tensor
        State of the method as its losses expect it, for these rows.
    seed, step : int
        What the noise of this call is derived from.
    """
    network = net.module_
    parameters = [p for p in network.parameters() if p.requires_grad]
    if not parameters:
        return {}
    device = parameters[0].device
    if not hasattr(net, "optimizer_"):
        net.start_optimizer(phase, parameters)
    for group in net.optimizer_.param_groups:
        # The user may have changed it since the last call.
        group["lr"] = phase.lr
    run = SimpleNamespace(network=network, tensors=tensors, device=device)
    sums = {}
    network.train()
    try:
        with (
            isolated_torch_randomness(derive_seed(seed, "stream", step), device),
            torch.enable_grad(),
        ):
            for batch in SlicingIterator(rows, phase.batch_size, device):
                net.optimizer_.zero_grad(set_to_none=True)
                terms = phase.batch_loss(run, batch)
                loss = sum(terms.values())
                if not bool(torch.isfinite(loss)):
                    _raise_diverged("loss", step, phase)
                loss.backward()
                net.optimizer_.step()
                for name, value in terms.items():
                    sums[name] = sums.get(name, 0.0) + float(value.detach()) * len(
                        batch.row_numbers
                    )
    finally:
        network.eval()
    if not embedding_is_finite(network, rows, device):
        _raise_diverged("embedding", step, phase)
    return {name: value / len(rows) for name, value in sums.items()}


@contextmanager
def weights_kept_on_failure(net):
    """Put the weights of `net` back and forget its optimiser when the block fails."""
    weights = {name: value.clone() for name, value in net.module_.state_dict().items()}
    try:
        yield
    except BaseException:
        net.module_.load_state_dict(weights)
        net.module_.eval()
        net._drop_optimizer()
        raise


def _raise_diverged(what, step, phase):
    raise TrainingDivergedError(
        f"The {what} became nan or infinite in partial_fit call {step + 1} with lr={phase.lr:g}; "
        "the state before the call was kept. Lower lr."
    )


def stream_record(step, losses, **diagnostics):
    """Return the record of one call for `history_`."""
    record = {"phase": "stream", "epoch": step + 1}
    if losses:
        record["loss"] = sum(losses.values())
        record.update({f"loss_{name}": value for name, value in losses.items()})
    return {**record, **diagnostics}
