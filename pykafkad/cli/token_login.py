"""Logins of commands by OAUTHBEARER: with a token of an issuer, or with one that nobody has signed, as the options of
Java's login module describe it (KIP-255)."""

from __future__ import annotations

import json
import math
from base64 import urlsafe_b64encode

from pykafkad.cli.token_source import TokenSource
from pykafkad.clock import Clock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

UNSIGNED = "unsecuredLogin"
"""How the options begin that describe a token without a signature."""

LIFETIME = f"{UNSIGNED}LifetimeSeconds"
_STRING, _NUMBER, _LIST = (f"{UNSIGNED}{kind}Claim_" for kind in ("String", "Number", "List"))
OPTIONS = (f"{_STRING}NAME", f"{_NUMBER}NAME", f"{_LIST}NAME", LIFETIME)
_LIFETIME_SECONDS = 3600.0


def provider(token: Callable[[], str]) -> Any:
    """The value of kafka-python's `sasl_oauth_token_provider`, which calls `token` for each login."""
    from kafka.net.sasl.oauth import AbstractTokenProvider

    class Provider(AbstractTokenProvider):  # type: ignore[misc]
        """As kafka-python wants it."""

        def token(self) -> str:
            return token()

    return Provider()


def source(own: Mapping[str, str]) -> Callable[[], str]:
    """What makes the tokens that the options of `client_properties.read` ask for. Raises OSError when it is called and
    the issuer gives none."""
    if "token_url" not in own:
        return lambda: unsigned(own, Clock().now_ms() / 1000)
    return TokenSource(own["token_url"], own["token_client"], own["token_secret"], own.get("token_scope")).token


def subject(options: Mapping[str, str]) -> str:
    """Whom a token without a signature names; empty if nobody."""
    return options.get(f"{_STRING}sub", "")


def check(options: Mapping[str, str]) -> None:
    """Raises ValueError, which quotes no value, for options that make no token."""
    for name in options:
        if name != LIFETIME and not name.startswith((_STRING, _NUMBER, _LIST)):
            raise ValueError(f"knows no {name}, only {', '.join(OPTIONS)}")
    if not subject(options):
        raise ValueError(f'must have {_STRING}sub="NAME"')
    for name, text in options.items():
        if name == LIFETIME or name.startswith(_NUMBER):
            try:
                is_number = math.isfinite(float(text))
            except ValueError:
                is_number = False
            if not is_number:
                raise ValueError(f"must have a number as {name}")


def unsigned(options: Mapping[str, str], now_seconds: float) -> str:
    """A token without a signature (RFC 7515, appendix A.5) that begins now."""
    claims: dict[str, object] = {
        "iat": now_seconds,
        "exp": now_seconds + float(options.get(LIFETIME, _LIFETIME_SECONDS)),
    }
    for name, text in options.items():
        if name.startswith(_STRING):
            claims[name.removeprefix(_STRING)] = text
        elif name.startswith(_NUMBER):
            claims[name.removeprefix(_NUMBER)] = float(text)
        elif name.startswith(_LIST):
            # Its first sign stands between the values.
            claims[name.removeprefix(_LIST)] = text[1:].split(text[0]) if text else []
    return f"{_part({'alg': 'none'})}.{_part(claims)}."


def _part(value: Mapping[str, object]) -> str:
    return urlsafe_b64encode(json.dumps(value, allow_nan=False).encode()).rstrip(b"=").decode()
