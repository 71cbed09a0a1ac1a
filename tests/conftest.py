"""What must hold before any test is imported."""

import os
import signal

# Before scipy is imported anywhere, so that scikit-learn's array API check is not skipped.
os.environ.setdefault("SCIPY_ARRAY_API", "1")

# Tests that run side by side have a thread each; more would wait for each other.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")

# A process started in the background by a shell ignores Ctrl-C, which the tests send themselves.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
