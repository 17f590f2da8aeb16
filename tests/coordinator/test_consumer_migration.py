"""Groups that change between the classic and the consumer protocol while they live (KIP-848)."""

from __future__ import annotations

from random import Random

import pytest

from pykafkad.coordinator.classic_group import ClassicGroup
from pykafkad.coordinator.consumer_group import ConsumerGroup
from pykafkad.errors import name
from pykafkad.wire import messages
from tests import seeds
from tests.coordinator.consumer_world import ConsumerWorld
from tests.coordinator.test_consumer_properties import hard_state


class ClassicMember:
    """A consumer of the classic protocol with an assignor that gives the members partitions in turn."""

    def __init__(self, world, topics=("t",), instance=None, session_ms=30_000):
        self.world = world
        self.topics = topics
        self.instance = instance
        self.session_ms = session_ms
        self.member_id = ""
        self.generation = -1
        self.owned = {}
        self.joining = self.syncing = None
        self.rows = []

    def metadata(self):
        owned = [
            messages.ConsumerProtocolSubscription.TopicPartition(topic=topic, partitions=sorted(partitions))
            for topic, partitions in self.owned.items()
        ]
        content = messages.ConsumerProtocolSubscription(
            topics=list(self.topics), owned_partitions=owned, generation_id=self.generation
        )
        return (2).to_bytes(2, "big") + bytes(messages.encode(content, 2))

    def join(self):
        self.joining = self.world.join(
            self.member_id,
            instance=self.instance,
            session_ms=self.session_ms,
            protocols=(("range", self.metadata()),),
            id_required=True,
        )
        self.collect()
        return self

    def collect(self):
        """Take the answers that have come."""
        answer = None if self.joining is None else self.world.answer(self.joining)
        if answer is not None:
            self.joining = None
            self.joined(answer)
        answer = None if self.syncing is None else self.world.answer(self.syncing)
        if answer is not None:
            self.syncing = None
            self.synced(answer)

    def joined(self, answer):
        error = name(answer.error_code)
        if error == "MEMBER_ID_REQUIRED":
            self.member_id = answer.member_id
            self.join()
        elif error == "NONE":
            self.member_id, self.generation = answer.member_id, answer.generation_id
            self.syncing = self.world.sync(
                self.member_id,
                self.generation,
                self.assigned_by(answer) if answer.members else None,
                instance=self.instance,
                protocol_type="consumer",
                protocol_name="range",
            )
            self.collect()
        else:
            self.failed(error)

    def assigned_by(self, answer):
        """As the leader: all partitions of all topics in turn."""
        members = [row.member_id for row in answer.members]
        shares = {member_id: {} for member_id in members}
        partitions = [
            (topic, index)
            for topic in sorted(self.world.metadata.topics)
            for index in range(len(self.world.metadata.topics[topic].partitions))
        ]
        for number, (topic, index) in enumerate(partitions):
            shares[members[number % len(members)]].setdefault(topic, []).append(index)
        return {member_id: encoded(share) for member_id, share in shares.items()}

    def synced(self, answer):
        error = name(answer.error_code)
        if error == "NONE":
            self.owned = decoded(answer.assignment)
        elif error == "REBALANCE_IN_PROGRESS":
            self.join()
        else:
            self.failed(error)

    def failed(self, error):
        self.owned, self.generation = {}, -1
        if error in ("UNKNOWN_MEMBER_ID", "FENCED_INSTANCE_ID"):
            self.member_id = ""

    def beat(self):
        self.collect()
        if self.joining is not None or self.syncing is not None:
            return "WAITS"
        if self.generation < 0:
            self.join()
            return "JOINS"
        error = self.world.heartbeat(self.member_id, self.generation, instance=self.instance)
        if error == "REBALANCE_IN_PROGRESS":
            self.rejoin()
        elif error != "NONE":
            self.failed(error)
        return error

    def rejoin(self):
        """What is to be given up is given up before: the member owns only what the coordinator has left it."""
        group = self.world.shard.groups.get("g")
        member = group.members.get(self.member_id) if isinstance(group, ConsumerGroup) else None
        if member is not None:
            by_name = {self.world.metadata.topic_by_id(each).name: set(row) for each, row in member.assigned.items()}
            self.owned = {
                topic: kept for topic, row in self.owned.items() if (kept := set(row) & by_name.get(topic, set()))
            }
        self.join()

    @property
    def partitions(self):
        return {(topic, partition) for topic, row in self.owned.items() for partition in row}


