"""`--oauth CLIENT:SECRET` of `pykafkad serve`: an issuer of tokens beside the broker, and listeners that believe it.

No error shows a secret, nor a text that may hold one.
"""

from __future__ import annotations

from pykafkad.cli import extras
from pykafkad.cli.users import ask_for_logins
from pykafkad.errors import ConfigError
from pykafkad.sasl.offer import LOGIN_MODULES, OAUTHBEARER
from pykafkad.sasl.token_rules import CALLBACKS, ENDPOINT, SIGNED
from pykafkad.server.listeners import parse_address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.issuer.served import ServedIssuer as Issuer

ORIGIN = "--oauth"
LIFETIME_SECONDS_MAX = 10 * 365 * 86400


def serve(
    clients: list[str], address: str | None, lifetime: str | None, properties: dict[str, tuple[str, str]]
) -> Issuer:
    """Serve an issuer for the clients of `--oauth`, at the address of `--oauth-listen` and with tokens that live as
    `--oauth-lifetime` says, and have the broker's listeners believe it. Raises ConfigError, and StartFailure for an
    address that can't be had."""
    for module in ("waitress", "jwt"):
        if sentence := extras.missing(module):
            raise ConfigError(f"{ORIGIN}: {sentence}")
    if ENDPOINT in properties:
        raise ConfigError(f"{ORIGIN}: {properties[ENDPOINT][1]} names another issuer in {ENDPOINT}; have one of them")
    from pykafkad.issuer.served import ServedIssuer
    from pykafkad.issuer.tokens import USUAL_LIFETIME_SECONDS

    secrets = parse(clients)
    host, port = _address(address)
    seconds = USUAL_LIFETIME_SECONDS if lifetime is None else _lifetime_seconds(lifetime)
    issuer = ServedIssuer(secrets, host, port, seconds)
    for prefix in ask_for_logins(properties, [OAUTHBEARER], ORIGIN):
        own = f"{prefix}{OAUTHBEARER.lower()}."
        properties[f"{own}sasl.jaas.config"] = (f"{LOGIN_MODULES[OAUTHBEARER]} required;", ORIGIN)
        properties[f"{own}{CALLBACKS}"] = (SIGNED, ORIGIN)
    properties.update((name, (text, ORIGIN)) for name, text in issuer.settings.items())
    return issuer


def parse(texts: list[str]) -> dict[str, str]:
    """The secrets of clients by their ids. A secret may hold colons. Raises ConfigError."""
    secrets: dict[str, str] = {}
    for number, text in enumerate(texts, 1):
        client, _, secret = text.partition(":")
        if not client.strip() or not secret:
            raise ConfigError(f"{ORIGIN}: number {number} must be CLIENT:SECRET")
        if client != client.strip() or not client.isprintable():
            raise ConfigError(
                f"{ORIGIN}: number {number} has a client that begins or ends with a blank, or a line break"
            )
        if client in secrets:
            raise ConfigError(f"{ORIGIN} {client}: given twice")
        secrets[client] = secret
    return secrets


def _address(text: str | None) -> tuple[str, int]:
    if text is None:
        return "", 0
    return parse_address(text if ":" in text else f":{text}", "--oauth-listen")


def _lifetime_seconds(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and 0 < int(text) <= LIFETIME_SECONDS_MAX):
        raise ConfigError(f"--oauth-lifetime {text}: must be a number of seconds from 1 to {LIFETIME_SECONDS_MAX}")
    return int(text)
