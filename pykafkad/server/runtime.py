"""What all nodes of a process share: clock, chance, disk, sockets, threads, timers, and the loop that gives turns.

A `Runtime` knows nothing of Kafka. Its nodes (`controller_node.py`, `broker.py`) take part in each turn in the order in
which they were added. Nothing here is global: a second `Runtime` in the same process shares nothing with the first."""

from __future__ import annotations

from random import Random

from pykafkad.clock import Clock
from pykafkad.disk import Disk
from pykafkad.errors import StorageFailure
from pykafkad.server.incremental_tasks import IncrementalTasks
from pykafkad.server.logs import Logs, process_logs
from pykafkad.server.metrics import Metrics
from pykafkad.server.offload import Offload
from pykafkad.server.reactor import Reactor
from pykafkad.server.replies import Replies
from pykafkad.server.timers import Timers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pykafkad.server.peer import Peers
    from pykafkad.server.peer_lines import PeerLines
    from pykafkad.server.trace import WireTrace


_STOP_SECONDS = 5.0


class RuntimeNode:
    """What a runtime asks of a node; a node overrides what concerns it."""

    def end_turn(self, now: float) -> None:
        """Do what became due in this turn, before the answers are sent."""

    def next_deadline(self) -> float | None:
        """When the node wants its next turn, in the clock's seconds; None: when something happens."""
        return None

    def stop_listening(self) -> None:
        """The process stops: take no new connections."""

    def finish_work(self) -> None:
        """The process stops: finish what is under way. It may be called again."""

    def resign(self) -> None:
        """The process stops: answer every request that waits; clients are still connected."""

    def cancel_work(self) -> None:
        """The process stops, and the answers have left: drop what the next start can do."""

    def close(self) -> None:
        """The process stops, and nobody is connected any more: write what the next start needs."""


