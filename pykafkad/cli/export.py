"""`pykafkad export`: writes the records of a topic to a Parquet file. It uses no group and commits no offsets."""

from __future__ import annotations

import sys
from collections import namedtuple

from pykafkad.cli import client, record_table
from pykafkad.cli.output import Failure, tell_person
from pykafkad.disk import Disk
from pykafkad.errors import StorageFailure

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator
    from typing import Any

SUMMARY = "write the records of a topic to a Parquet file"
POLL_MS = 500
GROUP_RECORDS = 65_536
GROUP_BYTES = 32 << 20
"""A row group is written when it has so many records, or so many bytes of keys and values: what is kept in memory."""

Row = namedtuple("Row", ("topic", "partition", "offset", "timestamp_ms", "key", "value", "headers"))
Row.__doc__ = "A record of kafka-python in the words of `record_table`."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `pykafkad export`."""
    parser.add_argument("topic", metavar="TOPIC", help="the topic whose records are written, as many as it has now")
    parser.add_argument("file", metavar="FILE", help="the Parquet file, which must not be there yet")
    parser.add_argument("--force", action="store_true", help="write over a file that is there")
    parser.add_argument("--partition", type=int, action="append", metavar="N", help="only this partition (repeatable)")
    contents = (record_table.BYTES, record_table.TEXT)
    for name in ("key", "value"):
        parser.add_argument(
            f"--{name}", choices=contents, default=record_table.BYTES, help=f"what a {name} is (default: bytes)"
        )
    parser.add_argument(
        "--committed", action="store_true", help="skip records of open and aborted transactions (read_committed)"
    )
    client.add_bootstrap(parser)


def run(options: argparse.Namespace) -> int:
    """Writes the file beside its name and renames it at the end, so that a file of this name is whole."""
    record_table.load()
    disk = Disk()
    if disk.exists(options.file) and not options.force:
        raise Failure(f"{options.file}: exists; --force writes over it", 2)
    isolation = "read_committed" if options.committed else "read_uncommitted"
    part = f"{options.file}.part"
    with (
        client.admin(options) as admin,
        client.consumer(options, isolation_level=isolation, auto_offset_reset="earliest") as consumer,
    ):
        partitions = client.partitions_of(admin, options.bootstrap, options.topic, options.partition)
        consumer.assign(partitions)
        consumer.seek_to_beginning(*partitions)
        # The consumer's own ends are those of its isolation level.
        ends = consumer.end_offsets(partitions)
        try:
            written = _write(part, _groups(consumer, ends), options)
            disk.rename(part, options.file)
        except (OSError, StorageFailure) as error:
            raise Failure(f"{part}: {error}") from None
        finally:
            disk.unlink(part)
    tell_person(f"{written} records in {options.file}", sys.stdout)
    return 0


def _write(path: str, groups: Iterator[list[Row]], options: argparse.Namespace) -> int:
    """Writes a file with a row group for each of `groups`. How many records that were."""
    from pyarrow import parquet

    written = 0
    with parquet.ParquetWriter(path, record_table.table([], options.key, options.value).schema) as writer:
        for group in groups:
            writer.write_table(_table(group, options))
            written += len(group)
    return written


def _table(group: list[Row], options: argparse.Namespace) -> Any:
    try:
        return record_table.table(group, options.key, options.value)
    except ValueError as error:
        raise Failure(str(error)) from None


def _groups(consumer: Any, ends: dict[Any, int]) -> Iterator[list[Row]]:
    """The records below `ends`, in groups of bounded size, each partition in the order of its offsets."""
    group: list[Row] = []
    size = 0
    while any(consumer.position(partition) < end for partition, end in ends.items()):
        for partition, records in consumer.poll(timeout_ms=POLL_MS).items():
            for record in records:
                if record.offset >= ends[partition]:
                    break
                group.append(
                    Row(
                        record.topic,
                        record.partition,
                        record.offset,
                        record.timestamp,
                        record.key,
                        record.value,
                        record.headers,
                    )
                )
                size += len(record.key or b"") + len(record.value or b"")
                if len(group) >= GROUP_RECORDS or size >= GROUP_BYTES:
                    yield group
                    group, size = [], 0
    if group:
        yield group
