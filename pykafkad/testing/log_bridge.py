"""The broker's log lines as records of the standard `logging`, so that pytest's caplog and every handler get them."""

from __future__ import annotations

import logging

from pykafkad.server.logs import Logs, Sink, field_texts

LOGGER = "pykafkad"
"""Loggers are named after this and the package that speaks, such as `pykafkad.server`."""

_LEVELS = {name: getattr(logging, name.upper()) for name in ("debug", "info", "warning", "error")}


class LoggingSink(Sink):
    """Hands each line to a logger. `bootstrap` tells which broker speaks."""

    def __init__(self, more: dict[str, object] | None = None) -> None:
        """`more` are fields that each line has."""
        super().__init__()
        self.bootstrap = ""
        self._more = more or {}

    def line(self, level: str, name: str, event: str, fields: dict[str, object]) -> None:
        """Logs one line: the event and its fields."""
        logger = logging.getLogger(f"{LOGGER}.{name}")
        number = _LEVELS[level]
        if logger.isEnabledFor(number):
            logger.log(
                number, "%s%s", event, field_texts({**self._more, **fields}), extra={"bootstrap": self.bootstrap}
            )


def logs(level: str, more: dict[str, object] | None = None) -> tuple[Logs, LoggingSink]:
    """The log of one broker, and where its lines go; `more` are fields that each line has. Raises ValueError for an
    unknown level."""
    sink = LoggingSink(more)
    return Logs(level, sink), sink
