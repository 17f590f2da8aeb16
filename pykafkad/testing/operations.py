"""What a test, or the control API, does to a broker that runs, and asks of it, however it was started."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from pykafkad import errors
from pykafkad.testing import failure_report, groups, records, settings, snapshots, topics
from pykafkad.testing.clocks import BrokerClock
from pykafkad.testing.faults import Faults
from pykafkad.testing.groups import Group
from pykafkad.testing.records import Bounds, Found, Record, Wanted, Writable
from pykafkad.testing.topics import Partition, Topic
from pykafkad.testing.waits import TIMEOUT_SECONDS, until
from pykafkad.testing.wire_client import OwnWireClient, Refused

if TYPE_CHECKING:
    from socket import socket

    import pyarrow

    from pykafkad.testing.deliveries import Deliveries, Read
    from pykafkad.testing.lint import Finding
    from pykafkad.testing.traces import Trace

    class Running(Protocol):
        """A broker on a thread of this process, in a process of its own, or the one that this process serves."""

        @property
        def bootstrap(self) -> str:
            """`host:port` for clients."""

        @property
        def is_running(self) -> bool:
            """Whether it serves."""

        @property
        def has_several(self) -> bool:
            """Whether there are several brokers, each of which is asked for what is its own."""

        def connect(self, node_id: int | None = None) -> socket:
            """A new connection for the calls of a test, to that one of several brokers. Raises RuntimeError before the
            start, and OSError."""

        def wait_until_known(self) -> None: ...

        def reset(self, topics: dict[str, tuple[int, dict[str, str]]]) -> None: ...

        def metrics(self) -> str: ...

        def add_fault(self, **fields: Any) -> int: ...

        def release_fault(self, number: int) -> None: ...

        def fault_counts(self, number: int) -> tuple[int, int]: ...

        def advance_clock(self, seconds: float) -> float: ...

        def start_trace(self, frame_bytes: int | None = None) -> None: ...

        def stop_trace(self) -> None: ...

        def clear_trace(self) -> None: ...

        def traced(self, limit: int | None = None, after: int = 0) -> tuple[list[Any], int, int]: ...

        def keep_timeline(self) -> None: ...

        def note(self, event: str, fields: dict[str, object]) -> None: ...

        def look(
            self, lists: list[str], topic: str | None = None, events_after: int | None = None
        ) -> dict[str, Any]: ...


_DONE = ("Empty", "CompleteCommit", "CompleteAbort", "Dead")


class Operations:
    """The calls of a broker that runs; it may be used from several threads. Methods that ask the broker raise `Refused`
    for its errors."""

    def __init__(self, running: Running, topics: Mapping[str, Topic | None]) -> None:
        """`topics` are there from the start on, and again after a `reset`."""
        self._running = running
        self._topics = topics
        self._asked = self._client()
        self._trace: Trace | None = None
        self.faults = Faults(running)
        """What goes wrong on purpose (`pykafkad.testing.faults`)."""
        self.clock = BrokerClock(running)
        """The broker's time, which can be moved forward (`pykafkad.testing.clocks`)."""

    def _client(self) -> OwnWireClient:
        running = self._running
        if not running.has_several:
            return OwnWireClient(running.connect)
        from pykafkad.testing.cluster_client import ClusterWireClient

        return ClusterWireClient(running.connect, running.wait_until_known)

    @property
    def bootstrap(self) -> str:
        """`host:port`, for every client's bootstrap servers."""
        return self._running.bootstrap

    @property
    def is_running(self) -> bool:
        """Whether it serves."""
        return self._running.is_running

    def check_answers(self) -> None:
        """Ask the broker for next to nothing. Raises OSError if it does not answer."""
        self._asked.ask("Metadata", topics=[])

    def disconnect(self) -> None:
        """Close the connection of these calls; the next call makes another."""
        self._asked.close()

    # --- states -------------------------------------------------------------------------------------------------------

    def reset(self) -> None:
        """Go back to the topics, records and offsets of the constructor: other topics, groups, transactions, dynamic
        settings and faults are gone. Clients stay connected."""
        self._running.reset(topics.wanted(self._topics))
        self.faults.every.clear()
        self._fill()

    def _seed(self) -> None:
        """What the constructor asks for, in a broker that has nothing."""
        topics.create_topics(self._asked, self._topics)
        self._fill()

    def _fill(self) -> None:
        """What the topics have at the start."""

    def save(self, name: str) -> None:
        """Save the state of everything under a name, for `rewind`."""
        snapshots.act(self._asked, "create", name)

    def delete_saved(self, name: str) -> None:
        """Forget a saved state."""
        snapshots.act(self._asked, "delete", name)

    def rewind(self, name: str, topic: str | None = None) -> None:
        """Go back to a saved state: one topic, or everything (clients connect anew, and faults are released)."""
        if ":" in name:
            raise ValueError(f"name: {name!r} has a colon, which no name of a saved state has; a topic is given apart")
        # The broker that serves next is handed the connection that asks, and does not know whose it is: one of its own.
        asking = OwnWireClient(self._running.connect)
        with self._asked.put_off():
            try:
                snapshots.act(asking, "restore", name if topic is None else f"{name}:{topic}")
            finally:
                asking.close()
            if topic is None:
                self.faults.every.clear()

    # --- topics and records -------------------------------------------------------------------------------------------

    def create_topic(self, name: str, partitions: int = 1, settings: Mapping[str, object] | None = None) -> None:
        """Create a topic; it can be used when this returns."""
        topics.create_topics(self._asked, {name: Topic(partitions, settings)})

    def delete_topic(self, name: str) -> None:
        """Delete a topic with its records; it is gone when this returns."""
        topics.delete_topic(self._asked, name)

    def topics(self) -> dict[str, int]:
        """The topics that there are with their numbers of partitions, without Kafka's own."""
        return topics.partition_counts(self._asked)

    def produce(self, topic: str, *values: Writable) -> list[Record]:
        """Write records to a topic, which is created where it is not there; they are there when this returns. Each is a
        value, (key, value), or a `NewRecord`. What is returned says where each one is."""
        return records.write(self._asked, topic, values, self.clock.ahead_seconds)

    def records(
        self,
        topic: str,
        partition: int | None = None,
        *,
        committed_only: bool = False,
        offset: int | None = None,
        limit: int | None = None,
        last: bool = False,
    ) -> list[Record]:
        """What a topic, or one partition of it, holds now, in the order of partitions and offsets. With
        `committed_only` as a consumer with read_committed sees it; from an `offset` of the partition on; at most
        `limit` records, the first or the `last` ones. No more is read than that."""
        return self.find_records(topic, Wanted(partition, offset, limit, last, topics.level(committed_only))).records

    def bounds(self, topic: str, wanted: Wanted) -> Bounds:
        """The first and the next offset of each of those partitions."""
        return records.bounds(self._asked, topic, wanted)

    def find_records(self, topic: str, wanted: Wanted) -> Found:
        """Those records, and how many are left out."""
        return records.read(self._asked, topic, wanted)

    def table(
        self,
        topic: str,
        partition: int | None = None,
        *,
        key: str = "bytes",
        value: str = "bytes",
        committed_only: bool = False,
    ) -> pyarrow.Table:
        """What `records` returns as an Arrow table (extra `table`), for pandas, Polars and others. `key` and `value`
        say what they are: `bytes`, `text`, or `json`, whose objects become columns of structs.

        Raises ValueError, which names the record, for one that is something else."""
        from pykafkad.cli import record_table

        for name, content in (("key", key), ("value", value)):
            record_table.check_content(name, content)
        found = self.records(topic, partition, committed_only=committed_only)
        return record_table.table(found, key, value)

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
        wanted = Wanted(isolation_level=topics.level(committed_only))
        return self.wait_for_found(topic, count, timeout, wanted).records

    def wait_for_found(self, topic: str, count: int, timeout: float, wanted: Wanted) -> Found:
        """The same, of those that are `wanted`: at least `count`, if it sets a limit."""
        if count < 1:
            raise ValueError(f"count: {count} is below 1")

        def read() -> Found:
            return self.find_records(topic, wanted)

        def there(_: Found) -> str:
            found = records.awaited(lambda: records.bounds(self._asked, topic, wanted), read, 1)().records
            return f"{len(found)}{_last(found)}"

        look = records.awaited(lambda: records.bounds(self._asked, topic, wanted), read, count)
        return until(look, lambda seen: len(seen.records) >= count, f"{count} records in {topic}", timeout, there)

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

    def trace(self, frame_bytes: int | None = None) -> Trace:
        """Record the requests of clients and their answers from now on, also over restarts: what was recorded
        (`pykafkad.testing.traces`). Without it nothing is recorded, and nothing costs time. Of each request and answer
        at most `frame_bytes` are kept, 32 KiB without it."""
        return self.recorded().start(frame_bytes)

    def deliveries(self, topic: str) -> Deliveries:
        """What the trace shows of a topic: the records that producers were told are written, and those that
        consumers were sent (`pykafkad.testing.deliveries`). Raises ValueError for a trace that is not whole."""
        from pykafkad.testing import deliveries

        exchanges, lost = self.recorded().whole()
        return deliveries.follow(topic, topics.topic_id(self._asked, topic), exchanges, lost)

    def assert_none_lost(self, topic: str, read: Iterable[Read] | None = None, *, group: str | None = None) -> None:
        """Every record that a producer was told is written was read: by each group and each consumer without one that
        the trace shows, by that `group`, or among what the test's program has `read` (values, pairs of partition and
        offset, or `Record`s). Raises AssertionError, which names partitions, offsets, keys and clients."""
        self.deliveries(topic).assert_none_lost(read, group=group)

    def assert_none_doubled(self, topic: str, read: Iterable[Read] | None = None, *, group: str | None = None) -> None:
        """No record was read twice, and none that was sent again was written twice; else as `assert_none_lost`."""
        self.deliveries(topic).assert_none_doubled(read, group=group)

    def assert_order_kept(self, topic: str, read: Iterable[Read] | None = None, *, group: str | None = None) -> None:
        """The records of each partition were written in the order in which each client sent them first, and read in
        the order of their offsets; else as `assert_none_lost`."""
        self.deliveries(topic).assert_order_kept(read, group=group)

    def lint(self, *, upgrade: bool = False) -> list[Finding]:
        """What the trace shows of habits of clients that cost, or that will not work for long
        (`pykafkad.testing.lint`). With `upgrade` also what would change with Kafka 4.x and its clients."""
        from pykafkad.testing import lint

        exchanges = self.recorded().exchanges()
        compacted = set()
        for topic in lint.topics_written(exchanges):
            try:
                rows = {each["name"]: each["value"] or "" for each in self.settings(topic)}
            except Refused:
                # It is gone.
                continue
            if "compact" in rows.get("cleanup.policy", ""):
                compacted.add(topic)
        return lint.look(exchanges, frozenset(compacted), upgrade=upgrade)

    def recorded(self) -> Trace:
        """The trace as it is, on or off."""
        if self._trace is None:
            from pykafkad.testing.traces import Trace

            self._trace = Trace(self._running)
        return self._trace

    # --- for the page of a control API --------------------------------------------------------------------------------

    def keep_timeline(self) -> None:
        """Remember what happens; to be called before the start."""
        self._running.keep_timeline()

    def note(self, event: str, fields: dict[str, object]) -> None:
        """Something that was done to the broker happened, too."""
        self._running.note(event, fields)

    def look(self, lists: list[str], topic: str | None = None, events_after: int | None = None) -> dict[str, Any]:
        """What there is: `pykafkad/server/overview.py` has the lists."""
        return self._running.look(lists, topic, events_after)

    def settings(self, topic: str | None = None) -> list[dict[str, Any]]:
        """The settings of the broker or of a topic, with where each comes from. Raises Refused."""
        return settings.describe(self._asked, topic)

    # --- when a test fails --------------------------------------------------------------------------------------------

    def report(self, first_topic: str | None = None) -> str:
        """What there is, for people: topics with offsets, groups with members and lag, faults and how often each
        fired; of a trace that is on what the lint sees, and the last requests. `first_topic` comes first, as not all of
        many topics are told."""
        text = failure_report.text(self._asked, self.bootstrap, self.faults, first_topic)
        if self._trace is None or not self._trace.is_on:
            return text
        lines = [f"lint: {each.client_id}: {each.seen}: {each.advice}" for each in self.lint()[: failure_report.MOST]]
        text = "\n".join([text, *lines])
        lines = self._trace.last_lines(failure_report.MOST)
        return "\n".join([text, *(["last requests:", *lines] if lines else ["no requests were traced"])])

    def metrics(self) -> str:
        """Counters and gauges as Prometheus' text, with the names that Kafka's have by its JMX exporter."""
        return self._running.metrics()


def _last(seen: list[Record]) -> str:
    if not seen:
        return ""
    newest = seen[-1]
    return f", the last is {newest.key!r}: {newest.value!r} at offset {newest.offset} of partition {newest.partition}"
