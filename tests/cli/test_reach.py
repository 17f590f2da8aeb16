"""A command says at once why no broker answers."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

from pykafkad.__main__ import main
from pykafkad.cli import client, reach
from pykafkad.cli.output import Failure


class _QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *arguments: object) -> None:
        """Nobody reads what it was asked."""


@contextmanager
def _answering(answer: bytes) -> Iterator[str]:
    """The address of a server that gives one connection the same answer to two requests, and ends it."""

    def serve() -> None:
        accepted, _ = listener.accept()
        with accepted, suppress(ConnectionError):
            for _ in range(2):
                if accepted.recv(100):
                    accepted.sendall(answer)
                if len(answer) < 8:
                    return

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        thread.join()


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"", "it ended the connection without an answer; one that wants TLS does that, see --client-config"),
        (b"\0\0", "what answers there does not speak Kafka's protocol"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "an HTTP server answers there"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "an SSH server answers there"),
        (b"\x15\x03\x03\0\x02\x02\x46", "a TLS listener answers there"),
        (b"\0\0\0\x0apkae\0\0", "what answers there does not speak Kafka's protocol"),
        (b"\xff\xff\xff\xffpkaf", "what answers there does not speak Kafka's protocol"),
        (b"\0\0\0\x06pkaf\0\0", None),
        (b"\0\0\0\x03pkaf", "what answers there does not speak Kafka's protocol"),
    ],
)
def test_what_answers_is_named(answer: bytes, reason: str | None) -> None:
    """A greeting of another protocol is recognized; a frame with our correlation id is a broker's."""
    with _answering(answer) as address:
        assert reach.why_unreachable(address) == reason


def test_a_silent_server_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that accepts and says nothing is waited for no longer than the limit."""
    monkeypatch.setattr(reach, "TIMEOUT_S", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        assert reach.why_unreachable(address) == "no answer within 0.05 s"


@pytest.mark.parametrize("address", ["127.0.0.1", "127.0.0.1:7", "[::1]", "[::1]:7"])
def test_an_address_may_lack_its_port(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    """It is Kafka's usual one then."""
    asked = []

    def connect(where: tuple[str, int], timeout: float) -> None:
        asked.append(where)
        raise ConnectionRefusedError(111, "Connection refused")

    monkeypatch.setattr(socket, "create_connection", connect)
    assert reach.why_unreachable(address) == "connection refused"
    host = "::1" if "[" in address else "127.0.0.1"
    assert asked == [(host, 7 if address.endswith("7") else 9092)]


@pytest.mark.parametrize("name", ["foo..bar", "x" * 64 + ".example"])
def test_a_name_that_no_host_can_have(name: str) -> None:
    """It can't even be looked up."""
    assert reach.why_unreachable(f"{name}:9092") == f"{name} is no name of a host"


def test_one_of_several_addresses_suffices() -> None:
    """Each of those that do not answer is named only when none answers."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        unused = f"127.0.0.1:{taken.getsockname()[1]}"
    with _answering(b"\0\0\0\x04pkaf") as address:
        reach.reach(f"{unused},{address}")
    with pytest.raises(
        Failure, match=r"127\.0\.0\.1:\d+: connection refused; no\.invalid:1: there is no host named no"
    ):
        reach.reach(f"{unused},no.invalid:1")


@pytest.mark.parametrize(
    ("where", "reason"),
    [
        ("127.0.0.1:{unused}", "connection refused"),
        ("no.invalid:9092", "there is no host named no.invalid"),
        ("127.0.0.1:{http}", "what answers there does not speak Kafka's protocol"),
    ],
    ids=["refused", "no-such-host", "http"],
)
def test_what_is_wrong_is_said_at_once(where: str, reason: str) -> None:
    """Within two seconds, beside Python's own HTTP server: no client library is asked, which would retry."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        unused = taken.getsockname()[1]
    with ThreadingHTTPServer(("127.0.0.1", 0), _QuietHandler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        address = where.format(unused=unused, http=server.server_port)
        began = time.monotonic()
        try:
            with pytest.raises(Failure) as failure:
                reach.reach(address)
            seconds = time.monotonic() - began
        finally:
            server.shutdown()
            thread.join()
    assert str(failure.value).startswith(f"no broker answers at {address} ({reason}); start one with")
    assert seconds < 2


def test_the_environment_holds_the_default(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """`--bootstrap` and `--bootstrap-server` go before it, and an error names it."""
    from pykafkad.cli import topics

    seen = []
    monkeypatch.setattr(topics, "run", lambda options: seen.append(options.bootstrap) or 0)
    monkeypatch.setenv(client.BOOTSTRAP_VARIABLE, "there:1")
    for words in ([], ["--bootstrap", "here:2"], ["--bootstrap-server", "here:3"]):
        assert main(["topics", "list", *words]) == 0
    assert main(["topics", "-b", "here:4", "list"]) == 0
    assert seen == ["there:1", "here:2", "here:3", "here:4"]
    monkeypatch.setenv(client.BOOTSTRAP_VARIABLE, "there:x")
    assert main(["topics", "list"]) == 2
    assert "'there:x' of $PYKAFKAD_BOOTSTRAP is neither HOST:PORT" in capsys.readouterr().err
