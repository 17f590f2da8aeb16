"""A range of bytes in a log file, as a Fetch response carries it: the file, position and length, not the bytes.

They are read when the peer takes them, which may be late. If the log was cut meanwhile, as that of a leader which
follows another one now, other records may stand there, or parts of them. Then the slice is refused with `LogCut`
and its connection ends: the client asks again. Kafka sends what stands there."""

from __future__ import annotations

import errno

from pykafkad.disk import File
from pykafkad.errors import StorageFailure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.log.segment import Segment


class LogCut(OSError):
    """The records of a slice were removed from its file, or may have been."""

    def __init__(self) -> None:
        super().__init__(errno.ESTALE, "the log was cut while its records were sent")


class FileSlice:
    """`size_bytes` bytes of whole batches in a file, from `position` on.

    `chunk_size` is the length that the encoder writes. `file` keeps the descriptor open even if the segment is deleted
    meanwhile. A small slice may carry its bytes already. One of a `segment` that was cut since cannot be read."""

    __slots__ = ("_cuts", "_data", "_segment", "chunk_size", "file", "position")

    def __init__(
        self, file: File, position: int, size_bytes: int, data: bytes | None = None, segment: Segment | None = None
    ) -> None:
        self.file = file
        self.position = position
        self.chunk_size = size_bytes
        self._data = data
        self._segment = segment
        self._cuts = segment.cuts if segment is not None else 0

    @property
    def size_bytes(self) -> int:
        return self.chunk_size

    def __len__(self) -> int:
        return self.chunk_size

    def fileno(self) -> int:
        """The descriptor of the file that is to be read. Raises `LogCut`."""
        self.check()
        return self.file.fileno()

    def check(self) -> None:
        """Raise `LogCut` if other records may stand there by now."""
        if self._segment is not None and self._cuts != self._segment.cuts:
            raise LogCut

    def after(self, sent_bytes: int) -> FileSlice:
        """The rest of the slice after its first `sent_bytes`."""
        return self._part(self.position + sent_bytes, self.chunk_size - sent_bytes)

    def up_to(self, size_bytes: int) -> FileSlice:
        """The first `size_bytes` of the slice, or all of it."""
        return self._part(self.position, min(size_bytes, self.chunk_size))

    def _part(self, position: int, size_bytes: int) -> FileSlice:
        part = FileSlice(self.file, position, size_bytes, segment=self._segment)
        part._cuts = self._cuts
        return part

    def pread(self) -> bytes:
        """All bytes of the slice. Raises `LogCut`, and `StorageFailure` if the file has become shorter."""
        data = self._data
        if data is None:
            self.check()
            data = self.file.pread(self.chunk_size, self.position)
            if len(data) != self.chunk_size:
                raise StorageFailure(
                    "read", self.file.path, f"{len(data)} of {self.chunk_size} bytes at {self.position}"
                )
        return data
