"""TLS connections against a reactor with real sockets: the client is Python's, on bytes in memory, so that a test cuts
them as it likes."""

import random
import select
import socket
import ssl
import struct
import time

import pytest

from pykafkad.disk import Disk
from pykafkad.log.file_slice import FileSlice
from pykafkad.server import tls_endpoint
from pykafkad.server.buffered_poller import HANDSHAKES_PER_TURN
from pykafkad.server.connection import OUTBOX_LIMIT_BYTES, SCRATCH_BYTES
from pykafkad.server.tls_transport import (
    FLUSH_BYTES,
    RECORD_BYTES,
    TlsTransport,
    greeting_problem,
)
from tests import certificates, seeds
from tests.server.echo import EchoNode, arrived, connect, frame, received, turns, turns_until
from tests.server.tls_client import Client, client_context, endpoint

VERSIONS = (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)


@pytest.fixture
def node():
    node = EchoNode()
    node.open()
    yield node
    node.close()


@pytest.fixture
def listening(node):
    node.listen(tls=endpoint())
    return node


def failure(node):
    """Why the only connection was closed."""
    turns_until(node, lambda: node.lost)
    ((_, reason),) = node.lost
    node.lost.clear()
    return reason


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("size", [0, 1, 100, RECORD_BYTES, 70_000, 200_000, 900_000])
def test_frames_come_and_go(listening, version, size):
    client = Client(listening, client_context(version)).open()
    payload = random.Random(size).randbytes(size)
    for _ in range(3):
        assert client.ask(payload) == frame(payload)
    assert client.tls.version() == version.name.replace("_", ".")
    client.close()


@pytest.mark.parametrize("seed", seeds.sampled(range(60), 10))
def test_any_cut_of_the_bytes_gives_the_same_frames(listening, seed):
    draw = random.Random(seed)
    sizes = [draw.choice((0, 1, 16_384, 16_385, SCRATCH_BYTES - 4, SCRATCH_BYTES, 150_000, draw.randrange(300)))
             for _ in range(draw.choice((1, 3, 20)))]  # fmt: skip
    sent = b"".join(frame(draw.randbytes(size)) for size in sizes)
    client = Client(listening, client_context(draw.choice(VERSIONS)), draw=draw)
    client.until(lambda: client.is_open)
    position = 0
    while position < len(sent):
        size = draw.choice((1, 100, 16_384, 40_000, len(sent)))
        client.put(sent[position : position + size])
        position += size
        if draw.random() < 0.5:
            client.step()
    client.until(lambda: len(client.received) >= len(sent))
    assert client.received == sent
    client.close()
    turns_until(listening, lambda: len(listening.lost) == 1)


@pytest.mark.parametrize("size", [10, 9000, 70_000, 6_000_000])
def test_slices_of_files_are_encrypted_between_buffers(listening, tmp_path, size):
    content = random.Random(size).randbytes(size + 100)
    file = Disk().open(str(tmp_path / "log"), create=True)
    file.pwrite(content, 0)
    listening.answer = lambda connection, payload: [b"<head>", FileSlice(file, 50, size), bytearray(b"<tail>")]
    client = Client(listening).open()
    expected = b"<head>" + content[50 : 50 + size] + b"<tail>"
    assert client.ask(b"1", len(expected)) == expected
    assert client.ask(b"2", len(expected)) == expected
    client.close()


def test_a_large_fetch_has_its_share_of_a_turn_only(listening, tmp_path):
    size = 20 * FLUSH_BYTES
    file = Disk().open(str(tmp_path / "log"), create=True)
    file.pwrite(bytes(size), 0)
    client = Client(listening).open()
    (connection,) = listening.connections
    outbox = [FileSlice(file, 0, size)]
    took = connection.transport.flush(outbox)
    assert 0 < took <= FLUSH_BYTES + 65536
    assert sum(map(len, outbox)) >= size - FLUSH_BYTES - 65536
    client.close()


