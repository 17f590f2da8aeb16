"""A start that is only tried: a whole process over an overlay of its disk, without sockets, to see what a start would
change."""

from __future__ import annotations

from collections import namedtuple

from pykafkad.clock import Clock
from pykafkad.errors import StorageFailure
from pykafkad.overlay_disk import OverlayDisk
from pykafkad.server.listeners import Listener
from pykafkad.server.network import SystemNetwork
from pykafkad.server.reactor import Reactor
from pykafkad.server.wiring import Process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from socket import socket

    from pykafkad.config import Settings


class _NoNetwork(SystemNetwork):
    """Nothing listens."""

    __slots__ = ()

    @staticmethod
    def bind_all(
        host: str, port: int, send_buffer_bytes: int | None, backlog: int, receive_buffer_bytes: int = -1
    ) -> list[socket]:
        return []


Outcome = namedtuple("Outcome", ("changes", "offline", "cut", "compacted"))
Outcome.__doc__ = """What a start would change (`Change`), and of partitions (`topic-partition`): which it could not
open, with the failure; whose log ends before the high watermark that a checkpoint has for it, (its path, end offset,
high watermark); and which are compacted."""


def start(settings: Settings, directories: Sequence[str]) -> Outcome:
    """What a start with these settings would make of the directories.

    Every log is opened, also those that a start after a clean stop leaves for their first use. Raises what a start
    raises: ConfigError, StartFailure, StorageFailure."""
    disk = OverlayDisk()
    process = Process(
        settings,
        [Listener("PLAINTEXT", "localhost", 9092)],
        directories,
        clock=Clock(),
        disk=disk,
        reactor=lambda runtime: Reactor(runtime, _NoNetwork()),
    )
    try:
        return _outcome(process, disk)
    finally:
        process.runtime.reactor.close()


def _outcome(process: Process, disk: OverlayDisk) -> Outcome:
    process.start()
    assert process.broker is not None
    offline, cut = [], []
    for log in list(process.broker.partitions):
        name = f"{log.topic}-{log.partition}"
        try:
            if log.offline is not None:
                raise log.offline
            if not log.is_loaded:
                log.load()
        except StorageFailure as failure:
            offline.append((name, failure))
            continue
        directory = process.directories.of(log)
        assert directory is not None
        _, _, high_watermark = directory.checkpointed((log.topic, log.partition))
        if log.end_offset < high_watermark:
            cut.append((log.directory, log.end_offset, high_watermark))
    compacted = {
        f"{log.topic}-{log.partition}" for log in process.broker.partitions if "compact" in log.settings.cleanup_policy
    }
    changes = [change for path in process.directories.paths for change in disk.changes(path)]
    return Outcome(changes, offline, cut, compacted)
