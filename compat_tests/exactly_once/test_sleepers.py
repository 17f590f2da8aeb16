"""Clients sleep until others have what they owned, and go on: brokers fence them, and the checker sees who ignores it.

Each test runs a right client and a wrong one of `sleepers.py` at the same time, in topics and groups of their own. The
checker finds nothing with the first, and every fault that the second one makes.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from compat_tests.exactly_once.clients import COPIED, COPIERS, PARTITIONS, WRITTEN
from compat_tests.exactly_once.history import (
    Record,
    TransactionHistory,
    events_of,
    faults_of_copiers,
    faults_of_copy,
    faults_of_offsets,
)
from compat_tests.exactly_once.test_killed_clients import read_to_the_end
from compat_tests.exactly_once.troubles import Clients
from compat_tests.samples import wait_until

SLEEPERS = "compat_tests.exactly_once.sleepers"
RECORDS = 120
SECONDS = 60
FreshName = Callable[..., str]


class Stage(NamedTuple):
    """The place of one sleeper: its broker, its processes, and what the names of its topics and groups begin with."""

    bootstrap: str
    clients: Clients
    prefix: str

    def events(self, name: str) -> list[dict]:
        """What a client has told."""
        return events_of(self.clients.directory / name)

    def has_told(self, name: str, what: str) -> bool:
        """Whether a client has told that."""
        return any(what in event for event in self.events(name))

    def fall_asleep(self, name: str) -> None:
        """Start a sleeper, and wait until it sleeps."""
        self.clients.start(name, module=SLEEPERS)
        pid = self.clients.processes[name].pid

        def sleeps() -> bool:
            assert self.clients.processes[name].poll() is None, f"{name} has ended"
            return os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOHANG | os.WNOWAIT) is not None

        wait_until(sleeps, f"{name} sleeps")

    def wake(self, name: str, what: str) -> None:
        """Let a sleeper go on until it has told that."""
        self.clients.signal(name, signal.SIGCONT)
        wait_until(lambda: self.has_told(name, what), f"{name} has told {what}")

    def is_fenced(self, name: str) -> bool:
        """Whether the broker has refused something to the client."""
        return self.has_told(name, "error")


@pytest.fixture
def stages(bootstrap: str, fresh_name: FreshName, tmp_path: Path) -> Iterator[Callable[[str], Stage]]:
    """Makes a stage for each kind of sleeper, with its topics; no process is left at the end."""
    made: list[Stage] = []

    def make(kind: str) -> Stage:
        directory = tmp_path / kind
        directory.mkdir()
        prefix = f"{fresh_name(kind)}-"
        made.append(Stage(bootstrap, Clients(bootstrap, directory, prefix), prefix))
        topics = [NewTopic(prefix + topic, PARTITIONS, 1) for topic in (WRITTEN, COPIED)]
        admin = AdminClient({"bootstrap.servers": bootstrap})
        for created in admin.create_topics(topics).values():
            created.result(SECONDS)
        return made[-1]

    yield make
    for stage in made:
        for name in stage.clients.processes:
            stage.clients.signal(name, signal.SIGCONT)
        stage.clients.close()
        for path in sorted(stage.clients.directory.glob("*.errors")):
            print(path.name, path.read_text()[-1500:], sep="\n")


def kinds_of(faults: list[str]) -> set[str]:
    """The first words of the faults."""
    return {fault.partition(":")[0] for fault in faults}


def log_of_topic(stage: Stage, topic: str) -> dict:
    """Every committed record of one of the stage's topics."""
    return read_to_the_end(stage.bootstrap, AdminClient({"bootstrap.servers": stage.bootstrap}), stage.prefix + topic)


def write_and_lose_the_id(stage: Stage, kind: str) -> tuple[list[str], bool]:
    """A writer sleeps, another process takes its transactional id and writes: the checker's faults, and whether the
    broker has fenced the sleeper.
    """
    sleeper, rival = f"{kind}-1", "writer-9"
    stage.fall_asleep(sleeper)
    stage.clients.start(rival, sleeper)
    wait_until(lambda: stage.has_told(rival, "committed"), "the rival has committed")
    stage.clients.stop(rival)
    stage.wake(sleeper, "aborted" if kind == "writer" else "committed")
    history = TransactionHistory()
    for name in (sleeper, rival):
        history.take(name, stage.events(name))
    return history.faults(log_of_topic(stage, WRITTEN), {}), stage.is_fenced(sleeper)


@pytest.mark.timeout(300)
def test_a_writer_that_ignores_its_fencing_is_found(stages: Callable[[str], Stage]) -> None:
    """It believes that it has committed what the broker has aborted, when its id had another owner."""
    kinds = ("writer", "deaf")
    made = [stages(kind) for kind in kinds]
    with ThreadPoolExecutor() as threads:
        right, wrong = threads.map(write_and_lose_the_id, made, kinds)
    assert right == ([], True)
    assert (kinds_of(wrong[0]), wrong[1]) == ({"lost", "two owners"}, True), wrong


def fill(stage: Stage) -> None:
    """Records of a producer that is none of the clients."""
    producer = Producer({"bootstrap.servers": stage.bootstrap})
    for number in range(RECORDS):
        record = Record(number % PARTITIONS, "a", 0, number)
        producer.produce(stage.prefix + WRITTEN, record.value, partition=record.partition)
    assert producer.flush(SECONDS) == 0


def copy_and_lose_the_partitions(stage: Stage, kind: str) -> tuple[list[str], bool]:
    """A member of a group sleeps, another one gets its partitions and copies them: the checker's faults, and whether
    the broker has fenced the sleeper.
    """
    sleeper, other = f"{kind}-1", "copier-2"
    fill(stage)
    stage.fall_asleep(sleeper)
    stage.clients.start(other)
    observed: list[dict[int, int]] = []
    watcher = Consumer({"bootstrap.servers": stage.bootstrap, "group.id": stage.prefix + COPIERS, "log_level": 0})
    asked = [TopicPartition(stage.prefix + WRITTEN, partition) for partition in range(PARTITIONS)]

    def has_copied() -> bool:
        try:
            found = watcher.committed(asked, timeout=5)
        except KafkaException:
            return False
        observed.append({each.partition: each.offset for each in found if each.error is None and each.offset >= 0})
        return sum(observed[-1].values()) == RECORDS

    wait_until(has_copied, "the other member has copied everything")
    stage.wake(sleeper, "done")
    has_copied()
    stage.clients.stop(sleeper, other)
    watcher.close()
    copiers = {name: stage.events(name) for name in (sleeper, other)}
    faults = faults_of_copy(log_of_topic(stage, WRITTEN), log_of_topic(stage, COPIED))
    return [*faults, *faults_of_copiers(copiers), *faults_of_offsets(observed)], stage.is_fenced(sleeper)


@pytest.mark.timeout(300)
def test_a_member_that_goes_on_without_its_partitions_is_found(stages: Callable[[str], Stage]) -> None:
    """It copies what the next owner has copied, and sets the group's offsets back."""
    kinds = ("copier", "nobody")
    made = [stages(kind) for kind in kinds]
    with ThreadPoolExecutor() as threads:
        right, wrong = threads.map(copy_and_lose_the_partitions, made, kinds)
    assert right == ([], True)
    assert (kinds_of(wrong[0]), wrong[1]) == ({"doubled", "two owners", "back"}, False), wrong
