"""Snapshots of a log directory by hard links, and directories made out of them.

A sealed segment never changes, so a snapshot of a partition is a second name for each of its files, taken after the
active segment was rolled. What is not sealed is written anew: the empty segment at the end of each log and the
checkpoints, and when everything has reached the device the marker of a clean stop. A snapshot is therefore a whole log
directory: a broker could start on it. None does, as it would append to files that the snapshot shares; `materialize`
makes a directory for that, in which the last segment is its own.

Snapshots lie beside the directory, in `<directory>.snapshots`, as Kafka refuses a log directory with foreign folders in
it."""

from __future__ import annotations

import errno
import os.path

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
    from pykafkad.disk import Disk, File

FOLDER_SUFFIX = ".snapshots"
PARTIAL_SUFFIX = ".partial"
_OLD_SUFFIX = ".old"
_RESTORING_FILE = "restoring"
# In a snapshot of several directories: which they were, named as in a server.properties.
DIRECTORIES_FILE = "directories.properties"
# A folder that only has to be removed.
_GONE_SUFFIX = ".gone"
# Files at the top of a directory that are its identity, not its state.
IDENTITY_FILES = (checkpoints.META_PROPERTIES_FILE, "bootstrap.checkpoint")
_PASSING_SUFFIXES = (DELETED_SUFFIX, swap.CLEANED_SUFFIX, swap.SWAP_SUFFIX, ".tmp")
_SEGMENT_SUFFIXES = (LOG_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX)
_NAME_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")
MAX_NAME_LENGTH = 100
# Up to this size the last segment of a partition that nobody has opened is copied; of a larger one the partition is
# opened and rolled.
_COPIED_BYTES = 256 * 1024


def name_problem(name: str) -> str | None:
    """Why a snapshot may not be called so; None if it may."""
    # A command line would take one with - in front for an option.
    if _is_name(name) and not name.startswith("-"):
        return None
    shown = name if len(name) <= MAX_NAME_LENGTH else f"{name[:MAX_NAME_LENGTH]}…"
    return f"a snapshot's name has 1 to {MAX_NAME_LENGTH} ASCII letters, digits, _ and -, with no - in front, and {shown!r} is none"


def _is_name(name: str) -> bool:
    return 0 < len(name) <= MAX_NAME_LENGTH and _NAME_CHARACTERS.issuperset(name)


def folder(path: str) -> str:
    """Where the snapshots of the directory `path` lie."""
    path = path.rstrip("/")
    # Beside `.` means beside the directory that it is.
    return (os.path.abspath(path) if os.path.basename(path) in (".", "..") else path) + FOLDER_SUFFIX


def path_of(path: str, name: str) -> str:
    """Where one of them lies."""
    return f"{folder(path)}/{name}"


def names(disk: Disk, path: str) -> list[str]:
    """The snapshots of the directory `path`, in order."""
    if not disk.is_directory(folder(path)):
        return []
    return sorted(
        name for name in disk.listdir(folder(path)) if _is_name(name) and disk.is_directory(path_of(path, name))
    )


def link_untouched(disk: Disk, source: str, target: str) -> bool:
    """Save a partition that nobody has opened since a clean start, without opening it; False if its last segment is
    large."""
    last = _last_segment(disk.listdir(source))
    if sum(disk.size(f"{source}/{last}{suffix}") for suffix in _SEGMENT_SUFFIXES) > _COPIED_BYTES:
        return False
    link_partition(disk, source, target)
    return True


def _last_segment(names: list[str]) -> str:
    """The base offset, as it stands in the files' names, of the segment that is appended to; empty without one."""
    return max((name.removesuffix(LOG_SUFFIX) for name in names if name.endswith(LOG_SUFFIX)), default="")


def mark_clean(disk: Disk, path: str, name: str, broker_epoch: int) -> None:
    """All of the snapshot has reached the device: what starts on it needs no recovery."""
    if disk.is_directory(path_of(path, name)):
        disk.write(
            f"{path_of(path, name)}/{checkpoints.CLEAN_SHUTDOWN_FILE}",
            checkpoints.encode_clean_shutdown(broker_epoch),
            sync=True,
        )


def put_away(disk: Disk, path: str, name: str) -> str | None:
    """The directory's snapshot `name`, if it has one, is none from here on: the path of a folder that only has to be
    removed."""
    return _rename_away(disk, path_of(path, name)) if disk.is_directory(path_of(path, name)) else None


def discard(disk: Disk, path: str, name: str) -> None:
    """Remove the directory's snapshot `name`, if it has one."""
    gone = put_away(disk, path, name)
    if gone is not None:
        remove(disk, gone)


def leftovers(disk: Disk, paths: list[str]) -> list[str]:
    """Folders that a death in the middle, or a way back, left beside the directories `paths`: they only have to be
    removed. The directories must be this broker's, and have no way back to finish."""
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
    """Give a folder a name that nobody else will use."""
    number = 0
    while disk.exists(f"{path}.{number}{_GONE_SUFFIX}"):
        number += 1
    disk.rename(path, f"{path}.{number}{_GONE_SUFFIX}")
    return f"{path}.{number}{_GONE_SUFFIX}"


def remove(disk: Disk, path: str) -> None:
    """Remove a snapshot's folder, or what else has the form of a log directory."""
    for name in disk.listdir(path):
        if disk.is_directory(f"{path}/{name}"):
            disk.remove_directory(f"{path}/{name}")
    disk.remove_directory(path)


