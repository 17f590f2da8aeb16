"""The folder for downloads and builds that are kept between runs; it is never in the source tree.

It holds the jars of Kafka and of Spark's connector, the suites of other clients, kafkajs, the bench's load generator,
and our own container engine with its images. Only one thing is kept elsewhere: the image in a container engine that the
machine already had. `fresh.py` removes it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
from collections.abc import Iterator
from pathlib import Path


def cache_directory() -> Path:
    """Folder of this project's caches: `$XDG_CACHE_HOME/pykafkad`, else `~/.cache/pykafkad`. It is created if it is
    missing.
    """
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


def empty() -> None:
    """Remove everything from the cache except the locks, which another run may hold."""
    for path in cache_directory().iterdir():
        if path.suffix == ".lock":
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
