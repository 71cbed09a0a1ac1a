"""Warnings that point at the line of the user."""

import os
import sys
import warnings

import sklearn

_OWN_FOLDERS = tuple(
    os.path.dirname(os.path.abspath(path)) + os.sep for path in (__file__, sklearn.__file__)
)


def warn_user(message, category):
    """Warn at the first line outside this package and scikit-learn.

    Between a fault and the call of the user lie as many frames as there are wrappers of `fit`,
    pipelines and searches.

    Parameters
    ----------
    message : str
        What is wrong, and what to do about it.
    category : type
        Class of the warning.
    """
    frame, level = sys._getframe(1), 2
    while frame.f_back and frame.f_code.co_filename.startswith(_OWN_FOLDERS):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
