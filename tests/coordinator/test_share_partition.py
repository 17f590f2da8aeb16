"""A share partition: who gets which records, and what becomes of them."""

from __future__ import annotations

from random import Random

import pytest

from pykafkad.coordinator.share_acknowledgement import acknowledge
from pykafkad.coordinator.share_acquisition import LogBatch
from pykafkad.coordinator.share_batches import StateBatch
from pykafkad.errors import KafkaError, name
from tests import seeds
from tests.coordinator.share_world import World
from tests.seeds import seed_of_the_code

LOG = [(0, 9), (10, 14), (15, 29), (30, 30), (31, 49)]


def refused(call, *arguments):
    """Error and text with which a call is refused."""
    with pytest.raises(KafkaError) as caught:
        call(*arguments)
    return name(caught.value.code), str(caught.value).partition(": ")[2]


def test_members_get_different_records_in_whole_batches():
    world = World(LOG)
    assert world.acquire("a", max_records=3, batch_size=3) == [(0, 9, 1)]
    assert world.acquire("b", max_records=12, batch_size=100) == [(10, 29, 1)]
    assert world.acquire("a", max_records=100, batch_size=5) == [(30, 49, 1)]
    assert world.acquire("b") == []
    assert (world.partition.start_offset, world.partition.end_offset) == (0, 49)


def test_long_ranges_are_cut_at_batches_of_the_log():
    world = World(LOG)
    assert world.acquire("a", max_records=100, batch_size=10, max_batches=5) == [(0, 9, 1), (10, 29, 1), (30, 49, 1)]


def test_a_record_limit_is_exact():
    world = World(LOG)
    assert world.acquire("a", max_records=3, is_record_limit=True) == [(0, 2, 1)]
    assert world.acquire("b", max_records=4, is_record_limit=True) == [(3, 6, 1)]
    assert world.acquire("a", max_records=5, is_record_limit=True) == [(7, 9, 1), (10, 11, 1)]


def test_acknowledged_records_move_the_start_offset():
    world = World(LOG)
    world.acquire("a", max_records=30, batch_size=5)
    world.acknowledge("a", (10, 14, [1]))
    assert world.partition.start_offset == 0 and world.partition.delivery_complete_count == 5
    world.acknowledge("a", (0, 4, [1]), (5, 9, [1, 1, 3, 0, 1]))
    assert world.partition.start_offset == 15 and world.partition.delivery_complete_count == 0
    world.acknowledge("a", (15, 29, [3]))
    assert (world.partition.start_offset, world.partition.end_offset) == (30, 30)
    assert world.acquire("b") == [(30, 49, 1)]


def test_records_deleted_under_their_member_are_forgotten_with_their_lock():
    world = World(LOG)
    world.acquire("a", max_records=10)
    world.move_log_start(10)
    assert len(world.partition.batches) == 1
    world.pass_time(31)
    assert not world.partition.batches and world.partition.delivery_complete_count == 0
    assert (world.partition.start_offset, world.partition.end_offset) == (10, 10)
    assert world.acquire("b", max_records=100, max_batches=9)[0][0] == 10


def test_released_records_are_delivered_again_first():
    world = World(LOG)
    world.acquire("a", max_records=15, batch_size=100)
    world.acknowledge("a", (3, 5, [2]))
    assert world.acquire("b", max_records=1, max_batches=1) == [(3, 5, 2)]
    assert world.acquire("b", max_records=1) == [(15, 29, 1)]


def test_locks_run_out():
    world = World(LOG)
    world.acquire("a", max_records=1)
    world.pass_time(29)
    assert world.acquire("b", max_records=1) == [(10, 14, 1)]
    world.pass_time(1)
    assert refused(world.acknowledge, "a", (0, 9, [1]))[0] == "INVALID_RECORD_STATE"
    assert world.acquire("b", max_records=1, max_batches=1) == [(0, 9, 2)]
    world.acknowledge("b", (10, 14, [1]))
    assert StateBatch(0, 9, 0, 1) in world.stored


