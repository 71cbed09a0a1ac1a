"""Set before scipy is imported anywhere, so that scikit-learn's array API check is not skipped."""

import os

os.environ.setdefault("SCIPY_ARRAY_API", "1")