def encoded(share):
    rows = [
        messages.ConsumerProtocolAssignment.TopicPartition(topic=topic, partitions=indexes)
        for topic, indexes in share.items()
    ]
    return (2).to_bytes(2, "big") + bytes(
        messages.encode(messages.ConsumerProtocolAssignment(assigned_partitions=rows), 2)
    )


def decoded(content):
    if not content:
        return {}
    answer = messages.decoder(messages.ConsumerProtocolAssignment, 2)(content, 2)[0]
    return {row.topic: set(row.partitions) for row in answer.assigned_partitions}


def settle(world, *members, rounds=8):
    for _ in range(rounds):
        world.advance(2)
        for member in members:
            member.beat()


def classic_pair(**settings):
    world = ConsumerWorld(**settings)
    members = [ClassicMember(world), ClassicMember(world)]
    for member in members:
        member.join()
    world.advance(6)
    settle(world, *members)
    assert world.state() == "Stable" and isinstance(world.group, ClassicGroup)
    assert [len(member.partitions) for member in members] == [3, 3]
    return world, members


def disjoint(*members):
    owned = [place for member in members for place in member.partitions]
    assert len(owned) == len(set(owned))
    return len(owned)


def test_a_classic_group_becomes_a_consumer_group_and_goes_back():
    world, (first, second) = classic_pair()
    generation = world.group.generation
    newer = world.member("newer")
    assert newer.beat() == "NONE"
    assert isinstance(world.group, ConsumerGroup) and world.group.epoch == generation + 1
    settle(world, first, second, newer)
    assert disjoint(first, second, newer) == 6
    assert [len(member.partitions) for member in (first, second, newer)] == [2, 2, 2]
    assert world.group.state == "Stable" and world.group.classic_count == 2
    assert hard_state(world.shard) == hard_state(world.replayed())
    assert newer.leave() == "NONE"
    assert isinstance(world.group, ClassicGroup)
    world.advance(1)
    settle(world, first, second)
    assert world.state() == "Stable" and disjoint(first, second) == 6
    replayed = world.replayed().groups["g"]
    assert isinstance(replayed, ClassicGroup) and replayed.generation == world.group.generation


def test_a_member_that_changes_its_protocol_keeps_its_group():
    world, (first, second) = classic_pair()
    newer = world.member("newer")
    newer.beat()
    world.leave(first.member_id)
    world.leave(second.member_id)
    settle(world, newer)
    assert world.group.classic_count == 0 and len(newer.partitions) == 6


def test_those_who_wait_in_the_classic_group_are_sent_to_join_again():
    world, (first, second) = classic_pair()
    third = ClassicMember(world).join()
    assert third.joining is not None and world.state() == "PreparingRebalance"
    waiting = third.joining
    newer = world.member("newer")
    assert newer.beat() == "NONE"
    assert name(world.answer(waiting).error_code) == "REBALANCE_IN_PROGRESS"
    settle(world, first, second, third, newer, rounds=12)
    assert disjoint(first, second, newer) <= 6


@pytest.mark.parametrize("policy", ["disabled", "DOWNGRADE"])
def test_the_policy_forbids_the_way_up(policy):
    world, members = classic_pair(group_consumer_migration_policy=policy)
    newer = world.member("newer")
    assert newer.beat() == "GROUP_ID_NOT_FOUND"
    assert newer.last.error_message == (
        "Cannot upgrade classic group g to consumer group because online upgrade is disabled."
    )
    assert [member.beat() for member in members] == ["NONE", "NONE"]


def test_the_policy_forbids_the_way_down():
    world, members = classic_pair(group_consumer_migration_policy="upgrade")
    newer = world.member("newer")
    newer.beat()
    newer.leave()
    settle(world, *members)
    assert isinstance(world.group, ConsumerGroup) and disjoint(*members) == 6


def test_with_the_policy_disabled_no_classic_member_joins():
    world = ConsumerWorld(group_consumer_migration_policy="Disabled")
    world.joined("newer")
    assert name(world.answer(world.join(id_required=True)).error_code) == "INCONSISTENT_GROUP_PROTOCOL"


