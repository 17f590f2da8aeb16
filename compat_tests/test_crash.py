"""SIGKILL under load: every acknowledged record is there after the restart, in order and once.

Only pykafkad. `--rounds N` sets the number of rounds of each test (default `ROUNDS`, 200 before a release),
`--crash-seed` the moments. Each test prints its seed and its actions, and a failure names both.
"""

from __future__ import annotations

import random
import secrets
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from compat_tests.brokers.pykafkad_process import PykafkadProcess
from compat_tests.history import History, Sent
from compat_tests.samples import wait_until

PARTITIONS = 4
TOPIC = "crash"
COMPACTED = "crash-compacted"
SHORT = "crash-short"
KEYS = 50
GROUP = "crash-readers"
ROUNDS = {"test_kill_under_load": 20, "test_kill_with_group_commit": 10, "test_kill_while_topics_come_and_go": 10}
CLEANING = {"log.cleaner.backoff.ms": "50", "log.retention.check.interval.ms": "100"}


class Load(threading.Thread):
    """One producer that sends numbered records to all partitions until it is stopped; it survives the broker's
    restarts.
    """

    def __init__(self, name: str, bootstrap: str, history: History, **config: object) -> None:
        super().__init__(name=name, daemon=True)
        self.history = history
        self.stopped = threading.Event()
        self.failures: list[str] = []
        retries = {
            "message.timeout.ms": 300_000,
            "retry.backoff.ms": 20,
            "reconnect.backoff.max.ms": 100,
            "reconnect.backoff.ms": 20,
        }
        self.producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 2, "log_level": 0, **retries, **config})

    def run(self) -> None:
        """Send about two thousand records a second."""
        number = 0
        while not self.stopped.is_set():
            for _ in range(20):
                record = Sent(number % PARTITIONS, self.name, number)
                self.history.send(record)
                self.producer.produce(
                    TOPIC,
                    b"%s %d" % (self.name.encode(), number),
                    partition=record.partition,
                    on_delivery=self.reporter(record),
                )
                number += 1
            self.producer.poll(0.01)
        self.producer.flush(300)

    def reporter(self, record: Sent) -> object:
        """The delivery callback for one record."""

        def report(error: object, message: object) -> None:
            if error is None:
                self.history.acknowledge(record, message.offset())  # type: ignore[attr-defined]
            else:
                self.failures.append(str(error))

        return report


def read_log(bootstrap: str) -> dict[int, list[tuple[int, Sent]]]:
    """Every record of the topic, by partition, in the order of reading."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "checker", "enable.auto.commit": False})
    ends = {}
    for partition in range(PARTITIONS):
        _, ends[partition] = consumer.get_watermark_offsets(TopicPartition(TOPIC, partition), timeout=100)
    consumer.assign([TopicPartition(TOPIC, partition, 0) for partition in range(PARTITIONS)])
    log: dict[int, list[tuple[int, Sent]]] = defaultdict(list)
    positions = dict.fromkeys(range(PARTITIONS), 0)
    deadline = time.monotonic() + 300
    while any(positions[partition] < end for partition, end in ends.items()):
        assert time.monotonic() < deadline, f"read up to {positions}, the end offsets are {ends}"
        for message in consumer.consume(5000, 0.5):
            assert message.error() is None, message.error()
            producer, number = message.value().decode().split()
            log[message.partition()].append((message.offset(), Sent(message.partition(), producer, int(number))))
            positions[message.partition()] = message.offset() + 1
    consumer.close()
    return log


@pytest.fixture
def own_broker(tmp_path: Path) -> Iterator[PykafkadProcess]:
    """A pykafkad for one test that will be killed; its segments are small, so that rolls happen during crashes."""
    broker = PykafkadProcess(tmp_path, {"log.segment.bytes": "1048576", "log.index.interval.bytes": "1024", **CLEANING})
    broker.start()
    yield broker
    broker.close()


@pytest.fixture
def committing_broker(tmp_path: Path) -> Iterator[PykafkadProcess]:
    """The same broker, but its answers wait for a sync."""
    settings = {
        "log.segment.bytes": "1048576",
        "log.index.interval.bytes": "1024",
        "pykafkad.group.commit": "true",
        **CLEANING,
    }
    broker = PykafkadProcess(tmp_path, settings)
    broker.start()
    yield broker
    broker.close()


@pytest.fixture
def rounds(pytestconfig: pytest.Config, request: pytest.FixtureRequest) -> int:
    """How many times the test kills its broker."""
    return pytestconfig.getoption("--rounds") or ROUNDS[request.node.originalname]


@pytest.fixture
def chance(pytestconfig: pytest.Config, request: pytest.FixtureRequest, rounds: int) -> Iterator[random.Random]:
    """Random moments from a seed; the end of the test prints the seed and the command that repeats it."""
    seed = pytestconfig.getoption("--crash-seed") or secrets.randbelow(1 << 32)
    yield random.Random(seed)
    failed = getattr(request.node, "crash_failed", True)
    line = f"{request.node.name}: seed {seed}, {rounds} rounds, {'failed' if failed else 'nothing found'}"
    line += f"; {request.node.crash_done}" if hasattr(request.node, "crash_done") else ""
    if failed:
        line += (
            f"; repeat with: pytest compat_tests/test_crash.py -k {request.node.originalname} --rounds {rounds} "
            f"--crash-seed {seed}"
        )
    capture = pytestconfig.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():
        print(f"\n{line}", flush=True)


def create_topic(bootstrap: str) -> None:
    """Create the topic that all loads write to."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].result(100)


