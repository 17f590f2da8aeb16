"""A disk in memory that loses data as a real disk does when the machine loses power.

It keeps apart three things that a running process cannot tell apart: the written bytes, the bytes on the device, and
the file names on the device. Names, creations and truncations reach the device in order, as in a journal, and the last
ones may be lost. Bytes reach the device in any order, by file and by sector, until a sync. `lose_power` chooses at
random what is left.

After a failed sync the written bytes are lost with the next power loss, even if a later sync of the same process
succeeds. A *new* process may read bytes after a failed sync that a power loss can still take; this is not simulated,
because no broker can notice it.

With `names_apart` only `sync_directory` brings names to the device, and only those of its directory, as POSIX says.
Without it every sync brings all names, as a journal does.

Besides the failures of `MemoryDisk` this disk can be full: `free_bytes` may still be written, and the write that
exceeds them leaves its first part in the file, as on a real disk."""

from __future__ import annotations

import errno
import posixpath

from pykafkad.errors import StorageFailure
from tests.simulation.disk import MemoryDisk, MemoryFile

SECTOR_BYTES = 512
# The fields of a batch that its checksum does not cover: base offset, length, leader epoch.
UNCHECKED_BYTES = 16


class CrashFile(MemoryFile):
    """An open file of a `CrashDisk`."""

    def pwrite(self, data, position):
        part = self._disk.take_space(len(data) - max(0, len(self._content.data) - position))
        if part is not None:
            super().pwrite(bytes(data)[: max(0, part)], position)
            raise StorageFailure("write", self.path, OSError(errno.ENOSPC, "No space left on device"))
        super().pwrite(data, position)

    def truncate(self, size_bytes):
        super().truncate(size_bytes)
        self._disk.journal.append(("truncate", self._content, size_bytes))

    def sync(self):
        content = self._content
        try:
            self._disk._call("sync", self.path)
        except StorageFailure:
            # The kernel marks the pages clean despite the failure, so no later sync brings them to the device.
            content.lost = True
            raise
        if self._disk.names_apart:
            self._disk.journal = [row for row in self._disk.journal if row[:2] != ("truncate", content)]
        else:
            self._disk.commit()
        if not getattr(content, "lost", False):
            content.synced, content.old = bytes(content.data), None


