"""How the loop waits for its sockets."""

import select
import socket
from types import SimpleNamespace

import pytest

from pykafkad.disk import Disk
from pykafkad.log.file_slice import FileSlice
from pykafkad.server import reactor as reactor_module
from pykafkad.server.connection import FRAMES_PER_TURN, OUTBOX_LIMIT_BYTES
from pykafkad.server.reactor import LOOKS
from tests.server.echo import EchoNode, arrived, received, turns


class CountingEpoll:
    """Hands out what it is given, one list a call, and notes the timeouts."""

    def __init__(self, clock, answers):
        self.clock = clock
        self.answers = list(answers)
        self.timeouts = []

    def poll(self, timeout, count):
        self.timeouts.append(timeout)
        events, seconds = self.answers.pop(0) if self.answers else ([], 0.0)
        self.clock.advance(seconds)
        return events

    def close(self):
        pass


def test_after_a_short_wait_the_loop_looks_for_a_moment_before_it_sleeps():
    """A client that answers at once is not slept for; one that does not costs at most a fixed number of looks."""
    node = EchoNode()
    node.open()
    node.reactor._poller.close()
    short = ([(-1, 1)], 20e-6)
    epoll = node.reactor._poller = CountingEpoll(node.clock, [short, ([], 0), ([(-1, 1)], 0)])
    node.reactor.turn(1.0)
    assert epoll.timeouts == [1.0], "nothing was known yet: it sleeps"
    node.reactor.turn(1.0)
    assert epoll.timeouts[1:] == [0, 0], "the second look found something: no sleep"
    epoll.timeouts.clear()
    epoll.answers = [([], 0)] * LOOKS + [([], 1.0)]
    node.reactor.turn(1.0)
    assert epoll.timeouts == [0] * LOOKS + [1.0], "the looks are bounded"
    epoll.timeouts.clear()
    node.reactor.turn(1.0)
    assert epoll.timeouts == [1.0], "after a long wait it sleeps at once"
    node.reactor.turn(0)
    assert epoll.timeouts == [1.0, 0], "a turn that may not wait looks once"
    node.close()


class RecordingEpoll:
    """A real one; notes the timeouts."""

    def __init__(self, epoll):
        self.epoll = epoll
        self.timeouts = []

    def poll(self, timeout, count):
        self.timeouts.append(timeout)
        return self.epoll.poll(timeout, count)

    def __getattr__(self, name):
        return getattr(self.epoll, name)


@pytest.mark.parametrize(("size_bytes", "looks"), [(20_000, LOOKS), (300_000, 0)])
def test_a_peer_that_took_a_large_answer_is_not_looked_for(tmp_path, size_bytes, looks):
    """It needs a while; after a small answer the next request may be on its way."""
    (tmp_path / "log").write_bytes(b"r" * size_bytes)
    node = EchoNode()
    node.answer = lambda connection, payload: FileSlice(Disk().open(str(tmp_path / "log")), 0, size_bytes)
    node.open()
    port = node.socket_server.listen("127.0.0.1", 0, None, send_buffer_bytes=1 << 20, backlog=10)
    epoll = node.reactor._poller = RecordingEpoll(node.reactor._poller)
    with socket.create_connection(("127.0.0.1", port)) as client:
        node.reactor.turn(1.0)
        client.sendall(b"\0\0\0\1?")
        arrived(node, client)
        node.reactor.turn(1.0)
        epoll.timeouts.clear()
        node.reactor.turn(0.001)
        assert epoll.timeouts == [0] * looks + [0.001]
    node.close()


