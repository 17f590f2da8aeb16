"""Snapshots of a log directory by hard links, and directories made out of them.

A sealed segment never changes, so a snapshot of a partition is a second name for each of its files, taken after the active
segment was rolled. What is not sealed is written anew: the empty segment at the end of each log and the checkpoints, and when
everything has reached the device the marker of a clean stop. A snapshot is therefore a whole log directory: a broker could start on
it. None does, as it would append to files that the snapshot shares; `materialize` makes a directory for that, in which the last
segment is its own.

Snapshots lie beside the directory, in `<directory>.snapshots`, as Kafka refuses a log directory with foreign folders in it.
"""

from __future__ import annotations

from pykafkad.errors import StorageFailure
from pykafkad.log import checkpoints, swap
from pykafkad.log.producers import ProducerStates
from pykafkad.log.segment import DELETED_SUFFIX, INDEX_SUFFIX, LOG_SUFFIX, SNAPSHOT_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.log.directory import LogDirectory

FOLDER_SUFFIX = ".snapshots"
_PARTIAL_SUFFIX = ".partial"
_OLD_SUFFIX = ".old"
_RESTORING_FILE = "restoring"
# Files at the top of a directory that are its identity, not its state.
_IDENTITY_FILES = (checkpoints.META_PROPERTIES_FILE, "bootstrap.checkpoint")
_PASSING_SUFFIXES = (DELETED_SUFFIX, swap.CLEANED_SUFFIX, swap.SWAP_SUFFIX, ".tmp")
_SEGMENT_SUFFIXES = (LOG_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX)
_NAME_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")
MAX_NAME_LENGTH = 100
# Up to this size the last segment of a partition that nobody has opened is copied; of a larger one the partition is opened and rolled.
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
    return path.rstrip("/") + FOLDER_SUFFIX


def path_of(path: str, name: str) -> str:
    """Where one of them lies."""
    return f"{folder(path)}/{name}"


def names(disk, path: str) -> list[str]:
    """The snapshots of the directory `path`, in order."""
    if not disk.is_directory(folder(path)):
        return []
    return sorted(name for name in disk.listdir(folder(path)) if _is_name(name) and disk.is_directory(path_of(path, name)))


def save(directory: LogDirectory, name: str) -> None:
    """Make the snapshot `name` of every partition as it is now. Rolls what has an active segment with records.

    Nothing is synced: until `mark_clean` the snapshot is like a directory after a kill. Raises StorageFailure, also for a partition
    that is out of service; what was begun is removed by the next try.
    """
    disk = directory.disk
    partial = path_of(directory.path, name) + _PARTIAL_SUFFIX
    disk.make_directories(folder(directory.path))
    if disk.is_directory(partial):
        remove(disk, partial)
    disk.make_directories(partial)
    synced, ends, starts = {}, {}, {}
    for key, log in directory.logs.items():
        if log.offline is not None:
            raise StorageFailure("save", log.directory, f"the partition is out of service: {log.offline}")
        target = f"{partial}/{log.topic}-{log.partition}"
        if not log.is_loaded and directory.clean and _save_untouched(disk, log.directory, target):
            synced[key], starts[key], ends[key] = directory.checkpointed(key)
            continue
        sealed = log.segments[-1]
        log.roll(directory.clock.now_ms())
        log.write_epochs()
        _link(disk, log.directory, target)
        log.rest(sealed)
        synced[key], starts[key], ends[key] = log.recovery_point, log.log_start_offset, log.end_offset
    files = {each: disk.read(f"{directory.path}/{each}") for each in _IDENTITY_FILES}
    files[checkpoints.RECOVERY_POINT_FILE] = checkpoints.encode_offsets(synced)
    files[checkpoints.HIGH_WATERMARK_FILE] = checkpoints.encode_offsets(ends)
    files[checkpoints.LOG_START_FILE] = checkpoints.encode_offsets({key: offset for key, offset in starts.items() if offset})
    for each, content in files.items():
        if content is not None:
            disk.write(f"{partial}/{each}", content)
    disk.rename(partial, path_of(directory.path, name))


def _save_untouched(disk, source: str, target: str) -> bool:
    """Save a partition that nobody has opened since a clean start, without opening it; False if its last segment is large."""
    last = _last_segment(disk.listdir(source))
    if sum(disk.size(f"{source}/{last}{suffix}") for suffix in _SEGMENT_SUFFIXES) > _COPIED_BYTES:
        return False
    _link(disk, source, target)
    return True


def _last_segment(names: list[str]) -> str:
    """The base offset, as it stands in the files' names, of the segment that is appended to; empty without one."""
    return max((name.removesuffix(LOG_SUFFIX) for name in names if name.endswith(LOG_SUFFIX)), default="")


