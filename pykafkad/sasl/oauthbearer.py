"""OAUTHBEARER (RFC 7628): the client shows a token that somebody else has given it.

The client's first message is `n,[a=authorization id],` and pairs `key=value`, each followed by the byte 1, and that
byte once more. `auth` is `Bearer <token>`; the other pairs are extensions (KIP-342), which nothing here reads. A token
that does not count is answered by JSON with a status. The client says with the byte 1 that it has read it, and then the
login ends. Who sends another first message instead tries again, as in Kafka.
"""

from __future__ import annotations

import re
from collections import namedtuple

from pykafkad.sasl.compact_jwt import InvalidToken
from pykafkad.sasl.step import DONE, GOES_ON, REFUSED, Step

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Validate = Callable[[str], "Token"]
    """What a token says that counts. Raises InvalidToken for any other."""

Token = namedtuple("Token", ("principal", "expires_ms"))
Token.__doc__ = """A token that counts: whose it is ("alice"), and until when, in milliseconds since 1970."""

SEEN = b"\x01"
"""What a client sends that has read why its token does not count (RFC 7628, section 3.2.3)."""

_NAME = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
_PAIR = r"[A-Za-z]+=[\x21-\x7e \t\r\n]+\x01"
_FIRST = re.compile(rf"n,(?:a=({_NAME}))?,\x01((?:{_PAIR})*)\x01")
_AUTH = re.compile(r"([A-Za-z0-9_]+) +([-_~+/.a-zA-Z0-9]+=*)")
_WRONG = Step(REFUSED)


class OAuthBearer:
    """One exchange. `user` is the name of who has logged in, and `expires_ms` when its token ends."""

    __slots__ = ("_problem", "_tell", "_validate", "expires_ms", "may_block", "user")

    is_by_token = False
    """An issuer's token is a login of its own; delegation tokens are others, and log in by SCRAM."""

    def __init__(self, validate: Validate, tell: Callable[[str], object], *, may_block: bool = False) -> None:
        """`tell` takes the reason why a token is refused, for the broker's log. `may_block` says whether `validate` may
        wait for others."""
        self.may_block = may_block
        self._validate = validate
        self._tell = tell
        self._problem: str | None = None
        self.user = ""
        self.expires_ms: int | None = None

    def step(self, token: bytes) -> Step:
        """Takes the client's first message, or its answer to an error."""
        if token == SEEN and self._problem is not None:
            return Step(REFUSED, problem=self._problem)
        self._problem = None
        first = _FIRST.fullmatch(token.decode("utf-8", "replace"))
        if first is None:
            return _WRONG
        authorization_id, pairs = first.groups()
        found = _AUTH.fullmatch(dict(pair.split("=", 1) for pair in pairs.split("\x01")[:-1]).get("auth", ""))
        if found is None or found[1].lower() != "bearer":
            return _WRONG
        try:
            shown = self._validate(found[2])
        except InvalidToken as invalid:
            self._tell(str(invalid))
            self._problem = _error(invalid)
            return Step(GOES_ON, self._problem.encode())
        if authorization_id not in (None, shown.principal):
            return Step(
                REFUSED,
                problem=f"Authentication failed: Client requested an authorization id ({authorization_id}) that is "
                f"different from the token's principal name ({shown.principal})",
            )
        self.user = shown.principal
        self.expires_ms = shown.expires_ms
        return Step(DONE)


def _error(invalid: InvalidToken) -> str:
    """The error as Kafka writes it (RFC 7628, section 3.2.2)."""
    if invalid.missing_scope is None:
        return '{"status":"invalid_token"}'
    return f'{{"status":"insufficient_scope", "scope":"{invalid.missing_scope}"}}'