def test_renewal_begins_a_lock_anew():
    world = World(LOG)
    world.acquire("a", max_records=1)
    world.pass_time(20)
    world.acknowledge("a", (0, 4, [4]))
    world.pass_time(10)
    assert world.acquire("b", max_records=1, max_batches=1) == [(5, 9, 2)]
    world.acknowledge("a", (0, 4, [1]))
    world.limits.is_renewal_enabled = False
    assert refused(world.acknowledge, "b", (5, 9, [4]))[1].startswith("Renewing acquisition locks is not enabled")


def test_records_that_fail_too_often_are_given_up():
    world = World(LOG, max_delivery_count=2)
    for _ in range(2):
        assert world.acquire("a", max_records=1, max_batches=1)
        world.acknowledge("a", (0, 9, [2]))
    assert world.partition.start_offset == 10
    assert world.acquire("a", max_records=1) == [(10, 14, 1)]


def test_records_that_fail_again_and_again_are_delivered_in_smaller_numbers():
    world = World(LOG, max_delivery_count=5)
    for count in (1, 2, 3):
        assert world.acquire("a", max_records=1, max_batches=1) == [(0, 9, count)]
        world.acknowledge("a", (0, 9, [2]))
    assert world.acquire("a", max_records=10, max_batches=3) == [(0, 4, 4)]


def test_a_last_delivery_is_made_alone():
    world = World([(0, 3)], max_delivery_count=4)
    got = world.acquire("a")
    while not any(count == 4 for _, _, count in got):
        for first, last, _ in got:
            world.acknowledge("a", (first, last, [2]))
        got = world.acquire("a")
    assert sum(last - first + 1 for first, last, _ in got) == 1


def test_no_more_records_are_in_flight_than_allowed():
    world = World([(each, each) for each in range(30)], max_record_locks=10)
    assert world.acquire("a", max_records=100, batch_size=100, max_batches=30) == [(0, 9, 1)]
    assert world.acquire("b") == []
    world.acknowledge("a", (3, 4, [2]))
    assert world.acquire("b", max_batches=30) == [(3, 4, 2)]
    world.acknowledge("a", (0, 2, [1]))
    assert world.acquire("b", max_batches=30) == [(10, 12, 1)]


BAD = [
    ((20, 21, [1]), "INVALID_REQUEST", "first offset in request is past"),
    ((5, 12, [1]), "INVALID_REQUEST", "last offset in request is past"),
    ((0, 9, [7]), "INVALID_REQUEST", "Invalid acknowledge type: [7]"),
]


@pytest.mark.parametrize(("acknowledgement", "error", "text"), BAD)
def test_acknowledgements_of_records_that_were_never_given(acknowledgement, error, text):
    world = World(LOG)
    assert refused(world.acknowledge, "a", (0, 1, [1]))[0] == "INVALID_RECORD_STATE"
    world.acquire("a", max_records=1, max_batches=1)
    code, said = refused(world.acknowledge, "a", (0, 1, [1]), acknowledgement)
    assert code == error and text in said
    # The first part is taken back.
    world.acknowledge("a", (0, 9, [1]))


def test_acknowledgements_of_somebody_elses_records():
    world = World(LOG)
    world.acquire("a", max_records=1, max_batches=1)
    assert "not the owner of batch" in refused(world.acknowledge, "b", (0, 9, [1]))[1]
    world.acknowledge("a", (0, 4, [2]))
    assert "offset is not acquired" in refused(world.acknowledge, "a", (0, 9, [1]))[1]
    assert "not the owner of offset" in refused(world.acknowledge, "b", (5, 6, [1]))[1]
    world.acknowledge("a", (5, 9, [1]))


def test_a_write_that_fails_is_taken_back():
    world = World(LOG)
    world.acquire("a", max_records=1)
    world.acknowledge("a", (0, 9, [1]), is_stored=False)
    assert world.partition.start_offset == 0 and world.partition.delivery_complete_count == 0
    world.acknowledge("a", (0, 9, [1]))
    assert world.partition.start_offset == 10


