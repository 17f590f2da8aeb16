"""Python's collector of garbage, which a process that holds thousands of tests calls often."""

from __future__ import annotations

import gc


def freeze() -> None:
    """From now on the collector leaves alone what lives now, and no garbage is among it."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()
