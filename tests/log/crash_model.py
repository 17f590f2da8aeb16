"""The model of a log under random operations and crashes: the appended rows, and which of them must survive."""

from __future__ import annotations

import random
from typing import NamedTuple

from pykafkad.log.partition_log import PartitionLog


class Row(NamedTuple):
    """One appended batch, as the log must store it."""

    base: int
    last: int
    data: bytes
    timestamps: tuple[int, ...]
    producer: tuple[int, int, int]
    leader_epoch: int


class Broken(AssertionError):
    """The log differs from the model."""


def must(condition: bool, *what: object) -> None:
    """Raise `Broken` with `what` unless the condition holds."""
    if not condition:
        raise Broken(" ".join(map(str, what)))


class CrashModel:
    """The rows that `log` must hold, and the checks that compare it with them.

    `rows` are in the file, `pending` are appended and not written yet. Rows below `synced` survive a loss of power."""

    chance: random.Random
    log: PartitionLog

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.pending: list[Row] = []
        self.start = self.checkpointed_start = self.synced = self.highest_start = 0
        self.epoch = 0
        # Records below the log's start may be lost, so a producer whose batches were all below it at a loss of power
        # is not checked any more.
        self.producer_ids = [0, 1, 2]
        self.has_lost_power = False

    def _producers(self) -> dict[int, list[Row]]:
        """The batches of the newest epoch of each producer in `producer_ids`, in order."""
        found: dict[int, list[Row]] = {}
        for row in self.rows + self.pending:
            if row.producer[0] in self.producer_ids:
                known = found.setdefault(row.producer[0], [])
                if known and known[-1].producer[1] != row.producer[1]:
                    known.clear()
                known.append(row)
        return found

    def _at(self, offset: int) -> int:
        return next(at for at, row in enumerate(self.rows) if row.last >= offset)

    def _read(self, offset: int, max_bytes: int, end: int) -> int:
        found = self.log.read(offset, max_bytes, end_offset=end)
        must(found is not None, "nothing to read at", offset, "of", end)
        data, at = found.pread(), self._at(offset)
        must(
            len(data) <= max_bytes or data == self.rows[at].data,
            len(data),
            "bytes were read where",
            max_bytes,
            "were asked for",
        )
        while data:
            row = self.rows[at]
            must(data.startswith(row.data), "read at", offset, "is not what was appended at", row.base)
            must(row.last < end, "what lies beyond", end, "was read")
            data, at = data[len(row.data) :], at + 1
        return self.rows[at - 1].last + 1

    def check(self) -> None:
        """Check the invariants that hold after every operation."""
        log = self.log
        offsets = [
            log.log_start_offset,
            log.last_stable_offset,
            log.high_watermark,
            log.written_end_offset,
            log.end_offset,
        ]
        must(offsets[0] >= 0 and offsets == sorted(offsets), "offsets", offsets)
        must(log.log_start_offset >= self.start, "the start fell from", self.start, "to", log.log_start_offset)
        self.start = log.log_start_offset
        must(log.recovery_point <= log.written_end_offset, "the recovery point is", log.recovery_point)
        bases = [segment.base_offset for segment in log.segments]
        must(bases == sorted(set(bases)) and bases[0] <= log.log_start_offset, "segments", bases)
        expected = self.rows[-1].last + 1 if self.rows else 0
        must(
            log.written_end_offset == max(expected, self.start), "written up to", log.written_end_offset, "of", expected
        )
        starts = {row.base for row in self.rows} | {expected}
        must(all(base in starts or base >= expected for base in bases), "a batch straddles segments", bases)
        self.highest_start = max(self.highest_start, self.start)
        for row in self.rows[-3:]:
            if row.base >= self.highest_start:
                must(
                    log.epochs.epoch_for(row.base) == row.leader_epoch,
                    "epoch of",
                    row.base,
                    "is",
                    row.leader_epoch,
                    log.epochs.entries,
                )
        must(
            all(one < two for one, two in zip(log.epochs.entries, log.epochs.entries[1:], strict=False)),
            log.epochs.entries,
        )

    def read_all(self) -> None:
        """Read every batch from the start to the end, and check the leader epochs."""
        log = self.log
        offset, end = log.log_start_offset, log.written_end_offset
        while offset < end:
            offset = self._read(offset, self.chance.choice((1, 1000, 1 << 20)), end)
        for row in self.rows:
            # When the start falls back to its checkpoint, the epochs of the batches there are forgotten, as in Kafka.
            if row.base >= self.highest_start:
                must(
                    log.epochs.epoch_for(row.base) == row.leader_epoch,
                    "epoch of",
                    row.base,
                    "is",
                    row.leader_epoch,
                    log.epochs.entries,
                )

    def _replace_lost_producers(self) -> None:
        start, known = self.log.log_start_offset, self._producers()
        for place, producer_id in enumerate(self.producer_ids):
            entry = self.log.producers.get(producer_id)
            if (entry is not None and entry.batches[-1][1] < start) or (
                producer_id in known and known[producer_id][-1].last < start
            ):
                self.producer_ids[place] = max(self.producer_ids) + 1

    def _check_producers(self) -> None:
        known = self._producers()
        for producer_id, entry in self.log.producers.items():
            if producer_id not in self.producer_ids and self.has_lost_power:
                must(
                    producer_id < max(self.producer_ids) or entry.batches[-1][1] < self.highest_start,
                    "producer",
                    producer_id,
                    "came from nowhere",
                )
                continue
            must(producer_id in known, "producer", producer_id, "has no batch")
            last = known[producer_id][-1]
            expected = (last.producer[1], last.producer[2] + len(last.timestamps), last.last)
            must(
                (entry.epoch, entry.next_sequence, entry.batches[-1][1]) == expected,
                "producer",
                producer_id,
                "is",
                entry,
                "not",
                expected,
            )
        for producer_id, rows in known.items():
            must(
                rows[-1].base < self.log.log_start_offset or producer_id in self.log.producers,
                "producer",
                producer_id,
                "is forgotten",
            )
