"""Members of groups of each kind, each in a thread, which note every record that they are given."""

from __future__ import annotations

import abc
import threading
import time
from collections import Counter, defaultdict

from confluent_kafka import AcknowledgeType, Consumer, KafkaException, ShareConsumer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource

COMMIT_SECONDS = 0.5
CALL_SECONDS = 30.0
STOP_SECONDS = 120.0
RECONNECT = {"reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 500, "log_level": 0}


class Member(threading.Thread):
    """A member of a group of its own. `given` has the value at each offset of each partition, `times` how often."""

    def __init__(self, bootstrap: str, topic: str, kind: str) -> None:
        super().__init__(name=f"{kind} member", daemon=True)
        self.kind = kind
        self.group = f"{kind}-group"
        self.settings = {"bootstrap.servers": bootstrap, "group.id": self.group, **RECONNECT}
        self.topic = topic
        self.given: dict[int, dict[int, bytes]] = defaultdict(dict)
        self.times: Counter[tuple[int, int]] = Counter()
        self.faults: list[str] = []
        self.troubles: Counter[str] = Counter()
        self._ends = threading.Event()

    def run(self) -> None:
        try:
            self.work()
        except Exception as error:
            # A thread's exception would be told by nobody.
            self.faults.append(f"stuck: {self.name} ended: {error!r}")

    @abc.abstractmethod
    def work(self) -> None:
        """Take records until the member is stopped."""

    def note(self, message) -> None:
        """Note a record. At one offset there is one value, whoever leads."""
        partition, offset, value = message.partition(), message.offset(), message.value()
        before = self.given[partition].setdefault(offset, value)
        if before != value:
            self.faults.append(f"changed: {self.name} was given {before} and {value} at {offset} of {partition}")
        self.times[partition, offset] += 1

    def has(self, log: dict[int, list[tuple[int, bytes]]]) -> bool:
        """Whether it was given everything in the log."""
        return all(offset in self.given[partition] for partition, entries in log.items() for offset, _ in entries)

    def faults_beside(self, log: dict[int, list[tuple[int, bytes]]]) -> list[str]:
        """What is wrong with what it was given: records that are not in the log, and those that it never got."""
        found = list(self.faults)
        for partition, entries in log.items():
            at = dict(entries)
            given = self.given[partition]
            wrong = [offset for offset, value in given.items() if at.get(offset) != value]
            if wrong:
                found.append(
                    f"dirty: {self.name} was given {given[wrong[0]]!r} at {wrong[0]} of {partition}, where the log has "
                    f"{at.get(wrong[0])!r} ({len(wrong)} of these)"
                )
            missing = at.keys() - given.keys()
            if missing:
                found.append(f"lost: {self.name} was not given {len(missing)} of {partition}, from {min(missing)}")
        return found

    def repeated(self) -> int:
        """How many records it was given more than once."""
        return sum(count > 1 for count in self.times.values())

    def stop(self) -> None:
        self._ends.set()
        self.join(STOP_SECONDS)
        assert not self.is_alive(), f"{self.name} does not end"


class GroupMember(Member):
    """Of a group of the protocol `classic` or `consumer`; it commits what it was given."""

    def work(self) -> None:
        fixed = {"enable.auto.commit": False, "auto.offset.reset": "earliest", "group.protocol": self.kind}
        consumer = Consumer({**self.settings, **fixed})
        consumer.subscribe([self.topic])
        due = time.monotonic()
        while not self._ends.is_set():
            for message in consumer.consume(500, 0.2):
                if message.error() is None:
                    self.note(message)
                else:
                    self.troubles[message.error().name()] += 1
            if time.monotonic() > due:
                self._commit(consumer)
                due = time.monotonic() + COMMIT_SECONDS
        self._commit(consumer)
        consumer.close()

    def _commit(self, consumer: Consumer) -> None:
        try:
            consumer.commit(asynchronous=False)
        except KafkaException as error:
            # The next commit has all that this one had.
            self.troubles[error.args[0].name()] += 1


class ShareMember(Member):
    """Of a share group; it accepts each record. `accepted` counts how often the broker took that."""

    def __init__(self, bootstrap: str, topic: str, kind: str) -> None:
        super().__init__(bootstrap, topic, kind)
        self.accepted: Counter[tuple[int, int]] = Counter()

    def work(self) -> None:
        from_the_start(self.settings["bootstrap.servers"], self.group)
        consumer = ShareConsumer({**self.settings, "share.acknowledgement.mode": "explicit"})
        consumer.subscribe([self.topic])
        while not self._ends.is_set():
            taken = defaultdict(list)
            for message in consumer.poll(0.5):
                if message.error() is not None:
                    self.troubles[message.error().name()] += 1
                    continue
                self.note(message)
                consumer.acknowledge(message, AcknowledgeType.ACCEPT)
                taken[message.partition()].append(message.offset())
            if taken:
                self._commit(consumer, taken)
        consumer.close()

    def _commit(self, consumer: ShareConsumer, taken: dict[int, list[int]]) -> None:
        """What the broker refuses it gives again."""
        try:
            results = consumer.commit_sync(CALL_SECONDS)
        except KafkaException as error:
            self.troubles[error.args[0].name()] += 1
            return
        for place, error in results.items():
            if error is None:
                self.accepted.update((place.partition, offset) for offset in taken[place.partition])
            else:
                self.troubles[error.args[0].name()] += 1

    def faults_beside(self, log: dict[int, list[tuple[int, bytes]]]) -> list[str]:
        twice = [place for place, count in self.accepted.items() if count > 1]
        found = super().faults_beside(log)
        return found + ([f"doubled: {twice[0]} was accepted twice ({len(twice)} of these)"] if twice else [])


def from_the_start(bootstrap: str, group: str) -> None:
    """Have a share group begin with the first records."""
    entry = ConfigEntry("share.auto.offset.reset", "earliest", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.GROUP, group, incremental_configs=[entry])
    # librdkafka gives up what a client asks that nobody refers to any more.
    admin = AdminClient({"bootstrap.servers": bootstrap})
    (altered,) = admin.incremental_alter_configs([resource]).values()
    altered.result(CALL_SECONDS)


KINDS = {"classic": GroupMember, "consumer": GroupMember, "share": ShareMember}
