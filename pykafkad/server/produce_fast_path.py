"""The commonest Produce request, served without building a message: one topic, one partition, acks 1 or all, no
transaction.

Building messages is half of what a small request costs. The log is found by the bytes of `partition_key_cache.py`.
Whatever is not exactly this shape, and every error, is left to `produce.py`, which sees the untouched frame.
"""

from __future__ import annotations

from struct import Struct, error as StructError

from pykafkad.errors import KafkaError, ProtocolError, StorageFailure
from pykafkad.server import partition_key_cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from weakref import WeakSet

    from pykafkad.log.partition_log import PartitionLog
    from pykafkad.quotas.rate_sensor import RateSensor
    from pykafkad.server.broker import Broker
    from pykafkad.server.connection import Connection

    AnswerParts = tuple[Callable[..., bytes], int, bytes, bytes, int]
    Sensors = tuple[RateSensor | None, RateSensor | None]
    """Of the bytes and of the processor time of a client with quotas; None where no quota counts for it. That of the
    bytes is always there if that of the time is."""
    SensorsOf = Callable[[memoryview], Sensors]
    """Of the client whose id this is, with its length before it. Raises LookupError for an id that can't be read."""
    Known = tuple[PartitionLog, Callable[..., bytes], int, bytes, bytes, int, RateSensor | None, RateSensor | None]

_CLIENT_LENGTH = Struct(">h")
_FIXED_BODY = Struct(">hhiih")  # no transactional id (-1), acks, timeout, one topic, the length of its name
_FLEXIBLE_BODY = Struct(">BBhiB")  # no header tags, no transactional id, acks, timeout, one topic (2)
_SIZE = Struct(">i")

PERCENT_PER_SECOND = 100.0
"""What a second of processor time counts for the quota of it."""

# Of each version. A longer preamble, which only a client id makes so long, is read anew each time.
_MAX_REMEMBERED = 5_000
_MAX_PREAMBLE_BYTES = 400

# Version to the answer's layout, with the lengths of what stands before and behind the offsets to fill in, and what
# stands behind. Before them: size, correlation id and, from version 9, an empty tag section; the key; error code. Then
# base offset, log append time, log start offset (5). Behind: record errors and error message (8), throttle time;
# compact and with three empty tag sections from 9.
_LAYOUTS = {
    3: (">ii{}sqq{}s", b"\0\0\0\0"),
    5: (">ii{}sqqq{}s", b"\0\0\0\0"),
    8: (">ii{}sqqq{}s", b"\0\0\0\0\xff\xff\0\0\0\0"),
    9: (">ii{}sqqq{}s", b"\1\0\0\0\0\0\0\0\0"),
}


