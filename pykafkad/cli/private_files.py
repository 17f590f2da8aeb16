"""Files that nobody else may read from their first moment."""

from __future__ import annotations

import os


def for_its_owner(path: str, flags: int) -> int:
    """An `opener` for `open`."""
    return os.open(path, flags, 0o600)
