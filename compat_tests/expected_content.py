"""The records, offsets and settings that a data directory must hold while brokers serve it in turn."""

from __future__ import annotations

import random
import time
from typing import Any, NamedTuple

from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition
from kafka import KafkaConsumer
from kafka.structs import OffsetAndMetadata

from compat_tests.samples import SAMPLES, wait_until
from compat_tests.scenarios.exchange import Exchange, part
from pykafkad import errors
from pykafkad.wire.batch import build_batch

PLAIN, COMPACTED, TRANSACTIONAL = "plain", "compacted", "transactional"
IN_TRANSACTIONS = "in-transactions"
"""The group whose offsets are committed in transactions only."""
PARTITIONS = {PLAIN: 3, COMPACTED: 2, TRANSACTIONAL: 2}
SMALL_SEGMENTS = {"internal.segment.bytes": "16384"}
CONFIGS = {
    PLAIN: {"internal.segment.bytes": "4096", "index.interval.bytes": "512"},
    COMPACTED: {**SMALL_SEGMENTS, "cleanup.policy": "compact", "delete.retention.ms": "1"},
    TRANSACTIONAL: SMALL_SEGMENTS,
}
ALL = "read_uncommitted"
COMMITTED = "read_committed"


class Row(NamedTuple):
    """One record as every reader must return it."""

    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]


class Sequence:
    """An idempotent or transactional producer, and the fields of its next batch."""

    def __init__(self, producer_id: int, epoch: int, transactional_id: str | None = None) -> None:
        self.transactional_id = transactional_id
        self.ids = {"producer_id": producer_id, "producer_epoch": epoch}
        self.next: dict[tuple[str, int], int] = {}
        # What the transaction commits for the group `IN_TRANSACTIONS`: offset and metadata.
        self.committed = (0, "")


