"""A snapshot takes the place of an image: every kind of content, one way and back."""

from __future__ import annotations

import pytest

from pykafkad.errors import KafkaError
from pykafkad.metadata import image_replacement, record_codec, snapshots
from pykafkad.metadata.image import Image
from pykafkad.wire import messages

TOPICS = {name: name.encode() * 16 for name in "abc"}


def image_of(*values):
    image = Image()
    for value in values:
        image.apply(record_codec.record(value), epoch=3)
    image.take_delta()
    return image


def topic(name, *leaders):
    yield messages.TopicRecord(name=name, topic_id=TOPICS[name])
    for index, leader in enumerate(leaders):
        yield messages.PartitionRecord(
            partition_id=index, topic_id=TOPICS[name], replicas=[1, 2], isr=[1, 2], leader=leader, leader_epoch=leader
        )


def content_of(image):
    writing = snapshots.Writing(image, 0, 0)
    data = b"".join(map(bytes, writing.pieces()))
    writing.close()
    return data


def plain(image):
    return sorted(repr(each.value) for each in snapshots.read(content_of(image)))


def config(kind, name, key, value):
    return messages.ConfigRecord(resource_type=kind, resource_name=name, name=key, value=value)


def acl(number, name):
    return messages.AccessControlEntryRecord(
        id=bytes([number]) * 16, resource_type=2, resource_name=name, pattern_type=3, principal="User:a", host="*",
        operation=3, permission_type=3,
    )  # fmt: skip


def quota(user, value):
    entity = [messages.ClientQuotaRecord.EntityData(entity_type="user", entity_name=user)]
    return messages.ClientQuotaRecord(entity=entity, key="producer_byte_rate", value=value)


OLD = image_of(
    messages.FeatureLevelRecord(name="metadata.version", feature_level=29),
    messages.FeatureLevelRecord(name="group.version", feature_level=1),
    messages.RegisterBrokerRecord(broker_id=1, broker_epoch=5, fenced=False),
    messages.RegisterBrokerRecord(broker_id=2, broker_epoch=6, fenced=True),
    messages.RegisterControllerRecord(controller_id=8, incarnation_id=b"8" * 16),
    *topic("a", 1, 1),
    *topic("b", 1),
    config(2, "b", "retention.ms", "1"),
    config(4, "", "log.retention.ms", "1"),
    acl(1, "a"),
    acl(2, "b"),
    quota("u", 1.0),
    quota("v", 2.0),
    messages.UserScramCredentialRecord(
        name="u", mechanism=1, salt=b"s", stored_key=b"k", server_key=b"v", iterations=9
    ),
    messages.DelegationTokenRecord(token_id="t", owner="User:a"),
    messages.ProducerIdsRecord(next_producer_id=1000),
)
NEW = image_of(
    messages.FeatureLevelRecord(name="metadata.version", feature_level=30),
    messages.RegisterBrokerRecord(broker_id=2, broker_epoch=6, fenced=False),
    messages.RegisterBrokerRecord(broker_id=3, broker_epoch=9, fenced=False),
    messages.RegisterControllerRecord(controller_id=8, incarnation_id=b"9" * 16),
    *topic("a", 1, 2, 2),
    *topic("c", 3),
    config(4, "", "log.retention.ms", "2"),
    config(2, "c", "retention.ms", "3"),
    acl(2, "b"),
    acl(3, "c"),
    quota("v", 3.0),
    messages.UserScramCredentialRecord(
        name="w", mechanism=2, salt=b"s", stored_key=b"k", server_key=b"v", iterations=9
    ),
    messages.DelegationTokenRecord(token_id="u", owner="User:a"),
    messages.ProducerIdsRecord(next_producer_id=3000),
)


def test_everything_is_replaced_and_the_image_stays_the_object():
    image = image_of()
    for wanted in (OLD, NEW):
        image_replacement.replace(image, snapshots.read(content_of(wanted)), 50, 4)
        assert plain(image) == plain(wanted)
        assert (image.offset, image.epoch) == (49, 4)


def test_the_delta_has_what_is_different():
    image = image_of()
    image_replacement.replace(image, snapshots.read(content_of(OLD)), 50, 4)
    kept = image.topics["a"], image.partition("a", 0)
    image.take_delta()
    image_replacement.replace(image, snapshots.read(content_of(NEW)), 60, 5)
    delta = image.take_delta()
    assert [each.name for each in delta.topics_deleted] == ["b"]
    assert [each.name for each in delta.topics_created] == ["c"]
    assert list(delta.partitions) == [("a", 1), ("a", 2), ("c", 0)]
    assert set(delta.brokers) == {1, 2, 3}
    assert [(each.resource_name, added) for each, added in delta.acls] == [("a", False), ("c", True)]
    assert (image.topics["a"], image.partition("a", 0)) == kept
    image_replacement.replace(image, snapshots.read(content_of(NEW)), 61, 5)
    assert not image.take_delta()


def test_a_topic_that_came_again_is_another_topic():
    image = image_of(*topic("a", 1))
    again = image_of(messages.TopicRecord(name="a", topic_id=b"z" * 16))
    image_replacement.replace(image, snapshots.read(content_of(again)), 9, 1)
    delta = image.take_delta()
    assert [each.id for each in delta.topics_deleted] == [TOPICS["a"]]
    assert [each.id for each in delta.topics_created] == [b"z" * 16]
    assert image.topics["a"].id == b"z" * 16 and image.topic_by_id(TOPICS["a"]) is None


def test_a_snapshot_that_is_not_whole_changes_nothing():
    image = image_of(*topic("a", 1))
    before = plain(image)
    with pytest.raises(KafkaError):
        image_replacement.replace(image, snapshots.read(content_of(NEW)[:-80]), 9, 1)
    assert plain(image) == before and not image.take_delta()


def test_what_a_transaction_had_begun_is_forgotten():
    image = image_of(messages.BeginTransactionRecord(), *topic("b", 1))
    image_replacement.replace(image, snapshots.read(content_of(NEW)), 9, 1)
    assert image.transaction is None and plain(image) == plain(NEW)
