"""A share partition: which records of one partition a share group has, and in which state (KIP-932).

The leader of the partition has it. Between the start offset (SPSO) and the end offset, records are available, acquired
by one member until its lock runs out, acknowledged, or archived (rejected, delivered too often, gone from the log).
Records behind the end offset were never acquired.

A pure machine: methods take the time and return values. What must be stored comes as a `Transition` or as batches; the
caller hands it to the share coordinator and tells the outcome to `complete` or `advance`. After a restart, or when the
partition is led elsewhere, `load` begins with what is stored, so that a record that was acquired is available again.

`share_acquisition.py` holds how members get records, `share_acknowledgement.py` how they give them back."""

from __future__ import annotations

from pykafkad.coordinator.share_acquisition import Acquisition, without
from pykafkad.coordinator.share_batches import ACQUIRED, ARCHIVED, AVAILABLE, TERMINAL, StateBatch, of_message
from pykafkad.coordinator.share_in_flight import (
    NEVER,
    InFlight,
    InFlightBatch,
    InFlightBatches,
    Transition,
    append_batch,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Protocol

    from pykafkad.coordinator.share_acquisition import Acquired, LogBatch

    class Limits(Protocol):
        """The settings of the group, which may change at any time."""

        @property
        def max_delivery_count(self) -> int: ...

        @property
        def max_record_locks(self) -> int: ...

        @property
        def lock_duration_ms(self) -> int: ...

        @property
        def is_renewal_enabled(self) -> bool: ...


class SharePartition:
    """See the module. `end_offset` is the last record that was ever acquired, or the next one if nothing is in flight.
    `gap_start_offset` is where records begin that the loaded state has left out; None when there are none."""

    __slots__ = (
        "_gap_end_offset",
        "batches",
        "delivery_complete_count",
        "end_offset",
        "gap_start_offset",
        "leader_epoch",
        "limits",
        "looks_for_available",
        "next_deadline",
        "start_offset",
        "state_epoch",
    )

    def __init__(self, limits: Limits, leader_epoch: int) -> None:
        self.limits = limits
        self.leader_epoch = leader_epoch
        self.state_epoch = 0
        self.start_offset = 0
        self.end_offset = 0
        self.batches = InFlightBatches()
        self.delivery_complete_count = 0
        self.looks_for_available = False
        """Whether records before the end offset may be available."""
        self.gap_start_offset: int | None = None
        self._gap_end_offset = 0
        self.next_deadline = NEVER
        """No lock runs out before this monotonic second."""

    def load(self, state_epoch: int, start_offset: int, rows: Iterable[object]) -> None:
        """Begin with the stored state. `rows` are StateBatch rows of a response. Raises ValueError for a state that
        cannot be."""
        self.state_epoch = state_epoch
        self.start_offset = self.end_offset = start_offset
        next_offset = start_offset
        for first, last, state, count in map(of_message, rows):
            if first < next_offset or last < first:
                raise ValueError(f"the stored range {first}-{last} is not one behind {next_offset - 1}")
            if first > next_offset and self.gap_start_offset is None:
                self.gap_start_offset = next_offset
            next_offset = last + 1
            self.batches.add(InFlightBatch(InFlight(first, last, state, count)))
            if state in TERMINAL:
                self.delivery_complete_count += last - first + 1
        if self.batches:
            self.looks_for_available = True
            self.end_offset = self._gap_end_offset = next_offset - 1
            self.advance()

    # Where the next fetch begins.

    @property
    def gap(self) -> int | None:
        """Where the gap begins, while there is one that can still be filled."""
        return self.gap_start_offset if self._gap_end_offset == self.end_offset else None

    @property
    def _last_offset(self) -> int:
        return self.batches.items[-1].last_offset

    def next_fetch_offset(self) -> int:
        """The first offset that may be acquired."""
        if not self.batches or self.start_offset > self._last_offset:
            self.looks_for_available = False
            return self.end_offset
        if not self.looks_for_available:
            return self.end_offset + 1
        gap = self.gap
        for batch in self.batches:
            if gap is not None:
                if batch.first_offset > gap:
                    return gap
                gap = max(batch.last_offset + 1, gap)
            for piece in batch.pieces:
                if piece.is_available:
                    return piece.first_offset
        self.looks_for_available = False
        if gap is not None:
            # The gap is filled. The start offset could not pass it before.
            self.gap_start_offset = None
            self.advance()
        return self.end_offset + 1 if self.batches else self.end_offset

    @property
    def records_in_flight(self) -> int:
        """The records from the start to the end offset; those that are done with in between count too."""
        return self.end_offset - self.start_offset + 1 if self.batches else 0

    def can_acquire(self) -> bool:
        """Whether a fetch could acquire anything."""
        return self.next_fetch_offset() != self.end_offset + 1 or self.records_in_flight < self.limits.max_record_locks

    # Acquiring.

    def acquire(
        self,
        member_id: str,
        read: list[LogBatch],
        fetch_offset: int,
        max_records: int,
        batch_size: int,
        now: float,
        *,
        is_record_limit: bool = False,
        aborted: Iterable[LogBatch] = (),
    ) -> tuple[list[Acquired], int]:
        """Give records to a member: what it got, and how many records these are.

        `read` are the batches that were read from `fetch_offset`, `aborted` those of them that belong to aborted
        transactions. Without `is_record_limit` whole batches of the log are acquired, even if `max_records` is
        exceeded by that. `batch_size` is the number of records from which on a range is cut at a batch of the log."""
        if max_records <= 0 or not read or read[-1].last_offset < self.start_offset:
            return [], 0
        max_records, last_offset = self._limits_of_fetch(fetch_offset, max_records, read[-1].last_offset)
        if max_records <= 0:
            return [], 0
        acquisition = Acquisition(self, member_id, read, batch_size, now, is_record_limit)
        self._archive_skipped(fetch_offset, read[0].first_offset)
        acquisition.run(last_offset, max_records)
        result, count = acquisition.result, acquisition.count
        aborted = list(aborted)
        if aborted and result:
            for each in aborted:
                self.archive(each.first_offset, each.last_offset, ACQUIRED, is_counted=True)
            result = without(result, aborted)
            count = sum(each.last_offset - each.first_offset + 1 for each in result)
        return result, count

    def _limits_of_fetch(self, fetch_offset: int, max_records: int, last_offset: int) -> tuple[int, int]:
        """How many records a fetch may acquire, and up to which offset. When no further record may be in flight, it may
        still get those that are available again."""
        free = self.limits.max_record_locks - self.records_in_flight
        if min(max_records, free) > 0:
            return min(max_records, free), last_offset
        if fetch_offset <= self.end_offset:
            return min(max_records, self.end_offset - fetch_offset + 1), min(last_offset, self.end_offset)
        return 0, last_offset

    def _archive_skipped(self, fetch_offset: int, first_offset: int) -> None:
        """The log has no records between the offset of the fetch and the first batch (compaction): give them up. Where
        the loaded state has left them out too, the start offset could otherwise never pass them."""
        if fetch_offset >= first_offset or not self.batches:
            return
        at = fetch_offset if self.gap is not None else first_offset
        for batch in list(self.batches):
            if batch.last_offset >= at:
                self._add_archived(at, min(batch.first_offset, first_offset) - 1)
                at = max(at, batch.last_offset + 1)
        if self.archive(fetch_offset, first_offset - 1, AVAILABLE, is_counted=True):
            self.looks_for_available = True
        self.advance()

    def _add_archived(self, first_offset: int, last_offset: int) -> None:
        """Records that nobody gets, as a batch in flight. There may be none."""
        if first_offset <= last_offset:
            self.batches.add(InFlightBatch(InFlight(first_offset, last_offset, ARCHIVED, 0)))
            self.delivery_complete_count += last_offset - first_offset + 1

    def archive(self, first_offset: int, last_offset: int, state: int, *, is_counted: bool) -> bool:
        """Give up the records between the offsets that have `state`. Whether there were any."""
        is_any = False
        for batch in self.batches:
            if batch.last_offset < first_offset:
                continue
            if batch.first_offset > last_offset:
                break
            if batch.is_within(first_offset, last_offset) and not batch.is_split:
                pieces: Iterable[InFlight] = batch.pieces
            elif not batch.is_split and batch.whole.state != state:
                continue
            else:
                pieces = batch.between(first_offset, last_offset)
            for piece in pieces:
                if piece.state == state:
                    piece.archive()
                    is_any = True
                    if is_counted:
                        self.delivery_complete_count += len(piece)
        return is_any

    def lock(self, now: float) -> float:
        """The deadline of a lock that begins now."""
        deadline = now + self.limits.lock_duration_ms / 1000
        self.next_deadline = min(self.next_deadline, deadline)
        return deadline

    def acquired_up_to(self, next_offset: int) -> None:
        """Records were acquired: the gap of the loaded state begins at `next_offset` at the earliest."""
        if self.gap is not None and next_offset <= self._gap_end_offset:
            self.gap_start_offset = next_offset
        else:
            self.gap_start_offset = None

    # Locks that run out.

    def expire_locks(self, now: float) -> list[StateBatch]:
        """Take records from members whose locks have run out. Returns what is to be stored; call `advance` when it
        is."""
        if now < self.next_deadline:
            return []
        changed: list[StateBatch] = []
        self.next_deadline = NEVER
        for batch in self.batches:
            if batch.first_offset < self.start_offset <= batch.last_offset:
                list(batch.between(self.start_offset, batch.last_offset))
            for piece in batch.pieces:
                if piece.state != ACQUIRED:
                    continue
                if piece.lock_deadline > now:
                    self.next_deadline = min(self.next_deadline, piece.lock_deadline)
                    continue
                piece.release(self.start_offset, self.limits.max_delivery_count)
                append_batch(changed, piece)
                if piece.state == AVAILABLE:
                    self.looks_for_available = True
                else:
                    self.delivery_complete_count += self._counted(piece)
            batch.coalesce()
        return changed

    def _counted(self, piece: InFlight) -> int:
        """The records of a range that the count of completed deliveries knows: those from the start offset on."""
        return max(0, piece.last_offset - max(self.start_offset, piece.first_offset) + 1)

    # Transitions.

    def begin(self, transition: Transition, piece: InFlight, state: int) -> None:
        """Change the state of a range as a part of `transition`."""
        piece.begin(transition, state, self.limits.max_delivery_count)
        if piece.state in TERMINAL:
            self.delivery_complete_count += self._counted(piece)

    def complete(self, transition: Transition, is_stored: bool, now: float) -> bool:
        """A transition was stored, or could not be and is taken back. Whether the start offset has moved."""
        for piece in transition.pieces:
            was_terminal = piece.state in TERMINAL and not piece.is_archived
            piece.complete(is_stored, self.limits.max_delivery_count, now)
            if piece.state == AVAILABLE:
                self.looks_for_available = True
            elif piece.state == ACQUIRED:
                self.next_deadline = min(self.next_deadline, piece.lock_deadline)
            if was_terminal and piece.state not in TERMINAL:
                self.delivery_complete_count -= self._counted(piece)
        if transition.pieces:
            first, last = transition.pieces[0].first_offset, transition.pieces[-1].last_offset
            for batch in self.batches.items[max(0, self.batches.index_after(first) - 1) :]:
                if batch.first_offset > last:
                    break
                batch.coalesce()
        return self.advance() if is_stored else False

    # The start offset.

    def advance(self) -> bool:
        """Move the start offset over the records that are done with, and forget their batches. Whether it has moved."""
        done_offset, done_count = self._done_up_to()
        if done_offset is None:
            return False
        before = self.start_offset
        items = self.batches.items
        if done_offset == items[-1].last_offset:
            # The log may begin later than what is done with.
            self.start_offset = self.end_offset = max(before, done_offset + 1)
            items.clear()
            self.delivery_complete_count = 0
            return self.start_offset > before
        index = self.batches.index_after(done_offset) - 1
        if items[index].last_offset == done_offset:
            index += 1
            self.start_offset = max(self.start_offset, items[index].first_offset)
            gap = self.gap
            if gap is not None:
                self.start_offset = min(gap, self.start_offset)
        else:
            # Only whole batches are forgotten.
            self.start_offset = max(self.start_offset, done_offset + 1)
        self.delivery_complete_count -= done_count
        del items[:index]
        return self.start_offset > before

    def _done_up_to(self) -> tuple[int | None, int]:
        """The last offset up to which everything is done with, or None, and how many records from the start offset on
        these are."""
        done_offset, count = None, 0
        gap = self.gap
        for batch in self.batches:
            if gap is not None and batch.last_offset >= gap:
                break
            for piece in batch.pieces:
                if not piece.is_done:
                    return done_offset, count
                done_offset = piece.last_offset
                count += self._counted(piece)
        return done_offset, count

    def log_start_moved(self, log_start_offset: int) -> None:
        """The log begins later now: the records before that are given up."""
        if log_start_offset <= self.start_offset:
            return
        if not self.batches:
            self.start_offset = self.end_offset = log_start_offset
            self.delivery_complete_count = 0
            return
        removed = 0
        for batch in self.batches:
            for piece in batch.pieces:
                if piece.state in TERMINAL:
                    first = max(self.start_offset, piece.first_offset)
                    removed += max(0, min(log_start_offset - 1, piece.last_offset) - first + 1)
        if self.archive(self.start_offset, log_start_offset - 1, AVAILABLE, is_counted=False):
            self.looks_for_available = True
        self.start_offset = log_start_offset
        if self.gap_start_offset is not None:
            self.gap_start_offset = max(self.gap_start_offset, log_start_offset)
        self.delivery_complete_count -= removed
        self.end_offset = max(self.end_offset, self.start_offset)
        # What comes behind the removed records may be done with, and no acknowledgement may ever come to tell.
        self.advance()
