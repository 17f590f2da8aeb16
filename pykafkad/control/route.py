"""A row of the table of routes, and what the functions that it names are given."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from pykafkad.control.api_errors import TOO_MANY, UNAVAILABLE, ApiError
from pykafkad.control.schemas import Schema
from pykafkad.testing.faults import Fault
from pykafkad.testing.operations import Operations

if TYPE_CHECKING:
    from pykafkad.control.by_schema import BySchema

JSON = "application/json"

MOST_STREAMS = 8
"""So many event streams may be read at a time."""

MOST_WAITS = 8
"""So many requests may wait at a time; others would find no thread."""


class Content(NamedTuple):
    """An answer that is not JSON."""

    type: str
    body: bytes
    headers: tuple[tuple[str, str], ...] = ()


class Stream(NamedTuple):
    """An answer that comes in parts, as they are there. `parts(is_gone)` may ask whether its client has gone."""

    type: str
    parts: Callable[[Callable[[], bool]], Iterator[bytes]]


class Control:
    """The broker that is controlled, with what its API remembers from one request to the next."""

    def __init__(self, operations: Operations, by_schema: BySchema | None = None) -> None:
        self.operations = operations
        self.by_schema = by_schema
        """What reads and writes by the broker's registry, where it has one."""
        self.faults: dict[int, Fault] = {}
        """Those that there are, by the numbers that they have here."""
        self._next_fault = 1
        self.lock = threading.Lock()
        """For `faults`, and for what is done in several steps."""
        self.going_back = threading.Lock()
        """For what changes the state of everything: once at a time."""
        self.closing = threading.Event()
        """Set once the API ends."""
        self.waits = 0
        """How many requests wait."""
        self.streams = 0
        """How many event streams are read."""

    def check_open(self) -> None:
        """Raises ApiError once the API ends."""
        if self.closing.is_set():
            raise self.ended()

    def ended(self) -> ApiError:
        """What requests are told whose broker has ended."""
        return ApiError(UNAVAILABLE, "the broker stops")

    def number_faults(self) -> dict[int, Fault]:
        """All faults by their numbers; those that a test has set in Python get theirs now. With the lock held."""
        every = list(self.operations.faults.every)
        there = {id(fault) for fault in every}
        self.faults = {number: fault for number, fault in self.faults.items() if id(fault) in there}
        known = {id(fault) for fault in self.faults.values()}
        for fault in every:
            if id(fault) not in known:
                self.faults[self._next_fault] = fault
                self._next_fault += 1
        return self.faults

    @contextmanager
    def streaming(self) -> Iterator[None]:
        """While a stream is read. Raises ApiError if too many are."""
        with self.lock:
            if self.streams >= MOST_STREAMS:
                allowed = f"{MOST_STREAMS} at a time"
                raise ApiError(TOO_MANY, f"{self.streams} event streams are read already", "", allowed)
            self.streams += 1
        try:
            yield
        finally:
            with self.lock:
                self.streams -= 1

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """While a request waits. Raises ApiError if too many do."""
        with self.lock:
            if self.waits >= MOST_WAITS:
                raise ApiError(TOO_MANY, f"{self.waits} requests wait already", "", f"{MOST_WAITS} at a time")
            self.waits += 1
        try:
            yield
        finally:
            with self.lock:
                self.waits -= 1


class Route(NamedTuple):
    """One route. `path` has names in braces, whose schemas are in `in_path`; `query` are those of the address's query,
    of which each may be left out; `body` is that of the JSON that must be sent. `call(control, arguments)` is given all
    of them in one dictionary, and returns what `answer` describes: JSON, or a Content of the media type `answer`."""

    name: str
    method: str
    path: str
    summary: str
    call: Callable[[Control, dict[str, Any]], Any]
    answer: Schema | str
    in_path: Mapping[str, Schema] = MappingProxyType({})
    query: Mapping[str, Schema] = MappingProxyType({})
    body: Schema | None = None
    status: int = 200
    is_open: bool = False
    """Whether it is answered without a token."""
    is_file: bool = False
    """Whether it is a part of the page, which nobody needs to be told of."""
