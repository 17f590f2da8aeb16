"""`pykafkad fsck`: checks the data directories of a stopped broker and changes nothing in them."""

from __future__ import annotations

import os
import sys

from pykafkad.cli.output import Failure, print_table
from pykafkad.errors import ConfigError, StartFailure, StorageFailure

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from pykafkad.server import dry_run

SUMMARY = "check the data of a broker that is stopped, and say what a start would change"
EPILOG = """Kinds of findings: `damage`: records are lost or unreadable. `stale`: a file beside a log is wrong; the
broker rebuilds it from the log when it needs it. `start`: a change that the next start would make. `offline`: a
partition that the next start could not open. Exit code 0: no findings; 1: some findings. The command writes nothing: it
is safe on a copy, a read-only disk or a real Kafka's directory."""

_DAMAGE = "damage"
_START = "start"
_OFFLINE = "offline"
COLUMNS = ("kind", "path", "what")
# Files that every start writes. A change of them says nothing about this directory.
_ROUTINE_FILES = (".lock", ".kafka_cleanshutdown", "bootstrap.checkpoint")
_METADATA = "__cluster_metadata-0"
_SNAPSHOT_SUFFIX = ".snapshot"


class _Refused(Failure):
    """The content of the directories keeps a broker from starting."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `fsck`."""
    parser.epilog = EPILOG
    parser.add_argument(
        "directories",
        nargs="+",
        metavar="DIR",
        help="a directory of log.dirs; name each one of several. Of several brokers all is read, and no start is tried",
    )
    parser.add_argument("--properties", metavar="FILE", help="the server.properties with which a start is tried")
    parser.add_argument(
        "--quick", action="store_true", help="only show what a start would change; do not read every batch"
    )
    parser.add_argument(
        "--all",
        action="store_true",
        help="also show what every start changes, such as the broker's registration in the metadata log",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object per finding")


def run(options: argparse.Namespace) -> int:
    """Prints the findings; the exit code is 1 when there are any."""
    directories = [os.path.abspath(each) for each in options.directories]
    for directory in directories:
        if not os.path.isdir(directory):
            raise Failure(f"{directory} is not a directory")
    shown = os.path.commonpath(directories) if len(directories) > 1 else directories[0]
    rows = []
    folders = [folder for directory in directories for folder in _of_several(directory) or [directory]]
    is_of_several = folders != directories
    if is_of_several and options.quick:
        raise Failure(f"{shown} holds the data of several brokers, of which no start is tried: leave --quick out", 2)
    try:
        for kind, path, what in _read_everything(folders, None) if is_of_several else _findings(options, directories):
            rows.append((kind, os.path.relpath(path, shown), what))
    finally:
        # The findings come first, also when the broker would not start and an exception says why.
        print_table(COLUMNS, rows, as_json=options.json)
    if not rows:
        print(f"no findings{'' if is_of_several else ': a start would change nothing'}", file=sys.stderr)
    return 1 if rows else 0


def _of_several(directory: str) -> list[str]:
    """The folders of the brokers and their controller, of a directory that is of several."""
    from pykafkad.disk import Disk
    from pykafkad.log import checkpoints
    from pykafkad.server import cluster_settings

    if os.path.exists(os.path.join(directory, checkpoints.META_PROPERTIES_FILE)):
        return []
    return [os.path.join(directory, name) for name in cluster_settings.folders_of_several(Disk(), directory)]


def _findings(options: argparse.Namespace, directories: list[str]) -> Iterator[tuple[str, str, str]]:
    from pykafkad.disk import Disk
    from pykafkad.log import snapshot_store

    for directory in directories:
        name = snapshot_store.restoring(Disk(), directory)
        if name:
            # A directory in the middle of a restore has parts of two states: checking it further is pointless.
            yield (
                _START,
                directory,
                f"the restore of snapshot {name} is unfinished: the next start replaces everything by the snapshot",
            )
            return
    try:
        outcome = _try_start(options.properties, directories)
    except _Refused:
        if not options.quick:
            yield from _read_everything(directories, None)
        raise
    if not options.quick:
        yield from _read_everything(directories, outcome.compacted)
    for path, end_offset, high_watermark in outcome.cut:
        yield (
            _DAMAGE,
            path,
            f"the log ends at offset {end_offset} but its high watermark was {high_watermark}: records are lost",
        )
    for name, failure in outcome.offline:
        # A partition that is in none of these directories has no path of its own.
        path = failure.path if os.path.isabs(failure.path) else os.path.join(directories[0], name)
        yield _OFFLINE, path, f"{name} cannot be opened: {failure}"
    for path, what in outcome.changes:
        if options.all or not _is_routine(path, what):
            yield _START, path, what


def _is_routine(path: str, what: str) -> bool:
    # Each stop writes a producer snapshot, and each start removes the older ones.
    is_old_snapshot = path.endswith(_SNAPSHOT_SUFFIX) and what == "removed"
    return (
        os.path.basename(path) in _ROUTINE_FILES
        or _METADATA in path.split(os.sep)
        or is_old_snapshot
        or _is_first_segment(path)
    )


def _is_first_segment(path: str) -> bool:
    """Whether this is the first segment of a partition without records: the partition's first use creates it."""
    from pykafkad.log import checkpoints

    partition = os.path.dirname(path)
    if not os.path.isdir(partition) or os.listdir(partition) != [checkpoints.PARTITION_METADATA_FILE]:
        return False
    try:
        with open(os.path.join(os.path.dirname(partition), checkpoints.HIGH_WATERMARK_FILE), "rb") as file:
            offsets = checkpoints.decode_offsets(file.read())
    except FileNotFoundError:
        return True
    topic, _, number = os.path.basename(partition).rpartition("-")
    return not offsets.get((topic, int(number)))


def _try_start(properties: str | None, directories: list[str]) -> dry_run.Outcome:
    from pykafkad import config
    from pykafkad.server import dry_run, logs
    from pykafkad.settings import sources

    logs.configure("error")
    command_line = {"log.dirs": ",".join(directories), **_identity(directories)}
    settings = config.Settings.from_properties(sources.gather(properties, {}, [], command_line))
    try:
        return dry_run.start(settings, settings.log_directories)
    except StartFailure as error:
        raise Failure(f"a broker would not start here: {error}") from None
    except (ConfigError, StorageFailure) as error:
        raise _Refused(f"a broker would not start here: {error}") from None


def _identity(directories: list[str]) -> dict[str, str]:
    """The settings that the directories themselves tell: the node's id and the place of its metadata log."""
    from pykafkad.log import checkpoints

    found = {}
    for directory in directories:
        try:
            with open(os.path.join(directory, checkpoints.META_PROPERTIES_FILE), "rb") as file:
                meta = checkpoints.decode_properties(file.read())
        except OSError as error:
            if not isinstance(error, FileNotFoundError) or not _partitions(directory):
                raise Failure(f"{directory} is not a broker's directory: {error.filename}: {error.strerror}") from None
            meta = {}
        node_id = meta.get("node.id") or meta.get("broker.id", "")
        if node_id.isdecimal():
            # Without a valid id, the start that is tried reports what is wrong.
            found["node.id"] = node_id
        if os.path.isdir(os.path.join(directory, _METADATA)):
            found["metadata.log.dir"] = directory
    if "metadata.log.dir" not in found:
        raise Failure(f"none of these directories holds a metadata log ({_METADATA}): {', '.join(directories)}")
    return found


def _read_everything(directories: list[str], compacted: set[str] | None) -> Iterator[tuple[str, str, str]]:
    """Checks the files of every partition. A terminal shows a line of progress."""
    from pykafkad.log import checking
    from pykafkad.overlay_disk import OverlayDisk

    partitions = [path for directory in directories for path in _partitions(directory)]
    disk = OverlayDisk()
    for number, path in enumerate(partitions, 1):
        if sys.stderr.isatty():
            print(
                f"\r\033[K{number} of {len(partitions)}: {os.path.basename(path)}", end="", file=sys.stderr, flush=True
            )
        try:
            for finding in checking.check_partition(
                disk, path, may_have_gaps=compacted is None or os.path.basename(path) in compacted
            ):
                yield finding.kind, finding.path, finding.what
        except StorageFailure as failure:
            yield checking.DAMAGE, path, str(failure)
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr, flush=True)


def _partitions(directory: str) -> list[str]:
    """The paths of the partitions in a directory, in the order of their names."""
    from pykafkad.disk import Disk
    from pykafkad.log.file_names import parse_partition_name

    found = (
        os.path.join(directory, name)
        for name in sorted(os.listdir(directory))
        if parse_partition_name(name) is not None
    )
    return [path for path in found if Disk().is_directory(path)]
