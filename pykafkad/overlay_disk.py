"""A disk over another that is only read: what is written stays in memory, so that a start can be tried without making
it.

Under it lie real files, opened for reading alone. `changes()` tells afterwards what would be different on the disk.
"""

from __future__ import annotations

import errno
import os
from collections import namedtuple

from pykafkad import platform_calls
from pykafkad.disk import Disk, File
from pykafkad.errors import StartFailure, StorageFailure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pykafkad.disk import Buffer

Change = namedtuple("Change", ("path", "what"))
Change.__doc__ = "One file or directory that would be different, and in words how."

_PIECE_BYTES = 1024 * 1024


class _Layer:
    """What is known of one file above the real one: the first `kept` bytes are the real file's, `tail` follows them."""

    __slots__ = ("kept", "modified_ms", "source", "tail")

    def __init__(self, source: str | None, kept: int) -> None:
        self.source = source
        self.kept = kept
        self.tail = bytearray()
        self.modified_ms: int | None = None

    @property
    def size(self) -> int:
        return self.kept + len(self.tail)

    def cut(self, size_bytes: int) -> None:
        """Make the file `size_bytes` long, with zeros where nothing was."""
        if size_bytes < self.kept:
            self.kept = size_bytes
            self.tail.clear()
        else:
            length = size_bytes - self.kept
            del self.tail[length:]
            self.tail.extend(bytes(length - len(self.tail)))

    def write(self, data: Buffer, position: int) -> None:
        """Put `data` at `position`. What it covers of the real file is held in memory from here on."""
        if position < self.kept:
            self.tail[:0] = _read(self.source, self.kept - position, position)
            self.kept = position
        start = position - self.kept
        self.tail.extend(bytes(max(start - len(self.tail), 0)))
        self.tail[start : start + len(data)] = data

    def read(self, size_bytes: int, position: int) -> bytes:
        below = _read(self.source, min(size_bytes, self.kept - position), position) if position < self.kept else b""
        if len(below) == size_bytes:
            return below
        start = max(position - self.kept, 0)
        return below + bytes(self.tail[start : start + size_bytes - len(below)])


def _read(path: str | None, size_bytes: int, position: int) -> bytes:
    """Bytes of a real file; none of one that was made here (None)."""
    if path is None:
        return b""
    try:
        with open(path, "rb", buffering=0) as file:
            return platform_calls.pread(file.fileno(), size_bytes, position)
    except OSError as error:
        raise StorageFailure("read", path, error) from error


class OverlayFile(File):
    """An open file of the overlay; it has no descriptor of its own."""

    __slots__ = ("_layer",)

    def __init__(self, path: str, layer: _Layer) -> None:
        super().__init__(path, -1)
        self._layer = layer

    def pread(self, size_bytes: int, position: int) -> bytes:
        return self._layer.read(size_bytes, position)

    def pwrite(self, data: Buffer, position: int) -> None:
        self._layer.write(data, position)

    def pwritev(self, pieces: Sequence[Buffer], position: int) -> None:
        self._layer.write(b"".join(pieces), position)

    def truncate(self, size_bytes: int) -> None:
        self._layer.cut(size_bytes)

    def size(self) -> int:
        return self._layer.size

    def sync(self) -> None:
        """Nothing is written."""


class _Directory:
    """One directory above the real one at `source` (None: made here). `entries` are the names that were looked up or
    changed."""

    __slots__ = ("entries", "source")

    def __init__(self, source: str | None) -> None:
        self.source = source
        self.entries: dict[str, _Directory | _Layer | None] = {}

    def get(self, name: str) -> _Directory | _Layer | None:
        """What stands under a name; None for nothing."""
        if name not in self.entries:
            self.entries[name] = self._look(name)
        return self.entries[name]

    def _look(self, name: str) -> _Directory | _Layer | None:
        if self.source is None:
            return None
        path = os.path.join(self.source, name)
        if os.path.isdir(path):
            return _Directory(path)
        return _Layer(path, os.path.getsize(path)) if os.path.isfile(path) else None

    def names(self) -> list[str]:
        """What stands in it now."""
        below = [] if self.source is None else os.listdir(self.source)
        return sorted(name for name in {*below, *self.entries} if self.get(name) is not None)


