"""Random cases for the parts of streams groups, in the notation of `tests/golden/kafka_4_3_1/streams_*.tsv`."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from uuid import UUID

from pykafkad.coordinator.streams_assignor import Subscriber, Subtopology, assign
from pykafkad.coordinator.streams_member import Target


def numbers(tasks: dict[str, set[int]]) -> str:
    """Partitions by subtopology."""
    return ",".join(f"{each}:{'.'.join(map(str, sorted(tasks[each])))}" for each in sorted(tasks) if tasks[each])


# Assignments.


def assignments(random: Random, count: int) -> Iterator[str]:
    """Groups in a few steps of their lives: members come and go, topics grow. Some share processes."""
    while True:
        for case in _life(random):
            yield case
            count -= 1
            if not count:
                return


def _life(random: Random) -> Iterator[str]:
    is_large = random.random() < 0.1
    style = random.choice(("uuid", "uuid", "name", "letter"))

    def new_id(at: int) -> str:
        if style == "uuid":
            return str(UUID(int=random.getrandbits(128), version=4))
        return f"member-{at}" if style == "name" else f"{chr(97 + at % 26)}{at}"

    def subtopology() -> Subtopology:
        return Subtopology(random.randrange(1, 40 if is_large else 9), random.random() < 0.6)

    member_count = random.randrange(1, 40 if is_large else 11)
    processes = [new_id(at) for at in range(random.randrange(1, member_count + 1))]
    members = {new_id(at): random.choice(processes) for at in range(member_count)}
    subtopologies = {str(at): subtopology() for at in range(random.randrange(1, 13 if is_large else 4))}
    copies = random.choice((0, 0, 1, 1, 2, 3))
    present = dict.fromkeys(members, Target())
    for step in range(random.randrange(1, 5)):
        newest = ""
        if step and random.random() < 0.5 and len(members) > 1:
            del members[random.choice(list(members))]
        if step and random.random() < 0.5:
            newest = new_id(100 + step)
            members[newest] = random.choice(processes)
            present[newest] = Target()
        if step and random.random() < 0.2:
            copies = random.randrange(4)
        if random.random() < 0.15:
            subtopologies[random.choice(list(subtopologies))] = subtopology()
        rows = [
            f"{each}|{process}|{numbers(present[each].active)}|{numbers(present[each].standby)}"
            for each, process in members.items()
        ]
        counts = [f"{each}:{row.task_count}{'s' * row.is_stateful}" for each, row in subtopologies.items()]
        yield "\t".join((";".join(rows), newest, ",".join(counts), str(copies)))
        subscribers = {each: Subscriber(process, present[each]) for each, process in members.items()}
        present = dict(assign(subscribers, newest or None, subtopologies, copies))


# Topologies.


def topologies(random: Random, count: int) -> Iterator[str]:
    """Subtopologies that read each other's repartition topics, with loops, and topics that are missing or too small."""
    for _ in range(count):
        size = random.randrange(1, 15 if random.random() < 0.1 else 6)
        sources = [f"in{at}" for at in range(random.randrange(1, 5))]
        usual = random.randrange(1, 6)
        is_even = random.random() < 0.5
        topics = {each: usual if is_even else random.randrange(1, 6) for each in sources if random.random() < 0.96}
        repartition = [f"app-rep{at}-repartition" for at in range(random.randrange(2 * size))]
        fixed = {each: random.randrange(1, 6) if random.random() < 0.15 else 0 for each in repartition}
        free = list(repartition)
        rows = [_subtopology(random, at, size, sources, fixed, free, topics, usual) for at in range(size)]
        yield ",".join(f"{each}:{number}" for each, number in topics.items()) + "\t" + ";".join(rows)


def _subtopology(
    random: Random,
    at: int,
    size: int,
    sources: list[str],
    fixed: dict[str, int],
    free: list[str],
    topics: dict[str, int],
    usual: int,
) -> str:
    external = random.sample(sources, random.randrange(min(3, len(sources)) + 1))
    internal = [each for each in free if random.random() < 1 / size]
    for each in internal:
        free.remove(each)
    if not external and (at == 0 or (not internal and random.random() < 0.9)):
        external = [random.choice(sources)]
    sinks = random.sample(list(fixed), random.randrange(min(3, len(fixed)) + 1))
    changelogs = [f"app-store{at}-{number}-changelog" for number in range(random.randrange(3))]
    groups = []
    for _ in range(random.randrange(2)):
        sides = [[str(each) for each in range(len(side)) if random.random() < 0.6] for side in (external, internal)]
        if random.random() < 0.01:
            sides[0].append("9")
        groups.append("/".join(map(".".join, sides)))
    for each in (*changelogs, *internal):
        if random.random() < 0.12:
            topics[each] = usual if random.random() < 0.8 else random.randrange(1, 6)
    fields = (
        str(at),
        ",".join(external),
        ",".join(sinks),
        ",".join(f"{each}:{fixed[each]}" for each in internal),
        ",".join(f"{each}:0" for each in changelogs),
        "+".join(groups),
    )
    return "|".join(fields)


# Steps of members.

SUBTOPOLOGIES, PARTITIONS = ("0", "1"), range(4)


def steps(random: Random, count: int) -> Iterator[str]:
    """Members in every state, with targets, what they say they have, and the processes of others."""

    def some(share: float) -> dict[str, set[int]]:
        return {each: {at for at in PARTITIONS if random.random() < share} for each in SUBTOPOLOGIES}

    def with_epochs(tasks: dict[str, set[int]]) -> str:
        return ",".join(
            f"{each}:{'.'.join(f'{at}@{random.randrange(1, 6)}' for at in sorted(tasks[each]))}"
            for each in sorted(tasks)
            if tasks[each]
        )

    def processes(share: float) -> str:
        return ";".join(
            f"{each}:{at}={'+'.join(random.sample('PQR', random.randrange(1, 3)))}"
            for each in SUBTOPOLOGIES
            for at in PARTITIONS
            if random.random() < share
        )

    for _ in range(count):
        state = random.choice((1, 1, 2, 2, 3, 3, 127))
        epoch = random.randrange(1, 8)
        assigned = [some(share) for share in (0.35, 0.2, 0.03)]
        revoking = [some(share if state == 2 else 0) for share in (0.25, 0.15, 0.02)]
        wanted = [
            {
                each: {at for at in tasks[each] if random.random() < 0.7}
                | {at for at in PARTITIONS if random.random() < share}
                for each in SUBTOPOLOGIES
            }
            for tasks, share in zip(assigned, (0.25, 0.15, 0.05), strict=True)
        ]
        share = random.choice((0, 0.5, 0.95))
        owned = [
            {each: {at for at in first[each] | second[each] if random.random() < share} for each in SUBTOPOLOGIES}
            for first, second in zip(assigned, revoking, strict=True)
        ]
        active = [
            f"{each}:{at}={random.choice('PQ')}"
            for each in SUBTOPOLOGIES
            for at in PARTITIONS
            if at in assigned[0][each] | revoking[0][each] or random.random() < 0.2
        ]
        fields = (
            str(state),
            str(epoch),
            str(random.randrange(epoch + 1)),
            "|".join((with_epochs(assigned[0]), *map(numbers, assigned[1:]))),
            "|".join((with_epochs(revoking[0]), *map(numbers, revoking[1:]))),
            str(epoch + random.randrange(3)),
            "|".join(map(numbers, wanted)),
            "-" if random.random() < 0.25 else "|".join(map(numbers, owned)),
            ";".join(active),
            processes(0.2),
            processes(0.1),
        )
        yield "\t".join(fields)
