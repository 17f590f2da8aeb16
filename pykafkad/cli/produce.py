"""`pykafkad produce`: writes records from standard input or the command line to a topic of any Kafka."""

from __future__ import annotations

import json
import sys
from collections import deque

from pykafkad.cli import by_schema, client
from pykafkad.cli.output import Failure, print_json, tell_person

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator
    from typing import Any

SUMMARY = "write records to a topic, one for each line of standard input"
IN_FLIGHT_MAX = 10_000
CONFIRM_S = 60
# The broker refuses requests that are too large. This is the default of its own limit, socket.request.max.bytes.
REQUEST_SIZE_BYTES_MAX = 100 << 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `pykafkad produce`."""
    parser.add_argument(
        "topic", metavar="TOPIC", help="the topic to write to; a broker with auto.create.topics.enable creates it"
    )
    parser.add_argument(
        "values", nargs="*", metavar="VALUE", help="write these records instead of the lines of standard input"
    )
    parser.add_argument(
        "--key-separator",
        metavar="TEXT",
        help=r"split each line here: the key stands before this text, the value after it (\t is a tab)",
    )
    parser.add_argument("--key", help="a key for all records")
    parser.add_argument(
        "--header", action="append", default=[], metavar="NAME=VALUE", help="a header for all records (repeatable)"
    )
    parser.add_argument(
        "--partition",
        type=int,
        metavar="N",
        help="write to this partition (default: chosen by the key; without a key, at random)",
    )
    parser.add_argument(
        "--json",
        action="store_true",
        help="each line is a JSON object with key, value, headers and timestamp_ms, as of `pykafkad tail --json`; a "
        "key or value that is not text is written as JSON, headers may be an object",
    )
    parser.add_argument(
        "--compression",
        choices=("gzip", "snappy", "lz4", "zstd"),
        help="compress batches with this codec (default: none)",
    )
    parser.add_argument(
        "--acks",
        choices=("0", "1", "all"),
        default="all",
        help="replicas that must have a record before the broker answers: all in sync, the leader (1) or none (0) "
        "(default: all)",
    )
    parser.add_argument(
        "--report", action="store_true", help="print partition and offset of each record as a JSON line"
    )
    by_schema.add_writing(parser)
    client.add_bootstrap(parser)


def run(options: argparse.Namespace) -> int:
    """Writes all records and waits for the broker's answers. Raises `Failure` when it refuses a record."""
    acks = options.acks if options.acks == "all" else int(options.acks)
    # Idempotence needs acks=all. kafka-python would turn it off by itself, but with a warning.
    settings = {
        "acks": acks, "compression_type": options.compression, "linger_ms": 5, "enable_idempotence": acks == "all",
        "max_request_size": REQUEST_SIZE_BYTES_MAX,
        # By default kafka-python retries for two minutes and then reports only a timeout.
        "retries": client.RETRIES, "retry_backoff_ms": client.RETRY_DELAY_S * 1000,
    }  # fmt: skip
    count = 0
    write = by_schema.writer(options)
    with client.producer(options, **settings) as producer:
        _check_partition(producer, options)
        if not options.values:
            tell_person("type one record per line; Ctrl-D ends the input", sys.stdin)
        waiting: deque[Any] = deque()
        for record in _records(options, write):
            waiting.append(producer.send(options.topic, **record))
            count += 1
            # Answers are reported while input still arrives: standard input may never end.
            while waiting and (waiting[0].is_done or len(waiting) >= IN_FLIGHT_MAX):
                _confirm(waiting.popleft(), options)
        for future in waiting:
            _confirm(future, options)
    if not options.report:
        print(f"{count} records written to {options.topic}", file=sys.stderr)
    return 0


def _check_partition(producer: Any, options: argparse.Namespace) -> None:
    if options.partition is None:
        return
    known = sorted(producer.partitions_for(options.topic))
    if options.partition not in known:
        raise Failure(f"{options.topic} has partitions 0 to {known[-1]}, not {options.partition}")


def _confirm(future: Any, options: argparse.Namespace) -> None:
    """Waits for the answer to one record. Raises kafka-python's exception when the broker refuses the record."""
    done = future.get(CONFIRM_S)
    if options.report:
        print_json(
            {"topic": done.topic, "partition": done.partition, "offset": done.offset, "timestamp_ms": done.timestamp}
        )


def _records(options: argparse.Namespace, write: Callable[[Any], bytes] | None = None) -> Iterator[dict[str, object]]:
    headers = []
    for pair in options.header:
        name, equals, value = pair.partition("=")
        if not equals:
            raise Failure(f"--header {pair}: must be NAME=VALUE", 2)
        headers.append((name, value.encode()))
    separator = None if options.key_separator is None else options.key_separator.replace("\\t", "\t").encode()
    key = None if options.key is None else options.key.encode()
    lines = [value.encode() for value in options.values] or (line.removesuffix(b"\n") for line in sys.stdin.buffer)
    for number, line in enumerate(lines, 1):
        if options.json:
            yield _from_json(line, number, options.partition, write)
            continue
        record = {"value": line, "key": key, "headers": headers, "partition": options.partition}
        if separator is not None:
            before, found, after = line.partition(separator)
            if not found:
                text = options.key_separator
                raise Failure(f"line {number} has no separator '{text}'; every line needs one with --key-separator")
            record.update(key=before, value=after)
        if write is not None:
            record["value"] = _by_schema(record["value"], number, write)
        yield record


def _by_schema(text: Any, number: int, write: Callable[[Any], bytes]) -> bytes:
    try:
        return write(json.loads(text))
    except (ValueError, RecursionError) as error:
        is_json = not isinstance(error, (json.JSONDecodeError, UnicodeDecodeError))
        raise Failure(f"line {number}: {error if is_json else f'its value is not JSON: {error}'}") from None


def _from_json(
    line: bytes, number: int, partition: int | None, write: Callable[[Any], bytes] | None = None
) -> dict[str, object]:
    try:
        fields = json.loads(line)
        if not isinstance(fields, dict):
            raise ValueError("not an object")
        named = fields.get("headers") or []
        headers = [(name, _bytes(value)) for name, value in (named.items() if isinstance(named, dict) else named)]
        if any(value is None for _, value in headers):
            raise ValueError("a header is null, which kafka-python does not send")
        key, value, timestamp_ms = _bytes(fields.get("key")), fields.get("value"), fields.get("timestamp_ms")
        value = _bytes(value) if write is None or value is None else write(value)
        if timestamp_ms is not None and (type(timestamp_ms) is not int or timestamp_ms < 0):
            raise ValueError(f"timestamp_ms {timestamp_ms!r} must be a whole number of milliseconds, 0 or more")
    except (ValueError, TypeError) as error:
        raise Failure(f"line {number} is not a JSON record with key, value and headers: {error}") from None
    return {"key": key, "value": value, "headers": headers, "partition": partition, "timestamp_ms": timestamp_ms}


def _bytes(text: object) -> bytes | None:
    """The bytes of a value that `pykafkad tail --json` printed: UTF-8 text, or `{"hex": …}`. Everything else that JSON
    has is written as JSON."""
    if text is None:
        return None
    if isinstance(text, dict) and text.keys() == {"hex"} and isinstance(text["hex"], str):
        return bytes.fromhex(text["hex"])
    return (text if isinstance(text, str) else json.dumps(text, ensure_ascii=False, separators=(",", ":"))).encode()
