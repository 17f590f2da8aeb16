"""Topics and partitions of the cluster: their state, and the rules for topic names."""

from __future__ import annotations

from pykafkad.metadata.placement import LOST_DIRECTORY
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, Protocol, TypeVar

    T = TypeVar("T")

    class Share(Protocol):
        """Makes a tuple of values. It may return an equal tuple that exists already."""

        def __call__(self, values: Iterable[T], /) -> tuple[T, ...]: ...


INTERNAL_TOPICS = frozenset(("__consumer_offsets", "__transaction_state", "__share_group_state"))
CLUSTER_METADATA_TOPIC = "__cluster_metadata"
MAX_NAME_LENGTH = 249
TOPICS_NAMED = 20
"""How many of the topics that one request creates or deletes have a line of the log each; the others are counted."""

NO_LEADER = -1
NO_LEADER_CHANGE = -2

_LEGAL = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


class Topic:
    """A topic: `name`, 16-byte `id`, and its `partitions` in the order of their index.

    `described` and `pages` cache the rows that Metadata and DescribeTopicPartitions compute from the topic. Both become
    None when a partition changes."""

    __slots__ = ("described", "id", "name", "pages", "partitions")

    def __init__(self, name: str, topic_id: bytes) -> None:
        self.name = name
        self.id = topic_id
        self.partitions: list[PartitionState] = []
        self.described: Any = None
        self.pages: Any = None

    def put(self, state: PartitionState) -> None:
        """Add or replace a partition. The partitions of one batch may come in any order: a partition that is missing
        yet is None."""
        self.described = self.pages = None
        partitions = self.partitions
        if state.index == len(partitions):
            partitions.append(state)
            return
        while len(partitions) <= state.index:
            partitions.append(None)  # type: ignore[arg-type]
        partitions[state.index] = state

    @property
    def is_internal(self) -> bool:
        """Whether brokers keep their own state in the topic. Pattern subscriptions of clients leave it out."""
        return self.name in INTERNAL_TOPICS

    def __repr__(self) -> str:
        return f"Topic({self.name!r}, {len(self.partitions)} partitions)"


class PartitionState:
    """The metadata of one partition.

    `leader` is a broker id or -1. `leader_epoch` counts changes of the leader, `partition_epoch` counts all changes.
    `directories` holds the directory id of each replica, in the order of `replicas`."""

    __slots__ = (
        "adding_replicas",
        "directories",
        "elr",
        "index",
        "isr",
        "last_known_elr",
        "leader",
        "leader_epoch",
        "leader_recovery_state",
        "partition_epoch",
        "removing_replicas",
        "replicas",
    )

    def __init__(self, record: messages.PartitionRecord, share: Share) -> None:
        self.index = record.partition_id
        self.replicas = share(record.replicas)
        self.isr = share(record.isr)
        self.removing_replicas = share(record.removing_replicas)
        self.adding_replicas = share(record.adding_replicas)
        self.leader = record.leader
        self.leader_recovery_state = record.leader_recovery_state
        self.leader_epoch = record.leader_epoch
        self.partition_epoch = record.partition_epoch
        self.directories = share(record.directories)
        self.elr = share(record.eligible_leader_replicas or ())
        self.last_known_elr = share(record.last_known_elr or ())

    @property
    def lost(self) -> tuple[int, ...]:
        """The replicas whose log is out of service: the metadata names no directory for them."""
        if LOST_DIRECTORY not in self.directories:
            return ()
        return tuple(
            replica
            for replica, directory in zip(self.replicas, self.directories, strict=False)
            if directory == LOST_DIRECTORY
        )

    def change(self, record: messages.PartitionChangeRecord, share: Share) -> None:
        """Apply a PartitionChangeRecord. Fields that are null do not change. A record with a leader, even the same one,
        starts a new leader epoch. Every record raises the partition epoch."""
        if record.isr is not None:
            self.isr = share(record.isr)
        if record.replicas is not None:
            self.replicas = share(record.replicas)
        if record.removing_replicas is not None:
            self.removing_replicas = share(record.removing_replicas)
        if record.adding_replicas is not None:
            self.adding_replicas = share(record.adding_replicas)
        if record.directories is not None:
            self.directories = share(record.directories)
        if record.eligible_leader_replicas is not None:
            self.elr = share(record.eligible_leader_replicas)
        if record.last_known_elr is not None:
            self.last_known_elr = share(record.last_known_elr)
        if record.leader_recovery_state != -1:
            self.leader_recovery_state = record.leader_recovery_state
        if record.leader != NO_LEADER_CHANGE:
            self.leader = record.leader
            self.leader_epoch += 1
        self.partition_epoch += 1

    def to_record(self, topic_id: bytes) -> messages.PartitionRecord:
        """The PartitionRecord with the present state of the partition."""
        return messages.PartitionRecord(
            partition_id=self.index,
            topic_id=topic_id,
            replicas=list(self.replicas),
            isr=list(self.isr),
            removing_replicas=list(self.removing_replicas),
            adding_replicas=list(self.adding_replicas),
            leader=self.leader,
            leader_recovery_state=self.leader_recovery_state,
            leader_epoch=self.leader_epoch,
            partition_epoch=self.partition_epoch,
            directories=list(self.directories),
            eligible_leader_replicas=list(self.elr) or None,
            last_known_elr=list(self.last_known_elr) or None,
        )

    def __repr__(self) -> str:
        return f"PartitionState({self.index}, leader={self.leader}, epoch={self.leader_epoch}, isr={list(self.isr)})"


def name_problem(name: str) -> str | None:
    """Why a topic may not have this name, as an error message for the client. None when it may."""
    if not name:
        reason = "the empty string is not allowed"
    elif name in (".", ".."):
        reason = f"'{name}' is not allowed"
    elif len(name) > MAX_NAME_LENGTH:
        reason = f"the length of '{name}' is longer than the max allowed length {MAX_NAME_LENGTH}"
    elif not _LEGAL.issuperset(name):
        reason = f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
    else:
        return None
    return f"Topic name is invalid: {reason}"


def collision_key(name: str) -> str | None:
    """The key that names share which differ only in '.' and '_': metric names cannot tell them apart. None for a name
    that cannot collide."""
    if "." in name or "_" in name:
        return name.replace(".", "_")
    return None
