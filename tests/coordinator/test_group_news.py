"""What people are told of groups and transactions: who joins and leaves, when a rebalance begins and ends."""

from __future__ import annotations

import pytest

from pykafkad.coordinator import group_news
from pykafkad.effects import TOLD_PER_STEP
from tests.coordinator.consumer_world import ConsumerWorld
from tests.coordinator.streams_world import StreamsWorld
from tests.coordinator.test_share_group import World as ShareWorld
from tests.coordinator.test_sync_heartbeat_leave import completing
from tests.coordinator.transaction_world import TransactionWorld
from tests.coordinator.world import World


def news(world, *names):
    """What has been told since the last time: the events with the fields of these names."""
    told, world.told[:] = list(world.told), []
    return [(event, *(fields[name] for name in names if fields.get(name) is not None)) for event, fields in told]


# Classic groups.


def test_a_classic_group_tells_who_joins_and_how_long_its_rebalance_took():
    world, generation, (leader, follower) = completing()
    assert news(world, "client", "reason") == [
        ("member-joined", "client"),
        ("rebalance-began", "a member has joined"),
        ("member-joined", "client"),
    ]
    world.sync(follower, generation)
    world.advance(1)
    assert news(world) == []
    world.sync(leader, generation, {leader: b"x"})
    assert news(world, "group", "type", "generation", "members", "took_ms") == [
        ("rebalance-ended", "g", "classic", 1, 2, 7000)
    ]
    for _ in range(3):
        world.heartbeat(leader, generation)
        world.heartbeat(follower, generation)
    assert news(world) == [], "heartbeats are silent"
    world.advance(3)
    world.join(leader)
    world.join(follower)
    world.sync(leader, generation + 1, {})
    assert news(world, "reason", "took_ms") == [
        ("rebalance-began", "its leader has joined again"),
        ("rebalance-ended", 0),
    ]


def test_a_classic_member_that_leaves_and_one_that_expires():
    world, generation, (leader, follower) = completing()
    world.sync(leader, generation, {})
    world.sync(follower, generation)
    news(world)
    world.leave(follower)
    assert news(world, "member", "reason") == [
        ("member-left", follower),
        ("rebalance-began", "a member has left"),
    ]
    world.advance(61)
    assert news(world, "member", "generation", "reason") == [
        ("member-expired", leader, "its session has ended"),
        ("group-empty", 2),
    ]


def test_members_that_miss_a_phase_are_told_of():
    world, generation, (leader, follower) = completing()
    world.sync(leader, generation, {})
    world.sync(follower, generation)
    world.join(follower, protocols=(("range", b"more"),), session_ms=300_000)
    news(world)
    for _ in range(7):
        world.advance(8)
        world.heartbeat(leader, generation)
    world.advance(5)
    assert news(world, "member", "reason") == [("member-expired", leader, "it has not joined the rebalance in time")]
    world, generation, members = completing(session_ms=300_000)
    news(world)
    world.advance(61)
    assert news(world, "member", "reason")[:2] == [
        ("member-expired", each, "it has not fetched its assignment in time") for each in members
    ]


def test_a_static_member_that_comes_back_takes_a_place_over():
    world = World()
    first = world.join(instance="i")
    world.advance(6)
    member = world.answer(first)
    world.sync(member.member_id, member.generation_id, {member.member_id: b"x"}, instance="i")
    news(world)
    again = world.answer(world.join(instance="i"))
    assert news(world, "member", "instance", "in_place_of") == [
        ("member-joined", again.member_id, "i", member.member_id)
    ]


def test_a_storm_of_members_is_told_of_in_part():
    world = World(group_initial_rebalance_delay_ms=0)
    count = TOLD_PER_STEP + 5
    for _ in range(count):
        world.join(protocols=(("range", b""),))
    news(world)
    world.advance(301)
    # One line is that of the rebalance, another that of the empty group.
    told = news(world, "count")
    assert told.count(("member-expired",)) == TOLD_PER_STEP - 1
    assert told[-1] == ("more-changes", count + 2 - TOLD_PER_STEP)


