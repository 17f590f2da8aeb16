"""The commonest Fetch request, served without building a message: one topic, one partition, no session, and records to
give.

The log is found by the bytes of `partition_key_cache.py`. Whatever is not exactly this shape, every error, and a fetch
that would have to wait, is left to `fetch.py`, which sees the untouched frame."""

from __future__ import annotations

from struct import Struct, error as StructError

from pykafkad.config import RACK_AWARE_SELECTOR
from pykafkad.errors import KafkaError, StorageFailure
from pykafkad.server import partition_key_cache
from pykafkad.wire.primitives import append_uvarint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pykafkad.log.partition_log import PartitionLog
    from pykafkad.log.txn_index import AbortedTransaction
    from pykafkad.server.broker import Broker
    from pykafkad.server.connection import Connection

    Aborted = Sequence[AbortedTransaction] | None

_CLIENT_LENGTH = Struct(">h")
_REPLICA = Struct(">i")
_WAIT = Struct(">iiib")  # max wait, min bytes, max bytes, isolation level
_SESSION = Struct(">ii")

# From the partition index on: leader epoch, fetch offset, last fetched epoch, log start offset, max bytes, as the
# version has them.
_ASKED_4 = Struct(">qi")
_ASKED_5 = Struct(">qqi")
_ASKED_9 = Struct(">iqqi")
_ASKED_12 = Struct(">iqiqi")

_NO_FORGOTTEN = b"\0\0\0\0"
_EMPTY_END = b"\0\0\0"  # tags of the partition, the topic and the answer
_READ_COMMITTED = 1

# After the key: error code, high watermark, last stable offset, log start offset, aborted transactions, preferred
# replica.
_ROW_4 = Struct(">hqqii")
_ROW_5 = Struct(">hqqqii")
_ROW_11 = Struct(">hqqqiii")
_ROW_12 = Struct(">hqqqbi")

# The same in parts, for a row with aborted transactions.
_OFFSETS_4 = Struct(">hqq")
_OFFSETS_5 = Struct(">hqqq")
_COUNT = Struct(">i")
_ABORTED_4 = Struct(">qq")  # producer id, first offset
_ABORTED_12 = Struct(">qqb")  # and an empty tag section
_NO_PREFERRED_REPLICA = b"\xff\xff\xff\xff"

_HEAD_4 = Struct(">iii")  # size, correlation id, throttle time
_HEAD_7 = Struct(">iiihi")  # and error code, session id
_HEAD_12 = Struct(">iibihi")  # and an empty tag section that ends the header


JOINED_UP_TO_BYTES = 16 * 1024
"""Records up to this size are read at once and leave in one buffer with their answer: one call of the system is cheaper
than three, up to about here."""


class FetchFastPath:
    """Serves frames of the common shape. `serve` answers False for every other frame, having changed nothing."""

    versions = frozenset(range(4, 18))

    __slots__ = ("_broker", "_log", "_selects_replicas", "forget")

    def __init__(self, broker: Broker, may_read: Callable[[str], bool] | None = None) -> None:
        """`may_read(topic)` says whether the caller may read it; without it, all that come here may."""
        self._broker = broker
        # A consumer with a rack may be told to read from another replica (KIP-392), which the general path does.
        self._selects_replicas = broker.settings.replica_selector_class == RACK_AWARE_SELECTOR
        # Who may read what this broker does not lead depends on the version, and the epoch is not the log's.
        known = partition_key_cache.PartitionKeyCache(
            lambda: broker.partitions,
            lambda log: log not in broker.partitions.not_led_here and (may_read is None or may_read(log.topic)),
        )
        self._log = known.log
        self.forget = known.forget

    def serve(
        self, connection: Connection, view: memoryview, start: int, end: int, version: int, correlation_id: int
    ) -> bool:
        """Read and answer; False if the frame is not of the common shape or there is too little to give."""
        try:
            client_length = _CLIENT_LENGTH.unpack_from(view, start + 8)[0]
            position = start + 10 + (client_length if client_length > 0 else 0)
            if version >= 12:
                if view[position]:
                    return False
                position += 1
            if version < 15:
                if _REPLICA.unpack_from(view, position)[0] >= 0:
                    return False
                position += 4
            _, min_bytes, max_bytes, isolation_level = _WAIT.unpack_from(view, position)
            position += 13
            if version >= 7:
                if _SESSION.unpack_from(view, position) != (0, -1):
                    return False
                position += 8
            if version < 12:
                form = partition_key_cache.NAME
            else:
                form = partition_key_cache.COMPACT_NAME if version < 13 else partition_key_cache.ID
                if view[position] != 2:
                    return False
            key_end = partition_key_cache.end_of_partition_key(view, position, form)
            if key_end < 0 or key_end + 12 > end:
                return False
            asked = _asked(view, key_end, end, version)
            if asked is None or (self._selects_replicas and _has_rack(view, key_end, version)):
                return False
        except (StructError, IndexError):
            # Not of the common shape, or broken: the general path tells which.
            return False
        fetch_offset, partition_max_bytes, epoch = asked
        key = bytes(view[position:key_end])
        if form == partition_key_cache.NAME and key[:4] != b"\0\0\0\1":
            return False
        log = self._log(key, form)
        max_bytes = min(max_bytes, self._broker.settings.fetch_max_bytes)
        limit = min(partition_max_bytes, max_bytes)
        if log is None or (epoch >= 0 and epoch != log.leader_epoch) or limit < 0:
            return False
        try:
            # The first look at a log opens it, which may fail as reading may.
            readable, stable = log.high_watermark, log.last_stable_offset
            if isolation_level:
                if isolation_level != _READ_COMMITTED:
                    return False
                readable = stable
            records = log.read(fetch_offset, limit, end_offset=readable)
            if records is None or records.chunk_size < min(min_bytes, max_bytes):
                return False
            aborted: Aborted = None
            if isolation_level:
                aborted = log.aborted_transactions(fetch_offset, records) if log.has_aborted else ()
            outbox = connection.outbox
            # One buffer leaves with one call; behind other answers a slice stays a slice, which holds no memory.
            data = records.pread() if records.chunk_size <= JOINED_UP_TO_BYTES and not outbox else None
        except (KafkaError, StorageFailure):
            return False
        head = _head(version, correlation_id, key, log, stable, records.chunk_size, aborted)
        tags = _EMPTY_END if version >= 12 else b""
        if data is None:
            outbox += (head, records, tags) if tags else (head, records)
        else:
            outbox.append(b"".join((head, data, tags)))
        return True


