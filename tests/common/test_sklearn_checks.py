"""scikit-learn's own checks over all estimators: nothing expected to fail, nothing skipped."""

import os

import pytest
from sklearn.utils import estimator_checks as checks
from sklearn.utils.estimator_checks import parametrize_with_checks

from tests.common.estimators import ESTIMATORS, takes_pretraining


def _cheap_estimators():
    """Return every estimator with a small network, and clusterers with the identity too."""
    small = {"hidden_dims": (16,), "embedding_dim": 4, "random_state": 0}
    identity = {"encoder": "identity", "pretrain": None, "random_state": 0}
    estimators = []
    for cls, cheap in ESTIMATORS:
        # Four clusters, because the checks of sparse input want four columns of predict_proba.
        four = {"n_clusters": 4} if "n_clusters" in cheap else {}
        estimators.append(cls(**{**cheap, **small, **four}))
        if takes_pretraining(cls) and "train_encoder" not in cheap:
            estimators.append(cls(**{**cheap, **identity, **four}))
    return estimators


@pytest.fixture(autouse=True)
def _array_api_is_on():
    # Without it scipy is imported without array API support and one check is never run.
    assert os.environ.get("SCIPY_ARRAY_API") == "1"


@pytest.mark.filterwarnings("error::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks(_cheap_estimators())
def test_check(estimator, check):
    check(estimator)


_FURTHER_CHECKS = [
    "check_dataframe_column_names_consistency",
    "check_param_validation",
    "check_inplace_ensure_writeable",
    "check_get_feature_names_out_error",
    "check_transformer_get_feature_names_out",
    "check_transformer_get_feature_names_out_pandas",
    "check_set_output_transform",
    "check_set_output_transform_pandas",
    "check_set_output_transform_polars",
    "check_global_output_transform_pandas",
    "check_global_set_output_transform_polars",
]


@pytest.mark.parametrize("name", _FURTHER_CHECKS)
@pytest.mark.parametrize(
    "estimator", _cheap_estimators(), ids=lambda e: f"{type(e).__name__}-{e.encoder}"
)
def test_check_that_scikit_learn_runs_only_on_itself(estimator, name):
    getattr(checks, name)(type(estimator).__name__, estimator)
