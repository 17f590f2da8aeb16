"""Prints results: a table at a terminal, tab-separated columns or JSON lines in a pipe."""

from __future__ import annotations

import json
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Sequence
    from typing import IO, Any


class Failure(Exception):
    """Ends a command with an error message and an exit code."""

    def __init__(self, sentence: str, exit_code: int = 1) -> None:
        super().__init__(sentence)
        self.exit_code = exit_code


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, as_json: bool = False) -> None:
    """Prints rows: with rich at a terminal, tab-separated below a header line in a pipe, as JSON lines with `as_json`.

    Without rows it prints nothing, not even a header. At a terminal it says so on standard error.
    """
    rows = list(rows)
    if not rows:
        tell_person(f"no {columns[0]}s", sys.stdout)
        return
    if as_json:
        for row in rows:
            print_json(dict(zip(columns, row, strict=True)))
    elif sys.stdout.isatty():
        _print_rich(columns, rows)
    else:
        print("\t".join(columns))
        for row in rows:
            print("\t".join(_cell(value) for value in row))


def tell_person(sentence: str, stream: IO[Any]) -> None:
    """Prints a remark on standard error when `stream` is a terminal. Scripts and pipes do not see it."""
    if stream.isatty():
        print(sentence, file=sys.stderr)


def print_json(value: object) -> None:
    """Prints a JSON value on one line. It is flushed, so that the reader of a pipe sees it at once."""
    print(json.dumps(value, ensure_ascii=False), flush=True)


def _text(value: object) -> str:
    """A cell as text. The items of a list or a mapping are joined with commas."""
    if isinstance(value, dict):
        value = [f"{name}={content}" for name, content in value.items()]
    return "" if value is None else ",".join(map(str, value)) if isinstance(value, list) else str(value)


def _cell(value: object) -> str:
    return _text(value).replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n")


def _print_rich(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    from pykafkad.cli import extras

    if sentence := extras.missing("rich.table"):
        raise Failure(f"tables at a terminal: {sentence} (or use --json, or a pipe)", 2)
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, header_style="bold", pad_edge=False)
    for column in columns:
        # One word per line keeps columns of numbers narrow: nine of them fit into 80 characters.
        table.add_column(column.replace("_", "\n"), overflow="fold", vertical="bottom")
    for row in rows:
        table.add_row(*(Text(_text(value)) for value in row))
    Console().print(table)


def readable(data: bytes | None) -> str | None:
    """Bytes as text for people: UTF-8 text if they are printable, otherwise `0x…`; None stays None."""
    if data is None:
        return None
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return "0x" + data.hex()
    return text if all(character.isprintable() or character in "\t\n" for character in text) else "0x" + data.hex()


def json_bytes(data: bytes | None) -> object:
    """Bytes as JSON: text if they are UTF-8, else `{"hex": …}`. `pykafkad produce --json` reads both forms."""
    if data is None:
        return None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return {"hex": data.hex()}


def print_error(sentence: str) -> None:
    """Prints an error message on standard error, after flushing standard output."""
    sys.stdout.flush()
    print(f"pykafkad: {sentence}", file=sys.stderr)


def add_json(parser: argparse.ArgumentParser, default: object = False) -> None:
    """Adds `--json`, the option of commands that print a table."""
    parser.add_argument("--json", action="store_true", default=default, help="one JSON object a line")


def add_markdown(parser: argparse.ArgumentParser) -> None:
    """Adds the options of commands whose tables are part of the documentation."""
    parser.add_argument(
        "--markdown", action="store_true", help="print the tables as the documentation has them, in Markdown"
    )
    parser.add_argument("--into", metavar="FILE", help="with --markdown: write the tables into this document")


def print_markdown(options: argparse.Namespace, name: str, markdown: Callable[[], str]) -> bool:
    """Prints or writes the Markdown that the options of `add_markdown` select; returns whether they select it.

    `name` is the name of the document's markers.
    """
    if options.into and not options.markdown:
        raise Failure("--into needs --markdown", 2)
    if options.into:
        put_between_markers(options.into, name, markdown())
    elif options.markdown:
        print(markdown())
    return bool(options.markdown)


def put_between_markers(path: str, name: str, text: str) -> None:
    """Replaces the text between `<!-- name: begin -->` and `<!-- name: end -->` in a document.

    Raises `Failure` when the document has no such markers.
    """
    try:
        with open(path, encoding="utf-8") as file:
            document = file.read()
    except OSError as error:
        raise Failure(f"{path}: {error.strerror}") from None
    opening, closing = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->"
    before, found, rest = document.partition(opening)
    _, ended, after = rest.partition(closing)
    if not found or not ended:
        raise Failure(f"{path} has no markers {opening.strip()} and {closing.strip()}")
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"{before}{opening}{text}\n{closing}{after}")
