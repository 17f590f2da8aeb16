"""A confluent-kafka producer or consumer as a process, which prints its figures as JSON.

Arguments: `produce|consume PORT TOPIC RECORDS RECORD_BYTES`.
"""

from __future__ import annotations

import json
import sys
import time

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

CONSUME_AT_ONCE = 1000


def produce(bootstrap, topic, records, record_bytes):
    """Produces with a linger of 5 ms and 64 KB batches; returns the seconds until all records are acknowledged."""
    failed = []

    def delivered(error, _message):
        if error is not None:
            failed.append(error)

    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "linger.ms": 5,
            "batch.size": 65536,
            "queue.buffering.max.messages": 1_000_000,
            "queue.buffering.max.kbytes": 1 << 20,
            "on_delivery": delivered,
        }
    )
    value = b"x" * record_bytes
    begin = time.monotonic()
    for _ in range(records):
        while True:
            try:
                producer.produce(topic, value)
                break
            except BufferError:
                producer.poll(0.01)
        producer.poll(0)
    producer.flush()
    seconds = time.monotonic() - begin
    if failed:
        raise KafkaException(failed[0])
    return seconds


def consume(bootstrap, topic, records):
    """Reads all partitions from the start without a group; returns the seconds from the first record on."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "bench", "enable.auto.commit": False})
    partitions = consumer.list_topics(topic).topics[topic].partitions
    consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
    begin = None
    seen = 0
    while seen < records:
        messages = consumer.consume(CONSUME_AT_ONCE, timeout=30)
        if not messages:
            raise KafkaException(KafkaError._TIMED_OUT)
        begin = begin or time.monotonic()
        for message in messages:
            if message.error():
                raise KafkaException(message.error())
        seen += len(messages)
    seconds = time.monotonic() - begin
    consumer.close()
    return seconds


def main(direction, port, topic, records, record_bytes):
    """Runs one direction and prints `records_per_s`."""
    bootstrap, records = f"localhost:{port}", int(records)
    if direction == "produce":
        seconds = produce(bootstrap, topic, records, int(record_bytes))
    else:
        seconds = consume(bootstrap, topic, records)
    print(json.dumps({"records_per_s": records / seconds}))


if __name__ == "__main__":
    main(*sys.argv[1:])
