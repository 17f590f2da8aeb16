"""Access control entries that a command line names: they are stored as an administrator would store them."""

from __future__ import annotations

from pykafkad.errors import ConfigError
from pykafkad.metadata import events
from pykafkad.server.start_token import StartToken

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from pykafkad.server.wiring import Process
    from pykafkad.wire import messages

    Creation = messages.CreateAclsRequest.AclCreation


def add(process: Process, entries: Sequence[tuple[str, Creation]]) -> None:
    """Store the entries that are not there yet, before anything is served. Each comes with the words that name it.
    Raises ConfigError for one that cannot be."""
    answer = process.ask_at_start(events.CreateAcls(StartToken(), [creation for _, creation in entries]))
    for (words, _), row in zip(entries, answer.results, strict=True):
        if row.error_code:
            raise ConfigError(f"{words}: {row.error_message}")
