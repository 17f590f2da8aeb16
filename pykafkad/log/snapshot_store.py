"""Snapshots of a log directory, made of hard links, and directories made from snapshots.

A sealed segment never changes, so a snapshot of a partition is a hard link to each of its files, made after the active
segment was rolled. The empty last segment and the checkpoints are copied. When everything has reached the device, the
marker of a clean stop is written. So a snapshot is a whole log directory, and a broker could start on it. But it would
append to files that the snapshot shares. `materialize` makes a directory for a broker, whose last segments are copies.

Snapshots are stored beside the directory, in `<directory>.snapshots`, because Kafka refuses a log directory with
unknown folders in it."""

from __future__ import annotations

import errno
import os
from collections import namedtuple
from contextlib import closing

from pykafkad.errors import StorageFailure
from pykafkad.log import checkpoints, swap
from pykafkad.log.file_names import (
    DELETED_SUFFIX,
    INDEX_SUFFIX,
    LOG_SUFFIX,
    SNAPSHOT_SUFFIX,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
)
from pykafkad.log.producers import ProducerStates

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from pykafkad.disk import Disk, File

FOLDER_SUFFIX = ".snapshots"
PARTIAL_SUFFIX = ".partial"
_OLD_SUFFIX = ".old"
_RESTORING_FILE = "restoring"
# In a snapshot of several directories: their paths, as settings of a server.properties.
DIRECTORIES_FILE = "directories.properties"
# The suffix of a folder that waits for its removal.
_GONE_SUFFIX = ".gone"
# Files at the top of a directory that identify it; they are not part of its state.
IDENTITY_FILES = (checkpoints.META_PROPERTIES_FILE, "bootstrap.checkpoint")
_TEMPORARY_SUFFIX = ".tmp"
# That of a snapshot of the metadata which is being fetched.
_PART_SUFFIX = ".part"
_TEMPORARY_SUFFIXES = (DELETED_SUFFIX, swap.CLEANED_SUFFIX, swap.SWAP_SUFFIX, _TEMPORARY_SUFFIX, _PART_SUFFIX)
_SEGMENT_SUFFIXES = (LOG_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX)
_COPIED_AT_ONCE_BYTES = 4 * 1024 * 1024
_NAME_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")
MAX_NAME_LENGTH = 100
# The last segment of an unopened partition is copied up to this size. With a larger one the partition is opened and
# rolled.
_COPIED_BYTES = 256 * 1024


PreparedRewind = namedtuple("PreparedRewind", ("directory", "log", "path", "log_start_offset", "fresh"))
PreparedRewind.__doc__ = """A folder at `path` that is to take the place of that of `log`. The file at `fresh` says that
the checkpoints do not count for it."""


def name_problem(name: str) -> str | None:
    """What is wrong with a snapshot's name; None for a valid name."""
    # A command line would parse a name with a leading - as an option.
    if _is_name(name) and not name.startswith("-"):
        return None
    shown = name if len(name) <= MAX_NAME_LENGTH else f"{name[:MAX_NAME_LENGTH]}…"
    rule = f"1 to {MAX_NAME_LENGTH} ASCII letters, digits, _ and -, with no - in front"
    return f"a snapshot's name has {rule}, and {shown!r} is none"


def _is_name(name: str) -> bool:
    return 0 < len(name) <= MAX_NAME_LENGTH and _NAME_CHARACTERS.issuperset(name)


def folder(path: str) -> str:
    """The folder of the snapshots of the directory `path`."""
    path = path.rstrip("/")
    # The folder lies beside the directory that `.` stands for.
    return (os.path.abspath(path) if os.path.basename(path) in (".", "..") else path) + FOLDER_SUFFIX


def path_of(path: str, name: str) -> str:
    """The folder of the snapshot `name` of the directory `path`."""
    return f"{folder(path)}/{name}"


def names(disk: Disk, path: str) -> list[str]:
    """The names of the snapshots of the directory `path`, sorted."""
    if not disk.is_directory(folder(path)):
        return []
    return sorted(
        name for name in disk.listdir(folder(path)) if _is_name(name) and disk.is_directory(path_of(path, name))
    )


def unknown(name: str, known: list[str]) -> str:
    """What is said of a snapshot that is none of the `known` ones."""
    return f"there is no snapshot {name}; there are: {', '.join(known) or 'none'}"


