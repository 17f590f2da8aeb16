"""Fast paths of callers whom an authorizer watches.

A fast path remembers what the bytes of a request mean, and asks nobody when they come again. So each caller, a
principal at an address, has fast paths of its own, which remember only topics that the caller may use. They forget with
every change of the metadata, ACLs included.
"""

from __future__ import annotations

from pykafkad.handlers import table
from pykafkad.server.fetch_fast_path import FetchFastPath
from pykafkad.server.produce_fast_path import ProduceFastPath

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from pykafkad.server.broker import Broker
    from pykafkad.server.session import Authorizer, FastPath

MAX_CALLERS = 2_000
"""How many callers have fast paths, of about 5 KB each. One more takes them from the one who has had them longest."""
MAX_REMEMBERED = 100_000
"""What all callers together remember, of some 500 bytes each, 1 KB at most. Beyond that all of it is forgotten."""


class WatchedFastPaths:
    """The fast paths of all callers."""

    __slots__ = ("_broker", "_callers", "_remembered", "authorizer")

    def __init__(self, broker: Broker, authorizer: Authorizer) -> None:
        self._broker = broker
        self.authorizer = authorizer
        """Whom the callers from now on are judged by."""
        self._callers: dict[tuple[str, str], _Caller] = {}
        self._remembered = 0

    def of(self, principal: str, client_address: str) -> dict[int, FastPath]:
        """The caller's functions, by a frame's first four bytes."""
        key = principal, client_address
        caller = self._callers.get(key)
        if caller is None:
            if len(self._callers) >= MAX_CALLERS:
                self._callers.pop(next(iter(self._callers))).retire()
            caller = self._callers[key] = _Caller(
                self._broker, self.authorizer, principal, client_address, self._remembering
            )
        return caller.fast_paths

    def _remembering(self) -> None:
        """A caller is about to remember one thing more."""
        if self._remembered >= MAX_REMEMBERED:
            self.forget()
        self._remembered += 1

    def forget(self) -> None:
        """Topics, leaders, settings or ACLs changed."""
        self._remembered = 0
        for caller in self._callers.values():
            caller.forget()


class _Caller:
    """One caller's fast paths."""

    __slots__ = ("_address", "_authorizer", "_paths", "_principal", "_remembering", "fast_paths")

    def __init__(
        self,
        broker: Broker,
        authorizer: Authorizer,
        principal: str,
        client_address: str,
        remembering: Callable[[], None],
    ) -> None:
        self._authorizer: Authorizer | None = authorizer
        self._remembering = remembering
        self._principal = principal
        self._address = client_address
        produce = ProduceFastPath(broker, self._may_write, remembering)
        fetch = FetchFastPath(broker, self._may_read)
        self._paths = (produce, fetch)
        by_name: dict[str, ProduceFastPath | FetchFastPath] = {"Produce": produce, "Fetch": fetch}
        self.fast_paths: dict[int, FastPath] = {}
        for row in table.answered_on(table.BROKER_LISTENER, broker.settings.release):
            path = by_name.get(row.name)
            if path is not None:
                serve: FastPath = path.serve
                versions = table.fast_versions(row, path.versions, broker.settings.release)
                self.fast_paths.update((row.key << 16 | version, serve) for version in versions)

    def _may_write(self, topic: str) -> bool:
        return self._may("Write", topic)

    def _may_read(self, topic: str) -> bool:
        return self._may("Read", topic)

    def _may(self, operation: str, topic: str) -> bool:
        """Whether the caller may use the topic, which is remembered then with the bytes that name it."""
        authorizer = self._authorizer
        if authorizer is None or not authorizer.authorize(self._principal, self._address, operation, "Topic", topic):
            return False
        self._remembering()
        return True

    def forget(self) -> None:
        """What is remembered may be wrong now."""
        for path in self._paths:
            path.forget()

    def retire(self) -> None:
        """Serve nothing any more: the general path does, for the sessions that still hold these functions."""
        self._authorizer = None
        self.forget()
