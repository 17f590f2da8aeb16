"""Python's garbage collector, which runs often in a process with thousands of tests."""

from __future__ import annotations

import gc

# Python's own thresholds are 700, 10 and 10 objects. A simulated broker is twenty thousand objects, and is garbage a
# moment later.
THRESHOLDS = (10_000, 10, 10)


def collect_rarely() -> None:
    """Lets more garbage gather before it is looked for: a twentieth of the time of all tests."""
    gc.set_threshold(*THRESHOLDS)


def freeze() -> None:
    """Collects garbage and freezes all living objects, so that later collections skip them."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()
