"""A disk that is memory: for brokers whose data need not outlive them, with a bound on what they keep.

A file that is opened lives behind a descriptor of its own (`memfd_create`, or a file without a name), so that
`sendfile` and everything else works as on a real disk; a small file that is only read and written whole is bytes. Room
is handed out ahead of the writes: who asks `reserve` for more than the bound has left is refused before anything is
changed, and may ask again when something was deleted."""

from __future__ import annotations

import errno
import os

from pykafkad import errors, platform_calls
from pykafkad.disk import Disk, File, leave_spare
from pykafkad.errors import KafkaError, StorageFailure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeAlias

    from pykafkad.clock import Clock
    from pykafkad.disk import Buffer

    Entry: TypeAlias = "dict[str, Entry] | _Content"

_STRIDE_BYTES = 64 * 1024
"""Room is handed out in pieces of this size, so that few appends have to ask."""

_SMALL_BYTES = 64 * 1024
"""A file up to this size that nobody has open gives its descriptor back: so there are fewer of them than the bound has
such pieces."""


TELL_AGAIN_SECONDS = 60.0
"""How long nobody is told again that the bound is reached."""


class _Content:
    """One file's bytes, by whatever names and handles it is reached. `charged` is what it counts for against the
    bound."""

    __slots__ = ("charged", "data", "disk", "fd", "handles", "modified_ms", "names", "size")

    def __init__(self, disk: MemoryDisk) -> None:
        self.disk = disk
        self.data = b""
        self.fd = -1
        self.handles = 0
        self.size = 0
        self.charged = 0
        self.names = 1
        self.modified_ms = disk.clock.now_ms()

    def open(self, path: str) -> int:
        """The descriptor, made at the first call."""
        if self.fd < 0:
            try:
                self.fd = leave_spare(platform_calls.open_unnamed(os.path.basename(path)))
            except OSError as error:
                raise StorageFailure("open", path, error) from error
            platform_calls.pwrite(self.fd, self.data, 0)
            self.data = b""
        self.handles += 1
        return self.fd

    def closed(self) -> None:
        """One of those who opened it has closed it."""
        self.handles -= 1
        if not self.handles and self.fd >= 0 and self.size <= _SMALL_BYTES:
            self.data = self.read()
            os.close(self.fd)
            self.fd = -1

    def read(self) -> bytes:
        return self.data if self.fd < 0 else os.pread(self.fd, self.size, 0)

    def resized(self, size: int) -> None:
        """The file has `size` bytes now."""
        self.size = size
        self.modified_ms = self.disk.clock.now_ms()
        self.charge(max(size, self.charged))

    def lose_name(self) -> None:
        """One name less. With the last one it counts no more, though who still sends a slice of it may read on."""
        self.names -= 1
        if not self.names:
            self.charge(0)

    def charge(self, charged: int) -> None:
        self.disk.used_bytes += charged - self.charged
        self.charged = charged

    def __del__(self) -> None:
        # The last name and the last reader are gone.
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


class MemoryFile(File):
    """An open file in memory."""

    __slots__ = ("content",)

    def __init__(self, path: str, content: _Content) -> None:
        super().__init__(path, content.open(path))
        self.content = content

    def pwrite(self, data: Buffer, position: int) -> None:
        """Write all of `data` at `position`."""
        super().pwrite(data, position)
        self.content.resized(max(self.content.size, position + len(data)))

    def pwritev(self, pieces: Sequence[Buffer], position: int) -> None:
        """Write all pieces behind one another."""
        super().pwritev(pieces, position)
        self.content.resized(max(self.content.size, position + sum(len(piece) for piece in pieces)))

    def truncate(self, size_bytes: int) -> None:
        super().truncate(size_bytes)
        self.content.resized(size_bytes)
        self.content.charge(size_bytes)

    def size(self) -> int:
        return self.content.size

    def sync(self) -> None:
        """There is no device."""

    def close(self) -> None:
        # The descriptor is the content's, which others may still read.
        if self._fd >= 0:
            self._fd = -1
            self.content.closed()


