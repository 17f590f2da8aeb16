"""Fetch: the records returned, the limits, and fetch sessions (KIP-227)."""

from __future__ import annotations

import time
from typing import Any

from compat_tests.scenarios.exchange import CLOSED, ZERO_UUID, Exchange, part, request, versions
from compat_tests.scenarios.produce import KEPT, batch
from compat_tests.scenarios.registry import scenario

LIMIT = 1_000_000
# Many times longer than a request needs to reach a busy broker and to wait there. Nothing tells that it does.
PARKED_SECONDS = 0.5
LATEST_BY_NAME = 12
FIRST_BY_ID = 13


def row(partition: int, offset: int, max_bytes: int = LIMIT, **more: Any) -> Any:
    """One partition of a Fetch request."""
    fields = {"partition": partition, "fetch_offset": offset, "partition_max_bytes": max_bytes, **more}
    return part("Fetch", "FetchPartition", **fields)


def from_topic(name: str, topic_id: bytes, *rows: Any) -> Any:
    """One topic of a Fetch request, by name or by id, depending on the version."""
    return part("Fetch", "FetchTopic", topic=name, topic_id=topic_id, partitions=list(rows))


def fetch(broker: Exchange, version: int, *topics: Any, **fields: Any) -> Any:
    """Record a Fetch request that does not wait for data."""
    limits = {"max_wait_ms": 0, "min_bytes": 0, "max_bytes": LIMIT, **fields}
    return broker.ask("Fetch", version, topics=list(topics), **limits)


def filled(
    broker: Exchange, kind: str = "topic", partitions: int = 1, batches: int = 3, **configs: str
) -> tuple[str, bytes]:
    """A topic with `batches` batches of three records in each partition, and its id."""
    name = broker.topic(kind, partitions, **KEPT, **configs)
    for partition in range(partitions):
        for number in range(batches):
            broker.produce(name, partition, batch([(b"k", b"%d" % number), (None, b"x" * 50), (b"end", None)]))
    return name, broker.topic_id(name)


@scenario
def every_version(broker: Exchange) -> None:
    """Whole batches from the one that holds the offset on; at the end of the log the answer is empty."""
    name, topic_id = filled(broker)
    for version in versions("Fetch"):
        for offset in (0, 1, 3, 8, 9):
            fetch(broker, version, from_topic(name, topic_id, row(0, offset)), note=f"from {offset}")


@scenario
def outside_the_log(broker: Exchange) -> None:
    """An offset below the start or above the end is OFFSET_OUT_OF_RANGE, with the log's own bounds."""
    name, topic_id = filled(broker)
    for version in (4, 5, 11, 12, 13, 18):
        for offset in (-1, 10, 2**62):
            fetch(broker, version, from_topic(name, topic_id, row(0, offset)), note=f"from {offset}")


@scenario
def unknown_partitions(broker: Exchange) -> None:
    """Unknown topics, ids and partitions have their errors beside valid rows."""
    name, topic_id = filled(broker)
    for version in (4, 7, 11, 12, 13, 15, 18):
        none = from_topic(broker.name("none"), b"z" * 16, row(0, 0))
        fetch(broker, version, none, from_topic(name, topic_id, row(0, 0), row(1, 0), row(-1, 0)))
    fetch(broker, 13, from_topic("", ZERO_UUID, row(0, 0)), note="zero id")


@scenario
def size_limits(broker: Exchange) -> None:
    """The first batch is returned whole whatever the limits; then the limits count (KIP-74)."""
    name, topic_id = filled(broker, partitions=2)
    for version in (4, 12, 16):
        for limit in (0, 1, 100, 200, 300, 400):
            rows = (row(0, 0, limit), row(1, 0, limit))
            fetch(broker, version, from_topic(name, topic_id, *rows), note=f"{limit} bytes a partition")
            rows = (row(0, 0), row(1, 0))
            fetch(broker, version, from_topic(name, topic_id, *rows), note=f"{limit} bytes in all", max_bytes=limit)
    fetch(broker, 12, from_topic(name, topic_id, row(1, 0, 1), row(0, 0, 1)), note="the other order")
    fetch(broker, 12, from_topic(name, topic_id, row(0, 9), row(1, 0, 1)), note="first one is empty")


