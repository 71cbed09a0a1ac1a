"""Displays of fitted estimators; they need matplotlib."""

from ._training_history import TrainingHistoryDisplay

__all__ = ["TrainingHistoryDisplay"]
