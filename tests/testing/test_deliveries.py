"""What became of records between producer and consumer: nothing where all is well, and each fault by name."""

from __future__ import annotations

import pytest

from pykafkad.testing import Broker
from pykafkad.testing.records import answered_batches
from pykafkad.testing.waits import until
from pykafkad.testing.wire_client import WireClient
from pykafkad.wire import messages
from pykafkad.wire.batch import build_batch
from tests.testing.test_faults import LONG


class Client:
    """A producer and consumer that sends again what was refused or not answered, as one without idempotence does."""

    def __init__(self, broker, client_id):
        host, port = broker.bootstrap.split(":")
        self.wire = WireClient(host, int(port), LONG, client_id=client_id)

    def send(self, *values, partition=0, acks=-1, topic="orders", **fields):
        """One batch, once. The error code; None without an answer."""
        request = messages.ProduceRequest
        batch = bytes(build_batch([(b"k" + value, value, [], 1) for value in values], **fields))
        data = request.PartitionProduceData(index=partition, records=batch)
        rows = [request.TopicProduceData(name=topic, partition_data=[data])]
        try:
            answer = self.wire.ask("Produce", acks=acks, timeout_ms=1000, topic_data=rows)
        except OSError:
            return None
        return answer.responses[0].partition_responses[0].error_code

    def fetch(self, offset=0, partition=0, topic="orders", **fields):
        request = messages.FetchRequest
        asked = request.FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=100_000)
        rows = [request.FetchTopic(topic=topic, partitions=[asked])]
        return self.wire.ask("Fetch", topics=rows, max_wait_ms=0, **fields)

    def join(self, group):
        """Something that says of which group the client is."""
        request = messages.OffsetCommitRequest
        row = request.OffsetCommitRequestPartition(partition_index=0, committed_offset=0, committed_metadata="")
        topics = [request.OffsetCommitRequestTopic(name="orders", partitions=[row])]
        self.wire.ask("OffsetCommit", group_id=group, member_id="m", generation_id_or_member_epoch=1, topics=topics)


@pytest.fixture
def traced(broker):
    with broker.trace() as running:
        running.clear()
        yield running


@pytest.fixture
def clients(broker, traced):
    """A producer and a consumer."""
    found = Client(broker, "producer-1"), Client(broker, "consumer-1")
    broker.create_topic("one")
    yield found
    for each in found:
        each.wire.close()


def all_hold(broker, topic="orders", read=None, **fields):
    broker.assert_none_lost(topic, read, **fields)
    broker.assert_none_doubled(topic, read, **fields)
    broker.assert_order_kept(topic, read, **fields)


def test_all_is_well(broker, clients):
    """In several partitions, several batches, with what was there before the trace."""
    producer, consumer = clients
    for partition in (1, 2):
        assert producer.send(b"a%d" % partition, b"b%d" % partition, partition=partition) == 0
        assert producer.send(b"c%d" % partition, partition=partition) == 0
        consumer.fetch(partition=partition)
    all_hold(broker)
    found = broker.deliveries("orders")
    assert [each.value for each in found.acknowledged if each.partition == 2] == [b"a2", b"b2", b"c2"]
    assert {each.client_id for each in found.read} == {"consumer-1"}


def test_records_that_no_consumer_can_read_are_lost(broker, clients):
    """The second batch comes with a wrong checksum, and the consumer goes on behind it."""
    producer, consumer = clients
    producer.send(b"a", topic="one")
    consumer.fetch(topic="one")
    producer.send(b"b", b"c", topic="one")
    with broker.faults.corrupt_records(topic="one"):
        consumer.fetch(1, topic="one")
    producer.send(b"d", topic="one")
    consumer.fetch(3, topic="one")
    with pytest.raises(AssertionError) as error:
        broker.assert_none_lost("one")
    assert str(error.value) == (
        "one: 2 of 4 acknowledged records were not read by client 'consumer-1': offset 1 of partition 0 with key "
        "b'kb', of client 'producer-1'; offset 2 of partition 0 with key b'kc', of client 'producer-1'"
    )
    broker.assert_none_doubled("one")
    broker.assert_order_kept("one")


def test_what_was_not_acknowledged_cannot_be_lost(broker, clients):
    """It was refused, or the answer never came and nobody sent it again."""
    producer, consumer = clients
    with broker.faults.answer("Produce", "NOT_LEADER_OR_FOLLOWER"):
        assert producer.send(b"a", topic="one") == 6
    with broker.faults.close_before("Produce"):
        assert producer.send(b"b", topic="one") is None
    producer.send(b"d", topic="one", acks=1)
    consumer.fetch(topic="one")
    all_hold(broker, "one")


def test_a_batch_that_is_sent_again_after_a_lost_answer_is_doubled(broker, clients):
    producer, consumer = clients
    with broker.faults.close_after("Produce", topic="one"):
        assert producer.send(b"a", topic="one") is None
    assert producer.send(b"a", topic="one") == 0
    consumer.fetch(topic="one")
    broker.assert_none_lost("one")
    with pytest.raises(AssertionError, match=r"^one: 1 records that client 'consumer-1' has read are second copies"):
        broker.assert_none_doubled("one")


