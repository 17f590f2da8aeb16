"""An issuer's keys come by HTTP, from a server of Python's own library."""

from __future__ import annotations

import contextlib
import http.server
import ssl
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pykafkad.cli import certificates
from pykafkad.errors import StartFailure
from pykafkad.sasl.jwks import parse
from pykafkad.sasl.token_rules import Endpoint
from pykafkad.server import jwks_source
from pykafkad.server.runtime import Runtime

KEYS = b'{"keys":[{"kty":"EC","kid":"one"},{"kty":"RSA","kid":"two"}]}'


@contextlib.contextmanager
def serving(answer: Any, certificate: Path | None = None) -> Iterator[str]:
    """An HTTP server, or with a certificate one by HTTPS; its address."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer(self)

        def log_message(self, *_: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http{'s' if certificate else ''}://127.0.0.1:{server.server_address[1]}/keys"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def reply(status: int, body: bytes, **headers: str) -> Any:
    """What the server does with each request."""

    def answer(handler: http.server.BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        with contextlib.suppress(ConnectionError):
            handler.wfile.write(body)

    return answer


def opened(url: str, trust_path: str | None = None) -> Any:
    """The keys at an address."""
    runtime = Runtime()
    try:
        return jwks_source.open_keys(runtime, Endpoint(url, None, trust_path, 3_600_000, 100, 10_000))
    finally:
        runtime.reactor.close()


def test_keys_come_by_http() -> None:
    """Also from where the address leads on."""
    with serving(reply(200, KEYS)) as url:
        assert opened(url).current() == parse(KEYS)
        with serving(reply(302, b"", Location=url)) as other:
            assert opened(other).current() == parse(KEYS)


def test_keys_come_by_https(tmp_path: Path) -> None:
    """From an issuer whose authority is trusted, and not from where it leads to without encryption."""
    certificates.provide(str(tmp_path), [])
    broker, trust = tmp_path / certificates.BROKER_FILE, str(tmp_path / certificates.CA_FILE)
    with serving(reply(200, KEYS), broker) as url:
        assert opened(url, trust).current() == parse(KEYS)
        with pytest.raises(StartFailure, match="certificate verify failed"):
            opened(url)
    with (
        serving(reply(200, KEYS)) as plain,
        serving(reply(302, b"", Location=plain), broker) as url,
        pytest.raises(StartFailure, match="unknown url type: http"),
    ):
        opened(url, trust)


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (reply(404, b"nothing"), "its answer is 404"),
        (reply(200, b"nothing"), "Expecting value"),
        (reply(200, b" " * (jwks_source.BYTES_MAX + 1)), "it has more than"),
        (reply(302, b"", Location="file:///etc/hosts"), "its answer is 302|unknown url type|not allowed"),
        (lambda handler: handler.wfile.write(b"nonsense\r\n\r\n"), "it does not speak HTTP"),
    ],
)
def test_what_gives_no_keys(answer: Any, problem: str) -> None:
    """A broker does not start then."""
    with serving(answer) as url, pytest.raises(StartFailure, match=problem):
        opened(url)


def test_nobody_gives_keys() -> None:
    """A broker does not start then either."""
    with pytest.raises(StartFailure, match="Connection refused"):
        opened("http://127.0.0.1:1/keys")


def drip(beginning: bytes) -> tuple[Any, threading.Event]:
    """An answer that goes on byte by byte until the event says that the client has gone, or for a minute."""
    gone = threading.Event()

    def answer(handler: http.server.BaseHTTPRequestHandler) -> None:
        try:
            handler.wfile.write(beginning)
            for _ in range(1200):
                handler.wfile.write(b"x")
                time.sleep(0.05)
        except OSError:
            gone.set()

    return answer, gone


OK = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize("beginning", [b"HT", OK + b"X-", OK + b"\r\n", OK + b"Content-Length: 9999\r\n\r\n"])
@pytest.mark.parametrize("is_https", [False, True])
def test_an_issuer_that_drips_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, beginning: bytes, is_https: bool
) -> None:
    """The time counts for the whole answer, not for each byte; the thread ends, and its connection."""
    # Enough for a handshake while others use the processors: without one nothing is answered.
    monkeypatch.setattr(jwks_source, "FETCH_SECONDS", 2)
    certificates.provide(str(tmp_path), [])
    trust = str(tmp_path / certificates.CA_FILE) if is_https else None
    answer, gone = drip(beginning)
    with serving(answer, tmp_path / certificates.BROKER_FILE if is_https else None) as url:
        fetch = jwks_source._Fetch(Endpoint(url, None, trust, 1, 1, 1), time.monotonic)
        with pytest.raises(TimeoutError, match="it took more than 2 s"):
            fetch()
        assert gone.wait(30)


def test_the_keys_of_a_broker_that_waits_for_ever_hold_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is left of the attempts that came to nothing."""
    monkeypatch.setattr(jwks_source, "FETCH_SECONDS", 0.2)
    answer, _ = drip(OK)
    with serving(answer) as url:
        for _ in range(3):
            with pytest.raises(StartFailure, match="it took more than"):
                opened(url)
        for thread in threading.enumerate():
            if thread.name == "offload":
                thread.join(30)
                assert not thread.is_alive()
