"""`pykafkad snapshot`: saves and restores the data of a running broker, makes data directories from snapshots."""

from __future__ import annotations

import os

from pykafkad.cli import actions, client
from pykafkad.cli.output import Failure, print_table
from pykafkad.errors import StorageFailure

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from pykafkad.disk import Disk

SUMMARY = "save the data of a running broker, restore it, or start another broker from it"
HAS_ACTIONS = True
EPILOG = """A snapshot consists of hard links: it takes milliseconds and, at first, no disk space. Any client can
make one: it sets pykafkad.snapshot.create (or restore, delete) of the broker to the snapshot's name, by
IncrementalAlterConfigs. The snapshot is stored beside the data, in DIR.snapshots/NAME. A data directory that is a
mount point cannot have snapshots, as links do not cross file systems. With several nodes (serve --brokers) any broker
saves all of them and brings all of them back, but no single topic; with --processes all stop for that, a snapshot too,
and others serve on the same ports some seconds later."""
_PREFIX = "pykafkad.snapshot."
_LIST = "pykafkad.snapshots"
# Enough for tens of thousands of partitions on a slow disk.
_TIMEOUT_MS = 120_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The actions and their options."""
    parser.epilog = EPILOG
    add = actions.add_actions(parser)
    online = []
    for action, text in (
        ("create", "save every topic, committed offset and setting under a name"),
        ("list", "print the names of all snapshots"),
        ("restore", "restore everything, which restarts all nodes in place, or one topic of a single broker"),
        ("delete", "remove a snapshot; disk space that nothing else uses is freed"),
    ):
        each = add(action, help=text, description=text[:1].upper() + text[1:] + ".")
        online.append(each)
        if action == "list":
            each.add_argument("--json", action="store_true", help="one JSON object per snapshot")
        else:
            each.add_argument(
                "name", metavar="NAME", help="up to 100 ASCII letters, digits, _ and -; the first is not -"
            )
        if action == "restore":
            each.add_argument(
                "--topic",
                metavar="TOPIC",
                help="restore only this topic; consumers beyond its new end get OFFSET_OUT_OF_RANGE",
            )
    actions.add_bootstrap(parser, online)
    text = "make a data directory for another broker from a snapshot"
    fork = add("fork", help=text, description=text[:1].upper() + text[1:] + ".")
    fork.add_argument("name", metavar="NAME", help="the snapshot")
    fork.add_argument(
        "targets",
        metavar="DIR",
        nargs="+",
        help="the new directory, on the same file system; name as many as the broker has in log.dirs",
    )
    fork.add_argument(
        "--data",
        metavar="DIR",
        default="pykafkad-data",
        help="the data directory of the snapshot's broker, any one if it has several (default: pykafkad-data)",
    )


def run(options: argparse.Namespace) -> int:
    """Runs one action."""
    if options.action == "fork":
        return _fork(options)
    with client.admin(options, timeout_ms=_TIMEOUT_MS) as admin:
        # Of several brokers of one process each does it for all.
        broker = client.first_broker(admin)
        # Another Kafka would accept the action as an unknown setting and report success, so its broker is refused here.
        names = client.describe_broker_setting(admin, broker, _LIST)
        if options.action == "list":
            print_table(("name",), [(name,) for name in names.split(",") if name], as_json=options.json)
            return 0
        value = options.name if getattr(options, "topic", None) is None else f"{options.name}:{options.topic}"
        client.set_broker_setting(admin, broker, _PREFIX + options.action, value)
    return 0


def _fork(options: argparse.Namespace) -> int:
    from pykafkad.disk import Disk
    from pykafkad.log import snapshot_store

    disk = Disk()
    data = os.path.abspath(options.data.split(",")[0])
    if not os.path.isdir(data):
        raise Failure(f"{options.data} is not a directory; name the broker's data directory with --data")
    known = snapshot_store.names(disk, data)
    if options.name not in known:
        raise Failure(f"{options.data} has no snapshot {options.name}; its snapshots: {', '.join(known) or 'none'}")
    saved_from = snapshot_store.directories_of(disk, data, options.name)
    sources = saved_from["log.dirs"].split(",") if saved_from else [data]
    if "metadata.log.dir" in saved_from:
        sources.append(saved_from["metadata.log.dir"])
    targets = [os.path.abspath(each) for each in options.targets]
    if not len(set(targets)) == len(targets) == len(sources):
        raise Failure(
            f"the snapshot {options.name} is of {len(sources)} directories ({', '.join(sources)}); "
            "name as many new directories, each once"
        )
    for target in targets:
        if os.path.lexists(target) and (not os.path.isdir(target) or os.listdir(target)):
            raise Failure(f"{target} already exists")
    _make(disk, [snapshot_store.path_of(source, options.name) for source in sources], targets)
    count = len(sources) - ("metadata.log.dir" in saved_from)
    options_of_serve = f"--data {','.join(options.targets[:count])}" + "".join(
        f" --set metadata.log.dir={each}" for each in options.targets[count:]
    )
    print(f"{', '.join(options.targets)}: pykafkad serve {options_of_serve} --listen localhost:0")
    return 0


def _make(disk: Disk, sources: list[str], targets: list[str]) -> None:
    """Makes all directories or, when one fails, none."""
    from pykafkad.log import snapshot_store

    begun = []
    try:
        for source, target in zip(sources, targets, strict=True):
            begun.append((target, os.path.isdir(target)))
            snapshot_store.materialize(disk, source, target)
    except StorageFailure as failure:
        for target, was_there in begun:
            if os.path.isdir(target):
                snapshot_store.remove(disk, target)
            if was_there:
                disk.make_directories(target)
        raise Failure(str(failure)) from None
