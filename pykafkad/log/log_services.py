"""What the logs of one directory share."""

from __future__ import annotations

from collections import namedtuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from random import Random

    from pykafkad.clock import Clock
    from pykafkad.disk import Disk


class LogServices(namedtuple("LogServices", ("disk", "clock", "random", "gather_pool", "doomed"))):
    """What the logs of one directory share: the disk, the clock, chance, idle gather buffers, and `doomed`, the list of
    `(due_ms, path, is_directory)` that are to be removed."""

    __slots__ = ()

    disk: Disk
    clock: Clock
    random: Random
    gather_pool: list[memoryview]
    doomed: list[tuple[int, str, bool]]
