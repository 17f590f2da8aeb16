"""`Broker`: a broker for tests, with all that a test does to it and asks of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any

from pykafkad import errors
from pykafkad.testing import failure_report, groups, records, snapshots, topics
from pykafkad.testing.client_configs import client_config
from pykafkad.testing.clocks import BrokerClock
from pykafkad.testing.embedded import EmbeddedBroker
from pykafkad.testing.faults import Faults
from pykafkad.testing.groups import Group
from pykafkad.testing.options import MEMORY_BYTES, Options, check_log_level, setting_texts
from pykafkad.testing.records import Record, Writable, new_record
from pykafkad.testing.topics import Partition, Topic
from pykafkad.testing.waits import TIMEOUT_SECONDS, until
from pykafkad.testing.wire_client import Refused, WireClient

if TYPE_CHECKING:
    from pykafkad.testing.child import ChildBroker
    from pykafkad.testing.traces import Trace

Topics = Mapping[str, int | Topic] | Iterable[str]
"""Topics to create: names with their numbers of partitions or a `Topic`, or names alone (one partition)."""

_DONE = ("Empty", "CompleteCommit", "CompleteAbort", "Dead")


class Broker:
    """A broker for tests. It runs from `start` to `close`, or in a `with` block:

        with Broker(topics={"orders": 3}, records={"orders": [("key", "value")]}) as broker:
            producer = Producer(broker.client_config("confluent"))

    It may be used from several threads. Methods that ask the broker raise `Refused` for its errors."""

    def __init__(
        self,
        *,
        topics: Topics = (),
        records: Mapping[str, Iterable[Writable]] | None = None,
        group_offsets: Mapping[str, Mapping[Partition, int]] | None = None,
        settings: Mapping[str, object] | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
        data: str | os.PathLike[str] | None = None,
        memory_bytes: int = MEMORY_BYTES,
        own_process: bool = False,
        log_level: str = "info",
        tls: bool = False,
        users: Mapping[str, str] | None = None,
        acls: Iterable[str] = (),
    ) -> None:
        """`topics`, `records` and `group_offsets` ({"group": {("topic", 0): 5}}) are there from the start on, and again
        after a `reset`. `settings` are Kafka's of a broker. Port 0 takes one that is free. The data is in memory, at
        most `memory_bytes`, or in the directory `data`. The broker runs on a thread of this process; with `own_process`
        in a process of its own, which ends with this one. With `tls` clients encrypt, with an authority made for it;
        with `users` (names with passwords) they log in, and `acls` ("alice read topic orders") say what who may do.
        Raises ValueError or TypeError for what cannot be."""
        self._topics = _topics(topics)
        self._records = {
            topic: [new_record(record) for record in written] for topic, written in (records or {}).items()
        }
        self._group_offsets = {group: dict(offsets) for group, offsets in (group_offsets or {}).items()}
        if memory_bytes < 1 << 20:
            raise ValueError(f"memory_bytes: {memory_bytes} is below 1 MiB")
        options = Options(
            settings=setting_texts(settings or {}),
            host=host,
            port=port,
            data=None if data is None else os.fspath(data),
            memory_bytes=memory_bytes,
            log_level=check_log_level(log_level),
        )
        if tls or users or acls:
            from pykafkad.testing import guard

            options = options._replace(guard=guard.made(self, tls, users or {}, acls, host, options.data))
        self._guard = options.guard
        if options.settings:
            options.broker_settings()
        self._running: EmbeddedBroker | ChildBroker
        if own_process:
            from pykafkad.testing.child import ChildBroker

            self._running = ChildBroker(options)
        else:
            self._running = EmbeddedBroker(options)
        self._client: WireClient | None = None
        self._trace: Trace | None = None
        self.faults = Faults(self._running)
        """What goes wrong on purpose (`pykafkad.testing.faults`)."""
        self.clock = BrokerClock(self._running)
        """The broker's time, which can be moved forward (`pykafkad.testing.clocks`)."""

    def __repr__(self) -> str:
        return f"Broker({self._running.bootstrap or 'not started'})"

    # --- from start to close ------------------------------------------------------------------------------------------

    def start(self) -> Broker:
        """Serve, with the topics, records and offsets of the constructor; the broker itself. Raises StartFailure, for
        a port that is taken, say."""
        self._running.start()
        try:
            self._seed()
        except BaseException:
            self.close()
            raise
        return self

    def close(self) -> None:
        """Stop; the port is free afterwards. Fine if it does not run."""
        client, self._client = self._client, None
        if client is not None:
            client.close()
        self._running.close()

    def __enter__(self) -> Broker:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def reset(self) -> None:
        """Go back to the topics, records and offsets of the constructor: other topics, groups, transactions, dynamic
        settings and faults are gone. Clients stay connected."""
        self._running.reset()
        self.faults.every.clear()
        self._seed()

    def restart(self, *, is_killed: bool = False) -> None:
        """Stop and start again, at the same address with the same data; faults are released. With `is_killed` it ends
        as a process does that is killed, without a word to clients: what it had not written is gone."""
        self._running.restart(is_killed)
        self.faults.every.clear()

    def save(self, name: str) -> None:
        """Save the state of everything under a name, for `rewind`."""
        snapshots.act(self._asked, "create", name)

    def rewind(self, name: str, topic: str | None = None) -> None:
        """Go back to a saved state: one topic, or everything (clients connect anew, and faults are released)."""
        snapshots.act(self._asked, "restore", name if topic is None else f"{name}:{topic}")
        if topic is None:
            self.faults.every.clear()

    def _seed(self) -> None:
        if self._topics:
            topics.create_topics(self._asked, self._topics)
        for topic, written in self._records.items():
            records.write(self._asked, topic, written, self.clock.ahead_seconds)
        for group, offsets in self._group_offsets.items():
            self.commit(group, offsets)

    @property
    def is_running(self) -> bool:
        """Whether it serves."""
        return self._running.is_running

    @property
    def _asked(self) -> WireClient:
        if self._client is None:
            if not self._running.control:
                raise RuntimeError("the broker is not started; use `with Broker() as broker:` or `start()`")
            host, _, port = self._running.control.rpartition(":")
            self._client = WireClient(host.strip("[]"), int(port))
        return self._client

    # --- for clients --------------------------------------------------------------------------------------------------

    @property
    def bootstrap(self) -> str:
        """`host:port`, for every client's bootstrap servers."""
        return self._running.bootstrap

    def client_config(
        self, client: str, *, group: str | None = None, user: str | None = None, mechanism: str | None = None
    ) -> dict[str, Any]:
        """What leads a client here ("confluent", "kafka-python", "aiokafka", "java", "spark", …): keyword arguments or
        properties. With a `group` also those of a consumer in it that starts at the first record. Where users log in,
        those of `user` (the first one) by a SASL `mechanism` (SCRAM-SHA-512)."""
        if self._guard is not None:
            return client_config(client, self.bootstrap, group, self._guard.access(user, mechanism))
        if user is not None or mechanism is not None:
            raise ValueError("client_config: this broker has no users; give it some: Broker(users={...})")
        return client_config(client, self.bootstrap, group)

    # --- topics and records -------------------------------------------------------------------------------------------

    def create_topic(self, name: str, partitions: int = 1, settings: Mapping[str, object] | None = None) -> None:
        """Create a topic; it can be used when this returns."""
        topics.create_topics(self._asked, {name: Topic(partitions, settings)})

    def topics(self) -> dict[str, int]:
        """The topics that there are with their numbers of partitions, without Kafka's own."""
        return topics.partition_counts(self._asked)

    def produce(self, topic: str, *values: Writable) -> list[Record]:
        """Write records to a topic, which is created where it is not there; they are there when this returns. Each is a
        value, (key, value), or a `NewRecord`. What is returned says where each one is."""
        return records.write(self._asked, topic, values, self.clock.ahead_seconds)

    def records(self, topic: str, partition: int | None = None, *, committed_only: bool = False) -> list[Record]:
        """What a topic, or one partition of it, holds now, in the order of partitions and offsets. With
        `committed_only` as a consumer with read_committed sees it."""
        level = topics.READ_COMMITTED if committed_only else topics.READ_UNCOMMITTED
        return records.read(self._asked, topic, partition, level)

    # --- groups -------------------------------------------------------------------------------------------------------

    def commit(self, group: str, offsets: Mapping[Partition, int]) -> None:
        """Commit offsets for a group that has no members."""
        until(
            lambda: groups.commit(self._asked, group, offsets),
            lambda code: code == errors.NONE,
            f"coordinator for the group {group}",
            TIMEOUT_SECONDS,
            errors.name,
        )

    def groups(self) -> list[str]:
        """The names of all groups."""
        return sorted(groups.list_groups(self._asked))

    def group(self, name: str) -> Group:
        """Members, assignments, offsets and lag of a group; its state is Dead where there is none."""
        return groups.describe(self._asked, name)

    # --- waits --------------------------------------------------------------------------------------------------------

    def wait_for_topic(self, name: str, partitions: int | None = None, timeout: float = TIMEOUT_SECONDS) -> None:
        """Wait until there is a topic, of so many partitions. Raises NotInTime, as all waits do."""
        wanted = f"topic {name}" + ("" if partitions is None else f" of {partitions} partitions")
        until(
            self.topics,
            lambda seen: name in seen and partitions in (None, seen[name]),
            wanted,
            timeout,
            lambda seen: ", ".join(f"{topic} of {count}" for topic, count in sorted(seen.items())) or "no topic",
        )

    def wait_for_records(
        self, topic: str, count: int, timeout: float = TIMEOUT_SECONDS, *, committed_only: bool = False
    ) -> list[Record]:
        """Wait until a topic holds at least `count` records; those that it holds then."""
        if count < 1:
            raise ValueError(f"count: {count} is below 1")

        def look() -> list[Record]:
            try:
                return self.records(topic, committed_only=committed_only)
            except Refused as refused:
                if refused.code != errors.UNKNOWN_TOPIC_OR_PARTITION:
                    raise
                return []

        return until(
            look,
            lambda seen: len(seen) >= count,
            f"{count} records in {topic}",
            timeout,
            lambda seen: f"{len(seen)}{_last(seen)}",
        )

    def wait_for_group(self, name: str, members: int, timeout: float = TIMEOUT_SECONDS) -> Group:
        """Wait until a group is stable with so many members."""
        if members < 1:
            raise ValueError(f"members: {members} is below 1; wait_until_gone waits for a group without members")
        return self._wait_for_group(
            name,
            lambda group: group.state == "Stable" and len(group.members) == members,
            f"group {name} stable with {members} members",
            timeout,
        )

    def wait_for_assignment(self, name: str, topic: str, timeout: float = TIMEOUT_SECONDS) -> Group:
        """Wait until a group is stable and its members have all partitions of a topic."""

        def is_assigned(group: Group) -> bool:
            count = topics.partition_counts(self._asked, [topic]).get(topic, 0)
            wanted = {(topic, index) for index in range(count)}
            return count > 0 and group.state == "Stable" and wanted <= group.assigned

        return self._wait_for_group(name, is_assigned, f"group {name} that has all of {topic}", timeout)

    def wait_for_lag(self, name: str, lag: int = 0, timeout: float = TIMEOUT_SECONDS) -> Group:
        """Wait until a group has committed so much that no partition lags by more than `lag` records."""
        if lag < 0:
            raise ValueError(f"lag: {lag} is below 0")
        return self._wait_for_group(
            name,
            lambda group: bool(group.lag) and max(group.lag.values()) <= lag,
            f"group {name} with a lag of at most {lag}",
            timeout,
        )

    def wait_until_gone(self, name: str, client_id: str | None = None, timeout: float = TIMEOUT_SECONDS) -> Group:
        """Wait until a group has no members, or none with that client id."""
        who = "members" if client_id is None else f"member {client_id}"
        return self._wait_for_group(
            name,
            lambda group: not any(client_id in (None, member.client_id) for member in group.members),
            f"group {name} without {who}",
            timeout,
        )

    def wait_for_transaction(self, transactional_id: str, timeout: float = TIMEOUT_SECONDS) -> str:
        """Wait until a transactional id is known and has no open transaction; its state."""
        return until(
            lambda: groups.transaction_state(self._asked, transactional_id),
            lambda state: state in _DONE,
            f"end of the transaction of {transactional_id}",
            timeout,
            lambda state: state or "no such transactional id",
        )

    def _wait_for_group(self, name: str, is_there: Callable[[Group], bool], wanted: str, timeout: float) -> Group:
        return until(lambda: self.group(name), is_there, wanted, timeout)

    # --- the trace ----------------------------------------------------------------------------------------------------

    def trace(self) -> Trace:
        """Record the requests of clients and their answers from now on, also over restarts: what was recorded
        (`pykafkad.testing.traces`). Without it nothing is recorded, and nothing costs time."""
        if self._trace is None:
            from pykafkad.testing.traces import Trace

            self._trace = Trace(self._running)
        return self._trace.start()

    # --- when a test fails --------------------------------------------------------------------------------------------

    def report(self, first_topic: str | None = None) -> str:
        """What there is, for people: topics with offsets, groups with members and lag, faults and how often each
        fired, the last requests of a trace that is on. `first_topic` comes first, as not all of many topics are
        told."""
        text = failure_report.text(self._asked, self.bootstrap, self.faults, first_topic)
        if self._trace is None or not self._trace.is_on:
            return text
        lines = self._trace.last_lines(failure_report.MOST)
        return "\n".join([text, *(["last requests:", *lines] if lines else ["no requests were traced"])])

    def keep(self, directory: str | os.PathLike[str]) -> None:
        """Write the data as it is now to a directory, for `pykafkad serve --data` and `pykafkad dump-log`."""
        self._running.keep(os.fspath(directory))


def _topics(given: Topics) -> dict[str, Topic | None]:
    if isinstance(given, str):
        raise TypeError(f"topics: {given!r} is a text; give a list of names, or names with numbers of partitions")
    if not isinstance(given, Mapping):
        return {name: Topic() for name in given}
    return {name: count if isinstance(count, Topic) else Topic(count) for name, count in given.items()}


def _last(seen: list[Record]) -> str:
    if not seen:
        return ""
    newest = seen[-1]
    return f", the last is {newest.key!r}: {newest.value!r} at offset {newest.offset} of partition {newest.partition}"
