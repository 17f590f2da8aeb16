"""Delayed operations as values: what they watch, until when, and how to try again.

An operation is any object with

* `keys`: the hashable things it watches (a log, a topic name);
* `deadline`: the monotonic second at which it ends anyway;
* `attempt(now)`: the answer, or None while it must go on waiting;
* `expire(now)`: the answer at the deadline;
* `ends_early`: whether a request that arrives behind it on its connection ends it (true for Fetch, whose wait is a
  maximum).

An answer may be a generator that gives it in steps, or the operation once more. An operation that watches too much to
be kept by each of its keys *listens*: it is told of every key that is touched.

Touching a key only marks the operations that watch it. They are retried once per turn, and never inside the call stack
of the code that touched. The number of retries per turn is limited: when an append wakes ten thousand fetches, other
requests are served in between."""

from __future__ import annotations

from collections import deque
from heapq import heapify, heappop, heappush

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable
    from typing import Any, Protocol

    class DelayedOperation(Protocol):
        """See the module."""

        ends_early: bool

        @property
        def keys(self) -> Iterable[Hashable]: ...

        @property
        def deadline(self) -> float: ...

        def attempt(self, now: float) -> object: ...

        def expire(self, now: float) -> object: ...

    class ListeningOperation(DelayedOperation, Protocol):
        """A delayed operation that may listen."""

        def is_touched_by(self, key: Hashable) -> bool: ...


class PurgatoryEntry:
    """One operation with the token of the request that it will answer."""

    __slots__ = ("done", "marked", "operation", "token")

    def __init__(self, token: object, operation: DelayedOperation) -> None:
        self.token = token
        self.operation = operation
        self.done = False
        self.marked = False

    def __repr__(self) -> str:
        return f"PurgatoryEntry({self.operation!r}, {'done' if self.done else 'waiting'})"


class Purgatory:
    """All delayed operations of a node. `complete(token, message)` is called with each answer, `failed(token, error)`
    for an operation that raised instead of answering: a bug, which must end that request and no other."""

    __slots__ = ("_by_key", "_complete", "_failed", "_heap", "_listening", "_marked", "_sequence", "_touched", "count")

    def __init__(self, complete: Callable[[object, object], None], failed: Callable[[object, Exception], None]) -> None:
        self._complete = complete
        self._failed = failed
        self._by_key: dict[Hashable, dict[PurgatoryEntry, None]] = {}
        self._heap: list[tuple[float, int, PurgatoryEntry]] = []
        self._touched: list[Hashable] = []
        self._marked: deque[PurgatoryEntry] = deque()
        self._listening: dict[ListeningOperation, None] = {}
        self._sequence = 0
        self.count = 0

    def park(self, token: object, operation: DelayedOperation) -> PurgatoryEntry:
        """Keep `operation` until it can answer; the caller has already tried it once."""
        delayed = PurgatoryEntry(token, operation)
        for key in operation.keys:
            self._by_key.setdefault(key, {})[delayed] = None
        self._sequence += 1
        heappush(self._heap, (operation.deadline, self._sequence, delayed))
        self.count += 1
        if len(self._heap) > 64 and len(self._heap) > 4 * self.count:
            self._heap = [entry for entry in self._heap if not entry[2].done]
            heapify(self._heap)
        return delayed

    def touch(self, key: Hashable) -> None:
        """Something that waits for `key` may now be able to answer."""
        if key in self._by_key:
            self._touched.append(key)
        if self._listening:
            operation: Any
            for operation in self._listening:
                if operation.is_touched_by(key) and operation in self._by_key:
                    self._touched.append(operation)

    def listen(self, operation: ListeningOperation) -> None:
        """Tell `operation.is_touched_by(key)` of all that is touched, delayed or not, until it is ignored; the
        operation is its own only key."""
        if operation not in self._listening:
            self._listening[operation] = None
            self.count += 1

    def ignore(self, operation: object) -> None:
        """End that; fine if it does not listen."""
        if operation in self._listening:
            del self._listening[operation]
            self.count -= 1

    @property
    def is_behind(self) -> bool:
        """Whether touched waits are left to be tried."""
        return bool(self._marked)

    @property
    def is_touched(self) -> bool:
        """Whether something was touched since the last `retry`."""
        return bool(self._touched)

    def retry(self, now: float, limit: int) -> int:
        """Try every touched operation once, at most `limit` of them; how many were tried. The rest are the first of the
        next call."""
        marked = self._marked
        if self._touched:
            touched, self._touched = self._touched, []
            for key in dict.fromkeys(touched):
                for delayed in self._by_key.get(key, ()):
                    if not delayed.marked:
                        delayed.marked = True
                        marked.append(delayed)
        tried = 0
        while marked and tried < limit:
            delayed = marked.popleft()
            # Touched again while it is tried, it is tried again.
            delayed.marked = False
            if not delayed.done:
                self._try(delayed, delayed.operation.attempt, now)
                tried += 1
        return tried

    def end_early(self, delayed: PurgatoryEntry, now: float) -> None:
        """Answer with what there is: another request waits behind this one."""
        if not delayed.done:
            self._try(delayed, delayed.operation.expire, now)

    def discard(self, delayed: PurgatoryEntry) -> None:
        """Drop an operation whose connection is gone."""
        self.ignore(delayed.operation)
        if not delayed.done:
            self._forget(delayed)

    def next_deadline(self) -> float | None:
        """When the earliest operation expires, or None."""
        heap = self._heap
        while heap and heap[0][2].done:
            heappop(heap)
        return heap[0][0] if heap else None

    def expire(self, now: float, limit: int | None = None) -> int:
        """Answer every operation whose deadline has passed, at most `limit` of them; how many there were."""
        count = 0
        while count != limit and (deadline := self.next_deadline()) is not None and deadline <= now:
            delayed = heappop(self._heap)[2]
            self._try(delayed, delayed.operation.expire, now)
            count += 1
        return count

    def _try(self, delayed: PurgatoryEntry, answer: Callable[[float], object], now: float) -> None:
        try:
            message = answer(now)
        except Exception as error:
            self._forget(delayed)
            self._failed(delayed.token, error)
            return
        if message is not None:
            self._forget(delayed)
            self._complete(delayed.token, message)

    def _forget(self, delayed: PurgatoryEntry) -> None:
        delayed.done = True
        self.count -= 1
        for key in delayed.operation.keys:
            watching = self._by_key.get(key)
            if watching is not None:
                watching.pop(delayed, None)
                if not watching:
                    del self._by_key[key]
