"""Random lives of streams groups (KIP-1071): the same members do the same things on both brokers.

The groups assign at once, and their internal topics exist, so that no answer depends on the time."""

from __future__ import annotations

from random import Random
from typing import Any

from compat_tests.scenarios.exchange import Exchange, part
from compat_tests.scenarios.registry import scenario
from compat_tests.scenarios.streams_groups import API, LEAVE, Group, Member, info, subtopology, topology

STEPS = 120
MEMBERS = 7
PROCESSES = 4


class Life:
    """A group of members, some of which share a process. All that happens follows from the seed."""

    def __init__(self, broker: Exchange, seed: int, stores: int) -> None:
        self.random = random = Random(seed)
        self.group = group = Group(broker, f"life-{seed}", partitions=random.randrange(2, 7))
        small = broker.topic(f"small-{seed}", 2)
        changelogs = [broker.topic(f"store-{seed}-{number}", 2) for number in range(stores)]
        group.topology = topology(
            subtopology(0, group.topic),
            subtopology(1, small, state_changelog_topics=[info(name) for name in changelogs]),
        )
        group.set(streams_num_standby_replicas=str(min(stores, 1)))
        # Ids as clients make them, and such as share buckets of hash maps.
        ids = [f"{random.getrandbits(128):032x}" if seed % 2 else f"{chr(97 + at)}{at}" for at in range(MEMBERS)]
        self.members = [group.member(each, process_id=f"process-{random.randrange(PROCESSES)}") for each in ids]
        self.actions = (
            *[self.beat] * 12,
            self.lost,
            self.silent,
            self.lying,
            self.early,
            self.stale,
            self.leave,
            self.rejoin,
            self.standby,
        )

    def run(self) -> None:
        for step in range(STEPS):
            self.random.choice(self.actions)(self.random.choice(self.members))
            if step % 20 == 19:
                self.group.describe(f"after {step}")

    def beat(self, member: Member) -> None:
        answer = member.beat("beat")
        if answer.error_code:
            member.rejoin()

    def lost(self, member: Member) -> None:
        """The answer does not arrive."""
        self.ask("lost", **member.fields())

    def silent(self, member: Member) -> None:
        """The member does not say what it has."""
        if member.epoch > 0:
            member.beat("silent", active_tasks=None, standby_tasks=None, warmup_tasks=None)

    def lying(self, member: Member) -> None:
        """The member says that it has what another has."""
        other = self.random.choice(self.members)
        if member.epoch > 0:
            self.ask("lying", **member.fields(active_tasks=other.active, standby_tasks=other.standby))

    def early(self, member: Member) -> None:
        """The member has given up more than it should."""
        if member.epoch > 0 and member.active:
            kept = [part(API, "TaskIds", subtopology_id=row.subtopology_id, partitions=row.partitions[:1])
                    for row in member.active]  # fmt: skip
            self.ask("early", **member.fields(active_tasks=kept))

    def stale(self, member: Member) -> None:
        """An epoch that is not the member's."""
        if member.epoch > 0:
            epoch = member.epoch + self.random.choice((-2, -1, 1, 99))
            if epoch > 0:
                self.ask("stale", **member.fields(member_epoch=epoch))

    def leave(self, member: Member) -> None:
        if member.epoch > 0:
            self.ask("leave", **member.fields(member_epoch=LEAVE))
            member.rejoin()

    def rejoin(self, member: Member) -> None:
        """The member begins anew without having left."""
        member.rejoin()
        self.beat(member)

    def standby(self, member: Member) -> None:
        if self.random.random() < 0.4:
            self.group.set(streams_num_standby_replicas=str(self.random.randrange(3)))

    def ask(self, note: str, **fields: Any) -> None:
        self.group.broker.ask(API, 0, note=note, **fields)


@scenario
def streams_group_lives_without_state(broker: Exchange) -> None:
    """Active tasks move between members that come, go, lie and lose answers."""
    for seed in range(4):
        Life(broker, seed, stores=0).run()


@scenario
def streams_group_lives_with_state(broker: Exchange) -> None:
    """Standby tasks move too, never into a process that has the task."""
    for seed in range(4, 10):
        Life(broker, seed, stores=1).run()


@scenario
def streams_group_endpoints_that_kafka_does_not_tell(broker: Exchange) -> None:
    """Kafka 4.3.1 fails when a member with an endpoint asks for a topology whose source topics are missing, and names
    partitions that a small source topic does not have."""
    endpoints = [part(API, "Endpoint", host=host, port=1) for host in "ab"]
    group = Group(broker, "missing", partitions=1)
    group.topology = topology(subtopology(0, "no-such-topic"))
    group.member("a", user_endpoint=endpoints[0]).beat("missing", endpoint_information_epoch=-1)
    group = Group(broker, "small", partitions=2)
    group.topology = topology(subtopology(0, group.topic, broker.topic("one", 1)))
    members = [group.member(host, user_endpoint=endpoint) for host, endpoint in zip("ab", endpoints, strict=True)]
    for turn in range(4):
        for member in members:
            member.beat(f"small {turn}", endpoint_information_epoch=-1)