def test_a_slice_that_the_file_does_not_have_ends_the_connection(listening, tmp_path):
    file = Disk().open(str(tmp_path / "log"), create=True)
    file.pwrite(bytes(100), 0)
    listening.answer = lambda connection, payload: [FileSlice(file, 50, 100)]
    client = Client(listening).open()
    client.put(frame(b"1"))
    client.until(lambda: listening.lost)
    assert failure(listening) == "its answer could not be read"
    client.close()


def test_a_peer_that_never_reads_holds_a_bounded_outbox_and_disturbs_nobody(node):
    node.listen(tls=endpoint(), send_buffer_bytes=4096)
    answer = b"x" * 200_000
    node.answer = lambda connection, payload: frame(answer)
    slow = Client(node).open()
    (connection,) = node.connections
    with pytest.raises(BlockingIOError):
        for _ in range(3000):
            slow.put(frame(b"give") * 2000)
            slow.socket.sendall(slow.outgoing.read())
            node.reactor.turn(0)
    turns_until(node, lambda: connection.is_blocked)
    turns(node, 20)
    assert sum(map(len, connection.outbox)) <= OUTBOX_LIMIT_BYTES + 2 * len(answer)
    assert len(connection.pending) <= 256 * 1024
    node.answer = lambda connection, payload: frame(payload)
    other = Client(node).open()
    assert other.ask(b"still here") == frame(b"still here")
    slow.close()
    other.close()
    turns_until(node, lambda: len(node.lost) == 2)


@pytest.mark.long
def test_what_a_slow_peer_asked_for_arrives_once_it_reads(node):
    node.listen(tls=endpoint(), send_buffer_bytes=4096)
    node.answer = lambda connection, payload: frame(payload * 50_000)
    client = Client(node).open()
    client.put(b"".join(frame(bytes([65 + number % 26])) for number in range(100)))
    client.socket.sendall(client.outgoing.read())
    turns(node, 20)
    client.until(lambda: len(client.received) >= 100 * 50_004)
    assert [client.received[position + 4] for position in range(0, len(client.received), 50_004)] == [
        65 + number % 26 for number in range(100)
    ]
    client.close()


def test_a_peer_that_has_said_its_last_word_gets_its_answers(listening):
    client = Client(listening).open()
    held = []
    listening.answer = lambda connection, payload: held.append((connection, payload))
    client.put(frame(b"last"))
    with pytest.raises(ssl.SSLWantReadError):
        client.tls.unwrap()
    (connection,) = listening.connections
    client.until(lambda: held)
    connection.held += 1
    turns(listening)
    connection.held -= 1
    connection.put([frame(b"answer")])
    turns(listening)
    client.until(lambda: client.received == frame(b"answer"))
    client.until(lambda: client.is_ended)
    assert failure(listening) == "closed by the peer"
    client.close()


def test_the_end_of_a_connection_is_said(listening):
    client = Client(listening).open()
    (connection,) = listening.connections
    connection.close("tired")
    client.until(lambda: client.is_ended)
    assert client.heard_the_end
    client.close()


def test_a_broken_record_ends_the_connection_with_an_alert(listening):
    client = Client(listening).open()
    client.put(frame(b"hello"))
    data = bytearray(client.outgoing.read())
    data[-1] ^= 1
    client.socket.sendall(data)
    with pytest.raises(ssl.SSLError, match="(?i)bad[_ ]record"):
        client.until(lambda: client.is_ended)
    assert "TLS failed: decryption failed or bad record mac" in failure(listening)
    client.close()


