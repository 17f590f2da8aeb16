"""Share groups in a shard: random lives of members, and the simple assignor."""

from __future__ import annotations

from random import Random
from types import SimpleNamespace

import pytest

from pykafkad.coordinator import events, record_codec, share_assignor, share_heartbeat, target_computation
from pykafkad.coordinator.in_steps import at_once
from pykafkad.coordinator.shard import GroupShard
from pykafkad.coordinator.share_assignor import Subscriber
from pykafkad.coordinator.share_group_events import ShareGroupHeartbeat
from pykafkad.coordinator.share_group_rules import LATE_PER_STEP
from pykafkad.coordinator.share_heartbeat import _Heartbeat
from pykafkad.effects import (
    DELETE_STATE,
    Append,
    AskShareState,
    CancelTimer,
    Compute,
    Later,
    Reply,
    SetTimer,
    Tell,
    TimerFired,
)
from pykafkad.errors import name
from pykafkad.wire import messages
from tests import seeds
from tests.coordinator.world import Due, as_batches
from tests.seeds import seed_of_the_code


class Settings:
    """The settings that share groups read."""

    release = None
    group_share_max_size = 4
    group_share_session_timeout_ms = 45_000
    group_share_heartbeat_interval_ms = 5_000
    group_share_assignment_interval_ms = 1_000
    group_share_initialize_retry_interval_ms = 30_000
    offsets_retention_minutes = 10_080
    offsets_retention_check_interval_ms = 600_000


class Metadata:
    """Topics that come and go."""

    def __init__(self) -> None:
        self.topics: dict[str, SimpleNamespace] = {}
        self.brokers: dict[int, object] = {}
        self.made = 0

    def topic_by_id(self, topic_id):
        return next((each for each in self.topics.values() if each.id == topic_id), None)

    def configs(self, resource_type, name):
        return {}

    def add(self, name, partitions):
        self.made += 1
        known = self.topics.get(name)
        topic_id = bytes([self.made] * 16) if known is None else known.id
        rows = [SimpleNamespace(replicas=(1,)) for _ in range(partitions)]
        self.topics[name] = SimpleNamespace(name=name, id=topic_id, partitions=rows)


