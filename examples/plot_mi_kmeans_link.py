"""How mutual information and K-means are linked, in numbers: three propositions of the paper.

Paper: arXiv:1810.04246. Usage: python examples/plot_mi_kmeans_link.py [PICTURE]
"""

import sys
from itertools import pairwise

import torch
from matplotlib.figure import Figure

from skdeepclust import losses

LAMBDA, K = 0.25, 2
COLOURS = {"exact targets": "#bd1f01", "closed form": "#717581", "mini-batches": "#1f4e9c"}


def main(picture="mi_kmeans_link.png", n_rounds=12):
    """Print what the propositions say, and draw the third."""
    Z = torch.randn(120, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    Z[:, 0] += torch.tensor([1.2, -1.2], dtype=torch.float64).repeat(60)
    alternating_directions_give_depict(Z)
    regularised_information_is_soft_kmeans(Z)
    curves = {name: information_of_free_rows(name, n_rounds) for name in list(COLOURS)[:2]}
    curves["mini-batches"] = information_of_mini_batches(Z, n_rounds)
    print("3. Exact steps never lower the mutual information. Its largest fall in a round:")
    for name, curve in curves.items():
        print(f"   {name:13} {max(0.0, *(a - b for a, b in pairwise(curve))):.1e}")
    draw(curves, picture)
    print(f"\nThe mutual information in each round: {picture}")


def alternating_directions_give_depict(Z):
    """Compare DEPICT's objective with the penalised information for two sets of targets."""
    log_p = losses.log_posterior(Z, Z[:K], torch.zeros(K, dtype=torch.float64))
    sums = []
    for q in (log_p.exp().flip(0), losses.exact_targets(log_p, 1.0, 1.0).targets):
        balance = losses.entropy(q.mean(0)) - losses.conditional_entropy(log_p.exp())
        penalised = balance - losses.kl_divergence(q, log_p)
        sums.append(float(losses.depict_objective(q, log_p) + penalised))
    print("1. With the entropy taken of P, the targets of alternating directions are DEPICT's.")
    print(f"   Sum of both objectives for two sets of targets: {sums[0]:.9f}, {sums[1]:.9f}\n")


def regularised_information_is_soft_kmeans(Z):
    """Compare both objectives for balanced targets; rows and their mirror images make them so."""
    q = torch.sigmoid(3 * Z[:, :1])
    q, Z = torch.cat([torch.cat([q, 1 - q], 1), torch.cat([1 - q, q], 1)]), torch.cat([Z, -Z])
    centers = losses.weighted_centers(q, Z)
    weights = centers / (LAMBDA * K)
    logits = Z @ weights.T + torch.tensor(1 / K, dtype=torch.float64).log() / 2
    normaliser = 2 * torch.logsumexp(logits, 1).mean()
    left = -losses.mi_adm_objective(q, torch.log_softmax(logits, 1))
    left += LAMBDA * weights.square().sum() - normaliser
    right = losses.soft_kmeans_objective(Z, q, centers, LAMBDA * K) / (len(Z) * LAMBDA * K)
    print("2. For balanced targets: regularised information without its normaliser, and soft")
    print(f"   K-means: {left:.9f}, {right:.9f}. The normaliser left out is {normaliser:.3f}\n")


def information_of_free_rows(name, n_rounds):
    """Return the mutual information after each round of one kind of targets."""
    # The most flexible classifier, which takes over its targets, on eight unbalanced rows.
    start = torch.rand(8, 3, generator=torch.Generator().manual_seed(1302), dtype=torch.float64)
    p, curve = start**6 + 1e-3, []
    for _ in range(n_rounds):
        p = p.clamp(min=1e-300) / p.sum(1, keepdim=True)
        curve.append(float(losses.mutual_information(p)))
        exact = losses.exact_targets(p.log(), 2.0, 1.0).targets
        p = exact if name == "exact targets" else losses.closed_form_targets(p.log(), 2.0, 1.0)
    return curve


def information_of_mini_batches(Z, n_rounds):
    """Return the same for a linear head and large steps on eight rows at a time."""
    head = [(0.2 * Z[:K]).requires_grad_(), torch.zeros(K, dtype=Z.dtype, requires_grad=True)]
    optimiser, curve = torch.optim.SGD(head, lr=8.0), []
    for _ in range(n_rounds):
        log_p = losses.log_posterior(Z, *head).detach()
        curve.append(float(losses.mutual_information(log_p.exp())))
        q = losses.exact_targets(log_p, 2.0, 1.0).targets
        for rows in torch.arange(len(Z)).split(8):
            optimiser.zero_grad()
            losses.cross_entropy(q[rows], losses.log_posterior(Z[rows], *head)).backward()
            optimiser.step()
    return curve


def draw(curves, picture):
    """Draw the mutual information over the rounds."""
    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.subplots()
    for name, curve in curves.items():
        axes.plot(curve, color=COLOURS[name], linewidth=2, marker="o", label=name)
    axes.set(xlabel="round", ylabel="mutual information (nats)", title="Exact steps never lower it")
    axes.legend(frameon=False)
    figure.savefig(picture, dpi=120)


if __name__ == "__main__":
    main(*sys.argv[1:])
