"""What a handler may touch, and nothing else."""

from __future__ import annotations

from collections import namedtuple

from pykafkad import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Literal, Protocol

    from pykafkad.config import Settings
    from pykafkad.handlers.fetch_sessions import FetchSessions
    from pykafkad.handlers.init_producer_id import ProducerIds
    from pykafkad.handlers.services import (
        BrokerServices,
        ClientMetrics,
        Controller,
        DataSnapshots,
        Directories,
        Groups,
        Moves,
        Partitions,
        Purgatory,
    )
    from pykafkad.handlers.table import Api
    from pykafkad.handlers.telemetry import Telemetry
    from pykafkad.log.partition_log import PartitionLog
    from pykafkad.metadata.brokers import Broker
    from pykafkad.metadata.image import Image

    class SessionListener(Protocol):
        """A listener of the broker."""

        name: str

        def advertised(self, reached: tuple[str, int]) -> tuple[str, int]:
            """The address that a caller is told who reached us at `reached`."""

    class Session(Protocol):
        """Who asks."""

        @property
        def principal(self) -> str: ...

        @property
        def listener(self) -> SessionListener: ...

        def allowed(self, operation: str, resource_type: str, resource_name: str | None) -> bool: ...

    class Connection(Protocol):
        """The connection that the request came in on."""

        id: int
        sequence: int
        peer: str
        software: tuple[str, str] | None
        session: Session
        listener: SessionListener
        local_address: tuple[str, int]

        def close(self, reason: str) -> None:
            """End the connection; its outbox is offered to the peer once."""

    class Route(Protocol):
        """The API of the request."""

        row: Api

    Job = Callable[[], Any]


ReplyToken = namedtuple("ReplyToken", ("connection_id", "sequence"))
ReplyToken.__doc__ = """Stands for one request whose answer comes later. Machines hold tokens, never connections."""


UNKNOWN_SOFTWARE = ("unknown", "unknown")


class _Deferred:
    """The one value that says: a machine holds `ctx.token` and will answer."""

    def __repr__(self) -> str:
        return "DEFERRED"


DEFERRED = _Deferred()