def test_records_that_are_meant_to_be_the_same_are_not_doubled(broker, clients):
    producer, consumer = clients
    assert [producer.send(b"a", topic="one") for _ in range(3)] == [0, 0, 0]
    consumer.fetch(topic="one")
    all_hold(broker, "one")


def test_records_that_are_read_again_are_doubled(broker, clients):
    """Two batches were read, and a restarted consumer begins with the second again. A fetch from within a batch gets
    all of it, of which the client keeps what it asked for."""
    producer, consumer = clients
    producer.send(b"a", b"b", topic="one")
    producer.send(b"c", b"d", topic="one")
    consumer.fetch(topic="one")
    all_hold(broker, "one")
    consumer.fetch(3, topic="one")
    with pytest.raises(AssertionError) as error:
        broker.assert_none_doubled("one")
    assert str(error.value) == (
        "one: 1 records were read again by client 'consumer-1': offset 3 of partition 0 with key b'kd', of client "
        "'consumer-1'"
    )
    broker.assert_order_kept("one")


def test_a_later_batch_that_overtakes_an_earlier_one_breaks_the_order(broker, clients):
    """As with several requests in flight and retries, without idempotence."""
    producer, consumer = clients
    with broker.faults.answer("Produce", "NOT_LEADER_OR_FOLLOWER", topic="one"):
        assert producer.send(b"a", topic="one") == 6
    assert producer.send(b"b", topic="one") == 0
    assert producer.send(b"a", topic="one") == 0
    consumer.fetch(topic="one")
    broker.assert_none_lost("one")
    broker.assert_none_doubled("one")
    with pytest.raises(AssertionError) as error:
        broker.assert_order_kept("one")
    assert str(error.value) == (
        "one: 1 records of client 'producer-1' stand in partition 0 before ones that it had sent earlier: offset 0 of "
        "partition 0 with key b'kb', of client 'producer-1'"
    )


def test_each_group_reads_all_of_it(broker, clients):
    producer, consumer = clients
    other = Client(broker, "consumer-2")
    consumer.join("billing")
    other.join("shipping")
    producer.send(b"a", topic="one")
    producer.send(b"b", topic="one")
    consumer.fetch(topic="one")
    all_hold(broker, "one")
    other.fetch(1, topic="one")
    with pytest.raises(AssertionError, match="1 of 2 acknowledged records were not read by group shipping: offset 0 "):
        broker.assert_none_lost("one")
    all_hold(broker, "one", group="billing")
    broker.assert_none_doubled("one")
    with pytest.raises(AssertionError, match="one: group audit has read a record, 2 were acknowledged"):
        broker.assert_none_lost("one", group="audit")
    other.join("billing")
    with pytest.raises(ValueError, match="client 'consumer-2' is in the groups billing, shipping"):
        broker.assert_none_lost("one")
    other.wire.close()


def test_what_the_program_has_read(broker, clients):
    """As values, as offsets, as records."""
    producer, _ = clients
    producer.send(b"a", b"b", b"c", topic="one")
    for read in ([b"a", "b", b"c"], [(0, 0), (0, 1), (0, 2)], broker.records("one")):
        all_hold(broker, "one", read)
    with pytest.raises(AssertionError, match="1 of 3 acknowledged records were not read by the test's program: offset"):
        broker.assert_none_lost("one", [b"a", b"c", b"d"])
    for read in ([b"a", b"b", b"b"], [(0, 0), (0, 1), (0, 1)]):
        with pytest.raises(AssertionError, match="1 records were read again by the test's program: offset 1 of"):
            broker.assert_none_doubled("one", read)
    for read in ([b"b", b"a", b"c"], [(0, 1), (0, 0), (0, 2)]):
        with pytest.raises(AssertionError, match="1 records were read by the test's program after ones that stand beh"):
            broker.assert_order_kept("one", read)
    with pytest.raises(TypeError, match=r"read: 7 is no value \(bytes or str\), no pair of partition and offset"):
        broker.assert_none_lost("one", [7])
    with pytest.raises(ValueError, match="group and read are both there"):
        broker.assert_none_lost("one", [b"a"], group="billing")


def transaction(client, values, committed):
    """One that ends at once."""
    asked = client.wire
    # It has the coordinator's topic made.
    asked.ask("FindCoordinator", key_type=1, coordinator_keys=["t"])
    made = until(
        lambda: asked.ask("InitProducerId", transactional_id="t", transaction_timeout_ms=10_000),
        lambda answer: answer.error_code == 0,
        "producer id",
        LONG,
    )
    who = {"producer_id": made.producer_id, "producer_epoch": made.producer_epoch}
    row = messages.AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name="one", partitions=[0])
    fields = {"transactional_id": "t", **who, "topics": [row]}
    asked.ask("AddPartitionsToTxn", **{f"v3_and_below_{name}": value for name, value in fields.items()})
    request = messages.ProduceRequest
    batch = build_batch([(None, each, [], 1) for each in values], **who, base_sequence=0, is_transactional=True)
    data = request.PartitionProduceData(index=0, records=bytes(batch))
    rows = [request.TopicProduceData(name="one", partition_data=[data])]
    answer = asked.ask("Produce", acks=-1, timeout_ms=1000, transactional_id="t", topic_data=rows)
    assert answer.responses[0].partition_responses[0].error_code == 0
    assert asked.ask("EndTxn", transactional_id="t", committed=committed, **who).error_code == 0


