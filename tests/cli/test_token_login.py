"""Commands log in by OAUTHBEARER: with the tokens of an issuer, and with tokens that nobody has signed."""

from __future__ import annotations

import json
import threading
from base64 import urlsafe_b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import pytest

from pykafkad.cli import client, reach, token_login
from pykafkad.cli.commands import main
from pykafkad.cli.token_source import TokenSource, is_local
from pykafkad.testing import token_providers
from tests.cli.test_oauth import Served

# kafka-python reads its schemas with what Python 3.11 warns of.
pytestmark = [
    pytest.mark.filterwarnings("ignore:read_text is deprecated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:open_text is deprecated:DeprecationWarning"),
]
MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
SASL = {
    "listeners": "CLIENTS://localhost:0",
    "listener.security.protocol.map": "CLIENTS:SASL_PLAINTEXT",
    "inter.broker.listener.name": "CLIENTS",
    "sasl.enabled.mechanisms": "OAUTHBEARER",
    "listener.name.clients.oauthbearer.sasl.jaas.config": f"{MODULE} required;",
}


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine is no broker that does not answer."""
    monkeypatch.setattr(reach, "TIMEOUT_S", 60.0)
    monkeypatch.setattr(client, "BOOTSTRAP_TIMEOUT_MS", 60_000)


class Answers(BaseHTTPRequestHandler):
    """Gives each request the server's answer, and keeps its first line."""

    server: Any

    def do_POST(self) -> None:
        self.server.asked.append((self.requestline, self.rfile.read(int(self.headers["Content-Length"])).decode()))
        self.send_response(self.server.status)
        self.send_header("Location", "http://127.0.0.1:1/")
        self.send_header("Content-Length", str(len(self.server.body)))
        self.end_headers()
        self.wfile.write(self.server.body)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@contextmanager
def answering(body: bytes, status: int = 200) -> Iterator[Any]:
    """A server at an address of its own."""
    with HTTPServer(("127.0.0.1", 0), Answers) as server:
        answers: Any = server
        answers.asked, answers.body, answers.status = [], body, status
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield answers
        finally:
            server.shutdown()
            thread.join()


def token_of(host: str, port: int) -> str:
    return TokenSource(f"http://{host}:{port}/token", "alice", "secret").token()


GOOD = b'{"access_token": "abc", "expires_in": 60}'


def test_an_issuer_on_this_machine_is_asked_without_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the environment names; for another host it counts, but for those of no_proxy."""
    for name in ("no_proxy", "NO_PROXY", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with answering(GOOD) as issuer, answering(b'{"access_token": "by proxy", "expires_in": 60}') as proxy:
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.server_port}")
        assert token_of("127.0.0.1", issuer.server_port) == token_of("localhost", issuer.server_port) == "abc"
        assert proxy.asked == []
        assert token_of("issuer.example.com", 80) == "by proxy"
        assert proxy.asked == [("POST http://issuer.example.com:80/token HTTP/1.1", "grant_type=client_credentials")]
        monkeypatch.setenv("no_proxy", "issuer.invalid")
        with pytest.raises(OSError):
            token_of("issuer.invalid", issuer.server_port)
        assert len(proxy.asked) == 1


def test_what_is_this_machine() -> None:
    """By name and by number."""
    hosts = ("localhost", "LOCALHOST", "localhost.", "a.localhost", "127.0.0.1", "127.9.9.9", "::1")
    others = ("localhost.example.com", "10.0.0.1", "mylocalhost", "", "::2", "0.0.0.0")
    assert all(map(is_local, hosts)) and not any(map(is_local, others))


@pytest.mark.parametrize(
    "body", [b"", b"nothing", b"[]", b"{}", b'{"access_token": "a", "expires_in": "x"}', b"{" * 99]
)
def test_an_answer_without_a_token_is_an_error(body: bytes) -> None:
    """One sort of error for all of them."""
    with answering(body) as issuer, pytest.raises(OSError, match="its answer"):
        token_of("127.0.0.1", issuer.server_port)


def test_an_issuer_that_sends_one_elsewhere_is_not_followed() -> None:
    """The secret would go along."""
    with answering(GOOD, 302) as issuer, pytest.raises(HTTPError, match="302"):
        token_of("127.0.0.1", issuer.server_port)


def test_a_scope_is_asked_for() -> None:
    """By both providers, too."""
    with answering(GOOD) as issuer:
        url = f"http://127.0.0.1:{issuer.server_port}/token"
        assert TokenSource(url, "alice", "secret", "read write").token() == "abc"
        assert token_providers.kafka_python(url, "alice", "secret", "all").token() == "abc"
        assert [form for _, form in issuer.asked] == [
            "grant_type=client_credentials&scope=read+write",
            "grant_type=client_credentials&scope=all",
        ]


def properties(path: Path, jaas: str, url: str = "") -> str:
    text = f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=OAUTHBEARER\nsasl.jaas.config={MODULE} required {jaas};\n"
    file = path / "client.properties"
    file.write_text(text + (f"sasl.oauthbearer.token.endpoint.url={url}\n" if url else ""))
    return str(file)


@pytest.mark.long
def test_a_token_of_an_issuer_logs_in(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What the issuer or the broker refuses is told in one sentence, without the secret."""
    with Served("--oauth", "alice:hunter2", "--topic", "orders") as served:
        command = ["topics", "-b", served.bootstrap, "list", "--client-config"]
        assert main([*command, properties(tmp_path, "clientId=alice clientSecret=hunter2", served.token_url)]) == 0
        assert "orders" in capsys.readouterr().out
        assert main([*command, properties(tmp_path, "clientId=alice clientSecret=hunter3", served.token_url)]) == 1
        shown = capsys.readouterr().err
        assert f"the token end point {served.token_url} gives alice no token: HTTP Error 401" in shown
        assert "hunter" not in shown
        assert main([*command, properties(tmp_path, "unsecuredLoginStringClaim_sub=alice")]) == 1
        assert "refuses the login of alice by OAUTHBEARER" in capsys.readouterr().err


