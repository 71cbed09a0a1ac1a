"""The state of one fit while it runs, and the order of its phases."""

import copy

import torch

from ..exceptions import TrainingDivergedError
from .inference import ChunkedForward


class Run:
    """Everything a fit changes before the estimator takes it over in one step.

    Parameters
    ----------
    rows : RowSource
        The training rows.
    network : EmbeddingNetwork
        The network, on its device.
    net : ClusteringNet
        The skorch net around `network`.
    seed : int
        The integer all random streams derive from.
    device : torch.device
        Where the network lies.
    chunk_rows : int
        Rows of every inference pass.

    Attributes
    ----------
    tensors : dict of str to Tensor
        State of the method by name (targets, centres, ...), saved in checkpoints.
    values : dict of str to object
        Further state that JSON can hold.
    history : list of dict
        One record an epoch.
    stop_reason : str or None
        Why the latest phase ended.
    """

    def __init__(self, rows, network, net, *, seed, device, chunk_rows, report=None):
        self.rows = rows
        self.network = network
        self.net = net
        self.seed = seed
        self.device = device
        self.forward = ChunkedForward(network, chunk_rows, device)
        self.report = report
        self.checkpoint = None
        self.tensors = {}
        self.values = {}
        self.history = []
        self.phase = None
        self.phase_index = 0
        self.epoch = 0
        self.stop_reason = None
        self._snapshot = None

    @property
    def chunk_rows(self):
        """Rows of every inference pass."""
        return self.forward.chunk_rows

    def embed(self):
        """Return the clean embedding of all rows, or raise if it is not finite."""
        self.network.eval()
        embedding = self.forward(self.rows)
        if not bool(torch.isfinite(embedding).all()):
            raise TrainingDivergedError(
                f"The embedding became nan or infinite in {self.where()}; lower the learning "
                f"rate (now lr={self.phase.lr:g})."
            )
        return embedding

    def where(self):
        """Return phase and epoch in words."""
        return f"phase {self.phase.name!r}, epoch {self.epoch + 1}"

    def stop(self, reason):
        """End the present phase after this epoch, for a reason a user can read."""
        self.stop_reason = reason

    def execute(self, phases):
        """Run `phases` in order, from the checkpoint's place where there is one."""
        if self.report:
            self.report.begin_fit()
        first_phase, first_epoch = 0, 0
        if self.checkpoint is not None:
            first_phase, first_epoch = self.checkpoint.restore(self, phases)
        for index in range(first_phase, len(phases)):
            self.phase, self.phase_index = phases[index], index
            self.net.run_phase(self, first_epoch if index == first_phase else 0)
            self.keep_snapshot()
            if self.checkpoint is not None:
                self.checkpoint.write(self, phase_is_finished=True)
        if self.report:
            self.report.end_fit()

    def end(self):
        """Drop the checkpoint: the estimator has taken over what it was for."""
        if self.checkpoint is not None:
            self.checkpoint.remove()

    def keep_snapshot(self):
        """Remember weights and state as they are now: the last finished epoch."""
        weights = {name: value.clone() for name, value in self.network.state_dict().items()}
        self._snapshot = (
            weights,
            {
                name: value.clone() if name in self.phase.written_in_place else value
                for name, value in self.tensors.items()
            },
            copy.deepcopy(self.values),
            len(self.history),
            self.phase_index,
        )

    def return_to_snapshot(self):
        """Go back to the last finished epoch; return whether there was one."""
        if self._snapshot is None:
            return False
        weights, tensors, values, n_records, self.phase_index = self._snapshot
        self.network.load_state_dict(weights)
        self.network.eval()
        self.tensors, self.values = dict(tensors), values
        del self.history[n_records:]
        return True