def test_what_was_already_read_is_served_without_waiting():
    """A connection that used up its share of a turn is served on in the next, which waits for nothing."""
    node = EchoNode()
    node.open()
    port = node.socket_server.listen("127.0.0.1", 0, None, send_buffer_bytes=None, backlog=10)
    epoll = node.reactor._poller = RecordingEpoll(node.reactor._poller)
    with socket.create_connection(("127.0.0.1", port)) as client:
        node.reactor.turn(1.0)
        client.sendall(b"\0\0\0\1?" * (FRAMES_PER_TURN + 1))
        arrived(node, client)
        node.reactor.turn(1.0)
        epoll.timeouts.clear()
        node.reactor.turn(60.0)
        assert epoll.timeouts == [0]
        client.settimeout(60)
        assert len(client.recv(5 * (FRAMES_PER_TURN + 1), socket.MSG_WAITALL)) == 5 * (FRAMES_PER_TURN + 1)
    node.close()


@pytest.fixture
def waiting():
    """An echo with one client."""
    node = EchoNode()
    node.open()
    port = node.socket_server.listen("127.0.0.1", 0, None, send_buffer_bytes=None, backlog=10)
    with socket.create_connection(("127.0.0.1", port)) as node.client:
        node.client.setblocking(False)
        node.reactor.turn(60.0)
        yield node
    node.close()


def test_an_end_behind_the_last_request_is_seen(waiting):
    """The kernel tells of both at once, and only once."""
    waiting.client.sendall(b"\0\0\0\1?")
    waiting.client.shutdown(socket.SHUT_WR)
    arrived(waiting, waiting.client, select.POLLRDHUP)
    turns(waiting, 3)
    assert received(waiting, waiting.client, 100) == b"\0\0\0\1?", "and then the end"
    assert [reason for _, reason in waiting.lost] == ["closed by the peer"]


def test_an_end_that_came_while_something_was_at_work_is_seen_when_that_waits_for_news(waiting):
    """The kernel told of it when nobody wanted to know."""

    def work(connection, payload):
        connection.begin_service(SimpleNamespace(route=SimpleNamespace(row=SimpleNamespace(waits_for_others=False))))
        connection.defer()

    waiting.answer = work
    waiting.client.sendall(b"\0\0\0\1?")
    connection = arrived(waiting, waiting.client)
    waiting.client.shutdown(socket.SHUT_WR)
    arrived(waiting, waiting.client, select.POLLRDHUP)
    turns(waiting, 3)
    assert not waiting.lost, "it may still want its answer"
    connection.park(object())
    connection.transport.resume_soon()
    turns(waiting, 3)
    assert [reason for _, reason in waiting.lost] == ["closed by the peer"]


@pytest.mark.parametrize("flat", [False, True])
def test_what_stands_behind_a_read_that_filled_the_scratch_is_read(waiting, monkeypatch, flat):
    """The kernel does not tell of it again."""
    monkeypatch.setattr(reactor_module, "SCRATCH_BYTES", 64)
    waiting.reactor._scratch = memoryview(bytearray(64))
    if flat:

        def serve_fast(connection, view, start, end, version, correlation_id):
            waiting.serve(connection, view, start, end)
            return True

        waiting.fast_paths[7] = serve_fast
    sent = (b"\0\0\0\x3c" + b"\0\0\0\7" + b"x" * 56) * 2 + b"\0\0\0\1?"
    waiting.client.sendall(sent)
    assert received(waiting, waiting.client, len(sent)) == sent


def test_a_large_frame_is_read_to_its_end_and_what_stands_behind_it_too(waiting):
    """Its buffer is asked for by and by: a read that fills it leaves bytes in the kernel."""
    sent = b"\0\x04\0\0" + bytes(0x40000) + b"\0\0\0\1?"
    assert received(waiting, waiting.client, len(sent), left=sent) == sent


def test_a_request_behind_one_with_a_large_answer_is_served(waiting):
    """What waited until the answer had left goes on, also when that left at once and whole."""
    waiting.answer = lambda connection, payload: b"\0\0\0\0" if payload == b"?" else bytes(OUTBOX_LIMIT_BYTES + 1)
    waiting.client.sendall(b"\0\0\0\5large\0\0\0\1?")
    assert len(received(waiting, waiting.client, OUTBOX_LIMIT_BYTES + 5)) == OUTBOX_LIMIT_BYTES + 5
