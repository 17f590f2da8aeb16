"""A piece of a log file as an answer carries it: which bytes to send, not the bytes."""

from __future__ import annotations

from pykafkad.disk import File
from pykafkad.errors import StorageFailure


class FileSlice:
    """Bytes of one file that are to be sent: `size_bytes` from `position`, batches whole.

    `chunk_size` is what the encoder writes as the length. `file` keeps the descriptor alive even if the segment is
    deleted meanwhile. A small slice may carry its bytes already."""

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
        """What is left of the slice once its first `sent_bytes` have gone."""
        return FileSlice(self.file, self.position + sent_bytes, self.chunk_size - sent_bytes)

    def pread(self) -> bytes:
        """All bytes of the slice. Fewer than `size_bytes` (a file cut under us) raise `StorageFailure`."""
        data = self._data
        if data is None:
            data = self.file.pread(self.chunk_size, self.position)
            if len(data) != self.chunk_size:
                raise StorageFailure(
                    "read", self.file.path, f"{len(data)} of {self.chunk_size} bytes at {self.position}"
                )
        return data
