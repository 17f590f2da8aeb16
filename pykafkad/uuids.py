"""Kafka's ids of 16 bytes. As text they are 22 characters of URL-safe base64 without padding."""

from __future__ import annotations

from binascii import a2b_base64, b2a_base64

TYPE_CHECKING = False
if TYPE_CHECKING:
    from random import Random

ZERO = b"\0" * 16


def to_text(value: bytes) -> str:
    """The text of an id, such as `AAAAAAAAAAAAAAAAAAAAAQ` for the metadata topic."""
    return b2a_base64(value, newline=False).rstrip(b"=").decode().replace("+", "-").replace("/", "_")


def from_text(text: str) -> bytes:
    """The id that a text stands for. Raises ValueError for a text that does not stand for 16 bytes."""
    value = a2b_base64(text.replace("-", "+").replace("_", "/") + "==")
    if len(value) != 16:
        raise ValueError(f"{text!r} is not the 22 characters of an id")
    return value


def random_uuid(random: Random) -> bytes:
    """A random id (version 4). Its text never begins with a dash, which command lines would take for an option."""
    while True:
        value = bytearray(random.getrandbits(128).to_bytes(16, "big"))
        value[6] = value[6] & 0x0F | 0x40
        value[8] = value[8] & 0x3F | 0x80
        if value[0] >> 2 != 62:
            return bytes(value)
