"""What a wire trace keeps of frames with secrets, and the capture file that it becomes."""

from __future__ import annotations

import errno
import struct
from collections import namedtuple

import pytest

from pykafkad import config
from pykafkad.server import pcap, trace, trace_formats, trace_secrets
from pykafkad.server.exchanges import Exchange, kept_bytes as ring_bytes
from pykafkad.server.fault_injection import EXEMPT_CLIENT_ID, FaultInjection
from pykafkad.server.injected_fault import Fault
from pykafkad.server.session import EXPIRED
from pykafkad.server.trace import WireTrace
from pykafkad.settings.rows import BROKER, ROWS
from pykafkad.wire import frames, messages
from tests.handlers.requests import batch, fetch, produce
from tests.metadata.test_client_quotas import entry
from tests.server.sasl_world import add_scram_user, authenticate, bare, handshake, log_in, sasl_world
from tests.server.test_watched_fast_paths import guarded, produced
from tests.simulation.disk import MemoryDisk
from tests.simulation.world import World

FLEXIBLE = frames.flexible_versions()
SECRET = "hunter2-and-more"


def kept_bytes(traced):
    """All that a trace holds or shows, as bytes."""
    exchanges = traced.exchanges()
    shown = trace_formats.json_lines(exchanges) + trace_formats.text(exchanges)
    raw = b"".join(each.request + (each.answer or b"") for each in exchanges)
    return raw + shown.encode() + pcap.write(exchanges)


def traced_world(world):
    traced = WireTrace(world.runtime, [world.broker])
    traced.start()
    return traced


# Secrets.


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
def test_a_login_leaves_its_names_and_no_secret(tmp_path, mechanism):
    world = sasl_world(tmp_path)
    traced = traced_world(world)
    if mechanism != "PLAIN":
        add_scram_user(world, "alice", "alice-secret", mechanism)
    peer = world.connect()
    log_in(peer, mechanism)
    peer.ask(messages.ListGroupsRequest(), 4)
    names = [row["api"] for row in (trace_formats.fields(each, FLEXIBLE) for each in traced.exchanges())]
    assert names[-1] == "ListGroups" and "SaslHandshake" in names and "SaslAuthenticate" in names
    held = kept_bytes(traced)
    assert mechanism.encode() in held
    for secret in (b"-secret", b"n=alice,r=", b",p=", b"c=biws"):
        assert secret not in held


def test_bare_tokens_of_a_login_are_not_kept(tmp_path):
    world = sasl_world(tmp_path)
    traced = traced_world(world)
    peer = world.connect()
    handshake(peer, "PLAIN", 0)
    assert bare(peer, b"\0alice\0alice-secret") == b""
    assert peer.ask(messages.ListGroupsRequest(), 4).error_code == 0
    assert b"alice-secret" not in kept_bytes(traced)


def test_a_trace_opens_no_way_around_a_login(tmp_path):
    """Connections whose login is under way when it begins and when it ends go on with it."""
    world = sasl_world(tmp_path)
    peer = world.connect()
    handshake(peer, "PLAIN")
    login = peer.connection.serve
    traced = traced_world(world)
    assert peer.connection.serve == login and peer.connection.session.fast_paths == {}
    traced.stop()
    assert peer.connection.serve == login and peer.connection.session.fast_paths == {}
    traced.start()
    assert authenticate(peer, b"\0alice\0alice-secret").error_code == 0
    assert peer.ask(messages.ListGroupsRequest(), 4).error_code == 0
    assert trace_formats.fields(traced.exchanges()[-1], FLEXIBLE)["api"] == "ListGroups"


def test_an_expired_login_gets_no_fast_paths_of_a_trace(tmp_path):
    world = sasl_world(tmp_path)
    peer = world.connect()
    log_in(peer, "PLAIN")
    assert peer.connection.session.fast_paths
    peer.connection.session.advance(EXPIRED)
    traced = traced_world(world)
    assert peer.connection.session.fast_paths == {}
    traced.stop()
    assert peer.connection.session.fast_paths == {}


