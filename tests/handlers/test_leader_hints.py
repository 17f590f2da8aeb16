"""Leader hints (KIP-951): answers about partitions that another broker leads, or that have no leader.

Such partitions are in a directory that was taken over from a cluster of several brokers.
"""

import pytest

from pykafkad import errors
from pykafkad.metadata import events
from pykafkad.metadata.brokers import Endpoint
from pykafkad.wire import messages
from tests.handlers.requests import batch, fetch, produce

OTHER = 2


@pytest.fixture
def other(world):
    """A second broker in the metadata. It leads `theirs` alone, and `both` with this broker as the follower."""
    controller = world.controller.metadata_log
    controller.submit(
        events.RegisterBroker(OTHER, b"i" * 16, [Endpoint("PLAINTEXT", "other", 9)], [b"d" * 16], rack="r")
    )
    controller.submit(events.UnfenceBroker(OTHER, world.broker.image.brokers[OTHER].epoch))
    request = messages.CreateTopicsRequest
    topics = [
        request.CreatableTopic(
            name=name,
            num_partitions=-1,
            replication_factor=-1,
            assignments=[request.CreatableReplicaAssignment(partition_index=0, broker_ids=brokers)],
        )
        for name, brokers in (("theirs", [OTHER]), ("both", [OTHER, world.broker.node_id]))
    ]
    answer = world.connect().ask(request(topics=topics, timeout_ms=1000), 7)
    assert [row.error_code for row in answer.topics] == [0, 0]


def fence(world):
    world.controller.metadata_log.submit(events.FenceBroker(OTHER, world.broker.image.brokers[OTHER].epoch))


def produced(peer, topic, version, index=0, topic_id=bytes(16)):
    answer = peer.ask(produce(topic, {index: batch(b"x")}, topic_id=topic_id), version)
    (row,) = answer.responses[0].partition_responses
    ends = [(end.node_id, end.host, end.port, end.rack) for end in answer.node_endpoints]
    return row.error_code, row.current_leader.leader_id, row.current_leader.leader_epoch, ends


def fetched(peer, world, topic, version, max_wait_ms=1000, **asked):
    topic_id = world.broker.image.topics[topic].id
    answer = peer.ask(
        fetch(topic, {0: {"fetch_offset": 0, **asked}}, topic_id=topic_id, max_wait_ms=max_wait_ms), version
    )
    (row,) = answer.responses[0].partitions
    ends = [(end.node_id, end.host, end.port, end.rack) for end in answer.node_endpoints]
    return row.error_code, row.current_leader.leader_id, row.current_leader.leader_epoch, ends


NOT_LEADER = errors.NOT_LEADER_OR_FOLLOWER
END = [(OTHER, "other", 9, "r")]
NOTHING = (NOT_LEADER, -1, -1, [])


@pytest.mark.parametrize("topic", ["theirs", "both"])
def test_producers_learn_the_leader(world, peer, other, topic):
    """Nothing is appended. The hint comes from version 10."""
    topic_id = world.broker.image.topics[topic].id
    for version in (3, 8, 9):
        assert produced(peer, topic, version) == NOTHING
    for version in (10, 12, 13):
        assert produced(peer, topic, version, topic_id=topic_id) == (NOT_LEADER, OTHER, 0, END)
    assert produced(peer, topic, 10, index=1) == (errors.UNKNOWN_TOPIC_OR_PARTITION, -1, -1, [])
    log = world.broker.partitions.get(topic, 0)
    assert log is None or log.end_offset == 0


def test_consumers_learn_the_leader(world, peer, other):
    """At once, whatever `min_bytes` is; from version 16 with the hint; in a session too."""
    for version in (4, 10, 12, 15):
        assert fetched(peer, world, "theirs", version) == NOTHING
    for version in (16, 18):
        assert fetched(peer, world, "theirs", version) == (NOT_LEADER, OTHER, 0, END)
    fence(world)
    assert fetched(peer, world, "theirs", 16) == (NOT_LEADER, -1, 1, [])
    assert produced(peer, "theirs", 10) == (NOT_LEADER, -1, 1, [])


def test_consumers_may_read_from_a_follower(world, peer, other):
    """KIP-392: from version 11 on, by the leader's epoch."""
    assert fetched(peer, world, "both", 8) == NOTHING
    for version in (11, 12, 18):
        assert fetched(peer, world, "both", version, 0, current_leader_epoch=0)[0] == 0
        assert fetched(peer, world, "both", version, current_leader_epoch=1)[0] == errors.UNKNOWN_LEADER_EPOCH


