"""The loop against real sockets, turned by hand in this thread."""

import errno
import os
import select
import socket
import struct
import threading
import time
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from pykafkad.disk import Disk
from pykafkad.errors import StorageFailure
from pykafkad.log.file_slice import FileSlice
from pykafkad.server.connection import FRAMES_PER_TURN, OUTBOX_LIMIT_BYTES, SCRATCH_BYTES
from tests.server.echo import EchoNode, arrived, connect, frame, received, turns, turns_until


@pytest.fixture
def node():
    node = EchoNode()
    node.open()
    yield node
    node.close()


@pytest.fixture
def listening(node):
    node.port = node.socket_server.listen("localhost", 0, None, send_buffer_bytes=0, backlog=10)
    return node


def test_localhost_is_bound_for_ipv4_and_ipv6_on_one_free_port(listening):
    for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
        try:
            client = connect(listening, host)
        except OSError:
            assert family == socket.AF_INET6, "a machine may lack IPv6, not IPv4"
            continue
        client.sendall(frame(b"hello"))
        assert received(listening, client, 9) == frame(b"hello")
        client.close()


def test_the_wildcard_takes_both(node):
    node.port = node.socket_server.listen("", 0, None, send_buffer_bytes=0, backlog=10)
    client = connect(node)
    client.sendall(frame(b"4"))
    assert received(node, client, 5) == frame(b"4")
    client.close()


def test_a_taken_port_is_said_with_its_address(listening):
    with pytest.raises(OSError, match=f"cannot listen on 127.0.0.1:{listening.port}"):
        listening.socket_server.listen("127.0.0.1", listening.port, None, send_buffer_bytes=0, backlog=10)


def test_frames_in_pieces_and_in_bulk(listening):
    client = connect(listening)
    data = b"".join(frame(os.urandom(size)) for size in (0, 1, 100, 70_000, 200_000, 5))
    for position in range(0, len(data), 50_000):
        client.sendall(data[position : position + 50_000])
        turns(listening, 3)
    assert received(listening, client, len(data)) == data
    client.close()


def test_a_peer_that_never_reads_holds_a_bounded_outbox_and_disturbs_nobody(listening):
    answer = b"x" * 200_000
    listening.answer = lambda connection, payload: frame(answer)
    slow = connect(listening)
    other = connect(listening)
    with pytest.raises(BlockingIOError):
        for _ in range(3000):
            slow.sendall(frame(b"give") * 2000)
            listening.reactor.turn(0)
    connection = listening.connections[0]
    turns_until(listening, lambda: connection.is_blocked)
    assert sum(map(len, connection.outbox)) <= OUTBOX_LIMIT_BYTES + 2 * len(answer)
    assert len(connection.pending) <= 256 * 1024
    listening.answer = lambda connection, payload: frame(payload)
    other.sendall(frame(b"still here"))
    assert received(listening, other, 14) == frame(b"still here")
    slow.close()
    other.close()
    turns_until(listening, lambda: len(listening.lost) == 2)


def test_what_a_slow_peer_asked_for_arrives_once_it_reads(listening):
    listening.answer = lambda connection, payload: frame(payload * 50_000)
    client = connect(listening)
    client.sendall(b"".join(frame(bytes([65 + number % 26])) for number in range(200)))
    turns(listening, 20)
    data = received(listening, client, 200 * 50_004)
    assert len(data) == 200 * 50_004
    assert [data[position + 4] for position in range(0, len(data), 50_004)] == [
        65 + number % 26 for number in range(200)
    ]
    client.close()


@pytest.mark.parametrize("size", [10, 5000, 9000, 300_000, 6_000_000])
def test_slices_of_files_leave_between_buffers(listening, tmp_path, size):
    content = os.urandom(size + 100)
    disk = Disk()
    file = disk.open(str(tmp_path / "log"), create=True)
    file.pwrite(content, 0)

    listening.answer = lambda connection, payload: [b"<head>", FileSlice(file, 50, size), b"<tail>"]
    client = connect(listening)
    client.sendall(frame(b"1") + frame(b"2"))
    expected = (b"<head>" + content[50 : 50 + size] + b"<tail>") * 2
    assert received(listening, client, len(expected)) == expected
    client.close()


def test_a_frame_that_is_too_large_ends_the_connection_after_the_answers_before_it(listening):
    client = connect(listening)
    client.sendall(frame(b"first") + struct.pack(">i", 2 << 20))
    assert received(listening, client, 10_000) == frame(b"first"), "and then the end"
    turns_until(listening, lambda: listening.lost)
    assert "above socket.request.max.bytes" in listening.lost[0][1]
    assert listening.metrics.frames_refused == 1
    client.close()


