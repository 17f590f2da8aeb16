"""The bytes of `__transaction_state`."""

from __future__ import annotations

import pytest

from pykafkad.coordinator import transaction_records
from pykafkad.coordinator.transaction import Transaction
from pykafkad.errors import ProtocolError

KEY = bytes.fromhex("0000 0001 74")


def record(**changes):
    fields = {
        "state": "Ongoing",
        "producer_id": 5,
        "previous_producer_id": 4,
        "next_producer_id": -1,
        "producer_epoch": 2,
        "timeout_ms": 1000,
        "partitions": {("a", 0): None, ("b", 3): None, ("a", 7): None},
        "start_ms": 10,
        "update_ms": 20,
        "client_version": 2,
    }
    return transaction_records.transaction_state("t", **(fields | changes))


def test_the_bytes_of_version_0():
    key, value = transaction_records.encode(record(), 0)
    assert key == KEY
    assert value == bytes.fromhex(
        "0000 0000000000000005 0002 000003e8 01 00000002"
        "0001 61 00000002 00000000 00000007  0001 62 00000001 00000003"
        "0000000000000014 000000000000000a"
    )


def test_the_bytes_of_version_1():
    for version in (1, 2):
        _, value = transaction_records.encode(record(), version)
        assert value == bytes.fromhex(
            "0001 0000000000000005 0002 000003e8 01 03"
            "0261 03 00000000 00000007 00  0262 02 00000003 00"
            "0000000000000014 000000000000000a"
            "02 0008 0000000000000004 02 02 0002"
        )


def test_an_empty_transaction_has_no_list():
    _, value = transaction_records.encode(record(state="Empty", partitions={}), 0)
    assert value[17:21] == b"\xff\xff\xff\xff"


def test_a_tombstone_has_no_value():
    assert transaction_records.encode(transaction_records.tombstone("t"), 2) == (KEY, None)


@pytest.mark.parametrize("version", (0, 1))
def test_what_is_written_is_read(version):
    transaction = Transaction("t")
    transaction.adopt(transaction_records.decode(*transaction_records.encode(record(), version)).value)
    assert transaction.state == "Ongoing"
    assert list(transaction.partitions) == [("a", 0), ("a", 7), ("b", 3)]
    assert transaction.previous_producer_id == (4 if version else -1)
    assert transaction.client_version == (2 if version else 0)


def test_what_later_kafkas_write_is_ignored():
    assert transaction_records.decode(b"\0\1x", b"\0\0") is None
    assert transaction_records.decode(KEY, b"\0\2rest") is None


def test_what_is_no_record_is_refused():
    for key, value in ((None, None), (b"\0", None), (KEY, b"\0"), (KEY[:4], None)):
        with pytest.raises(ProtocolError):
            transaction_records.decode(key, value)
    _, value = transaction_records.encode(record(), 0)
    with pytest.raises(ProtocolError, match="states 0 to 7"):
        transaction_records.decode(KEY, value[:16] + b"\x09" + value[17:])
