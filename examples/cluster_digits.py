"""Cluster images of handwritten digits, beside KMeans on the same pixels, and draw the result.

Usage: python examples/cluster_digits.py [PICTURE]
"""

import sys
import time

import numpy as np
from matplotlib.figure import Figure
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from skdeepclust import SRKMeans
from skdeepclust.metrics import clustering_accuracy
from skdeepclust.pretraining import DenoisingAutoencoder

SCORES = clustering_accuracy, normalized_mutual_info_score, adjusted_rand_score
IMAGES_PER_CLUSTER = 10
# Ten colours that also differ for colour-blind readers (arXiv:2107.02270).
COLOURS = "#3f90da #ffa90e #bd1f01 #94a4a2 #832db6 #a96b59 #e76300 #b9ac70 #717581 #92dadd".split()


def main(picture="cluster_digits.png", n_samples=None, pretraining_epochs=60, **settings):
    """Cluster the digits, print scores, and write `picture`; `settings` go to SRKMeans."""
    X, classes = (part[:n_samples] for part in load_digits(return_X_y=True))
    settings["pretrain"] = DenoisingAutoencoder(max_epochs=pretraining_epochs)
    methods = {
        "KMeans on pixels": KMeans(n_clusters=10, n_init=10, random_state=0),
        "SRKMeans": SRKMeans(n_clusters=10, image_shape=(1, 8, 8), random_state=0, **settings),
    }
    print(f"{len(X)} images, 10 clusters. Only the scores look at the classes.\n")
    print(f"{'':18}{'ACC':>7}{'NMI':>7}{'ARI':>7}{'seconds':>9}")
    for name, method in methods.items():
        start = time.perf_counter()
        clusters = method.fit_predict(X)
        seconds = time.perf_counter() - start
        scores = [score(classes, clusters) for score in SCORES]
        print(f"{name:18}" + "".join(f"{score:7.3f}" for score in scores) + f"{seconds:9.1f}")
    draw(methods["SRKMeans"], X, picture)
    print(f"\nSamples of each cluster and a map of the embedding: {picture}")


def draw(model, X, picture):
    """Draw the most typical images of each cluster, and the embedding in two dimensions."""
    figure = Figure(figsize=(13, 6.3), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[1.14, 1])
    draw_samples(left, model, X, model.transform(X))
    draw_map(right, model, model.transform(X))
    figure.savefig(picture, dpi=120)


def draw_samples(axes, model, X, embedding):
    """One row a cluster: the images nearest to its centre, the nearest first."""
    grid = np.zeros((model.n_clusters * 9 - 1, IMAGES_PER_CLUSTER * 9 - 1))
    for cluster, center in enumerate(model.cluster_centers_):
        members = np.flatnonzero(model.labels_ == cluster)
        distance = np.linalg.norm(embedding[members] - center, axis=1)
        for place, row in enumerate(members[distance.argsort()[:IMAGES_PER_CLUSTER]]):
            top, side = 9 * cluster, 9 * place
            grid[top : top + 8, side : side + 8] = X[row].reshape(8, 8)
        axes.text(-7, 9 * cluster + 3.5, str(cluster), **badge(cluster))
    axes.imshow(grid, cmap="gray_r")
    axes.set_xlim(-12, grid.shape[1])
    axes.set_title("The ten images nearest to the centre of each cluster")
    axes.set_axis_off()


def draw_map(axes, model, embedding):
    """Every image as a point of its cluster's colour; an id tied to the centre of each."""
    pca = PCA(n_components=2, whiten=True).fit(embedding)
    points, centers = pca.transform(embedding), pca.transform(model.cluster_centers_)
    axes.scatter(*points.T, s=7, c=[COLOURS[cluster] for cluster in model.labels_], linewidths=0)
    angles = np.linspace(0, 2 * np.pi, 24, endpoint=False)
    taken = points
    for cluster, center in enumerate(centers):
        # Of the places around the centre, the one that is farthest from points and other ids.
        places = center + 0.35 * np.column_stack([np.cos(angles), np.sin(angles)])
        place = places[cdist(places, taken).min(axis=1).argmax()]
        taken = np.vstack([taken, place])
        line = {"arrowstyle": "-", "color": COLOURS[cluster], "linewidth": 2}
        axes.annotate(str(cluster), center, place, arrowprops=line, **badge(cluster))
    axes.set(xticks=[], yticks=[], xmargin=0.12, ymargin=0.12)
    axes.set(xlabel="first principal component", ylabel="second")
    axes.set_title(f"All {len(points)} images in the embedding, coloured by cluster")


def badge(cluster):
    """Text settings of a cluster's id in a box of its colour."""
    box = {"boxstyle": "round", "facecolor": "white", "edgecolor": COLOURS[cluster], "linewidth": 2}
    return {"ha": "center", "va": "center", "fontweight": "bold", "bbox": box}


if __name__ == "__main__":
    main(*sys.argv[1:])
