"""The offsets that groups have committed. There is one `Offsets` per partition of `__consumer_offsets`."""

from __future__ import annotations

from pykafkad import errors
from pykafkad.coordinator import record_codec
from pykafkad.coordinator.group_types import CLASSIC
from pykafkad.effects import StoredRecord
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Protocol

    from pykafkad.coordinator.group_types import Group
    from pykafkad.coordinator.pending_offsets import PendingOffsets

    TopicRow = messages.OffsetFetchResponse.OffsetFetchResponseTopics
    PartitionRow = messages.OffsetFetchResponse.OffsetFetchResponsePartitions

    class AskedTopic(Protocol):
        """A topic of an OffsetFetch, as the request or the handler names it."""

        name: str
        topic_id: bytes
        partition_indexes: list[int]


NO_TOPIC_ID = bytes(16)
NO_OFFSET = -1
NO_PRODUCER_ID = -1
NO_LEADER_EPOCH = -1
NO_EXPIRY = -1
# The largest timestamp that a record can hold. Clients may ask for any retention time.
_LATEST_MS = 2**63 - 1


class CommittedOffset:
    """One committed offset. `topic_id` is zero in records from before topic ids. `expire_timestamp_ms` is -1 unless the
    client set a retention time in an old OffsetCommit. `record_offset` is where its record stands in the log."""

    __slots__ = (
        "commit_timestamp_ms",
        "expire_timestamp_ms",
        "leader_epoch",
        "metadata",
        "offset",
        "record_offset",
        "topic_id",
    )

    def __init__(
        self,
        offset: int,
        leader_epoch: int,
        metadata: str,
        commit_timestamp_ms: int,
        expire_timestamp_ms: int,
        topic_id: bytes,
        record_offset: int = -1,
    ) -> None:
        self.offset = offset
        self.leader_epoch = leader_epoch
        self.metadata = metadata
        self.commit_timestamp_ms = commit_timestamp_ms
        self.expire_timestamp_ms = expire_timestamp_ms
        self.topic_id = topic_id
        self.record_offset = record_offset