def test_a_token_without_a_signature_logs_in(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where the broker believes such tokens."""
    words = tuple(f"--set={name}={value}" for name, value in SASL.items())
    with Served("--topic", "orders", listen=words) as served:
        command = ["topics", "-b", served.bootstrap, "list", "--client-config"]
        assert main([*command, properties(tmp_path, "unsecuredLoginStringClaim_sub=alice")]) == 0
        assert "orders" in capsys.readouterr().out


def test_the_claims_of_a_token_without_a_signature() -> None:
    """Texts, numbers and lists, as Java's login module takes them; the broker's rules read them."""
    options = {
        "unsecuredLoginStringClaim_sub": "alice",
        "unsecuredLoginNumberClaim_level": "1.5",
        "unsecuredLoginListClaim_scope": "|read|write",
        "unsecuredLoginListClaim_none": "",
        "unsecuredLoginLifetimeSeconds": "60",
    }
    token_login.check(options)
    head, claims, signature = token_login.unsigned(options, 1000.0).split(".")
    assert json.loads(urlsafe_b64decode(f"{head}==")) == {"alg": "none"} and signature == ""
    assert json.loads(urlsafe_b64decode(f"{claims}==")) == {
        "sub": "alice", "level": 1.5, "scope": ["read", "write"], "none": [], "iat": 1000.0, "exp": 1060.0,
    }  # fmt: skip


NO_TOKEN_END_POINTS = {
    "nowhere": "it is no URL such as https://issuer.example.com/token",
    "": "it is no URL such as https://issuer.example.com/token",
    "ftp://127.0.0.1/token": "unknown url type: ftp",
    "file:///etc/passwd": "unknown url type: file",
    "http://127.0.0.1:x/token": "it is no URL such as",
    "http://127.0.0.1:99999/token": "it is no URL such as",
    "http://[::1/token": "it is no URL such as https://issuer.example.com/token",
    "http:///token": "no host given",
    "http://127.0.0.1:1/a token": "it does not answer by HTTP: InvalidURL",
    "http://127.0.0.1:1/token": "Connection refused",
}


@pytest.mark.long
def test_a_url_that_is_no_token_end_point_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without a word of the secret."""
    words = tuple(f"--set={name}={value}" for name, value in SASL.items())
    path = tmp_path / "client.properties"
    with Served(listen=words) as served:
        for url, reason in NO_TOKEN_END_POINTS.items():
            path.write_text(
                "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=OAUTHBEARER\n"
                f"sasl.oauthbearer.token.endpoint.url={url}\nsasl.oauthbearer.client.credentials.client.id=alice\n"
                "sasl.oauthbearer.client.credentials.client.secret=hidden-0471\n"
            )
            assert main(["topics", "list", "-b", served.bootstrap, "--client-config", str(path)]) == 1
            told = capsys.readouterr().err
            assert f"the token end point {url} gives alice no token: " in told and reason in told, told
            assert "hidden" not in told and len(told.splitlines()) == 1, told
