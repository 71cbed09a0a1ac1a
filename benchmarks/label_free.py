"""Scores of a clustering without labels."""

import numpy as np
import scipy.sparse as sp
from sklearn.metrics import silhouette_score
from sklearn.neighbors import kneighbors_graph

_N_NEIGHBORS = 15
_SILHOUETTE_ROWS = 2000


class LabelFreeScores:
    """Scores of labels of the rows of one embedding.

    Parameters
    ----------
    embedding : ndarray of shape (n_rows, n_features)
        Where distances are measured. It has to be the same for all labels that are compared.
    """

    def __init__(self, embedding):
        self._graph = symmetric_neighbor_graph(embedding)
        self._sample = np.arange(len(embedding))
        if len(embedding) > _SILHOUETTE_ROWS:
            generator = np.random.default_rng(0)
            self._sample = generator.choice(len(embedding), _SILHOUETTE_ROWS, replace=False)
        self._sampled = embedding[self._sample]

    def __call__(self, labels):
        """Return the scores of `labels` by name; larger is better for all of them."""
        labels = np.asarray(labels)
        return {
            "modularity": modularity(self._graph, labels),
            "silhouette": self._silhouette(labels[self._sample]),
        }

    def _silhouette(self, labels):
        """Return the mean silhouette, or None where it is not defined."""
        if not 2 <= len(np.unique(labels)) < len(labels):
            return None
        return float(silhouette_score(self._sampled, labels))


def symmetric_neighbor_graph(embedding, n_neighbors=_N_NEIGHBORS):
    """Return the graph that joins two rows when either is among the other's nearest ones.

    Parameters
    ----------
    embedding : ndarray of shape (n_rows, n_features)
    n_neighbors : int, default=15

    Returns
    -------
    graph : CSR array of shape (n_rows, n_rows)
        1 for each of the two directions of an edge.
    """
    n_neighbors = min(n_neighbors, len(embedding) - 1)
    graph = sp.csr_array(kneighbors_graph(embedding, n_neighbors, include_self=False))
    return graph.maximum(graph.T).tocsr()


def modularity(graph, labels):
    """Return Newman's modularity of a partition, at resolution 1.

    ``sum_c [ m_c / m - (d_c / 2m)**2 ]`` with ``m`` edges in all, ``m_c`` of them within cluster
    ``c``, and ``d_c`` the degrees of its rows added up.

    Parameters
    ----------
    graph : sparse array of shape (n_rows, n_rows)
        Symmetric, with an empty diagonal.
    labels : array-like of shape (n_rows,)

    Returns
    -------
    modularity : float
        At most 1; 0 for a single cluster.
    """
    _, ids = np.unique(labels, return_inverse=True)
    edges = graph.tocoo()
    degrees = np.asarray(graph.sum(axis=1)).ravel()
    doubled_edges = degrees.sum()
    within = edges.data[ids[edges.row] == ids[edges.col]].sum()
    shares = np.bincount(ids, weights=degrees) / doubled_edges
    return float(within / doubled_edges - (shares**2).sum())
