"""Making a snapshot of a log directory: every log as it was at one moment, saved one after another.

At that moment the logs are only noted. From then on a log saves itself before any change, and the loop saves unchanged
logs in small steps. A log that is not saved yet has a class of its own, whose methods save it first. The size limit of
its active segment is zero, so that every append calls `roll_if_due`. So logs without a snapshot pay nothing."""

from __future__ import annotations

from pykafkad.errors import StorageFailure
from pykafkad.log import checkpoints, snapshot_store
from pykafkad.log.partition_log import PartitionLog, UnopenedLog

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.log.directory import LogDirectory
    from pykafkad.log.segment import Segment


class SnapshotWriter:
    """The snapshot `name` of one directory; `directories` are the settings for `snapshot_store.directories_of`.

    Nothing is synced: until `snapshot_store.mark_clean` the snapshot is like a directory after a kill. All gathered
    batches must be written before the constructor is called. The constructor raises StorageFailure. `failure` is the
    reason why the snapshot cannot be completed, else None; after a failure only `abandon` may be called."""

    __slots__ = (
        "_directories",
        "_ends",
        "_high_watermarks",
        "_left",
        "_name",
        "_starts",
        "_synced",
        "_watched",
        "directory",
        "failure",
    )

    def __init__(
        self,
        directory: LogDirectory,
        name: str,
        directories: dict[str, str] | None = None,
        *,
        are_replicated: bool = False,
    ) -> None:
        """With `are_replicated` a partition may end above its high watermark: that of now is kept, too."""
        self.directory = directory
        self._directories = directories
        self._name = name
        self._synced: dict[tuple[str, int], int] = {}
        self._ends: dict[tuple[str, int], int] = {}
        self._starts: dict[tuple[str, int], int] = {}
        self._high_watermarks: dict[tuple[str, int], int] = {}
        self._left: dict[PartitionLog, None] = {}
        self.failure: StorageFailure | None = None
        disk, partial = directory.disk, self._partial
        if disk.is_directory(partial):
            snapshot_store.remove(disk, partial)
        disk.make_directories(snapshot_store.folder(directory.path))
        disk.make_directories(partial)
        self._watched = _watched_by(self)
        for key, log in directory.logs.items():
            if are_replicated:
                self._high_watermarks[key] = log.high_watermark if log.is_loaded else directory.checkpointed(key)[2]
            self._watch(log)

    @property
    def _partial(self) -> str:
        return snapshot_store.path_of(self.directory.path, self._name) + snapshot_store.PARTIAL_SUFFIX

    def _watch(self, log: PartitionLog) -> None:
        self._left[log] = None
        log.__class__ = self._watched
        if log.is_loaded:
            log.segments[-1].size_limit = 0

    @staticmethod
    def _unwatch(log: PartitionLog) -> None:
        log.__class__ = PartitionLog if log.is_loaded else UnopenedLog
        # This restores the limits of the active segment.
        log.update_settings(log.settings)

    def step(self) -> bool:
        """Save one log; returns whether logs are left. Raises StorageFailure, also for an earlier failure."""
        if self.failure is None and self._left:
            self.save(next(iter(self._left)))
        if self.failure is not None:
            raise self.failure.copy()
        return bool(self._left)

    def save(self, log: PartitionLog) -> None:
        """Save an unsaved log as it is now. A failure ends the snapshot, and the log goes on."""
        del self._left[log]
        self._unwatch(log)
        if self.failure is not None:
            return
        try:
            self._save(log)
        except StorageFailure as failure:
            self.failure = failure.copy()

    def _save(self, log: PartitionLog) -> None:
        directory, key = self.directory, (log.topic, log.partition)
        if log.offline is not None or log.closed:
            raise StorageFailure("save", log.directory, f"the partition is out of service: {log.offline}")
        target = f"{self._partial}/{log.topic}-{log.partition}"
        if (
            not log.is_loaded
            and directory.clean
            and snapshot_store.link_untouched(directory.disk, log.directory, target)
        ):
            self._synced[key], self._starts[key], self._ends[key] = directory.checkpointed(key)
            return
        sealed = log.segments[-1]
        log.roll(directory.clock.now_ms())
        log.write_epochs()
        snapshot_store.link_partition(directory.disk, log.directory, target)
        if log.late_snapshot is not None:
            path, snapshot = log.late_snapshot
            directory.disk.write(f"{target}/{path.rpartition('/')[2]}", snapshot)
        log.rest(sealed)
        self._synced[key], self._starts[key], self._ends[key] = log.recovery_point, log.log_start_offset, log.end_offset

    def finish(self) -> None:
        """Write the files at the top of the directory. Raises StorageFailure."""
        disk, path = self.directory.disk, self.directory.path
        files = {each: disk.read(f"{path}/{each}") for each in snapshot_store.IDENTITY_FILES}
        files[checkpoints.RECOVERY_POINT_FILE] = checkpoints.encode_offsets(self._synced)
        files[checkpoints.HIGH_WATERMARK_FILE] = checkpoints.encode_offsets({**self._ends, **self._high_watermarks})
        files[checkpoints.LOG_START_FILE] = checkpoints.encode_offsets(
            {key: offset for key, offset in self._starts.items() if offset}
        )
        if self._directories:
            files[snapshot_store.DIRECTORIES_FILE] = checkpoints.encode_properties(self._directories)
        for each, content in files.items():
            if content is not None:
                disk.write(f"{self._partial}/{each}", content)

    def publish(self) -> None:
        """Give the snapshot its name, from which on it exists. An older one of this name is removed.

        Raises StorageFailure."""
        snapshot_store.discard(self.directory.disk, self.directory.path, self._name)
        self.directory.disk.rename(self._partial, snapshot_store.path_of(self.directory.path, self._name))

    def abandon(self) -> None:
        """Give up the snapshot and remove its files. The next start removes those that cannot be removed now."""
        for log in self._left:
            self._unwatch(log)
        self._left.clear()
        try:
            snapshot_store.remove(self.directory.disk, self._partial)
            snapshot_store.discard(self.directory.disk, self.directory.path, self._name)
        except StorageFailure:
            pass


def _watched_by(writer: SnapshotWriter) -> type[PartitionLog]:
    class Watched(UnopenedLog):
        """A log that is saved before every change."""

        __slots__ = ()

        def before_change(self) -> None:
            writer.save(self)

        def close(self) -> None:
            writer.save(self)
            self.close()

        def activate(self, segment: Segment) -> None:
            super().activate(segment)
            segment.size_limit = 0

        def roll_if_due(self, *arguments: object) -> Segment:
            writer.save(self)
            if self.offline is not None:
                raise self.offline.copy()
            return self.roll_if_due(*arguments)

    return Watched


def save(directory: LogDirectory, name: str) -> None:
    """Make the snapshot `name` of every partition of a directory in one go. Raises StorageFailure."""
    writer = SnapshotWriter(directory, name)
    try:
        while writer.step():
            pass
        writer.finish()
        writer.publish()
    except StorageFailure:
        writer.abandon()
        raise
