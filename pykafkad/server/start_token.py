"""The token of what a start asks of the controller."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class StartToken:
    """Takes the controller's answer, `message`, while nothing is told to be ready yet; or `problem`, why none comes."""

    __slots__ = ("message", "problem")

    message: Any

    def __init__(self) -> None:
        self.message = None
        self.problem: str | None = None

    def deliver(self, message: Any) -> None:
        """The answer."""
        self.message = message

    def abandon(self, reason: str) -> None:
        """There is none."""
        self.problem = reason
