"""Requests of thousands of rows: their cost is linear in the rows, and is spread over many turns of the loop."""

import pytest

from pykafkad import errors
from pykafkad.handlers import offset_fetch
from pykafkad.server.dispatch import LONG_FRAME_BYTES
from pykafkad.server.incremental_tasks import BUDGET_SECONDS
from pykafkad.wire import messages
from tests.server.test_incremental_tasks import STEP_SECONDS, TickingClock
from tests.simulation.disk import MemoryDisk
from tests.simulation.world import World

COUNT = 2_000


def commit(count):
    request = messages.OffsetCommitRequest
    rows = [request.OffsetCommitRequestPartition(partition_index=index, committed_offset=1) for index in range(count)]
    return request(group_id="g", topics=[request.OffsetCommitRequestTopic(name="t", partitions=rows)]), 8


def commit_in_transaction(count):
    request = messages.TxnOffsetCommitRequest
    rows = [
        request.TxnOffsetCommitRequestPartition(partition_index=index, committed_offset=1) for index in range(count)
    ]
    return request(
        transactional_id="x",
        group_id="g",
        producer_id=1,
        topics=[request.TxnOffsetCommitRequestTopic(name="t", partitions=rows)],
    ), 3


def delete(count):
    request = messages.OffsetDeleteRequest
    rows = [request.OffsetDeleteRequestPartition(partition_index=index) for index in range(count)]
    return request(group_id="g", topics=[request.OffsetDeleteRequestTopic(name="t", partitions=rows)]), 0


@pytest.mark.parametrize("ask", [commit, commit_in_transaction, delete])
def test_rows_are_not_searched_one_by_one(world, peer, monkeypatch, ask):
    """Such searches took half a minute for ten thousand partitions of which half do not exist."""
    world.create_topic("t", 2)
    world.create_topic("__consumer_offsets", 1)
    peer.ask(*commit(1))
    compared = []
    monkeypatch.setattr(messages.Struct, "__eq__", lambda self, other: compared.append(self) or self is other)
    answer = peer.ask(*ask(COUNT))
    assert len(compared) < COUNT
    codes = [row.error_code for row in answer.topics[0].partitions]
    assert codes.count(errors.UNKNOWN_TOPIC_OR_PARTITION) == COUNT - 2 and len(codes) == COUNT


# Every kind of request that may have thousands of rows: `(request, version, rows that are served and encoded)`.


def names(count):
    return [f"u{number}" for number in range(count)]


def metadata(count):
    request = messages.MetadataRequest
    return request(topics=[request.MetadataRequestTopic(name=name) for name in names(count)]), 12


def metadata_by_id(count):
    request = messages.MetadataRequest
    return request(
        topics=[
            request.MetadataRequestTopic(name=None, topic_id=(number + 1).to_bytes(16, "big"))
            for number in range(count)
        ]
    ), 12


def describe_topic_partitions(count):
    request = messages.DescribeTopicPartitionsRequest
    return request(topics=[request.TopicRequest(name=name) for name in names(count)]), 0


def delete_topics(count):
    request = messages.DeleteTopicsRequest
    return request(topics=[request.DeleteTopicState(name=name) for name in names(count)], timeout_ms=1000), 6


def create_topics(count):
    request = messages.CreateTopicsRequest
    return request(
        topics=[request.CreatableTopic(name=name, num_partitions=0, replication_factor=1) for name in names(count)],
        timeout_ms=1000,
    ), 7


def create_partitions(count):
    request = messages.CreatePartitionsRequest
    return request(
        topics=[request.CreatePartitionsTopic(name=name, count=2, assignments=None) for name in names(count)],
        timeout_ms=1000,
    ), 3


def describe_configs(count):
    request = messages.DescribeConfigsRequest
    return request(
        resources=[
            request.DescribeConfigsResource(resource_type=2, resource_name=name, configuration_keys=None)
            for name in names(count)
        ]
    ), 4


def list_offsets(count):
    request = messages.ListOffsetsRequest
    rows = [request.ListOffsetsPartition(partition_index=index, timestamp=-1) for index in range(count)]
    return request(replica_id=-1, topics=[request.ListOffsetsTopic(name="u", partitions=rows)]), 7


def leader_epochs(count):
    request = messages.OffsetForLeaderEpochRequest
    rows = [request.OffsetForLeaderPartition(partition=index, leader_epoch=0) for index in range(count)]
    return request(replica_id=-1, topics=[request.OffsetForLeaderTopic(topic="u", partitions=rows)]), 4


def delete_records(count):
    request = messages.DeleteRecordsRequest
    rows = [request.DeleteRecordsPartition(partition_index=index, offset=0) for index in range(count)]
    return request(topics=[request.DeleteRecordsTopic(name="u", partitions=rows)], timeout_ms=1000), 2


def find_coordinator(count):
    return messages.FindCoordinatorRequest(key_type=0, coordinator_keys=names(count)), 4


def describe_groups(count):
    return messages.DescribeGroupsRequest(groups=names(count)), 5


def delete_groups(count):
    return messages.DeleteGroupsRequest(groups_names=names(count)), 2


def describe_transactions(count):
    return messages.DescribeTransactionsRequest(transactional_ids=names(count)), 0


