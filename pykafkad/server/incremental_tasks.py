"""Requests that take long: served a little in each turn of the loop, so that everybody else goes on meanwhile.

A handler that goes through what may be thousands of rows is a generator: it yields after each, and returns what other
handlers return. A long request is read, and a long answer written, in the same way, by the incremental forms of their
codecs. What such a handler sees may change between two of its rows, and of a request whose connection ends meanwhile
the rest is not done."""

from __future__ import annotations

from collections import deque

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from types import ModuleType
    from typing import Any

    from pykafkad.server.connection import Connection
    from pykafkad.server.runtime import Runtime

BUDGET_SECONDS = 0.003
"""What all that are under way get of a turn together; the step that exceeds it is a fraction of a millisecond."""

FIRST_SECONDS = 0.0005
"""What each new one gets of its first turn in any case: nearly all are done in that."""

WAITING_SECONDS = 0.001
"""What those that wait get of every turn, however much of it new ones and others took."""

# A timer that is due after the turn in which it is set, and so no more than once in each.
_MOMENT_SECONDS = 1e-6

PAUSE_SECONDS = 60.0
"""How long the collector may be left out: without it nothing that refers to itself is freed."""

_GO_ON = "go on with long requests"


class IncrementalTask:
    """A generator that works for the request in service of a connection, or, with None, for the broker itself; `then`
    gets what it returns, or `failed` what it raises."""

    __slots__ = ("_failed", "_generator", "_then", "connection")

    def __init__(
        self,
        connection: Connection | None,
        generator: Generator[object, None, object],
        then: Callable[[Any], None],
        failed: Callable[[Exception], None],
    ) -> None:
        self.connection = connection
        self._generator = generator
        self._then = then
        self._failed = failed

    def step(self) -> bool:
        """Go on to the next yield; whether it has ended."""
        try:
            next(self._generator)
        except StopIteration as stop:
            self._then(stop.value)
        except Exception as error:
            self._failed(error)
        else:
            return False
        return True

    def drop(self) -> None:
        """Nobody waits for it any more."""
        self._generator.close()


class IncrementalTasks:
    """The jobs of a node that are under way, at most one for each connection, one of the controller's, and those of
    coordinators: one for each partition that is loaded, and one for each group whose target is computed.

    The collector of garbage, if it is handed in as `collector`, is out of service while there are any: it would look at
    all their rows again and again, for a tenth of a second with a hundred thousand of them, and they are freed without
    it."""

    __slots__ = ("_collects_at", "_runtime", "_turn", "_until", "_waiting", "collector")

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._waiting: deque[IncrementalTask] = deque()
        self._turn = -1.0
        self._until = 0.0
        self._collects_at = 0.0
        self.collector: ModuleType | None = None

    def __len__(self) -> int:
        return len(self._waiting)

    def begin(self, job: IncrementalTask) -> bool:
        """Work as long as this turn has time for it; whether the job has ended."""
        now = self._runtime.clock.now()
        if self._work(job, max(self._turn_ends(now), now + FIRST_SECONDS)):
            return True
        self.add(job)
        return False

    def add(self, job: IncrementalTask) -> None:
        """Begin with it when it is its turn."""
        if not self._waiting:
            self._plan()
            self._collects_at = self._runtime.clock.now() + PAUSE_SECONDS
            if self.collector is not None:
                self.collector.disable()
        self._waiting.append(job)

    def fired(self, _key: str) -> None:
        """The part of this turn: the one that has waited longest is the first."""
        now = self._runtime.clock.now
        began = now()
        until = max(self._turn_ends(began), began + WAITING_SECONDS)
        try:
            for _ in range(len(self._waiting)):
                self._go_on(until)
                if now() >= until:
                    break
        finally:
            if self._waiting:
                self._plan()
            if self.collector is not None and (not self._waiting or began >= self._collects_at):
                self.collector.enable()

    def finish(self, deadline: float) -> None:
        """Go on with all of them until they have ended or it is `deadline`."""
        while self._waiting and self._runtime.clock.now() < deadline:
            self._go_on(deadline)
        if self.collector is not None:
            self.collector.enable()

    def _plan(self) -> None:
        self._runtime.timers.set((self, _GO_ON), self._runtime.now + _MOMENT_SECONDS)

    def _turn_ends(self, now: float) -> float:
        """Until when there is time in this turn."""
        if self._turn != self._runtime.now:
            self._turn = self._runtime.now
            self._until = now + BUDGET_SECONDS
        return self._until

    def _go_on(self, until: float) -> None:
        job = self._waiting.popleft()
        connection = job.connection
        if connection is not None and connection.close_reason is not None:
            job.drop()
            return
        try:
            if not self._work(job, until):
                self._waiting.append(job)
            elif connection is not None:
                # What came behind it meanwhile found nothing parked to end.
                connection.owner.overtaken(connection)
        except Exception:
            # A bug in what follows the job: nobody else would end the connection.
            if connection is not None:
                connection.close("unexpected error")
            raise

    def _work(self, job: IncrementalTask, until: float) -> bool:
        now, step = self._runtime.clock.now, job.step
        while not step():
            if now() >= until:
                return False
        return True
