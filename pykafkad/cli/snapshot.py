"""`pykafkad snapshot`: saves and brings back the data of a broker that serves, and makes new data directories out of
snapshots."""

from __future__ import annotations

import os

from pykafkad.cli import actions, client
from pykafkad.cli.output import Failure, print_table
from pykafkad.errors import StorageFailure

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from pykafkad.disk import Disk

SUMMARY = "save the data of a running broker in an instant, go back to it, or start another broker from it"
HAS_ACTIONS = True
EPILOG = """A snapshot is made of hard links and takes milliseconds and, at first, no room. Any client can ask for one: it is the
setting pykafkad.snapshot.create (restore, delete) of the broker's own resource in IncrementalAlterConfigs, its value the name.
It lies beside the data, as DIR.snapshots/NAME, on the same file system: a data directory that is a mount point can have none."""
_PREFIX = "pykafkad.snapshot."
_LIST = "pykafkad.snapshots"
# With tens of thousands of partitions, on a slow disk.
_TIMEOUT_MS = 120_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The actions and their options."""
    parser.epilog = EPILOG
    add = actions.add_actions(parser)
    online = []
    for action, text in (
        ("create", "save every topic, committed offset and setting under a name"),
        ("list", "print the names of all snapshots"),
        ("restore", "go back: with everything, which restarts the broker in place, or with one topic"),
        ("delete", "remove a snapshot; data that nothing else holds is freed"),
    ):
        each = add(action, help=text, description=text[:1].upper() + text[1:] + ".")
        online.append(each)
        if action == "list":
            each.add_argument("--json", action="store_true", help="one JSON object per snapshot")
        else:
            each.add_argument(
                "name", metavar="NAME", help="up to 100 ASCII letters, digits, _ and -, with no - in front"
            )
        if action == "restore":
            each.add_argument(
                "--topic",
                metavar="TOPIC",
                help="only this topic; consumers beyond its new end are told OFFSET_OUT_OF_RANGE",
            )
    actions.add_bootstrap(parser, online)
    text = "make a data directory out of a snapshot, for another broker"
    fork = add("fork", help=text, description=text[:1].upper() + text[1:] + ".")
    fork.add_argument("name", metavar="NAME", help="the snapshot")
    fork.add_argument(
        "targets",
        metavar="DIR",
        nargs="+",
        help="the new directory, on the same file system; as many as the broker has in log.dirs",
    )
    fork.add_argument(
        "--data",
        metavar="DIR",
        default="pykafkad-data",
        help="the directory that the snapshot is of, one of several is enough (default: pykafkad-data)",
    )


def run(options: argparse.Namespace) -> int:
    """Does one action."""
    if options.action == "fork":
        return _fork(options)
    with client.admin(options.bootstrap, timeout_ms=_TIMEOUT_MS) as admin:
        broker = client.only_broker(admin)
        # Another Kafka would store the action as a setting, and say that all is well.
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
        raise Failure(f"{options.data} is not a directory; name that of the broker's data with --data")
    known = snapshot_store.names(disk, data)
    if options.name not in known:
        raise Failure(f"{options.data} has no snapshot {options.name}; there are: {', '.join(known) or 'none'}")
    saved_from = snapshot_store.directories_of(disk, data, options.name)
    sources = saved_from["log.dirs"].split(",") if saved_from else [data]
    if "metadata.log.dir" in saved_from:
        sources.append(saved_from["metadata.log.dir"])
    targets = [os.path.abspath(each) for each in options.targets]
    if not len(set(targets)) == len(targets) == len(sources):
        raise Failure(
            f"the snapshot {options.name} is of {len(sources)} directories ({', '.join(sources)}); name as many new directories, each once"
        )
    for target in targets:
        if os.path.lexists(target) and (not os.path.isdir(target) or os.listdir(target)):
            raise Failure(f"{target} is there already")
    _make(disk, [snapshot_store.path_of(source, options.name) for source in sources], targets)
    count = len(sources) - ("metadata.log.dir" in saved_from)
    options_of_serve = f"--data {','.join(options.targets[:count])}" + "".join(
        f" --set metadata.log.dir={each}" for each in options.targets[count:]
    )
    print(f"{', '.join(options.targets)}: pykafkad serve {options_of_serve} --listen localhost:0")
    return 0


def _make(disk: Disk, sources: list[str], targets: list[str]) -> None:
    """All directories or none."""
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