def test_a_member_that_leaves_gives_its_records_back():
    world = World(LOG)
    world.acquire("a", max_records=1)
    world.acquire("b", max_records=1)
    world.release("a")
    assert world.acquire("b", max_batches=1) == [(0, 9, 2)]
    assert refused(world.acknowledge, "a", (0, 9, [1]))[0] == "INVALID_RECORD_STATE"


def test_records_before_the_log_start_are_given_up():
    world = World(LOG)
    world.acquire("a", max_records=1)
    world.acquire("b", max_records=1)
    world.acknowledge("b", (10, 14, [2]))
    world.move_log_start(12)
    assert world.partition.start_offset == 12
    assert world.acquire("b", max_records=1, max_batches=1) == [(12, 14, 2)]
    world.release("a")
    world.acknowledge("b", (12, 14, [1]))
    assert world.partition.start_offset == 15
    world.move_log_start(40)
    assert world.acquire("a", max_records=1) == [(40, 49, 1)]


def test_gaps_of_the_log_are_given_up():
    world = World([(0, 9), (20, 29)])
    world.acquire("a", max_records=100, batch_size=5)
    world.acknowledge("a", (0, 29, [1]))
    assert world.partition.start_offset == 30


def test_records_that_compaction_took_are_given_up():
    world = World(LOG)
    world.acquire("a", max_records=1)
    world.acknowledge("a", (0, 9, [2]))
    del world.log[0]
    assert world.acquire("a", max_records=1) == [(10, 14, 1)]
    world.acknowledge("a", (10, 14, [1]))
    assert world.partition.start_offset == 15


def test_aborted_records_are_given_up():
    world = World(LOG)
    got = world.acquire("a", max_records=20, batch_size=100, aborted=[LogBatch(10, 14)])
    assert got == [(0, 9, 1), (15, 29, 1)]
    world.acknowledge("a", (0, 9, [1]))
    assert world.partition.start_offset == 15


def test_what_was_stored_is_loaded():
    world = World(LOG)
    world.acquire("a", max_records=30, batch_size=5)
    world.acknowledge("a", (10, 14, [1]))
    world.acknowledge("a", (20, 22, [2]))
    world.load()
    assert world.partition.gap_start_offset == 0
    world.counts = {20: 1, 21: 1, 22: 1}
    assert world.acquire("b", max_records=5) == [(0, 9, 1)]
    assert world.acquire("b", max_records=100) == [(15, 19, 1), (20, 22, 2), (23, 49, 1)]
    with pytest.raises(ValueError, match="not one behind"):
        world.partition.load(1, 30, [StateBatch(5, 9, 0, 1)])


def test_what_is_being_stored_takes_part_in_nothing():
    world = World(LOG)
    world.acquire("a", max_records=1, max_batches=1)
    transition = acknowledge(world.partition, "a", [(0, 4, [1]), (5, 9, [2])], world.now)
    world.partition.looks_for_available = True
    assert world.partition.next_fetch_offset() == 10
    assert world.partition.acquire("b", [LogBatch(0, 9)], 0, 10, 10, world.now) == ([], 0)
    assert not world.partition.advance() and world.partition.start_offset == 0
    assert world.partition.complete(transition, True, world.now)
    assert world.partition.start_offset == 5
    assert world.partition.acquire("b", [LogBatch(0, 9)], 5, 10, 10, world.now)[0] == [(5, 9, 2)]


# Properties.