def create_thinned_topics(bootstrap: str) -> None:
    """Create a topic that is compacted all the time, and a topic that loses old segments all the time."""
    compacted = {
        "cleanup.policy": "compact",
        "min.cleanable.dirty.ratio": "0.01",
        "segment.bytes": "1048576",
        "delete.retention.ms": "0",
    }
    short = {"retention.bytes": "2000000", "segment.bytes": "1048576", "file.delete.delay.ms": "100"}
    topics = [NewTopic(COMPACTED, 1, 1, config=compacted), NewTopic(SHORT, 1, 1, config=short)]
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.create_topics(topics).values():
        future.result(100)


class ThinnedLoad(threading.Thread):
    """Writes to the compacted and the short topic with repeated keys.

    `newest` is the last acknowledged number of each key.
    """

    def __init__(self, bootstrap: str) -> None:
        super().__init__(name="thinned", daemon=True)
        self.stopped = threading.Event()
        self.newest: dict[int, int] = {}
        self.ends = 0
        self.thinned = ""
        self.failures: list[str] = []
        retries = {
            "message.timeout.ms": 300_000,
            "retry.backoff.ms": 20,
            "reconnect.backoff.max.ms": 100,
            "reconnect.backoff.ms": 20,
        }
        self.producer = Producer(
            {"bootstrap.servers": bootstrap, "linger.ms": 2, "log_level": 0, "enable.idempotence": True, **retries}
        )

    def run(self) -> None:
        """Write about a megabyte a second to each topic."""
        number = 0
        while not self.stopped.is_set():
            for _ in range(10):
                value = b"%d" % number + b" " * 2000
                self.producer.produce(COMPACTED, value, b"%d" % (number % KEYS), on_delivery=self.acknowledged)
                self.producer.produce(SHORT, value, on_delivery=self.noted)
                number += 1
            self.producer.poll(0.02)
        self.producer.flush(300)

    def acknowledged(self, error: object, message: object) -> None:
        """Delivery callback of the compacted topic."""
        if error is not None:
            self.failures.append(str(error))
            return
        number = int(message.value())  # type: ignore[attr-defined]
        self.newest[number % KEYS] = max(number, self.newest.get(number % KEYS, -1))

    def noted(self, error: object, message: object) -> None:
        """Delivery callback of the short topic."""
        if error is not None:
            self.failures.append(str(error))
        else:
            self.ends = max(self.ends, message.offset() + 1)  # type: ignore[attr-defined]

    def check(self, bootstrap: str) -> None:
        """Every key's newest value is there, in order and once.

        The short topic ends where it was acknowledged, without a gap.
        """
        numbers = [int(value) for _, value in read_partition(bootstrap, COMPACTED)]
        assert numbers == sorted(set(numbers)), "the compacted topic is out of order, or holds a record twice"
        latest = {number % KEYS: number for number in numbers}
        lost = {key: (number, latest.get(key)) for key, number in self.newest.items() if latest.get(key, -1) < number}
        assert not lost, f"keys lost their newest value: {dict(list(lost.items())[:3])}"
        rows = read_partition(bootstrap, SHORT)
        offsets = [offset for offset, _ in rows]
        assert offsets == list(range(offsets[0], offsets[-1] + 1)) and offsets[-1] + 1 >= self.ends
        numbers = [int(value) for _, value in rows]
        self.thinned = (
            f"compaction left {len(latest)} keys in {len(set(numbers))} records of "
            f"{max(self.newest.values()) + 1}, retention {len(rows)}"
        )
        assert numbers == list(range(numbers[0], numbers[-1] + 1)), (
            "the short topic lost, duplicated or reordered records in its middle"
        )


