"""`--user NAME:PASSWORD[:MECHANISM]` of `pykafkad serve`: turns the broker's listeners into listeners with SASL.

No error shows a password, nor a text that may hold one.
"""

from __future__ import annotations

from pykafkad.config import BROKER, LISTENER_PREFIX, ROWS
from pykafkad.errors import ConfigError
from pykafkad.sasl import jaas
from pykafkad.sasl.offer import LOGIN_MODULES, PLAIN, USER_PREFIX, WITH_PASSWORD

ORIGIN = "--user"

_WITH_SASL = {"PLAINTEXT": "SASL_PLAINTEXT", "SSL": "SASL_SSL"}


def parse(texts: list[str]) -> list[tuple[str, str, str]]:
    """Name, password and mechanism of each login: a user without a mechanism has one by each. Raises ConfigError."""
    users: list[tuple[str, str, str]] = []
    for number, text in enumerate(texts, 1):
        name, _, rest = text.partition(":")
        password, _, last = rest.rpartition(":")
        mechanisms: tuple[str, ...] | None = (last.upper(),)
        if last.upper() not in WITH_PASSWORD or not password:
            password, mechanisms = rest, None
        if not name or not password:
            raise ConfigError(
                f"--user: number {number} must be NAME:PASSWORD or NAME:PASSWORD:MECHANISM, with one of "
                f"{', '.join(WITH_PASSWORD)}"
            )
        if not name.isascii() and mechanisms not in (None, (PLAIN,)):
            raise ConfigError(f"--user {name}: SCRAM has only names in ASCII; use {PLAIN}")
        if any(each[0] == name for each in users):
            raise ConfigError(f"--user {name}: given twice; without a mechanism, once is enough for all")
        users += mechanisms_of(name, password, mechanisms)
    return users


def mechanisms_of(name: str, password: str, mechanisms: tuple[str, ...] | None = None) -> list[tuple[str, str, str]]:
    """A user's logins: by these mechanisms, or by all that take the name."""
    if mechanisms is None:
        # SCRAM has only names in ASCII.
        mechanisms = WITH_PASSWORD if name.isascii() else (PLAIN,)
    return [(name, password, mechanism) for mechanism in mechanisms]


def plain_module(passwords: dict[str, str]) -> str:
    """The login module of PLAIN with these users, as JAAS writes it."""
    return _module({f"{USER_PREFIX}{name}": password for name, password in passwords.items()})


def apply(users: list[tuple[str, str, str]], properties: dict[str, tuple[str, str]]) -> None:
    """Have the broker's listeners ask for a login, and offer the mechanisms of these users. Users of PLAIN join those
    that the settings name. Raises ConfigError."""
    passwords = {f"{USER_PREFIX}{name}": password for name, password, mechanism in users if mechanism == PLAIN}
    used = {mechanism for _, _, mechanism in users}
    for prefix in ask_for_logins(properties, [each for each in WITH_PASSWORD if each in used], ORIGIN):
        if passwords:
            setting = f"{prefix}plain.sasl.jaas.config"
            properties[setting] = (_module(_options(properties, setting) | passwords), ORIGIN)


def ask_for_logins(properties: dict[str, tuple[str, str]], mechanisms: list[str], origin: str) -> list[str]:
    """Have the broker's listeners ask for a login, and offer these mechanisms beside those that the settings name. How
    the names of each listener's settings begin."""

    from pykafkad.server.listeners import implied_protocols

    def value(name: str) -> str:
        return properties[name][0] if name in properties else ROWS[BROKER][name].default or ""

    controllers = {each.strip().upper() for each in value("controller.listener.names").split(",")}
    names = [each.strip().partition("://")[0].upper() for each in value("listeners").split(",")]
    names = [name for name in names if name not in controllers]
    implied = implied_protocols({name: text for name, (text, _) in properties.items()})
    protocols = {}
    for entry in [*value("listener.security.protocol.map").split(","), *implied]:
        name, _, protocol = (part.strip().upper() for part in entry.partition(":"))
        protocols[name] = _WITH_SASL.get(protocol, protocol) if name in names else protocol
    entries = ",".join(f"{name}:{protocol}" for name, protocol in protocols.items() if name)
    properties["listener.security.protocol.map"] = (entries, origin)
    prefixes = [f"{LISTENER_PREFIX}{name.lower()}." for name in names]
    for prefix in prefixes:
        enabled = f"{prefix}sasl.enabled.mechanisms"
        given = enabled if enabled in properties else "sasl.enabled.mechanisms"
        offered = [each.strip() for each in properties[given][0].split(",")] if given in properties else []
        offered += [each for each in mechanisms if each not in offered]
        properties[enabled] = (",".join(offered), origin)
    return prefixes


def _options(properties: dict[str, tuple[str, str]], setting: str) -> dict[str, str]:
    """What the settings name already."""
    if setting not in properties:
        return {}
    text, origin = properties[setting]
    try:
        options: dict[str, str] = jaas.parse(text).options
    except ConfigError as error:
        raise ConfigError(f"{origin}: {setting}: {error}") from None
    return options


def _module(options: dict[str, str]) -> str:
    words = " ".join(f"{jaas.quoted(key)}={jaas.quoted(value)}" for key, value in options.items())
    return f"{LOGIN_MODULES[PLAIN]} required {words};"
