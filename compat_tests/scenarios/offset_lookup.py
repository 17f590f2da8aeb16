"""ListOffsets, OffsetForLeaderEpoch and DeleteRecords: positions in a log."""

from __future__ import annotations

from typing import Any

from compat_tests.scenarios.exchange import Exchange, part, versions
from compat_tests.scenarios.fetch import filled
from compat_tests.scenarios.produce import KEPT, T0
from compat_tests.scenarios.registry import scenario
from pykafkad.wire.batch import build_batch

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING = -1, -2, -3, -4, -5, -6


def looked_up(name: str, *rows: tuple[int, int], **more: Any) -> Any:
    """One topic of a ListOffsets request; rows are (partition, timestamp)."""
    partitions = [part("ListOffsets", "ListOffsetsPartition", partition_index=p, timestamp=t, **more) for p, t in rows]
    return part("ListOffsets", "ListOffsetsTopic", name=name, partitions=partitions)


def look_up(broker: Exchange, version: int, *topics: Any, note: str = "", **fields: Any) -> None:
    """Record a ListOffsets request."""
    broker.ask("ListOffsets", version, note=note, replica_id=-1, topics=list(topics), timeout_ms=5000, **fields)


@scenario
def special_timestamps(broker: Exchange) -> None:
    """Special timestamps -1 to -6, each from the version that knows it; older versions refuse it."""
    name, _ = filled(broker)
    for version in versions("ListOffsets"):
        for special in (LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING, -7):
            look_up(broker, version, looked_up(name, (0, special)), note=str(special))


@scenario
def by_time(broker: Exchange) -> None:
    """The first record at or after a time, with its own timestamp, also inside a batch and with unordered
    timestamps.
    """
    name = broker.topic(**KEPT)
    records = [(b"k", b"v", [], T0 + delta) for delta in (0, 10, 10, 5, 30)]
    broker.produce(name, 0, build_batch(records))
    broker.produce(name, 0, build_batch([(b"k", b"v", [], T0 + 20), (b"k", b"v", [], T0 + 40)], codec=2))
    for version in versions("ListOffsets"):
        for delta in (-1, 0, 1, 6, 10, 11, 25, 30, 31, 40, 41):
            look_up(broker, version, looked_up(name, (0, T0 + delta)), note=f"{delta}")
        look_up(broker, version, looked_up(name, (0, 0)), note="zero")
        look_up(broker, version, looked_up(name, (0, MAX_TIMESTAMP)), note="maximum")


@scenario
def empty_log(broker: Exchange) -> None:
    """In an empty log both ends are 0 and no time is found."""
    name = broker.topic()
    for version in (1, 4, 5, 7, 8, 10, 11):
        for timestamp in (LATEST, EARLIEST, MAX_TIMESTAMP, 0, T0):
            look_up(broker, version, looked_up(name, (0, timestamp)), note=str(timestamp))


@scenario
def lookup_errors(broker: Exchange) -> None:
    """Unknown topics and partitions, repeated ones, wrong epochs, invalid isolation levels."""
    name, _ = filled(broker)
    for version in versions("ListOffsets"):
        topics = (looked_up(name, (0, LATEST), (7, LATEST), (-1, LATEST)), looked_up(broker.name("none"), (0, LATEST)))
        look_up(broker, version, *topics)
        look_up(broker, version, looked_up(name, (0, LATEST), (0, EARLIEST)), note="twice")
    for version in (4, 7, 11):
        for epoch in (-1, 0, 1):
            look_up(broker, version, looked_up(name, (0, LATEST), current_leader_epoch=epoch), note=f"epoch {epoch}")
    for level in (0, 1):
        look_up(broker, 7, looked_up(name, (0, LATEST)), isolation_level=level, note=f"level {level}")
    look_up(broker, 7, note="nothing asked")


