"""No partition has two owners, as long as every member gives its partitions up when it must join again or when its
session ends."""

from __future__ import annotations

from random import Random

import pytest

from pykafkad.errors import name
from tests.coordinator.world import World

PARTITIONS = 6
SESSION_S = 6.0


class Member:
    """An eager consumer: it gives up all partitions before it joins, owns its assignment, and sends a heartbeat every
    two seconds."""

    def __init__(self, world, random):
        self.world = world
        self.random = random
        self.member_id = ""
        self.generation = -1
        self.owned = frozenset()
        self.heard_at = 0.0
        self.joining = None
        self.syncing = None
        self.members = []
        self.paused_until = 0.0

    def turn(self):
        now = self.world.clock.now()
        if self.owned and now >= self.heard_at + SESSION_S:
            self.lost()
        if now < self.paused_until:
            return
        if self.joining is not None:
            self.joined(self.world.answer(self.joining))
        elif self.syncing is not None:
            self.synced(self.world.answer(self.syncing))
        elif self.generation < 0:
            self.join()
        elif now - self.heard_at >= 2:
            self.told(self.world.heartbeat(self.member_id, self.generation))
        if self.random.random() < 0.02:
            self.paused_until = now + self.random.choice((1, 5, 20))
        elif self.random.random() < 0.01 and self.joining is None and self.syncing is None:
            self.world.leave(self.member_id)
            self.lost()

    def join(self):
        self.owned = frozenset()
        self.joining = self.world.join(
            self.member_id, id_required=True, session_ms=int(SESSION_S * 1000), rebalance_ms=9_000
        )
        self.asked_at = self.world.clock.now()

    def joined(self, answer):
        if answer is None:
            return
        self.joining = None
        self.told(name(answer.error_code))
        self.member_id = (
            answer.member_id if name(answer.error_code) in ("NONE", "MEMBER_ID_REQUIRED") else self.member_id
        )
        if name(answer.error_code) == "NONE":
            self.generation = answer.generation_id
            self.members = [member.member_id for member in answer.members]
            shares = {
                each: bytes(range(index, PARTITIONS, len(self.members))) for index, each in enumerate(self.members)
            }
            self.syncing = self.world.sync(self.member_id, self.generation, shares)

    def synced(self, answer):
        if answer is None:
            return
        self.syncing = None
        self.told(name(answer.error_code))
        # A late response is out of date. A real client learns that from a heartbeat before it consumes.
        if name(answer.error_code) == "NONE":
            error = self.world.heartbeat(self.member_id, self.generation)
            self.told(error)
            if error == "NONE":
                self.owned = frozenset(answer.assignment)

    def told(self, error):
        self.heard_at = self.world.clock.now()
        if error == "REBALANCE_IN_PROGRESS":
            self.owned, self.generation = frozenset(), -1
        elif error not in ("NONE", "MEMBER_ID_REQUIRED"):
            self.lost()

    def lost(self):
        self.owned, self.generation, self.member_id = frozenset(), -1, ""
        self.syncing = None


@pytest.mark.parametrize("seed", range(20))
def test_no_partition_has_two_owners(seed):
    random = Random(seed)
    world = World(seed, group_initial_rebalance_delay_ms=random.choice((0, 3000)))
    members = [Member(world, random) for _ in range(5)]
    covered = 0
    for _ in range(600):
        for member in random.sample(members, len(members)):
            member.turn()
            owned = sorted(partition for each in members for partition in each.owned)
            assert owned == sorted(set(owned)), {each.member_id: each.owned for each in members}
        covered += len(owned) == PARTITIONS
        world.advance(0.25)
        if random.random() < 0.005:
            world.restart()
            for member in members:
                member.joining = member.syncing = None
                if member.generation < 0:
                    member.member_id = ""
    assert covered > 100, "the group hardly ever had all partitions in hand"


@pytest.mark.parametrize("seed", range(5))
def test_every_partition_has_an_owner_soon_after_the_last_failure(seed):
    random = Random(seed)
    world = World(seed)
    members = [Member(world, random) for _ in range(5)]
    for _ in range(200):
        for member in members:
            member.turn()
        world.advance(0.25)
    for member in members:
        member.random = Random(0)
        member.random.random = lambda: 1.0
        member.paused_until = 0.0
    for _ in range(160):
        for member in members:
            member.turn()
        world.advance(0.25)
    assert sorted(partition for member in members for partition in member.owned) == list(range(PARTITIONS))
    assert len(world.shard.groups["g"].members) == 5
