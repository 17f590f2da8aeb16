"""Clients that lose what they own while they sleep, each as its own process. Half of them do not care.

`python -m compat_tests.exactly_once.sleepers KIND NAME TRANSACTIONAL_ID BOOTSTRAP DIRECTORY` runs one, as in
`clients.py`. In the middle of its first transaction it stops itself with SIGSTOP, and goes on with SIGCONT.

* `writer`: another process takes its transactional id meanwhile. It learns that at its commit.
* `copier`: another member of its group gets its partitions meanwhile. It commits for the member that it was.
* `deaf`: a writer that takes every answer to its commit for a success.
* `nobody`: a copier that names only the group when it commits, no member, as all did before KIP-447. So no broker can
  know that it has lost its partitions.
"""

from __future__ import annotations

import os
import signal
import time
from functools import partial

from confluent_kafka import KafkaException

from compat_tests.exactly_once.clients import (
    CALL_SECONDS,
    COPIED,
    COPIERS,
    WRITTEN,
    Client,
    ends_of,
    main,
    offsets_of,
    until_done,
)

HELD_RECORDS = 20


def write(client: Client, is_deaf: bool) -> None:
    """One transaction, with a sleep before its end."""
    producer = client.producer()
    transaction = client.next_transaction()
    records = client.begin(transaction)
    producer.begin_transaction()
    for record in records:
        producer.produce(WRITTEN, record.value, partition=record.partition)
    producer.flush(CALL_SECONDS)
    sleep(client)
    client.tell(committing=transaction)
    try:
        until_done(lambda: producer.commit_transaction(CALL_SECONDS))
    except KafkaException as error:
        client.tell(error=str(error))
        if not is_deaf:
            client.tell(aborted=transaction)
            return
    client.tell(committed=transaction)


def copy(client: Client, is_nobody: bool) -> None:
    """One transaction with the first records of the partitions that it owns, with a sleep after they were read."""
    producer = client.producer()
    settings = {"auto.offset.reset": "earliest", "session.timeout.ms": 3000, "heartbeat.interval.ms": 300}
    consumer = client.consumer(COPIERS, **settings)
    consumer.subscribe([WRITTEN])
    batch = []
    while len(batch) < HELD_RECORDS and not client.stopped:
        message = consumer.poll(0.1)
        if message is not None and message.error() is None:
            batch.append(message)
    member = (client.consumer(COPIERS) if is_nobody else consumer).consumer_group_metadata()
    sleep(client)
    first, end = ends_of(batch)
    try:
        producer.begin_transaction()
        for message in batch:
            producer.produce(COPIED, message.value(), partition=message.partition())
        until_done(lambda: producer.send_offsets_to_transaction(offsets_of(batch), member, CALL_SECONDS))
        until_done(lambda: producer.commit_transaction(CALL_SECONDS))
    except KafkaException as error:
        client.tell(error=str(error))
        until_done(lambda: producer.abort_transaction(CALL_SECONDS))
    else:
        client.tell(copied=[(partition, first[partition], end[partition]) for partition in first])
    client.tell(done=True)
    # Its consumer is not closed: a member that leaves would have the others begin anew.
    while not client.stopped:
        time.sleep(0.05)


def sleep(client: Client) -> None:
    """Stop this whole process, the threads of its clients too."""
    client.tell(sleeps=True)
    os.kill(os.getpid(), signal.SIGSTOP)
    client.tell(wakes=True)


KINDS = {
    "writer": partial(write, is_deaf=False),
    "deaf": partial(write, is_deaf=True),
    "copier": partial(copy, is_nobody=False),
    "nobody": partial(copy, is_nobody=True),
}


if __name__ == "__main__":
    main(KINDS)
