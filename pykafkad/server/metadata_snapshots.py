"""Snapshots of the metadata in the shell: when one is made, how it gets to the disk, which ones are kept.

Making one never holds the loop for more than a few milliseconds: the file is written piece by piece in turns of the
loop, and synced off it. It gets its name when it is whole, so that a start finds whole ones only."""

from __future__ import annotations

from pykafkad.errors import KafkaError, ProtocolError, StorageFailure
from pykafkad.metadata import snapshot_policy, snapshots

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pykafkad.disk import Buffer, File
    from pykafkad.log.partition_log import PartitionLog
    from pykafkad.metadata.image import Image
    from pykafkad.server.controller_node import ControllerNode
    from pykafkad.server.raft_member import Node


BUDGET_SECONDS = 0.003
"""Writing goes on for so long in one turn of the loop; the piece that is under way is at most two milliseconds longer.
"""

_PART_SUFFIX = snapshots.SUFFIX + ".part"
_DELETED_SUFFIX = snapshots.SUFFIX + ".deleted"
_STEP = "snapshot"
_CHECK = "snapshot check"


class MetadataSnapshots:
    """Those of one metadata log. `wrote` tells it what was appended; the rest it does by timers, once `begin` was
    called.

    `last_timestamp_ms` is when the newest record in the image was written.
    """

    __slots__ = (
        "_bytes",
        "_file",
        "_image",
        "_kept",
        "_log",
        "_made_at",
        "_newest_bytes",
        "_node",
        "_path",
        "_pieces",
        "_position",
        "_timestamps",
        "_writing",
        "last_timestamp_ms",
        "made",
    )

    def __init__(self, node: ControllerNode | Node, log: PartitionLog, image: Image) -> None:
        self._node = node
        self._log = log
        self._image = image
        self.last_timestamp_ms = 0
        self.made: Callable[[int, int, bool], None] | None = None
        """Hears of each snapshot, by its end offset and epoch, and whether the log begins at it now."""
        self._kept: list[tuple[int, int]] = []
        self._timestamps: dict[tuple[int, int], int] = {}
        self._bytes = self._newest_bytes = 0
        self._made_at = 0.0
        self._writing: snapshots.Writing | None = None
        self._pieces: Iterator[Buffer] = iter(())
        self._file: File | None = None
        self._path = ""
        self._position = 0

    # ---- at the start

    def load(self) -> int:
        """Apply the newest snapshot to the image; the offset from which the log goes on. Raises StorageFailure when it
        cannot be read or the log beside it does not reach it."""
        log = self._log
        self._kept = self._clean_directory()
        if not self._kept:
            if log.log_start_offset > 0:
                raise StorageFailure(
                    "read",
                    log.directory,
                    f"the log starts at {log.log_start_offset}, and no snapshot holds what was before",
                )
            return 0
        end_offset, epoch = newest = self._kept[-1]
        path = self._path_of(newest)
        if end_offset > log.end_offset:
            raise StorageFailure("read", path, f"the log beside it ends at {log.end_offset}")
        content = self._node.runtime.disk.read(path) or b""
        self._newest_bytes = len(content)
        try:
            for record in snapshots.read(content):
                self._image.apply(record, end_offset - 1, epoch)
        except (KafkaError, ProtocolError) as error:
            if end_offset:
                raise StorageFailure("read", path, error) from error
            # What formatting left did not survive a loss of power; it says nothing that the log does not say.
            self._node.runtime.disk.unlink(path)
            self._kept.clear()
        return end_offset

    @property
    def newest_path(self) -> str:
        """The newest snapshot, of a log that has none its folder."""
        return self._path_of(self._kept[-1]) if self._kept else self._log.directory

    def _clean_directory(self) -> list[tuple[int, int]]:
        """The snapshots that count; leftovers and what lies before the log's start go."""
        log, disk = self._log, self._node.runtime.disk
        names = disk.listdir(log.directory)
        found = snapshots.listed(names)
        kept = [each for each in found if each[0] >= log.log_start_offset]
        gone = [name for name in names if name.endswith((_PART_SUFFIX, _DELETED_SUFFIX))]
        for name in gone + [snapshots.file_name(*each) for each in found if each not in kept]:
            disk.unlink(f"{log.directory}/{name}")
        return kept

    def format(self, content: bytes, *, sync: bool) -> None:
        """Leave the snapshot with which a new quorum begins. Raises StorageFailure."""
        self._node.runtime.disk.replace(self._path_of((0, 0)), content, sync=sync)
        self._kept = [(0, 0)]

    @property
    def kept(self) -> list[tuple[int, int]]:
        """The (end offset, epoch) of each, the oldest first."""
        return self._kept

    def fetched(self, end_offset: int, epoch: int) -> None:
        """A snapshot of the leader has taken the place of the log: those before it count no more. Raises
        StorageFailure."""
        self.close()
        gone, self._kept = self._kept, [(end_offset, epoch)]
        self._bytes = 0
        disk = self._node.runtime.disk
        self._newest_bytes = disk.size(self.newest_path)
        for each in gone:
            if each != (end_offset, epoch):
                disk.unlink(self._path_of(each))

    def begin(self) -> None:
        """The node serves: from now on snapshots are made."""
        self._made_at = self._node.runtime.now
        self._plan_check()
        if snapshot_policy.is_due(self._node.settings, self._bytes):
            self._start()

    # ---- when

    def wrote(self, size_bytes: int, timestamp_ms: int) -> None:
        """A batch of the log was read or appended."""
        self._bytes += size_bytes
        self.last_timestamp_ms = timestamp_ms

    def applied(self) -> None:
        """The image holds everything that was told to `wrote`: look whether a snapshot is due."""
        if snapshot_policy.is_due(self._node.settings, self._bytes) and self._node.serving:
            self._start()

    def fired(self, job: str) -> None:
        """One of the timers is due."""
        if job == _STEP:
            self._write()
            return
        # First, so that a bug in what follows does not end the checks for good.
        self._plan_check()
        if snapshot_policy.is_due_by_age(self._node.settings, self._node.runtime.now - self._made_at):
            self._start()
        self._thin_out()

    def _plan_check(self) -> None:
        seconds = snapshot_policy.check_seconds(self._node.settings)
        self._node.runtime.timers.set((self, _CHECK), self._node.runtime.now + seconds)

    # ---- making one

    def _start(self) -> None:
        image = self._image
        if self._writing is not None or self._log.offline is not None or not snapshot_policy.can_be_made(image):
            return
        self._bytes = 0
        self._made_at = self._node.runtime.now
        snapshot = image.offset + 1, image.epoch
        if snapshot in self._kept:
            return
        self._writing = snapshots.Writing(image, self.last_timestamp_ms, self._node.runtime.now_ms)
        self._pieces = self._writing.pieces()
        self._position = 0
        self._path = f"{self._path_of(snapshot).removesuffix(snapshots.SUFFIX)}-new{_PART_SUFFIX}"
        self._go_on()

    def _go_on(self) -> None:
        self._node.runtime.timers.set((self, _STEP), self._node.runtime.now)

    def _write(self) -> None:
        clock = self._node.runtime.clock
        deadline = clock.now() + BUDGET_SECONDS
        try:
            if self._file is None:
                self._file = self._node.runtime.disk.open(self._path, create=True)
            for piece in self._pieces:
                if piece:
                    self._file.pwrite(piece, self._position)
                    self._position += len(piece)
                if clock.now() >= deadline:
                    self._go_on()
                    return
        except Exception as error:
            self._failed(error)
            return
        self._node.runtime.offload.submit(self._publish, self._published)

    def _publish(self) -> None:
        """Sync the file and give it its name; off the loop."""
        disk = self._node.runtime.disk
        assert self._file is not None and self._writing is not None
        self._file.sync()
        disk.rename(self._path, self._path_of((self._writing.end_offset, self._writing.epoch)))
        disk.sync_directory(self._log.directory)

    def _published(self, result: object) -> None:
        if self._writing is None:
            # A snapshot of the leader has come meanwhile.
            return
        if isinstance(result, Exception):
            self._failed(result)
            return
        made = self._writing.end_offset, self._writing.epoch
        self._kept.append(made)
        self._newest_bytes = self._position
        self._forget()
        self._node.logs.info("metadata", "snapshot", end_offset=made[0], epoch=made[1], size_bytes=self._position)
        if self.made is not None:
            self.made(*made, False)
        self._thin_out()

    def _failed(self, reason: Exception) -> None:
        """Without it the next start reads more of the log, and that is all: the next one is tried when it is due."""
        if not isinstance(reason, StorageFailure):
            self._node.runtime.unexpected(reason, job=_STEP)
        self._node.logs.error("metadata", "snapshot-failed", path=self._path, reason=reason)
        self._drop()

    def _drop(self) -> None:
        self._forget()
        try:
            self._node.runtime.disk.unlink(self._path)
        except StorageFailure:
            # The next start removes it.
            pass

    def _forget(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
        assert self._writing is not None
        self._writing.close()
        self._writing = None
        self._pieces = iter(())

    def close(self) -> None:
        """The node stops: an unfinished snapshot is dropped."""
        for job in (_CHECK, _STEP):
            self._node.runtime.timers.cancel((self, job))
        if self._writing is not None:
            self._drop()

    def make_at_stop(self) -> None:
        """Spare the next start what it would have to read, where that is more than the snapshot itself: every restart
        elects each partition anew. A failure costs no more than the reading."""
        if not snapshot_policy.is_worth_it_at_stop(self._bytes, self._newest_bytes):
            return
        self._start()
        if self._writing is None:
            return
        try:
            self._file = self._node.runtime.disk.open(self._path, create=True)
            for piece in self._pieces:
                self._file.pwrite(piece, self._position)
                self._position += len(piece)
            self._publish()
        except Exception as error:
            self._failed(error)
        else:
            self._published(None)

    # ---- keeping

    def _thin_out(self) -> None:
        """Let go of old snapshots, and of the log before the oldest that stays, by `metadata.max.retention.*`."""
        try:
            while len(self._kept) > 1 and self._may_go(self._kept[0]):
                self._drop_before(self._kept[1])
        except StorageFailure as failure:
            self._node.logs.error("metadata", "snapshot-retention-failed", reason=failure)

    def _may_go(self, oldest: tuple[int, int]) -> bool:
        disk = self._node.runtime.disk
        total_bytes = self._log.size_bytes + sum(disk.size(self._path_of(each)) for each in self._kept)
        return snapshot_policy.may_go(self._node.settings, total_bytes, lambda: self._age_ms(oldest))

    def _age_ms(self, snapshot: tuple[int, int]) -> int:
        if snapshot not in self._timestamps:
            content = self._node.runtime.disk.read(self._path_of(snapshot)) or b""
            self._timestamps[snapshot] = snapshots.last_timestamp_ms(content)
        return self._node.runtime.now_ms - self._timestamps[snapshot]

    def _drop_before(self, first: tuple[int, int]) -> None:
        log, disk, now_ms = self._log, self._node.runtime.disk, self._node.runtime.now_ms
        log.delete_records(first[0])
        log.run_retention(now_ms)
        oldest = self._kept.pop(0)
        self._timestamps.pop(oldest, None)
        path = self._path_of(oldest)
        deleted = path.removesuffix(snapshots.SUFFIX) + _DELETED_SUFFIX
        disk.rename(path, deleted)
        log.delete_later(deleted, now_ms)
        self._node.plan_deletions()
        if self.made is not None:
            self.made(*first, True)
            if first != self._kept[-1]:
                # Others fetch the newest.
                self.made(*self._kept[-1], False)

    def _path_of(self, snapshot: tuple[int, int]) -> str:
        return f"{self._log.directory}/{snapshots.file_name(*snapshot)}"
