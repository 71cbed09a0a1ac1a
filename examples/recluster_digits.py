"""One network, any number of clusters: how digits merge and split by style.

ACOL-GAR learns to name turns and mirrors of the images and never sees a number of clusters, so
`recluster` can read 5, 10 and 20 of them out of one trained network. The labels only score.
Writes recluster_digits.png: the mean image of each cluster, largest first.

Run: python examples/recluster_digits.py
"""

import sys

import matplotlib

matplotlib.use("Agg")  # no window: the picture goes to a file

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.metrics import completeness_score, homogeneity_score, normalized_mutual_info_score

from skdeepclust import ACOLGARClustering

N_CLUSTERS = (5, 10, 20)


def main(picture="recluster_digits.png", *, epochs=100):
    """Train once, read out several numbers of clusters, print scores and draw the clusters."""
    X, y = load_digits(return_X_y=True)
    X = X.astype("float32")
    baseline = KMeans(10, n_init=10, random_state=0).fit_predict(X)
    print(f"KMeans on pixels, 10 clusters: NMI {normalized_mutual_info_score(y, baseline):.3f}")
    model = ACOLGARClustering(
        10, image_shape=(1, 8, 8), embedding_dim=1024, max_epochs=epochs, random_state=0
    ).fit(X)
    last = model.history_[-1]
    print(
        f"After {model.n_iter_} epochs {last['transformation_accuracy']:.0%} of the "
        "transformations of the training batches are named."
    )
    models = {k: model if k == 10 else model.recluster(X, k) for k in N_CLUSTERS}
    for k, found in models.items():
        print(
            f"{k:2d} clusters: NMI {normalized_mutual_info_score(y, found.labels_):.3f}, "
            f"pure {homogeneity_score(y, found.labels_):.3f}, "
            f"whole {completeness_score(y, found.labels_):.3f}, "
            f"restarts agree {found.readout_agreement_:.2f}"
        )
    tell_merged(models[5].labels_, y)
    tell_split(models[20].labels_, y)
    draw(X, {k: found.labels_ for k, found in models.items()}, picture)
    print(f"Wrote {picture}")


def tell_merged(labels, y):
    """Print the digits that share a cluster."""
    for cluster in np.unique(labels):
        counts = np.bincount(y[labels == cluster], minlength=10)
        digits = [str(d) for d in np.argsort(-counts) if counts[d] > 0.2 * np.bincount(y)[d]]
        print(f"   cluster {cluster} of 5 holds the digits {', '.join(digits)}")


def tell_split(labels, y):
    """Print the digits that have several clusters of their own."""
    owner = [np.bincount(y[labels == c], minlength=10).argmax() for c in np.unique(labels)]
    for digit, n_clusters in enumerate(np.bincount(owner, minlength=10)):
        if n_clusters > 1:
            print(f"   digit {digit} has {n_clusters} of the 20 clusters, by style")


def draw(X, labels_of, picture):
    """Draw the mean image of each cluster, a row for each number of clusters."""
    width = max(labels_of)
    figure, axes = plt.subplots(len(labels_of), width, figsize=(width * 0.6, 2.6))
    for row, (k, labels) in zip(axes, labels_of.items(), strict=True):
        order = np.argsort(-np.bincount(labels, minlength=k))
        for place, axis in enumerate(row):
            axis.axis("off")
            if place < k and np.any(labels == order[place]):
                axis.imshow(X[labels == order[place]].mean(0).reshape(8, 8), cmap="gray_r")
        row[0].set_title(f"{k} clusters", loc="left", fontsize=9)
    figure.tight_layout()
    figure.savefig(picture, dpi=120)
    plt.close(figure)


if __name__ == "__main__":
    main(*sys.argv[1:2])
