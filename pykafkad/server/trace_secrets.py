"""What a wire trace must not hold: passwords, keys and the tokens of logins. They are replaced before a frame is kept.

A frame of these APIs that cannot be read is not kept at all."""

from __future__ import annotations

from struct import error as StructError

from pykafkad.errors import ProtocolError
from pykafkad.settings.rows import BROKER, ROWS, TOPIC
from pykafkad.wire import frames, messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

HIDDEN = "(hidden)"
_TELLING = ("password", "secret", "jaas", "credential", "token", ".key", "passphrase")
_TYPE_PASSWORD = "password"


def is_secret(name: str) -> bool:
    """Whether the value of a setting is hidden: it is a password, it is named like one, or nobody knows the setting."""
    setting = name.split(".", 3)[-1] if name.startswith("listener.name.") else name
    row = ROWS[BROKER].get(setting) or ROWS[TOPIC].get(setting)
    return row is None or row.type == _TYPE_PASSWORD or any(each in name.lower() for each in _TELLING)


def _bytes_of_login(message: Any) -> None:
    message.auth_bytes = b""


def _settings(message: Any) -> None:
    for resource in message.resources:
        for row in resource.configs:
            if row.value is not None and is_secret(row.name):
                row.value = HIDDEN


def _scram(message: Any) -> None:
    for row in message.upsertions:
        row.salt = row.salted_password = b""


def _hmac(message: Any) -> None:
    message.hmac = b""


def _tokens(message: Any) -> None:
    for token in message.tokens:
        token.hmac = b""


def _nothing(message: Any) -> None:
    """No secret here."""


_CLEAN: dict[int, tuple[Callable[[Any], None], Callable[[Any], None]]] = {
    33: (_settings, _nothing),
    36: (_bytes_of_login, _bytes_of_login),
    38: (_nothing, _hmac),
    39: (_hmac, _nothing),
    40: (_hmac, _nothing),
    41: (_nothing, _tokens),
    44: (_settings, _nothing),
    51: (_scram, _nothing),
}
"""API key to what takes the secrets out of a request and out of an answer."""

KEYS = frozenset(_CLEAN)
"""The APIs whose frames may hold secrets."""


def without(frame: bytes, key: int, version: int, is_answer: bool, flexible: dict[int, int]) -> bytes:
    """A frame of one of `KEYS` without its secrets; empty if it cannot be read."""
    view = memoryview(frame)
    try:
        if is_answer:
            cls = messages.response_class(key)
            position = frames.read_response_header(view, frames.response_is_tagged(key, version, flexible))[1]
        else:
            cls = messages.request_class(key)
            position = frames.read_request_header(view, flexible)[4]
        message, _ = messages.decoder(cls, version)(view, position)
        _CLEAN[key][is_answer](message)
        chunks: list[Any] = [bytearray(view[:position])]
        messages.encoder(cls, version)(message, chunks)
        return b"".join(chunks)
    except (ProtocolError, StructError, IndexError, ValueError):
        return b""
