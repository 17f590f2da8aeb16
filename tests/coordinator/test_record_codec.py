"""The records of `__consumer_offsets` as bytes, and small functions."""

from __future__ import annotations

import pytest

from pykafkad.coordinator import record_codec
from pykafkad.coordinator.consumer_protocol import subscribed_topics
from pykafkad.coordinator.partitioning import java_hash, partition_for
from pykafkad.coordinator.producer_ids import ProducerIds
from pykafkad.coordinator.shard import GroupShard
from pykafkad.errors import ProtocolError
from tests.coordinator.world import World, as_batches, subscription


def test_every_record_survives_encoding():
    world = World()
    generation, (leader, _) = world.stable(2)
    world.commit({("t", 0): 1}, member_id=leader, generation=generation, metadata="é")
    world.commit({("t", 0): 1}, group="simple", retention_ms=5)
    world.delete_group("simple")
    for key, value in world.log:
        assert record_codec.encode(record_codec.decode(key, value)) == (key, value)


def test_the_bytes_of_a_commit_equal_kafkas():
    """The fields are those of Kafka's schemas: key type 1, and value version 4 with the topic id as tag 0."""
    world = World()
    world.commit({("t", 3): 9}, metadata="m")
    key, value = world.log[-1]
    assert key == b"\x00\x01" + b"\x00\x01g" + b"\x00\x01t" + b"\x00\x00\x00\x03"
    now = world.clock.now_ms().to_bytes(8, "big")
    assert value == (
        b"\x00\x04" + (9).to_bytes(8, "big") + b"\x00\x00\x00\x07" + b"\x02m" + now + b"\x01\x00\x10" + bytes(range(16))
    )


def test_records_of_other_group_protocols_are_ignored():
    assert record_codec.decode(b"\x00\x63\x00\x01g", b"\x00\x00") is None


def test_a_commit_of_a_very_old_cluster_is_decoded():
    record = record_codec.decode(
        b"\x00\x00\x00\x01g\x00\x01t\x00\x00\x00\x03", b"\x00\x00" + (9).to_bytes(8, "big") + b"\x00\x01m" + bytes(8)
    )
    assert (record.key.group, record.value.offset, record.value.metadata, record.value.leader_epoch) == (
        "g",
        9,
        "m",
        -1,
    )


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b"\x00\x00"),
        (b"", None),
        (b"\x00", None),
        (b"\x00\x01\x00\x05g", None),
        (b"\x00\x02\x00\x01g", b""),
        (b"\x00\x02\x00\x01g", b"\x00\x09"),
        (b"\x00\x02\x00\x01g", b"\x00\x03\x00"),
    ],
)
def test_bytes_that_are_not_a_record_are_refused(key, value):
    with pytest.raises(ProtocolError):
        record_codec.decode(key, value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", 0),
        ("a", 97),
        ("hello", 99162322),
        ("console-consumer-62322", 163073046),
        ("polygenelubricants", -(2**31)),
        ("Grüße", 69215351),
        ("😀", 1772899),
    ],
)
def test_the_hash_equals_javas(text, value):
    assert java_hash(text) == value


def test_the_smallest_hash_counts_as_zero():
    assert partition_for("polygenelubricants", 50) == 0
    assert partition_for("hello", 50) == 99162322 % 50


def test_a_negative_hash_counts_by_its_absolute_value():
    assert java_hash("billing") == -109829509
    assert partition_for("billing", 50) == 109829509 % 50
    assert partition_for("g-group", 1) == 0


@pytest.mark.parametrize(
    "blob",
    [
        b"",
        b"\x00\x00",
        b"\xff\xff\x00\x00\x00\x00\xff\xff\xff\xff",
        b"\x00\x00\x7f\xff\xff\xff",
        b"\x00\x00\x00\x00\x00\x01\x00\x05ab",
        b"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x09",
    ],
)
def test_bytes_that_are_not_a_subscription_give_none(blob):
    assert subscribed_topics(blob) is None


def test_a_subscription_of_any_version_is_decoded():
    assert subscribed_topics(subscription("a", "b")) == {"a", "b"}
    assert subscribed_topics(b"\x00\x63" + subscription("a")[2:]) == {"a"}


def test_each_producer_id_is_taken_once():
    ids = ProducerIds()
    assert ids.take() is None
    ids.refill(1000, 3)
    assert [ids.take() for _ in range(4)] == [1000, 1001, 1002, None]
    ids.refill(5000, 1)
    assert ids.take() == 5000
    with pytest.raises(ValueError, match="at least one"):
        ids.refill(0, 0)


def test_the_last_record_of_each_key_is_loaded():
    world = World()
    for offset in range(100):
        world.commit({("t", 0): offset})
    world.delete_group()
    world.commit({("t", 1): 5})
    shard = world.replayed()
    assert (shard.offsets.get("g", "t", 0), shard.offsets.get("g", "t", 1).offset) == (None, 5)
    assert shard.groups["g"].protocol_type is None


def test_a_log_with_an_unreadable_record_is_not_loaded():
    """Kafka does not serve such a partition either, because it could return old offsets."""
    world = World()
    world.commit({("t", 0): 1})
    with pytest.raises(ProtocolError):
        GroupShard(0, world.settings, world.random).load(as_batches([*world.log, (b"\x00\x01junk", b"junk")]))
