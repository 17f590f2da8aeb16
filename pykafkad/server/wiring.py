"""Puts a process together as `process.roles` says: one runtime, its directories, a controller, a broker, or both."""

from __future__ import annotations

from pykafkad.disk import Disk
from pykafkad.server.broker import Broker
from pykafkad.server.controller_node import ControllerNode
from pykafkad.server.directories import Directories
from pykafkad.server.housekeeping import Housekeeping
from pykafkad.server.reactor import Reactor
from pykafkad.server.runtime import Runtime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from random import Random

    from pykafkad.clock import Clock
    from pykafkad.config import Settings
    from pykafkad.server.listeners import Listener
    from pykafkad.server.logs import Logs
    from pykafkad.server.session import Authorizer

BROKER = "broker"
"""The role without which a process has a controller alone."""


class Process:
    """The parts of a process. `start`, then `runtime.run` until `runtime.stop`, then `runtime.close`.

    Order of a start: lock and open the directories, load the metadata log, elect, bind the listeners, register, open
    the partitions, load the groups."""

    __slots__ = ("broker", "controller", "directories", "housekeeping", "runtime")

    def __init__(
        self,
        settings: Settings,
        listening: list[Listener],
        data_directories: Sequence[str],
        *,
        clock: Clock | None = None,
        disk: Disk | None = None,
        random: Random | None = None,
        reactor: Callable[[Runtime], Reactor] = Reactor,
        authorizer: Authorizer | None = None,
        logs: Logs | None = None,
    ) -> None:
        """`listening` are the broker's listeners, or those of a controller that is alone."""
        runtime = self.runtime = Runtime(clock=clock, disk=disk, random=random, reactor=reactor, logs=logs)
        directories = self.directories = Directories(runtime, settings, data_directories)
        housekeeping = self.housekeeping = Housekeeping(runtime, settings, directories)
        has_broker = BROKER in settings.process_roles
        self.controller = ControllerNode(
            runtime, settings, directories, housekeeping, [] if has_broker else listening, authorizer
        )
        self.broker: Broker | None = None
        runtime.nodes += [directories, housekeeping, self.controller]
        if has_broker:
            self.broker = Broker(runtime, settings, listening, directories, housekeeping, self.controller, authorizer)
            runtime.nodes.append(self.broker)

    @property
    def listeners(self) -> list[Listener]:
        """Where the process serves."""
        return self.controller.listeners if self.broker is None else self.broker.listeners

    def start(self, *, stale_file: str | None = None) -> None:
        """Everything up to serving. Raises ConfigError, StorageFailure or OSError with what stands in the way.

        `stale_file`, what an earlier broker wrote when it was ready, goes as soon as the directory is known to be ours.
        """
        broker, controller = self.broker, self.controller
        self.directories.open(controller.settings.metadata_log_dir or self.directories.paths[0])
        if stale_file is not None:
            # It is no part of the data, which may live in memory.
            Disk().unlink(stale_file)
        controller.start()
        controller.bind()
        if broker is not None:
            broker.bind()
        incarnation_id = self.runtime.random.randbytes(16)
        controller.activate(incarnation_id)
        if broker is not None:
            broker.start(incarnation_id)
        self.housekeeping.start()
        controller.begin_serving()