@scenario
def waiting(broker: Exchange) -> None:
    """A Fetch waits up to `max_wait_ms` for enough bytes. An error, enough bytes, an append or a deletion ends the
    wait.
    """
    name, topic_id = filled(broker)

    def took(note: str, *topics: Any, max_wait_ms: int = 60_000, **fields: Any) -> None:
        before = time.monotonic()
        fetch(broker, 12, *topics, note=note, max_wait_ms=max_wait_ms, **fields)
        broker.record(f"{note}: waited", str(time.monotonic() - before > max_wait_ms * 0.8 / 1000))

    at_end, at_start = from_topic(name, topic_id, row(0, 9)), from_topic(name, topic_id, row(0, 0))
    took("at the end", at_end, max_wait_ms=500, min_bytes=1)
    took("at the end, no minimum", at_end, min_bytes=0)
    took("enough", at_start, min_bytes=100)
    took("not enough", at_start, max_wait_ms=500, min_bytes=100_000)
    took("out of range", from_topic(name, topic_id, row(0, 99)), min_bytes=1)
    took("unknown beside empty", at_end, from_topic("none", topic_id, row(0, 0)), max_wait_ms=500, min_bytes=1)
    took("nothing asked", min_bytes=1)
    connection = broker.connect()
    fields = {"max_wait_ms": 60_000, "min_bytes": 1, "max_bytes": LIMIT, "topics": [at_end]}
    connection.send("Fetch", 12, request("Fetch", 12, **fields))
    time.sleep(0.1)
    broker.produce(name, 0, batch())
    before = time.monotonic()
    broker.record("woken by an append", connection.receive(), 12)
    broker.record("woken by an append: waited", str(time.monotonic() - before > 40))
    going, going_id = filled(broker, "going")
    staying, staying_id = filled(broker, "staying")
    fields["topics"] = [
        from_topic(each, each_id, row(0, 9)) for each, each_id in ((going, going_id), (staying, staying_id))
    ]
    connection.send("Fetch", 12, request("Fetch", 12, **fields))
    # A Fetch that arrives after the deletion waits for the other topic to the end of its time.
    time.sleep(PARKED_SECONDS)
    broker.quietly("DeleteTopics", 5, topic_names=[going], timeout_ms=10_000)
    before = time.monotonic()
    broker.record("woken by the deletion of one of two topics", connection.receive(), 12)
    broker.record("woken by a deletion: waited", str(time.monotonic() - before > 40))


@scenario
def leader_epochs(broker: Exchange) -> None:
    """An epoch older than the leader's is FENCED_LEADER_EPOCH, a newer one UNKNOWN_LEADER_EPOCH."""
    name, topic_id = filled(broker)
    for version in (9, 11, 12, 13, 16, 18):
        for epoch in (-1, 0, 1):
            rows = row(0, 0, current_leader_epoch=epoch)
            fetch(broker, version, from_topic(name, topic_id, rows), note=f"epoch {epoch}")


@scenario
def last_fetched_epochs(broker: Exchange) -> None:
    """If the log does not have the last fetched epoch at that offset, the answer says where the histories diverge."""
    name, topic_id = filled(broker)
    for version in (12, 13, 16, 18):
        for epoch, offset in ((0, 3), (0, 9), (1, 3), (5, 9), (0, 10)):
            rows = row(0, offset, last_fetched_epoch=epoch, current_leader_epoch=0)
            fetch(broker, version, from_topic(name, topic_id, rows), note=f"epoch {epoch} offset {offset}")


@scenario
def isolation(broker: Exchange) -> None:
    """With read_committed the list of aborted transactions is present and empty; otherwise it is null."""
    name, topic_id = filled(broker)
    for version in versions("Fetch"):
        for level in (0, 1):
            fetch(broker, version, from_topic(name, topic_id, row(0, 0)), isolation_level=level, note=f"level {level}")


@scenario
def sessions(broker: Exchange) -> None:
    """A session is opened, returns only changes, takes additions and removals, and is closed."""
    name, topic_id = filled(broker, partitions=3, batches=1)
    for version in (7, 11, 12, 13, 18):
        everything = from_topic(name, topic_id, row(0, 0), row(1, 3), row(2, 0))
        opened = fetch(broker, version, everything, session_id=0, session_epoch=0, note="open")
        session = {"session_id": opened.session_id}
        assert opened.session_id > 0
        fetch(broker, version, **session, session_epoch=1, note="unchanged positions")
        advanced = from_topic(name, topic_id, row(0, 3), row(2, 3))
        fetch(broker, version, advanced, **session, session_epoch=2, note="advanced")
        fetch(broker, version, **session, session_epoch=3, note="nothing new")
        forgotten = [part("Fetch", "ForgottenTopic", topic=name, topic_id=topic_id, partitions=[1])]
        fetch(broker, version, **session, session_epoch=4, forgotten_topics_data=forgotten, note="one forgotten")
        again = from_topic(name, topic_id, row(1, 0), row(0, 99))
        fetch(broker, version, again, **session, session_epoch=5, note="one again, one out of range")
        fetch(broker, version, **session, session_epoch=5, note="epoch used before")
        fetch(broker, version, **session, session_epoch=77, note="epoch of the future")
        fetch(broker, version, **session, session_epoch=6, note="still there")
        fetch(broker, version, everything, **session, session_epoch=-1, note="closed with a full fetch")
        fetch(broker, version, **session, session_epoch=7, note="gone")


