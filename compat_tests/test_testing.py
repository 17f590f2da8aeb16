"""`pykafkad.testing` with real clients: what tests of programs do with it. It is about this broker alone."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from kafka import KafkaConsumer, KafkaProducer

from compat_tests.samples import wait_until
from pykafkad.testing import Broker

PROJECT = Path(__file__).resolve().parents[1]
GOES_ON_SECONDS = 0.02


@pytest.fixture(scope="module")
def shared() -> Iterator[Broker]:
    """One broker for this module."""
    with Broker(topics={"orders": 3}) as own:
        yield own
        # A bug of the broker's: logged with its traceback.
        assert own._running._process.runtime.metrics.unexpected_errors == 0


@pytest.fixture
def own(shared: Broker) -> Broker:
    """The same, as it was at its start."""
    shared.reset()
    return shared


def delivered(producer: Producer, topic: str, value: str, timeout: float = 20.0) -> KafkaError | None:
    """The error with which a record was delivered; None without one."""
    seen: list[KafkaError | None] = []
    producer.produce(topic, value, on_delivery=lambda error, _: seen.append(error))
    assert producer.flush(timeout) == 0
    return seen[0]


def read(consumer: Any, count: int, seconds: float = 30.0) -> list[bytes]:
    """So many values by a confluent-kafka consumer."""
    found: list[bytes] = []
    end = time.monotonic() + seconds
    while len(found) < count and time.monotonic() < end:
        message = consumer.poll(0.05)
        if message is not None and message.error() is None:
            found.append(message.value())
    return found


@pytest.mark.parametrize("own_process", [False, True], ids=["thread", "process"])
def test_each_client_reaches_it(own_process: bool) -> None:
    """With the settings that it is given, on a thread of this process and in a process of its own."""
    with Broker(topics={"orders": 1}, own_process=own_process) as own:
        assert delivered(Producer(own.client_config("confluent")), "orders", "a") is None
        with KafkaProducer(**own.client_config("kafka-python")) as producer:
            producer.send("orders", b"b").get(20)

        async def send() -> None:
            async with AIOKafkaProducer(**own.client_config("aiokafka")) as producer:
                await producer.send_and_wait("orders", b"c")

        asyncio.run(send())
        assert [each.value for each in own.records("orders")] == [b"a", b"b", b"c"]
        consumer = Consumer(own.client_config("confluent", group="confluent"))
        consumer.subscribe(["orders"])
        assert read(consumer, 3) == [b"a", b"b", b"c"]
        consumer.close()
        with KafkaConsumer("orders", **own.client_config("kafka-python", group="python")) as python:
            assert [next(python).value for _ in range(3)] == [b"a", b"b", b"c"]
        assert own.groups() == ["confluent", "python"]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_groups_are_awaited(own: Broker, protocol: str) -> None:
    """Members, their assignment, their lag, and their end, in both protocols."""
    own.produce("orders", *[f"{number}" for number in range(9)])
    settings = {"client.id": "one", "group.protocol": protocol, "enable.auto.commit": False}
    consumer = Consumer({**own.client_config("confluent", group="readers"), **settings})
    consumer.subscribe(["orders"])
    reading = threading.Thread(target=lambda: read(consumer, 9))
    reading.start()
    group = own.wait_for_assignment("readers", "orders")
    assert (group.type, [member.client_id for member in group.members]) == (protocol, ["one"])
    assert group.assigned == {("orders", index) for index in range(3)}
    assert own.wait_for_group("readers", members=1).state == "Stable"
    reading.join()
    consumer.commit(asynchronous=False)
    assert set(own.wait_for_lag("readers").lag.values()) == {0}
    consumer.close()
    assert own.wait_until_gone("readers", client_id="one").members == ()


def test_a_transaction_is_awaited(own: Broker) -> None:
    """And its records are seen as a reader of committed ones sees them."""
    producer = Producer({**own.client_config("confluent"), "transactional.id": "t"})
    producer.init_transactions()
    for value, end in (("aborted", producer.abort_transaction), ("kept", producer.commit_transaction)):
        producer.begin_transaction()
        producer.produce("orders", value)
        producer.flush()
        end()
    assert own.wait_for_transaction("t") in ("CompleteCommit", "Empty")
    assert sorted(each.value for each in own.records("orders")) == [b"aborted", b"kept"]
    assert [each.value for each in own.records("orders", committed_only=True)] == [b"kept"]


@pytest.mark.parametrize(
    ("kind", "parameter"),
    [
        ("answer", "NOT_LEADER_OR_FOLLOWER"),
        ("delay", 50),
        ("delay_answer", 50),
        ("close_before", None),
        ("close_after", None),
        ("cut_answer", 9),
    ],
)
def test_an_idempotent_producer_survives_a_fault(own: Broker, kind: str, parameter: object) -> None:
    """Each record is there once, whether or not the first attempt was written."""
    producer = Producer({**own.client_config("confluent"), "enable.idempotence": True, "retry.backoff.ms": 10})
    fault = own.faults.set(kind, "Produce", parameter, times=2)
    assert delivered(producer, "orders", "one") is None
    assert delivered(producer, "orders", "two") is None
    fault.wait(2)
    assert sorted(each.value for each in own.records("orders")) == [b"one", b"two"]


def test_a_producer_without_idempotence_doubles_a_record(own: Broker) -> None:
    """The bug that a lost answer shows in such a program."""
    producer = Producer({**own.client_config("confluent"), "enable.idempotence": False, "retry.backoff.ms": 10})
    own.faults.close_after("Produce")
    assert delivered(producer, "orders", "one") is None
    assert [each.value for each in own.records("orders")] == [b"one", b"one"]


def test_errors_that_are_final_reach_the_program(own: Broker) -> None:
    """As of a broker that means it."""
    producer = Producer(own.client_config("confluent"))
    own.faults.answer("Produce", "TOPIC_AUTHORIZATION_FAILED", topic="orders")
    error = delivered(producer, "orders", "one")
    assert error is not None and error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED


def test_a_consumer_goes_on_after_faults_on_what_it_asks(own: Broker) -> None:
    """Fetch, ListOffsets, JoinGroup, Heartbeat and OffsetCommit, each refused or lost once."""
    own.produce("orders", *"abcdef")
    for api, error in (
        ("FindCoordinator", "COORDINATOR_NOT_AVAILABLE"),
        ("JoinGroup", "COORDINATOR_LOAD_IN_PROGRESS"),
        ("Fetch", "NOT_LEADER_OR_FOLLOWER"),
        ("OffsetCommit", "COORDINATOR_LOAD_IN_PROGRESS"),
    ):
        own.faults.answer(api, error)
    own.faults.close_before("SyncGroup")
    config = {**own.client_config("confluent", group="readers"), "enable.auto.commit": False}
    consumer = Consumer(config)
    consumer.subscribe(["orders"])
    assert sorted(read(consumer, 6)) == [b"a", b"b", b"c", b"d", b"e", b"f"]
    try:
        consumer.commit(asynchronous=False)
    except KafkaException:
        consumer.commit(asynchronous=False)
    consumer.close()
    own.wait_for_lag("readers")
    assert [fault.count for fault in own.faults.every] == [1, 1, 1, 1, 1]


def test_kafka_python_meets_faults_too(own: Broker) -> None:
    """With fetch sessions, which it uses and librdkafka does not."""
    own.produce("orders", "a", "b", "c")
    config = own.client_config("kafka-python", group="python")
    with KafkaConsumer("orders", **config, consumer_timeout_ms=20_000) as consumer:
        assert sorted(next(consumer).value for _ in range(3)) == [b"a", b"b", b"c"]
        fault = own.faults.answer("Fetch", "NOT_LEADER_OR_FOLLOWER", topic="orders", times=2)
        # The first may come with a fetch that waits at the broker since before the fault.
        for value in ("d", "e"):
            own.produce("orders", value)
            assert next(consumer).value == value.encode()
        assert fault.count >= 1


def test_a_report_has_a_hint_where_a_mistake_is_known(own: Broker) -> None:
    """A consumer that starts at the latest offset, and a transaction that is not ended."""
    own.produce("orders", "before")
    consumer = Consumer({**own.client_config("confluent", group="readers"), "auto.offset.reset": "latest"})
    consumer.subscribe(["orders"])
    reading = threading.Thread(target=lambda: read(consumer, 1, 2))
    reading.start()
    own.wait_for_assignment("readers", "orders")
    producer = Producer({**own.client_config("confluent"), "transactional.id": "t"})
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce("orders", "x", partition=1)
    producer.flush()
    told = own.report()
    producer.abort_transaction()
    reading.join()
    consumer.close()
    assert "hint: group readers has committed nothing of orders-0, orders-1, which hold records" in told
    assert "hint: a transaction is open in orders-1; who reads committed records waits at offset 0" in told
    assert "hint: a transaction" not in own.report()


@pytest.mark.parametrize("is_killed", [False, True], ids=["stopped", "killed"])
def test_clients_go_on_after_a_restart(own: Broker, is_killed: bool) -> None:
    """A producer sends, and a group reads on from what it has committed."""
    producer = Producer(own.client_config("confluent"))
    settings = {"enable.auto.commit": False, "reconnect.backoff.ms": 10, "reconnect.backoff.max.ms": 50}
    consumer = Consumer({**own.client_config("confluent", group="readers"), **settings})
    consumer.subscribe(["orders"])
    assert delivered(producer, "orders", "before") is None
    assert read(consumer, 1) == [b"before"]
    consumer.commit(asynchronous=False)
    own.restart(is_killed=is_killed)
    assert delivered(producer, "orders", "after") is None
    assert read(consumer, 1) == [b"after"]
    consumer.close()
    again = Consumer(own.client_config("confluent", group="readers"))
    again.subscribe(["orders"])
    assert read(again, 1) == [b"after"]
    again.close()


def test_a_coroutine_waits_in_a_thread(own: Broker) -> None:
    """While clients on its loop go on."""

    async def use() -> list[bytes]:
        consumer = AIOKafkaConsumer("orders", **own.client_config("aiokafka", group="readers"))
        async with consumer, AIOKafkaProducer(**own.client_config("aiokafka")) as producer:
            await asyncio.to_thread(own.wait_for_assignment, "readers", "orders")
            fault = own.faults.answer("Produce", "NOT_LEADER_OR_FOLLOWER", topic="orders")
            await producer.send_and_wait("orders", b"a")
            await asyncio.to_thread(fault.wait)
            return [(await consumer.getone()).value]

    assert asyncio.run(use()) == [b"a"]


def test_resets_beside_busy_clients_break_nothing(own: Broker) -> None:
    """Producers, also transactional ones, and members of groups, in mid-work; afterwards a fresh client works."""
    ended = threading.Event()

    def transact(number: int) -> None:
        while not ended.is_set():
            producer = Producer({**own.client_config("confluent"), "transactional.id": f"t{number}"})
            try:
                producer.init_transactions(5)
                while not ended.is_set():
                    producer.begin_transaction()
                    producer.produce("orders", "x")
                    producer.commit_transaction(5)
            except KafkaException:
                continue

    def consume(protocol: str) -> None:
        config = {**own.client_config("confluent", group=protocol), "group.protocol": protocol}
        consumer = Consumer(config)
        consumer.subscribe(["orders"])
        while not ended.is_set():
            consumer.poll(0.01)
        consumer.close()

    threads = [threading.Thread(target=transact, args=(number,)) for number in range(2)]
    threads += [threading.Thread(target=consume, args=(protocol,)) for protocol in ("classic", "consumer")]
    for thread in threads:
        thread.start()
    try:
        for _ in range(20):
            time.sleep(0.05)
            own.reset()
    finally:
        ended.set()
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive()
    own.reset()
    assert delivered(Producer(own.client_config("confluent")), "orders", "fresh") is None
    assert [each.value for each in own.records("orders")] == [b"fresh"]


def test_clients_go_on_after_a_reset(own: Broker) -> None:
    """On the connections that they have: an idempotent producer, and a consumer in a group."""
    errors: list[KafkaError] = []
    producer = Producer({**own.client_config("confluent"), "error_cb": errors.append})
    consumer = Consumer({**own.client_config("confluent", group="readers"), "error_cb": errors.append})
    consumer.subscribe(["orders"])
    assert delivered(producer, "orders", "before") is None
    assert read(consumer, 1) == [b"before"]
    own.reset()
    assert delivered(producer, "orders", "after") is None
    assert read(consumer, 1) == [b"after"]
    consumer.close()
    assert [error for error in errors if error.code() == KafkaError._ALL_BROKERS_DOWN] == []


@pytest.mark.parametrize("way", ["reset", "rewind of a topic", "rewind"])
@pytest.mark.parametrize("client", ["confluent", "kafka-python", "aiokafka"])
def test_producers_go_on_within_20_ms(own: Broker, client: str, way: str) -> None:
    """On the connections that they have, after the reset or a way back: the quickest of some counts, since the machine
    may have other work."""
    own.produce("orders", "first")
    name = f"{client} {way}".replace(" ", "-")
    own.save(name)
    topic = "orders" if way == "rewind of a topic" else None
    go_back = own.reset if way == "reset" else lambda: own.rewind(name, topic)

    def connections() -> set[str]:
        return {each.peer for each in own._running._process.broker.socket_server.connections()}

    others = connections()

    def timed(deliver: Callable[[], object]) -> float:
        deliver()
        own_connections, seconds = connections() - others, []
        while len(seconds) < 5 or (len(seconds) < 40 and min(seconds) > GOES_ON_SECONDS):
            go_back()
            began = time.monotonic()
            deliver()
            seconds.append(time.monotonic() - began)
        assert own_connections and connections() >= own_connections
        return min(seconds)

    async def timed_aiokafka() -> float:
        async with AIOKafkaProducer(**own.client_config("aiokafka")) as producer:
            loop = asyncio.get_running_loop()

            def deliver() -> None:
                asyncio.run_coroutine_threadsafe(producer.send_and_wait("orders", b"x"), loop).result(20)

            return await asyncio.to_thread(timed, deliver)

    if client == "confluent":
        producer = Producer(own.client_config(client))
        quickest = timed(lambda: delivered(producer, "orders", "x"))
    elif client == "kafka-python":
        with KafkaProducer(**own.client_config(client)) as python_producer:
            quickest = timed(lambda: python_producer.send("orders", b"x").get(20))
    else:
        quickest = asyncio.run(timed_aiokafka())
    assert quickest <= GOES_ON_SECONDS


def test_everybody_goes_on_after_the_way_back_of_everything(own: Broker) -> None:
    """On the connections that they have: no client hears that its brokers are down."""
    own.save("everything")
    heard: list[Any] = []
    producer = Producer({**own.client_config("confluent"), "error_cb": heard.append})
    with KafkaProducer(**own.client_config("kafka-python")) as python_producer:
        for _ in range(2):
            assert delivered(producer, "orders", "a") is None
            python_producer.send("orders", b"b").get(20)
            own.rewind("everything")
        assert own.records("orders") == []
        assert delivered(producer, "orders", "c") is None
        python_producer.send("orders", b"d").get(20)
    assert sorted(each.value for each in own.records("orders")) == [b"c", b"d"] and heard == []


def test_ten_clients_and_a_hundred_topics_are_reset(own: Broker) -> None:
    """And served again at once."""
    producers = [Producer(own.client_config("confluent")) for _ in range(10)]
    for number in range(100):
        own.create_topic(f"topic-{number}")
    for number, producer in enumerate(producers):
        assert delivered(producer, f"topic-{number}", "x") is None
    own.reset()
    assert own.topics() == {"orders": 3}
    for producer in producers:
        assert delivered(producer, "orders", "y") is None


def _send_from_child(bootstrap: str) -> None:
    assert delivered(Producer({"bootstrap.servers": bootstrap}), "orders", "child") is None


def test_a_forked_process_uses_the_parents_broker(own: Broker) -> None:
    """As multiprocessing does it on Linux."""
    child = multiprocessing.get_context("fork").Process(target=_send_from_child, args=(own.bootstrap,))
    child.start()
    child.join(60)
    assert child.exitcode == 0
    assert [each.value for each in own.records("orders")] == [b"child"]
    assert own.is_running


PARALLEL = """
import pytest
from confluent_kafka import Producer

