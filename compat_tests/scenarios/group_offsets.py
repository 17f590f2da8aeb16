"""OffsetCommit, OffsetFetch, OffsetDelete, and DescribeGroups, ListGroups, DeleteGroups."""

from __future__ import annotations

from typing import Any

from compat_tests.scenarios.exchange import ZERO_UUID, Exchange, part, versions
from compat_tests.scenarios.group_life import join_fields, joined
from compat_tests.scenarios.registry import scenario


def commit_row(partition: int, offset: int, metadata: str | None = "note", epoch: int = -1) -> Any:
    """One partition of an OffsetCommit request."""
    fields = {"partition_index": partition, "committed_offset": offset, "committed_metadata": metadata}
    return part("OffsetCommit", "OffsetCommitRequestPartition", committed_leader_epoch=epoch, **fields)


def commit_topic(name: str, topic_id: bytes, *rows: Any) -> Any:
    """One topic of an OffsetCommit request, by name or by id as the version has it."""
    return part("OffsetCommit", "OffsetCommitRequestTopic", name=name, topic_id=topic_id, partitions=list(rows))


def fetch_fields(version: int, group: str, *topics: tuple[str, bytes, list[int]], everything: bool = False) -> dict:
    """The fields of an OffsetFetch request in the form of the version."""
    if version < 8:
        rows = [part("OffsetFetch", "OffsetFetchRequestTopic", name=n, partition_indexes=p) for n, _, p in topics]
        return {"group_id": group, "topics": None if everything else rows}
    rows = [
        part("OffsetFetch", "OffsetFetchRequestTopics", name=n, topic_id=i, partition_indexes=p) for n, i, p in topics
    ]
    row = part("OffsetFetch", "OffsetFetchRequestGroup", group_id=group, topics=None if everything else rows)
    return {"groups": [row]}


@scenario
def committed_and_fetched(broker: Exchange) -> None:
    """Offsets without a member (generation -1) are kept and found; a missing offset is -1 without an error."""
    name = broker.topic(partitions=3)
    topic_id = broker.topic_id(name)
    for version in versions("OffsetCommit"):
        group = broker.name(f"group-{version}")
        broker.coordinator(group)
        rows = (commit_row(0, 10), commit_row(1, 0, ""), commit_row(2, 7, None, 0))
        broker.ask("OffsetCommit", version, group_id=group, topics=[commit_topic(name, topic_id, *rows)])
        for fetch_version in versions("OffsetFetch"):
            asked = fetch_fields(fetch_version, group, (name, topic_id, [0, 1, 2, 9]))
            broker.ask("OffsetFetch", fetch_version, **asked)
            if fetch_version >= 2:
                broker.ask(
                    "OffsetFetch", fetch_version, note="all", **fetch_fields(fetch_version, group, everything=True)
                )


@scenario
def commit_errors(broker: Exchange) -> None:
    """Unknown topics and partitions, unknown members and generations, metadata that is too long, negative offsets."""
    name = broker.topic()
    topic_id = broker.topic_id(name)
    group, other = broker.name("group"), broker.name("other")
    member, generation = joined(broker, group)
    broker.coordinator(other)
    good = commit_topic(name, topic_id, commit_row(0, 1))
    for version in versions("OffsetCommit"):
        for note, who, gen, whose in (
            ("good", member, generation, group),
            ("old generation", member, generation - 1, group),
            ("future generation", member, generation + 1, group),
            ("unknown member", "nobody", generation, group),
            ("no member, group has members", "", -1, group),
            ("member of an empty group", member, 1, other),
            ("empty group name", "", -1, ""),
        ):
            fields = {"group_id": whose, "member_id": who, "generation_id_or_member_epoch": gen, "topics": [good]}
            broker.ask("OffsetCommit", version, note=note, **fields)
        own = {"group_id": group, "member_id": member, "generation_id_or_member_epoch": generation}
        for note, topics in {
            "unknown topic beside a known": [good, commit_topic(broker.name("none"), b"n" * 16, commit_row(0, 1))],
            "unknown partition": [commit_topic(name, topic_id, commit_row(0, 1), commit_row(5, 1))],
            "negative offset": [commit_topic(name, topic_id, commit_row(0, -5))],
            "long metadata": [commit_topic(name, topic_id, commit_row(0, 1, "x" * 4097))],
            "longest metadata": [commit_topic(name, topic_id, commit_row(0, 1, "x" * 4096))],
            "nothing": [],
        }.items():
            broker.ask("OffsetCommit", version, note=note, topics=topics, **own)
        if version >= 7:
            broker.ask("OffsetCommit", version, note="unknown instance", topics=[good], group_instance_id="who", **own)
    zero = commit_topic("", ZERO_UUID, commit_row(0, 1))
    broker.ask("OffsetCommit", 10, note="zero id", topics=[zero], **own)


@scenario
def fetch_errors(broker: Exchange) -> None:
    """Unknown groups and topics have no offsets, and that is no error."""
    name = broker.topic()
    topic_id = broker.topic_id(name)
    group = broker.name("none")
    broker.coordinator(group)
    for version in versions("OffsetFetch"):
        asked = ((name, topic_id, [0]), (broker.name("nothing"), b"n" * 16, [0, 3]))
        broker.ask("OffsetFetch", version, note="unknown group", **fetch_fields(version, group, *asked))
        broker.ask("OffsetFetch", version, note="empty group", **fetch_fields(version, "", *asked[:1]))
        broker.ask("OffsetFetch", version, note="no topics", **fetch_fields(version, group))
        if version >= 7:
            broker.ask(
                "OffsetFetch", version, note="stable", require_stable=True, **fetch_fields(version, group, *asked[:1])
            )
        if version >= 9:
            fields = fetch_fields(version, group, *asked[:1])
            fields["groups"][0].member_id = "somebody"
            fields["groups"][0].member_epoch = 3
            broker.ask("OffsetFetch", version, note="member of a classic group", **fields)
    groups = fetch_fields(8, group, *asked[:1])["groups"] + fetch_fields(8, broker.name("b"), *asked[:1])["groups"]
    broker.ask("OffsetFetch", 8, note="two groups", groups=groups)


