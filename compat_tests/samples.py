"""Records that every client sends, and the checks of a group of consumers, independent of any client."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from typing import NamedTuple

KIBIBYTE = 1024
ALMOST_ONE_MEGABYTE = 1_000_000


class Sample(NamedTuple):
    """One record: key, value, headers (a list of pairs), all of them as bytes or None."""

    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]


# Every shape of a record: null and empty differ in each of its parts.
SAMPLES = (
    Sample(b"key", b"value", []),
    Sample(None, b"no key", []),
    Sample(b"no value", None, []),
    Sample(None, None, []),
    Sample(b"", b"", []),
    Sample(b"k", b"v", [("name", b"header")]),
    Sample(b"k", b"v", [("twice", b"1"), ("twice", b"2"), ("", b"empty name"), ("empty", b"")]),
    Sample(b"k", b"v", [("null", None)]),
    Sample("ключ".encode(), "значение 💡".encode(), [("имя", "заголовок".encode())]),
    Sample(bytes(range(256)), bytes(range(255, -1, -1)), [("bytes", bytes(range(256)))]),
)
SIZES = (1, 2, 127, 128, KIBIBYTE, 16 * KIBIBYTE, 100 * KIBIBYTE, ALMOST_ONE_MEGABYTE)


def value_of(size_bytes: int) -> bytes:
    """A value of exactly `size_bytes` that compresses to about half of it."""
    block = bytes((index * 7919 >> 3) & 0xFF for index in range(509)) + b"\0" * 509
    return (block * (size_bytes // len(block) + 1))[:size_bytes]


class TookTooLong(AssertionError):
    """What a test waits for did not happen in time."""


def wait_until(condition: Callable[[], object], what: str, timeout_seconds: float = 120.0) -> None:
    """Return once `condition()` is true; TookTooLong naming `what` if that takes too long."""
    deadline = time.monotonic() + timeout_seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TookTooLong(f"did not happen within {timeout_seconds} s: {what}")
        time.sleep(0.02)


class GroupMember(threading.Thread):
    """One consumer of a group in its own thread; each client has a subclass that polls.

    `owned` holds its partitions now, `lost` every partition ever revoked, `received` its (partition, offset) pairs.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name=name, daemon=True)
        self.owned: frozenset[int] = frozenset()
        self.lost: set[int] = set()
        self.received: list[tuple[int, int]] = []
        self.failure: BaseException | None = None
        self._leave = threading.Event()

    def poll_once(self) -> Iterable[tuple[int, int]]:
        """Wait up to about 100 ms; returns (partition, offset) of the records received."""
        raise NotImplementedError

    def open(self) -> None:
        """Create the client and subscribe; called in the thread."""
        raise NotImplementedError

    def close(self) -> None:
        """Commit and leave the group; called in the thread."""
        raise NotImplementedError

    def run(self) -> None:
        """Poll until asked to leave."""
        try:
            self.open()
            while not self._leave.is_set():
                self.received.extend(self.poll_once())
            self.close()
            self.owned = frozenset()
        except BaseException as failure:
            self.failure = failure
            raise

    def assigned(self, partitions: Iterable[int]) -> None:
        """The client's rebalance callback calls this with the added partitions."""
        self.owned = self.owned | frozenset(partitions)

    def revoked(self, partitions: Iterable[int]) -> None:
        """The client's rebalance callback calls this with the revoked partitions."""
        gone = frozenset(partitions)
        self.lost |= gone
        self.owned = self.owned - gone

    def leave(self) -> None:
        """Stop polling, leave the group, and wait until both are done."""
        self._leave.set()
        self.join(120)
        assert not self.is_alive(), f"{self.name} did not leave"
        assert self.failure is None, f"{self.name} failed: {self.failure!r}"


def wait_for_exact_ownership(members: Iterable[GroupMember], partitions: int) -> None:
    """Wait until every partition has exactly one owner and the members' shares differ by at most one."""
    members = list(members)

    def settled() -> bool:
        for member in members:
            assert member.failure is None, f"{member.name} failed: {member.failure!r}"
        owned = sorted(partition for member in members for partition in member.owned)
        shares = [len(member.owned) for member in members]
        return owned == list(range(partitions)) and max(shares) - min(shares) <= 1

    wait_until(settled, f"{len(members)} members own {partitions} partitions exactly once, evenly")


def assert_each_once(members: Iterable[GroupMember], expected: Iterable[tuple[int, int]]) -> None:
    """Every expected record was received by exactly one member, exactly once."""
    received = sorted(pair for member in members for pair in member.received)
    assert received == sorted(expected)
