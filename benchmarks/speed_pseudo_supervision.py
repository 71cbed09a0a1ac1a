"""Seconds of an epoch of ACOL-GAR against bare loops with the same network."""

import copy

import torch
from torch.nn.functional import cross_entropy

from skdeepclust import ACOLGARClustering
from skdeepclust.losses import activity_terms, pseudo_supervised_cross_entropy, scaled_frobenius

from .speed_epochs import BetweenEpochs
from .timing import Seconds, compare

IMAGE_SHAPE = (1, 16, 16)
_BATCH_SIZE = 400


class BareLoop:
    """A hand-written epoch: shuffled slices, random maps, one step each.

    Parameters
    ----------
    X : Tensor of shape (n_rows, C, H, W)
    network : TransformationNetwork
        Copied.
    lr : float
    is_plain : bool
        Whether the loss is a plain cross-entropy of as many units as there are maps, without
        pooling and regularization.
    """

    def __init__(self, X, network, lr, is_plain):
        self.X = X
        self.network = copy.deepcopy(network)
        self.is_plain = is_plain
        self.optimizer = torch.optim.Adam(self.network.parameters(), lr=lr, fused=True)

    def epoch(self):
        """Train one pass over the shuffled rows."""
        self.network.train()
        n_maps = self.network.transformations.n_transforms
        buffer = torch.empty(_BATCH_SIZE, *self.X.shape[1:])
        for index in torch.randperm(len(self.X)).split(_BATCH_SIZE):
            rows = torch.index_select(self.X, 0, index, out=buffer[: len(index)])
            labels = torch.randint(n_maps, (len(rows),))
            logits = self.network.softmax_inputs(rows, labels)
            self.optimizer.zero_grad(set_to_none=True)
            self._loss(logits, labels, n_maps).backward()
            self.optimizer.step()

    def _loss(self, logits, labels, n_maps):
        if self.is_plain:
            return cross_entropy(logits[:, :n_maps], labels)
        terms = activity_terms(logits, n_maps)
        regularizer = 0.1 * terms.affinity + 1 - terms.balance + 1e-6 * scaled_frobenius(logits)
        return pseudo_supervised_cross_entropy(logits, labels, n_maps) + regularizer


def pseudo_supervision_ratios(X, n_runs):
    """Return an epoch against the bare one, with all terms of the loss and with a plain one.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_pixels)
        Images of :data:`IMAGE_SHAPE`.
    n_runs : int
        Timed epochs of each alternative.
    """
    tensor = torch.from_numpy(X).reshape(-1, *IMAGE_SHAPE)
    ours, bare, plain = [], [], []
    state = {"loops": None, "ended": None}

    def take_turns(net):
        now = Seconds.now()
        if state["ended"] is not None:
            ours.append(now.since(state["ended"]))
        if state["loops"] is None:
            state["loops"] = [
                BareLoop(tensor, net.module_, estimator.lr, is_plain) for is_plain in (False, True)
            ]
        with torch.random.fork_rng(devices=[]):
            for loop, seconds in zip(state["loops"], (bare, plain), strict=True):
                started = Seconds.now()
                loop.epoch()
                seconds.append(Seconds.now().since(started))
        net.module_.train()
        state["ended"] = Seconds.now()

    estimator = ACOLGARClustering(
        10,
        image_shape=IMAGE_SHAPE,
        max_epochs=n_runs + 2,
        n_init=1,
        device="cpu",
        random_state=0,
        callbacks=[BetweenEpochs(take_turns)],
    )
    estimator.fit(X)
    return {
        "epoch": compare(ours[1:], bare[1 : len(ours)], n_rows=len(X)),
        "epoch, plain loss": compare(ours[1:], plain[1 : len(ours)], n_rows=len(X)),
    }
