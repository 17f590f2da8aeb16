"""`pykafkad serve --oauth`: a broker that believes an issuer of its own, and secrets that nobody sees."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import jwt
import pytest

from pykafkad.cli import oauth, serve
from pykafkad.cli.token_source import TokenSource
from pykafkad.errors import ConfigError
from pykafkad.testing.waits import until
from pykafkad.wire import messages
from tests.cli.test_users import Client
from tests.sasl.tokens import first_message

SECRET = "hunter2:+% x"


class Served:
    """A broker as a process with an issuer."""

    def __init__(self, *options: str, listen: tuple[str, ...] = ("--listen", "localhost:0")) -> None:
        words = [sys.executable, "-m", "pykafkad", "serve", *listen, "--memory", "32MB"]
        self.process = subprocess.Popen([*words, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.line = self.process.stdout.readline()
        found = re.search(r"sasl\.oauthbearer\.token\.endpoint\.url=(\S+)", self.line)
        self.token_url = found.group(1) if found else ""
        self.bootstrap = self.line.split()[-1] if self.line else ""

    def __enter__(self) -> Served:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()

    def log_in(self, token: str) -> list[Any]:
        """The answers to a login."""
        client = Client(int(self.bootstrap.rpartition(":")[2]))
        try:
            answers = [client.ask(messages.SaslHandshakeRequest(mechanism="OAUTHBEARER"), 1)]
            for each in (first_message(token), b"\1"):
                answers.append(client.ask(messages.SaslAuthenticateRequest(auth_bytes=each), 2))
                if answers[-1].error_code or not answers[-1].auth_bytes:
                    break
            return answers
        finally:
            client.close()


@pytest.mark.long
def test_clients_log_in_and_nothing_shows_their_secrets(tmp_path: Path) -> None:
    """With tokens of the end point that the readiness line and the ready file name; the log at its most detailed holds
    neither secrets nor tokens. Users of --user log in beside them."""
    ready = tmp_path / "ready"
    options = [
        "--oauth",
        f"alice:{SECRET}",
        "--oauth",
        "bob:y",
        "--oauth-lifetime",
        "60",
        "--user",
        "carol:hunter2:PLAIN",
    ]
    with Served(*options, "--ready-file", str(ready), "--log-level", "debug") as served:
        assert ready.read_text() == f"{served.bootstrap}\nsasl.oauthbearer.token.endpoint.url={served.token_url}\n"
        token = TokenSource(served.token_url, "alice", SECRET).token()
        answers = served.log_in(token)
        assert answers[-1].error_code == 0 and 50_000 < answers[-1].session_lifetime_ms <= 60_000
        forged = jwt.encode(
            jwt.decode(token, options={"verify_signature": False}),
            "x" * 64,
            "HS256",
            {"kid": jwt.get_unverified_header(token)["kid"]},
        )
        answers += served.log_in(forged)
        assert answers[-1].error_code == 58
        with pytest.raises(HTTPError, match="401"):
            TokenSource(served.token_url, "bob", SECRET).token()
        plain = Client(int(served.bootstrap.rpartition(":")[2]))
        assert plain.log_in("PLAIN", "x")[-1].error_code == 58
        plain.close()
        served.process.send_signal(signal.SIGTERM)
        output, errors = served.process.communicate(timeout=60)
        assert served.process.returncode == 0 and "Traceback" not in errors
        shown = served.line + output + errors + repr(answers)
        assert "token-refused" in errors and "hunter2" not in shown
        # The first part of a token and the dot after it: an id may hold the first letters by chance.
        assert re.search(r"eyJ[\w-]+\.", shown) is None


@pytest.mark.long
def test_the_issuer_can_have_an_address_of_its_own() -> None:
    """A port that is taken is an error, with the reason."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with Served("--oauth", "alice:x", "--oauth-listen", str(port)) as served:
            _, errors = served.process.communicate(timeout=60)
            assert served.process.returncode == 1
            assert f"cannot listen on 127.0.0.1:{port} for the token end point: Address already in use" in errors
    with Served("--oauth", "alice:x", "--oauth-listen", "0.0.0.0:0") as served:
        with urllib.request.urlopen(
            f"{served.token_url.removesuffix('/token')}/.well-known/openid-configuration"
        ) as page:
            assert json.load(page)["token_endpoint"] == served.token_url
        assert served.token_url.startswith("http://localhost:")


