"""FindCoordinator, JoinGroup, SyncGroup, Heartbeat and LeaveGroup: the life of a classic group."""

from __future__ import annotations

from typing import Any

from compat_tests.scenarios.exchange import Connection, Exchange, part, request, versions
from compat_tests.scenarios.registry import scenario

# Many times longer than a scenario takes: its members do not heartbeat.
SESSION_MS = 120_000
REBALANCE_MS = 60_000
LONG = "x" * 40_000


def join_fields(group: str, member: str = "", protocols: Any = (("range", b"meta"),), **more: Any) -> dict[str, Any]:
    """The fields of a JoinGroup request."""
    offered = [part("JoinGroup", "JoinGroupRequestProtocol", name=name, metadata=data) for name, data in protocols]
    fields = {"group_id": group, "member_id": member, "protocol_type": "consumer", "protocols": offered}
    return {**fields, "session_timeout_ms": SESSION_MS, "rebalance_timeout_ms": REBALANCE_MS, **more}


def sync_fields(group: str, member: str, generation: int, shares: Any = (), **more: Any) -> dict[str, Any]:
    """The fields of a SyncGroup request; shares are (member, assignment)."""
    rows = [part("SyncGroup", "SyncGroupRequestAssignment", member_id=name, assignment=data) for name, data in shares]
    return {"group_id": group, "member_id": member, "generation_id": generation, "assignments": rows, **more}


def joined(broker: Exchange, group: str, version: int = 5, **more: Any) -> tuple[str, int]:
    """Form a group of one member, not recorded; returns (member id, generation)."""
    broker.coordinator(group)
    answer = broker.quietly("JoinGroup", version, **join_fields(group, **more))
    if answer.error_code == 79:
        answer = broker.quietly("JoinGroup", version, **join_fields(group, answer.member_id, **more))
    assert answer.error_code == 0, answer
    shares = [(answer.member_id, b"all")]
    synced = broker.quietly("SyncGroup", 3, **sync_fields(group, answer.member_id, answer.generation_id, shares))
    assert synced.error_code == 0, synced
    return answer.member_id, answer.generation_id


def send(connection: Connection, api: str, version: int, fields: dict[str, Any]) -> None:
    """Send without waiting for the answer."""
    connection.send(api, version, request(api, version, **fields))


@scenario
def find_coordinator(broker: Exchange) -> None:
    """The broker coordinates every group; unknown kinds of keys are refused."""
    group = broker.name("group")
    broker.coordinator(group)
    for version in versions("FindCoordinator"):
        if version < 4:
            broker.ask("FindCoordinator", version, key=group)
            broker.ask("FindCoordinator", version, note="empty", key="")
            if version > 0:
                broker.ask("FindCoordinator", version, note="kind 9", key=group, key_type=9)
            continue
        broker.ask("FindCoordinator", version, coordinator_keys=[group, broker.name("other"), group])
        broker.ask("FindCoordinator", version, note="none", coordinator_keys=[])
        broker.ask("FindCoordinator", version, note="empty", coordinator_keys=[""])
        broker.ask("FindCoordinator", version, note="kind 9", coordinator_keys=[group], key_type=9)


@scenario
def group_of_one(broker: Exchange) -> None:
    """From version 4 on a member first gets its id with MEMBER_ID_REQUIRED; then it leads, syncs, heartbeats and
    leaves.
    """
    for version in versions("JoinGroup"):
        group = broker.name(f"group-{version}")
        broker.coordinator(group)
        answer = broker.ask("JoinGroup", version, **join_fields(group))
        if version >= 4:
            assert answer.error_code == 79
            answer = broker.ask("JoinGroup", version, note="with id", **join_fields(group, answer.member_id))
        member, generation = answer.member_id, answer.generation_id
        assert (answer.error_code, answer.leader) == (0, member)
        sync_version = min(version, 5)
        names = {"protocol_type": "consumer", "protocol_name": "range"}
        fields = sync_fields(group, member, generation, [(member, b"mine")], **names)
        broker.ask("SyncGroup", sync_version, **fields)
        broker.ask("SyncGroup", sync_version, note="again", **fields)
        beat = {"group_id": group, "generation_id": generation, "member_id": member}
        broker.ask("Heartbeat", min(version, 4), **beat)
        broker.ask("JoinGroup", version, note="again, nothing changed", **join_fields(group, member))
        broker.ask("Heartbeat", min(version, 4), note="old generation", **beat)
        leave_version = min(version, 5)
        identity = part("LeaveGroup", "MemberIdentity", member_id=member, reason="enough")
        broker.ask("LeaveGroup", leave_version, group_id=group, member_id=member, members=[identity])
        broker.ask("LeaveGroup", leave_version, note="again", group_id=group, member_id=member, members=[identity])