class Offsets:
    """Committed offsets by group id, topic and partition. Only `apply` and `end_transaction` change them. `pending` has
    those of open transactions, and is None until there was one. `newest_record_offset` is where the newest record of
    one stands in the log."""

    __slots__ = ("by_group", "newest_record_offset", "pending")

    def __init__(self) -> None:
        self.by_group: dict[str, dict[str, dict[int, CommittedOffset]]] = {}
        self.pending: PendingOffsets | None = None
        self.newest_record_offset = -1

    def apply(
        self,
        key: messages.OffsetCommitKey,
        value: messages.OffsetCommitValue | None,
        record_offset: int,
        producer_id: int = NO_PRODUCER_ID,
    ) -> None:
        """Apply an OffsetCommit record. Without a value it is a tombstone, which deletes pending offsets too. With a
        producer id the offset is pending until `end_transaction`."""
        if value is None:
            self._remove(key.group, key.topic, key.partition)
            if self.pending is not None:
                self.pending.forget(key.group, key.topic, key.partition)
            return
        self.newest_record_offset = max(self.newest_record_offset, record_offset)
        committed = CommittedOffset(
            value.offset,
            value.leader_epoch,
            value.metadata,
            value.commit_timestamp,
            value.expire_timestamp,
            bytes(value.topic_id),
            record_offset,
        )
        if producer_id == NO_PRODUCER_ID:
            self.by_group.setdefault(key.group, {}).setdefault(key.topic, {})[key.partition] = committed
            return
        if self.pending is None:
            from pykafkad.coordinator.pending_offsets import PendingOffsets

            self.pending = PendingOffsets()
        self.pending.add(producer_id, key.group, key.topic, key.partition, committed)

    def end_transaction(self, producer_id: int, is_commit: bool) -> None:
        """A marker ends the producer's transaction: its offsets take effect if it is committed. One that was committed
        by a later record meanwhile stays."""
        if self.pending is None:
            return
        for (group_id, topic, partition), ended in self.pending.end(producer_id).items():
            known = self.get(group_id, topic, partition)
            if is_commit and (known is None or ended.record_offset > known.record_offset):
                self.by_group.setdefault(group_id, {}).setdefault(topic, {})[partition] = ended

    def is_pending(self, group_id: str, topic: str, partition: int) -> bool:
        """Whether an open transaction has committed an offset for the partition."""
        return self.pending is not None and self.pending.is_pending(group_id, topic, partition)

    def _remove(self, group_id: str, topic: str, partition: int) -> None:
        topics = self.by_group.get(group_id, {})
        partitions = topics.get(topic, {})
        partitions.pop(partition, None)
        if not partitions:
            topics.pop(topic, None)
        if not topics:
            self.by_group.pop(group_id, None)

    def get(self, group_id: str, topic: str, partition: int) -> CommittedOffset | None:
        return self.by_group.get(group_id, {}).get(topic, {}).get(partition)

    # Fetching.

    def fetch(self, group_id: str, topics: Sequence[AskedTopic], require_stable: bool) -> list[TopicRow]:
        """The response's rows for the topics. An offset that was never committed is -1 without an error, and so is an
        offset that was committed to an earlier topic of the same name. With `require_stable` a partition for which an
        offset is pending is UNSTABLE_OFFSET_COMMIT."""
        by_topic = self.by_group.get(group_id, {})
        rows = []
        for topic in topics:
            partitions = by_topic.get(topic.name, {})
            row = messages.OffsetFetchResponse.OffsetFetchResponseTopics(name=topic.name, topic_id=topic.topic_id)
            for index in topic.partition_indexes:
                committed = partitions.get(index)
                if committed is not None and NO_TOPIC_ID != topic.topic_id != committed.topic_id != NO_TOPIC_ID:
                    committed = None
                is_unstable = require_stable and self.is_pending(group_id, topic.name, index)
                row.partitions.append(_unstable_row(index) if is_unstable else _partition_row(index, committed))
            rows.append(row)
        return rows

    def fetch_all(self, group_id: str, require_stable: bool) -> list[TopicRow]:
        """The response's rows for all topics in which the group has committed offsets. The caller sets topic ids."""
        return [
            messages.OffsetFetchResponse.OffsetFetchResponseTopics(
                name=topic,
                partitions=[
                    _unstable_row(index)
                    if require_stable and self.is_pending(group_id, topic, index)
                    else _partition_row(index, committed)
                    for index, committed in partitions.items()
                ],
            )
            for topic, partitions in self.by_group.get(group_id, {}).items()
        ]

    # Deleting.

    def count(self, group_id: str) -> int:
        """How many offsets a group has. One that is pending, too, may count twice."""
        count = sum(len(partitions) for partitions in self.by_group.get(group_id, {}).values())
        return count if self.pending is None else count + len(self.pending.places(group_id))

    def tombstones(self, group_id: str) -> Iterator[StoredRecord]:
        """Records that delete all offsets of a group, those of open transactions too. The offsets may change meanwhile:
        what comes until the last record gets one, too."""
        known: dict[str, set[int]] = {}
        while new := self._places(group_id, known):
            for topic, partitions in new.items():
                known.setdefault(topic, set()).update(partitions)
                for partition in partitions:
                    yield record_codec.offset_commit(group_id, topic, partition, None)

    def _places(self, group_id: str, known: dict[str, set[int]]) -> dict[str, list[int]]:
        """The partitions for which a group has offsets, by topic, without those that are `known`."""
        by_topic = self.by_group.get(group_id, {})
        found = {topic: [*(partitions.keys() - known.get(topic, ()))] for topic, partitions in by_topic.items()}
        for topic, partition in () if self.pending is None else self.pending.places(group_id):
            if partition not in by_topic.get(topic, ()) and partition not in known.get(topic, ()):
                found.setdefault(topic, []).append(partition)
        return {topic: partitions for topic, partitions in found.items() if partitions}

    def tombstones_of_topics(self, deleted: list[tuple[str, bytes]]) -> Iterator[StoredRecord | None]:
        """Records that delete the offsets of deleted topics, but not those of a later topic of the same name. The
        offsets may change meanwhile: what was committed since the deletion stays, also in a transaction. None stands
        for a group, or a partition with nothing to delete, that was looked at."""
        newest = self.newest_record_offset
        topic_ids: dict[str, set[bytes]] = {}
        for name, topic_id in deleted:
            # Transactions commit offsets without topic ids.
            topic_ids.setdefault(name, {NO_TOPIC_ID}).add(topic_id)
        pending = [] if self.pending is None else [each[1:4] for each in self.pending if each[2] in topic_ids]
        return self._tombstones_of_topics(topic_ids, newest, dict.fromkeys(pending))

    def _tombstones_of_topics(
        self, topic_ids: dict[str, set[bytes]], newest: int, pending: dict[tuple[str, str, int], None]
    ) -> Iterator[StoredRecord | None]:
        for place in pending:
            # Its transaction may have ended, and its group may be gone, since the topics were deleted.
            is_deleted = self._is_of_deleted_topic(*place, topic_ids, newest)
            yield record_codec.offset_commit(*place, None) if is_deleted else None
        for group_id in list(self.by_group):
            yield None
            for name in topic_ids:
                for partition in list(self.by_group.get(group_id, {}).get(name, ())):
                    place = (group_id, name, partition)
                    if place not in pending and self._is_of_deleted_topic(*place, topic_ids, newest):
                        yield record_codec.offset_commit(*place, None)

    def _is_of_deleted_topic(
        self, group_id: str, topic: str, partition: int, topic_ids: dict[str, set[bytes]], newest: int
    ) -> bool:
        """Whether the partition has offsets, committed or pending, and all of them are of a topic with one of the ids
        and stand in the log up to `newest`. One tombstone deletes them all."""
        found = [] if self.pending is None else self.pending.offsets_of(group_id, topic, partition)
        committed = self.get(group_id, topic, partition)
        if committed is not None:
            found.append(committed)
        known_ids = topic_ids[topic]
        return bool(found) and all(each.topic_id in known_ids and each.record_offset <= newest for each in found)

    def expired(self, group: Group, now_ms: int, retention_ms: int) -> tuple[list[StoredRecord], bool]:
        """Tombstones for the offsets whose retention time is over, and whether no other offsets are left. An offset
        for whose partition another one is pending stays."""
        topics = self.by_group.get(group.group_id)
        nothing_left = self.pending is None or not self.pending.places(group.group_id)
        if topics is None:
            return [], nothing_left
        can_expire, since_ms = group.offsets_expire_since()
        if not can_expire:
            return [], False
        records: list[StoredRecord] = []
        for topic, partitions in topics.items():
            subscribed = group.is_subscribed_to(topic)
            for partition, committed in partitions.items():
                is_pending = self.is_pending(group.group_id, topic, partition)
                if not subscribed and _is_expired(committed, since_ms, now_ms, retention_ms) and not is_pending:
                    records.append(record_codec.offset_commit(group.group_id, topic, partition, None))
                else:
                    nothing_left = False
        return records, nothing_left


