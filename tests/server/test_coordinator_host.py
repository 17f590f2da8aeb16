"""Coordinators follow leadership: loaded when their partition is led here, gone when it is not, in any order."""

import random
from types import SimpleNamespace

import pytest

from pykafkad import errors
from pykafkad.coordinator import record_codec
from pykafkad.coordinator.events import MetadataChanged, TopicsDeleted
from pykafkad.coordinator.offsets import CommittedOffset
from pykafkad.coordinator.partitioning import partition_for
from pykafkad.coordinator.shard import TOPIC
from pykafkad.effects import Append, Reply, SetTimer, StoredRecord
from pykafkad.errors import KafkaError, StorageFailure
from pykafkad.wire import messages
from tests import seeds
from tests.simulation.disk import MemoryDisk
from tests.simulation.slow_clock import SlowClock
from tests.simulation.world import NOTHING, World

GROUPS = [f"group-{number}" for number in range(6)]
PARTITIONS = 3
START_MS = 1_000


class TickingClock(SlowClock):
    """Slow from the start."""

    seconds = 0.0003


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


@pytest.mark.parametrize(
    ("failure", "level"),
    [
        (KafkaError(errors.NOT_LEADER_OR_FOLLOWER), "INFO"),
        (KafkaError(errors.UNKNOWN_TOPIC_OR_PARTITION), "INFO"),
        (KafkaError(errors.NOT_ENOUGH_REPLICAS_AFTER_APPEND), "ERROR"),
        (StorageFailure("write", "there", "no"), "ERROR"),
    ],
)
def test_a_shard_that_is_moved_away_is_no_error(failure, level, capfd):
    """A reassignment or a deletion, which somebody wanted, ends what waits for replicas."""
    world = make()
    commit = world.connect().ask(commit_request("g", 1), 8)
    assert code(commit) == 0
    capfd.readouterr()
    world.broker.groups._runners[of("g")].failed(failure)
    (line,) = (each for each in capfd.readouterr().err.splitlines() if "shard-offline" in each)
    assert f" {level} " in line and f"partition={of('g')}" in line
    settle(world)
    assert committed(world.connect().ask(fetch_request("g"), 8)) == (0, 1)


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


@pytest.mark.parametrize("tens", seeds.sampled(range(30), 20))
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


def test_records_that_are_too_large_for_a_batch_are_refused():
    """As in Kafka. The others go on, and so do the timers."""
    world = make(message_max_bytes=1500)
    peer = world.connect()
    for number in range(40):
        world.create_topic(f"topic-with-a-long-name-{number:020}")

    def heartbeat(member, *topics):
        request = messages.ConsumerGroupHeartbeatRequest(
            group_id="h",
            member_id=member,
            rebalance_timeout_ms=1000,
            subscribed_topic_names=topics,
            topic_partitions=[],
        )
        return peer.ask(request, 1).error_code

    names = sorted(set(world.broker.image.topics) - {TOPIC})
    assert heartbeat("a", *names[:2]) == 0
    assert heartbeat("b", *names) == errors.UNKNOWN_SERVER_ERROR
    shard = world.broker.groups.runner_of(of("h")).machine
    assert set(shard.groups["h"].members) == {"a"} and not peer.closed
    assert code(peer.ask(commit_request("g", 5), 8)) == 0
    world.advance(50, steps=5)
    assert not shard.groups["h"].members
    assert world.runtime.metrics.unexpected_errors == 0


