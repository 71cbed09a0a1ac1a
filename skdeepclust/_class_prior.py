"""The expected proportions of the clusters."""

import numpy as np
import torch


def log_class_prior(class_prior, n_clusters):
    """Return the logarithms of the proportions as a float64 tensor; None for the uniform prior."""
    if class_prior is None:
        return None
    prior = np.asarray(class_prior, dtype=np.float64)
    if prior.shape != (n_clusters,):
        raise ValueError(
            f"class_prior has shape {prior.shape}, expected ({n_clusters},): one "
            "proportion for each of the n_clusters."
        )
    if not np.isfinite(prior).all() or (prior <= 0).any():
        raise ValueError("class_prior must hold positive finite proportions.")
    return torch.from_numpy(np.log(prior / prior.sum()))


def names_clusters(init):
    """Whether `init` says which cluster is which: labels or centres, whose order is kept."""
    return not isinstance(init, str) and not hasattr(init, "fit")


def prior_of_run(log_prior, run, *, is_ordered):
    """Return the prior with one value for each cluster of `run`.

    Unless the order `is_ordered` as the user's labels or centres are, the largest proportion
    goes to the largest cluster of the first partition, and so on: ids mean nothing else before.
    """
    if "labels" not in run.tensors:
        # A fit that continues: the clusters have their proportions already.
        return run.tensors.get("log_prior", log_prior)
    if is_ordered:
        return log_prior
    return matched_by_size(log_prior, run.tensors["labels"])


def matched_by_size(prior, labels):
    """Return the values of `prior` so that the largest stands at the largest cluster, and so on."""
    sizes = torch.bincount(labels, minlength=len(prior))
    matched = torch.empty_like(prior)
    matched[torch.argsort(sizes, descending=True, stable=True)] = prior.sort(descending=True).values
    return matched


def continued_prior(log_prior, fitted):
    """Return `fitted`, the prior of an earlier fit, if it holds the same proportions, else the
    new one in the order of the ids.
    """
    if log_prior is None or fitted is None:
        return log_prior
    same = torch.allclose(log_prior.sort().values, fitted.sort().values, rtol=1e-9, atol=0)
    return fitted if same else log_prior
