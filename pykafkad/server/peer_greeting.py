"""What a new connection to another node begins with: which versions of each API that has (KIP-35), and a login where
its listener asks for one (KIP-43, KIP-152).

A `Greeting` has no sockets and no time: `next` is the request to send, `answered` takes its answer, and so on until
`next` is None. What takes milliseconds to compute in between is a `job`, for whoever has a place beside the loop. A
node that does not know the version of ApiVersions in which it is asked answers in version 0 which ones it knows
(KIP-511), and is asked again. Where the other side lets a login expire (KIP-368), `begin_again` logs in anew."""

from __future__ import annotations

from pykafkad import __version__, errors
from pykafkad.errors import ProtocolError
from pykafkad.handlers import table
from pykafkad.wire import frames, messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from pykafkad.handlers.table import Api
    from pykafkad.sasl.client import Credentials, Exchange

_UNSUPPORTED = errors.UNSUPPORTED_VERSION.to_bytes(2, "big")
_VERSIONS, _HANDSHAKE, _AUTHENTICATE, _OVER = "versions", "handshake", "authenticate", "over"
STEPS_MAX = 10
"""More tokens than any mechanism has: a server that always wants another one is left."""


class LoginRefused(ProtocolError):
    """The other side does not take this node for whom it says it is, or is not whom it should be."""


def answer_version(key: int, version: int, body: bytes | memoryview) -> int:
    """The version in which an answer to a request of that key and version is written: who does not know a version of
    ApiVersions says so in version 0."""
    return 0 if key == frames.API_VERSIONS and bytes(body[:2]) == _UNSUPPORTED else version


class Greeting:
    """The greeting of one connection. `version` tells what is known when it is over."""

    __slots__ = ("_asks_in", "_credentials", "_exchange", "_ranges", "_said", "_stage", "_steps", "lifetime_ms")

    def __init__(self, credentials: Credentials | None = None) -> None:
        """`credentials` are those of a login; without them there is none."""
        row = _own(frames.API_VERSIONS)
        assert row.max_version is not None
        self._asks_in: int = row.max_version
        """The version in which the other side is to be asked."""
        self._credentials = credentials
        self._stage = _VERSIONS
        self._ranges: dict[int, tuple[int, int]] = {}
        self._exchange: Exchange | None = None
        self._said: bytes | None = None
        """The other side's last token."""
        self._steps = 0
        self.lifetime_ms = 0
        """How long the login counts; 0 for one without end, or none."""

    def next(self, token: bytes | None = None) -> tuple[messages.Struct, int] | None:
        """The request to send and its version; None if the greeting is over. `token` is what the `job` came to."""
        if self._stage == _VERSIONS:
            request = messages.ApiVersionsRequest(client_software_name="pykafkad", client_software_version=__version__)
            return request, self._asks_in
        if self._stage == _HANDSHAKE:
            assert self._credentials is not None
            mechanism = self._credentials.mechanism
            return messages.SaslHandshakeRequest(mechanism=mechanism), self._common("SaslHandshake", 17)
        if self._stage == _AUTHENTICATE:
            assert token is not None, "the job comes first"
            return messages.SaslAuthenticateRequest(auth_bytes=token), self._common("SaslAuthenticate", 36)
        return None

    def _common(self, name: str, key: int) -> int:
        version = self.version(_own(key))
        if version is None or (key == 17 and version == 0):
            # Version 0 of the handshake is followed by tokens without a header, which only clients of 2015 send.
            raise LoginRefused(f"it has no version of {name} in common with this node")
        return version

    @property
    def job(self) -> Callable[[], bytes] | None:
        """What to compute before `next`, which takes its result; None where there is nothing. It may raise
        `WrongServer`."""
        exchange, said = self._exchange, self._said
        if self._stage != _AUTHENTICATE or exchange is None:
            return None
        return lambda: exchange.step(said)

    def computed(self, result: bytes) -> None:
        """The job has come to its end with `result`."""
        assert self._exchange is not None
        if self._exchange.is_over:
            self._stage, self._exchange, self._said = _OVER, None, None
        elif not result or self._steps > STEPS_MAX:
            raise LoginRefused("its login goes on where it should end")

    def begin_again(self) -> None:
        """Log in anew over the same connection, as the login expires."""
        self._stage = _HANDSHAKE

    def answered(self, answer: Any) -> None:
        """The answer to the request came. Raises ProtocolError for one that ends the connection."""
        _ANSWERED[self._stage](self, answer)

    def _told_versions(self, answer: messages.ApiVersionsResponse) -> None:
        self._ranges = {each.api_key: (each.min_version, each.max_version) for each in answer.api_keys}
        if answer.error_code == errors.NONE:
            self._stage = _OVER if self._credentials is None else _HANDSHAKE
            return
        row = _own(frames.API_VERSIONS)
        version = self.version(row) if answer.error_code == errors.UNSUPPORTED_VERSION else None
        if version is None or version == self._asks_in:
            raise ProtocolError(f"ApiVersions {self._asks_in} is answered with {errors.name(answer.error_code)}")
        self._asks_in = version

    def _shook_hands(self, answer: messages.SaslHandshakeResponse) -> None:
        credentials = self._credentials
        assert credentials is not None
        if answer.error_code == errors.UNSUPPORTED_SASL_MECHANISM:
            offered = ", ".join(answer.mechanisms)
            raise LoginRefused(f"it offers no login by {credentials.mechanism}, but by {offered}")
        if answer.error_code:
            raise LoginRefused(f"it takes no login: {errors.name(answer.error_code)}")
        self._stage, self._exchange, self._said, self._steps = _AUTHENTICATE, credentials.exchange(), None, 0

    def _took_token(self, answer: messages.SaslAuthenticateResponse) -> None:
        if answer.error_code:
            credentials = self._credentials
            assert credentials is not None
            why = answer.error_message or errors.name(answer.error_code)
            raise LoginRefused(f"it refuses the login of {credentials.user} by {credentials.mechanism}: {why}")
        self._said, self.lifetime_ms = bytes(answer.auth_bytes), answer.session_lifetime_ms
        self._steps += 1

    @property
    def ranges(self) -> Mapping[int, tuple[int, int]]:
        """API key to the versions that the other side has; nothing before it has told them."""
        return self._ranges

    def version(self, row: Api) -> int | None:
        """The newest version of an API that both sides have; None if there is none."""
        theirs = self._ranges.get(row.key)
        if theirs is None or row.min_version is None or row.max_version is None:
            return None
        version: int = min(theirs[1], row.max_version)
        return version if version >= max(theirs[0], row.min_version) else None

    def lack(self, row: Api) -> str:
        """What stands in the way of a request of an API without a common version, as the end of a sentence."""
        theirs = self._ranges.get(row.key)
        if theirs is None:
            return f"does not answer {row.name}"
        return (
            f"answers {row.name} in the versions {theirs[0]}-{theirs[1]}, and this node asks in "
            f"{row.min_version}-{row.max_version}"
        )


_ANSWERED: dict[str, Callable[[Greeting, Any], None]] = {
    _VERSIONS: Greeting._told_versions,
    _HANDSHAKE: Greeting._shook_hands,
    _AUTHENTICATE: Greeting._took_token,
}


def _own(key: int) -> Api:
    row = table.by_key(key)
    assert row is not None
    return row