class ExpectedContent:
    """The expected content of the directory, and the steps that add to it through one broker at a time."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, int], dict[int, Row]] = {
            (topic, p): {} for topic, count in PARTITIONS.items() for p in range(count)
        }
        self.aborted: set[tuple[str, int, int]] = set()
        self.start_offsets = dict.fromkeys(self.rows, 0)
        self.stable_offsets: dict[tuple[str, int], int] = {}
        self.commits: dict[tuple[str, str, int], tuple[int, str]] = {}
        self.retention: dict[str, str] = {}
        self.producer_ids: list[int] = []
        self.sequence: Sequence | None = None
        self.last_data = b""
        # The producer that writes during all turns.
        self.last_of_sequence = (b"", 0)
        self.open: Sequence | None = None
        self.open_rows: set[tuple[str, int, int]] = set()
        self.turn = 0
        self.broker: Exchange

    # -- writing -------------------------------------------------------------------------------------------------------

    def batch(
        self, partition: tuple[str, int], records: list[Any], sequence: Sequence | None = None, **keywords: Any
    ) -> int:
        """Append one batch and remember its records by offset; returns the base offset."""
        ids: dict[str, Any] = {}
        if sequence is not None:
            ids = {**sequence.ids, "base_sequence": sequence.next.get(partition, 0)}
            sequence.next[partition] = ids["base_sequence"] + len(records)
        data = bytes(build_batch(records, **ids, **keywords))
        error_code, base_offset = self.produce(
            partition, data, sequence.transactional_id if sequence is not None else None
        )
        assert error_code == 0, (partition, error_code)
        for at, (key, value, headers, timestamp_ms) in enumerate(records):
            self.rows[partition][base_offset + at] = Row(timestamp_ms, key, value, list(headers))
        self.last_data = data
        return base_offset

    def produce(self, partition: tuple[str, int], data: bytes, transactional_id: str | None = None) -> tuple[int, int]:
        """Append a batch; returns (error code, base offset)."""
        rows = [part("Produce", "PartitionProduceData", index=partition[1], records=data)]
        topics = [part("Produce", "TopicProduceData", name=partition[0], partition_data=rows)]
        answer = self.broker.quietly(
            "Produce", 9, acks=-1, timeout_ms=10_000, transactional_id=transactional_id, topic_data=topics
        )
        (row,) = answer.responses[0].partition_responses
        return row.error_code, row.base_offset

    def new_producer(self, transactional_id: str | None = None) -> Sequence:
        """A new producer id; for a transactional one the coordinator is asked."""
        if transactional_id is not None:
            self.broker.until(
                lambda: self.broker.quietly("FindCoordinator", 4, key_type=1, coordinator_keys=[transactional_id]),
                lambda answer: answer.coordinators[0].error_code == 0,
            )
        wanted = {"transactional_id": transactional_id, "transaction_timeout_ms": 3_600_000}
        answer = self.broker.until(
            lambda: self.broker.quietly("InitProducerId", 4, **wanted), lambda answer: answer.error_code == 0
        )
        if transactional_id is None:
            assert answer.producer_id not in self.producer_ids
            self.producer_ids.append(answer.producer_id)
        return Sequence(answer.producer_id, answer.producer_epoch, transactional_id)

    def create_topics(self) -> None:
        """Create all topics, on the broker that serves first."""
        for topic, count in PARTITIONS.items():
            configs = {name.replace(".", "_"): value for name, value in CONFIGS[topic].items()}
            self.broker.prefix = "x"
            wanted = part("CreateTopics", "CreatableTopic", name=topic, num_partitions=count, replication_factor=1)
            wanted.configs = [
                part("CreateTopics", "CreatableTopicConfig", name=name.replace("_", "."), value=value)
                for name, value in configs.items()
            ]
            answer = self.broker.quietly("CreateTopics", 7, topics=[wanted], timeout_ms=10_000)
            assert answer.topics[0].error_code == 0, answer
            self.broker.topic_id(topic)

    def write(self) -> None:
        """Add what one broker's turn adds."""
        self.turn += 1
        now_ms = int(time.time() * 1000)
        for number in range(30):
            partition = (PLAIN, number % 3)
            rows = [(s.key, s.value, s.headers, now_ms + number * 20 - at) for at, s in enumerate(SAMPLES)]
            self.batch(partition, rows, codec=number % 5)
            self.batch(
                partition,
                [(b"t%d" % self.turn, bytes(range(256)) * (number % 7), [], now_ms + number)],
                codec=number // 3 % 5,
            )
        for number in range(60):
            key = b"k%d" % random.Random(self.turn * 100 + number).randrange(12)
            value = None if number % 7 == self.turn % 7 else b"%d of %d" % (number, self.turn) + random.randbytes(900)
            rows = [
                (key, value, [("n", b"%d" % number)], now_ms + number),
                (b"of turn %d" % self.turn, b"%d" % number, [], now_ms),
            ]
            self.batch((COMPACTED, number % 2), rows, codec=number % 5)
        for number in range(6):
            self.batch((TRANSACTIONAL, number % 2), [(b"between", b"%d" % self.turn + b"." * 3000, [], now_ms)])
        self.go_on_with_sequence(now_ms)
        self.write_transactions(now_ms)
        self.delete_records((PLAIN, 1))
        self.commit()
        self.alter_configs()

    def go_on_with_sequence(self, now_ms: int) -> None:
        """Write with the producer that lives through all turns, and with a new producer for each turn."""
        self.batch((PLAIN, 2), [(b"new", b"producer", [], now_ms)], self.new_producer())
        self.sequence = self.sequence or self.new_producer()
        for each in range(3):
            rows = [(b"sequence", b"%d.%d.%d" % (self.turn, each, record), [], now_ms) for record in range(4)]
            base_offset = self.batch((PLAIN, 0), rows, self.sequence, codec=each)
            self.last_of_sequence = (self.last_data, base_offset)

    def check_sequence(self) -> None:
        """Send three batches again, whichever broker took the earlier ones.

        The last batch is a duplicate; one behind a gap and one of an older epoch are refused.
        """
        data, base_offset = self.last_of_sequence
        assert self.produce((PLAIN, 0), data) == (0, base_offset)
        following = self.sequence.next[PLAIN, 0]
        for sequence in (following + 1, following - 8):
            gap = bytes(build_batch([(None, b"gap")], **self.sequence.ids, base_sequence=sequence, timestamp_ms=1))
            assert self.produce((PLAIN, 0), gap)[0] == errors.OUT_OF_ORDER_SEQUENCE_NUMBER

    # -- transactions --------------------------------------------------------------------------------------------------

    def write_transactions(self, now_ms: int) -> None:
        """Write a committed and an aborted transaction, each over two partitions and twice.

        One more transaction stays open. The broker that serves the directory next ends it, in turn with a commit and
        with an abort.
        """
        if self.open is not None:
            is_commit = self.turn % 4 < 2
            if not is_commit:
                self.aborted |= self.open_rows
            self.end(self.open, is_commit=is_commit)
        for is_commit in (True, False, True, False):
            sequence = self.new_producer("decided")
            rows = self.transact(sequence, (0, 1), now_ms, b"committed" if is_commit else b"aborted")
            if not is_commit:
                self.aborted |= rows
            self.end(sequence, is_commit=is_commit)
        self.wait_until_stable()
        self.open = self.new_producer("open")
        self.open_rows = self.transact(self.open, (0,), now_ms, b"undecided")
        self.batch((TRANSACTIONAL, 0), [(b"behind", b"the open one", [], now_ms)])
        self.stable_offsets = {(TRANSACTIONAL, 0): min(offset for _, _, offset in self.open_rows)}

    def transact(
        self, sequence: Sequence, partitions: tuple[int, ...], now_ms: int, value: bytes
    ) -> set[tuple[str, int, int]]:
        """Write three batches to each partition, and offsets of a group; returns where the records stand."""
        topic = part("AddPartitionsToTxn", "AddPartitionsToTxnTopic", name=TRANSACTIONAL, partitions=list(partitions))
        transaction = {
            "v3_and_below_transactional_id": sequence.transactional_id,
            "v3_and_below_producer_id": sequence.ids["producer_id"],
            "v3_and_below_producer_epoch": sequence.ids["producer_epoch"],
            "v3_and_below_topics": [topic],
        }
        self.broker.until(
            lambda: self.broker.quietly("AddPartitionsToTxn", 3, **transaction),
            lambda answer: (
                not any(
                    row.partition_error_code for row in answer.results_by_topic_v3_and_below[0].results_by_partition
                )
            ),
        )
        found = set()
        for each in range(3):
            for index in partitions:
                rows = [
                    (b"in a transaction", value + b" %d.%d" % (self.turn, each), [], now_ms),
                    (None, None, [], now_ms + 1),
                ]
                offset = self.batch((TRANSACTIONAL, index), rows, sequence, codec=each, is_transactional=True)
                found |= {(TRANSACTIONAL, index, offset), (TRANSACTIONAL, index, offset + 1)}
        self.commit_in(sequence, len(found) + self.turn)
        return found

    def commit_in(self, sequence: Sequence, offset: int) -> None:
        """Commit the offset of a group in the transaction."""
        ids = {"transactional_id": sequence.transactional_id, **sequence.ids}
        self.broker.coordinator(IN_TRANSACTIONS)
        answer = self.broker.until(
            lambda: self.broker.quietly("AddOffsetsToTxn", 3, group_id=IN_TRANSACTIONS, **ids),
            lambda answer: answer.error_code not in (14, 15, 16, 51),
        )
        assert answer.error_code == 0, answer
        row = {"partition_index": 0, "committed_offset": offset, "committed_metadata": f"in turn {self.turn}"}
        rows = [part("TxnOffsetCommit", "TxnOffsetCommitRequestPartition", **row)]
        topics = [part("TxnOffsetCommit", "TxnOffsetCommitRequestTopic", name=PLAIN, partitions=rows)]
        answer = self.broker.quietly("TxnOffsetCommit", 3, group_id=IN_TRANSACTIONS, topics=topics, **ids)
        assert answer.topics[0].partitions[0].error_code == 0, answer
        sequence.committed = offset, f"in turn {self.turn}"

    def end(self, sequence: Sequence, *, is_commit: bool) -> None:
        """Commit or abort, and repeat the request until it succeeds."""
        answer = self.broker.until(
            lambda: self.broker.quietly(
                "EndTxn", 3, transactional_id=sequence.transactional_id, committed=is_commit, **sequence.ids
            ),
            lambda answer: answer.error_code not in (14, 15, 16, 51),
        )
        assert answer.error_code == 0, answer
        if is_commit:
            self.commits[IN_TRANSACTIONS, PLAIN, 0] = sequence.committed
        wait_until(lambda: self.is_stable(IN_TRANSACTIONS), "the group's offsets are stable")

    def is_stable(self, group: str) -> bool:
        """Whether no transaction has an offset of the group pending."""
        self.broker.coordinator(group)
        asked = [part("OffsetFetch", "OffsetFetchRequestTopics", name=PLAIN, partition_indexes=[0])]
        groups = [part("OffsetFetch", "OffsetFetchRequestGroup", group_id=group, topics=asked)]
        (answer,) = self.broker.quietly("OffsetFetch", 8, require_stable=True, groups=groups).groups
        (row,) = answer.topics[0].partitions
        assert row.error_code in (0, errors.UNSTABLE_OFFSET_COMMIT), answer
        return row.error_code == 0

    def wait_until_stable(self) -> None:
        """Wait until the markers of all ended transactions are written."""
        partitions = ((TRANSACTIONAL, 0), (TRANSACTIONAL, 1))
        wait_until(
            lambda: all(self.offset(each, -1, 1) == self.offset(each, -1, 0) for each in partitions),
            "all transactions are decided",
        )

    # -- everything else -----------------------------------------------------------------------------------------------

    def offset(self, partition: tuple[str, int], timestamp_ms: int, isolation_level: int = 0) -> int:
        """ListOffsets of one partition: -1 is its end, -2 its start, other values are times."""
        rows = [part("ListOffsets", "ListOffsetsPartition", partition_index=partition[1], timestamp=timestamp_ms)]
        topics = [part("ListOffsets", "ListOffsetsTopic", name=partition[0], partitions=rows)]
        answer = self.broker.quietly("ListOffsets", 5, replica_id=-1, isolation_level=isolation_level, topics=topics)
        (row,) = answer.topics[0].partitions
        assert row.error_code == 0, answer
        return row.offset

    def delete_records(self, partition: tuple[str, int]) -> None:
        """Delete part of this turn's records, up to the middle of a segment and of a batch."""
        to_offset = sorted(self.rows[partition])[-37]
        rows = [part("DeleteRecords", "DeleteRecordsPartition", partition_index=partition[1], offset=to_offset)]
        topics = [part("DeleteRecords", "DeleteRecordsTopic", name=partition[0], partitions=rows)]
        answer = self.broker.quietly("DeleteRecords", 2, topics=topics, timeout_ms=10_000)
        assert answer.topics[0].partitions[0].error_code == 0, answer
        self.start_offsets[partition] = to_offset

    def commit(self) -> None:
        """Commit offsets of a group without members, of a group with one, and of a group that is then deleted."""
        for group in ("simple", f"doomed-{self.turn}"):
            self.broker.coordinator(group)
            for topic, partition in ((PLAIN, 0), (PLAIN, 2), (COMPACTED, self.turn % 2)):
                committed = (self.turn * 10 + partition, f"by turn {self.turn} 💡")
                row = {
                    "partition_index": partition,
                    "committed_offset": committed[0],
                    "committed_metadata": committed[1],
                }
                rows = [part("OffsetCommit", "OffsetCommitRequestPartition", **row)]
                topics = [part("OffsetCommit", "OffsetCommitRequestTopic", name=topic, partitions=rows)]
                answer = self.broker.quietly("OffsetCommit", 8, group_id=group, topics=topics)
                assert answer.topics[0].partitions[0].error_code == 0, answer
                self.commits[group, topic, partition] = committed
        answer = self.broker.quietly("DeleteGroups", 2, groups_names=[group])
        assert answer.results[0].error_code == 0, answer
        self.commits = {each: committed for each, committed in self.commits.items() if each[0] != group}
        consumer = KafkaConsumer(
            PLAIN,
            bootstrap_servers=self.broker.bootstrap,
            group_id="classic",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            consumer_timeout_ms=100_000,
        )
        for _, _ in zip(range(50), consumer, strict=False):
            pass
        positions = {each: consumer.position(each) for each in consumer.assignment()}
        consumer.commit({each: OffsetAndMetadata(position, "by a member", -1) for each, position in positions.items()})
        self.commits |= {
            ("classic", PLAIN, each.partition): (position, "by a member") for each, position in positions.items()
        }
        consumer.close()

    def alter_configs(self) -> None:
        """Change a setting of every topic, and reset one."""
        for topic in PARTITIONS:
            self.retention[topic] = str(900_000_000 + self.turn)
            configs = [
                part(
                    "IncrementalAlterConfigs",
                    "AlterableConfig",
                    name="retention.ms",
                    config_operation=0,
                    value=self.retention[topic],
                ),
                part(
                    "IncrementalAlterConfigs",
                    "AlterableConfig",
                    name="segment.ms",
                    config_operation=self.turn % 2,
                    value="600000000",
                ),
            ]
            resource = part(
                "IncrementalAlterConfigs", "AlterConfigsResource", resource_type=2, resource_name=topic, configs=configs
            )
            answer = self.broker.quietly("IncrementalAlterConfigs", 1, resources=[resource])
            assert answer.responses[0].error_code == 0, answer

    # -- looking -------------------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Check everything that a reader or an operator can see."""
        for partition in self.rows:
            self.broker.topic_id(partition[0])
            assert self.offset(partition, -2) == self.start_offsets[partition], partition
            stable = self.offset(partition, -1, 1)
            assert stable == self.stable_offsets.get(partition, self.offset(partition, -1)), partition
        for isolation_level in (ALL, COMMITTED):
            given = self.read(isolation_level)
            for partition in self.rows:
                expected = self.expected(partition, isolation_level)
                if partition[0] == COMPACTED:
                    assert given[partition].items() <= expected.items()
                    assert last_values(given[partition]) == last_values(expected)
                else:
                    assert given[partition] == expected, (partition, isolation_level)
        self.check_times()
        self.check_groups()
        self.check_configs()
        self.check_sequence()

    def expected(self, partition: tuple[str, int], isolation_level: str) -> dict[int, Row]:
        """The records that a reader must get."""
        end = self.stable_offsets.get(partition, 1 << 62) if isolation_level == COMMITTED else 1 << 62
        hidden = (
            {offset for topic, index, offset in self.aborted if (topic, index) == partition}
            if isolation_level == COMMITTED
            else set()
        )
        rows = self.rows[partition]
        return {
            offset: row
            for offset, row in rows.items()
            if self.start_offsets[partition] <= offset < end and offset not in hidden
        }

    def read(self, isolation_level: str) -> dict[tuple[str, int], dict[int, Row]]:
        """The records that librdkafka reads from every partition, from start to end; it verifies checksums."""
        settings = {
            "isolation.level": isolation_level,
            "enable.partition.eof": True,
            "enable.auto.commit": False,
            "check.crcs": True,
            "fetch.wait.max.ms": 50,
        }
        consumer = Consumer({"bootstrap.servers": self.broker.bootstrap, "group.id": "reader", **settings})
        consumer.assign([TopicPartition(topic, index, OFFSET_BEGINNING) for topic, index in self.rows])
        given: dict[tuple[str, int], dict[int, Row]] = {partition: {} for partition in self.rows}
        left = set(given)
        while left:
            message = consumer.poll(100)
            assert message is not None, f"no records arrived for {left}"
            partition = (message.topic(), message.partition())
            if message.error():
                left.discard(partition)
                continue
            row = Row(message.timestamp()[1], message.key(), message.value(), message.headers() or [])
            assert given[partition].setdefault(message.offset(), row) == row
        consumer.close()
        return given

    def check_times(self) -> None:
        """A look-up by time finds the first record that is not older; an old record is in an old segment."""
        rows = self.expected((PLAIN, 0), ALL)
        for offset in list(rows)[:: len(rows) // 5]:
            time_ms = rows[offset].timestamp_ms
            first = min(at for at, row in rows.items() if row.timestamp_ms >= time_ms)
            assert self.offset((PLAIN, 0), time_ms) == first, time_ms

    def check_groups(self) -> None:
        """Every committed offset and its metadata are there, and no deleted group is. That of the open transaction is
        pending."""
        assert not self.is_stable(IN_TRANSACTIONS)
        groups = self.broker.quietly("ListGroups", 4, states_filter=[]).groups
        assert {row.group_id for row in groups} - {"reader"} == {group for group, _, _ in self.commits}
        for group in {group for group, _, _ in self.commits}:
            self.broker.coordinator(group)
            asked = [part("OffsetFetch", "OffsetFetchRequestGroup", group_id=group, topics=None)]
            (answer,) = self.broker.quietly("OffsetFetch", 8, groups=asked).groups
            found = {
                (group, t.name, p.partition_index): (p.committed_offset, p.metadata)
                for t in answer.topics
                for p in t.partitions
            }
            expected = {each: committed for each, committed in self.commits.items() if each[0] == group}
            assert found == expected, (found, expected)

    def check_configs(self) -> None:
        """The topics have the settings they were given, and no others."""
        for topic, retention in self.retention.items():
            resource = part(
                "DescribeConfigs",
                "DescribeConfigsResource",
                resource_type=2,
                resource_name=topic,
                configuration_keys=None,
            )
            (answer,) = self.broker.quietly("DescribeConfigs", 4, resources=[resource]).results
            changed = {row.name: row.value for row in answer.configs if row.config_source == 1}
            segment = {"segment.ms": "600000000"} if self.turn % 2 == 0 else {}
            assert changed == {**CONFIGS[topic], "retention.ms": retention, **segment}


def last_values(rows: dict[int, Row]) -> dict[bytes | None, bytes]:
    """What compaction must keep: the last value of every key that is not deleted."""
    values = {rows[offset].key: rows[offset].value for offset in sorted(rows)}
    return {key: value for key, value in values.items() if value is not None}
