"""Puts a process together: one runtime, its directories, and its nodes."""

from __future__ import annotations

from pykafkad.disk import Disk
from pykafkad.server.broker import Broker
from pykafkad.server.controller_node import ControllerNode
from pykafkad.server.directories import Directories
from pykafkad.server.reactor import Reactor
from pykafkad.server.runtime import Runtime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from random import Random

    from pykafkad.clock import Clock
    from pykafkad.config import Settings
    from pykafkad.server.listeners import Listener
    from pykafkad.server.session import Authorizer


class Process:
    """The parts of a process. `start`, then `runtime.run` until `runtime.stop`, then `runtime.close`.

    Order of a start: lock and open the directories, load the metadata log, elect, bind the listeners, register, open
    the partitions, load the groups."""

    __slots__ = ("broker", "controller", "directories", "runtime")

    def __init__(
        self,
        settings: Settings,
        listening: list[Listener],
        data_directories: Sequence[str],
        *,
        clock: Clock | None = None,
        disk: Disk | None = None,
        random: Random | None = None,
        reactor: Callable[..., Reactor] = Reactor,
        authorizer: Authorizer | None = None,
    ) -> None:
        idle_ms = settings.connections_max_idle_ms
        self.runtime = Runtime(
            clock=clock,
            disk=disk,
            random=random,
            reactor=reactor,
            max_frame_bytes=settings.socket_request_max_bytes,
            idle_seconds=idle_ms / 1000 if idle_ms >= 0 else float("inf"),
            max_connections=settings.max_connections,
        )
        self.directories = Directories(self.runtime, settings, data_directories)
        self.controller = ControllerNode(self.runtime, settings, self.directories)
        self.broker = Broker(self.runtime, settings, listening, self.directories, self.controller, authorizer)
        self.runtime.nodes += [self.directories, self.controller, self.broker]

    def start(self, *, stale_file: str | None = None) -> None:
        """Everything up to serving. Raises ConfigError, StorageFailure or OSError with what stands in the way.

        `stale_file`, what an earlier broker wrote when it was ready, goes as soon as the directory is known to be ours.
        """
        broker, controller = self.broker, self.controller
        self.directories.open(broker.settings.metadata_log_dir or self.directories.paths[0])
        if stale_file is not None:
            # It is no part of the data, which may live in memory.
            Disk().unlink(stale_file)
        controller.start()
        broker.bind()
        incarnation_id = self.runtime.random.randbytes(16)
        controller.activate(incarnation_id)
        broker.start(incarnation_id)
        controller.begin_serving()
