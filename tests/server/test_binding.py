"""What listening sockets are set to, which what they accept inherits."""

import socket

import pytest

from pykafkad.disk import SPARE_DESCRIPTORS
from pykafkad.platform_calls import descriptor_limit
from pykafkad.server import binding
from pykafkad.testing import Broker

RECEIVE = "socket.receive.buffer.bytes"


def send_buffer_bytes(host, asked):
    """What the system says of a socket bound to `host`."""
    (bound,) = binding.bind_all(host, 0, asked, 10)
    with bound:
        return bound.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)


def as_set(size_bytes):
    """What the system makes of a size that is asked for; None: not asked."""
    with socket.socket() as fresh:
        if size_bytes is not None:
            fresh.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, size_bytes)
        return fresh.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_a_send_buffer_that_is_set_is_obeyed(host):
    assert send_buffer_bytes(host, 102_400) == as_set(102_400)
    assert send_buffer_bytes(host, -1) == as_set(None)


@pytest.mark.parametrize(("texts", "asked"), [({}, None), ({RECEIVE: "40000"}, 40_000), ({RECEIVE: "-1"}, None)])
def test_connections_get_the_receive_buffer_that_is_set(texts, asked):
    """Kafka's default is a bound that would slow large requests: unless it is set, the system's grows."""
    with Broker(settings=texts) as broker:
        (server,) = broker._running.socket_servers()
        host, port = broker.bootstrap.split(":")
        with socket.create_connection((host, int(port))), socket.socket() as fresh:
            (bound,) = server.sockets()[:1]
            if asked is not None:
                fresh.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, asked)
            of_system = fresh.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)
            assert bound.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) == of_system


def test_the_send_buffer_is_bounded_where_the_system_paces():
    assert send_buffer_bytes("0.0.0.0", None) == as_set(256 * 1024)


def test_the_send_buffer_grows_on_a_loopback_listener_that_is_not_paced(monkeypatch):
    """Unless the system does not let us say how it is paced."""
    assert send_buffer_bytes("127.0.0.1", None) == as_set(None)
    monkeypatch.setattr(binding, "_use_window_alone", lambda server: False)
    assert send_buffer_bytes("127.0.0.1", None) == as_set(256 * 1024)


def test_what_a_loopback_listener_accepts_is_not_paced():
    (bound,) = binding.bind_all("127.0.0.1", 0, None, 10)
    with bound, socket.create_connection(bound.getsockname()):
        bound.setblocking(True)
        accepted, _ = bound.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\0") == b"reno"


def test_who_is_refused_where_descriptors_are_scarce():
    """Many connections leave an eighth to files; few are let in beside many files, but for half of the spare
    descriptors."""
    limit = descriptor_limit()
    share = limit // 8
    scarce = limit - share - SPARE_DESCRIPTORS
    few, many = share - 1, share
    assert binding.refusal(scarce - 1, many) is None
    assert binding.refusal(scarce, many) == {"reason": "open files", "limit": limit}
    assert binding.refusal(scarce, few) is None
    assert binding.refusal(limit - SPARE_DESCRIPTORS // 2 - 1, few) is None
    assert binding.refusal(limit - SPARE_DESCRIPTORS // 2, 1) == {"reason": "open files", "limit": limit}
