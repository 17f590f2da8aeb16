"""What a pure machine wants done, as values.

A machine's `step(event, now, now_ms)` returns a list of these; the shell (`server/machine_runner.py`) performs them. **List order
is causal order**: a `Reply` or `Send` that stands after an `Append` or `Persist` in the same list leaves only when that
write is as durable as the policy asks. The shell may not reorder."""

from __future__ import annotations


class _Effect:
    """Equality and a readable form from the slots, so that tests compare effects as values."""

    __slots__: tuple[str, ...] = ()

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in self.__slots__)})"


class StoredRecord(_Effect):
    """A typed record of an internal log. `key` is a wire message, or None in the metadata log; `value` None is a
    tombstone."""

    __slots__ = ("key", "value")

    def __init__(self, key: object, value: object) -> None:
        self.key = key
        self.value = value


class Append(_Effect):
    """Write `records` (list of `StoredRecord`) as one batch to `log`, a `(topic, partition)`; the machine's own
    `apply` is called for each record right after the local write."""

    __slots__ = ("log", "records")

    def __init__(self, log: tuple[str, int], records: list[StoredRecord]) -> None:
        self.log = log
        self.records = records


class Reply(_Effect):
    """Answer the request that `token` stands for. A reply to a connection that is gone is dropped by the shell."""

    __slots__ = ("message", "token")

    def __init__(self, token: object, message: object) -> None:
        self.token = token
        self.message = message


class Send(_Effect):
    """Send `request` to another node; its answer comes back as the event that `then(answer)` makes."""

    __slots__ = ("peer", "request", "then")

    def __init__(self, peer: int, request: object, then: object) -> None:
        self.peer = peer
        self.request = request
        self.then = then


class Persist(_Effect):
    """Replace the small file `name` of the machine by `value` (bytes): written, synced and renamed before what follows."""

    __slots__ = ("name", "value")

    def __init__(self, name: str, value: bytes) -> None:
        self.name = name
        self.value = value


class SetTimer(_Effect):
    """Deliver `TimerFired(key)` to the machine at monotonic second `at`; a second timer of the same key replaces the
    first."""

    __slots__ = ("at", "key")

    def __init__(self, key: object, at: float) -> None:
        self.key = key
        self.at = at


class CancelTimer(_Effect):
    """Forget the timer of `key`, if there is one."""

    __slots__ = ("key",)

    def __init__(self, key: object) -> None:
        self.key = key


class Offload(_Effect):
    """Run `job()` off the loop; its result comes back as the event that `then(result)` makes."""

    __slots__ = ("job", "then")

    def __init__(self, job: object, then: object) -> None:
        self.job = job
        self.then = then


class TimerFired(_Effect):
    """The event that a due `SetTimer` becomes."""

    __slots__ = ("key",)

    def __init__(self, key: object) -> None:
        self.key = key
