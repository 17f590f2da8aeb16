"""A connection's login by SASL, as the handlers of its two requests see it. For type checkers alone."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol

    class LoginStep(Protocol):
        """What came of one token of a login."""

        @property
        def token(self) -> bytes | None:
            """The bytes for the client; None for none."""

        @property
        def problem(self) -> str | None:
            """Why the client is refused, in a sentence for it."""

        @property
        def is_silent(self) -> bool:
            """Whether a client that is refused gets no answer."""

    class Login(Protocol):
        """The login by SASL of a connection (`server/logins.py`)."""

        @property
        def mechanisms(self) -> list[str]:
            """What the listener offers."""

        @property
        def is_by_token(self) -> bool:
            """Whether the client has logged in with a delegation token."""

        @property
        def session_lifetime_ms(self) -> int:
            """How long a login that has succeeded counts; 0: until the connection ends."""

        def versions_told(self, connection: Any) -> None:
            """The client knows the versions of the APIs now."""

        def may_begin(self, connection: Any) -> bool:
            """Whether the client may name a mechanism now."""

        def choose(self, connection: Any, mechanism: str, is_framed: bool) -> None:
            """Begin an exchange of one of `mechanisms`, with its tokens in requests or (`is_framed` is false) bare."""

        def takes_tokens(self, connection: Any) -> bool:
            """Whether an exchange is under way."""

        @property
        def may_block(self) -> bool:
            """Whether the next token takes `step_later` in place of `step`."""

        def step(self, connection: Any, token: bytes) -> LoginStep:
            """Hand on a token of the client."""

        def step_later(self, connection: Any, request: object, token: bytes, answer: Any) -> object:
            """Hand on a token beside the loop, and go on by `answer(step)`; what the handler returns until then."""

        def refuse(self, connection: Any, token: object, answer: object, problem: str) -> object:
            """Answer the request of `token` a moment later, and end the connection; what the handler returns."""