class World:
    """A shard with the members of one share group."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.metadata = Metadata()
        self.metadata.add("t", 3)
        self.metadata.add("u", 1)
        self.shard = GroupShard(0, Settings(), self.random)
        self.log: list[tuple[bytes, bytes | None]] = []
        self.timers: dict[object, float] = {}
        self.told: list[tuple[str, dict[str, object]]] = []
        self.asked: list[AskShareState] = []
        self.computing: list[Compute] = []
        self.waits = False
        """Whether heartbeats that wait for a target are left waiting."""
        self.answers: dict[object, object] = {}
        self.now = 1_000.0
        self.epochs: dict[str, int] = {}
        self.highest = 0
        self.deletions: list[str] = []
        self.with_state: set[tuple[bytes, int]] = set()
        """The partitions of which the share coordinator has the state."""
        self.send(events.Loaded(self.metadata))

    def send(self, event: object) -> None:
        for effect in self.shard.step(event, self.now, int(self.now * 1000)):
            if type(effect) is Append:
                for record in effect.records:
                    self.log.append(record_codec.encode(record))
                    self.shard.apply(record)
            elif type(effect) is Reply:
                assert effect.token not in self.answers
                self.answers[effect.token] = effect.message
            elif type(effect) is SetTimer:
                self.timers[effect.key] = effect.at
            elif type(effect) is CancelTimer:
                self.timers.pop(effect.key, None)
            elif type(effect) is Compute:
                self.computing.append(effect)
            elif type(effect) is Tell:
                self.told.append((effect.event, effect.fields))
            elif type(effect) is Later:
                self.timers[Due(effect)] = self.now
            else:
                assert type(effect) is AskShareState and effect.topics
                self.asked.append(effect)

    def compute(self) -> None:
        """Go on with the computations until all have ended."""
        while self.computing:
            effect = self.computing.pop(0)
            self.send(effect.then(at_once(effect.steps)))
            self.advance(0)

    def heartbeat(self, member: str, epoch: int, names: list[str] | None) -> object:
        token = len(self.answers) + len(self.computing) + 1
        request = messages.ShareGroupHeartbeatRequest(
            group_id="g", member_id=member, member_epoch=epoch, subscribed_topic_names=names
        )
        self.send(ShareGroupHeartbeat(token, request, "client", "/127.0.0.1"))
        if self.waits:
            return self.answers.get(token, token)
        self.compute()
        answer = self.answers[token]
        if answer.error_code or epoch == -1:
            self.epochs.pop(member, None)
        else:
            assert answer.member_epoch >= self.epochs.get(member, 0)
            self.epochs[member] = answer.member_epoch
        return answer

    def answer_share_coordinator(self, fails: bool) -> None:
        for effect in self.asked:
            failures = {
                (topic_id, index): (15, "later")
                for topic_id, partitions in effect.topics.items()
                for index in partitions
                if fails
            }
            if effect.action == DELETE_STATE and not fails:
                self.with_state -= {(topic_id, index) for topic_id, rows in effect.topics.items() for index in rows}
            elif not fails:
                self.with_state |= {(topic_id, index) for topic_id, rows in effect.topics.items() for index in rows}
            self.send(effect.then(failures))
        self.asked.clear()

    def delete_group(self) -> str | None:
        """The name of the error, or None while the share coordinator is asked."""
        token = f"deletion {len(self.answers)}"
        self.send(events.DeleteGroup(token, "g"))
        self.deletions.append(token)
        return self.deleted()

    def deleted(self) -> str | None:
        answer = self.answers.get(self.deletions[-1])
        return None if answer is None else name(answer.error_code)

    def advance(self, seconds: float) -> None:
        until = self.now + seconds
        while self.timers and min(self.timers.values()) <= until:
            key, at = min(self.timers.items(), key=lambda entry: entry[1])
            self.now = max(self.now, at)
            del self.timers[key]
            self.send(key.event if isinstance(key, Due) else TimerFired(key))
        self.now = until

    def replayed(self) -> GroupShard:
        shard = GroupShard(0, Settings(), Random(0))
        shard.load(as_batches(self.log))
        return shard

    @property
    def group(self):
        return self.shard.groups.get("g")

    def check(self) -> None:
        if self.group is not None:
            counted: dict[str, int] = {}
            for member in self.group.members.values():
                for topic in member.topic_names:
                    counted[topic] = counted.get(topic, 0) + 1
            assert counted == self.group.topic_counts
        assert value(self.replayed().groups.get("g")) == value(self.group)
        group = self.group
        if group is None:
            return
        assert group.epoch >= self.highest
        self.highest = group.epoch
        assert len(group.members) <= Settings.group_share_max_size
        for member in group.members.values():
            for topic_id in member.assigned:
                topic = self.metadata.topic_by_id(topic_id)
                assert topic is None or topic.name in member.topic_names or member.epoch < group.epoch


def value(group):
    if group is None:
        return None
    soft = ("all_assigned", "asked_ms", "deadlines", "timer_at", "topics_changed")
    return {name: getattr(group, name) for name in group.__slots__ if name not in soft}


@pytest.mark.parametrize("seed", seeds.sampled(range(300), 15))
def test_random_lives(seed, monkeypatch):
    if seed % 3 == 0:
        # All targets are computed in steps.
        monkeypatch.setattr(target_computation, "LARGE_WORK", 0)
    world = World(seed_of_the_code() + seed)
    random = world.random
    for step in range(40):
        member = random.choice("abcdef")
        choice = random.random()
        if choice < 0.3:
            world.heartbeat(member, 0, random.sample(["t", "u", "none"], random.randrange(1, 4)))
        elif choice < 0.6:
            world.heartbeat(member, world.epochs.get(member, 1), None)
        elif choice < 0.65:
            world.heartbeat(member, random.choice((-1, 99)), None)
        elif choice < 0.8:
            world.answer_share_coordinator(fails=random.random() < 0.2)
        elif choice < 0.9:
            world.advance(random.choice((0.5, 2, 50)))
        elif choice < 0.95:
            name = random.choice("tu")
            world.metadata.add(name, len(world.metadata.topics[name].partitions) + 1)
            world.send(events.MetadataChanged([name], False))
        else:
            world.shard = world.replayed()
            world.timers.clear()
            world.asked.clear()
            world.send(events.Loaded(world.metadata))
        if step % 8 == 7:
            world.check()
    settle(world)


def settle(world: World) -> None:
    """With heartbeats and an answering share coordinator, every partition has a member, and all are in one epoch."""
    for member in "ab":
        world.heartbeat(member, 0, ["t", "u"])
    members = list(world.group.members)
    for _ in range(12):
        world.advance(20)
        world.answer_share_coordinator(fails=False)
        for member in members:
            if member in world.group.members:
                world.heartbeat(member, world.group.members[member].epoch, None)
    group = world.group
    names = group.topic_names()
    wanted = {
        (topic.id, index)
        for topic in world.metadata.topics.values()
        if topic.name in names
        for index in range(len(topic.partitions))
    }
    found = {
        (topic_id, index)
        for member in group.members.values()
        for topic_id, partitions in member.assigned.items()
        for index in partitions
    }
    assert found == wanted
    assert {member.epoch for member in group.members.values()} == {group.epoch} == {group.target_epoch}
    world.check()


def initialized(*members: str) -> World:
    """A group whose members have joined, and whose partitions have state."""
    world = World(1)
    for member in members:
        world.heartbeat(member, 0, ["t", "u"])
    world.answer_share_coordinator(fails=False)
    return world


def test_a_large_group_is_served_while_its_target_is_computed(monkeypatch):
    monkeypatch.setattr(target_computation, "LARGE_WORK", 0)
    world = initialized("a")
    world.advance(2)
    world.heartbeat("a", world.epochs["a"], None)
    world.advance(2)
    world.waits = True
    token = world.heartbeat("b", 0, ["t"])
    epoch = world.epochs["a"]
    assert world.heartbeat("a", epoch, None).member_epoch == epoch < world.group.epoch
    world.compute()
    answer = world.answers[token]
    assert answer.member_epoch == world.group.epoch and answer.assignment.topic_partitions
    assert world.heartbeat("a", epoch, None).member_epoch == world.group.epoch
    world.check()


def test_a_group_is_deleted_when_its_state_is():
    world = initialized("a")
    assert world.delete_group() == "NON_EMPTY_GROUP"
    world.heartbeat("a", -1, None)
    assert world.delete_group() is None and world.group is not None
    assert world.group.initialized == {} and len(world.group.deleting) == 2
    world.answer_share_coordinator(fails=True)
    assert world.deleted() == "COORDINATOR_NOT_AVAILABLE"
    world.shard = world.replayed()
    world.send(events.Loaded(world.metadata))
    assert len(world.with_state) == 4 and world.delete_group() is None, "what is left is known after a restart, too"
    world.answer_share_coordinator(fails=False)
    assert (world.deleted(), world.group, world.with_state) == ("NONE", None, set())
    assert world.replayed().groups == {}
    assert world.delete_group() == "GROUP_ID_NOT_FOUND"


def test_a_member_that_joins_meanwhile_keeps_its_group():
    world = initialized("a")
    world.heartbeat("a", -1, None)
    assert world.delete_group() is None
    world.heartbeat("b", 0, ["t"])
    world.answer_share_coordinator(fails=False)
    assert world.deleted() == "NON_EMPTY_GROUP" and set(world.group.members) == {"b"}


def test_a_group_without_state_is_deleted_at_once():
    world = World(1)
    world.heartbeat("a", 0, ["none"])
    world.heartbeat("a", -1, None)
    assert world.delete_group() == "NONE" and world.group is None


def test_members_that_are_lost_together_are_removed_in_time(monkeypatch):
    """Each in an epoch of its own, and a few in each step."""
    count = 300
    monkeypatch.setattr(Settings, "group_share_max_size", count)
    world = World(1)
    for number in range(count):
        world.heartbeat(f"m{number}", 0, ["t"] if number % 2 else ["t", "u"])
    epoch = world.group.epoch
    removed = []
    fence = share_heartbeat.fence
    monkeypatch.setattr(share_heartbeat, "fence", lambda *args: removed.append(len(args[-1])) or fence(*args))
    world.advance(50)
    assert (world.group.members, world.group.epoch, world.group.metadata_hash) == ({}, epoch + count, 0)
    assert sum(removed) == count and max(removed) == LATE_PER_STEP < count
    world.check()


def test_heartbeats_of_a_large_group_do_not_look_at_its_members(monkeypatch):
    """Neither to count subscriptions, nor to see whether all partitions are assigned."""
    world = initialized("a")
    world.advance(2)
    for _ in range(3):
        world.heartbeat("a", world.epochs["a"], None)
        world.advance(2)
    monkeypatch.setattr(_Heartbeat, "_has_unassigned", None)
    world.group.members = Unreadable(world.group.members)
    world.heartbeat("a", world.epochs["a"], None)


def test_partitions_whose_state_comes_late_are_assigned():
    world = World(1)
    world.heartbeat("a", 0, ["t"])
    world.advance(2)
    world.heartbeat("a", world.epochs["a"], None)
    assert world.group.all_assigned, "there is nothing to assign yet"
    world.answer_share_coordinator(fails=False)
    world.advance(2)
    world.heartbeat("a", world.epochs["a"], None)
    assert sum(map(len, world.group.members["a"].assigned.values())) == 3
    world.check()


class Unreadable(dict):
    """Members that can be looked up, but not gone through."""

    def __iter__(self):
        raise AssertionError("all members are looked at")

    items = values = keys = __iter__


@pytest.mark.parametrize("seed", seeds.sampled(range(300), 15))
def test_the_simple_assignor_is_fair(seed):
    random = Random(seed_of_the_code() + seed)
    topics = {bytes([number] * 16): range(random.randrange(1, 6)) for number in range(1, random.randrange(2, 4))}
    everything = frozenset(topics)
    is_same = random.random() < 0.5
    members = {
        f"m{number}": Subscriber(everything if is_same else frozenset(random.sample(sorted(topics), 1)), {})
        for number in range(random.randrange(1, 8))
    }
    targets = share_assignor.assign(members, topics)
    for _ in range(2):
        for member_id, member in members.items():
            assert set(targets[member_id]) <= member.topic_ids
        for topic_id, partitions in topics.items():
            subscribers = [each for each in members if topic_id in members[each].topic_ids]
            for index in partitions if subscribers else ():
                assert any(index in targets[each].get(topic_id, ()) for each in subscribers)
        if is_same:
            sizes = [sum(map(len, target.values())) for target in targets.values()]
            assert max(sizes) - min(sizes) <= 1
        again = {each: Subscriber(member.topic_ids, targets[each]) for each, member in members.items()}
        assert share_assignor.assign(again, topics) == targets, "nothing moves without a reason"