@scenario
def wrong_sessions(broker: Exchange) -> None:
    """Unknown ids are FETCH_SESSION_ID_NOT_FOUND; a full fetch may close one session and open the next."""
    name, topic_id = filled(broker, batches=1)
    for version in (7, 12, 13):
        topic = from_topic(name, topic_id, row(0, 0))
        for session_id, epoch in ((12345, 1), (12345, 0), (12345, -1), (0, 1), (0, -1), (-1, -1)):
            fetch(broker, version, topic, session_id=session_id, session_epoch=epoch, note=f"{session_id} {epoch}")
    opened = fetch(broker, LATEST_BY_NAME, topic, session_id=0, session_epoch=0, note="by name")
    session = {"session_id": opened.session_id, "session_epoch": 1}
    fetch(broker, FIRST_BY_ID, **session, note="the same session by id")


@scenario
def unknown_topic_in_a_session(broker: Exchange) -> None:
    """An unknown topic in a session is reported every time, until it exists."""
    name, topic_id = filled(broker, batches=1)
    none = from_topic(broker.name("none"), b"q" * 16, row(0, 0))
    for version in (11, 12, 13):
        topics = (from_topic(name, topic_id, row(0, 3)), none)
        opened = fetch(broker, version, *topics, session_id=0, session_epoch=0, note="open")
        if opened.session_id:
            fetch(broker, version, session_id=opened.session_id, session_epoch=1, note="next")


@scenario
def replicas(broker: Exchange) -> None:
    """A consumer is replica -1; a number that is not a replica of the partition is refused."""
    name, topic_id = filled(broker, batches=1)
    for version in (11, 12, 14):
        for replica in (-1, -2, 5):
            fetch(broker, version, from_topic(name, topic_id, row(0, 0)), replica_id=replica, note=f"replica {replica}")


@scenario
def compressed_batches(broker: Exchange) -> None:
    """Batches are returned as they were sent, in every codec; zstd not below version 10."""
    name = broker.topic(**KEPT)
    topic_id = broker.topic_id(name)
    for codec in range(5):
        broker.produce(name, 0, batch([(b"k", b"x" * 100)] * 5, codec=codec))
    for version in (4, 9, 10, 12, 18):
        fetch(broker, version, from_topic(name, topic_id, row(0, 0)))


@scenario
def after_delete_records(broker: Exchange) -> None:
    """DeleteRecords moves the log start: an offset below it is out of range, one inside a batch returns that batch."""
    name, topic_id = filled(broker)
    rows = [part("DeleteRecords", "DeleteRecordsPartition", partition_index=0, offset=4)]
    topics = [part("DeleteRecords", "DeleteRecordsTopic", name=name, partitions=rows)]
    broker.ask("DeleteRecords", 2, topics=topics, timeout_ms=5000)
    for version in (4, 5, 12, 18):
        for offset in (0, 3, 4, 5):
            fetch(broker, version, from_topic(name, topic_id, row(0, offset)), note=f"from {offset}")


@scenario
def pipelined_requests(broker: Exchange) -> None:
    """Pipelined requests on one connection are answered in order."""
    name, topic_id = filled(broker, batches=1)
    connection = broker.connect()
    for offset in (0, 3, 1):
        topics = [from_topic(name, topic_id, row(0, offset))]
        connection.send("Fetch", 12, request("Fetch", 12, max_wait_ms=100, min_bytes=1, max_bytes=LIMIT, topics=topics))
        connection.send("Metadata", 9, request("Metadata", 9, topics=[]))
    for number in range(6):
        answer = connection.receive()
        assert answer != CLOSED
        broker.record(f"answer {number}", answer, 9 if number % 2 else 12)
