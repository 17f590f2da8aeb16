"""DescribeProducers: the producers that a partition remembers."""

from pykafkad import errors
from pykafkad.errors import StorageFailure
from pykafkad.wire import messages
from tests.handlers.requests import batch, produce

Request = messages.DescribeProducersRequest


def describe(peer, *rows):
    topics = [Request.TopicRequest(name=name, partition_indexes=indexes) for name, indexes in rows]
    return [row for topic in peer.ask(Request(topics=topics), 0).topics for row in topic.partitions]


def test_producers_have_all_fields_also_after_a_restart(world, peer):
    world.create_topic("t")
    peer.ask(produce("t", {0: batch(b"plain")}), 8)
    peer.ask(produce("t", {0: batch(b"a", b"b", producer_id=7, producer_epoch=2, base_sequence=0)}), 8)
    peer.ask(produce("t", {0: batch(b"c", producer_id=7, producer_epoch=2, base_sequence=2)}), 8)
    (row,) = describe(peer, ("t", [0]))
    (producer,) = row.active_producers
    assert (producer.producer_id, producer.producer_epoch, producer.last_sequence) == (7, 2, 2)
    assert producer.coordinator_epoch == -1 and producer.current_txn_start_offset == -1 and producer.last_timestamp > 0
    world.stop()
    assert describe(world.restart().connect(), ("t", [0]))[0].active_producers == row.active_producers


def test_each_partition_has_its_own_error(world, peer):
    world.create_topic("t")
    rows = describe(peer, ("t", [0, 1]), ("u", [0]), ("a b", [0]))
    assert [row.error_code for row in rows] == [
        errors.NONE,
        errors.UNKNOWN_TOPIC_OR_PARTITION,
        errors.UNKNOWN_TOPIC_OR_PARTITION,
        errors.INVALID_TOPIC_EXCEPTION,
    ]


def test_a_log_that_cannot_be_opened_is_a_storage_error(world, peer):
    world.create_topic("t")
    world.stop()
    world = world.restart()
    world.broker.partitions.get("t", 0).offline = StorageFailure("open", "t-0", "broken")
    assert describe(world.connect(), ("t", [0]))[0].error_code == errors.KAFKA_STORAGE_ERROR