@scenario
def join_errors(broker: Exchange) -> None:
    """The errors of JoinGroup."""
    for version in (0, 3, 4, 5, 7, 9):
        group = broker.name(f"group-{version}")
        broker.coordinator(group)
        for note, fields in {
            "empty group": join_fields(""),
            "session too short": join_fields(group, session_timeout_ms=1),
            "session too long": join_fields(group, session_timeout_ms=10_000_000),
            "unknown member": join_fields(group, "nobody"),
            "no protocols": join_fields(group, protocols=()),
            "no protocol type": join_fields(group, protocol_type=""),
            "empty protocol name": join_fields(group, protocols=(("", b""),)),
        }.items():
            broker.ask("JoinGroup", version, note=note, **fields)


@scenario
def protocols_that_do_not_fit(broker: Exchange) -> None:
    """A member with another protocol type, or without a common protocol, is INCONSISTENT_GROUP_PROTOCOL."""
    group = broker.name("group")
    joined(broker, group)
    for version in (1, 5, 9):
        broker.ask("JoinGroup", version, note="other type", **join_fields(group, protocol_type="connect"))
        broker.ask("JoinGroup", version, note="other protocol", **join_fields(group, protocols=(("sticky", b""),)))


@scenario
def sync_errors(broker: Exchange) -> None:
    """A sync with a wrong generation, member, group or protocol is refused."""
    group = broker.name("group")
    member, generation = joined(broker, group)
    for version in versions("SyncGroup"):
        broker.ask("SyncGroup", version, note="good", **sync_fields(group, member, generation))
        broker.ask("SyncGroup", version, note="generation", **sync_fields(group, member, generation + 1))
        broker.ask("SyncGroup", version, note="member", **sync_fields(group, "nobody", generation))
        broker.ask("SyncGroup", version, note="group", **sync_fields(broker.name("none"), member, generation))
        broker.ask("SyncGroup", version, note="empty group", **sync_fields("", member, generation))
        if version >= 5:
            for names in (("consumer", "sticky"), ("connect", "range"), (None, None), ("consumer", None)):
                more = {"protocol_type": names[0], "protocol_name": names[1]}
                broker.ask("SyncGroup", version, note=str(names), **sync_fields(group, member, generation, **more))


@scenario
def heartbeat_and_leave_errors(broker: Exchange) -> None:
    """Unknown members, generations and groups are refused."""
    group = broker.name("group")
    member, generation = joined(broker, group)
    for version in versions("Heartbeat"):
        for note, fields in {
            "good": (group, member, generation),
            "generation": (group, member, generation + 5),
            "member": (group, "nobody", generation),
            "group": (broker.name("none"), member, generation),
            "empty group": ("", member, generation),
        }.items():
            beat = dict(zip(("group_id", "member_id", "generation_id"), fields, strict=True))
            broker.ask("Heartbeat", version, note=note, **beat)
        if version >= 3:
            beat = {"group_id": group, "member_id": member, "generation_id": generation}
            broker.ask("Heartbeat", version, note="static", group_instance_id="nobody", **beat)
    for version in versions("LeaveGroup"):
        for name, who in ((group, "nobody"), (broker.name("none"), member), ("", member)):
            identity = part("LeaveGroup", "MemberIdentity", member_id=who)
            broker.ask(
                "LeaveGroup", version, note=f"{name} {who[:6]}", group_id=name, member_id=who, members=[identity]
            )
        if version >= 3:
            strangers = [part("LeaveGroup", "MemberIdentity", member_id="", group_instance_id="nobody")]
            strangers.append(part("LeaveGroup", "MemberIdentity", member_id="nobody", group_instance_id="nobody"))
            broker.ask("LeaveGroup", version, note="strangers", group_id=group, members=strangers)
            broker.ask("LeaveGroup", version, note="nobody at all", group_id=group, members=[])


@scenario
def second_member(broker: Exchange) -> None:
    """A second member makes the first one rejoin; the leader assigns partitions to both; when one leaves, the other
    rejoins.
    """
    for version in (1, 3, 5, 9):
        group = broker.name(f"group-{version}")
        first, generation = joined(broker, group)
        two = broker.connect()
        send(two, "JoinGroup", version, join_fields(group))
        if version >= 4:
            required = two.receive()
            send(two, "JoinGroup", version, join_fields(group, required.member_id))
        beat = {"group_id": group, "generation_id": generation, "member_id": first}
        broker.until(lambda beat=beat: broker.quietly("Heartbeat", 3, **beat), lambda answer: answer.error_code == 27)
        broker.ask("Heartbeat", 3, note="rebalance in progress", **beat)
        old_sync = sync_fields(group, first, generation)
        broker.ask("SyncGroup", 3, note="rebalance in progress", **old_sync)
        leader = broker.ask("JoinGroup", version, note="first again", **join_fields(group, first))
        follower = two.receive()
        broker.record(f"JoinGroup v{version} second", follower, version)
        shares = [(leader.member_id, b"left"), (follower.member_id, b"right")]
        send(two, "SyncGroup", 3, sync_fields(group, follower.member_id, follower.generation_id))
        broker.ask("SyncGroup", 3, note="leader", **sync_fields(group, first, leader.generation_id, shares))
        broker.record("SyncGroup follower", two.receive(), 3)
        identity = [part("LeaveGroup", "MemberIdentity", member_id=follower.member_id)]
        broker.ask("LeaveGroup", 3, group_id=group, members=identity)
        beat["generation_id"] = leader.generation_id
        broker.ask("Heartbeat", 3, note="after the other left", **beat)
        broker.ask("JoinGroup", version, note="alone again", **join_fields(group, first))


