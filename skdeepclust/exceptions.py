"""Errors and warnings of skdeepclust: the user's input against our own faults."""

from sklearn.exceptions import ConvergenceWarning

__all__ = [
    "ClusterCollapseWarning",
    "EncoderCollapseWarning",
    "FileFormatError",
    "FitInterruptedWarning",
    "PretextWarning",
    "SortedStreamWarning",
    "TrainingDivergedError",
]


class TrainingDivergedError(FloatingPointError):
    """The loss became nan, infinite or a million times what it was, so training was stopped.

    The message names the phase, the epoch, the batch and the learning rate. An estimator
    that was fitted before keeps its earlier state.

    Examples
    --------
    >>> from skdeepclust.exceptions import TrainingDivergedError
    >>> issubclass(TrainingDivergedError, FloatingPointError)
    True
    """


class ClusterCollapseWarning(ConvergenceWarning):
    """Fewer clusters are used than were asked for.

    Examples
    --------
    >>> from sklearn.exceptions import ConvergenceWarning
    >>> from skdeepclust.exceptions import ClusterCollapseWarning
    >>> issubclass(ClusterCollapseWarning, ConvergenceWarning)
    True
    """


class EncoderCollapseWarning(ConvergenceWarning):
    """An encoder that is trained with its prototypes shrinks the embedding, or outruns them."""


class FitInterruptedWarning(UserWarning):
    """Ctrl-C ended a fit; the estimator holds the state of the last finished epoch."""


class PretextWarning(UserWarning):
    """The transformations that a network learns to name may not lead it to the clusters."""


class SortedStreamWarning(UserWarning):
    """A batch of a stream has other proportions than the stream so far, as sorted rows have."""


class FileFormatError(ValueError):
    """A file is not a model or checkpoint of this package, or it is damaged."""