def materialize(disk: Disk, source: str, target: str, *, forget_producers: bool = False) -> None:
    """Make the directory `target`, which must not be there or be empty, out of the snapshot at `source`.

    With `forget_producers` the sequence numbers of idempotent producers are not part of it: those that live on are
    ahead of them."""
    disk.make_directories(target)
    names = disk.listdir(source)
    for name in names:
        if disk.is_directory(f"{source}/{name}"):
            link_partition(disk, f"{source}/{name}", f"{target}/{name}", forget_producers=forget_producers)
    # What makes a broker's directory of it comes last, and the very last says that it is whole.
    for name in sorted(names, key=lambda name: name == checkpoints.CLEAN_SHUTDOWN_FILE):
        if name != DIRECTORIES_FILE and not disk.is_directory(f"{source}/{name}"):
            disk.write(f"{target}/{name}", disk.read(f"{source}/{name}"))


def directories_of(disk: Disk, path: str, name: str) -> dict[str, str]:
    """The settings `log.dirs` and `metadata.log.dir` of the broker whose directory `path` has the snapshot `name`, as
    far as they matter."""
    return checkpoints.decode_properties(disk.read(f"{path_of(path, name)}/{DIRECTORIES_FILE}") or b"")


def belongs_to(disk: Disk, path: str, name: str) -> bool:
    """Whether the snapshot says that it is of the very directory that is at `path` now."""
    kept, present = (
        checkpoints.decode_properties(disk.read(f"{each}/{checkpoints.META_PROPERTIES_FILE}") or b"")
        for each in (path_of(path, name), path)
    )
    return all(key in kept and kept[key] == present.get(key) for key in ("cluster.id", "directory.id"))


def has_partition(disk: Disk, path: str, name: str, topic: str, partition: int) -> bool:
    """Whether the directory's snapshot `name` holds the partition."""
    return disk.is_directory(f"{path_of(path, name)}/{topic}-{partition}")


def materialize_partition(disk: Disk, path: str, name: str, topic: str, partition: int, target: str) -> int:
    """Make the folder `target` out of one partition of the directory's snapshot `name`; its log start offset."""
    link_partition(disk, f"{path_of(path, name)}/{topic}-{partition}", target, forget_producers=True)
    starts = checkpoints.decode_offsets(disk.read(f"{path_of(path, name)}/{checkpoints.LOG_START_FILE}"))
    return starts.get((topic, partition), 0)


def begin_restore(disk: Disk, paths: list[str], name: str) -> None:
    """Note that the directories `paths` become the snapshot `name`, and make them so; what was there is one of the
    `leftovers`.

    Raises StorageFailure, and StartFailure when a broker uses one.
    """
    locks = _lock(disk, paths)
    try:
        # What an earlier way back could not rename any more.
        leftovers(disk, paths)
        disk.replace(f"{folder(paths[0])}/{_RESTORING_FILE}", name.encode())
        _restore(disk, paths, name)
    finally:
        _unlock(locks)


def finish_restore(disk: Disk, paths: list[str]) -> None:
    """Bring to its end what `begin_restore` noted; nothing without such a note. A kill in between costs nothing but a
    repetition.

    The first of `paths` keeps the note, for all of them.
    """
    if restoring(disk, paths[0]):
        locks = _lock(disk, paths)
        try:
            # Looked at again: a broker that had the locks may have done it.
            name = restoring(disk, paths[0])
            if name:
                _restore(disk, paths, name)
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
    # A power loss must not bring it back under what is written from here on.
    disk.sync_directory(folder(paths[0]))
    for path in paths:
        _rename_away(disk, _old(path))


def restoring(disk: Disk, path: str) -> str:
    """The snapshot that a way back noted beside `path` leads to; empty without one."""
    return (disk.read(f"{folder(path)}/{_RESTORING_FILE}") or b"").decode("utf-8", "replace")


def _old(path: str) -> str:
    return f"{folder(path)}/{_OLD_SUFFIX}"


def _put_aside(disk: Disk, path: str) -> None:
    """Empty a directory. Its files are kept in one beside it until everything is in the place of them."""
    old = _old(path)
    if disk.is_directory(old):
        # An earlier try has put them aside already: what is in the directory now is its own half of the new ones.
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
    """Give every file of a partition a second name in the folder `target`; the last segment, which is small or empty,
    is copied: what is appended to must be each folder's own."""
    disk.make_directories(target)
    names = disk.listdir(source)
    own = {_last_segment(names) + suffix for suffix in _SEGMENT_SUFFIXES}
    for name in names:
        if name.endswith(_PASSING_SUFFIXES):
            continue
        if name.endswith(SNAPSHOT_SUFFIX) and forget_producers:
            states = ProducerStates.from_snapshot(disk.read(f"{source}/{name}") or b"") or ProducerStates()
            disk.write(f"{target}/{name}", states.without_sequences().to_snapshot())
        elif name in own:
            disk.write(f"{target}/{name}", disk.read(f"{source}/{name}"))
        else:
            _link(disk, f"{source}/{name}", f"{target}/{name}")


def _link(disk: Disk, source: str, target: str) -> None:
    try:
        disk.link(source, target)
    except StorageFailure as failure:
        if getattr(failure.reason, "errno", None) != errno.EXDEV:
            raise
        raise StorageFailure(
            "link",
            source,
            f"{os.path.dirname(target)} lies on another file system; a snapshot shares its files, so both must lie on one",
        ) from None
