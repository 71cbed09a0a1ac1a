"""Block 4: MNIST and CIFAR-10 through encoders that stay as they are."""

import numpy as np
import torch
from sklearn.cluster import KMeans
from torch import nn

from skdeepclust import DDCL
from skdeepclust.datasets import fetch_cifar10, fetch_mnist
from skdeepclust.losses import quantization_parts, soft_assignments
from skdeepclust.training.seeds import isolated_torch_randomness

from .ddcl_low_dimensional import scores_of

_AUTOENCODER = {"hidden_dims": [500], "embedding_dim": 32, "max_epochs": 10, "random_state": 0}
VARIANTS = {
    "bare error": {"entropy_weight": 0.0},
    "reconstruction": {"entropy_weight": 0.0, "loss": "reconstruction"},
    "free energy": {},
    "reconstruction and entropy": {"loss": "reconstruction"},
    "bare error, all rows anchors": {"entropy_weight": 0.0, "anchors": "all"},
    "reconstruction, all rows anchors": {
        "entropy_weight": 0.0,
        "loss": "reconstruction",
        "anchors": "all",
    },
}


def measure(cells, seeds, autoencoders):
    """Fit every variant to each embedding, and compare the gradients at the embedding."""
    for data in ("mnist, test images", "cifar-10, test images"):
        for encoder in ("random convolutions", "autoencoder"):
            X, y = _embedding(data, encoder, autoencoders)
            table = f"{data}, {encoder}"
            for seed in seeds[:3]:
                models = {name: DDCL(10, random_state=seed, **p) for name, p in VARIANTS.items()}
                models["KMeans, n_init=10"] = KMeans(10, n_init=10, random_state=seed)
                for name, model in models.items():
                    cells.add(table, name, seed, lambda m=model, X=X, y=y: scores_of(m, X, y))
                cells.add(table, "gradients", seed, lambda X=X, s=seed: _gradient_gap(X, s))


def _embedding(data, encoder, autoencoders):
    fetch = fetch_mnist if data.startswith("mnist") else fetch_cifar10
    found = fetch(subset="test")
    rows, shape = found.data, found.image_shape
    if encoder == "autoencoder":
        return autoencoders.get(rows, _AUTOENCODER)[0].transform(rows), found.target
    with isolated_torch_randomness(0):
        network = nn.Sequential(
            nn.Conv2d(shape[0], 32, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(32, 64, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(2),
            nn.Flatten(),
        )
    images = torch.from_numpy(rows.reshape(-1, *shape).astype(np.float32) / 255)
    with torch.no_grad():
        parts = [network(part) for part in images.split(1_000)]
    return torch.cat(parts).numpy(), found.target


def _gradient_gap(X, seed):
    """Return the largest difference of the two losses' gradients at fixed assignments."""
    z = torch.from_numpy(X[:2_000].astype(np.float64)).requires_grad_()
    generator = torch.Generator().manual_seed(seed)
    prototypes = z.detach()[torch.randperm(len(z), generator=generator)[:10]]
    q = soft_assignments(z.detach(), prototypes, float(z.detach().var(dim=0).sum()))
    parts = quantization_parts(z, prototypes, q)
    first, second = (
        torch.autograd.grad(part.sum(), z, retain_graph=True)[0]
        for part in (parts.quantization, parts.reconstruction)
    )
    return {"largest_gradient_difference": float((first - second).abs().max())}
