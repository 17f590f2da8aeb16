"""`pykafkad tail`: prints the records of a topic as they arrive. It uses no group and commits no offsets."""

from __future__ import annotations

from pykafkad.cli import client
from pykafkad.cli.output import Failure, json_bytes, print_json, readable

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any

SUMMARY = "print the records of a topic as they arrive, without using a group"
POLL_MS = 500
PARTITION_CHECK_POLLS = 10


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `pykafkad tail`."""
    parser.add_argument("topic", metavar="TOPIC", help="the topic to read, including partitions that are added later")
    parser.add_argument(
        "--from", dest="start", default="end", metavar="WHERE",
        help="where to begin: `start`, `end` (default), an offset, `-N` for the last N of each partition, "
        "or a time such as 2026-01-31T12:00:00Z",
    )  # fmt: skip
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
    client.add_bootstrap(parser)


def run(options: argparse.Namespace) -> int:
    """Prints records until an option or a signal stops it."""
    isolation = "read_committed" if options.committed else "read_uncommitted"
    with (
        client.admin(options.bootstrap) as admin,
        client.consumer(options.bootstrap, isolation_level=isolation, auto_offset_reset="earliest") as consumer,
    ):
        partitions = _partitions(admin, options)
        ends = {partition: end for partition, (_, end) in client.watermarks(admin, partitions).items()}
        consumer.assign(partitions)
        _seek(consumer, admin, partitions, options.start)
        _follow(consumer, admin, ends, options)
    return 0


def _partitions(admin: Any, options: argparse.Namespace) -> list[Any]:
    topic = admin.describe_topics([options.topic])[0]
    if topic["error_code"] != 0:
        raise Failure(
            f"there is no topic {options.topic} at {options.bootstrap}; `pykafkad topics list` shows all topics"
        )
    known = sorted(row["partition_index"] for row in topic["partitions"])
    for number in options.partition or ():
        if number not in known:
            raise Failure(f"{options.topic} has partitions 0 to {known[-1]}, not {number}")
    return [client.partition_of(options.topic, number) for number in options.partition or known]


def _seek(consumer: Any, admin: Any, partitions: list[Any], start: str) -> None:
    """Sets the position of every partition as `--from` says."""
    if start in ("start", "earliest", "beginning"):
        consumer.seek_to_beginning(*partitions)
    elif start in ("end", "latest"):
        # The end offset is resolved now. A later lookup would skip a record that arrives before the first fetch.
        for partition, (_, end) in client.watermarks(admin, partitions).items():
            consumer.seek(partition, end)
    elif start.lstrip("-").isdecimal():
        for partition, (first, end) in client.watermarks(admin, partitions).items():
            wanted = int(start) if not start.startswith("-") else end + int(start)
            consumer.seek(partition, max(first, min(wanted, end)))
    else:
        timestamp_ms = _timestamp_ms(start)
        found = consumer.offsets_for_times(dict.fromkeys(partitions, timestamp_ms))
        for partition, (_, end) in client.watermarks(admin, partitions).items():
            consumer.seek(partition, found[partition].offset if found.get(partition) else end)


def _timestamp_ms(text: str) -> int:
    from datetime import datetime

    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise Failure(
            f"--from {text}: must be start, end, an offset, -N or a time such as 2026-01-31T12:00:00Z", 2
        ) from None
    return int(moment.timestamp() * 1000)


def _follow(consumer: Any, admin: Any, ends: dict[Any, int], options: argparse.Namespace) -> None:
    printed = 0
    polls = 0
    while True:
        if options.stop_at_end and all(consumer.position(partition) >= end for partition, end in ends.items()):
            return
        batches = consumer.poll(timeout_ms=POLL_MS)
        for partition, records in batches.items():
            for record in records:
                if options.stop_at_end and record.offset >= ends[partition]:
                    break
                _print(record, options.json)
                printed += 1
                if printed == options.max:
                    return
        polls += 1
        if not options.stop_at_end and options.partition is None and polls % PARTITION_CHECK_POLLS == 0:
            _add_new_partitions(consumer, admin, ends, options)


def _add_new_partitions(consumer: Any, admin: Any, ends: dict[Any, int], options: argparse.Namespace) -> None:
    """Follows partitions that were added to the topic meanwhile, from their start."""
    new = [partition for partition in _partitions(admin, options) if partition not in ends]
    if not new:
        return
    positions = {partition: consumer.position(partition) for partition in ends}
    ends.update(dict.fromkeys(new, 0))
    consumer.assign(list(ends))
    for partition, position in positions.items():
        consumer.seek(partition, position)
    consumer.seek_to_beginning(*new)


def _print(record: Any, as_json: bool) -> None:
    if as_json:
        fields = {
            "topic": record.topic,
            "partition": record.partition,
            "offset": record.offset,
            "timestamp_ms": record.timestamp,
            "key": json_bytes(record.key),
            "value": json_bytes(record.value),
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
        _shown(record.key),
        _shown(record.value),
    ]
    print("\t".join(columns + ([headers] if headers else [])), flush=True)


def _shown(data: bytes | None) -> str:
    text = readable(data)
    return "null" if text is None else text.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n")
