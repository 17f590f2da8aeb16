"""The server of the control API: token, limits, errors, start and end."""

from __future__ import annotations

import json
import logging
import os
import socket
import stat
import threading
import time
from http.client import HTTPException

import pytest
from waitress.trigger import trigger

from pykafkad import http_server
from pykafkad.control import application, status_calls
from pykafkad.errors import ConfigError, StartFailure
from pykafkad.testing import Broker
from pykafkad.testing.waits import until
from tests.control.http_client import Client


def is_served(url, token):
    """Whether somebody answers there for whom the token is right: another process may have a port that was freed."""
    try:
        return Client(url, token).get("/status").status == 200
    except (OSError, HTTPException, AssertionError):
        return False


def listens(port):
    """Whether this process has a socket that listens at a port."""
    for name in os.listdir("/dev/fd"):
        try:
            if not stat.S_ISSOCK(os.fstat(int(name)).st_mode):
                continue
            with socket.socket(fileno=os.dup(int(name))) as each:
                if each.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) and each.getsockname()[1:2] == (port,):
                    return True
        except OSError:
            # It was closed meanwhile, as the list of descriptors itself is.
            pass
    return False


def test_health_needs_no_token_and_nothing_else_does_without(broker):
    """But for the description: both tell nothing of what the broker holds."""
    stranger = Client(broker.control_url, None)
    assert stranger.get("/health").body == {"status": "ok"}
    assert stranger.get("/openapi.json").body["openapi"] == "3.1.0"
    for path in ("/status", "/metrics", "/no/such/path"):
        refused = stranger.get(path)
        assert refused.status == 401 and refused.headers["www-authenticate"] == "Bearer"
        assert refused.error["where"] == "header Authorization"


@pytest.mark.parametrize(
    "given", ["Bearer wrong", "Bearer", "Basic {token}", "{token}", "Bearer {token}x", "Bearer \xe9"]
)
def test_a_wrong_token_is_refused(broker, given):
    """Also the right one by another scheme."""
    stranger = Client(broker.control_url, None)
    header = {"Authorization": given.format(token=broker.control_token)}
    assert stranger.send("GET", "/status", headers=header).status == 401


def test_the_status_counts_what_there_is(api, broker):
    """Topics and partitions without Kafka's own, groups, faults."""
    broker.create_topic("more", 2)
    broker.commit("readers", {("orders", 0): 1})
    broker.faults.close_before("Fetch")
    found = api.get("/status").body
    assert found["bootstrap"] == broker.bootstrap
    counted = {name: found[name] for name in ("topics", "partitions", "groups", "faults", "waits")}
    assert counted == {"topics": 2, "partitions": 5, "groups": 1, "faults": 1, "waits": 0}


@pytest.mark.parametrize(
    ("method", "path", "content", "status", "error"),
    [
        ("GET", "/statsu", None, 404, ("there is no path '/statsu'; did you mean /status?", "path")),
        ("POST", "/status", b"{}", 405, ("POST is not done here", "/status")),
        ("GET", "/status?verbose=1", None, 400, ("GET /status takes no query", "query")),
        ("GET", "/status?verbose=1&verbose=2", None, 400, ("verbose is there twice", "query")),
        (
            "GET",
            "/status?" + "&".join(f"a{n}=1" for n in range(60)),
            None,
            400,
            ("Max number of fields exceeded", "query"),
        ),
        ("GET", "/status", b"{}", 400, ("GET /status takes no body", "body")),
        ("GET", "/topics/%ff/records", None, 400, ("it is not UTF-8", "path")),
    ],
)
def test_errors_name_what_and_where(api, method, path, content, status, error):
    """As JSON, with what is allowed there."""
    answer = api.send(method, path, content)
    assert (answer.status, answer.error["what"], answer.error["where"]) == (status, *error)
    assert answer.error["allowed"]


def test_a_large_body_is_refused(api):
    """In JSON where it is a little too large; the server does not read what is much larger."""
    limit = application.MOST_BODY_BYTES
    answer = api.send("GET", "/status", bytes(limit + 1))
    assert answer.status == 413 and answer.error["allowed"] == f"at most {limit} bytes"
    status, error = refusal(api, "POST /reset", f"Authorization: Bearer {api.token}", f"Content-Length: {3 * limit}")
    assert status == 413 and error["allowed"] == f"a body of at most {limit} bytes"


def refusal(api, request, *headers, body=b""):
    """Status and error of what is refused before its body has come: the connection ends."""
    with socket.create_connection(("127.0.0.1", int(api.url.rpartition(":")[2])), 60) as client:
        client.sendall("\r\n".join([f"{request} HTTP/1.1", "Host: x", *headers, "", ""]).encode() + body)
        received = b"".join(iter(lambda: client.recv(1 << 16), b""))
    head, _, content = received.partition(b"\r\n\r\n")
    assert b"Content-Type: application/json" in head
    return int(head.split()[1]), json.loads(content)["error"]


