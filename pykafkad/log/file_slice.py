"""A range of bytes in a log file, as a Fetch response carries it: the file, position and length, not the bytes.

They are read when the peer takes them, which may be late. If they were cut off meanwhile, as in the log of a leader
which follows another one now, other records may stand there, or parts of them. Then the slice is refused with `LogCut`
and its connection ends: the client asks again. Kafka sends what stands there. What the system was given before the cut,
and has not sent, it may still read from the file, as with Kafka."""

from __future__ import annotations

import errno

from pykafkad.disk import File
from pykafkad.errors import StorageFailure

MAX_CUTS = 16
"""The last cuts of a file whose positions are known. A slice from before them is refused, wherever it lies."""


class LogCut(OSError):
    """The records of a slice were cut off."""

    def __init__(self) -> None:
        super().__init__(errno.ESTALE, "the log was cut while its records were sent")


class Cuts:
    """Where records at the end of a file were cut off, since somebody has a slice of it."""

    __slots__ = ("_positions", "count")

    def __init__(self) -> None:
        self.count = 0
        self._positions: tuple[int, ...] = ()

    def add(self, position: int) -> None:
        """The file ended here, and may grow again."""
        self.count += 1
        self._positions = (*self._positions, position)[-MAX_CUTS:]

    def lowest_since(self, count: int) -> int:
        """The lowest position of the cuts after the first `count` ones, of which there are some."""
        later = self.count - count
        return min(self._positions[-later:]) if later <= MAX_CUTS else 0


class FileSlice:
    """`size_bytes` bytes of whole batches in a file, from `position` on.

    `chunk_size` is the length that the encoder writes. `file` keeps the descriptor open even if the segment is deleted
    meanwhile. A small slice may carry its bytes already. Any other one cannot be read, nor sent, when `cuts` tell that
    bytes of it were cut off."""

    __slots__ = ("_count", "_cuts", "_data", "chunk_size", "file", "position")

    def __init__(
        self, file: File, position: int, size_bytes: int, data: bytes | None = None, cuts: Cuts | None = None
    ) -> None:
        self.file = file
        self.position = position
        self.chunk_size = size_bytes
        self._data = data
        self._cuts = cuts
        self._count = cuts.count if cuts is not None else 0

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
        cuts, count = self._cuts, self._count
        if cuts is not None and cuts.count != count and cuts.lowest_since(count) < self.position + self.chunk_size:
            raise LogCut

    def after(self, sent_bytes: int) -> FileSlice:
        """The rest of the slice after its first `sent_bytes`."""
        return self._part(self.position + sent_bytes, self.chunk_size - sent_bytes)

    def up_to(self, size_bytes: int) -> FileSlice:
        """The first `size_bytes` of the slice, or all of it."""
        return self._part(self.position, min(size_bytes, self.chunk_size))

    def _part(self, position: int, size_bytes: int) -> FileSlice:
        part = FileSlice(self.file, position, size_bytes, None, self._cuts)
        part._count = self._count
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
