"""What transactional producers sent and were told, what readers were given, and the checks of a log against both.

Each client appends its events to a file of its own, one JSON object a line, each before or after the call that it
describes. So the files are right however a client ends.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple


class Record(NamedTuple):
    """One record: its partition, its producer, the producer's transaction, and its number in the transaction."""

    partition: int
    producer: str
    transaction: int
    number: int

    @property
    def value(self) -> str:
        """The record's value in the topic."""
        return f"{self.producer} {self.transaction} {self.number}"


def words_of(value: bytes) -> str:
    """A record's value in the topic without what is there only for its size."""
    return b" ".join(value.split()[:3]).decode()


def parsed(partition: int, value: str) -> Record:
    """The record with that value."""
    producer, transaction, number = value.split()[:3]
    return Record(partition, producer, int(transaction), int(number))


# By partition, (offset, record) in the order of reading.
Log = dict[int, list[tuple[int, Record]]]


class Life(NamedTuple):
    """One process of a client owns its transactional id: when it claimed the id, and when it had it.

    Another life is later for sure only if its claim began when this one had the id already.
    """

    transactional_id: str
    producer: str
    claimed: float
    owned: float
    first_transaction: int


class TransactionHistory:
    """The transactions of all producers, by (producer, transaction).

    `sent` has the records of each, `committing` those whose commit was asked for, and `committed` and `aborted` those
    whose end was acknowledged. A transaction that is in `committing` alone may have ended either way; its value is the
    time at which the commit was asked for.
    """

    def __init__(self) -> None:
        self.sent: dict[tuple[str, int], list[Record]] = {}
        self.committing: dict[tuple[str, int], float] = {}
        self.committed: set[tuple[str, int]] = set()
        self.aborted: set[tuple[str, int]] = set()
        self.lives: list[Life] = []

    def take(self, producer: str, events: Iterable[dict]) -> None:
        """Add the events of one producer."""
        following = 0
        for event in events:
            if "owns" in event:
                self.lives.append(Life(event["owns"], producer, event["claimed"], event["at"], following))
            if "begin" in event:
                following = event["begin"] + 1
                records = [Record(partition, producer, event["begin"], number) for partition, number in event["sent"]]
                self.sent[producer, event["begin"]] = records
            if "committing" in event:
                self.committing[producer, event["committing"]] = event["at"]
            for name in ("committed", "aborted"):
                if name in event:
                    getattr(self, name).add((producer, event[name]))

    def faults(self, log: Log, readers: dict[str, Log]) -> list[str]:
        """What is wrong with the whole log and with what each reader was given; the first word names the fault.

        The log and the readers are read_committed. Readers may end before the log does.
        """
        return [
            *self._wrong_records(log),
            *self._wrong_transactions(log),
            *self._wrong_order(log),
            *self._two_owners(log),
            *(fault for name, seen in readers.items() for fault in self._wrong_reads(name, seen, log)),
        ]

    def _is_aborted(self, record: Record) -> bool:
        name = (record.producer, record.transaction)
        return name in self.aborted or name not in self.committing

    def _wrong_records(self, log: Log) -> Iterator[str]:
        sent = {record for records in self.sent.values() for record in records}
        counts = Counter(record for entries in log.values() for _, record in entries)
        for record, count in counts.items():
            if record not in sent:
                yield f"unknown: {record} was never sent"
            elif self._is_aborted(record):
                yield f"dirty: {record} was not committed"
            if count > 1:
                yield f"doubled: {record} occurs {count} times"

    def _wrong_transactions(self, log: Log) -> Iterator[str]:
        found = {record for entries in log.values() for _, record in entries}
        for name, records in self.sent.items():
            missing = [record for record in records if record not in found]
            if missing and name in self.committed:
                yield f"lost: {missing[0]} was committed, and {len(missing)} of {len(records)} records are missing"
            elif 0 < len(missing) < len(records) and name in self.committing and name not in self.aborted:
                yield f"fractured: {len(missing)} of {len(records)} records of {name} are missing"

    def _wrong_order(self, log: Log) -> Iterator[str]:
        for partition, entries in log.items():
            offsets = [offset for offset, _ in entries]
            if offsets != sorted(set(offsets)):
                yield f"reordered: the offsets of partition {partition} do not grow"
            last: dict[str, tuple[int, int]] = {}
            for offset, record in entries:
                place = (record.transaction, record.number)
                if place < last.get(record.producer, place):
                    yield f"reordered: {record} at {offset} comes after {last[record.producer]}"
                last[record.producer] = place

    def _life_of(self, producer: str, transaction: int) -> Life | None:
        """The process that began the transaction."""
        lives = [life for life in self.lives if life.producer == producer and life.first_transaction <= transaction]
        return max(lives, key=lambda life: life.owned, default=None)

    def _two_owners(self, log: Log) -> Iterator[str]:
        """Who has claimed a transactional id fences the one before: it commits nothing more.

        So its records are before those of the later one in every partition.
        """
        of = {name: life for name in self.sent if (life := self._life_of(*name)) is not None}
        later = {life: [each for each in self.lives if _is_later(each, life)] for life in self.lives}
        for name in self.committed & of.keys():
            for other in later[of[name]]:
                if self.committing[name] > other.owned:
                    yield f"two owners: {name} was committed when {other.producer} had its transactional id"
        for partition, entries in log.items():
            seen: dict[Life, Record] = {}
            last: dict[str, Life] = {}
            for offset, record in entries:
                life = of.get((record.producer, record.transaction))
                if life is None or last.get(life.transactional_id) is life:
                    continue
                for other in later[life]:
                    if other in seen:
                        yield f"two owners: {record} at {offset} of {partition} comes after {seen[other]}"
                seen[life] = record
                last[life.transactional_id] = life

    def _wrong_reads(self, name: str, seen: Log, log: Log) -> Iterator[str]:
        """A reader was given the log's first records, each at its offset and once, and nothing else."""
        for partition, reads in seen.items():
            entries = log.get(partition, [])
            if reads == entries[: len(reads)]:
                continue
            wrong = next(index for index, read in enumerate(reads) if read not in entries[index : index + 1])
            offset, record = reads[wrong]
            expected = entries[wrong] if wrong < len(entries) else None
            if record not in {record for _, record in entries}:
                kind = "dirty"
            elif expected is not None and offset > expected[0]:
                kind = "skipped"
            else:
                kind = "repeated"
            yield f"{kind}: {name} was given {record} at {offset} of {partition}, where the log has {expected}"


