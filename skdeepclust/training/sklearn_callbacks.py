"""The bridge to `sklearn.callback`, the one module that knows this experimental API."""

from sklearn.callback import CallbackSupportMixin, with_callbacks

__all__ = ["CallbackSupportMixin", "FitReport", "fit_report", "with_callbacks"]


class FitReport:
    """Reports a fit to scikit-learn's callbacks: the fit, its phases, their epochs.

    Parameters
    ----------
    estimator : estimator
        The estimator being fitted, on which the callbacks are set.
    X, y : array-like
        Handed to the callbacks that ask for them.
    fitted_attributes : callable
        Returns the attributes of the estimator as if the fit ended now, or None as long as
        there is no partition. Called only for callbacks that ask for a fitted estimator.
    """

    def __init__(self, estimator, X, y, fitted_attributes):
        self._estimator = estimator
        self._data = {"X": X, "y": y}
        self._fitted_attributes = fitted_attributes
        self._fit = self._phase = self._epoch = None

    def begin_fit(self):
        """Report the beginning of the fit."""
        # Phases without epochs are not reported, so their number is not known in advance.
        self._fit = self._estimator._init_callback_context(task_name="fit", max_subtasks=None)
        self._fit.call_on_fit_task_begin(estimator=self._estimator, **self._data)

    def end_fit(self):
        """Report the end of the fit."""
        self._end(self._fit)

    def begin_phase(self, phase):
        """Report the beginning of `phase`."""
        self._phase = self._fit.subcontext(task_name=phase.name, max_subtasks=phase.max_epochs)
        self._phase.call_on_fit_task_begin(estimator=self._estimator, **self._data)

    def end_phase(self, phase):
        """Report the end of `phase`."""
        self._end(self._phase)

    def begin_epoch(self):
        """Report the beginning of an epoch."""
        self._epoch = self._phase.subcontext(task_name="epoch")
        self._epoch.call_on_fit_task_begin(estimator=self._estimator, **self._data)

    def end_epoch(self):
        """Report the end of an epoch; return whether a callback asks to stop."""
        return self._end(self._epoch)

    def _end(self, context):
        return context.call_on_fit_task_end(
            estimator=self._estimator,
            reconstruction_attributes=self._fitted_attributes,
            **self._data,
        )


def fit_report(estimator, X, y, fitted_attributes):
    """Return the report of a fit, or None where nobody listens."""
    listens = hasattr(estimator, "_skl_callbacks") or hasattr(estimator, "_parent_callback_ctx")
    return FitReport(estimator, X, y, fitted_attributes) if listens else None
