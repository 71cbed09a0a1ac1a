"""Autoencoders shared by the cells of one (data set, seed), kept in a folder of their own."""

import hashlib
import json
import time
from pathlib import Path

import numpy as np

import skdeepclust
from skdeepclust.pretraining import DenoisingAutoencoder

from .storage import read_json, write_json


class PretrainedAutoencoders:
    """Fits each autoencoder once, and reads it back afterwards.

    Parameters
    ----------
    folder : path-like
        Where they are kept. A fitted one is found again by data, seed, parameters and version
        of the package; empty the folder after a change of the training code.
    """

    def __init__(self, folder):
        self._folder = Path(folder)

    def get(self, X, parameters):
        """Return an autoencoder fitted to `X`, and how it was made.

        Returns
        -------
        autoencoder : DenoisingAutoencoder
        record : dict
            ``seconds`` of the fit, ``epochs``, ``stop_reason`` and the ``parameters``.
        """
        key = _key(X, parameters)
        path = self._folder / f"{key}.model"
        record_path = self._folder / f"{key}.json"
        record = read_json(record_path)
        if record is not None:
            return skdeepclust.load(path), record
        started = time.perf_counter()
        autoencoder = DenoisingAutoencoder(**parameters).fit(X)
        record = {
            "seconds": time.perf_counter() - started,
            "epochs": autoencoder.n_iter_,
            "stop_reason": autoencoder.stop_reason_,
            "parameters": parameters,
        }
        self._folder.mkdir(parents=True, exist_ok=True)
        autoencoder.save(path)
        # The record comes last: where it is, the model is whole.
        write_json(record_path, record)
        return autoencoder, record


def _key(X, parameters):
    digest = hashlib.sha256(np.ascontiguousarray(X))
    settings = {"version": skdeepclust.__version__, "shape": X.shape, "dtype": str(X.dtype)}
    digest.update(json.dumps({**settings, **parameters}, sort_keys=True).encode())
    return digest.hexdigest()[:24]
