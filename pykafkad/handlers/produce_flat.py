"""The commonest Produce request, served without building a message: one topic, one partition, acks 1 or all, no transaction.

Building messages is half of what a small request costs. The log is found by the bytes of `echo.py`.
Whatever is not exactly this shape, and every error, is left to `produce.py`, which sees the untouched frame.
"""

from __future__ import annotations

from struct import Struct

from pykafkad.errors import KafkaError, ProtocolError, StorageFailure
from pykafkad.handlers import echo as echoes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.server.connection import Connection
    from pykafkad.server.node import Node

_HEADER = Struct(">hhih")  # key, version, correlation id, client id length
_FIXED_BODY = Struct(">hhii")  # no transactional id (-1), acks, timeout, one topic
_FLEXIBLE_BODY = Struct(">BBhiB")  # no header tags, no transactional id, acks, timeout, one topic (2)
_SIZE = Struct(">i")

# Size and correlation id in front of the echo; from version 9 an empty tag section ends the header.
_FIXED_HEAD = Struct(">ii")
_FLEXIBLE_HEAD = Struct(">iib")

# After the echo: error code, base offset, log append time, log start offset, record errors, error message, throttle time.
_TAIL_3 = Struct(">hqqi")
_TAIL_5 = Struct(">hqqqi")
_TAIL_8 = Struct(">hqqqihi")
_TAIL_9 = Struct(">hqqqbbbbib")


class FlatProduce:
    """Serves frames of the common shape. `serve` answers False for every other frame, having changed nothing."""

    versions = frozenset(range(3, 14))

    __slots__ = ("_log", "_node", "forget")

    def __init__(self, node: Node) -> None:
        self._node = node
        known = echoes.Echoes(lambda: node.partitions, node.writable_by_clients)
        self._log = known.log
        self.forget = known.forget

    def serve(self, connection: Connection, view: memoryview, start: int, end: int, version: int) -> bool:
        """Append and answer; False if the frame is not of the common shape or the append failed."""
        _, _, correlation_id, client_length = _HEADER.unpack_from(view, start)
        position = start + 10 + (client_length if client_length > 0 else 0)
        if version < 9:
            no_transaction, acks, _, topics = _FIXED_BODY.unpack_from(view, position)
            if no_transaction != -1 or topics != 1 or acks not in (1, -1):
                return False
            form = echoes.NAME
            echo_start = position + 8
            echo_end = echoes.end_of_echo(view, echo_start, form)
            # A name length that lies ends beyond the frame and fails here, before anything is read there.
            if echo_end < 0 or echo_end + 4 > end:
                return False
            records = echo_end + 4
            last = end
            if records + _SIZE.unpack_from(view, echo_end)[0] != end:
                return False
        else:
            header_tags, transaction, acks, _, topics = _FLEXIBLE_BODY.unpack_from(view, position)
            if header_tags or transaction or topics != 2 or acks not in (1, -1):
                return False
            form = echoes.COMPACT_NAME if version < 13 else echoes.ID
            echo_start = position + 8
            echo_end = echoes.end_of_echo(view, echo_start, form)
            if echo_end < 0 or echo_end + 8 > end:
                return False
            records, size = _records(view, echo_end)
            last = records + size
            # Three empty tag sections end the partition, the topic and the request.
            if size < 0 or last + 3 != end or view[last] or view[last + 1] or view[last + 2]:
                return False
        echo = bytes(view[echo_start:echo_end])
        log = self._log(echo, form)
        if log is None:
            return False
        try:
            result = log.append(view[records:last], self._node.now_ms, version)
        except (KafkaError, ProtocolError, StorageFailure):
            return False
        self._answer(connection, version, correlation_id, echo, log, result)
        return True

    def _answer(self, connection: Connection, version: int, correlation_id: int, echo: bytes, log: object, result: object) -> None:
        base_offset, _, append_time_ms, log_start_offset = result
        length = len(echo)
        if version >= 9:
            # Compact: no record errors (1), no message (0), three empty tag sections.
            tail = _TAIL_9.pack(0, base_offset, append_time_ms, log_start_offset, 1, 0, 0, 0, 0, 0)
            head = _FLEXIBLE_HEAD.pack(5 + length + len(tail), correlation_id, 0)
            error_position = 9 + length
        else:
            if version == 8:
                tail = _TAIL_8.pack(0, base_offset, append_time_ms, log_start_offset, 0, -1, 0)
            elif version >= 5:
                tail = _TAIL_5.pack(0, base_offset, append_time_ms, log_start_offset, 0)
            else:
                tail = _TAIL_3.pack(0, base_offset, append_time_ms, 0)
            head = _FIXED_HEAD.pack(4 + length + len(tail), correlation_id)
            error_position = 8 + length
        outbox = connection.outbox
        node = self._node
        node.writes.cover_flat(log, connection, len(outbox), error_position)
        answer = head + echo + tail
        outbox.append(answer)
        connection.outbox_bytes += len(answer)
        if not connection.queued:
            connection.queued = True
            node.reactor.ready.append(connection)


def _records(view: memoryview, position: int) -> tuple[int, int]:
    """Where compact records begin, and their size (-1 if null or malformed)."""
    value = shift = 0
    for _ in range(5):
        byte = view[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return position, value - 1
        shift += 7
    return position, -1
