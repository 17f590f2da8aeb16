"""Syncing segments of a log, with all files that are not read again once the recovery point has passed them."""

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
from pykafkad.log.segment import NEVER_MS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.disk import Disk
    from pykafkad.log.log_files import LogFiles
    from pykafkad.log.segment import Segment

EPOCHS_FILE = "leader-epoch-checkpoint"


def is_flush_due(log: LogFiles, now_ms: int) -> bool:
    """Whether `flush.ms` asks for a sync of the log now."""
    if not log.is_loaded or log.offline is not None:
        return False
    flush_ms = log.settings.flush_ms
    return flush_ms < NEVER_MS and now_ms - log.flushed_ms >= flush_ms and log.needs_sync


class SyncJob:
    """Syncs segments of a log: call `run` on any thread, then `finish` on the loop's thread."""

    __slots__ = (
        "_active",
        "_directory",
        "_disk",
        "_failure",
        "_has_epochs",
        "_is_new",
        "_late_snapshot",
        "_name_changes",
        "_name_changes_synced",
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
                # The records are synced without the epochs. The recovery point then stays, so that a recovery can
                # rebuild the epochs.
                self._has_epochs = False
            else:
                # `run` raises the failure, so that the constructor never raises.
                self._failure = failure.copy()
        self._name_changes, self._name_changes_synced = log.name_changes, log.name_changes_synced
        self._is_new = log.is_new
        self._late_snapshot = log.late_snapshot if sealed else None
        bases = [segment.base_offset for segment in log.segments_from(sealed[0].base_offset)[1:]] if sealed else []
        self._snapshots = [file_prefix(log.directory, base) + SNAPSHOT_SUFFIX for base in bases]

    def run(self) -> None:
        """Sync segments, changed leader epochs and file names; of sealed segments also indexes and snapshots.

        A start does not read what lies before the recovery point, so all of it must be synced. Raises `StorageFailure`.
        """
        if self._failure is not None:
            raise self._failure
        disk = self._disk
        has_new_names = self._name_changes != self._name_changes_synced
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
            # POSIX does not promise that the sync of a file syncs its name, although most file systems do it.
            sync_names(disk, self._directory)
        if self._late_snapshot is not None:
            # It comes after the names of the indexes, because it tells a recovery that they are complete.
            self._write_late_snapshot(*self._late_snapshot)
        if self._is_new:
            sync_names(disk, posixpath.dirname(self._directory) or ".")

    def _write_late_snapshot(self, path: str, snapshot: bytes) -> None:
        try:
            self._disk.write(path, snapshot, sync=True)
        except StorageFailure:
            # The folder of a deleted topic or of a moved log is renamed.
            if self._disk.is_directory(self._directory):
                raise

    def _sync_log(self, segment: Segment) -> None:
        file = segment.open_file
        if file is not None:
            file.sync()
            return
        try:
            # The file is opened only for the sync: a lack of descriptors that can be kept is no failed sync.
            self._disk.sync(segment.prefix + LOG_SUFFIX)
        except StorageFailure:
            # Retention or compaction may have renamed the file, or the topic may be deleted. Then no sync is needed.
            if not self.log.closed and segment in self._segments and not self._has_moved:
                raise

    @property
    def _has_moved(self) -> bool:
        return self.log.directory != self._directory

    def finish(self) -> None:
        """Raise the recovery point to what `run` has synced, and close the files of sealed segments.

        If the log has failed meanwhile, nothing is done: this sync may not cover the writes that another one has lost.
        Nor is anything done if the log has moved to another directory, because its files were not those, or if it was
        cut, because it may have grown again.
        """
        log = self.log
        if not log.closed and log.offline is None and not self._has_moved and log.segments is self._segments:
            for segment in self._sealed:
                log.rest(segment)
            if log.late_snapshot is self._late_snapshot:
                log.late_snapshot = None
            if not self._has_epochs:
                return
            # If the active segment was sealed meanwhile, `run` has not synced its indexes, so the next job counts it.
            active = self._active
            was_sealed = active is not None and active is not log.segments[-1]
            end_offset = active.base_offset if active is not None and was_sealed else self.end_offset
            log.recovery_point = max(log.recovery_point, end_offset)
            log.name_changes_synced = max(log.name_changes_synced, self._name_changes)
            if self._is_new:
                log.is_new = False

    def failed(self, failure: StorageFailure) -> None:
        """Take the log out of service, because a failed sync is final; not after a lack of descriptors, nor if the log
        has moved to another directory."""
        if not self.log.closed and not failure.is_passing and not self._has_moved:
            self.log.fail(failure)


def sync_if_there(disk: Disk, path: str) -> None:
    """Sync a file. It may be missing, because retention may rename it while a job runs on another thread."""
    try:
        disk.sync(path)
    except StorageFailure:
        if disk.exists(path):
            raise


def sync_names(disk: Disk, directory: str) -> None:
    """Sync the names in a folder. It may be renamed meanwhile, as that of a deleted topic is."""
    try:
        disk.sync_directory(directory)
    except StorageFailure:
        # The folder of a deleted topic is renamed, and needs no sync.
        if disk.is_directory(directory):
            raise
