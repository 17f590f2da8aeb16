"""Transactional clients and their broker are killed again and again; then the checker looks at the whole history.

`--rounds N` sets the number of rounds with pykafkad, `--crash-seed` the moments.
"""

from __future__ import annotations

import random
import secrets
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, IsolationLevel, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from compat_tests.brokers.broker import Broker
from compat_tests.brokers.pykafkad_process import PykafkadProcess
from compat_tests.conftest import AGAINST, assert_no_bug_logged
from compat_tests.exactly_once.clients import COPIED, COPIERS, PARTITIONS, WRITTEN
from compat_tests.exactly_once.history import (
    Log,
    TransactionHistory,
    events_of,
    faults_of_copy,
    faults_of_offsets,
    log_of,
    parsed,
)
from compat_tests.exactly_once.open_transactions import end_offsets
from compat_tests.samples import wait_until

REPOSITORY = Path(__file__).parents[2]
WRITERS, ALL_COPIERS, READERS = ("writer-1", "writer-2"), ("copier-1", "copier-2"), ("reader-1", "reader-2")
# A real Kafka needs many seconds for each start.
ROUNDS = {"kafka": 1, "pykafkad": 4}
MOMENTS = 4
MOMENT_SECONDS = 0.5


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run once for each broker, the real Kafka first."""
    if "kind" in metafunc.fixturenames:
        metafunc.parametrize("kind", AGAINST[metafunc.config.getoption("--against")])


@pytest.fixture
def own_broker(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Broker]:
    """A broker for this test alone, which may be killed."""
    made: Broker = (
        PykafkadProcess(tmp_path) if kind == "pykafkad" else request.getfixturevalue("kafka_source").broker(tmp_path)
    )
    try:
        made.start()
        yield made
    finally:
        made.close()
    if kind == "pykafkad":
        assert_no_bug_logged(made)  # type: ignore[arg-type]


class Clients:
    """The processes of all clients; who ended, or was killed, is started again."""

    def __init__(self, bootstrap: str, directory: Path) -> None:
        self.bootstrap, self.directory = bootstrap, directory
        self.processes: dict[str, subprocess.Popen] = {}
        self.ends = 0

    def start(self, name: str) -> None:
        module = "compat_tests.exactly_once.clients"
        command = [sys.executable, "-m", module, name.partition("-")[0], name, self.bootstrap, str(self.directory)]
        with open(self.directory / f"{name}.errors", "ab") as errors:
            self.processes[name] = subprocess.Popen(command, stderr=errors, cwd=REPOSITORY)

    def start_again(self) -> None:
        """Start every client that has ended."""
        for name, process in self.processes.items():
            if process.poll() is not None:
                self.ends += process.returncode > 0
                self.start(name)

    def kill(self, name: str) -> None:
        self.processes[name].kill()
        self.processes[name].wait()

    def stop(self, *names: str) -> None:
        """Let the clients end what they are doing; they are not started again."""
        for name in names:
            self.processes[name].send_signal(signal.SIGTERM)
        for name in names:
            process = self.processes.pop(name)
            try:
                process.wait(90)
            except subprocess.TimeoutExpired:
                # It writes where it hangs.
                process.send_signal(signal.SIGABRT)
                process.wait()
                raise

    def close(self) -> None:
        for name in self.processes:
            self.kill(name)


@pytest.fixture
def clients(own_broker: Broker, tmp_path: Path) -> Iterator[Clients]:
    """No client at first; none is left at the end."""
    directory = tmp_path / "clients"
    directory.mkdir()
    made = Clients(own_broker.bootstrap, directory)
    yield made
    made.close()
    # Pytest shows this if the test failed.
    for path in sorted(directory.glob("*.errors")):
        print(path.name, path.read_text()[-1500:], sep="\n")


def read_to_the_end(bootstrap: str, admin: AdminClient, topic: str) -> Log:
    """Every committed record; no transaction may be open."""
    ends: dict[int, int] = {}

    def all_ended() -> bool:
        ends.update(end_offsets(admin, topic, PARTITIONS, IsolationLevel.READ_UNCOMMITTED))
        return ends == end_offsets(admin, topic, PARTITIONS, IsolationLevel.READ_COMMITTED)

    wait_until(all_ended, f"no transaction in {topic} is open")
    settings = {"group.id": "-", "isolation.level": "read_committed", "auto.offset.reset": "error"}
    consumer = Consumer({"bootstrap.servers": bootstrap, **settings})
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])
    log: Log = defaultdict(list)

    def at_the_end() -> bool:
        for message in consumer.consume(5000, 0.2):
            assert message.error() is None, message.error()
            record = parsed(message.partition(), message.value().decode())
            log[message.partition()].append((message.offset(), record))
        positions = consumer.position([TopicPartition(topic, partition) for partition in ends])
        return all(
            position.offset == ends[position.partition] or not ends[position.partition] for position in positions
        )

    wait_until(at_the_end, f"{topic} is read")
    consumer.close()
    return log


def committed(watcher: Consumer) -> dict[int, int]:
    """The copiers' committed offsets; nothing while the broker is away or does not know them for sure."""
    try:
        found = watcher.committed([TopicPartition(WRITTEN, partition) for partition in range(PARTITIONS)], timeout=5)
    except KafkaException:
        return {}
    return {each.partition: each.offset for each in found if each.error is None and each.offset >= 0}


