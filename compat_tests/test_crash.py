"""SIGKILL under load: whatever pykafkad acknowledged is there after its restart, in order, and not doubled.

pykafkad alone. `--rounds N` sets the number of rounds (5 by default, 50 before a release).
"""

from __future__ import annotations

import random
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from compat_tests.brokers.pykafkad_process import PykafkadProcess
from compat_tests.history import History, Sent

PARTITIONS = 4
TOPIC = "crash"
SEED = 20_260_101
GROUP = "crash-readers"


class Load(threading.Thread):
    """One producer that sends numbered records to all partitions until told to stop; it survives the broker's restarts."""

    def __init__(self, name: str, bootstrap: str, history: History, **config: object) -> None:
        super().__init__(name=name, daemon=True)
        self.history = history
        self.stopped = threading.Event()
        self.failures: list[str] = []
        retries = {"message.timeout.ms": 120_000, "retry.backoff.ms": 20, "reconnect.backoff.max.ms": 100, "reconnect.backoff.ms": 20}
        self.producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 2, "log_level": 0, **retries, **config})

    def run(self) -> None:
        """Send about two thousand records a second."""
        number = 0
        while not self.stopped.is_set():
            for _ in range(20):
                record = Sent(number % PARTITIONS, self.name, number)
                self.history.send(record)
                self.producer.produce(
                    TOPIC, b"%s %d" % (self.name.encode(), number), partition=record.partition, on_delivery=self.reporter(record)
                )
                number += 1
            self.producer.poll(0.01)
        self.producer.flush(120)

    def reporter(self, record: Sent) -> object:
        """The callback for one record."""

        def report(error: object, message: object) -> None:
            if error is None:
                self.history.acknowledge(record, message.offset())  # type: ignore[attr-defined]
            else:
                self.failures.append(str(error))

        return report


def read_log(bootstrap: str) -> dict[int, list[tuple[int, Sent]]]:
    """Everything in the topic, by partition, in the order in which it came."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "checker", "enable.auto.commit": False})
    ends = {}
    for partition in range(PARTITIONS):
        _, ends[partition] = consumer.get_watermark_offsets(TopicPartition(TOPIC, partition), timeout=30)
    consumer.assign([TopicPartition(TOPIC, partition, 0) for partition in range(PARTITIONS)])
    log: dict[int, list[tuple[int, Sent]]] = defaultdict(list)
    positions = dict.fromkeys(range(PARTITIONS), 0)
    deadline = time.monotonic() + 60
    while any(positions[partition] < end for partition, end in ends.items()):
        assert time.monotonic() < deadline, f"read to {positions} of {ends}"
        for message in consumer.consume(5000, 0.5):
            assert message.error() is None, message.error()
            producer, number = message.value().decode().split()
            log[message.partition()].append((message.offset(), Sent(message.partition(), producer, int(number))))
            positions[message.partition()] = message.offset() + 1
    consumer.close()
    return log


@pytest.fixture
def own_broker(tmp_path: Path) -> Iterator[PykafkadProcess]:
    """A pykafkad of the test's own, to be killed; small segments, so that rolls fall into the crashes."""
    broker = PykafkadProcess(tmp_path, {"log.segment.bytes": "1048576", "log.index.interval.bytes": "1024"})
    broker.start()
    yield broker
    broker.close()


