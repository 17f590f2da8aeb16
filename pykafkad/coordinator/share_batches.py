"""Ranges of records of a share partition with one delivery state each, and how two lists of them become one (KIP-932).

A share partition reports only the ranges that changed. The share coordinator overlays them on those that it has. Where
two ranges overlap, the higher delivery count wins, and with equal counts the higher delivery state: both only rise."""

from __future__ import annotations

from collections import namedtuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

AVAILABLE = 0
ACQUIRED = 1
ACKNOWLEDGED = 2
ARCHIVED = 4
"""Kafka reserves 3 (archiving), which nothing uses."""

TERMINAL = (ACKNOWLEDGED, ARCHIVED)
NO_START_OFFSET = -1


class StateBatch(namedtuple("StateBatch", ("first_offset", "last_offset", "delivery_state", "delivery_count"))):
    """The records from `first_offset` to `last_offset`, both inclusive, which were delivered `delivery_count` times."""

    __slots__ = ()

    @property
    def rank(self) -> tuple[int, int]:
        """What decides between overlapping batches: the higher rank is newer."""
        return self.delivery_count, self.delivery_state


def of_message(row: object) -> StateBatch:
    """The batch of a request's or record's StateBatch row."""
    return StateBatch(row.first_offset, row.last_offset, row.delivery_state, row.delivery_count)  # type: ignore[attr-defined]


def combine(known: Iterable[StateBatch], news: Iterable[StateBatch], start_offset: int) -> list[StateBatch]:
    """Both lists as one, in the order of the offsets, without overlaps. Neighbours with the same state are one batch.
    What lies before `start_offset` is left out, unless that is NO_START_OFFSET."""
    kept = []
    for batch in (*known, *news):
        if start_offset != NO_START_OFFSET and batch.first_offset < start_offset:
            if batch.last_offset < start_offset:
                continue
            batch = batch._replace(first_offset=start_offset)
        kept.append(batch)
    if len(kept) < 2:
        return kept
    kept.sort()
    result: list[StateBatch] = []
    for batch in kept:
        _overlay(result, batch)
    return result


def _overlay(result: list[StateBatch], batch: StateBatch) -> None:
    """Add a batch to those of `result`, none of which begins after it but pieces of which may lie behind its start."""
    overlapped = []
    while result and result[-1].last_offset >= batch.first_offset:
        overlapped.append(result.pop())
    at = batch.first_offset
    for piece in reversed(overlapped):
        _add(result, piece, piece.first_offset, batch.first_offset - 1)
        _add(result, batch, at, min(piece.first_offset - 1, batch.last_offset))
        winner = max(piece, batch, key=lambda each: each.rank)
        _add(result, winner, max(piece.first_offset, at), min(piece.last_offset, batch.last_offset))
        _add(result, piece, max(piece.first_offset, batch.last_offset + 1), piece.last_offset)
        at = piece.last_offset + 1
    _add(result, batch, at, batch.last_offset)


def _add(result: list[StateBatch], batch: StateBatch, first_offset: int, last_offset: int) -> None:
    """Add a part of a batch at the end. It may be empty."""
    if first_offset > last_offset:
        return
    if result:
        last = result[-1]
        if last.last_offset + 1 == first_offset and last.rank == batch.rank:
            result[-1] = last._replace(last_offset=last_offset)
            return
    result.append(batch._replace(first_offset=first_offset, last_offset=last_offset))
