"""What the logs of one directory share."""

from __future__ import annotations

from collections import namedtuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from random import Random

    from pykafkad.clock import Clock
    from pykafkad.disk import Disk


class LogServices(namedtuple("LogServices", ("disk", "clock", "random", "gather_pool", "scheduled_deletions"))):
    """The disk, the clock, chance, idle gather buffers, and the files to remove later.

    `scheduled_deletions` lists `(due_ms, path, is_directory)`."""

    __slots__ = ()

    disk: Disk
    clock: Clock
    random: Random
    gather_pool: list[memoryview]
    scheduled_deletions: list[tuple[int, str, bool]]
