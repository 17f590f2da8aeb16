"""Bugs of programs that read."""

from __future__ import annotations

import time
from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition

from compat_tests.bugs.case import VALUES, Case, Run, all_read, all_written, none_lost
from compat_tests.bugs.producers import read_all

LONGEST_SECONDS = 20.0
IN = TopicPartition("in", 0)


def seed(run: Run) -> None:
    run.broker.produce("in", *VALUES)


class Crash(Exception):
    """The program ends, and is started again."""


def restarted(run: Run, worker: Any, *arguments: Any) -> None:
    """A worker that is started again when it has crashed."""
    for _ in range(5):
        try:
            worker(run, *arguments)
            return
        except (Crash, KafkaException):
            continue


def messages(consumer: Consumer, *, errors_too: bool = False) -> Any:
    """What there is until the last value, or until it takes too long."""
    end = time.monotonic() + LONGEST_SECONDS
    while time.monotonic() < end:
        message = consumer.poll(0.1)
        if message is None or (message.error() is not None and not errors_too):
            continue
        yield message
        if message.error() is None and message.value().decode() == VALUES[-1]:
            return


def write(run: Run, value: bytes) -> None:
    """Raises Crash if it is not written."""
    outcome: list[Any] = []
    producer = run.producer()
    producer.produce("out", value, on_delivery=lambda error, _: outcome.append(error))
    producer.flush(10)
    if not outcome or outcome[0] is not None:
        raise Crash


def _commits_first(run: Run) -> None:
    consumer = run.consumer()
    consumer.subscribe(["in"])
    try:
        for message in messages(consumer):
            if not run.is_mended:
                consumer.commit(message, asynchronous=False)
            write(run, message.value())
            if run.is_mended:
                consumer.commit(message, asynchronous=False)
    finally:
        consumer.close()


def commits_first(run: Run) -> None:
    """Commits a record, and processes it then."""
    seed(run)
    restarted(run, _commits_first)


def _processes_again(run: Run, processed: dict[Any, str]) -> None:
    consumer = run.consumer()
    consumer.subscribe(["in"])
    try:
        for message in messages(consumer):
            place = message.partition(), message.offset()
            processed[place if run.is_mended else len(processed)] = message.value().decode()
            consumer.commit(message, asynchronous=False)
    finally:
        consumer.close()


def processes_again(run: Run) -> list[str]:
    """Does not know a record again that it has processed and not committed."""
    seed(run)
    processed: dict[Any, str] = {}
    restarted(run, _processes_again, processed)
    return list(processed.values())


def starts_at_the_end(run: Run) -> list[str]:
    """Goes on with what is new when its offset is out of range."""
    seed(run)
    run.broker.commit("workers", {("in", 0): 0})
    consumer = run.consumer(auto_offset_reset="earliest" if run.is_mended else "latest")
    consumer.subscribe(["in"])
    found: dict[int, str] = {}
    end = time.monotonic() + LONGEST_SECONDS
    while time.monotonic() < end and len(found) < len(VALUES):
        message = consumer.poll(0.1)
        if message is not None and message.error() is None:
            found[message.offset()] = message.value().decode()
        (place,) = consumer.position([IN])
        if place.offset >= len(VALUES) or (not found and is_at_end(run)):
            break
    consumer.close()
    return list(found.values())


def is_at_end(run: Run) -> bool:
    """Whether somebody has asked for the end of the topic, as the trace shows."""
    return any(
        row["timestamp"] == -1
        for each in run.broker.recorded().requests()
        if each["api"] == "ListOffsets" and each["is_answered"] and each["request"]
        for topic in each["request"]["topics"]
        for row in topic["partitions"]
    )


SILENCE_SECONDS = 3.0


def takes_silence_for_the_end(run: Run) -> list[str]:
    """Has read all when nothing comes for a while."""
    seed(run)
    consumer = run.consumer()
    if run.is_mended:
        return read_all(run, consumer, "in", 1)
    consumer.assign([TopicPartition("in", 0, 0)])
    found = []
    while (message := consumer.poll(SILENCE_SECONDS)) is not None:
        found.append(message.value().decode())
        if len(found) == len(VALUES):
            # The test needs no more silence to know.
            break
    consumer.close()
    return found


def forgets_to_commit_when_revoked(run: Run) -> list[str]:
    """Commits at the end, and not when its partitions are taken away in between."""
    assigned = run.seed_in_parts()
    consumer = run.consumer()
    found: list[str] = []

    def revoked(member: Consumer, _: object) -> None:
        # What is left at the end is committed there.
        if run.is_mended and len(found) < len(VALUES):
            member.commit(offsets=[TopicPartition("in", 0, len(found))], asynchronous=False)

    consumer.subscribe(["in"], on_assign=assigned, on_revoke=revoked)
    for message in messages(consumer):
        found.append(message.value().decode())
        if len(found) == 3:
            run.moment()
    consumer.commit(asynchronous=False)
    consumer.close()
    return found


