"""How many bytes of long requests are in work at a time: the others wait in the order in which they came.

What is made of a long request takes several times its frame. So it needs a *place* from before it is read until it is
answered, and there are places for `LANE_BYTES`, or for one request that is longer than that. One that waits for its
place is its frame and nothing else, at most one for each connection. Requests above `VERY_LONG_BYTES` have a lane of
their own, as those that are done in a moment would wait for their minutes. Who waits for what others do (a Fetch for
records, a member for its group) gives up its place meanwhile, or nobody might come to do it."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from pykafkad.server.connection import Connection

LANE_BYTES = 8 * 1024 * 1024
"""What may be in work in each of the two lanes, and what may wait for news."""

VERY_LONG_BYTES = 512 * 1024


class LongRequestLimiter:
    """Who has a place, and who waits for one. All by connection, which has one request in service at a time."""

    __slots__ = ("_lane_of", "_long", "_parked", "_very_long")

    def __init__(self) -> None:
        self._long = Lane()
        self._very_long = Lane()
        self._parked = Lane()
        self._lane_of: dict[Connection, Lane] = {}

    def __len__(self) -> int:
        """How many requests have a place, wait for one, or wait for news."""
        return len(self._lane_of)

    def take(self, connection: Connection, size_bytes: int, begin: Callable[[], None]) -> bool:
        """Whether there is a place now for a request of that size; if not, `begin()` is called when there is. It may
        only plan."""
        lane = self._lane_of[connection] = self._very_long if size_bytes > VERY_LONG_BYTES else self._long
        if lane.waiting or not lane.has_room(size_bytes):
            lane.waiting[connection] = size_bytes, begin
            return False
        lane.enter(connection, size_bytes)
        return True

    def park(self, connection: Connection) -> bool:
        """The request waits for news, and its place goes to another; False, and it keeps the place, if too many bytes
        wait so already."""
        lane = self._lane_of.get(connection)
        if lane is None or lane is self._parked:
            return True
        size_bytes = lane.inside[connection]
        if not self._parked.has_room(size_bytes):
            return False
        self.leave(connection)
        self._parked.enter(connection, size_bytes)
        self._lane_of[connection] = self._parked
        return True

    def leave(self, connection: Connection) -> None:
        """The request is answered, or nobody waits for that any more; fine if it had no place."""
        lane = self._lane_of.pop(connection, None)
        if lane is not None:
            lane.leave(connection)


class Lane:
    """The sizes of those that are in it, in bytes, and with how to begin of those that wait, the first of them
    first."""

    __slots__ = ("_taken_bytes", "inside", "waiting")

    def __init__(self) -> None:
        self.inside: dict[Connection, int] = {}
        self.waiting: dict[Connection, tuple[int, Callable[[], None]]] = {}
        self._taken_bytes = 0

    def has_room(self, size_bytes: int) -> bool:
        return self._taken_bytes + size_bytes <= LANE_BYTES or not self.inside

    def enter(self, connection: Connection, size_bytes: int) -> None:
        self.inside[connection] = size_bytes
        self._taken_bytes += size_bytes

    def leave(self, connection: Connection) -> None:
        """And those that have waited longest come in as far as there is room; no shorter one passes the first."""
        if self.waiting.pop(connection, None) is None:
            self._taken_bytes -= self.inside.pop(connection)
        while self.waiting:
            first = next(iter(self.waiting))
            size_bytes, begin = self.waiting[first]
            if not self.has_room(size_bytes):
                return
            del self.waiting[first]
            self.enter(first, size_bytes)
            begin()
