"""The offset map: its memory, its small steps, and the ranges in which no record is the newest of its key."""

import pytest

from pykafkad.log import offset_map
from pykafkad.log.offset_map import OffsetMap


def test_the_memory_of_the_map_is_bounded():
    """A long key takes no more memory than a short one, and stays distinct."""
    offsets = OffsetMap(1000 * offset_map.ENTRY_BYTES, 0.5)
    assert offsets.max_entries == 500
    assert offset_map.long_key(b"x" * 5000) != offset_map.long_key(b"x" * 5001)
    assert len(offset_map.long_key(b"x" * 5000)) <= offset_map.MAX_KEY_BYTES


@pytest.mark.parametrize(
    ("load_factor", "expected"),
    [
        ("NaN", 1),
        ("-Infinity", 1),
        ("-1", 1),
        ("0", 1),
        ("0.5", 500),
        ("1.5", 1000),
        ("1e308", 1000),
        ("Infinity", 1000),
    ],
)
def test_the_map_accepts_every_load_factor_that_kafka_accepts(load_factor, expected):
    """The map stays within its buffer and has room for at least one key."""
    assert OffsetMap(1000 * offset_map.ENTRY_BYTES, float(load_factor)).max_entries == expected
    assert OffsetMap(0, float(load_factor)).max_entries == 1


@pytest.mark.parametrize("span", [1, 100, 1 << 26])
def test_the_map_knows_ranges_without_a_newest_record(span):
    """A range with a newest record, or outside of the entered offsets, is never reported as free of them."""
    offsets = OffsetMap(1 << 20, 0.9)
    first, newest = 1000, 1000 + span // 2
    offsets.latest_offset = first + span - 1
    offsets.shards[0][b"key"] = newest
    assert offsets.has_newest(first, first), "nothing is known before the map is complete"
    assert len(list(offsets.complete(first))) == offset_map.SHARDS, "in small steps"
    assert len(offsets._live) <= 1 << 20
    assert offsets.has_newest(newest, newest)
    assert offsets.has_newest(first, offsets.latest_offset)
    assert offsets.has_newest(first - 1, first)
    assert offsets.has_newest(offsets.latest_offset, offsets.latest_offset + 1)
    if span > 1:
        assert not offsets.has_newest(first, first + span // 4)
        assert not offsets.has_newest(offsets.latest_offset - span // 8, offsets.latest_offset)


def test_the_map_is_freed_in_small_steps():
    offsets = OffsetMap(1 << 20, 0.9)
    assert len(list(offsets.release())) == offset_map.SHARDS
