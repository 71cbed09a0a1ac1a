"""Clustering and reconstruction losses as pure functions of torch tensors."""

from .activity_regularization import (
    ActivityTerms,
    activity_affinity,
    activity_balance,
    activity_coactivity,
    activity_terms,
    scaled_frobenius,
)
from .hard_kmeans import (
    hard_kmeans_batch_loss,
    nearest_centers,
    update_running_centers,
)
from .mutual_information import (
    conditional_entropy,
    cross_entropy,
    depict_objective,
    entropy,
    kl_divergence,
    log_posterior,
    mi_adm_objective,
    mutual_information,
)
from .pseudo_supervision import (
    distance_memberships,
    pooled_log_probabilities,
    pseudo_supervised_cross_entropy,
    slot_table,
)
from .reconstruction import (
    multilevel_reconstruction_loss,
    summed_reconstruction_loss,
)
from .soft_kmeans import (
    log_soft_assignments,
    soft_assignments,
    soft_kmeans_batch_loss,
    soft_kmeans_free_energy,
    soft_kmeans_objective,
    squared_distances,
    update_center_statistics,
    weighted_centers,
)
from .soft_kmeans_variants import (
    critical_temperature,
    penalized_soft_assignments,
    rescaled_soft_assignments,
    rescaled_soft_kmeans_objective,
    softmax_head_from_centers,
)
from .target_updates import (
    ExactTargets,
    closed_form_targets,
    exact_targets,
    self_training_targets,
    target_objective,
    update_cluster_mass,
)

__all__ = [
    "ActivityTerms",
    "ExactTargets",
    "activity_affinity",
    "activity_balance",
    "activity_coactivity",
    "activity_terms",
    "closed_form_targets",
    "conditional_entropy",
    "critical_temperature",
    "cross_entropy",
    "depict_objective",
    "distance_memberships",
    "entropy",
    "exact_targets",
    "hard_kmeans_batch_loss",
    "kl_divergence",
    "log_posterior",
    "log_soft_assignments",
    "mi_adm_objective",
    "multilevel_reconstruction_loss",
    "mutual_information",
    "nearest_centers",
    "penalized_soft_assignments",
    "pooled_log_probabilities",
    "pseudo_supervised_cross_entropy",
    "rescaled_soft_assignments",
    "rescaled_soft_kmeans_objective",
    "scaled_frobenius",
    "self_training_targets",
    "slot_table",
    "soft_assignments",
    "soft_kmeans_batch_loss",
    "soft_kmeans_free_energy",
    "soft_kmeans_objective",
    "softmax_head_from_centers",
    "squared_distances",
    "summed_reconstruction_loss",
    "target_objective",
    "update_center_statistics",
    "update_cluster_mass",
    "update_running_centers",
    "weighted_centers",
]