# Groups of the other types.


def test_a_consumer_group_tells_of_a_rebalance_until_each_member_has_its_target():
    world = ConsumerWorld()
    (a,) = world.joined("a")
    assert news(world, "type", "member", "client", "reason", "epoch", "members") == [
        ("member-joined", "a", "client"),
        ("rebalance-began", "consumer", "a member has joined", a.epoch),
        ("rebalance-ended", "consumer", a.epoch, 1),
    ]
    b = world.member("b")
    assert b.beat() == "NONE"
    assert news(world, "member", "reason") == [
        ("member-joined", "b"),
        ("rebalance-began", "a member has joined"),
    ]
    a.beat()
    world.advance(2)
    a.beat()
    assert news(world) == [], "b does not have its partitions yet"
    b.beat()
    assert news(world, "members", "took_ms") == [("rebalance-ended", 2, 2000)]
    assert not world.shard.rebalances
    world.settle(a, b)
    assert news(world) == []


def test_why_a_consumer_group_rebalances():
    world = ConsumerWorld(topics=(("t", 6), ("u", 1)))
    a, b, c = world.joined("a", "b", "c")
    news(world)
    world.grow("t", 8)
    world.settle(a, b, c)
    assert news(world, "reason") == [("rebalance-began", "topics have changed"), ("rebalance-ended",)]
    a.change(topics=("t", "u"))
    world.settle(a, b, c)
    assert news(world, "reason") == [("rebalance-began", "a subscription has changed"), ("rebalance-ended",)]
    b.leave()
    world.settle(a, c)
    assert news(world, "member", "reason") == [
        ("member-left", "b"),
        ("rebalance-began", "a member has left"),
        ("rebalance-ended",),
    ]
    for _ in range(10):
        world.advance(5)
        c.beat()
    world.settle(c)
    assert news(world, "member", "reason") == [
        ("member-expired", "a"),
        ("rebalance-began", "a member's session has expired"),
        ("rebalance-ended",),
    ]
    c.leave()
    assert news(world, "member") == [("member-left", "c"), ("group-empty",)]
    assert not world.shard.rebalances


def test_a_static_member_is_away_and_comes_back():
    world = ConsumerWorld()
    (a,) = world.joined("a", instance="i")
    news(world)
    a.leave(static=True)
    assert news(world, "member", "comes_back") == [("member-left", "a", True)]
    assert world.member("b", instance="i").beat() == "NONE"
    assert news(world, "member", "instance")[:2] == [("member-joined", "b", "i"), ("member-left", "a")]


def test_a_classic_group_that_becomes_a_consumer_group_tells_of_new_members_only():
    world = ConsumerWorld()
    subscription = b"\x00\x01\x00\x00\x00\x01\x00\x01t\xff\xff\xff\xff\x00\x00\x00\x00"
    token = world.join(protocols=(("range", subscription),))
    world.advance(6)
    old = world.answer(token)
    world.sync(old.member_id, old.generation_id, {old.member_id: b"\x00\x01\x00\x00\x00\x00\xff\xff\xff\xff"})
    news(world)
    assert world.member("new").beat() == "NONE"
    told = news(world, "member", "reason")
    assert told == [("member-joined", "new"), ("rebalance-began", "a member has joined")]


def test_a_consumer_group_that_becomes_a_classic_one_tells_of_the_member_that_left():
    world = ConsumerWorld()
    subscription = b"\x00\x01\x00\x00\x00\x01\x00\x01t\xff\xff\xff\xff\x00\x00\x00\x00"
    (a,) = world.joined("a")
    token = world.join(protocols=(("range", subscription),))
    world.advance(2)
    assert world.answer(token) is not None
    news(world)
    a.leave()
    told = news(world, "member", "reason")
    assert told[0] == ("rebalance-began", "a consumer group has become a classic one")
    assert told[1:] == [("member-left", "a")]
    assert not world.shard.rebalances