class ProduceFastPath:
    """Serves frames of the common shape. `serve` answers False for every other frame, having changed nothing.

    A client's frames differ in their correlation id and in their records; what stands between the two, from client id
    to partition index, is their *preamble*. What a preamble means is remembered."""

    versions = frozenset(range(3, 14))

    __slots__ = (
        "__weakref__",
        "_broker",
        "_cover",
        "_dirty",
        "_may_write",
        "_metered",
        "_now",
        "_partition_keys",
        "_preambles",
        "_remembering",
        "_runtime",
        "_sensors_of",
    )

    def __init__(
        self,
        broker: Broker,
        may_write: Callable[[str], bool] | None = None,
        remembering: Callable[[], None] | None = None,
        sensors_of: SensorsOf | None = None,
    ) -> None:
        """`may_write(topic)` says whether the caller may write to it; without it, all that come here may.
        `remembering()` is told before a preamble is remembered. `sensors_of` finds what counts for a client with
        quotas."""
        self._broker = broker
        self._may_write = may_write
        self._sensors_of = sensors_of
        self._metered: WeakSet[ProduceFastPath] | None = None
        accepts = broker.writable_by_clients
        if may_write is not None:
            accepts = lambda log: may_write(log.topic) and broker.writable_by_clients(log)  # noqa: E731
        self._remembering = remembering
        self._runtime = broker.runtime
        self._now = broker.runtime.clock.now
        self._dirty = broker.commits.dirty
        self._cover = broker.commits.fast_answers.append
        self._partition_keys = partition_key_cache.PartitionKeyCache(lambda: broker.partitions, accepts)
        # By version: a preamble to (log, the answer's pack function, its size, what stands before and behind its
        # offsets, where its error code stands, and the client's two sensors or None).
        self._preambles: list[dict[bytes, Known]] = [{} for _ in range(max(self.versions) + 1)]

    def forget(self) -> None:
        """Topics, leaders or settings changed."""
        self._partition_keys.forget()
        for each in self._preambles:
            each.clear()
        for metered in self._metered or ():
            metered.forget()

    def metered(self, sensors_of: SensorsOf, remembering: Callable[[], None]) -> ProduceFastPath:
        """The same for a caller with quotas, which counts what it serves. It serves nothing that is over a quota."""
        if self._metered is None:
            from weakref import WeakSet

            self._metered = WeakSet()
        own = self._remembering

        def both() -> None:
            if own is not None:
                own()
            remembering()

        made = ProduceFastPath(self._broker, self._may_write, both, sensors_of)
        self._metered.add(made)
        return made

    def serve(
        self, connection: Connection, view: memoryview, start: int, end: int, version: int, correlation_id: int
    ) -> bool:
        """Append and answer; False if the frame is not of the common shape or the append failed."""
        position = start + connection.preamble_length
        known = self._preambles[version].get(view[start + 8 : position].tobytes())
        try:
            if known is None:
                known = self._look_up(connection, view, start, end, version)
                if known is None:
                    return False
                position = start + connection.preamble_length
            if version < 9:
                records = position + 4
                last = end
                if records + _SIZE.unpack_from(view, position)[0] != end:
                    return False
            else:
                records, size = _records(view, position)
                last = records + size
                # Three empty tag sections end the partition, the topic and the request.
                if size < 0 or last + 3 != end or view[last] or view[last + 1] or view[last + 2]:
                    return False
        except (StructError, IndexError):
            # Not of the common shape, or broken: the general path tells which.
            return False
        log, pack, answer_size, before, behind, error_position, sent, request = known
        if sent is not None:
            # `charge` would cost three times as much: most is done once a turn.
            turn = self._runtime.now
            if sent.turn != turn or (request is not None and request.turn != turn):
                _begin_turn(sent, request, turn)
            sent.at_most = at_most = sent.at_most + (end - start)
            if request is not None:
                if (at_most > sent.safe or request.at_most > request.safe) and _is_over(sent, request, end - start):
                    return False
                began = self._now()
            elif at_most > sent.safe and _is_over(sent, None, end - start):
                return False
        try:
            base_offset, _, append_time_ms, log_start_offset = log.append_batch(
                view[records:last], self._runtime.now_ms, version
            )
        except (KafkaError, ProtocolError, StorageFailure):
            if sent is not None:
                # The general path counts it.
                sent.at_most -= end - start
            return False
        outbox = connection.outbox
        self._dirty[log] = None
        self._cover((log, connection, len(outbox), error_position))
        outbox.append(pack(answer_size, correlation_id, before, base_offset, append_time_ms, log_start_offset, behind))
        if request is not None:
            request.at_most += (self._now() - began) * PERCENT_PER_SECOND
        return True

    def _look_up(self, connection: Connection, view: memoryview, start: int, end: int, version: int) -> Known | None:
        """Read the preamble and remember what it means; None if it is not of the common shape or its log may not be
        used.

        Raises IndexError or struct.error for frames that are too short.
        """
        client_length = _CLIENT_LENGTH.unpack_from(view, start + 8)[0]
        position = start + 10 + (client_length if client_length > 0 else 0)
        key_start = position + 8
        if version < 9:
            no_transaction, acks, _, topics, name_length = _FIXED_BODY.unpack_from(view, position)
            key_end = key_start + 14 + name_length
            # A name length that lies ends beyond the frame and fails here, before anything is read there.
            if no_transaction != -1 or topics != 1 or name_length < 0:
                return None
            form = partition_key_cache.NAME
        else:
            header_tags, transaction, acks, _, topics = _FLEXIBLE_BODY.unpack_from(view, position)
            if header_tags or transaction or topics != 2:
                return None
            form = partition_key_cache.COMPACT_NAME if version < 13 else partition_key_cache.ID
            key_end = partition_key_cache.end_of_partition_key(view, key_start, form)
        if acks not in (1, -1) or key_end < 0 or key_end + (4 if version < 9 else 8) > end:
            return None
        key = bytes(view[key_start:key_end])
        log = self._partition_keys.log(key, form)
        if log is None:
            return None
        sensors: Sensors = (None, None)
        if self._sensors_of is not None:
            try:
                sensors = self._sensors_of(view[start + 8 : position])
            except LookupError:
                return None
        connection.preamble_length = key_end - start
        found = (log, *_answer_parts(version, key), *sensors)
        if key_end - start <= _MAX_PREAMBLE_BYTES:
            if self._remembering is not None:
                self._remembering()
            known = self._preambles[version]
            if len(known) >= _MAX_REMEMBERED:
                known.clear()
            known[bytes(view[start + 8 : key_end])] = found
        return found


def _begin_turn(sent: RateSensor, request: RateSensor | None, turn: float) -> None:
    """What is added from now on is of this turn."""
    if turn >= sent.until:
        sent.settle()
    sent.turn = turn
    if request is not None:
        if turn >= request.until:
            request.settle()
        request.turn = turn


def _is_over(sent: RateSensor, request: RateSensor | None, size_bytes: int) -> bool:
    """Whether the client is over a quota with the request of that size, which was added; takes it back then."""
    now_ms = sent.turn * 1000
    if (sent.at_most > sent.safe and sent.throttle_ms(now_ms)) or (
        request is not None and request.at_most > request.safe and request.charge(0.0, now_ms)
    ):
        sent.record(-size_bytes, now_ms)
        return True
    return False


def _answer_parts(version: int, key: bytes) -> AnswerParts:
    """(pack function, size without the size field, bytes before and behind the offsets, position of the error code) of
    an answer."""
    before = (b"\0" if version >= 9 else b"") + key + b"\0\0"
    text, behind = _LAYOUTS[max(first for first in _LAYOUTS if first <= version)]
    layout = Struct(text.format(len(before), len(behind)))
    if version >= 5:
        return layout.pack, layout.size - 4, before, behind, 6 + len(before)

    def pack(
        size: int, correlation_id: int, before: bytes, base_offset: int, append_time_ms: int, _: int, behind: bytes
    ) -> bytes:
        return layout.pack(size, correlation_id, before, base_offset, append_time_ms, behind)

    return pack, layout.size - 4, before, behind, 6 + len(before)


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
