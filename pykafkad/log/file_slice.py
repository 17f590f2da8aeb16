"""A range of bytes in a log file, as a Fetch response carries it: the file, position and length, not the bytes."""

from __future__ import annotations

from pykafkad.disk import File
from pykafkad.errors import StorageFailure


class FileSlice:
    """`size_bytes` bytes of whole batches in a file, from `position` on.

    `chunk_size` is the length that the encoder writes. `file` keeps the descriptor open even if the segment is deleted
    meanwhile. A small slice may carry its bytes already."""

    __slots__ = ("_data", "chunk_size", "file", "position")

    def __init__(self, file: File, position: int, size_bytes: int, data: bytes | None = None) -> None:
        self.file = file
        self.position = position
        self.chunk_size = size_bytes
        self._data = data

    @property
    def size_bytes(self) -> int:
        return self.chunk_size

    def __len__(self) -> int:
        return self.chunk_size

    def fileno(self) -> int:
        return self.file.fileno()

    def after(self, sent_bytes: int) -> FileSlice:
        """The rest of the slice after its first `sent_bytes`."""
        return FileSlice(self.file, self.position + sent_bytes, self.chunk_size - sent_bytes)

    def up_to(self, size_bytes: int) -> FileSlice:
        """The first `size_bytes` of the slice, or all of it."""
        return FileSlice(self.file, self.position, min(size_bytes, self.chunk_size))

    def pread(self) -> bytes:
        """All bytes of the slice. Raises `StorageFailure` if the file has become shorter."""
        data = self._data
        if data is None:
            data = self.file.pread(self.chunk_size, self.position)
            if len(data) != self.chunk_size:
                raise StorageFailure(
                    "read", self.file.path, f"{len(data)} of {self.chunk_size} bytes at {self.position}"
                )
        return data