@scenario
def leader_epochs(broker: Exchange) -> None:
    """The end offset of the largest epoch that is not above the requested one."""
    name, _ = filled(broker)
    for version in versions("OffsetForLeaderEpoch"):
        for replica in (-1, -2):
            for current, asked in ((-1, 0), (0, 0), (-1, 1), (-1, -1), (1, 0), (0, 5)):
                fields = {"partition": 0, "current_leader_epoch": current, "leader_epoch": asked}
                rows = [part("OffsetForLeaderEpoch", "OffsetForLeaderPartition", **fields)]
                topics = [part("OffsetForLeaderEpoch", "OffsetForLeaderTopic", topic=name, partitions=rows)]
                note = f"replica {replica} current {current} asked {asked}"
                broker.ask("OffsetForLeaderEpoch", version, note=note, replica_id=replica, topics=topics)
        rows = [part("OffsetForLeaderEpoch", "OffsetForLeaderPartition", partition=9, leader_epoch=0)]
        topics = [
            part("OffsetForLeaderEpoch", "OffsetForLeaderTopic", topic=topic, partitions=rows)
            for topic in (name, "none")
        ]
        broker.ask("OffsetForLeaderEpoch", version, note="unknown", topics=topics)


def deleted_before(name: str, *rows: tuple[int, int]) -> Any:
    """One topic of a DeleteRecords request; rows are (partition, offset)."""
    partitions = [part("DeleteRecords", "DeleteRecordsPartition", partition_index=p, offset=o) for p, o in rows]
    return part("DeleteRecords", "DeleteRecordsTopic", name=name, partitions=partitions)


@scenario
def delete_records(broker: Exchange) -> None:
    """The log start moves up and never back; -1 deletes everything; above the end is OFFSET_OUT_OF_RANGE."""
    for version in versions("DeleteRecords"):
        name, _ = filled(broker, f"of-{version}", partitions=2)
        for offset in (4, 2, 4, 10, -2, -1):
            topic = deleted_before(name, (0, offset))
            broker.ask("DeleteRecords", version, note=f"before {offset}", topics=[topic], timeout_ms=5000)
            look_up(broker, 5, looked_up(name, (0, EARLIEST), (0, LATEST)), note=f"after {offset}")
        unknown = deleted_before(broker.name("none"), (0, 1))
        topics = [deleted_before(name, (1, 3), (5, 1)), unknown]
        broker.ask("DeleteRecords", version, note="beside unknown ones", topics=topics, timeout_ms=5000)


@scenario
def delete_records_of_a_compacted_topic(broker: Exchange) -> None:
    """A topic that is only compacted refuses DeleteRecords with POLICY_VIOLATION."""
    name = broker.topic(cleanup_policy="compact", **KEPT)
    broker.produce(name, 0, build_batch([(b"k", b"v")] * 5, timestamp_ms=T0))
    broker.ask("DeleteRecords", 2, topics=[deleted_before(name, (0, 2))], timeout_ms=5000)
    both = broker.topic("both", cleanup_policy="compact,delete", **KEPT)
    broker.produce(both, 0, build_batch([(b"k", b"v")] * 5, timestamp_ms=T0))
    broker.ask("DeleteRecords", 2, topics=[deleted_before(both, (0, 2))], timeout_ms=5000)


@scenario
def log_directories(broker: Exchange) -> None:
    """Each log directory with its partitions, their sizes in bytes, and the disk's size from version 4 on."""
    name, _ = filled(broker, partitions=2)
    for version in versions("DescribeLogDirs"):
        for note, asked in (("both", [0, 1]), ("one", [1]), ("unknown partition", [7]), ("none", [])):
            topics = [part("DescribeLogDirs", "DescribableLogDirTopic", topic=name, partitions=asked)]
            broker.ask("DescribeLogDirs", version, note=note, topics=topics)
        topics = [part("DescribeLogDirs", "DescribableLogDirTopic", topic=broker.name("none"), partitions=[0])]
        broker.ask("DescribeLogDirs", version, note="unknown topic", topics=topics)
        broker.ask("DescribeLogDirs", version, note="no topics", topics=[])
        everything = broker.quietly("DescribeLogDirs", version, topics=None)
        assert any(topic.name == name for topic in everything.results[0].topics)
