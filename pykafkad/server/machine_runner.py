"""Performing the effects of pure machines, in order.

A `MachineRunner` holds one machine with what its effects act on: the log it appends to, the files it persists, its
timers. What follows an `Append` or `Persist` in a list of effects happens only when that write was made; if it fails,
the rest of the list is dropped, the runner decides what becomes of the machine, and requests that were to be answered
lose their connection."""

from __future__ import annotations

from pykafkad import effects
from pykafkad.errors import KafkaError, StorageFailure
from pykafkad.handlers.context import DEFERRED, ReplyToken
from pykafkad.server.incremental_tasks import IncrementalTask

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, Protocol

    from pykafkad.server.runtime import Runtime

    class Machine(Protocol):
        """A pure machine: what follows from an event, as effects."""

        def step(self, event: Any, now: float, now_ms: int) -> list[object]: ...


class CompositeReply:
    """Collects the answers to several events of one request. The response of `combine` leaves when the last part was
    asked for (`close`) and every part has its answer."""

    __slots__ = ("_answers", "_combine", "_is_closed", "_left", "_reply", "_token")

    def __init__(
        self,
        combine: Callable[[list[Any]], object],
        token: ReplyToken,
        reply: Callable[[object, object], None],
    ) -> None:
        self._answers: list[object] = []
        self._left = 0
        self._is_closed = False
        self._combine = combine
        self._token = token
        self._reply = reply

    def part(self) -> CompositeReplyPart:
        """The token for one more event."""
        self._answers.append(None)
        self._left += 1
        return CompositeReplyPart(self, len(self._answers) - 1)

    def close(self) -> None:
        """There are no more events: the response leaves with the last of their answers, or now."""
        self._is_closed = True
        if not self._left:
            self._reply(self._token, self._combine(self._answers))

    def deliver(self, index: int, message: object) -> None:
        """The answer to one event."""
        self._answers[index] = message
        self._left -= 1
        if self._is_closed and not self._left:
            self._reply(self._token, self._combine(self._answers))


class CompositeReplyPart:
    """A reply token that stands for one part of a `CompositeReply`."""

    __slots__ = ("_composite", "_index")

    def __init__(self, composite: CompositeReply, index: int) -> None:
        self._composite = composite
        self._index = index

    @property
    def request_token(self) -> ReplyToken:
        """The token of the request as a whole."""
        return self._composite._token

    def deliver(self, message: object) -> None:
        """Takes the answer in place of a connection."""
        self._composite.deliver(self._index, message)


class MachineRunner:
    """One machine and its surroundings. Subclasses say how to append and what a failed write means."""

    __slots__ = ("machine", "runtime")

    def __init__(self, runtime: Runtime, machine: Machine) -> None:
        self.runtime = runtime
        self.machine = machine

    def step(self, event: object) -> object:
        """Feed the machine and perform what it wants; DEFERRED, as its answers leave by tokens."""
        self.perform(self.machine.step(event, self.runtime.now, self.runtime.now_ms))
        return DEFERRED

    def perform(self, wanted: list[object]) -> None:
        """Perform effects in order; stop at a write that fails."""
        left = iter(wanted)
        for effect in left:
            try:
                PERFORM[type(effect)](self, effect)
            except StorageFailure as failure:
                self.drop(left, failure)
                self.failed(failure)
                return
            except KafkaError as error:
                self.refused(left, error)
                return

    def drop(self, left: Iterable[object], failure: StorageFailure) -> None:
        """A write failed: what stands behind it is not done, and requests that were to be answered lose their
        connection."""
        for dropped in left:
            if type(dropped) is effects.Reply:
                self.runtime.replies.abandon(dropped.token, f"its write failed: {failure}")

    def append(self, effect: effects.Append) -> None:
        raise NotImplementedError(f"{type(self).__name__} has no log")

    def ask_share_state(self, effect: effects.AskShareState) -> None:
        raise NotImplementedError(f"{type(self).__name__} has no share groups")

    def create_internal_topics(self, effect: effects.CreateInternalTopics) -> None:
        raise NotImplementedError(f"{type(self).__name__} has no streams groups")

    def prune(self, effect: effects.Prune) -> None:
        raise NotImplementedError(f"{type(self).__name__} has no log")

    def persist(self, effect: effects.Persist) -> None:
        raise NotImplementedError(f"{type(self).__name__} has no files")

    def write_markers(self, effect: effects.WriteMarkers) -> None:
        raise NotImplementedError(f"{type(self).__name__} has no transactions")

    def log_line(self, effect: effects.Tell) -> None:
        raise NotImplementedError(f"{type(self).__name__} has nothing to tell")

    def failed(self, failure: StorageFailure) -> None:
        raise failure

    def refused(self, left: Iterable[object], error: KafkaError) -> None:
        """The log does not take what was to be written; `left` stands behind it."""
        raise error

    def fired(self, key: object) -> None:
        """A timer of the machine is due."""
        self.step(effects.TimerFired(key))

    def send(self, effect: effects.Send) -> None:
        """Ask another node. Its answer, or a `Failure` (`peer.py`), comes back as an event."""
        self.runtime.peers.send(effect.peer, effect.request, lambda outcome: self.step(effect.then(outcome)))

    def compute(self, effect: effects.Compute) -> None:
        """Do some of a computation in each of the next turns. Its outcome comes back as an event."""

        def then(outcome: object) -> None:
            self.attempt(effect.then(outcome), effect.refused)

        def failed(error: Exception) -> None:
            self.runtime.unexpected(error)
            then(None)

        self.runtime.tasks.add(IncrementalTask(None, effect.steps, then, failed))

    def later(self, effect: effects.Later) -> None:
        """Feed the machine in a later turn."""
        self.runtime.call_later(0, lambda: self.attempt(effect.event, effect.refused))

    def attempt(self, event: object, otherwise: object) -> None:
        """Feed the machine an event that it has asked for. If a bug ends the step, feed it `otherwise`, so that nobody
        waits for it for ever."""
        try:
            self.step(event)
        except Exception as error:
            self.runtime.unexpected(error)
            self.step(otherwise)

    def reply(self, effect: effects.Reply) -> None:
        """Answer a request."""
        self.runtime.replies.reply(effect.token, effect.message)

    def _set_timer(self, effect: effects.SetTimer) -> None:
        self.runtime.timers.set((self, effect.key), effect.at)

    def _cancel_timer(self, effect: effects.CancelTimer) -> None:
        self.runtime.timers.cancel((self, effect.key))


PERFORM: dict[type, Callable[[Any, Any], None]] = {
    effects.Append: lambda runner, effect: runner.append(effect),
    effects.Prune: lambda runner, effect: runner.prune(effect),
    effects.Persist: lambda runner, effect: runner.persist(effect),
    effects.Send: lambda runner, effect: runner.send(effect),
    effects.AskShareState: lambda runner, effect: runner.ask_share_state(effect),
    effects.CreateInternalTopics: lambda runner, effect: runner.create_internal_topics(effect),
    effects.WriteMarkers: lambda runner, effect: runner.write_markers(effect),
    effects.Compute: lambda runner, effect: runner.compute(effect),
    effects.Later: lambda runner, effect: runner.later(effect),
    effects.Reply: lambda runner, effect: runner.reply(effect),
    effects.Tell: lambda runner, effect: runner.log_line(effect),
    effects.SetTimer: MachineRunner._set_timer,
    effects.CancelTimer: MachineRunner._cancel_timer,
}