class CrashDisk(MemoryDisk):
    """See the module. `flips` allows a power loss to flip a bit in what was not synced."""

    __slots__ = ("durable", "durable_directories", "flips", "free_bytes", "journal", "names_apart", "renames")

    def __init__(self):
        super().__init__()
        self.durable = {}
        self.durable_directories = {"/"}
        self.names_apart = False
        self.journal = []
        self.renames = []
        self.free_bytes = None
        self.flips = True

    # -- space

    def take_space(self, size_bytes):
        """Reserve space for a write; returns None when there is room, else the number of bytes that still fit."""
        if self.free_bytes is None or size_bytes <= 0:
            return None
        if size_bytes <= self.free_bytes:
            self.free_bytes -= size_bytes
            return None
        part, self.free_bytes = self.free_bytes, 0
        return part

    # -- names

    def commit(self, directory=None):
        """Bring all names, creations and truncations so far to the device; with `directory` only its names, also those
        that it got under an earlier name of its own."""
        kept = []
        for row in self.journal:
            if directory is None or (
                row[0] != "truncate"
                and directory
                in [self._named_now(posixpath.dirname(each)) for each in row[1 : 2 + (row[0] == "rename")]]
            ):
                self._apply(row, self.durable, self.durable_directories)
            else:
                kept.append(row)
        self.journal = kept

    def _named_now(self, directory):
        for source, target in self.renames:
            if directory == source:
                directory = target
        return directory

    def _apply(self, row, names, directories):
        kind, first, second = row
        if kind == "name" and posixpath.dirname(first) not in directories:
            # The folder has another name on the device already.
            first = f"{self._named_now(posixpath.dirname(first))}/{posixpath.basename(first)}"
        if kind == "truncate":
            first.synced = first.synced[:second]
        elif kind == "rename":
            for name in list(names):
                if name == first or name.startswith(first + "/"):
                    names[second + name[len(first) :]] = names.pop(name)
            for name in list(directories):
                if name == first or name.startswith(first + "/"):
                    directories.discard(name)
                    directories.add(second + name[len(first) :])
        elif kind == "directory":
            directories.add(first)
        elif second is None:
            names.pop(first, None)
        else:
            names[first] = second

    def make_directories(self, path):
        missing = [path]
        while missing[-1] not in self.directories:
            missing.append(posixpath.dirname(missing[-1]))
        super().make_directories(path)
        self.journal += [("directory", each, None) for each in reversed(missing[:-1])]

    def open(self, path, *, create=False):
        is_new = create and path not in self.files
        if is_new and self.take_space(1) is not None:
            raise StorageFailure("open", path, OSError(errno.ENOSPC, "No space left on device"))
        try:
            file = super().open(path, create=create)
        finally:
            if is_new and path in self.files:
                self.journal.append(("name", path, self.files[path]))
        return CrashFile(self, path, self.files[path]) if type(file) is MemoryFile else file

    def write(self, path, data, *, sync=False):
        is_new = path not in self.files
        if not is_new:
            content = self.files[path]
            # The file is emptied, so bytes that a failed sync lost do not matter any more.
            content.old, content.synced, content.lost = content.synced, b"", False
        part = self.take_space(len(data))
        if part is not None:
            data = bytes(data)[:part]
        try:
            # The file is emptied and then written, so old and new content are never mixed.
            super().write(path, data, sync=False)
        finally:
            if is_new and path in self.files:
                self.journal.append(("name", path, self.files[path]))
        if part is not None:
            raise StorageFailure("write", path, OSError(errno.ENOSPC, "No space left on device"))
        if sync:
            self.sync(path)

    def sync(self, path):
        CrashFile(self, path, self._content(path, "open")).sync()

    def sync_directory(self, path):
        super().sync_directory(path)
        self.commit(path if self.names_apart else None)

    def sync_all(self):
        super().sync_all()
        self.commit()

    def rename(self, source, target):
        super().rename(source, target)
        self.journal.append(("rename", source, target))
        if target in self.directories:
            self.renames.append((source, target))

    def unlink(self, path):
        super().unlink(path)
        self.journal.append(("name", path, None))

    # -- crashes

    def kill(self):
        """End the process; failed syncs are forgotten with it."""
        super().kill()
        for content in self.files.values():
            content.lost = False

    def lose_power(self, random):
        """Lose what is not synced, at random; see the module."""
        self.locks.clear()
        self._failures.clear()
        self.free_bytes = None
        names, directories = dict(self.durable), set(self.durable_directories)
        for row in self.journal[: random.randrange(len(self.journal) + 1) if self.journal else 0]:
            self._apply(row, names, directories)
        # The content of a lost folder is lost too.
        lost = self.directories - directories
        names = {name: content for name, content in names.items() if posixpath.dirname(name) not in lost}
        self.directories = directories
        self.journal.clear()
        self.files = names
        for content in dict.fromkeys(names.values()):
            content.data = bytearray(self._left(content, random))
            content.synced = bytes(content.data)
            content.lost, content.old = False, None
        self.durable, self.durable_directories = dict(names), set(directories)

    def _left(self, content, random):
        data, synced = bytes(content.data), content.synced
        old = getattr(content, "old", None)
        if old is not None and random.random() < 0.3:
            # The file was emptied and written again, and none of the new bytes has reached the device.
            return old
        kept = len(posixpath.commonprefix((data, synced)))
        if kept < len(synced) and random.random() < 0.5:
            # A truncation is lost, and the bytes written after it too.
            return synced
        synced, tail = synced[:kept], bytearray(data[kept:])
        if not tail:
            return synced
        kind = random.random()
        if kind < 0.5:
            del tail[random.randrange(len(tail) + 1) :]
        elif kind < 0.8:
            for start in range(0, len(tail), SECTOR_BYTES):
                if random.random() < 0.3:
                    tail[start : start + SECTOR_BYTES] = bytes(len(tail[start : start + SECTOR_BYTES]))
        elif self.flips:
            self._flip(tail, random)
        return synced + tail

    def _flip(self, tail, random):
        # No broker, Kafka included, can find a changed bit that no checksum covers.
        position = 0
        while position + UNCHECKED_BYTES < len(tail):
            size = 12 + int.from_bytes(tail[position + 8 : position + 12], "big")
            if size <= UNCHECKED_BYTES or position + size > len(tail):
                return
            if random.random() < 0.3 or position + 2 * size > len(tail):
                tail[position + random.randrange(UNCHECKED_BYTES, size)] ^= 1 << random.randrange(8)
                return
            position += size
