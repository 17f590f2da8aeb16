"""Leader epochs and logs over restarts: every answer that shows them."""

from __future__ import annotations

import time
from typing import Any

from compat_tests.scenarios.exchange import Exchange, part
from compat_tests.scenarios.produce import new_producer
from pykafkad.wire.batch import build_batch

EPOCHS = range(-1, 9)
KEPT = {"retention_ms": "-1"}


class Partitions:
    """A topic whose log gets a batch in every run of the broker, one whose second partition stays empty, and a
    producer.

    The producer continues over all restarts.
    """

    def __init__(self, broker: Exchange) -> None:
        self.name = broker.topic("written", 2, **KEPT)
        self.topic_id = broker.topic_id(self.name)
        self.producer_id = new_producer(broker)[0]
        self.sequence = 0

    def write(self, broker: Exchange, note: str) -> None:
        """Write one batch of two records with the idempotent producer, and then the same batch again."""
        sent = self.batch([(b"key", b"value"), (None, b"%d" % self.sequence)], self.sequence)
        self.sequence += 2
        self.produce(broker, f"next {note}", sent)
        self.produce(broker, f"the same again {note}", sent)
        self.produce(broker, f"a gap {note}", self.batch([(None, b"gap")], self.sequence + 7))

    def batch(self, records: list, sequence: int) -> bytes:
        """A batch with the current time."""
        producer = {"producer_id": self.producer_id, "producer_epoch": 0, "base_sequence": sequence}
        return bytes(build_batch(records, timestamp_ms=int(time.time() * 1000) + sequence, **producer))

    def produce(self, broker: Exchange, note: str, records: bytes) -> None:
        data = part("Produce", "PartitionProduceData", index=0, records=records)
        topics = [part("Produce", "TopicProduceData", name=self.name, partition_data=[data])]
        broker.ask("Produce", 9, note=note, acks=-1, timeout_ms=10_000, topic_data=topics)

    def record_state(self, broker: Exchange, note: str) -> None:
        """Record every answer about the partitions."""
        asked = [part("Metadata", "MetadataRequestTopic", name=self.name)]
        broker.ask("Metadata", 13, note=note, topics=asked, allow_auto_topic_creation=False)
        asked = [part("DescribeTopicPartitions", "TopicRequest", name=self.name)]
        broker.ask("DescribeTopicPartitions", 0, note=note, topics=asked)
        for epoch in EPOCHS:
            self.epoch_end(broker, f"{note}, epoch {epoch}", epoch, -1)
        for current in EPOCHS:
            self.epoch_end(broker, f"{note}, current {current}", 0, current)
        for timestamp in (-1, -2, -3, -4, 0):
            rows = [
                part("ListOffsets", "ListOffsetsPartition", partition_index=index, timestamp=timestamp)
                for index in (0, 1)
            ]
            asked = [part("ListOffsets", "ListOffsetsTopic", name=self.name, partitions=rows)]
            broker.ask("ListOffsets", 8, note=f"{note}, timestamp {timestamp}", replica_id=-1, topics=asked)
        for current, last in (
            (-1, -1),
            (0, -1),
            (2, -1),
            (4, -1),
            (9, -1),
            (-1, 0),
            (-1, 1),
            (-1, 2),
            (-1, 3),
            (-1, 4),
        ):
            rows = [self.fetched(index, current, last) for index in (0, 1)]
            topics = [part("Fetch", "FetchTopic", topic_id=self.topic_id, partitions=rows)]
            fields = {"max_wait_ms": 0, "min_bytes": 0, "max_bytes": 10_000_000, "session_id": 0, "session_epoch": -1}
            broker.ask("Fetch", 17, note=f"{note}, current {current}, last fetched {last}", topics=topics, **fields)
        asked = [part("DescribeProducers", "TopicRequest", name=self.name, partition_indexes=[0, 1])]
        broker.ask("DescribeProducers", 0, note=note, topics=asked)

    def epoch_end(self, broker: Exchange, note: str, epoch: int, current: int) -> None:
        api = "OffsetForLeaderEpoch"
        rows = [
            part(api, "OffsetForLeaderPartition", partition=index, leader_epoch=epoch, current_leader_epoch=current)
            for index in (0, 1)
        ]
        broker.ask(
            api,
            4,
            note=note,
            replica_id=-1,
            topics=[part(api, "OffsetForLeaderTopic", topic=self.name, partitions=rows)],
        )

    def fetched(self, index: int, current: int, last: int) -> Any:
        fields = {"fetch_offset": 0, "partition_max_bytes": 1_000_000, "log_start_offset": -1}
        return part(
            "Fetch", "FetchPartition", partition=index, current_leader_epoch=current, last_fetched_epoch=last, **fields
        )
