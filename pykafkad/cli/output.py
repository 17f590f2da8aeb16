"""How results are printed: a table for people at a terminal, tab-separated columns or JSON lines for pipes."""

from __future__ import annotations

import json
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Sequence
    from typing import IO, Any


class Failure(Exception):
    """Ends a command with a sentence for people and an exit code."""

    def __init__(self, sentence: str, exit_code: int = 1) -> None:
        super().__init__(sentence)
        self.exit_code = exit_code


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, as_json: bool = False) -> None:
    """Prints rows: with rich at a terminal, tab-separated below one header line in a pipe, one JSON object a line if
    asked.

    Nothing is printed for no rows, not even a header; at a terminal, on standard error, that there are none."""
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
    """A remark on standard error for who sits at the terminal that `stream` is; scripts and pipes are not bothered."""
    if stream.isatty():
        print(sentence, file=sys.stderr)


def print_json(value: object) -> None:
    """One JSON value on one line, flushed, so that a reader at the other end of a pipe sees it at once."""
    print(json.dumps(value, ensure_ascii=False), flush=True)


def _text(value: object) -> str:
    """A cell as text: what is a list or a mapping in JSON is joined with commas."""
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
        # A word a line: columns of numbers stay narrow, and nine of them fit 80 characters.
        table.add_column(column.replace("_", "\n"), overflow="fold", vertical="bottom")
    for row in rows:
        table.add_row(*(Text(_text(value)) for value in row))
    Console().print(table)


def readable(data: bytes | None) -> str | None:
    """Bytes as people read them: UTF-8 where they are, `0x…` otherwise, None as it is."""
    if data is None:
        return None
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return "0x" + data.hex()
    return text if all(character.isprintable() or character in "\t\n" for character in text) else "0x" + data.hex()


def json_bytes(data: bytes | None) -> object:
    """Text where it is UTF-8, else `{"hex": …}`: `pykafkad produce --json` reads both back to the same bytes."""
    if data is None:
        return None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return {"hex": data.hex()}


def print_error(sentence: str) -> None:
    """A sentence on standard error, after what standard output holds back."""
    sys.stdout.flush()
    print(f"pykafkad: {sentence}", file=sys.stderr)


def add_json(parser: argparse.ArgumentParser, default: object = False) -> None:
    """The option of the commands that print a table."""
    parser.add_argument("--json", action="store_true", default=default, help="one JSON object a line")


def add_markdown(parser: argparse.ArgumentParser) -> None:
    """The options of the commands whose tables stand in the README."""
    parser.add_argument("--markdown", action="store_true", help="the tables that stand in the README")
    parser.add_argument(
        "--into", metavar="FILE", help="with --markdown: replace the tables in this document instead of printing them"
    )


def print_markdown(options: argparse.Namespace, name: str, markdown: Callable[[], str]) -> bool:
    """Does what the options of `add_markdown` ask for; whether they asked for anything. `name` is that of the
    document's markers."""
    if options.into and not options.markdown:
        raise Failure("--into goes with --markdown", 2)
    if options.into:
        put_between_markers(options.into, name, markdown())
    elif options.markdown:
        print(markdown())
    return bool(options.markdown)


def put_between_markers(path: str, name: str, text: str) -> None:
    """Replaces what stands between `<!-- name: begin -->` and `<!-- name: end -->` in a document; raises `Failure`
    without the markers."""
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
