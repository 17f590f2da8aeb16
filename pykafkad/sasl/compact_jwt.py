"""The parts of a JSON Web Token as text (RFC 7519; RFC 7515, section 7.1): `header.claims.signature` in base64url.

What a stranger sends is parsed here before anything of it is verified, so every wrong part is one `InvalidToken`.
"""

from __future__ import annotations

import json
from base64 import b64decode
from binascii import Error as Base64Error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_STANDARD = str.maketrans("-_+/", "+/\0\0")
"""From the alphabet of base64url to that of base64; the two signs that only the latter has belong to neither then."""

_BLANKS = bytes(range(0x21)).decode()

_SECONDS_MAX = 2**53
"""A time beyond it, in seconds since 1970, is a mistake; floating point counts exactly up to here."""

JSON_BYTES_MAX = 64 * 1024
"""No token's header or claims are as long; what is parsed takes many times the memory."""


class InvalidToken(Exception):
    """A token that counts for nothing. Its text is the reason, for the broker's log, and quotes nothing of the
    token."""

    def __init__(self, reason: str, missing_scope: str | None = None) -> None:
        super().__init__(reason)
        self.missing_scope = missing_scope
        """The scopes that the token lacks, if that is what is wrong with it."""


def json_object(part: str) -> dict[str, Any]:
    """The JSON object that a part holds in base64url, with or without padding. Raises InvalidToken."""
    try:
        found = json.loads(decoded(part), parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise InvalidToken("a part of it is no JSON") from None
    if not isinstance(found, dict):
        raise InvalidToken("a part of it is no JSON object")
    return found


def decoded(part: str) -> bytes:
    """The bytes of a part. Raises InvalidToken."""
    if len(part) > JSON_BYTES_MAX:
        raise InvalidToken(f"a part of it is longer than {JSON_BYTES_MAX} bytes")
    bare = part.rstrip("=")
    try:
        return b64decode(bare.translate(_STANDARD) + "=" * (-len(bare) % 4), validate=True)
    except (Base64Error, ValueError):
        raise InvalidToken("a part of it is no base64url") from None


def trimmed(text: str) -> str:
    """A text without the blanks at its ends, as Java's String.trim sees them: no other blank of Unicode is one."""
    return text.strip(_BLANKS)


def is_number(value: object) -> bool:
    """Whether a claim is a number that can be a time."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _SECONDS_MAX


def _refuse_constant(name: str) -> None:
    raise ValueError(name)
