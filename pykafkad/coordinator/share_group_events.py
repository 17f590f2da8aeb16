"""The events of share groups (KIP-932), besides those of every group (`events.py`)."""

from __future__ import annotations

from pykafkad.coordinator.events import MemberHeartbeat
from pykafkad.coordinator.group_types import SHARE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.wire import messages

    Failures = dict[tuple[bytes, int], tuple[int, str | None]]
    """Topic id and partition to the error code and text."""


class ShareGroupHeartbeat(MemberHeartbeat):
    """The heartbeat of a member."""

    __slots__ = ()
    group_type = SHARE


class AlterOffsets:
    """The start offsets of share partitions are set. The group must have no members."""

    __slots__ = ("request", "token")
    group_type = SHARE

    def __init__(self, token: object, request: messages.AlterShareGroupOffsetsRequest) -> None:
        self.token = token
        self.request = request


class DeleteOffsets:
    """The delivery state of topics is deleted. The group must have no members."""

    __slots__ = ("request", "token")
    group_type = SHARE

    def __init__(self, token: object, request: messages.DeleteShareGroupOffsetsRequest) -> None:
        self.token = token
        self.request = request


class StateAnswered:
    """The share coordinator has answered what an `AskShareState` asked for `partitions`, by topic id. `failures` are
    the partitions for which it could not be done. `response` waits for this; None if nobody waits."""

    __slots__ = ("failures", "group_id", "partitions", "response", "token")
    group_type = SHARE

    def __init__(
        self,
        group_id: str,
        partitions: dict[bytes, frozenset[int]],
        failures: Failures,
        token: object = None,
        response: object = None,
    ) -> None:
        self.group_id = group_id
        self.partitions = partitions
        self.failures = failures
        self.token = token
        self.response = response


class StateInitialized(StateAnswered):
    """The state of share partitions has begun."""

    __slots__ = ()


class StateDeleted(StateAnswered):
    """The state of share partitions is gone."""

    __slots__ = ()


class GroupStateDeleted(StateAnswered):
    """The state of all share partitions of a group that is to be deleted is gone."""

    __slots__ = ()