@pytest.mark.parametrize("header", ["Content-Length: 100000", "Transfer-Encoding: chunked", "Content-Length: 99999999"])
@pytest.mark.parametrize("more", ["Accept: */*", "Expect: 100-continue", "Authorization: Bearer wrong"])
def test_the_body_of_a_stranger_is_not_read(api, header, more):
    """The answer comes without it, also to who asks whether to send it."""
    status, error = refusal(api, "POST /reset", header, more)
    assert status == 401 and error["where"] == "header Authorization"


def test_a_small_body_of_a_stranger_is_thrown_away(api):
    """His answer waits for it, so that he gets it; what comes behind it is not served."""
    status, error = refusal(api, "POST /reset", "Content-Length: 5", body=b"12345GET /health HTTP/1.1\r\n\r\n")
    assert status == 401 and error["where"] == "header Authorization"
    stranger = Client(api.url, None)
    assert [stranger.post("/reset", name="x" * 1000).status for _ in range(20)] == [401] * 20


@pytest.mark.parametrize(
    ("lines", "status", "allowed"),
    [
        (["Transfer-Encoding: gzip"], 501, "HTTP/1.1"),
        (["Content-Length: many"], 400, "HTTP/1.1"),
        # The last byte is the one too many, since the end comes at once.
        (
            [f"X: {'x' * (65536 - len('POST /reset HTTP/1.1..Host: x..X: ....'))}"],
            431,
            "headers of less than 65536 bytes",
        ),
    ],
)
def test_what_the_library_refuses_is_json_too(api, lines, status, allowed):
    """As the description says of every error."""
    refused, error = refusal(api, "POST /reset", *lines)
    assert (refused, error["allowed"]) == (status, allowed) and error["what"]


def test_a_bug_is_told_in_the_log_and_not_to_the_client(api, monkeypatch, caplog):
    """The answer says no more than that."""

    def broken(*_):
        raise ZeroDivisionError("secret")

    monkeypatch.setattr(status_calls.Control, "check_open", broken)
    with caplog.at_level(logging.ERROR):
        answer = api.get("/status")
    assert answer.status == 500 and "secret" not in str(answer.body)
    (told,) = [each.message for each in caplog.records if each.name == "pykafkad.control"]
    assert 'request="GET /status"' in told and "ZeroDivisionError" in told


