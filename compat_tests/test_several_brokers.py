"""Clients against three brokers of one process: every leader and coordinator is used, and each broker goes in turn."""

import threading
import time

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from kafka import KafkaConsumer, KafkaProducer

from pykafkad.testing import Broker

REPLICATED = {"default.replication.factor": 3, "min.insync.replicas": 2, "broker.session.timeout.ms": 1000}
PARTITIONS = 6
DEADLINE_SECONDS = 60


@pytest.fixture
def brokers():
    with Broker(brokers=3, settings=REPLICATED, topics={"t": PARTITIONS}) as brokers:
        yield brokers
        assert brokers._running._process.runtime.metrics.unexpected_errors == 0


def consumed(brokers, wanted, **options):
    """The values of a topic that a new group reads, until there are so many."""
    values = []
    config = {**brokers.client_config("confluent", group=f"group {time.monotonic_ns()}"), **options}
    consumer = Consumer(config)
    consumer.subscribe(["t"])
    until = time.monotonic() + DEADLINE_SECONDS
    while len(set(values)) < wanted:
        assert time.monotonic() < until, f"{len(set(values))} of {wanted} records"
        message = consumer.poll(0.5)
        if message is not None and not message.error():
            values.append(message.value())
    consumer.close()
    return values


def test_kafka_python_writes_to_and_reads_from_all_of_them(brokers):
    producer = KafkaProducer(**brokers.client_config("kafka-python"), acks="all")
    for number in range(60):
        producer.send("t", str(number).encode(), partition=number % PARTITIONS)
    producer.flush(DEADLINE_SECONDS)
    producer.close()
    consumer = KafkaConsumer("t", **brokers.client_config("kafka-python", group="readers"))
    # kafka-python loses the result of a join that new metadata causes while a short poll ends.
    assert consumer.partitions_for_topic("t")
    values = []
    until = time.monotonic() + DEADLINE_SECONDS
    while len(values) < 60:
        assert time.monotonic() < until
        for records in consumer.poll(500).values():
            values += [record.value for record in records]
    consumer.commit()
    consumer.close()
    assert sorted(map(int, values)) == list(range(60))
    assert sum(brokers.group("readers").offsets.values()) == 60


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_transactions_over_partitions_at_all_of_them(brokers, protocol):
    """With offsets of groups whose coordinators are wherever they are."""
    producer = Producer({**brokers.client_config("confluent"), "transactional.id": "mover"})
    producer.init_transactions(DEADLINE_SECONDS)
    for turn in range(4):
        producer.begin_transaction()
        for partition in range(PARTITIONS):
            producer.produce("t", f"{turn} {partition}", partition=partition)
        reader = Consumer({**brokers.client_config("confluent", group=f"g{turn}")})
        metadata = reader.consumer_group_metadata()
        producer.send_offsets_to_transaction([TopicPartition("t", 0, turn + 1)], metadata, DEADLINE_SECONDS)
        reader.close()
        if turn % 2:
            producer.abort_transaction(DEADLINE_SECONDS)
        else:
            producer.commit_transaction(DEADLINE_SECONDS)
    values = consumed(brokers, 2 * PARTITIONS, **{"isolation.level": "read_committed", "group.protocol": protocol})
    assert sorted(values) == sorted(f"{turn} {index}".encode() for turn in (0, 2) for index in range(PARTITIONS))
    assert [brokers.group(f"g{turn}").offsets for turn in range(4)] == [{("t", 0): 1}, {}, {("t", 0): 3}, {}]


@pytest.mark.parametrize("is_killed", [False, True], ids=["stopped", "killed"])
def test_nothing_acknowledged_is_lost_when_each_of_them_goes_in_turn(brokers, is_killed):
    """And nothing is written twice by an idempotent producer."""
    acknowledged, errors, ends = [], [], threading.Event()
    config = {**brokers.client_config("confluent"), "enable.idempotence": True, "linger.ms": 1}
    producer = Producer(config)

    def delivered(error, message):
        (acknowledged if error is None else errors).append(error or message.value())

    def produce():
        number = 0
        while not ends.is_set():
            producer.produce("t", str(number), partition=number % PARTITIONS, on_delivery=delivered)
            number += 1
            producer.poll(0)
            ends.wait(0.003)

    def wait_for(count):
        until = time.monotonic() + DEADLINE_SECONDS
        while len(acknowledged) < count:
            assert time.monotonic() < until and writer.is_alive()
            time.sleep(0.01)

    writer = threading.Thread(target=produce)
    writer.start()
    try:
        for node_id in (1, 2, 3):
            wait_for(len(acknowledged) + 30)
            (brokers.kill_broker if is_killed else brokers.stop_broker)(node_id)
            wait_for(len(acknowledged) + 30)
            brokers.start_broker(node_id)
            wait_in_sync(brokers)
    finally:
        ends.set()
        writer.join()
    assert producer.flush(DEADLINE_SECONDS) == 0 and not errors
    values = consumed(brokers, len(acknowledged))
    assert sorted(values) == sorted(acknowledged)


def wait_in_sync(brokers):
    """Until every partition has all its replicas again: before, one more may not go."""
    until = time.monotonic() + DEADLINE_SECONDS
    while True:
        rows = [row for topic in brokers._asked._metadata("t").topics for row in topic.partitions]
        if all(len(row.isr_nodes) == 3 for row in rows):
            return
        assert time.monotonic() < until
        time.sleep(0.05)