@scenario
def protocol_election(broker: Exchange) -> None:
    """Each member votes for the first of its protocols that all members support."""
    group = broker.name("group")
    offers = (("a", b"1a"), ("b", b"1b"), ("c", b"1c"))
    first, generation = joined(broker, group, protocols=offers)
    two = broker.connect()
    theirs = join_fields(group, protocols=(("c", b"2c"), ("b", b"2b")))
    send(two, "JoinGroup", 5, theirs)
    required = two.receive()
    send(two, "JoinGroup", 5, {**theirs, "member_id": required.member_id})
    beat = {"group_id": group, "generation_id": generation, "member_id": first}
    broker.until(lambda: broker.quietly("Heartbeat", 3, **beat), lambda answer: answer.error_code == 27)
    broker.ask("JoinGroup", 5, note="first", **join_fields(group, first, protocols=offers))
    broker.record("JoinGroup second", two.receive(), 5)


@scenario
def static_members(broker: Exchange) -> None:
    """A static member that returns gets a new id and keeps its place; its old id is fenced (KIP-345, KIP-814)."""
    for version in (5, 7, 9):
        group = broker.name(f"group-{version}")
        broker.coordinator(group)
        fields = join_fields(group, group_instance_id="one")
        first = broker.ask("JoinGroup", version, note="first", **fields)
        shares = [(first.member_id, b"mine")]
        synced = sync_fields(group, first.member_id, first.generation_id, shares, group_instance_id="one")
        broker.ask("SyncGroup", 3, **synced)
        again = broker.ask("JoinGroup", version, note="back without id", **fields)
        assert again.generation_id == first.generation_id
        resync = sync_fields(group, again.member_id, again.generation_id, group_instance_id="one")
        broker.ask("SyncGroup", 3, note="back", **resync)
        beat = {"group_id": group, "generation_id": first.generation_id, "group_instance_id": "one"}
        broker.ask("Heartbeat", 3, note="old id", member_id=first.member_id, **beat)
        broker.ask("Heartbeat", 3, note="new id", member_id=again.member_id, **beat)
        broker.ask("JoinGroup", version, note="old id", **join_fields(group, first.member_id, group_instance_id="one"))
        broker.ask("SyncGroup", 3, note="old id", **synced)
        changed = join_fields(group, protocols=(("range", b"other meta"),), group_instance_id="one")
        broker.ask("JoinGroup", version, note="back with another subscription", **changed)
        for note, member, instance in (("wrong id", "nobody", "one"), ("by instance", "", "one")):
            identity = part("LeaveGroup", "MemberIdentity", member_id=member, group_instance_id=instance)
            broker.ask("LeaveGroup", 4, note=note, group_id=group, members=[identity])


@scenario
def session_expires(broker: Exchange) -> None:
    """A member that does not heartbeat within its session timeout is removed."""
    group = broker.name("group")
    member, generation = joined(broker, group, session_timeout_ms=3000)
    beat = {"group_id": group, "generation_id": generation, "member_id": member}
    broker.ask("Heartbeat", 3, **beat)
    broker.until(
        lambda: broker.quietly("DescribeGroups", 4, groups=[group]), lambda a: a.groups[0].group_state == "Empty"
    )
    broker.ask("Heartbeat", 3, note="too late", **beat)


@scenario
def rebalance_times_out(broker: Exchange) -> None:
    """A member that does not rejoin within its rebalance timeout is removed; the others continue without it."""
    group = broker.name("group")
    first, _ = joined(broker, group, rebalance_timeout_ms=3000)
    fields = join_fields(group, rebalance_timeout_ms=3000)
    required = broker.quietly("JoinGroup", 5, **fields)
    answer = broker.ask("JoinGroup", 5, note="second, alone", **{**fields, "member_id": required.member_id})
    assert answer.error_code == 0 and answer.leader == answer.member_id
    broker.ask("Heartbeat", 3, note="first", group_id=group, generation_id=1, member_id=first)


@scenario
def simple_names(broker: Exchange) -> None:
    """Any text is a valid group name, and any protocol type is valid."""
    for number, name in enumerate(("grüppe", "a b/c", "x" * 200)):
        group = broker.name(name)
        broker.coordinator(group)
        fields = join_fields(group, protocol_type="connect")
        answer = broker.quietly("JoinGroup", 5, **fields)
        broker.ask("JoinGroup", 5, note=f"name {number}", **{**fields, "member_id": answer.member_id})
