"""Clients that work with transactions, each as its own process, which may be killed at any time and started again.

`python -m compat_tests.exactly_once.clients KIND NAME TRANSACTIONAL_ID BOOTSTRAP DIRECTORY` runs one until SIGTERM. Its
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
from kafka import KafkaProducer

from compat_tests.exactly_once.history import Record, events_of, words_of

PARTITIONS = 3
# Before the names of topics and groups, where several tests share a broker.
PREFIX = os.environ.get("CLIENTS_PREFIX", "")
# How long writers rest between transactions, where others need the machine too.
REST_SECONDS = float(os.environ.get("CLIENTS_REST", "0"))
WRITTEN, COPIED = f"{PREFIX}written", f"{PREFIX}copied"
COPIERS = f"{PREFIX}copiers"
CALL_SECONDS = 60.0
# kafka-python may wait for ever when the coordinator refuses a connection; one that it waits for is back sooner.
END_SECONDS = 20.0
OFFSETS_SECONDS = 4.0
RECONNECT = {"reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 200, "retry.backoff.ms": 20, "log_level": 0}
BATCH_RECORDS, BATCH_SECONDS = 200, 0.1
ABORTED_IN_FIVE, LARGEST_TRANSACTION = 1, 30
# So a partition gets a megabyte, the smallest segment, within seconds.
PADDING = " " + 1000 * "."


class Client:
    """What all clients have: a name, a transactional id, the broker's address, and the file of events.

    Two clients with one transactional id fence each other.
    """

    def __init__(self, name: str, transactional_id: str, bootstrap: str, directory: Path) -> None:
        self.name, self.transactional_id, self.bootstrap = name, transactional_id, bootstrap
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
        """Append the event, with the machine's clock, which is the same in all processes."""
        self.file.write(json.dumps({**event, "at": time.monotonic()}) + "\n")

    def next_transaction(self) -> int:
        """The number behind that of the client's last transaction, in this process or an earlier one."""
        return 1 + max((event["begin"] for event in self.before if "begin" in event), default=-1)

    def own(self, claim: Callable[[], object]) -> None:
        """Become the owner of the transactional id; what it left open before is aborted."""
        begun = time.monotonic()
        claim()
        self.tell(owns=self.transactional_id, claimed=begun)

    def producer(self) -> Producer:
        """A transactional producer of librdkafka that owns the transactional id."""
        settings = {"transactional.id": self.transactional_id, "transaction.timeout.ms": 60_000, "linger.ms": 2}
        connecting = {"bootstrap.servers": self.bootstrap, "client.id": self.name, **RECONNECT}
        producer = Producer({**connecting, **settings})
        self.own(lambda: until_done(lambda: producer.init_transactions(CALL_SECONDS)))
        return producer

    def consumer(self, group: str, **settings: object) -> Consumer:
        fixed = {"group.id": group, "isolation.level": "read_committed", "enable.auto.commit": False}
        connecting = {"bootstrap.servers": self.bootstrap, "client.id": self.name, **RECONNECT}
        return Consumer({**connecting, **fixed, **settings})

    def begin(self, transaction: int) -> list[Record]:
        """The records of a new transaction, which the client tells before it sends them."""
        chance = random.Random()
        count = chance.randint(1, LARGEST_TRANSACTION)
        records = [Record(chance.randrange(PARTITIONS), self.name, transaction, number) for number in range(count)]
        self.tell(begin=transaction, sent=[(record.partition, record.number) for record in records])
        return records

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


def or_end_the_process(seconds: float, call: Callable[[], object]) -> None:
    """Call it. If it takes longer, the process writes where it is and ends, and a new one goes on."""
    faulthandler.dump_traceback_later(seconds, exit=True)
    try:
        call()
    finally:
        faulthandler.cancel_dump_traceback_later()


def write(client: Client) -> None:
    """Transactions of some records in all partitions; some of them are aborted when their records are in the log."""
    chance = random.Random()
    transaction = client.next_transaction() - 1
    producer = client.producer()
    while not client.stopped:
        time.sleep(REST_SECONDS)
        transaction += 1
        records = client.begin(transaction)
        producer.begin_transaction()
        for record in records:
            producer.produce(WRITTEN, record.value + PADDING, partition=record.partition)
        producer.flush(chance.choice([0, CALL_SECONDS]))
        time.sleep(chance.choice([0, 0, 0, 0.01, 0.1]))
        if chance.randrange(5) < ABORTED_IN_FIVE:
            until_done(lambda: producer.abort_transaction(CALL_SECONDS))
            client.tell(aborted=transaction)
            continue
        client.tell(committing=transaction)
        done = client.end(producer, lambda: None)
        client.tell(**{"committed" if done else "aborted": transaction})


