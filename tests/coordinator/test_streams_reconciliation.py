"""The way of a member of a streams group to its target (KIP-1071), beside Kafka's."""

from __future__ import annotations

from pathlib import Path

from pykafkad.coordinator.streams_group import StreamsGroup
from pykafkad.coordinator.streams_member import StreamsMember, Target, Tasks
from pykafkad.coordinator.streams_reconciliation import Reconciliation
from pykafkad.errors import KafkaError

KAFKA = Path(__file__).parents[1] / "golden" / "kafka_4_3_1" / "streams_reconciliation.tsv"


def pieces(text, separator=","):
    return [each.split("=" if separator == ";" else ":") for each in text.split(separator) if each]


def partitions(text):
    return {each: frozenset(map(int, numbers.split("."))) for each, numbers in pieces(text)}


def epochs(text):
    return {each: dict(map(int, number.split("@")) for number in numbers.split(".")) for each, numbers in pieces(text)}


def tasks(text):
    active, standby, warmup = text.split("|")
    return Tasks(epochs(active), partitions(standby), partitions(warmup))


def target(text):
    return Target(*map(partitions, text.split("|")))


def group(active, standby, warmup):
    """A group in whose processes the tasks are."""
    result = StreamsGroup("g")
    for task, process in pieces(active, ";"):
        subtopology, number = task.split(":")
        result.active_processes.setdefault(subtopology, {})[int(number)] = process
    for kind, rows in (("standby", standby), ("warmup", warmup)):
        for task, processes in pieces(rows, ";"):
            subtopology, number = task.split(":")
            for process in processes.split("+"):
                result.copies.setdefault((kind, subtopology, process), set()).add(int(number))
    return result


def shown(tasks):
    """Tasks in the notation of the file."""
    active = ",".join(
        f"{each}:{'.'.join(f'{number}@{epochs[number]}' for number in sorted(epochs))}"
        for each, epochs in sorted(tasks.active.items())
    )
    copies = [
        ",".join(f"{each}:{'.'.join(map(str, sorted(numbers)))}" for each, numbers in sorted(kind.items()))
        for kind in (tasks.standby, tasks.warmup)
    ]
    return "|".join((active, *copies))


def decided(state, epoch, previous, assigned, revoking, target_epoch, wanted, owned, *processes):
    """What we make of a member, in the notation of the file."""
    member = StreamsMember("m").copy(
        process_id="P",
        state=int(state),
        epoch=int(epoch),
        previous_epoch=int(previous),
        assigned=tasks(assigned),
        revoking=tasks(revoking),
    )
    others = group(*processes)
    step = Reconciliation(
        member,
        int(target_epoch),
        target(wanted),
        lambda each, numbers: others.free_active("P", each, numbers),
        lambda each, numbers: others.free_copies("P", each, numbers),
        None if owned == "-" else target(owned),
    )
    try:
        found = step.next()
    except KafkaError as error:
        return f"error FencedMemberEpochException {error.text}"
    numbers = map(str, (found.state, found.epoch, found.previous_epoch))
    return "\t".join((*numbers, shown(found.assigned), shown(found.revoking)))


def test_a_member_moves_as_in_kafka():
    rows = [line for line in KAFKA.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    assert len(rows) >= 150
    for row in rows:
        fields = row.split("\t")
        assert decided(*fields[:11]) == "\t".join(fields[11:]), row