def secret_frames():
    """(key, message, is_answer) for each API with secrets, each with the secret in it."""
    secret = SECRET.encode()
    alter, incremental = messages.AlterConfigsRequest, messages.IncrementalAlterConfigsRequest
    scram = messages.AlterUserScramCredentialsRequest
    described = messages.DescribeDelegationTokenResponse.DescribedDelegationToken
    return [
        (
            33,
            alter(
                resources=[
                    alter.AlterConfigsResource(
                        resource_type=4,
                        resource_name="1",
                        configs=[alter.AlterableConfig(name="ssl.keystore.password", value=SECRET)],
                    )
                ]
            ),
            False,
        ),
        (36, messages.SaslAuthenticateRequest(auth_bytes=secret), False),
        (36, messages.SaslAuthenticateResponse(auth_bytes=secret), True),
        (38, messages.CreateDelegationTokenResponse(hmac=secret), True),
        (39, messages.RenewDelegationTokenRequest(hmac=secret), False),
        (40, messages.ExpireDelegationTokenRequest(hmac=secret), False),
        (41, messages.DescribeDelegationTokenResponse(tokens=[described(hmac=secret)]), True),
        (
            44,
            incremental(
                resources=[
                    incremental.AlterConfigsResource(
                        resource_type=4,
                        resource_name="1",
                        configs=[
                            incremental.AlterableConfig(name="listener.name.x.plain.sasl.jaas.config", value=SECRET)
                        ],
                    )
                ]
            ),
            False,
        ),
        (
            51,
            scram(upsertions=[scram.ScramCredentialUpsertion(name="u", salt=b"salt", salted_password=secret)]),
            False,
        ),
    ]


@pytest.mark.parametrize(
    ("key", "message", "is_answer"),
    secret_frames(),
    ids=lambda value: str(value)[:12] if value is not True else "answer",
)
def test_each_version_of_a_frame_with_a_secret_is_kept_without_it(key, message, is_answer):
    versions = {row[0]: row[2] for row in messages.all_apis()}[key]
    for version in versions:
        tagged = version >= FLEXIBLE.get(key, 32767)
        chunks = [
            frames.start_response(1, tagged) if is_answer else frames.start_request(key, version, 1, "app", tagged)
        ]
        messages.encoder(type(message), version)(message, chunks)
        frame = b"".join(chunks)[4:]
        assert SECRET.encode() in frame
        kept = trace_secrets.without(frame, key, version, is_answer, FLEXIBLE)
        assert kept and SECRET.encode() not in kept
        for cut in range(len(frame)):
            assert SECRET.encode() not in trace_secrets.without(frame[:cut], key, version, is_answer, FLEXIBLE)


def test_settings_that_are_secret():
    """Passwords, what is named like one, and what nobody knows; the usual ones are shown."""
    for row in ROWS[BROKER].values():
        if row.type == "password":
            assert trace_secrets.is_secret(row.name) and trace_secrets.is_secret(f"listener.name.x.{row.name}")
    assert trace_secrets.is_secret("listener.name.x.plain.sasl.jaas.config") and trace_secrets.is_secret("my.own")
    for name in ("retention.ms", "num.partitions", "cleanup.policy", "log.retention.ms"):
        assert not trace_secrets.is_secret(name)
    assert config.BROKER == BROKER


def test_settings_stand_in_a_trace_and_passwords_do_not():
    world = World("/data", disk=MemoryDisk())
    traced = traced_world(world)
    request = messages.IncrementalAlterConfigsRequest
    rows = [
        request.AlterableConfig(name=name, config_operation=0, value=value)
        for name, value in (("ssl.keystore.password", SECRET), ("log.retention.ms", "123456"))
    ]
    resource = request.AlterConfigsResource(resource_type=4, resource_name="1", configs=rows)
    world.connect().ask(request(resources=[resource]), 1)
    held = kept_bytes(traced)
    assert SECRET.encode() not in held and b"123456" in held and trace_secrets.HIDDEN.encode() in held


def test_of_frames_that_may_hold_secrets_the_beginning_is_kept_as_well(monkeypatch):
    """It is taken of what is left without the secrets, which are found in whole frames only."""
    monkeypatch.setattr(trace, "FRAME_BYTES", 60)
    world = World("/data", disk=MemoryDisk())
    traced = traced_world(world)
    request = messages.IncrementalAlterConfigsRequest
    row = request.AlterableConfig(name="log.retention.ms", config_operation=0, value="1" * 90)
    resources = [request.AlterConfigsResource(resource_type=4, resource_name=str(n), configs=[row]) for n in (1, 2, 3)]
    world.connect().ask(request(resources=resources), 1)
    (kept,) = traced.exchanges()
    assert len(kept.request) == len(kept.answer) == 60
    assert kept.request_bytes > 270 and kept.answer_bytes > 60


# Requests that come by other ways.


