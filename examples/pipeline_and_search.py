"""Tune SRKMeans inside a Pipeline without labels, get a DataFrame from it, save it, load it.

The search is scored by the silhouette of held-out rows in the space of the pixels. A score
taken in the embedding would be no judge, since every candidate has another embedding and a
smaller one looks tighter. The silhouette favours round clusters, so it is a hint and no truth;
the accuracy printed at the end was not used for anything.

Usage: python examples/pipeline_and_search.py [MODEL_FILE]
"""

import sys
import time

import numpy as np
import pandas as pd
from sklearn.datasets import load_digits
from sklearn.feature_selection import VarianceThreshold
from sklearn.metrics import silhouette_score
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import Pipeline

from skdeepclust import SRKMeans, load
from skdeepclust.metrics import clustering_accuracy
from skdeepclust.pretraining import DenoisingAutoencoder


def silhouette_of_new_rows(model, X, y=None):
    """Score a fitted clusterer on held-out rows, without labels and outside its embedding."""
    clusters = model.predict(X)
    if len(np.unique(clusters)) < 2:
        return -1.0
    return silhouette_score(X, clusters)


def main(model_file="digits_model.zip", n_samples=900, max_epochs=20):
    """Search, report, and save the best clusterer to `model_file`."""
    digits = load_digits(as_frame=True)
    X, X_new, _, new_classes = train_test_split(
        digits.data[:n_samples], digits.target[:n_samples], test_size=0.25, random_state=0
    )
    pipeline = Pipeline(
        [
            ("drop_constant_pixels", VarianceThreshold()),
            (
                "cluster",
                SRKMeans(
                    n_clusters=10,
                    pretrain=DenoisingAutoencoder(max_epochs=max_epochs),
                    warm_up_epochs=max_epochs,
                    max_epochs=max_epochs,
                    random_state=0,
                ),
            ),
        ]
    ).set_output(transform="pandas")
    grid = {"cluster__clustering_weight": [0.02, 0.2], "cluster__init": ["ward", "k-means++"]}
    search = GridSearchCV(pipeline, grid, scoring=silhouette_of_new_rows, cv=2)
    start = time.perf_counter()
    search.fit(X)
    print(f"{len(search.cv_results_['params'])} candidates x 2 folds and one last fit:", end=" ")
    print(f"{time.perf_counter() - start:.1f} s\n")
    results = pd.DataFrame(search.cv_results_)
    results = results[[*(f"param_{name}" for name in grid), "mean_test_score", "rank_test_score"]]
    results.columns = [name.removeprefix("param_cluster__") for name in results.columns]
    print(results.round(3).to_string(index=False))

    best = search.best_estimator_
    print("\nThe embedding as a DataFrame, with the index of X_new:")
    print(best.transform(X_new).iloc[:3, :4].round(3).to_string())

    clusterer = best["cluster"]
    clusterer.save(model_file)
    kept_pixels = best["drop_constant_pixels"].transform(X_new)
    same = np.array_equal(load(model_file).predict(kept_pixels), clusterer.predict(kept_pixels))
    print(f"\nSaved to {model_file}; the loaded model predicts the same clusters: {same}")
    accuracy = clustering_accuracy(new_classes, best.predict(X_new))
    print(f"Accuracy on rows that took no part in anything above: {accuracy:.3f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
