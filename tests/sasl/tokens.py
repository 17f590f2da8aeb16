"""Tokens, and the first message of a client that shows one."""

from __future__ import annotations

import base64
import json
from typing import Any


def part(value: object) -> str:
    """A part of a token: JSON, or bytes as they are, in base64url without padding."""
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def unsecured(claims: object, header: Any = None, signature: str = "") -> str:
    """A token that nobody has signed."""
    return f"{part({'alg': 'none'} if header is None else header)}.{part(claims)}.{signature}"


def first_message(token: str, authorization_id: str = "", **extensions: str) -> bytes:
    """RFC 7628, section 3.1."""
    pairs = "".join(f"{key}={value}\1" for key, value in {"auth": f"Bearer {token}", **extensions}.items())
    return f"n,{authorization_id and 'a='}{authorization_id},\1{pairs}\1".encode()
