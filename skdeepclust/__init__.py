"""Deep clustering that behaves like scikit-learn."""

import importlib

__version__ = "0.1.0.dev0"

# Resolved on first use, so that importing metrics or datasets does not import torch.
_PUBLIC = {
    "ACOLGARClustering": "skdeepclust.acol_gar",
    "DCN": "skdeepclust.dcn",
    "DDCL": "skdeepclust.ddcl",
    "DEPICT": "skdeepclust.depict",
    "MIADMClustering": "skdeepclust.mi_adm",
    "SRKMeans": "skdeepclust.sr_kmeans",
    "load": "skdeepclust._persistence",
    "show_versions": "skdeepclust._versions",
}
_SUBMODULES = ("datasets", "exceptions", "metrics", "plotting", "pretraining")

__all__ = [
    "DCN",
    "DDCL",
    "DEPICT",
    "ACOLGARClustering",
    "MIADMClustering",
    "SRKMeans",
    "__version__",
    "load",
    "show_versions",
]


def __getattr__(name):
    if name in _PUBLIC:
        return getattr(importlib.import_module(_PUBLIC[name]), name)
    if name in _SUBMODULES:
        return importlib.import_module(f"skdeepclust.{name}")
    raise AttributeError(f"module 'skdeepclust' has no attribute {name!r}")


def __dir__():
    return sorted([*__all__, *_SUBMODULES])
