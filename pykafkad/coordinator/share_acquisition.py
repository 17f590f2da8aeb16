"""How a member of a share group gets records: one acquisition of a share partition (KIP-932)."""

from __future__ import annotations

from collections import namedtuple

from pykafkad.coordinator.share_batches import ACQUIRED, AVAILABLE
from pykafkad.coordinator.share_in_flight import NEVER, NOBODY, InFlight, InFlightBatch

MIN_THROTTLE_COUNT = 2
MIN_LIMIT_OF_LONE_DELIVERIES = 2
"""Up to this limit of deliveries, the last one of a record is not made alone."""

Acquired = namedtuple("Acquired", ("first_offset", "last_offset", "delivery_count"))
Acquired.__doc__ = """Records that a member got; the delivery count includes this delivery."""

LogBatch = namedtuple("LogBatch", ("first_offset", "last_offset"))
LogBatch.__doc__ = """A record batch that was read from the log; both offsets are inclusive."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.coordinator.share_partition import SharePartition


class Acquisition:
    """One `SharePartition.acquire` under way."""

    __slots__ = ("_batch_size", "_is_record_limit", "_member_id", "_now", "_of", "_read", "count", "result")

    def __init__(
        self,
        of: SharePartition,
        member_id: str,
        read: list[LogBatch],
        batch_size: int,
        now: float,
        is_record_limit: bool,
    ) -> None:
        self._of = of
        self._member_id = member_id
        self._read = read
        self._batch_size = batch_size
        self._now = now
        self._is_record_limit = is_record_limit
        self.result: list[Acquired] = []
        self.count = 0

    def run(self, last_offset: int, max_records: int) -> None:
        """Acquire up to `max_records` records up to `last_offset`."""
        of, first_read = self._of, self._read[0].first_offset
        base_offset = first_read
        floor = of.batches.floor(base_offset)
        if floor is None:
            base_offset = max(base_offset, of.start_offset)
        elif floor.last_offset >= base_offset:
            base_offset = floor.first_offset
        known = of.batches.beginning_between(min(first_read, base_offset), last_offset)
        if not known:
            self._acquire_new(base_offset, last_offset, max_records)
            return
        gap_offset = base_offset
        for batch in known:
            if self.count >= max_records:
                break
            if of.gap is not None:
                if gap_offset < batch.first_offset:
                    self._acquire_new(gap_offset, batch.first_offset - 1, max_records - self.count)
                gap_offset = batch.last_offset + 1
                if self.count >= max_records:
                    break
            if self._acquire_known(batch, last_offset, max_records - self.count):
                max_records = 0
                break
        if self.count < max_records and known[-1].last_offset < last_offset:
            self._acquire_new(known[-1].last_offset + 1, last_offset, max_records - self.count)
        if self.result:
            of.acquired_up_to(self.result[-1].last_offset + 1)

    def _acquire_known(self, batch: InFlightBatch, last_offset: int, left: int) -> bool:
        """Acquire what is available of a batch. Whether nothing else may be acquired with it, because the records fail
        again and again: fewer and fewer of them are then delivered together."""
        of, first_offset = self._of, self._read[0].first_offset
        is_throttled = self._is_throttled(batch, first_offset, last_offset)
        if is_throttled and self.count:
            return True
        is_limited = self._is_record_limit and len(batch) > left
        if not batch.is_split:
            piece = batch.whole
            if not piece.is_available:
                return False
            if batch.is_within(first_offset, last_offset) and not is_limited and not is_throttled:
                piece.acquire(self._member_id, of.lock(self._now))
                self.result.append(Acquired(batch.first_offset, batch.last_offset, piece.delivery_count))
                self.count += len(batch)
                return False
        acquired = self._acquire_some(batch, first_offset, last_offset, left)
        self.count += acquired
        return is_throttled and acquired > 0

    @property
    def _throttle_count(self) -> int:
        return max(MIN_THROTTLE_COUNT, -(-self._of.limits.max_delivery_count // 2))

    def _is_throttled(self, batch: InFlightBatch, first_offset: int, last_offset: int) -> bool:
        limit = self._throttle_count
        return any(
            piece.delivery_count >= limit and piece.is_available
            for piece in batch.pieces
            if not batch.is_split or (piece.last_offset >= first_offset and piece.first_offset <= last_offset)
        )

    def _acquire_some(self, batch: InFlightBatch, first_offset: int, last_offset: int, left: int) -> int:
        """Acquire available records of a batch between the offsets, each range with its own count. How many."""
        of, max_count, throttle_count = self._of, self._of.limits.max_delivery_count, self._throttle_count
        throttled_to: int | None = None
        acquired: list[Acquired] = []
        count = 0
        for piece in batch.between(first_offset, last_offset):
            if not piece.is_available:
                continue
            is_last_attempt = max_count > MIN_LIMIT_OF_LONE_DELIVERIES and piece.delivery_count == max_count - 1
            if is_last_attempt and count:
                break
            if piece.delivery_count >= throttle_count and throttled_to is None:
                throttled_to = max(1, len(batch) >> (piece.delivery_count - throttle_count + 1))
            take = len(piece)
            if self._is_record_limit:
                take = min(take, left - count)
            if throttled_to is not None and count < throttled_to:
                take = min(take, throttled_to - count)
            if is_last_attempt:
                take = 1
            if take < len(piece):
                batch.cut(piece, piece.first_offset + take - 1)
            piece.acquire(self._member_id, of.lock(self._now))
            _accumulate(acquired, Acquired(piece.first_offset, piece.last_offset, piece.delivery_count))
            count += take
            if is_last_attempt or count == throttled_to or (self._is_record_limit and count == left):
                break
        self.result += acquired
        return count

    def _acquire_new(self, first_offset: int, last_offset: int, left: int) -> None:
        """Acquire records that were never in flight. Whole batches of the log are taken, so that a batch is not read
        for two members."""
        of = self._of
        limit = last_offset
        first_offset = max(first_offset, of.start_offset if of.batches else of.end_offset)
        if first_offset > last_offset:
            return
        if left < last_offset - first_offset + 1:
            last_offset = self._end_of_log_batch(first_offset + left - 1)
            if of.gap is not None:
                last_offset = min(last_offset, limit)
        taken_offset = self._create(first_offset, last_offset, left)
        if of.batches.items[0].first_offset == first_offset:
            of.start_offset = first_offset
        of.end_offset = max(of.end_offset, last_offset)
        if self._is_record_limit:
            last_offset = taken_offset
        of.acquired_up_to(last_offset + 1)
        self.count += last_offset - first_offset + 1

    def _end_of_log_batch(self, offset: int) -> int:
        """The last offset of the batch of the log that holds a record."""
        for batch in reversed(self._read):
            if batch.first_offset <= offset:
                return batch.last_offset if offset <= batch.last_offset else offset
        return offset

    def _create(self, first_offset: int, last_offset: int, left: int) -> int:
        """Make batches in flight of the records; the last offset that was acquired."""
        of, deadline = self._of, self._of.lock(self._now)
        if self._is_record_limit and last_offset - first_offset + 1 > left:
            batch = InFlightBatch(InFlight(first_offset, last_offset, ACQUIRED, 1, self._member_id, deadline))
            taken_offset = first_offset + left - 1
            batch.cut(batch.whole, taken_offset)
            rest = batch.pieces[1]
            rest.state, rest.delivery_count, rest.member_id, rest.lock_deadline = AVAILABLE, 0, NOBODY, NEVER
            batch.is_split = True
            of.looks_for_available = True
            of.batches.add(batch)
            self.result.append(Acquired(first_offset, taken_offset, 1))
            return taken_offset
        ranges = []
        at = first_offset
        if not self._is_record_limit and last_offset - first_offset + 1 > self._batch_size:
            for each in self._read:
                if each.first_offset > last_offset:
                    break
                if each.first_offset - at >= self._batch_size:
                    ranges.append((at, each.first_offset - 1))
                    at = each.first_offset
        ranges.append((at, last_offset))
        for first, last in ranges:
            of.batches.add(InFlightBatch(InFlight(first, last, ACQUIRED, 1, self._member_id, deadline)))
            self.result.append(Acquired(first, last, 1))
        return last_offset


def _accumulate(acquired: list[Acquired], news: Acquired) -> None:
    """Add a range, as a part of the last one if it continues that one with the same count."""
    if acquired:
        last = acquired[-1]
        if last.last_offset + 1 == news.first_offset and last.delivery_count == news.delivery_count:
            acquired[-1] = last._replace(last_offset=news.last_offset)
            return
    acquired.append(news)


def without(acquired: list[Acquired], aborted: list[LogBatch]) -> list[Acquired]:
    """What is left of the ranges without the batches, which are in the order of their offsets."""
    result = []
    for piece in acquired:
        first = piece.first_offset
        for batch in aborted:
            if batch.last_offset < first or batch.first_offset > piece.last_offset:
                continue
            if first < batch.first_offset:
                result.append(piece._replace(first_offset=first, last_offset=batch.first_offset - 1))
            first = batch.last_offset + 1
        if first <= piece.last_offset:
            result.append(piece._replace(first_offset=first))
    return result
