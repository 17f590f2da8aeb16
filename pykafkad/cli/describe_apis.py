"""`pykafkad describe-apis`: prints the APIs of Kafka 4.3.1 and which of their versions this broker serves.

The rows come from the table by which the broker serves them.
"""

from __future__ import annotations

from pykafkad.cli.output import Failure, add_json, add_markdown, print_markdown, print_table
from pykafkad.handlers.table import CONTROLLER, OFFERED, every_row

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from pykafkad.handlers.table import Api

SUMMARY = "list the APIs with versions, gaps and authorization, or print a message's compiled codec"
COLUMNS = ("key", "name", "state", "advertised", "versions", "kafka_versions", "authorization", "gaps")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `pykafkad describe-apis`."""
    parser.add_argument(
        "--all",
        action="store_true",
        help="list every API key of Kafka 4.3.1, with the reason why the broker does not serve it",
    )
    add_json(parser)
    add_markdown(parser)
    parser.add_argument(
        "--source",
        nargs=2,
        metavar=("NAME", "VERSION"),
        help="print the Python functions that decode and encode an API's messages, such as Fetch 12",
    )


def run(options: argparse.Namespace) -> int:
    """Prints the table, or one API's codec."""
    if options.source is not None:
        print(codec_source(*options.source))
        return 0
    if print_markdown(options, "apis", markdown):
        return 0
    rows = [_columns(row) for row in every_row() if row.state == OFFERED or options.all]
    print_table(COLUMNS, rows, as_json=options.json)
    return 0


def _columns(row: Api) -> tuple[object, ...]:
    versions = _range(row.min_version, row.max_version)
    advertised = "-" if row.advertised_min is None else _range(row.advertised_min, row.max_version)
    return (
        row.key,
        row.name,
        row.state,
        advertised,
        versions,
        row.kafka_versions,
        "; ".join(map(str, row.authorization)) or "none",
        row.gaps,
    )


def _range(low: int | None, high: int | None) -> str:
    return "-" if low is None else str(low) if low == high else f"{low}-{high}"


def markdown() -> str:
    """The table of APIs for the documentation: every offered API, then the others in one line per reason."""
    heading = ["| key | API | versions | gaps |", "|---:|---|---|---|"]
    lines, on_controllers = [*heading], [*heading]
    reasons: dict[str, list[str]] = {}
    for row in every_row():
        if row.state == CONTROLLER:
            on_controllers.append(
                f"| {row.key} | {row.name} | {_range(row.min_version, row.max_version)} | {row.gaps} |"
            )
        elif row.state == OFFERED:
            hidden = " (not advertised)" if row.advertised_min is None else ""
            lines.append(
                f"| {row.key} | {row.name} | {_range(row.min_version, row.max_version)}{hidden} | {row.gaps} |"
            )
        else:
            reasons.setdefault(row.gaps, []).append(row.name)
    lines += ["", "A controller's listener answers these from brokers and other controllers:", "", *on_controllers]
    lines += ["", "The other keys close the connection, as with Kafka:", ""]
    lines += [f"* {', '.join(names)}: {reason}" for reason, names in reasons.items()]
    return "\n".join(lines)


def codec_source(name: str, version: str) -> str:
    """The compiled functions of an API's request and response at one version.

    Raises `Failure` for an unknown API or version; its text names the known versions.
    """
    from pykafkad.errors import ProtocolError
    from pykafkad.wire import compiler, messages

    row = next((row for row in every_row() if row.name.lower() == name.lower()), None)
    if row is None:
        raise Failure(f"there is no API {name}; `pykafkad describe-apis --all` lists them", 2)
    try:
        classes = (messages.request_class(row.key), messages.response_class(row.key))
        valid = messages.valid_versions(classes[0])
    except ProtocolError:
        raise Failure(f"{row.name} has no schema here") from None
    if not version.isdecimal() or int(version) not in valid:
        raise Failure(f"{row.name} has versions {_range(valid[0], valid[-1])}, not {version}", 2)
    return "\n".join(
        compiler.source(cls, int(version), direction) for cls in classes for direction in ("decode", "encode")
    )