def mark_clean(disk, path: str, name: str, broker_epoch: int) -> None:
    """All of the snapshot has reached the device: what starts on it needs no recovery."""
    if disk.is_directory(path_of(path, name)):
        disk.write(f"{path_of(path, name)}/{checkpoints.CLEAN_SHUTDOWN_FILE}", checkpoints.encode_clean_shutdown(broker_epoch), sync=True)


def remove(disk, path: str) -> None:
    """Remove a snapshot's folder, or what else has the form of a log directory."""
    for name in disk.listdir(path):
        if disk.is_directory(f"{path}/{name}"):
            disk.remove_directory(f"{path}/{name}")
    disk.remove_directory(path)


def materialize(disk, source: str, target: str, *, forget_producers: bool = False) -> None:
    """Make the directory `target`, which must not be there or be empty, out of the snapshot at `source`.

    With `forget_producers` the sequence numbers of idempotent producers are not part of it: those that live on are ahead of them.
    """
    disk.make_directories(target)
    for name in disk.listdir(source):
        if disk.is_directory(f"{source}/{name}"):
            _link(disk, f"{source}/{name}", f"{target}/{name}", forget_producers=forget_producers)
        else:
            disk.write(f"{target}/{name}", disk.read(f"{source}/{name}"))


def has_partition(disk, path: str, name: str, topic: str, partition: int) -> bool:
    """Whether the directory's snapshot `name` holds the partition."""
    return disk.is_directory(f"{path_of(path, name)}/{topic}-{partition}")


def materialize_partition(disk, path: str, name: str, topic: str, partition: int, target: str) -> int:
    """Make the folder `target` out of one partition of the directory's snapshot `name`; its log start offset."""
    _link(disk, f"{path_of(path, name)}/{topic}-{partition}", target, forget_producers=True)
    starts = checkpoints.decode_offsets(disk.read(f"{path_of(path, name)}/{checkpoints.LOG_START_FILE}"))
    return starts.get((topic, partition), 0)


def begin_restore(disk, paths: list[str], name: str) -> None:
    """Note that the directories `paths`, which nobody uses, become the snapshot `name`, and make them so."""
    for path in paths:
        # What an earlier way back could not remove any more.
        if disk.is_directory(_old(path)):
            remove(disk, _old(path))
    disk.replace(f"{folder(paths[0])}/{_RESTORING_FILE}", name.encode())
    finish_restore(disk, paths)


def finish_restore(disk, paths: list[str]) -> None:
    """Bring to its end what `begin_restore` noted; nothing without such a note. A kill in between costs nothing but a repetition.

    The first of `paths` keeps the note, for all of them.
    """
    name = restoring(disk, paths[0])
    if not name:
        return
    for path in paths:
        _put_aside(disk, path)
        materialize(disk, path_of(path, name), path, forget_producers=True)
    disk.sync_all()
    disk.unlink(f"{folder(paths[0])}/{_RESTORING_FILE}")
    for path in paths:
        remove(disk, _old(path))


def restoring(disk, path: str) -> str:
    """The snapshot that a way back noted beside `path` leads to; empty without one."""
    return (disk.read(f"{folder(path)}/{_RESTORING_FILE}") or b"").decode("utf-8", "replace")


def _old(path: str) -> str:
    return f"{folder(path)}/{_OLD_SUFFIX}"


def _put_aside(disk, path: str) -> None:
    """Empty a directory. Its files are kept in one beside it until everything is in the place of them."""
    old = _old(path)
    if disk.is_directory(old):
        # An earlier try has put them aside already: what is in the directory now is its own half of the new ones.
        for each in disk.listdir(path):
            if each != checkpoints.LOCK_FILE:
                _remove_entry(disk, f"{path}/{each}")
        return
    disk.make_directories(old + _PARTIAL_SUFFIX)
    for each in disk.listdir(path):
        if each != checkpoints.LOCK_FILE:
            disk.rename(f"{path}/{each}", f"{old}{_PARTIAL_SUFFIX}/{each}")
    disk.rename(old + _PARTIAL_SUFFIX, old)


def _remove_entry(disk, path: str) -> None:
    if disk.is_directory(path):
        disk.remove_directory(path)
    else:
        disk.unlink(path)


def _link(disk, source: str, target: str, *, forget_producers: bool = False) -> None:
    """Give every file of a partition a second name in the folder `target`; the last segment, which is small or empty, is copied:
    what is appended to must be each folder's own."""
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
            disk.link(f"{source}/{name}", f"{target}/{name}")
