"""OffsetCommit, OffsetFetch and OffsetDelete."""

from __future__ import annotations

import struct
from typing import Any

from compat_tests.scenarios.exchange import Exchange, part, versions
from compat_tests.scenarios.groups import Group, protocols
from compat_tests.scenarios.registry import scenario
from pykafkad.wire import messages

OTHER_ID = b"x" * 16


def commits(topic: str, topic_id: bytes, *rows: tuple[int, int], **fields: Any) -> Any:
    """One topic of an OffsetCommit with `(partition, offset)` rows, with both its name and its id."""
    partitions = [
        part("OffsetCommit", "OffsetCommitRequestPartition", partition_index=index, committed_offset=offset, **fields)
        for index, offset in rows
    ]
    return part("OffsetCommit", "OffsetCommitRequestTopic", name=topic, topic_id=topic_id, partitions=partitions)


def fetches(group: str, version: int, *topics: tuple[str, bytes, list[int]] | None) -> dict[str, Any]:
    """The fields of an OffsetFetch; None asks for all topics."""
    if version < 8:
        asked = None
        if topics != (None,):
            asked = [
                part("OffsetFetch", "OffsetFetchRequestTopic", name=name, partition_indexes=indexes)
                for name, _, indexes in topics
            ]
        return {"group_id": group, "topics": asked}
    asked = None
    if topics != (None,):
        asked = [
            part("OffsetFetch", "OffsetFetchRequestTopics", name=name, topic_id=topic_id, partition_indexes=indexes)
            for name, topic_id, indexes in topics
        ]
    return {"groups": [part("OffsetFetch", "OffsetFetchRequestGroup", group_id=group, topics=asked)]}


def ready(broker: Exchange, kind: str = "group") -> str:
    name = broker.name(kind)
    broker.coordinator(name)
    return name


@scenario
def simple_consumer(broker: Exchange) -> None:
    """Commit and fetch without a group, in every version; a missing offset is -1."""
    topic = broker.topic("topic", 3)
    topic_id = broker.topic_id(topic)
    for version in versions("OffsetCommit"):
        group = ready(broker, f"g{version}")
        wanted = commits(topic, topic_id, (0, version), (1, 100), committed_metadata="note", committed_leader_epoch=4)
        broker.ask("OffsetCommit", version, group_id=group, topics=[wanted])
        for fetched in versions("OffsetFetch"):
            broker.ask("OffsetFetch", fetched, **fetches(group, fetched, (topic, topic_id, [0, 1, 2, 9])))
            if fetched >= 2:
                broker.ask("OffsetFetch", fetched, note="all", **fetches(group, fetched, None))
        broker.ask("DescribeGroups", 5, groups=[group])


@scenario
def topics_that_do_not_exist(broker: Exchange) -> None:
    """Rows of unknown topics have the error, other rows do not."""
    topic = broker.topic("topic", 1)
    topic_id = broker.topic_id(topic)
    unknown = broker.name("unknown")
    for version in versions("OffsetCommit"):
        group = ready(broker, f"g{version}")
        topics = [commits(unknown, OTHER_ID, (0, 1), (1, 2)), commits(topic, topic_id, (0, 5), (7, 5), (-1, 5))]
        broker.ask("OffsetCommit", version, group_id=group, topics=topics)
        broker.ask("OffsetCommit", version, note="only bad", group_id=group, topics=topics[:1])
        broker.ask("OffsetCommit", version, note="nothing", group_id=group, topics=[])
        for fetched in versions("OffsetFetch"):
            asked = (unknown, OTHER_ID, [0]), (topic, topic_id, [0, 7])
            broker.ask("OffsetFetch", fetched, **fetches(group, fetched, *asked))
            broker.ask("OffsetFetch", fetched, note="nothing", **fetches(group, fetched))


@scenario
def refused_commits(broker: Exchange) -> None:
    """Unknown members, groups and generations; a group with members accepts commits of its members only."""
    topic = broker.topic()
    topic_id = broker.topic_id(topic)
    group = Group(broker)
    member = group.alone()
    for version in versions("OffsetCommit"):
        for note, fields in (
            ("member", {}),
            ("stranger", {"member_id": "stranger"}),
            ("old generation", {"generation_id_or_member_epoch": 0}),
            ("no generation", {"generation_id_or_member_epoch": -1}),
            ("no member", {"member_id": ""}),
            ("nobody", {"member_id": "", "generation_id_or_member_epoch": -1}),
            ("unknown group", {"group_id": broker.name("none")}),
            (
                "unknown group, no generation",
                {"group_id": broker.name(f"none{version}"), "generation_id_or_member_epoch": -1},
            ),
            ("no group", {"group_id": "", "member_id": "", "generation_id_or_member_epoch": 1}),
            ("instance", {"group_instance_id": "nobody"}),
        ):
            known = {
                "group_id": group.name,
                "member_id": member,
                "generation_id_or_member_epoch": group.generation,
                **fields,
            }
            broker.ask("OffsetCommit", version, note=note, topics=[commits(topic, topic_id, (0, 5))], **known)


@scenario
def commits_during_a_rebalance(broker: Exchange) -> None:
    """Commits are allowed while members join, and are REBALANCE_IN_PROGRESS while the assignment is awaited."""
    from compat_tests.scenarios.groups import join_fields, send

    topic = broker.topic()
    topic_id = broker.topic_id(topic)
    group = Group(broker)
    leader = group.alone()
    second = broker.connect()
    follower = group.given_id()
    send(second, "JoinGroup", 9, **join_fields(group.name, follower))
    group.until_state("PreparingRebalance")
    known = {"group_id": group.name, "member_id": leader, "generation_id_or_member_epoch": group.generation}
    broker.ask("OffsetCommit", 9, note="joining", topics=[commits(topic, topic_id, (0, 5))], **known)
    answer = broker.quietly("JoinGroup", 9, **join_fields(group.name, leader))
    broker.ask("OffsetCommit", 9, note="old generation", topics=[commits(topic, topic_id, (0, 6))], **known)
    known["generation_id_or_member_epoch"] = answer.generation_id
    broker.ask("OffsetCommit", 9, note="completing", topics=[commits(topic, topic_id, (0, 7))], **known)
    broker.ask("OffsetFetch", 9, **fetches(group.name, 9, (topic, topic_id, [0])))