# --- the handshake ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("greeting, reason", [
    (struct.pack(">ihhi", 20, 18, 3, 1) + bytes(14), "not TLS: a request in plain text on a listener with TLS"),
    (b"GET / HTTP/1.1\r\n\r\n", "not TLS: an HTTP request on a listener with TLS"),
    (b"SSH-2.0-OpenSSH_9\r\n", "not TLS: an SSH greeting on a listener with TLS"),
    (b"\x80\x2e\x01\x00\x02", "not TLS: its first bytes begin no TLS handshake"),
    (b"\x17\x03\x03\x00\x10", "not TLS: its first bytes begin no TLS handshake"),
    (b"\x16\x02\x00", "not TLS: its first bytes begin no TLS handshake"),
    (b"\x16\x03\x01\xff\xff", "a TLS record of an impossible size"),
    (b"\x16\x03\x01\x00\x00", "a TLS record of an impossible size"),
    (b"\x16\x03\x01\x00\x20\x0b", "a TLS handshake that does not begin with the client's greeting"),
    (b"\x16\x03\x01\x02\x00\x01\x01\x00\x00", "a TLS greeting of more than 16384 bytes"),
])  # fmt: skip
def test_what_is_no_tls_is_closed_with_a_reason(listening, greeting, reason):
    for cut in (len(greeting), 1):
        client = connect(listening)
        client.sendall(greeting[:cut])
        turns(listening, 2)
        if listening.connections:
            client.sendall(greeting[cut:])
        assert reason in failure(listening)
        assert received(listening, client, 1) == b"", "and nothing is answered"
        client.close()
    assert listening.metrics.frames_refused == 2


def test_a_tls_client_on_a_plain_listener_is_closed_with_a_reason(node):
    node.listen()
    client = Client(node)
    with pytest.raises(ssl.SSLError):
        client.open()
    assert failure(node) == "not Kafka's protocol: a TLS handshake on a PLAINTEXT listener"
    client.close()


def test_a_stranger_has_only_what_it_sent(listening):
    client = connect(listening)
    client.sendall(b"\x16\x03\x01\x40\x00\x01\x00\x3f\xfc" + b"z" * 500)
    turns(listening)
    transport = listening.connections[0].transport
    assert transport._tls is None and transport._incoming is None
    assert len(transport._first) == 509
    client.close()
    turns_until(listening, lambda: listening.lost)


@pytest.mark.parametrize("sent", [b"", b"\x16", b"\x16\x03\x01\x02\x00\x01", "half"])
def test_a_handshake_that_never_ends_is_ended(listening, sent):
    client = connect(listening)
    started = None
    if sent == "half":
        started = Client(listening)
        started.step()
        turns(listening)
    else:
        client.sendall(sent)
    turns(listening)
    listening.now = 29.0
    turns(listening)
    assert not listening.lost
    listening.now = 31.0
    turns_until(listening, lambda: not listening.connections)
    assert {reason for _, reason in listening.lost} == {"the TLS handshake was not finished in 30 s"}
    assert not listening.unexpected_errors
    client.close()
    if started is not None:
        started.close()


def test_a_handshake_that_was_in_time_is_not_ended_later(listening):
    client = Client(listening).open()
    listening.now = 31.0
    turns(listening)
    assert client.ask(b"here") == frame(b"here")
    client.close()


def test_few_handshakes_go_on_in_one_turn(listening):
    clients = [Client(listening) for _ in range(3 * HANDSHAKES_PER_TURN)]
    turns(listening)
    for client in clients:
        client.step()
    time.sleep(0.05)
    listening.reactor.turn(0)
    begun = [each for each in listening.connections if each.transport._tls is not None]
    assert len(begun) == HANDSHAKES_PER_TURN
    turns(listening, 2)
    assert all(each.transport._tls is not None for each in listening.connections)
    for client in clients:
        client.open()
        assert client.ask(b"me too") == frame(b"me too")
        client.close()


def meet(node, count):
    """Clients that have said nothing yet, and the broker's sides of them."""
    clients = [Client(node) for _ in range(count)]
    turns(node, 2)
    sides = {each.peer.rpartition(":")[2]: each for each in node.connections}
    return clients, [sides[str(client.socket.getsockname()[1])] for client in clients]


def greet(node, clients):
    """Their greetings have arrived, and nobody has looked."""
    for client in clients:
        client.step()
        arrived(node, client.socket)


def begun(connections):
    """Those whose handshake OpenSSL knows of, by their places."""
    return [place for place, each in enumerate(connections) if each.transport._tls is not None]


