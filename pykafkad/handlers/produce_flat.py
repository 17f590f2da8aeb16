"""The commonest Produce request, served without building a message: one topic, one partition, acks 1 or all, no transaction.

This is half of what a small request costs (performance: levers 1 and 5). It works because the bytes from the topic count
to the partition index are the same in request and answer: they are the key by which the log is found and are echoed as
they came. Whatever is not exactly this shape, and every error, is left to `produce.py`, which sees the untouched frame.
"""

from __future__ import annotations

from struct import Struct

from pykafkad.errors import KafkaError, ProtocolError, StorageFailure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.server.connection import Connection
    from pykafkad.server.node import Node

_HEADER = Struct(">hhih")  # key, version, correlation id, client id length
_FIXED_BODY = Struct(">hhiih")  # no transactional id (-1), acks, timeout, one topic, its name's length
_FLEXIBLE_BODY = Struct(">BBhiB")  # no header tags, no transactional id, acks, timeout, one topic (2)
_COUNT_AND_INDEX = Struct(">ii")
_SIZE = Struct(">i")

# Size and correlation id in front of the echo; from version 9 an empty tag section ends the header.
_FIXED_HEAD = Struct(">ii")
_FLEXIBLE_HEAD = Struct(">iib")

# After the echo: error code, base offset, log append time, log start offset, record errors, error message, throttle time.
_TAILS = {
    3: Struct(">hqqi"),
    5: Struct(">hqqqi"),
    8: Struct(">hqqqihi"),
    9: Struct(">hqqqbbbbib"),
}


class FlatProduce:
    """Serves frames of the common shape. `serve` answers False for every other frame, having changed nothing."""

    versions = frozenset(range(3, 14))

    __slots__ = ("_logs", "_node")

    def __init__(self, node: Node) -> None:
        self._node = node
        self._logs: dict[bytes, object] = {}

    def forget(self) -> None:
        """Topics or their settings changed."""
        self._logs.clear()

    def serve(self, connection: Connection, view: memoryview, start: int, end: int, version: int) -> bool:
        """Append and answer; False if the frame is not of the common shape or the append failed."""
        _, _, correlation_id, client_length = _HEADER.unpack_from(view, start)
        position = start + 10 + (client_length if client_length > 0 else 0)
        if version < 9:
            no_transaction, acks, _, topics, name_length = _FIXED_BODY.unpack_from(view, position)
            echo_start = position + 8
            echo_end = echo_start + 14 + name_length
            # A name length that lies ends beyond the frame and fails here, before anything is read there.
            if no_transaction != -1 or topics != 1 or name_length < 0 or acks not in (1, -1) or echo_end + 4 > end:
                return False
            records = echo_end + 4
            if records + _SIZE.unpack_from(view, echo_end)[0] != end:
                return False
            last = end
        else:
            header_tags, transaction, acks, _, topics = _FLEXIBLE_BODY.unpack_from(view, position)
            if header_tags or transaction or topics != 2 or acks not in (1, -1):
                return False
            echo_start = position + 8
            if version < 13:
                name_length = view[echo_start + 1]
                if not 1 < name_length < 128:
                    return False
                echo_end = echo_start + name_length + 6
            else:
                echo_end = echo_start + 22
            if echo_end + 8 > end:
                return False
            records, size = _records(view, echo_end)
            last = records + size
            # Three empty tag sections end the partition, the topic and the request.
            if size < 0 or last + 3 != end or view[last] or view[last + 1] or view[last + 2]:
                return False
        echo = bytes(view[echo_start:echo_end])
        node = self._node
        log = self._logs.get(echo)
        if log is None:
            log = self._find(echo, version)
            if log is None:
                return False
        try:
            result = log.append(view[records:last], node.now_ms, produce_version=version)
        except (KafkaError, ProtocolError, StorageFailure):
            return False
        self._answer(connection, version, correlation_id, echo, log, result)
        return True

    def _answer(self, connection: Connection, version: int, correlation_id: int, echo: bytes, log: object, result: object) -> None:
        base_offset, _, append_time_ms, log_start_offset = result
        length = len(echo)
        if version >= 9:
            # Compact: no record errors (1), no message (0), three empty tag sections.
            tail = _TAILS[9].pack(0, base_offset, append_time_ms, log_start_offset, 1, 0, 0, 0, 0, 0)
            head = _FLEXIBLE_HEAD.pack(5 + length + len(tail), correlation_id, 0)
            error_position = 9 + length
        else:
            if version == 8:
                tail = _TAILS[8].pack(0, base_offset, append_time_ms, log_start_offset, 0, -1, 0)
            elif version >= 5:
                tail = _TAILS[5].pack(0, base_offset, append_time_ms, log_start_offset, 0)
            else:
                tail = _TAILS[3].pack(0, base_offset, append_time_ms, 0)
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

    def _find(self, echo: bytes, version: int) -> object:
        """The log that an echo names, remembered; None if it is not one that can be written to without further checks."""
        if version >= 13:
            if echo[17] != 2:
                return None
            log = self._node.partitions.get_by_id(echo[1:17], int.from_bytes(echo[18:], "big", signed=True))
        elif version >= 9:
            if echo[-5] != 2:
                return None
            log = self._node.partitions.get(echo[2:-5].decode("utf-8", "replace"), int.from_bytes(echo[-4:], "big", signed=True))
        else:
            count, index = _COUNT_AND_INDEX.unpack_from(echo, len(echo) - 8)
            if count != 1:
                return None
            log = self._node.partitions.get(echo[6:-8].decode("utf-8", "replace"), index)
        if log is None or not self._node.writable_by_clients(log):
            return None
        self._logs[echo] = log
        return log


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
