"""ListOffsets 0, as releases before Kafka 4.0 answer it: the starts of segments that were written before a time.

The offsets are in descending order, at most as many as are asked for. Time -1 begins with the end of the log, -2 with
its start. What a consumer may not read yet is replaced by the high watermark.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.log.partition_log import PartitionLog

_LATEST, _EARLIEST = -1, -2


def offsets_before(log: PartitionLog, time_ms: int, most: int, now_ms: int, *, for_consumer: bool) -> list[int]:
    """The offsets of a log. Raises `StorageFailure`."""
    start = log.log_start_offset
    known = [(max(each.base_offset, start), each.modified_ms) for each in log.segments]
    if log.segments[-1].size:
        known.append((log.end_offset, now_ms))
    if time_ms == _EARLIEST:
        found = known[:1]
    elif time_ms == _LATEST:
        found = known
    else:
        last = next((at for at in range(len(known) - 1, -1, -1) if known[at][1] <= time_ms), -1)
        found = known[: last + 1]
    offsets = sorted((offset for offset, _ in found[max(len(found) - max(most, 0), 0) :]), reverse=True)
    if for_consumer and any(offset > log.high_watermark for offset in offsets):
        return [log.high_watermark, *(offset for offset in offsets if offset <= log.high_watermark)]
    return offsets