class Runtime:
    """The surroundings of the nodes of one process. `run` gives turns until `stop`; `close` ends the nodes in order."""

    def __init__(
        self,
        *,
        clock: Clock | None = None,
        disk: Disk | None = None,
        random: Random | None = None,
        reactor: Callable[[Runtime], Reactor] = Reactor,
        logs: Logs | None = None,
    ) -> None:
        self.clock = clock or Clock()
        self.random = random or Random()
        self.disk = disk or Disk()
        self.now = self.clock.now()
        """Monotonic seconds at the start of this turn."""
        self.now_ms = self.clock.now_ms()
        """Wall-clock milliseconds at the start of this turn."""
        self.metrics = Metrics()
        shared = process_logs()
        self.logs = logs or Logs(shared.level, shared.sink)
        """What the nodes write, unless one has logs of its own."""
        self.timers = Timers()
        self.waits_per_turn = 500
        """So many delayed operations a broker tries or answers in one turn: they take 50 ms at most."""
        self.loads_per_turn = 100
        """At most so many logs of followers are opened in one turn, and the others in the next turns. These take 5 to
        10 ms."""
        self._loads = self._loads_turn = 0
        self.turns = 0
        """How many turns have begun. A node may be asked to end one turn several times, as answers lead to requests."""
        self.stopping: str | None = None
        """Why the loop ends after this turn."""
        self.has_failed = False
        """Whether it ends because the nodes cannot go on, and not because somebody wants it."""
        self.reactor = reactor(self)
        self.offload = Offload(self.reactor.wake, self.unexpected)
        # Long computations have a thread of their own, so that syncs need not wait for them.
        self.cpu_offload = Offload(self.reactor.wake, self.unexpected)
        self.tasks = IncrementalTasks(self)
        self.replies = Replies(self)
        self._peers: Peers | None = None
        self._peer_lines: PeerLines | None = None
        self.trace: WireTrace | None = None
        """What records requests and answers, if anything does."""
        self.nodes: list[RuntimeNode] = []
        """In the order of their turns; they end in the opposite order."""

    @property
    def peer_lines(self) -> PeerLines:
        """What is said of the nodes that are reached from here."""
        if self._peer_lines is None:
            from pykafkad.server.peer_lines import PeerLines

            self._peer_lines = PeerLines(self.logs)
        return self._peer_lines

    @property
    def peers(self) -> Peers:
        """Other nodes, by their ids: what performs `effects.Send`."""
        if self._peers is None:
            from pykafkad.server.peer import Peers

            self._peers = Peers(self, "pykafkad")
        return self._peers

    def run(self) -> None:
        """Turn until told to stop."""
        turn = self.reactor.turn
        while self.stopping is None:
            turn(self._timeout())

    def stop(self, reason: str) -> None:
        """End the loop after the current turn; safe from a signal handler."""
        self.stopping = reason
        self.reactor.wake()

    def fail(self, reason: str) -> None:
        """End the loop because the nodes cannot go on. Of a process that stops already it says no more."""
        if self.stopping is None:
            self.has_failed = True
            self.stop(reason)

    def close(self) -> None:
        """Stop accepting, answer what can be answered, let every node write what it must, and release everything.

        Raises StorageFailure, the first of a node that cannot end cleanly, when all that is done."""
        nodes = self.nodes[::-1]
        for node in nodes:
            node.stop_listening()
        # Twice: what one node finishes may begin tasks, and may be work for another.
        for _ in range(2):
            self.tasks.finish(self.clock.now() + _STOP_SECONDS)
            # In the order of their turns: partitions that the controller has just committed are opened by the broker.
            for node in self.nodes:
                node.finish_work()
        self.cpu_offload.close()
        for node in nodes:
            node.resign()
        deadline = self.clock.now() + _STOP_SECONDS
        # A delayed request may have a long answer.
        self.tasks.finish(deadline)
        self.reactor.drain(lambda: deadline - self.clock.now())
        for node in nodes:
            node.cancel_work()
        if self._peers is not None:
            self._peers.close()
        # A job that ends wakes the reactor, so the jobs come first.
        self.offload.close()
        self.reactor.close()
        # A full disk at one node's end must not keep the others from their clean stop.
        failures = []
        for node in nodes:
            try:
                node.close()
            except StorageFailure as failure:
                failures.append(failure)
        if failures:
            raise failures[0]

    # --- one turn -----------------------------------------------------------------------------------------------------

    def begin_turn(self) -> float:
        """Read the clocks once for the whole turn."""
        self.turns += 1
        self.now = self.clock.now()
        self.now_ms = self.clock.now_ms()
        return self.now

    def end_turn(self) -> None:
        """Results of offloaded jobs, then timers, then the nodes' parts of the turn."""
        now = self.now
        self.offload.finished()
        self.cpu_offload.finished()
        for key in self.timers.due(now):
            self._fire(key)
        for node in self.nodes:
            node.end_turn(now)

    def take_load(self) -> bool:
        """Count one more log that is to be opened in this turn. False if so many were opened already: then it is to be
        opened in a later turn."""
        if self._loads_turn != self.turns:
            self._loads_turn, self._loads = self.turns, 0
        self._loads += 1
        return self._loads <= self.loads_per_turn

    def call_later(self, seconds: float, call: Callable[[], object]) -> None:
        """Call `call` in the turn in which that time is over."""
        self.timers.set((_CALLS, call), self.now + seconds)

    def _timeout(self) -> float | None:
        """How long the next wait for sockets may be, in seconds."""
        at = self.next_turn_at()
        if at is None:
            return None
        left = at - self.clock.now()
        # Rounded up to the millisecond that epoll counts in, so that a deadline is past when it wakes.
        return 0 if left <= 0 else left + 0.0005

    def seconds_to_next_turn(self, deadline: float) -> float:
        """How long a wait for sockets may be, in seconds, of one who gives turns himself until `deadline`."""
        timeout = self._timeout()
        left = max(0.0, deadline - self.clock.now())
        return left if timeout is None else min(timeout, left)

    def next_turn_at(self) -> float | None:
        """When there is something to do even if nothing happens, in the clock's seconds; None: never."""
        if self.reactor.is_behind:
            return self.now
        at = self.reactor.next_wake()
        timer_at = self.timers.next_at()
        if timer_at is not None and timer_at < at:
            at = timer_at
        for node in self.nodes:
            node_at = node.next_deadline()
            if node_at is not None and node_at < at:
                at = node_at
        return None if at == float("inf") else at

    def _fire(self, key: Any) -> None:
        """`key` is what a timer was set with: its owner, whose `fired` is called, and the owner's own key."""
        owner, inner = key
        try:
            owner.fired(inner)
        except Exception as error:
            self.unexpected(error, timer=inner)

    def unexpected(self, error: Exception, **where: object) -> None:
        """A bug of ours: counted, and logged once with its traceback."""
        self.metrics.unexpected_errors += 1
        self.logs.error("server", "unexpected-error", error=error, traceback=_traceback(error), **where)


class _Calls:
    """The owner of the timers of `call_later`."""

    def fired(self, call: Callable[[], object]) -> None:
        call()


_CALLS = _Calls()


def _traceback(error: BaseException) -> str:
    """The traceback as text, for the log line of an unexpected error."""
    try:
        import traceback
    except OSError:
        # Without a free descriptor nothing can be imported; the error must be logged all the same.
        return repr(error)
    return "".join(traceback.format_exception(error))