def read_partition(bootstrap: str, topic: str) -> list[tuple[int, bytes]]:
    """(offset, value) of every record in partition 0."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "checker",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
        }
    )
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    rows: list[tuple[int, bytes]] = []
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        for message in consumer.consume(2000, 0.5):
            if message.error() is None:
                rows.append((message.offset(), message.value()))
            else:
                assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
                consumer.close()
                return rows
    raise AssertionError(f"{topic} was not read to its end")


@pytest.mark.timeout(3600)
def test_kill_under_load(
    own_broker: PykafkadProcess, chance: random.Random, rounds: int, request: pytest.FixtureRequest
) -> None:
    """SIGKILL at random moments, while segments roll, are compacted and deleted, and offsets are committed."""
    kill_under_load(own_broker, chance, rounds, request)


@pytest.mark.timeout(3600)
def test_kill_with_group_commit(
    committing_broker: PykafkadProcess, chance: random.Random, rounds: int, request: pytest.FixtureRequest
) -> None:
    """The same, with answers that wait for a sync."""
    kill_under_load(committing_broker, chance, rounds, request)


def kill_under_load(
    broker: PykafkadProcess, chance: random.Random, rounds: int, request: pytest.FixtureRequest
) -> None:
    """Run the rounds; then check the whole history, and once more after a clean restart."""
    create_topic(broker.bootstrap)
    create_thinned_topics(broker.bootstrap)
    history = History()
    loads = [
        Load("idempotent", broker.bootstrap, history, **{"enable.idempotence": True}),
        Load("compressed", broker.bootstrap, history, **{"enable.idempotence": True, "compression.type": "lz4"}),
        Load("plain", broker.bootstrap, history, **{"acks": "all", "max.in.flight": 1}),
    ]
    thinned = ThinnedLoad(broker.bootstrap)
    threads = [*loads, thinned]
    for load in threads:
        load.start()
    committed = 0
    for _ in range(rounds):
        time.sleep(0.3 + chance.random())
        committed = commit_more(broker.bootstrap, committed)
        broker.kill()
        broker.start()
    for load in threads:
        load.stopped.set()
    for load in threads:
        load.join(360)
        assert not load.is_alive() and not load.failures, (load.name, load.failures[:3])
    assert len(history.acknowledged) > 100 * rounds
    for restart in (lambda: None, broker.restart):
        restart()
        history.check(read_log(broker.bootstrap), {"idempotent", "compressed"})
        thinned.check(broker.bootstrap)
    assert "Traceback" not in broker.log_text()
    request.node.crash_failed = False
    request.node.crash_done = f"{len(history.acknowledged)} records acknowledged, {thinned.thinned}"


def commit_more(bootstrap: str, before: int) -> int:
    """Check that the last committed offset survived, and commit a higher one; it is acknowledged on return."""
    settings = {"bootstrap.servers": bootstrap, "group.id": GROUP, "enable.auto.commit": False, "log_level": 0}
    consumer = Consumer(settings)
    (found,) = consumer.committed([TopicPartition(TOPIC, 0)], timeout=100)
    assert max(found.offset, 0) == before, f"offset {before} was committed, but the group has {found.offset}"
    consumer.commit(offsets=[TopicPartition(TOPIC, 0, before + 1)], asynchronous=False)
    consumer.close()
    return before + 1


class Administration(threading.Thread):
    """Creates topics and deletes every third of them; remembers what the broker acknowledged."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__(name="administration", daemon=True)
        self.admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0, "reconnect.backoff.max.ms": 100})
        self.stopped = threading.Event()
        self.created: set[str] = set()
        self.deleted: set[str] = set()
        self.doubtful: set[str] = set()

    def run(self) -> None:
        """A topic's state is unknown from the request until its answer."""
        number = 0
        while not self.stopped.is_set():
            name = f"made-{number}"
            number += 1
            self.doubtful.add(name)
            if not self.done(self.admin.create_topics([NewTopic(name, 3, 1)], request_timeout=1)):
                continue
            self.created.add(name)
            self.doubtful.discard(name)
            if number % 3 == 0:
                self.doubtful.add(name)
                if self.done(self.admin.delete_topics([name], request_timeout=1)):
                    self.deleted.add(name)
                    self.doubtful.discard(name)

    def done(self, futures: dict) -> bool:
        """Whether the broker acknowledged the request."""
        try:
            for future in futures.values():
                future.result(5)
        except (KafkaException, TimeoutError):
            return False
        return True


