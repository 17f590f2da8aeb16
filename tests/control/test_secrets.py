"""The secrets of a test's broker, looked for in all that the test is shown: the control API and its page, reports of
failed tests, findings of `lint`, snapshots, the audit, errors, and what commands print.

The broker's own log, answers and files are searched by `tests/server/test_secrets.py`."""

from __future__ import annotations

import json
import logging
import shlex
import subprocess
import sys
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from pykafkad.cli import client as commands_client, reach
from pykafkad.cli.commands import main
from pykafkad.control.routes import ROUTES
from pykafkad.testing import Broker
from pykafkad.wire import messages
from tests.control.http_client import Client as Api
from tests.sasl.tokens import first_message, unsecured
from tests.server.test_secrets import forms
from tests.testing.test_guard import TlsClient, port_of

# kafka-python reads its schemas with what Python 3.11 warns of.
pytestmark = [
    pytest.mark.filterwarnings("ignore:read_text is deprecated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:open_text is deprecated:DeprecationWarning"),
]
PASSWORD, OTHER, WRONG = "alice-pass-0461", "bob-pass-0462", "wrong-pass-0463"
TOKEN_SECRET, LIVE, STORE = "tokens-secret-0464", "live-pass-0465", "keystore-pass-0466"
CLIENT_SECRET, KEY_PASSWORD = "client-secret-0467", "key-pass-0468"
JAAS = "org.apache.kafka.common.security"