@pytest.mark.parametrize("is_odd", [False, True])
def test_a_request_that_waits_when_a_trace_begins_is_answered_and_told_of(is_odd):
    """Its frame is gone, so that it is made anew, if it can be."""
    world = World("/data", disk=MemoryDisk())
    world.create_topic("t", 1)
    peer = world.connect()
    asked = messages.FetchRequest
    topic = asked.FetchTopic(topic="t", partitions=[asked.FetchPartition(partition=0, partition_max_bytes=1000)])
    peer.send(asked(max_wait_ms=500, min_bytes=1, max_bytes=1000, topics=[topic]), 12)
    world.turn()
    traced = traced_world(world)
    assert peer.connection.delayed is not None
    if is_odd:
        peer.connection.in_service.request = object()
    world.advance(1)
    assert peer.connection.in_service is None
    (row,) = (trace_formats.fields(each, FLEXIBLE) for each in traced.exchanges())
    assert (row["api"], row["client_id"], row["is_answered"], row["errors"]) == ("Fetch", "test", True, [])
    assert (row["request"] is None) == is_odd
    assert world.runtime.metrics.unexpected_errors == 0


def test_a_request_without_an_answer_does_not_take_that_of_the_next():
    """Such as a Produce with acks=0."""
    world = World("/data", disk=MemoryDisk())
    traced = traced_world(world)
    peer = world.connect()
    peer.send(messages.ProduceRequest(acks=0, timeout_ms=1000, topic_data=[]), 9)
    peer.ask(messages.ListGroupsRequest(), 4)
    first, second = (trace_formats.fields(each, FLEXIBLE) for each in traced.exchanges())
    assert (first["api"], first["is_answered"]) == ("Produce", False)
    assert (second["api"], second["is_answered"]) == ("ListGroups", True)


def rows_of(traced):
    return [trace_formats.fields(each, FLEXIBLE) for each in traced.exchanges()]


def test_a_request_over_a_quota_is_recorded_once_with_the_answer_that_left():
    """A fast path has served it then, and took its answer back."""
    world = World("/data", disk=MemoryDisk())
    world.create_topic("t", 1)
    peer = world.connect()
    peer.ask(produce("t", {0: batch(b"x" * 20_000)}), 9)
    alter = messages.AlterClientQuotasRequest(entries=[entry({"client-id": "test"}, ("consumer_byte_rate", 1000.0))])
    assert peer.ask(alter, 1).entries[0].error_code == 0
    world.turn()
    traced = traced_world(world)
    throttle_time_ms = peer.ask(fetch("t", {0: 0}), 4).throttle_time_ms
    (row,) = rows_of(traced)
    assert throttle_time_ms > 0 and row["answer"]["throttle_time_ms"] == throttle_time_ms


@pytest.mark.parametrize(
    ("partitions", "codes"),
    [
        pytest.param((0,), ["KAFKA_STORAGE_ERROR"], id="fast"),
        pytest.param((0, 1), ["KAFKA_STORAGE_ERROR", "UNKNOWN_TOPIC_OR_PARTITION"], id="general"),
    ],
)
def test_the_answer_of_a_write_that_fails_is_the_one_that_left(partitions, codes):
    """It is rewritten in the outbox. A fast path leaves unknown partitions to the general one."""
    disk = MemoryDisk()
    world = World("/data", disk=disk)
    world.create_topic("t", 1)
    peer = world.connect()
    traced = traced_world(world)
    peer.ask(messages.ListGroupsRequest(), 4)
    disk.fail("write", error=errno.ENOSPC)
    answer = peer.ask(produce("t", {each: batch(b"b") for each in partitions}), 9)
    assert trace_formats.error_names(answer) == codes
    assert [row["errors"] for row in rows_of(traced)] == [[], codes]
    assert traced._ring_bytes == sum(map(ring_bytes, traced._ring))


def test_a_silent_connection_stays_silent_under_a_trace():
    world = World("/data", disk=MemoryDisk())
    world.create_topic("t", 1)
    peer = world.connect()
    peer.ask(produce("t", {0: batch(b"a")}), 9)
    faults = FaultInjection(world.broker)
    faults.add(Fault("drop_request", frozenset({16})))
    peer.send(messages.ListGroupsRequest(), 4)
    world.turn()
    faults.clear()
    traced = traced_world(world)
    assert peer.connection.session.fast_paths == {}
    peer.send(produce("t", {0: batch(b"b")}), 9)
    world.turn()
    assert peer.connection.outbox == [] and traced.exchanges() == []
    traced.stop()
    assert peer.connection.session.fast_paths == {}


