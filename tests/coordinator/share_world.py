"""A share partition over a log of record batches, with what the share coordinator stores of it, and what its members
were told."""

from __future__ import annotations

from types import SimpleNamespace

from pykafkad.coordinator.share_acknowledgement import acknowledge, release_member
from pykafkad.coordinator.share_acquisition import LogBatch
from pykafkad.coordinator.share_batches import ACQUIRED, TERMINAL, combine
from pykafkad.coordinator.share_partition import SharePartition


class Limits(SimpleNamespace):
    """The settings of the group."""

    def __init__(self, **others: object) -> None:
        values = {
            "max_delivery_count": 5,
            "max_record_locks": 200,
            "lock_duration_ms": 30_000,
            "is_renewal_enabled": True,
        }
        super().__init__(**{**values, **others})


class World:
    """`log` are the batches. `owners`, `counts` and `done` are what the answers say about each record."""

    def __init__(self, log: list[tuple[int, int]], start_offset: int = 0, **limits: object) -> None:
        self.log = [LogBatch(*each) for each in log]
        self.limits = Limits(**limits)
        self.now = 100.0
        self.stored_start = start_offset
        self.stored = []
        self.stored_done_count = 0
        self.log_start = 0
        self.owners: dict[int, str] = {}
        self.deadlines: dict[int, float] = {}
        self.counts: dict[int, int] = {}
        self.done: set[int] = set()
        self.load()

    def load(self) -> None:
        """A new leader takes the share partition over: nobody has a record any more."""
        self.owners.clear()
        self.deadlines.clear()
        self.partition = SharePartition(self.limits, leader_epoch=0)
        self.partition.load(1, self.stored_start, self.stored)
        self.check()

    # Requests.

    def read(self, max_batches: int = 3) -> tuple[list[LogBatch], int]:
        """What a fetch reads, and from where."""
        offset = self.partition.next_fetch_offset()
        return [each for each in self.log if each.last_offset >= offset][:max_batches], offset

    def acquire(
        self, member: str, max_records: int = 10, batch_size: int = 10, max_batches: int = 3, **options: object
    ):
        """The ranges that a member gets."""
        if not self.partition.can_acquire():
            return []
        if self.partition.next_fetch_offset() < self.log_start:
            # The fetch finds its offset out of range.
            self.partition.log_start_moved(self.log_start)
            self.check()
        read, offset = self.read(max_batches)
        result, count = self.partition.acquire(member, read, offset, max_records, batch_size, self.now, **options)
        limit = self.limits.max_delivery_count
        for first, last, delivery_count in result:
            for each in range(first, last + 1):
                assert each not in self.owners, f"{each} is {self.owners[each]}'s"
                assert each not in self.done, f"{each} was done with"
                self.owners[each] = member
                self.deadlines[each] = self.now + self.limits.lock_duration_ms / 1000
                self.counts[each] = self.counts.get(each, 0) + 1
                assert self.counts[each] == delivery_count <= limit
        assert options.get("aborted") or count >= sum(last - first + 1 for first, last, _ in result)
        self.check()
        return [tuple(each) for each in result]

    def acknowledge(self, member: str, *acknowledgements: tuple[int, int, list[int]], is_stored: bool = True) -> None:
        """May raise KafkaError."""
        try:
            transition = acknowledge(self.partition, member, acknowledgements, self.now)
        finally:
            self.check()
        renewed = [
            offset
            for first, last, types in acknowledgements
            for offset in range(max(first, self.partition.start_offset), last + 1)
            if types[offset - first if len(types) > 1 else 0] == 4
        ]
        for offset in renewed:
            self.deadlines[offset] = self.now + self.limits.lock_duration_ms / 1000
        self.finish(transition, is_stored)

    def release(self, member: str, is_stored: bool = True) -> None:
        self.finish(release_member(self.partition, member), is_stored)

    def finish(self, transition: object, is_stored: bool) -> None:
        """Store a transition, or fail to."""
        pieces = [(each.first_offset, each.last_offset, each.state) for each in transition.pieces]
        if is_stored:
            self.store(transition.batches())
        self.check()
        self.partition.complete(transition, is_stored, self.now)
        for first, last, state in pieces if is_stored else ():
            for offset in range(first, last + 1):
                self.give_back(offset, state in TERMINAL)
        if not is_stored:
            self.expire_model()
        self.check()

    def store(self, batches: list) -> None:
        self.stored_start = self.partition.start_offset
        self.stored = combine(self.stored, batches, self.stored_start)

    def pass_time(self, seconds: float, is_stored: bool = True) -> None:
        self.now += seconds
        changed = self.partition.expire_locks(self.now)
        assert self.now < self.partition.next_deadline
        self.expire_model()
        if changed and is_stored:
            self.store(changed)
        if changed:
            self.partition.advance()
        self.check()

    def expire_model(self) -> None:
        for offset in [each for each, at in self.deadlines.items() if at <= self.now]:
            self.give_back(offset, self.counts[offset] >= self.limits.max_delivery_count)

    def give_back(self, offset: int, is_done: bool) -> None:
        del self.owners[offset], self.deadlines[offset]
        if is_done:
            self.done.add(offset)

    def move_log_start(self, offset: int) -> None:
        self.log_start = max(self.log_start, offset)
        self.partition.log_start_moved(offset)
        self.done.update(each for each in range(self.log_start) if each not in self.owners)
        self.check()

    # What must hold at any time.

    def check(self) -> None:
        partition = self.partition
        next_offset = None
        done = 0
        for batch in partition.batches:
            assert next_offset is None or batch.first_offset >= next_offset
            assert batch.is_split or len(batch.pieces) == 1
            next_offset = batch.first_offset
            for piece in batch.pieces:
                assert piece.first_offset == next_offset <= piece.last_offset
                next_offset = piece.last_offset + 1
                if piece.state in TERMINAL:
                    done += max(0, next_offset - max(partition.start_offset, piece.first_offset))
                if piece.state == ACQUIRED:
                    assert piece.member_id and piece.lock_deadline >= partition.next_deadline
                assert piece.delivery_count <= self.limits.max_delivery_count
            assert next_offset == batch.last_offset + 1
        assert partition.delivery_complete_count == done
        assert partition.records_in_flight >= 0