@pytest.mark.long
def test_tokens_follow_the_clock_of_the_broker() -> None:
    """Which the control API may move: a token of now counts, and one of before has ended."""
    with Served("--oauth", "alice:x", "--control", "0", "--control-token", "chosen-token") as served:
        before = TokenSource(served.token_url, "alice", "x").token()
        found = re.search(r" control=(\S+)", served.line)
        assert found
        request = urllib.request.Request(
            f"{found.group(1)}/clock/advance",
            json.dumps({"seconds": 7200}).encode(),
            {"Authorization": "Bearer chosen-token", "Content-Type": "application/json"},
        )
        urllib.request.urlopen(request, timeout=60).close()
        assert served.log_in(before)[-1].error_code == 58
        assert served.log_in(TokenSource(served.token_url, "alice", "x").token())[-1].error_code == 0


@pytest.fixture
def issuers(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """The issuers that a test's `serve` makes; a broker is not started."""
    from pykafkad.issuer import served
    from pykafkad.server import run

    made: list[Any] = []

    class Kept(served.ServedIssuer):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            made.append(self)

    monkeypatch.setattr(served, "ServedIssuer", Kept)
    monkeypatch.setattr(run, "run", lambda settings, **named: 0)
    yield made


def test_the_issuer_ends_with_the_broker(issuers: list[Any], capsys: pytest.CaptureFixture[str]) -> None:
    """Also where the broker does not start; no thread of it is left."""
    before = set(threading.enumerate())
    assert serve.main(["--oauth", "alice:x"]) == 0
    assert serve.main(["--oauth", "alice:x", "--set", "num.partitions=none"]) == 2
    assert len(issuers) == 2
    # A thread that has ended is counted for a moment more.
    until(lambda: set(threading.enumerate()) - before, lambda left: not left, "the end of the threads", 60, repr)
    assert "num.partitions" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--oauth", "hunter2"], "--oauth: number 1 must be CLIENT:SECRET"),
        (["--oauth", ":hunter2"], "--oauth: number 1 must be CLIENT:SECRET"),
        (["--oauth", "alice:"], "--oauth: number 1 must be CLIENT:SECRET"),
        (["--oauth", "a:hunter2", "--oauth", "a:hunter2"], "--oauth a: given twice"),
        (
            ["--oauth", "a:x", "--oauth", " b:hunter2"],
            "--oauth: number 2 has a client that begins or ends with a blank",
        ),
        (["--oauth", "a\nb:hunter2"], "--oauth: number 1 has a client"),
        (["--oauth-listen", "1"], "--oauth-listen 1: there is no issuer of tokens without --oauth"),
        (["--oauth-lifetime", "1"], "--oauth-lifetime 1: there is no issuer of tokens without --oauth"),
        (["--oauth", "a:x", "--oauth-lifetime", "0"], "--oauth-lifetime 0: must be a number of seconds from 1 to"),
        (["--oauth", "a:x", "--oauth-lifetime", str(oauth.LIFETIME_SECONDS_MAX + 1)], "must be a number of seconds"),
        (["--oauth", "a:x", "--oauth-listen", "x"], "--oauth-listen: ':x' is not HOST:PORT"),
        (
            ["--oauth", "a:x", "--set", "sasl.oauthbearer.jwks.endpoint.url=http://x"],
            "names another issuer in sasl.oauthbearer.jwks.endpoint.url; have one of them",
        ),
    ],
)
def test_errors_show_no_secret(
    words: list[str], problem: str, issuers: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    """But which of the options it is."""
    assert serve.main(words) == 2
    said = capsys.readouterr().err
    assert problem in said and "hunter2" not in said and issuers == []


@pytest.mark.parametrize(("module", "extra"), [("waitress", "control"), ("jwt", "oauth")])
def test_without_the_libraries(monkeypatch: pytest.MonkeyPatch, module: str, extra: str) -> None:
    """One sentence that says what to install."""
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ConfigError, match=rf"--oauth: .*pip install 'pykafkad\[{extra}\]'"):
        oauth.serve(["a:b"], None, None, {})


def test_a_token_is_used_again_while_it_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Until a tenth of its time is left."""
    issuer = oauth.serve(["alice:x"], None, "100", {})
    try:
        source = TokenSource(issuer.token_url, "alice", "x")
        now = [0.0]
        monkeypatch.setattr(source._clock.__class__, "now", lambda _: now[0])
        first = source.token()
        now[0] = 89.9
        assert source.token() == first
        now[0] = 90.0
        assert source.token() != first
    finally:
        issuer.close()
    with pytest.raises(OSError):
        TokenSource("http://127.0.0.1:1/token", "alice", "x").token()
