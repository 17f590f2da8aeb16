"""Clients that work with transactions, each as its own process, which may be killed at any time and started again.

`python -m compat_tests.exactly_once.clients writer|copier|reader NAME BOOTSTRAP DIRECTORY` runs one until SIGTERM. Its
events are in `DIRECTORY/NAME`. A client that cannot go on ends with an error, and goes on when it is started again.
"""

from __future__ import annotations

import faulthandler
import json
import os
import random
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition

from compat_tests.exactly_once.history import Record, events_of

PARTITIONS = 3
WRITTEN, COPIED = "written", "copied"
COPIERS = "copiers"
CALL_SECONDS = 60.0
OFFSETS_SECONDS = 4.0
RECONNECT = {"reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 200, "retry.backoff.ms": 20, "log_level": 0}
BATCH_RECORDS, BATCH_SECONDS = 200, 0.1
ABORTED_IN_FIVE, LARGEST_TRANSACTION = 1, 30


class Client:
    """What all clients have: a name, the broker's address, and the file of events."""

    def __init__(self, name: str, bootstrap: str, directory: Path) -> None:
        self.name, self.bootstrap = name, bootstrap
        path = directory / name
        self.before = events_of(path)
        self.file = path.open("a", buffering=1)
        if path.stat().st_size:
            # A line that a kill cut off must not become the beginning of the next one.
            os.truncate(path, path.read_bytes().rfind(b"\n") + 1)
        self.stopped = False
        signal.signal(signal.SIGTERM, self.stop)

    def stop(self, *_: object) -> None:
        self.stopped = True

    def tell(self, **event: object) -> None:
        self.file.write(json.dumps(event) + "\n")

    def producer(self) -> Producer:
        """A transactional producer under the client's name; what it left open before is aborted."""
        settings = {"transactional.id": self.name, "transaction.timeout.ms": 60_000, "linger.ms": 2}
        producer = Producer({"bootstrap.servers": self.bootstrap, **settings, **RECONNECT})
        until_done(lambda: producer.init_transactions(CALL_SECONDS))
        return producer

    def consumer(self, group: str, **settings: object) -> Consumer:
        fixed = {"group.id": group, "isolation.level": "read_committed", "enable.auto.commit": False}
        return Consumer({"bootstrap.servers": self.bootstrap, **fixed, **settings, **RECONNECT})

    def end(self, producer: Producer, work: Callable[[], None]) -> bool:
        """Do the work and commit; whether that was done. A transaction that must be aborted is aborted."""
        try:
            work()
            until_done(lambda: producer.commit_transaction(CALL_SECONDS))
        except KafkaException as error:
            self.tell(error=str(error))
            if not error.args[0].txn_requires_abort():
                raise
            until_done(lambda: producer.abort_transaction(CALL_SECONDS))
            return False
        return True


def until_done(call: Callable[[], object]) -> None:
    """Repeat the call while the client says that it may be repeated."""
    deadline = time.monotonic() + CALL_SECONDS
    while True:
        try:
            call()
            return
        except KafkaException as error:
            if not error.args[0].retriable() or time.monotonic() > deadline:
                raise


def write(client: Client) -> None:
    """Transactions of some records in all partitions; some of them are aborted when their records are in the log."""
    chance = random.Random()
    transaction = max((event["begin"] for event in client.before if "begin" in event), default=-1)
    producer = client.producer()
    while not client.stopped:
        transaction += 1
        count = chance.randint(1, LARGEST_TRANSACTION)
        records = [Record(chance.randrange(PARTITIONS), client.name, transaction, number) for number in range(count)]
        client.tell(begin=transaction, sent=[(record.partition, record.number) for record in records])
        producer.begin_transaction()
        for record in records:
            producer.produce(WRITTEN, record.value, partition=record.partition)
        producer.flush(chance.choice([0, CALL_SECONDS]))
        time.sleep(chance.choice([0, 0, 0, 0.01, 0.1]))
        if chance.randrange(5) < ABORTED_IN_FIVE:
            until_done(lambda: producer.abort_transaction(CALL_SECONDS))
            client.tell(aborted=transaction)
            continue
        client.tell(committing=transaction)
        done = client.end(producer, lambda: None)
        client.tell(**{"committed" if done else "aborted": transaction})


def copy(client: Client) -> None:
    """A member of a group that copies each record into the same partition, with its offset, in one transaction."""
    producer = client.producer()
    batch: list[Message] = []
    consumer = client.consumer(
        COPIERS, **{"auto.offset.reset": "earliest", "session.timeout.ms": 3000, "heartbeat.interval.ms": 300}
    )
    # Who loses its partitions must not commit what it read from them.
    consumer.subscribe([WRITTEN], on_revoke=lambda *_: batch.clear(), on_lost=lambda *_: batch.clear())
    while not client.stopped:
        deadline = time.monotonic() + BATCH_SECONDS
        while len(batch) < BATCH_RECORDS and time.monotonic() < deadline:
            message = consumer.poll(BATCH_SECONDS / 10)
            if message is not None and message.error() is None:
                batch.append(message)
        if not batch:
            continue
        producer.begin_transaction()
        if not client.end(producer, lambda: copy_batch(producer, consumer, batch)):
            rewind(consumer, batch)
        batch.clear()
    consumer.close()


def copy_batch(producer: Producer, consumer: Consumer, batch: list[Message]) -> None:
    """Everything of one transaction but its end."""
    for message in batch:
        producer.produce(COPIED, message.value(), partition=message.partition())
    ends = {message.partition(): message.offset() + 1 for message in batch}
    offsets = [TopicPartition(WRITTEN, partition, end) for partition, end in ends.items()]
    member = consumer.consumer_group_metadata()
    # After a restart of the broker librdkafka sometimes stays in this call for ever, and sends nothing. Then the
    # process ends here, and a new one goes on.
    faulthandler.dump_traceback_later(2 * OFFSETS_SECONDS, exit=True)
    try:
        producer.send_offsets_to_transaction(offsets, member, OFFSETS_SECONDS)
    finally:
        faulthandler.cancel_dump_traceback_later()


def rewind(consumer: Consumer, batch: list[Message]) -> None:
    """Read the batch again, as far as its partitions are still the consumer's."""
    owned = {each.partition for each in consumer.assignment()}
    first = {message.partition(): message.offset() for message in reversed(batch)}
    for partition, offset in first.items():
        if partition in owned:
            consumer.seek(TopicPartition(WRITTEN, partition, offset))


def read(client: Client) -> None:
    """Everything that a read_committed consumer is given, from where the client was before."""
    positions = dict.fromkeys(range(PARTITIONS), 0)
    for event in client.before:
        for partition, offset, _ in event["reads"]:
            positions[partition] = offset + 1
    consumer = client.consumer("-", **{"auto.offset.reset": "error"})
    consumer.assign([TopicPartition(WRITTEN, *position) for position in positions.items()])
    while not client.stopped:
        messages = [message for message in consumer.consume(500, 0.1) if message.error() is None]
        if messages:
            client.tell(reads=[(each.partition(), each.offset(), each.value().decode()) for each in messages])


if __name__ == "__main__":
    kind, name, bootstrap, directory = sys.argv[1:]
    faulthandler.enable()
    try:
        {"writer": write, "copier": copy, "reader": read}[kind](Client(name, bootstrap, Path(directory)))
    except BaseException:
        traceback.print_exc()
        # The end of a process that librdkafka's threads still use may wait for ever.
        os._exit(1)
