"""Parked operations as values: what they watch, until when, and how to try again.

A wait is any object with

* `keys`: the hashable things it watches (a log, a topic name);
* `deadline`: the monotonic second at which it ends anyway;
* `attempt(now)`: the answer, or None while it must go on waiting;
* `expire(now)`: the answer at the deadline;
* `ends_early`: whether a request that arrives behind it on its connection ends it (true for Fetch: its wait is a maximum).

An answer may be a generator that gives it in steps, or the wait once more. One that watches too much to be kept by each of its keys
*listens*: it is told of all that is touched.

Touching a key only marks; the retry happens once per turn, never inside the call stack of what touched. A turn tries so many
and no more: when an append wakes ten thousand fetches, the others that the broker serves get their turns in between.
"""

from __future__ import annotations

from collections import deque
from heapq import heapify, heappop, heappush

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable


class Parked:
    """One wait with the token of the request that it will answer."""

    __slots__ = ("done", "marked", "token", "wait")

    def __init__(self, token: object, wait: object) -> None:
        self.token = token
        self.wait = wait
        self.done = False
        self.marked = False

    def __repr__(self) -> str:
        return f"Parked({self.wait!r}, {'done' if self.done else 'waiting'})"


class Waits:
    """All parked operations of a node. `complete(token, message)` is called with each answer, `failed(token, error)` for a
    wait that raised instead of answering: a bug, which must end that request and no other."""

    __slots__ = ("_by_key", "_complete", "_failed", "_heap", "_listening", "_marked", "_sequence", "_touched", "count")

    def __init__(self, complete: Callable[[object, object], None], failed: Callable[[object, Exception], None]) -> None:
        self._complete = complete
        self._failed = failed
        self._by_key: dict[Hashable, dict[Parked, None]] = {}
        self._heap: list[tuple[float, int, Parked]] = []
        self._touched: list[Hashable] = []
        self._marked: deque[Parked] = deque()
        self._listening: dict[object, None] = {}
        self._sequence = 0
        self.count = 0

    def park(self, token: object, wait: object) -> Parked:
        """Keep `wait` until it can answer; the caller has already tried it once."""
        parked = Parked(token, wait)
        for key in wait.keys:
            self._by_key.setdefault(key, {})[parked] = None
        self._sequence += 1
        heappush(self._heap, (wait.deadline, self._sequence, parked))
        self.count += 1
        if len(self._heap) > 64 and len(self._heap) > 4 * self.count:
            self._heap = [entry for entry in self._heap if not entry[2].done]
            heapify(self._heap)
        return parked

    def touch(self, key: Hashable) -> None:
        """Something that waits for `key` may now be able to answer."""
        if key in self._by_key:
            self._touched.append(key)

    def listen(self, wait: object) -> None:
        """Tell `wait.is_touched_by(key)` of all that is touched, parked or not, until it is ignored; the wait is its own only key."""
        if wait not in self._listening:
            self._listening[wait] = None
            self.count += 1
            # Touching costs no more than before as long as nobody listens.
            self.__class__ = _Heard

    def ignore(self, wait: object) -> None:
        """End that; fine if it does not listen."""
        if wait in self._listening:
            del self._listening[wait]
            self.count -= 1
            if not self._listening:
                self.__class__ = Waits

    @property
    def is_behind(self) -> bool:
        """Whether touched waits are left to be tried."""
        return bool(self._marked)

    def retry(self, now: float, limit: int) -> int:
        """Try every touched wait once, at most `limit` of them; how many were tried. The rest are the first of the next call."""
        marked = self._marked
        if self._touched:
            touched, self._touched = self._touched, []
            for key in dict.fromkeys(touched):
                for parked in self._by_key.get(key, ()):
                    if not parked.marked:
                        parked.marked = True
                        marked.append(parked)
        tried = 0
        while marked and tried < limit:
            parked = marked.popleft()
            # Touched again while it is tried, it is tried again.
            parked.marked = False
            if not parked.done:
                self._try(parked, parked.wait.attempt, now)
                tried += 1
        return tried

    def end_early(self, parked: Parked, now: float) -> None:
        """Answer with what there is: another request waits behind this one."""
        if not parked.done:
            self._try(parked, parked.wait.expire, now)

    def discard(self, parked: Parked) -> None:
        """Drop a wait whose connection is gone."""
        self.ignore(parked.wait)
        if not parked.done:
            self._forget(parked)

    def next_deadline(self) -> float | None:
        """When the earliest wait expires, or None."""
        heap = self._heap
        while heap and heap[0][2].done:
            heappop(heap)
        return heap[0][0] if heap else None

    def expire(self, now: float, limit: int | None = None) -> int:
        """Answer every wait whose deadline has passed, at most `limit` of them; how many there were."""
        count = 0
        while count != limit and (deadline := self.next_deadline()) is not None and deadline <= now:
            parked = heappop(self._heap)[2]
            self._try(parked, parked.wait.expire, now)
            count += 1
        return count

    def _try(self, parked: Parked, answer: Callable[[float], object], now: float) -> None:
        try:
            message = answer(now)
        except Exception as error:  # noqa: BLE001 - see the class
            self._forget(parked)
            self._failed(parked.token, error)
            return
        if message is not None:
            self._forget(parked)
            self._complete(parked.token, message)

    def _forget(self, parked: Parked) -> None:
        parked.done = True
        self.count -= 1
        for key in parked.wait.keys:
            watching = self._by_key.get(key)
            if watching is not None:
                watching.pop(parked, None)
                if not watching:
                    del self._by_key[key]


class _Heard(Waits):
    """Waits of which some listen."""

    __slots__ = ()

    def touch(self, key: Hashable) -> None:
        Waits.touch(self, key)
        for wait in self._listening:
            if wait.is_touched_by(key):
                Waits.touch(self, wait)
