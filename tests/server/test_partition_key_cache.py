"""The log that the bytes of one topic and one partition name."""

from __future__ import annotations

from struct import pack

import pytest

from pykafkad.server import partition_key_cache
from pykafkad.server.partition_key_cache import COMPACT_NAME, ID, NAME, PartitionKeyCache, end_of_partition_key

TOPIC_ID = bytes(range(16))


class Partitions:
    """Every partition is here, as a tuple; what was asked for is counted."""

    def __init__(self) -> None:
        self.asked = 0

    def get(self, topic: str, index: int) -> tuple[object, int]:
        self.asked += 1
        return topic, index

    def get_by_id(self, topic_id: bytes, index: int) -> tuple[object, int]:
        return self.get(topic_id, index)


def key(name: str, index: int, form: int, partitions: int = 1) -> bytes:
    """As it stands in a request, from the topic count to the first partition's index."""
    if form == NAME:
        return pack(f">ih{len(name)}sii", 1, len(name), name.encode(), partitions, index)
    if form == ID:
        return pack(">B16sBi", 2, TOPIC_ID, partitions + 1, index)
    length = len(name) + 1
    prefix = bytes([length]) if length < 128 else bytes([length & 0x7F | 0x80, length >> 7])
    return b"\2" + prefix + name.encode() + pack(">Bi", partitions + 1, index)


@pytest.fixture
def partitions() -> Partitions:
    return Partitions()


@pytest.fixture
def cache(partitions: Partitions) -> PartitionKeyCache:
    return PartitionKeyCache(lambda: partitions, lambda log: log[1] != 13)


@pytest.mark.parametrize("form", [NAME, COMPACT_NAME, ID])
def test_a_key_names_its_log_and_is_looked_up_once(cache: PartitionKeyCache, partitions: Partitions, form: int) -> None:
    topic = TOPIC_ID if form == ID else "topic"
    for _ in range(3):
        assert cache.log(key("topic", 7, form), form) == (topic, 7)
    assert partitions.asked == 1
    cache.forget()
    assert cache.log(key("topic", 7, form), form) == (topic, 7)
    assert partitions.asked == 2


@pytest.mark.parametrize("form", [NAME, COMPACT_NAME, ID])
def test_a_key_of_two_partitions_names_no_log(cache: PartitionKeyCache, form: int) -> None:
    assert cache.log(key("topic", 7, form, partitions=2), form) is None
    assert cache.logs == {}


def test_a_log_that_may_not_be_used_is_not_remembered(cache: PartitionKeyCache, partitions: Partitions) -> None:
    for _ in range(2):
        assert cache.log(key("topic", 13, NAME), NAME) is None
    assert partitions.asked == 2 and cache.logs == {}


def test_so_many_keys_are_remembered(cache: PartitionKeyCache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition_key_cache, "_MAX_REMEMBERED", 5)
    for index in range(12):
        cache.log(key("topic", index, NAME), NAME)
        assert 0 < len(cache.logs) <= 5


@pytest.mark.parametrize("form", [NAME, COMPACT_NAME, ID])
@pytest.mark.parametrize("length", [1, 126, 127, 249])
def test_where_a_key_ends(form: int, length: int) -> None:
    """A compact name of more than 126 characters has a length of two bytes, and is left to others."""
    found = key("n" * length, 7, form)
    end = end_of_partition_key(memoryview(b"..." + found + b"more"), 3, form)
    assert end == (-1 if form == COMPACT_NAME and length > 126 else 3 + len(found))