def link_untouched(disk: Disk, source: str, target: str) -> bool:
    """Link a partition that is unopened since a clean start, without opening it; False if its last segment is large."""
    last = _last_segment(disk.listdir(source))
    if sum(disk.size(f"{source}/{last}{suffix}") for suffix in _SEGMENT_SUFFIXES) > _COPIED_BYTES:
        return False
    link_partition(disk, source, target)
    return True


def _last_segment(names: list[str]) -> str:
    """The base offset of the last segment, as in the files' names; empty without a segment."""
    return max((name.removesuffix(LOG_SUFFIX) for name in names if name.endswith(LOG_SUFFIX)), default="")


def prepare_mark(disk: Disk, path: str, name: str, broker_epoch: int) -> None:
    """Write and sync the marker of a clean stop under a temporary name, once the whole snapshot is on the device."""
    if disk.is_directory(path_of(path, name)):
        disk.write(_prepared_mark(path, name), checkpoints.encode_clean_shutdown(broker_epoch), sync=True)


def mark_clean(disk: Disk, path: str, name: str) -> None:
    """Mark a snapshot clean by what `prepare_mark` has written: a broker that starts on it needs no recovery.

    Nothing is synced. A marker that a power loss takes away costs a recovery and nothing else."""
    if disk.exists(_prepared_mark(path, name)):
        disk.rename(_prepared_mark(path, name), f"{path_of(path, name)}/{checkpoints.CLEAN_SHUTDOWN_FILE}")


def _prepared_mark(path: str, name: str) -> str:
    return f"{path_of(path, name)}/{checkpoints.CLEAN_SHUTDOWN_FILE}{_TEMPORARY_SUFFIX}"


def put_away(disk: Disk, path: str, name: str) -> str | None:
    """Rename the folder of the snapshot `name`, so that it is a snapshot no more; its new path, which can be removed.

    None if the directory has no such snapshot."""
    return _rename_away(disk, path_of(path, name)) if disk.is_directory(path_of(path, name)) else None


def discard(disk: Disk, path: str, name: str) -> None:
    """Remove the directory's snapshot `name`, if there is one."""
    gone = put_away(disk, path, name)
    if gone is not None:
        remove(disk, gone)


def leftovers(disk: Disk, paths: list[str]) -> list[str]:
    """Folders beside the directories `paths` that an interrupted snapshot or a restore left; they can be removed.

    The caller must hold the locks of the directories, and no restore may be unfinished."""
    found = []
    for path in paths:
        for name in disk.listdir(folder(path)) if disk.is_directory(folder(path)) else ():
            each = f"{folder(path)}/{name}"
            if name.endswith(_GONE_SUFFIX):
                found.append(each)
            elif name.endswith((PARTIAL_SUFFIX, _OLD_SUFFIX)):
                found.append(_rename_away(disk, each))
            elif name == _RESTORING_FILE + ".tmp":
                disk.unlink(each)
    return found


def _rename_away(disk: Disk, path: str) -> str:
    """Rename a folder to a unique name with `_GONE_SUFFIX`."""
    number = 0
    while disk.exists(f"{path}.{number}{_GONE_SUFFIX}"):
        number += 1
    disk.rename(path, f"{path}.{number}{_GONE_SUFFIX}")
    return f"{path}.{number}{_GONE_SUFFIX}"


def remove(disk: Disk, path: str) -> None:
    """Remove a snapshot's folder, or any folder with the form of a log directory."""
    for name in disk.listdir(path):
        if disk.is_directory(f"{path}/{name}"):
            disk.remove_directory(f"{path}/{name}")
    disk.remove_directory(path)


def remove_all(disk: Disk, paths: Iterable[str | None]) -> None:
    """Remove what `put_away` and `leftovers` have returned."""
    for path in paths:
        if path is not None:
            remove(disk, path)


def save_closed(disk: Disk, paths: list[str], name: str) -> None:
    """Make the snapshot `name` of directories that nobody uses. The first of them, which lists it, has it last.

    Raises StorageFailure, and StartFailure when a broker uses one of them; then no directory has it."""
    locks = _lock(disk, paths)
    try:
        for path in paths:
            partial = path_of(path, name) + PARTIAL_SUFFIX
            if disk.is_directory(partial):
                remove(disk, partial)
            materialize(disk, path, partial)
        disk.sync_all()
        for path in reversed(paths):
            discard(disk, path, name)
            disk.rename(path_of(path, name) + PARTIAL_SUFFIX, path_of(path, name))
            disk.sync_directory(folder(path))
    except StorageFailure:
        _discard_everywhere(disk, paths, name)
        raise
    finally:
        _unlock(locks)