def test_other_groups_than_those_of_consumers_cannot_change():
    world = ConsumerWorld()
    world.stable(1, protocol_type="connect")
    newer = world.member("newer")
    assert newer.beat() == "GROUP_ID_NOT_FOUND"
    assert "does not use the consumer embedded protocol" in newer.last.error_message
    assert world.state() == "Stable"


def test_assignments_of_custom_assignors_are_not_lost():
    world = ConsumerWorld()
    member = ClassicMember(world)
    member.assigned_by = lambda answer: {
        row.member_id: (0).to_bytes(2, "big")
        + bytes(messages.encode(messages.ConsumerProtocolAssignment(user_data=b"mine"), 0))
        for row in answer.members
    }
    member.join()
    world.advance(6)
    member.beat()
    assert world.state() == "Stable"
    assert world.member("newer").beat() == "GROUP_ID_NOT_FOUND"
    assert member.beat() == "NONE"


def test_a_classic_member_that_does_not_join_again_or_sync_is_removed():
    world, (first, _) = classic_pair()
    world.member("newer").beat()
    assert world.heartbeat(first.member_id, first.generation) == "REBALANCE_IN_PROGRESS"
    for _ in range(4):
        world.advance(20)
        world.heartbeat(first.member_id, first.generation)
    assert first.member_id not in getattr(world.shard.groups["g"], "members", {})


def test_a_static_member_changes_back_and_the_group_with_it():
    world = ConsumerWorld()
    classic = ClassicMember(world, instance="one")
    classic.join()
    world.advance(6)
    settle(world, classic)
    newer = world.member("newer", instance="one")
    assert newer.beat() == "NONE"
    settle(world, newer)
    assert isinstance(world.group, ConsumerGroup) and len(newer.partitions) == 6
    again = ClassicMember(world, instance="one")
    again.join()
    settle(world, again)
    assert isinstance(world.group, ClassicGroup) and len(again.partitions) == 6


def settled(shard):
    return {
        group_id: state
        for group_id, state in hard_state(shard).items()
        if isinstance(shard.groups[group_id], ConsumerGroup)
    }


@pytest.mark.parametrize("seed", seeds.sampled(range(60), 20))
def test_random_lives_of_mixed_groups(seed):
    """Members of both protocols come and go: replay equals live, and no partition has two owners."""
    random = Random(seed)
    world = ConsumerWorld(seed, group_consumer_assignment_interval_ms=random.choice((0, 1000)))
    members = []
    for step in range(120):
        choice = random.random()
        if choice < 0.08 and len(members) < 5:
            instance = f"i{step}" if random.random() < 0.3 else None
            if random.random() < 0.5:
                members.append(ClassicMember(world, instance=instance))
            else:
                members.append(world.member(f"m{step}", instance=instance))
        elif choice < 0.12 and members:
            gone = members.pop(random.randrange(len(members)))
            if random.random() < 0.5 and gone.member_id:
                if isinstance(gone, ClassicMember):
                    world.leave((gone.member_id, gone.instance))
                else:
                    gone.leave()
        elif choice < 0.3:
            world.advance(random.choice((0.5, 2, 10)))
        elif choice < 0.33:
            world.restart()
            for member in members:
                if isinstance(member, ClassicMember):
                    member.joining = member.syncing = None
        elif members:
            random.choice(members).beat()
        group = world.shard.groups.get("g")
        if isinstance(group, ConsumerGroup):
            owners = [
                (topic_id, partition)
                for member in group.members.values()
                for partitions in (member.assigned, member.revoking)
                for topic_id, row in partitions.items()
                for partition in row
            ]
            assert len(owners) == len(set(owners)), "a partition has two owners"
            assert group.classic_count == sum(member.classic is not None for member in group.members.values())
            assert settled(world.shard) == settled(world.replayed())
        elif group is not None:
            assert isinstance(world.replayed().groups["g"], ClassicGroup)
    settle(world, *members, rounds=45)
    group = world.shard.groups.get("g")
    if members:
        assert group.state == "Stable", (group.state, members)
        assert disjoint(*members) == 6
    world.advance(1000)
    assert all(group.is_empty for group in world.shard.groups.values())
    assert set(world.timers) == {("expiry",)}
