"""acks=all in a directory whose metadata has replicas on other brokers: how many must have a record."""

import pytest

from pykafkad import errors
from pykafkad.log.replica import LEADER
from pykafkad.wire import messages
from tests.handlers.requests import batch, fetch, produce
from tests.handlers.test_leader_hints import OTHER, fence, other
from tests.simulation.world import NOTHING, World

__all__ = ["other"]


@pytest.fixture
def world(tmp_path):
    return World(tmp_path)


def create(world, name, brokers, **configs):
    request = messages.CreateTopicsRequest
    rows = [
        request.CreatableTopicConfig(name=key.replace("_", "."), value=str(value)) for key, value in configs.items()
    ]
    assignment = request.CreatableReplicaAssignment(partition_index=0, broker_ids=brokers)
    topic = request.CreatableTopic(
        name=name, num_partitions=-1, replication_factor=-1, assignments=[assignment], configs=rows
    )
    answer = world.connect().ask(request(topics=[topic], timeout_ms=1000), 7)
    assert [row.error_code for row in answer.topics] == [0]
    return world.broker.partitions.get(name, 0)


def code(answer):
    return answer if answer is NOTHING else answer.responses[0].partition_responses[0].error_code


@pytest.fixture
def alone(world, other):
    """This broker leads, and is alone in the ISR: the other one is fenced."""
    log = create(world, "ours", [world.broker.node_id, OTHER], min_insync_replicas=2)
    fence(world)
    assert log.replica.role == LEADER and log.replica.isr == (world.broker.node_id,)
    return log


def high_watermark(world, topic="ours"):
    return world.connect().ask(fetch(topic, {0: 0}), 11).responses[0].partitions[0].high_watermark


@pytest.mark.parametrize("version", [3, 8, 9, 12])
def test_too_few_replicas_take_nothing_with_acks_all(world, alone, version):
    answer = world.connect().ask(produce("ours", {0: batch(b"x")}, acks=-1), version)
    row = answer.responses[0].partition_responses[0]
    assert (row.error_code, row.base_offset, alone.end_offset) == (errors.NOT_ENOUGH_REPLICAS, -1, 0)


def test_without_acks_all_a_record_is_taken_and_not_shown(world, alone):
    """As in Kafka: below the least ISR the high watermark stays where it is."""
    assert code(world.connect().ask(produce("ours", {0: batch(b"x")}, acks=1), 9)) == 0
    request = messages.ListOffsetsRequest
    for timestamp in (0, -3, -1):
        asked = request.ListOffsetsPartition(partition_index=0, timestamp=timestamp)
        topics = [request.ListOffsetsTopic(name="ours", partitions=[asked])]
        row = world.connect().ask(request(replica_id=-1, topics=topics), 9).topics[0].partitions[0]
        assert (row.error_code, row.offset) == (0, 0 if timestamp == -1 else -1), "no time finds it either"
    assert (alone.end_offset, high_watermark(world)) == (1, 0)


def test_the_setting_decides_and_a_changed_one_holds_at_once(world, alone):
    peer = world.connect()
    assert code(peer.ask(produce("ours", {0: batch(b"x")}, acks=1), 9)) == 0
    resource = messages.IncrementalAlterConfigsRequest.AlterConfigsResource
    for value, expected in (("1", 0), ("2", errors.NOT_ENOUGH_REPLICAS)):
        change = messages.IncrementalAlterConfigsRequest.AlterableConfig(
            name="min.insync.replicas", config_operation=0, value=value
        )
        request = messages.IncrementalAlterConfigsRequest(
            resources=[resource(resource_type=2, resource_name="ours", configs=[change])], validate_only=False
        )
        assert peer.ask(request, 1).responses[0].error_code == 0
        assert code(peer.ask(produce("ours", {0: batch(b"y")}, acks=-1), 9)) == expected
    assert (alone.end_offset, high_watermark(world)) == (2, 2)


def test_one_partition_of_a_request_lacks_replicas(world, alone):
    create(world, "mine", [world.broker.node_id], min_insync_replicas=2)
    request = produce("ours", {0: batch(b"x")}, acks=-1)
    request.topic_data += produce("mine", {0: batch(b"x")}, acks=-1).topic_data
    answer = world.connect().ask(request, 9)
    assert [topic.partition_responses[0].error_code for topic in answer.responses] == [errors.NOT_ENOUGH_REPLICAS, 0]


def test_acks_all_waits_for_the_followers_and_acks_1_does_not(world, other):
    log = create(world, "ours", [world.broker.node_id, OTHER])
    first, second = world.connect(), world.connect()
    assert code(first.ask(produce("ours", {0: batch(b"x")}, acks=1), 9)) == 0
    assert second.ask(produce("ours", {0: batch(b"y")}, acks=-1), 9) is NOTHING
    assert (log.end_offset, high_watermark(world)) == (2, 0)
    for offset in (1, 2):
        effects = log.replica.fetched(OTHER, offset, log.leader_epoch, world.runtime.now)
        world.broker.commits.perform(log, effects)
        world.turn()
        assert high_watermark(world) == offset
        assert [code(answer) for answer in second.answers] == [0] * (offset - 1)


def test_an_isr_that_shrinks_behind_the_append_is_told(world, other):
    log = create(world, "ours", [world.broker.node_id, OTHER], min_insync_replicas=2)
    peer = world.connect()
    assert peer.ask(produce("ours", {0: batch(b"x")}, acks=-1), 9) is NOTHING
    fence(world)
    world.turn()
    assert [code(answer) for answer in peer.answers] == [errors.NOT_ENOUGH_REPLICAS_AFTER_APPEND]
    assert log.end_offset == 1


def test_a_leader_that_is_none_any_more_says_so_to_those_who_wait(world, other):
    log = create(world, "ours", [world.broker.node_id, OTHER])
    peer = world.connect()
    assert peer.ask(produce("ours", {0: batch(b"x")}, acks=-1), 9) is NOTHING
    state = world.broker.image.topics["ours"].partitions[0]
    moved = type("State", (), {name: getattr(state, name) for name in state.__slots__})
    moved.leader, moved.leader_epoch, moved.lost = OTHER, state.leader_epoch + 1, ()
    world.broker.partitions._adopt(log, moved)
    world.turn()
    assert [code(answer) for answer in peer.answers] == [errors.NOT_LEADER_OR_FOLLOWER]
