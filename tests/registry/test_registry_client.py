"""What a registry's client does with a registry that leads it astray, and where its login goes."""

from __future__ import annotations

import threading
from base64 import b64encode
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from pykafkad.registry.registry_client import RegistryClient, RegistryFailure
from pykafkad.registry.schema import AVRO, Schema


class Answers(BaseHTTPRequestHandler):
    """Gives each request the server's answer, and keeps its login."""

    def do_GET(self):
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.logins.append(self.headers.get("Authorization"))
        self.wfile.write(self.server.answer)
        self.close_connection = True

    def do_POST(self):
        self.do_GET()

    def log_message(self, *_):
        """Says nothing."""


@contextmanager
def answering(answer):
    with HTTPServer(("127.0.0.1", 0), Answers) as server:
        server.answer, server.logins = answer, []
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def json_answer(text):
    return f"HTTP/1.0 200 OK\r\nContent-Length: {len(text)}\r\n\r\n{text}".encode()


def client(server):
    return RegistryClient(f"http://a:pw123@127.0.0.1:{server.server_port}")


def test_a_login_does_not_go_along_to_another_place():
    with answering(json_answer('{"schema": "1"}')) as other:
        place = f"http://127.0.0.1:{other.server_port}/"
        with answering(f"HTTP/1.0 302 Found\r\nLocation: {place}\r\n\r\n".encode()) as server:
            with pytest.raises(RegistryFailure, match="HTTP 302") as caught:
                client(server).by_id(1)
            assert caught.value.status == 302
            assert server.logins == [f"Basic {b64encode(b'a:pw123').decode()}"]
        assert other.logins == []


def test_a_registry_on_this_machine_is_asked_without_a_proxy(monkeypatch):
    for name in ("no_proxy", "NO_PROXY", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with answering(json_answer('{"schema": "near"}')) as server, answering(json_answer("{}")) as proxy:
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.server_port}")
        assert client(server).by_id(1).text == "near"
        assert proxy.logins == []


@pytest.mark.parametrize(
    "answer",
    [b"SSH-2.0-nothing\r\n", b"", *map(json_answer, ("[]", "[1]", "5", "null", '{"id": []}', '{"schema": 5}', "x"))],
)
def test_what_is_no_answer_of_a_registry_is_told_in_one_way(answer):
    with answering(answer) as server:
        asked = client(server)
        for call in (
            lambda: asked.by_id(1),
            lambda: asked.version("s"),
            lambda: asked.register("s", Schema(AVRO, "1")),
        ):
            with pytest.raises(RegistryFailure, match="the registry"):
                call()


@pytest.mark.parametrize("url", ["htp://a:pw123@x", "http://a:pw123@x:abc", "http://a:pw123@[x", "http://a:pw123@"])
def test_what_is_no_url_is_told_without_its_login(url):
    with pytest.raises(ValueError, match="must be a URL such as") as caught:
        RegistryClient(url)
    assert "pw123" not in str(caught.value)
