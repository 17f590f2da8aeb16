"""The parts of a broker that its handlers may use, each with the methods that they may call.

The broker makes one `BrokerServices`; a handler reaches it only through its `Context`. No service leads back to the
broker itself.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any, Protocol

    from pykafkad.config import Settings
    from pykafkad.coordinator.share_partition import SharePartition
    from pykafkad.handlers.fetch_sessions import FetchSessions
    from pykafkad.handlers.init_producer_id import ProducerIds
    from pykafkad.handlers.share_sessions import ShareSessions
    from pykafkad.handlers.telemetry import Telemetry
    from pykafkad.log.directory import LogDirectory
    from pykafkad.log.moves import FutureReplica
    from pykafkad.log.partition_log import PartitionLog
    from pykafkad.metadata.events import MutationQuota
    from pykafkad.metadata.image import Image

    class TurnClock(Protocol):
        """The time at which the present turn of the loop began."""

        @property
        def now(self) -> float:
            """Monotonic seconds."""

        @property
        def now_ms(self) -> int:
            """Wall-clock milliseconds."""

    class Logs(Protocol):
        """The node's log lines."""

        @property
        def level(self) -> str:
            """debug, info, warning or error."""

        def set_level(self, level: str) -> None:
            """Change the level until the node ends."""

        def info_once(self, name: str, event: str, /, **fields: object) -> None:
            """Write a line at info that was not written before."""

    class Partitions(Protocol):
        """The logs that this broker holds."""

        not_led_here: Mapping[PartitionLog, int]
        """The logs that this broker does not lead, with their leader epochs."""

        changes: int
        """How often the metadata of partitions or brokers has changed."""

        def get(self, topic: str, partition: int) -> PartitionLog | None:
            """The log of a partition by the topic's name."""

        def get_by_id(self, topic_id: bytes, partition: int) -> PartitionLog | None:
            """The log of a partition by the topic's id."""

        def __iter__(self) -> Iterator[PartitionLog]: ...

    class Directories(Protocol):
        """The directories of `log.dirs`."""

        online: list[LogDirectory]
        failed: dict[str, Any]
        paths: list[str]

        @property
        def metadata(self) -> LogDirectory:
            """The directory of the metadata log."""

        def at(self, path: str) -> LogDirectory | None:
            """The serving directory with this absolute path."""

        def of(self, log: PartitionLog) -> LogDirectory | None:
            """The directory that holds a log."""

        def is_cordoned(self, path: str) -> bool:
            """Whether the directory takes no new partitions."""

        def prefer(self, topic: str, partition: int, path: str) -> None:
            """Choose the directory of a partition that has no log here yet."""

        def report(self, directory: LogDirectory | None, failure: Any) -> None:
            """Report that an access to a directory failed."""

    class Moves(Protocol):
        """The replicas that move between directories."""

        def into(self, directory: LogDirectory) -> list[FutureReplica]:
            """The future replicas that grow in a directory."""

        def target(self, log: PartitionLog) -> LogDirectory | None:
            """The directory that a log moves to; None if it does not move."""

        def start(self, log: PartitionLog, source: LogDirectory, target: LogDirectory) -> None:
            """Begin to move a log."""

        def cancel(self, topic: str, partition: int) -> None:
            """Stop moving a log."""

    class DataSnapshots(Protocol):
        """Snapshots of the data."""

        restore_to: str | None

        @property
        def making(self) -> str | None:
            """The name of the snapshot that is being made."""

        def names(self) -> list[str]:
            """The names of all complete snapshots."""

        def create(self, name: str, token: Any = None) -> bool:
            """Begin a snapshot; true if it is complete already."""

        def delete(self, name: str) -> None:
            """Delete a snapshot."""

        def restore(self, name: str, asking: Any) -> None:
            """Restore all data from a snapshot."""

        def rewind(self, name: str, topic_name: str, token: Any) -> None:
            """Begin to restore one topic from a snapshot."""

    class CompositeReply(Protocol):
        """The answer to one request, made from the answers to several events."""

        def part(self) -> object:
            """The token of the next event."""

        def close(self) -> None:
            """No further event follows."""

    class Groups(Protocol):
        """The group coordinator's shards."""

        def shard_for(self, group_id: str) -> tuple[Any, int]:
            """The shard of a group and NONE, or None and an error code."""

        @property
        def is_loading(self) -> bool:
            """Whether a shard is being loaded."""

        def composite_reply(self, combine: Callable[[list[Any]], object], token: object) -> CompositeReply:
            """Collects the answers to events of one request that are submitted one after another."""

        def shards(self) -> Iterable[Any]:
            """All shards that are loaded."""

        def submit(self, group_id: str, event: Any) -> object:
            """Hand an event to the group's shard."""

        def submit_if_served(self, group_id: str, event: Any) -> tuple[object, int]:
            """`submit` and NONE, or None and the error for clients if the group's shard is not served here."""

        def submit_many(
            self, entries: list[tuple[str, Any]], combine: Callable[[list[Any]], object], token: object
        ) -> object:
            """Hand several events of one request to their shards; `combine` makes the answer of their answers."""

        def read(self, group_id: str, token: object) -> None:
            """Hold the answer until everything that it shows of the group is committed."""

    class Transactions(Protocol):
        """The transaction coordinator's shards."""

        def error_for(self, transactional_id: str) -> int:
            """NONE if this broker coordinates the id, or the error that its clients are told."""

        def shard_for(self, transactional_id: str) -> tuple[Any, int]:
            """The shard of a transactional id and NONE, or None and an error code."""

        @property
        def is_loading(self) -> bool:
            """Whether a shard is being loaded."""

        def shards(self) -> Iterable[Any]:
            """All shards that are loaded."""

        def submit(self, transactional_id: str, event: Any) -> object:
            """Hand an event to the shard of a transactional id; `error_for` has said NONE."""

        def composite_reply(self, combine: Callable[[list[Any]], object], token: object) -> CompositeReply:
            """Collects the answers to events of one request that are submitted one after another."""

        def submit_many(
            self, entries: list[tuple[str, Any]], combine: Callable[[list[Any]], object], token: object
        ) -> object:
            """Hand several events of one request to their shards; `combine` makes the answer of their answers."""

        def read(self, transactional_id: str, token: object) -> None:
            """Hold the answer until everything that it shows of the transactional id is committed."""

        def add_partitions(
            self,
            transactional_id: str,
            producer_id: int,
            producer_epoch: int,
            partitions: list[tuple[str, int]],
            verify_only: bool,
            then: Callable[[dict[tuple[str, int], int]], object],
        ) -> None:
            """Add partitions to the producer's transaction, or ask whether they belong to it. `then` gets an error code
            for each partition, once: at once, or when the transaction's record is committed."""

    class Controller(Protocol):
        """The way to the controller."""

        api_ranges: Mapping[int, tuple[int, int]] | None
        """API key to the versions that a controller in another process has; None where there is none, or it is not
        known yet."""

        def submit(self, event: object) -> object:
            """Submit an event of `metadata/events.py`; the answer comes when its records are committed."""

    class Purgatory(Protocol):
        """The delayed operations that watch too many keys to be registered under each."""

        def listen(self, operation: Any) -> None:
            """Report every touched key to the operation."""

        def ignore(self, operation: Any) -> None:
            """Stop reporting keys to the operation."""

    class GroupLimits(Protocol):
        """The settings of a share group as they are now."""

        @property
        def lock_duration_ms(self) -> int:
            """How long a member has a record."""

        @property
        def is_read_committed(self) -> bool:
            """Whether records of open and aborted transactions are withheld."""

    class LedSharePartition(Protocol):
        """A share partition with the log of its partition; delayed operations may watch it."""

        key: tuple[str, bytes, int]
        log: PartitionLog
        of: SharePartition
        is_loading: bool
        error: int
        error_text: str | None

        @property
        def is_active(self) -> bool:
            """Whether records can be acquired and given back."""

        def acknowledge(
            self, member_id: str, rows: list[tuple[int, int, list[int]]], then: Callable[[int, str | None], object]
        ) -> None:
            """Take records back; `then` gets the error code and its text when that is stored, or why it is not."""

        def plan(self) -> None:
            """Locks have begun: see to it that they run out."""

    class ShareGroups(Protocol):
        """The share coordinator's shards, the share partitions and the share sessions."""

        sessions: ShareSessions

        @property
        def states(self) -> Groups:
            """The share coordinator's shards."""

        def is_known(self, key: tuple[str, bytes, int]) -> bool:
            """Whether the partition of a share partition exists."""

        def has_state_elsewhere(self, key: tuple[str, bytes, int]) -> bool:
            """Whether another broker, which can be asked, has the state of a share partition."""

        def store(self, event_class: Any, key: tuple[str, bytes, int], row: Any, then: Callable[[Any], object]) -> None:
            """Submit an event to the share coordinator, wherever it is; `then` gets the row of its answer."""

        def find_end_elsewhere(self, topic: str, partition: int, then: Callable[[tuple[int, int]], object]) -> bool:
            """Ask the leader of a partition at another broker for its high watermark; `then` gets an error code and the
            offset. Whether there is one to be asked."""

        def limits(self, group_id: str) -> GroupLimits:
            """The settings of a group."""

        def get(self, key: tuple[str, bytes, int]) -> LedSharePartition | None:
            """A share partition that was used before and is led here."""

        def open(self, key: tuple[str, bytes, int], log: PartitionLog) -> LedSharePartition:
            """The same, made if it is new."""

        def release(self, group_id: str, member_id: str) -> bool:
            """End a member's session and take its records back. Whether it had a session."""

        def touch(self, key: object) -> None:
            """Try the delayed operations that watch a key."""

    class Replication(Protocol):
        """The followers of the partitions that the broker leads."""

        def check_follower(self, log: PartitionLog, broker: int, broker_epoch: int, leader_epoch: int) -> None:
            """Raises KafkaError unless the broker may fetch the partition as a follower."""

        def follower_refused(
            self, peer: str, broker: int, log: PartitionLog, code: int, fetch_offset: int, last_fetched_epoch: int
        ) -> None:
            """A follower did not get what it asked for; it is named if that cannot be."""

        def fetched(
            self, log: PartitionLog, broker: int, offset: int, broker_epoch: int, log_start_offset: int = -1
        ) -> None:
            """A follower has everything from `log_start_offset` on below `offset`."""

        def withholds(self, log: PartitionLog, broker: int) -> bool:
            """Whether a follower gets no records of the partition now (KIP-73)."""

        def sent(self, rows: Iterable[tuple[PartitionLog, int]]) -> None:
            """A follower is answered: each partition's log, and the size of its records in bytes."""

    class TransactionMarkers(Protocol):
        """What writes the ends of transactions into the partitions of this broker."""

        def write(self, marker: Any, then: Callable[[dict[tuple[str, int], int]], object]) -> None:
            """Write the `TransactionMarker`; `then` gets the error code of each partition when all is committed."""

    class ClientMetrics(Protocol):
        """The client instances that push their own metrics (KIP-714)."""

        @property
        def telemetry(self) -> Telemetry:
            """The client instances and their subscriptions."""

        def keep(self, token: Any, instance: Any, request: Any) -> object:
            """Store the metrics that an instance pushed; the answer comes when they are written."""

        def shared_software(self, name: str, version: str) -> tuple[str, str]:
            """Name and version of a client's software; connections with equal values share one tuple."""

    class RequestQuota(Protocol):
        """What one request costs its client."""

        @property
        def mutations(self) -> MutationQuota | None:
            """Of an API that changes topics."""

        @property
        def max_fetch_bytes(self) -> int:
            """An answer with more than this would always be throttled."""

        def throttles_fetch(self, size_bytes: int) -> bool:
            """Whether the answer must be empty, as one of this size is over a quota."""

        def pause(self) -> None:
            """The request is answered, or waits from now on."""

        def finish(self, message: Any) -> None:
            """The request is answered with `message`, or needs no answer (None)."""

    class Quotas(Protocol):
        """The client quotas of the broker."""

        def begin(self, context: Any, size_bytes: int) -> None:
            """A request of that size is served from now on."""

        def connection_lost(self, connection: Any) -> None:
            """Nobody is throttled any more."""


