"""What can happen to a `GroupShard`, besides `effects.TimerFired`.

Requests arrive as the wire message they were, already checked for what does not depend on the group (authorization,
topics that exist, empty group ids). What an API version changes in behaviour is a named boolean, not a number. `token`
is answered by a `Reply` effect, at once or when the rendezvous that it waits for takes place.
"""

from __future__ import annotations


class _Event:
    __slots__ = ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in self.__slots__)})"


class JoinGroup(_Event):
    """`request` is a JoinGroupRequest. `member_id_required`: a dynamic newcomer is sent back with its id first
    (KIP-394, v4+). `may_skip_assignment`: a static leader that returns is told everything and to keep the assignment
    (KIP-814, v9+)."""

    __slots__ = ("client_host", "client_id", "may_skip_assignment", "member_id_required", "request", "token")

    def __init__(
        self,
        token: object,
        request: object,
        client_id: str,
        client_host: str,
        member_id_required: bool,
        may_skip_assignment: bool,
    ) -> None:
        self.token = token
        self.request = request
        self.client_id = client_id
        self.client_host = client_host
        self.member_id_required = member_id_required
        self.may_skip_assignment = may_skip_assignment


class _Request(_Event):
    __slots__ = ("request", "token")

    def __init__(self, token: object, request: object) -> None:
        self.token = token
        self.request = request


class SyncGroup(_Request):
    """`request` is a SyncGroupRequest."""

    __slots__ = ()


class Heartbeat(_Request):
    """`request` is a HeartbeatRequest."""

    __slots__ = ()


class LeaveGroup(_Request):
    """`request` is a LeaveGroupRequest whose `members` are filled, whatever its version was."""

    __slots__ = ()


class OffsetCommit(_Event):
    """`request` is an OffsetCommitRequest in which every topic has its name and id. `group_id_not_found`: an unknown
    group is answered with that error (v9+), not with ILLEGAL_GENERATION."""

    __slots__ = ("group_id_not_found", "request", "token")

    def __init__(self, token: object, request: object, group_id_not_found: bool) -> None:
        self.token = token
        self.request = request
        self.group_id_not_found = group_id_not_found


class OffsetDelete(_Request):
    """`request` is an OffsetDeleteRequest."""

    __slots__ = ()


class DeleteGroup(_Event):
    """The reply's message is one DeletableGroupResult."""

    __slots__ = ("group_id", "token")

    def __init__(self, token: object, group_id: str) -> None:
        self.token = token
        self.group_id = group_id


class TopicsDeleted(_Event):
    """`topics` is a list of `(name, topic id)`: their committed offsets go."""

    __slots__ = ("topics",)

    def __init__(self, topics: list[tuple[str, bytes]]) -> None:
        self.topics = topics


class Loaded(_Event):
    """The whole partition has been read: from now on the shard serves, and its timers run."""

    __slots__ = ()


class Resigned(_Event):
    """This node no longer coordinates the partition, or failed to write it: whoever waits is sent away."""

    __slots__ = ()
