"""The picture of the accuracy on rows not yet learnt, over a stream."""

from pathlib import Path

import numpy as np

from .storage import read_json

PICTURE = Path(__file__).parent / "ddcl_stream.png"
_COLOURS = ("#bd1f01", "#e8871e", "#3f6c51", "#717581")


def draw(path):
    """Return the figure of the stored cells of the streams: means and ranges over the seeds."""
    from matplotlib.figure import Figure

    found = read_json(path)
    figure = Figure(figsize=(10, 4.2), layout="constrained")
    panels = figure.subplots(1, len(found), sharey=True, squeeze=False).ravel()
    for (order, methods), axes in zip(found.items(), panels, strict=True):
        for (method, seeds), colour in zip(methods.items(), _COLOURS, strict=True):
            curves = np.array([cell["curve"] for cell in seeds.values()])
            rows, accuracies = curves[0, :, 0], curves[:, :, 1]
            label = f"{method}, {len(curves)} seeds"
            axes.plot(rows, accuracies.mean(axis=0), color=colour, label=label)
            low, high = accuracies.min(axis=0), accuracies.max(axis=0)
            axes.fill_between(rows, low, high, color=colour, alpha=0.15, linewidth=0)
        axes.set(title=f"MNIST, {order}", xlabel="rows of the stream", ylim=(0, 1))
    panels[0].set_ylabel("accuracy of all predictions so far")
    panels[-1].legend(fontsize="small")
    return figure