def _is_expired(committed: CommittedOffset, since_ms: int | None, now_ms: int, retention_ms: int) -> bool:
    if committed.expire_timestamp_ms != NO_EXPIRY:
        return now_ms >= committed.expire_timestamp_ms
    return now_ms - (committed.commit_timestamp_ms if since_ms is None else since_ms) >= retention_ms


def _partition_row(index: int, committed: CommittedOffset | None) -> PartitionRow:
    if committed is None:
        return messages.OffsetFetchResponse.OffsetFetchResponsePartitions(
            partition_index=index, committed_offset=NO_OFFSET, committed_leader_epoch=NO_LEADER_EPOCH, metadata=""
        )
    return messages.OffsetFetchResponse.OffsetFetchResponsePartitions(
        partition_index=index,
        committed_offset=committed.offset,
        committed_leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
    )


def _unstable_row(index: int) -> PartitionRow:
    row = _partition_row(index, None)
    row.error_code = errors.UNSTABLE_OFFSET_COMMIT
    return row


def check_commit(
    group: Group | None, request: messages.OffsetCommitRequest, group_id_not_found: bool, metadata_max_bytes: int
) -> int:
    """The error code that refuses a whole commit, or NONE. Offsets of an unknown group can be committed with generation
    -1, as administrators and consumers that choose their partitions themselves do."""
    if group is not None:
        code = group.check_commit(request, has_member_epochs=group_id_not_found)
        if code in (errors.STALE_MEMBER_EPOCH, errors.ILLEGAL_GENERATION) and group.type != CLASSIC:
            # A member may name an older epoch for partitions that it had then. As in Kafka, partitions that are refused
            # for their metadata are not looked at.
            taken = _without_long_metadata(request, metadata_max_bytes)
            code = group.check_commit(taken, has_member_epochs=group_id_not_found)
        return code
    if request.generation_id_or_member_epoch < 0:
        return errors.NONE
    return errors.GROUP_ID_NOT_FOUND if group_id_not_found else errors.ILLEGAL_GENERATION


