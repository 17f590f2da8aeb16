"""Puts a process together as `process.roles` says: one runtime, its directories, a controller, a broker, or both."""

from __future__ import annotations

from functools import partial

from pykafkad.disk import Disk
from pykafkad.server import quorum_settings
from pykafkad.server.broker import Broker
from pykafkad.server.controller_node import ControllerNode
from pykafkad.server.directories import Directories
from pykafkad.server.housekeeping import Housekeeping
from pykafkad.server.reactor import Reactor
from pykafkad.server.runtime import Runtime
from pykafkad.settings import authorizer_settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from random import Random
    from typing import Any, Protocol

    from pykafkad.clock import Clock
    from pykafkad.config import Settings
    from pykafkad.metadata.standard_authorizer import StandardAuthorizer
    from pykafkad.server.data_snapshots import DataSnapshots
    from pykafkad.server.listeners import Listener
    from pykafkad.server.logs import Logs
    from pykafkad.server.session import Authorizer

    class Closing(Protocol):
        """Has something to write at the end."""

        def close(self) -> None: ...


BROKER = "broker"
"""The role without which a process has a controller alone."""

CONTROLLER = "controller"
"""The role without which a process has a broker alone (`broker_process.py`)."""


class Process:
    """The parts of a process. `start`, then `runtime.run` until `runtime.stop`, then `runtime.close`.

    Order of a start: lock and open the directories, load the metadata log, elect (which brings the live settings),
    bind the listeners, register, open the partitions, load the groups."""

    __slots__ = ("_acls", "audit", "broker", "controller", "directories", "housekeeping", "runtime")

    is_quorum = False
    """Whether it has several controllers, which are asked as by a client (`start_requests.py`)."""

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
        runtime: Runtime | None = None,
    ) -> None:
        """`listening` are the broker's listeners, or those of a controller that is alone. `authorizer` stands in for
        that of `authorizer.class.name`. A `runtime` is shared with others, and has what is its own: clock, disk,
        chance, loop and logs."""
        # Live values of an earlier life of the process may not be those of the metadata log that this one finds.
        settings.set_dynamic({}, {})
        runtime = self._begin(clock, disk, random, reactor, logs, runtime)
        directories = self.directories = Directories(runtime, settings, data_directories)
        housekeeping = self.housekeeping = Housekeeping(runtime, settings, directories)
        has_broker = BROKER in settings.process_roles
        authorizer = self._authorizer(settings, authorizer)
        self.controller = _controller_class(settings)(
            runtime, settings, directories, housekeeping, [] if has_broker else listening, authorizer
        )
        self._subscribe_acls()
        self.broker: Broker | None = None
        runtime.nodes += [directories, housekeeping, self.controller]
        if has_broker:
            self.broker = Broker(runtime, settings, listening, directories, housekeeping, self.controller, authorizer)
            runtime.nodes.append(self.broker)
        self.audit: Closing | None = None
        """What tells of the authorizer's decisions; None where nothing does."""
        if authorizer is not None and settings.pykafkad_audit_file:
            from pykafkad.server import audit

            self.audit = audit.install(self, authorizer, settings)

    def _begin(
        self,
        clock: Clock | None,
        disk: Disk | None,
        random: Random | None,
        reactor: Callable[[Runtime], Reactor],
        logs: Logs | None,
        shared: Runtime | None = None,
    ) -> Runtime:
        """Take the runtime that is shared, or make one."""
        if shared is not None:
            self.runtime = shared
            return shared
        runtime = self.runtime = Runtime(clock=clock, disk=disk, random=random, reactor=reactor, logs=logs)
        runtime.disk.tell_when_full(partial(_tell_full, runtime.logs))
        return runtime

    def _authorizer(self, settings: Settings, given: Authorizer | None) -> Authorizer | None:
        """The authorizer that was handed in, or that of the settings."""
        self._acls: StandardAuthorizer | None = None
        if given is None and settings.authorizer_class_name:
            given = self._acls = _standard_authorizer(settings)
        return given

    def _subscribe_acls(self) -> None:
        if self._acls is not None:
            # Before the broker, whose sessions then forget what was decided by the ACLs of before. The first change
            # that it hears of brings the ACLs of the log.
            self.controller.on_committed(self._acls)

    @property
    def brokers(self) -> list[Broker]:
        """Those that serve."""
        return [] if self.broker is None else [self.broker]

    @property
    def node_ids(self) -> list[int]:
        """Those of its brokers, also of the ones that are down."""
        return [each.node_id for each in self.brokers]

    @property
    def deciding_controller(self) -> ControllerNode | None:
        """The controller that changes the metadata; None while nobody does."""
        return self.controller

    def open_data_snapshots(self) -> DataSnapshots:
        """Snapshots of the data, and the way back to them."""
        assert self.broker is not None
        return self.broker.data_snapshots

    @property
    def used_snapshots(self) -> DataSnapshots | None:
        """The same, if anybody has asked for them."""
        return None if self.broker is None else self.broker.used_snapshots

    @property
    def snapshot_paths(self) -> list[str]:
        """The directories that go back to a snapshot; the first keeps the note of a way back that has begun."""
        return [directory.path for directory in self.directories.every()]

    @property
    def listeners(self) -> list[Listener]:
        """Where the process serves."""
        return self.controller.listeners if self.broker is None else self.broker.listeners

    @property
    def own_controller(self) -> ControllerNode | None:
        """The controller in this process, if it has one."""
        return self.controller

    def ask_at_start(self, event: Any) -> Any:
        """What the controller answers to an event whose token is a `StartToken`, before the process is ready."""
        self.controller.submit(event)
        self.runtime.tasks.finish(float("inf"))
        for broker in self.brokers:
            broker.partitions.finish_pending()
        return event.token.message

    def start(self, *, stale_file: str | None = None) -> None:
        """Everything up to serving. Raises ConfigError, StorageFailure or OSError with what stands in the way.

        `stale_file`, what an earlier broker wrote when it was ready, goes as soon as the directory is known to be ours.
        """
        broker, controller = self.broker, self.controller
        settings = controller.settings
        self.directories.open(
            settings.metadata_log_dir or self.directories.paths[0],
            settings.pykafkad_cluster_id or None,
            must_be_formatted=quorum_settings.needs_format(settings),
        )
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
            if broker.socket_server.logins:
                from pykafkad.server import scram_users

                scram_users.share_secret(broker)
        self.housekeeping.start()
        controller.begin_serving()


def _controller_class(settings: Settings) -> type[ControllerNode]:
    """A broker whose own controller is the only voter does not load what several voters need."""
    if not quorum_settings.has_others(settings):
        return ControllerNode
    from pykafkad.server.raft_controller import RaftController

    return RaftController


def _tell_full(logs: Logs, used_bytes: int, max_bytes: int) -> None:
    """A producer that is refused says nothing of it for minutes: it retries until its delivery.timeout.ms."""
    logs.warning(
        "storage",
        "memory-full",
        used_bytes=used_bytes,
        max_bytes=max_bytes,
        consequence="producers get KAFKA_STORAGE_ERROR and retry until they time out",
        remedy="delete records or topics, shorten the retention, or allow more memory",
    )


def _standard_authorizer(settings: Settings) -> StandardAuthorizer:
    """The authorizer that the settings ask for. Who asks for none does not load it."""
    from pykafkad.metadata.standard_authorizer import StandardAuthorizer

    static = settings.static
    return StandardAuthorizer(
        authorizer_settings.super_users(static),
        allow_if_no_acl=authorizer_settings.allows_if_no_acl(static),
        has_ranges=settings.release is not None and "CreateAcls.address_ranges" in settings.release.answers,
    )
