"""Random lives of streams groups (KIP-1071): what must hold whatever happens.

No two members have an active task at a time, and no process has a task twice. Members are given only what the
coordinator keeps for them. Epochs only rise. Replay of the log equals the live state. Nobody is answered twice. In the
end every task of the topology has one owner, and as many standby copies as there are processes for them."""

from __future__ import annotations

from random import Random

import pytest

from pykafkad.coordinator.reconciled_group import ReconciledGroup
from pykafkad.coordinator.streams_group import StreamsGroup
from pykafkad.coordinator.streams_member import UNKNOWN_STATE
from tests import seeds
from tests.coordinator.group_lives import Client, GroupLife
from tests.coordinator.streams_world import (
    STATEFUL,
    STATELESS,
    WORD_COUNT,
    StreamsWorld,
    internal,
    subtopology,
    topology,
)

JOIN = topology(
    subtopology(0, sources=["text"], sinks=["g-keyed-repartition"]),
    subtopology(
        1,
        sources=["other"],
        repartition=["g-keyed-repartition"],
        changelogs=[internal("g-left-changelog"), internal("g-right-changelog")],
        groups=[((0,), (0,))],
    ),
)
TOPOLOGIES = (STATELESS, STATEFUL, WORD_COUNT, JOIN)
KINDS = ("active", "standby", "warmup")


class Thread(Client):
    """A thread of an application."""

    def __init__(self, number, process):
        super().__init__(number)
        self.process = process


class Life(GroupLife):
    def __init__(self, seed):
        self.random = random = Random(seed)
        self.brings = random.choice(TOPOLOGIES)
        self.world = StreamsWorld(
            seed,
            topics=(("text", random.randrange(1, 6)), ("other", 3)),
            group_streams_max_size=random.choice((3, 100)),
            group_streams_assignment_interval_ms=random.choice((0, 1000)),
            group_streams_initial_rebalance_delay_ms=random.choice((0, 3000)),
            group_streams_num_standby_replicas=random.choice((0, 1, 2)),
        )
        self.clients = [Thread(number, f"p{random.randrange(4)}") for number in range(6)]
        self.epoch = 0
        self.seen = 0
        self.actions = (
            *[self.beat] * 12,
            *[self.start] * 4,
            *[self.create] * 2,
            self.lost_answer,
            self.repeated,
            self.leave,
            self.kill,
            self.wait,
            self.wait,
            self.topics,
            self.standby,
            self.reload,
            self.odd,
        )

    # What clients do.

    def start(self, client):
        if client.member is None:
            client.lives += 1
            client.member = self.world.member(
                f"m{client.number}-{client.lives}",
                process=client.process,
                endpoint=self.random.choice((None, (f"host{client.number}", 80))),
                brings=self.brings,
            )
            self.beat(client)

    def beat(self, client):
        if client.member is not None:
            client.member.beat()

    def leave(self, client):
        if client.member is not None and self.random.random() < 0.5:
            client.member.leave(shutdown_application=self.random.random() < 0.2)
            client.member = None

    # What happens around them.

    def create(self, client):
        self.world.create_asked()

    def topics(self, client):
        choice = self.random.random()
        topics = self.world.metadata.topics
        if choice < 0.3:
            self.world.set_topic("other", None if "other" in topics else 3)
        elif choice < 0.5:
            for name in [name for name in topics if name.startswith("g-")][:1]:
                self.world.set_topic(name, None)
        elif choice < 0.6 and len(topics["text"].partitions) < 8:
            # The internal topics have the wrong numbers of partitions now. Whoever runs the application deletes them.
            self.world.set_topic("text", len(topics["text"].partitions) + 1)
            for name in [name for name in topics if name.startswith("g-")]:
                self.world.set_topic(name, None)

    def standby(self, client):
        self.world.metadata.group_configs["g"] = {"streams.num.standby.replicas": str(self.random.randrange(3))}

    def odd(self, client):
        choice = self.random.random()
        running = client.member is not None and client.member.epoch > 0
        if choice < 0.2:
            self.world.delete_group("g")
        elif choice < 0.4:
            stranger = self.world.member("stranger")
            stranger.epoch = 7
            assert stranger.beat() in ("UNKNOWN_MEMBER_ID", "GROUP_ID_NOT_FOUND")
        elif choice < 0.6 and running:
            assert self.world.beat(client.member.request(member_epoch=10**6)).error_code != 0
        elif choice < 0.7:
            assert self.world.join("someone", group="g") is not None
        elif choice < 0.9 and running:
            # A member that lies about what it owns is given nothing by it.
            other = self.clients[0].member
            self.world.beat(client.member.request(active_tasks=other.rows("active") if other else []))
            client.member = None

    # What must hold.

    def check(self):
        for key, value in self.world.log[self.seen :]:
            if key[:2] == b"\0\x11" and value is None:
                # The group was deleted. A new one of its name begins anew.
                self.epoch = 0
        self.seen = len(self.world.log)
        group = self.world.group
        if not isinstance(group, StreamsGroup):
            return
        assert group.epoch >= self.epoch, "a group's epoch fell"
        assert group.target_epoch <= group.epoch
        self.epoch = group.epoch
        owners = {}
        processes = set()
        for member in group.members.values():
            assert member.epoch <= group.epoch and member.state != UNKNOWN_STATE
            for kind, task, epoch in tasks_of(member):
                if kind == "active":
                    assert task not in owners, f"{task} has two owners"
                    owners[task] = member.process_id
                    assert epoch <= group.epoch
                assert (member.process_id, task) not in processes, f"{member.process_id} has {task} twice"
                processes.add((member.process_id, task))
        indexed = {
            (each, number): owner
            for each in group.active_processes
            for number, owner in group.active_processes[each].items()
        }
        assert indexed == owners and all(group.active_processes.values()) and all(group.copies.values())
        for client in self.clients:
            self.check_client(group, client)

    def check_client(self, group, client):
        """A member has nothing but what the coordinator keeps for it, also when an answer was lost."""
        member = None if client.member is None else group.members.get(client.member.member_id)
        if member is None or client.member.epoch not in (member.epoch, member.previous_epoch):
            return
        kept = {(kind, task) for kind, task, _ in tasks_of(member)}
        for kind in KINDS:
            for subtopology_id, partitions in client.member.tasks[kind].items():
                for partition in partitions:
                    assert (kind, (subtopology_id, partition)) in kept, "a client has what is not kept for it"


