"""Random lives of a shard: what must hold whatever happens.

Replay equals live (design: one `apply`, two callers); members of a generation see one leader and one protocol, and each
gets exactly what the leader computed; generations only rise; nobody is answered twice (the world asserts that), and
nobody waits for ever."""

from __future__ import annotations

from random import Random

import pytest

from pykafkad.coordinator import events
from pykafkad.errors import name
from tests import seeds
from tests.coordinator.world import World, subscription

GROUPS = ("g", "h")
PROTOCOLS = (("range", subscription("t")), ("sticky", subscription("t", "u")))


class Client:
    """A member that mostly sends what clients send, and sometimes invalid requests."""

    def __init__(self, number, group, instance):
        self.number = number
        self.group = group
        self.instance = instance
        self.member_id = ""
        self.generation = -1
        self.joining = None
        self.syncing = None
        self.assignment = None
        self.members = []


class Life:
    def __init__(self, seed):
        self.random = Random(seed)
        self.world = World(
            seed,
            group_initial_rebalance_delay_ms=self.random.choice((0, 3000)),
            group_max_size=self.random.choice((3, 100)),
        )
        self.clients = [
            Client(number, self.random.choice(GROUPS), f"i{number}" if self.random.random() < 0.4 else None)
            for number in range(6)
        ]
        self.handed_in = {}  # (group, generation): assignments
        self.generations = dict.fromkeys(GROUPS, 0)
        self.led = {}  # (group, generation): (leader, protocol)

    def run(self, steps):
        actions = (
            self.join,
            self.join,
            self.sync,
            self.sync,
            self.heartbeat,
            self.commit,
            self.commit_transactional,
            self.end_transaction,
            self.leave,
            self.wait,
            self.forget,
            self.odd,
        )
        for _ in range(steps):
            self.random.choice(actions)(self.random.choice(self.clients))
            self.collect()
            self.check_generations()

    def join(self, client):
        if client.joining is not None or client.syncing is not None:
            return
        protocols = PROTOCOLS if self.random.random() < 0.8 else tuple(reversed(PROTOCOLS))
        client.joining = self.world.join(
            client.member_id,
            group=client.group,
            instance=client.instance,
            protocols=protocols,
            id_required=self.random.random() < 0.7,
            may_skip=self.random.random() < 0.5,
            session_ms=self.random.choice((6_000, 30_000)),
            rebalance_ms=self.random.choice((5_000, 20_000)),
        )

    def sync(self, client):
        if client.joining is not None or client.syncing is not None or client.generation < 0:
            return
        assignments = {member: self.random.randbytes(4) for member in client.members}
        group = self.world.shard.groups.get(client.group)
        ends = group is not None and group.state == "CompletingRebalance" and group.leader_id == client.member_id
        if (
            ends
            and group.generation == client.generation
            and group.check_member(client.member_id, client.instance) == 0
        ):
            self.handed_in[client.group, client.generation] = assignments
        client.syncing = self.world.sync(
            client.member_id, client.generation, assignments, group=client.group, instance=client.instance
        )

    def heartbeat(self, client):
        if client.joining is None and client.generation >= 0:
            answer = self.world.heartbeat(
                client.member_id, client.generation, group=client.group, instance=client.instance
            )
            self.on_error(client, answer)

    def commit(self, client):
        member = {"member_id": client.member_id, "generation": client.generation} if self.random.random() < 0.8 else {}
        self.world.commit(
            {(self.random.choice("tuv"), self.random.randrange(3)): self.random.randrange(100)},
            group=client.group,
            **member,
        )

    def commit_transactional(self, client):
        member = {"member_id": client.member_id, "generation": client.generation} if self.random.random() < 0.5 else {}
        self.world.commit_transactional(
            {(self.random.choice("tuv"), self.random.randrange(3)): self.random.randrange(100)},
            self.random.randrange(3),
            group=client.group,
            **member,
        )

    def end_transaction(self, client):
        self.world.end_transaction(self.random.randrange(3), commit=self.random.random() < 0.5)

    def leave(self, client):
        if client.joining is None and client.syncing is None and self.random.random() < 0.4:
            self.world.leave((client.member_id, client.instance), group=client.group)
            client.member_id, client.generation = "", -1

    def wait(self, client):
        self.world.advance(self.random.choice((0.5, 2, 7)))

    def forget(self, client):
        """The client's process is killed. The answers to its requests are lost."""
        if self.random.random() < 0.2:
            client.joining = client.syncing = None
            client.member_id, client.generation = "", -1

    def odd(self, client):
        choice = self.random.random()
        group = client.group
        if choice < 0.2:
            self.world.delete_group(group)
        elif choice < 0.4:
            self.world.delete_offsets(("t", 0), ("v", 1), group=group)
        elif choice < 0.5:
            self.world.send(events.TopicsDeleted([(self.random.choice("tu"), bytes(range(16)))]))
        elif choice < 0.6:
            self.world.heartbeat("x", 3, group=group)
        elif choice < 0.7:
            self.world.leave("x", ("", client.instance), group=group)

    def on_error(self, client, error):
        if error in ("UNKNOWN_MEMBER_ID", "FENCED_INSTANCE_ID", "GROUP_MAX_SIZE_REACHED"):
            client.member_id, client.generation = "", -1
        elif error == "ILLEGAL_GENERATION":
            client.generation = -1

    def collect(self):
        for client in self.clients:
            answer = self.world.answer(client.joining) if client.joining is not None else None
            if answer is not None:
                client.joining = None
                self.joined(client, answer)
            answer = self.world.answer(client.syncing) if client.syncing is not None else None
            if answer is not None:
                client.syncing = None
                self.synced(client, answer)

    def joined(self, client, answer):
        error = name(answer.error_code)
        if error == "NONE":
            client.member_id, client.generation = answer.member_id, answer.generation_id
            client.members = [] if answer.skip_assignment else [member.member_id for member in answer.members]
        elif error == "MEMBER_ID_REQUIRED":
            client.member_id = answer.member_id
        else:
            self.on_error(client, error)

    def synced(self, client, answer):
        error = name(answer.error_code)
        if error == "NONE":
            expected = self.handed_in.get((client.group, client.generation))
            assert expected is not None, "an assignment out of nowhere"
            if client.instance is None:
                assert answer.assignment == expected.get(client.member_id, b"")
        self.on_error(client, error)

    def check_generations(self):
        for group_id, group in self.world.shard.groups.items():
            before = self.generations[group_id]
            assert group.generation >= before or group.generation == 0, "a generation fell"
            self.generations[group_id] = group.generation
            if group.state in ("CompletingRebalance", "Stable"):
                key = (group_id, group.generation)
                assert group.leader_id in group.members
                assert all(group.protocol_name in dict(member.protocols) for member in group.members.values())
            counted = {}
            for member in group.members.values():
                for protocol, _ in member.protocols:
                    counted[protocol] = counted.get(protocol, 0) + 1
            assert counted == group.protocol_counts
            statics = {member.instance_id: member.member_id for member in group.members.values() if member.instance_id}
            assert statics == group.static_members
            assert group.pending_syncs <= set(group.members) and not group.arriving
        for group_id in GROUPS:
            if group_id not in self.world.shard.groups:
                self.generations[group_id] = 0
                for key in [key for key in self.handed_in if key[0] == group_id]:
                    del self.handed_in[key]