def _head(
    version: int, correlation_id: int, key: bytes, log: PartitionLog, stable: int, size: int, aborted: Aborted
) -> bytes:
    """The answer up to its `size` bytes of records. `stable` is the log's last stable offset."""
    offsets = (0, log.high_watermark, stable)
    none_aborted = -1 if aborted is None else 0
    lengths: bytes | bytearray
    if version >= 12:
        if aborted:
            lengths = bytearray(_OFFSETS_5.pack(*offsets, log.log_start_offset))
            append_uvarint(lengths, len(aborted) + 1)
            lengths += b"".join([_ABORTED_12.pack(each.producer_id, each.first_offset, 0) for each in aborted])
            lengths += _NO_PREFERRED_REPLICA
        else:
            lengths = bytearray(_ROW_12.pack(*offsets, log.log_start_offset, none_aborted + 1, -1))
        append_uvarint(lengths, size + 1)
        head = _HEAD_12.pack(16 + len(key) + len(lengths) + size - 1 + 3, correlation_id, 0, 0, 0, 0)
    elif version >= 7:
        row = (*offsets, log.log_start_offset, none_aborted)
        if aborted:
            lengths = _before_12(version, (*offsets, log.log_start_offset), aborted, size)
        else:
            lengths = _ROW_11.pack(*row, -1, size) if version == 11 else _ROW_5.pack(*row, size)
        head = _HEAD_7.pack(14 + len(key) + len(lengths) + size, correlation_id, 0, 0, 0)
    else:
        if aborted:
            lengths = _before_12(version, (*offsets, log.log_start_offset), aborted, size)
        else:
            lengths = (
                _ROW_5.pack(*offsets, log.log_start_offset, none_aborted, size)
                if version >= 5
                else _ROW_4.pack(*offsets, none_aborted, size)
            )
        head = _HEAD_4.pack(8 + len(key) + len(lengths) + size, correlation_id, 0)
    return head + key + lengths


def _before_12(version: int, offsets: tuple[int, ...], aborted: Sequence[AbortedTransaction], size: int) -> bytearray:
    """The row with its aborted transactions, from the error code to the size of the records."""
    row = bytearray(_OFFSETS_5.pack(*offsets) if version >= 5 else _OFFSETS_4.pack(*offsets[:3]))
    row += _COUNT.pack(len(aborted))
    row += b"".join([_ABORTED_4.pack(each.producer_id, each.first_offset) for each in aborted])
    if version == 11:
        row += _NO_PREFERRED_REPLICA
    return row + _COUNT.pack(size)


def _has_rack(view: memoryview, position: int, version: int) -> bool:
    """Whether the request, whose partition index ends at `position`, names a rack."""
    if version < 12:
        return version == 11 and any(view[position + 28 : position + 30])
    return view[position + 31] != 1


def _asked(view: memoryview, position: int, end: int, version: int) -> tuple[int, int, int] | None:
    """(fetch offset, max bytes, leader epoch) of the one partition, and that the request ends behind it as it
    should."""
    leader_epoch = -1
    if version >= 12:
        leader_epoch, fetch_offset, last_fetched_epoch, _, max_bytes = _ASKED_12.unpack_from(view, position)
        # Empty tags of partition and topic, nothing forgotten, any rack, no tags at the end.
        rack = position + 31
        if last_fetched_epoch >= 0 or view[rack - 3] or view[rack - 2] or view[rack - 1] != 1:
            return None
        if not 0 < view[rack] < 128 or rack + view[rack] + 1 != end or view[end - 1]:
            return None
        return fetch_offset, max_bytes, leader_epoch
    if version >= 9:
        leader_epoch, fetch_offset, _, max_bytes = _ASKED_9.unpack_from(view, position)
        position += 24
    elif version >= 5:
        fetch_offset, _, max_bytes = _ASKED_5.unpack_from(view, position)
        position += 20
    else:
        fetch_offset, max_bytes = _ASKED_4.unpack_from(view, position)
        position += 12
    if version >= 7:
        if view[position : position + 4] != _NO_FORGOTTEN:
            return None
        position += 4
    if version == 11:
        position += 2 + (view[position] << 8 | view[position + 1])
    return (fetch_offset, max_bytes, leader_epoch) if position == end else None
