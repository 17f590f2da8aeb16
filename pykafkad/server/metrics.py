"""Counters of the shell: plain integers, counted where things happen and read by whoever asks."""

from __future__ import annotations


class Metrics:
    """One object per node. Every attribute is a count since the start."""

    __slots__ = (
        "connections_accepted",
        "connections_closed",
        "connections_refused",
        "failed_authentications",
        "frames_refused",
        "requests",
        "unexpected_errors",
        "writes_failed",
    )

    def __init__(self) -> None:
        self.connections_accepted = 0
        self.connections_closed = 0
        self.connections_refused = 0
        self.failed_authentications = 0
        self.frames_refused = 0
        self.requests = 0
        self.unexpected_errors = 0
        self.writes_failed = 0

    def as_dict(self) -> dict[str, int]:
        """Name to value, for logs and tests."""
        return {name: getattr(self, name) for name in self.__slots__}
