"""Bringing segments of a log to the device, with all that is not read again once a recovery point has passed it."""

from __future__ import annotations

import posixpath

from pykafkad.errors import StorageFailure
from pykafkad.log.file_names import (
    INDEX_SUFFIX,
    LOG_SUFFIX,
    SNAPSHOT_SUFFIX,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
    file_prefix,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.disk import Disk
    from pykafkad.log.log_files import LogFiles
    from pykafkad.log.segment import Segment

EPOCHS_FILE = "leader-epoch-checkpoint"


class SyncJob:
    """The sync of segments of a log: `run` on any thread, then `finish` on the loop's."""

    __slots__ = (
        "_active",
        "_directory",
        "_disk",
        "_failure",
        "_has_epochs",
        "_is_new",
        "_names",
        "_names_synced",
        "_sealed",
        "_segments",
        "_snapshots",
        "end_offset",
        "log",
    )

    def __init__(self, log: LogFiles, sealed: list[Segment], active: Segment | None, end_offset: int) -> None:
        self.log = log
        self._disk = log.disk
        self._directory = log.directory
        self._sealed = sealed
        self._segments = log.segments
        self._active = active
        self.end_offset = end_offset
        self._failure: StorageFailure | None = None
        self._has_epochs = True
        try:
            log.write_epochs()
        except StorageFailure as failure:
            if failure.is_passing:
                # The records are synced all the same; what the file lacks is rebuilt from behind the recovery point,
                # which stays.
                self._has_epochs = False
            else:
                # The job's own: who makes it need not expect one.
                self._failure = failure.copy()
        self._names, self._names_synced, self._is_new = log.names, log.names_synced, log.is_new
        bases = [segment.base_offset for segment in log.segments_from(sealed[0].base_offset)[1:]] if sealed else []
        self._snapshots = [file_prefix(log.directory, base) + SNAPSHOT_SUFFIX for base in bases]

    def run(self) -> None:
        """Sync logs, and of those that are sealed the indexes and producer snapshots, and leader epochs and names that
        changed: what lies before a recovery point is not read again, so nobody could tell. Raises `StorageFailure`."""
        if self._failure is not None:
            raise self._failure
        disk = self._disk
        has_new_names = self._names != self._names_synced
        if has_new_names:
            sync_if_there(disk, f"{self._directory}/{EPOCHS_FILE}")
        for segment in self._sealed:
            self._sync_log(segment)
            for suffix in (INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX):
                sync_if_there(disk, segment.prefix + suffix)
        for path in self._snapshots:
            sync_if_there(disk, path)
        if self._active is not None:
            self._sync_log(self._active)
        if has_new_names:
            # The sync of a file is none of its name, whatever most file systems do.
            _sync_names(disk, self._directory)
        if self._is_new:
            _sync_names(disk, posixpath.dirname(self._directory) or ".")

    def _sync_log(self, segment: Segment) -> None:
        file = segment.open_file
        if file is not None:
            file.sync()
            return
        try:
            # For a moment: a descriptor to keep may be lacking, which is no failed sync.
            self._disk.sync(segment.prefix + LOG_SUFFIX)
        except StorageFailure:
            # Retention or compaction may have renamed it since, or its topic be deleted: nobody needs it any more.
            if not self.log.closed and segment in self._segments:
                raise

    def finish(self) -> None:
        """What `run` synced needs no recovery any more, and sealed segments no descriptor until they are read.

        Of a log that failed meanwhile nothing is: what another sync lost, this one did not bring back.
        """
        log = self.log
        if not log.closed and log.offline is None:
            for segment in self._sealed:
                log.rest(segment)
            if not self._has_epochs:
                return
            # Sealed meanwhile, the segment has indexes that `run` did not see: it counts when the next job has synced
            # those.
            was_sealed = self._active is not None and self._active is not log.segments[-1]
            end_offset = self._active.base_offset if was_sealed else self.end_offset
            log.recovery_point = max(log.recovery_point, end_offset)
            log.names_synced = max(log.names_synced, self._names)
            if self._is_new:
                log.is_new = False

    def failed(self, failure: StorageFailure) -> None:
        """A failed sync is final: the log goes out of service. One for which a descriptor was lacking has not been
        tried."""
        if not self.log.closed and not failure.is_passing:
            self.log.fail(failure)


def sync_if_there(disk: Disk, path: str) -> None:
    """Bring a file to the device; retention may rename it away while a job runs on another thread."""
    try:
        disk.sync(path)
    except StorageFailure:
        if disk.exists(path):
            raise


def _sync_names(disk: Disk, directory: str) -> None:
    try:
        disk.sync_directory(directory)
    except StorageFailure:
        # The folder of a topic that is being deleted has another name by now, and need not survive.
        if disk.is_directory(directory):
            raise
