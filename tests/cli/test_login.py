"""A command says at once why a broker does not let it in."""

from __future__ import annotations

import socket
import struct
import threading
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from pykafkad.cli import client, reach
from pykafkad.cli.commands import main
from pykafkad.cli.login import Login
from pykafkad.cli.output import Failure
from pykafkad.sasl.scram import Scram, Token, credential
from pykafkad.sasl.step import DONE
from pykafkad.testing import Broker
from pykafkad.wire import messages
from tests.cli.test_users import Client

# kafka-python reads its schemas with what Python 3.11 warns of.
pytestmark = [
    pytest.mark.filterwarnings("ignore:read_text is deprecated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:open_text is deprecated:DeprecationWarning"),
]
SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
VERSIONS = b"\0\0\0\x06pkaf\0\0"


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine is no broker that does not answer, and a library that is asked too would wait."""
    monkeypatch.setattr(reach, "TIMEOUT_S", 60.0)
    monkeypatch.setattr(client, "BOOTSTRAP_TIMEOUT_MS", 60_000)


class Exchange:
    """Two tokens; of the answers the second is wrong."""

    def __init__(self) -> None:
        self.answers: list[bytes] = []

    def auth_bytes(self) -> bytes:
        return b"token"

    def receive(self, auth_bytes: bytes) -> None:
        self.answers.append(auth_bytes)
        if auth_bytes == b"wrong":
            raise ValueError("the signature")

    def is_done(self) -> bool:
        return len(self.answers) == 2


@contextmanager
def answering(*answers: bytes) -> Iterator[str]:
    """The address of a server that gives one connection an answer for each request, and then ends it."""

    def serve() -> None:
        accepted, _ = listener.accept()
        with accepted, suppress(ConnectionError):
            for answer in answers:
                if not accepted.recv(1000):
                    return
                accepted.sendall(answer)
            accepted.shutdown(socket.SHUT_WR)
            while accepted.recv(1000):
                pass

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        thread.join()


def sized(*parts: bytes) -> bytes:
    body = b"".join((b"corr", *parts))
    return struct.pack(">i", len(body)) + body


def text(value: bytes) -> bytes:
    return struct.pack(">h", len(value)) + value


def token(value: bytes, error: int = 0, message: bytes | None = None) -> bytes:
    told = struct.pack(">h", -1) if message is None else text(message)
    return sized(struct.pack(">h", error), told, struct.pack(">i", len(value)), value)


MECHANISMS = sized(struct.pack(">hi", 0, 2), text(b"PLAIN"), text(b"MINE"))


@pytest.mark.parametrize(
    ("answers", "reason"),
    [
        ((), "ended the connection when it was asked for a login"),
        ((sized(struct.pack(">hi", 34, 0)),), "wants no login there: set security.protocol to PLAINTEXT or SSL"),
        ((sized(struct.pack(">hi", 33, 1), text(b"GSSAPI")),), "offers no login by MINE, but by GSSAPI"),
        ((sized(b"\0"),), "does not speak Kafka's protocol"),
        ((sized(struct.pack(">hi", 33, 2**31 - 1), text(b"GSSAPI")),), "does not speak Kafka's protocol"),
        ((MECHANISMS,), "refuses the login of alice by MINE: it ended the connection"),
        ((MECHANISMS, token(b"", 58, b"Wrong password")), "refuses the login of alice by MINE: Wrong password"),
        ((MECHANISMS, token(b"", 58)), "refuses the login of alice by MINE: SASL_AUTHENTICATION_FAILED"),
        ((MECHANISMS, token(b"x"), token(b"wrong")), "what it says of itself is not right (the signature)"),
        ((MECHANISMS, token(b"x"), token(b"y")), None),
    ],
)
def test_a_refused_login_is_named(answers: tuple[bytes, ...], reason: str | None) -> None:
    """In the broker's words, where it has some."""
    exchange = Exchange()

    def login_at(host: str) -> Login:
        assert host == "127.0.0.1"
        return Login("alice", "MINE", exchange)

    with answering(VERSIONS, *answers) as address:
        if reason is None:
            assert reach.why_unreachable(address, None, login_at) is None
            assert exchange.answers == [b"x", b"y"]
        else:
            with pytest.raises(Failure) as caught:
                reach.reach(address, None, login_at)
            assert reason in str(caught.value) and address in str(caught.value)


def token_scram(**config: str) -> Any:
    """A login by a token, as a command makes it."""
    from pykafkad.cli.token_scram import TokenScram

    return TokenScram(**config)


def properties(path: Path, **values: str) -> str:
    file = path / "client.properties"
    file.write_text("".join(f"{name.replace('_', '.')}={value}\n" for name, value in values.items()))
    return str(file)


