"""The real disk: its guarantees, and failures that name operation, path and reason."""

from __future__ import annotations

import errno
import os
import resource

import pytest

from pykafkad.disk import SPARE_DESCRIPTORS, Disk
from pykafkad.errors import ConfigError, StorageFailure


@pytest.fixture
def disk():
    return Disk()


def test_files_are_read_and_written_by_position(disk, tmp_path):
    file = disk.open(str(tmp_path / "f"), create=True)
    file.pwrite(b"hello", 0)
    file.pwritev([b" wor", memoryview(b"ld")], 5)
    assert (file.pread(5, 6), file.pread(100, 8), file.size()) == (b"world", b"rld", 11)
    file.truncate(4)
    file.sync()
    assert file.pread(100, 0) == b"hell"
    file.close()
    file.close()


def test_a_file_is_closed_with_its_last_reference(disk, tmp_path):
    file = disk.open(str(tmp_path / "f"), create=True)
    fd = file.fileno()
    os.fstat(fd)
    del file
    with pytest.raises(OSError):
        os.fstat(fd)


def test_a_partial_write_is_a_failure(disk, tmp_path):
    """The operating system may write a part of the data. The failure tells the caller to truncate the file."""
    file = disk.open(str(tmp_path / "f"), create=True)
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    import signal

    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, old[1]))
    try:
        for write in (lambda: file.pwrite(b"x" * 80, 60), lambda: file.pwritev([b"x" * 50, b"y" * 60], 0)):
            with pytest.raises(StorageFailure, match=f"write {tmp_path}/f: File too large"):
                write()
        file.truncate(0)
        file.pwrite(b"y" * 100, 0)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
        signal.signal(signal.SIGXFSZ, before)
    assert file.size() == 100


def test_replacing_a_file_leaves_no_temporary_file(disk, tmp_path):
    path = str(tmp_path / "checkpoint")
    for content in (b"one", b"two"):
        disk.replace(path, content)
        assert disk.read(path) == content
    assert os.listdir(tmp_path) == ["checkpoint"]


def test_missing_files_are_failures(disk, tmp_path):
    path = str(tmp_path / "none")
    assert (disk.read(path), disk.read_end(path, 5), disk.size(path), disk.modified_ms(path), disk.exists(path)) == (
        None,
        b"",
        0,
        0,
        False,
    )
    disk.unlink(path)
    for attempt in (
        lambda: disk.open(path),
        lambda: disk.listdir(path),
        lambda: disk.rename(path, path + "2"),
        lambda: disk.sync(path),
        lambda: disk.sync_directory(path),
        lambda: disk.remove_directory(path),
        lambda: disk.usage(path),
        lambda: disk.write(path + "/deep", b""),
        lambda: disk.replace(path + "/deep", b""),
    ):
        with pytest.raises(StorageFailure, match="none"):
            attempt()


def test_small_files_and_directories_are_made_and_removed(disk, tmp_path):
    deep = str(tmp_path / "a" / "b")
    disk.make_directories(deep)
    disk.make_directories(deep)
    disk.write(f"{deep}/f", b"0123456789", sync=True)
    disk.sync(f"{deep}/f")
    assert disk.read_end(f"{deep}/f", 3) == b"789"
    assert disk.read_end(f"{deep}/f", 30) == b"0123456789"
    assert (disk.size(f"{deep}/f"), disk.modified_ms(f"{deep}/f") > 10**12) == (10, True)
    os.symlink(deep, tmp_path / "link")
    assert (disk.is_directory(deep), disk.is_directory(str(tmp_path / "link"))) == (True, False)
    total, usable = disk.usage(deep)
    assert 0 < usable <= total
    disk.remove_directory(deep)
    assert disk.listdir(str(tmp_path / "a")) == []
    with pytest.raises(StorageFailure):
        disk.remove_directory(str(tmp_path))


def test_a_failure_names_operation_path_and_reason_once(disk, tmp_path):
    """The text has no error number and no second path. It names a file that is in the way of a directory."""
    (tmp_path / "file").write_bytes(b"")
    for path, text in (
        ("file", f"create directory {tmp_path}/file: {tmp_path}/file is not a directory"),
        ("file/a/b", f"create directory {tmp_path}/file/a/b: {tmp_path}/file is not a directory"),
    ):
        with pytest.raises(StorageFailure) as caught:
            disk.make_directories(str(tmp_path / path))
        assert str(caught.value) == text
    with pytest.raises(StorageFailure) as caught:
        disk.open(str(tmp_path / "none"))
    assert str(caught.value) == f"open {tmp_path}/none: No such file or directory"
    with pytest.raises(StorageFailure) as caught:
        disk.make_directories("/proc/none/such")
    assert str(caught.value) == "create directory /proc/none/such: No such file or directory"


def test_a_lock_is_held_until_it_is_closed(disk, tmp_path):
    path = str(tmp_path / ".lock")
    lock = disk.lock(path)
    with pytest.raises(ConfigError, match=f"another broker uses the directory {tmp_path}"):
        disk.lock(path)
    lock.close()
    disk.lock(path).close()


def test_the_limit_of_open_files_is_raised_to_the_hard_limit(disk):
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(512, before[1]), before[1]))
    try:
        assert disk.allow_many_files() == resource.getrlimit(resource.RLIMIT_NOFILE)[0] == before[1]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_some_descriptors_are_kept_free(disk, tmp_path, descriptors_at_rest):
    """A file that is opened for a moment finds a descriptor: a small file, a directory, the next module."""
    path = str(tmp_path / "file")
    disk.write(path, b"content")
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = [disk.open(path)]
    resource.setrlimit(resource.RLIMIT_NOFILE, (files[0].fileno() + SPARE_DESCRIPTORS + 5, before[1]))
    try:
        with pytest.raises(StorageFailure, match="Too many open files") as caught:
            files += [disk.open(path) for _ in range(10)]
        assert caught.value.is_passing and not caught.value.copy().is_passing
        assert disk.read(path) == b"content"
        disk.replace(path, b"new")
        moments = [open(path, "rb") for _ in range(SPARE_DESCRIPTORS - 1)]  # noqa: SIM115  # closed below, all at once
        for each in moments:
            each.close()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    del files[:]
    assert not StorageFailure("open", path, OSError(errno.ENOSPC, "full")).is_passing
