"""All the clients of a cluster under test: idempotent writers of three libraries, a group of each kind, and the
transactional clients of `compat_tests.exactly_once`; their checks together."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from confluent_kafka import Consumer, IsolationLevel, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from compat_tests.brokers.broker import ProcessBroker
from compat_tests.exactly_once.clients import COPIED, PARTITIONS, WRITTEN
from compat_tests.exactly_once.history import (
    Log,
    TransactionHistory,
    events_of,
    faults_of_copiers,
    faults_of_copy,
    log_of,
    parsed,
    words_of,
)
from compat_tests.exactly_once.open_transactions import end_offsets
from compat_tests.exactly_once.troubles import Clients
from compat_tests.history import History, Sent
from compat_tests.load import writers
from compat_tests.load.members import KINDS, Member
from compat_tests.load.writers import ConfluentWriter, JavaWriter, KafkaPythonWriter, Writer

NUMBERS = "numbers"
STEP_SECONDS = 180.0
WRITERS, COPIERS, READERS = ("writer-1", "python-1", "franz-1"), ("copier-1",), ("reader-1",)
OVERTAKEN = "Out of order sequence number for producer"
"""What a Kafka logs of a record that it refuses because another one, before it, is not there yet."""
# A writer that never rests would take a whole core.
REST_SECONDS = "0.2"


def until(what: str, holds: Callable[[], object], timeout_seconds: float = STEP_SECONDS) -> None:
    """Wait for something to be true; a call that fails counts as not yet."""
    deadline = time.monotonic() + timeout_seconds
    while True:
        try:
            if holds():
                return
            last = ""
        except KafkaException as error:
            last = f": {error}"
        assert time.monotonic() < deadline, f"waited {timeout_seconds} s until {what}{last}"
        time.sleep(0.1)


class Load:
    """The clients at one cluster. `java` is the folder of Kafka's jars and that of the compiled writer, and `franz` the
    program of franz-go's clients; without them those are not there."""

    def __init__(
        self,
        bootstrap: str,
        directory: Path,
        *,
        groups: Sequence[str] = tuple(KINDS),
        java: tuple[Path, Path] | None = None,
        franz: Path | None = None,
        factor: int = 3,
    ) -> None:
        directory.mkdir(exist_ok=True)
        self.history = History()
        self.clients = Clients(bootstrap, directory, franz=franz)
        self.clients.environment["CLIENTS_REST"] = REST_SECONDS
        self.use(bootstrap)
        self.members: list[Member] = []
        self.writers: list[Writer] = []
        try:
            self._create(factor)
            self._begin(groups, java)
        except BaseException:
            # Nobody has this object who could close it.
            self.close()
            raise

    def _begin(self, groups: Sequence[str], java: tuple[Path, Path] | None) -> None:
        """Start all clients."""
        for kind in groups:
            self.members.append(KINDS[kind](self.bootstrap, NUMBERS, kind))
            self.members[-1].start()
        at = (self.bootstrap, NUMBERS, self.history)
        self.writers += [ConfluentWriter(*at), KafkaPythonWriter(*at)]
        if java is not None:
            self.writers.append(JavaWriter(*at, *java))
        self._names = self.clients.there((*WRITERS, *COPIERS, *READERS))
        for name in self._names:
            self.clients.start(name)

    def use(self, bootstrap: str) -> None:
        """Where clients connect that start from now on."""
        self.bootstrap = self.clients.bootstrap = bootstrap
        self.admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})

    def _create(self, factor: int) -> None:
        config = {"min.insync.replicas": str(max(factor - 1, 1)), "retention.ms": "-1"}
        counts = {NUMBERS: writers.PARTITIONS, WRITTEN: PARTITIONS, COPIED: PARTITIONS}
        topics = [NewTopic(topic, count, factor, config=config) for topic, count in counts.items()]
        for made in self.admin.create_topics(topics).values():
            try:
                made.result(STEP_SECONDS)
            except KafkaException as error:
                # librdkafka asks again when the first answer is late.
                if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                    raise
        # A Kafka whose log of a partition is not made yet can lose the first batches of a producer: the producer then
        # goes on with a sequence above 0, which the new log takes as it comes.
        until(
            "every leader has its log",
            lambda: [
                end_offsets(self.admin, topic, count, IsolationLevel.READ_UNCOMMITTED)
                for topic, count in counts.items()
            ],
        )

    def goes_on(self) -> None:
        """Wait until every client has done something new: each writer, each member, and a transaction that is copied
        and read."""
        self.clients.start_again()
        acknowledged = {writer.name: writer.acknowledged for writer in self.writers}
        for writer in self.writers:
            until(
                f"{writer.name} has written more, {writer.errors}",
                lambda writer=writer: writer.acknowledged >= acknowledged[writer.name] + 2 * writers.PARTITIONS,
            )
        marks = {writer.name: writer.newest for writer in self.writers}
        for member in self.members:
            until(
                f"{member.name} has what was written, {member.troubles}",
                lambda member=member: member.faults or all(offset in member.given[at] for at, offset in marks.values()),
            )
            assert not member.faults, member.faults
        for name in self._names:
            count = self._done(name)
            until(f"{name} has done more", lambda name=name, count=count: self._again(name) > count)

    def _again(self, name: str) -> int:
        self.clients.start_again()
        return self._done(name)

    def _done(self, name: str) -> int:
        """How many transactions, copies or reads a client's file has."""
        wanted = ("committed", "copied", "reads")
        return sum(any(each in event for each in wanted) for event in events_of(self.clients.directory / name))

    def end(self, kafkas: Iterable[ProcessBroker] = ()) -> list[str]:
        """Stop all clients, and return what is wrong with what they were told, given and promised.

        On the way to a new leader a record can overtake the one before it, which the old leader has not answered yet.
        The new leader refuses it, and librdkafka then numbers everything anew that is not acknowledged, in a new
        producer epoch: what an old leader had taken is there twice. So its records are not counted where it has done
        that and one of `kafkas` has refused such a record."""
        for writer in self.writers:
            writer.stop()
        self.clients.stop(*self.clients.there(WRITERS))
        log = self._numbers()
        values = {
            partition: [(offset, writers.value_of(record)) for offset, record in entries]
            for partition, entries in log.items()
        }
        found = []
        for member in self.members:
            try:
                until(f"{member.name} has everything", lambda member=member: member.has(values))
            except AssertionError as error:
                found.append(f"stuck: {error}, {member.troubles}")
            member.stop()
            found += member.faults_beside(values)
        has_refused = any(OVERTAKEN in kafka.log_text() for kafka in kafkas)
        idempotent = {each.name for each in self.writers if not (has_refused and each.has_begun_anew)}
        try:
            self.history.check(log, idempotent)
        except AssertionError as error:
            found.append(f"writers: {error}")
        return found + self._transactions()

    def close(self) -> None:
        """Kill the clients that are processes."""
        self.clients.close()
        for writer in self.writers:
            writer.kill()

    def errors(self) -> list[str]:
        """What the writers gave up. Transactional clients may have to begin anew: `summary` says how often they did."""
        return [f"{writer.name}: {error}" for writer in self.writers for error in writer.errors]

    def summary(self) -> str:
        """How much there was, in one line."""
        wrote = ", ".join(f"{writer.name} {writer.acknowledged}" for writer in self.writers)
        given = ", ".join(f"{each.kind} {len(each.times)} (again {each.repeated()})" for each in self.members)
        done = ", ".join(f"{name} {self._done(name)}" for name in self._names)
        return f"acknowledged: {wrote}; groups: {given}; transactions: {done} ({self.clients.ends} begun anew)"

    def _numbers(self) -> dict[int, list[tuple[int, Sent]]]:
        """Everything in the topic of numbers."""
        log: dict[int, list[tuple[int, Sent]]] = {}
        for partition, entries in self._read(NUMBERS, writers.PARTITIONS).items():
            words = [(offset, value.decode().split()) for offset, value in entries]
            log[partition] = [(offset, Sent(partition, name, int(number))) for offset, (name, number) in words]
        return log

    def _read(self, topic: str, partitions: int) -> dict[int, list[tuple[int, bytes]]]:
        """Everything committed in a topic, when no transaction is open."""
        ends: dict[int, int] = {}

        def all_ended() -> bool:
            # librdkafka does not look for another leader epoch when it is told that its own is too old.
            self.admin.list_topics(topic, timeout=10)
            ends.update(end_offsets(self.admin, topic, partitions, IsolationLevel.READ_UNCOMMITTED))
            return ends == end_offsets(self.admin, topic, partitions, IsolationLevel.READ_COMMITTED)

        until(f"no transaction in {topic} is open", all_ended)
        settings = {"group.id": "-", "isolation.level": "read_committed", "auto.offset.reset": "error", "log_level": 0}
        consumer = Consumer({"bootstrap.servers": self.bootstrap, **settings})
        places = [TopicPartition(topic, partition, 0) for partition in range(partitions)]
        consumer.assign(places)
        log: dict[int, list[tuple[int, bytes]]] = defaultdict(list)

        def at_the_end() -> bool:
            for message in consumer.consume(5000, 0.2):
                if message.error() is None:
                    log[message.partition()].append((message.offset(), message.value()))
            return all(
                each.offset == ends[each.partition] or not ends[each.partition] for each in consumer.position(places)
            )

        until(f"{topic} is read", at_the_end)
        consumer.close()
        return log

    def _committed(self, topic: str) -> Log:
        return {
            partition: [(offset, parsed(partition, words_of(value))) for offset, value in entries]
            for partition, entries in self._read(topic, PARTITIONS).items()
        }

    def _transactions(self) -> list[str]:
        """What is wrong with the transactions, their copies and what readers were given."""
        names = self.clients.there(WRITERS)
        readers, copiers = self.clients.there(READERS), self.clients.there(COPIERS)
        log = self._committed(WRITTEN)
        found = []
        last = {partition: entries[-1][0] for partition, entries in log.items() if entries}

        def have_all() -> bool:
            self.clients.start_again()
            given = [log_of(self._events(name)) for name in readers]
            copied = [each for name in copiers for event in self._events(name) for each in event.get("copied", ())]
            return all(
                all(each[partition] and each[partition][-1][0] >= offset for each in given)
                and any(at == partition and end > offset for at, _, end in copied)
                for partition, offset in last.items()
            )

        try:
            until("copiers and readers have everything", have_all)
        except AssertionError as error:
            found.append(f"stuck: {error}")
        self.clients.stop(*copiers, *readers)
        history = TransactionHistory()
        for name in names:
            history.take(name, self._events(name))
        found += history.faults(log, {name: log_of(self._events(name)) for name in readers})
        found += faults_of_copy(log, self._committed(COPIED))
        return found + faults_of_copiers({name: self._events(name) for name in copiers})

    def _events(self, name: str) -> list[dict]:
        return events_of(self.clients.directory / name)
