"""Coordinators follow leadership: loaded when their partition is led here, gone when it is not, in any order."""

import random

import pytest

from pykafkad import errors
from pykafkad.clock import ManualClock
from pykafkad.coordinator import record_codec
from pykafkad.coordinator.partitioning import partition_for
from pykafkad.coordinator.shard import TOPIC
from pykafkad.effects import StoredRecord
from pykafkad.errors import StorageFailure
from pykafkad.wire import messages
from tests import seeds
from tests.simulation.disk import MemoryDisk
from tests.simulation.world import NOTHING, World

GROUPS = [f"group-{number}" for number in range(6)]
PARTITIONS = 3
START_MS = 1_000


class TickingClock(ManualClock):
    """A slow machine: every look at the time takes a while, so that a turn has time for few steps."""

    def now(self):
        self.advance(0.0003)
        return super().now()


@pytest.fixture(autouse=True)
def small_steps(monkeypatch):
    """Of a log that is loaded in steps, a few records take several turns."""
    monkeypatch.setattr("pykafkad.coordinator.shard.RECORDS_PER_STEP", 1)


def make(clock=None, **settings):
    world = World("/data", disk=MemoryDisk(), clock=clock, offsets_topic_num_partitions=PARTITIONS, **settings)
    world.connect().ask(messages.FindCoordinatorRequest(key="g", key_type=0), 2)
    settle(world)
    world.create_topic("t", 1)
    return world


def settle(world):
    """Until nothing is created, opened or loaded."""
    for _ in range(1000):
        world.turn()
        if not world.runtime.tasks and TOPIC in world.broker.image.topics and not world.broker.partitions.pending:
            return
    raise AssertionError("it does not settle")


def commit_request(group, offset):
    request = messages.OffsetCommitRequest
    row = request.OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    return request(
        group_id=group,
        generation_id_or_member_epoch=-1,
        topics=[request.OffsetCommitRequestTopic(name="t", partitions=[row])],
    )


def fetch_request(group):
    request = messages.OffsetFetchRequest
    topic = request.OffsetFetchRequestTopics(name="t", partition_indexes=[0])
    return request(groups=[request.OffsetFetchRequestGroup(group_id=group, topics=[topic])])


def committed(answer):
    """(error, offset) of an OffsetFetch."""
    row = answer.groups[0]
    return (row.error_code, None) if row.error_code else (0, row.topics[0].partitions[0].committed_offset)


def code(answer):
    return answer.topics[0].partitions[0].error_code


def lead(world, partition, is_led, epochs=1):
    """What the metadata says of a partition of the coordinator's topic changes."""
    broker = world.broker
    state = broker.image.topics[TOPIC].partitions[partition]
    state.leader = broker.node_id if is_led else -1
    state.leader_epoch += epochs
    state.partition_epoch += 1
    broker.partitions._adopt(broker.partitions.get(TOPIC, partition), state)
    broker.groups.follow()


def of(group):
    return partition_for(group, PARTITIONS)


def fill(world, group, count):
    """A long log: another leader of the past wrote so many commits."""
    log = world.broker.partitions.get(TOPIC, of(group))
    key = record_codec.offset_commit(group, "t", 0, None).key
    records = [
        record_codec.encode(StoredRecord(key, messages.OffsetCommitValue(offset=offset, commit_timestamp=START_MS)))
        for offset in range(count)
    ]
    for start in range(0, count, 50):
        log.append_records(records[start : start + 50], START_MS)
    log.write_pending()
    log.advance_high_watermark(log.end_offset)


def test_a_shard_that_is_not_led_here_refuses_and_loads_again_what_was_committed():
    world = make()
    peer = world.connect()
    assert code(peer.ask(commit_request("g", 5), 8)) == 0
    lead(world, of("g"), False)
    assert code(peer.ask(commit_request("g", 6), 8)) == errors.NOT_COORDINATOR
    lead(world, of("g"), True)
    settle(world)
    assert committed(peer.ask(fetch_request("g"), 8)) == (0, 5)


def test_a_long_log_is_loaded_in_steps_and_its_clients_are_told():
    world = make(clock=TickingClock())
    fill(world, "g", 100)
    peer, other = world.connect(), world.connect()
    lead(world, of("g"), True)
    assert world.broker.groups.is_loading
    assert code(peer.ask(commit_request("g", 7), 8)) == errors.COORDINATOR_LOAD_IN_PROGRESS
    assert peer.ask(messages.ListGroupsRequest(), 4).error_code == errors.COORDINATOR_LOAD_IN_PROGRESS
    elsewhere = next(group for group in GROUPS if of(group) != of("g"))
    assert code(other.ask(commit_request(elsewhere, 1), 8)) == 0
    settle(world)
    assert committed(peer.ask(fetch_request("g"), 8)) == (0, 99)


def test_one_that_resigns_while_it_is_loaded_leaves_nothing_behind():
    world = make(clock=TickingClock())
    fill(world, "g", 100)
    lead(world, of("g"), True)
    lead(world, of("g"), False)
    settle(world)
    assert code(world.connect().ask(commit_request("g", 7), 8)) == errors.NOT_COORDINATOR
    assert not world.broker.groups.is_loading and len(world.broker.groups.shards()) == PARTITIONS - 1


