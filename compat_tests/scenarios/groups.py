"""Classic groups: JoinGroup, SyncGroup, Heartbeat, LeaveGroup, DescribeGroups, ListGroups, DeleteGroups,
FindCoordinator."""

from __future__ import annotations

import time
from typing import Any

from compat_tests.scenarios.exchange import Connection, Exchange, part, versions
from compat_tests.scenarios.registry import scenario
from pykafkad.wire import messages

# Many times longer than a scenario takes: its members do not heartbeat.
SESSION_MS = 120_000
REBALANCE_MS = 60_000


def protocols(*entries: tuple[str, bytes] | str) -> list:
    """Protocols of a JoinGroup; a plain name has itself as metadata."""
    pairs = [(entry, entry.encode()) if isinstance(entry, str) else entry for entry in entries]
    return [part("JoinGroup", "JoinGroupRequestProtocol", name=name, metadata=metadata) for name, metadata in pairs]


def join_fields(group: str, member_id: str = "", **fields: Any) -> dict[str, Any]:
    """The fields of a JoinGroup, with defaults for those that do not matter."""
    fields.setdefault("protocols", protocols("range"))
    return {
        "group_id": group,
        "member_id": member_id,
        "session_timeout_ms": SESSION_MS,
        "rebalance_timeout_ms": REBALANCE_MS,
        "protocol_type": "consumer",
        **fields,
    }


def assignments(**content: bytes) -> list:
    return [
        part("SyncGroup", "SyncGroupRequestAssignment", member_id=member_id, assignment=value)
        for member_id, value in content.items()
    ]


class Group:
    """A group with members, each on its own connection; their requests are not recorded."""

    def __init__(self, broker: Exchange, kind: str = "group") -> None:
        self.broker = broker
        self.name = broker.name(kind)
        self.generation = -1
        broker.coordinator(self.name)

    def given_id(self, **fields: Any) -> str:
        """A member id that the coordinator has given out (KIP-394)."""
        answer = self.broker.quietly("JoinGroup", 9, **join_fields(self.name, **fields))
        assert answer.error_code == 79, answer
        return answer.member_id

    def alone(self, version: int = 9, **fields: Any) -> str:
        """The only member of a stable group."""
        static = fields.get("group_instance_id") is not None
        member_id = "" if static or version < 4 else self.given_id(**fields)
        answer = self.broker.quietly("JoinGroup", version, **join_fields(self.name, member_id, **fields))
        assert answer.error_code == 0, answer
        self.generation = answer.generation_id
        return self.sync(answer.member_id, {answer.member_id: b"everything"}, fields.get("group_instance_id"))

    def sync(self, member_id: str, content: dict[str, bytes] | None = None, instance: str | None = None) -> str:
        answer = self.broker.quietly(
            "SyncGroup",
            4,
            group_id=self.name,
            generation_id=self.generation,
            member_id=member_id,
            group_instance_id=instance,
            assignments=assignments(**(content or {})),
        )
        assert answer.error_code == 0, answer
        return member_id

    def pair(self, **fields: Any) -> tuple[tuple[str, Connection], tuple[str, Connection]]:
        """Leader and follower of a stable group, each with its connection."""
        first, second = self.broker.connect(), self.broker.connect()
        leader = self.alone(**fields)
        follower = self.given_id(**fields)
        send(second, "JoinGroup", 9, **join_fields(self.name, follower, **fields))
        self.until_state("PreparingRebalance")
        answer = self.broker.quietly("JoinGroup", 9, on=first, **join_fields(self.name, leader, **fields))
        second.receive()
        self.generation = answer.generation_id
        self.sync(leader, {leader: b"half", follower: b"other half"})
        self.sync(follower)
        return (leader, first), (follower, second)

    def until_state(self, state: str) -> None:
        self.broker.until(
            lambda: self.broker.quietly("DescribeGroups", 5, groups=[self.name]),
            lambda answer: answer.groups[0].group_state == state,
        )


def send(connection: Connection, api: str, version: int, **fields: Any) -> None:
    """Send without waiting for the answer, because the request will be delayed."""
    from compat_tests.scenarios.exchange import request

    connection.send(api, version, request(api, version, **fields))


# FindCoordinator.


