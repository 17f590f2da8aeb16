"""`pykafkad transactions`: lists and describes transactions of any Kafka, finds those that hang, aborts them."""

from __future__ import annotations

from pykafkad.cli import actions, client
from pykafkad.cli.output import Failure, print_table
from pykafkad.clock import Clock

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any

SUMMARY = "list and describe transactions, find hanging ones, abort them"
HAS_ACTIONS = True

# The longest timeout that a broker allows by default, and five minutes for a coordinator that is slow to abort.
HANGING_AFTER_S = 15 * 60 + 5 * 60
OPEN_STATES = ("Ongoing", "PrepareCommit", "PrepareAbort", "PrepareEpochFence")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `pykafkad transactions`."""
    add = actions.add_actions(parser)
    listing = add("list", help="all transactional ids with producer and state")
    listing.add_argument(
        "--state", action="append", metavar="NAME", help="only in this state, such as Ongoing (repeatable)"
    )
    listing.add_argument("--pattern", metavar="REGEX", help="only ids that match as a whole")
    listing.add_argument(
        "--longer-than", type=float, metavar="SECONDS", help="only transactions that are open for longer"
    )
    describe = add("describe", help="producer, state, start and partitions of a transactional id")
    describe.add_argument("id", metavar="ID", help="the transactional.id")
    hanging = add("find-hanging", help="open transactions in partitions of which no coordinator knows")
    hanging.add_argument("--topic", action="append", metavar="NAME", help="only in this topic (repeatable)")
    hanging.add_argument(
        "--older-than",
        type=float,
        default=HANGING_AFTER_S,
        metavar="SECONDS",
        help="look at transactions whose last record is older (default: %(default)s)",
    )
    abort = add("abort", help="abort a transactional id's open transaction, or a hanging one in a partition")
    abort.add_argument("id", nargs="?", metavar="ID", help="the transactional.id; its producer is fenced")
    abort.add_argument("--topic", metavar="NAME", help="the topic of a hanging transaction")
    abort.add_argument("--partition", type=int, metavar="NUMBER", help="its partition")
    abort.add_argument("--start-offset", type=int, metavar="OFFSET", help="where it starts, as find-hanging shows")
    actions.add_common(parser, (listing, describe, hanging, abort))


def run(options: argparse.Namespace) -> int:
    """Runs one action."""
    return {"list": _list, "describe": _describe, "find-hanging": _find_hanging, "abort": _abort}[options.action](
        options
    )


def _list(options: argparse.Namespace) -> int:
    filters: dict[str, object] = {}
    if options.state:
        filters["state_filters"] = options.state
    if options.longer_than is not None:
        filters["duration_filter_ms"] = int(options.longer_than * 1000)
    if options.pattern:
        filters["transactional_id_pattern"] = options.pattern
    with client.admin(options) as admin:
        found = client.retrying(lambda: admin.list_transactions(**filters))
    rows = sorted(
        (each.transactional_id, each.state.value, each.producer_id, broker)
        for broker, transactions in found.items()
        for each in transactions
    )
    print_table(("transactional_id", "state", "producer_id", "coordinator"), rows, as_json=options.json)
    return 0


def _describe(options: argparse.Namespace) -> int:
    with client.admin(options) as admin:
        found = _described(admin, options.id)
    if found is None:
        raise Failure(
            f"there is no transactional id {options.id} at {options.bootstrap}; "
            "`pykafkad transactions list` shows all of them"
        )
    partitions = [f"{each.topic}-{each.partition}" for each in sorted(found.topic_partitions)]
    columns = (
        "transactional_id", "state", "producer_id", "producer_epoch", "timeout_ms", "start_time_ms", "coordinator",
        "partitions",
    )  # fmt: skip
    row = (
        options.id,
        found.state.value,
        found.producer_id,
        found.producer_epoch,
        found.transaction_timeout_ms,
        found.transaction_start_time_ms if found.transaction_start_time_ms >= 0 else None,
        found.coordinator_id,
        partitions,
    )
    print_table(columns, [row], as_json=options.json)
    return 0


def _described(admin: Any, transactional_id: str) -> Any:
    """The description of an id, or None for an unknown id."""
    import kafka.errors

    try:
        return client.retrying(admin.describe_transactions, [transactional_id])[transactional_id]
    except kafka.errors.TransactionalIdNotFoundError:
        return None


def _find_hanging(options: argparse.Namespace) -> int:
    before_ms = Clock().now_ms() - options.older_than * 1000
    with client.admin(options) as admin:
        topics = [each for each in admin.describe_topics(options.topic) if not each["error_code"]]
        partitions = [
            client.partition_of(each["name"], row["partition_index"]) for each in topics for row in each["partitions"]
        ]
        candidates = [
            (partition, producer)
            for partition, state in client.retrying(admin.describe_producers, partitions).items()
            for producer in state.active_producers
            if producer.current_transaction_start_offset >= 0 and producer.last_timestamp < before_ms
        ]
        known = _coordinated(admin, {producer.producer_id for _, producer in candidates})
    rows = [
        (
            partition.topic,
            partition.partition,
            producer.current_transaction_start_offset,
            producer.producer_id,
            producer.producer_epoch,
            producer.last_timestamp,
        )
        for partition, producer in candidates
        if (producer.producer_id, partition) not in known
    ]
    columns = ("topic", "partition", "start_offset", "producer_id", "producer_epoch", "last_timestamp_ms")
    print_table(columns, sorted(rows), as_json=options.json)
    return 0


def _coordinated(admin: Any, producer_ids: set[int]) -> set[tuple[int, Any]]:
    """Producer id and partition of each open transaction of these producers that its coordinator knows and will end."""
    if not producer_ids:
        return set()
    listed = client.retrying(lambda: admin.list_transactions(producer_id_filters=sorted(producer_ids)))
    ids = [each.transactional_id for transactions in listed.values() for each in transactions]
    return {
        (found.producer_id, partition)
        for transactional_id in ids
        if (found := _described(admin, transactional_id)) is not None and found.state.value in OPEN_STATES
        for partition in found.topic_partitions
    }


def _abort(options: argparse.Namespace) -> int:
    named = [each is not None for each in (options.topic, options.partition, options.start_offset)]
    if any(named) == (options.id is not None) or any(named) != all(named):
        raise Failure("name either an ID, or --topic, --partition and --start-offset", 2)
    return _abort_id(options) if options.id is not None else _abort_hanging(options)


def _abort_id(options: argparse.Namespace) -> int:
    with client.admin(options) as admin:
        found = _described(admin, options.id)
    if found is None:
        raise Failure(f"there is no transactional id {options.id} at {options.bootstrap}")
    if found.state.value not in OPEN_STATES:
        raise Failure(f"{options.id} has no open transaction: its state is {found.state.value}")
    # A producer that takes over has the open transaction aborted.
    with client.producer(options, transactional_id=options.id) as producer:
        producer.init_transactions()
    print_table(("transactional_id", "result"), [(options.id, "aborted")], as_json=options.json)
    return 0


def _abort_hanging(options: argparse.Namespace) -> int:
    from kafka.admin import AbortTransactionSpec

    partition = client.partition_of(options.topic, options.partition)
    with client.admin(options) as admin:
        producers = client.retrying(admin.describe_producers, [partition])[partition].active_producers
        found = [each for each in producers if each.current_transaction_start_offset == options.start_offset]
        if not found:
            raise Failure(
                f"no open transaction of {options.topic}-{options.partition} starts at {options.start_offset}"
            )
        (producer,) = found
        admin.abort_transaction(
            AbortTransactionSpec(
                partition, producer.producer_id, producer.producer_epoch, max(producer.coordinator_epoch, 0)
            )
        )
    columns = ("topic", "partition", "producer_id", "result")
    row = (options.topic, options.partition, producer.producer_id, "aborted")
    print_table(columns, [row], as_json=options.json)
    return 0