def commit(
    request: messages.OffsetCommitRequest, metadata_max_bytes: int, now_ms: int
) -> tuple[list[StoredRecord], messages.OffsetCommitResponse]:
    """The records of an accepted commit, and its response. A partition whose metadata is too long is refused; the
    others are not."""
    expire_ms = NO_EXPIRY if request.retention_time_ms == -1 else min(now_ms + request.retention_time_ms, _LATEST_MS)
    records, rows = [], []
    for topic in request.topics:
        row = messages.OffsetCommitResponse.OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id)
        for partition in topic.partitions:
            metadata = partition.committed_metadata or ""
            too_long = utf16_length(metadata) > metadata_max_bytes
            row.partitions.append(
                messages.OffsetCommitResponse.OffsetCommitResponsePartition(
                    partition_index=partition.partition_index,
                    error_code=errors.OFFSET_METADATA_TOO_LARGE if too_long else errors.NONE,
                )
            )
            if not too_long:
                committed = CommittedOffset(
                    partition.committed_offset,
                    partition.committed_leader_epoch,
                    metadata,
                    now_ms if partition.commit_timestamp == -1 else partition.commit_timestamp,
                    expire_ms,
                    bytes(topic.topic_id),
                )
                records.append(
                    record_codec.offset_commit(request.group_id, topic.name, partition.partition_index, committed)
                )
        rows.append(row)
    return records, messages.OffsetCommitResponse(topics=rows)


def _without_long_metadata(
    request: messages.OffsetCommitRequest, metadata_max_bytes: int
) -> messages.OffsetCommitRequest:
    """The commit of those partitions whose metadata are not too long."""
    of = messages.OffsetCommitRequest
    topics = []
    for topic in request.topics:
        partitions = [
            each for each in topic.partitions if utf16_length(each.committed_metadata or "") <= metadata_max_bytes
        ]
        if partitions:
            topics.append(of.OffsetCommitRequestTopic(name=topic.name, topic_id=topic.topic_id, partitions=partitions))
    return of(
        group_id=request.group_id,
        generation_id_or_member_epoch=request.generation_id_or_member_epoch,
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
        topics=topics,
    )


def utf16_length(text: str) -> int:
    """The length of a text in UTF-16 code units, which is what Kafka compares with `offset.metadata.max.bytes`."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def refused(request: messages.OffsetCommitRequest, error_code: int) -> messages.OffsetCommitResponse:
    """The response to a commit that is refused as a whole: every partition has the error."""
    return messages.OffsetCommitResponse(
        topics=[
            messages.OffsetCommitResponse.OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    messages.OffsetCommitResponse.OffsetCommitResponsePartition(
                        partition_index=partition.partition_index, error_code=error_code
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