@scenario
def find_coordinator(broker: Exchange) -> None:
    """The one broker coordinates every group; from version 4 on a request may have several keys."""
    names = [broker.name(kind) for kind in ("one", "two")]
    broker.coordinator(names[0])
    for version in versions("FindCoordinator"):
        fields = {"coordinator_keys": names} if version >= 4 else {"key": names[0]}
        broker.ask("FindCoordinator", version, **fields)
        broker.ask(
            "FindCoordinator", version, note="empty id", **({"coordinator_keys": [""]} if version >= 4 else {"key": ""})
        )
    broker.ask("FindCoordinator", 4, note="no keys", coordinator_keys=[])


@scenario
def find_coordinator_of_unknown_types(broker: Exchange) -> None:
    """Share groups are INVALID_REQUEST before version 6; an unknown type is INVALID_REQUEST."""
    for version in (1, 3, 4, 5, 6):
        for key_type in (2, 3, -1):
            if (version, key_type) != (6, 2):
                key = "group:AAAAAAAAAAAAAAAAAAAAAQ:0"
                fields = {"coordinator_keys": [key]} if version >= 4 else {"key": key}
                broker.ask("FindCoordinator", version, note=f"type {key_type}", key_type=key_type, **fields)


# JoinGroup.


@scenario
def one_member(broker: Exchange) -> None:
    """A member joins, syncs, heartbeats and leaves, in every version."""
    for version in versions("JoinGroup"):
        group = broker.name(f"g{version}")
        broker.coordinator(group)
        answer = broker.ask("JoinGroup", version, **join_fields(group))
        if version >= 4:
            answer = broker.ask("JoinGroup", version, note="with id", **join_fields(group, answer.member_id))
        member, generation = answer.member_id, answer.generation_id
        fields = {"group_id": group, "member_id": member, "generation_id": generation}
        content = assignments(**{member: b"all"})
        named = {"protocol_type": "consumer", "protocol_name": "range"}
        broker.ask("SyncGroup", min(version, 5), assignments=content, **fields, **named)
        broker.ask("Heartbeat", min(version, 4), **fields)
        broker.ask("SyncGroup", min(version, 5), note="again", **fields, **named)
        for described in versions("DescribeGroups"):
            broker.ask("DescribeGroups", described, groups=[group])
        left = (
            {"members": [part("LeaveGroup", "MemberIdentity", member_id=member)]}
            if version >= 3
            else {"member_id": member}
        )
        broker.ask("LeaveGroup", min(version, 5), group_id=group, **left)
        broker.ask("DescribeGroups", 5, note="left", groups=[group])
        broker.ask("Heartbeat", min(version, 4), note="left", **fields)


@scenario
def refused_joins(broker: Exchange) -> None:
    """The joins that Kafka refuses, and the order of its checks."""
    group = broker.name("group")
    broker.coordinator(group)
    for version in versions("JoinGroup"):
        for note, fields in (
            ("no group id", join_fields("", "m")),
            ("short session", join_fields(group, "m", session_timeout_ms=999)),
            ("long session", join_fields(group, "m", session_timeout_ms=1_800_001)),
            ("unknown member", join_fields(group, "stranger")),
            ("no protocol", join_fields(broker.name("none"), protocols=[])),
            ("no protocol type", join_fields(broker.name("none"), protocol_type="")),
        ):
            broker.ask("JoinGroup", version, note=note, **fields)
    broker.ask("ListGroups", 5, note="they exist", states_filter=["No such state"])


@scenario
def protocols_that_do_not_match(broker: Exchange) -> None:
    """A new member needs the group's protocol type, and a protocol that all members have."""
    group = Group(broker)
    member = group.alone(protocols=protocols("range", "sticky"))
    for version in (3, 9):
        broker.ask("JoinGroup", version, note="type", **join_fields(group.name, protocol_type="connect"))
        broker.ask("JoinGroup", version, note="name", **join_fields(group.name, protocols=protocols("other")))
        broker.ask(
            "JoinGroup", version, note="member, name", **join_fields(group.name, member, protocols=protocols("other"))
        )
        broker.ask("JoinGroup", version, note="stranger", **join_fields(group.name, "stranger"))
        broker.ask("JoinGroup", version, note="instance", **join_fields(group.name, member, group_instance_id="nobody"))


@scenario
def the_chosen_protocol(broker: Exchange) -> None:
    """Among the protocols that all members support, the one with most votes is chosen."""
    group = Group(broker)
    offered = [
        protocols(*((name, name.encode() * index) for name in names))
        for index, names in ((1, "abc"), (2, "bad"), (3, "dab"))
    ]
    leader = group.alone(protocols=offered[0])
    second, third = broker.connect(), broker.connect()
    for connection, each in ((second, offered[1]), (third, offered[2])):
        member = group.given_id(protocols=each)
        send(connection, "JoinGroup", 9, **join_fields(group.name, member, protocols=each))
    broker.until(
        lambda: broker.quietly("DescribeGroups", 5, groups=[group.name]),
        lambda answer: len(answer.groups[0].members) == 3,
    )
    broker.ask("JoinGroup", 9, **join_fields(group.name, leader, protocols=offered[0]))
    for connection in (second, third):
        broker.record("follower", connection.receive(), 9)


