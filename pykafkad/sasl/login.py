"""One connection's login: which mechanism, which exchange, who it was, and until when it counts.

A login may be repeated on the same connection (KIP-368), by the same principal with the same mechanism.
"""

from __future__ import annotations

from pykafkad.sasl.step import DONE, REFUSED, Step

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.sasl.kerberos import Gssapi
    from pykafkad.sasl.oauthbearer import OAuthBearer
    from pykafkad.sasl.offer import Offer
    from pykafkad.sasl.plain import Plain
    from pykafkad.sasl.scram import Scram

LEAST_PAUSE_SECONDS = 1.0
"""A connection that logs in again sooner after it last began to is told that it has logged in already."""


class Login:
    """`may_begin`, `choose` and then `step` with each token, as often as the client asks."""

    __slots__ = (
        "_began_again_at",
        "_exchange",
        "_mechanism",
        "_offer",
        "is_by_token",
        "principal",
        "session_lifetime_ms",
    )

    def __init__(self, offer: Offer) -> None:
        self._offer = offer
        self._mechanism: str | None = None
        self._exchange: Plain | Scram | OAuthBearer | Gssapi | None = None
        self._began_again_at: float | None = None
        self.principal: str | None = None
        """Who has logged in ("User:alice"); None before the first login."""
        self.is_by_token = False
        """Whether the last login was by a delegation token."""
        self.session_lifetime_ms: int | None = None
        """How long the last login counts; None: until the connection ends."""

    @property
    def mechanisms(self) -> list[str]:
        """What the listener offers."""
        return self._offer.mechanisms

    def may_begin_again(self, now: float) -> bool:
        """Whether who has logged in may do so again: not without a lifetime, and not in quick succession. It counts as
        the begin."""
        if self.session_lifetime_ms is None:
            return False
        if self._began_again_at is not None and now - self._began_again_at < LEAST_PAUSE_SECONDS:
            return False
        self._began_again_at = now
        return True

    def choose(self, mechanism: str) -> bool:
        """Begin an exchange. Whether it may go on: not if somebody who logs in again names another mechanism. The
        mechanism is one that the listener offers."""
        if self.principal is not None and mechanism != self._mechanism:
            return False
        self._mechanism = mechanism
        self._exchange = self._offer.exchange(mechanism)
        return True

    @property
    def may_block(self) -> bool:
        """Whether `step` may wait for something else than the processor, so that it belongs beside the loop."""
        return self._exchange is not None and self._exchange.may_block

    def step(self, token: bytes) -> Step:
        """Hand on a token of the client. What is refused has a `problem`; what is done gives the principal and the
        lifetime. A client that has no name then (see `Gssapi`) is told that it has logged in, as by Kafka, and
        `principal` stays None."""
        exchange, mechanism = self._exchange, self._mechanism
        assert exchange is not None and mechanism is not None
        step = exchange.step(token)
        if step.outcome == REFUSED and step.problem is None:
            kind = "authentication" if self.principal is None else "re-authentication"
            text = f"Authentication failed during {kind} due to invalid credentials with SASL mechanism {mechanism}"
            return step._replace(problem=text)
        if step.outcome == DONE and exchange.user is None:
            self.session_lifetime_ms = self._offer.session_lifetime_ms(mechanism, exchange.expires_ms)
            if self.principal is not None:
                step = Step(REFUSED, problem="its name has no rule", is_silent=True, reason=step.reason)
        elif step.outcome == DONE:
            principal = f"User:{exchange.user}"
            if self.principal not in (None, principal):
                old, new = (each.replace(":", ".", 1) for each in (self.principal or "", principal))
                return Step(REFUSED, problem=f"Cannot change principals during re-authentication from {old}: {new}")
            self.principal = principal
            self.is_by_token = exchange.is_by_token
            self.session_lifetime_ms = self._offer.session_lifetime_ms(mechanism, exchange.expires_ms)
        if step.outcome in (DONE, REFUSED):
            self._exchange = None
        return step
