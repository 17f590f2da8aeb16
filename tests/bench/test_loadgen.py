"""The load generator, with a small broker whose answers the test controls."""

import contextlib
import os
import socket
import struct
import threading

import pytest

from compat_tests.setup import system_packages
from tests.bench import loadgen
from tests.bench.client_loads import fetch_rate, last_rate
from tests.bench.wire_bytes import Template

pytestmark = pytest.mark.skipif(
    not system_packages.is_present(system_packages.C_COMPILER),
    reason=system_packages.how_to_get(system_packages.C_COMPILER),
)

REQUEST = struct.pack(">ihhi", 16, 0, 7, 0) + b"12345678"


def serve(listener, answer, threads):
    """Answers every 20-byte request on every connection with `answer(correlation_id)`, until the listener closes."""

    def serve_connection(connection):
        with connection, contextlib.suppress(OSError):
            data = b""
            while chunk := connection.recv(65536):
                data += chunk
                while len(data) >= 20:
                    body = answer(data[8:12])
                    connection.sendall(struct.pack(">i", len(body)) + body)
                    data = data[20:]

    with contextlib.suppress(OSError):
        while True:
            connection, _ = listener.accept()
            thread = threading.Thread(target=serve_connection, args=(connection,))
            thread.start()
            threads.append(thread)


@contextlib.contextmanager
def broker(answer):
    """The port of a broker that answers with `answer(correlation_id)`."""
    threads = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        accepting = threading.Thread(target=serve, args=(listener, answer, threads))
        accepting.start()
        try:
            yield listener.getsockname()[1]
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            accepting.join()
            for each in threads:
                each.join()


@pytest.fixture
def templates(tmp_path):
    """A template file: error code at 8, at least 18 bytes, the value 7 at 10."""
    path = tmp_path / "t"
    loadgen.write_templates(path, [Template(REQUEST, 8, 18, 10, 7)])
    return path


def test_good_answers_are_counted(templates):
    """Three connections, four deep, five requests each: fifteen answers, each with a latency."""
    with broker(lambda correlation_id: correlation_id + struct.pack(">hq", 0, 7)) as port:
        figures = loadgen.run(port, templates, connections=3, depth=4, requests=5)
    assert figures["requests_per_s"] > 0 and figures["mb_per_s"] > 0
    assert 0 < figures["p50_us"] <= figures["p99_us"] <= figures["p999_us"] < 60e6


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        (struct.pack(">hq", 3, 7), "error code 3"),
        (struct.pack(">hq", -1, 7), "error code -1"),
        (struct.pack(">hq", 0, 8), "an unexpected value 8"),
        (struct.pack(">h", 0), "an answer too small, of bytes 10"),
        (b"", "an answer without an error code, of bytes 8"),
    ],
)
def test_a_bad_answer_fails_the_run(templates, body, complaint):
    """The run names an error code, an unexpected value or an incomplete answer."""
    with broker(lambda correlation_id: correlation_id + body) as port:
        with pytest.raises(loadgen.LoadFailed, match=f"2 of 2 answers were errors; template 0: {complaint}"):
            loadgen.run(port, templates, connections=1, requests=2)


def test_answers_out_of_order_end_the_run(templates):
    """Kafka answers the requests of a connection in order, so another correlation id ends the run."""
    with broker(lambda _: struct.pack(">ihq", 99, 0, 7)) as port:
        with pytest.raises(loadgen.LoadFailed, match="correlation id 99 where 0 was due"):
            loadgen.run(port, templates, connections=1, requests=1)


def test_a_paced_run_keeps_its_rate(templates):
    """400 requests/s for a quarter of a second are about 100, however fast the broker is.

    Other processes of the machine may delay a run.
    """
    rates = [0.0]
    with broker(lambda correlation_id: correlation_id + struct.pack(">hq", 0, 7)) as port:
        while rates[-1] <= 200 and len(rates) <= 60:
            rates.append(loadgen.run(port, templates, connections=1, depth=8, rate=400, seconds=0.25)["requests_per_s"])
    assert rates[-1] > 200 and max(rates) < 600, rates


def test_each_of_several_brokers_gets_its_own(tmp_path):
    """The connections are dealt out to the brokers, and each is asked only what is meant for it."""
    first, second = REQUEST, REQUEST[:-1] + b"9"
    path = tmp_path / "two"
    loadgen.write_templates(path, [Template(first, 8, 18, 10, 1), Template(second, 8, 18, 10, 2, 1)])
    with contextlib.ExitStack() as stack:
        ports = [
            stack.enter_context(broker(lambda correlation_id, own=own: correlation_id + struct.pack(">hq", 0, own)))
            for own in (1, 2)
        ]
        figures = loadgen.run(ports, path, connections=4, depth=2, requests=5, pid=[os.getpid()])
        assert figures["requests_per_s"] > 0 and figures["cpu_us_per_request"] > 0
        with pytest.raises(loadgen.LoadFailed, match="an unexpected value"):
            loadgen.run(ports[::-1], path, connections=2, requests=1)
        with pytest.raises(loadgen.LoadFailed, match="template 1 is for broker 1 of 1"):
            loadgen.run(ports[0], path, connections=1, requests=1)
        loadgen.write_templates(path, [Template(first, 8, 18, 10, 1)])
        with pytest.raises(loadgen.LoadFailed, match="there is no template for broker 1"):
            loadgen.run(ports, path, connections=2, requests=1)


def test_idle_connections_are_answered_once_and_held(templates):
    """The connections stay open inside the block, and another run works beside them."""
    with broker(lambda correlation_id: correlation_id + struct.pack(">hq", 0, 7)) as port:
        with loadgen.idle_connections(port, templates, 5):
            assert loadgen.run(port, templates, connections=1, requests=1)["requests_per_s"] > 0


def test_output_of_the_java_tools_is_parsed():
    """ProducerPerformance ends with its rate. ConsumerPerformance prints columns."""
    produced = (
        "5 records sent, 1.0 records/sec (0 MB/sec)\n9 records sent, 4321.5 records/sec (0.41 MB/sec), 1 ms avg\n"
    )
    assert last_rate(produced) == 4321.5
    consumed = "start.time, MB.sec, fetch.nMsg.sec\n2026-11-21 12:00:00:000, 1.5, 250000.5\n"
    assert fetch_rate(consumed) == 250000.5
    with pytest.raises(RuntimeError, match="no figures"):
        fetch_rate("start.time, MB.sec, fetch.nMsg.sec\n")
