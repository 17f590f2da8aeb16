"""Logs of new partitions that are still to be made, a few per turn of the loop.

Each takes a folder and a file, so thousands at once would keep everybody waiting for a second. Whoever asks for a log
that waits gets it at once; who asked for the partitions is answered when all of them have their logs."""

from __future__ import annotations

from collections import deque

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

AT_ONCE = 32
"""Logs that one change of the metadata makes before it returns."""

PER_TURN = 16
BUDGET_SECONDS = 0.003
"""A slow disk gets less than `PER_TURN` done in a turn."""

_GO_ON = "open logs"


class PendingPartitions:
    """The partitions `(topic, index)` that wait, in the order of their creation; at most as many as the image has.

    `plan(key)` has `fired` called in a later turn; `now()` is monotonic; `make(topic, index)` makes a log that was
    taken out of here."""

    __slots__ = ("_answers", "_make", "_now", "_order", "_plan", "_waiting", "added")

    def __init__(
        self, plan: Callable[[object], None], now: Callable[[], float], make: Callable[[str, int], object]
    ) -> None:
        self._plan = plan
        self._now = now
        self._make = make
        self._waiting: set[tuple[str, int]] = set()
        # All that wait, and some that no longer do.
        self._order: deque[tuple[str, int]] = deque()
        self._answers: deque[tuple[int, Callable[[], object]]] = deque()
        self.added = 0
        """How many have ever been added."""

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, topic: str, index: int) -> None:
        """This one can wait."""
        if not self._order:
            self._plan((self, _GO_ON))
        self._waiting.add((topic, index))
        self._order.append((topic, index))
        self.added += 1

    def take(self, topic: str, index: int) -> bool:
        """Whether it waited; now it does not: its log is made by the caller, or its topic is gone."""
        if (topic, index) not in self._waiting:
            return False
        self._waiting.discard((topic, index))
        return True

    def after(self, answer: Callable[[], object]) -> None:
        """Call `answer` when all that wait now have their logs."""
        if self._order:
            self._answers.append((self.added, answer))
        else:
            answer()

    def finish(self) -> None:
        """Make all of them."""
        while self._order:
            self._make_some()

    def fired(self, _key: str) -> None:
        """The part of this turn."""
        try:
            self._make_some()
        finally:
            if self._order:
                self._plan((self, _GO_ON))

    def _make_some(self) -> None:
        order, answers = self._order, self._answers
        deadline = self._now() + BUDGET_SECONDS
        for _ in range(min(PER_TURN, len(order))):
            key = order.popleft()
            if self.take(*key):
                self._make(*key)
                if self._now() >= deadline:
                    break
        while answers and answers[0][0] <= self.added - len(order):
            answers.popleft()[1]()
