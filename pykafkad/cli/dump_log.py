"""`pykafkad dump-log`: prints the content of files in a data directory, of pykafkad or of a real Kafka.

The command only reads files, and needs no running broker.
"""

from __future__ import annotations

import os

from pykafkad.cli.dump_log_batches import dump_batches
from pykafkad.cli.dump_log_decoders import BOOTSTRAP, NAMES
from pykafkad.cli.dump_log_files import (
    dump_offset_index,
    dump_producers,
    dump_text,
    dump_time_index,
    dump_transaction_index,
)
from pykafkad.cli.output import Failure, print_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator

SUMMARY = "print the content of log, index and checkpoint files"

# A file that is being compacted, swapped in or deleted has one of these endings after its usual name.
_ENDINGS = (".deleted", ".cleaned", ".swap", ".part")
_TABLES = {
    "log": dump_batches,
    "index": dump_offset_index,
    "timeindex": dump_time_index,
    "txnindex": dump_transaction_index,
    "snapshot": dump_producers,
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `pykafkad dump-log`."""
    parser.add_argument(
        "paths",
        nargs="+",
        metavar="FILE",
        help="a file, or a directory for all files in it, such as pykafkad-data/events-0",
    )
    parser.add_argument(
        "--batches", action="store_true", help="only the headers of the record batches, not the records in them"
    )
    parser.add_argument(
        "--decoder", choices=NAMES, default="auto",
        help="how to read keys and values: `offsets` as in __consumer_offsets, `transactions` as in "
        "__transaction_state, `share` as in __share_group_state, `metadata` as in __cluster_metadata, `none` as plain "
        "bytes, `auto` by the directory's name (default)",
    )  # fmt: skip
    parser.add_argument(
        "--json",
        action="store_true",
        help='one JSON object a line, with all fields; bytes that are not UTF-8 text as {"hex": "…"}',
    )


def run(options: argparse.Namespace) -> int:
    """Prints every file; 1 when one is damaged or cannot be read."""
    damaged = False
    for path in _files(options.paths):
        _check_readable(path)
        if options.json:
            print_json({"kind": "file", "path": path})
        else:
            print(f"# {path}")
        damaged |= _dump_of(path)(path, options)
    return 1 if damaged else 0


def _files(paths: list[str]) -> Iterator[str]:
    for path in paths:
        if os.path.isdir(path):
            names = sorted(os.listdir(path))
            yield from (os.path.join(path, name) for name in names if os.path.isfile(os.path.join(path, name)))
        else:
            yield path


def _check_readable(path: str) -> None:
    try:
        with open(path, "rb"):
            pass
    except OSError as error:
        raise Failure(f"{path}: {error.strerror}") from None


def _dump_of(path: str) -> Callable[[str, argparse.Namespace], bool]:
    """The function that prints this kind of file, found by the file's name."""
    name = os.path.basename(path)
    while name.endswith(_ENDINGS):
        name = name.rpartition(".")[0]
    stem, _, ending = name.partition(".")
    # A snapshot of the metadata log is named `offset-epoch.checkpoint`.
    if name == BOOTSTRAP or (ending == "checkpoint" and "-" in stem and stem[:1].isdigit()):
        return dump_batches
    return _TABLES.get(ending, dump_text)