def test_handshakes_wait_in_the_order_in_which_they_came(listening):
    """A new one does not overtake those that wait, and one that has begun goes before those that have not."""
    clients, sides = meet(listening, 3 * HANDSHAKES_PER_TURN)
    greet(listening, clients[:-HANDSHAKES_PER_TURN])
    listening.reactor.turn(0)
    first = begun(sides)
    assert len(first) == HANDSHAKES_PER_TURN
    for place in first[:2]:
        while not clients[place].is_open or clients[place].left:
            clients[place].step()
        arrived(listening, clients[place].socket)
    greet(listening, clients[-HANDSHAKES_PER_TURN:])
    listening.reactor.turn(0)
    assert begun(sides) == list(range(2 * HANDSHAKES_PER_TURN))
    assert not any(each.transport._is_open for each in sides)
    listening.reactor.turn(0)
    assert [place for place, each in enumerate(sides) if each.transport._is_open] == first[:2]
    assert len(begun(sides)) == len(sides) - 2
    for client in clients:
        client.open()
        assert client.ask(b"here") == frame(b"here")
        client.close()


def test_handshakes_at_a_time_have_a_bound(listening, monkeypatch):
    """Each holds much of OpenSSL's memory. The oldest goes of the address that has most."""
    monkeypatch.setattr(tls_endpoint, "HANDSHAKES_MAX", 18)
    # A third of them, as another two clusters of the process have theirs.
    listening.socket_server.share_out(3)
    clients, sides = meet(listening, 9)
    for place, side in enumerate(sides):
        side.peer = side.peer.replace("127.0.0.1", "10.0.0.1" if place in (1, 2, 3, 4) else "10.0.0.2")
    for client, side in zip(clients, sides, strict=True):
        greet(listening, [client])
        turns_until(listening, lambda transport=side.transport: transport._tls is not None)
        turns(listening, 2)
    # Of two addresses with as many it is the one that has been there longer.
    assert [sides.index(connection) for connection, _ in listening.lost] == [1, 0, 5]
    assert {reason for _, reason in listening.lost} == {"more than 6 TLS handshakes, and its address has most of them"}
    for place, client in enumerate(clients):
        if sides[place] in listening.connections:
            client.open()
            assert client.ask(b"here") == frame(b"here")
        client.close()
    turns_until(listening, lambda: not listening.connections)
    (endpoint,) = listening.socket_server._tls.values()
    assert endpoint._begun == {} and endpoint._begun_count == 0 and not endpoint._handshakes


@pytest.mark.parametrize("seed", seeds.sampled(range(200), 10))
def test_hostile_bytes_end_the_connection_and_nothing_else(listening, seed):
    draw = random.Random(seed)
    client = Client(listening, client_context(draw.choice(VERSIONS)))
    if draw.random() < 0.7:
        # A handshake that goes well up to some byte of it.
        client.step()
        if draw.random() < 0.5:
            turns(listening, 2)
            client.step()
            if draw.random() < 0.5:
                client.open()
                client.put(frame(b"some"))
                client.left += client.outgoing.read()
    data = bytearray(client.left + draw.randbytes(draw.randrange(1, 3000)))
    for _ in range(draw.randrange(1, 6)):
        data[draw.randrange(min(len(data), 60))] = draw.randrange(256)
    try:
        client.socket.sendall(data)
        client.socket.shutdown(socket.SHUT_WR)
    except OSError:
        pass
    turns_until(listening, lambda: listening.lost)
    assert not listening.unexpected_errors
    assert not listening.connections
    assert listening.socket_server._tls.popitem()[1].outgoing.pending == 0
    client.close()


@pytest.mark.parametrize("seed", range(20))
def test_the_greeting_is_judged_the_same_whole_and_byte_by_byte(seed):
    draw = random.Random(seed)
    data = bytes(draw.choice((0x16, 3, 1, 0, 2, draw.randrange(256))) for _ in range(12))
    first = next((problem for end in range(1, 13) if (problem := greeting_problem(data[:end]))), None)
    assert (greeting_problem(data) is None) == (first is None)