def test_fast_paths_under_an_authorizer_are_traced_and_outlive_faults(tmp_path):
    world = guarded(tmp_path)
    watched = world.broker.sessions.watched_fast_paths
    peer = world.connect()
    produced(peer)
    usual = peer.connection.session.fast_paths
    traced = traced_world(world)
    assert peer.connection.session.fast_paths.keys() == usual.keys() != set()
    assert produced(peer) == 0
    assert [row["is_answered"] for row in rows_of(traced)] == [True]
    faults = FaultInjection(world.broker)
    faults.add(Fault("error", frozenset({1}), error_code=3))
    assert world.broker.sessions.watched_fast_paths is None
    faults.clear()
    assert world.broker.sessions.watched_fast_paths is watched
    traced.stop()
    faults.add(Fault("error", frozenset({1}), error_code=3))
    faults.clear()
    assert world.broker.sessions.watched_fast_paths is watched


def test_connections_share_the_fast_paths_of_a_trace():
    world = World("/data", disk=MemoryDisk())
    one, two = world.connect(), world.connect()
    traced_world(world)
    three = world.connect()
    shared = one.connection.session.fast_paths
    assert shared and two.connection.session.fast_paths is three.connection.session.fast_paths is shared


# The capture file.

Packet = namedtuple("Packet", ("at", "source", "target", "sequence", "acknowledged", "flags", "content"))


def ones_sum(data):
    """The sum that a right checksum makes 0xFFFF (RFC 1071), word by word."""
    data += b"\0" * (len(data) % 2)
    total = 0
    for (word,) in struct.iter_unpack(">H", data):
        total += word
        total = (total & 0xFFFF) + (total >> 16)
    return total


def parsed(data):
    """The packets of a capture file, whose lengths and checksums are looked at."""
    magic, major, minor, _, _, _, link = struct.unpack_from("<IHHiIII", data)
    assert (magic, major, minor, link) == (0xA1B2C3D4, 2, 4, 101)
    position, packets = 24, []
    while position < len(data):
        seconds, micros, kept, length = struct.unpack_from("<IIII", data, position)
        packet = data[position + 16 : position + 16 + kept]
        position += 16 + kept
        assert kept == len(packet) and 40 <= kept <= length <= 65_575 and micros < 1_000_000
        packet += bytes(length - kept)
        if packet[0] >> 4 == 4:
            assert struct.unpack_from(">H", packet, 2)[0] == length and ones_sum(packet[:20]) == 0xFFFF
            addresses, segment = packet[12:20], packet[20:]
            pseudo = addresses + struct.pack(">BBH", 0, 6, len(segment))
        else:
            assert struct.unpack_from(">H", packet, 4)[0] == length - 40
            addresses, segment = packet[8:40], packet[40:]
            pseudo = addresses + struct.pack(">IHBB", len(segment), 0, 0, 6)
        assert ones_sum(pseudo + segment) == 0xFFFF
        source, target, sequence, acknowledged, offset, flags = struct.unpack_from(">HHIIBB", segment)
        assert offset == 5 << 4
        packets.append(Packet(seconds + micros / 1e6, source, target, sequence, acknowledged, flags, segment[20:]))
    return packets


def exchange(connection=1, peer="10.0.0.1:5000", at=1_000_000.5, request=b"question", answer=b"answer!", **changes):
    row = Exchange(
        connection, peer, ("10.0.0.2", 41234), at, 2.25, 3, 9, 1, "app", request, len(request), answer,
        len(answer or b""),
    )  # fmt: skip
    return row._replace(**changes)


def streams(packets):
    """What each side has sent, by the client's port; sequence and acknowledgement numbers are looked at."""
    sent = {}
    expected = {}
    for each in packets:
        client = each.source if each.target == pcap.KAFKA_PORT else each.target
        key = client, each.source == client
        if each.flags & 2:
            expected[key] = each.sequence + 1
            sent[key] = b""
            continue
        assert each.sequence == expected[key]
        assert each.acknowledged == expected[client, not key[1]]
        expected[key] += len(each.content)
        sent[key] += each.content
    return sent


@pytest.mark.parametrize("peer", ["10.0.0.1:5000", "[fe80::1]:5000"])
def test_a_capture_has_whole_streams_with_right_numbers(peer):
    packets = parsed(pcap.write([exchange(peer=peer), exchange(peer=peer, at=1_000_010.0, answer=None)]))
    assert [each.flags for each in packets] == [2, 18, 16, 24, 24, 24]
    assert streams(packets) == {
        (5000, True): struct.pack(">i", 8) + b"question" + struct.pack(">i", 8) + b"question",
        (5000, False): struct.pack(">i", 7) + b"answer!",
    }
    assert packets[3].at == pytest.approx(1000.0005) and packets[4].at == pytest.approx(1000.00275)
    assert [each.at for each in packets] == sorted(each.at for each in packets)