@scenario
def rebalance_of_two(broker: Exchange) -> None:
    """While a second member joins, every answer to the first one tells it to rejoin; then both are in one
    generation.
    """
    group = Group(broker)
    leader = group.alone()
    second = broker.connect()
    follower = group.given_id()
    other = {"protocols": protocols(("range", b"other"))}
    send(second, "JoinGroup", 9, **join_fields(group.name, follower, **other))
    group.until_state("PreparingRebalance")
    known = {"group_id": group.name, "member_id": leader, "generation_id": group.generation}
    broker.ask("Heartbeat", 4, **known)
    broker.ask("SyncGroup", 4, **known)
    broker.ask("DescribeGroups", 5, groups=[group.name])
    answer = broker.ask("JoinGroup", 9, **join_fields(group.name, leader))
    broker.record("follower", second.receive(), 9)
    known["generation_id"] = answer.generation_id
    broker.ask("Heartbeat", 4, note="completing", **known)
    broker.ask("DescribeGroups", 5, note="completing", groups=[group.name])
    broker.ask("JoinGroup", 9, note="leader again", **join_fields(group.name, leader))
    broker.ask("JoinGroup", 9, note="follower again", **join_fields(group.name, follower, **other))
    send(second, "SyncGroup", 4, group_id=group.name, member_id=follower, generation_id=answer.generation_id)
    broker.ask("SyncGroup", 4, assignments=assignments(**{leader: b"one", follower: b"two", "stranger": b"x"}), **known)
    broker.record("follower", second.receive(), 4)
    broker.ask("JoinGroup", 9, note="follower in a stable group", **join_fields(group.name, follower, **other))
    broker.ask("DescribeGroups", 5, note="stable", groups=[group.name])


@scenario
def a_leader_that_leaves(broker: Exchange) -> None:
    """The remaining member leads the next generation."""
    group = Group(broker)
    (leader, _), (follower, second) = group.pair()
    leaving = [part("LeaveGroup", "MemberIdentity", member_id=leader)]
    broker.ask("LeaveGroup", 5, group_id=group.name, members=leaving)
    broker.ask("Heartbeat", 4, group_id=group.name, member_id=follower, generation_id=group.generation)
    broker.ask("Heartbeat", 4, note="gone", group_id=group.name, member_id=leader, generation_id=group.generation)
    broker.ask("JoinGroup", 9, on=second, **join_fields(group.name, follower))


@scenario
def a_member_that_is_silent(broker: Exchange) -> None:
    """A member is removed after its session timeout; the group is then empty and has a new generation."""
    group = Group(broker)
    member = group.alone(session_timeout_ms=3_000)
    time.sleep(0.5)
    broker.ask("Heartbeat", 4, group_id=group.name, member_id=member, generation_id=group.generation)
    group.until_state("Empty")
    broker.ask("DescribeGroups", 5, groups=[group.name])
    broker.ask("Heartbeat", 4, group_id=group.name, member_id=member, generation_id=group.generation)
    broker.ask("JoinGroup", 9, **join_fields(group.name, member))
    answer = broker.ask("JoinGroup", 9, **join_fields(group.name, group.given_id()))
    assert answer.generation_id == 3


@scenario
def a_rebalance_that_somebody_misses(broker: Exchange) -> None:
    """After the rebalance timeout the group continues without the members that did not rejoin."""
    group = Group(broker)
    (leader, _), (follower, second) = group.pair(rebalance_timeout_ms=3_000)
    broker.ask(
        "JoinGroup",
        9,
        on=second,
        **join_fields(group.name, follower, rebalance_timeout_ms=3_000, protocols=protocols(("range", b"new"))),
    )
    broker.ask("Heartbeat", 4, group_id=group.name, member_id=leader, generation_id=group.generation)


