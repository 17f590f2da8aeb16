"""Settings that are given for one listener, or for one SASL mechanism of a listener: which of them count."""

from __future__ import annotations

from pykafkad.settings.rows import BROKER, ROWS

PREFIX = "listener.name."

# The settings of these families are read for a listener first.
_FAMILIES = (
    "pykafkad.sasl.callback",
    "sasl.",
    "ssl.",
    "connections.max.reauth.ms",
    "max.connections",
    "max.connection.creation.rate",
)
# And these of the families begin like others that are the broker's alone.
_OF_BROKER = ("max.connections.per.ip", "max.connections.per.ip.overrides")
_WITH_MECHANISM = (
    "connections.max.reauth.ms",
    "pykafkad.sasl.callback",
    "sasl.jaas.config",
    "sasl.server.callback.handler.class",
)
# And of these some.
_OF_MECHANISM = "sasl.oauthbearer."
# These are never read without both prefixes.
_NEVER_ALONE = ("sasl.jaas.config",)

# Settings that Kafka lets change live only for one listener, never under their own names.
LISTENER_ONLY = frozenset(
    (
        "ssl.key.password",
        "ssl.keystore.certificate.chain",
        "ssl.keystore.key",
        "ssl.keystore.location",
        "ssl.keystore.password",
        "ssl.keystore.type",
        "ssl.truststore.certificates",
        "ssl.truststore.location",
        "ssl.truststore.password",
        "ssl.truststore.type",
    )
)


def sentence(name: str) -> str | None:
    """Why a setting does not count: empty if it does, None if the prefixes of listeners do not matter for the name."""
    if name in _NEVER_ALONE:
        return f"{name} counts only as {PREFIX}<listener>.<mechanism>.{name}"
    if not name.startswith(PREFIX):
        return None
    setting = name.split(".", 3)[-1]
    of_mechanism = setting.partition(".")[2]
    if of_mechanism in _WITH_MECHANISM:
        return ""
    if of_mechanism.startswith(_OF_MECHANISM):
        setting = of_mechanism
    row = ROWS[BROKER].get(setting)
    if row is None:
        return None
    if setting in _NEVER_ALONE:
        return f"{name} counts only as {PREFIX}<listener>.<mechanism>.{setting}"
    counts = row.effect and setting.startswith(_FAMILIES) and setting not in _OF_BROKER
    return "" if counts else f"{name} has no effect in this version of pykafkad"