def test_a_topic_deleted_while_a_shard_is_loaded_is_forgotten_by_it():
    world = make(clock=TickingClock())
    fill(world, "g", 100)
    lead(world, of("g"), True)
    peer = world.connect()
    peer.send(messages.DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000), 5)
    settle(world)
    assert peer.answers[0].responses[0].error_code == 0
    assert committed(world.connect().ask(fetch_request("g"), 8)) == (0, -1)


def test_whoever_waits_for_members_is_sent_away_and_timers_of_an_old_leadership_do_nothing():
    world = make()
    request = messages.JoinGroupRequest
    peer = world.connect()
    joining = request(
        group_id="g", member_id="", session_timeout_ms=10_000, rebalance_timeout_ms=10_000, protocol_type="consumer",
        protocols=[request.JoinGroupRequestProtocol(name="range", metadata=b"m")],
    )  # fmt: skip
    joining.member_id = peer.ask(joining, 5).member_id
    assert peer.ask(joining, 5).error_code == 0
    lead(world, of("g"), False)
    log = world.broker.partitions.get(TOPIC, of("g"))
    end_offset = log.end_offset
    world.advance(60.0, steps=20)
    assert log.end_offset == end_offset and world.runtime.metrics.unexpected_errors == 0


def test_a_log_that_cannot_be_read_is_not_tried_again_in_the_same_epoch(monkeypatch):
    world = make()
    tried = []

    def fail(shard, batches):
        tried.append(shard.partition)
        raise StorageFailure("read", "there", "no")

    with monkeypatch.context() as patched:
        patched.setattr("pykafkad.coordinator.shard.GroupShard.load_in_steps", fail)
        lead(world, of("g"), True)
        world.broker.groups.follow()
    assert len(tried) == 1
    assert code(world.connect().ask(commit_request("g", 1), 8)) == errors.NOT_COORDINATOR
    lead(world, of("g"), True)
    settle(world)
    assert code(world.connect().ask(commit_request("g", 1), 8)) == 0


def test_a_partition_without_enough_replicas_has_no_coordinator():
    world = make()
    state = world.broker.image.topics[TOPIC].partitions[of("g")]
    state.replicas, state.isr = (world.broker.node_id, 7, 8), (world.broker.node_id,)
    world.broker.partitions.get(TOPIC, of("g")).replica.settings_changed(min_insync_replicas=2)
    lead(world, of("g"), True)
    assert code(world.connect().ask(commit_request("g", 1), 8)) == errors.COORDINATOR_NOT_AVAILABLE
    state.isr = (world.broker.node_id, 7)
    lead(world, of("g"), True)
    settle(world)
    assert world.connect().ask(commit_request("g", 1), 8) is NOTHING, "the follower does not have it"


@pytest.mark.parametrize("tens", seeds.sampled(range(30), 10))
def test_what_is_acknowledged_survives_any_changes_of_leadership(tens):
    """Commits, reads and changes of leadership in any order, with a clock that makes loading take several turns."""
    world = make(clock=TickingClock(), seed=tens)
    seen = set()
    for seed in range(tens * 10, tens * 10 + 10):
        change_leaders(world, random.Random(seed), seen)
    assert seen <= {0, errors.NOT_COORDINATOR, errors.COORDINATOR_LOAD_IN_PROGRESS}
    assert world.runtime.metrics.unexpected_errors == 0


def change_leaders(world, drawn, seen):
    acknowledged = dict.fromkeys(GROUPS, -1)
    led = dict.fromkeys(range(PARTITIONS), True)
    peers = {group: world.connect() for group in GROUPS}
    for group in GROUPS:
        acknowledged[group] = committed(peers[group].ask(fetch_request(group), 8))[1]
    for group in drawn.sample(GROUPS, 2):
        fill(world, group, 40)
        acknowledged[group] = 39
        lead(world, of(group), True)
    for offset in range(1000, 1025):
        group = drawn.choice(GROUPS)
        kind = drawn.choice(("commit", "commit", "fetch", "turn", "leadership", "bounce"))
        if kind == "commit":
            answer = peers[group].ask(commit_request(group, offset), 8)
            assert answer is not NOTHING
            seen.add(code(answer))
            if code(answer) == 0:
                acknowledged[group] = offset
        elif kind == "fetch":
            error, found = committed(peers[group].ask(fetch_request(group), 8))
            seen.add(error)
            assert error or found == acknowledged[group]
        elif kind == "turn":
            world.turn()
        else:
            partition = drawn.randrange(PARTITIONS)
            led[partition] = kind == "bounce" or not led[partition]
            lead(world, partition, led[partition], epochs=drawn.randint(1, 3))
    for partition in range(PARTITIONS):
        lead(world, partition, True)
    settle(world)
    for group in GROUPS:
        assert committed(peers[group].ask(fetch_request(group), 8)) == (0, acknowledged[group])
