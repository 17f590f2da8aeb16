"""A file of client properties says how a command logs in and encrypts."""

from __future__ import annotations

from pathlib import Path

import pytest

from pykafkad.cli import client_properties
from pykafkad.cli.output import Failure
from pykafkad.settings import sources

MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"


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
    ("text", "error"),
    [
        ("security.protocol=SSH", "security.protocol must be one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"),
        ("security.protocol=SASL_SSL\nsasl.mechanism=PLAIN", "SASL_SSL needs sasl.mechanism, and sasl.username or"),
        ("ssl.truststore.type=JKS", "ssl.truststore.type must be PEM; commands read no other stores"),
        ("ssl.engine.factory.class=x", "commands do not know ssl.engine.factory.class; they know security.protocol,"),
        (f'sasl.jaas.config={MODULE} required username="a";', "sasl.jaas.config must have username and password"),
        (
            f'sasl.mechanism=PLAIN\nsasl.jaas.config={MODULE} required username="a" password="secret" tokenauth=true;',
            "tokenauth in sasl.jaas.config needs sasl.mechanism to be SCRAM-SHA-256 or SCRAM-SHA-512",
        ),
        ("tokenauth=secret", 'tokenauth is no property: it stands in sasl.jaas.config, as tokenauth="true"'),
        ("sasl.jaas.config=nothing secret", "sasl.jaas.config "),
    ],
)
def test_what_can_not_be_used_is_named(tmp_path: Path, text: str, error: str) -> None:
    """With the file, what is allowed, and no value that may be a secret."""
    with pytest.raises(Failure) as caught:
        _read(tmp_path, text)
    assert error in str(caught.value) and "client.properties: " in str(caught.value)
    assert "secret" not in str(caught.value)
    assert caught.value.exit_code == 2


def test_a_broker_takes_no_setting_from_the_commands_variables() -> None:
    """A shell that exports them for commands can start a broker, too."""
    variables = {"PYKAFKAD_BOOTSTRAP": "h:1", "PYKAFKAD_CLIENT_CONFIG": "f", "PYKAFKAD_NUM_PARTITIONS": "3"}
    assert list(sources.from_environment(variables)) == ["num.partitions"]