def test_many_requests_at_a_time(api):
    """Each has its answer."""
    found = []
    threads = [threading.Thread(target=lambda: found.append(api.get("/status").status)) for _ in range(30)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert found == [200] * 30


def test_the_end_leaves_no_port_and_no_thread():
    """A second start has the same address and token."""
    own = Broker(control=True)
    with pytest.raises(ValueError):
        Broker(memory_bytes=1, control=True)
    for _ in range(2):
        before = threading.active_count()
        with own:
            url, token = own.control_url, own.control_token
            assert Client(url, token).get("/status").status == 200
        assert not is_served(url, token)
        until(threading.active_count, lambda seen, before=before: seen <= before, "end of all threads", 30)
        assert own.control_url == ""
    assert token == own.control_token


def test_a_broker_without_a_control_api_says_so():
    """It has neither address nor token."""
    with pytest.raises(RuntimeError, match=r"Broker\(control=True\)"):
        assert Broker().control_url


@pytest.mark.long
def test_a_broker_in_a_process_of_its_own_is_controlled_from_here():
    """Also its metrics."""
    with Broker(own_process=True, control=True, topics=["orders"]) as own:
        api = Client(own.control_url, own.control_token)
        assert api.get("/status").body["topics"] == 1
        assert b"kafka_controller_kafkacontroller_globaltopiccount 1" in api.get("/metrics").body


def test_health_asks_for_no_topics(api, broker, monkeypatch):
    """Since anybody may ask for it; and still it asks."""
    monkeypatch.setattr(type(broker), "topics", None)
    assert api.get("/health").body == {"status": "ok"}

    def lost(*_, **__):
        raise ConnectionResetError("lost")

    monkeypatch.setattr(broker._asked, "ask", lost)
    assert api.get("/health").status == 503


def test_idle_strangers_keep_nobody_out(monkeypatch):
    """They are closed, so that those who wait for room get in: more are there than may be."""
    monkeypatch.setattr(http_server, "IDLE_SECONDS", 0)
    monkeypatch.setattr(http_server, "IDLE_CHECK_SECONDS", 0)
    with Broker(control=True) as own:
        port = int(own.control_url.rpartition(":")[2])
        strangers = [
            socket.create_connection(("127.0.0.1", port), 60) for _ in range(http_server.MOST_CONNECTIONS + 10)
        ]
        for each in strangers:
            assert each.recv(1) == b""
            each.close()


def test_health_after_the_broker_has_died():
    """503, as a health check understands it."""
    with Broker(own_process=True, control=True) as own:
        own._running._process.kill()
        own._running._process.wait()
        answer = Client(own.control_url, None).get("/health")
        assert answer.status == 503 and answer.error["what"] == "the broker does not run"


def test_without_the_library(monkeypatch):
    """One sentence that says what to install."""
    monkeypatch.setitem(__import__("sys").modules, "waitress", None)
    with pytest.raises(ConfigError, match=r"pip install 'pykafkad\[control\]'"):
        Broker(control=True)


def test_an_address_that_is_taken_is_named():
    """With the reason."""
    from pykafkad.control.server import ControlServer

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        server = ControlServer(Broker(), port=port)
        with pytest.raises(StartFailure, match=f"127.0.0.1:{port} for the control API: Address already in use"):
            server.start()


def test_a_forked_child_neither_serves_nor_holds_the_port():
    """Its end of a `with` block does nothing, and the parent goes on."""
    with Broker(control=True) as own:
        api = Client(own.control_url, own.control_token)
        port = int(own.control_url.rpartition(":")[2])
        assert listens(port)
        begin, go_on = os.pipe()
        told, tell = os.pipe()
        child = os.fork()
        if child == 0:
            # Nothing of pytest's must run here.
            try:
                own.close()
                os.write(tell, b"listens" if listens(port) else b"closed")
                os.read(begin, 1)
            finally:
                os._exit(0)
        os.close(tell)
        try:
            # By now the child has closed what it will: nothing comes if it has failed.
            assert os.read(told, 10) == b"closed"
            assert api.get("/status").status == 200
            own.close()
            assert not is_served(api.url, api.token)
        finally:
            os.write(go_on, b"x")
            os.waitpid(child, 0)
            for each in (begin, go_on, told):
                os.close(each)


def test_an_answer_that_is_under_way_arrives_before_the_end(monkeypatch):
    """Also one that its client reads late."""
    monkeypatch.setattr(http_server, "STOP_SECONDS", 60.0)
    monkeypatch.setattr(http_server, "UNREAD_SECONDS", 60.0)
    with Broker(control=True, topics=["many"]) as own:
        own.produce("many", *["x" * 1000] * 3000)
        host, port = own.control_url.removeprefix("http://").split(":")
        client = socket.create_connection((host, int(port)), 60)
        client.sendall(
            b"GET /topics/many/records HTTP/1.0\r\nAuthorization: Bearer " + own.control_token.encode() + b"\r\n\r\n"
        )
        begun = client.recv(1)
        closing = threading.Thread(target=own.close)
        closing.start()
        received = begun + b"".join(iter(lambda: client.recv(1 << 16), b""))
        closing.join(60)
        client.close()
    head, _, body = received.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.0 200") and len(json.loads(body)["records"]) == 3000


@pytest.mark.long
def test_a_client_that_does_not_read_delays_no_end(monkeypatch):
    """Neither one whose answer fits into the server's buffers, nor one whose answer keeps a thread."""
    monkeypatch.setattr(http_server, "STOP_SECONDS", 120.0)
    before = threading.active_count()
    with Broker(control=True, topics=["many"]) as own:
        own.produce("many", *["x" * 9000] * 3000)
        host, port = own.control_url.removeprefix("http://").split(":")
        clients = [socket.create_connection((host, int(port)), 60) for _ in range(2)]
        for client, limit in zip(clients, (1000, 3000), strict=True):
            head = (
                f"GET /topics/many/records?limit={limit} HTTP/1.0\r\nAuthorization: Bearer {own.control_token}\r\n\r\n"
            )
            client.sendall(head.encode())
            assert client.recv(1)
        began = time.monotonic()
        own.close()
        assert time.monotonic() - began < 60
    for client in clients:
        client.close()
    until(threading.active_count, lambda seen: seen <= before, "end of all threads", 30)


def test_the_end_needs_no_haste_of_the_thread_that_asks_for_it(monkeypatch):
    """The server may act on a wish before the thread that wakes it has written to the pipe that they share."""
    pull, read = trigger._physical_pull, trigger.recv
    woken = threading.Event()

    def late_pull(self):
        woken.wait(0.05)
        pull(self)

    def late_read(self, size):
        data = read(self, size)
        woken.wait(0.1)
        return data

    monkeypatch.setattr(trigger, "_physical_pull", late_pull)
    monkeypatch.setattr(trigger, "recv", late_read)
    with Broker(control=True) as own:
        url = own.control_url
    assert not is_served(url, "")
