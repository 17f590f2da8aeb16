"""`pykafkad format`: prepares the directories of a node for its first start, as `kafka-storage.sh format` does.

Each directory gets `bootstrap.checkpoint`, the first records of the cluster, and `meta.properties`, whose it is. Where
the voters are to be in the log, that of the metadata gets the snapshot that names them. `meta.properties` comes last: a
directory is formatted when all of it is there. A real Kafka starts from such a directory, and pykafkad from Kafka's."""

from __future__ import annotations

import os
from random import SystemRandom

from pykafkad import uuids
from pykafkad.cli import format_words
from pykafkad.cli.output import Failure
from pykafkad.clock import Clock
from pykafkad.config import Settings
from pykafkad.disk import Disk
from pykafkad.errors import ConfigError, StorageFailure
from pykafkad.log import checkpoints
from pykafkad.metadata import features, record_codec, release_levels, snapshots
from pykafkad.server import cluster_settings, listeners, quorum_settings
from pykafkad.settings import sources
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from pykafkad.metadata.voters import Voter

SUMMARY = "format the directories of a node before its first start, as kafka-storage.sh format does"
EPILOG = """`pykafkad serve FILE` begins a cluster of its own without any formatting. A node that belongs to a cluster
of several is formatted first, at all of them with the same cluster id: `pykafkad storage random-uuid` makes one. Exit
code 1: nothing, or not everything, was formatted."""

_RESERVED_IDS = 100
"""Directory ids below this number have meanings of their own (KIP-858)."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `format`: those of Kafka's tool."""
    parser.epilog = EPILOG
    parser.add_argument("--config", "-c", required=True, metavar="FILE", help="the server.properties of the node")
    parser.add_argument("--cluster-id", "-t", required=True, metavar="ID", help="the id of the cluster")
    parser.add_argument(
        "--ignore-formatted", "-g", action="store_true", help="leave directories alone that are formatted already"
    )
    parser.add_argument(
        "--release-version",
        "-r",
        metavar="RELEASE",
        help=f"the release whose features the cluster begins with, from {release_levels.NAMES[7]} to "
        f"{release_levels.NAMES[features.LATEST_LEVEL]}, which is the default",
    )
    parser.add_argument(
        "--feature", "-f", action="append", default=[], metavar="NAME=LEVEL", help="the level of one feature"
    )
    parser.add_argument(
        "--add-scram",
        "-S",
        action="append",
        default=[],
        metavar="USER",
        help="a user to begin with, such as 'SCRAM-SHA-256=[name=alice,password=alice-secret]'",
    )
    quorum = parser.add_mutually_exclusive_group()
    quorum.add_argument("--standalone", "-s", action="store_true", help="this controller is the first, and only, voter")
    quorum.add_argument(
        "--no-initial-controllers", "-N", action="store_true", help="the voters are those of a cluster to join"
    )
    quorum.add_argument(
        "--initial-controllers",
        "-I",
        metavar="VOTERS",
        help="the first voters, as ID@HOST:PORT:DIRECTORY_ID with commas between them; the same at all nodes",
    )


def run(options: argparse.Namespace) -> int:
    """Formats what is not formatted. Raises Failure, and ConfigError for a file of settings that cannot be."""
    settings = Settings.from_properties(sources.gather(options.config, os.environ, (), {}))
    try:
        first = _first_voters(options, settings)
        is_dynamic = not settings.controller_quorum_voters
        asked = dict(map(format_words.feature, options.feature))
        release = None if options.release_version is None else release_levels.level_of_release(options.release_version)
        if release is None and features.METADATA_VERSION not in asked and settings.release is not None:
            # A new cluster of the release that is acted as, unless that is newer than what can be formatted.
            release = min(features.of_new_cluster(settings)[features.METADATA_VERSION], features.LATEST_LEVEL)
        levels = release_levels.of_new_cluster(asked, release, is_dynamic=is_dynamic)
        level = levels[features.METADATA_VERSION]
        if options.add_scram and level < features.SCRAM_SINCE:
            name = release_levels.NAMES[features.SCRAM_SINCE]
            raise ConfigError(f"SCRAM is only supported in {features.METADATA_VERSION} {name} or later.")
        records = [*_feature_records(levels), *map(format_words.scram_user, options.add_scram)]
        _Formatting(options, settings, records, level, first).run()
    except (ConfigError, StorageFailure) as error:
        raise Failure(str(error)) from None
    return 0


