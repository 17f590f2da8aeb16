"""The only module that asks the operating system for files.

Everything below `log/` is handed a `Disk`, so that a test can hand in one that lives in memory, fails on the n-th call
or forgets what was never synced (`tests/simulation/disk.py`). Paths are plain strings, positions and sizes are bytes.
Every refusal of the operating system arrives as `StorageFailure`, which names the operation, the path and the reason.
"""

from __future__ import annotations

import errno
import os

from pykafkad import platform_calls
from pykafkad.errors import StartFailure, StorageFailure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Buffer = bytes | bytearray | memoryview

# writev takes at most 1024 pieces on Linux.
MAX_PIECES = 1024
NO_BOUND = 1 << 62
# Descriptors that no file takes which stays open: what is opened for a moment, the next module too, finds one.
SPARE_DESCRIPTORS = 16


def leave_spare(fd: int) -> int:
    """`fd`, if it is none of the last ones that this process may have; else it is closed, and OSError raised as without
    one.

    The system gives out the lowest that is free.
    """
    if fd > SPARE_DESCRIPTORS and fd >= platform_calls.descriptor_limit() - SPARE_DESCRIPTORS:
        os.close(fd)
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
    return fd


class File:
    """One open file, addressed by position: reads and writes never depend on a cursor.

    The descriptor is closed by `close()`, or when the last reference goes: a slice that is still being sent keeps the
    file of a deleted segment readable.
    """

    __slots__ = ("_fd", "path")

    def __init__(self, path: str, fd: int) -> None:
        self.path = path
        self._fd = fd

    def fileno(self) -> int:
        """The descriptor, for `sendfile`."""
        return self._fd

    def pread(self, size_bytes: int, position: int) -> bytes:
        """Up to `size_bytes` bytes from `position`; fewer at the end of the file."""
        try:
            return platform_calls.pread(self._fd, size_bytes, position)
        except OSError as error:
            raise StorageFailure("read", self.path, error) from error

    def pwrite(self, data: Buffer, position: int) -> None:
        """Write all of `data` at `position`. After a failure the file may hold a part of it."""
        try:
            written = platform_calls.pwrite(self._fd, data, position)
            if written != len(data):
                self._pwrite_rest(memoryview(data), written, position)
        except OSError as error:
            raise StorageFailure("write", self.path, error) from error

    def _pwrite_rest(self, view: memoryview, written: int, position: int) -> None:
        # A short write is how a full disk or a signal announces itself; the next call tells which.
        while written < len(view):
            written += platform_calls.pwrite(self._fd, view[written:], position + written)

    def pwritev(self, pieces: Sequence[Buffer], position: int) -> None:
        """Write all pieces behind one another from `position` on; at most `MAX_PIECES` of them."""
        total = sum(len(piece) for piece in pieces)
        try:
            written = platform_calls.pwritev(self._fd, pieces, position)
            if written != total:
                self._pwrite_rest(memoryview(b"".join(pieces)), written, position)
        except OSError as error:
            raise StorageFailure("write", self.path, error) from error

    def truncate(self, size_bytes: int) -> None:
        try:
            os.ftruncate(self._fd, size_bytes)
        except OSError as error:
            raise StorageFailure("truncate", self.path, error) from error

    def size(self) -> int:
        try:
            return os.fstat(self._fd).st_size
        except OSError as error:
            raise StorageFailure("stat", self.path, error) from error

    def sync(self) -> None:
        """Bring the content to the device. A failure is final: a second sync that succeeds proves nothing."""
        try:
            platform_calls.fdatasync(self._fd)
        except OSError as error:
            raise StorageFailure("sync", self.path, error) from error

    def close(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def __del__(self) -> None:
        # The fd is unset when __init__ never ran.
        if getattr(self, "_fd", -1) >= 0:
            self.close()


class _LockFile(File):
    """A file that is locked for as long as it is open."""

    __slots__ = ()

    def close(self) -> None:
        if self._fd >= 0:
            platform_calls.forget_lock(self._fd)
        super().close()


class Disk:
    """The real disk. A twin offers the same methods."""

    __slots__ = ()

    def allow_many_files(self) -> int:
        """Raise this process's limit of open files to what the system allows it; the limit.

        Every partition in use keeps a file open, every client a connection; the usual limit of 1024 is for neither.
        """
        return platform_calls.raise_descriptor_limit()

    def open(self, path: str, *, create: bool = False) -> File:
        """Open for reading and writing; `create` makes the file when it is missing."""
        flags = os.O_RDWR | platform_calls.OPEN_FLAGS | (os.O_CREAT if create else 0)
        try:
            return File(path, leave_spare(os.open(path, flags, 0o644)))
        except OSError as error:
            raise StorageFailure("open", path, error) from error

    def reserve(self, file: File, end_position: int, *, beyond_bound: bool = False) -> int:
        """Up to which position `file` may be written without asking again, at least `end_position`.

        Raises KafkaError where there is a bound and no room below it, unless the file may grow `beyond_bound`. The real
        disk says so only when it is written to."""
        return NO_BOUND

    def tell_when_full(self, tell: Callable[[int, int], None]) -> None:
        """Call `tell(used_bytes, max_bytes)` when `reserve` refuses, but not again and again."""

    def read(self, path: str) -> bytes | None:
        """The whole content of a small file; None when there is no such file."""
        try:
            with open(path, "rb", buffering=0) as file:
                return file.readall()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StorageFailure("read", path, error) from error

    def read_end(self, path: str, size_bytes: int) -> bytes:
        """The last `size_bytes` bytes of a file: fewer of a shorter one, none of a missing one."""
        try:
            with open(path, "rb", buffering=0) as file:
                position = max(0, os.fstat(file.fileno()).st_size - size_bytes)
                return platform_calls.pread(file.fileno(), size_bytes, position)
        except FileNotFoundError:
            return b""
        except OSError as error:
            raise StorageFailure("read", path, error) from error

    def sync(self, path: str) -> None:
        """Bring the content of a closed file to the device."""
        try:
            fd = os.open(path, os.O_RDWR | platform_calls.OPEN_FLAGS)
            try:
                platform_calls.fdatasync(fd)
            finally:
                os.close(fd)
        except OSError as error:
            raise StorageFailure("sync", path, error) from error

    def write(self, path: str, data: Buffer, *, sync: bool = False) -> None:
        """Replace the content of a file in place: for files that can be rebuilt, such as indexes."""
        try:
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | platform_calls.OPEN_FLAGS, 0o644)
            try:
                view = memoryview(data)
                while view:
                    view = view[os.write(fd, view) :]
                if sync:
                    platform_calls.fdatasync(fd)
            finally:
                os.close(fd)
        except OSError as error:
            raise StorageFailure("write", path, error) from error

    def replace(self, path: str, data: Buffer, *, sync: bool = True) -> None:
        """Replace a file so that a crash leaves the old content or the new one: temporary file, sync, rename, sync.

        Without `sync` that holds for the death of the process only, for what can be rebuilt after the machine's.
        """
        temporary = path + ".tmp"
        self.write(temporary, data, sync=sync)
        self.rename(temporary, path)
        if sync:
            self.sync_directory(os.path.dirname(path) or ".")

    def sync_all(self) -> None:
        """Bring everything to the device in one call: cheaper than one by one for more than a few files."""
        platform_calls.sync_all()

    def listdir(self, path: str) -> list[str]:
        try:
            return os.listdir(path)
        except OSError as error:
            raise StorageFailure("list", path, error) from error

    def absolute_path(self, path: str) -> str:
        return os.path.abspath(path)

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def is_directory(self, path: str) -> bool:
        """Whether a directory is there itself: a symbolic link is never followed out of the data directory."""
        return os.path.isdir(path) and not os.path.islink(path)

    def size(self, path: str) -> int:
        """Size of a file, 0 when there is none."""
        try:
            return os.stat(path).st_size
        except FileNotFoundError:
            return 0
        except OSError as error:
            raise StorageFailure("stat", path, error) from error

    def modified_ms(self, path: str) -> int:
        """When a file was last written, wall milliseconds; 0 when there is none."""
        try:
            return os.stat(path).st_mtime_ns // 1_000_000
        except FileNotFoundError:
            return 0
        except OSError as error:
            raise StorageFailure("stat", path, error) from error

    def set_modified_ms(self, path: str, modified_ms: int) -> None:
        """Make a file as old as another one that it takes the place of."""
        try:
            os.utime(path, ns=(modified_ms * 1_000_000, modified_ms * 1_000_000))
        except OSError as error:
            raise StorageFailure("stat", path, error) from error

    def make_directories(self, path: str) -> None:
        """Make a directory and its parents; one that is there already is fine."""
        try:
            os.mkdir(path)
        except (FileExistsError, FileNotFoundError, NotADirectoryError):
            self._make_parents(path)
        except OSError as error:
            raise StorageFailure("create directory", path, error) from error

    def _make_parents(self, path: str) -> None:
        try:
            os.makedirs(path, exist_ok=True)
        except (FileExistsError, NotADirectoryError) as error:
            present = path
            while present and not os.path.lexists(present):
                present = os.path.dirname(present)
            raise StorageFailure("create directory", path, f"{present or path} is not a directory") from error
        except OSError as error:
            raise StorageFailure("create directory", path, error) from error

    def rename(self, source: str, target: str) -> None:
        try:
            os.rename(source, target)
        except OSError as error:
            raise StorageFailure("rename", source, error) from error

    def link(self, source: str, target: str) -> None:
        """A second name for a file: whoever writes into one writes into both."""
        try:
            os.link(source, target)
        except OSError as error:
            raise StorageFailure("link", source, error) from error

    def is_shared(self, path: str) -> bool:
        """Whether a file has another name, as one that a snapshot holds."""
        try:
            return os.stat(path).st_nlink > 1
        except OSError as error:
            raise StorageFailure("stat", path, error) from error

    def unlink(self, path: str) -> None:
        """Remove a file; one that is gone already is fine."""
        try:
            os.unlink(path)
        except FileNotFoundError:
            pass
        except OSError as error:
            raise StorageFailure("remove", path, error) from error

    def remove_directory(self, path: str) -> None:
        """Remove a directory of files, as a deleted partition is; nested directories are refused."""
        for name in self.listdir(path):
            self.unlink(os.path.join(path, name))
        try:
            os.rmdir(path)
        except OSError as error:
            raise StorageFailure("remove directory", path, error) from error

    def sync_directory(self, path: str) -> None:
        """Make renames and new names in a directory survive a power loss."""
        try:
            platform_calls.sync_directory(path)
        except OSError as error:
            raise StorageFailure("sync", path, error) from error

    def usage(self, path: str) -> tuple[int, int]:
        """Total and usable bytes of the file system that holds `path`."""
        try:
            return platform_calls.usage(path)
        except OSError as error:
            raise StorageFailure("stat", path, error) from error

    def lock(self, path: str) -> File:
        """Take an exclusive lock on a file that lasts until it is closed or the process dies.

        Raises `StartFailure` when another process holds it, which names the directory.
        """
        try:
            return _LockFile(path, leave_spare(platform_calls.open_locked(path)))
        except BlockingIOError:
            raise StartFailure(
                f"log.dirs: another broker uses the directory {os.path.dirname(path)} "
                f"(it holds the lock on {path}); stop it, or give this broker a directory of its own"
            ) from None
        except OSError as error:
            raise StorageFailure("lock", path, error) from error
