"""A log is cut while an answer with its records waits for the peer: the connection ends, and the client asks again."""

from unittest.mock import Mock

import pytest

from pykafkad import platform_calls
from pykafkad.disk import Disk
from pykafkad.errors import StorageFailure
from pykafkad.log.file_slice import Cuts, FileSlice, LogCut
from pykafkad.server import trace
from pykafkad.server.fault_injection import FaultDispatcher
from tests.server.echo import EchoNode, connect, frame, received, turns_until
from tests.server.tls_client import Client, endpoint

REASON = "the log was cut while its records were sent"
LARGE = 4_000_000
"""More than both sides' sockets take."""


@pytest.fixture
def node():
    node = EchoNode().open()
    yield node
    node.close()


@pytest.fixture
def cuts():
    return Cuts()


@pytest.fixture
def new_slice(tmp_path, cuts):
    def make(size_bytes):
        file = Disk().open(str(tmp_path / "log"), create=True)
        file.pwrite(b"o" * size_bytes, 0)
        return FileSlice(file, 0, size_bytes, None, cuts)

    return make


@pytest.mark.parametrize("size_bytes", [5000, LARGE])
def test_nothing_of_what_replaced_the_records_is_sent(node, new_slice, cuts, size_bytes):
    found, first = new_slice(size_bytes), b"f" * LARGE
    node.listen(send_buffer_bytes=1 << 18)
    node.answer = lambda connection, payload: [first, found]
    client = connect(node)
    client.sendall(frame(b"1"))
    turns_until(node, lambda: node.connections and node.connections[0].outbox)
    cuts.add(0)
    found.file.pwrite(b"n" * size_bytes, 0)
    begin = received(node, client, LARGE + size_bytes)
    assert begin == first[: len(begin)]
    turns_until(node, lambda: node.lost)
    assert node.lost[0][1] == REASON and not node.unexpected_errors
    client.close()


def test_over_tls_too(node, new_slice, cuts):
    found = new_slice(LARGE)
    node.listen(tls=endpoint(), send_buffer_bytes=4096)
    node.answer = lambda connection, payload: [found]
    client = Client(node).open()
    client.put(frame(b"1"))
    client.until(lambda: client.received)
    cuts.add(0)
    client.until(lambda: node.lost)
    assert node.lost[0][1] == REASON and 0 < len(client.received) < LARGE
    client.close()


def test_what_is_sent_by_reading_is_checked_first(new_slice, cuts):
    found = new_slice(100)
    cuts.add(0)
    with pytest.raises(LogCut):
        platform_calls.send_slice_by_reading(None, found, 100)


def test_a_trace_has_what_came_before_it(new_slice, cuts):
    found = new_slice(100)
    cuts.add(0)
    assert trace._start_of([b"head", found, b"tail"], None) == (b"head", 108)


@pytest.mark.parametrize("failure", [LogCut(), StorageFailure("read", "/log", "no")])
def test_a_fault_that_reads_the_answer_ends_the_connection(failure):
    def plan(*_):
        raise failure

    connection, dispatcher = Mock(id=7), object.__new__(FaultDispatcher)
    dispatcher._plans = {7: plan}
    dispatcher._put(connection, Mock(unwritten=None), None, None)
    ((reason,), _) = connection.close.call_args
    assert reason.startswith("its answer could not be read: ")
