"""What the settings of a listener say about signed tokens, and what is refused at start."""

from __future__ import annotations

from typing import Any

import pytest

from pykafkad import config
from pykafkad.errors import ConfigError
from pykafkad.sasl.jwks import parse
from pykafkad.sasl.listener_settings import ListenerSettings
from pykafkad.sasl.token_rules import SIGNED, UNSECURED, Endpoint, validator
from tests.sasl.issuer import jwk, key_set, signed

NOW_S = 1_700_000_000
JAAS = "listener.name.x.oauthbearer.sasl.jaas.config"
HANDLER = "listener.name.x.oauthbearer.sasl.server.callback.handler.class"
URL = "sasl.oauthbearer.jwks.endpoint.url"
ON = {HANDLER: SIGNED, URL: "https://issuer/keys"}


class PublishedKeys:
    """The keys of the issuer of these tests."""

    def __init__(self) -> None:
        self.endpoints: list[Endpoint] = []

    def open(self, endpoint: Endpoint) -> Any:
        self.endpoints.append(endpoint)
        return self

    def current(self) -> Any:
        return parse(key_set(jwk("ES256")))


def made(values: dict[str, str], options: dict[str, str] | None = None) -> tuple[Any, Endpoint]:
    """What checks the tokens of the listener X, and where the keys are."""
    settings = config.Settings.from_properties({name: (text, "test") for name, text in values.items()})
    assert settings.warnings == []
    keys = PublishedKeys()
    check = validator(ListenerSettings(settings, "X"), options or {}, lambda: 1000 * NOW_S, keys.open)
    return check, keys.endpoints[0]


def test_where_the_keys_are() -> None:
    """With Kafka's defaults, and for a mechanism of a listener."""
    assert made(ON)[1] == ("https://issuer/keys", None, None, 3_600_000, 100, 10_000)
    values = {
        "listener.name.x.sasl.oauthbearer.jwks.endpoint.url": " file:///etc/keys.json",
        "listener.name.x.oauthbearer.sasl.oauthbearer.jwks.endpoint.refresh.ms": "1000",
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms": "2",
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms": "3",
    }
    trust = {"ssl.truststore.type": "pem", "ssl.truststore.location": "/ca.pem"}
    assert made(ON | values, trust)[1] == ("file:///etc/keys.json", "/etc/keys.json", "/ca.pem", 1000, 2, 3)


def test_what_tokens_must_say() -> None:
    """Audience, issuer, names of claims and skew are those of the settings."""
    values = {
        "sasl.oauthbearer.expected.audience": "kafka,all",
        "sasl.oauthbearer.expected.issuer": "me",
        "sasl.oauthbearer.sub.claim.name": "who",
        "sasl.oauthbearer.scope.claim.name": "may",
        "listener.name.x.sasl.oauthbearer.clock.skew.seconds": "100",
        "sasl.oauthbearer.jwt.validator.class": f"{SIGNED.rpartition('.')[0]}.BrokerJwtValidator",
    }
    check, _ = made(ON | values)
    claims = {"aud": "all", "iss": "me", "who": "alice", "exp": NOW_S - 99, "iat": 0}
    assert check(signed(claims)).principal == "alice"
    for wrong in ({"aud": "no"}, {"iss": "you"}, {"who": 1}, {"may": [1]}, {"exp": NOW_S - 100}):
        with pytest.raises(Exception, match="^its? "):
            check(signed(claims | wrong))


@pytest.mark.parametrize(
    ("values", "options", "problem"),
    [
        ({URL: ""}, {}, f"{URL}: is not set; it is the address of the keys"),
        ({URL: "issuer/keys"}, {}, f"{URL}: issuer/keys must be a URL with http, https or file"),
        ({URL: "ftp://issuer/keys"}, {}, f"{URL}: ftp://issuer/keys must be"),
        ({URL: "https:///keys"}, {}, f"{URL}: https:///keys must be"),
        ({URL: "file:keys"}, {}, f"{URL}: file:keys must be"),
        ({URL: "http://[x/keys"}, {}, rf"{URL}: http://\[x/keys is no URL: "),
        ({HANDLER: UNSECURED}, {}, f"{URL}: no token would be verified by it, as {HANDLER} is not {SIGNED}"),
        ({HANDLER: "com.example.Mine"}, {}, f"com.example.Mine is a Java class, which .* for tokens .* {URL}"),
        (
            {"sasl.oauthbearer.jwt.validator.class": "com.example.Mine"},
            {},
            "jwt.validator.class: com.example.Mine is a Java class, which cannot run here; use one of .*Default",
        ),
        ({"sasl.oauthbearer.sub.claim.name": " "}, {}, "sasl.oauthbearer.sub.claim.name: must name a claim"),
        ({"sasl.oauthbearer.jwks.endpoint.refresh.ms": "0"}, {}, "endpoint.refresh.ms: must be at least 1"),
        ({}, {"ssl.truststore.location": "/ca.jks"}, f"{JAAS}: of the options for TLS with the issuer only"),
        ({}, {"ssl.keystore.location": "/key.pem"}, f"{JAAS}: of the options for TLS with the issuer only"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_at_start(values: dict[str, str], options: dict[str, str], problem: str) -> None:
    """With the setting, and what to use instead."""
    with pytest.raises(ConfigError, match=problem):
        made(ON | values, options)


def test_the_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the setting that needs it."""
    monkeypatch.setitem(__import__("sys").modules, "jwt.algorithms", None)
    with pytest.raises(ConfigError, match=rf"{HANDLER}: verifying signed tokens needs PyJWT .*pykafkad\[oauth\]"):
        made(ON)
