"""Block 3: 100 rows of 10 to 5,000 columns, two clusters."""

from sklearn.cluster import KMeans
from sklearn.datasets import make_classification
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skdeepclust import DDCL

from .accuracy import label_scores

N_COLUMNS = (10, 50, 200, 500, 1_000, 5_000)
N_SEEDS = 20
# The first is the page's own reading of the paper, the second that of its authors' earlier code.
GENERATORS = {
    "5 informative": lambda d: {"n_informative": 5, "class_sep": 2},
    "all informative": lambda d: {"n_informative": d, "class_sep": 10},
}


def _methods(seed):
    kmeans = KMeans(2, n_init=10, random_state=seed)
    return {
        "DDCL": DDCL(2, random_state=seed),
        "DDCL, bare error": DDCL(2, entropy_weight=0.0, random_state=seed),
        "DDCL, free prototypes": DDCL(2, layer="free", random_state=seed),
        "KMeans": kmeans,
        "PCA(2) + KMeans": make_pipeline(PCA(2, random_state=seed), kmeans),
    }


def measure(cells, seeds, autoencoders):
    """Fit all methods to rows drawn with 20 seeds."""
    for seed in range(N_SEEDS if len(seeds) >= 10 else len(seeds)):
        for generator, params in GENERATORS.items():
            for d in N_COLUMNS:
                if generator == "all informative" and d > 1_000:
                    # It draws a square matrix of the columns.
                    continue
                X, y = make_classification(
                    100,
                    d,
                    n_redundant=0,
                    n_clusters_per_class=1,
                    random_state=seed,
                    **params(d),
                )
                X = StandardScaler().fit_transform(X)
                for name, model in _methods(seed).items():
                    cells.add(
                        generator,
                        f"{name}, {d} columns",
                        seed,
                        lambda m=model, X=X, y=y: label_scores(y, m.fit_predict(X)),
                    )
