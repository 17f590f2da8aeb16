"""Which records of a coordinator's log count, and in which order.

This broker writes no transactions yet, but it may be given a log that a Kafka has written: offsets committed in a
transaction count from its commit marker on, and never if it was aborted or is still open.
"""

from __future__ import annotations

from pykafkad.wire.batch import CONTROL_COMMIT, control_key

_COMMIT = control_key(CONTROL_COMMIT)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pykafkad.wire.batch import BatchHeader
    from pykafkad.wire.records import Record


def decided(batches: Iterable[tuple[BatchHeader, list[Record]]]) -> Iterator[Record]:
    """The records of a log in the order in which they took effect: with gaps and, after a transaction, out of the order
    of their offsets."""
    undecided: dict[int, list[Record]] = {}
    for header, records in batches:
        if header.is_control:
            transaction = undecided.pop(header.producer_id, [])
            if any(record.key == _COMMIT for record in records):
                yield from transaction
        elif header.is_transactional:
            undecided.setdefault(header.producer_id, []).extend(records)
        else:
            yield from records


def latest(records: Iterable[Record]) -> dict[bytes, bytes | None]:
    """The value of each key's last record, in the order of those records: what compaction would leave.

    Of two records the one of the higher offset is the last, whenever it took effect.
    """
    found: dict[bytes, tuple[int, bytes | None]] = {}
    for record in records:
        known = found.get(record.key)
        if known is None or known[0] < record.offset:
            found.pop(record.key, None)  # so that it stands where its last record stands
            found[record.key] = (record.offset, record.value)
    return {key: value for key, (_, value) in found.items()}