def test_streams_groups_tell_the_same():
    world = StreamsWorld()
    a = world.member("a")
    a.beat()
    assert news(world, "member", "type", "client", "reason") == [
        ("member-joined", "a", "client"),
        ("rebalance-began", "streams", "a member has joined"),
    ]
    world.advance(4)
    a.beat()
    assert [event for event, *_ in news(world)][-1:] == ["rebalance-ended"]
    a.beat()
    assert news(world) == []


def test_share_groups_tell_the_same():
    world = ShareWorld(1)
    world.heartbeat("a", 0, ["t"])
    told = news(world, "member", "type", "client", "reason")
    assert told[:2] == [("member-joined", "a", "client"), ("rebalance-began", "share", "a member has joined")]
    assert told[2:] == [("rebalance-ended", "share")]
    world.heartbeat("b", 0, ["t"])
    assert [event for event, *_ in news(world)] == ["member-joined", "rebalance-began"]
    world.heartbeat("b", -1, None)
    assert news(world, "member", "reason") == [("member-left", "b")], "it is the same rebalance"
    world.now += 2
    world.heartbeat("a", 2, None)
    assert news(world, "members", "took_ms") == [("rebalance-ended", 1, 2000)]


# Transactions.


def test_a_transaction_that_is_open_for_too_long_is_told_of():
    world = TransactionWorld()
    producer = world.producer()
    world.add(producer, ("a", 0))
    world.advance(60)
    assert world.told == []
    world.advance(11)
    fields = {"transactional_id": "t", "producer_id": producer[0], "timeout_ms": 60_000, "partitions": 1}
    assert world.told == [("transaction-timed-out", fields)]


# The bounds.


def test_of_many_transactions_that_time_out_at_once_some_are_told_of():
    world = TransactionWorld()
    for number in range(TOLD_PER_STEP + 3):
        world.add(world.producer(f"x{number}"), ("a", 0), transactional_id=f"x{number}")
    world.advance(75)
    assert [event for event, _ in world.told] == ["transaction-timed-out"] * TOLD_PER_STEP + ["more-changes"]
    assert world.told[-1][1] == {"count": 3}


class Members:
    """Members that count how often one of them is looked at."""

    type = "consumer"
    metadata_hash = 0

    def __init__(self, count: int) -> None:
        self.looks = 0
        self.epoch = self.target_epoch = 1
        self.members = {f"m{number}": _Member(self) for number in range(count)}


class _Member:
    def __init__(self, group: Members) -> None:
        self.group = group
        self.epoch = 1

    def is_reconciled_to(self, epoch: int) -> bool:
        self.group.looks += 1
        return self.epoch == epoch


@pytest.mark.parametrize("backwards", [False, True])
def test_the_end_of_a_rebalance_of_many_members_is_found_with_few_looks(backwards):
    from pykafkad.coordinator import consumer_records
    from pykafkad.coordinator.consumer_member import ConsumerMember
    from pykafkad.coordinator.step import Step

    world = ConsumerWorld()
    count = 500
    group = world.shard.groups["g"] = Members(count)

    def write(*records):
        step = Step(world.shard.log, world.settings, world.random, world.clock.now(), world.clock.now_ms())
        step.append(list(records))
        group_news.tell(world.shard, step, None)
        return [effect.event for effect in step.effects[1:]]

    assert write(consumer_records.group_epoch("g", 2, 7)) == ["rebalance-began"]
    group.epoch = 2
    assert write(consumer_records.target_epoch("g", 2, 0)) == []
    group.target_epoch = 2
    ids = list(group.members)
    for number, member_id in enumerate(reversed(ids) if backwards else ids, 1):
        told = write(consumer_records.current("g", ConsumerMember(member_id).copy(epoch=2)))
        assert told == (["rebalance-ended"] if number == count else [])
        group.members[member_id].epoch = 2
    assert group.looks <= 3 * count
