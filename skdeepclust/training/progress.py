"""Progress for `verbose=1`: a bar where rich is installed, plain lines elsewhere."""

import sys
import time

from skorch.callbacks import Callback

# Plain lines come at most this often, in seconds; the last epoch always prints.
_LINE_INTERVAL = 1.0


class EpochProgress(Callback):
    """Show phase, epoch, loss and time left of every phase on standard output."""

    def on_train_begin(self, net, **kwargs):
        phase = net.run_.phase
        self.started_ = time.perf_counter()
        self.last_line_ = 0.0
        self.bar_ = _rich_bar(phase)

    def on_epoch_end(self, net, **kwargs):
        run = net.run_
        record = run.history[-1]
        done = run.epoch + 1
        elapsed = time.perf_counter() - self.started_
        left = elapsed / done * (run.phase.max_epochs - done)
        text = "".join([f"loss {record['loss']:.5g}  " if "loss" in record else ""])
        if self.bar_ is not None:
            progress, task = self.bar_
            progress.update(task, completed=done, note=text)
        elif elapsed - self.last_line_ >= _LINE_INTERVAL or done == run.phase.max_epochs:
            self.last_line_ = elapsed
            sys.stdout.write(
                f"{run.phase.name}: epoch {done}/{run.phase.max_epochs}  {text}{left:.0f} s left\n"
            )

    def on_train_end(self, net, **kwargs):
        if self.bar_ is not None:
            self.bar_[0].stop()
        reason = net.run_.stop_reason
        if self.bar_ is None and reason is not None:
            sys.stdout.write(f"{net.run_.phase.name}: stopped, {reason}\n")
        self.bar_ = None


def _rich_bar(phase):
    try:
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
    except ImportError:
        return None
    progress = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed}/{task.total}  {task.fields[note]}"),
        TimeRemainingColumn(),
    )
    task = progress.add_task(phase.name, total=phase.max_epochs, note="")
    progress.start()
    return progress, task
