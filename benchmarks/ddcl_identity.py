"""The decomposition of the quantisation error at every step of a long run in float64."""

import torch
from sklearn.datasets import make_blobs

from skdeepclust.losses import log_soft_assignments, quantization_parts
from skdeepclust.nn.dual_competitive_layer import DualCompetitiveLayer

N_STEPS = 100_000
_N_ROWS, _N_CLUSTERS = 200, 4


def measure(cells, seeds, autoencoders):
    """Train on the bare error and on the free energy."""
    for row in ("bare error", "free energy"):
        cells.add(f"{N_STEPS:,} steps", row, 0, lambda r=row: _largest_error(r))


def _largest_error(objective):
    X, _ = make_blobs(_N_ROWS, n_features=5, centers=_N_CLUSTERS, random_state=0)
    z = torch.from_numpy(X - X.mean(axis=0))
    z = z / z.square().sum(dim=1).mean().sqrt()
    layer = DualCompetitiveLayer(len(z), _N_CLUSTERS, torch.Generator().manual_seed(0)).double()
    optimizer = torch.optim.Adam(layer.parameters(), lr=0.1)
    largest = float(torch.linalg.svdvals(z)[0]) ** 2 / len(z)
    worst, smallest = 0.0, float("inf")
    for step in range(N_STEPS):
        temperature = largest * 2.0 * 0.25 ** (step / (N_STEPS - 1))
        prototypes = layer(z)
        log_q = log_soft_assignments(z, prototypes, temperature)
        parts = quantization_parts(z, prototypes, log_q.exp())
        loss = total = parts.quantization.mean()
        if objective == "free energy":
            loss = total + temperature * (log_q.exp() * log_q).sum(dim=1).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        gap = total - (parts.reconstruction + parts.spread).mean()
        worst = max(worst, abs(float(gap.detach())) / float(total.detach()))
        smallest = min(smallest, float(parts.spread.detach().min()))
    return {"largest_relative_error": worst, "smallest_spread": smallest}
