"""One integer becomes all random streams of a fit, without touching global generators."""

import hashlib
from contextlib import contextmanager

import numpy as np
import torch
from sklearn.utils import check_random_state


def draw_seed(random_state):
    """Return one integer seed; ``None`` draws exactly one from NumPy's global generator."""
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


def derive_seed(seed, *names):
    """Return a 31-bit seed for the stream that `names` describe.

    Streams depend on the seed and on the names alone, never on how many numbers were
    drawn before: a run that resumes at an epoch sees the numbers of the uninterrupted run.
    """
    digest = hashlib.blake2b(repr((int(seed), *names)).encode(), digest_size=4)
    return int.from_bytes(digest.digest(), "little") >> 1


def torch_generator(seed, *names):
    """Return a CPU generator for the stream that `names` describe."""
    return torch.Generator().manual_seed(derive_seed(seed, *names))


@contextmanager
def isolated_torch_randomness(seed, device="cpu"):
    """Seed torch's generators inside the block and restore them on leaving it.

    Layers such as dropout and the constructors of modules draw from torch's global
    generator and take no other; this is the one place where it is lent to them.
    """
    device = torch.device(device)
    cuda_devices = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=cuda_devices):
        torch.default_generator.manual_seed(seed)
        if cuda_devices:
            with torch.cuda.device(device):
                torch.cuda.manual_seed(seed)
        yield
