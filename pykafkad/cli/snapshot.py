"""`pykafkad snapshot`: saves and brings back the data of a broker that serves, and makes new data directories out of snapshots."""

from __future__ import annotations

import os

from pykafkad.cli import client
from pykafkad.cli.output import Failure, print_table
from pykafkad.errors import StorageFailure

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

SUMMARY = "save the data of a running broker in an instant, go back to it, or start another broker from it"
HAS_ACTIONS = True
EPILOG = """A snapshot is made of hard links and takes milliseconds and, at first, no room. Any client can ask for one: it is the
setting pykafkad.snapshot.create (restore, delete) of the broker's own resource in IncrementalAlterConfigs, its value the name."""
_PREFIX = "pykafkad.snapshot."
_LIST = "pykafkad.snapshots"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The actions and their options."""
    parser.epilog = EPILOG
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    for action, text in (
        ("create", "save every topic, committed offset and setting under a name"),
        ("list", "print the names of all snapshots"),
        ("restore", "go back: with everything, which restarts the broker in place, or with one topic"),
        ("delete", "remove a snapshot; data that nothing else holds is freed"),
    ):
        each = actions.add_parser(action, help=text, description=text[:1].upper() + text[1:] + ".")
        client.add_bootstrap(each)
        if action == "list":
            each.add_argument("--json", action="store_true", help="one JSON object per snapshot")
        else:
            each.add_argument("name", metavar="NAME", help="ASCII letters, digits, _ and -")
        if action == "restore":
            each.add_argument("--topic", metavar="TOPIC", help="only this topic; consumers beyond its new end are told OFFSET_OUT_OF_RANGE")
    text = "make a data directory out of a snapshot, for another broker"
    fork = actions.add_parser("fork", help=text, description=text[:1].upper() + text[1:] + ".")
    fork.add_argument("name", metavar="NAME", help="the snapshot")
    fork.add_argument("target", metavar="DIR", help="the new directory, on the same file system")
    fork.add_argument("--data", metavar="DIR", default="pykafkad-data", help="the directory that the snapshot is of (default: pykafkad-data)")


def run(options: argparse.Namespace) -> int:
    """Does one action."""
    if options.action == "fork":
        return _fork(options)
    with client.admin(options.bootstrap) as admin:
        broker = client.only_broker(admin)
        if options.action == "list":
            names = client.describe_broker_setting(admin, broker, _LIST)
            print_table(("name",), [(name,) for name in names.split(",") if name], as_json=options.json)
            return 0
        value = options.name if getattr(options, "topic", None) is None else f"{options.name}:{options.topic}"
        client.set_broker_setting(admin, broker, _PREFIX + options.action, value)
    return 0


def _fork(options: argparse.Namespace) -> int:
    from pykafkad.disk import Disk
    from pykafkad.log import saved

    disk = Disk()
    source = os.path.abspath(options.data)
    known = saved.names(disk, source)
    if options.name not in known:
        raise Failure(f"{options.data} has no snapshot {options.name}; there are: {', '.join(known) or 'none'}")
    target = os.path.abspath(options.target)
    if os.path.lexists(target) and (not os.path.isdir(target) or os.listdir(target)):
        raise Failure(f"{options.target} is there already")
    try:
        saved.materialize(disk, saved.path_of(source, options.name), target)
    except StorageFailure as failure:
        raise Failure(str(failure)) from None
    print(f"{options.target}: pykafkad serve --data {options.target} --listen localhost:0")
    return 0
