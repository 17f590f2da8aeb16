"""What the settings of a listener offer, and what is refused at start."""

from __future__ import annotations

import os
from typing import Any

import pytest

from pykafkad import config
from pykafkad.errors import ConfigError
from pykafkad.sasl.offer import Offer
from tests.sasl.tokens import first_message, unsecured

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
JAAS = "listener.name.x.plain.sasl.jaas.config"
OAUTH = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
OAUTH_JAAS = "listener.name.x.oauthbearer.sasl.jaas.config"
HANDLER = "listener.name.x.oauthbearer.sasl.server.callback.handler.class"
NOW_MS = 1_700_000_000_000


def no_keys(endpoint: Any) -> Any:
    """No listener here verifies tokens."""
    raise AssertionError(endpoint)


def no_keytab(keytab: str | None, principal: str) -> Any:
    """And none offers GSSAPI."""
    raise AssertionError(principal)


def offer(values: dict[str, str]) -> Offer:
    """What these settings offer at the listener X."""
    settings = config.Settings.from_properties({name: (text, "test") for name, text in values.items()})
    return Offer(
        settings, "X", lambda mechanism, user: None, os.urandom, lambda: NOW_MS, print, no_keys, None, no_keytab
    )


def test_a_listener_may_have_settings_of_its_own() -> None:
    """They come before those for all."""
    made = offer(
        {
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.x.sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512,SCRAM-SHA-256",
            "connections.max.reauth.ms": "1000",
            "listener.name.x.connections.max.reauth.ms": "2000",
            "listener.name.x.scram-sha-512.connections.max.reauth.ms": "-1",
            "listener.name.y.scram-sha-512.connections.max.reauth.ms": "4000",
            "listener.name.x.sasl.server.max.receive.size": "99",
        }
    )
    assert made.mechanisms == ["SCRAM-SHA-512", "SCRAM-SHA-256"] and made.max_receive_bytes == 99
    assert made.session_lifetime_ms("SCRAM-SHA-256", None) == 2000
    assert made.session_lifetime_ms("SCRAM-SHA-512", None) is None


def test_a_login_counts_no_longer_than_its_token() -> None:
    """Nor longer than the settings say; what has ended counts for nothing but the login itself."""
    values = {
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        OAUTH_JAAS: f"{OAUTH} required;",
        "listener.name.x.oauthbearer.connections.max.reauth.ms": "2000",
    }
    made = offer(values)
    assert made.session_lifetime_ms("OAUTHBEARER", NOW_MS + 1999) == 1999
    assert made.session_lifetime_ms("OAUTHBEARER", NOW_MS + 2001) == 2000
    assert made.session_lifetime_ms("OAUTHBEARER", NOW_MS - 1) == 0
    del values["listener.name.x.oauthbearer.connections.max.reauth.ms"]
    assert offer(values).session_lifetime_ms("OAUTHBEARER", NOW_MS + 9999) == 9999


def test_mechanisms_are_in_kafkas_order() -> None:
    """Whatever the order of the settings."""
    names = "OAUTHBEARER,SCRAM-SHA-256,SCRAM-SHA-512,PLAIN"
    made = offer(_PLAIN_ON | {"sasl.enabled.mechanisms": names, OAUTH_JAAS: f"{OAUTH} required;"})
    assert made.mechanisms == ["SCRAM-SHA-512", "PLAIN", "SCRAM-SHA-256", "OAUTHBEARER"]


