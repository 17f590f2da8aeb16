"""Where downloads and built things are kept between runs: never in the source tree."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path


def cache_directory() -> Path:
    """Folder of this project's caches: `$XDG_CACHE_HOME/pykafkad`, else `~/.cache/pykafkad`; created."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    directory = Path(base) / "pykafkad"
    directory.mkdir(parents=True, exist_ok=True)
    return directory


@contextlib.contextmanager
def exclusively(name: str) -> Iterator[None]:
    """Hold the cache's lock `name`, so that two runs on one machine do not build the same thing at once."""
    with open(cache_directory() / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