@scenario
def metadata_and_odd_offsets(broker: Exchange) -> None:
    """Metadata may have up to 4096 characters; offsets are not checked against the log."""
    topic = broker.topic("topic", 8)
    topic_id = broker.topic_id(topic)
    group = ready(broker)
    for index, metadata in enumerate(("x" * 4096, "x" * 4097, "ü" * 4096, "\U0001f600" * 2049, "", None)):
        wanted = commits(topic, topic_id, (index, 5), committed_metadata=metadata)
        broker.ask("OffsetCommit", 9, note=str(index), group_id=group, topics=[wanted])
    both = commits(topic, topic_id, (6, 2**63 - 1), (7, -1))
    broker.ask("OffsetCommit", 9, note="odd", group_id=group, topics=[both])
    answer = broker.ask("OffsetFetch", 9, **fetches(group, 9, (topic, topic_id, list(range(8)))))
    assert len(answer.groups[0].topics[0].partitions) == 8


@scenario
def several_groups(broker: Exchange) -> None:
    """From version 8 on one request may ask for several groups (KIP-709)."""
    topic = broker.topic()
    topic_id = broker.topic_id(topic)
    first, second = ready(broker, "first"), ready(broker, "second")
    for group, offset in ((first, 1), (second, 2)):
        broker.quietly("OffsetCommit", 9, group_id=group, topics=[commits(topic, topic_id, (0, offset))])
    for version in (8, 9, 10):
        groups = [
            fetches(group, version, (topic, topic_id, [0]))["groups"][0]
            for group in (first, second, broker.name("none"), "")
        ]
        for stable in (False, True):
            broker.ask("OffsetFetch", version, note=f"stable {stable}", groups=groups, require_stable=stable)


@scenario
def an_earlier_topic_of_the_same_name(broker: Exchange) -> None:
    """Offsets of a deleted topic do not apply to a new topic of the same name."""
    topic = broker.topic()
    group = ready(broker)
    topic_id = broker.topic_id(topic)
    broker.quietly("OffsetCommit", 9, group_id=group, topics=[commits(topic, topic_id, (0, 5))])
    broker.quietly("DeleteTopics", 6, topics=[part("DeleteTopics", "DeleteTopicState", name=topic)], timeout_ms=10_000)
    broker.until(
        lambda: broker.quietly("OffsetFetch", 9, **fetches(group, 9, (topic, topic_id, [0]))),
        lambda answer: answer.groups[0].topics[0].partitions[0].committed_offset == -1,
    )
    broker.ask("OffsetFetch", 9, note="all", **fetches(group, 9, None))
    broker.ask("OffsetFetch", 10, note="old id", **fetches(group, 10, (topic, topic_id, [0])))


def deletions(topic: str, *indexes: int) -> Any:
    rows = [part("OffsetDelete", "OffsetDeleteRequestPartition", partition_index=index) for index in indexes]
    return part("OffsetDelete", "OffsetDeleteRequestTopic", name=topic, partitions=rows)


def subscription(*topics: str) -> bytes:
    body = messages.encode(messages.ConsumerProtocolSubscription(topics=list(topics)), 1)
    return struct.pack(">h", 1) + bytes(body)


@scenario
def deleting_offsets(broker: Exchange) -> None:
    """Offsets of topics without a subscribed member are deleted; unknown groups and topics have their errors."""
    wanted, other = broker.topic("wanted", 2), broker.topic("other", 2)
    ids = {topic: broker.topic_id(topic) for topic in (wanted, other)}
    group = Group(broker)
    member = group.alone(protocols=protocols(("range", subscription(wanted))))
    rows = [commits(topic, topic_id, (0, 5), (1, 6)) for topic, topic_id in ids.items()]
    broker.quietly(
        "OffsetCommit",
        9,
        group_id=group.name,
        member_id=member,
        generation_id_or_member_epoch=group.generation,
        topics=rows,
    )
    topics = [deletions(wanted, 0), deletions(other, 0, 9), deletions(broker.name("none"), 0)]
    broker.ask("OffsetDelete", 0, group_id=group.name, topics=topics)
    broker.ask("OffsetFetch", 9, **fetches(group.name, 9, None))
    broker.ask("OffsetDelete", 0, note="unknown group", group_id=broker.name("none"), topics=topics)
    broker.ask("OffsetDelete", 0, note="no group", group_id="", topics=topics)
    broker.ask("OffsetDelete", 0, note="nothing", group_id=group.name, topics=[])
    broker.ask("OffsetDelete", 0, note="only unknown", group_id=group.name, topics=topics[2:])
    connect = Group(broker, "connect")
    connect.alone(protocol_type="connect")
    broker.ask("OffsetDelete", 0, note="other protocol", group_id=connect.name, topics=[deletions(other, 0)])
    empty = ready(broker, "empty")
    broker.quietly("OffsetCommit", 9, group_id=empty, topics=rows)
    broker.ask("OffsetDelete", 0, note="empty group", group_id=empty, topics=[deletions(wanted, 0, 0, 1)])
    broker.ask("OffsetFetch", 9, note="empty group", **fetches(empty, 9, None))
