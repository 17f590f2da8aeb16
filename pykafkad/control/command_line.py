"""The options of `pykafkad serve` for the control API."""

from __future__ import annotations

from collections.abc import Mapping

from pykafkad.cli import extras
from pykafkad.errors import ConfigError
from pykafkad.server.listeners import parse_address
from pykafkad.testing import served_broker

TOKEN_VARIABLE = "PYKAFKAD_CONTROL_TOKEN"
LEAST_CHARACTERS, MOST_CHARACTERS = 8, 200


def read(
    address: str, token: str | None, environment: Mapping[str, str], properties: dict[str, tuple[str, str]]
) -> tuple[tuple[str, int], str]:
    """Host (empty: the usual one) and port of `--control`, and the token, empty if one is to be made. Raises
    ConfigError."""
    if sentence := extras.missing("waitress"):
        raise ConfigError(f"--control: {sentence}")
    served_broker.allow(properties, "--control")
    return _address(address), _token(token, environment)


def _address(text: str) -> tuple[str, int]:
    if ":" not in text:
        return parse_address(f":{text}", "--control")
    host, port = parse_address(text, "--control")
    if not host:
        raise ConfigError(f"--control {text}: names no host; PORT alone is at 127.0.0.1, 0.0.0.0:PORT at every address")
    return host, port


def _token(given: str | None, environment: Mapping[str, str]) -> str:
    origin, token = "--control-token", given
    if token is None:
        origin, token = TOKEN_VARIABLE, environment.get(TOKEN_VARIABLE)
    if token is None:
        return ""
    if (
        not (LEAST_CHARACTERS <= len(token) <= MOST_CHARACTERS and token.isascii() and token.isprintable())
        or " " in token
    ):
        raise ConfigError(
            f"{origin}: a token has {LEAST_CHARACTERS} to {MOST_CHARACTERS} ASCII characters and no spaces"
        )
    return token