def _first_voters(options: argparse.Namespace, settings: Settings) -> list[Voter]:
    """The voters that are written into the directory of the metadata; none where it joins others, or where the settings
    name them. Raises ConfigError."""
    is_controller = "controller" in settings.process_roles
    named = [voter.id for voter in quorum_settings.static_voters(settings)]
    if is_controller and named and settings.node_id not in named:
        raise ConfigError(f"controller.quorum.voters: node.id {settings.node_id} is a controller, and none of {named}")
    if named and (options.initial_controllers is not None or options.standalone):
        raise ConfigError(
            "You cannot specify controller.quorum.voters and format the node with --initial-controllers or "
            "--standalone. If you want to use dynamic quorum, please remove controller.quorum.voters and specify "
            "controller.quorum.bootstrap.servers instead."
        )
    listener = quorum_settings.listener_of(settings)
    if options.initial_controllers is not None:
        return format_words.voters(options.initial_controllers, listener)
    if options.standalone:
        if not is_controller:
            raise ConfigError("You can only use --standalone on a controller.")
        own = listeners.of_settings(settings, of_controller=True)[0]
        host, port = own.advertised((own.host or "localhost", own.port))
        address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        directory_id = uuids.to_text(_new_directory_id())
        return format_words.voters(f"{settings.node_id}@{address}:{directory_id}", own.name)
    if is_controller and not named and not options.no_initial_controllers:
        raise ConfigError(
            "Because controller.quorum.voters is not set on this controller, you must specify one of the following: "
            "--standalone, --initial-controllers, or --no-initial-controllers."
        )
    return []


def _feature_records(levels: dict[str, int]) -> list[messages.Struct]:
    """metadata.version first. kraft.version has no such record."""
    order = sorted(levels, key=lambda name: (name != features.METADATA_VERSION, name))
    return [
        messages.FeatureLevelRecord(name=name, feature_level=levels[name])
        for name in order
        if levels[name] and name != features.KRAFT_VERSION
    ]


def _new_directory_id() -> bytes:
    while True:
        found = uuids.random_uuid(SystemRandom())
        if int.from_bytes(found, "big") >= _RESERVED_IDS:
            return found


class _Formatting:
    """The directories of a node, and what they get."""

    def __init__(
        self,
        options: argparse.Namespace,
        settings: Settings,
        records: Sequence[messages.Struct],
        level: int,
        first: Sequence[Voter],
    ) -> None:
        self._cluster_id: str = options.cluster_id
        self._ignores_formatted: bool = options.ignore_formatted
        self._node_id = settings.node_id
        self._records = records
        self._level = level
        self._first = list(first)
        self._disk = Disk()
        self._now_ms = Clock().now_ms()
        self._metadata = settings.metadata_log_dir or settings.log_directories[0]
        self._paths = directories_of(settings)

    def run(self) -> None:
        """Formats those that are not. Raises ConfigError and StorageFailure."""
        empty, formatted, broken = [], {}, []
        for path in self._paths:
            try:
                meta = read_meta(self._disk, path)
            except (StorageFailure, ValueError):
                broken.append(path)
                continue
            if meta is None:
                empty.append(path)
            else:
                formatted[path] = meta
        check(formatted, self._cluster_id, self._node_id)
        if formatted and not self._ignores_formatted:
            raise ConfigError(
                f"Log directory {next(iter(formatted))} is already formatted. Use --ignore-formatted to ignore this "
                "directory and format the others."
            )
        for path in broken:
            print(f"I/O error trying to read log directory {path}. Ignoring...")
        if broken and not empty and not formatted:
            raise ConfigError("No available log directories to format.")
        if not empty:
            print("All of the log directories are already formatted.")
            return
        self._check_is_of_one(empty)
        print(f"Bootstrap metadata: {format_words.described(self._records, self._level)}")
        for path in empty:
            self._format(path)

    def _check_is_of_one(self, paths: Sequence[str]) -> None:
        for path in paths:
            found = cluster_settings.folders_of_several(self._disk, path) if self._disk.exists(path) else []
            if found:
                raise ConfigError(f"{path} holds the data of several brokers ({', '.join(found)})")

    def _format(self, path: str) -> None:
        own = next((voter for voter in self._first if voter.id == self._node_id), None)
        kind, directory_id = "data directory", None
        if path == self._metadata:
            kind = "metadata directory"
            if self._first:
                kind = "dynamic metadata directory" if own is None else "dynamic metadata voter directory"
                directory_id = None if own is None else own.directory_id
        name = release_levels.NAMES[self._level]
        print(f"Formatting {kind} {path} with {features.METADATA_VERSION} {name}.", flush=True)
        disk = self._disk
        disk.make_directories(path)
        disk.replace(f"{path}/{snapshots.BOOTSTRAP_FILE}", snapshots.of_records(self._now_ms, self._records))
        if path == self._metadata and self._first:
            topic, partition = record_codec.LOG
            folder = f"{path}/{topic}-{partition}"
            disk.make_directories(folder)
            content = snapshots.voters_only(self._first, self._now_ms)
            disk.replace(f"{folder}/{snapshots.file_name(0, 0)}", content)
        meta = {
            "version": "1",
            "cluster.id": self._cluster_id,
            "node.id": str(self._node_id),
            "directory.id": uuids.to_text(directory_id or _new_directory_id()),
        }
        disk.replace(f"{path}/{checkpoints.META_PROPERTIES_FILE}", checkpoints.encode_properties(meta))


