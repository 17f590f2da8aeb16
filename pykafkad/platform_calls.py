"""What differs between systems, chosen once when this module is imported.

Linux has calls that others lack. Each of them has a stand-in here that does the same with what every system has; the
names of this module are one or the other. Nobody else asks which system this is."""

from __future__ import annotations

import errno
import os
import select
from _thread import allocate_lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from socket import socket
    from typing import Protocol

    from pykafkad.log.file_slice import FileSlice

    Buffer = bytes | bytearray | memoryview

    class Poller(Protocol):
        """The methods of `select.epoll` that the reactor uses."""

        def register(self, fd: int, eventmask: int) -> None: ...
        def modify(self, fd: int, eventmask: int) -> None: ...
        def unregister(self, fd: int) -> None: ...
        def poll(self, timeout: float | None, maxevents: int) -> list[tuple[int, int]]: ...
        def close(self) -> None: ...

    class Waker(Protocol):
        """A descriptor that becomes readable when any thread asks for it."""

        def fileno(self) -> int: ...
        def wake(self) -> None: ...
        def clear(self) -> None: ...
        def close(self) -> None: ...


# --- the network ------------------------------------------------------------------------------------------------------


class PipeWaker:
    """A pipe that does not block."""

    __slots__ = ("_reader", "_writer")

    def __init__(self) -> None:
        self._reader, self._writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def fileno(self) -> int:
        """What becomes readable."""
        return self._reader

    def wake(self) -> None:
        """Safe from other threads and from signal handlers."""
        try:
            os.write(self._writer, b"w")
        except OSError:
            # So many have asked already that the pipe is full; or nobody waits any more.
            pass

    def clear(self) -> None:
        """It is heard: not readable any more."""
        try:
            os.read(self._reader, 65536)
        except BlockingIOError:
            pass

    def close(self) -> None:
        # A thread that wakes later writes to no descriptor, not to one that was given out anew.
        reader, writer, self._reader, self._writer = self._reader, self._writer, -1, -1
        os.close(reader)
        os.close(writer)


def new_poller() -> Poller:
    """What tells which descriptors are ready."""
    if hasattr(select, "epoll"):
        return select.epoll()
    from pykafkad.portable_poller import PortablePoller

    return PortablePoller()


def new_waker() -> Waker:
    """What ends a wait from another thread."""
    if hasattr(os, "pipe2"):
        return PipeWaker()
    from pykafkad.portable_poller import SocketWaker

    return SocketWaker()


def send_slice_by_sendfile(connected: socket, chunk: FileSlice, size: int) -> int:
    """Send up to `size` bytes of a file through a socket; how many it took. Raises as `socket.send` does."""
    sent = os.sendfile(connected.fileno(), chunk.fileno(), chunk.position, size)
    if sent == 0:
        # The file is shorter than the slice: the answer's framing is already promised and can't be kept.
        raise OSError(5, f"log file cut short under a reader: {chunk!r}")
    return sent


def send_slice_by_reading(connected: socket, chunk: FileSlice, size: int) -> int:
    """The same where files can't be sent straight."""
    chunk.check()
    data = chunk.file.pread(min(size, _PIECE_BYTES), chunk.position)
    if not data:
        raise OSError(5, f"log file cut short under a reader: {chunk!r}")
    return connected.send(data)


_PIECE_BYTES = 256 * 1024
send_slice = send_slice_by_sendfile if hasattr(os, "sendfile") else send_slice_by_reading


# --- files ------------------------------------------------------------------------------------------------------------

OPEN_FLAGS = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
"""What every file is opened with: closed in a child process, and never taken for text."""

_cursor = allocate_lock()
"""Where reads and writes have no position of their own, a descriptor's cursor is one thread's at a time."""


def _read_at(fd: int, size: int, position: int) -> bytes:
    """`os.pread` by moving the cursor."""
    with _cursor:
        os.lseek(fd, position, os.SEEK_SET)
        return os.read(fd, size)


def _write_at(fd: int, data: Buffer, position: int) -> int:
    """`os.pwrite` by moving the cursor."""
    with _cursor:
        os.lseek(fd, position, os.SEEK_SET)
        return os.write(fd, data)


pread = os.pread if hasattr(os, "pread") else _read_at
pwrite = os.pwrite if hasattr(os, "pwrite") else _write_at


def _write_joined_at(fd: int, pieces: Sequence[Buffer], position: int) -> int:
    """`os.pwritev` as one write."""
    return pwrite(fd, b"".join(pieces), position)


pwritev = os.pwritev if hasattr(os, "pwritev") else _write_joined_at


