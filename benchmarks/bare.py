"""The loops a reader would write by hand: plain PyTorch, one tensor in memory, no logging."""

import torch

from skdeepclust.losses import (
    closed_form_targets,
    hard_kmeans_batch_loss,
    log_posterior,
    multilevel_reconstruction_loss,
    nearest_centers,
    self_training_targets,
    soft_assignments,
    soft_kmeans_batch_loss,
    summed_reconstruction_loss,
    update_running_centers,
    weighted_centers,
)

_HIDDEN_WEIGHT = 0.1
_REFRESH_ROWS = 1024


class BareLoop:
    """State of a hand-written joint phase over the rows of one float32 tensor.

    Parameters
    ----------
    X : Tensor of shape (n_rows, n_features)
    network : EmbeddingNetwork
        Trained in place.
    centers : Tensor of shape (n_clusters, embedding_dim)
    batch_size : int
    lr : float
    """

    def __init__(self, X, network, centers, batch_size, lr):
        self.X = X
        self.network = network
        self.centers = centers.double()
        self.batch_size = batch_size
        parameters = [p for p in network.parameters() if p.requires_grad]
        self.optimizer = torch.optim.Adam(parameters, lr=lr, fused=True)
        self.refresh()

    def epoch(self):
        """Train one pass over the shuffled rows, then refresh the targets."""
        self.network.train()
        order = torch.randperm(len(self.X))
        buffer = torch.empty(self.batch_size, self.X.shape[1])
        for index in order.split(self.batch_size):
            rows = torch.index_select(self.X, 0, index, out=buffer[: len(index)])
            self.step(rows, index)
        self.network.eval()
        self.refresh()

    def step(self, rows, index):
        """Take one optimiser step on `rows`, which stand at `index`."""
        self.optimizer.zero_grad(set_to_none=True)
        self.loss(rows, index).backward()
        self.optimizer.step()

    def loss(self, rows, index):
        """Return the loss of a batch."""
        raise NotImplementedError

    def refresh(self):
        """Recompute what is fixed during an epoch, on all rows."""
        raise NotImplementedError

    @torch.inference_mode()
    def embed(self):
        """Return the clean embedding of all rows."""
        return torch.cat([self.network(rows) for rows in self.X.split(_REFRESH_ROWS)])


def _denoised(network, rows):
    """Return the noisy embedding of `rows` and the reconstruction loss."""
    embedding, levels, reconstructions = network.denoise(rows)
    weights = [1.0] + [_HIDDEN_WEIGHT] * (len(levels) - 1)
    return embedding, multilevel_reconstruction_loss(reconstructions, levels, weights)


class BareSRKMeans(BareLoop):
    """SR-K-means: assignments and centres fixed in an epoch, both refreshed after it."""

    def __init__(self, X, network, centers, batch_size, lr, temperature, weight):
        self.temperature = temperature
        self.weight = weight
        self.assignments = None
        super().__init__(X, network, centers, batch_size, lr)

    def loss(self, rows, index):
        embedding, reconstruction = _denoised(self.network, rows)
        clustering = soft_kmeans_batch_loss(
            embedding, self.targets[index], self.fixed_centers, self.weight, self.mean
        )
        return reconstruction + clustering

    def refresh(self):
        z = self.embed().double()
        if self.assignments is not None:
            self.centers = weighted_centers(self.assignments, z)
        self.assignments = soft_assignments(z, self.centers, self.temperature)
        self.targets = self.assignments.float()
        self.fixed_centers = self.centers.float()
        self.mean = z.mean(dim=0).float()


class BareDCN(BareLoop):
    """DCN: after each step the rows of the batch choose their centres, which move."""

    def __init__(self, X, network, centers, batch_size, lr):
        self.counts = torch.full((len(centers),), 100.0, dtype=torch.float64)
        super().__init__(X, network, centers, batch_size, lr)

    def step(self, rows, index):
        super().step(rows, index)
        with torch.no_grad():
            z = self.network(rows).double()
        self.labels[index] = labels = nearest_centers(z, self.centers)
        self.centers, self.counts = update_running_centers(self.centers, self.counts, z, labels)

    def loss(self, rows, index):
        scaled = self.network.scaling(rows)
        embedding = self.network.encoder(scaled)
        reconstruction = summed_reconstruction_loss(self.network.decoder(embedding)[0], scaled)
        clustering = hard_kmeans_batch_loss(embedding, self.labels[index], self.centers.float())
        return reconstruction + clustering

    def refresh(self):
        self.labels = nearest_centers(self.embed().double(), self.centers)


class BareClassifier(BareLoop):
    """MI-ADM or DEPICT: targets fixed in an epoch and refreshed after it."""

    def __init__(self, X, network, centers, batch_size, lr, is_depict):
        self.is_depict = is_depict
        super().__init__(X, network, centers, batch_size, lr)

    def loss(self, rows, index):
        embedding, reconstruction = _denoised(self.network, rows)
        head = self.network.head
        log_p = log_posterior(embedding, head.weight, head.bias)
        return reconstruction - (self.targets[index] * log_p).sum() / len(rows)

    @torch.inference_mode()
    def refresh(self):
        head = self.network.head
        log_p = log_posterior(self.embed().double(), head.weight.double(), head.bias.double())
        if self.is_depict:
            self.targets = self_training_targets(log_p).float()
        else:
            self.targets = closed_form_targets(log_p, sharpness=2.0, balance=1.0).float()


@torch.inference_mode()
def forward_in_batches(network, X, batch_size):
    """Return the embedding of the rows of `X`, read in batches without padding."""
    return torch.cat([network(rows) for rows in X.split(batch_size)])
