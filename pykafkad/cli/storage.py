"""`pykafkad storage`: the actions of Kafka's `kafka-storage.sh`, on directories that no node uses, or on none."""

from __future__ import annotations

import os
from random import SystemRandom

from pykafkad import uuids
from pykafkad.cli import actions, format as formatting, format_words
from pykafkad.cli.output import Failure
from pykafkad.config import Settings
from pykafkad.disk import Disk
from pykafkad.errors import ConfigError, StorageFailure
from pykafkad.log import checkpoints
from pykafkad.metadata import features, release_levels
from pykafkad.settings import sources

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

SUMMARY = "format directories, look at them, and tell which features a release has, as kafka-storage.sh does"
HAS_ACTIONS = True
_META = checkpoints.META_PROPERTIES_FILE


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The actions and their options."""
    add = actions.add_actions(parser)
    info = add("info", help="tell whose the directories of a node are, and what is wrong with them")
    info.add_argument("--config", "-c", required=True, metavar="FILE", help="the server.properties of the node")
    formatting.add_arguments(add("format", help=formatting.SUMMARY, description=formatting.SUMMARY))
    mapping = add("version-mapping", help="print the feature levels of a release")
    mapping.add_argument("--release-version", "-r", metavar="RELEASE", help="such as 3.9; the default is the newest")
    needs = add("feature-dependencies", help="print which levels a feature's level depends on")
    needs.add_argument("--feature", "-f", action="append", required=True, metavar="NAME=LEVEL", help="may be repeated")
    add("random-uuid", help="print a random id, such as a cluster has")


def run(options: argparse.Namespace) -> int:
    """Performs the action; the exit code. Raises Failure."""
    try:
        return _ACTIONS[options.action](options)
    except StorageFailure as error:
        raise Failure(str(error)) from None


def _random_uuid(options: argparse.Namespace) -> int:
    print(uuids.to_text(uuids.random_uuid(SystemRandom())))
    return 0


def _version_mapping(options: argparse.Namespace) -> int:
    text = options.release_version
    if text is None:
        text = release_levels.NAMES[features.LATEST_LEVEL]
    try:
        level = release_levels.level_of_release(text, newest=max(release_levels.NAMES))
    except ConfigError as error:
        raise Failure(str(error)) from None
    print(f"{features.METADATA_VERSION}={level} ({text})")
    for name, each in release_levels.defaults(level).items():
        print(f"{name}={each}")
    return 0


def _feature_dependencies(options: argparse.Namespace) -> int:
    for text in options.feature:
        name, equals, level_text = (part.strip() for part in text.partition("="))
        if not equals:
            raise Failure(
                f"Invalid feature format: {text}. Expected format: 'feature=version' (e.g. 'group.version=1')"
            )
        level = format_words.integer(level_text)
        if level is None:
            raise Failure(f"Invalid version format: {level_text} for feature {name}")
        print("\n".join(_dependencies(name, level)))
    return 0


def _dependencies(name: str, level: int) -> list[str]:
    """What is printed of one. Raises Failure."""
    if name == features.METADATA_VERSION:
        if level not in release_levels.NAMES:
            raise Failure(f"Unknown {name} {level}")
        return [f"{name}={level} ({release_levels.NAMES[level]}) has no dependencies."]
    if name not in release_levels.LEVELS:
        raise Failure(f"Unknown feature: {name}")
    found = release_levels.find(name, level)
    if found is None:
        raise Failure(f"Feature level {level} is not supported for feature {name}")
    if not found.needs:
        return [f"{name}={level} has no dependencies."]
    return [
        f"{name}={level} requires:",
        *(f"    {needed}={least} ({release_levels.NAMES[least]})" for needed, least in found.needs.items()),
    ]


def _info(options: argparse.Namespace) -> int:
    settings = Settings.from_properties(sources.gather(options.config, os.environ, (), {}))
    disk, problems, there = Disk(), [], []
    first: dict[str, str] | None = None
    for path in formatting.directories_of(settings):
        if not disk.is_directory(path):
            problems.append(f"{path} is not a directory" if disk.exists(path) else f"{path} does not exist")
            continue
        there.append(path)
        try:
            meta = formatting.read_meta(disk, path)
        except ValueError as error:
            problems.append(f"Error loading {path}/{_META}: {error}")
            continue
        if meta is None:
            problems.append(f"{path} is not formatted.")
        elif first is None:
            first = meta
        elif meta.get("cluster.id") != first.get("cluster.id"):
            problems.append("Mismatched cluster IDs between storage directories.")
        elif meta["node.id"] != first["node.id"]:
            problems.append("Mismatched node IDs between storage directories.")
    if first is not None and first.get("version", "0") == "0":
        problems.append(
            "The kafka configuration file appears to be for a cluster in KRaft mode, but the directories are formatted "
            "for legacy mode."
        )
    _print_found("log directory", "log directories", there)
    if first is not None:
        print(f"Found metadata: {{{', '.join(f'{name}={first[name]}' for name in sorted(first))}}}\n")
    _print_found("problem", "problems", problems)
    return int(bool(problems))


def _print_found(one: str, several: str, lines: list[str]) -> None:
    if lines:
        print(f"Found {one if len(lines) == 1 else several}:")
        print("".join(f"  {line}\n" for line in lines))


_ACTIONS = {
    "info": _info,
    "format": formatting.run,
    "version-mapping": _version_mapping,
    "feature-dependencies": _feature_dependencies,
    "random-uuid": _random_uuid,
}
