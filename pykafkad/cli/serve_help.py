"""What `pykafkad serve` says of its options: the help, and why a command line is invalid."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


def explain(arguments: list[str], description: str, options: Iterable[tuple[str, str, bool, str]]) -> int:
    """Prints the help, or argparse's message about an invalid command line; the exit code. `options` is the table."""
    import argparse

    parser = argparse.ArgumentParser(prog="pykafkad serve", description=description, allow_abbrev=False)
    parser.add_argument(
        "properties", nargs="?", metavar="server.properties", help="a property file, such as Kafka's own"
    )
    for option, metavar, repeated, text in options:
        text = text.replace("%", "%%")
        if metavar:
            parser.add_argument(option, metavar=metavar, action="append" if repeated else "store", help=text)
        else:
            parser.add_argument(option, action="store_true", help=text)
    try:
        parser.parse_args(arguments)
    except SystemExit as stop:
        return int(stop.code or 0)
    print("pykafkad serve: invalid options", file=sys.stderr)
    return 2