def _sync_content(fd: int) -> None:
    """`os.fdatasync` where only the whole file can be synced. On macOS that alone leaves it in the drive's memory."""
    try:
        import fcntl

        fcntl.fcntl(fd, getattr(fcntl, "F_FULLFSYNC"))  # noqa: B009
    except (ImportError, AttributeError, OSError):
        os.fsync(fd)


fdatasync = os.fdatasync if hasattr(os, "fdatasync") else _sync_content


def _sync_directory(path: str) -> None:
    """Make names in a directory survive a power loss."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | OPEN_FLAGS)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _sync_directory_if_possible(path: str) -> None:
    """The same where a directory may not be a file that can be opened: there its names are the file system's care."""
    try:
        fd = os.open(path, os.O_RDONLY | OPEN_FLAGS)
    except PermissionError:
        return
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _sync_nothing() -> None:
    """There is no call for everything here; what must last is synced file by file before."""


sync_all = os.sync if hasattr(os, "sync") else _sync_nothing
sync_directory = _sync_directory if hasattr(os, "O_DIRECTORY") else _sync_directory_if_possible


def _usage(path: str) -> tuple[int, int]:
    """Total and usable bytes of the file system that holds `path`."""
    figures = os.statvfs(path)
    return figures.f_frsize * figures.f_blocks, figures.f_frsize * figures.f_bavail


def _usage_by_shutil(path: str) -> tuple[int, int]:
    """The same on a system without `statvfs`."""
    import shutil

    figures = shutil.disk_usage(path)
    return figures.total, figures.free


usage = _usage if hasattr(os, "statvfs") else _usage_by_shutil


def _open_in_memory(name: str) -> int:
    """A descriptor of a file that has no name and lives in memory."""
    return os.memfd_create(name, os.MFD_CLOEXEC)


def _open_unnamed(name: str) -> int:
    """The same where files live on disks: one that is gone as soon as it is closed."""
    import tempfile

    fd, path = tempfile.mkstemp(prefix="pykafkad-")
    try:
        os.unlink(path)
    except PermissionError:
        # A system that lets nobody remove an open file leaves it to its folder for temporary ones.
        pass
    return fd


open_unnamed = _open_in_memory if hasattr(os, "memfd_create") else _open_unnamed


# --- limits and locks -------------------------------------------------------------------------------------------------

_USUAL_DESCRIPTORS = 2048


def descriptor_limit() -> int:
    """How many descriptors this process may have."""
    try:
        import resource
    except ImportError:
        return _USUAL_DESCRIPTORS
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def raise_descriptor_limit() -> int:
    """Let this process have as many descriptors as the system allows it; how many that is."""
    try:
        import resource
    except ImportError:
        return _USUAL_DESCRIPTORS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


_locked_here: set[tuple[int, int]] = set()
"""Files, by device and number, that this process has locked, where the system knows only which process holds a lock."""


def open_locked(path: str) -> int:
    """Open a file, made if it is missing, under a lock that lasts until it is closed (`forget_lock`) or the process
    dies. Raises BlockingIOError while anybody else has it."""
    return _open_locked(path, os.O_RDWR | os.O_CREAT)


def check_unlocked(path: str) -> None:
    """Raise BlockingIOError if anybody has the lock of a file, FileNotFoundError if it is missing."""
    fd = _open_locked(path, os.O_RDONLY)
    forget_lock(fd)
    os.close(fd)


def _open_locked(path: str, flags: int) -> int:
    if os.path.exists(path) and _identity(os.stat(path)) in _locked_here:
        # It must not even be opened: the system forgets all locks of a process on a file that it closes once.
        raise BlockingIOError(errno.EWOULDBLOCK, os.strerror(errno.EWOULDBLOCK))
    try:
        import fcntl  # noqa: F401
    except ImportError:
        fd = os.open(path, flags | os.O_RDWR | OPEN_FLAGS, 0o644)
        lock = _lock_without_fcntl
    else:
        fd = os.open(path, flags | OPEN_FLAGS, 0o644)
        lock = _flock
    try:
        lock(fd)
    except OSError:
        os.close(fd)
        raise
    if lock is _lock_without_fcntl:
        _locked_here.add(_identity(os.fstat(fd)))
    return fd


def forget_lock(fd: int) -> None:
    """The file that `open_locked` opened is about to be closed."""
    _locked_here.discard(_identity(os.fstat(fd)))


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def _flock(fd: int) -> None:
    import fcntl

    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _lock_without_fcntl(fd: int) -> None:
    try:
        if hasattr(os, "lockf"):
            os.lockf(fd, os.F_TLOCK, 0)
        else:
            msvcrt = __import__("msvcrt")
            msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
    except PermissionError as error:
        raise BlockingIOError(error.errno, error.strerror) from None
