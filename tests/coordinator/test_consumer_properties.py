"""Random lives of consumer groups (KIP-848): what must hold whatever happens.

No two members have a partition at a time. Members are given only what the coordinator keeps for them. Epochs only rise.
Replay of the log equals the live state, and so does replay of its compacted half. Nobody is answered twice. In the end
every partition of a topic with subscribers has one owner."""

from __future__ import annotations

from random import Random

import pytest

from pykafkad.coordinator import consumer_heartbeat
from pykafkad.coordinator.consumer_group import ConsumerGroup
from pykafkad.errors import name
from tests import seeds
from tests.coordinator.consumer_world import ConsumerWorld
from tests.coordinator.group_lives import Client, GroupLife

GROUPS = ("g", "h")


class Process(Client):
    """A process with a consumer."""

    def __init__(self, number, group, instance):
        super().__init__(number)
        self.group = group
        self.instance = instance


class Life(GroupLife):
    def __init__(self, seed):
        self.random = random = Random(seed)
        self.world = ConsumerWorld(
            seed,
            topics=(("t", 4), ("u", random.randrange(1, 6))),
            group_consumer_max_size=random.choice((3, 100)),
            group_consumer_assignment_interval_ms=random.choice((0, 1000)),
        )
        self.clients = [
            Process(number, random.choice(GROUPS), f"i{number}" if random.random() < 0.3 else None)
            for number in range(6)
        ]
        self.epochs = dict.fromkeys(GROUPS, 0)
        self.seen = 0
        self.actions = (
            *[self.beat] * 12,
            *[self.start] * 4,
            *[self.quiet] * 4,
            self.lost_answer,
            self.repeated,
            self.early_report,
            self.leave,
            self.kill,
            self.wait,
            self.wait,
            self.subscribe,
            self.topics,
            self.reload,
            self.odd,
        )

    # What clients do.

    def start(self, client):
        if client.member is not None:
            return
        client.lives += 1
        client.member = self.world.member(
            f"m{client.number}-{client.lives}",
            group=client.group,
            instance=client.instance,
            topics=self.random.choice((("t",), ("t", "u"), ("u", "missing"), ())),
            assignor=self.random.choice((None, None, "uniform", "range")),
        )
        self.beat(client)

    def beat(self, client):
        if client.member is not None and client.member.beat() in ("UNRELEASED_INSTANCE_ID", "FENCED_INSTANCE_ID"):
            client.member = None

    def quiet(self, client):
        """A heartbeat that says nothing new, as clients send them most of the time."""
        if client.member is not None and client.member.epoch > 0:
            client.member.beat(topic_partitions=None)

    def early_report(self, client):
        """A member that owns less than it was given."""
        member = client.member
        if member is not None and member.owned and member.epoch > 0:
            kept = {topic_id: {max(partitions)} for topic_id, partitions in list(member.owned.items())[:1]}
            member.owned = kept
            member.waiting = None
            answer = self.world.beat(member.request())
            if answer is None or answer.assignment is not None or answer.error_code:
                member.take(answer)

    def leave(self, client):
        if client.member is not None and self.random.random() < 0.5:
            client.member.leave(static=client.instance is not None and self.random.random() < 0.7)
            client.member = None

    def subscribe(self, client):
        if client.member is not None and client.member.epoch > 0:
            client.member.change(self.random.choice((("t",), ("u",), ("t", "u"), ("v",))))

    # What happens around them.

    def topics(self, client):
        cluster = self.world.metadata.topics
        choice = self.random.random()
        if choice < 0.3 and "v" not in cluster:
            self.world.create("v", 2)
        elif choice < 0.5 and "v" in cluster:
            self.world.drop("v")
        elif choice < 0.6 and len(cluster["t"].partitions) < 8:
            self.world.grow("t", len(cluster["t"].partitions) + 1)

    def odd(self, client):
        choice = self.random.random()
        if choice < 0.2:
            self.world.delete_group(client.group)
        elif choice < 0.4:
            stranger = self.world.member("stranger", group=client.group)
            stranger.epoch = 7
            assert stranger.beat() in ("UNKNOWN_MEMBER_ID", "GROUP_ID_NOT_FOUND", "GROUP_MAX_SIZE_REACHED")
        elif choice < 0.6 and client.member is not None and client.member.epoch > 0:
            assert client.member.world.beat(client.member.request(member_epoch=10**6)).error_code != 0
        elif choice < 0.8 and client.member is not None and client.member.epoch > 0:
            # A member that lies about what it owns is given nothing by it.
            self.world.beat(
                client.member.request(topic_partitions=self.clients[0].member.rows() if self.clients[0].member else [])
            )
            client.member = None

    # What must hold.

    def check(self):
        shard = self.world.shard
        for key, value in self.world.log[self.seen :]:
            if key[:2] == b"\0\3" and value is None:
                # The group was deleted. A new one of its name begins anew.
                self.epochs = dict.fromkeys(GROUPS, 0)
        self.seen = len(self.world.log)
        for group_id in GROUPS:
            group = shard.groups.get(group_id)
            if not isinstance(group, ConsumerGroup):
                self.epochs[group_id] = 0
                continue
            assert group.epoch >= self.epochs[group_id], "a group's epoch fell"
            assert group.target_epoch <= group.epoch
            self.epochs[group_id] = group.epoch
            owners = {}
            for member in group.members.values():
                assert not any(
                    partition in member.revoking.get(topic_id, ())
                    for topic_id, partitions in member.assigned.items()
                    for partition in partitions
                )
                assert member.epoch <= group.target_epoch
                for partitions in (member.assigned, member.revoking):
                    for topic_id, epochs in partitions.items():
                        for partition, epoch in epochs.items():
                            place = topic_id, partition
                            assert place not in owners, f"{place} has two owners"
                            owners[place] = member.member_id
                            assert epoch <= max(member.epoch, 0)
            indexed = {
                (topic_id, partition): owner
                for topic_id, partitions in group.owners.items()
                for partition, owner in partitions.items()
            }
            assert indexed == owners
            self.check_clients(group_id, group)

    def check_clients(self, group_id, group):
        """A member of the group has nothing but what the coordinator keeps for it, also when an answer was lost."""
        for client in self.clients:
            member = None if client.member is None else group.members.get(client.member.member_id)
            if (
                client.group != group_id
                or member is None
                or client.member.epoch not in (member.epoch, member.previous_epoch)
            ):
                continue
            for topic_id, partitions in client.member.owned.items():
                kept = {**member.assigned.get(topic_id, {}), **member.revoking.get(topic_id, {})}
                assert partitions <= set(kept), "a client has what is not kept for it"


