"""A disk in memory: the methods of `pykafkad.disk.Disk`, with failures on demand and crashes.

`fail(operation, at=n)` makes the n-th call of an operation from now on raise as the real disk does; with `sticky` every
later one too, as on a full disk. A failing write may have written a part. `kill()` is the death of the process: locks
go, written bytes stay. `lose_power(random)` is the death of the machine: what was not synced is gone, wholly or from
some byte on. Names survive at once: losing renames is not simulated.

While `refuses_syncs` a sync is a fault of the test: a loop that serves leaves them to threads beside it."""

from __future__ import annotations

import errno
import posixpath

from pykafkad.disk import Disk
from pykafkad.errors import StartFailure, StorageFailure


class _Content:
    """Bytes of one file, and those that are on the device: `data` to change, `seen` to look at."""

    def __init__(self):
        self.data = bytearray()
        self.synced = b""

    @property
    def data(self):
        if self._is_shared:
            self.data = bytearray(self.seen)
        return self.seen

    @data.setter
    def data(self, data):
        self.seen, self._is_shared = data, False

    def copy(self):
        """The same, synced; the bytes are those of both until somebody wants to change one's."""
        twin = _Content()
        twin.seen, twin.synced = self.seen, self.synced if len(self.synced) == len(self.seen) else bytes(self.seen)
        twin._is_shared = self._is_shared = True
        return twin


class MemoryFile:
    """An open file; it outlives its name, as a descriptor does."""

    def __init__(self, disk, path, content):
        self.path = path
        self._disk = disk
        self._content = content
        self._locked = False

    def fileno(self):
        return -1

    def pread(self, size_bytes, position):
        self._disk._call("read", self.path)
        if size_bytes < 0 or position < 0:
            raise StorageFailure("read", self.path, OSError(errno.EINVAL, "Invalid argument"))
        return bytes(memoryview(self._content.seen)[position : position + size_bytes])

    def pwrite(self, data, position):
        content = self._content.data
        part = self._disk._call("write", self.path, data)
        data = bytes(data)[: len(data) if part is None else part]
        content.extend(bytes(max(0, position - len(content))))
        content[position : position + len(data)] = data
        if part is not None:
            raise StorageFailure("write", self.path, self._disk.error)

    def pwritev(self, pieces, position):
        self.pwrite(b"".join(bytes(piece) for piece in pieces), position)

    def truncate(self, size_bytes):
        self._disk._call("truncate", self.path)
        data = self._content.data
        del data[size_bytes:]
        data.extend(bytes(size_bytes - len(data)))

    def size(self):
        return len(self._content.seen)

    def sync(self):
        self._disk._call("sync", self.path)
        self._content.synced = bytes(self._content.seen)

    def close(self):
        if self._locked:
            self._disk.locks.discard(self.path)
            self._locked = False


