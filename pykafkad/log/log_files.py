"""The files of one partition's log: loading, writing, rolling, syncing and closing.

`PartitionLog` adds appending and reading, `UnopenedLog` the loading on first use. Until a log is loaded, the slots in
`LOADED_SLOTS` are unset and no file is open, so a start with ten thousand partitions is quick."""

from __future__ import annotations

from pykafkad.disk import Disk
from pykafkad.errors import StorageFailure
from pykafkad.log import large_writes, recovery, roll_rules
from pykafkad.log.file_names import LOG_SUFFIX, SNAPSHOT_SUFFIX, file_prefix
from pykafkad.log.log_segments import LogSegments
from pykafkad.log.log_services import LogServices
from pykafkad.log.recent_segments import RecentSegments
from pykafkad.log.segment import NEVER_MS, Segment
from pykafkad.log.syncing import EPOCHS_FILE, SyncJob

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections import deque

    from pykafkad.log.append_rules import Writable
    from pykafkad.log.large_writes import LargeWrite, Writer
    from pykafkad.log.log_config import LogConfig

GATHER_SIZE_BYTES = 64 * 1024
# Idle gather buffers that a directory keeps. When more logs are written in one turn, new buffers are allocated.
MAX_IDLE_BUFFERS = 32
CODEC_IDS = {"none": 0, "uncompressed": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
_ALL_CODECS = frozenset(CODEC_IDS.values())

LOADED_SLOTS = (
    "segments",
    "end_offset",
    "written_end_offset",
    "log_start_offset",
    "high_watermark",
    "producers",
    "epochs",
    "recovery_point",
    "flushed_ms",
    "has_aborted",
    "_active",
    "snapshot_offset",
)

# These may pass the bound of the disk's free space: they are small, and deleting records to make room needs them.
_OWN_TOPICS = frozenset(("__cluster_metadata", "__consumer_offsets", "__share_group_state", "__transaction_state"))


class LogFiles(LogSegments):
    """See the module. Offsets: `log_start_offset <= high_watermark <= written_end_offset <= end_offset`.

    `writer`, if the log has one, writes large batches beside the loop (`large_writes.py`). `writes_under_way` are those
    that have not ended, and `write_failure` is set by the first that fails.

    `offline` is the `StorageFailure` after which the log takes no more writes, else None. Reads go on. Only recovery
    ends this state, at a start or by `reopening.py`. `has_aborted` says whether a segment may hold the marker of an
    aborted transaction. `name_changes` counts the files that were added to or removed from the folder; the device has
    the changes up to `name_changes_synced`. `is_new` says that the folder's own name may not be synced. `messages_in`
    counts the records that were appended. `late_snapshot` is the path and content of a producer snapshot that the next
    sync job writes. An unopened log has no segment to remove by retention before `due_ms`."""

    __slots__ = (
        "topic",
        "partition",
        "topic_id",
        "settings",
        "directory",
        "offline",
        "leader_epoch",
        "closed",
        "_services",
        "_disk",
        "_gather_pool",
        "_initial",
        "_plain_attributes",
        "_plain_size_limit",
        "_after_max_ms",
        "_index_interval_bytes",
        "_flush_messages",
        "_gather",
        "_fill",
        "writer",
        "writes_under_way",
        "write_failure",
        "_recent_sealed",
        "_sole_replica",
        "due_ms",
        "is_new",
        "late_snapshot",
        "messages_in",
        "name_changes",
        "name_changes_synced",
        *LOADED_SLOTS,
    )

    def __init__(
        self,
        topic: str,
        partition: int,
        topic_id: bytes,
        settings: LogConfig,
        directory: str,
        services: LogServices,
        initial: recovery.Checkpointed = recovery.NOTHING_KNOWN,
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.topic_id = topic_id
        self.directory = directory
        self.offline: StorageFailure | None = None
        self.leader_epoch = -1
        self.closed = False
        self._services = services
        self._disk = services.disk
        self._gather_pool = services.gather_pool
        self._initial = initial
        self._gather: memoryview | None = None
        self._fill = 0
        self.writer: Writer | None = None
        self.writes_under_way: deque[LargeWrite] | tuple[()] = ()
        self.write_failure: StorageFailure | None = None
        self._recent_sealed = RecentSegments()
        self._sole_replica = False
        self.is_new = False
        self.messages_in = 0
        self.late_snapshot: tuple[str, bytes] | None = None
        self.name_changes = self.name_changes_synced = 0
        self._prepare(settings)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.topic}-{self.partition})"

    @property
    def disk(self) -> Disk:
        """The disk that holds the files."""
        return self._disk

    # -- loading and settings ------------------------------------------------------------------------------------------

    def load(self, known: recovery.Checkpointed | None = None, loaded: recovery.Loaded | None = None) -> None:
        """Open the files. After an unclean stop this recovers the log from its recovery point on. If that was done
        already, `loaded` is what was made of `known`.

        Raises `StorageFailure`, and the log is offline from then on. For a failure that passes, such as a lack of
        descriptors, the log stays in service and the next use tries again."""
        now_ms = self._services.clock.now_ms()
        known = self._initial = known or self._initial
        try:
            loaded = loaded or recovery.load(self._disk, self.directory, self.topic_id, known, self.settings, now_ms)
        except StorageFailure as failure:
            if not failure.is_passing:
                self.offline = failure.copy()
                self._services.failed_logs.append(self)
            raise
        self.segments = loaded.segments
        self.end_offset = self.written_end_offset = loaded.end_offset
        self.log_start_offset = loaded.log_start_offset
        self.high_watermark = min(max(self._initial.high_watermark, loaded.log_start_offset), loaded.end_offset)
        self.producers = loaded.producers
        self.epochs = loaded.epochs
        self.recovery_point = loaded.recovery_point
        self.flushed_ms = now_ms
        self.snapshot_offset = loaded.snapshot_offset
        self._recent_sealed = RecentSegments()
        self.look_for_aborted()
        if not self._initial.clean or not loaded.segments[-1].size:
            # The broker may have been killed before it synced the names of files, or the first file is new.
            self.name_changes += 1
        self.activate(loaded.segments[-1])
        if self.leader_epoch >= 0:
            self.epochs.assign(self.leader_epoch, self.end_offset)
        if self._sole_replica:
            self.high_watermark = self.end_offset
        self.producers.forget_ended(self.high_watermark)

    def update_settings(self, settings: LogConfig) -> None:
        """Take a topic's changed settings. They apply from the next append on."""
        self._prepare(settings)
        if self.is_loaded:
            self.activate(self._active)

    def _prepare(self, settings: LogConfig) -> None:
        self.settings = settings
        self.due_ms = 0
        self._index_interval_bytes = settings.index_interval_bytes
        self._after_max_ms = settings.message_timestamp_after_max_ms
        self._flush_messages = settings.flush_messages if self.offline is None else NEVER_MS
        plain = (
            settings.message_timestamp_type == "CreateTime"
            and "compact" not in settings.cleanup_policy
            and settings.message_timestamp_before_max_ms >= NEVER_MS
        )
        codec = settings.compression_type
        self._plain_attributes = _ALL_CODECS if codec == "producer" else frozenset((CODEC_IDS[codec],))
        self._plain_size_limit = 0
        if plain and self.offline is None:
            self._plain_size_limit = min(settings.max_message_bytes, settings.segment_bytes)

    def activate(self, segment: Segment) -> None:
        self._active = segment
        segment.rouse()
        roll_rules.prepare(segment, self.settings, self._services.random)

    # -- rolling -------------------------------------------------------------------------------------------------------

    def roll_if_due(self, size: int, max_timestamp_ms: int, last_offset: int, now_ms: int) -> Segment:
        # The append path calls this for a batch above one of the limits that `roll_rules.prepare` set.
        segment = self._active
        if segment.size and roll_rules.is_due(segment, self.settings, size, max_timestamp_ms, last_offset, now_ms):
            segment = self.roll(now_ms)
        has_room = segment.size + size <= segment.room_end
        if not has_room:
            segment.room_end = self._disk.reserve(
                segment.file, segment.size + size, beyond_bound=self.topic in _OWN_TOPICS
            )
        if not segment.size:
            # The first batch sets the clock by which the segment ages.
            segment.first_timestamp_ms = max_timestamp_ms
        if not segment.size or not has_room:
            self.activate(segment)
        return segment

    def roll(self, now_ms: int) -> Segment:
        """Seal the active segment (write its indexes and a producer snapshot) and begin a new one at the log's end."""
        self.write_pending()
        active, end_offset = self._active, self.end_offset
        if active.base_offset == end_offset:
            return active
        try:
            active.write_indexes()
            if self.recovery_point >= end_offset > self.snapshot_offset:
                # A recovery would not look at the sealed segment any more, whose indexes are not synced yet. The next
                # sync job covers them. It then writes the snapshot, which tells a recovery that they are complete.
                path = file_prefix(self.directory, end_offset) + SNAPSHOT_SUFFIX
                self.late_snapshot = path, self.producers.to_snapshot()
                self.snapshot_offset = end_offset
            else:
                self.write_snapshot()
            self.write_epochs()
            file = self._disk.open(file_prefix(self.directory, end_offset) + LOG_SUFFIX, create=True)
        except StorageFailure as failure:
            if failure.is_passing:
                # The log is unchanged, but for files that can be rebuilt. The next append tries again.
                raise
            raise self.fail(failure) from None
        active.drop_indexes()
        self.name_changes += 1
        self.recovery_point = min(self.recovery_point, end_offset - 1)
        segment = Segment(self._disk, self.directory, end_offset, file, now_ms)
        self.segments.append(segment)
        self.activate(segment)
        return segment

    # -- writing -------------------------------------------------------------------------------------------------------

    def _borrow(self) -> memoryview:
        # A directory's logs share gather buffers and keep them: page faults of new memory cost more than the copy.
        pool = self._gather_pool
        return pool.pop() if pool else memoryview(bytearray(GATHER_SIZE_BYTES))

    def give_back(self, gather: memoryview) -> None:
        """The buffer is not used any more."""
        if len(self._gather_pool) < MAX_IDLE_BUFFERS:
            self._gather_pool.append(gather)

    def take_gathered(self) -> tuple[memoryview | None, int]:
        """The buffer with the gathered batches, and their size. From now on the caller owns it."""
        gather, fill = self._gather, self._fill
        self._gather, self._fill = None, 0
        return gather, fill

    def wrote(self, end_position: int, end_offset: int) -> None:
        """A write beside the loop has ended: the file holds the active segment up to `end_position`."""
        self._active.written_size = end_position
        self.written_end_offset = end_offset

    def write_pending(self) -> None:
        """Wait for the writes under way, and write the gathered batches in one call.

        Raises `StorageFailure`. The log is then offline and ends with the last whole write, so that no half-written
        batch is read or acknowledged."""
        if self.writes_under_way:
            large_writes.wait(self)
        gather = self._gather
        if gather is None:
            return
        fill, segment = self._fill, self._active
        try:
            segment.file.pwrite(gather[:fill], segment.written_size)
        except StorageFailure as failure:
            raise self.fail(failure) from None
        segment.written_size += fill
        self._fill, self._gather = 0, None
        self.give_back(gather)
        self.written_end_offset = self.end_offset

    def _make_room(self) -> None:
        # The gather buffer is full.
        if self.writes_under_way:
            large_writes.begin(self, self._active, None, self.end_offset)
        else:
            self.write_pending()

    def _write_through(self, segment: Segment, records: Writable, end_offset: int) -> None:
        # The largest batches are written beside the loop, others at once, in one call with the batches gathered before.
        writer, size = self.writer, len(records)
        if writer is not None and (self.writes_under_way or (size >= writer.from_bytes and writer.takes(size))):
            large_writes.begin(self, segment, records, end_offset)
            return
        gather, fill = self.take_gathered()
        began = self._services.clock.now() if size >= large_writes.TIMED_FROM_BYTES else 0.0
        try:
            if gather is None:
                segment.file.pwrite(records, segment.written_size)
            else:
                segment.file.pwritev([gather[:fill], records], segment.written_size)
                self.give_back(gather)
        except StorageFailure as failure:
            raise self.fail(failure) from None
        if writer is not None and began:
            writer.observe(fill + size, self._services.clock.now() - began)
        segment.written_size += fill + size
        self.written_end_offset = end_offset

    def fail(self, failure: StorageFailure) -> StorageFailure:
        """Take the log out of service. It ends with the last batch that was written whole. Returns `failure`."""
        self.offline = failure.copy()
        self._services.failed_logs.append(self)
        self._plain_size_limit = 0
        self._flush_messages = NEVER_MS
        large_writes.finish(self)
        self._fill, self._gather = 0, None
        self.messages_in -= self.end_offset - self.written_end_offset
        self.end_offset = self.written_end_offset
        active = self._active
        active.cut(active.written_size, self.written_end_offset)
        try:
            active.file.truncate(active.written_size)
        except StorageFailure:
            # The half-written tail stays in the file. Recovery removes it at the next start.
            pass
        return failure

    def flush(self) -> None:
        """Write and sync everything, so that the recovery point is the end of the log. A failed sync is final."""
        if self.offline is not None:
            raise self.offline.copy()
        self.write_pending()
        if self.needs_sync:
            job = self.whole_sync_job()
            try:
                job.run()
            except StorageFailure as failure:
                raise self.fail(failure) from None
            job.finish()
        self.flushed_ms = self._services.clock.now_ms()

    def sync_job(self) -> SyncJob | None:
        """A job that syncs the segments sealed since the last one, or None. Kafka syncs a segment when it rolls."""
        if not self.is_loaded or self.offline is not None or self.recovery_point >= self._active.base_offset:
            return None
        return SyncJob(self, self.segments_from(self.recovery_point)[:-1], None, self._active.base_offset)

    @property
    def is_flush_due(self) -> bool:
        """Whether `flush.messages` asks for a sync: so many records are written and not synced."""
        return self.written_end_offset - self.recovery_point >= self._flush_messages

    def whole_sync_job(self) -> SyncJob:
        """A job that syncs everything that is written now."""
        *sealed, active = self.segments_from(self.recovery_point)
        return SyncJob(self, sealed, active, self.written_end_offset)

    def write_snapshot(self) -> None:
        """Write a producer snapshot at the end of the log, unless there is one already."""
        if self.end_offset > self.snapshot_offset:
            self._disk.write(
                file_prefix(self.directory, self.end_offset) + SNAPSHOT_SUFFIX, self.producers.to_snapshot()
            )
            self.snapshot_offset = self.end_offset
            self.name_changes += 1

    def write_epochs(self) -> None:
        """Bring the leader-epoch file up to date, without a sync: before the recovery point moves, a crash rebuilds the
        file from the log."""
        if self.epochs.changed:
            self._disk.replace(f"{self.directory}/{EPOCHS_FILE}", self.epochs.to_text().encode(), sync=False)
            self.epochs.changed = False
            self.name_changes += 1

    @property
    def needs_sync(self) -> bool:
        """Whether records were appended or files added since the last sync."""
        return (
            self.is_loaded
            and self.offline is None
            and (self.recovery_point != self.end_offset or self.name_changes != self.name_changes_synced)
        )

    def settle(self, *, sync: bool = True) -> None:
        """Write all that a clean start reads: batches, indexes, producer snapshot, leader epochs.

        Without `sync` the caller syncs the whole file system and calls `synced`."""
        if self.is_loaded and self.offline is None:
            self.write_pending()
            self._write_hints(sync=sync and self.needs_sync)
            if sync:
                self.flush()
            self.release_file()

    def _write_hints(self, *, sync: bool) -> None:
        try:
            self._active.write_indexes(sync=sync)
            self.write_snapshot()
            self.write_epochs()
        except StorageFailure as failure:
            raise self.fail(failure) from None

    def synced(self) -> None:
        """Call this after the whole file system was synced: the recovery point moves to the end of what is written.

        The log's files are asked whether a write failed. Raises `StorageFailure`."""
        if self.is_loaded and self.offline is None:
            try:
                for segment in (
                    self.segments_from(self.recovery_point) if self.recovery_point != self.written_end_offset else ()
                ):
                    segment.file.sync()
                if self.late_snapshot is not None:
                    self._disk.write(*self.late_snapshot)
                    self.late_snapshot = None
            except StorageFailure as failure:
                raise self.fail(failure) from None
            self.recovery_point = self.written_end_offset
            self.name_changes_synced = self.name_changes
            self.release_file()

    def release_file(self) -> None:
        """Close the active segment's file until the log is used again."""
        if self.is_loaded and self.offline is None:
            self._active.drop_file()

    def unload(self) -> None:
        """Free the memory and the descriptor of an idle log.

        If everything is synced, the log becomes unopened, and its next use loads it as after a clean stop. Else only
        the file is closed. Raises `StorageFailure`."""
        self.release_file()
        # Two kinds of logs stay loaded: one whose records are all deleted, because the load would read them again, and
        # one with a producer of several batches, because a snapshot keeps only the last batch of each.
        if (
            not self.is_loaded
            or self.offline is not None
            or self.recovery_point != self.end_offset
            or (self._active.size and self.log_start_offset == self.end_offset)
            or any(len(entry.batches) > 1 for entry in self.producers.values())
        ):
            return
        if self._active.size or len(self.segments) > 1:
            self._write_hints(sync=False)
        self._initial = recovery.Checkpointed(True, self.recovery_point, self.log_start_offset, self.high_watermark)
        self._forget()

    def _forget(self) -> None:
        for name in LOADED_SLOTS:
            delattr(self, name)
        self._recent_sealed = RecentSegments()

    def close(self) -> None:
        """Close the files. What `settle` did not write is recovered at the next start.

        A file of which a slice is being sent stays open until the slice is sent.
        """
        if self.is_loaded:
            large_writes.finish(self)
            self._forget()
        self.closed = True

    def relocate(self, directory: str, services: LogServices) -> None:
        """Switch to the same files in another directory, whose names the next sync counts as new. No batch may be
        waiting to be written."""
        self.directory = directory
        self.is_new = True
        self.name_changes += 1
        if self.late_snapshot is not None:
            path, snapshot = self.late_snapshot
            self.late_snapshot = f"{directory}/{path.rpartition('/')[2]}", snapshot
        self._services = services
        self._disk = services.disk
        self._gather_pool = services.gather_pool

    def look_for_aborted(self) -> None:
        """Set `has_aborted` again, after segments were added or removed."""
        self.has_aborted = any(segment.has_aborted for segment in self.segments)

    def delete_later(self, path: str, now_ms: int) -> None:
        """Schedule the removal of a file after `file.delete.delay.ms`."""
        self._services.scheduled_deletions.append((now_ms + self.settings.file_delete_delay_ms, path, False))
