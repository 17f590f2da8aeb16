"""The voters and the level of kraft.version, by the offsets of the control records that say so (KIP-853).

A set of voters counts from the moment in which its record is in the log, committed or not. When the log is cut before
it, the set before it counts again."""

from __future__ import annotations

from pykafkad.metadata import voters as voter_set
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from pykafkad.metadata.voters import Voter

# The offset of records that a directory was formatted with, before there was a log.
FORMATTED = -1
NOWHERE = -2


class VoterSets:
    """`first` are the voters that count while there are none in the log."""

    __slots__ = ("_levels", "_sets", "first")

    def __init__(self, first: list[Voter]) -> None:
        self.first = first
        self._sets: list[tuple[int, list[Voter]]] = []
        self._levels: list[tuple[int, int]] = []

    @property
    def voters(self) -> list[Voter]:
        """Those of the newest record."""
        return self._sets[-1][1] if self._sets else self.first

    def may_count(self, high_watermark: int) -> list[Voter]:
        """All that are in a set which counts or may count again: the newest, and those before what is not committed."""
        found: list[Voter] = []
        for offset, voters in reversed(self._sets):
            found += voters
            if offset < high_watermark:
                return found
        return found + self.first

    @property
    def offset(self) -> int:
        """Where the newest record with voters is: FORMATTED before the log, NOWHERE without any."""
        return self._sets[-1][0] if self._sets else NOWHERE

    @property
    def level(self) -> int:
        """The level of kraft.version: with 0 the voters are those of the settings, with 1 those of the log."""
        return self._levels[-1][1] if self._levels else 0

    def added(self, offset: int, message: Any) -> None:
        """A control record is in the log. Those that say nothing of voters are passed over."""
        if type(message) is messages.VotersRecord:
            self._sets.append((offset, voter_set.from_records(message.voters)))
        elif type(message) is messages.KRaftVersionRecord:
            self._levels.append((offset, message.k_raft_version))

    def truncated(self, end_offset: int) -> None:
        """The log was cut: what was at `end_offset` and after it counts no more."""
        _cut(self._sets, end_offset)
        _cut(self._levels, end_offset)

    def pruned(self, start_offset: int) -> None:
        """The log begins at a snapshot, which has the newest record before it."""
        _prune(self._sets, start_offset)
        _prune(self._levels, start_offset)

    def replaced(self, found: Iterable[object], end_offset: int) -> None:
        """A snapshot with these control records took the place of the log."""
        self._sets.clear()
        self._levels.clear()
        for message in found:
            self.added(end_offset - 1, message)

    def before(self, end_offset: int) -> list[object]:
        """The control records that a snapshot of everything before `end_offset` has."""
        levels = [level for offset, level in self._levels if offset < end_offset]
        sets = [voters for offset, voters in self._sets if offset < end_offset]
        found: list[object] = []
        if levels and levels[-1]:
            found.append(messages.KRaftVersionRecord(version=0, k_raft_version=levels[-1]))
        if sets:
            found.append(voter_set.to_record(sets[-1]))
        return found


def _cut(history: list[tuple[int, Any]], end_offset: int) -> None:
    while history and history[-1][0] >= end_offset:
        history.pop()


def _prune(history: list[tuple[int, Any]], start_offset: int) -> None:
    older = [each for each in history if each[0] < start_offset]
    del history[: max(0, len(older) - 1)]
