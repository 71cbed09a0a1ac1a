"""How the targets of the classifier are found: one rule for each method."""

from dataclasses import dataclass

import torch

from .losses import (
    closed_form_targets,
    exact_targets,
    mutual_information,
    self_training_targets,
)


@dataclass(frozen=True)
class MutualInformationRule:
    """Targets that maximise the alternating form of the mutual information.

    Parameters
    ----------
    penalty_weight : float
        Weight ``a`` of ``KL(Q || P)``: the sharpness is ``(1 + a) / a`` and the balance ``1 / a``.
    is_exact : bool
        Whether :func:`exact_targets` is used where the whole data are at hand.
    """

    penalty_weight: float
    is_exact: bool

    @property
    def mass_power(self):
        """Power of the posterior whose column sums balance the targets."""
        return (1 + self.penalty_weight) / self.penalty_weight

    def targets(self, log_posterior, log_prior, log_mass=None):
        """Return the targets; those of a part of the data need the `log_mass` of all."""
        settings = (log_posterior, self.mass_power, 1 / self.penalty_weight, log_prior)
        if self.is_exact and log_mass is None:
            return exact_targets(*settings).targets
        return closed_form_targets(*settings, log_mass)

    def objective(self, log_posterior, log_prior):
        """Return what is minimised: ``-I(P)``, or ``KL(p || d) + H(Y|X)`` with a prior.

        The two differ by ``log n_clusters`` for equal proportions.
        """
        posterior = log_posterior.exp()
        value = -mutual_information(posterior)
        if log_prior is not None:
            value = value - (posterior.mean(dim=0) * log_prior).sum()
        return float(value)


@dataclass(frozen=True)
class RelativeEntropyRule:
    """DEPICT's targets.

    Parameters
    ----------
    balance : float
        Weight of the divergence of the cluster proportions from the prior.
    is_released : bool
        Whether the targets are ``p^2 / sum p`` of the released code, in place of
        ``p / (sum p)^(balance / (1 + balance))`` of the paper.
    """

    balance: float
    is_released: bool

    mass_power = 1.0

    def targets(self, log_posterior, log_prior, log_mass=None):
        """Return the targets; those of a part of the data need the `log_mass` of all."""
        if self.is_released:
            return self_training_targets(log_posterior, log_mass, log_prior)
        return closed_form_targets(log_posterior, 1.0, self.balance, log_prior, log_mass)

    def objective(self, log_posterior, log_prior):
        """Return the minimum over all targets of ``KL(Q || P) + balance * KL(q || d)``."""
        return float(exact_targets(log_posterior, 1.0, self.balance, log_prior).objective)


def adaptive_log_prior(proportions, share):
    """Return the logarithms of ``(1 - share) q_k + share / n_clusters``."""
    return torch.log((1 - share) * proportions + share / len(proportions))
