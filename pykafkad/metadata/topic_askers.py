"""Who asked for topics to be created or deleted: the lines of the log that tell of it name them.

The records of the metadata log do not say it, so only the process knows whose controller decided it."""

from __future__ import annotations

from collections import namedtuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Protocol

    class Caller(Protocol):
        """The surroundings of a request."""

        @property
        def client_id(self) -> str | None: ...

        @property
        def principal(self) -> str: ...


MAX_KEPT = 1000
"""Topics whose asker is kept until the log has told of them. The oldest are forgotten first."""
TEXT_CHARACTERS = 300
"""So much of a client id or principal is kept, as a line of the log shows no more."""

_NOBODY = "User:ANONYMOUS"

Asker = namedtuple("Asker", ("client_id", "principal", "is_automatic"), defaults=("", "", False))
Asker.__doc__ = """Who asked for a topic; texts are empty where there are none. It `is_automatic` where nobody asked for
the creation: the topic came by itself, as a request needed it."""


def asker_of(caller: Caller, *, is_automatic: bool = False) -> Asker:
    """Who sent a request. Who did not log in has no principal."""
    principal = "" if caller.principal == _NOBODY else caller.principal
    return Asker((caller.client_id or "")[:TEXT_CHARACTERS], principal[:TEXT_CHARACTERS], is_automatic)


class TopicAskers:
    """The askers of topics that are being created or deleted, by topic id."""

    __slots__ = ("_askers",)

    def __init__(self) -> None:
        self._askers: dict[bytes, Asker] = {}

    def __len__(self) -> int:
        return len(self._askers)

    def note(self, changed: Iterable[tuple[bytes, Asker | None]]) -> None:
        """Keep who asked for each of these changes, until `take`. It replaces what is kept of an earlier change."""
        askers = self._askers
        for topic_id, asker in changed:
            askers.pop(topic_id, None)
            if asker is not None:
                if len(askers) >= MAX_KEPT:
                    del askers[next(iter(askers))]
                askers[topic_id] = asker

    def take(self, topic_id: bytes) -> dict[str, object]:
        """What a line of the log says of who asked, which is forgotten; empty where that is not known."""
        asker = self._askers.pop(topic_id, None)
        if asker is None:
            return {}
        fields = {"client": asker.client_id, "principal": asker.principal, "automatic": asker.is_automatic}
        return {name: value for name, value in fields.items() if value}