def test_a_session_is_taken_up_again(listening):
    context = client_context(ssl.TLSVersion.TLSv1_3)
    first = Client(listening, context).open()
    assert first.ask(b"1") == frame(b"1")
    second = Client(listening, context, session=first.tls.session).open()
    assert second.ask(b"2") == frame(b"2")
    assert second.tls.session_reused
    first.close()
    second.close()


# --- certificates -----------------------------------------------------------------------------------------------------


def principal(node, client):
    """Who the client is for the broker."""
    client.open()
    assert client.ask(b"hello") == frame(b"hello")
    (connection,) = node.connections
    client.close()
    turns_until(node, lambda: node.lost)
    return connection.session.principal


ALICE = "User:CN=alice,OU=Tea,O=Wonderland,C=FR"


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("asked, protocol, rules, shown, expected", [
    ("none", "SSL", "DEFAULT", True, "User:ANONYMOUS"),
    ("requested", "SSL", "DEFAULT", False, "User:ANONYMOUS"),
    ("requested", "SSL", "DEFAULT", True, ALICE),
    ("required", "SSL", "DEFAULT", True, ALICE),
    ("required", "SSL", "RULE:^CN=(.*?),.*$/$1/U", True, "User:ALICE"),
    ("required", "SASL_SSL", "DEFAULT", True, "User:ANONYMOUS"),
])  # fmt: skip
def test_a_certificate_names_its_owner(node, version, asked, protocol, rules, shown, expected):
    node.listen(tls=endpoint(protocol, ssl_client_auth=asked, ssl_principal_mapping_rules=rules))
    certificate = certificates.client() if shown else None
    assert principal(node, Client(node, client_context(version, certificate))) == expected


def test_a_session_taken_up_again_keeps_its_principal(node):
    node.listen(tls=endpoint(ssl_client_auth="required"))
    context = client_context(ssl.TLSVersion.TLSv1_3, certificates.client())
    first = Client(node, context).open()
    first.ask(b"1")
    second = Client(node, context, session=first.tls.session).open()
    second.ask(b"2")
    assert second.tls.session_reused
    assert [each.session.principal for each in node.connections] == [ALICE, ALICE]
    first.close()
    second.close()


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("certificate, rules, reason", [
    (None, "DEFAULT", "the peer showed no certificate, and ssl.client.auth requires one"),
    (certificates.client("mallory", "Others"), "DEFAULT", "the peer's certificate is not trusted"),
    (certificates.client(), "RULE:^CN=bob$/bob/", "no rule of ssl.principal.mapping.rules fits the certificate of CN"),
])  # fmt: skip
def test_a_certificate_that_will_not_do(node, version, certificate, rules, reason):
    node.listen(tls=endpoint(ssl_client_auth="required", ssl_principal_mapping_rules=rules))
    client = Client(node, client_context(version, certificate))
    with pytest.raises((ssl.SSLError, ConnectionError)):
        client.open()
        client.ask(b"hello")
    assert reason in failure(node)
    client.close()


def test_a_client_that_does_not_trust_the_broker(listening):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=certificates.authority("Others").pem)
    client = Client(listening, context)
    with pytest.raises(ssl.SSLError):
        client.open()
    client.socket.sendall(client.outgoing.read())
    assert "the peer does not trust this broker's certificate" in failure(listening)
    client.close()


def test_no_version_in_common(node):
    node.listen(tls=endpoint(ssl_enabled_protocols="TLSv1.3"))
    client = Client(node, client_context(ssl.TLSVersion.TLSv1_2))
    with pytest.raises(ssl.SSLError):
        client.open()
    assert "the peer's TLS versions are not among ssl.enabled.protocols" in failure(node)
    client.close()


def test_every_transport_of_a_listener_with_tls_is_one(listening):
    client = connect(listening)
    assert type(listening.connections[0].transport) is TlsTransport
    assert select.select([client], [], [], 0)[0] == []
    client.close()
