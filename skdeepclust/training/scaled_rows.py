"""Rows of an embedding at a scale at which distances are safe to compute."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from sklearn.neighbors import NearestNeighbors

__all__ = ["ScaledRows"]

# Numbers that are scaled at a time.
_CHUNK_VALUES = 2**18


class ScaledRows:
    """Rows shifted to mean 0 and scaled to at most 1, made in float64 when they are asked for.

    Squares of distances neither overflow nor underflow then, and no method sees the unit of the
    embedding.
    """

    def __init__(self, embedding: np.ndarray):
        self.embedding = embedding
        self.shift = embedding.mean(axis=0, dtype=np.float64)
        reach = np.maximum(embedding.max(axis=0) - self.shift, self.shift - embedding.min(axis=0))
        self.scale = reach.max() or 1.0

    def __len__(self) -> int:
        return len(self.embedding)

    def scaled(self, rows: np.ndarray) -> np.ndarray:
        """Shift and scale rows."""
        rows = rows - self.shift
        rows /= self.scale
        return rows

    def take(self, chosen: np.ndarray | slice) -> np.ndarray:
        """Return the chosen rows, scaled."""
        return self.scaled(self.embedding[chosen])

    def chunks(self) -> Iterator[np.ndarray]:
        """Return all rows, scaled, in pieces."""
        size = max(1, _CHUNK_VALUES // self.embedding.shape[1])
        for start in range(0, len(self), size):
            yield self.scaled(self.embedding[start : start + size])

    def nearest(self, points: np.ndarray) -> np.ndarray:
        """Return for each row the index of the nearest of some scaled points."""
        search = NearestNeighbors(n_neighbors=1).fit(points)
        found = [search.kneighbors(chunk, return_distance=False)[:, 0] for chunk in self.chunks()]
        return np.concatenate(found)

    def distinct(
        self, limit: int, resolution: float | None = None
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Find the first distinct rows; which one each row is, if they are fewer than a limit."""
        seen: dict[bytes, int] = {}
        first_rows: list[int] = []
        labels: list[np.ndarray] = []
        start = 0
        for chunk in self.chunks():
            if resolution is not None:
                chunk = np.rint(chunk / resolution)
            chunk += 0.0  # -0.0 becomes 0.0, so that equal rows have equal bytes
            _, first, inverse = np.unique(chunk, axis=0, return_index=True, return_inverse=True)
            ids = np.empty(len(first), dtype=np.int64)
            for position in np.argsort(first):
                key = chunk[first[position]].tobytes()
                ids[position] = seen.setdefault(key, len(seen))
                if ids[position] == len(first_rows):
                    first_rows.append(start + first[position])
                if len(first_rows) == limit:
                    return np.array(first_rows), None
            labels.append(ids[inverse.reshape(-1)])
            start += len(chunk)
        return np.array(first_rows), np.concatenate(labels)
