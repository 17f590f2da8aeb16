"""The share coordinator: what it keeps, whom it refuses, and that a log of its records gives its state again."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest

from pykafkad.coordinator import events, share_codec, share_state_events
from pykafkad.coordinator.share_batches import NO_START_OFFSET, StateBatch, combine
from pykafkad.coordinator.share_state import TIMER_PRUNE, TIMER_SNAPSHOT, ShareStateShard
from pykafkad.effects import Append, Prune, Reply, SetTimer, TimerFired
from pykafkad.errors import ProtocolError, name
from pykafkad.wire import messages
from tests import seeds
from tests.coordinator.world import as_batches, batch
from tests.seeds import seed_of_the_code

TOPIC, OTHER = bytes(range(16)), bytes(range(1, 17))


class Settings:
    """The settings that the shard reads; few updates for each snapshot."""

    share_coordinator_snapshot_update_records_per_snapshot = 3
    share_coordinator_state_topic_prune_interval_ms = 300_000
    share_coordinator_cold_partition_snapshot_interval_ms = 300_000


class World:
    """A shard with its log."""

    def __init__(self) -> None:
        self.settings = Settings()
        self.shard = ShareStateShard(0, self.settings, Random(1))
        self.log: list[tuple[bytes, bytes | None]] = []
        self.pruned = 0
        self.now_ms = 1_000_000
        self.timers: dict[object, float] = {}
        self.send(events.Loaded())

    def send(self, event: object) -> object:
        """The message of the reply, or None."""
        answer = None
        for effect in self.shard.step(event, self.now_ms / 1000, self.now_ms):
            if type(effect) is Append:
                assert effect.log == ("__share_group_state", 0) and effect.records
                for record in effect.records:
                    self.shard.apply(record, len(self.log))
                    self.log.append(share_codec.encode(record))
            elif type(effect) is Reply:
                assert answer is None and effect.token == "token"
                answer = effect.message
            elif type(effect) is SetTimer:
                self.timers[effect.key] = effect.at
            else:
                assert type(effect) is Prune and effect.log == ("__share_group_state", 0)
                assert self.pruned <= effect.offset <= len(self.log)
                self.pruned = effect.offset
        return answer

    def replayed(self) -> ShareStateShard:
        shard = ShareStateShard(0, self.settings, Random(0))
        shard.load(as_batches(self.log)[self.pruned :])
        return shard

    def initialize(self, key, start_offset=0, state_epoch=1, is_known=True):
        row = messages.InitializeShareGroupStateRequest.PartitionData(
            partition=key[2], state_epoch=state_epoch, start_offset=start_offset
        )
        return self.send(share_state_events.InitializeState(key, row, is_known, "token"))

    def write(self, key, batches, start_offset=-1, state_epoch=1, leader_epoch=0, done=0, is_known=True):
        row = messages.WriteShareGroupStateRequest.PartitionData(
            partition=key[2],
            state_epoch=state_epoch,
            leader_epoch=leader_epoch,
            start_offset=start_offset,
            delivery_complete_count=done,
            state_batches=[
                messages.WriteShareGroupStateRequest.StateBatch(
                    first_offset=first, last_offset=last, delivery_state=state, delivery_count=count
                )
                for first, last, state, count in batches
            ],
        )
        return self.send(share_state_events.WriteState(key, row, is_known, "token"))

    def read(self, key, leader_epoch=-1, is_known=True):
        row = messages.ReadShareGroupStateRequest.PartitionData(partition=key[2], leader_epoch=leader_epoch)
        return self.send(share_state_events.ReadState(key, row, is_known, "token"))

    def summary(self, key, is_known=True):
        row = messages.ReadShareGroupStateSummaryRequest.PartitionData(partition=key[2], leader_epoch=-1)
        return self.send(share_state_events.ReadSummary(key, row, is_known, "token"))

    def delete(self, key, is_known=True):
        row = messages.DeleteShareGroupStateRequest.PartitionData(partition=key[2])
        return self.send(share_state_events.DeleteState(key, row, is_known, "token"))


KEY = ("g", TOPIC, 0)


def batches_of(answer):
    return [(row.first_offset, row.last_offset, row.delivery_state, row.delivery_count) for row in answer.state_batches]


def test_state_is_initialized_written_and_read():
    world = World()
    assert name(world.initialize(KEY, start_offset=5).error_code) == "NONE"
    assert name(world.write(KEY, [(5, 9, 2, 1), (10, 19, 0, 1)], done=5).error_code) == "NONE"
    answer = world.read(KEY)
    assert (answer.state_epoch, answer.start_offset) == (1, 5)
    assert batches_of(answer) == [(5, 9, 2, 1), (10, 19, 0, 1)]
    world.write(KEY, [(12, 14, 4, 1)], start_offset=10, done=3)
    assert batches_of(world.read(KEY)) == [(10, 11, 0, 1), (12, 14, 4, 1), (15, 19, 0, 1)]
    summary = world.summary(KEY)
    assert (summary.start_offset, summary.delivery_complete_count, summary.leader_epoch) == (10, 3, 0)


def test_a_share_partition_must_be_initialized_first():
    world = World()
    assert "uninitialized" in world.read(KEY).error_message
    assert name(world.write(KEY, []).error_code) == "INVALID_REQUEST"
    summary = world.summary(KEY)
    assert (summary.error_code, summary.start_offset, summary.delivery_complete_count) == (0, -1, -1)
    assert name(world.delete(KEY).error_code) == "NONE"
    assert world.log == []


def test_old_epochs_are_fenced():
    world = World()
    world.initialize(KEY, state_epoch=3)
    assert name(world.initialize(KEY, state_epoch=2).error_code) == "FENCED_STATE_EPOCH"
    assert name(world.write(KEY, [], state_epoch=2).error_code) == "FENCED_STATE_EPOCH"
    assert name(world.write(KEY, [], state_epoch=-1, leader_epoch=-1).error_code) == "NONE"
    before = len(world.log)
    assert name(world.read(KEY, leader_epoch=4).error_code) == "NONE"
    assert len(world.log) == before + 1  # The new leader's epoch is kept.
    assert name(world.read(KEY, leader_epoch=4).error_code) == "NONE"
    assert len(world.log) == before + 1
    assert name(world.read(KEY, leader_epoch=3).error_code) == "FENCED_LEADER_EPOCH"
    assert name(world.write(KEY, [], state_epoch=3, leader_epoch=3).error_code) == "FENCED_LEADER_EPOCH"


@pytest.mark.parametrize("call", ("initialize", "read", "summary", "delete"))
def test_unknown_partitions_are_refused(call):
    world = World()
    world.initialize(KEY)
    assert name(getattr(world, call)(KEY, is_known=False).error_code) == "UNKNOWN_TOPIC_OR_PARTITION"
    negative = getattr(world, call)(("g", TOPIC, -1))
    assert name(negative.error_code) == "INVALID_REQUEST" and "negative" in negative.error_message
    assert name(world.write(KEY, [], is_known=False).error_code) == "UNKNOWN_TOPIC_OR_PARTITION"
    assert name(world.write(("g", TOPIC, -1), []).error_code) == "INVALID_REQUEST"


def test_every_few_updates_there_is_a_snapshot():
    world = World()
    world.initialize(KEY)
    for offset in range(9):
        world.write(KEY, [(offset, offset, 2, 1)])
    kinds = [type(share_codec.decode(key, value).key).__name__ for key, value in world.log]
    assert kinds == ["ShareSnapshotKey", *(["ShareUpdateKey"] * 3 + ["ShareSnapshotKey"]) * 2, "ShareUpdateKey"]
    last = share_codec.decode(*world.log[-2]).value
    assert (last.snapshot_epoch, len(last.state_batches)) == (2, 1)


def test_records_before_the_oldest_snapshot_are_pruned():
    world = World()
    world.initialize(KEY)
    world.initialize(("g", TOPIC, 1))
    world.send(TimerFired(TIMER_PRUNE))
    assert world.pruned == 0
    for _ in range(4):
        world.write(KEY, [])
    world.send(TimerFired(TIMER_PRUNE))
    assert world.pruned == 1  # The second share partition's only snapshot stays.
    world.now_ms += 300_000
    world.write(KEY, [])
    world.send(TimerFired(TIMER_SNAPSHOT))
    world.send(TimerFired(TIMER_PRUNE))
    assert world.pruned == len(world.log) - 2
    assert world.replayed().states.keys() == world.shard.states.keys()


def test_the_state_of_deleted_topics_goes():
    world = World()
    for topic in (TOPIC, OTHER):
        world.initialize(("g", topic, 0))
    world.send(events.TopicsDeleted([("t", TOPIC)]))
    assert list(world.shard.states) == [("g", OTHER, 0)]
    world.delete(("g", OTHER, 0))
    assert not world.shard.states


def test_records_of_other_kinds():
    assert share_codec.decode(b"\x00\x07rest", b"\x00\x00") is None
    with pytest.raises(ProtocolError):
        share_codec.decode(b"\x00", None)
    key, value = share_codec.encode(World().shard.states.setdefault("k", _state()).snapshot(KEY))
    with pytest.raises(ProtocolError):
        share_codec.decode(key, b"\x00\x01" + value[2:])
    shard = ShareStateShard(0, Settings(), Random(1))
    shard.load([batch(7, [(b"\x00\x07rest", b"\x00\x00"), (key, value)])])
    assert shard.states[KEY].snapshot_offset == 8


def _state():
    from pykafkad.coordinator.share_state import SharePartitionState

    return SharePartitionState()


# Properties.


def by_offset(batches, start_offset=NO_START_OFFSET):
    """The rank of every offset: what the ranges mean."""
    found = {}
    for each in batches:
        for offset in range(each.first_offset, each.last_offset + 1):
            if offset >= start_offset or start_offset == NO_START_OFFSET:
                found[offset] = max(found.get(offset, (0, 0)), each.rank)
    return found


@pytest.mark.parametrize("seed", seeds.sampled(range(300), 15))
def test_combined_ranges_say_the_same(seed):
    random = Random(seed_of_the_code() + seed)

    def batches(count):
        result = []
        for _ in range(count):
            first = random.randrange(30)
            last = first + random.randrange(10)
            result.append(StateBatch(first, last, random.choice((0, 2, 4)), random.randrange(1, 4)))
        return result

    known, news = combine((), batches(random.randrange(6)), -1), batches(random.randrange(6))
    start_offset = random.choice((-1, 0, 12))
    result = combine(known, news, start_offset)
    assert by_offset(result) == by_offset([*known, *news], start_offset)
    for one, two in pairwise(result):
        assert one.last_offset < two.first_offset
        assert one.rank != two.rank or one.last_offset + 1 < two.first_offset


def as_value(shard, pruned):
    """The state without the count of updates, which begins anew when the records before a snapshot are gone. So does
    the memory of epochs that a later initialization has lowered again, as in Kafka."""
    forgotten = ("updates", "highest_leader_epoch", "highest_state_epoch") if pruned else ()
    return {
        key: {each: getattr(state, each) for each in state.__slots__ if each not in forgotten}
        for key, state in shard.states.items()
    }


@pytest.mark.parametrize("seed", seeds.sampled(range(300), 15))
def test_replay_gives_the_live_state(seed):
    random = Random(seed_of_the_code() + seed)
    world = World()
    keys = [("g", TOPIC, 0), ("g", TOPIC, 1), ("h", OTHER, 0)]
    for _ in range(40):
        world.now_ms += random.choice((0, 10, 200_000))
        key = random.choice(keys)
        choice = random.random()
        if choice < 0.1:
            world.initialize(key, random.choice((-1, 0, 7)), random.randrange(3))
        elif choice < 0.7:
            first = random.randrange(40)
            state = random.choice((0, 2, 4))
            row = (first, first + random.randrange(5), state, random.randrange(1, 6))
            world.write(key, [row], random.choice((-1, -1, 3, 9)), random.randrange(-1, 3), random.randrange(-1, 3))
        elif choice < 0.8:
            world.read(key, random.randrange(-1, 4))
        elif choice < 0.85:
            world.delete(key)
        elif choice < 0.9:
            world.send(TimerFired(TIMER_SNAPSHOT))
        elif choice < 0.95:
            world.send(TimerFired(TIMER_PRUNE))
        else:
            replayed = world.replayed()
            assert as_value(replayed, world.pruned) == as_value(world.shard, world.pruned)
            world.shard = replayed
        assert world.summary(key) is not None
    assert as_value(world.replayed(), world.pruned) == as_value(world.shard, world.pruned)