def test_more_connections_than_allowed_wait(listening):
    """In the system's backlog, as in Kafka, until another one ends."""
    clients = [connect(listening) for _ in range(50)]
    clients.append(socket.create_connection(("127.0.0.1", listening.port)))
    clients[-1].sendall(frame(b"patient"))
    turns(listening, 3)
    assert len(listening.connections) == 50 and listening.metrics.connections_refused == 0
    clients.pop(0).close()
    clients[-1].setblocking(False)
    assert received(listening, clients[-1], 11) == frame(b"patient")
    assert len(listening.connections) == 50
    for client in clients:
        client.close()


def test_idle_connections_are_closed_and_parked_ones_are_not(listening):
    idle, parked = connect(listening), connect(listening)
    connections = listening.connections
    connections[1].park(object())
    listening.now = 601.0
    turns(listening)
    assert [connection for connection, _ in listening.lost] == [connections[0]]
    idle.close()
    parked.close()


def in_service(waits_for_others):
    """A request of an API of that kind."""
    return SimpleNamespace(route=SimpleNamespace(row=SimpleNamespace(waits_for_others=waits_for_others)))


@pytest.mark.parametrize(("waits_for_others", "answered"), [(False, b"late"), (True, b"")])
def test_a_peer_that_says_nothing_more_gets_the_answer_that_is_under_way(listening, waits_for_others, answered):
    """What waits for others instead is given up: most who end so are not there any more."""
    client = connect(listening)
    (connection,) = listening.connections
    connection.begin_service(in_service(waits_for_others))
    connection.defer()
    client.shutdown(socket.SHUT_WR)
    assert arrived(listening, client, select.POLLRDHUP) is connection
    turns(listening)
    connection.put([b"late"])
    connection.end_service()
    assert received(listening, client, 5) == answered
    assert len(listening.connections) == 0
    client.close()


def test_an_abrupt_end_of_the_peer_is_noticed(listening):
    client = connect(listening)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.sendall(frame(b"x")[:3])
    turns(listening, 2)
    client.close()
    turns_until(listening, lambda: listening.lost)
    assert len(listening.lost) == 1
    assert len(listening.connections) == 0


def test_waking_from_another_thread_ends_the_wait(listening):
    began = time.monotonic()
    later = threading.Timer(0.05, listening.reactor.wake)
    later.start()
    listening.reactor.turn(10)
    later.join()
    assert time.monotonic() - began < 5
    listening.reactor.turn(0)
    began = time.monotonic()
    listening.reactor.turn(0.05)
    assert time.monotonic() - began >= 0.04, "it was heard once"


def park_every(listening, first):
    """Requests that begin with `first` stay in service until the test calls the returned function."""

    def answer(connection, payload):
        if payload[:1] == first:
            connection.begin_service(payload)
            connection.defer()
            return None
        return frame(payload)

    def finish():
        for connection in listening.connections:
            if connection.in_service is not None:
                connection.put([frame(connection.in_service[:1])])
                connection.end_service()

    listening.answer = answer
    return finish


@pytest.mark.parametrize("answer_bytes", [5, OUTBOX_LIMIT_BYTES + 1])
@pytest.mark.parametrize("first", [60_000, 65_535, 131_000, 400_000])
def test_much_behind_a_request_in_service_is_kept_up_to_a_bound_and_served_after_it(listening, first, answer_bytes):
    """A frame larger than what is read at once, behind a parked request and in two pieces, must not end the loop; nor,
    with a long answer to that request before it, the connection, for which there is no room to read more."""
    finish = park_every(listening, b"p")
    client = connect(listening)
    data = frame(b"x" * 500_000) + frame(b"end")
    client.sendall(frame(b"p"))
    (connection,) = listening.connections
    turns_until(listening, lambda: connection.in_service)
    sent = client.send(data[:first])
    turns_until(listening, lambda: connection.pending)
    turns(listening, 3)
    sent += client.send(data[sent:])
    turns(listening, 10)
    assert 0 < len(connection.pending) <= SCRATCH_BYTES
    finish()
    connection.outbox_bytes = answer_bytes
    expected = frame(b"p") + data
    assert received(listening, client, len(expected), left=data[sent:]) == expected
    assert listening.metrics.unexpected_errors == 0
    client.close()


