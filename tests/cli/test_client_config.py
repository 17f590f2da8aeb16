"""`pykafkad client-config`: the printed lines are what each language reads back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pykafkad.cli import client_config
from pykafkad.cli.client_options import JAVA_TOKENS, Access, of
from pykafkad.cli.commands import main
from pykafkad.sasl import jaas
from pykafkad.settings.sources import from_file
from pykafkad.testing import token_providers

PASSWORD = 'a "b" \\ ;#=: {c} \u00e4\U0001f600'
FULL = Access("/tls ca.pem", "alice", PASSWORD, "SCRAM-SHA-512")
WORDS = ("-b", "one:1,two:2", "--tls", FULL.ca_file, "--user", "alice", "--password", PASSWORD)


def printed(capsys: pytest.CaptureFixture[str], client: str, *words: str) -> str:
    """The lines for a client."""
    assert main(["client-config", "--for", client, *words]) == 0
    return capsys.readouterr().out


def test_java(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A properties file, in ASCII, whose JAAS entry says the same."""
    path = tmp_path / "client.properties"
    path.write_text(printed(capsys, "java", *WORDS), encoding="ascii")
    found = {name: value for name, (value, _) in from_file(str(path)).items()}
    login = jaas.parse(found.pop("sasl.jaas.config"))
    assert login.class_name.endswith("ScramLoginModule")
    # Java's characters are those of UTF-16.
    options = {key: value.encode("utf-16", "surrogatepass").decode("utf-16") for key, value in login.options.items()}
    assert options == {"username": "alice", "password": PASSWORD}
    assert found == {
        "bootstrap.servers": "one:1,two:2",
        "security.protocol": "SASL_SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": "/tls ca.pem",
        "sasl.mechanism": "SCRAM-SHA-512",
    }


def test_librdkafka(capsys: pytest.CaptureFixture[str]) -> None:
    """`name=value` lines, as kcat -F reads them."""
    assert dict(line.split("=", 1) for line in printed(capsys, "librdkafka", *WORDS).splitlines()) == {
        "bootstrap.servers": "one:1,two:2",
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": "/tls ca.pem",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "alice",
        "sasl.password": PASSWORD,
    }


class Ssl:
    """The module of that name."""

    @staticmethod
    def create_default_context(cafile: str) -> str:
        return f"trusts {cafile}"


@pytest.mark.parametrize(
    ("client", "trust"),
    [("kafka-python", {"ssl_cafile": "/tls ca.pem"}), ("aiokafka", {"ssl_context": "trusts /tls ca.pem"})],
)
def test_python(capsys: pytest.CaptureFixture[str], client: str, trust: dict[str, str]) -> None:
    """Keyword arguments."""
    assert eval(f"dict({printed(capsys, client, *WORDS)})", {"ssl": Ssl}) == {
        "bootstrap_servers": "one:1,two:2",
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_plain_username": "alice",
        "sasl_plain_password": PASSWORD,
        **trust,
    }


def test_spark(capsys: pytest.CaptureFixture[str]) -> None:
    """Calls of a reader or a writer."""
    found: dict[str, str] = {}

    class Reader:
        def option(self, name: str, value: str) -> Any:
            found[name] = value
            return self

    eval(f"(reader\n{printed(capsys, 'spark', *WORDS)})", {"reader": Reader()})
    assert found == {"kafka.bootstrap.servers": "one:1,two:2", **of("spark", FULL)}
    assert found["kafka.sasl.mechanism"] == "SCRAM-SHA-512"


def test_kafkajs(capsys: pytest.CaptureFixture[str]) -> None:
    """Fields of an object."""
    secret = json.dumps(PASSWORD, ensure_ascii=False)
    assert printed(capsys, "kafkajs", *WORDS).splitlines() == [
        'brokers: ["one:1", "two:2"],',
        'ssl: { ca: [require("fs").readFileSync("/tls ca.pem", "utf-8")] },',
        f'sasl: {{ mechanism: "scram-sha-512", username: "alice", password: {secret} }},',
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("mechanism", "package", "method"),
    [
        ("PLAIN", "plain", "AsMechanism"),
        ("SCRAM-SHA-256", "scram", "AsSha256Mechanism"),
        ("SCRAM-SHA-512", "scram", "AsSha512Mechanism"),
    ],
)
def test_franz_go(capsys: pytest.CaptureFixture[str], mechanism: str, package: str, method: str) -> None:
    """Options of a client."""
    words = ("-b", "one:1,two:2", "--tls", "ca.pem", "--user", "a", "--password", '"', "--mechanism", mechanism.lower())
    assert printed(capsys, "franz-go", *words).splitlines() == [
        'kgo.SeedBrokers("one:1", "two:2"),',
        "// authority := x509.NewCertPool()",
        '// pem, err := os.ReadFile("ca.pem")',
        "// authority.AppendCertsFromPEM(pem)",
        "kgo.DialTLSConfig(&tls.Config{RootCAs: authority}),",
        f"// import github.com/twmb/franz-go/pkg/sasl/{package}",
        f'kgo.SASL({package}.Auth{{User: "a", Pass: "\\""}}.{method}()),',
    ]


