"""`pykafkad groups`: lists, describes, resets and deletes consumer groups of any Kafka."""

from __future__ import annotations

import sys

from pykafkad.cli import actions, client
from pykafkad.cli.output import Failure, print_error, print_table

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any

SUMMARY = "list, describe, reset and delete consumer groups"
HAS_ACTIONS = True


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `pykafkad groups`."""
    add = actions.add_actions(parser)
    listing = add("list", help="all groups with their state")
    describe = add("describe", help="the group's offsets and lag, and the member that reads each partition")
    describe.add_argument("group", metavar="GROUP", help="its group.id")
    describe.add_argument(
        "--members", action="store_true", help="its members with what they have, and what they shall have, instead"
    )
    reset = add("reset", help="move the offsets of a group that has no members")
    reset.add_argument("group", metavar="GROUP", help="its group.id; with --topic, an unknown group is created")
    reset.add_argument(
        "--topic",
        action="append",
        metavar="NAME",
        help="only this topic (repeatable; default: all topics that the group has committed offsets of)",
    )
    reset.add_argument(
        "--to",
        required=True,
        metavar="WHERE",
        help="`start`, `end` or an offset; an offset outside the partition's range becomes its nearest end",
    )
    delete = add("delete", help="delete groups that have no members, and their offsets")
    delete.add_argument("groups", nargs="+", metavar="GROUP", help="their group.id")
    actions.add_common(parser, (listing, describe, reset, delete))


def run(options: argparse.Namespace) -> int:
    """Runs one action; the exit code is 1 when it failed for any group."""
    return {"list": _list, "describe": _describe, "reset": _reset, "delete": _delete}[options.action](options)


def _list(options: argparse.Namespace) -> int:
    with client.admin(options.bootstrap) as admin:
        groups = admin.list_groups()
    rows = [
        (group["group_id"], group.get("group_state"), group.get("group_type"), group["protocol_type"])
        for group in sorted(groups, key=lambda group: group["group_id"])
    ]
    print_table(("group", "state", "type", "protocol"), rows, as_json=options.json)
    return 0


def _describe(options: argparse.Namespace) -> int:
    with client.admin(options.bootstrap) as admin:
        group = _description(admin, options.group)
        if options.members:
            return _print_members(group, options)
        committed = client.retrying(admin.list_group_offsets, options.group)[options.group]
        readers = _readers(group)
        if group["group_state"] == "Dead" and not committed:
            raise Failure(
                f"there is no group {options.group} at {options.bootstrap}; `pykafkad groups list` shows all groups"
            )
        partitions = sorted({*committed, *readers})
        offsets = client.watermarks(admin, partitions)
    rows = []
    for partition in partitions:
        end = offsets[partition][1]
        at = committed[partition].offset if partition in committed else None
        member = readers.get(partition, {})
        lag = None if at is None else max(0, end - at)
        rows.append(
            (partition.topic, partition.partition, at, end, lag, member.get("client_id"), member.get("client_host"))
        )
    if not options.json:
        print(_summary(group), file=sys.stderr)
    columns = ("topic", "partition", "committed_offset", "end_offset", "lag", "client", "host")
    print_table(columns, rows, as_json=options.json)
    return 0


def _readers(group: dict[str, Any]) -> dict[Any, dict[str, Any]]:
    """Partition to the member that it is assigned to."""
    readers = {}
    for member in group["members"]:
        for topic, numbers in _assignment(member, "assignment").items():
            readers.update({client.partition_of(topic, number): member for number in numbers})
    return readers


def _description(admin: Any, name: str) -> dict[str, Any]:
    """A group of either protocol; an unknown one is described as a dead classic group."""
    group = client.describe_group(admin, name)
    if group["group_state"] == "Dead":
        group = client.describe_consumer_group(admin, name) or group
    return group


def _assignment(member: dict[str, Any], field: str) -> dict[str, list[int]]:
    """Topic to partitions of a member: its `assignment` now or, in a consumer group, its `target_assignment`."""
    if "member_assignment" not in member:
        return {row["topic_name"]: sorted(row["partitions"]) for row in member[field]["topic_partitions"]}
    assignment = member["member_assignment"]
    if not isinstance(assignment, dict):
        return {}
    return {row["topic"]: sorted(row["partitions"]) for row in assignment["assigned_partitions"]}


def _summary(group: dict[str, Any]) -> str:
    members = len(group["members"])
    text = f"{group['group_id']}: {group['group_state']}, {members} member{'' if members == 1 else 's'}"
    if "group_epoch" not in group:
        return text
    return (
        f"{text}, consumer protocol, epoch {group['group_epoch']} (assigned in {group['assignment_epoch']} "
        f"by {group['assignor_name']})"
    )


def _print_members(group: dict[str, Any], options: argparse.Namespace) -> int:
    rows = []
    for member in group["members"]:
        now, target = (_places(_assignment(member, field)) for field in ("assignment", "target_assignment"))
        instance = member.get("instance_id", member.get("group_instance_id"))
        epoch = member.get("member_epoch")
        rows.append((member["member_id"], instance, member["client_id"], member["client_host"], epoch, now, target))
    if not options.json:
        print(_summary(group), file=sys.stderr)
    columns = ("member", "instance", "client", "host", "epoch", "assignment", "target")
    print_table(columns, rows, as_json=options.json)
    return 0


def _places(assignment: dict[str, list[int]]) -> str:
    return " ".join(f"{topic}-{number}" for topic, numbers in sorted(assignment.items()) for number in numbers)


def _reset(options: argparse.Namespace) -> int:
    with client.admin(options.bootstrap) as admin:
        from kafka import OffsetSpec

        places = {
            "start": OffsetSpec.EARLIEST,
            "earliest": OffsetSpec.EARLIEST,
            "end": OffsetSpec.LATEST,
            "latest": OffsetSpec.LATEST,
        }
        if options.to not in places and not options.to.isdecimal():
            raise Failure(f"--to {options.to}: must be start, end or an offset", 2)
        members = len(_description(admin, options.group)["members"])
        if members:
            raise Failure(
                f"{options.group} is in use by {members} client{'' if members == 1 else 's'}; stop them, then reset"
            )
        partitions = _partitions(admin, options)
        place = places.get(options.to) or int(options.to)
        answer = client.retrying(admin.reset_group_offsets, options.group, dict.fromkeys(partitions, place))
    rows = [
        (each.topic, each.partition, answer[each]["offset"]) for each in partitions if not answer[each]["error"].errno
    ]
    print_table(("topic", "partition", "committed_offset"), rows, as_json=options.json)
    failed = [each for each in partitions if answer[each]["error"].errno]
    for each in failed:
        print_error(f"{each.topic}-{each.partition}: {answer[each]['error'].message}")
    return 1 if failed else 0


def _partitions(admin: Any, options: argparse.Namespace) -> list[Any]:
    """The partitions of the named topics, or all partitions that the group has committed offsets of."""
    if options.topic is None:
        partitions = sorted(client.retrying(admin.list_group_offsets, options.group)[options.group])
        if not partitions:
            raise Failure(f"{options.group} has no offsets at {options.bootstrap}; name topics with --topic")
        return partitions
    partitions = []
    for topic in admin.describe_topics(options.topic):
        if topic["error_code"] != 0:
            raise Failure(f"there is no topic {topic['name']} at {options.bootstrap}")
        partitions += sorted(client.partition_of(topic["name"], row["partition_index"]) for row in topic["partitions"])
    return partitions


def _delete(options: argparse.Namespace) -> int:
    with client.admin(options.bootstrap) as admin:
        answer = client.retrying(admin.delete_groups, options.groups)
    print_table(
        ("group", "result"),
        [(group, "deleted") for group, result in answer.items() if result == "OK"],
        as_json=options.json,
    )
    failed = {group: result for group, result in answer.items() if result != "OK"}
    for group, result in failed.items():
        print_error(f"{group}: {client.error_name(result)}")
    return 1 if failed else 0
