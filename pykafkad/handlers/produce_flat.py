"""The commonest Produce request, served without building a message: one topic, one partition, acks 1 or all, no transaction.

Building messages is half of what a small request costs. The log is found by the bytes of `echo.py`.
Whatever is not exactly this shape, and every error, is left to `produce.py`, which sees the untouched frame.
"""

from __future__ import annotations

from struct import Struct, error as StructError

from pykafkad.errors import KafkaError, ProtocolError, StorageFailure
from pykafkad.handlers import echo as echoes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.server.connection import Connection
    from pykafkad.server.node import Node

_HEADER = Struct(">4xih")  # correlation id, client id length
_FIXED_BODY = Struct(">hhiih")  # no transactional id (-1), acks, timeout, one topic, the length of its name
_FLEXIBLE_BODY = Struct(">BBhiB")  # no header tags, no transactional id, acks, timeout, one topic (2)
_SIZE = Struct(">i")

# Version to the answer's layout, with the length of the echo to fill in, and the constants behind the log start offset. In front
# of the echo: size, correlation id and, from version 9, an empty tag section. Behind it: error code, base offset, log append time,
# log start offset (5), record errors and error message (8), throttle time; compact and with three empty tag sections from 9.
_LAYOUTS = {
    3: (">ii{}shqqi", (0,)),
    5: (">ii{}shqqqi", (0,)),
    8: (">ii{}shqqqihi", (0, -1, 0)),
    9: (">iib{}shqqqbbbbib", (1, 0, 0, 0, 0, 0)),
}


class FlatProduce:
    """Serves frames of the common shape. `serve` answers False for every other frame, having changed nothing."""

    versions = frozenset(range(3, 14))

    __slots__ = ("_cover", "_echoes", "_layouts", "_node")

    def __init__(self, node: Node) -> None:
        self._node = node
        self._cover = node.writes.cover_flat
        self._echoes = echoes.Echoes(lambda: node.partitions, node.writable_by_clients)
        self._layouts: dict[tuple[int, int], tuple[object, tuple[int, ...]]] = {}

    def forget(self) -> None:
        """Topics, leaders or settings changed."""
        self._echoes.forget()

    def serve(self, connection: Connection, view: memoryview, start: int, end: int, version: int) -> bool:
        """Append and answer; False if the frame is not of the common shape or the append failed."""
        try:
            correlation_id, client_length = _HEADER.unpack_from(view, start)
            position = start + 10 + (client_length if client_length > 0 else 0)
            echo_start = position + 8
            if version < 9:
                no_transaction, acks, _, topics, name_length = _FIXED_BODY.unpack_from(view, position)
                echo_end = echo_start + 14 + name_length
                # A name length that lies ends beyond the frame and fails here, before anything is read there.
                if no_transaction != -1 or topics != 1 or name_length < 0 or acks not in (1, -1) or echo_end + 4 > end:
                    return False
                form = echoes.NAME
                records = echo_end + 4
                last = end
                if records + _SIZE.unpack_from(view, echo_end)[0] != end:
                    return False
            else:
                header_tags, transaction, acks, _, topics = _FLEXIBLE_BODY.unpack_from(view, position)
                if header_tags or transaction or topics != 2 or acks not in (1, -1):
                    return False
                form = echoes.COMPACT_NAME if version < 13 else echoes.ID
                echo_end = echoes.end_of_echo(view, echo_start, form)
                if echo_end < 0 or echo_end + 8 > end:
                    return False
                records, size = _records(view, echo_end)
                last = records + size
                # Three empty tag sections end the partition, the topic and the request.
                if size < 0 or last + 3 != end or view[last] or view[last + 1] or view[last + 2]:
                    return False
        except (StructError, IndexError):
            # Not of the common shape, or broken: the general path tells which.
            return False
        echo = bytes(view[echo_start:echo_end])
        log = self._echoes.logs.get(echo)
        if log is None:
            log = self._echoes.log(echo, form)
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
        layout = self._layouts.get((version, length))
        if layout is None:
            layout = self._layouts[(version, length)] = _layout(version, length)
        pack, size, constants = layout
        if version >= 9:
            answer = pack(size, correlation_id, 0, echo, 0, base_offset, append_time_ms, log_start_offset, *constants)
            error_position = 9 + length
        else:
            error_position = 8 + length
            if version >= 5:
                answer = pack(size, correlation_id, echo, 0, base_offset, append_time_ms, log_start_offset, *constants)
            else:
                answer = pack(size, correlation_id, echo, 0, base_offset, append_time_ms, *constants)
        outbox = connection.outbox
        self._cover(log, connection, len(outbox), error_position)
        outbox.append(answer)
        connection.outbox_bytes += size
        if not connection.queued:
            connection.queued = True
            self._node.reactor.ready.append(connection)


def _layout(version: int, echo_length: int) -> tuple[object, int, tuple[int, ...]]:
    """(pack function, the answer's size without the size field, constants at its end) for an echo of that length."""
    text, constants = _LAYOUTS[max(first for first in _LAYOUTS if first <= version)]
    made = Struct(text.format(echo_length))
    return made.pack, made.size - 4, constants


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
