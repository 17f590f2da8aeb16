"""The types of groups that share the partitions of `__consumer_offsets`, and where the rules of each are.

A `GroupShard` holds groups of several classes in one dict. Every class has the members of `Group`. The rules of a type
are a module, which is imported when the first group, record or request of the type is met: a type that nobody uses
costs neither start-up time nor memory. The rules of classic groups are in `shard.py` itself.
"""

from __future__ import annotations

from functools import cache

CLASSIC = "classic"
CONSUMER = "consumer"
SHARE = "share"
STREAMS = "streams"

MODULES: dict[str, str] = {
    CONSUMER: "pykafkad.coordinator.consumer_rules",
    SHARE: "pykafkad.coordinator.share_group_rules",
    STREAMS: "pykafkad.coordinator.streams_rules",
}
"""Type to the module of its rules (`Rules`). A type without one is not served: its records stay in the log."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, Protocol

    from pykafkad.coordinator.shard import GroupShard
    from pykafkad.coordinator.step import Step
    from pykafkad.effects import StoredRecord
    from pykafkad.wire import messages

    class BrokerView(Protocol):
        """A broker: `rack` is None when it has none."""

        @property
        def rack(self) -> str | None: ...

    class PartitionView(Protocol):
        """A partition: the ids of the brokers that hold it."""

        @property
        def replicas(self) -> Sequence[int]: ...

    class TopicView(Protocol):
        """A topic. The position of a partition in the list is its index."""

        @property
        def name(self) -> str: ...

        @property
        def id(self) -> bytes: ...

        @property
        def partitions(self) -> Sequence[PartitionView]: ...

    class ClusterView(Protocol):
        """What coordinators read of the cluster's metadata: topics by name, brokers by id, settings. `offset` grows
        with every change.

        The shell passes it with `events.Loaded`. The image of `pykafkad/metadata` is such a view. It changes between
        steps, never within one, and each change that may concern groups is followed by `events.MetadataChanged`.
        """

        @property
        def offset(self) -> int: ...

        @property
        def topics(self) -> Mapping[str, TopicView]: ...

        @property
        def brokers(self) -> Mapping[int, BrokerView]: ...

        @property
        def features(self) -> Mapping[str, int]: ...

        def topic_by_id(self, topic_id: bytes) -> TopicView | None: ...

        def configs(self, resource_type: int, name: str) -> Mapping[str, str]: ...

    class Group(Protocol):
        """What a shard knows of a group of any type."""

        group_id: str
        type: str
        protocol_type: str | None

        @property
        def state(self) -> str:
            """Kafka's name of the state, as ListGroups shows it."""

        @property
        def is_empty(self) -> bool:
            """Whether the group can be deleted."""

        def check_commit(self, request: messages.OffsetCommitRequest, has_member_epochs: bool = True) -> int:
            """The error code that refuses a commit of offsets as a whole, or NONE. `has_member_epochs`: the request is
            of a version (9 and later) that members of the consumer protocol may use."""

        def check_fetch(self, member_id: str | None, epoch: int) -> int:
            """The error code that refuses a member's OffsetFetch, or NONE."""

        def check_offset_delete(self) -> int:
            """The error code that refuses an OffsetDelete as a whole, or NONE."""

        def check_delete(self) -> int:
            """The error code that refuses a DeleteGroups, or NONE."""

        def is_subscribed_to(self, topic: str) -> bool:
            """Whether the offsets of the topic are kept because a member subscribes to it."""

        def offsets_expire_since(self) -> tuple[bool, int | None]:
            """Whether offsets of the group can expire now, and the time in ms from which their retention counts; None:
            from the commit of each."""

        def tombstones(self) -> list[StoredRecord]:
            """The records that delete the group, without its offsets."""

        def cancel_timers(self, step: Step) -> None:
            """Cancel all timers of the group, which is deleted."""

    class Rules(Protocol):
        """The rules of one type, as tables of functions of the shard and a step."""

        STEPS: Mapping[type, Callable[[GroupShard, Step, Any], None]]
        """Event class to its step: the events of the type itself, and those of classic clients (`JoinGroup` and the
        like) that name a group of the type. What is missing among the latter is answered as Kafka answers it for a
        group of another type. `DeleteGroup` is here if there is more to delete than records of the group."""

        RECORDS: Mapping[type, Callable[[GroupShard, Any, Any], None]]
        """Class of a record's key to the function that applies key and value (None for a tombstone)."""

        TIMERS: Mapping[str, Callable[[GroupShard, Step, Any, tuple[Any, ...]], None]]
        """First item of a timer's key to the function that is called with the group and the whole key when the timer
        is due. The second item of the key is the group id."""

        def loaded(self, shard: GroupShard, step: Step, group: Any) -> None:
            """The log has been read, and the group is in it: set its timers."""

        def resigned(self, step: Step, group: Any) -> None:
            """The shard ends: answer the waiting requests of the group's members."""

        def metadata_changed(self, shard: GroupShard, step: Step, group: Any, event: Any) -> None:
            """Topics or their partitions have changed."""

        def answer_again(self, shard: GroupShard, step: Step, event: Any, response: Any) -> Any:
            """The answer to a heartbeat that has waited for a new target of its group. `response` is the answer that
            held until then. It still holds if this raises `KafkaError`."""


@cache
def rules(group_type: str) -> Rules:
    """The rules of a type other than `CLASSIC`."""
    from importlib import import_module

    module: Any = import_module(MODULES[group_type])
    return module  # type: ignore[no-any-return]