@pytest.mark.parametrize("client", client_config.CLIENTS)
def test_a_plain_broker_needs_its_address_only(
    capsys: pytest.CaptureFixture[str], client: str, monkeypatch: Any
) -> None:
    """That of the environment, or the usual one."""
    for address in ("other:1", "localhost:9092"):
        if address == "other:1":
            monkeypatch.setenv("PYKAFKAD_BOOTSTRAP", address)
        else:
            monkeypatch.delenv("PYKAFKAD_BOOTSTRAP")
        (line,) = printed(capsys, client).splitlines()
        assert address in line


TOKEN_WORDS = ("-b", "one:1", "--user", "alice", "--password", PASSWORD, "--token-url", "http://issuer/token")
SHOWN = json.dumps(PASSWORD, ensure_ascii=False)


def test_tokens_for_java(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The login module has the client and its secret; the option of the virtual machine stands in a comment."""
    path = tmp_path / "client.properties"
    path.write_text(printed(capsys, "java", *TOKEN_WORDS), encoding="ascii")
    assert path.read_text().startswith(
        "# an option for Java: -Dorg.apache.kafka.sasl.oauthbearer.allowed.urls=http://issuer/token\n"
    )
    found = {name: value for name, (value, _) in from_file(str(path)).items()}
    login = jaas.parse(found.pop("sasl.jaas.config"))
    assert login.class_name.endswith("OAuthBearerLoginModule")
    options = {key: value.encode("utf-16", "surrogatepass").decode("utf-16") for key, value in login.options.items()}
    assert options == {"clientId": "alice", "clientSecret": PASSWORD}
    assert found == {
        "bootstrap.servers": "one:1",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.login.callback.handler.class": JAVA_TOKENS,
        "sasl.oauthbearer.token.endpoint.url": "http://issuer/token",
    }
    lines = printed(capsys, "spark", *TOKEN_WORDS).splitlines()
    assert lines[0].startswith("// an option for Java: -D") and len(lines) == 7
    assert '.option("kafka.sasl.oauthbearer.token.endpoint.url", "http://issuer/token")' in lines


def test_tokens_for_librdkafka(capsys: pytest.CaptureFixture[str]) -> None:
    """Its own method asks for them."""
    assert dict(line.split("=", 1) for line in printed(capsys, "librdkafka", *TOKEN_WORDS).splitlines()) == {
        "bootstrap.servers": "one:1",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.client.id": "alice",
        "sasl.oauthbearer.client.secret": PASSWORD,
        "sasl.oauthbearer.token.endpoint.url": "http://issuer/token",
    }


@pytest.mark.parametrize(("client", "provider"), [("kafka-python", "kafka_python"), ("aiokafka", "aiokafka")])
def test_tokens_for_python(capsys: pytest.CaptureFixture[str], client: str, provider: str) -> None:
    """A provider of pykafkad's."""
    providers = type("Providers", (), {provider: staticmethod(lambda *given: given)})
    found = eval(f"dict({printed(capsys, client, *TOKEN_WORDS)})", {"token_providers": providers})
    assert found == {
        "bootstrap_servers": "one:1",
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "OAUTHBEARER",
        "sasl_oauth_token_provider": ("http://issuer/token", "alice", PASSWORD),
    }
    assert callable(getattr(token_providers, provider))


def test_tokens_for_kafkajs_and_franz_go(capsys: pytest.CaptureFixture[str]) -> None:
    """A function of the client's language."""
    (_, line) = printed(capsys, "kafkajs", *TOKEN_WORDS).splitlines()
    assert line == (
        'sasl: { mechanism: "oauthbearer", oauthBearerProvider: async () => ({ value: (await (await '
        'fetch("http://issuer/token", { method: "POST", body: new URLSearchParams({ grant_type: "client_credentials", '
        f'client_id: "alice", client_secret: {SHOWN} }}) }})).json()).access_token }}) }},'
    )
    lines = printed(capsys, "franz-go", *TOKEN_WORDS).splitlines()
    config = f'{{ClientID: "alice", ClientSecret: {SHOWN}, TokenURL: "http://issuer/token"}}'
    assert lines[3] == f"\tissuer := clientcredentials.Config{config}" and lines[-1] == "})),"


KERBEROS = ("-b", "one:1", "--user", "alice@REALM", "--mechanism", "gssapi")


@pytest.mark.parametrize(
    ("words", "where"),
    [((), "useTicketCache=true"), (("--keytab", "/a b"), 'useKeyTab=true storeKey=true keyTab="/a b"')],
)
def test_kerberos(capsys: pytest.CaptureFixture[str], words: tuple[str, ...], where: str) -> None:
    """A principal, with its keytab or the tickets that are there."""
    lines = printed(capsys, "java", *KERBEROS, *words).splitlines()
    assert lines[1:] == [
        "security.protocol=SASL_PLAINTEXT",
        "sasl.mechanism=GSSAPI",
        "sasl.kerberos.service.name=kafka",
        f'sasl.jaas.config=com.sun.security.auth.module.Krb5LoginModule required {where} principal="alice@REALM";',
    ]
    found = dict(line.split("=", 1) for line in printed(capsys, "librdkafka", *KERBEROS, *words).splitlines())
    assert found["sasl.kerberos.principal"] == "alice@REALM"
    assert found.get("sasl.kerberos.keytab") == (words[1] if words else None)
    for client in ("kafka-python", "aiokafka"):
        text = printed(capsys, client, *KERBEROS, *words)
        assert text.startswith("# a variable of the environment: KRB5_CLIENT_KTNAME=/a b\n" if words else "bootstrap")
        options = eval(f"dict({text})")
        assert (options["sasl_mechanism"], options["sasl_kerberos_service_name"]) == ("GSSAPI", "kafka")


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("java", "--mechanism", "gssapi"), "--mechanism GSSAPI needs --user, a principal of Kerberos, and no"),
        (("java", *KERBEROS, "--password", "hunter2"), "--mechanism GSSAPI needs --user"),
        (("java", "--keytab", "x"), "--keytab needs --mechanism GSSAPI"),
        (("java", *KERBEROS, "--keytab", "\n"), "--keytab: must be printable"),
        (("java", *KERBEROS, "--token-url", "http://x"), "--mechanism OAUTHBEARER and --token-url go together"),
        (("kafkajs", *KERBEROS), "kafkajs: it has no login by GSSAPI"),
        (("franz-go", *KERBEROS), "franz-go: its options for GSSAPI are not known here"),
    ],
)
def test_what_kerberos_cannot_be(capsys: pytest.CaptureFixture[str], words: tuple[str, ...], problem: str) -> None:
    """With what is wrong."""
    assert main(["client-config", "--for", *words]) == 2
    said = capsys.readouterr().err
    assert problem in said and "hunter2" not in said