def hard_state(shard, among=None):
    """The state that a restart must restore."""
    groups = {}
    for group_id, group in shard.groups.items():
        if among is None or group_id in among:
            groups[group_id] = (
                group.state,
                group.generation,
                group.protocol_type,
                group.protocol_name,
                group.leader_id,
                # The timestamp of a group without a protocol is not used.
                group.protocol_type and group.state_timestamp_ms,
                group.subscribed_topics,
                group.static_members,
                [
                    (
                        m.member_id,
                        m.instance_id,
                        m.client_id,
                        m.client_host,
                        m.rebalance_timeout_ms,
                        m.session_timeout_ms,
                        m.assignment,
                        dict(m.protocols).get(group.protocol_name),
                    )
                    for m in group.members.values()
                ],
            )
    offsets = {
        (group, topic, partition): (
            each.offset,
            each.leader_epoch,
            each.metadata,
            each.commit_timestamp_ms,
            each.expire_timestamp_ms,
            each.topic_id,
            each.record_offset,
        )
        for group, topics in shard.offsets.by_group.items()
        for topic, partitions in topics.items()
        for partition, each in partitions.items()
    }
    pending = {(*place, each.offset, each.record_offset) for *place, each in shard.offsets.pending or ()}
    return groups, (offsets, pending)


def settled(shard):
    """The groups without a rebalance under way. Their live state must equal that of the log."""
    return {group_id for group_id, group in shard.groups.items() if group.state in ("Empty", "Stable")}


@pytest.mark.parametrize("seed", seeds.sampled(range(60), 6))
def test_replay_equals_live_and_every_request_is_answered(seed):
    life = Life(seed)
    for _ in range(6):
        life.run(60)
        live, replayed = life.world.shard, life.world.replayed()
        assert set(live.groups) == set(replayed.groups)
        assert hard_state(live)[1] == hard_state(replayed)[1]
        among = settled(live)
        assert hard_state(live, among)[0] == hard_state(replayed, among)[0]
    for producer_id in range(3):
        life.world.end_transaction(producer_id)
    assert not list(life.world.shard.offsets.pending or ())
    # No request waits for ever: without clients every group ends empty, and every request has been answered.
    life.world.advance(400)
    life.collect()
    assert settled(life.world.shard) == set(life.world.shard.groups)
    assert all(group.state == "Empty" for group in life.world.shard.groups.values())
    assert all(client.joining is None and client.syncing is None for client in life.clients)
    assert hard_state(life.world.shard) == hard_state(life.world.replayed())
    assert set(life.world.timers) == {("expiry",)}


def test_the_same_seed_gives_the_same_log():
    first, second = Life(7), Life(7)
    first.run(200)
    second.run(200)
    assert first.world.log == second.world.log
