"""Groups of every kind (classic, consumer, share, streams) as one description, for `pykafkad groups`.

Kafka has an API for each kind. A member's places are partitions (`topic-3`), or tasks of a streams group (`0_3`: number
3 of subtopology 0). A consumer group and a streams group have a target for each member; a member that does not have it
yet gives places up first, or waits for others to do so. That is what keeps a rebalance going.
"""

from __future__ import annotations

from collections import namedtuple

from pykafkad.cli import client

CLASSIC = "classic"
CONSUMER = "consumer"
SHARE = "share"
STREAMS = "streams"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    Topics = dict[str, list[int]]

Member = namedtuple("Member", ("id", "instance", "client", "host", "epoch", "places", "target", "reads"))
Member.__doc__ = """One member.

`places` are what it has, `target` what it shall have (None: the kind has no targets). `reads` maps topics to the
partitions that it reads.
"""

Description = namedtuple("Description", ("name", "kind", "state", "detail", "members", "epoch", "target_epoch"))
Description.__doc__ = """One group. `detail` are words on its protocol; the epochs are None in a classic group."""


def describe(admin: Any, name: str) -> Description:
    """A group of any kind. An unknown one is described as a dead classic group."""
    classic = client.describe_group(admin, name)
    if classic["group_state"] == "Dead":
        for api, read in _KINDS.items():
            found = client.describe_newer_group(admin, api, name)
            if found is not None:
                return read(admin, found)
    members = [
        Member(
            each["member_id"],
            each.get("group_instance_id"),
            each["client_id"],
            each["client_host"],
            None,
            _places(topics := _classic_topics(each)),
            None,
            topics,
        )
        for each in classic["members"]
    ]
    return Description(name, CLASSIC, classic["group_state"], "", members, None, None)


def waiting_for(group: Description) -> Iterator[str]:
    """Sentences on what keeps a rebalance going; none when every member has what it shall have."""
    if group.epoch is None:
        return
    if group.members and group.target_epoch < group.epoch:
        yield (
            f"members, subscriptions or topics have changed since epoch {group.target_epoch}; "
            f"the assignment of epoch {group.epoch} is not made yet"
        )
    for member in group.members:
        if member.target is None:
            continue
        extra = [place for place in member.places if place not in member.target]
        missing = [place for place in member.target if place not in member.places]
        if extra:
            yield f"{member.id} has to give up {' '.join(extra)}"
        if missing:
            yield f"{member.id} waits for {' '.join(missing)}"
        if not extra and not missing and member.epoch != group.target_epoch:
            yield f"{member.id} is still in epoch {member.epoch}"


def _consumer(admin: Any, group: dict[str, Any]) -> Description:
    members = [
        _newer_member(each, _places(topics := _topics(each["assignment"])), _places(_topics(each[_TARGET])), topics)
        for each in group["members"]
    ]
    return _newer(group, CONSUMER, f"assigned by {group['assignor_name']}", members)


def _share(admin: Any, group: dict[str, Any]) -> Description:
    members = [
        _newer_member(each, _places(topics := _topics(each["assignment"])), None, topics) for each in group["members"]
    ]
    return _newer(group, SHARE, f"assigned by {group['assignor_name']}", members)


def _streams(admin: Any, group: dict[str, Any]) -> Description:
    topology = group["topology"] or {"epoch": 0, "subtopologies": None}
    read = {
        each["subtopology_id"]: [*each["source_topics"], *(row["name"] for row in each["repartition_source_topics"])]
        for each in topology["subtopologies"] or ()
    }
    counts = client.partition_counts(admin, {topic for topics in read.values() for topic in topics})
    members = [
        _newer_member(each, _tasks(each["assignment"]), _tasks(each[_TARGET]), _read_by(each, read, counts))
        for each in group["members"]
    ]
    absent = sorted({topic for topics in read.values() for topic in topics} - counts.keys())
    detail = f"{len(read)} subtopolog{'y' if len(read) == 1 else 'ies'} (epoch {topology['epoch']})"
    if absent:
        detail += f", without {' '.join(absent)}"
    return _newer(group, STREAMS, detail, members)


_TARGET = "target_assignment"
_KINDS = {"ConsumerGroupDescribe": _consumer, "ShareGroupDescribe": _share, "StreamsGroupDescribe": _streams}


def _newer(group: dict[str, Any], kind: str, detail: str, members: list[Member]) -> Description:
    return Description(
        group["group_id"], kind, group["group_state"], detail, members, group["group_epoch"], group["assignment_epoch"]
    )


def _newer_member(member: dict[str, Any], places: list[str], target: list[str] | None, reads: Topics) -> Member:
    return Member(
        member["member_id"],
        member.get("instance_id"),
        member["client_id"],
        member["client_host"],
        member["member_epoch"],
        places,
        target,
        reads,
    )


def _classic_topics(member: dict[str, Any]) -> Topics:
    assignment = member["member_assignment"]
    if not isinstance(assignment, dict):
        return {}
    return {row["topic"]: sorted(row["partitions"]) for row in assignment["assigned_partitions"]}


def _topics(assignment: dict[str, Any]) -> Topics:
    return {row["topic_name"]: sorted(row["partitions"]) for row in assignment["topic_partitions"]}


def _places(topics: Topics) -> list[str]:
    return [f"{topic}-{number}" for topic, numbers in sorted(topics.items()) for number in numbers]


def _tasks(assignment: dict[str, Any]) -> list[str]:
    """Active tasks, and the others with their role."""
    return [
        f"{role}{row['subtopology_id']}_{number}"
        for role, field in (("", "active_tasks"), ("standby:", "standby_tasks"), ("warmup:", "warmup_tasks"))
        for row in sorted(assignment[field], key=lambda row: str(row["subtopology_id"]))
        for number in sorted(row["partitions"])
    ]


def _read_by(member: dict[str, Any], read: dict[str, list[str]], counts: dict[str, int]) -> Topics:
    """What the active tasks of a member read. A task beyond the end of a topic does not read it."""
    topics: Topics = {}
    for row in member["assignment"]["active_tasks"]:
        for topic in read.get(row["subtopology_id"], ()):
            numbers = [number for number in sorted(row["partitions"]) if number < counts.get(topic, 0)]
            topics.setdefault(topic, []).extend(numbers)
    return topics
