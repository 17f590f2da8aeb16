"""A file of client properties says how a command logs in and encrypts."""

from __future__ import annotations

from pathlib import Path

import pytest

from pykafkad.cli import client_properties
from pykafkad.cli.output import Failure
from pykafkad.settings import sources

MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
TOKENS = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
KERBEROS = "com.sun.security.auth.module.Krb5LoginModule"


def _read(directory: Path, text: str) -> dict[str, object]:
    path = directory / "client.properties"
    path.write_text(text)
    return client_properties.read(str(path))


def test_without_a_file_there_are_no_options() -> None:
    """Plain text, and nobody logs in."""
    assert client_properties.read(None) == {}


def test_the_names_of_librdkafka(tmp_path: Path) -> None:
    """As `confluent` clients write them."""
    text = """
    security.protocol=SASL_SSL
    sasl.mechanism=SCRAM-SHA-512
    sasl.username=bob
    sasl.password=hidden
    ssl.ca.location=/ca.pem
    ssl.endpoint.identification.algorithm=none
    client.id=mine
    """
    assert _read(tmp_path, text) == {
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_plain_username": "bob",
        "sasl_plain_password": "hidden",
        "ssl_cafile": "/ca.pem",
        "ssl_check_hostname": False,
    }


def test_the_names_of_java(tmp_path: Path) -> None:
    """A login module in JAAS, and stores in PEM."""
    text = f"""
    security.protocol=SASL_SSL
    sasl.mechanism=PLAIN
    sasl.jaas.config={MODULE} required username="alice" password="a \\" b";
    ssl.truststore.type=PEM
    ssl.truststore.location=/trust.pem
    ssl.keystore.type=PEM
    ssl.keystore.location=/key.pem
    ssl.endpoint.identification.algorithm=https
    """.replace('\\"', '\\\\"')
    assert _read(tmp_path, text) == {
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": "alice",
        "sasl_plain_password": 'a " b',
        "ssl_cafile": "/trust.pem",
        "ssl_certfile": "/key.pem",
        "ssl_check_hostname": True,
    }


@pytest.mark.parametrize(
    "lines",
    [
        f"sasl.jaas.config={TOKENS} required clientId=alice clientSecret=hidden scope=all;\n"
        "sasl.login.callback.handler.class="
        "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler",
        "sasl.oauthbearer.client.credentials.client.id=alice\nsasl.oauthbearer.scope=all\n"
        f"sasl.oauthbearer.client.credentials.client.secret=hidden\nsasl.jaas.config={TOKENS} required;",
        "sasl.oauthbearer.method=oidc\nsasl.oauthbearer.client.id=alice\nsasl.oauthbearer.client.secret=hidden\n"
        "sasl.oauthbearer.scope=all",
    ],
)
def test_tokens_of_an_issuer(tmp_path: Path, lines: str) -> None:
    """As Java's clients name its client and its secret, in two ways, and as librdkafka does."""
    common = (
        "security.protocol=SASL_SSL\nsasl.mechanism=OAUTHBEARER\nsasl.oauthbearer.token.endpoint.url=http://i/token\n"
    )
    assert _read(tmp_path, common + lines) == {
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "OAUTHBEARER",
        "token_url": "http://i/token",
        "token_client": "alice",
        "token_secret": "hidden",
        "token_scope": "all",
    }


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("", {"sasl_kerberos_service_name": "kafka"}),
        (
            f'sasl.jaas.config={KERBEROS} required useKeyTab=true keyTab="/k" principal="a@R" serviceName=s;',
            {"keytab": "/k", "principal": "a@R", "sasl_kerberos_service_name": "s"},
        ),
        (
            f'sasl.jaas.config={KERBEROS} required useTicketCache=true ticketCache="/t" keyTab="/k";',
            {"tickets": "/t", "sasl_kerberos_service_name": "kafka"},
        ),
        (
            "sasl.kerberos.service.name=s\nsasl.kerberos.keytab=/k\nsasl.kerberos.principal=a@R",
            {"keytab": "/k", "principal": "a@R", "sasl_kerberos_service_name": "s"},
        ),
    ],
)
def test_tickets(tmp_path: Path, lines: str, expected: dict[str, str]) -> None:
    """As Java's login module and librdkafka name who one is and where one's key or ticket is."""
    common = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "GSSAPI"}
    text = "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=GSSAPI\n"
    assert _read(tmp_path, text + lines) == common | expected


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("security.protocol=SSH", "security.protocol must be one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"),
        ("security.protocol=SASL_SSL\nsasl.mechanism=PLAIN", "SASL_SSL needs sasl.mechanism, and sasl.username or"),
        ("ssl.truststore.type=JKS", "ssl.truststore.type must be PEM; commands read no other stores"),
        (
            "ssl.engine.factory.class=hidden",
            "commands do not know ssl.engine.factory.class; they know security.protocol,",
        ),
        (
            "security.protocol=SASL_SSL\nsasl.mechanism=OAUTHBEARER",
            "OAUTHBEARER needs sasl.oauthbearer.token.endpoint.url",
        ),
        ("sasl.oauthbearer.method=default", "sasl.oauthbearer.method must be oidc; commands know no other"),
        (
            "sasl.login.callback.handler.class=hidden",
            "must be org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler",
        ),
        (
            f"sasl.jaas.config={TOKENS} required unsecuredLoginListClaim_x=hidden;",
            "must have unsecuredLoginStringClaim_sub=",
        ),
        (
            f"sasl.jaas.config={TOKENS} required unsecuredLoginExtension_x=hidden;",
            "knows no unsecuredLoginExtension_x, only",
        ),
        (
            f"sasl.jaas.config={TOKENS} required unsecuredLoginStringClaim_sub=a unsecuredLoginNumberClaim_x=hidden;",
            "must have a number as unsecuredLoginNumberClaim_x",
        ),
        (f'sasl.jaas.config={MODULE} required username="a";', "sasl.jaas.config must have username and password"),
        (
            f'sasl.mechanism=PLAIN\nsasl.jaas.config={MODULE} required username="a" password="hidden" tokenauth=true;',
            "tokenauth in sasl.jaas.config needs sasl.mechanism to be SCRAM-SHA-256 or SCRAM-SHA-512",
        ),
        ("tokenauth=hidden", 'tokenauth is no property: it stands in sasl.jaas.config, as tokenauth="true"'),
        ("sasl.jaas.config=nothing hidden", "sasl.jaas.config "),
    ],
)
def test_what_can_not_be_used_is_named(tmp_path: Path, text: str, error: str) -> None:
    """With the file, what is allowed, and no value that may be a secret."""
    with pytest.raises(Failure) as caught:
        _read(tmp_path, text)
    assert error in str(caught.value) and "client.properties: " in str(caught.value)
    assert "hidden" not in str(caught.value)
    assert caught.value.exit_code == 2


def test_a_broker_takes_no_setting_from_the_commands_variables() -> None:
    """A shell that exports them for commands can start a broker, too."""
    variables = {"PYKAFKAD_BOOTSTRAP": "h:1", "PYKAFKAD_CLIENT_CONFIG": "f", "PYKAFKAD_NUM_PARTITIONS": "3"}
    assert list(sources.from_environment(variables)) == ["num.partitions"]
