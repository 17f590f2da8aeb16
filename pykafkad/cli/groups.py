"""`pykafkad groups`: lists, describes, resets and deletes groups of any Kafka, and of every kind."""

from __future__ import annotations

import sys

from pykafkad.cli import actions, client, group_descriptions
from pykafkad.cli.group_descriptions import SHARE
from pykafkad.cli.output import Failure, print_error, print_table

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any

    from pykafkad.cli.group_descriptions import Description, Member

    Offsets = dict[tuple[str, int], tuple[int | None, int | None]]

WAITS_SHOWN = 20
"""Sentences on a rebalance."""
ENDS = {"start": "EARLIEST", "earliest": "EARLIEST", "end": "LATEST", "latest": "LATEST"}
"""Words for the ends of a partition, with kafka-python's."""

SUMMARY = "list, describe, reset and delete groups of every kind, and make members leave"
HAS_ACTIONS = True


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `pykafkad groups`."""
    add = actions.add_actions(parser)
    listing = add("list", help="all groups with their state")
    describe = add("describe", help="the group's offsets and lag, and who reads each partition")
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
        help="`start`, `end`, an offset, or a time such as 2026-01-31T12:00:00Z (the first record from then on); an "
        "offset outside the partition's range becomes its nearest end",
    )
    delete = add("delete", help="delete groups that have no members, and their offsets")
    delete.add_argument("groups", nargs="+", metavar="GROUP", help="their group.id")
    kick = add("kick", help="make members leave a group; a client that goes on joins again")
    kick.add_argument("group", metavar="GROUP", help="its group.id")
    kick.add_argument("members", nargs="*", metavar="MEMBER", help="their ids or instance ids; `--all` for all members")
    kick.add_argument("--all", action="store_true", help="every member")
    actions.add_common(parser, (listing, describe, reset, delete, kick))


def run(options: argparse.Namespace) -> int:
    """Runs one action; the exit code is 1 when it failed for any group."""
    actions = {"list": _list, "describe": _describe, "reset": _reset, "delete": _delete, "kick": _kick}
    return actions[options.action](options)


def _list(options: argparse.Namespace) -> int:
    with client.admin(options) as admin:
        groups = admin.list_groups()
    rows = [
        (group["group_id"], group.get("group_state"), group.get("group_type"), group["protocol_type"])
        for group in sorted(groups, key=lambda group: group["group_id"])
    ]
    print_table(("group", "state", "type", "protocol"), rows, as_json=options.json)
    return 0


def _describe(options: argparse.Namespace) -> int:
    with client.admin(options) as admin:
        group = group_descriptions.describe(admin, options.group)
        if options.members:
            return _print_members(group, options)
        readers = _readers(group)
        offsets = _share_offsets(admin, group) if group.kind == SHARE else _committed_offsets(admin, group)
        if not offsets:
            _must_exist(group, options)
        partitions = sorted({*offsets, *readers})
        ends = client.watermarks(admin, [client.partition_of(*place) for place in partitions])
    rows = []
    for topic, partition in partitions:
        end = ends[client.partition_of(topic, partition)][1]
        at, lag = offsets.get((topic, partition), (None, None))
        if lag is None and at is not None:
            lag = max(0, end - at)
        who = readers.get((topic, partition), [])
        clients, hosts = (" ".join(dict.fromkeys(getattr(each, field) for each in who)) for field in ("client", "host"))
        rows.append((topic, partition, at, end, lag, clients or None, hosts or None))
    _print_summary(group, options)
    columns = ("topic", "partition", "committed_offset", "end_offset", "lag", "client", "host")
    print_table(columns, rows, as_json=options.json)
    return 0


def _must_exist(group: Description, options: argparse.Namespace) -> None:
    """Raises `Failure` for the description of a group that does not exist."""
    if group.state == "Dead":
        raise Failure(
            f"there is no group {options.group} at {options.bootstrap}; `pykafkad groups list` shows all groups"
        )


def _committed_offsets(admin: Any, group: Description) -> Offsets:
    """Topic and partition to the committed offset."""
    committed = client.retrying(admin.list_group_offsets, group.name)[group.name]
    return {(each.topic, each.partition): (at.offset, None) for each, at in committed.items()}


def _share_offsets(admin: Any, group: Description) -> Offsets:
    """Topic and partition to the first offset that is not done with, and the number of records from there that are
    not."""
    return dict(client.share_offsets(admin, group.name))


def _readers(group: Description) -> dict[tuple[str, int], list[Member]]:
    """Topic and partition to the members that read it: one, but in a share group any number."""
    readers: dict[tuple[str, int], list[Member]] = {}
    for member in group.members:
        for topic, numbers in member.reads.items():
            for number in numbers:
                readers.setdefault((topic, number), []).append(member)
    return readers


def _print_summary(group: Description, options: argparse.Namespace) -> None:
    """Tells people of the state, and of what a rebalance waits for."""
    if options.json:
        return
    members = len(group.members)
    text = f"{group.name}: {group.state}, {members} member{'' if members == 1 else 's'}"
    if group.epoch is not None:
        text += f", {group.kind} group, epoch {group.epoch} (assigned in {group.target_epoch}), {group.detail}"
    print(text, file=sys.stderr)
    waits = list(group_descriptions.waiting_for(group))
    for sentence in waits[:WAITS_SHOWN]:
        print(f"  {sentence}", file=sys.stderr)
    if len(waits) > WAITS_SHOWN:
        print(f"  … and {len(waits) - WAITS_SHOWN} more", file=sys.stderr)


def _print_members(group: Description, options: argparse.Namespace) -> int:
    rows = [
        (
            member.id,
            member.instance,
            member.client,
            member.host,
            member.epoch,
            " ".join(member.places),
            None if member.target is None else " ".join(member.target),
        )
        for member in group.members
    ]
    _print_summary(group, options)
    columns = ("member", "instance", "client", "host", "epoch", "assignment", "target")
    print_table(columns, rows, as_json=options.json)
    return 0


def _reset(options: argparse.Namespace) -> int:
    place: Any = client.offset(options.to)
    time_ms = 0
    if place is None and options.to not in ENDS:
        allowed = f"start, end, an offset up to {client.OFFSET_MAX} or a time such as 2026-01-31T12:00:00Z"
        time_ms = client.time_ms(options.to, f"--to {options.to}: must be {allowed}")
    with client.admin(options) as admin:
        from kafka import OffsetSpec
        from kafka.admin import OffsetTimestamp

        if options.to in ENDS:
            place = getattr(OffsetSpec, ENDS[options.to])
        elif place is None:
            place = OffsetTimestamp(time_ms)
        group = group_descriptions.describe(admin, options.group)
        if group.kind == SHARE:
            raise Failure(f"{options.group} is a share group, which has no committed offsets to move")
        members = len(group.members)
        if members:
            raise Failure(
                f"{options.group} is in use by {members} client{'' if members == 1 else 's'}; stop them, then reset"
            )
        partitions = _partitions(admin, options)
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


def _kick(options: argparse.Namespace) -> int:
    if bool(options.members) == options.all:
        raise Failure("name the members to kick, or give --all", 2)
    with client.admin(options) as admin:
        from kafka.admin import MemberToRemove

        group = group_descriptions.describe(admin, options.group)
        _must_exist(group, options)
        known = {name: member for member in group.members for name in (member.instance, member.id) if name}
        chosen = group.members if options.all else [known[name] for name in options.members if name in known]
        unknown = [name for name in options.members if name not in known]
        asked = [
            # A static member is removed by its instance id: its member id alone would leave its place to it.
            MemberToRemove(member_id=None if each.instance else each.id, group_instance_id=each.instance)
            for each in chosen
        ]
        answer = client.retrying(admin.remove_group_members, options.group, asked) if asked else {}
    refused = {name: error for name, error in answer.items() if error.errno}
    rows = [(name, "left") for name in answer if name not in refused]
    print_table(("member", "result"), rows, as_json=options.json)
    for name in unknown:
        print_error(f"{name}: {options.group} has no such member")
    for name, error in refused.items():
        print_error(f"{name}: {error.message}")
    return 1 if unknown or refused else 0


def _delete(options: argparse.Namespace) -> int:
    with client.admin(options) as admin:
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
