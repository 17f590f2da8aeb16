"""A broker answers any bytes with valid answers in the order of the requests, or closes the connection."""

from __future__ import annotations

import os
import random
import struct

import pytest

from pykafkad.handlers import table
from pykafkad.server import logs
from pykafkad.wire import frames, messages
from tests import seeds
from tests.fuzz.requests import APIS, PlausibleValues, encoded, mutated
from tests.simulation.disk import MemoryDisk
from tests.simulation.world import Peer, World

SEEDS = range(200) if os.environ.get("PYKAFKAD_TEST_LONG") else seeds.sampled(range(4), 4)
ROUNDS = max(100, seeds.examples(500))
API_VERSIONS = 18


class RawPeer(Peer):
    """Collects the bytes that are sent."""

    def take(self, data):
        self.received += data

    def frames(self):
        """The payloads of the frames that were sent. Nothing else may have been sent."""
        data, found = bytes(self.received), []
        while data:
            (size,) = struct.unpack_from(">i", data)
            assert 4 <= size <= len(data) - 4, "half an answer"
            found.append(data[4 : 4 + size])
            data = data[4 + size :]
        return found


def connect(world):
    world.connect()
    peer = world.peers[-1] = RawPeer(world, world.peers[-1].socket, world.peers[-1].connection)
    return peer


def check(sent, peer):
    """Every answer belongs to one of the requests, in their order, and decodes as an answer of that API."""
    waiting = list(sent)
    for answer in peer.frames():
        (correlation_id,) = struct.unpack_from(">i", answer)
        while waiting and struct.unpack_from(">i", waiting[0], 4)[0] != correlation_id:
            waiting.pop(0)
        assert waiting, (
            f"an answer to {correlation_id}, which was not asked or was asked before an answer already given"
        )
        key, version = struct.unpack_from(">hh", waiting.pop(0))
        row = table.by_key(key)
        if not row.min_version <= version <= row.max_version:
            assert key == API_VERSIONS
            version = 0
        response = messages.response_class(key)
        flexible_from = messages.flexible_from(messages.request_class(key))
        tagged = key != API_VERSIONS and flexible_from is not None and version >= flexible_from
        _, position = frames.read_response_header(memoryview(answer), tagged)
        message, end = messages.decoder(response, version)(memoryview(answer), position)
        assert end == len(answer), (row.name, version, message)


@pytest.fixture
def quiet():
    """Does not log refused connections, which there are a thousand of."""
    before = logs._OUTPUT.sink
    lines = []
    logs.configure(logs.process_logs().level, logs.Sink(lambda data: lines.append(data) or len(data)))
    yield lines
    logs._OUTPUT.sink = before


@pytest.mark.parametrize("seed", SEEDS)
def test_any_request_is_answered_or_closes_its_connection(seed, quiet):
    """Sends valid and damaged requests of all APIs and versions, several at once, to a broker with other clients."""
    draw = random.Random(seed)
    world = World("/data", disk=MemoryDisk(), seed=seed)
    ids = [
        world.create_topic("plain", 3),
        world.create_topic("compact", 1, cleanup_policy="compact"),
        world.create_topic("gzip", 1, compression_type="gzip"),
        world.create_topic("stamped", 1, message_timestamp_type="LogAppendTime", compression_type="zstd"),
    ]
    values = PlausibleValues(seed, ids)
    other = b"\0" * 20
    for number in range(ROUNDS):
        sent = []
        for index in range(draw.choice((1, 1, 1, 2, 4))):
            payload = encoded(values, *draw.choice(APIS), number * 10 + index)
            sent.append(mutated(draw, payload, other) if draw.random() < 0.6 else payload)
            other = payload
        peer = connect(world)
        peer.send_bytes(b"".join(struct.pack(">i", len(payload)) + payload for payload in sent))
        world.advance(draw.choice((0.0, 0.01, 0.5, 30.0)))
        check(sent, peer)
        if draw.random() < 0.5:
            peer.end()
        assert world.runtime.metrics.unexpected_errors == 0, (
            b"".join(quiet).decode(),
            [payload.hex() for payload in sent],
        )
    world.stop()
