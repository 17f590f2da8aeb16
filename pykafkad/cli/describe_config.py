"""`pykafkad describe-config`: prints the settings table, at a terminal or for the documentation."""

from __future__ import annotations

from pykafkad.cli.output import Failure, add_json, add_markdown, print_json, print_markdown, print_table
from pykafkad.config import BROKER, ROWS, SCOPES

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable

    from pykafkad.config import Row

SUMMARY = "list the settings with type, default, allowed values and what they do"
COLUMNS = ("scope", "name", "type", "default", "allowed", "applies", "effect", "help")
APPLIES = {"start": "at start", "cluster": "live", "broker": "live, per broker", "live": "live"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `pykafkad describe-config`."""
    parser.add_argument("words", nargs="*", metavar="WORD", help="only settings whose name or help has all these words")
    parser.add_argument("--scope", choices=SCOPES, action="append", help="only these settings (repeatable)")
    parser.add_argument("--effect", action="store_true", help="only settings that this version acts on")
    add_json(parser)
    add_markdown(parser)


def run(options: argparse.Namespace) -> int:
    """Prints the selected rows. Raises `Failure` when there are none."""
    if print_markdown(options, "settings", markdown):
        return 0
    rows = [row for scope in options.scope or SCOPES for row in ROWS[scope].values() if _wanted(row, options)]
    if not rows:
        words = f" whose name or help has {' and '.join(options.words)}" if options.words else ""
        raise Failure(f"there is no setting{words}")
    if options.json:
        for row in rows:
            print_json(dict(zip(COLUMNS, _columns(row), strict=True)))
    else:
        print_table(COLUMNS, [_columns(row) for row in rows])
    return 0


def _wanted(row: Row, options: argparse.Namespace) -> bool:
    text = f"{row.name} {row.help}".lower()
    return row.documented and (row.effect or not options.effect) and all(word.lower() in text for word in options.words)


def _columns(row: Row) -> tuple[object, ...]:
    default = row.default
    if default != row.kafka_default:
        default = f"{default} (Kafka: {'none' if row.kafka_default is None else row.kafka_default})"
    return row.scope, row.name, row.type, default, _allowed(row), _applies(row), "yes" if row.effect else "no", row.help


def _allowed(row: Row) -> str:
    """The `allowed` column of the settings' text files in words."""
    allowed = row.allowed
    if allowed == "replicas":
        return "* or PARTITION:BROKER pairs with commas"
    if allowed == "blanks":
        return "any, items may be empty"
    if allowed == "reset":
        return "earliest, latest or by_duration:PnDTnHnMn.nS"
    if ".." not in allowed:
        return allowed.removeprefix("i:").replace("|", ", ") + (" (any case)" if allowed.startswith("i:") else "")
    bounds, _, exception = allowed.partition("|")
    least, _, most = bounds.partition("..")
    return (f"{least} to {most}" if most else f"at least {least}") + (f", or {exception}" if exception else "")


def _applies(row: Row) -> str:
    """When a change takes effect. The text names Kafka's answer too where this version does not act on live changes."""
    if row.effect and row.applies != "start" and not row.acts_live:
        return f"at start (Kafka: {APPLIES[row.applies]})"
    return APPLIES[row.applies]


def markdown() -> str:
    """The settings section of the documentation.

    It has a table of the settings that have an effect, the number of the others, and the defaults that differ from
    Kafka's.
    """
    lines = ["| setting | default | changes apply | what it does |", "|---|---|---|---|"]
    lines += [_markdown_line(row) for scope in SCOPES for row in ROWS[scope].values() if row.effect and row.documented]
    quiet = {scope: sum(not row.effect and row.documented for row in ROWS[scope].values()) for scope in SCOPES}
    counts = ", ".join(f"{count} {scope}" for scope, count in quiet.items() if count)
    lines += [
        "",
        f"Known, checked and answered like Kafka's, but without effect yet: {counts} settings "
        "(`pykafkad describe-config`).",
    ]
    lines += ["", "Defaults that are not Kafka's:", ""]
    lines += _differences(ROWS[BROKER].values())
    return "\n".join(lines)


def _markdown_line(row: Row) -> str:
    name = f"`{row.name}`" + ("" if row.scope == BROKER else f" ({row.scope})")
    default = "none" if row.default is None else "empty" if row.default == "" else row.default
    return f"| {name} | {default} | {_applies(row)} | {row.help} |".replace("|delete", "\\|delete")


def _differences(rows: Iterable[Row]) -> list[str]:
    lines = []
    for row in rows:
        if row.default != row.kafka_default:
            kafka_default = "none, it must be set" if row.kafka_default is None else row.kafka_default
            lines.append(f"* `{row.name}` = {row.default} (Kafka: {kafka_default})")
    return lines
