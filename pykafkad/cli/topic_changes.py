"""What `pykafkad topics` changes in topics that exist: partitions, settings and where their records begin."""

from __future__ import annotations

from pykafkad.cli import client
from pykafkad.cli.output import Failure, print_error, print_table
from pykafkad.errors import name as error_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable
    from typing import Any

ALL = -1
"""DeleteRecords' offset for the high watermark."""


def add_actions(add: Callable[..., argparse.ArgumentParser]) -> tuple[argparse.ArgumentParser, ...]:
    """The actions `alter` and `delete-records`."""
    alter = add("alter", help="add partitions, change settings")
    alter.add_argument("names", nargs="+", metavar="NAME", help="topics to change")
    alter.add_argument("--partitions", type=client.count, metavar="N", help="have N partitions, more than now")
    alter.add_argument("--config", action="append", default=[], metavar="NAME=VALUE", help="set a setting (repeatable)")
    alter.add_argument(
        "--unset", action="append", default=[], metavar="NAME", help="go back to the setting's default (repeatable)"
    )
    delete = add("delete-records", help="delete the oldest records of a topic")
    delete.add_argument("topic", metavar="TOPIC", help="the topic to shorten")
    delete.add_argument(
        "--before",
        default="end",
        metavar="WHERE",
        help="delete what stands before this offset; `end` (default) deletes all records",
    )
    delete.add_argument("--partition", type=int, action="append", metavar="N", help="only this partition (repeatable)")
    return alter, delete


def alter(options: argparse.Namespace) -> int:
    """Changes topics; the exit code is 1 when one was refused."""
    changes: dict[str, str | None] = {**settings(options.config), **dict.fromkeys(options.unset)}
    if not changes and options.partitions is None:
        raise Failure("name what to change: --partitions, --config or --unset", 2)
    done: dict[str, list[str]] = {name: [] for name in options.names}
    refused = []
    with client.admin(options) as admin:
        if options.partitions is not None:
            answer = admin.create_partitions(dict.fromkeys(options.names, options.partitions), raise_errors=False)
            for row in answer.results:
                if row.error_code:
                    refused.append(f"{row.name}: {error_name(row.error_code)}: {row.error_message}")
                else:
                    done[row.name].append(f"{options.partitions} partitions")
        for topic in options.names:
            for name, value in changes.items():
                if sentence := _set(admin, topic, name, value):
                    refused.append(f"{topic}: {sentence}")
                else:
                    done[topic].append(f"{name} unset" if value is None else f"{name}={value}")
    rows = [(topic, words) for topic, words in done.items() if words]
    print_table(("topic", "changed"), rows, as_json=options.json)
    for sentence in refused:
        print_error(sentence)
    return 1 if refused else 0


def settings(pairs: list[str]) -> dict[str, str]:
    """What the words of `--config` say. Raises `Failure` for one that is not NAME=VALUE."""
    found = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise Failure(f"--config {pair}: must be NAME=VALUE", 2)
        found[name] = value
    return found


def _set(admin: Any, topic: str, name: str, value: str | None) -> str | None:
    """Sets a topic's setting, or unsets it for None. What the broker said if it refused."""
    from kafka.admin import ConfigResource, ConfigResourceType

    resource = ConfigResource(ConfigResourceType.TOPIC, topic, {name: value})
    change = admin.reset_configs if value is None else admin.alter_configs
    result: str = change([resource], raise_on_unknown=False, incremental=True)["topic"][topic]
    return client.refusal(result)


def delete_records(options: argparse.Namespace) -> int:
    """Deletes records; prints where each partition begins now."""
    offset = ALL if options.before == "end" else client.offset(options.before)
    if offset is None:
        raise Failure(f"--before {options.before}: must be `end` or an offset up to {client.OFFSET_MAX}", 2)
    rows, refused = [], []
    with client.admin(options) as admin:
        from kafka.errors import KafkaError

        for each in client.partitions_of(admin, options.bootstrap, options.topic, options.partition):
            # One at a time: kafka-python has no answer for the others when one is refused.
            try:
                row = admin.delete_records({each: offset})[each]
            except KafkaError as error:
                refused.append(f"{each.topic}-{each.partition}: {getattr(error, 'message', error)}")
            else:
                rows.append((each.topic, each.partition, row["low_watermark"]))
    print_table(("topic", "partition", "start_offset"), rows, as_json=options.json)
    for sentence in refused:
        print_error(sentence)
    return 1 if refused else 0