def test_tokens_are_believed_where_kafka_believes_them() -> None:
    """Without a callback class, and with that of Kafka which says so; with the options of the login module."""
    option = 'unsecuredValidatorPrincipalClaimName="who"'
    values = {"sasl.enabled.mechanisms": "OAUTHBEARER", OAUTH_JAAS: f"{OAUTH} required {option};"}
    token = unsecured({"who": "alice", "exp": NOW_MS // 1000 + 1})
    for more in ({}, {HANDLER: f"{OAUTH.rpartition('.')[0]}.internals.unsecured."
                      "OAuthBearerUnsecuredValidatorCallbackHandler"}):  # fmt: skip
        exchange = offer(values | more).exchange("OAUTHBEARER")
        assert exchange.step(first_message(token)).outcome == "done"
        assert exchange.user == "alice"


def test_users_of_plain_are_options_of_its_login_module() -> None:
    """The others are for logins of the broker itself; SCRAM's module has no users."""
    made = offer(
        {
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
            JAAS: f'{PLAIN} required username="admin" password="x" user_alice="secret";',
            "listener.name.x.scram-sha-256.sasl.jaas.config": f"{SCRAM} required;",
        }
    )
    assert made.exchange("PLAIN").step(b"\0alice\0secret").outcome == "done"
    assert made.exchange("PLAIN").step(b"\0admin\0x").outcome == "refused"


def test_each_exchange_has_a_nonce_of_its_own() -> None:
    """Long, and after the client's."""
    made = offer({"sasl.enabled.mechanisms": "SCRAM-SHA-256"})
    nonces = {made.exchange("SCRAM-SHA-256").step(b"n,,n=a,r=x").token.split(b",")[0] for _ in range(20)}
    assert len(nonces) == 20 and all(each.startswith(b"r=x") and len(each) >= 3 + 24 for each in nonces)


_PLAIN_ON = {"sasl.enabled.mechanisms": "PLAIN", JAAS: f'{PLAIN} required user_a="hunter2";'}


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        (
            {},
            r"listener.name.x.gssapi.sasl.jaas.config: is not set, and GSSAPI, the default of sasl.enabled.mechanisms, "
            "needs it; set it to: com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true",
        ),
        (
            {"sasl.enabled.mechanisms": "OAUTHBEARER"},
            f"{OAUTH_JAAS}: is not set, and Kafka does not start without it; set it to: {OAUTH} required;",
        ),
        (
            {"sasl.enabled.mechanisms": "OAUTHBEARER", OAUTH_JAAS: f'{PLAIN} required user_a="hunter2";'},
            f"{OAUTH_JAAS}: must name {OAUTH}",
        ),
        (
            {
                "sasl.enabled.mechanisms": "OAUTHBEARER",
                OAUTH_JAAS: f'{OAUTH} required unsecuredValidatorAllowableClockSkewMs="hunter2";',
            },
            f"{OAUTH_JAAS}: unsecuredValidatorAllowableClockSkewMs: must be a whole number",
        ),
        (
            {"sasl.enabled.mechanisms": "OAUTHBEARER", OAUTH_JAAS: f"{OAUTH} required;", HANDLER: "com.example.Mine"},
            f"{HANDLER}: com.example.Mine is a Java class, which cannot run here; for tokens ",
        ),
        ({"sasl.enabled.mechanisms": ""}, "sasl.enabled.mechanisms: names no mechanism"),
        (
            {"sasl.enabled.mechanisms": "PLAIN", "listener.name.x.sasl.enabled.mechanisms": "plain"},
            r"listener.name.x.sasl.enabled.mechanisms: plain is not offered; use some of PLAIN, SCRAM-SHA-256",
        ),
        (
            {"sasl.enabled.mechanisms": "PLAIN", "sasl.jaas.config": f'{PLAIN} required user_a="hunter2";'},
            rf"{JAAS}: is not set, so nobody could log in \(as in Kafka, sasl.jaas.config alone does not count\)",
        ),
        (_PLAIN_ON | {JAAS: f'{PLAIN} required user_a="hunter2"'}, f"{JAAS}: must end with a semicolon"),
        (_PLAIN_ON | {JAAS: f'{SCRAM} required user_a="hunter2";'}, f"{JAAS}: must name {PLAIN}"),
        (
            _PLAIN_ON | {"listener.name.x.plain.sasl.server.callback.handler.class": "com.example.Ldap"},
            r"callback.handler.class: com.example.Ldap is a Java class, which cannot run here; remove it, and name",
        ),
        (
            _PLAIN_ON | {"listener.name.x.plain.connections.max.reauth.ms": "soon"},
            r"listener.name.x.plain.connections.max.reauth.ms: .*Not a number",
        ),
    ],
)
def test_what_cannot_be_is_refused_at_start(values: dict[str, Any], problem: str) -> None:
    """With the setting, and what to use instead; and without any password."""
    with pytest.raises(ConfigError, match=problem) as caught:
        offer(values)
    assert "hunter2" not in str(caught.value)


def test_no_warning_for_what_counts() -> None:
    """And the general form of JAAS, which counts nowhere, gets one."""
    values = _PLAIN_ON | {
        "listener.name.x.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.x.plain.connections.max.reauth.ms": "1",
        "sasl.jaas.config": "hunter2",
    }
    settings = config.Settings.from_properties({name: (text, "test") for name, text in values.items()})
    assert settings.warnings == [
        "test: sasl.jaas.config counts only as listener.name.<listener>.<mechanism>.sasl.jaas.config"
    ]