def test_connections_are_streams_of_their_own():
    packets = parsed(pcap.write([exchange(), exchange(2, "10.0.0.1:5001", 1_000_000.7), exchange(at=1_000_009.0)]))
    sent = streams(packets)
    assert len(sent[5000, True]) == 2 * len(sent[5001, True]) == 24


def test_large_frames_are_several_segments_and_cut_ones_have_their_length():
    large = bytes(range(256)) * 1000
    cut = exchange(answer=large, answer_bytes=len(large) + 100)
    sent = streams(parsed(pcap.write([cut])))
    assert sent[5000, False] == struct.pack(">i", len(large) + 100) + large + bytes(100)
    too_much = exchange(answer=large, answer_bytes=len(large) + pcap.MOST_MISSING_BYTES + 1)
    assert streams(parsed(pcap.write([too_much])))[5000, False] == b""


@pytest.mark.long
def test_what_was_not_kept_takes_no_room_in_a_capture():
    kept, missing = b"x" * 1000, pcap.MOST_MISSING_BYTES
    written = pcap.write([exchange(at=1e6 + n, answer=kept, answer_bytes=1000 + missing) for n in range(4)])
    assert len(written) < 4 * (1000 + 2000)
    assert len(streams(parsed(written))[5000, False]) == 4 * (4 + 1000 + missing)


def test_a_connection_of_a_restarted_broker_is_another_stream():
    """It may have the same id."""
    packets = parsed(pcap.write([exchange(), exchange(peer="10.0.0.1:5001", at=1_000_010.0)]))
    sent = streams(packets)
    assert sent[5000, True] == sent[5001, True] and len(sent[5000, True]) == 12


def test_a_trace_of_nothing_is_an_empty_capture():
    assert parsed(pcap.write([])) == []


@pytest.mark.parametrize("data", [b"", b"\0", b"\xff\xff", b"\x12\x34\x56", bytes(20), b"\xff" * 21])
def test_checksums(data):
    even = data + b"\0" * (len(data) % 2)
    assert ones_sum(even + struct.pack(">H", pcap.checksum(data))) == 0xFFFF


def test_what_is_recorded_in_few_steps_is_what_is_recorded_in_general(tmp_path, monkeypatch):
    """Frames that the trace keeps whole; others are cut, request and answer alike."""
    world = guarded(tmp_path)
    traced = traced_world(world)
    peer = world.connect()
    assert produced(peer) == 0
    calls = []
    general = WireTrace._serve_fast
    monkeypatch.setattr(WireTrace, "_serve_fast", lambda *given: calls.append(given) or general(*given))
    assert produced(peer) == 0
    assert not calls
    whole = traced.exchanges()[-1]
    traced.frame_bytes = 30
    assert produced(peer) == 0
    assert len(calls) == 1
    cut = traced.exchanges()[-1]
    assert (len(cut.request), len(cut.answer)) == (30, 30)
    same = ("connection_id", "peer", "local_address", "key", "version", "client_id", "request_bytes", "answer_bytes")
    assert [getattr(whole, each) for each in same] == [getattr(cut, each) for each in same]
    assert (len(whole.request), len(whole.answer)) == (whole.request_bytes, whole.answer_bytes)
    assert whole.request[8:30] == cut.request[8:]
    assert trace_formats.fields(whole, FLEXIBLE)["api"] == "Produce"
    assert traced._ring_bytes == sum(len(each.request) + len(each.answer) for each in traced.exchanges())


def test_the_tests_own_requests_are_not_recorded_by_fast_paths(tmp_path):
    world = guarded(tmp_path)
    traced = traced_world(world)
    peer = world.connect()
    request = produce("t", {0: batch(b"x")})
    peer.send(request, 8, client_id=EXEMPT_CLIENT_ID)
    world.turn()
    assert traced.size == 0 and peer.connection.outbox_bytes == 0


def test_the_ring_is_bounded_where_few_steps_fill_it(tmp_path, monkeypatch):
    monkeypatch.setattr(trace, "EXCHANGES", 3)
    world = guarded(tmp_path)
    traced = traced_world(world)
    peer = world.connect()
    for _ in range(5):
        assert produced(peer) == 0
    assert (traced.size, traced.first, traced.dropped) == (3, 3, 2)
