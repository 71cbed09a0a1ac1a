"""When a training towards the first partition ends."""

# Epochs without a smaller cross-entropy after which it does.
_PATIENCE = 5


def begin_plateau(run):
    """Forget the cross-entropy of earlier phases."""
    run.values["plateau"] = [float("inf"), 0]


def stop_when_settled(run, agreement):
    """End the phase when the partition is reproduced, or the loss has stopped falling.

    The agreement itself may fall for a while before it rises; the loss does not.
    """
    best, n_stale = run.values["plateau"]
    loss = run.values["epoch_losses"]["clustering"]
    n_stale = 0 if loss < best else n_stale + 1
    run.values["plateau"] = [min(best, loss), n_stale]
    if n_stale >= _PATIENCE or agreement == 1.0:
        run.stop(f"{agreement:.1%} of the rows agree with the first partition")
