"""The records of a coordinator's log that take effect, in the order in which they do.

This broker writes no transactions to these logs yet, but it may load a log that Kafka has written. Offsets committed in
a transaction take effect at its commit marker. They never take effect when the transaction was aborted or is still
open.
"""

from __future__ import annotations

from pykafkad.wire.batch import CONTROL_COMMIT, control_key

_COMMIT = control_key(CONTROL_COMMIT)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pykafkad.wire.batch import BatchHeader
    from pykafkad.wire.records import Record


def committed_records(batches: Iterable[tuple[BatchHeader, list[Record]]]) -> Iterator[Record]:
    """The records of a log in the order in which they took effect.

    Their offsets have gaps, and are out of order where a transaction ended after later records.
    """
    open_transactions: dict[int, list[Record]] = {}
    for header, records in batches:
        if header.is_control:
            transaction = open_transactions.pop(header.producer_id, [])
            if any(record.key == _COMMIT for record in records):
                yield from transaction
        elif header.is_transactional:
            open_transactions.setdefault(header.producer_id, []).extend(records)
        else:
            yield from records


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
        if known is None or known[0] < record.offset:
            found.pop(record.key, None)  # A dict keeps the first position of a key; this moves the key to the end.
            found[record.key] = (record.offset, record.value)

    def items(self) -> Iterator[tuple[bytes | None, bytes | None]]:
        """Keys and values, in the order of the last records."""
        for key, (_, value) in self._found.items():
            yield key, value
