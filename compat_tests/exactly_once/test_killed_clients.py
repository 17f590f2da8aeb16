"""Transactional clients are killed, paused, cut off and fenced, and their broker is killed, again and again.

Then the checker looks at the whole history. `--rounds N` sets the number of rounds with pykafkad, `--crash-seed` the
moments.
"""

from __future__ import annotations

import os
import random
import secrets
import signal
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, IsolationLevel, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from compat_tests.brokers.broker import Broker, ProcessBroker, free_port
from compat_tests.brokers.pykafkad_process import PykafkadProcess
from compat_tests.conftest import AGAINST, assert_no_bug_logged
from compat_tests.exactly_once import franz_clients, troubles
from compat_tests.exactly_once.clients import COPIED, COPIERS, PARTITIONS, WRITTEN
from compat_tests.exactly_once.history import (
    Log,
    TransactionHistory,
    events_of,
    faults_of_copiers,
    faults_of_copy,
    faults_of_offsets,
    log_of,
    parsed,
    words_of,
)
from compat_tests.exactly_once.open_transactions import end_offsets
from compat_tests.exactly_once.proxy import Proxy
from compat_tests.exactly_once.troubles import READERS, RIVALS, WRITERS, Clients, Troubles
from compat_tests.samples import wait_until
from compat_tests.suites.suite import SuiteUnavailable

# A real Kafka needs many seconds for each start.
ROUNDS = {"kafka": 1, "pykafkad": 4}
MOMENTS = 6
MOMENT_SECONDS = 0.5
PAUSE_SECONDS = 3.0
# Kafka's smallest segment is a megabyte, which takes seconds to fill; so segments also end by their age.
SEGMENTS = {"segment.bytes": "1048576", "segment.ms": "1000", "retention.ms": "-1"}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run once for each broker, the real Kafka first."""
    if "kind" in metafunc.fixturenames:
        metafunc.parametrize("kind", AGAINST[metafunc.config.getoption("--against")])


@pytest.fixture
def proxy_port() -> int:
    """The port of the proxy, which is the broker's advertised address."""
    return free_port()


@pytest.fixture
def own_broker(kind: str, proxy_port: int, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Broker]:
    """A broker for this test alone, which may be killed."""
    settings = {"advertised.listeners": f"PLAINTEXT://localhost:{proxy_port}"}
    made: Broker = (
        PykafkadProcess(tmp_path, settings)
        if kind == "pykafkad"
        else request.getfixturevalue("kafka_source").broker(tmp_path, settings)
    )
    try:
        made.start()
        yield made
    finally:
        made.close()
    if kind == "pykafkad":
        assert_no_bug_logged(made)  # type: ignore[arg-type]


@pytest.fixture
def proxy(proxy_port: int, own_broker: Broker) -> Iterator[Proxy]:
    """What all clients connect to."""
    made = Proxy(proxy_port, own_broker.bootstrap)
    yield made
    made.close()


@pytest.fixture(scope="module")
def franz() -> Path | None:
    """The program of the clients with franz-go, if Go is there."""
    try:
        return franz_clients.program()
    except SuiteUnavailable as error:
        if os.environ.get("CI") == "true":
            raise
        print(f"without franz-go: {error}")
        return None