def _discard_everywhere(disk: Disk, paths: list[str], name: str) -> None:
    for path in paths:
        try:
            discard(disk, path, name)
            if disk.is_directory(path_of(path, name) + PARTIAL_SUFFIX):
                remove(disk, path_of(path, name) + PARTIAL_SUFFIX)
        except StorageFailure:
            # The next start removes it.
            pass


def materialize(disk: Disk, source: str, target: str, *, forget_producers: bool = False) -> None:
    """Make the directory `target`, which must be missing or empty, from the snapshot at `source`.

    With `forget_producers` the sequence numbers of idempotent producers are left out, because producers that live on
    are ahead of them."""
    disk.make_directories(target)
    names = disk.listdir(source)
    for name in names:
        if disk.is_directory(f"{source}/{name}"):
            link_partition(disk, f"{source}/{name}", f"{target}/{name}", forget_producers=forget_producers)
    # The files at the top come after the partitions, and the marker of a clean stop comes last.
    for name in sorted(names, key=lambda name: name == checkpoints.CLEAN_SHUTDOWN_FILE):
        if (
            name not in (DIRECTORIES_FILE, checkpoints.LOCK_FILE)
            and not name.endswith(_TEMPORARY_SUFFIX)
            and not disk.is_directory(f"{source}/{name}")
        ):
            _copy(disk, f"{source}/{name}", f"{target}/{name}")


def directories_of(disk: Disk, path: str, name: str) -> dict[str, str]:
    """The settings `log.dirs` and `metadata.log.dir`, as a snapshot of several directories keeps them."""
    return checkpoints.decode_properties(disk.read(f"{path_of(path, name)}/{DIRECTORIES_FILE}") or b"")


def belongs_to(disk: Disk, path: str, name: str) -> bool:
    """Whether the snapshot was made of the directory that is at `path` now, by its cluster and directory ids."""
    kept, present = (
        checkpoints.decode_properties(disk.read(f"{each}/{checkpoints.META_PROPERTIES_FILE}") or b"")
        for each in (path_of(path, name), path)
    )
    return all(key in kept and kept[key] == present.get(key) for key in ("cluster.id", "directory.id"))


def has_partition(disk: Disk, path: str, name: str, topic: str, partition: int) -> bool:
    """Whether the directory's snapshot `name` holds the partition."""
    return disk.is_directory(f"{path_of(path, name)}/{topic}-{partition}")


def materialize_partition(disk: Disk, path: str, name: str, topic: str, partition: int, target: str) -> int:
    """Make the folder `target` from one partition of the snapshot `name`; returns its log start offset."""
    link_partition(disk, f"{path_of(path, name)}/{topic}-{partition}", target, forget_producers=True)
    starts = checkpoints.decode_offsets(disk.read(f"{path_of(path, name)}/{checkpoints.LOG_START_FILE}"))
    return starts.get((topic, partition), 0)


def begin_restore(disk: Disk, paths: list[str], name: str) -> None:
    """Restore the directories `paths` to the snapshot `name`. Their old content becomes one of the `leftovers`.

    A note beside the first directory says that the restore has begun. Raises StorageFailure, and StartFailure when a
    broker uses one of the directories.
    """
    locks = _lock(disk, paths)
    try:
        # This renames what an earlier restore could not rename.
        leftovers(disk, paths)
        disk.replace(f"{folder(paths[0])}/{_RESTORING_FILE}", name.encode())
        _restore(disk, paths, name)
    finally:
        _unlock(locks)


def finish_restore(disk: Disk, paths: list[str]) -> None:
    """Finish a restore that `begin_restore` noted beside the first of `paths`; nothing without such a note.

    After a kill in between, the next call repeats it.
    """
    if restoring(disk, paths[0]):
        locks = _lock(disk, paths)
        try:
            # The note is read again, because the broker that held the locks may have finished the restore.
            name = restoring(disk, paths[0])
            if name:
                _restore(disk, paths, name)
        finally:
            _unlock(locks)


def settle(disk: Disk, paths: list[str]) -> list[str]:
    """Finish a restore that has begun; the `leftovers`. Nobody may use the directories."""
    if not any(disk.is_directory(folder(path)) for path in paths):
        return []
    finish_restore(disk, paths)
    locks = _lock(disk, [path for path in paths if disk.is_directory(path)])
    try:
        return leftovers(disk, paths)
    finally:
        _unlock(locks)