class Life:
    """Members that mostly do what clients do."""

    def __init__(self, seed: int) -> None:
        self.random = random = Random(seed)
        log, at = [], 0
        while at < 120:
            at += random.choice((0, 0, 0, 0, 3))
            last = at + random.choice((0, 1, 4, 9))
            log.append((at, last))
            at = last + 1
        self.end = at
        self.world = World(
            log,
            max_delivery_count=random.choice((2, 3, 5)),
            max_record_locks=random.choice((20, 60, 1000)),
            is_renewal_enabled=random.random() < 0.8,
        )

    def run(self, steps: int) -> None:
        actions = (self.acquire, self.acquire, self.acknowledge, self.acknowledge, self.acknowledge)
        rare = (self.lie, self.wait, self.leave, self.reload, self.cut)
        for _ in range(steps):
            before = self.world.partition.start_offset
            self.random.choice(actions if self.random.random() < 0.8 else rare)()
            assert self.world.partition.start_offset >= min(before, self.world.stored_start)

    def acquire(self) -> None:
        random = self.random
        self.world.acquire(
            random.choice("abc"),
            max_records=random.choice((1, 5, 30)),
            batch_size=random.choice((1, 5, 30)),
            max_batches=random.choice((1, 3, 20)),
            is_record_limit=random.random() < 0.3,
        )

    def held(self, member: str) -> list[tuple[int, int]]:
        """The ranges that a member has."""
        ranges: list[list[int]] = []
        for offset in sorted(each for each, owner in self.world.owners.items() if owner == member):
            if ranges and ranges[-1][1] + 1 == offset and self.random.random() < 0.9:
                ranges[-1][1] = offset
            else:
                ranges.append([offset, offset])
        return [(first, last) for first, last in ranges if last >= self.world.partition.start_offset]

    def acknowledge(self) -> None:
        member = self.random.choice("abc")
        held = self.held(member)
        if not held:
            return
        chosen = sorted(self.random.sample(held, self.random.randrange(1, len(held) + 1)))
        kinds = (1, 1, 2, 3, 0, 4) if self.world.limits.is_renewal_enabled else (1, 1, 2, 3, 0)
        rows = []
        for first, last in chosen:
            if self.random.random() < 0.5:
                types = [self.random.choice(kinds)]
            else:
                types = [self.random.choice(kinds) for _ in range(first, last + 1)]
            rows.append((first, last, types))
        self.world.acknowledge(member, *rows, is_stored=self.random.random() < 0.9)

    def lie(self) -> None:
        """Acknowledge what somebody else may have, or nobody."""
        first = self.random.randrange(self.end)
        last = first + self.random.randrange(20)
        member = self.random.choice("abcd")
        live = range(max(first, self.world.partition.start_offset), last + 1)
        # The holes of the log are nobody's.
        live = [each for each in live if any(a <= each <= b for a, b in self.world.log)]
        is_owner = all(self.world.owners.get(each) == member for each in live)
        if not is_owner:
            with pytest.raises(KafkaError):
                self.world.acknowledge(member, (first, last, [1]))

    def wait(self) -> None:
        self.world.pass_time(self.random.choice((1, 10, 31)), is_stored=self.random.random() < 0.9)

    def leave(self) -> None:
        self.world.release(self.random.choice("abc"), is_stored=self.random.random() < 0.9)

    def reload(self) -> None:
        """What was not stored is forgotten: counts, and the archiving of records that are gone from the log."""
        if self.random.random() < 0.3:
            self.world.counts.clear()
            self.world.done.clear()
            for first, last, state, count in self.world.stored:
                for offset in range(first, last + 1):
                    self.world.counts[offset] = count
                    if state:
                        self.world.done.add(offset)
            self.world.done.update(range(self.world.stored_start))
            self.world.load()

    def cut(self) -> None:
        """The log's beginning is deleted."""
        if self.random.random() < 0.1:
            self.world.move_log_start(min(self.world.partition.start_offset + self.random.randrange(10), self.end))

    def drain(self) -> None:
        """In the end every record is done with."""
        world = self.world
        world.limits.max_delivery_count = 10
        for _ in range(1_000):
            world.pass_time(40)
            world.acquire("z", max_records=30, max_batches=20)
            for first, last in self.held("z"):
                world.acknowledge("z", (first, last, [1]))
            if not world.read()[0]:
                break
        assert world.partition.start_offset == self.end
        assert not world.partition.batches and not world.owners


@pytest.mark.parametrize("seed", seeds.sampled(range(300), 15))
def test_random_lives(seed):
    life = Life(seed_of_the_code() + seed)
    life.run(60)
    life.drain()