@pytest.mark.parametrize("mechanism", ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"))
def test_a_wrong_password_is_told_by_a_broker(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], mechanism: str
) -> None:
    """And the right one is let in. Without a login the broker is asked no further."""
    common = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": mechanism, "sasl_username": "alice"}
    with Broker(users={"alice": "secret"}, topics=["orders"]) as broker:
        command = ["topics", "-b", broker.bootstrap, "list"]
        assert main([*command, "--client-config", properties(tmp_path, **common, sasl_password="wrong")]) == 1
        assert f"refuses the login of alice by {mechanism}: Authentication failed" in capsys.readouterr().err
        assert main([*command, "--client-config", properties(tmp_path, **common, sasl_password="secret")]) == 0
        assert main(command) == 1
        assert "wants a login: name one with --client-config" in capsys.readouterr().err
        assert main([*command, "--client-config", properties(tmp_path, **common)]) == 2
        assert "needs sasl.password" in capsys.readouterr().err


def test_a_mechanism_that_commands_do_not_know(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nobody is asked."""
    file = properties(tmp_path, security_protocol="SASL_PLAINTEXT", sasl_mechanism="MINE", sasl_username="a")
    assert main(["topics", "-b", "127.0.0.1:1", "list", "--client-config", file]) == 2
    allowed = "PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER, GSSAPI"
    assert f"sasl.mechanism must be one of {allowed}, not MINE" in capsys.readouterr().err


@pytest.mark.long
def test_a_delegation_token_logs_in(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As Kafka's tools take it: by SCRAM, its id as the name, its HMAC as the password. kafka-python logs in by
    passwords again afterwards."""
    settings = {"delegation.token.secret.key": "hunter2"}
    with Broker(users={"alice": "secret"}, topics=["orders"], settings=settings) as broker:
        peer = Client(int(broker.bootstrap.rpartition(":")[2]))
        assert peer.log_in("PLAIN", "secret")[-1].error_code == 0
        token = peer.ask(messages.CreateDelegationTokenRequest(renewers=[], max_lifetime_ms=-1), 3)
        peer.close()
        hmac = b64encode(bytes(token.hmac)).decode()
        command = ["topics", "-b", broker.bootstrap, "list", "--client-config"]
        for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
            for password, option, code in (
                (hmac, 'tokenauth="true"', 0),
                (hmac, "tokenauth=TRUE", 0),
                (hmac[::-1], "tokenauth=true", 1),
                (hmac, "tokenauth=yes", 1),
                (hmac, "", 1),
            ):
                login = f'username="{token.token_id}" password="{password}" {option};'
                file = properties(
                    tmp_path,
                    security_protocol="SASL_PLAINTEXT",
                    sasl_mechanism=mechanism,
                    sasl_jaas_config=f"{SCRAM_MODULE} required {login}",
                )
                assert main([*command, file]) == code
                shown = capsys.readouterr()
                assert ("orders" in shown.out) == (code == 0) and password not in shown.err
        file = properties(
            tmp_path,
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="SCRAM-SHA-256",
            sasl_username="alice",
            sasl_password="secret",
        )
        assert main([*command, file]) == 0


@pytest.mark.parametrize("name", ["alice", "a=b,c"])
def test_a_token_is_shown_as_scram_has_it(name: str) -> None:
    """The other side is the broker's machine; one that does not know the token is found out."""
    token = Token(credential("SCRAM-SHA-256", "hmac", b"salt", 4096), "owner", None)
    for knows in (True, False):
        found = token if knows else token._replace(credential=token.credential._replace(server_key=b"x" * 32))
        server = Scram("SCRAM-SHA-256", lambda user: None, "nonce", b"", {name: found}.get)
        client = token_scram(sasl_mechanism="SCRAM-SHA-256", sasl_plain_username=name, sasl_plain_password="hmac")
        client.receive(server.step(client.auth_bytes()).token)
        assert not client.is_done()
        step = server.step(client.auth_bytes())
        assert (step.outcome, server.user, server.is_by_token) == (DONE, "owner", True)
        if knows:
            client.receive(step.token)
            assert client.is_done() and client.is_authenticated()
        else:
            with pytest.raises(ValueError, match="its signature is wrong"):
                client.receive(step.token)


@pytest.mark.parametrize("answer", ["r=x,s=c2FsdA==,i=4096", "r=NONCE,s=c2FsdA==,i=0", "r=NONCE,s=c2FsdA==,i=1000001"])
def test_a_broker_that_asks_for_too_much(answer: str) -> None:
    """A nonce of its own alone, or more iterations than anybody has."""
    client = token_scram(sasl_mechanism="SCRAM-SHA-256", sasl_plain_username="id", sasl_plain_password="hmac")
    nonce = client.auth_bytes().decode().split(",")[3].removeprefix("r=")
    with pytest.raises(ValueError, match="its nonce or its number of iterations"):
        client.receive(answer.replace("NONCE", nonce).encode())