@pytest.mark.timeout(3600)
def test_transactions_are_exact_when_clients_and_broker_are_killed(
    kind: str, own_broker: Broker, clients: Clients, pytestconfig: pytest.Config, capfd: pytest.CaptureFixture[str]
) -> None:
    """Nothing that was committed is lost, doubled or reordered, nothing that was aborted is seen, by anybody."""
    rounds = ROUNDS[kind]
    if kind == "pykafkad":
        rounds = pytestconfig.getoption("--rounds") or rounds
    seed = pytestconfig.getoption("--crash-seed") or secrets.randbelow(1 << 32)
    chance = random.Random(seed)
    bootstrap = own_broker.bootstrap
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    topics = [NewTopic(topic, PARTITIONS, 1) for topic in (WRITTEN, COPIED)]
    for made in admin.create_topics(topics).values():
        made.result(100)
    watcher = Consumer({"bootstrap.servers": bootstrap, "group.id": COPIERS, "log_level": 0})
    observed: list[dict[int, int]] = []
    names = (*WRITERS, *ALL_COPIERS, *READERS)
    for name in names:
        clients.start(name)
    # Before the first transaction the broker makes the internal topics, for which a real Kafka needs seconds.
    wait_until(lambda: committed(watcher), "the first records are copied")
    for _ in range(rounds):
        for _ in range(MOMENTS):
            time.sleep(MOMENT_SECONDS * (0.5 + chance.random()))
            clients.kill(chance.choice(names))
            clients.start_again()
            observed.append(committed(watcher))
        own_broker.kill()
        own_broker.start()
    time.sleep(1)
    clients.start_again()
    clients.stop(*WRITERS)
    log = read_to_the_end(bootstrap, admin, WRITTEN)
    faults = []
    try:
        wait_until(lambda: caught_up(clients, watcher, observed, log), "copiers and readers have everything")
    except AssertionError as error:
        # The history may show why.
        faults.append(f"stuck: {error}")
    clients.stop(*ALL_COPIERS, *READERS)
    copied = read_to_the_end(bootstrap, admin, COPIED)
    watcher.close()

    history = TransactionHistory()
    for name in WRITERS:
        history.take(name, events_of(clients.directory / name))
    readers = {name: log_of(events_of(clients.directory / name)) for name in READERS}
    faults += [*history.faults(log, readers), *faults_of_copy(log, copied), *faults_of_offsets(observed)]
    with capfd.disabled():
        print(
            f"\n{kind}: seed {seed}, {rounds} rounds: {len(history.committed)} transactions committed, "
            f"{len(history.aborted)} aborted, {len(history.sent) - len(history.committed) - len(history.aborted)} "
            f"without an acknowledged end, {sum(map(len, log.values()))} records; {clients.ends} clients gave up"
        )
    assert faults == []
    assert len(history.committed) > 5 * rounds and history.aborted


def caught_up(clients: Clients, watcher: Consumer, observed: list[dict[int, int]], log: Log) -> bool:
    """Whether the copiers have committed, and the readers have been given, the last record of each partition."""
    clients.start_again()
    observed.append(committed(watcher))
    last = {partition: entries[-1][0] for partition, entries in log.items()}
    if any(observed[-1].get(partition, 0) <= offset for partition, offset in last.items()):
        return False
    seen = [log_of(events_of(clients.directory / name)) for name in READERS]
    return all(
        each[partition] and each[partition][-1][0] >= offset for each in seen for partition, offset in last.items()
    )