def test_a_peer_with_many_requests_in_line_does_not_keep_the_others_waiting(listening):
    """However much one connection has sent, another is served after at most its share of a turn."""
    flood, other = connect(listening), connect(listening)
    order = []
    listening.answer = lambda connection, payload: order.append(payload) or frame(payload)
    flood.sendall(frame(b"flood") * 3000)
    turns_until(listening, lambda: order)
    assert order == [b"flood"] * FRAMES_PER_TURN
    other.sendall(frame(b"other"))
    arrived(listening, other)
    listening.reactor.turn(1)
    assert b"other" in order and len(order) <= 3 * FRAMES_PER_TURN
    assert received(listening, flood, 9 * 3000) == frame(b"flood") * 3000
    assert order == [*order[: order.index(b"other")], b"other"] + [b"flood"] * (3000 - order.index(b"other"))
    flood.close()
    other.close()


def test_the_last_request_of_a_long_line_is_served_without_another_event(listening):
    """What was read and not served makes the next turn come at once."""
    client = connect(listening)
    client.sendall(frame(b"x") * (FRAMES_PER_TURN * 5 + 1))
    size = 5 * (FRAMES_PER_TURN * 5 + 1)
    assert len(received(listening, client, size)) == size
    client.close()


def test_a_connection_that_cannot_be_waited_for_is_refused_and_the_loop_goes_on(listening):
    """Linux limits how many descriptors a user waits for; other systems tell only now of a peer that has gone."""
    poller = listening.reactor._poller

    def refuse(fileno, mask):
        raise OSError(errno.ENOSPC, "No space left on device")

    listening.reactor._poller = SimpleNamespace(register=refuse, poll=poller.poll)
    connect(listening).close()
    listening.reactor._poller = poller
    assert listening.metrics.connections_refused == 1 and not listening.connections
    client = connect(listening)
    client.sendall(frame(b"hello"))
    assert received(listening, client, 9) == frame(b"hello")
    client.close()


def test_without_descriptors_accepting_pauses_and_goes_on(listening):
    """A broker out of descriptors must not spin, and accepts again soon after there are some."""
    server = listening.socket_server._listeners[0][0]

    class Full:
        def __init__(self, server):
            self.fileno = server.fileno

        def accept(self):
            raise OSError(24, "Too many open files")

    listening.socket_server._next_idle_scan = 1000.0
    listening.socket_server._plan_tick()
    listening.reactor._tick(0.0)
    watched = listening.reactor._watched
    accept = watched[server.fileno()]
    watched[server.fileno()] = lambda now: listening.socket_server._accept(Full(server), None, now)
    client = socket.create_connection(("127.0.0.1", listening.port))
    turns_until(listening, lambda: listening.reactor.next_wake() < 1000.0)
    watched[server.fileno()] = accept
    due = listening.reactor.next_wake()
    assert 0 < due < 1
    turns(listening, 3)
    assert len(listening.connections) == 0, "it waits"
    listening.now = due
    turns_until(listening, lambda: listening.connections)
    assert listening.reactor.next_wake() == 1000.0, "nothing is due any more, so the loop can sleep"
    assert len(listening.connections) == 1
    client.close()


def test_a_bug_met_while_serving_what_was_kept_ends_that_connection_alone(listening):
    """The same as for what was just read."""
    finish = park_every(listening, b"p")
    client, other = connect(listening), connect(listening)
    client.sendall(frame(b"p") + frame(b"bug"))
    turns_until(listening, lambda: any(each.in_service for each in listening.connections))
    turns(listening, 3)

    def broken(connection, payload):
        raise RuntimeError("a bug")

    finish()
    listening.answer = broken
    turns(listening, 3)
    assert len(listening.unexpected_errors) == 1 and len(listening.connections) == 1
    client.close()
    other.close()


def test_an_answer_that_cannot_be_read_ends_its_connection_alone(listening):
    """A disk that fails under a reader: the size of the answer is promised already, so all that is left is to close."""

    class Unreadable:
        chunk_size = 100

        def pread(self):
            raise StorageFailure("read", "t-0/0.log", "Input/output error")

    listening.answer = lambda connection, payload: [b"<head>", Unreadable()]
    client, other = connect(listening), connect(listening)
    client.sendall(frame(b"x"))
    turns_until(listening, lambda: len(listening.connections) == 1)
    assert received(listening, client, 1) == b""
    client.close()
    other.close()


