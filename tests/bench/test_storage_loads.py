"""The broker's own code reads the bytes of the storage loads."""

from __future__ import annotations

from pykafkad.wire.batch import parse_header
from pykafkad.wire.records import iterate_records
from tests.bench.storage_loads import keyed_batches


def test_every_key_is_written_as_often_as_asked():
    batches = keyed_batches(1_000_000, 1000, 5)
    size = sum(map(len, batches))
    assert 0.9e6 < size <= 1.05e6
    keys: dict[bytes, int] = {}
    for batch in batches:
        view = memoryview(batch)
        assert parse_header(view).size_bytes == len(batch) <= 16 * 1024
        for record in iterate_records(view):
            assert len(record.value) == 1000
            key = bytes(record.key)
            keys[key] = keys.get(key, 0) + 1
    assert set(keys.values()) == {5}
