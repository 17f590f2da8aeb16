"""The stand-ins for what only Linux has, in a process from which it was taken (`tests/portable`)."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pykafkad import platform_calls

PROJECT = Path(__file__).parent.parent

CHECK = """
import os, select, sys
from pykafkad import platform_calls as calls
from pykafkad.clock import Clock
from pykafkad.disk import Disk
from pykafkad.errors import StartFailure
from pykafkad.memory_disk import MemoryDisk

assert not hasattr(select, "epoll") and not hasattr(os, "sendfile")
assert type(calls.new_poller()).__name__ == "PortablePoller" and type(calls.new_waker()).__name__ == "SocketWaker"
assert calls.send_slice is calls.send_slice_by_reading
disk, folder = Disk(), sys.argv[1]
lock = disk.lock(folder + "/.lock")
try:
    Disk().lock(folder + "/.lock")
except StartFailure:
    pass
else:
    raise AssertionError("locked twice")
lock.close()
disk.lock(folder + "/.lock").close()
file = disk.open(folder + "/file", create=True)
file.pwritev([b"ab", memoryview(b"cd")], 3)
file.sync()
assert file.pread(10, 3) == b"abcd"
disk.replace(folder + "/small", b"x")
memory = MemoryDisk(1 << 20, Clock())
each = memory.open("/m", create=True)
each.pwrite(b"kept", 0)
assert each.pread(4, 0) == b"kept" and not os.listdir(os.environ["TMPDIR"])
"""


def run(code: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Python without what only Linux has."""
    path = f"{PROJECT / 'tests' / 'portable'}{os.pathsep}{PROJECT}"
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env={**os.environ, "PYTHONPATH": path, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_files_locks_and_descriptors_work_without_what_only_linux_has(tmp_path: Path) -> None:
    """Reads and writes by position, syncs, locks, files in memory."""
    (tmp_path / "tmp").mkdir()
    (tmp_path / "data").mkdir()
    done = run(CHECK, str(tmp_path / "data"), TMPDIR=str(tmp_path / "tmp"))
    assert done.returncode == 0, done.stderr


def test_another_process_is_kept_out_by_a_lock_without_fcntl(tmp_path: Path) -> None:
    """And let in when the first has died."""
    locking = "import sys; from pykafkad.disk import Disk; kept = Disk().lock(sys.argv[1]); print('has it', flush=True)"
    path = str(tmp_path / ".lock")
    environment = {**os.environ, "PYTHONPATH": f"{PROJECT / 'tests' / 'portable'}{os.pathsep}{PROJECT}"}
    with subprocess.Popen(
        [sys.executable, "-c", locking + "; sys.stdin.read()", path],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as first:
        assert first.stdout is not None and first.stdout.readline() == b"has it\n"
        second = run(locking, path)
        assert second.returncode and "another broker uses the directory" in second.stderr
        first.kill()
        first.wait()
    assert run(locking, path).returncode == 0


def test_reads_and_writes_without_a_position_of_their_own(tmp_path: Path) -> None:
    """Windows has neither pread nor pwrite: the cursor is moved, by one thread at a time."""
    fd = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)
    try:
        assert platform_calls._write_at(fd, b"abcdef", 2) == 6
        assert platform_calls._read_at(fd, 3, 4) == b"cde"
        assert platform_calls._write_joined_at(fd, [b"x", b"y"], 2) == 2
        assert os.pread(fd, 10, 0) == b"\0\0xycdef"
        platform_calls._sync_content(fd)
    finally:
        os.close(fd)


def test_directories_usage_and_limits(tmp_path: Path) -> None:
    """The stand-ins say what the calls say."""
    platform_calls._sync_directory_if_possible(str(tmp_path))
    total, free = platform_calls._usage_by_shutil(str(tmp_path))
    assert total == platform_calls._usage(str(tmp_path))[0] and 0 <= free <= total
    assert platform_calls.descriptor_limit() <= platform_calls.raise_descriptor_limit()


def test_a_locked_file_is_seen_as_locked(tmp_path: Path) -> None:
    """`fsck` looks at a directory without taking its lock."""
    path = str(tmp_path / ".lock")
    with pytest.raises(FileNotFoundError):
        platform_calls.check_unlocked(path)
    fd = platform_calls.open_locked(path)
    with pytest.raises(BlockingIOError):
        platform_calls.check_unlocked(path)
    platform_calls.forget_lock(fd)
    os.close(fd)
    platform_calls.check_unlocked(path)


def test_a_wake_after_the_close_does_nothing():
    """A job beside the loop may end when the loop is gone."""
    waker = platform_calls.new_waker()
    waker.close()
    waker.wake()
