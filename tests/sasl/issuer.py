"""An issuer of tokens: keys of each type, made once in a run, and what it publishes and signs."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

CURVES = {"ES256": ec.SECP256R1(), "ES384": ec.SECP384R1(), "ES512": ec.SECP521R1()}


@cache
def private_key(algorithm: str, number: int = 0) -> Any:
    """A key for an algorithm; each `number` is another key. All of RSA are the same."""
    if algorithm in CURVES:
        return ec.generate_private_key(CURVES[algorithm])
    if algorithm == "EdDSA":
        return ed25519.Ed25519PrivateKey.generate()
    if algorithm.startswith("HS"):
        return bytes([number]) * 64
    if algorithm != "RS256":
        return private_key("RS256", number)
    return rsa.generate_private_key(65537, 2048)


def jwk(algorithm: str, number: int = 0, **fields: Any) -> dict[str, Any]:
    """The public key, with more fields."""
    key = private_key(algorithm, number)
    shown = key if isinstance(key, bytes) else key.public_key()
    return {**jwt.algorithms.get_default_algorithms()[algorithm].to_jwk(shown, as_dict=True), **fields}


def key_set(*keys: dict[str, Any]) -> bytes:
    """What an issuer publishes."""
    return json.dumps({"keys": keys}).encode()


def signed(claims: Any, algorithm: str = "ES256", number: int = 0, **header: Any) -> str:
    """A token."""
    payload = claims if isinstance(claims, bytes) else json.dumps(claims).encode()
    return jwt.PyJWS().encode(payload, private_key(algorithm, number), algorithm, header)
