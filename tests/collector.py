"""Python's garbage collector, which runs often in a process with thousands of tests."""

from __future__ import annotations

import gc


def freeze() -> None:
    """Collects garbage and freezes all living objects, so that later collections skip them."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()
