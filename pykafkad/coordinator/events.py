"""The events of a `GroupShard`, besides `effects.TimerFired`.

A request arrives as its decoded message. The handler has already made the checks that do not depend on the group
(authorization, whether topics exist, empty group ids). A difference in behaviour between API versions is a named
boolean, not a version number. A `Reply` effect answers `token`, either in the same step or in a later one: a JoinGroup,
for example, is answered when all members have joined.
"""

from __future__ import annotations

from pykafkad.coordinator.group_types import CONSUMER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pykafkad.coordinator.group_types import ClusterView
    from pykafkad.coordinator.target_computation import TargetComputation
    from pykafkad.wire import messages


class _Event:
    __slots__: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in self.__slots__)})"


class JoinGroup(_Event):
    """A member joins its group.

    `member_id_required`: a new dynamic member gets its id in an error response and must join again with it (KIP-394,
    v4+). `may_skip_assignment`: the response to a static leader that returns can list the members and tell it to keep
    the assignment (KIP-814, v9+). `may_describe`: as in `MemberHeartbeat`."""

    __slots__ = (
        "client_host",
        "client_id",
        "may_describe",
        "may_skip_assignment",
        "member_id_required",
        "request",
        "token",
    )

    def __init__(
        self,
        token: object,
        request: messages.JoinGroupRequest,
        client_id: str,
        client_host: str,
        member_id_required: bool,
        may_skip_assignment: bool,
        may_describe: Callable[[str], bool] | None = None,
    ) -> None:
        self.token = token
        self.request = request
        self.client_id = client_id
        self.client_host = client_host
        self.member_id_required = member_id_required
        self.may_skip_assignment = may_skip_assignment
        self.may_describe = may_describe


class SyncGroup(_Event):
    """A member asks for its assignment; the leader brings the assignments of all members."""

    __slots__ = ("request", "token")

    def __init__(self, token: object, request: messages.SyncGroupRequest) -> None:
        self.token = token
        self.request = request


class Heartbeat(_Event):
    """A member shows that it is alive."""

    __slots__ = ("request", "token")

    def __init__(self, token: object, request: messages.HeartbeatRequest) -> None:
        self.token = token
        self.request = request


class LeaveGroup(_Event):
    """Members leave their group. The request's `members` is filled whatever the request's version was."""

    __slots__ = ("request", "token")

    def __init__(self, token: object, request: messages.LeaveGroupRequest) -> None:
        self.token = token
        self.request = request


class OffsetCommit(_Event):
    """Offsets are committed. Every topic of the request has both its name and its id.

    `group_id_not_found`: the error for an unknown group is GROUP_ID_NOT_FOUND (v9+), not ILLEGAL_GENERATION."""

    __slots__ = ("group_id_not_found", "request", "token")

    def __init__(self, token: object, request: messages.OffsetCommitRequest, group_id_not_found: bool) -> None:
        self.token = token
        self.request = request
        self.group_id_not_found = group_id_not_found


class TxnOffsetCommit(_Event):
    """Offsets are committed in a producer's transaction, which has been verified to have the group's partition.

    `tells_more`: the client understands GROUP_ID_NOT_FOUND and STALE_MEMBER_EPOCH (v6+)."""

    __slots__ = ("request", "tells_more", "token")

    def __init__(self, token: object, request: messages.TxnOffsetCommitRequest, tells_more: bool = False) -> None:
        self.token = token
        self.request = request
        self.tells_more = tells_more


class OffsetDelete(_Event):
    """Committed offsets of a group are deleted."""

    __slots__ = ("request", "token")

    def __init__(self, token: object, request: messages.OffsetDeleteRequest) -> None:
        self.token = token
        self.request = request


class DeleteGroup(_Event):
    """A group is deleted. The reply's message is one DeletableGroupResult."""

    __slots__ = ("group_id", "token")

    def __init__(self, token: object, group_id: str) -> None:
        self.token = token
        self.group_id = group_id


class TopicsDeleted(_Event):
    """Topics were deleted, so their committed offsets are deleted too. `topics` is a list of `(name, topic id)`."""

    __slots__ = ("topics",)

    def __init__(self, topics: list[tuple[str, bytes]]) -> None:
        self.topics = topics


class MetadataChanged(_Event):
    """The shard's view of the cluster's metadata has changed.

    `topics` are the names of topics that were created or deleted, or whose partitions have changed. `has_created`: one
    of them is new, so that patterns may match more."""

    __slots__ = ("has_created", "topics")

    def __init__(self, topics: list[str], has_created: bool) -> None:
        self.topics = topics
        self.has_created = has_created


class MemberHeartbeat(_Event):
    """A member of a group of a newer type joins, shows that it is alive, or leaves. `request` is the heartbeat request
    of the type. `may_describe` says of a topic's name whether the caller may know of it; without it, of every one."""

    __slots__ = ("client_host", "client_id", "may_describe", "request", "token")

    def __init__(
        self,
        token: object,
        request: Any,
        client_id: str,
        client_host: str,
        may_describe: Callable[[str], bool] | None = None,
    ) -> None:
        self.token = token
        self.request = request
        self.client_id = client_id
        self.client_host = client_host
        self.may_describe = may_describe


class ConsumerGroupHeartbeat(MemberHeartbeat):
    """The heartbeat of a member of a consumer group (KIP-848)."""

    __slots__ = ()
    group_type = CONSUMER


class TargetComputed(_Event):
    """A computation that an `effects.Compute` asked for has ended. `outcome` is None if it has failed."""

    __slots__ = ("computation", "outcome")

    def __init__(self, computation: TargetComputation, outcome: Any) -> None:
        self.computation = computation
        self.outcome = outcome


class _OfComputation(_Event):
    __slots__ = ("computation",)

    def __init__(self, computation: TargetComputation) -> None:
        self.computation = computation


class TargetRefused(_OfComputation):
    """A computation that an `effects.Compute` asked for never begins, or its outcome can't be written or told: records
    were refused, or there is a bug."""

    __slots__ = ()


class TargetWritten(_OfComputation):
    """The outcome of a computation was written, in an earlier turn."""

    __slots__ = ()


class Loaded(_Event):
    """The whole partition has been read. From now on the shard serves requests and sets timers.

    `metadata` is a view of the cluster's metadata, which the shard may read in every later step (`group_types.py`).
    """

    __slots__ = ("metadata",)

    def __init__(self, metadata: ClusterView | None = None) -> None:
        self.metadata = metadata


class Resigned(_Event):
    """This node no longer coordinates the partition, or failed to write it: waiting requests get NOT_COORDINATOR."""

    __slots__ = ()