def tasks_of(member):
    for tasks in (member.assigned, member.revoking):
        for kind in KINDS:
            for subtopology_id, partitions in getattr(tasks, kind).items():
                for partition in partitions:
                    yield kind, (subtopology_id, partition), partitions[partition] if kind == "active" else 0


def hard_state(shard):
    """The state that a restart must restore."""
    state = {}
    for group_id, group in shard.groups.items():
        if isinstance(group, StreamsGroup):
            soft = ("configured", "deadlines", "endpoint_epoch", "is_delayed", "shutdown_member_id", "timer_at")
            names = {*ReconciledGroup.__slots__, *StreamsGroup.__slots__} - {*soft, "topics_changed"}
            state[group_id] = {name: getattr(group, name) for name in names}
        else:
            state[group_id] = group.state
    return state


@pytest.mark.parametrize("seed", seeds.sampled(range(300), 15))
def test_replay_equals_live_and_no_task_has_two_owners(seed):
    life = Life(seed)
    for _ in range(3):
        life.run(50)
        assert hard_state(life.world.shard) == hard_state(life.world.replayed())
    settle(life)
    assert hard_state(life.world.shard) == hard_state(life.world.replayed())


def settle(life):
    """Without further changes the members that are left get all tasks, and nothing else."""
    world = life.world
    if "other" not in world.metadata.topics:
        world.set_topic("other", 3)
    wanted = len(world.metadata.topics["text"].partitions)
    if life.brings is JOIN:
        world.set_topic("other", wanted)
    for name in [name for name in world.metadata.topics if name.startswith("g-")]:
        world.set_topic(name, None)
    world.asked.clear()
    world.advance(200)
    alive = [client for client in life.clients if client.member is not None]
    for _ in range(14):
        world.advance(1.5)
        for client in alive:
            life.beat(client)
        world.create_asked()
    life.check()
    group = world.group
    if isinstance(group, StreamsGroup) and group.members:
        assert group.state == "Stable", group.members
        found = {kind: [] for kind in KINDS}
        for member in group.members.values():
            for kind, task, _ in tasks_of(member):
                found[kind].append(task)
        subtopologies = group.configured.subtopologies
        everything = {(each, number) for each in subtopologies for number in range(subtopologies[each].task_count)}
        assert sorted(found["active"]) == sorted(everything)
        replicas = int(group.assignment_configs["num.standby.replicas"])
        copies = min(replicas, len({member.process_id for member in group.members.values()}) - 1)
        stateful = [task for task in everything if subtopologies[task[0]].changelogs]
        assert sorted(found["standby"]) == sorted(stateful * copies)
        assert not found["warmup"]
        for client in alive:
            if client.member.member_id in group.members:
                kept = group.members[client.member.member_id].assigned
                for kind in KINDS:
                    assert client.member.tasks[kind] == {each: set(t) for each, t in getattr(kept, kind).items()}
    world.advance(200)
    assert all(group.state == "Empty" for group in world.shard.groups.values())
    assert set(world.timers) == {("expiry",)}


def test_the_same_seed_gives_the_same_log():
    first, second = Life(7), Life(7)
    first.run(200)
    second.run(200)
    assert first.world.log == second.world.log
