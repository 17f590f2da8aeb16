"""Bugs of programs that write."""

from __future__ import annotations

from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition

from compat_tests.bugs.case import VALUES, Case, Run, all_written, in_order, none_lost
from pykafkad.testing import NotInTime


def no_delivery_reports(run: Run) -> None:
    """Takes what it has given to the client for written."""
    failed: list[bytes] = []
    producer = run.producer()

    def told(error: object, message: Any) -> None:
        if error is not None:
            failed.append(message.value())

    waiting: list[Any] = list(VALUES)
    while waiting:
        for value in waiting:
            producer.produce("out", value, on_delivery=told if run.is_mended else None)
        producer.flush(10)
        waiting, failed[:] = list(failed), []


def no_retries(run: Run) -> None:
    """Has the client send each record once."""
    producer = run.producer(**({} if run.is_mended else {"retries": 0}))
    for value in VALUES:
        producer.produce("out", value)
        producer.flush(10)


def no_idempotence(run: Run) -> None:
    """Lets the client send again what may be there already."""
    producer = run.producer(enable_idempotence=run.is_mended)
    for value in VALUES:
        producer.produce("out", value)
        producer.flush(10)


def no_acknowledgement(run: Run) -> None:
    """Wants to be fast."""
    producer = run.producer(acks="all" if run.is_mended else 0)
    for value in VALUES:
        producer.produce("out", value)
        producer.flush(10)


def resends_at_the_end(run: Run) -> None:
    """Collects what has failed, and sends it when all others are there."""
    failed: list[bytes] = []
    producer = run.producer(**({"enable_idempotence": True} if run.is_mended else {"retries": 0}))

    def told(error: object, message: Any) -> None:
        if error is not None:
            failed.append(message.value())

    for value in VALUES:
        producer.produce("out", value, on_delivery=told)
        producer.flush(10)
    for value in failed:
        producer.produce("out", value)
    producer.flush(10)


def resends_all(run: Run) -> list[str]:
    """Sends all records of a round again where one of them has failed."""
    failed: list[bytes] = []
    producer = run.producer(retries=0)

    def told(error: object, message: Any) -> None:
        if error is not None:
            failed.append(message.value())

    waiting = {f"value {number}": number % 3 for number in range(6)}
    while waiting:
        for value, partition in waiting.items():
            producer.produce("wide", value, partition=partition, on_delivery=told)
        producer.flush(10)
        if not failed:
            break
        if run.is_mended:
            waiting = {value.decode(): waiting[value.decode()] for value in failed}
        failed.clear()
    return sorted(run.written("wide"))


def all_arrive(run: Run, _: object) -> None:
    """What nobody acknowledges may come a moment later."""
    try:
        run.broker.wait_for_records("out", len(VALUES), timeout=3)
    except NotInTime as late:
        raise AssertionError(str(late)) from None


PATIENCE = 20
"""So often the test lets a program try what never works."""


def retries_without_limit(run: Run) -> None:
    """Tries until it works, whatever the error."""
    outcome: list[Any] = []
    producer = run.producer()
    for _ in range(PATIENCE):
        outcome.clear()
        producer.produce("out", "value", on_delivery=lambda error, _: outcome.append(error))
        producer.flush(10)
        if outcome[0] is None or (run.is_mended and not outcome[0].retriable()):
            break


def asked_seldom(run: Run, _: object) -> None:
    assert sum(fault.count for fault in run.broker.faults.every) <= 3


def reads_uncommitted(run: Run) -> list[str]:
    """Writes in transactions, of which one is aborted; who reads does not know of transactions."""
    producer = run.producer(transactional_id="shop")
    producer.init_transactions(10)
    # librdkafka has to abort twice.
    for _ in range(4):
        producer.begin_transaction()
        try:
            for number, value in enumerate(VALUES):
                producer.produce("wide", value, partition=number % 2)
                # Each in a request of its own.
                producer.flush(10)
            producer.commit_transaction(10)
            break
        except KafkaException:
            producer.abort_transaction(10)
    level = "read_committed" if run.is_mended else "read_uncommitted"
    return read_all(run, run.consumer(isolation_level=level), "wide", 2)


def read_all(run: Run, consumer: Consumer, topic: str, partitions: int) -> list[str]:
    """All values up to the ends of the partitions."""
    places = [TopicPartition(topic, index, 0) for index in range(partitions)]
    ends = {each.partition: consumer.get_watermark_offsets(each, timeout=10)[1] for each in places}
    consumer.assign(places)
    found = []
    while any(each.offset < ends[each.partition] for each in consumer.position(places)):
        message = consumer.poll(0.1)
        if message is not None and message.error() is None:
            found.append(message.value().decode())
        if all(consumer.position([each])[0].offset >= ends[each.partition] for each in places):
            break
    consumer.close()
    return found


def all_once(_: Run, result: list[str]) -> None:
    assert sorted(result) == VALUES


CASES = (
    Case(
        "does not look at delivery reports",
        lambda broker: broker.faults.answer("Produce", "INVALID_RECORD", topic="out"),
        no_delivery_reports,
        none_lost,
    ),
    Case(
        "switches retries off",
        lambda broker: broker.faults.answer("Produce", "NOT_ENOUGH_REPLICAS", topic="out"),
        no_retries,
        none_lost,
    ),
    Case(
        "sends again without idempotence",
        lambda broker: broker.faults.close_after("Produce", topic="out"),
        no_idempotence,
        all_written,
    ),
    Case(
        "does not ask for acknowledgements",
        lambda broker: broker.faults.close_before("Produce", topic="out"),
        no_acknowledgement,
        all_arrive,
    ),
    Case(
        "sends failed records again after all others",
        lambda broker: broker.faults.answer("Produce", "NOT_ENOUGH_REPLICAS", topic="out"),
        resends_at_the_end,
        in_order,
    ),
    Case(
        "sends all again where one has failed",
        lambda broker: broker.faults.answer("Produce", "NOT_ENOUGH_REPLICAS", topic="wide", partition=1),
        resends_all,
        all_once,
    ),
    Case(
        "retries without limit what is never taken",
        lambda broker: broker.faults.answer("Produce", "INVALID_RECORD", topic="out", times=None),
        retries_without_limit,
        asked_seldom,
    ),
    Case(
        "reads what was never committed",
        lambda broker: broker.faults.answer("Produce", "INVALID_RECORD", topic="wide", partition=1),
        reads_uncommitted,
        all_once,
    ),
)