@pytest.fixture
def broker(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Any:
    """One with every kind of secret that such a broker has."""
    caplog.set_level(logging.DEBUG)
    settings = {"delegation.token.secret.key": TOKEN_SECRET, "super.users": "User:alice"}
    with Broker(
        topics=["orders"], users={"alice": PASSWORD, "bob": OTHER}, acls=["bob read topic orders"], tls=True,
        settings=settings, audit=tmp_path / "audit.jsonl", control=True, log_level="debug",
    ) as made:  # fmt: skip
        yield made


def live(broker: Any) -> tuple[Any, str]:
    """Logins right and wrong, settings that are passwords, a user and a delegation token; the token's HMAC and an
    issuer's token."""
    broker.trace()
    ca_file = broker.client_config("librdkafka")["ssl.ca.location"]
    token = unsecured({"sub": "alice", "exp": 1})
    for mechanism in ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"):
        peer = TlsClient(port_of(broker), ca_file)
        assert peer.log_in(mechanism, WRONG)[-1].error_code == 58
        peer.close()
    peer = TlsClient(port_of(broker), ca_file)
    peer.ask(messages.SaslHandshakeRequest(mechanism="PLAIN"), 1)
    peer.ask(messages.SaslAuthenticateRequest(auth_bytes=first_message(token)), 2)
    peer.close()
    peer = TlsClient(port_of(broker), ca_file)
    assert peer.log_in("SCRAM-SHA-512", PASSWORD)[-1].error_code == 0
    request = messages.IncrementalAlterConfigsRequest
    for name, value in (("listener.name.clients.ssl.keystore.password", STORE), ("my.own.password", LIVE)):
        row = request.AlterableConfig(name=name, config_operation=0, value=value)
        resource = request.AlterConfigsResource(resource_type=4, resource_name="1", configs=[row])
        peer.ask(request(resources=[resource]), 1)
    made = peer.ask(messages.CreateDelegationTokenRequest(renewers=[], max_lifetime_ms=-1), 3)
    peer.ask(messages.DescribeDelegationTokenRequest(owners=None), 3)
    peer.close()
    bob = TlsClient(port_of(broker), ca_file)
    assert bob.log_in("PLAIN", WRONG)[-1].error_code == 58
    bob.close()
    return bytes(made.hmac), token


def read_all(broker: Any) -> dict[str, bytes]:
    """What every route of the control API says that only reads, with and without its token, and the first events."""
    api = Api(broker.control_url, broker.control_token)
    api.post("/snapshots", name="first")
    said = {"restore": json.dumps(api.post("/snapshots/first/restore").body).encode()}
    names = {"topic": "orders", "group": "billing", "number": "1", "name": "first", "id": "1"}
    for row in ROUTES:
        if row.method != "GET" or row.path == "/events":
            continue
        for token in (api.token, "wrong"):
            body = Api(api.url, token).get(row.path.format(**names)).body
            said[f"GET {row.path} {token == api.token}"] = (
                body if isinstance(body, bytes) else json.dumps(body).encode()
            )
    parts = urlsplit(api.url)
    connection = HTTPConnection(parts.hostname, parts.port, timeout=60)
    connection.request("GET", "/events", headers={"Authorization": f"Bearer {api.token}"})
    said["GET /events True"] = connection.getresponse().read1(1 << 20)
    connection.close()
    return said


def shown_to_the_test(broker: Any) -> dict[str, bytes]:
    """What the objects of a test say."""
    trace = broker.recorded()
    texts = {
        "report": broker.report("orders"),
        "lint": "\n".join(map(repr, broker.lint(upgrade=True))),
        "repr": repr(broker),
        "trace": repr(trace) + trace.text() + repr(trace.exchanges),
        "metrics": broker.metrics(),
        "settings": repr(broker.settings()),
    }
    for name, call in (
        ("no such user", lambda: broker.client_config("java", user="carol")),
        ("no such mechanism", lambda: broker.client_config("java", user="alice", mechanism="MINE")),
        ("no such client", lambda: broker.client_config("nothing")),
    ):
        with pytest.raises(ValueError) as caught:
            call()
        texts[name] = repr(caught.value)
    return {where: text.encode() for where, text in texts.items()}


def run(capsys: pytest.CaptureFixture[str], command: str) -> bytes:
    """What a command prints, right or wrong."""
    words = shlex.split(command)
    if words[0] == "serve":
        done = subprocess.run([sys.executable, "-m", "pykafkad", *words], capture_output=True, timeout=20)
        assert done.returncode == 2, done.stderr
        return done.stdout + done.stderr
    try:
        main(words)
    except SystemExit:
        pass
    shown = capsys.readouterr()
    return (shown.out + shown.err).encode()


def commands(broker: Any, folder: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, bytes]:
    """Commands with each kind of login, right and wrong, and with options that cannot be."""
    ca_file = broker.client_config("librdkafka")["ssl.ca.location"]
    plain = f"username=alice password={WRONG}"
    clients = {
        "right": f"sasl.mechanism=PLAIN\nsasl.username=alice\nsasl.password={PASSWORD}",
        "wrong": f"sasl.mechanism=SCRAM-SHA-256\nsasl.username=alice\nsasl.password={WRONG}",
        "jaas": f"sasl.mechanism=PLAIN\nsasl.jaas.config={JAAS}.plain.PlainLoginModule required {plain};",
        "half": f"sasl.mechanism=PLAIN\nsasl.jaas.config={JAAS}.plain.PlainLoginModule required password={WRONG};",
        "torn": f"sasl.mechanism=PLAIN\nsasl.jaas.config={JAAS}.plain.PlainLoginModule required password={WRONG}",
        "mechanism": f"sasl.mechanism=MINE\nsasl.username=alice\nsasl.password={WRONG}",
        "unknown": f"sasl.mechanism=PLAIN\nsasl.secret={CLIENT_SECRET}",
        "issuer": "sasl.mechanism=OAUTHBEARER\nsasl.oauthbearer.token.endpoint.url=http://127.0.0.1:1/token\n"
        f"sasl.oauthbearer.client.id=alice\nsasl.oauthbearer.client.secret={CLIENT_SECRET}",
        "key": f"ssl.certificate.location={ca_file}\nssl.key.password={KEY_PASSWORD}",
    }
    said = {}
    for name, text in clients.items():
        file = folder / name
        file.write_text(f"security.protocol=SASL_SSL\nssl.ca.location={ca_file}\n{text}\n")
        for words in ("topics list", "acls list", "status") if name == "wrong" else ("topics list",):
            said[f"{words} {name}"] = run(capsys, f"{words} -b localhost:{port_of(broker)} --client-config {file}")
    for words in (
        f"serve --brokers 0 --user alice:{PASSWORD}",
        f"serve --oauth alice:{CLIENT_SECRET} --oauth alice:{CLIENT_SECRET}",
        f"serve --set delegation.token.secret.key={TOKEN_SECRET} --set num.partitions=x",
        f"serve --tenant acme --user umbrella:alice:{PASSWORD}",
        f"client-config --for nothing --user alice --password {PASSWORD}",
        f"client-config --for franz-go --mechanism gssapi --user alice --password {PASSWORD}",
    ):
        said[words] = run(capsys, words)
    return said


@pytest.mark.long
def test_no_secret_is_shown_to_anybody(
    broker: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Neither as it is nor encoded. Who made a delegation token was told its HMAC, as in Kafka; its trace has none."""
    monkeypatch.setattr(reach, "TIMEOUT_S", 60.0)
    monkeypatch.setattr(commands_client, "BOOTSTRAP_TIMEOUT_MS", 60_000)
    hmac, token = live(broker)
    said = read_all(broker) | shown_to_the_test(broker) | commands(broker, tmp_path, capsys)
    said["audit"] = (tmp_path / "audit.jsonl").read_bytes()
    said["log"] = caplog.text.encode()
    # The search would find them: what stands beside them is there.
    assert b"SaslAuthenticate" in said["GET /trace.txt True"]
    assert b"my.own.password" in said["GET /trace.jsonl True"] and b"orders" in said["report"]
    assert b"orders" in said["topics list right"] and b"refuses the login of alice" in said["topics list wrong"]
    assert b"offers no login by OAUTHBEARER" in said["topics list issuer"] and b"connection-closed" in said["log"]
    secrets: dict[str, str | bytes] = {
        "a password": PASSWORD, "another": OTHER, "a wrong one": WRONG, "the secret of tokens": TOKEN_SECRET,
        "a password that was set live": LIVE, "the password of a key store": STORE, "a client's secret": CLIENT_SECRET,
        "the password of a key": KEY_PASSWORD, "the HMAC of a delegation token": hmac, "a token of an issuer": token,
        "the token of the control API": broker.control_token,
    }  # fmt: skip
    found = [
        (name, where)
        for name, secret in secrets.items()
        for where, content in said.items()
        if any(form in content for form in forms(secret))
    ]
    assert found == []
