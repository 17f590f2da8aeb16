"""Faults as a test sets them: named, checked when they are written, awaited and counted.

    with broker.faults.answer("Produce", "NOT_LEADER_OR_FOLLOWER", topic="orders", times=2) as fault:
        ...
    assert fault.count == 2

Every method sets one fault and returns it. The filters are the same for all: `versions` (one, or the first and the
last), `client_id`, `topic`, `partition`, `group`, `transactional_id`, `broker` (the node id of one of several).
`times` is how often it happens (None: until it is released); `probability` and `seed` let some of the requests pass. A
fault ends with its last time, with `release`, with its `with` block, and with a reset of the broker."""

from __future__ import annotations

from collections.abc import Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol

from pykafkad import errors
from pykafkad.handlers import table
from pykafkad.server import refused_parts
from pykafkad.server.injected_fault import KINDS
from pykafkad.testing.options import unknown
from pykafkad.testing.waits import TIMEOUT_SECONDS, until

if TYPE_CHECKING:
    from typing import TypedDict, Unpack

    class Filters(TypedDict, total=False):
        """Which requests meet a fault, and how often it happens."""

        versions: int | tuple[int, int] | None
        client_id: str | None
        topic: str | None
        partition: int | None
        group: str | None
        transactional_id: str | None
        broker: int | None
        times: int | None
        probability: float
        seed: int


Apis = str | Iterable[str]
"""The name of an API as Kafka writes it, such as "Produce", or several."""

_NAMES = {row.name: row for row in table.ROWS}
_ERRORS = {name: code for code, name in errors.codes().items()}
API_NAMES = tuple(_NAMES)
"""Those that a fault may be for."""

ERROR_NAMES = tuple(name for name, code in _ERRORS.items() if code != errors.NONE)
"""Those that may be answered."""

_FILTERS = (
    "versions",
    "client_id",
    "topic",
    "partition",
    "group",
    "transactional_id",
    "broker",
    "times",
    "probability",
    "seed",
)


class Control(Protocol):
    """The broker that has the faults, here or in a process of its own."""

    def add_fault(self, **fields: Any) -> int: ...

    def release_fault(self, number: int) -> None: ...

    def fault_counts(self, number: int) -> tuple[int, int]: ...


class Fault:
    """A fault that was set. A `with` block releases it at its end."""

    def __init__(self, control: Control, number: int, text: str, times: int | None) -> None:
        self._control = control
        self._number = number
        self._text = text
        self._times = times
        self._is_released = False

    def __repr__(self) -> str:
        return f"Fault({self})"

    def __str__(self) -> str:
        return self._text

    @property
    def count(self) -> int:
        """How many requests have met it."""
        return self._control.fault_counts(self._number)[0]

    @property
    def has_ended(self) -> bool:
        """Whether no request will meet it any more."""
        return self._is_released or (self._times is not None and self.count >= self._times)

    @property
    def passed(self) -> int:
        """How many requests were for it and passed, for its probability."""
        return self._control.fault_counts(self._number)[1]

    def wait(self, count: int = 1, timeout: float = TIMEOUT_SECONDS) -> None:
        """Wait until it has happened `count` times in all. Raises NotInTime."""
        if count < 1:
            raise ValueError(f"count: {count} is below 1")
        until(
            lambda: self.count,
            lambda seen: seen >= count,
            f"request number {count} that met the fault ({self})",
            timeout,
            lambda seen: f"{seen} did",
        )

    def release(self) -> None:
        """End it; fine if it has ended."""
        self._is_released = True
        self._control.release_fault(self._number)

    def __enter__(self) -> Fault:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.release()


