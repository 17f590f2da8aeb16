"""The way back of a log that a full disk took out of service.

The log is recovered from its files as at a start after a crash, because what is in memory may be ahead of them. Only a
lack of space can be got over in this way: after other failures nobody knows what the disk holds."""

from __future__ import annotations

from pykafkad.log import recovery

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.log.partition_log import PartitionLog


def can_reopen(log: PartitionLog) -> bool:
    """Whether the log is out of service for lack of space. A failed sync is final: the kernel may have dropped what it
    could not write."""
    failure = log.offline
    return failure is not None and failure.lacks_space and failure.operation != "sync" and not log.closed


class ReopenJob:
    """Recovers a log for which `can_reopen` is true: call `run` on any thread, then `finish` on the loop's thread.
    Between the two the log stays out of service, and can be read."""

    __slots__ = ("_directory", "_known", "_loaded", "_now_ms", "log")

    def __init__(self, log: PartitionLog, now_ms: int) -> None:
        self.log = log
        self._directory = log.directory
        self._now_ms = now_ms
        self._loaded: recovery.Loaded | None = None
        self._known: recovery.Checkpointed | None = None
        if log.is_loaded:
            self._known = recovery.Checkpointed(False, log.recovery_point, log.log_start_offset, log.high_watermark)

    @property
    def has_moved(self) -> bool:
        """Whether the log has moved to another directory since. Then what `run` found are not its files."""
        return self.log.directory != self._directory

    def run(self) -> None:
        """Read the files. Raises `StorageFailure`. A log that was never opened is read at its next use."""
        log = self.log
        if self._known is None:
            return
        # A batch whose write failed was refused, even if the file holds all of it.
        active = log.segments[-1]
        active.file.truncate(active.written_size)
        self._loaded = recovery.load(log.disk, self._directory, log.topic_id, self._known, log.settings, self._now_ms)

    def finish(self) -> None:
        """Bring the log back into service."""
        log = self.log
        log.offline = log.write_failure = None
        if self._loaded is not None and self._known is not None:
            for segment in log.segments:
                segment.drop_file()
            log.load(self._known, self._loaded)
        log.update_settings(log.settings)
