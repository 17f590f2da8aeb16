"""A disk in memory for thousands of partitions: it finds what is in a directory without a look at all of its files.

Tests that put files into `MemoryDisk.files` themselves need that class. Here the disk's methods alone change names."""

from __future__ import annotations

import posixpath

from tests.simulation.disk import MemoryDisk


class IndexedDisk(MemoryDisk):
    """See the module. `_names` maps each directory to the names in it, in the order in which they came."""

    __slots__ = ("_names",)

    def __init__(self):
        super().__init__()
        self._names = {"/": {}}

    def _add(self, path):
        parent, name = posixpath.split(path)
        self._names.setdefault(parent, {})[name] = None

    def _remove(self, path):
        parent, name = posixpath.split(path)
        self._names[parent].pop(name, None)

    def open(self, path, *, create=False):
        is_new = path not in self.files
        file = super().open(path, create=create)
        if is_new:
            self._add(path)
        return file

    def write(self, path, data, *, sync=False):
        is_new = path not in self.files
        try:
            super().write(path, data, sync=sync)
        finally:
            # A write that fails may leave a file.
            if is_new and path in self.files:
                self._add(path)

    def listdir(self, path):
        self._call("list", path)
        return sorted(self._names.get(path, ()))

    def make_directories(self, path):
        self._call("create directory", path)
        while path not in self.directories and path:
            self.directories.add(path)
            self._names.setdefault(path, {})
            self._add(path)
            path = posixpath.dirname(path)

    def rename(self, source, target):
        self._call("rename", source)
        self._remove(source)
        self._add(target)
        self._move(source, target)

    def _move(self, source, target):
        if source in self.directories:
            self.directories.discard(source)
            self.directories.add(target)
            names = self._names[target] = self._names.pop(source)
            for name in names:
                self._move(f"{source}/{name}", f"{target}/{name}")
        else:
            self.files[target] = self.files.pop(source)

    def unlink(self, path):
        super().unlink(path)
        self._remove(path)

    def remove_directory(self, path):
        super().remove_directory(path)
        self._names.pop(path, None)
        self._remove(path)
