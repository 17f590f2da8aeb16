"""What the logs of one directory share."""

from __future__ import annotations

from collections import namedtuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from random import Random

    from pykafkad.clock import Clock
    from pykafkad.disk import Disk
    from pykafkad.log.log_files import LogFiles


class LogServices(
    namedtuple("LogServices", ("disk", "clock", "random", "gather_pool", "scheduled_deletions", "failed_logs"))
):
    """The disk, the clock, chance, idle gather buffers, the files to remove later, and logs that went out of service.

    `scheduled_deletions` lists `(due_ms, path, is_directory)`. `failed_logs` is taken by who looks after the logs."""

    __slots__ = ()

    disk: Disk
    clock: Clock
    random: Random
    gather_pool: list[memoryview]
    scheduled_deletions: list[tuple[int, str, bool]]
    failed_logs: list[LogFiles]