class OverlayDisk(Disk):
    """See the module. Directories that were made or renamed exist only here."""

    __slots__ = ("_roots",)

    def __init__(self) -> None:
        # Paths may be absolute or relative, as the caller likes them.
        self._roots = {"/": _Directory("/"), "": _Directory(".")}

    # -- names ---------------------------------------------------------------------------------------------------------

    def _entry(self, path: str) -> _Directory | _Layer | None:
        entry: _Directory | _Layer | None = self._roots["/" if path.startswith("/") else ""]
        for name in path.split("/"):
            if name not in ("", "."):
                entry = entry.get(name) if isinstance(entry, _Directory) else None
        return entry

    def _parent(self, operation: str, path: str) -> tuple[_Directory, str]:
        directory, _, name = path.rpartition("/")
        entry = self._entry(directory or ("/" if path.startswith("/") else ""))
        if not isinstance(entry, _Directory):
            raise _missing(operation, path)
        return entry, name

    def _file(self, operation: str, path: str, *, create: bool = False) -> _Layer:
        parent, name = self._parent(operation, path)
        found = parent.get(name)
        if isinstance(found, _Directory) or (found is None and not create):
            raise _missing(operation, path)
        if found is None:
            found = parent.entries[name] = _Layer(None, 0)
        return found

    # -- files ---------------------------------------------------------------------------------------------------------

    def allow_many_files(self) -> int:
        """No file is kept open."""
        return 0

    def open(self, path: str, *, create: bool = False) -> File:
        return OverlayFile(path, self._file("open", path, create=create))

    def read(self, path: str) -> bytes | None:
        found = self._entry(path)
        return found.read(found.size, 0) if isinstance(found, _Layer) else None

    def read_end(self, path: str, size_bytes: int) -> bytes:
        found = self._entry(path)
        return found.read(size_bytes, max(found.size - size_bytes, 0)) if isinstance(found, _Layer) else b""

    def write(self, path: str, data: Buffer, *, sync: bool = False) -> None:
        layer = self._file("write", path, create=True)
        layer.kept = 0
        layer.tail[:] = data

    def replace(self, path: str, data: Buffer, *, sync: bool = True) -> None:
        temporary = path + ".tmp"
        self.write(temporary, data)
        self.rename(temporary, path)

    def exists(self, path: str) -> bool:
        return self._entry(path) is not None

    def size(self, path: str) -> int:
        found = self._entry(path)
        return found.size if isinstance(found, _Layer) else 0

    def modified_ms(self, path: str) -> int:
        found = self._entry(path)
        if not isinstance(found, _Layer):
            return 0
        return super().modified_ms(found.source or "") if found.modified_ms is None else found.modified_ms

    def set_modified_ms(self, path: str, modified_ms: int) -> None:
        self._file("stat", path).modified_ms = modified_ms

    def link(self, source: str, target: str) -> None:
        layer = self._file("link", source)
        parent, name = self._parent("link", target)
        parent.entries[name] = layer

    def is_shared(self, path: str) -> bool:
        """Nothing that is cut here is cut for others."""
        return False

    def unlink(self, path: str) -> None:
        parent = self._entry(path.rpartition("/")[0])
        if isinstance(parent, _Directory):
            parent.entries[path.rpartition("/")[2]] = None

    def rename(self, source: str, target: str) -> None:
        parent, name = self._parent("rename", source)
        found = parent.get(name)
        if found is None:
            raise _missing("rename", source)
        new_parent, new_name = self._parent("rename", target)
        parent.entries[name] = None
        new_parent.entries[new_name] = found

    # -- directories ---------------------------------------------------------------------------------------------------

    def listdir(self, path: str) -> list[str]:
        found = self._entry(path)
        if not isinstance(found, _Directory):
            raise _missing("list", path)
        return found.names()

    def is_directory(self, path: str) -> bool:
        found = self._entry(path)
        return isinstance(found, _Directory) and not (found.source == path and os.path.islink(path))

    def make_directories(self, path: str) -> None:
        parent, name = self._parent("create directory", path)
        if parent.get(name) is None:
            parent.entries[name] = _Directory(None)

    def remove_directory(self, path: str) -> None:
        self.listdir(path)
        self.unlink(path)

    def sync(self, path: str) -> None:
        """Nothing is written."""

    def sync_all(self) -> None:
        """Nothing is written."""

    def sync_directory(self, path: str) -> None:
        """Nothing is written."""

    def lock(self, path: str) -> File:
        """Refuse a directory that a broker uses, whose files change under the reader. Nothing is locked for longer."""
        try:
            platform_calls.check_unlocked(path)
        except FileNotFoundError:
            pass
        except BlockingIOError:
            raise StartFailure(
                f"a broker uses the directory {os.path.dirname(path)} (it holds the lock on {path}); stop it first"
            ) from None
        except OSError as error:
            raise StorageFailure("lock", path, error) from error
        return OverlayFile(path, _Layer(None, 0))

    # -- what would be different ---------------------------------------------------------------------------------------

    def changes(self, path: str) -> list[Change]:
        """Every file and directory below the directory `path` that would not be as it is, in the order of their
        names."""
        found = self._entry(path)
        return list(_changes(path, found)) if isinstance(found, _Directory) else []


def _missing(operation: str, path: str) -> StorageFailure:
    return StorageFailure(operation, path, OSError(errno.ENOENT, os.strerror(errno.ENOENT)))


def _changes(path: str, directory: _Directory) -> Iterator[Change]:
    for name in sorted(directory.entries):
        entry = directory.entries[name]
        whole = os.path.join(path, name)
        if isinstance(entry, _Directory):
            if entry.source is None:
                yield Change(whole, "created")
            elif entry.source != whole:
                yield Change(whole, f"renamed from {os.path.basename(entry.source)}")
            yield from _changes(whole, entry)
        else:
            what = _removal(whole) if entry is None else _difference(whole, entry)
            if what is not None:
                yield Change(whole, what)


def _removal(path: str) -> str | None:
    return "removed or renamed" if os.path.isdir(path) else "removed" if os.path.isfile(path) else None


def _difference(path: str, layer: _Layer) -> str | None:
    if not os.path.isfile(path):
        return f"created with {layer.size} bytes"
    before = os.path.getsize(path)
    if layer.source == path and not layer.tail:
        return None if layer.kept == before else f"cut from {before} to {layer.kept} bytes"
    if layer.source == path and layer.kept == before:
        return f"{len(layer.tail)} bytes appended to {before}"
    if before == layer.size and all(
        _read(path, _PIECE_BYTES, at) == layer.read(_PIECE_BYTES, at) for at in range(0, before, _PIECE_BYTES)
    ):
        return None
    return f"rewritten, {layer.size} bytes instead of {before}"
