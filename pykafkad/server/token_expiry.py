"""Removes delegation tokens that have expired, every `delegation.token.expiry.check.interval.ms`.

A controller without delegation tokens does not import this module.
"""

from __future__ import annotations

from pykafkad.metadata.delegation_tokens import MAX_EXPIRED_PER_CHANGE, is_expired
from pykafkad.metadata.events import RemoveExpiredTokens

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.server.controller_node import ControllerNode


LONGEST_PAUSE_SECONDS = 86_400.0
"""The system cannot be asked to wait for the longest intervals that the setting allows."""


class TokenExpiry:
    """The checks of one controller. It is also the token of their events."""

    __slots__ = ("_node",)

    def __init__(self, node: ControllerNode) -> None:
        self._node = node

    def begin(self) -> None:
        """Check after the interval, or a day where that is sooner, and then again and again."""
        seconds = self._node.settings.delegation_token_expiry_check_interval_ms / 1000
        self._node.runtime.call_later(min(seconds, LONGEST_PAUSE_SECONDS), self._check)

    def _check(self) -> None:
        if not self._node.serving:
            # It has stopped, and others of its process go on.
            return
        self.begin()
        now_ms = self._node.runtime.now_ms
        if any(is_expired(each, now_ms) for each in self._node.image.delegation_tokens.values()):
            self._node.submit(RemoveExpiredTokens(self, now_ms))

    def deliver(self, count: int) -> None:
        """So many tokens are removed. One change removes a bounded number, and the next follows at once."""
        self._node.logs.info("metadata", "delegation-tokens-expired", count=count)
        if count == MAX_EXPIRED_PER_CHANGE:
            self._node.submit(RemoveExpiredTokens(self, self._node.runtime.now_ms))