@pytest.mark.parametrize("number", range(8))
def test_it(kafka, kafka_topic, number):
    producer = Producer(kafka.client_config("confluent"))
    producer.produce(kafka_topic, "x")
    assert producer.flush(30) == 0
    assert len(kafka.records(kafka_topic)) == 1
"""


def test_workers_of_xdist_have_brokers_of_their_own(tmp_path: Path) -> None:
    """With `-n 2`, and nobody's port is taken."""
    (tmp_path / "test_use.py").write_text(PARALLEL)
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider"]
    command += ["-p", "xdist", "-p", "pykafkad.pytest_plugin"]
    ran = subprocess.run(
        command,
        cwd=tmp_path,
        env={"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(PROJECT), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert "8 passed" in ran.stdout, ran.stdout + ran.stderr


def processor_seconds(process_id: int) -> float:
    """What a process and its threads have taken."""
    fields = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_an_idle_broker_takes_no_processor_time() -> None:
    """With a client that waits for records, as most of a test's time."""
    with Broker(topics={"orders": 1}, own_process=True) as own:
        consumer = Consumer(own.client_config("confluent", group="readers"))
        consumer.subscribe(["orders"])
        reading = threading.Thread(target=lambda: read(consumer, 1, 100))
        reading.start()
        try:
            own.wait_for_assignment("readers", "orders")
            process_id = own._running._process.pid
            taken = [processor_seconds(process_id)]
            for _ in range(3):
                time.sleep(1)
                taken.append(processor_seconds(process_id))
        finally:
            own.produce("orders", "the end")
            reading.join()
        consumer.close()
        # The first second may have the rest of the group's beginning.
        assert min(after - before for before, after in pairwise(taken)) <= 0.03


def test_a_coordinator_is_killed_in_a_rebalance() -> None:
    """Another broker takes the group over; both members get their shares, and no record is missing."""
    settings = {"offsets.topic.replication.factor": 3, "offsets.topic.num.partitions": 1}
    with Broker(brokers=3, topics={"orders": 4}, settings=settings) as own:
        config = {**own.client_config("confluent", group="readers"), "reconnect.backoff.max.ms": 100}
        first, second = Consumer(config), Consumer(config)
        first.subscribe(["orders"])
        seen: list[bytes] = []
        ended = threading.Event()

        def follow(consumer: Any) -> None:
            while not ended.is_set():
                message = consumer.poll(0.05)
                if message is not None and message.error() is None:
                    seen.append(message.value())

        threads = [threading.Thread(target=follow, args=(each,)) for each in (first, second)]
        threads[0].start()
        try:
            own.wait_for_assignment("readers", "orders")
            found = own._asked.ask("FindCoordinator", key_type=0, coordinator_keys=["readers"])
            coordinator = found.coordinators[0].node_id
            # The first member hears of the second with its next heartbeat: until then the rebalance waits.
            second.subscribe(["orders"])
            second.poll(0.2)
            own.kill_broker(coordinator)
            threads[1].start()
            own.start_broker(coordinator)
            group = own.wait_for_group("readers", members=2, timeout=60)
            assert {len(member.assigned) for member in group.members} == {2}
            own.produce("orders", *[(str(number), str(number)) for number in range(20)])
            wait_until(lambda: len(set(seen)) == 20, "every record is read")
        finally:
            ended.set()
            for thread in threads:
                if thread.ident is not None:
                    thread.join()
        first.close()
        second.close()
        assert set(seen) == {str(number).encode() for number in range(20)}
