"""What a replica knows of its log without reading it: where it begins and ends, its epochs, what of it is on disk."""

from __future__ import annotations

from bisect import bisect_right

from pykafkad.raft.events import Snapshot

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

VALID = "valid"
DIVERGING = "diverging"
SNAPSHOT = "snapshot"


class LogView:
    """`epochs` are pairs of an epoch and the offset at which it begins. What is before `synced_offset` is on disk.

    `start_epoch` is the epoch of the last record before the log's start."""

    __slots__ = ("end_offset", "epochs", "snapshot", "start_epoch", "start_offset", "synced_offset")

    def __init__(
        self,
        start_offset: int = 0,
        end_offset: int = 0,
        epochs: Sequence[tuple[int, int]] = (),
        snapshot: Snapshot | None = None,
    ) -> None:
        self.start_offset = start_offset
        self.end_offset = self.synced_offset = end_offset
        self.epochs = list(epochs)
        self.snapshot = snapshot
        self.start_epoch = snapshot.epoch if snapshot is not None and start_offset else 0

    @property
    def last_epoch(self) -> int:
        """The epoch of the last record; 0 for an empty log."""
        return self.epochs[-1][0] if self.epochs else self.start_epoch

    def appended(self, end_offset: int, epoch: int) -> None:
        """Records of `epoch` were written at the end."""
        if not self.epochs or self.epochs[-1][0] != epoch:
            self.epochs.append((epoch, self.end_offset))
        self.end_offset = end_offset

    def truncated(self, end_offset: int) -> None:
        """The log was cut. All of it was on disk: no sync that is under way can speak of what is written next."""
        assert self.synced_offset == self.end_offset, "only a follower that has synced its log is told to cut it"
        while self.epochs and self.epochs[-1][1] >= end_offset:
            self.epochs.pop()
        self.end_offset = self.synced_offset = end_offset

    def pruned(self, snapshot: Snapshot) -> None:
        """The log begins at a snapshot that this node has made."""
        kept = [each for each in self.epochs if each[1] >= snapshot.end_offset]
        older = self.epochs[: len(self.epochs) - len(kept)]
        if older and snapshot.end_offset < (kept[0][1] if kept else self.end_offset):
            kept.insert(0, (older[-1][0], snapshot.end_offset))
        self.epochs = kept
        self.start_offset = snapshot.end_offset
        self.start_epoch = snapshot.epoch

    def replaced(self, snapshot: Snapshot) -> None:
        """A fetched snapshot took the place of the log."""
        self.epochs.clear()
        self.start_offset = self.end_offset = self.synced_offset = snapshot.end_offset
        self.start_epoch = snapshot.epoch
        self.snapshot = snapshot

    def end_of(self, epoch: int) -> tuple[int, int]:
        """The newest epoch that is not above `epoch`, and the offset at which it ends."""
        if epoch > self.last_epoch or not self.epochs:
            return self.last_epoch, self.end_offset
        index = bisect_right(self.epochs, epoch, key=_epoch_of)
        found = self.epochs[index - 1][0] if index else epoch
        return found, self.epochs[index][1] if index < len(self.epochs) else self.end_offset

    def validate(self, offset: int, epoch: int) -> tuple[str, int, int]:
        """Whether a follower with the last record of `epoch` before `offset` can go on from there.

        VALID; or DIVERGING, with the epoch and the end offset to which it cuts its log; or SNAPSHOT, with the end
        offset and the epoch of the one that it needs."""
        snapshot = self.snapshot
        if snapshot is not None and (
            not offset
            or offset < self.start_offset
            or (offset == self.start_offset and epoch != self.start_epoch)
            or epoch < self.start_epoch
        ):
            return SNAPSHOT, snapshot.end_offset, snapshot.epoch
        if not offset and not self.start_offset:
            return VALID, 0, 0
        found, end_offset = self.end_of(epoch)
        if found != epoch or end_offset < offset:
            return DIVERGING, found, end_offset
        return VALID, offset, epoch

    def truncation_offset(self, epoch: int, end_offset: int) -> int:
        """Where to cut this log if in the leader's log `epoch` ends at `end_offset`."""
        if epoch >= self.last_epoch:
            return min(end_offset, self.end_offset)
        found, own_end_offset = self.end_of(epoch)
        return min(own_end_offset, end_offset) if found == epoch else own_end_offset


def _epoch_of(entry: tuple[int, int]) -> int:
    return entry[0]
