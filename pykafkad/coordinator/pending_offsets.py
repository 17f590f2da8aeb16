"""Offsets that groups commit in transactions which have not ended (KIP-98), and requests that commit so.

They are records of a transaction in the group's partition of `__consumer_offsets`. A marker in that partition ends the
transaction: with a commit the offsets take effect, unless a later record of the same partition has taken effect
already. Until then readers that ask for stable offsets are told to wait (KIP-447)."""

from __future__ import annotations

from pykafkad import errors
from pykafkad.coordinator import record_codec
from pykafkad.coordinator.classic_group import ClassicGroup
from pykafkad.coordinator.group_states import EMPTY
from pykafkad.coordinator.group_types import SHARE
from pykafkad.coordinator.offsets import NO_EXPIRY, NO_TOPIC_ID, CommittedOffset, utf16_length
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from pykafkad.coordinator.group_types import ClusterView, Group
    from pykafkad.effects import StoredRecord

    Place = tuple[str, int]


class PendingOffsets:
    """By producer id, and by group, topic and partition. Only applied records and markers change them."""

    __slots__ = ("_by_producer", "_producers")

    def __init__(self) -> None:
        self._by_producer: dict[int, dict[tuple[str, str, int], CommittedOffset]] = {}
        # Group id to topic and partition to the producers, in the order of their first commit.
        self._producers: dict[str, dict[Place, dict[int, None]]] = {}

    def add(self, producer_id: int, group_id: str, topic: str, partition: int, offset: CommittedOffset) -> None:
        """A producer commits an offset in its transaction."""
        self._by_producer.setdefault(producer_id, {})[group_id, topic, partition] = offset
        self._producers.setdefault(group_id, {}).setdefault((topic, partition), {})[producer_id] = None

    def forget(self, group_id: str, topic: str, partition: int) -> None:
        """The offset is deleted: what is pending for the partition never takes effect."""
        for producer_id in list(self._producers.get(group_id, {}).get((topic, partition), ())):
            del self._by_producer[producer_id][group_id, topic, partition]
            self._remove(producer_id, group_id, topic, partition)

    def end(self, producer_id: int) -> dict[tuple[str, str, int], CommittedOffset]:
        """The producer's transaction has ended; returns its offsets by group, topic and partition."""
        ended = self._by_producer.pop(producer_id, {})
        for key in ended:
            self._remove(producer_id, *key)
        return ended

    def _remove(self, producer_id: int, group_id: str, topic: str, partition: int) -> None:
        places = self._producers[group_id]
        producers = places[topic, partition]
        del producers[producer_id]
        if not producers:
            del places[topic, partition]
        if not places:
            del self._producers[group_id]

    def places(self, group_id: str) -> list[Place]:
        """The topics and partitions of a group for which an offset is pending."""
        return list(self._producers.get(group_id, ()))

    def is_pending(self, group_id: str, topic: str, partition: int) -> bool:
        """Whether an offset of a partition is pending."""
        return (topic, partition) in self._producers.get(group_id, ())

    def offsets_of(self, group_id: str, topic: str, partition: int) -> list[CommittedOffset]:
        """The offsets that are pending for a partition, one of each producer."""
        producers = self._producers.get(group_id, {}).get((topic, partition), ())
        return [self._by_producer[producer_id][group_id, topic, partition] for producer_id in producers]

    def __iter__(self) -> Iterator[tuple[int, str, str, int, CommittedOffset]]:
        """Producer id, group, topic, partition and offset of all that is pending."""
        for producer_id, offsets in self._by_producer.items():
            for key, offset in offsets.items():
                yield producer_id, *key, offset


def check_commit(
    group: Group | None,
    request: messages.TxnOffsetCommitRequest,
    metadata_max_bytes: int,
    cluster: ClusterView | None = None,
    *,
    tells_more: bool = False,
) -> int:
    """The error code that refuses a whole commit, or NONE. A consumer without group metadata (generation -1, no member
    id) may commit to any group with offsets, as producers from before KIP-447 do. `cluster` has the ids of topics,
    which the rules of KIP-1251 ask for; a classic group needs none. With `tells_more` the client understands
    GROUP_ID_NOT_FOUND and STALE_MEMBER_EPOCH."""
    generation = request.generation_id
    if group is None:
        absent = errors.GROUP_ID_NOT_FOUND if tells_more else errors.ILLEGAL_GENERATION
        return errors.NONE if generation < 0 else absent
    is_anonymous = generation < 0 and not request.member_id and request.group_instance_id is None
    if is_anonymous and group.type != SHARE:
        return errors.NONE
    if isinstance(group, ClassicGroup):
        if generation < 0 and group.state is EMPTY:
            return errors.NONE
        return group.check_member_of_generation(request.member_id, request.group_instance_id, generation)
    code = group.check_commit(_without_transaction(request, metadata_max_bytes, cluster))
    return errors.ILLEGAL_GENERATION if code == errors.STALE_MEMBER_EPOCH and not tells_more else code


def _without_transaction(
    request: messages.TxnOffsetCommitRequest, metadata_max_bytes: int, cluster: ClusterView | None
) -> messages.OffsetCommitRequest:
    """The commit as one without a transaction, with the ids of its topics. A topic that is gone has no id. Partitions
    that are refused for their metadata are left out, as their epoch is not looked at."""
    of = messages.OffsetCommitRequest
    topics = []
    for topic in request.topics:
        known = None if cluster is None else cluster.topics.get(topic.name)
        partitions = [
            of.OffsetCommitRequestPartition(partition_index=each.partition_index)
            for each in topic.partitions
            if utf16_length(each.committed_metadata or "") <= metadata_max_bytes
        ]
        topic_id = NO_TOPIC_ID if known is None else known.id
        topics.append(of.OffsetCommitRequestTopic(name=topic.name, topic_id=topic_id, partitions=partitions))
    return of(
        group_id=request.group_id,
        generation_id_or_member_epoch=request.generation_id,
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
        topics=topics,
    )


def commit(
    request: messages.TxnOffsetCommitRequest, metadata_max_bytes: int, now_ms: int
) -> tuple[list[StoredRecord], messages.TxnOffsetCommitResponse]:
    """The records of an accepted commit, and its response. A partition whose metadata is too long is refused; the
    others are not."""
    records, rows = [], []
    for topic in request.topics:
        row = messages.TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id)
        for partition in topic.partitions:
            metadata = partition.committed_metadata or ""
            code = errors.NONE
            if utf16_length(metadata) > metadata_max_bytes:
                code = errors.OFFSET_METADATA_TOO_LARGE
            else:
                offset = CommittedOffset(
                    partition.committed_offset,
                    partition.committed_leader_epoch,
                    metadata,
                    now_ms,
                    NO_EXPIRY,
                    NO_TOPIC_ID,
                )
                records.append(
                    record_codec.offset_commit(request.group_id, topic.name, partition.partition_index, offset)
                )
            row.partitions.append(
                messages.TxnOffsetCommitResponse.TxnOffsetCommitResponsePartition(
                    partition_index=partition.partition_index, error_code=code
                )
            )
        rows.append(row)
    return records, messages.TxnOffsetCommitResponse(topics=rows)


def refused(request: messages.TxnOffsetCommitRequest, error_code: int) -> messages.TxnOffsetCommitResponse:
    """The response to a commit that is refused as a whole: every partition has the error."""
    return messages.TxnOffsetCommitResponse(
        topics=[
            messages.TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    messages.TxnOffsetCommitResponse.TxnOffsetCommitResponsePartition(
                        partition_index=partition.partition_index, error_code=error_code
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