def test_a_stop_waits_for_a_slow_reader(listening):
    """What was begun is finished: the rest of a large answer still arrives."""
    listening.answer = lambda connection, payload: frame(payload * 3_000_000)
    client = connect(listening)
    client.sendall(frame(b"x"))
    (connection,) = listening.connections
    turns_until(listening, lambda: connection.is_blocked)
    received_bytes = bytearray()

    def read_some():
        try:
            received_bytes.extend(client.recv(1 << 20))
        except BlockingIOError:
            pass
        return 1.0

    listening.reactor.drain(read_some)
    listening.close()
    client.setblocking(True)
    while part := client.recv(1 << 20):
        received_bytes.extend(part)
    assert len(received_bytes) == 3_000_004
    client.close()
    listening.open()


def test_a_stop_waits_for_a_slow_reader_without_spinning(listening):
    """A connection attempt that ends meanwhile is told of once: nobody goes on with it."""
    listening.answer = lambda connection, payload: frame(payload * 30_000_000)
    client = connect(listening)
    client.sendall(frame(b"x"))
    (connection,) = listening.connections
    turns_until(listening, lambda: connection.is_blocked)
    reactor = listening.reactor
    attempt = socket.create_server(("127.0.0.1", 0))
    outgoing = Mock()
    reactor.connector.connect(*attempt.getsockname(), outgoing)
    attempt.accept()[0].close()
    polls = []
    left = iter([0.3] * 3 + [0.0])
    reactor.drain(lambda: polls.append(time.monotonic()) or next(left))
    assert len(polls) == 4 and polls[-1] - polls[1] > 0.15, "it waits twice"
    reactor.connector.close()
    outgoing.lost.assert_called_once_with("the broker stops")
    attempt.close()
    client.close()


def test_a_stop_does_not_wait_for_ever(listening):
    listening.answer = lambda connection, payload: frame(payload * 30_000_000)
    client = connect(listening)
    client.sendall(frame(b"x"))
    (connection,) = listening.connections
    turns_until(listening, lambda: connection.is_blocked)
    left = iter([2.0, 1.0, 0.0])
    listening.reactor.drain(lambda: next(left))
    assert next(left, None) is None
    client.close()


@pytest.mark.parametrize("taken", [0, 1, 3, 8])
def test_a_small_answer_of_which_only_a_part_is_taken_arrives_whole_and_once(listening, taken):
    """The shortest way out sends without a call of its own; what it could not send leaves the usual way."""
    client = connect(listening)
    (connection,) = listening.connections
    send = connection.transport.send
    calls = []

    def partly(data, *flags):
        calls.append(len(data))
        if len(calls) > 1:
            return send(data, *flags)
        if taken == 0:
            raise BlockingIOError(11, "would block")
        return send(data[:taken])

    connection.transport.send = partly
    client.sendall(frame(b"hello"))
    turns_until(listening, lambda: calls)
    turns(listening, 3)
    client.sendall(frame(b"again"))
    assert received(listening, client, 18) == frame(b"hello") + frame(b"again")
    assert calls[0] == 9
    client.close()


def test_one_whole_frame_of_a_known_shape_is_served_without_the_dispatcher(listening):
    """Its first four bytes find who serves it; who declines, and reads of anything else, go the general way. Both are
    counted."""
    flat = []

    def serve_fast(connection, view, start, end, version, correlation_id):
        flat.append((bytes(view[start:end]), version, correlation_id))
        if version == 9:
            return False
        connection.outbox.append(frame(b"flat"))
        return True

    listening.fast_paths.update({7: serve_fast, 9: serve_fast})
    client = connect(listening)
    known, declined = (struct.pack(">I", word) + b"corr, and so on" for word in (7, 9))
    client.sendall(frame(known))
    assert received(listening, client, 8) == frame(b"flat")
    assert flat == [(known, 7, int.from_bytes(b"corr", "big"))]
    assert listening.metrics.requests == 1
    client.sendall(frame(declined))
    assert received(listening, client, 23) == frame(declined)
    client.sendall(frame(known) + frame(known))
    assert received(listening, client, 46) == 2 * frame(known)
    assert len(flat) == 2
    client.close()


def test_a_held_connection_sends_nothing_until_it_is_released(listening):
    """Its answers wait for a sync, also when its peer, which had not read before, reads again."""
    client = connect(listening)
    listening.answer = lambda connection, payload: bytes(4 << 20)
    client.sendall(frame(b"large"))
    (connection,) = listening.connections
    turns_until(listening, lambda: connection.is_blocked)
    connection.hold()
    got = len(received(listening, client, 4 << 20, limit=50))
    assert got < 4 << 20
    assert connection.transport.interest == 0, "the loop must not spin on a peer that would take more"
    connection.release()
    assert got + len(received(listening, client, (4 << 20) - got)) == 4 << 20
    assert not connection.muted
    client.close()
