"""The surroundings of one request: everything that a handler may touch."""

from __future__ import annotations

from collections import namedtuple

from pykafkad import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Literal, Protocol

    from pykafkad.config import Settings
    from pykafkad.handlers.authorization import Rule
    from pykafkad.handlers.controller_context import ControllerServices
    from pykafkad.handlers.fetch_sessions import FetchSessions
    from pykafkad.handlers.init_producer_id import ProducerIds
    from pykafkad.handlers.login_protocol import Login
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
        Replication,
        RequestQuota,
        ShareGroups,
        TransactionMarkers,
        Transactions,
    )
    from pykafkad.handlers.table import Api
    from pykafkad.handlers.telemetry import Telemetry
    from pykafkad.log.partition_log import PartitionLog
    from pykafkad.metadata.brokers import Broker
    from pykafkad.metadata.events import MutationQuota
    from pykafkad.metadata.image import Image

    class SessionListener(Protocol):
        """A listener of the broker."""

        name: str

        def advertised(self, reached: tuple[str, int]) -> tuple[str, int]:
            """The address to tell a caller that connected to the address `reached`."""

    class Session(Protocol):
        """Who the caller is and what it may do."""

        is_local: bool

        @property
        def principal(self) -> str: ...

        @property
        def listener(self) -> SessionListener: ...

        @property
        def login(self) -> Login | None: ...

        @property
        def may_describe(self) -> Callable[[str], bool] | None: ...

        def allowed(self, operation: str, resource_type: str, resource_name: str | None) -> bool: ...

        def could(self, operation: str, resource_type: str, resource_name: str | None) -> bool: ...

        def refused(self, rule: Rule, resource_name: str | None, request: str = "") -> None: ...

    class Connection(Protocol):
        """The connection of the request."""

        id: int
        sequence: int
        peer: str
        software: tuple[str, str] | None
        local_address: tuple[str, int]

        @property
        def session(self) -> Session: ...

        @property
        def listener(self) -> SessionListener: ...

        def close(self, reason: str) -> None:
            """End the connection; its outbox is offered to the peer once."""

    class Route(Protocol):
        """The API of the request."""

        row: Api

    Job = Callable[[], Any]


ANONYMOUS = "User:ANONYMOUS"
"""The principal of everybody who did not log in, as on every PLAINTEXT listener."""

ReplyToken = namedtuple("ReplyToken", ("connection_id", "sequence"))
ReplyToken.__doc__ = """Identifies one request whose answer comes later. Machines hold tokens, never connections."""


UNKNOWN_SOFTWARE = ("unknown", "unknown")


class _Deferred:
    """The one value that says: a machine holds `ctx.token` and will answer."""

    def __repr__(self) -> str:
        return "DEFERRED"


DEFERRED = _Deferred()


class NodeContext:
    """What the surroundings of a request have on every node, broker or controller."""

    __slots__ = ("_services",)

    _services: BrokerServices | ControllerServices

    @property
    def now(self) -> float:
        """Monotonic seconds at the start of this turn."""
        return self._services.clock.now

    @property
    def now_ms(self) -> int:
        """Wall-clock milliseconds at the start of this turn."""
        return self._services.clock.now_ms

    @property
    def cluster_id(self) -> str:
        """The cluster's id."""
        return self._services.cluster_id

    @property
    def metadata(self) -> Image:
        """The current image of the cluster's metadata: read only."""
        return self._services.image

    @property
    def login(self) -> Login | None:
        """The login by SASL of the caller's connection; None on a listener without SASL."""
        return None

    @property
    def client_host(self) -> str:
        """The caller's address, after a slash."""
        raise NotImplementedError

    @property
    def may_ask_for_tokens(self) -> bool:
        """Whether the caller is authenticated by SASL or by a TLS certificate, and not by a delegation token."""
        raise NotImplementedError

    def not_offered(self, what: str) -> None:
        """The caller asks for something that Kafka has and this broker does not offer: the log says so once."""
        self._services.logs.info_once("server", "not-offered", host=self.client_host, what=what)

    @property
    def log_level(self) -> str:
        """The lowest level of log lines that are written: debug, info, warning or error."""
        return self._services.logs.level

    def set_log_level(self, level: str) -> None:
        """Change the level until the node ends."""
        self._services.logs.set_level(level)


