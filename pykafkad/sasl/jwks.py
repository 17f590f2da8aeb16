"""Key sets (RFC 7517): what an issuer publishes to verify its tokens with, and which key of a set is a token's."""

from __future__ import annotations

import json

from pykafkad.sasl.compact_jwt import InvalidToken

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, Protocol

    Key = Mapping[str, Any]

    class Keys(Protocol):
        """Where the keys come from."""

        def current(self) -> Sequence[Key]:
            """The keys as they are known now. Raises InvalidToken where none are."""

        def miss(self, key_id: str | None) -> None:
            """A token names a key that is not there: the issuer may have a new one."""

        def close(self) -> None:
            """Nobody needs the keys any more."""


KEYS_MAX = 1000
"""Issuers publish a handful. They are looked through for each token."""

KEY_TYPES = {
    **dict.fromkeys(("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"), "RSA"),
    **dict.fromkeys(("ES256", "ES384", "ES512"), "EC"),
    **dict.fromkeys(("HS256", "HS384", "HS512"), "oct"),
    "EdDSA": "OKP",
}
"""The algorithms that may sign a token (RFC 7518, section 3.1), each with the type of its keys. `none` is not one."""

_TYPES = tuple(dict.fromkeys(KEY_TYPES.values()))
_CURVES = {"ES256": "P-256", "ES384": "P-384", "ES512": "P-521"}


def parse(data: bytes) -> list[Key]:
    """The keys of a set; an entry of a type that nobody here knows is left out, as RFC 7517 asks, and one that is not
    as it should be, as by Kafka's library. Raises ValueError."""
    try:
        found = json.loads(data)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    keys = found.get("keys") if isinstance(found, dict) else None
    if not isinstance(keys, list):
        raise ValueError("it has no list of keys")
    if len(keys) > KEYS_MAX:
        raise ValueError(f"it has {len(keys)} keys, and more than {KEYS_MAX} are not taken")
    return [key for key in keys if isinstance(key, dict) and _is_usable(key)]


def _is_usable(key: Key) -> bool:
    operations = key.get("key_ops")
    return key.get("kty") in _TYPES and (operations is None or isinstance(operations, list))


def choose(keys: Sequence[Key], algorithm: str, key_id: str | None) -> Key | None:
    """The key that a token's header means, as Kafka's library finds it: of the right type, for signatures, and with the
    id that the token names. Of several the first whose own algorithm and curve fit."""
    found = [
        key
        for key in keys
        if key["kty"] == KEY_TYPES[algorithm]
        and key.get("use") in (None, "sig")
        and "verify" in (key.get("key_ops") or ("verify",))
        and key_id in (None, key.get("kid"))
    ]
    if len(found) > 1:
        found = [key for key in found if key.get("alg") in (None, algorithm)]
    if len(found) > 1 and algorithm in _CURVES:
        found = [key for key in found if key.get("crv") == _CURVES[algorithm]]
    return found[0] if found else None


def algorithm_of(header: Mapping[str, Any]) -> str:
    """The algorithm that a token's header names. Raises InvalidToken for one that signs nothing."""
    algorithm = header.get("alg")
    if not isinstance(algorithm, str) or algorithm not in KEY_TYPES:
        raise InvalidToken(f"its algorithm is none of {', '.join(KEY_TYPES)}")
    return algorithm
