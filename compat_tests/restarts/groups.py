"""Groups over restarts: the state that is loaded, how members continue, and what waiting members are answered at a
stop.
"""

from __future__ import annotations

from typing import Any

from compat_tests.restarts.partitions import Partitions
from compat_tests.scenarios.exchange import Connection, Exchange, part
from compat_tests.scenarios.group_life import join_fields, joined, send, sync_fields
from compat_tests.scenarios.group_offsets import commit_row, commit_topic, fetch_fields

SUBSCRIPTION = b"\0\0\0\0\0\1\0\1t\0\0\0\0"
PROTOCOLS = (("range", SUBSCRIPTION), ("roundrobin", SUBSCRIPTION))
KINDS = ("two", "empty", "simple", "joining", "syncing", "deleted")
# Many times longer than one run of the broker: the members do not heartbeat meanwhile.
LONG = {"session_timeout_ms": 600_000, "rebalance_timeout_ms": 600_000, "protocols": PROTOCOLS}
DESCRIBED, JOINED, SYNCED, BEATEN, LEFT = 6, 9, 5, 4, 5


class Groups:
    """A group in every state that a stop may meet.

    The members of `two` continue over all restarts: the leader, and a follower with an instance id.
    """

    def __init__(self, broker: Exchange, partitions: Partitions) -> None:
        self.partitions = partitions
        self.names = {kind: broker.name(kind) for kind in KINDS}
        self.waiting: dict[str, Connection] = {}
        two = self.names["two"]
        self.leader, _ = joined(broker, two, 5, **LONG)
        self.follower, self.generation = self.joined_by_second(broker, two)
        self.commit(broker, "two", self.leader, self.generation)
        member, generation = joined(broker, self.names["empty"], 5, **LONG)
        self.commit(broker, "empty", member, generation)
        self.leave(broker, self.names["empty"], member)
        broker.coordinator(self.names["simple"])
        self.commit(broker, "simple", "", -1)
        member, generation = joined(broker, self.names["deleted"], 5, **LONG)
        self.leave(broker, self.names["deleted"], member)
        broker.quietly("DeleteGroups", 2, groups_names=[self.names["deleted"]])

    def member_id(self, broker: Exchange, group: str) -> str:
        """An id for one more member that has not joined yet."""
        answer = broker.quietly("JoinGroup", 4, **join_fields(group, **LONG))
        assert answer.error_code == 79, answer
        return answer.member_id

    def joined_by_second(self, broker: Exchange, group: str) -> tuple[str, int]:
        """Let a second member with an instance id join the leader; returns its member id and the new generation."""
        one, other = broker.connect(), broker.connect()
        more = {"group_instance_id": "second"}
        send(other, "JoinGroup", JOINED, join_fields(group, **LONG, **more))
        broker.until(lambda: self.described(broker, group), lambda answer: answer.group_state == "PreparingRebalance")
        send(one, "JoinGroup", JOINED, join_fields(group, self.leader, **LONG))
        answers = [one.receive(), other.receive()]
        assert [answer.error_code for answer in answers] == [0, 0], answers
        generation, second = answers[0].generation_id, answers[1].member_id
        shares = [(self.leader, b"first share"), (second, b"second share")]
        names = {"protocol_type": "consumer", "protocol_name": "range"}
        send(one, "SyncGroup", SYNCED, sync_fields(group, self.leader, generation, shares, **names))
        send(other, "SyncGroup", SYNCED, sync_fields(group, second, generation, **names, **more))
        assert [one.receive().error_code, other.receive().error_code] == [0, 0]
        return second, generation

    def described(self, broker: Exchange, group: str) -> Any:
        """The description of one group, not recorded in the transcript."""
        return broker.quietly("DescribeGroups", DESCRIBED, groups=[group]).groups[0]

    def leave(self, broker: Exchange, group: str, member: str) -> None:
        """Leave a group, not recorded in the transcript."""
        identity = part("LeaveGroup", "MemberIdentity", member_id=member)
        assert broker.quietly("LeaveGroup", LEFT, group_id=group, members=[identity]).error_code == 0

    def commit(self, broker: Exchange, kind: str, member: str, generation: int, note: str | None = None) -> None:
        """Commit one offset with metadata and one without; recorded in the transcript if there is a note."""
        topic = commit_topic(
            self.partitions.name, self.partitions.topic_id, commit_row(0, 3, "three", 0), commit_row(1, 0, None)
        )
        fields = {
            "group_id": self.names[kind],
            "member_id": member,
            "generation_id_or_member_epoch": generation,
            "topics": [topic],
        }
        if note is None:
            broker.quietly("OffsetCommit", 9, **fields)
        else:
            broker.ask("OffsetCommit", 9, note=note, **fields)

    def wait(self, broker: Exchange) -> None:
        """Before a stop: in `joining` a member waits for the others, in `syncing` a member waits for the leader."""
        group = self.names["joining"]
        self.emptied(broker, group)
        first, _ = joined(broker, group, 5, **LONG)
        self.waiting["joining"] = self.join_later(broker, group, self.member_id(broker, group))
        group = self.names["syncing"]
        self.emptied(broker, group)
        first, _ = joined(broker, group, 5, **LONG)
        second = self.member_id(broker, group)
        other, one = self.join_later(broker, group, second), broker.connect()
        send(one, "JoinGroup", JOINED, join_fields(group, first, **LONG))
        generation = one.receive().generation_id
        assert other.receive().generation_id == generation
        send(
            other,
            "SyncGroup",
            SYNCED,
            sync_fields(group, second, generation, protocol_type="consumer", protocol_name="range"),
        )
        self.waiting["syncing"] = other

    def emptied(self, broker: Exchange, group: str) -> None:
        """Remove the members that a restart left in the group."""
        broker.coordinator(group)
        for member in self.described(broker, group).members:
            self.leave(broker, group, member.member_id)

    def join_later(self, broker: Exchange, group: str, member: str) -> Connection:
        """A connection on which a member has joined and waits for the answer."""
        connection = broker.connect()
        send(connection, "JoinGroup", JOINED, join_fields(group, member, **LONG))
        broker.until(lambda: self.described(broker, group), lambda answer: answer.group_state == "PreparingRebalance")
        return connection

    def record_waiting_answers(self, broker: Exchange, note: str) -> None:
        """Record the answers that the waiting members got at the stop."""
        for kind, connection in self.waiting.items():
            version = JOINED if kind == "joining" else SYNCED
            broker.record(f"{kind} {note}", connection.receive(), version)
        self.waiting.clear()

    def record_state(self, broker: Exchange, note: str) -> None:
        """Record the state of every group."""
        for group in self.names.values():
            broker.coordinator(group)
        broker.ask("DescribeGroups", DESCRIBED, note=note, groups=list(self.names.values()))
        broker.ask("ListGroups", 5, note=note, states_filter=[], types_filter=[])
        broker.ask("ListGroups", 5, note=f"stable {note}", states_filter=["Stable"], types_filter=[])
        for kind, group in self.names.items():
            broker.ask("OffsetFetch", 8, note=f"{kind} {note}", **fetch_fields(8, group, everything=True))

    def go_on(self, broker: Exchange, note: str) -> None:
        """Let the members of `two` heartbeat, commit and sync in the generation they know; the follower's client starts
        anew.
        """
        two = self.names["two"]
        for member, instance in (
            (self.leader, None),
            (self.follower, "second"),
            ("nobody", None),
            ("nobody", "second"),
        ):
            for generation in (self.generation - 1, self.generation):
                beat = {
                    "group_id": two,
                    "generation_id": generation,
                    "member_id": member,
                    "group_instance_id": instance,
                }
                broker.ask(
                    "Heartbeat", BEATEN, note=f"{note}, {instance}, generation {generation - self.generation}", **beat
                )
        self.commit(broker, "two", self.leader, self.generation, f"by the leader {note}")
        self.commit(broker, "two", self.leader, self.generation - 1, f"of an old generation {note}")
        self.commit(broker, "simple", "", -1, f"by nobody {note}")
        names = {"protocol_type": "consumer", "protocol_name": "range"}
        broker.ask(
            "SyncGroup", SYNCED, note=f"leader {note}", **sync_fields(two, self.leader, self.generation, **names)
        )
        more = {"group_instance_id": "second", **LONG}
        answer = broker.ask("JoinGroup", JOINED, note=f"second {note}", **join_fields(two, **more))
        old, self.follower = self.follower, answer.member_id
        beat = {"group_id": two, "generation_id": self.generation, "member_id": old, "group_instance_id": "second"}
        broker.ask("Heartbeat", BEATEN, note=f"second's old id {note}", **beat)
        synced = sync_fields(two, self.follower, self.generation, **names, group_instance_id="second")
        broker.ask("SyncGroup", SYNCED, note=f"second {note}", **synced)
        broker.ask("DescribeGroups", DESCRIBED, note=f"second is back {note}", groups=[two])