LONG = [
    metadata, metadata_by_id, describe_topic_partitions, delete_topics, create_topics, create_partitions,
    describe_configs, list_offsets,
    leader_epochs, delete_records, find_coordinator, describe_groups, delete_groups, describe_transactions, commit,
    commit_in_transaction, delete,
]  # fmt: skip


@pytest.mark.parametrize("ask", LONG)
def test_every_row_is_a_step_of_decoding_serving_and_encoding(ask):
    """The clock advances by one step at each look, so a turn with more rows than time would fail."""
    world = World("/data", disk=MemoryDisk(), clock=TickingClock(), auto_create_topics_enable="false")
    world.create_topic("__consumer_offsets", 1)
    world.create_topic("t", 2)
    peer, other = world.connect(), world.connect()
    other.ask(*commit(1))
    request, version = ask(COUNT)
    least = 3 if len(peer.encode(request, version)) >= LONG_FRAME_BYTES else 2
    peer.expected.clear()
    peer.send(request, version)
    turns = 0
    while not peer.answers:
        assert other.ask(*metadata(1)).topics
        turns += 1
        assert turns < 500
    assert (turns + 1) * BUDGET_SECONDS > 0.9 * least * COUNT * STEP_SECONDS
    assert world.runtime.metrics.unexpected_errors == 0


def by_partition_numbers(kind):
    """Requests whose partitions are plain numbers, which are decoded in one step."""
    numbers = list(range(COUNT))
    if kind == "DescribeProducers":
        request = messages.DescribeProducersRequest
        return request(topics=[request.TopicRequest(name="u", partition_indexes=numbers)]), 0
    if kind == "OffsetFetch":
        request = messages.OffsetFetchRequest
        return request(
            groups=[
                request.OffsetFetchRequestGroup(
                    group_id="g", topics=[request.OffsetFetchRequestTopics(name="u", partition_indexes=numbers)]
                )
            ]
        ), 8
    request = messages.AlterReplicaLogDirsRequest
    topic = request.AlterReplicaLogDirTopic(name="u", partitions=numbers)
    return request(dirs=[request.AlterReplicaLogDir(path="/x", topics=[topic])]), 2


@pytest.mark.parametrize("kind", ["DescribeProducers", "AlterReplicaLogDirs", "OffsetFetch"])
def test_partition_numbers_are_steps_of_serving_and_encoding(kind, monkeypatch):
    monkeypatch.setattr(offset_fetch, "AT_ONCE", 1)
    world = World("/data", disk=MemoryDisk(), clock=TickingClock(), auto_create_topics_enable="false")
    world.create_topic("__consumer_offsets", 1)
    peer = world.connect()
    request, version = by_partition_numbers(kind)
    peer.send(request, version)
    turns = 0
    while not peer.answers:
        world.turn()
        turns += 1
        assert turns < 500
    assert (turns + 1) * BUDGET_SECONDS > 0.9 * 2 * COUNT * STEP_SECONDS
    assert world.runtime.metrics.unexpected_errors == 0


@pytest.mark.long
def test_many_groups_are_listed_and_many_partitions_described_in_steps():
    """Short requests with long answers."""
    world = World("/data", disk=MemoryDisk(), clock=TickingClock())
    world.create_topic("t", 400)
    world.create_topic("__consumer_offsets", 1)
    peer = world.connect()
    for number in range(400):
        request, version = commit(1)
        request.group_id = f"g{number}"
        peer.send(request, version)
    for request, version in (
        (messages.ListGroupsRequest(), 4),
        (messages.MetadataRequest(topics=None), 12),
        (messages.DescribeLogDirsRequest(topics=None), 4),
    ):
        asked = len(peer.answers)
        peer.send(request, version)
        turns = 1
        while len(peer.answers) == asked:
            world.turn()
            turns += 1
        assert turns * BUDGET_SECONDS > 0.9 * 2 * 400 * STEP_SECONDS, request


@pytest.mark.parametrize("other_exists", [True, False])
def test_a_topic_that_is_deleted_during_a_commit_gets_no_offsets(other_exists):
    world = World("/data", disk=MemoryDisk(), clock=TickingClock())
    world.create_topic("t", 400)
    world.create_topic("u", 1)
    world.create_topic("__consumer_offsets", 1)
    peer, other = world.connect(), world.connect()
    request, version = commit(400)
    if other_exists:
        request.topics.append(
            messages.OffsetCommitRequest.OffsetCommitRequestTopic(name="u", partitions=request.topics[0].partitions[:1])
        )
    peer.send(request, version)
    assert world.runtime.tasks
    deletion = messages.DeleteTopicsRequest
    assert (
        other.ask(deletion(topics=[deletion.DeleteTopicState(name="t")], timeout_ms=1000), 6).responses[0].error_code
        == 0
    )
    while not peer.answers:
        world.turn()
    codes = {row.name: {each.error_code for each in row.partitions} for row in peer.answers[0].topics}
    assert codes == {"t": {errors.UNKNOWN_TOPIC_OR_PARTITION}} | ({"u": {0}} if other_exists else {})
    asked = messages.OffsetFetchRequest.OffsetFetchRequestGroup(group_id="g", topics=None)
    rows = other.ask(messages.OffsetFetchRequest(groups=[asked]), 8).groups[0].topics
    assert [row.name for row in rows] == (["u"] if other_exists else [])
