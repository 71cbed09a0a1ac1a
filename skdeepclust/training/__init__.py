"""The training core: one skorch net, phases declared by the methods, batches by slices."""

__all__ = ["TrainingCheckpoint"]


def __getattr__(name):
    # On first use: the modules of this package import one another through it.
    if name == "TrainingCheckpoint":
        from .checkpoint import TrainingCheckpoint

        return TrainingCheckpoint
    raise AttributeError(f"module 'skdeepclust.training' has no attribute {name!r}")