@pytest.mark.timeout(3600)
def test_kill_while_topics_come_and_go(
    own_broker: PykafkadProcess, chance: random.Random, rounds: int, request: pytest.FixtureRequest
) -> None:
    """A topic whose creation was acknowledged survives SIGKILL with its partitions; a deleted topic does not return."""
    administration = Administration(own_broker.bootstrap)
    administration.start()
    for _ in range(rounds):
        before = len(administration.created)
        time.sleep(0.2 + chance.random() / 2)
        wait_until(lambda before=before: len(administration.created) >= before + 6, "topics are created")
        own_broker.kill()
        own_broker.start()
    administration.stopped.set()
    administration.join(120)
    assert not administration.is_alive()
    own_broker.kill()
    own_broker.start()
    found = AdminClient({"bootstrap.servers": own_broker.bootstrap}).list_topics(timeout=100).topics
    certain = administration.created - administration.deleted - administration.doubtful
    assert len(certain) > 10 and len(administration.deleted) > 3
    assert certain <= set(found) and not administration.deleted & set(found)
    assert all(sorted(found[name].partitions) == [0, 1, 2] and found[name].error is None for name in certain)
    on_disk = {path.name for path in own_broker.data_directory.iterdir()}
    assert all(f"{name}-{partition}" in on_disk for name in certain for partition in range(3))
    assert "Traceback" not in own_broker.log_text()
    request.node.crash_failed = False


def test_clean_restart_under_load(own_broker: PykafkadProcess) -> None:
    """A clean restart in the middle of traffic only delays producers."""
    create_topic(own_broker.bootstrap)
    history = History()
    load = Load("idempotent", own_broker.bootstrap, history, **{"enable.idempotence": True})
    load.start()
    for _ in range(3):
        time.sleep(0.5)
        own_broker.restart()
    load.stopped.set()
    load.join(360)
    assert not load.failures and len(history.acknowledged) == len(history.sent)
    history.check(read_log(own_broker.bootstrap), {"idempotent"})


def test_second_broker_on_the_same_directory(own_broker: PykafkadProcess, tmp_path: Path) -> None:
    """A second broker on a directory in use refuses to start and gives the reason; the first one continues."""
    from compat_tests.brokers.broker import BrokerFailed, answers

    (tmp_path / "second").mkdir()
    second = PykafkadProcess(tmp_path / "second")
    second.data_directory = own_broker.data_directory
    with pytest.raises(BrokerFailed, match="(?i)lock|in use|another"):
        second.start()
    second.close()
    assert answers(own_broker.bootstrap)