def test_what_cannot_be(capsys: pytest.CaptureFixture[str]) -> None:
    """A client that nobody knows, half a login, and what would be a line of its own; no error shows a password."""
    assert main(["client-config", "--for", "pykafka"]) == 2
    assert main(["client-config", "--for", "java", "--user", "alice"]) == 2
    assert main(["client-config", "--for", "java", "--user", "alice", "--password", "hunter2\nx=y"]) == 2
    assert (
        main(["client-config", "--for", "java", "--user", "a", "--password", "hunter2", "--mechanism", "oauthbearer"])
        == 2
    )
    assert main(["client-config", "--for", "java", "--token-url", "http://x"]) == 2
    assert main(["client-config", "--for", "java", *TOKEN_WORDS[:-2], "--token-url", "\n"]) == 2
    errors = capsys.readouterr().err
    assert "--mechanism OAUTHBEARER and --token-url go together" in errors
    assert "--token-url needs --user and --password" in errors and "--token-url: must be printable" in errors
    assert "--user and --password go together" in errors and "--password: must be printable" in errors
    assert "hunter2" not in errors
    with pytest.raises(ValueError, match="faststream: how it encrypts and logs in is not known here"):
        of("faststream", FULL)


def test_the_protocol_follows(capsys: pytest.CaptureFixture[str]) -> None:
    """From what is given."""
    for words, protocol in (
        (WORDS[:4], "SSL"),
        ((*WORDS[:2], *WORDS[4:]), "SASL_PLAINTEXT"),
        (WORDS, "SASL_SSL"),
    ):
        assert f"security.protocol={protocol}\n" in printed(capsys, "librdkafka", *words)