def hard_state(shard):
    """The state that a restart must restore."""
    state = {}
    for group_id, group in shard.groups.items():
        if isinstance(group, ConsumerGroup):
            state[group_id] = (
                group.epoch,
                group.metadata_hash,
                dict(group.members),
                group.targets,
                group.target_epoch,
                group.target_timestamp_ms,
                {
                    regex: (pattern.topics, pattern.version, pattern.timestamp_ms)
                    for regex, pattern in group.patterns.items()
                },
                group.static_members,
                group.target_owners,
                group.owners,
                group.topic_counts,
                group.regexes,
                group.assignors,
                group.classic_count,
                group.classic_protocols,
            )
        else:
            state[group_id] = group.state
    return state


@pytest.mark.parametrize("seed", seeds.sampled(range(300), 15))
def test_replay_equals_live_and_no_partition_has_two_owners(seed):
    life = Life(seed)
    for _ in range(3):
        life.run(50)
        assert hard_state(life.world.shard) == hard_state(life.world.replayed())
    settle(life)
    assert hard_state(life.world.shard) == hard_state(life.world.replayed())


def settle(life):
    """Without further changes the members that are left get all that they subscribe to, and only that."""
    life.world.advance(200)
    alive = [client for client in life.clients if client.member is not None]
    for _ in range(12):
        life.world.advance(1.5)
        for client in alive:
            life.beat(client)
    life.check()
    for group_id in GROUPS:
        group = life.world.shard.groups.get(group_id)
        if not isinstance(group, ConsumerGroup) or not group.members:
            continue
        assert group.state == "Stable", group.members
        topics = life.world.metadata.topics
        wanted = {
            (topics[topic].id, partition)
            for member in group.members.values()
            for topic in group.member_topics(member)
            if topic in topics
            for partition in range(len(topics[topic].partitions))
        }
        owned = {
            (topic_id, partition)
            for member in group.members.values()
            for topic_id, partitions in member.assigned.items()
            for partition in partitions
        }
        assert owned == wanted
        for client in alive:
            if client.member is not None and client.group == group_id and client.member.member_id in group.members:
                kept = group.members[client.member.member_id].assigned
                assert client.member.owned == {topic_id: set(partitions) for topic_id, partitions in kept.items()}
    life.world.advance(200)
    assert all(group.state == "Empty" for group in life.world.shard.groups.values())
    assert set(life.world.timers) == {("expiry",)}


@pytest.mark.parametrize("seed", seeds.sampled(range(60), 15))
def test_heartbeats_that_say_nothing_new_do_what_all_others_do(monkeypatch, seed):
    """They take a shorter way, which changes neither answers nor state."""
    usual = Life(seed)
    usual.run(150)
    monkeypatch.setattr(consumer_heartbeat, "is_steady", lambda *_: False)
    other = Life(seed)
    other.run(150)
    assert usual.world.log == other.world.log and usual.world.replies == other.world.replies
    assert hard_state(usual.world.shard) == hard_state(other.world.shard)
    assert deadlines(usual.world.shard) == deadlines(other.world.shard) and usual.world.timers == other.world.timers


def test_a_settled_member_that_says_nothing_new_takes_the_shorter_way(monkeypatch):
    world = ConsumerWorld()
    (member,) = world.joined("a")
    monkeypatch.setattr(consumer_heartbeat, "Change", None)
    assert member.beat(topic_partitions=None) == "NONE"


def deadlines(shard):
    """By group: when members must have sent something."""
    return {group_id: group.deadlines for group_id, group in shard.groups.items() if isinstance(group, ConsumerGroup)}


def test_the_same_seed_gives_the_same_log():
    first, second = Life(7), Life(7)
    first.run(200)
    second.run(200)
    assert first.world.log == second.world.log


def test_errors_have_names():
    world = ConsumerWorld()
    assert name(world.beat(world.member("a").request(member_epoch=3)).error_code) == "GROUP_ID_NOT_FOUND"
