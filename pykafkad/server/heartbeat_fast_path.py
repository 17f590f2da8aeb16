"""Heartbeats of consumer groups (KIP-848) that say nothing new, answered from their bytes.

A member repeats the same request every few seconds, byte for byte but for its correlation id. When one comes for the
second time, it is looked up what it means and what its answer is. From then on it is answered without a message, and
only extends its member's session, as long as nothing has changed for the member or its group. Whatever has changed is
left to `consumer_heartbeat.py`.

A member is replaced by another object whenever something about it changes, so the same object is the same member.
"""

from __future__ import annotations

from struct import Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pykafkad.coordinator.consumer_group import ConsumerGroup
    from pykafkad.coordinator.consumer_member import ConsumerMember
    from pykafkad.server.broker import Broker
    from pykafkad.server.connection import Connection
    from pykafkad.server.coordinator_host import ShardRunner

    Known = tuple[int, ShardRunner, dict[str, Any], ConsumerGroup, ConsumerMember, tuple[str, str], float, bytes]

_START = Struct(">ii")  # size, correlation id

# In all, and of each request. More, and longer ones, take the general path.
_MAX_REMEMBERED = 10_000
_MAX_REQUEST_BYTES = 400


class HeartbeatFastPath:
    """Serves repeated heartbeats. `serve` answers False for every other frame, having changed nothing."""

    versions = frozenset((0, 1))

    __slots__ = ("_broker", "_commits", "_known", "_seen")

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._commits = broker.commits
        # By version and by the request from its client id on: the connection that sends it, the runner of the group's
        # shard, that shard's groups, the group, the member, the key of its session's deadline, the session's seconds,
        # and the answer behind its correlation id.
        self._known: tuple[dict[bytes, Known], ...] = ({}, {})
        # Requests that came once, with their correlation ids: one request may be offered here twice.
        self._seen: tuple[dict[bytes, int], ...] = ({}, {})

    def forget(self) -> None:
        """Topics, features or settings changed."""
        for known, seen in zip(self._known, self._seen, strict=True):
            known.clear()
            seen.clear()

    def serve(
        self, connection: Connection, view: memoryview, start: int, end: int, version: int, correlation_id: int
    ) -> bool:
        """Extend the member's session and answer; False if the request is not known or something has changed."""
        request = view[start + 8 : end].tobytes()
        known = self._known[version].get(request)
        if known is None:
            known = self._look_up(connection, view[start:end], request, version, correlation_id)
            if known is None:
                return False
        connection_id, runner, groups, group, member, deadline, timeout_seconds, answer = known
        if (
            connection.id != connection_id
            or runner.has_resigned
            or groups.get(group.group_id) is not group
            or group.members.get(member.member_id) is not member
            or group.topics_changed
            or group.epoch > group.target_epoch
            or not member.is_reconciled_to(group.target_epoch)
        ):
            del self._known[version][request]
            return False
        session_ends = self._broker.runtime.now + timeout_seconds
        if session_ends < group.timer_at or not self._commits.is_settled(runner.log):
            return False
        group.deadlines[deadline] = session_ends
        connection.outbox.append(_START.pack(len(answer) + 4, correlation_id) + answer)
        return True

    def _look_up(
        self, connection: Connection, frame: memoryview, request: bytes, version: int, correlation_id: int
    ) -> Known | None:
        """Remember what a request means that comes for the second time; None if it is to be served as all others."""
        seen, known = self._seen[version], self._known[version]
        if seen.get(request, correlation_id) == correlation_id:
            if len(request) <= _MAX_REQUEST_BYTES:
                if len(seen) >= _MAX_REMEMBERED:
                    seen.clear()
                seen[request] = correlation_id
            return None
        from pykafkad.server import repeated_heartbeat

        meaning = repeated_heartbeat.meaning(self._broker, connection, frame, version)
        del seen[request]
        if meaning is not None:
            if len(known) >= _MAX_REMEMBERED:
                known.clear()
            known[request] = meaning
        return meaning
