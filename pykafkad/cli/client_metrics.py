"""`pykafkad client-metrics`: prints the metrics that clients pushed (KIP-714), read from a broker's data directory.

The command needs no running broker.
"""

from __future__ import annotations

import json
import os

from pykafkad.cli.output import Failure, print_json, print_table
from pykafkad.server.client_metrics import FILE_NAME, OLD_FILE_NAME

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator
    from typing import Any

SUMMARY = "print the metrics that clients pushed to a broker (pykafkad.client.telemetry.enable)"
COLUMNS = ("received", "client_id", "client_instance_id", "metric", "type", "value", "attributes")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `pykafkad client-metrics`."""
    parser.add_argument("directory", metavar="DIRECTORY", help="the data directory of a broker, or of several")
    parser.add_argument("--client-id", metavar="ID", help="only pushes of clients with this client.id")
    parser.add_argument("--metric", metavar="PREFIX", default="", help="only metrics whose names begin with PREFIX")
    parser.add_argument("--latest", action="store_true", help="only the last push of each client instance")
    parser.add_argument(
        "--json", action="store_true", help="print each push as it is in the file: one JSON object a line"
    )


def run(options: argparse.Namespace) -> int:
    """Prints every point of every push, the oldest first."""
    pushes = [push for push in _pushes(options.directory) if options.client_id in (None, push["client_id"])]
    # Several brokers have files of their own.
    pushes.sort(key=lambda push: push.get("received_ms", 0))
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


def _pushes(directory: str) -> Iterator[dict[str, Any]]:
    from pykafkad.disk import Disk
    from pykafkad.server import cluster_settings

    if not os.path.isdir(directory):
        raise Failure(f"{directory} is not a directory")
    several = cluster_settings.folders_of_several(Disk(), directory)
    paths = [
        path
        for folder in (directory, *(os.path.join(directory, name) for name in several))
        for name in (OLD_FILE_NAME, FILE_NAME)
        if os.path.exists(path := os.path.join(folder, name))
    ]
    if not paths:
        raise Failure(
            f"{directory}: no client has pushed metrics to this broker; "
            "a broker keeps them with --set pykafkad.client.telemetry.enable=true"
        )
    for path in paths:
        with open(path, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                try:
                    yield json.loads(line)
                except ValueError:
                    # A broker that was killed may leave an incomplete last line.
                    continue


def _rows(push: dict[str, Any]) -> Iterator[tuple[object, ...]]:
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