def create_topic(bootstrap: str) -> None:
    """Create the topic that all loads write to."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].result(30)


@pytest.mark.timeout(1800)
def test_kill_under_load(own_broker: PykafkadProcess, pytestconfig: pytest.Config) -> None:
    """Rounds of SIGKILL at a moment that chance picks; then the whole history is checked."""
    chance = random.Random(SEED)
    rounds = pytestconfig.getoption("--rounds")
    create_topic(own_broker.bootstrap)
    history = History()
    loads = [
        Load("idempotent", own_broker.bootstrap, history, **{"enable.idempotence": True}),
        Load("compressed", own_broker.bootstrap, history, **{"enable.idempotence": True, "compression.type": "lz4"}),
        Load("plain", own_broker.bootstrap, history, **{"acks": "all", "max.in.flight": 1}),
    ]
    for load in loads:
        load.start()
    committed = 0
    for _ in range(rounds):
        time.sleep(0.3 + chance.random())
        committed = commit_more(own_broker.bootstrap, committed)
        own_broker.kill()
        own_broker.start()
    for load in loads:
        load.stopped.set()
    for load in loads:
        load.join(150)
        assert not load.is_alive() and not load.failures, (load.name, load.failures[:3])
    assert len(history.acknowledged) > 100 * rounds
    history.check(read_log(own_broker.bootstrap), {"idempotent", "compressed"})
    own_broker.restart()
    history.check(read_log(own_broker.bootstrap), {"idempotent", "compressed"})
    assert "Traceback" not in own_broker.log_text()


def commit_more(bootstrap: str, before: int) -> int:
    """Check that the offset committed last survived, and commit a higher one; it is acknowledged when this returns."""
    settings = {"bootstrap.servers": bootstrap, "group.id": GROUP, "enable.auto.commit": False, "log_level": 0}
    consumer = Consumer(settings)
    (found,) = consumer.committed([TopicPartition(TOPIC, 0)], timeout=30)
    assert max(found.offset, 0) == before, f"offset {before} was committed, {found.offset} is there"
    consumer.commit(offsets=[TopicPartition(TOPIC, 0, before + 1)], asynchronous=False)
    consumer.close()
    return before + 1


class Administration(threading.Thread):
    """Creates topics and deletes every third, one after the other; remembers what the broker said that it did."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__(name="administration", daemon=True)
        self.admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0, "reconnect.backoff.max.ms": 100})
        self.stopped = threading.Event()
        self.created: set[str] = set()
        self.deleted: set[str] = set()
        self.doubtful: set[str] = set()

    def run(self) -> None:
        """What is asked is doubtful until it is answered."""
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
        """Whether the broker said that it did it."""
        try:
            for future in futures.values():
                future.result(5)
        except (KafkaException, TimeoutError):
            return False
        return True


@pytest.mark.timeout(600)
def test_kill_while_topics_come_and_go(own_broker: PykafkadProcess, pytestconfig: pytest.Config) -> None:
    """A topic whose creation was acknowledged is there after SIGKILL, with its partitions; a deleted one is not."""
    chance = random.Random(SEED)
    administration = Administration(own_broker.bootstrap)
    administration.start()
    for _ in range(pytestconfig.getoption("--rounds")):
        time.sleep(0.2 + chance.random() / 2)
        own_broker.kill()
        own_broker.start()
    administration.stopped.set()
    administration.join(30)
    own_broker.kill()
    own_broker.start()
    found = AdminClient({"bootstrap.servers": own_broker.bootstrap}).list_topics(timeout=20).topics
    certain = administration.created - administration.deleted - administration.doubtful
    assert len(certain) > 10 and len(administration.deleted) > 3
    assert certain <= set(found) and not administration.deleted & set(found)
    assert all(sorted(found[name].partitions) == [0, 1, 2] and found[name].error is None for name in certain)
    on_disk = {path.name for path in own_broker.data_directory.iterdir()}
    assert all(f"{name}-{partition}" in on_disk for name in certain for partition in range(3))
    assert "Traceback" not in own_broker.log_text()


def test_clean_restart_under_load(own_broker: PykafkadProcess) -> None:
    """A clean stop and start in the middle of traffic is invisible to producers, but for the wait."""
    create_topic(own_broker.bootstrap)
    history = History()
    load = Load("idempotent", own_broker.bootstrap, history, **{"enable.idempotence": True})
    load.start()
    for _ in range(3):
        time.sleep(0.5)
        own_broker.restart()
    load.stopped.set()
    load.join(150)
    assert not load.failures and len(history.acknowledged) == len(history.sent)
    history.check(read_log(own_broker.bootstrap), {"idempotent"})


def test_second_broker_on_the_same_directory(own_broker: PykafkadProcess, tmp_path: Path) -> None:
    """A second broker on a directory in use refuses to start and says why; the first one goes on."""
    from compat_tests.brokers.broker import BrokerFailed, answers

    (tmp_path / "second").mkdir()
    second = PykafkadProcess(tmp_path / "second")
    second.data_directory = own_broker.data_directory
    with pytest.raises(BrokerFailed, match="(?i)lock|in use|another"):
        second.start()
    second.close()
    assert answers(own_broker.bootstrap)
