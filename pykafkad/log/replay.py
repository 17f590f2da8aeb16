"""Reading a log batch by batch, for the state machines that rebuild their state from it."""

from __future__ import annotations

from pykafkad.wire.records import iterate_records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from pykafkad.log.partition_log import PartitionLog
    from pykafkad.wire.batch import BatchHeader
    from pykafkad.wire.records import Record


def batches(log: PartitionLog, start_offset: int) -> Iterator[tuple[BatchHeader, list[Record]]]:
    """Yield every batch with records at or after `start_offset`, and these records, in log order.

    Raises `StorageFailure`, and `KafkaError` for a batch whose body is broken. The log may change between two batches:
    where compaction or retention replaced the segment, reading goes on in what took its place."""
    offset = start_offset
    while True:
        for segment in log.segments_from(offset):
            for position, header in segment.headers():
                if header.base_offset + header.last_offset_delta < offset:
                    continue
                data = memoryview(segment.file.pread(header.size_bytes, position))
                records = [record for record in iterate_records(data, header) if record.offset >= start_offset]
                offset = header.base_offset + header.last_offset_delta + 1
                yield header, records
                if segment not in log.segments:
                    break
            else:
                continue
            break
        else:
            return
