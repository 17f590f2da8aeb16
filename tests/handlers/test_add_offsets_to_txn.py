"""AddOffsetsToTxn: the partition of a group's offsets joins the transaction."""

from __future__ import annotations

import pytest

from pykafkad.coordinator.partitioning import partition_for
from tests.handlers.transaction_requests import Producer


@pytest.fixture
def producer(world, peer):
    made = Producer(world, peer).create_topic().find()
    assert made.init() == "NONE"
    return made


@pytest.mark.parametrize("version", range(5))
def test_the_groups_partition_is_added(producer, version):
    assert producer.add_offsets("group", version) == "NONE"
    (topic,) = producer.describe().topics
    assert (topic.topic, topic.partitions) == ("__consumer_offsets", [partition_for("group", 3)])
    assert producer.end() == "NONE"
    assert producer.state() == "CompleteCommit"


@pytest.mark.parametrize("version", range(5))
def test_a_fenced_producer_is_told_as_its_version_knows(producer, version):
    old = producer.epoch
    producer.init()
    producer.epoch = old
    assert producer.add_offsets("g", version) == ("PRODUCER_FENCED" if version >= 2 else "INVALID_PRODUCER_EPOCH")


def test_an_unknown_or_empty_id(world, producer):
    other = Producer(world, producer.peer, "another").find()
    assert other.add_offsets() == "INVALID_PRODUCER_ID_MAPPING"
    other.transactional_id = ""
    assert other.add_offsets() == "INVALID_REQUEST"
