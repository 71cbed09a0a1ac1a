"""What a method declares: its phases. The loop over epochs and batches is the net's."""

import math

import torch


class Phase:
    """One stage of a fit: how it begins, the loss of a batch, what follows an epoch.

    Subclasses set the attributes and override what they need. A phase holds settings only;
    all that changes lives in the :class:`~skdeepclust.training.run.Run` it is given, so that
    a checkpoint of the run is complete.

    Attributes
    ----------
    name : str
        Stands in `history_`, in messages and in checkpoints.
    max_epochs : int
        0 for a phase that only has a beginning.
    lr : float
        Learning rate.
    batch_size : int
        Most rows in a batch.
    schedule : {"constant", "cosine"}
        Course of the learning rate over the epochs.
    written_in_place : tuple of str
        Tensors of the run that `after_step` writes into; all others are replaced when they
        change, so that a snapshot can keep references to them.
    """

    name = "phase"
    max_epochs = 0
    lr = 1e-3
    batch_size = 256
    schedule = "constant"
    written_in_place: tuple[str, ...] = ()

    def begin(self, run):
        """Prepare targets, centres and the like; not called when a run resumes midway."""

    def trained_parameters(self, network):
        """Return the parameters that this phase trains."""
        return [p for p in network.parameters() if p.requires_grad]

    def optimizer(self, parameters):
        """Return the optimiser of this phase over `parameters`."""
        return torch.optim.Adam(parameters, lr=self.lr, fused=True)

    def batch_loss(self, run, batch):
        """Return the terms of the loss by name; their sum is minimised."""
        raise NotImplementedError(f"{type(self).__name__} trains but gives no batch loss")

    def after_step(self, run, batch):
        """Follow one optimiser step."""

    def end_epoch(self, run):
        """Refresh targets after an epoch; return diagnostics for `history_`."""
        return {}

    def learning_rate(self, epoch):
        """Return the learning rate of `epoch`, counted from 0."""
        if self.schedule == "constant":
            return self.lr
        return self.lr * 0.5 * (1 + math.cos(math.pi * (epoch + 0.5) / self.max_epochs))


def takes_steps(phase):
    """Whether `phase` trains the network or changes state batch by batch."""
    return type(phase).batch_loss is not Phase.batch_loss
