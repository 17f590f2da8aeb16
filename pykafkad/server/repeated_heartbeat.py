"""What a heartbeat means that a member of a consumer group repeats; see `heartbeat_fast_path.py`.

This is a module of its own because a broker without consumer groups need not load what it imports."""

from __future__ import annotations

from struct import error as StructError

from pykafkad.coordinator import group_settings
from pykafkad.coordinator.consumer_group import ConsumerGroup
from pykafkad.coordinator.consumer_heartbeat import answer_of, is_steady
from pykafkad.coordinator.events import ConsumerGroupHeartbeat
from pykafkad.coordinator.group_types import CONSUMER
from pykafkad.coordinator.reconciled_group import SESSION
from pykafkad.errors import ProtocolError
from pykafkad.handlers import group_protocols
from pykafkad.handlers.context import host_of
from pykafkad.wire import frames, messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pykafkad.server.broker import Broker
    from pykafkad.server.connection import Connection
    from pykafkad.server.heartbeat_fast_path import Known

_SIZE_AND_CORRELATION_ID = 8
# Every version of ConsumerGroupHeartbeat (68) is flexible.
_HEADER_WITH_TAGS = {68: 0}


def meaning(broker: Broker, connection: Connection, frame: memoryview, version: int) -> Known | None:
    """What `HeartbeatFastPath` remembers of the request, or None if it is not steady now or is no request at all."""
    if not group_protocols.is_on(CONSUMER, broker.settings, broker.image.features):
        return None
    try:
        _, _, _, client_id, position = frames.read_request_header(frame, _HEADER_WITH_TAGS)
        request, end = messages.decoder(messages.ConsumerGroupHeartbeatRequest, version)(frame, position)
    except (ProtocolError, StructError):
        return None
    runner, _ = broker.groups.runner_for(request.group_id)
    if runner is None:
        return None
    shard: Any = runner.machine
    group = shard.groups.get(request.group_id)
    event = ConsumerGroupHeartbeat(None, request, client_id, host_of(connection.peer))
    if not isinstance(group, ConsumerGroup) or end != len(frame) or not is_steady(group, event):
        return None
    chunks = [frames.start_response(0, True)]
    messages.encoder(messages.ConsumerGroupHeartbeatResponse, version)(
        answer_of(shard, group.group_id, request.member_id, request.member_epoch), chunks
    )
    answer = b"".join(chunks)[_SIZE_AND_CORRELATION_ID:]
    timeout_ms = group_settings.number(shard, group.group_id, "consumer_session_timeout_ms")
    member = group.members[request.member_id]
    return connection.id, runner, shard.groups, group, member, (SESSION, member.member_id), timeout_ms / 1000, answer
