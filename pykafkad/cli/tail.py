"""`pykafkad tail`: prints the records of a topic as they arrive. It uses no group and commits no offsets."""

from __future__ import annotations

import re

from pykafkad.cli import by_schema, client
from pykafkad.cli.output import Failure, json_bytes, print_json, readable

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any

SUMMARY = "print the records of a topic as they arrive, without using a group"
UNITS_S = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
POLL_MS = 500
PARTITION_CHECK_POLLS = 10


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `pykafkad tail`."""
    parser.add_argument("topic", metavar="TOPIC", help="the topic to read, including partitions that are added later")
    parser.add_argument("last", nargs="?", metavar="-N", help="begin with the last N of each partition: --from -N")
    parser.add_argument(
        "--from", dest="start", metavar="WHERE",
        help="where to begin: `start`, `end` (default), an offset, `-N` for the last N of each partition, "
        "or a time such as 2026-01-31T12:00:00Z",
    )  # fmt: skip
    parser.add_argument(
        "--since", metavar="AGO", help="begin with what is not older than this, such as 30s, 5m, 2h or 1d"
    )
    parser.add_argument("--key", metavar="TEXT", help="only records with this key")
    parser.add_argument("--partition", type=int, action="append", metavar="N", help="only this partition (repeatable)")
    parser.add_argument("-n", "--max", type=client.count, metavar="N", help="stop after N records")
    parser.add_argument("--stop-at-end", action="store_true", help="stop after the records that the topic has now")
    parser.add_argument(
        "--json",
        action="store_true",
        help='one JSON object a line with all fields; bytes that are not UTF-8 text as {"hex": "…"}',
    )
    parser.add_argument(
        "--committed",
        action="store_true",
        help="skip records of open and aborted transactions (read_committed)",
    )
    by_schema.add_reading(parser)
    client.add_bootstrap(parser)


def run(options: argparse.Namespace) -> int:
    """Prints records until an option or a signal stops it."""
    options.topic, options.start = _topic_and_start(options)
    reader = None if options.registry is None else by_schema.Reader(options.registry)
    isolation = "read_committed" if options.committed else "read_uncommitted"
    with (
        client.admin(options) as admin,
        client.consumer(options, isolation_level=isolation, auto_offset_reset="earliest") as consumer,
    ):
        partitions = client.partitions_of(admin, options.bootstrap, options.topic, options.partition)
        ends = {partition: end for partition, (_, end) in client.watermarks(admin, partitions).items()}
        consumer.assign(partitions)
        _seek(consumer, admin, partitions, options.start)
        _follow(consumer, admin, ends, options, reader)
    return 0


def _topic_and_start(options: argparse.Namespace) -> tuple[str, str]:
    """The topic, and where `-N` (in front of it or behind it), `--from` or `--since` say to begin."""
    words = [options.topic] if options.last is None else [options.topic, options.last]
    last = [word for word in words if re.fullmatch(r"-\d+", word)]
    topics = [word for word in words if word not in last]
    if len(topics) != 1:
        raise Failure(f"{' '.join(words)}: must be one TOPIC, and -N for the last N records", 2)
    starts = [*last, *(each for each in (options.start,) if each is not None)]
    if options.since is not None:
        starts.append(_ago(options.since))
    if len(starts) > 1:
        raise Failure("-N, --from and --since each say where to begin: give one of them", 2)
    return topics[0], starts[0] if starts else "end"


def _ago(text: str) -> str:
    """The time that was `text` ago."""
    from datetime import UTC, datetime, timedelta

    found = re.fullmatch(r"(\d{1,9})([smhd])", text)
    if found is None:
        raise Failure(f"--since {text}: must be a whole number with s, m, h or d, such as 5m", 2)
    return (datetime.now(UTC) - timedelta(seconds=int(found[1]) * UNITS_S[found[2]])).isoformat()


def _seek(consumer: Any, admin: Any, partitions: list[Any], start: str) -> None:
    """Sets the position of every partition as `--from` says."""
    if start in ("start", "earliest", "beginning"):
        consumer.seek_to_beginning(*partitions)
    elif start in ("end", "latest"):
        # The end offset is resolved now. A later lookup would skip a record that arrives before the first fetch.
        for partition, (_, end) in client.watermarks(admin, partitions).items():
            consumer.seek(partition, end)
    elif (number := client.offset(start.removeprefix("-"))) is not None:
        for partition, (first, end) in client.watermarks(admin, partitions).items():
            wanted = end - number if start.startswith("-") else number
            consumer.seek(partition, max(first, min(wanted, end)))
    else:
        allowed = f"start, end, an offset up to {client.OFFSET_MAX}, -N or a time such as 2026-01-31T12:00:00Z"
        timestamp_ms = client.time_ms(start, f"--from {start}: must be {allowed}")
        found = consumer.offsets_for_times(dict.fromkeys(partitions, timestamp_ms))
        for partition, (_, end) in client.watermarks(admin, partitions).items():
            consumer.seek(partition, found[partition].offset if found.get(partition) else end)


def _follow(
    consumer: Any, admin: Any, ends: dict[Any, int], options: argparse.Namespace, reader: by_schema.Reader | None
) -> None:
    printed = 0
    polls = 0
    key = None if options.key is None else options.key.encode()
    while True:
        if options.stop_at_end and all(consumer.position(partition) >= end for partition, end in ends.items()):
            return
        batches = consumer.poll(timeout_ms=POLL_MS)
        for partition, records in batches.items():
            for record in records:
                if options.stop_at_end and record.offset >= ends[partition]:
                    break
                if key is not None and record.key != key:
                    continue
                _print(record, options.json, reader)
                printed += 1
                if printed == options.max:
                    return
        polls += 1
        if not options.stop_at_end and options.partition is None and polls % PARTITION_CHECK_POLLS == 0:
            _add_new_partitions(consumer, admin, ends, options)


def _add_new_partitions(consumer: Any, admin: Any, ends: dict[Any, int], options: argparse.Namespace) -> None:
    """Follows partitions that were added to the topic meanwhile, from their start."""
    new = [
        partition
        for partition in client.partitions_of(admin, options.bootstrap, options.topic, options.partition)
        if partition not in ends
    ]
    if not new:
        return
    positions = {partition: consumer.position(partition) for partition in ends}
    ends.update(dict.fromkeys(new, 0))
    consumer.assign(list(ends))
    for partition, position in positions.items():
        consumer.seek(partition, position)
    consumer.seek_to_beginning(*new)


def _print(record: Any, as_json: bool, reader: by_schema.Reader | None = None) -> None:
    if as_json:
        fields = {
            "topic": record.topic,
            "partition": record.partition,
            "offset": record.offset,
            "timestamp_ms": record.timestamp,
            **_fields(record, reader),
            "headers": [[name, json_bytes(value)] for name, value in record.headers],
        }
        print_json(fields)
        return
    from datetime import UTC, datetime

    moment = (
        "-"
        if record.timestamp < 0
        else datetime.fromtimestamp(record.timestamp / 1000, UTC).isoformat(timespec="milliseconds")
    )
    headers = " ".join(f"{name}={_shown(value)}" for name, value in record.headers)
    columns = [
        f"{record.topic}-{record.partition}@{record.offset}",
        moment.replace("+00:00", "Z"),
        _shown(record.key) if reader is None else _line(reader.as_text("key", record.key, is_optional=True)),
        _shown(record.value) if reader is None else _line(reader.as_text("value", record.value)),
    ]
    print("\t".join(columns + ([headers] if headers else [])), flush=True)


def _fields(record: Any, reader: by_schema.Reader | None) -> dict[str, Any]:
    if reader is None:
        return {"key": json_bytes(record.key), "value": json_bytes(record.value)}
    return reader.as_fields("key", record.key, is_optional=True) | reader.as_fields("value", record.value)


def _shown(data: bytes | None) -> str:
    return _line(readable(data))


def _line(text: str | None) -> str:
    return "null" if text is None else text.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n")
