"""`pykafkad topics`: lists, creates, describes, changes and deletes topics of any Kafka."""

from __future__ import annotations

from pykafkad.cli import actions, client, topic_changes
from pykafkad.cli.output import Failure, print_error, print_table
from pykafkad.errors import name as error_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any

SUMMARY = "list, create, describe, change and delete topics, and delete their records"
HAS_ACTIONS = True


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `pykafkad topics`."""
    add = actions.add_actions(parser)
    listing = add("list", help="the names of all topics and their numbers of partitions")
    listing.add_argument("--internal", action="store_true", help="include Kafka's internal topics")
    create = add("create", help="create topics")
    create.add_argument(
        "names",
        nargs="+",
        metavar="NAME[:PARTITIONS]",
        help="a topic to create; without a number, it has those of --partitions",
    )
    create.add_argument(
        "--partitions",
        type=int,
        metavar="N",
        help="partitions of each topic whose name has no number (default: the broker's num.partitions)",
    )
    create.add_argument(
        "--replication-factor",
        type=int,
        default=-1,
        metavar="N",
        help="replicas of each partition (default: the broker's setting)",
    )
    create.add_argument(
        "--config",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a setting for all these topics, such as retention.ms=60000; `pykafkad describe-config --scope topic` "
        "lists the settings (repeatable)",
    )
    describe = add("describe", help="partitions, their leaders and offsets, and the settings that are not the default")
    describe.add_argument("names", nargs="*", metavar="NAME", help="topics to describe (default: all)")
    delete = add("delete", help="delete topics and all their records")
    delete.add_argument("names", nargs="+", metavar="NAME", help="topics to delete")
    actions.add_common(parser, (listing, create, describe, delete, *topic_changes.add_actions(add)))


def run(options: argparse.Namespace) -> int:
    """Runs one action; the exit code is 1 when it failed for any topic."""
    return {
        "list": _list,
        "create": _create,
        "describe": _describe,
        "delete": _delete,
        "alter": topic_changes.alter,
        "delete-records": topic_changes.delete_records,
    }[options.action](options)


def _list(options: argparse.Namespace) -> int:
    with client.admin(options) as admin:
        topics = [topic for topic in admin.describe_topics() if options.internal or not topic["is_internal"]]
    rows = [(topic["name"], len(topic["partitions"])) for topic in sorted(topics, key=lambda topic: topic["name"])]
    print_table(("topic", "partitions"), rows, as_json=options.json)
    return 0


def _create(options: argparse.Namespace) -> int:
    configs = topic_changes.settings(options.config)
    topics = {}
    if options.partitions is not None and options.partitions < 1:
        raise Failure(f"--partitions {options.partitions}: must be 1 or more", 2)
    without_number = -1 if options.partitions is None else options.partitions
    for text in options.names:
        name, colon, count = text.partition(":")
        if colon and not count.isdecimal():
            raise Failure(f"{text}: must be NAME or NAME:PARTITIONS", 2)
        topics[name] = {
            "num_partitions": int(count) if colon else without_number,
            "replication_factor": options.replication_factor,
            "configs": configs,
        }
    with client.admin(options) as admin:
        answer = admin.create_topics(topics, raise_errors=False)
    return _report(answer["topics"], "created", options)


def _delete(options: argparse.Namespace) -> int:
    with client.admin(options) as admin:
        answer = admin.delete_topics(options.names, raise_errors=False)
    return _report(answer["topics"], "deleted", options)


def _report(rows: list[dict[str, Any]], verb: str, options: argparse.Namespace) -> int:
    """Prints the result for each topic. Errors go to standard error."""
    done = [(row["name"], verb) for row in rows if row["error_code"] == 0]
    print_table(("topic", "result"), done, as_json=options.json)
    failed = [row for row in rows if row["error_code"] != 0]
    for row in failed:
        words = row.get("error_message")
        print_error(f"{row['name']}: {error_name(row['error_code'])}{f': {words}' if words else ''}")
    return 1 if failed else 0


def _describe(options: argparse.Namespace) -> int:
    with client.admin(options) as admin:
        topics = sorted(admin.describe_topics(options.names or None), key=lambda topic: topic["name"])
        known = [topic for topic in topics if topic["error_code"] == 0]
        # Without a leader nobody can tell the offsets.
        partitions = [
            client.partition_of(topic["name"], row["partition_index"])
            for topic in known
            for row in topic["partitions"]
            if row["leader_id"] >= 0
        ]
        offsets = client.watermarks(admin, partitions)
        settings = _settings(admin, [topic["name"] for topic in known])
    rows = [
        (
            topic["name"],
            row["partition_index"],
            row["leader_id"],
            row["leader_epoch"],
            row["replica_nodes"],
            row["isr_nodes"],
            *offsets.get(client.partition_of(topic["name"], row["partition_index"]), (None, None)),
            settings.get(topic["name"], {}),
        )
        for topic in known
        for row in sorted(topic["partitions"], key=lambda row: row["partition_index"])
    ]
    columns = (
        "topic",
        "partition",
        "leader",
        "leader_epoch",
        "replicas",
        "in_sync",
        "start_offset",
        "end_offset",
        "settings",
    )
    print_table(columns, rows, as_json=options.json)
    unknown = [topic for topic in topics if topic["error_code"] != 0]
    for topic in unknown:
        print_error(f"{topic['name']}: {error_name(topic['error_code'])}")
    return 1 if unknown else 0


def _settings(admin: Any, names: list[str]) -> dict[str, dict[str, str]]:
    """Maps each topic to its own settings, without inherited values."""
    if not names:
        return {}
    from kafka.admin import ConfigResource, ConfigResourceType

    answer = admin.describe_configs(
        [ConfigResource(ConfigResourceType.TOPIC, name) for name in names], config_filter="all"
    )
    found = {}
    for topics in answer.values():
        for name, settings in topics.items():
            own = [
                (key, value)
                for key, value in sorted(settings.items())
                if value["config_source"] == "DYNAMIC_TOPIC_CONFIG"
            ]
            found[name] = {key: value["value"] for key, value in own}
    return found