class BrokerServices:
    """The services of one broker; those named `open_...` are made on first use."""

    __slots__ = (
        "call_later",
        "check_live_settings",
        "client_metrics",
        "clock",
        "cluster_id",
        "compute",
        "controller",
        "directories",
        "fetch_sessions",
        "groups",
        "image",
        "log_failed",
        "logs",
        "mark_written",
        "node_id",
        "open_data_snapshots",
        "open_moves",
        "open_replication",
        "open_share_groups",
        "open_transaction_markers",
        "partitions",
        "producer_ids",
        "purgatory",
        "quotas",
        "resume",
        "settings",
        "transactions",
    )

    clock: TurnClock
    node_id: int
    cluster_id: str
    settings: Settings
    image: Image
    logs: Logs
    partitions: Partitions
    directories: Directories
    open_moves: Callable[[], Moves]
    open_replication: Callable[[], Replication]
    open_data_snapshots: Callable[[], DataSnapshots]
    open_share_groups: Callable[[], ShareGroups]
    open_transaction_markers: Callable[[], TransactionMarkers]
    check_live_settings: Callable[[Mapping[str, str]], None]
    groups: Groups
    transactions: Transactions
    controller: Controller
    producer_ids: ProducerIds
    fetch_sessions: FetchSessions
    purgatory: Purgatory
    quotas: Quotas | None
    client_metrics: ClientMetrics
    call_later: Callable[[float, Callable[[], object]], None]
    resume: Callable[[object, Callable[[], object]], None]
    compute: Callable[[object, Callable[[], object], Callable[[Any], object]], None]
    log_failed: Callable[[Any, Any], None]
    mark_written: Callable[[Any], None]

    def __init__(self, **services: object) -> None:
        """Takes the services by name. The start of the broker adds `cluster_id` and `image`."""
        for name, service in services.items():
            setattr(self, name, service)