def _lock(disk: Disk, paths: list[str]) -> list[File]:
    return [disk.lock(f"{path}/{checkpoints.LOCK_FILE}") for path in paths]


def _unlock(locks: list[File]) -> None:
    for lock in locks:
        lock.close()


def _restore(disk: Disk, paths: list[str], name: str) -> None:
    for path in paths:
        if not disk.is_directory(path_of(path, name)):
            raise StorageFailure(
                "restore", path, f"the way back to the snapshot {name} has begun, and {path_of(path, name)} is missing"
            )
    for path in paths:
        _put_aside(disk, path)
        materialize(disk, path_of(path, name), path, forget_producers=True)
    disk.sync_all()
    disk.unlink(f"{folder(paths[0])}/{_RESTORING_FILE}")
    # A power loss must not bring the note back, or the next start would undo what is written from here on.
    disk.sync_directory(folder(paths[0]))
    for path in paths:
        _rename_away(disk, _old(path))


def restoring(disk: Disk, path: str) -> str:
    """The name of the snapshot that an unfinished restore, noted beside `path`, leads to; empty without one."""
    return (disk.read(f"{folder(path)}/{_RESTORING_FILE}") or b"").decode("utf-8", "replace")


def _old(path: str) -> str:
    return f"{folder(path)}/{_OLD_SUFFIX}"


def _put_aside(disk: Disk, path: str) -> None:
    """Empty a directory. Its files are kept in a folder beside it until the restore is complete."""
    old = _old(path)
    if disk.is_directory(old):
        # An earlier try has moved the old files already. The directory holds its unfinished copy of the snapshot.
        for each in disk.listdir(path):
            if each != checkpoints.LOCK_FILE:
                _remove_entry(disk, f"{path}/{each}")
        return
    disk.make_directories(old + PARTIAL_SUFFIX)
    for each in disk.listdir(path):
        if each != checkpoints.LOCK_FILE:
            disk.rename(f"{path}/{each}", f"{old}{PARTIAL_SUFFIX}/{each}")
    disk.rename(old + PARTIAL_SUFFIX, old)


def _remove_entry(disk: Disk, path: str) -> None:
    if disk.is_directory(path):
        disk.remove_directory(path)
    else:
        disk.unlink(path)


def link_partition(disk: Disk, source: str, target: str, *, forget_producers: bool = False) -> None:
    """Hard-link every file of a partition into the folder `target`.

    The last segment, which is small or empty, is copied: appends to it must not change the other folder."""
    disk.make_directories(target)
    names = disk.listdir(source)
    own = {_last_segment(names) + suffix for suffix in _SEGMENT_SUFFIXES}
    for name in names:
        if name.endswith(_TEMPORARY_SUFFIXES):
            continue
        if name.endswith(SNAPSHOT_SUFFIX) and forget_producers:
            states = ProducerStates.from_snapshot(disk.read(f"{source}/{name}") or b"") or ProducerStates()
            disk.write(f"{target}/{name}", states.without_sequences().to_snapshot())
        elif name in own:
            _copy(disk, f"{source}/{name}", f"{target}/{name}")
        else:
            _link(disk, f"{source}/{name}", f"{target}/{name}")


def _copy(disk: Disk, source: str, target: str) -> None:
    if not disk.exists(source):
        raise StorageFailure("read", source, OSError(errno.ENOENT, os.strerror(errno.ENOENT)))
    size = disk.size(source)
    if size <= _COPIED_AT_ONCE_BYTES:
        disk.write(target, disk.read(source) or b"")
        return
    # The last segment of a directory that was closed may be large.
    with closing(disk.open(source)) as read, closing(disk.open(target, create=True)) as written:
        for position in range(0, size, _COPIED_AT_ONCE_BYTES):
            written.pwrite(read.pread(min(_COPIED_AT_ONCE_BYTES, size - position), position), position)


def _link(disk: Disk, source: str, target: str) -> None:
    try:
        disk.link(source, target)
    except StorageFailure as failure:
        if getattr(failure.reason, "errno", None) != errno.EXDEV:
            raise
        raise StorageFailure(
            "link",
            source,
            f"{os.path.dirname(target)} lies on another file system; a snapshot shares its files, "
            "so both must lie on one",
        ) from None