class Faults:
    """The faults of one broker; see the module."""

    def __init__(self, control: Control) -> None:
        self._control = control
        self.every: list[Fault] = []
        """All that were set since the start or the last reset, ended ones too."""

    def answer(self, apis: Apis, error: str | int, **filters: Unpack[Filters]) -> Fault:
        """Answer with an error, such as "NOT_LEADER_OR_FOLLOWER" or 6, in place of serving the request. Where a request
        names partitions (Produce, Fetch, ListOffsets, OffsetCommit and some more), those that the fault is not for are
        served. A Produce with acks=0 has no answer: its connection is closed."""
        code = _ERRORS.get(error) if isinstance(error, str) else error if error in errors.codes() else None
        if code is None or code == errors.NONE:
            raise ValueError(f"error: {unknown('error', error, ERROR_NAMES)}")
        return self._add("answer", apis, filters, errors.name(code), error_code=code)

    def delay(self, apis: Apis, delay_ms: float, **filters: Unpack[Filters]) -> Fault:
        """Serve requests `delay_ms` later. Those behind them on the same connection wait, too."""
        return self._add("delay", apis, filters, f"{delay_ms:g} ms", delay_seconds=_seconds(delay_ms))

    def delay_answer(self, apis: Apis, delay_ms: float, **filters: Unpack[Filters]) -> Fault:
        """Serve requests at once, and answer them `delay_ms` later."""
        return self._add("delay_answer", apis, filters, f"{delay_ms:g} ms", delay_seconds=_seconds(delay_ms))

    def drop_request(self, apis: Apis, **filters: Unpack[Filters]) -> Fault:
        """Lose a request: it is not served, and its connection hangs until the client gives it up."""
        return self._add("drop_request", apis, filters)

    def drop_answer(self, apis: Apis, **filters: Unpack[Filters]) -> Fault:
        """Lose an answer: the request is served, and its connection hangs until the client gives it up."""
        return self._add("drop_answer", apis, filters)

    def close_before(self, apis: Apis, **filters: Unpack[Filters]) -> Fault:
        """Close the connection when a request comes; it is not served."""
        return self._add("close_before", apis, filters)

    def close_after(self, apis: Apis, **filters: Unpack[Filters]) -> Fault:
        """Serve a request and close its connection without the answer."""
        return self._add("close_after", apis, filters)

    def cut_answer(self, apis: Apis, at_byte: int, **filters: Unpack[Filters]) -> Fault:
        """Serve requests, send the first `at_byte` bytes of the answer, its size field included, and close the
        connection."""
        if type(at_byte) is not int or at_byte < 0:
            raise ValueError(f"at_byte: {at_byte!r} is no number from 0 on")
        return self._add("cut_answer", apis, filters, f"at {at_byte}", at_byte=at_byte)

    def corrupt_records(self, apis: Apis = "Fetch", **filters: Unpack[Filters]) -> Fault:
        """Change a byte of the records that a Fetch answers, so that their checksum is wrong."""
        if apis not in ("Fetch", ["Fetch"], ("Fetch",)):
            raise ValueError(f"corrupt_records: only answers to Fetch have records, not those to {apis}")
        return self._add("corrupt_records", apis, filters)

    def set(self, kind: str, apis: Apis, parameter: Any = None, **filters: Any) -> Fault:
        """The fault of that kind: the name of one of the methods above, with what it needs (an error, milliseconds)."""
        row = KINDS.get(kind)
        if row is None:
            raise ValueError(f"kind: {unknown('kind of fault', kind, KINDS)}")
        if (row.parameter is None) != (parameter is None):
            raise ValueError(f"{kind} takes {'nothing' if row.parameter is None else row.parameter} beside its filters")
        fault: Fault = getattr(self, kind)(apis, *(() if parameter is None else (parameter,)), **filters)
        return fault

    def release_all(self) -> None:
        """End all of them."""
        for fault in self.every:
            fault.release()

    def forget_ended(self) -> None:
        """Keep only those in `every` that requests may still meet."""
        self.every[:] = [fault for fault in self.every if not fault.has_ended]

    def _add(self, kind: str, apis: Apis, filters: Any, parameter: str = "", **fields: Any) -> Fault:
        keys, names = _keys(apis)
        checked = _checked(names, dict(filters))
        number = self._control.add_fault(kind=kind, keys=keys, **fields, **checked)
        chosen = [f"{name}={value!r}" for name, value in filters.items()]
        text = " ".join([kind, *names, *([parameter] if parameter else []), *chosen])
        fault = Fault(self._control, number, text, filters.get("times", 1))
        self.every.append(fault)
        return fault


def _seconds(delay_ms: float) -> float:
    if not 0 <= delay_ms <= 3_600_000:
        raise ValueError(f"delay_ms: {delay_ms!r} is no time from 0 to 3600000 milliseconds")
    return delay_ms / 1000


def _keys(apis: Apis) -> tuple[list[int], list[str]]:
    names = [apis] if isinstance(apis, str) else list(apis)
    if not names:
        raise ValueError("a fault is for at least one API, such as 'Produce'")
    for name in names:
        if name not in _NAMES:
            raise ValueError(f"a fault is for an API: {unknown('API', name, _NAMES)}")
    return [_NAMES[name].key for name in names], names


def _version_range(versions: Any) -> tuple[int, int]:
    try:
        first, last = versions
    except (TypeError, ValueError):
        first = last = None
    if not (type(first) is int and type(last) is int and 0 <= first <= last):
        raise ValueError(f"versions: {versions!r} is no version from 0 on, and no first and last one, such as (0, 9)")
    return first, last


def _checked(names: list[str], filters: dict[str, Any]) -> dict[str, Any]:
    """The filters as the broker takes them. Raises ValueError or TypeError for what could never be met."""
    for name in filters:
        if name not in _FILTERS:
            raise TypeError(f"a fault: {unknown('filter', name, _FILTERS)}")
    versions = filters.get("versions")
    if isinstance(versions, int):
        versions = versions, versions
    if versions is not None:
        filters["versions"] = versions = _version_range(versions)
    for name in names:
        row = _NAMES[name]
        if versions is not None and (versions[0] > row.max_version or versions[1] < row.min_version):
            raise ValueError(f"versions: {name} has {row.min_version} to {row.max_version}, not {versions}")
        if filters.get("topic") is not None and not refused_parts.can_name_topics(name):
            raise ValueError(f"topic: requests of {name} name no topics")
        if filters.get("partition") is not None and not refused_parts.can_name_partitions(name):
            raise ValueError(f"partition: a fault on {name} can't be for one partition")
    if filters.get("topic") == "":
        raise ValueError("topic: '' is no topic's name; leave it out for every topic")
    times = filters.get("times", 1)
    if times is not None and (type(times) is not int or times < 1):
        raise ValueError(f"times: {times!r} is no number from 1 on; None stands for no limit")
    if not 0 < filters.get("probability", 1.0) <= 1:
        raise ValueError(f"probability: {filters['probability']!r} is not above 0 and up to 1")
    return filters