def _is_later(one: Life, other: Life) -> bool:
    return one.transactional_id == other.transactional_id and one.claimed > other.owned


def faults_of_copiers(events: dict[str, Iterable[dict]]) -> list[str]:
    """What is wrong with the offsets that the members of a group committed: each of them is one member's, once."""
    copied = sorted(
        (partition, first, end, name)
        for name, each in events.items()
        for event in each
        for partition, first, end in event.get("copied", ())
    )
    return [
        f"two owners: {name} copied {first} to {end} of partition {partition}, and {other} went to {before_end}"
        for (before, _, before_end, other), (partition, first, end, name) in pairwise(copied)
        if before == partition and first < before_end
    ]


def faults_of_copy(log: Log, copy: Log) -> list[str]:
    """What is wrong with a copy that has each record of the log once, in its partition and in its order."""
    faults = []
    for partition in {*log, *copy}:
        wanted = [record for _, record in log.get(partition, [])]
        found = [record for _, record in copy.get(partition, [])]
        counts = Counter(found)
        faults += [f"doubled: {record} was copied {count} times" for record, count in counts.items() if count > 1]
        faults += [f"lost: {record} was not copied" for record in wanted if record not in counts]
        faults += [f"dirty: {record} was copied" for record in counts.keys() - set(wanted)]
        if found != wanted and sorted(found) == sorted(wanted):
            faults.append(f"reordered: the records of partition {partition} were copied in another order")
    return faults


def faults_of_offsets(observed: Iterable[dict[int, int]]) -> list[str]:
    """What is wrong with a group's committed offsets by partition, observed one after the other: they only grow."""
    faults = []
    last: dict[int, int] = {}
    for offsets in observed:
        for partition, offset in offsets.items():
            if offset < last.get(partition, offset):
                faults.append(f"back: the offset of partition {partition} went from {last[partition]} to {offset}")
            last[partition] = offset
    return faults


def events_of(path: Path) -> list[dict]:
    """The events in a client's file; a line without its line end was still being written when the client was killed."""
    text = path.read_text() if path.exists() else ""
    return [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]


def log_of(events: Iterable[dict]) -> Log:
    """What a reader was given, from its events."""
    log: Log = defaultdict(list)
    for event in events:
        for partition, offset, value in event.get("reads", ()):
            log[partition].append((offset, parsed(partition, value)))
    return log
