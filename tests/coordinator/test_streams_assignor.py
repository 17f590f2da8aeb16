"""The sticky assignor of streams groups (KIP-1071): fair, sticky, never twice in a process, and as Kafka's."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from pykafkad.coordinator.streams_assignor import Subscriber, Subtopology, _PriorityQueue, assign
from pykafkad.coordinator.streams_member import Target
from tests import seeds
from tests.seeds import seed_of_the_code

KAFKA = Path(__file__).parents[1] / "golden" / "kafka_4_3_1" / "streams_assignor.tsv"


def tasks(text):
    """Partitions by subtopology, of a text like `0:1.2,3:4`."""
    pairs = [each.split(":") for each in text.split(",") if each]
    return {subtopology: frozenset(map(int, numbers.split("."))) for subtopology, numbers in pairs}


def text(partitions):
    return ",".join(f"{each}:{'.'.join(map(str, sorted(partitions[each])))}" for each in sorted(partitions))


def decided(members, newest, subtopologies, copies):
    """What we assign, in the notation of the file: the members in the order in which they joined with process and
    present tasks, the newest member, the subtopologies with their numbers of tasks (`s` for state), and the number of
    copies."""
    subscribers = {}
    for row in members.split(";"):
        member_id, process_id, active, standby = row.split("|")
        subscribers[member_id] = Subscriber(process_id, Target(tasks(active), tasks(standby)))
    described = {}
    for row in subtopologies.split(","):
        subtopology_id, number = row.split(":")
        described[subtopology_id] = Subtopology(int(number.rstrip("s")), number.endswith("s"))
    targets = assign(subscribers, newest or None, described, int(copies))
    return ";".join(f"{each}|{text(targets[each].active)}|{text(targets[each].standby)}" for each in sorted(targets))


def test_it_assigns_as_kafka_does():
    rows = [line for line in KAFKA.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    assert len(rows) >= 200
    for row in rows:
        *case, expected = row.split("\t")
        assert decided(*case) == expected, row


@pytest.mark.parametrize("seed", seeds.sampled(range(300), 15))
def test_it_is_fair_and_sticky(seed):
    random = Random(seed_of_the_code() + seed)
    copies = random.randrange(3)
    subtopologies = {
        str(number): Subtopology(random.randrange(1, 9), random.random() < 0.5)
        for number in range(random.randrange(1, 4))
    }
    processes = random.randrange(1, 5)
    members = {f"m{number}": f"p{random.randrange(processes)}" for number in range(random.randrange(1, 9))}
    present = dict.fromkeys(members, Target())
    for _ in range(3):
        subscribers = {each: Subscriber(process, present[each]) for each, process in members.items()}
        targets = assign(subscribers, None, subtopologies, copies)
        check(targets, members, subtopologies, copies)
        again = {each: Subscriber(process, targets[each]) for each, process in members.items()}
        if not copies:
            assert assign(again, None, subtopologies, copies) == targets, "nothing moves without a reason"
        present = targets
        if len(members) > 1:
            gone = random.choice(sorted(members))
            del members[gone]


def check(targets, members, subtopologies, copies):
    active, standby, places = [], [], []
    for member_id, target in targets.items():
        for kind, found in ((target.active, active), (target.standby, standby)):
            for subtopology_id, partitions in kind.items():
                for partition in partitions:
                    found.append((subtopology_id, partition))
                    places.append((members[member_id], subtopology_id, partition))
        assert not target.warmup
    everything = [(each, number) for each in subtopologies for number in range(subtopologies[each].task_count)]
    stateful = [task for task in everything if subtopologies[task[0]].is_stateful]
    assert sorted(active) == sorted(everything)
    assert sorted(standby) == sorted(stateful * min(copies, len(set(members.values())) - 1))
    assert len(set(places)) == len(places), "a process has a task twice"
    sizes = [sum(map(len, target.active.values())) for target in targets.values()]
    if not copies and len(set(members.values())) == len(members):
        assert max(sizes) - min(sizes) <= 1


class Item:
    def __init__(self, load, name):
        self.load = load
        self.name = name


def test_the_queue_orders_equals_as_java_does():
    """What `java.util.PriorityQueue` gives for the same calls."""
    queue = _PriorityQueue(Item(load, str(at)) for at, load in enumerate((1, 1, 1, 1, 1)))
    assert [queue.poll().name for _ in range(5)] == ["0", "4", "3", "2", "1"]
    queue = _PriorityQueue(Item(load, str(at)) for at, load in enumerate((3, 1, 2, 1, 0, 2)))
    assert [queue.poll().load for _ in range(6)] == [0, 1, 1, 2, 2, 3]
    assert not len(queue)
