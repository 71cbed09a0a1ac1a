"""Curves of the diagnostics that training leaves in `history_`."""

import numpy as np

# What of a record tells where it was taken and not how the training goes.
_PLACES = frozenset({"epoch", "seconds"})
_WIDTH, _HEIGHT = 3.6, 2.4


class TrainingHistoryDisplay:
    """Curves of a training, one panel for each diagnostic.

    It is best made with :meth:`from_estimator`.

    Parameters
    ----------
    history : list of dict
        Records, as in the attribute `history_` of an estimator.

    Attributes
    ----------
    curves_ : dict of str to ndarray of shape (n_records,)
        What can be drawn; nan where a record lacks a diagnostic.
    figure_ : matplotlib.figure.Figure
        After :meth:`plot`.
    axes_ : dict of str to matplotlib.axes.Axes
        Panel of each diagnostic, after :meth:`plot`.

    Raises
    ------
    ValueError
        For a history without records.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from skdeepclust import DDCL
    >>> from skdeepclust.plotting import TrainingHistoryDisplay
    >>> X, _ = make_blobs(n_samples=60, centers=3, random_state=0)
    >>> model = DDCL(n_clusters=3, max_epochs=5, random_state=0).fit(X)
    >>> display = TrainingHistoryDisplay.from_estimator(model, names=["loss", "temperature"])
    >>> list(display.axes_)
    ['loss', 'temperature']
    """

    def __init__(self, history):
        if not history:
            raise ValueError("history is empty; fit the estimator with at least one epoch.")
        self.history = history
        names = dict.fromkeys(name for record in history for name in record)
        self.curves_ = {
            name: np.array([_value(record.get(name)) for record in history])
            for name in names
            if name not in _PLACES and any(_is_number(record.get(name)) for record in history)
        }

    @classmethod
    def from_estimator(cls, estimator, *, names=None, figure=None):
        """Draw the history of a fitted estimator.

        Parameters
        ----------
        estimator : object
            Fitted, with the attribute `history_`.
        names : list of str or None, default=None
            Diagnostics to draw; all by default.
        figure : matplotlib.figure.Figure or None, default=None
            Figure to draw in; a new one by default, which is not shown.

        Returns
        -------
        display : TrainingHistoryDisplay
        """
        if not hasattr(estimator, "history_"):
            raise ValueError(
                f"estimator={type(estimator).__name__} has no history_; fit it first, and pass "
                "the clusterer itself where it is a step of a pipeline."
            )
        return cls(estimator.history_).plot(names=names, figure=figure)

    def plot(self, *, names=None, figure=None):
        """Draw the curves.

        Parameters
        ----------
        names : list of str or None, default=None
            Diagnostics to draw; all by default.
        figure : matplotlib.figure.Figure or None, default=None
            Figure to draw in; a new one by default, which is not shown.

        Returns
        -------
        self : TrainingHistoryDisplay

        Raises
        ------
        ValueError
            For a name that no record has; the message lists those there are.
        """
        from matplotlib.figure import Figure

        names = list(self.curves_) if names is None else list(names)
        unknown = [name for name in names if name not in self.curves_]
        if unknown or not names:
            raise ValueError(
                f"names={names!r} must be some of the diagnostics of this history: "
                f"{', '.join(self.curves_)}."
            )
        n_columns = min(4, len(names))
        n_rows = -(-len(names) // n_columns)
        if figure is None:
            size = _WIDTH * n_columns, _HEIGHT * n_rows
            figure = Figure(figsize=size, layout="constrained")
        panels = figure.subplots(n_rows, n_columns, squeeze=False).ravel()
        for name, axes in zip(names, panels, strict=False):
            axes.plot(np.arange(1, len(self.history) + 1), self.curves_[name])
            axes.set(title=name.replace("_", " "), xlabel="epoch of the training")
        for axes in panels[len(names) :]:
            axes.set_axis_off()
        self.figure_ = figure
        self.axes_ = dict(zip(names, panels, strict=False))
        return self


def _is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _value(value):
    return float(value) if _is_number(value) else np.nan