class Context:
    """One request's surroundings on a broker. Everything is read through properties, so that making one costs next to
    nothing."""

    __slots__ = (
        "_services",
        "acks_all",
        "client_id",
        "connection",
        "correlation_id",
        "is_answered",
        "is_long",
        "request",
        "route",
        "unwritten",
        "version",
    )

    on_controller: Literal[False] = False
    """Whether the node that answers is a controller."""

    def __init__(
        self,
        services: BrokerServices,
        connection: Connection,
        route: Route,
        version: int,
        correlation_id: int,
        client_id: str,
    ) -> None:
        self._services = services
        self.connection = connection
        self.route = route
        self.version = version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.request: object | None = None
        """What an answer to an unexpected error is made from; None for Produce, whose records are views of what was
        received."""
        self.unwritten: list[tuple[PartitionLog, Any]] | None = None
        """The logs on whose appends the answer depends (Produce)."""
        self.acks_all = False
        """Whether it waits until those are committed, or until they are written."""
        self.is_long = False
        """Whether the request is served in slices, and its answer written so."""
        self.is_answered = False
        """Whether the answer of a long request is being written: it stays in service until that has ended."""

    @property
    def token(self) -> ReplyToken:
        """The value by which a machine or a wait answers this request later."""
        return ReplyToken(self.connection.id, self.connection.sequence)

    @property
    def row(self) -> Api:
        """The row of the request's API."""
        return self.route.row

    @property
    def now(self) -> float:
        """Monotonic seconds at the start of this turn."""
        return self._services.clock.now

    @property
    def now_ms(self) -> int:
        """Wall-clock milliseconds at the start of this turn."""
        return self._services.clock.now_ms

    @property
    def client_host(self) -> str:
        """The peer's address as Kafka's group APIs show it: a slash and the address, without the port."""
        host = self.connection.peer.rsplit(":", 1)[0].strip("[]")
        return f"/{_as_java_writes(host) if ':' in host else host}"

    @property
    def principal(self) -> str:
        """Who asks."""
        return self.connection.session.principal

    @property
    def listener(self) -> str:
        """The name of the listener that the request came in on."""
        return self.connection.session.listener.name

    @property
    def node_id(self) -> int:
        """This broker's id."""
        return self._services.node_id

    @property
    def cluster_id(self) -> str:
        return self._services.cluster_id

    @property
    def settings(self) -> Settings:
        """The broker's settings, dynamic changes included."""
        return self._services.settings

    @property
    def metadata(self) -> Image:
        """The current picture of the cluster: read only."""
        return self._services.image

    @property
    def partitions(self) -> Partitions:
        """The logs that this broker holds: `.get(topic, partition)`, `.get_by_id(topic_id, partition)`; `.not_led_here`
        are those that it does not lead, with their leader epochs."""
        return self._services.partitions

    def error_of_absent(self, topic: str, partition: int) -> int:
        """What to say of a partition that has no log here: it is another broker's, or there is none."""
        there_is = self._services.image.partition(topic, partition) is not None
        return errors.NOT_LEADER_OR_FOLLOWER if there_is else errors.UNKNOWN_TOPIC_OR_PARTITION

    def leader_hint(self, topic: str, partition: int) -> tuple[int, int, Broker | None]:
        """Who leads a partition, in which epoch, and the broker's registration if this caller can reach it
        (KIP-951)."""
        state = self._services.image.partition(topic, partition)
        if state is None:
            return -1, -1, None
        broker = self._services.image.brokers.get(state.leader)
        reachable = broker is not None and not broker.fenced and self.listener in broker.endpoints
        return state.leader, state.leader_epoch, broker if reachable else None

    @property
    def directories(self) -> Directories:
        """The directories of `log.dirs`: `.online`, `.failed`, `.at(path)`, `.of(log)`, `.prefer(topic, partition,
        path)`."""
        return self._services.directories

    @property
    def moves(self) -> Moves:
        """Replicas on their way between directories: `.start(log, source, target)`, `.cancel(topic, partition)`."""
        return self._services.open_moves()

    @property
    def snapshots(self) -> DataSnapshots:
        """Snapshots of the data: `.names()`, `.create(name)`, `.delete(name)`, `.restore(name)`, `.rewind(name,
        topic)`."""
        return self._services.open_data_snapshots()

    @property
    def groups(self) -> Groups:
        """The group coordinator's shards: `.submit(group_id, event)`, `.shard_for(group_id)`."""
        return self._services.groups

    @property
    def controller(self) -> Controller:
        """The controller: `.submit(event)` gives DEFERRED, the answer comes when its records are committed."""
        return self._services.controller

    @property
    def producer_ids(self) -> ProducerIds:
        """The producer ids that this broker gives out: `.take()`, `.ask()`."""
        return self._services.producer_ids

    @property
    def fetch_sessions(self) -> FetchSessions:
        """The broker's cache of incremental fetch sessions (KIP-227)."""
        return self._services.fetch_sessions

    @property
    def purgatory(self) -> Purgatory:
        """Parked requests: `.listen(wait)` until `.ignore(wait)`, for one that watches very much."""
        return self._services.purgatory

    @property
    def telemetry(self) -> Telemetry:
        """The client instances that push their own metrics (KIP-714)."""
        return self._services.client_metrics.telemetry

    @property
    def client_metrics(self) -> ClientMetrics:
        """Keeps what they push: `.keep(token, instance, request)` gives DEFERRED, the answer comes when it is
        written."""
        return self._services.client_metrics

    @property
    def client_software(self) -> tuple[str, str]:
        """Name and version of the client's software as its ApiVersions request told them (KIP-511)."""
        return getattr(self.connection, "software", None) or UNKNOWN_SOFTWARE

    def set_client_software(self, name: str, version: str) -> None:
        """Remember them for as long as the connection lives; many connections of one software share one value."""
        self.connection.software = self._services.client_metrics.shared_software(name, version)

    @property
    def log_level(self) -> str:
        """The least level of log lines that are written: debug, info, warning or error."""
        return self._services.logs.level

    def set_log_level(self, level: str) -> None:
        """Change it, for this process and until it ends."""
        self._services.logs.set_level(level)

    def allowed(self, operation: str, resource_type: str, resource_name: str | None) -> bool:
        """Whether the principal may do `operation` on the resource; everybody may where the node has no authorizer."""
        return self.connection.session.allowed(operation, resource_type, resource_name)

    def answer_later(self, job: Job, answer: Callable[[Any], object]) -> object:
        """Run `job()` on the thread for long computations; `answer(result)` then gives this request's answer. Returns
        DEFERRED."""
        self._services.compute(self.token, job, answer)
        return DEFERRED

    def storage_failed(self, log: PartitionLog, failure: Exception) -> None:
        """`log` can't be written any more: the shell says it once and wakes who waits for it."""
        self._services.log_failed(log, failure)

    def read_failed(self, log: PartitionLog, failure: Exception) -> None:
        """`log` could not be read: its directory is given up, unless the metadata log is there too."""
        directories = self._services.directories
        directories.report(directories.of(log), failure)

    def written_without_answer(self, log: PartitionLog) -> None:
        """`log` got records that no answer depends on (acks=0): they are written at the end of the turn all the
        same."""
        self._services.mark_written(log)

    def advertised(self, broker_id: int) -> tuple[str, int]:
        """Host and port at which this caller reaches the broker: `advertised.listeners`, or the way it came by; of
        another broker what it registered for the caller's listener."""
        if broker_id != self._services.node_id:
            endpoint = self._services.image.brokers[broker_id].endpoints[self.listener]
            return endpoint.host, endpoint.port
        return self.connection.listener.advertised(self.connection.local_address)


def _as_java_writes(host: str) -> str:
    """An IPv6 address with all its eight groups; one that stands for an IPv4 address as that."""
    from ipaddress import IPv6Address

    address = IPv6Address(host.partition("%")[0])
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return ":".join(f"{int(group, 16):x}" for group in address.exploded.split(":"))
