"""Produce 0 to 2 and Fetch 0 to 3 of a broker that acts as 3.9 (compat_tests/test_old_formats.py asks a real one)."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from pykafkad.errors import name
from pykafkad.log import message_conversion
from pykafkad.wire import message_sets, messages
from pykafkad.wire.batch import build_batch
from pykafkad.wire.compression import ZSTD
from pykafkad.wire.records import Record, iterate_records
from tests.handlers.requests import produce
from tests.simulation.world import NOTHING, World

NOW_MS = 1_700_000_000_000
RECORDS = [Record(index, NOW_MS + index, b"k%d" % index, b"v" * 30, []) for index in range(3)]


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path / "data", pykafkad_act_as="3.9", log_message_timestamp_before_max_ms=str(2**63 - 1))
    world.create_topic("t")
    return world


def append(peer: Any, version: int, records: bytes, acks: int = 1) -> tuple[str, int]:
    of = messages.ProduceRequest
    topic = of.TopicProduceData(name="t", partition_data=[of.PartitionProduceData(index=0, records=records)])
    (row,) = peer.ask(of(acks=acks, timeout_ms=1000, topic_data=[topic]), version).responses[0].partition_responses
    return name(row.error_code), row.base_offset


def read(peer: Any, version: int, offset: int = 0, topic: str = "t") -> tuple[str, bytes]:
    of = messages.FetchRequest
    asked = of.FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    wanted = of.FetchTopic(topic=topic, partitions=[asked])
    (row,) = peer.ask(of(replica_id=-1, topics=[wanted]), version).responses[0].partitions
    return name(row.error_code), bytes(row.records or b"")


def opened(content: bytes) -> list[tuple[int, int, bytes | None]]:
    found = []
    for position, size, magic in message_sets.sizes(content):
        outer = message_sets.message_at(content, position, size)
        found += [(magic, each.offset, each.key) for each in (message_sets.opened(outer) if outer.codec else [outer])]
    return found


@pytest.mark.parametrize("codec", [0, 1])
@pytest.mark.parametrize("magic", [0, 1])
def test_messages_become_a_batch_and_messages_again(world: World, magic: int, codec: int) -> None:
    peer = world.connect()
    for version in range(3):
        assert append(peer, version, message_sets.written(RECORDS, magic, codec, 0)) == ("NONE", 3 * version)
    error, stored = read(peer, 4)
    first = list(iterate_records(memoryview(stored)))
    assert (error, [(each.offset, each.key) for each in first]) == ("NONE", [(0, b"k0"), (1, b"k1"), (2, b"k2")])
    assert first[0].timestamp_ms == (NOW_MS if magic else -1)
    for version, expected in ((0, 0), (1, 0), (2, 1), (3, 1)):
        error, content = read(peer, version)
        assert error == "NONE" and opened(content)[:4] == [(expected, each, b"k%d" % (each % 3)) for each in range(4)]


def test_records_before_the_offset_are_left_out_where_nothing_is_compressed(world: World) -> None:
    peer = world.connect()
    append(peer, 2, message_sets.written(RECORDS, 1, 0, 0))
    assert [offset for _, offset, _ in opened(read(peer, 2, 1)[1])] == [1, 2]
    append(peer, 2, message_sets.written(RECORDS, 1, 1, 0))
    assert [offset for _, offset, _ in opened(read(peer, 2, 4)[1])] == [3, 4, 5]


def test_zstd_cannot_be_converted(world: World) -> None:
    """What stands before it is given."""
    peer = world.connect()
    peer.ask(produce("t", {0: build_batch([(b"k", b"v")])}), 9)
    peer.ask(produce("t", {0: build_batch([(b"z", b"v")], codec=ZSTD)}), 9)
    assert [key for _, _, key in opened(read(peer, 3)[1])] == [b"k"]
    assert read(peer, 3, 1) == ("UNSUPPORTED_COMPRESSION_TYPE", b"")
    assert read(peer, 9, 1)[0] == "NONE"


def test_a_set_without_a_message_appends_nothing(world: World) -> None:
    peer = world.connect()
    for content in (b"", message_sets.written(RECORDS, 1, 0, 0)[:20]):
        assert append(peer, 2, content) == ("NONE", -1)
    assert read(peer, 4) == ("NONE", b"")


@pytest.mark.parametrize(
    ("what", "code"),
    [
        (message_sets.written(RECORDS, 1, 1, 0) * 2, "INVALID_RECORD"),
        (message_sets.written(RECORDS, 1, 0, 0) + message_sets.written(RECORDS, 0, 0, 0), "INVALID_RECORD"),
        (bytes(build_batch([(b"k", b"v")])) * 2, "INVALID_RECORD"),
        (message_sets.written(RECORDS[:1], 1, 0, 0)[:-1] + b"x", "CORRUPT_MESSAGE"),
    ],
)
def test_what_is_refused(world: World, what: bytes, code: str) -> None:
    peer = world.connect()
    assert append(peer, 2, what) == (code, -1)
    assert read(peer, 4) == ("NONE", b"")


def test_a_long_set_is_converted_beside_the_loop(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(message_conversion, "LONG_COMPRESSED_BYTES", 10)
    peer = world.connect()
    of = messages.ProduceRequest
    data = of.PartitionProduceData(index=0, records=message_sets.written(RECORDS, 1, 1, 0))
    topic = of.TopicProduceData(name="t", partition_data=[data])
    assert peer.ask(of(acks=1, timeout_ms=1000, topic_data=[topic]), 2) is NOTHING
    world.runtime.cpu_offload.close()
    world.turn()
    (row,) = peer.answers[-1].responses[0].partition_responses
    assert (name(row.error_code), row.base_offset) == ("NONE", 0)
    assert len(list(iterate_records(memoryview(read(peer, 4)[1])))) == 3


def test_a_topic_with_zstd_is_not_for_old_consumers(world: World) -> None:
    """Below version 10, whatever is in it."""
    world.create_topic("z", compression_type="zstd")
    peer = world.connect()
    assert [read(peer, version, topic="z")[0] for version in (0, 4, 9, 10)] == ["UNSUPPORTED_COMPRESSION_TYPE"] * 3 + [
        "NONE"
    ]


def test_conversion_can_be_switched_off(world: World) -> None:
    world.create_topic("off", message_downconversion_enable="false")
    peer = world.connect()
    peer.ask(produce("off", {0: build_batch([(b"k", b"v")])}), 9)
    assert [read(peer, version, topic="off")[0] for version in (0, 3, 4)] == ["UNSUPPORTED_VERSION"] * 2 + ["NONE"]


def test_a_broker_of_4_3_never_loads_any_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    modules = ("pykafkad.wire.message_sets", "pykafkad.log.message_conversion", "pykafkad.handlers.fetch_old_formats")
    for each in modules:
        monkeypatch.delitem(sys.modules, each, raising=False)
    world = World(tmp_path / "new")
    world.create_topic("t")
    peer = world.connect()
    peer.ask(produce("t", {0: build_batch([(b"k", b"v")])}), 9)
    assert read(peer, 4)[0] == "NONE"
    assert not any(each in sys.modules for each in modules)