def delete_offsets(broker: Exchange, group: str, *topics: tuple[str, list[int]], note: str = "") -> None:
    """Send an OffsetDelete request."""
    rows = []
    for name, partitions in topics:
        inner = [part("OffsetDelete", "OffsetDeleteRequestPartition", partition_index=p) for p in partitions]
        rows.append(part("OffsetDelete", "OffsetDeleteRequestTopic", name=name, partitions=inner))
    broker.ask("OffsetDelete", 0, note=note, group_id=group, topics=rows)


@scenario
def offsets_deleted(broker: Exchange) -> None:
    """Offsets are deleted, except of topics that a member of the group subscribes to."""
    name, group = broker.topic(partitions=2), broker.name("group")
    topic_id = broker.topic_id(name)
    broker.coordinator(group)
    rows = [commit_topic(name, topic_id, commit_row(0, 5), commit_row(1, 6))]
    broker.ask("OffsetCommit", 9, group_id=group, topics=rows)
    delete_offsets(broker, group, (name, [0, 9]), (broker.name("none"), [0]))
    broker.ask("OffsetFetch", 7, **fetch_fields(7, group, everything=True))
    delete_offsets(broker, broker.name("nobody"), (name, [0]), note="unknown group")
    delete_offsets(broker, "", (name, [0]), note="empty name")
    delete_offsets(broker, group, note="nothing")
    living = broker.name("living")
    # A consumer's subscription in Kafka's embedded format: version 0, one topic, no user data.
    subscription = b"\0\0" + b"\0\0\0\1" + len(name).to_bytes(2, "big") + name.encode() + b"\xff\xff\xff\xff"
    joined(broker, living, protocols=(("range", subscription),))
    delete_offsets(broker, living, (name, [0]), note="subscribed")
    opaque = broker.name("opaque")
    joined(broker, opaque, protocol_type="connect")
    delete_offsets(broker, opaque, (name, [0]), note="group that is no consumer")


@scenario
def described(broker: Exchange) -> None:
    """A group shows its state, protocol and members; from version 6 on an unknown group is GROUP_ID_NOT_FOUND."""
    group, empty = broker.name("group"), broker.name("empty")
    joined(broker, group)
    broker.coordinator(empty)
    name = broker.topic()
    topic_id = broker.topic_id(name)
    broker.quietly("OffsetCommit", 9, group_id=empty, topics=[commit_topic(name, topic_id, commit_row(0, 1))])
    for version in versions("DescribeGroups"):
        groups = [group, empty, broker.name("none")]
        broker.ask("DescribeGroups", version, groups=groups)
        if version >= 3:
            broker.ask("DescribeGroups", version, note="operations", groups=[group], include_authorized_operations=True)
        broker.ask("DescribeGroups", version, note="nobody", groups=[])


@scenario
def described_while_it_forms(broker: Exchange) -> None:
    """Between join and sync a group is completing; members and their metadata are shown only once it is stable."""
    group = broker.name("group")
    broker.coordinator(group)
    required = broker.quietly("JoinGroup", 5, **join_fields(group))
    broker.quietly("JoinGroup", 5, **join_fields(group, required.member_id))
    broker.ask("DescribeGroups", 5, note="between", groups=[group])


@scenario
def listed(broker: Exchange) -> None:
    """Groups by state (from version 4 on) and by type (from version 5 on)."""
    group, empty = broker.name("group"), broker.name("empty")
    joined(broker, group)
    name = broker.topic()
    rows = [commit_topic(name, broker.topic_id(name), commit_row(0, 1))]
    broker.coordinator(empty)
    broker.quietly("OffsetCommit", 9, group_id=empty, topics=rows)

    def ours(version: int, note: str, **fields: Any) -> None:
        answer = broker.quietly("ListGroups", version, **fields)
        answer.groups = [row for row in answer.groups if row.group_id in (group, empty)]
        broker.record(f"ListGroups v{version} {note}", answer, version)

    for version in versions("ListGroups"):
        ours(version, "all")
        if version >= 4:
            for states in (["Stable"], ["stable"], ["Empty", "Stable"], ["Dead"], ["NoSuchState"]):
                ours(version, str(states), states_filter=states)
        if version >= 5:
            for types in (["classic"], ["Classic"], ["consumer"], ["nosuch"], ["classic", "consumer"]):
                ours(version, str(types), types_filter=types)


@scenario
def deleted(broker: Exchange) -> None:
    """An empty group is deleted with its offsets; one with members is NON_EMPTY_GROUP, an unknown one
    GROUP_ID_NOT_FOUND.
    """
    name = broker.topic()
    rows = [commit_topic(name, broker.topic_id(name), commit_row(0, 1))]
    for version in versions("DeleteGroups"):
        group, empty = broker.name(f"group-{version}"), broker.name(f"empty-{version}")
        joined(broker, group)
        broker.coordinator(empty)
        broker.quietly("OffsetCommit", 9, group_id=empty, topics=rows)
        broker.ask("DeleteGroups", version, groups_names=[group, empty, broker.name("none")])
        broker.ask("DeleteGroups", version, note="again", groups_names=[empty])
        broker.ask("OffsetFetch", 7, **fetch_fields(7, empty, everything=True))
        broker.ask("DeleteGroups", version, note="nothing", groups_names=[])
