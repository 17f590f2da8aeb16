"""The records of a coordinator's log that take effect, in the order in which they do.

Offsets committed in a transaction take effect at its commit marker. They never take effect when the transaction is
aborted, or when the offset is deleted meanwhile. Those of a transaction that is still open are pending.
"""

from __future__ import annotations

from pykafkad.wire.batch import CONTROL_COMMIT, control_key

_COMMIT = control_key(CONTROL_COMMIT)
_NEVER = -1

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pykafkad.wire.batch import BatchHeader
    from pykafkad.wire.records import Record

    OpenTransactions = dict[int, dict[bytes | None, Record]]


ABORTED = bytes(bytearray(b"aborted"))
"""Stands, as this very object, for the value of a record whose transaction was aborted."""


def committed_records(
    batches: Iterable[tuple[BatchHeader, list[Record]]], open_transactions: OpenTransactions | None = None
) -> Iterator[Record | None]:
    """The records of a log in the order in which they took effect, and None for each that has none yet, so that the
    caller can count how much was read.

    Their offsets have gaps, and are out of order where a transaction ended after later records. A record that never
    took effect has the value `ABORTED`. At the end `open_transactions` has the last record of each key in each
    transaction that is open."""
    if open_transactions is None:
        open_transactions = {}
    for header, records in batches:
        if header.is_control:
            yield None
            transaction = open_transactions.pop(header.producer_id, {})
            if any(record.key == _COMMIT for record in records):
                yield from transaction.values()
            else:
                for record in transaction.values():
                    yield record._replace(value=ABORTED)
            continue
        for record in records:
            if record.value is None:
                # A tombstone takes effect at once, and deletes what is pending.
                for transaction in open_transactions.values():
                    transaction.pop(record.key, None)
            elif header.is_transactional:
                open_transactions.setdefault(header.producer_id, {})[record.key] = record
                yield None
                continue
            yield record


class LatestByKey:
    """The value of each key's last record: what compaction would keep.

    The last record of a key is the one with the highest offset, no matter when it took effect.
    """

    __slots__ = ("_found",)

    def __init__(self) -> None:
        self._found: dict[bytes | None, tuple[int, bytes | None]] = {}

    def add(self, record: Record) -> None:
        """Add the next record that takes effect."""
        found = self._found
        known = found.get(record.key)
        value = record.value
        offset = record.offset
        if value is ABORTED:
            if known is not None and known[1] is not None:
                return
            # It says no more than that its group exists, as a tombstone does. An older record may still take effect.
            offset, value = (_NEVER if known is None else known[0]), None
        elif known is not None and known[0] >= offset:
            return
        found.pop(record.key, None)  # A dict keeps the first position of a key; this moves the key to the end.
        found[record.key] = (offset, value)

    def offset_of(self, key: bytes | None) -> int:
        """Where the last record of a key stands."""
        return self._found[key][0]

    def items(self) -> Iterator[tuple[bytes | None, bytes | None]]:
        """Keys and values, in the order of the last records."""
        for key, (_, value) in self._found.items():
            yield key, value
