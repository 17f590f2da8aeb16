"""The log of one partition: append, write, read. Start here.

`append` takes one whole batch as the client sent it, checks it, writes base offset and leader epoch into it in place and
gathers it; `write_pending` brings what was gathered to the file in one write. Until then `end_offset` is ahead of
`written_end_offset`, and nothing may be promised. `read` gives a slice of a file, never bytes in between.

A log is opened on first use: its slots stay unset until something reads one of them, and `__getattr__`, which Python asks
only for what is missing, loads them all. So ten thousand partitions cost their objects at start and nothing per append.

`append` is the broker's hottest function and is written flat: one header unpack, a handful of comparisons against numbers
that `update_settings` prepared, no call that is not needed. A batch that fails any comparison takes the long way through
`append_rules`, which knows why.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import namedtuple
from operator import attrgetter

from pykafkad import errors
from pykafkad.errors import KafkaError, StorageFailure
from pykafkad.log import recovery
from pykafkad.log.producers import ProducerEntry, check_sequence
from pykafkad.log.segment import LOG_SUFFIX, NEVER_MS, SNAPSHOT_SUFFIX, FileSlice, Segment, file_prefix
from pykafkad.wire.batch import HEADER, HEADER_SIZE_BYTES, PREFIX, build_batch, control_key, crc32c

# Where a batch comes from, which says how much is checked.
CLIENT = "client"
COORDINATOR = "coordinator"
RAFT_LEADER = "raft leader"

# Batches up to this size are gathered, larger ones written at once: copying them would cost more than the call saves.
DIRECT_WRITE_BYTES = 16 * 1024
GATHER_SIZE_BYTES = 64 * 1024
# Sealed segments whose indexes stay in memory, per log; the longest unused one is dropped.
MAX_SEALED_INDEXES = 4

EPOCHS_FILE = "leader-epoch-checkpoint"

AppendResult = namedtuple("AppendResult", ("base_offset", "last_offset", "log_append_time_ms", "log_start_offset"))
AppendResult.__doc__ = "Where a batch was put. `log_append_time_ms` is -1 unless the topic stamps records itself."

LogServices = namedtuple("LogServices", ("disk", "clock", "random", "gather_pool", "doomed"))
LogServices.__doc__ = """What the logs of one directory share: the disk, the clock, chance (a `random.Random`), idle gather
buffers, and `doomed`, the list of `(due_ms, path, is_directory)` that are to be removed."""

_unpack_header = HEADER.unpack_from
_pack_prefix = PREFIX.pack_into
_new_tuple = tuple.__new__


class PartitionLog:
    """See the module. Offsets: `log_start_offset <= high_watermark <= written_end_offset <= end_offset`.

    `offline` is the `StorageFailure` that took the log out of service for writing, else None; reading goes on. Only a
    restart brings it back, because what the disk holds is known again only after recovery.
    """

    __slots__ = (
        "topic", "partition", "topic_id", "settings", "directory", "offline", "leader_epoch", "sole_replica", "_services", "_disk", "_gather_pool",
        "_initial", "_plain_attributes", "_plain_size_limit", "_after_max_ms", "_index_interval_bytes",
        "_flush_messages", "_gather", "_fill", "_recent_sealed", "closed",
        # Unset until the log is loaded.
        "segments", "end_offset", "written_end_offset", "log_start_offset", "high_watermark", "producers", "epochs",
        "recovery_point", "flushed_ms", "_active", "_snapshot_offset",
    )

    def __init__(self, topic: str, partition: int, topic_id: bytes, settings, directory: str, services: LogServices,
                 initial: recovery.Checkpointed = recovery.NOTHING_KNOWN) -> None:
        self.topic = topic
        self.partition = partition
        self.topic_id = topic_id
        self.directory = directory
        self.offline: StorageFailure | None = None
        self.leader_epoch = 0
        self.sole_replica = False
        self.closed = False
        self._services = services
        self._disk = services.disk
        self._gather_pool = services.gather_pool
        self._initial = initial
        self._gather = None
        self._fill = 0
        self._recent_sealed: list[Segment] | None = None
        self._prepare(settings)

    def __repr__(self) -> str:
        return f"PartitionLog({self.topic}-{self.partition})"

    # -- loading and settings ------------------------------------------------------------------------------------------

    def __getattr__(self, name: str):
        if name not in _LOADED_SLOTS or self.closed:
            raise AttributeError(f"{type(self).__name__} has no {name!r}" + (" once closed" if name in _LOADED_SLOTS else ""))
        self.load()
        return object.__getattribute__(self, name)

    @property
    def is_loaded(self) -> bool:
        try:
            object.__getattribute__(self, "_active")
        except AttributeError:
            return False
        return True

    def load(self) -> None:
        """Open the files; after an unclean stop recover what is behind the recovery point. Raises `StorageFailure`."""
        now_ms = self._services.clock.now_ms()
        loaded = recovery.load(self._disk, self.directory, self._initial, self.settings, now_ms)
        self.segments = loaded.segments
        self.end_offset = self.written_end_offset = loaded.end_offset
        self.log_start_offset = loaded.log_start_offset
        self.high_watermark = min(max(self._initial.high_watermark, loaded.log_start_offset), loaded.end_offset)
        self.producers = loaded.producers
        self.epochs = loaded.epochs
        self.recovery_point = loaded.recovery_point
        self.flushed_ms = now_ms
        self._snapshot_offset = loaded.snapshot_offset
        self._recent_sealed = []
        self._activate(loaded.segments[-1])
        self._begin_epoch()

    def update_settings(self, settings) -> None:
        """Take a topic's changed settings; they hold from the next append on."""
        self._prepare(settings)
        if self.is_loaded:
            self._activate(self._active)

    def _prepare(self, settings) -> None:
        self.settings = settings
        self._index_interval_bytes = settings.index_interval_bytes
        self._after_max_ms = settings.message_timestamp_after_max_ms
        self._flush_messages = settings.flush_messages
        plain = (settings.message_timestamp_type == "CreateTime" and "compact" not in settings.cleanup_policy
                 and settings.message_timestamp_before_max_ms >= NEVER_MS)
        codec = settings.compression_type
        self._plain_attributes = _ALL_CODECS if codec == "producer" else frozenset((CODEC_IDS[codec],))
        self._plain_size_limit = 0
        if plain and self.offline is None:
            self._plain_size_limit = min(settings.max_message_bytes, settings.segment_bytes)

    def _activate(self, segment: Segment) -> None:
        # Make the roll rules of the segment ready for the comparisons of `append`.
        settings = self.settings
        self._active = segment
        segment.size_limit = 0 if segment.indexes_full(settings.segment_index_bytes) else settings.segment_bytes
        if settings.segment_jitter_ms > 0 and not segment.jitter_ms:
            segment.jitter_ms = self._services.random.randrange(min(settings.segment_jitter_ms, settings.segment_ms))
        first = segment.first_timestamp_ms
        # Without a first timestamp every batch is looked at by `_roll_if_due`, which then goes by the wall clock.
        segment.roll_after_ms = -NEVER_MS if first is None or first < 0 else first + settings.segment_ms - segment.jitter_ms

    # -- append --------------------------------------------------------------------------------------------------------

    def append(self, records, now_ms: int, produce_version: int = 13, origin: str = CLIENT) -> AppendResult:
        """Check one batch (`records`: a writable view that holds it), assign its offsets in place and gather it.

        Keeps no reference to `records`. Raises `KafkaError`, for rejected records with `record_errors`, or
        `StorageFailure`. A rejected batch uses no offset.
        """
        size = len(records)
        log_append_time_ms = -1
        # A size of 0 lets what is too short for a header fall through to the rules, which name the reason.
        (base_offset, length, _, magic, crc, attributes, last_delta, base_timestamp_ms, max_timestamp_ms, producer_id,
         producer_epoch, base_sequence, count) = _unpack_header(records) if size >= HEADER_SIZE_BYTES else _NO_HEADER
        if (length != size - 12 or base_offset or magic != 2 or attributes not in self._plain_attributes
                or size > self._plain_size_limit or count != last_delta + 1 or count <= 0
                or max_timestamp_ms > now_ms + self._after_max_ms or max_timestamp_ms < base_timestamp_ms
                or producer_id >= 0 and base_sequence < 0 or produce_version < 7 and attributes == 4
                or not attributes and count * 7 > size - 61 or crc32c(records[21:]) != crc):
            records, header, log_append_time_ms = self._check(records, now_ms, produce_version, origin)
            size = len(records)
            (_, length, _, _, _, _, last_delta, _, max_timestamp_ms, producer_id, producer_epoch, base_sequence, _) = header
        if producer_id >= 0 and base_sequence >= 0:
            entry = self.producers.get(producer_id)
            if entry is None or base_sequence != entry.next_sequence or producer_epoch != entry.epoch:
                duplicate = self._check_producer(entry, producer_id, producer_epoch, base_sequence, last_delta)
                if duplicate is not None:
                    return duplicate
                if entry is None:
                    entry = ProducerEntry()
        else:
            entry = None
        base_offset = self.end_offset
        last_offset = base_offset + last_delta
        segment = self._active
        position = segment.size
        if (position + size > segment.size_limit or max_timestamp_ms > segment.roll_after_ms
                or last_offset > segment.last_offset_limit):
            segment = self._roll_if_due(size, max_timestamp_ms, last_offset, now_ms)
            position = segment.size
        _pack_prefix(records, 0, base_offset, length, self.leader_epoch)
        if size < DIRECT_WRITE_BYTES:
            fill = self._fill
            end = fill + size
            if end > GATHER_SIZE_BYTES:
                self.write_pending()
                fill, end = 0, size
            gather = self._gather
            if gather is None:
                gather = self._gather = self._borrow()
            gather[fill:end] = records
            self._fill = end
        else:
            self._write_through(segment, records, last_offset + 1)
        segment.size = position + size
        self.end_offset = last_offset + 1
        if max_timestamp_ms > segment.max_timestamp_ms:
            segment.max_timestamp_ms = max_timestamp_ms
            segment.max_timestamp_offset = last_offset
        if segment.bytes_since_index > self._index_interval_bytes:
            segment.add_index_entries(last_offset, position, self.settings.segment_index_bytes)
        segment.bytes_since_index += size
        if entry is not None:
            self.producers[producer_id] = entry
            entry.add(producer_epoch, base_sequence, last_offset, last_delta, max_timestamp_ms)
        return _new_tuple(AppendResult, (base_offset, last_offset, log_append_time_ms, self.log_start_offset))

    def append_records(self, records, now_ms: int, *, control_type: int | None = None, leader_epoch: int | None = None,
                       codec: int = 0) -> AppendResult:
        """Append `records` (`(key, value)` each) as one batch of our own: coordinators and the metadata log.

        With `control_type` the one record is a control record: its key is made here, its value is `records[0][1]`.
        """
        if leader_epoch is not None and leader_epoch != self.leader_epoch:
            self.assign_epoch(leader_epoch, self.end_offset)
        if control_type is not None:
            records = [(control_key(control_type), records[0][1])]
        batch = build_batch(records, timestamp_ms=now_ms, codec=codec, is_control=control_type is not None)
        return self.append(memoryview(batch), now_ms, origin=COORDINATOR)

    def _check(self, records, now_ms: int, produce_version: int, origin: str):
        if self.offline is not None:
            raise self.offline
        from pykafkad.log import append_rules

        return append_rules.check(records, self.settings, now_ms, produce_version, origin == CLIENT, f"{self.topic}-{self.partition}")

    def _check_producer(self, entry, producer_id: int, epoch: int, base_sequence: int, last_delta: int) -> AppendResult | None:
        if entry is not None:
            duplicate = entry.find_duplicate(epoch, base_sequence, last_delta)
            if duplicate is not None:
                base_offset, last_offset, timestamp_ms = duplicate
                stamped = self.settings.message_timestamp_type == "LogAppendTime"
                return AppendResult(base_offset, last_offset, timestamp_ms if stamped else -1, self.log_start_offset)
        check_sequence(entry, producer_id, epoch, base_sequence, f"{self.topic}-{self.partition}")
        return None

    def _roll_if_due(self, size: int, max_timestamp_ms: int, last_offset: int, now_ms: int) -> Segment:
        # One of the prepared limits was passed; this is the rule itself (LogSegment.shouldRoll in Kafka).
        segment, settings = self._active, self.settings
        if segment.size:
            first = segment.first_timestamp_ms
            waited_ms = max_timestamp_ms - first if first is not None and first >= 0 else now_ms - segment.created_ms
            if (segment.size + size > settings.segment_bytes or waited_ms > settings.segment_ms - segment.jitter_ms
                    or segment.indexes_full(settings.segment_index_bytes) or last_offset > segment.last_offset_limit):
                segment = self.roll(now_ms)
        if not segment.size:
            # The first batch sets the clock by which the segment ages.
            segment.first_timestamp_ms = max_timestamp_ms
            self._activate(segment)
        return segment

    def roll(self, now_ms: int) -> Segment:
        """Seal the active segment (indexes and producer snapshot written) and begin one at the end of the log."""
        self.write_pending()
        active, end_offset = self._active, self.end_offset
        try:
            active.write_indexes()
            self.write_snapshot()
            self.write_epochs()
            file = self._disk.open(file_prefix(self.directory, end_offset) + LOG_SUFFIX, create=True)
        except StorageFailure as failure:
            raise self._fail(failure) from None
        active.drop_indexes()
        segment = Segment(self._disk, self.directory, end_offset, file, now_ms)
        self.segments.append(segment)
        self._activate(segment)
        return segment

    # -- writing -------------------------------------------------------------------------------------------------------

    def _borrow(self):
        # Gather buffers are shared by all logs of a directory and kept: giving memory back and faulting it in again each
        # turn costs more than the copy (performance reference, lever 15).
        pool = self._gather_pool
        return pool.pop() if pool else memoryview(bytearray(GATHER_SIZE_BYTES))

    @property
    def has_pending(self) -> bool:
        """Whether `write_pending` has something to write."""
        return self._fill > 0

    def write_pending(self) -> None:
        """Write what was gathered, in one call. Raises `StorageFailure`; the log is then offline and cut back to what
        was written before, so nothing of a half-written gathering can be read or acknowledged."""
        fill = self._fill
        if fill:
            segment = self._active
            try:
                segment.file.pwrite(self._gather[:fill], segment.written_size)
            except StorageFailure as failure:
                raise self._fail(failure) from None
            segment.written_size += fill
            self._fill = 0
            self._gather_pool.append(self._gather)
            self._gather = None
            self.written_end_offset = self.end_offset
            if self.end_offset - self.recovery_point >= self._flush_messages:
                self.flush()

    def _write_through(self, segment: Segment, records, end_offset: int) -> None:
        # A large batch goes to the file at once, behind what was gathered before it, in the same call.
        fill, size = self._fill, len(records)
        try:
            if fill:
                segment.file.pwritev([self._gather[:fill], records], segment.written_size)
                self._fill = 0
                self._gather_pool.append(self._gather)
                self._gather = None
            else:
                segment.file.pwrite(records, segment.written_size)
        except StorageFailure as failure:
            raise self._fail(failure) from None
        segment.written_size += fill + size
        self.written_end_offset = end_offset
        if end_offset - self.recovery_point >= self._flush_messages:
            self.end_offset = end_offset
            self.flush()

    def _fail(self, failure: StorageFailure) -> StorageFailure:
        # Take the log out of service at the last boundary that was written whole.
        self.offline = failure
        self._plain_size_limit = 0
        self._fill = 0
        self._gather = None
        self.end_offset = self.written_end_offset
        active = self._active
        active.cut(active.written_size, self.written_end_offset)
        try:
            active.file.truncate(active.written_size)
        except StorageFailure:
            # The half-written tail stays; recovery cuts it off at the next start.
            pass
        return failure

    def flush(self) -> None:
        """Write and sync everything; afterwards the recovery point is the end of the log. A failed sync is final."""
        self.write_pending()
        if self.recovery_point == self.end_offset:
            return
        try:
            for segment in self.segments_from(self.recovery_point):
                segment.file.sync()
        except StorageFailure as failure:
            raise self._fail(failure) from None
        self.recovery_point = self.end_offset
        self.flushed_ms = self._services.clock.now_ms()

    def write_snapshot(self) -> None:
        """The producer state at the end of the log, unless that snapshot is there already."""
        if self.end_offset > self._snapshot_offset:
            self._disk.write(file_prefix(self.directory, self.end_offset) + SNAPSHOT_SUFFIX, self.producers.to_snapshot(), sync=False)
            self._snapshot_offset = self.end_offset

    def write_epochs(self) -> None:
        """Bring the leader-epoch file up to date."""
        if self.epochs.changed:
            self._disk.replace(f"{self.directory}/{EPOCHS_FILE}", self.epochs.to_text().encode())
            self.epochs.changed = False

    def settle(self) -> None:
        """Write and sync all that a clean start reads: batches, indexes, producer snapshot, epochs."""
        if self.is_loaded and self.offline is None:
            self.flush()
            try:
                self._active.write_indexes()
                self.write_snapshot()
                self.write_epochs()
            except StorageFailure as failure:
                raise self._fail(failure) from None

    def close(self) -> None:
        """Close the files and forget them; what `settle` did not write is recovered at the next start."""
        if self.is_loaded:
            for segment in self.segments:
                segment.file.close()
            for name in _LOADED_SLOTS:
                delattr(self, name)
        self.closed = True

    # -- reading -------------------------------------------------------------------------------------------------------

    def read(self, offset: int, max_bytes: int, *, end_offset: int, minimum_one_batch: bool = True) -> FileSlice | None:
        """Whole batches from the one that contains `offset`, at most `max_bytes` and below `end_offset`.

        `minimum_one_batch` returns the first batch even if it is larger. None when there is nothing. Raises
        `KafkaError(OFFSET_OUT_OF_RANGE)` below the log's start or above its end.
        """
        segment = self._active
        if offset < segment.base_offset or offset > self.end_offset or offset < self.log_start_offset:
            return self._read_sealed(offset, max_bytes, end_offset, minimum_one_batch)
        if end_offset >= self.written_end_offset:
            end_offset = self.written_end_offset
            end_position = segment.written_size
        else:
            end_position = self._end_position(segment, end_offset)
        positions = segment.positions
        start = positions.get(offset)
        if start is not None and end_position - start <= max_bytes:
            if end_position <= start:
                return None
            # The next read of a tailing consumer begins where this one ends.
            if end_offset not in positions:
                segment.remember(end_offset, end_position)
            return FileSlice(segment.file, start, end_position - start)
        if offset >= end_offset:
            return None
        found = segment.read(offset, max_bytes, end_position, minimum_one_batch)
        if found is not None and found.position + found.chunk_size == end_position:
            segment.remember(end_offset, end_position)
        return found

    def _read_sealed(self, offset: int, max_bytes: int, end_offset: int, minimum_one_batch: bool) -> FileSlice | None:
        if offset < self.log_start_offset or offset > self.end_offset:
            raise KafkaError(errors.OFFSET_OUT_OF_RANGE, f"offset {offset} is outside [{self.log_start_offset}, "
                                                         f"{self.end_offset}] of {self.topic}-{self.partition}")
        if offset >= end_offset:
            return None
        at = self._segment_at(offset)
        for at in range(at, len(self.segments)):
            segment = self.segments[at]
            sealed = at + 1 < len(self.segments)
            if sealed:
                self._touch(segment)
            if sealed and end_offset >= self.segments[at + 1].base_offset:
                end_position = segment.written_size
            else:
                end_position = self._end_position(segment, end_offset)
            found = segment.read(offset, max_bytes, end_position, minimum_one_batch)
            # A segment may end below the offset that the next one begins with; then the read goes on there.
            if found is not None or segment.locate(offset)[1]:
                return found
        return None

    def _end_position(self, segment: Segment, end_offset: int) -> int:
        if end_offset >= self.written_end_offset and segment is self._active:
            return segment.written_size
        position = segment.positions.get(end_offset)
        if position is None:
            position, _ = segment.locate(end_offset)
            segment.remember(end_offset, position)
        return position

    def _segment_at(self, offset: int) -> int:
        """Index of the segment that holds an offset, or would."""
        return max(bisect_right(self.segments, offset, key=_base_offset) - 1, 0)

    def segments_from(self, offset: int) -> list[Segment]:
        """The segments that hold an offset and what follows it."""
        return self.segments[self._segment_at(offset):]

    def _touch(self, segment: Segment) -> None:
        # A sealed segment's indexes are loaded when read; keep the few last used ones.
        recent = self._recent_sealed
        if segment in recent:
            recent.remove(segment)
        recent.append(segment)
        if len(recent) > MAX_SEALED_INDEXES:
            recent.pop(0).drop_indexes()

    # -- offsets and epochs --------------------------------------------------------------------------------------------

    @property
    def last_stable_offset(self) -> int:
        """Where read_committed ends. Without transactions that is the high watermark."""
        return self.high_watermark

    @property
    def size_bytes(self) -> int:
        """Bytes of all segments."""
        return sum(segment.size for segment in self.segments)

    def advance_high_watermark(self, offset: int) -> int:
        """Raise the high watermark, at most to what is written; it never falls. Returns it."""
        offset = min(offset, self.written_end_offset)
        if offset > self.high_watermark:
            self.high_watermark = offset
        return self.high_watermark

    def assign_epoch(self, epoch: int, start_offset: int | None = None) -> None:
        """The partition has a leader of `epoch` from `start_offset` (default: the end) on; appends carry it from now."""
        self.leader_epoch = epoch
        self.epochs.assign(epoch, self.end_offset if start_offset is None else start_offset)

    def lead(self, epoch: int, *, sole_replica: bool) -> None:
        """This broker leads the partition in `epoch`. Without other replicas, all that is written is committed.

        A log that is not loaded yet takes note and begins the epoch when it is.
        """
        self.leader_epoch = epoch
        self.sole_replica = sole_replica
        if self.is_loaded:
            self._begin_epoch()

    def _begin_epoch(self) -> None:
        if self.leader_epoch > self.epochs.latest:
            self.epochs.assign(self.leader_epoch, self.end_offset)
        if self.sole_replica:
            self.high_watermark = self.written_end_offset

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """(largest known epoch at or below `epoch`, its end offset), (-1, -1) when unknown."""
        return self.epochs.end_offset_for(epoch, self.end_offset)


_LOADED_SLOTS = frozenset((
    "segments", "end_offset", "written_end_offset", "log_start_offset", "high_watermark", "producers", "epochs",
    "recovery_point", "flushed_ms", "_active", "_snapshot_offset",
))
_ALL_CODECS = frozenset(range(5))
CODEC_IDS = {"none": 0, "uncompressed": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
_NO_HEADER = (0,) * 13
_base_offset = attrgetter("base_offset")
