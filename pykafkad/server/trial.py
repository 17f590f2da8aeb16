"""A start that is only tried: a whole node over an overlay of its disk, without sockets, to see what a start would change."""

from __future__ import annotations

from pykafkad.clock import Clock
from pykafkad.errors import StorageFailure
from pykafkad.overlay_disk import Change, OverlayDisk
from pykafkad.server.listeners import Listener
from pykafkad.server.node import Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from pykafkad.config import Settings


class _NoSockets:
    """What a starting node needs of a reactor."""

    def __init__(self, node: object, **_: object) -> None:
        self.ready: list[object] = []

    def listen(self, host: str, port: int, listener: object, **_: object) -> int:
        return port

    def wake(self) -> None:
        """Nobody waits."""


def start(settings: Settings, directories: Sequence[str]) -> tuple[list[Change], list[tuple[str, StorageFailure]]]:
    """What a start with these settings would change, and which partitions (`topic-partition`) it could not open.

    Every log is opened, also those that a start after a clean stop leaves for their first use. Raises what a start raises:
    ConfigError, StartFailure, StorageFailure.
    """
    disk = OverlayDisk()
    node = Node(settings, [Listener("PLAINTEXT", "localhost", 9092)], directories, clock=Clock(), disk=disk, reactor=_NoSockets)
    node.start()
    offline = []
    for log in list(node.partitions):
        try:
            if log.offline is not None:
                raise log.offline
            if not log.is_loaded:
                log.load()
        except StorageFailure as failure:
            offline.append((f"{log.topic}-{log.partition}", failure))
    return [change for path in node.directories.paths for change in disk.changes(path)], offline