class Context(NodeContext):
    """One request's surroundings on a broker. Everything is read through properties, so that making one costs next to
    nothing."""

    __slots__ = (
        "acks_all",
        "client_id",
        "commit_timeout_ms",
        "connection",
        "correlation_id",
        "is_answered",
        "is_long",
        "quota",
        "request",
        "route",
        "unwritten",
        "version",
    )

    _services: BrokerServices

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
        """The request, which the answer to an unexpected error is made from. None for Produce, whose records are
        views of the receive buffer."""
        self.unwritten: list[tuple[PartitionLog, Any]] | None = None
        """The appends that the answer depends on (Produce)."""
        self.acks_all = False
        self.commit_timeout_ms = 0
        """Whether the answer waits until these appends are committed; else it waits until they are written."""
        self.is_long = False
        """Whether the request is served, and its answer encoded, in steps."""
        self.quota: RequestQuota | None = None
        """What the request costs its client; None where no client quota counts for the client."""
        self.is_answered = False
        """Whether the answer of a long request is being encoded; the request stays in service until that has ended."""

    @property
    def token(self) -> ReplyToken:
        """The value with which a machine or a delayed operation answers this request later."""
        return ReplyToken(self.connection.id, self.connection.sequence)

    @property
    def mutations(self) -> MutationQuota | None:
        """Counts the partitions that the request creates or deletes; None where no quota counts."""
        return None if self.quota is None else self.quota.mutations

    @property
    def row(self) -> Api:
        """The row of the request's API."""
        return self.route.row

    @property
    def client_host(self) -> str:
        """The peer's address as Kafka's group APIs show it: a slash and the address, without the port."""
        return host_of(self.connection.peer)

    @property
    def principal(self) -> str:
        """The caller's principal."""
        return self.connection.session.principal

    @property
    def login(self) -> Login | None:
        """The login by SASL of the caller's connection; None on a listener without SASL."""
        return self.connection.session.login

    @property
    def may_ask_for_tokens(self) -> bool:
        """Whether the caller is authenticated by SASL or by a TLS certificate, and not by a delegation token."""
        session = self.connection.session
        return session.principal != ANONYMOUS if session.login is None else not session.login.is_by_token

    @property
    def listener(self) -> str:
        """The name of the listener that received the request."""
        return self.connection.session.listener.name

    @property
    def node_id(self) -> int:
        """This broker's id."""
        return self._services.node_id

    @property
    def settings(self) -> Settings:
        """The broker's settings, dynamic changes included."""
        return self._services.settings

    def check_live_settings(self, live: Mapping[str, str]) -> None:
        """Raises `KafkaError` unless this broker could go on with `live` in place of its own live settings."""
        self._services.check_live_settings(live)

    @property
    def partitions(self) -> Partitions:
        """The logs of this broker: `.get(topic, partition)`, `.get_by_id(topic_id, partition)`. `.not_led_here` maps
        those that this broker does not lead to their leader epochs."""
        return self._services.partitions

    def error_of_absent(self, topic: str, partition: int) -> int:
        """The error for a partition without a log here: NOT_LEADER_OR_FOLLOWER if it is another broker's, else
        UNKNOWN_TOPIC_OR_PARTITION."""
        there_is = self._services.image.partition(topic, partition) is not None
        return errors.NOT_LEADER_OR_FOLLOWER if there_is else errors.UNKNOWN_TOPIC_OR_PARTITION

    def leader_hint(self, topic: str, partition: int) -> tuple[int, int, Broker | None]:
        """A partition's leader and leader epoch, and the leader's registration if this caller can reach it
        (KIP-951)."""
        state = self._services.image.partition(topic, partition)
        if state is None:
            return -1, -1, None
        broker = self._services.image.brokers.get(state.leader)
        reachable = broker is not None and not broker.fenced and self.listener in broker.endpoints
        return state.leader, state.leader_epoch, broker if reachable else None

    @property
    def directories(self) -> Directories:
        """The directories of `log.dirs`."""
        return self._services.directories

    @property
    def moves(self) -> Moves:
        """The replicas that move between directories."""
        return self._services.open_moves()

    @property
    def replication(self) -> Replication:
        """The followers of the partitions that this broker leads."""
        return self._services.open_replication()

    @property
    def snapshots(self) -> DataSnapshots:
        """The snapshots of the data."""
        return self._services.open_data_snapshots()

    @property
    def transaction_markers(self) -> TransactionMarkers:
        """What writes the ends of transactions into the partitions of this broker."""
        return self._services.open_transaction_markers()

    @property
    def groups(self) -> Groups:
        """The group coordinator's shards."""
        return self._services.groups

    @property
    def share_groups(self) -> ShareGroups:
        """The share coordinator's shards, the share partitions and the share sessions (KIP-932)."""
        return self._services.open_share_groups()

    @property
    def transactions(self) -> Transactions:
        """The transaction coordinator's shards."""
        return self._services.transactions

    @property
    def controller(self) -> Controller:
        """The controller: `.submit(event)` gives DEFERRED; the answer comes when its records are committed."""
        return self._services.controller

    @property
    def producer_ids(self) -> ProducerIds:
        """The producer ids that this broker gives out."""
        return self._services.producer_ids

    @property
    def fetch_sessions(self) -> FetchSessions:
        """The broker's cache of incremental fetch sessions (KIP-227)."""
        return self._services.fetch_sessions

    @property
    def purgatory(self) -> Purgatory:
        """The delayed operations: one that watches very many keys calls `.listen(operation)`, and `.ignore(operation)`
        at its end."""
        return self._services.purgatory

    @property
    def telemetry(self) -> Telemetry:
        """The client instances that push their own metrics (KIP-714)."""
        return self._services.client_metrics.telemetry

    @property
    def client_metrics(self) -> ClientMetrics:
        """The client instances with what they push: `.keep(token, instance, request)` gives DEFERRED; the answer comes
        when the metrics are written."""
        return self._services.client_metrics

    @property
    def client_software(self) -> tuple[str, str]:
        """Name and version of the client's software, from its ApiVersions request (KIP-511)."""
        return getattr(self.connection, "software", None) or UNKNOWN_SOFTWARE

    def set_client_software(self, name: str, version: str) -> None:
        """Remember name and version for the connection's life. Connections with equal values share one."""
        self.connection.software = self._services.client_metrics.shared_software(name, version)

    def allowed(self, operation: str, resource_type: str, resource_name: str | None) -> bool:
        """Whether the principal may do `operation` on the resource; always true where the node has no authorizer."""
        return self.connection.session.allowed(operation, resource_type, resource_name)

    def could(self, operation: str, resource_type: str, resource_name: str | None) -> bool:
        """The same, where the principal is only told what it may do."""
        return self.connection.session.could(operation, resource_type, resource_name)

    def refused(self, rule: Rule, resource_name: str | None) -> None:
        """What the request asks for on the resource is refused by the rule."""
        self.connection.session.refused(rule, resource_name, self.row.name)

    @property
    def may_describe(self) -> Callable[[str], bool] | None:
        """Says of a topic whether the caller may know of it; None where the node has no authorizer."""
        return self.connection.session.may_describe

    def answer_later(self, job: Job, answer: Callable[[Any], object]) -> object:
        """Run `job()` on the thread for long computations; `answer(result)` then makes this request's answer. Returns
        DEFERRED."""
        self._services.compute(self.token, job, answer)
        return DEFERRED

    def resume(self, serve: Callable[[], object]) -> None:
        """Go on with this request, to which the handler has said DEFERRED: `serve()` gives what a handler gives."""
        self._services.resume(self.token, serve)

    def call_later(self, seconds: float, call: Callable[[], object]) -> None:
        """Call `call` in a later turn."""
        self._services.call_later(seconds, call)

    def storage_failed(self, log: PartitionLog, failure: Exception) -> None:
        """Report that `log` could not be read or written. If it is out of service now, the broker logs that once and
        wakes the requests that wait for it. The log's directory goes offline, unless it also holds the metadata log."""
        self._services.log_failed(log, failure)

    def written_without_answer(self, log: PartitionLog) -> None:
        """Report records in `log` that no answer depends on (acks=0): they too are written at the end of the turn."""
        self._services.mark_written(log)

    def advertised(self, broker_id: int) -> tuple[str, int]:
        """Host and port at which this caller reaches a broker. For this broker they come from
        `advertised.listeners`, or are the address that the caller connected to; for another, from its registration
        for the caller's listener."""
        if broker_id != self._services.node_id:
            endpoint = self._services.image.brokers[broker_id].endpoints[self.listener]
            return endpoint.host, endpoint.port
        return self.connection.listener.advertised(self.connection.local_address)


def host_of(peer: str) -> str:
    """The address of a peer ("127.0.0.1:5000", "[::1]:5000") as Kafka's group APIs show it: a slash and the address."""
    host = peer.rsplit(":", 1)[0].strip("[]")
    return f"/{_as_java_writes(host) if ':' in host else host}"


def _as_java_writes(host: str) -> str:
    """An IPv6 address as Java writes it, with all eight groups; an IPv4-mapped address as IPv4."""
    from ipaddress import IPv6Address

    address = IPv6Address(host.partition("%")[0])
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return ":".join(f"{int(group, 16):x}" for group in address.exploded.split(":"))
