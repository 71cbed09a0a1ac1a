"""The training phase in which the encoder learns together with the prototypes."""

import math

import torch

from ._dual_competition_phase import DualCompetitionPhase
from ._warnings import warn_user
from .exceptions import EncoderCollapseWarning
from .pretraining.autoencoder import denoising_pass
from .training.first_partition import embed_sample

# Share of the steps that train the prototypes alone.
_WARM_UP_SHARE = 0.3
# Every so many steps the largest variance follows the embedding, by so large a part.
_VARIANCE_STEPS, _VARIANCE_RATE = 10, 0.1
# Below the first share of its first variance the embedding shrinks; below the second it is lost.
_SHRUNKEN_SHARE, _LOST_SHARE = 0.2, 0.01
# The encoder should move slower than the prototypes.
_MAX_DISPLACEMENT_RATIO = 1.0
_GOOD = "last good/"
# What anchors that are all equal are divided by.
_TINY = 1e-12


class JointCompetitionPhase(DualCompetitionPhase):
    """Train encoder and prototypes together, watching that the embedding does not collapse.

    A constant embedding has no quantisation error at all, so nothing in that loss keeps the
    encoder from it. Three things do: losses in units of the present variance, in which
    shrinking changes nothing; the reconstruction; and a slow encoder. Should the embedding shrink
    nevertheless the user is warned, and one that is lost goes back to its last good state.
    """

    def __init__(
        self, *, normalize_embedding, encoder_lr, reconstruction_weight, hidden_weight, **settings
    ):
        super().__init__(**settings)
        self.normalize_embedding = normalize_embedding
        self.encoder_lr = encoder_lr
        self.reconstruction_weight = reconstruction_weight
        self.hidden_weight = hidden_weight

    def begin(self, run):
        index = run.tensors["anchors"]
        run.tensors["anchor_rows"] = run.rows.gather(index, out=run.rows.empty(len(index)))
        run.values.update(has_shrunk=False, displacement_ratios=0.0, n_displacements=0)
        super().begin(run)
        run.values["first_variance"] = run.values["scale"] ** 2
        self._keep_good(run)

    def _keep_embedding(self, run, anchors):
        run.tensors["anchor_embedding"] = anchors

    def trained_parameters(self, network):
        layer = super().trained_parameters(network)
        encoder = list(network.encoder.parameters())
        if self._reconstructs(network):
            encoder += network.decoder.parameters()
        return [*layer, *(p for p in encoder if p.requires_grad)]

    def _reconstructs(self, network):
        return network.decoder is not None and self.reconstruction_weight > 0

    def optimizer(self, parameters):
        # The layer has a single parameter; it comes first.
        groups = [
            {"params": parameters[:1], "lr": self.lr},
            {"params": parameters[1:], "lr": self.encoder_lr},
        ]
        return torch.optim.Adam(groups, lr=self.lr, fused=True)

    def batch_loss(self, run, batch):
        z, anchors, reconstruction = self._embed(run, batch)
        if run.values["step"] % _VARIANCE_STEPS == 0:
            follow_variance(run, anchors.detach(), _VARIANCE_RATE)
        terms = self.competition_terms(run, z, run.network.competition(anchors))
        if reconstruction is not None:
            terms["reconstruction"] = self.reconstruction_weight * reconstruction
        return terms

    def _embed(self, run, batch):
        """Return the scaled batch and anchors from one pass, and the reconstruction loss."""
        n_anchors = len(run.tensors["anchors"])
        sees_all = len(batch.rows) == len(run.rows) == n_anchors
        rows = batch.rows
        if not sees_all:
            rows = torch.cat([rows, run.tensors["anchor_rows"].to(rows)])
        z, reconstruction = self._pass(run, rows)
        z = self.scaled(run, z)
        if sees_all:
            # The weights of the layer refer to the rows in their own order.
            anchors = z[batch.row_numbers.argsort().to(z.device)]
        else:
            z, anchors = z[:-n_anchors], z[-n_anchors:]
        if self.normalize_embedding:
            deviation = total_variance(anchors).clamp_min(_TINY).sqrt()
            z, anchors = z / deviation, anchors / deviation
        return z, anchors, reconstruction

    def n_cooling_steps(self, run):
        # Before the prototypes have come apart an encoder would stretch the embedding along
        # the one direction that they have found.
        return math.ceil(_WARM_UP_SHARE * self.n_steps(run))

    def _pass(self, run, rows):
        network = run.network
        if run.values["step"] < self.n_cooling_steps(run):
            network.eval()
            with torch.no_grad():
                return network(rows), None
        network.train()
        if self._reconstructs(network):
            return denoising_pass(network, rows, self.hidden_weight)
        return network(rows), None

    def end_epoch(self, run):
        before = run.tensors["anchor_embedding"], self._scaled_centers(run)
        anchors = self._take_units(run)
        variance = self._variance_share(run, anchors)
        if not math.isfinite(variance) or variance < _LOST_SHARE:
            self._return_to_good(run, variance)
            anchors = self._take_units(run)
        elif variance >= _SHRUNKEN_SHARE:
            self._keep_good(run)
        elif not run.values["has_shrunk"]:
            run.values["has_shrunk"] = True
            warn_user(
                f"The variance of the embedding fell to {100 * variance:.0f} % of what it was "
                "before the encoder was trained: it may be collapsing. Lower encoder_lr, raise "
                "reconstruction_weight, or keep pretrain='auto' and entropy_weight='temperature'.",
                EncoderCollapseWarning,
            )
        run.tensors["anchor_embedding"] = anchors
        run.values["total_variance"] = float(total_variance(anchors))
        record = super().end_epoch(run)
        record.update(self._displacement(run, before))
        return record

    def _take_units(self, run):
        """Return the scaled clean anchors; with a normalised embedding its units are new."""
        anchors = embed_sample(run, run.tensors["anchors"])
        if self.normalize_embedding:
            run.tensors["center"] = anchors.double().mean(dim=0)
            deviation = float(total_variance(anchors.double())) ** 0.5
            run.values["scale"] = deviation or run.values["scale"]
        return self.scaled(run, anchors)

    @staticmethod
    def _variance_share(run, anchors):
        """Return the variance of the embedding as a share of the first."""
        unit = run.values["scale"] ** 2 / run.values["first_variance"]
        return float(total_variance(anchors)) * unit

    @staticmethod
    def _keep_good(run):
        weights = run.network.state_dict()
        run.tensors.update({_GOOD + name: value.clone() for name, value in weights.items()})

    @staticmethod
    def _return_to_good(run, variance):
        good = {
            name.removeprefix(_GOOD): value
            for name, value in run.tensors.items()
            if name.startswith(_GOOD)
        }
        run.network.load_state_dict(good)
        run.stop(
            f"the embedding collapsed to {100 * variance:.2g} % of its first variance; the state "
            "before was taken"
        )
        warn_user(
            f"Training stopped in {run.where()}: {run.stop_reason}. Lower encoder_lr, raise "
            "reconstruction_weight, or keep pretrain='auto'.",
            EncoderCollapseWarning,
        )

    def _scaled_centers(self, run):
        return self.scaled(run, run.tensors["centers"])

    def _displacement(self, run, before):
        """Return how far the embedding moved in this epoch, against the prototypes."""
        moved = _root_mean_square_move(run.tensors["anchor_embedding"], before[0])
        if not moved:
            return {}
        ratio = moved / max(_root_mean_square_move(self._scaled_centers(run), before[1]), _TINY)
        values = run.values
        values["displacement_ratios"] += ratio
        values["n_displacements"] += 1
        is_last = run.epoch + 1 == self.max_epochs
        mean = values["displacement_ratios"] / values["n_displacements"]
        if is_last and mean > _MAX_DISPLACEMENT_RATIO:
            warn_user(
                f"The embedding moved {mean:.2g} times as far an epoch as the prototypes, which "
                "cannot follow it. Lower encoder_lr or raise lr.",
                EncoderCollapseWarning,
            )
        return {"displacement_ratio": ratio}


def total_variance(anchors):
    """Return the trace of the covariance of anchors."""
    return (anchors - anchors.mean(dim=0)).square().sum(dim=1).mean()


def _root_mean_square_move(after, before):
    return float((after - before).square().sum(dim=1).mean().sqrt())


def follow_variance(run, anchors, rate):
    """Move the largest variance of the run a part of the way to that of these anchors."""
    centered = anchors - anchors.mean(dim=0)
    present = float(torch.linalg.svdvals(centered)[0]) ** 2 / len(anchors)
    before = run.values["largest_variance"]
    # Anchors that are all equal leave any temperature as good as another.
    run.values["largest_variance"] = before + rate * (present - before) or before