def test_a_group_with_many_offsets_is_not_served_while_it_is_deleted():
    world = make()
    fill(world, "g", 1)
    runner = world.broker.groups.runner_of(of("g"))
    runner.perform([Append(runner.machine.log, [record]) for record in many_offsets("g", 3_000)])
    deleting, other = world.connect(), world.connect()
    # The turn ends when nothing is left to be read, and the deletion needs further ones.
    assert deleting.ask(messages.DeleteGroupsRequest(groups_names=["g"]), 2) is NOTHING
    assert committed(other.ask(fetch_request("g"), 8)) == (errors.COORDINATOR_LOAD_IN_PROGRESS, None)
    again = other.ask(messages.DeleteGroupsRequest(groups_names=["g"]), 2).results[0]
    assert again.error_code == errors.COORDINATOR_LOAD_IN_PROGRESS
    for _ in range(10):
        world.turn()
    assert deleting.answers[0].results[0].error_code == 0
    assert committed(other.ask(fetch_request("g"), 8)) == (0, -1)
    lead(world, of("g"), False)
    lead(world, of("g"), True)
    settle(world)
    machine = world.broker.groups.runner_of(of("g")).machine
    assert machine.groups == {} and machine.offsets.by_group == {}, "the log says so, too"
    assert world.runtime.metrics.unexpected_errors == 0


def many_offsets(group, count):
    """Records of as many partitions."""
    offset = CommittedOffset(1, -1, "", START_MS, -1, bytes(16))
    return [record_codec.offset_commit(group, "t", partition, offset) for partition in range(count)]


def test_who_asked_for_refused_records_inside_this_process_is_told():
    world = make(message_max_bytes=1500)
    runner = world.broker.groups.runner_of(0)
    record = record_codec.offset_commit("g", "t" * 2000, 0, None)
    told = []
    token = SimpleNamespace(abandon=told.append)
    runner.perform(
        [Append(runner.machine.log, [record]), Reply(token, None), SetTimer(("key",), world.runtime.now + 1)]
    )
    assert told == ["it was refused: UNKNOWN_SERVER_ERROR"]
    assert world.runtime.timers.next_at() is not None and (runner, ("key",)) in world.runtime.timers._at


def test_changes_of_the_metadata_during_a_load_are_told_once():
    """However many there are: a load may take long."""
    runner = make().broker.groups.runner_of(0)
    told = []
    runner.machine = SimpleNamespace(step=lambda event, now, now_ms: told.append(event) or [])
    runner.is_loading = True
    for number in range(1000):
        runner.tell(MetadataChanged([f"topic-{number % 5}"], number == 7))
        runner.tell(TopicsDeleted([(f"topic-{number % 5}", bytes(16))]))
    runner._loaded(None)
    _, deleted, changed = told
    assert len(deleted.topics) == len(changed.topics) == 5 and changed.has_created


def test_a_shard_is_loaded_with_what_was_appended_in_the_same_turn():
    """It is in the log, but not in a file yet."""
    world = make()
    record = record_codec.offset_commit("g", "t", 0, CommittedOffset(7, -1, "", START_MS, -1, bytes(16)))
    runner = world.broker.groups.runner_of(of("g"))
    runner.perform([Append(runner.machine.log, [record])])
    lead(world, of("g"), True)
    settle(world)
    assert world.broker.groups.runner_of(of("g")) is not runner
    assert committed(world.connect().ask(fetch_request("g"), 8)) == (0, 7)


def refuse(*args, **options):
    raise StorageFailure("write", "x", "no room")


def test_the_log_tells_of_members_once_their_records_are_written(monkeypatch):
    """And of nothing when the write fails."""
    lines = []
    world = make(group_initial_rebalance_delay_ms=0)
    world.broker.logs.sink = SimpleNamespace(line=lambda *line: lines.append(line))
    request = messages.ConsumerGroupHeartbeatRequest(
        group_id=GROUPS[0],
        member_id="m",
        member_epoch=0,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=["t"],
        topic_partitions=[],
    )
    client = world.connect()
    assert client.ask(request, 1).error_code == 0
    told = [(level, name, event, fields["group"]) for level, name, event, fields in lines if name == "coordinator"]
    assert told == [
        ("info", "coordinator", event, GROUPS[0]) for event in ("member-joined", "rebalance-began", "rebalance-ended")
    ]
    lines.clear()
    monkeypatch.setattr("pykafkad.log.partition_log.PartitionLog.append_records", refuse)
    client.send(messages.ConsumerGroupHeartbeatRequest(group_id=GROUPS[0], member_id="m", member_epoch=-1), 1)
    world.turn()
    assert [event for _, name, event, _ in lines if name == "coordinator" and event.startswith("member")] == []