def test_an_aborted_transaction_loses_nothing(broker, clients, monkeypatch):
    """And a consumer of committed records does not read it."""
    from pykafkad.testing import wire_client

    for api, version in (("InitProducerId", 3), ("AddPartitionsToTxn", 3), ("EndTxn", 3)):
        monkeypatch.setitem(wire_client.VERSIONS, api, version)
    producer, consumer = clients
    transaction(producer, [b"a"], committed=False)
    transaction(producer, [b"b"], committed=True)
    broker.wait_for_transaction("t")
    position = 0
    while position < 4:
        # One answer may end before the end.
        row = consumer.fetch(position, topic="one", isolation_level=1).responses[0].partitions[0]
        position = [header.end_offset for header, _ in answered_batches(row)][-1]
    all_hold(broker, "one")
    found = broker.deliveries("one")
    assert [each.value for each in found.acknowledged] == [each.value for each in found.read] == [b"b"]


def test_an_idempotent_producer_may_be_told_twice(broker, clients, monkeypatch):
    """The broker knows the batch again, and it is there once."""
    from pykafkad.testing import wire_client

    monkeypatch.setitem(wire_client.VERSIONS, "InitProducerId", 3)
    producer, consumer = clients
    made = producer.wire.ask("InitProducerId", transactional_id=None)
    who = {"producer_id": made.producer_id, "producer_epoch": made.producer_epoch}
    assert [producer.send(b"a", b"b", topic="one", **who, base_sequence=0) for _ in range(2)] == [0, 0]
    consumer.fetch(topic="one")
    all_hold(broker, "one")
    assert [each.offset for each in broker.deliveries("one").acknowledged] == [0, 1]


def test_what_tells_nothing_is_an_error(broker, clients, traced):
    """A check that nothing could fail would be a trap."""
    producer, consumer = clients
    consumer.fetch()
    for check in (broker.assert_none_lost, broker.assert_order_kept):
        with pytest.raises(ValueError, match="orders: the trace has no acknowledged record; did it begin before the p"):
            check("orders")
    producer.send(b"x", partition=2)
    producer.send(b"x", topic="one")
    with pytest.raises(AssertionError, match="one: nobody has read a record, 1 were acknowledged"):
        broker.assert_none_lost("one")
    with Broker() as other, pytest.raises(RuntimeError, match="nothing was recorded: call broker.trace"):
        other.assert_none_lost("orders")


def test_a_trace_that_is_not_whole_is_refused(broker, clients, traced, monkeypatch):
    from pykafkad.server import trace

    producer, consumer = clients
    producer.send(b"a" * 40_000, topic="one")
    with pytest.raises(
        ValueError, match=r"one: the trace has only a part of a Produce of client 'producer-1' of \d+ b"
    ):
        broker.assert_none_lost("one")
    with pytest.raises(ValueError, match="frame_bytes: 0 is no number from 1 to 16777216"):
        broker.trace(frame_bytes=0)
    traced.clear()
    with broker.trace(frame_bytes=100_000):
        producer.send(b"a" * 40_000, topic="one")
        consumer.fetch(1, topic="one")
        all_hold(broker, "one")
    broker._running._trace.frame_bytes = trace.FRAME_BYTES
    monkeypatch.setattr(trace, "EXCHANGES", 1)
    broker.trace().clear()
    for _ in range(3):
        producer.send(b"c", topic="one")
    with pytest.raises(ValueError, match="one: the trace has lost its oldest 2 requests"):
        broker.assert_none_lost("one")


def test_fetch_sessions_go_on_where_they_were(broker, clients):
    """Requests of a session name what has changed alone (KIP-227)."""
    producer, consumer = clients
    producer.send(b"a", b"b", topic="one")
    first = consumer.fetch(1, topic="one", session_epoch=0)
    assert first.session_id
    found = broker.deliveries("one")
    assert [each.value for each in found.read] == [b"b"]
    producer.send(b"c", topic="one")
    consumer.wire.ask("Fetch", topics=[], max_wait_ms=0, session_id=first.session_id, session_epoch=1)
    assert [each.offset for each in broker.deliveries("one").read] == [1, 1, 2]
    consumer.fetch(3, topic="one", session_id=first.session_id, session_epoch=2)
    producer.send(b"d", topic="one")
    consumer.wire.ask("Fetch", topics=[], max_wait_ms=0, session_id=first.session_id, session_epoch=3)
    assert [each.offset for each in broker.deliveries("one").read] == [1, 1, 2, 3]