# --- directories that are formatted


def directories_of(settings: Settings) -> list[str]:
    """Those of a node, that of the metadata log included, sorted."""
    return sorted({*settings.log_directories, settings.metadata_log_dir or settings.log_directories[0]})


def read_meta(disk: Disk, path: str) -> dict[str, str] | None:
    """The content of `meta.properties`; None where there is none. Raises StorageFailure, and ValueError for a content
    that is none."""
    if disk.exists(path) and not disk.is_directory(path):
        raise ValueError(f"{path} is not a directory")
    content = disk.read(f"{path}/{checkpoints.META_PROPERTIES_FILE}")
    if content is None:
        return None
    meta = checkpoints.decode_properties(content)
    node_id = meta.get("node.id", meta.get("broker.id") if meta.get("version", "0") == "0" else None)
    if meta.get("version", "0") not in ("0", "1"):
        raise ValueError(f"Unknown meta.properties version number '{meta['version']}'")
    if node_id is None:
        raise ValueError("Failed to find node.id")
    if format_words.integer(node_id) is None:
        raise ValueError("Unable to read node.id as a base-10 number.")
    if "directory.id" in meta:
        try:
            uuids.from_text(meta["directory.id"])
        except ValueError as error:
            raise ValueError(f"Unable to read directory.id as a Uuid: {error}") from None
    return {**meta, "node.id": node_id}


def check(formatted: dict[str, dict[str, str]], cluster_id: str, node_id: int) -> None:
    """Raises ConfigError where directories belong to another cluster or node, or two are copies of one."""
    seen: dict[str, str] = {}
    for path, meta in formatted.items():
        file = f"{path}/{checkpoints.META_PROPERTIES_FILE}"
        if "cluster.id" not in meta:
            raise ConfigError(f"cluster.id was not specified in the v1 file: {file}")
        if meta["cluster.id"] != cluster_id:
            raise ConfigError(f"Invalid cluster.id in: {file}. Expected {cluster_id}, but read {meta['cluster.id']}")
        if meta["node.id"] != str(node_id):
            raise ConfigError(
                f"Stored node id {meta['node.id']} doesn't match previous node id {node_id} in {file}. If you moved "
                "your data, make sure your configured node id matches. If you intend to create a new node, you should "
                "remove all data in your data directories."
            )
        directory_id = meta.get("directory.id", path)
        if directory_id in seen:
            raise ConfigError(
                f"Duplicate directory ID {directory_id} found. It was the ID of {seen[directory_id]}, but also of "
                f"{path}"
            )
        seen[directory_id] = path
