"""The way back of a log that a full disk took out of service.

The log is recovered from its files as at a start after a crash, because what is in memory may be ahead of them. Only a
lack of space can be got over in this way: after other failures nobody knows what the disk holds."""

from __future__ import annotations

from pykafkad.errors import StorageFailure
from pykafkad.log import recovery

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.log.offset_checkpoints import OffsetCheckpoints
    from pykafkad.log.partition_log import PartitionLog


def can_reopen(log: PartitionLog) -> bool:
    """Whether the log is out of service for lack of space. A failed sync is final: the kernel may have dropped what it
    could not write."""
    failure = log.offline
    return failure is not None and failure.lacks_space and failure.operation != "sync" and not log.closed


class ReopenJob:
    """Recovers a log for which `can_reopen` is true: call `run` on any thread, then `finish` or `give_up` on the loop's
    thread. Until then the log stays out of service, and can be read. If its files hold less than was written, `run`
    fails, and has cut nothing.

    The start after an unclean stop may have failed to recover the log. It may then end below the high watermark in the
    checkpoint, which would commit what is appended. So before it is back, it comes to the device that the checkpoints
    do not count for it."""

    __slots__ = ("_directory", "_fresh", "_known", "_loaded", "_now_ms", "_offsets", "log")

    def __init__(self, log: PartitionLog, now_ms: int, offsets: OffsetCheckpoints) -> None:
        """`offsets` are those of the log's directory."""
        self.log = log
        self._offsets = offsets
        self._directory = log.directory
        self._now_ms = now_ms
        self._loaded: recovery.Loaded | None = None
        self._known = log.unrecovered
        self._fresh: str | None = None
        if self._known is not None:
            self._fresh = offsets.name_fresh((log.topic, log.partition), self._known.log_start_offset)
        elif log.is_loaded:
            self._known = recovery.Checkpointed(False, log.recovery_point, log.log_start_offset, log.high_watermark)

    @property
    def has_moved(self) -> bool:
        """Whether the log has moved to another directory since. Then what `run` found are not its files."""
        return self.log.directory != self._directory

    def run(self) -> None:
        """Read the files. Raises `StorageFailure`. A log that was not opened since a clean stop is read at its next
        use."""
        log = self.log
        if self._known is None:
            return
        if self._fresh is not None:
            self._offsets.sync_fresh(self._fresh)
        else:
            # A batch whose write failed was refused, even if the file holds all of it.
            active = log.segments[-1]
            active.file.truncate(active.written_size)
        self._loaded = recovery.load(
            log.disk, self._directory, log.topic_id, self._known, log.settings, self._now_ms, self._check_end
        )

    def _check_end(self, end_offset: int) -> None:
        """Refuse to cut what was written, as after damage to the disk: as a leader the log would take it from its
        followers, too. Refuse as well if the folder may be another topic's by now."""
        log = self.log
        if log.closed or self.has_moved:
            raise StorageFailure("recover", self._directory, "the log was deleted or moved meanwhile")
        if log.is_loaded and end_offset < log.written_end_offset:
            text = f"the files end at offset {end_offset}, not {log.written_end_offset}"
            raise StorageFailure("recover", self._directory, text)

    def finish(self) -> None:
        """Bring the log back into service."""
        log = self.log
        log.offline = log.write_failure = None
        known = self._known
        if self._loaded is not None and known is not None:
            if log.is_loaded:
                # Followers may have fetched meanwhile, which commits.
                known = known._replace(high_watermark=log.high_watermark)
                cuts = {segment.base_offset: segment.cuts for segment in log.segments}
                for segment in log.segments:
                    segment.drop_file()
                for segment in self._loaded.segments:
                    # Slices of the same file may still be sent.
                    segment.cuts = cuts.get(segment.base_offset)
            log.load(known, self._loaded)
            self._offsets.cut_made(log, self._fresh)
        log.update_settings(log.settings)

    def give_up(self) -> None:
        """The log stays as it was. The next checkpoints remove what `run` may have written."""
        if self._fresh is not None:
            self._offsets.fresh[self._fresh] = None
