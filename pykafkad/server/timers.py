"""Timers as data: a heap of (when, key), with replacing and cancelling by key."""

from __future__ import annotations

from heapq import heapify, heappop, heappush


class Timers:
    """Keys are hashable and unique; setting a key again moves its timer. What a due key means is the caller's."""

    __slots__ = ("_at", "_heap", "_sequence")

    def __init__(self) -> None:
        self._at: dict[object, tuple[float, int]] = {}
        self._heap: list[tuple[float, int, object]] = []
        self._sequence = 0

    def __len__(self) -> int:
        return len(self._at)

    def set(self, key: object, at: float) -> None:
        """Fire `key` at monotonic second `at`, instead of any earlier arrangement for it."""
        self._sequence += 1
        self._at[key] = (at, self._sequence)
        heappush(self._heap, (at, self._sequence, key))
        # Replaced and cancelled entries stay in the heap until they surface; rebuilding when they are the
        # majority keeps its size proportional to the live timers.
        if len(self._heap) > 64 and len(self._heap) > 4 * len(self._at):
            self._heap = [(due, sequence, each) for each, (due, sequence) in self._at.items()]
            heapify(self._heap)

    def cancel(self, key: object) -> None:
        """Forget `key`; unknown keys are fine."""
        self._at.pop(key, None)

    def next_at(self) -> float | None:
        """When the earliest timer is due, or None."""
        heap = self._heap
        while heap:
            at, sequence, key = heap[0]
            if self._at.get(key) == (at, sequence):
                return at
            heappop(heap)
        return None

    def due(self, now: float) -> list[object]:
        """Take the keys whose time has come, earliest first."""
        fired = []
        while (at := self.next_at()) is not None and at <= now:
            key = heappop(self._heap)[2]
            del self._at[key]
            fired.append(key)
        return fired
