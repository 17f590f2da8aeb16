"""Partitions that are still to be brought in step with the metadata, a few per turn of the loop.

A new one takes a folder and a file, so thousands at once would keep everybody waiting for a second. One with another
leader or ISR takes far less, but thousands of them change together when a broker dies. Whoever asks for a partition
that waits gets it at once; who asked for the change is answered when all of them are done."""

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

ROLES_AT_ONCE = 64
"""Partitions with a log whose new state one change of the metadata adopts before it returns."""

ROLES_PER_TURN = 128

_GO_ON = "go on with partitions"


class PendingPartitions:
    """The partitions `(topic, index)` that wait, in the order of their creation; at most as many as the image has.

    `plan(key)` has `fired` called in a later turn; `now()` is monotonic; `make(topic, index)` does what is to be done
    for one that was taken out of here. A turn does it for `per_turn` of them at most."""

    __slots__ = ("_answers", "_make", "_now", "_order", "_per_turn", "_plan", "added", "asked", "waiting")

    def __init__(
        self,
        plan: Callable[[object], None],
        now: Callable[[], float],
        make: Callable[[str, int], object],
        per_turn: int = PER_TURN,
    ) -> None:
        self._plan = plan
        self._now = now
        self._make = make
        self._per_turn = per_turn
        self.waiting: set[tuple[str, int]] = set()
        # All that wait, and some that no longer do.
        self._order: deque[tuple[str, int]] = deque()
        self._answers: deque[tuple[int, Callable[[], object]]] = deque()
        self.added = 0
        """How many have ever been put into the order."""
        self.asked = 0
        """How often `add` has been called."""

    def __len__(self) -> int:
        return len(self.waiting)

    def add(self, topic: str, index: int) -> None:
        """This one can wait. One that waits already keeps its place."""
        self.asked += 1
        if (topic, index) in self.waiting:
            return
        if not self._order:
            self._plan((self, _GO_ON))
        self.waiting.add((topic, index))
        self._order.append((topic, index))
        self.added += 1

    def take(self, topic: str, index: int) -> bool:
        """Whether it waited; now it does not: the caller does what is to be done, or its topic is gone."""
        if (topic, index) not in self.waiting:
            return False
        self.waiting.discard((topic, index))
        return True

    def after(self, answer: Callable[[], object]) -> None:
        """Call `answer` when all that wait now are done."""
        if self._order:
            self._answers.append((self.added, answer))
        else:
            answer()

    def finish(self) -> None:
        """Do all of them."""
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
        for _ in range(min(self._per_turn, len(order))):
            key = order.popleft()
            if self.take(*key):
                self._make(*key)
                if self._now() >= deadline:
                    break
        while answers and answers[0][0] <= self.added - len(order):
            answers.popleft()[1]()