@pytest.fixture
def clients(proxy: Proxy, franz: Path | None, tmp_path: Path) -> Iterator[Clients]:
    """No client at first; none is left at the end."""
    directory = tmp_path / "clients"
    directory.mkdir()
    made = Clients(proxy.address, directory, franz=franz)
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
    consumer = Consumer({"bootstrap.servers": bootstrap, "client.id": "watcher", **settings})
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])
    log: Log = defaultdict(list)

    def at_the_end() -> bool:
        for message in consumer.consume(5000, 0.2):
            assert message.error() is None, message.error()
            record = parsed(message.partition(), words_of(message.value()))
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
def test_transactions_are_exact_whatever_happens_to_clients_and_broker(
    kind: str, own_broker: Broker, proxy: Proxy, clients: Clients, pytestconfig: pytest.Config,
    capfd: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """Nothing that was committed is lost, doubled or reordered, nothing that was aborted is seen, by anybody."""
    rounds = ROUNDS[kind]
    if kind == "pykafkad":
        rounds = pytestconfig.getoption("--rounds") or rounds
    seed = pytestconfig.getoption("--crash-seed") or secrets.randbelow(1 << 32)
    chance = random.Random(seed)
    # The test's own clients are never cut off.
    watching = {"bootstrap.servers": proxy.address, "client.id": "watcher", "log_level": 0}
    admin = AdminClient(watching)
    topics = [NewTopic(topic, PARTITIONS, 1, config=SEGMENTS) for topic in (WRITTEN, COPIED)]
    for made in admin.create_topics(topics).values():
        made.result(100)
    watcher = Consumer({**watching, "group.id": COPIERS})
    observed: list[dict[int, int]] = []
    for name in clients.there():
        clients.start(name)
    # Before the first transaction the broker makes the internal topics, for which a real Kafka needs seconds.
    wait_until(lambda: committed(watcher), "the first records are copied")
    happening = Troubles(clients, proxy, chance)
    for _ in range(rounds):
        for _ in range(MOMENTS):
            time.sleep(MOMENT_SECONDS * (0.5 + chance.random()))
            happening.moment()
            observed.append(committed(watcher))
        if isinstance(own_broker, ProcessBroker) and chance.random() < 0.5:
            os.kill(own_broker.pid, signal.SIGSTOP)
            time.sleep(PAUSE_SECONDS * chance.random())
            os.kill(own_broker.pid, signal.SIGCONT)
        own_broker.kill()
        own_broker.start()
    happening.end()
    time.sleep(1)
    clients.start_again()
    writers, readers = (clients.there(names) for names in (WRITERS, READERS))
    clients.stop(*writers, *RIVALS.values())
    log = read_to_the_end(proxy.address, admin, WRITTEN)
    faults = []
    try:
        wait_until(lambda: caught_up(clients, watcher, observed, log), "copiers and readers have everything")
    except AssertionError as error:
        # The history may show why.
        faults.append(f"stuck: {error}")
    clients.stop(*troubles.COPIERS, *readers)
    copied = read_to_the_end(proxy.address, admin, COPIED)
    watcher.close()

    events = {name: events_of(clients.directory / name) for name in (*clients.there(), *RIVALS.values())}
    history = TransactionHistory()
    for name in (*writers, *RIVALS.values()):
        history.take(name, events[name])
    given = {name: log_of(events[name]) for name in readers}
    faults += [*history.faults(log, given), *faults_of_copy(log, copied), *faults_of_offsets(observed)]
    faults += faults_of_copiers({name: events[name] for name in troubles.COPIERS})
    with capfd.disabled():
        print(
            f"\n{kind}: seed {seed}, {rounds} rounds, {dict(happening.counts)}: {len(history.committed)} transactions "
            f"committed, {len(history.aborted)} aborted, "
            f"{len(history.sent) - len(history.committed) - len(history.aborted)} without an acknowledged end, "
            f"{sum(map(len, log.values()))} records; ids were taken {len(history.lives)} times, and "
            f"{clients.ends} clients gave up"
        )
    assert faults == []
    assert len(history.committed) > 5 * rounds and history.aborted
    assert all(any(log.values()) for log in given.values())


def caught_up(clients: Clients, watcher: Consumer, observed: list[dict[int, int]], log: Log) -> bool:
    """Whether the copiers have committed, and the readers have been given, the last record of each partition."""
    clients.start_again()
    observed.append(committed(watcher))
    last = {partition: entries[-1][0] for partition, entries in log.items()}
    if any(observed[-1].get(partition, 0) <= offset for partition, offset in last.items()):
        return False
    seen = [log_of(events_of(clients.directory / name)) for name in clients.there(READERS)]
    return all(
        each[partition] and each[partition][-1][0] >= offset for each in seen for partition, offset in last.items()
    )
