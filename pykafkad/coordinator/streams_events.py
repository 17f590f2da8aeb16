"""The event of streams groups (KIP-1071), besides those of every group (`events.py`)."""

from __future__ import annotations

from pykafkad.coordinator.events import MemberHeartbeat
from pykafkad.coordinator.group_types import STREAMS


class StreamsGroupHeartbeat(MemberHeartbeat):
    """The heartbeat of a member. The request has passed `streams_request.check`.

    The answer is a `StreamsGroupHeartbeatResponse`. An `effects.CreateInternalTopics` with the same token and the same
    response stands before the `Reply` when the topology needs topics that do not exist."""

    __slots__ = ()
    group_type = STREAMS
