"""How the loop waits for its sockets."""

import socket

import pytest

from pykafkad.disk import Disk
from pykafkad.log.segment import FileSlice
from pykafkad.server.connection import FRAMES_PER_TURN
from pykafkad.server.reactor import LOOKS, Reactor
from tests.server.test_reactor import EchoNode


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
    node.reactor = Reactor(node, max_frame_bytes=1 << 20, idle_seconds=600, max_connections=50)
    node.reactor._epoll.close()
    short = ([(-1, 1)], 20e-6)
    epoll = node.reactor._epoll = CountingEpoll(node.clock, [short, ([], 0), ([(-1, 1)], 0)])
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
    node.reactor.close()


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
    node.answer = lambda connection, payload: connection.outbox.append(FileSlice(Disk().open(str(tmp_path / "log")), 0, size_bytes))
    node.reactor = Reactor(node, max_frame_bytes=1 << 20, idle_seconds=600, max_connections=50)
    port = node.reactor.listen("127.0.0.1", 0, None, send_buffer_bytes=1 << 20, backlog=10)
    epoll = node.reactor._epoll = RecordingEpoll(node.reactor._epoll)
    with socket.create_connection(("127.0.0.1", port)) as client:
        node.reactor.turn(1.0)
        client.sendall(b"\0\0\0\1?")
        node.reactor.turn(1.0)
        epoll.timeouts.clear()
        node.reactor.turn(0.001)
        assert epoll.timeouts == [0] * looks + [0.001]
    node.reactor.close()


def test_what_was_already_read_is_served_without_waiting():
    """A connection that used up its share of a turn is served on in the next, which waits for nothing."""
    node = EchoNode()
    node.reactor = Reactor(node, max_frame_bytes=1 << 20, idle_seconds=600, max_connections=50)
    port = node.reactor.listen("127.0.0.1", 0, None, send_buffer_bytes=None, backlog=10)
    epoll = node.reactor._epoll = RecordingEpoll(node.reactor._epoll)
    with socket.create_connection(("127.0.0.1", port)) as client:
        node.reactor.turn(1.0)
        client.sendall(b"\0\0\0\1?" * (FRAMES_PER_TURN + 1))
        node.reactor.turn(1.0)
        epoll.timeouts.clear()
        node.reactor.turn(60.0)
        assert epoll.timeouts == [0]
        assert len(client.recv(1 << 20, socket.MSG_WAITALL | socket.MSG_DONTWAIT)) == 5 * (FRAMES_PER_TURN + 1)
    node.reactor.close()
