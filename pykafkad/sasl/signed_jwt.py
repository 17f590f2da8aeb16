"""Tokens that an issuer has signed (RFC 7519): the signature by PyJWT, the claims by the rules of Kafka's
BrokerJwtValidator (KIP-768).

A token must say when it was issued and when it ends. An audience and an issuer that are expected must be there, and a
token for an audience counts nowhere where none is expected.
"""

from __future__ import annotations

from collections import namedtuple

from pykafkad.errors import ConfigError
from pykafkad.sasl import jwks
from pykafkad.sasl.compact_jwt import InvalidToken, is_number, json_object, trimmed
from pykafkad.sasl.oauthbearer import Token

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from pykafkad.sasl.jwks import Key, Keys

Rules = namedtuple("Rules", ("audiences", "issuer", "scope_claim", "principal_claim", "clock_skew_seconds"))
Rules.__doc__ = """What a token must say: one of `audiences` (empty: none may be named) and the `issuer` (None:
anybody). The names of the claims with scopes and with the principal, and how much clocks may differ."""

_RSA_BITS_MIN = 2048
_HMAC_BYTES_MIN = {"HS256": 32, "HS384": 48, "HS512": 64}


def check_library() -> None:
    """Raises ConfigError where the library that verifies signatures is missing."""
    remedy = "pip install 'pykafkad[oauth]'"
    try:
        from jwt.algorithms import has_crypto
    except ImportError as error:
        raise ConfigError(f"verifying signed tokens needs PyJWT ({error}); {remedy}") from None
    if not has_crypto:
        raise ConfigError(f"verifying signed tokens needs cryptography beside PyJWT; {remedy}")


class SignedValidator:
    """Says of each token whose it is and how long it counts."""

    __slots__ = ("_keys", "_now_ms", "_rules")

    def __init__(self, keys: Keys, rules: Rules, now_ms: Callable[[], int]) -> None:
        self._keys = keys
        self._rules = rules
        self._now_ms = now_ms

    def __call__(self, token: str) -> Token:
        """Raises InvalidToken."""
        parts = token.split(".")
        if len(parts) != 3 or not all(parts):
            raise InvalidToken("it does not have three parts")
        header = json_object(parts[0])
        algorithm = jwks.algorithm_of(header)
        if "crit" in header:
            raise InvalidToken("it asks for an extension that nobody here knows")
        key_id = header.get("kid")
        if not isinstance(key_id, str | None):
            raise InvalidToken("the id of its key is no text")
        claims = json_object(parts[1])
        key = jwks.choose(self._keys.current(), algorithm, key_id)
        if key is None:
            self._keys.miss(key_id)
            raise InvalidToken("the issuer has no key of that id and algorithm")
        _verify(token, key, algorithm)
        expires_s = self._check_times(claims)
        self._check_names(claims)
        self._check_scopes(claims)
        principal = claims.get(self._rules.principal_claim)
        if not isinstance(principal, str) or not trimmed(principal):
            raise InvalidToken(f"it has no text as its claim {self._rules.principal_claim}")
        return Token(trimmed(principal), 1000 * expires_s)

    def _check_times(self, claims: Mapping[str, Any]) -> int:
        """When the token ends, in seconds since 1970. The comparisons are those of Kafka's library, which takes a token
        that says it was issued in the future."""
        times: dict[str, int] = {}
        for name in ("exp", "iat", "nbf"):
            if name not in claims and name == "nbf":
                continue
            value: Any = claims.get(name)
            if not is_number(value) or int(value) < 0:
                raise InvalidToken(f"its claim {name} must be a number from 0 on")
            times[name] = int(value)
        end, begin = times["exp"], times.get("nbf", 0)
        now, skew = self._now_ms() // 1000, self._rules.clock_skew_seconds
        if now - skew >= end:
            raise InvalidToken("it has expired")
        if end < max(begin, times["iat"]):
            raise InvalidToken("it ends before it begins")
        if now + skew < begin:
            raise InvalidToken("it does not count yet")
        return end

    def _check_names(self, claims: Mapping[str, Any]) -> None:
        for name in ("iss", "sub", "jti"):
            if not isinstance(claims.get(name, ""), str):
                raise InvalidToken(f"its claim {name} is no text")
        if self._rules.issuer not in (None, claims.get("iss")):
            raise InvalidToken("it is not from the issuer that is expected")
        audiences = claims.get("aud", [])
        if isinstance(audiences, str):
            audiences = [audiences]
        if not isinstance(audiences, list) or not all(isinstance(each, str) for each in audiences):
            raise InvalidToken("its claim aud is neither a text nor a list of texts")
        if "aud" in claims and not self._rules.audiences:
            raise InvalidToken("it is for an audience, and none is expected")
        if self._rules.audiences and self._rules.audiences.isdisjoint(audiences):
            raise InvalidToken("it is not for an audience that is expected")

    def _check_scopes(self, claims: Mapping[str, Any]) -> None:
        scopes = claims.get(self._rules.scope_claim)
        if isinstance(scopes, str):
            scopes = [scopes]
        if not isinstance(scopes, list):
            return
        names = [trimmed(each) for each in scopes if isinstance(each, str)]
        if len(names) != len(scopes) or not all(names) or len(set(names)) != len(names):
            raise InvalidToken(f"its claim {self._rules.scope_claim} must have texts, each once")


def _verify(token: str, key: Key, algorithm: str) -> None:
    """Raises InvalidToken unless `key` has signed the token."""
    import jwt

    try:
        public = jwt.PyJWK(dict(key), algorithm)
    except Exception:
        # Also KeyError, TypeError and others, by what the issuer has put in.
        raise InvalidToken("the issuer's key cannot be used for its algorithm") from None
    if getattr(public.key, "key_size", _RSA_BITS_MIN) < _RSA_BITS_MIN and key["kty"] == "RSA":
        raise InvalidToken(f"the issuer's key has less than {_RSA_BITS_MIN} bits")
    if key["kty"] == "oct" and len(public.key) < _HMAC_BYTES_MIN[algorithm]:
        raise InvalidToken(f"the issuer's key has less than {_HMAC_BYTES_MIN[algorithm]} bytes")
    try:
        jwt.PyJWS().decode_complete(token, public, algorithms=[algorithm])
    except jwt.PyJWTError:
        raise InvalidToken("its signature is not the issuer's") from None