@scenario
def an_assignment_that_never_comes(broker: Exchange) -> None:
    """A member that does not sync within the rebalance timeout is removed; the members that waited start over."""
    group = Group(broker)
    (leader, first), (follower, second) = group.pair(rebalance_timeout_ms=3_000)
    fields = {"rebalance_timeout_ms": 3_000}
    send(second, "JoinGroup", 9, **join_fields(group.name, follower, protocols=protocols(("range", b"new")), **fields))
    group.until_state("PreparingRebalance")
    answer = broker.ask("JoinGroup", 9, on=first, **join_fields(group.name, leader, **fields))
    broker.record("follower", second.receive(), 9)
    broker.ask("SyncGroup", 4, on=second, group_id=group.name, member_id=follower, generation_id=answer.generation_id)
    broker.ask("Heartbeat", 4, group_id=group.name, member_id=leader, generation_id=answer.generation_id)
    broker.ask(
        "JoinGroup", 9, on=second, **join_fields(group.name, follower, protocols=protocols(("range", b"new")), **fields)
    )


# SyncGroup, Heartbeat, LeaveGroup.


@scenario
def refused_syncs_and_heartbeats(broker: Exchange) -> None:
    """Unknown members and groups, wrong generations, wrong protocols, and the empty group id are refused."""
    group = Group(broker)
    member = group.alone()
    for note, fields in (
        ("right", {}),
        ("stranger", {"member_id": "stranger"}),
        ("no member", {"member_id": ""}),
        ("old generation", {"generation_id": group.generation - 1}),
        ("next generation", {"generation_id": group.generation + 1}),
        ("both wrong", {"member_id": "stranger", "generation_id": 99}),
        ("other group", {"group_id": broker.name("other")}),
        ("no group", {"group_id": ""}),
        ("instance", {"group_instance_id": "nobody"}),
    ):
        known = {"group_id": group.name, "member_id": member, "generation_id": group.generation, **fields}
        for version in (3, 4):
            broker.ask("SyncGroup", version, note=note, **known)
            broker.ask("Heartbeat", version, note=note, **known)
        broker.ask("SyncGroup", 5, note=note, protocol_type="consumer", protocol_name="range", **known)
    known = {"group_id": group.name, "member_id": member, "generation_id": group.generation}
    for named in (
        (None, None),
        ("consumer", None),
        (None, "range"),
        ("connect", "range"),
        ("consumer", "sticky"),
        ("", ""),
    ):
        broker.ask("SyncGroup", 5, note=str(named), protocol_type=named[0], protocol_name=named[1], **known)


@scenario
def leaving(broker: Exchange) -> None:
    """One member before version 3, several from then on, pending ones too; each with its own error."""
    for version in versions("LeaveGroup"):
        group = Group(broker, f"g{version}")
        member = group.alone()
        pending = group.given_id()
        if version < 3:
            broker.ask("LeaveGroup", version, note="stranger", group_id=group.name, member_id="stranger")
            broker.ask("LeaveGroup", version, note="pending", group_id=group.name, member_id=pending)
            broker.ask("LeaveGroup", version, group_id=group.name, member_id=member)
        else:
            names = [("stranger", None), (pending, None), ("", "nobody"), ("", None), ("x", "nobody"), (member, None)]
            members = [
                part("LeaveGroup", "MemberIdentity", member_id=m, group_instance_id=i, reason="why not")
                for m, i in names
            ]
            broker.ask("LeaveGroup", version, group_id=group.name, members=members)
            broker.ask("LeaveGroup", version, note="nobody", group_id=group.name, members=[])
        broker.ask(
            "LeaveGroup",
            version,
            note="other group",
            group_id=broker.name("other"),
            member_id="m",
            members=members if version >= 3 else [],
        )
        broker.ask("LeaveGroup", version, note="no group", group_id="", member_id="m")


# Static members.


@scenario
def static_members(broker: Exchange) -> None:
    """A static member that returns keeps its assignment, and its former id is fenced everywhere (KIP-345, KIP-814)."""
    for version in range(5, 10):
        group = Group(broker, f"g{version}")
        fields = {"group_instance_id": "i"}
        old = group.alone(version, **fields)
        broker.ask("DescribeGroups", 5, groups=[group.name])
        answer = broker.ask("JoinGroup", version, note="returns", **join_fields(group.name, **fields))
        for note, member in (("old", old), ("new", answer.member_id)):
            known = {"group_id": group.name, "member_id": member, "generation_id": answer.generation_id, **fields}
            broker.ask("Heartbeat", 4, note=note, **known)
            broker.ask("SyncGroup", 4, note=note, **known)
        broker.ask("JoinGroup", version, note="old", **join_fields(group.name, old, **fields))
        broker.ask("DescribeGroups", 5, note="after", groups=[group.name])
        by_instance = [part("LeaveGroup", "MemberIdentity", group_instance_id="i")]
        fenced = [part("LeaveGroup", "MemberIdentity", member_id=old, group_instance_id="i")]
        broker.ask("LeaveGroup", 5, note="old", group_id=group.name, members=fenced)
        broker.ask("LeaveGroup", 5, note="by instance", group_id=group.name, members=by_instance)
        broker.ask("LeaveGroup", 5, note="by instance again", group_id=group.name, members=by_instance)