class MemoryDisk(Disk):
    """See the module. `calls` counts what was done, by operation."""

    __slots__ = ("_failures", "calls", "directories", "error", "files", "locks", "modified", "refuses_syncs")

    def __init__(self):
        self.files = {}
        self.directories = {"/"}
        self.locks = set()
        self.calls = {}
        self.modified = 0
        self.refuses_syncs = False
        self.error = OSError(errno.ENOSPC, "No space left on device")
        self._failures = {}

    # -- faults
    # ----------------------------------------------------------------------------------------------------------

    def fail(self, operation, *, at=1, sticky=False, part=0, error=errno.ENOSPC):
        """The `at`-th call of `operation` from now on fails; a write leaves its first `part` bytes behind."""
        self._failures[operation] = [at, sticky, part]
        self.error = OSError(error, "simulated")

    def fill(self, part=0):
        """No write succeeds from now on for lack of space; each leaves its first `part` bytes behind."""
        self.fail("write", sticky=True, part=part)

    def heal(self):
        """No further failures."""
        self._failures.clear()

    @property
    def is_to_fail(self):
        """Whether a failure is still to come."""
        return bool(self._failures)

    def _call(self, operation, path, data=None):
        assert operation != "sync" or not self.refuses_syncs, f"the loop waits for a sync of {path}"
        self.calls[operation] = self.calls.get(operation, 0) + 1
        failure = self._failures.get(operation)
        if failure is None:
            return None
        failure[0] -= 1
        if failure[0] > 0:
            return None
        if not failure[1]:
            del self._failures[operation]
        if data is not None:
            return min(failure[2], len(data))
        raise StorageFailure(operation, path, self.error)

    def kill(self):
        """The process is gone."""
        self.locks.clear()

    def lose_power(self, random):
        """The machine is gone: each file keeps what was synced and some part of what was written behind that."""
        self.locks.clear()
        for content in list(self.files.values()):
            data, synced = content.data, content.synced
            kept = random.randrange(len(synced), len(data) + 1) if len(data) > len(synced) else len(synced)
            content.data = bytearray(synced) + data[len(synced) : kept]
            content.synced = bytes(content.seen)

    # -- Disk
    # ------------------------------------------------------------------------------------------------------------

    def _content(self, path, operation):
        self._call(operation, path)
        if path not in self.files:
            raise StorageFailure(operation, path, OSError(errno.ENOENT, "No such file or directory"))
        return self.files[path]

    def open(self, path, *, create=False):
        if create and path not in self.files:
            self._call("create", path)
            self.files[path] = _Content()
        return MemoryFile(self, path, self._content(path, "open"))

    def read(self, path):
        return bytes(self._content(path, "read").seen) if path in self.files else None

    def read_end(self, path, size_bytes):
        return (self.read(path) or b"")[-size_bytes:]

    def sync(self, path):
        MemoryFile(self, path, self._content(path, "open")).sync()

    def write(self, path, data, *, sync=False):
        part = self._call("write", path, data)
        content = self.files.setdefault(path, _Content())
        content.data = bytearray(data if part is None else data[:part])
        if part is not None:
            raise StorageFailure("write", path, self.error)
        if sync:
            self._call("sync", path)
            content.synced = bytes(content.seen)

    def sync_all(self):
        self._call("sync", "/")
        for content in list(self.files.values()):
            content.synced = bytes(content.seen)

    def listdir(self, path):
        self._call("list", path)
        return sorted(
            {
                name[len(path) + 1 :].split("/")[0]
                for name in (*self.files, *self.directories)
                if name.startswith(path + "/")
            }
        )

    def absolute_path(self, path):
        return posixpath.join("/", path)

    def exists(self, path):
        return path in self.files or path in self.directories

    def is_directory(self, path):
        return path in self.directories

    def size(self, path):
        return len(self.files[path].seen) if path in self.files else 0

    def modified_ms(self, path):
        return self.modified

    def set_modified_ms(self, path, modified_ms):
        self._call("stat", path)

    def make_directories(self, path):
        self._call("create directory", path)
        while path not in self.directories and path:
            self.directories.add(path)
            path = posixpath.dirname(path)

    def rename(self, source, target):
        self._call("rename", source)
        for names in (self.files, self.directories):
            for name in list(names):
                if name == source or name.startswith(source + "/"):
                    moved = target + name[len(source) :]
                    if names is self.files:
                        names[moved] = names.pop(name)
                    else:
                        names.discard(name)
                        names.add(moved)

    def is_shared(self, path):
        return False

    def unlink(self, path):
        self._call("remove", path)
        self.files.pop(path, None)

    def remove_directory(self, path):
        for name in self.listdir(path):
            self.unlink(f"{path}/{name}")
        self.directories.discard(path)

    def sync_directory(self, path):
        self._call("sync", path)

    def usage(self, path):
        failure = self._failures.get("write")
        is_full = failure is not None and failure[1] and self.error.errno == errno.ENOSPC
        return 1 << 40, 0 if is_full else 1 << 39

    def lock(self, path):
        if path in self.locks:
            raise StartFailure(f"log.dirs: another broker uses the directory {posixpath.dirname(path)}")
        self.locks.add(path)
        file = self.open(path, create=True)
        file._locked = True
        return file
