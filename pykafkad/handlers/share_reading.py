"""Reading a log for a share group: which batches a read has, which of them nobody may see, and which are given out."""

from __future__ import annotations

from pykafkad.coordinator.share_acquisition import LogBatch
from pykafkad.wire.batch import CONTROL_ABORT, HEADER_SIZE_BYTES, control_key, parse_header
from pykafkad.wire.records import iterate_records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.log.file_slice import FileSlice
    from pykafkad.log.partition_log import PartitionLog
    from pykafkad.wire.batch import BatchHeader

WINDOW_BYTES = 65_536
_ABORT = control_key(CONTROL_ABORT)


class Scan:
    """The batches of `records`, a slice of a log, up to the first one that ends at `enough_offset` or later."""

    __slots__ = ("_headers", "_positions", "_records", "batches")

    def __init__(self, records: FileSlice, enough_offset: int) -> None:
        self._records = records
        self._headers: list[BatchHeader] = []
        self._positions: list[int] = []
        self.batches: list[LogBatch] = []
        size = records.chunk_size
        window, start, at = b"", 0, 0
        while at + HEADER_SIZE_BYTES <= size:
            if at + HEADER_SIZE_BYTES > start + len(window):
                window = records.after(at).up_to(WINDOW_BYTES).pread()
                start = at
            header = parse_header(window, at - start)
            if at + header.size_bytes > size:
                return
            self._headers.append(header)
            self._positions.append(at)
            self.batches.append(LogBatch(header.base_offset, header.last_offset))
            at += header.size_bytes
            if header.last_offset >= enough_offset:
                return

    def between(self, first_offset: int, last_offset: int) -> FileSlice:
        """The part of the slice with the batches that hold records between the offsets, both inclusive."""
        chosen = [
            index
            for index, batch in enumerate(self.batches)
            if batch.last_offset >= first_offset and batch.first_offset <= last_offset
        ]
        if not chosen:
            return self._records.up_to(0)
        begin = self._positions[chosen[0]]
        end = self._positions[chosen[-1]] + self._headers[chosen[-1]].size_bytes
        return self._records.after(begin).up_to(end - begin)

    def aborted(self, log: PartitionLog, fetch_offset: int) -> list[LogBatch]:
        """The batches that belong to aborted transactions."""
        if not log.has_aborted:
            return []
        begun = sorted(
            (each.first_offset, each.producer_id) for each in log.aborted_transactions(fetch_offset, self._records)
        )
        aborting: set[int] = set()
        found = []
        for header, position, batch in zip(self._headers, self._positions, self.batches, strict=True):
            while begun and begun[0][0] <= batch.last_offset:
                aborting.add(begun.pop(0)[1])
            if header.is_control:
                data = memoryview(self._records.after(position).up_to(header.size_bytes).pread())
                if any(record.key == _ABORT for record in iterate_records(data, header)):
                    aborting.discard(header.producer_id)
            elif header.is_transactional and header.producer_id in aborting:
                found.append(batch)
        return found