@scenario
def a_static_member_with_other_protocols(broker: Exchange) -> None:
    """If the protocol would change, the return of a static member causes a rebalance."""
    group = Group(broker)
    group.alone(group_instance_id="i", protocols=protocols("a", "b"))
    broker.ask(
        "JoinGroup",
        9,
        note="same choice",
        **join_fields(group.name, group_instance_id="i", protocols=protocols("a", "c")),
    )
    broker.ask(
        "JoinGroup",
        9,
        note="other choice",
        **join_fields(group.name, group_instance_id="i", protocols=protocols("c", "a")),
    )


# Describe, list, delete.


@scenario
def groups_that_do_not_exist(broker: Exchange) -> None:
    """An unknown group is Dead without an error before version 6; the empty id is a group like any other."""
    broker.coordinator(broker.name("first"))
    for version in versions("DescribeGroups"):
        broker.ask("DescribeGroups", version, groups=[broker.name("none"), broker.name("none")])
        broker.ask("DescribeGroups", version, note="no group", groups=[])
        broker.ask(
            "DescribeGroups",
            version,
            note="operations",
            groups=[broker.name("none")],
            include_authorized_operations=True,
        )


@scenario
def authorized_operations(broker: Exchange) -> None:
    """The operations that the caller may perform on a group, as bits, when asked for."""
    group = Group(broker)
    group.alone()
    for version in range(3, 7):
        broker.ask("DescribeGroups", version, groups=[group.name], include_authorized_operations=True)


@scenario
def listing(broker: Exchange) -> None:
    """Filters by state and type ignore case."""
    stable, empty = Group(broker, "stable"), Group(broker, "empty")
    stable.alone()
    member = empty.alone()
    broker.quietly(
        "LeaveGroup", 5, group_id=empty.name, members=[part("LeaveGroup", "MemberIdentity", member_id=member)]
    )
    empty.until_state("Empty")
    filters: list[dict[str, Any]] = [{}]
    filters += [{"states_filter": states} for states in (["Stable"], ["EMPTY", " stable"], ["Nothing"], ["Dead"])]
    filters += [{"types_filter": types} for types in (["classic"], ["CLASSIC"], ["consumer"], ["nothing"])]
    for version in versions("ListGroups"):
        for chosen in filters:
            answer = broker.quietly("ListGroups", version, **chosen)
            answer.groups = [group for group in answer.groups if group.group_id in (stable.name, empty.name)]
            broker.record(f"ListGroups v{version} {chosen}", answer, version)


@scenario
def deleting(broker: Exchange) -> None:
    """Only empty groups are deleted, each with its own error; a repeated name is answered once."""
    for version in versions("DeleteGroups"):
        busy, idle = Group(broker, f"busy{version}"), Group(broker, f"idle{version}")
        busy.alone()
        member = idle.alone()
        broker.quietly(
            "LeaveGroup", 5, group_id=idle.name, members=[part("LeaveGroup", "MemberIdentity", member_id=member)]
        )
        idle.until_state("Empty")
        broker.ask("DeleteGroups", version, groups_names=[busy.name, idle.name, broker.name("none"), idle.name])
        broker.ask("DeleteGroups", version, note="again", groups_names=[idle.name])
        broker.ask("DeleteGroups", version, note="nothing", groups_names=[])
        broker.ask("DescribeGroups", 6, groups=[idle.name])


@scenario
def consumer_subscriptions(broker: Exchange) -> None:
    """The coordinator passes on metadata and assignments unchanged, even if they are no valid subscription.

    Not asked: metadata whose length field exceeds its content. Kafka fails on it and answers no member of the group.
    """
    subscription = b"\x00\x00" + bytes(messages.encode(messages.ConsumerProtocolSubscription(topics=["t"]), 0))
    for metadata in (b"", b"\x00", b"\x00\x00", subscription):
        group = Group(broker, f"g{len(metadata)}")
        group.alone(protocols=protocols(("range", metadata)))
        broker.ask("DescribeGroups", 5, groups=[group.name])
