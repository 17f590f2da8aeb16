"""DescribeQuorum on a quorum of one voter."""

from __future__ import annotations

import pytest

from pykafkad import errors
from pykafkad.wire import messages

Request = messages.DescribeQuorumRequest


def topic(name, *partitions):
    return Request.TopicData(
        topic_name=name, partitions=[Request.PartitionData(partition_index=index) for index in partitions]
    )


@pytest.mark.parametrize("version", range(3))
def test_the_leader_and_its_offsets_are_described(world, peer, version):
    world.create_topic("a")
    answer = peer.ask(Request(topics=[topic("__cluster_metadata", 0)]), version)
    node = world.broker
    ((row,),) = [each.partitions for each in answer.topics]
    end_offset = node.image.offset + 1
    assert (answer.error_code, row.error_code, row.partition_index) == (0, 0, 0)
    assert (row.leader_id, row.leader_epoch, row.high_watermark) == (
        node.node_id,
        node.controller.metadata_log.quorum.epoch,
        end_offset,
    )
    (voter,) = row.current_voters
    assert (voter.replica_id, voter.log_end_offset) == (node.node_id, end_offset)
    assert voter.last_fetch_timestamp == voter.last_caught_up_timestamp == (node.runtime.now_ms if version else -1)
    assert bytes(voter.replica_directory_id) == (node.directory_id if version == 2 else bytes(16))
    assert [each.node_id for each in answer.nodes] == ([node.node_id] if version == 2 else [])
    assert row.observers == []


@pytest.mark.parametrize(
    "asked",
    [
        [topic("__cluster_metadata", 1)],
        [topic("__cluster_metadata", 0, 0)],
        [topic("__cluster_metadata", 0), topic("x", 0)],
        [topic("x", 0, 1)],
        [topic("__cluster_metadata")],
        [topic("__cluster_metadata", 0), topic("x")],
        [],
    ],
)
def test_any_other_partition_is_unknown_in_each_row(world, peer, asked):
    world.create_topic("x")
    answer = peer.ask(Request(topics=asked), 2)
    rows = [
        (each.topic_name, part.partition_index, part.error_code) for each in answer.topics for part in each.partitions
    ]
    unknown = errors.UNKNOWN_TOPIC_OR_PARTITION
    assert rows == [(each.topic_name, part.partition_index, unknown) for each in asked for part in each.partitions]
    assert (answer.error_code, answer.nodes) == (0, [])
