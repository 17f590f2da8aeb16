"""Access control entries that a command line names: they are stored as an administrator would store them."""

from __future__ import annotations

from pykafkad.errors import ConfigError
from pykafkad.metadata import events

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from pykafkad.server.wiring import Process
    from pykafkad.wire import messages

    Creation = messages.CreateAclsRequest.AclCreation


def add(process: Process, entries: Sequence[tuple[str, Creation]]) -> None:
    """Store the entries that are not there yet, before anything is served. Each comes with the words that name it.
    Raises ConfigError for one that cannot be."""
    token = _Token()
    process.controller.submit(events.CreateAcls(token, [creation for _, creation in entries]))
    process.runtime.tasks.finish(float("inf"))
    for (words, _), row in zip(entries, token.message.results, strict=True):
        if row.error_code:
            raise ConfigError(f"{words}: {row.error_message}")


class _Token:
    """Takes the controller's answer while nothing is served yet."""

    __slots__ = ("message",)

    def deliver(self, message: Any) -> None:
        self.message = message