def keeps_its_buffer(run: Run) -> list[str]:
    """Collects records to write them together, and keeps them when its partitions are taken away."""
    assigned = run.seed_in_parts()
    consumer = run.consumer()
    buffer: list[str] = []
    is_over = False

    def revoked(_: Consumer, __: object) -> None:
        if run.is_mended:
            buffer.clear()

    consumer.subscribe(["in"], on_assign=assigned, on_revoke=revoked)
    for message in messages(consumer):
        buffer.append(message.value().decode())
        if len(buffer) == 2 and not is_over:
            is_over = True
            run.moment()
    found = list(buffer)
    consumer.close()
    return found


def _swallows(run: Run, found: list[str]) -> None:
    consumer = run.consumer()
    (committed,) = consumer.committed([IN], timeout=10)
    if committed.offset >= len(VALUES):
        consumer.close()
        return
    consumer.subscribe(["in"])
    found += [message.value().decode() for message in messages(consumer)]
    for _ in range(3 if run.is_mended else 1):
        try:
            consumer.commit(asynchronous=False)
            break
        except KafkaException:
            pass
    consumer.close()


def swallows_failed_commits(run: Run) -> list[str]:
    """Commits, and goes on if that fails."""
    seed(run)
    found: list[str] = []
    for _ in range(2):
        _swallows(run, found)
    return found


def takes_errors_for_records(run: Run) -> list[str]:
    """Does not ask a message whether it is an error."""
    seed(run)
    consumer = run.consumer()
    consumer.assign([TopicPartition("in", 0, 0)])
    found = [message.value().decode() for message in messages(consumer, errors_too=not run.is_mended)]
    consumer.close()
    return found


def takes_an_error_for_an_empty_topic(run: Run) -> list[str]:
    """Asks for the ends first, and has nothing to do if that fails."""
    seed(run)
    for _ in range(5 if run.is_mended else 1):
        try:
            return read_all(run, run.consumer(), "in", 1)
        except KafkaException:
            continue
    return []


def _outside(run: Run) -> None:
    consumer = run.consumer()
    producer = run.producer(transactional_id="worker")
    producer.init_transactions(10)
    consumer.subscribe(["in"])
    try:
        for message in messages(consumer):
            producer.begin_transaction()
            producer.produce("out", message.value())
            places = [TopicPartition("in", 0, message.offset() + 1)]
            try:
                if run.is_mended:
                    producer.send_offsets_to_transaction(places, consumer.consumer_group_metadata(), 10)
                producer.commit_transaction(10)
            except KafkaException:
                producer.abort_transaction(10)
                raise
            if not run.is_mended:
                consumer.commit(offsets=places, asynchronous=False)
    finally:
        consumer.close()


def commits_outside_of_the_transaction(run: Run) -> None:
    """Writes in a transaction, and commits what it has read beside it."""
    seed(run)
    restarted(run, _outside)


CASES = (
    Case(
        "commits before it has processed",
        lambda broker: broker.faults.answer("Produce", "INVALID_RECORD", topic="out"),
        commits_first,
        none_lost,
    ),
    Case(
        "processes twice what it could not commit",
        lambda broker: broker.faults.answer("OffsetCommit", "GROUP_AUTHORIZATION_FAILED"),
        processes_again,
        all_read,
    ),
    Case(
        "starts at the end when its offset is out of range",
        lambda broker: broker.faults.answer("Fetch", "OFFSET_OUT_OF_RANGE", topic="in"),
        starts_at_the_end,
        all_read,
    ),
    Case(
        "takes silence for the end",
        lambda broker: broker.faults.delay("Fetch", 2 * SILENCE_SECONDS * 1000, topic="in"),
        takes_silence_for_the_end,
        all_read,
    ),
    Case(
        "forgets to commit when it is revoked",
        lambda broker: broker.faults.answer("Heartbeat", "REBALANCE_IN_PROGRESS"),
        forgets_to_commit_when_revoked,
        all_read,
        is_for_moment=True,
    ),
    Case(
        "keeps its buffer when it is revoked",
        lambda broker: broker.faults.answer("Heartbeat", "REBALANCE_IN_PROGRESS"),
        keeps_its_buffer,
        all_read,
        is_for_moment=True,
    ),
    Case(
        "swallows a failed commit",
        lambda broker: broker.faults.answer("OffsetCommit", "GROUP_AUTHORIZATION_FAILED"),
        swallows_failed_commits,
        all_read,
    ),
    Case(
        "takes errors for records",
        lambda broker: broker.faults.answer("Fetch", "TOPIC_AUTHORIZATION_FAILED", topic="in"),
        takes_errors_for_records,
        all_read,
    ),
    Case(
        "takes an error for an empty topic",
        lambda broker: broker.faults.answer("ListOffsets", "TOPIC_AUTHORIZATION_FAILED", topic="in", times=2),
        takes_an_error_for_an_empty_topic,
        all_read,
    ),
    Case(
        "commits outside of the transaction",
        lambda broker: broker.faults.answer(["OffsetCommit", "TxnOffsetCommit"], "GROUP_AUTHORIZATION_FAILED"),
        commits_outside_of_the_transaction,
        all_written,
    ),
)