class MemoryDisk(Disk):
    """The methods of `Disk`; everything is gone with the process. `used_bytes` never passes `max_bytes` by what was
    reserved."""

    __slots__ = ("_root", "_tell_again_at", "_tell_full", "clock", "max_bytes", "used_bytes")

    def __init__(self, max_bytes: int, clock: Clock) -> None:
        self.max_bytes = max_bytes
        self.clock = clock
        self.used_bytes = 0
        self._root: dict[str, Entry] = {}
        self._tell_full: Callable[[int, int], None] | None = None
        self._tell_again_at = 0.0

    # -- names ---------------------------------------------------------------------------------------------------------

    def _entry(self, path: str) -> Entry | None:
        entry: Entry = self._root
        for name in _parts(path):
            if not isinstance(entry, dict) or name not in entry:
                return None
            entry = entry[name]
        return entry

    def _parent(self, operation: str, path: str) -> tuple[dict[str, Entry], str]:
        *parents, name = _parts(path)
        entry: Entry | None = self._root
        for each in parents:
            entry = entry.get(each) if isinstance(entry, dict) else None
        if not isinstance(entry, dict):
            raise StorageFailure(operation, path, OSError(errno.ENOENT, os.strerror(errno.ENOENT)))
        return entry, name

    def _content(self, operation: str, path: str) -> _Content:
        """The file at `path`. Raises StorageFailure where there is none, or a directory."""
        parent, name = self._parent(operation, path)
        found = parent.get(name)
        if found is None:
            raise StorageFailure(operation, path, OSError(errno.ENOENT, os.strerror(errno.ENOENT)))
        if isinstance(found, dict):
            raise StorageFailure(operation, path, OSError(errno.EISDIR, os.strerror(errno.EISDIR)))
        return found

    def _content_or_new(self, operation: str, path: str) -> _Content:
        """The file at `path`, made where there is none."""
        parent, name = self._parent(operation, path)
        if name not in parent:
            new = parent[name] = _Content(self)
            return new
        return self._content(operation, path)

    # -- files ---------------------------------------------------------------------------------------------------------

    def open(self, path: str, *, create: bool = False) -> File:
        return MemoryFile(path, self._content_or_new("open", path) if create else self._content("open", path))

    def reserve(self, file: File, end_position: int, *, beyond_bound: bool = False) -> int:
        """Room in `file` up to `end_position` at least; up to where there is room now. Raises KafkaError without it."""
        assert isinstance(file, MemoryFile)
        content = file.content
        for wanted in (end_position + _STRIDE_BYTES, end_position):
            if beyond_bound or self.used_bytes - content.charged + wanted <= self.max_bytes:
                content.charge(max(wanted, content.charged))
                return content.charged
        now = self.clock.now()
        if self._tell_full is not None and now >= self._tell_again_at:
            self._tell_again_at = now + TELL_AGAIN_SECONDS
            self._tell_full(self.used_bytes, self.max_bytes)
        raise KafkaError(
            errors.KAFKA_STORAGE_ERROR,
            f"memory is full: {self.used_bytes} of pykafkad.memory.max.bytes={self.max_bytes} bytes are in use",
        )

    def tell_when_full(self, tell: Callable[[int, int], None]) -> None:
        self._tell_full = tell

    def read(self, path: str) -> bytes | None:
        found = self._entry(path)
        return found.read() if isinstance(found, _Content) else None

    def read_end(self, path: str, size_bytes: int) -> bytes:
        return (self.read(path) or b"")[-size_bytes:] if size_bytes else b""

    def write(self, path: str, data: Buffer, *, sync: bool = False) -> None:
        content = self._content_or_new("write", path)
        if content.fd >= 0:
            os.ftruncate(content.fd, 0)
            os.pwrite(content.fd, data, 0)
        else:
            content.data = bytes(data)
        content.resized(len(data))
        content.charge(len(data))

    def replace(self, path: str, data: Buffer, *, sync: bool = True) -> None:
        temporary = path + ".tmp"
        self.write(temporary, data)
        self.rename(temporary, path)

    def size(self, path: str) -> int:
        found = self._entry(path)
        return found.size if isinstance(found, _Content) else 0

    def modified_ms(self, path: str) -> int:
        found = self._entry(path)
        return found.modified_ms if isinstance(found, _Content) else 0

    def set_modified_ms(self, path: str, modified_ms: int) -> None:
        self._content("stat", path).modified_ms = modified_ms

    def unlink(self, path: str) -> None:
        parent = self._entry(os.path.dirname(path))
        found = parent.pop(os.path.basename(path), None) if isinstance(parent, dict) else None
        if isinstance(found, _Content):
            found.lose_name()

    def link(self, source: str, target: str) -> None:
        content = self._content("link", source)
        parent, name = self._parent("link", target)
        if name in parent:
            raise StorageFailure("link", source, OSError(errno.EEXIST, os.strerror(errno.EEXIST)))
        parent[name] = content
        content.names += 1

    def is_shared(self, path: str) -> bool:
        return self._content("stat", path).names > 1

    def lock(self, path: str) -> File:
        """Nobody else can reach this disk."""
        return self.open(path, create=True)

    # -- directories ---------------------------------------------------------------------------------------------------

    def listdir(self, path: str) -> list[str]:
        found = self._entry(path)
        if not isinstance(found, dict):
            raise StorageFailure("list", path, OSError(errno.ENOENT, os.strerror(errno.ENOENT)))
        return list(found)

    def absolute_path(self, path: str) -> str:
        return path

    def exists(self, path: str) -> bool:
        return self._entry(path) is not None

    def is_directory(self, path: str) -> bool:
        return isinstance(self._entry(path), dict)

    def make_directories(self, path: str) -> None:
        entry = self._root
        for name in _parts(path):
            below = entry.setdefault(name, {})
            if not isinstance(below, dict):
                raise StorageFailure("create directory", path, f"{name} is not a directory")
            entry = below

    def rename(self, source: str, target: str) -> None:
        parent, name = self._parent("rename", source)
        if name not in parent:
            raise StorageFailure("rename", source, OSError(errno.ENOENT, os.strerror(errno.ENOENT)))
        to, new_name = self._parent("rename", target)
        replaced = to.get(new_name)
        to[new_name] = parent.pop(name)
        if isinstance(replaced, _Content):
            replaced.lose_name()

    def remove_directory(self, path: str) -> None:
        for name in self.listdir(path):
            self.unlink(f"{path}/{name}")
        parent, name = self._parent("remove directory", path)
        del parent[name]

    def sync(self, path: str) -> None:
        """There is no device."""

    def sync_all(self) -> None:
        """There is no device."""

    def sync_directory(self, path: str) -> None:
        """There is no device."""

    def usage(self, path: str) -> tuple[int, int]:
        return self.max_bytes, max(self.max_bytes - self.used_bytes, 0)


def _parts(path: str) -> list[str]:
    return [name for name in path.split("/") if name not in ("", ".")]
