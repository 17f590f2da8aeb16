"""Tokens without a signature (RFC 7515, appendix A.5), for tests and trusted networks: what they claim is believed.

Kafka's rule for OAUTHBEARER where no other is chosen (KIP-255). The options of the login module say which claims count:
`unsecuredValidatorPrincipalClaimName`, `unsecuredValidatorScopeClaimName`, `unsecuredValidatorRequiredScope` and
`unsecuredValidatorAllowableClockSkewMs`.
"""

from __future__ import annotations

from pykafkad.errors import ConfigError
from pykafkad.sasl.compact_jwt import InvalidToken, is_number, json_object, trimmed
from pykafkad.sasl.oauthbearer import Token

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_PREFIX = "unsecuredValidator"
_INT_MAX = 2**31 - 1


class UnsecuredValidator:
    """Says of each token whose it is and how long it counts."""

    __slots__ = ("_allowed_skew_ms", "_now_ms", "_principal_claim", "_required_scopes", "_scope_claim")

    def __init__(self, options: Mapping[str, str], now_ms: Callable[[], int]) -> None:
        """`options` are those of the login module. Raises ConfigError."""
        self._now_ms = now_ms
        self._principal_claim = options.get(f"{_PREFIX}PrincipalClaimName", "").strip() or "sub"
        self._scope_claim = options.get(f"{_PREFIX}ScopeClaimName", "").strip() or "scope"
        self._required_scopes = [each for each in options.get(f"{_PREFIX}RequiredScope", "").split(" ") if each.strip()]
        for scope in self._required_scopes:
            # RFC 6749, section 3.3.
            if not (scope.isascii() and scope.isprintable()) or '"' in scope or "\\" in scope:
                raise ConfigError(f"{_PREFIX}RequiredScope: a scope must be printable ASCII without quotes")
        skew = options.get(f"{_PREFIX}AllowableClockSkewMs", "").strip() or "0"
        if not (skew.isascii() and skew.isdecimal() and int(skew) <= _INT_MAX):
            raise ConfigError(f"{_PREFIX}AllowableClockSkewMs: must be a whole number of milliseconds from 0 on")
        self._allowed_skew_ms = int(skew)

    def __call__(self, token: str) -> Token:
        """Raises InvalidToken."""
        parts = token.split(".")
        if len(parts) != 3:
            raise InvalidToken("it does not have three parts")
        header, claims = json_object(parts[0]), json_object(parts[1])
        if header.get("alg") != "none" or parts[2]:
            raise InvalidToken("it is signed, and only tokens without a signature are taken")
        expires_ms = self._check_times(claims)
        principal = _text(claims[self._principal_claim]) if self._principal_claim in claims else None
        if not isinstance(principal, str) or not trimmed(principal):
            raise InvalidToken(f"it has no text as its claim {self._principal_claim}")
        self._check_scope(claims)
        return Token(principal, expires_ms)

    def _check_times(self, claims: Mapping[str, object]) -> int:
        """When the token ends, in milliseconds since 1970."""
        end, begin = claims.get("exp"), claims.get("iat")
        if not is_number(end) or ("iat" in claims and not is_number(begin)):
            raise InvalidToken("its claims exp and iat must be numbers")
        assert isinstance(end, int | float)
        now_ms = self._now_ms()
        if begin is not None:
            assert isinstance(begin, int | float)
            if 1000 * begin > now_ms + self._allowed_skew_ms:
                raise InvalidToken("it is issued in the future")
            if end <= begin:
                raise InvalidToken("it ends before it is issued")
        if now_ms - self._allowed_skew_ms >= 1000 * end:
            raise InvalidToken("it has expired")
        return int(end * 1000 + 0.5)

    def _check_scope(self, claims: Mapping[str, object]) -> None:
        value = _text(claims.get(self._scope_claim, ""))
        if not isinstance(value, str | list):
            raise InvalidToken(f"its claim {self._scope_claim} is neither a text nor a list")
        # A text is one scope, however many words it has.
        scopes = {trimmed(each) for each in ([value] if isinstance(value, str) else value)}
        if not scopes.issuperset(self._required_scopes):
            raise InvalidToken("it lacks a required scope", f"[{', '.join(self._required_scopes)}]")


def _text(value: object) -> object:
    """A claim as Kafka sees it: a number, a list of texts, or a text; a boolean or null by its JSON."""
    if isinstance(value, list):
        return ["" if isinstance(each, list) else str(_text(each)) for each in value]
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "null"
    return "" if isinstance(value, dict) else value
