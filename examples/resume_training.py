"""Break a fit in the middle, as a power cut would, and go on from its checkpoint.

The same call to `fit` is all it takes: when the file of the checkpoint is there, training goes
on after the last epoch in it, and ends with the weights and labels of a fit that was never
interrupted.

Usage: python examples/resume_training.py [CHECKPOINT_FILE]
"""

import os
import sys
import time

import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_digits
from skorch.callbacks import Callback

from skdeepclust import SRKMeans
from skdeepclust.metrics import clustering_accuracy
from skdeepclust.training.checkpoint import TrainingCheckpoint


class PowerCutError(Exception):
    """What ends the interrupted fit here; in life it is the process that ends."""


class PowerCut(Callback):
    """End the training with an error after some epochs."""

    def __init__(self, after_epochs):
        self.after_epochs = after_epochs

    def initialize(self):
        """Start counting; skorch calls this when a fit begins."""
        self.n_epochs_ = 0
        return self

    def on_epoch_begin(self, net, **kwargs):
        """Count the epochs of all phases."""
        if self.n_epochs_ == self.after_epochs:
            raise PowerCutError(f"power cut after {self.after_epochs} epochs")
        self.n_epochs_ += 1


def main(checkpoint_file="digits_run.ckpt", n_samples=None, cut_after=70, **settings):
    """Train without a break, then break and resume; `settings` go to SRKMeans."""
    X, classes = load_digits(return_X_y=True)
    X, classes = X[:n_samples], classes[:n_samples]
    model = SRKMeans(n_clusters=10, random_state=0, **settings)
    whole = timed("without a break", clone(model), X)

    checkpoint = TrainingCheckpoint(checkpoint_file)
    broken = clone(model).set_params(callbacks=[checkpoint, PowerCut(cut_after)])
    timed("until the cut", broken, X)
    print(f"{checkpoint_file} is there: {os.path.exists(checkpoint_file)}")

    # What a new process would do: the same settings, the same data, the same path.
    resumed = timed("resumed", clone(model).set_params(callbacks=[checkpoint]), X)
    print(f"{checkpoint_file} is there: {os.path.exists(checkpoint_file)}\n")

    print(f"epochs in history_: {len(resumed.history_)} resumed, {len(whole.history_)} whole")
    print(f"same labels: {np.array_equal(resumed.labels_, whole.labels_)}")
    print(
        f"same embedding, bit for bit: {np.array_equal(resumed.transform(X), whole.transform(X))}"
    )
    print(f"accuracy of both: {clustering_accuracy(classes, resumed.labels_):.3f}")


def timed(name, model, X):
    """Fit, survive the power cut, and print the seconds."""
    start = time.perf_counter()
    try:
        model.fit(X)
        end = "done"
    except PowerCutError as error:
        end = str(error)
    print(f"{name:16}{time.perf_counter() - start:6.1f} s  {end}")
    return model


if __name__ == "__main__":
    main(*sys.argv[1:])