def test_this_broker_takes_appends_when_it_becomes_the_leader(world, peer, other):
    """The other broker is gone, and the fast path forgets that this broker was a follower."""
    for _ in range(2):
        assert produced(peer, "both", 9)[0] == NOT_LEADER
    fence(world)
    for _ in range(2):
        assert produced(peer, "both", 9)[0] == 0
    assert fetched(peer, world, "both", 16, current_leader_epoch=0) == (
        errors.FENCED_LEADER_EPOCH,
        world.broker.node_id,
        1,
        [(world.broker.node_id, "localhost", 9092, None)],
    )


def test_a_partition_without_a_leader_is_read_only_by_newer_consumers(world, peer):
    """Older ones do not know of followers. The test has records to read, which the fast path would serve. The fast path
    forgets the leader at each change."""
    controller, this = world.controller.metadata_log, world.broker.node_id
    world.create_topic("t")
    assert produced(peer, "t", 9)[0] == 0
    versions = (4, 5, 8, 10, 11, 12, 18)

    def codes(**asked):
        return [[fetched(peer, world, "t", version, **asked)[0] for version in versions] for _ in range(2)]

    assert codes() == codes(current_leader_epoch=0) == [[0] * 7] * 2
    controller.submit(events.FenceBroker(this, world.broker.image.brokers[this].epoch))
    assert codes() == [[NOT_LEADER] * 4 + [0] * 3] * 2
    # Before version 9 requests have no leader epoch.
    assert codes(current_leader_epoch=0) == [[NOT_LEADER] * 3 + [errors.FENCED_LEADER_EPOCH] * 4] * 2
    assert produced(peer, "t", 9)[0] == NOT_LEADER
    controller.submit(events.UnfenceBroker(this, world.broker.image.brokers[this].epoch))
    assert codes() == [[0] * 7] * 2
    assert produced(peer, "t", 9)[0] == 0


def test_the_loss_of_the_leader_ends_a_delayed_fetch(world, peer):
    """At once, as in Kafka. Consumers that may read from a follower go on waiting."""
    world.create_topic("t")
    waiting = {version: world.connect() for version in (8, 11)}
    for version, each in waiting.items():
        each.send(fetch("t", {0: 0}, max_wait_ms=60_000), version)
    world.turn()
    this = world.broker.node_id
    world.controller.metadata_log.submit(events.FenceBroker(this, world.broker.image.brokers[this].epoch))
    world.turn()
    (answer,) = waiting[8].answers
    assert answer.responses[0].partitions[0].error_code == NOT_LEADER
    assert not waiting[11].answers


def test_other_apis_need_the_leader_too(world, peer, other):
    """ListOffsets, OffsetForLeaderEpoch, DeleteRecords. DescribeProducers and debugging consumers may ask any
    replica."""
    for topic, described in (("theirs", NOT_LEADER), ("both", 0)):
        request = messages.ListOffsetsRequest
        for replica_id, epoch, code in (
            (-1, -1, NOT_LEADER),
            (-2, -1, described),
            (-1, 1, errors.UNKNOWN_LEADER_EPOCH if topic == "both" else NOT_LEADER),
        ):
            row = request.ListOffsetsPartition(partition_index=0, timestamp=-1, current_leader_epoch=epoch)
            answer = peer.ask(
                request(replica_id=replica_id, topics=[request.ListOffsetsTopic(name=topic, partitions=[row])]), 4
            )
            assert answer.topics[0].partitions[0].error_code == code
        request = messages.OffsetForLeaderEpochRequest
        row = request.OffsetForLeaderPartition(partition=0, current_leader_epoch=-1, leader_epoch=0)
        answer = peer.ask(
            request(replica_id=-1, topics=[request.OffsetForLeaderTopic(topic=topic, partitions=[row])]), 4
        )
        assert answer.topics[0].partitions[0].error_code == NOT_LEADER
        request = messages.DeleteRecordsRequest
        row = request.DeleteRecordsPartition(partition_index=0, offset=0)
        answer = peer.ask(
            request(topics=[request.DeleteRecordsTopic(name=topic, partitions=[row])], timeout_ms=1000), 2
        )
        assert answer.topics[0].partitions[0].error_code == NOT_LEADER
        request = messages.DescribeProducersRequest
        answer = peer.ask(request(topics=[request.TopicRequest(name=topic, partition_indexes=[0])]), 0)
        assert answer.topics[0].partitions[0].error_code == described


def test_brokers_that_are_fenced_keep_their_address(world, peer, other):
    """DescribeCluster shows their own address, not that of this broker."""
    fence(world)
    answer = peer.ask(messages.DescribeClusterRequest(include_fenced_brokers=True), 2)
    assert {(row.broker_id, row.host, row.port, row.is_fenced) for row in answer.brokers} == {
        (world.broker.node_id, "localhost", 9092, False),
        (OTHER, "other", 9, True),
    }
