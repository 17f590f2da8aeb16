"""`pykafkad client-metrics`: what clients have pushed of their own metrics, out of a broker's data directory. No broker
is asked."""

from __future__ import annotations

import json
import os

from pykafkad.cli.output import Failure, print_json, print_table
from pykafkad.server.client_metrics import FILE_NAME, OLD_FILE_NAME

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

SUMMARY = "print the metrics that clients pushed to a broker (pykafkad.client.telemetry.enable)"
COLUMNS = ("received", "client_id", "client_instance_id", "metric", "type", "value", "attributes")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `pykafkad client-metrics`."""
    parser.add_argument("directory", metavar="DIRECTORY", help="the broker's data directory")
    parser.add_argument("--client-id", metavar="ID", help="only pushes of clients with this client.id")
    parser.add_argument("--metric", metavar="PREFIX", default="", help="only metrics whose names begin so")
    parser.add_argument("--latest", action="store_true", help="only the last push of each client instance")
    parser.add_argument(
        "--json", action="store_true", help="one JSON object a line for each push, as it stands in the file"
    )


def run(options: argparse.Namespace) -> int:
    """Prints every point of every push, the oldest first."""
    pushes = [push for push in _pushes(options.directory) if options.client_id in (None, push["client_id"])]
    if options.latest:
        pushes = list({push["client_instance_id"]: push for push in pushes}.values())
    for push in pushes:
        push["metrics"] = [metric for metric in push["metrics"] if metric["name"].startswith(options.metric)]
    if options.json:
        for push in pushes:
            print_json(push)
    else:
        print_table(COLUMNS, [row for push in pushes for row in _rows(push)])
    return 0


def _pushes(directory: str) -> Iterator[dict]:
    paths = [path for name in (OLD_FILE_NAME, FILE_NAME) if os.path.exists(path := os.path.join(directory, name))]
    if not paths:
        raise Failure(
            f"{directory}: no client has pushed metrics here; a broker keeps them with --set pykafkad.client.telemetry.enable=true"
        )
    for path in paths:
        with open(path, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                try:
                    yield json.loads(line)
                except ValueError:
                    # The line that a broker was writing when it was killed.
                    continue


def _rows(push: dict) -> Iterator[tuple]:
    from datetime import UTC, datetime

    received = datetime.fromtimestamp(push["received_ms"] / 1000, UTC).isoformat(timespec="milliseconds")
    for metric in push["metrics"]:
        for point in metric["points"]:
            value = point["value"] if "value" in point else f"count={point['count']},sum={point['sum']}"
            yield (
                received,
                push["client_id"],
                push["client_instance_id"],
                metric["name"],
                metric["type"],
                value,
                point["attributes"],
            )