def write_with_kafka_python(client: Client) -> None:
    """The same with another client, which ends at the first error. It sets no time limit for the end of a transaction,
    and once waited for it for ever."""
    chance = random.Random()
    transaction = client.next_transaction() - 1
    producer = KafkaProducer(
        bootstrap_servers=client.bootstrap, client_id=client.name, transactional_id=client.transactional_id,
        max_block_ms=int(CALL_SECONDS * 1000), linger_ms=2, reconnect_backoff_ms=20, reconnect_backoff_max_ms=200,
    )  # fmt: skip
    client.own(producer.init_transactions)
    while not client.stopped:
        time.sleep(REST_SECONDS)
        transaction += 1
        records = client.begin(transaction)
        producer.begin_transaction()
        for record in records:
            producer.send(WRITTEN, (record.value + PADDING).encode(), partition=record.partition)
        if chance.randrange(5) < ABORTED_IN_FIVE:
            producer.flush(CALL_SECONDS)
            or_end_the_process(END_SECONDS, producer.abort_transaction)
            client.tell(aborted=transaction)
            continue
        client.tell(committing=transaction)
        or_end_the_process(END_SECONDS, producer.commit_transaction)
        client.tell(committed=transaction)


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
        first, end = ends_of(batch)
        if client.end(producer, lambda: copy_batch(producer, consumer, batch)):
            client.tell(copied=[(partition, first[partition], end[partition]) for partition in first])
        else:
            rewind(consumer, first)
        batch.clear()
    consumer.close()


def copy_batch(producer: Producer, consumer: Consumer, batch: list[Message]) -> None:
    """Everything of one transaction but its end."""
    for message in batch:
        producer.produce(COPIED, message.value(), partition=message.partition())
    member = consumer.consumer_group_metadata()
    # After a restart of the broker librdkafka sometimes stays in this call for ever, and sends nothing.
    or_end_the_process(
        2 * OFFSETS_SECONDS,
        lambda: producer.send_offsets_to_transaction(offsets_of(batch), member, OFFSETS_SECONDS),
    )


def ends_of(batch: list[Message]) -> tuple[dict[int, int], dict[int, int]]:
    """The first and the end offset of the batch in each of its partitions."""
    first = {message.partition(): message.offset() for message in reversed(batch)}
    return first, {message.partition(): message.offset() + 1 for message in batch}


def offsets_of(batch: list[Message]) -> list[TopicPartition]:
    """What a group commits that has done the batch."""
    return [TopicPartition(WRITTEN, partition, end) for partition, end in ends_of(batch)[1].items()]


def rewind(consumer: Consumer, first: dict[int, int]) -> None:
    """Read again from those offsets, as far as the partitions are still the consumer's."""
    owned = {each.partition for each in consumer.assignment()}
    for partition, offset in first.items():
        if partition in owned:
            consumer.seek(TopicPartition(WRITTEN, partition, offset))


def read(client: Client) -> None:
    """Everything that a read_committed consumer is given, from where the client was before."""
    positions = dict.fromkeys(range(PARTITIONS), 0)
    for event in client.before:
        for partition, offset, _ in event.get("reads", ()):
            positions[partition] = offset + 1
    consumer = client.consumer("-", **{"auto.offset.reset": "error"})
    consumer.assign([TopicPartition(WRITTEN, *position) for position in positions.items()])
    while not client.stopped:
        messages = [message for message in consumer.consume(500, 0.1) if message.error() is None]
        if messages:
            client.tell(reads=[(each.partition(), each.offset(), words_of(each.value())) for each in messages])


KINDS = {"writer": write, "python": write_with_kafka_python, "copier": copy, "reader": read}


def main(kinds: dict[str, Callable[[Client], None]]) -> None:
    """Run the client that the command line names."""
    kind, name, transactional_id, bootstrap, directory = sys.argv[1:]
    faulthandler.enable()
    try:
        kinds[kind](Client(name, transactional_id, bootstrap, Path(directory)))
    except BaseException:
        traceback.print_exc()
        # The end of a process that librdkafka's threads still use may wait for ever.
        os._exit(1)


if __name__ == "__main__":
    main(KINDS)
