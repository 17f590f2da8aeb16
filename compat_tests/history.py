"""A history of what producers sent and what was acknowledged, and the checks of a log against it."""

from __future__ import annotations

import threading
from collections import defaultdict
from typing import NamedTuple


class Sent(NamedTuple):
    """One record: its partition, its producer, and that producer's number for it."""

    partition: int
    producer: str
    number: int


class History:
    """The records sent, and the offset at which the broker acknowledged each; producers fill it in their threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.sent: set[Sent] = set()
        self.acknowledged: dict[Sent, int | None] = {}

    def send(self, record: Sent) -> None:
        """Called before a record is sent."""
        with self._lock:
            self.sent.add(record)

    def acknowledge(self, record: Sent, offset: int | None) -> None:
        """Called when the broker has acknowledged the record. Without an offset a broker has said that it has the
        record already, which it was sent twice."""
        with self._lock:
            assert record not in self.acknowledged, f"{record} was acknowledged twice"
            self.acknowledged[record] = offset

    def check(self, log: dict[int, list[tuple[int, Sent]]], idempotent: set[str]) -> None:
        """Compare with the log: for each partition, (offset, record) in the order in which they were read.

        Every acknowledged record is at its offset, no record was never sent, and offsets only grow. Acknowledged
        records of one producer keep their order, and records of a producer in `idempotent` occur at most once.
        """
        for partition, entries in log.items():
            offsets = [offset for offset, _ in entries]
            assert offsets == sorted(set(offsets)), f"offsets of partition {partition} do not grow"
            at = dict(entries)
            there = set(at.values())
            for record, offset in self.acknowledged.items():
                if record.partition == partition and offset is None:
                    assert record in there, f"{record} was acknowledged, and is not there"
                elif record.partition == partition:
                    assert at.get(offset) == record, (
                        f"{record} was acknowledged at {offset}, which holds {at.get(offset)}"
                    )
            unknown = [record for record in at.values() if record not in self.sent]
            assert not unknown, f"partition {partition} holds records that were never sent: {unknown[:3]}"
            self._check_producers(entries, idempotent)

    def _check_producers(self, entries: list[tuple[int, Sent]], idempotent: set[str]) -> None:
        numbers: dict[str, list[int]] = defaultdict(list)
        for _, record in entries:
            if record.producer in idempotent or record in self.acknowledged:
                numbers[record.producer].append(record.number)
        for producer, found in numbers.items():
            if producer in idempotent:
                assert len(found) == len(set(found)), f"records of {producer} are doubled"
                assert found == sorted(found), f"records of {producer} are out of order"
