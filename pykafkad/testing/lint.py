"""Client lint: what a wire trace shows of habits that cost, or that will not work for long.

Each rule is a row of `RULES`, or of `lint_upgrades.RULES` for an upgrade to Kafka 4.x. It looks at the requests of one
client, and says what it saw, or nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from pykafkad.errors import ProtocolError
from pykafkad.handlers import table
from pykafkad.server.exchanges import Exchange, read_frame
from pykafkad.testing import lint_upgrades
from pykafkad.wire import frames
from pykafkad.wire.batch import parse_header
from pykafkad.wire.records import iterate_records

LEAST_BATCHES = 20
TINY_RECORDS = 1.5
"""So few records a batch on the average are tiny batches, where there are enough of them to tell."""

LEAST_COMMITS = 20
LEAST_METADATA = 20
METADATA_SECONDS = 1.0
"""More often than that nobody needs to ask for the cluster."""


class Finding(NamedTuple):
    """What a rule saw: its name, the client id, what was seen, and what to do."""

    rule: str
    client_id: str
    seen: str
    advice: str


class Asked(NamedTuple):
    """A request as rules see it. It is None where it was not kept whole, or has an old version."""

    api: str
    version: int
    time_ms: float
    request: Any


def look(exchanges: Iterable[Exchange], compacted: frozenset[str], *, upgrade: bool = False) -> list[Finding]:
    """What the rules see in these exchanges, by client and rule; `compacted` are the names of compacted topics.
    With `upgrade` the rules of an upgrade look, too. Requests that were not kept whole are known by API, version and
    time alone."""
    flexible = frames.flexible_versions()
    clients: dict[str, list[Asked]] = {}
    for each in exchanges:
        client_id, request, _ = read_frame(each, flexible)
        row = table.by_key(each.key)
        name = f"API {each.key}" if row is None else row.name
        clients.setdefault(client_id, []).append(Asked(name, each.version, each.time_ms, request))
    found = []
    rules = RULES | lint_upgrades.RULES if upgrade else RULES
    for client_id in sorted(clients):
        for name, (rule, advice) in rules.items():
            seen = rule(clients[client_id], compacted)
            if seen:
                found.append(Finding(name, client_id, seen, advice))
    return found


def topics_written(exchanges: Iterable[Exchange]) -> list[str]:
    """The names of the topics that records were sent to."""
    flexible = frames.flexible_versions()
    asked = [Asked("Produce", each.version, 0.0, read_frame(each, flexible)[1]) for each in exchanges if each.key == 0]
    return sorted({topic for topic, _ in _batches(asked) if topic})


def _batches(asked: list[Asked]) -> Iterable[tuple[str, memoryview]]:
    """Topic and bytes of each batch that was sent, if the request names its topics."""
    for each in asked:
        if each.api == "Produce" and each.request is not None:
            for topic in each.request.topic_data:
                for partition in topic.partition_data:
                    if partition.records:
                        yield topic.name, memoryview(partition.records)


def _tiny_batches(asked: list[Asked], _: frozenset[str]) -> str:
    counts = [parse_header(batch).record_count for _, batch in _batches(asked) if len(batch) >= 61]
    if len(counts) < LEAST_BATCHES or sum(counts) > TINY_RECORDS * len(counts):
        return ""
    return f"{len(counts)} batches with {sum(counts)} records"


def _no_keys(asked: list[Asked], compacted: frozenset[str]) -> str:
    without: dict[str, int] = {}
    for topic, batch in _batches(asked):
        if topic in compacted and len(batch) >= 61:
            try:
                count = sum(record.key is None for record in iterate_records(batch, parse_header(batch)))
            except ProtocolError:
                continue
            if count:
                without[topic] = without.get(topic, 0) + count
    return ", ".join(f"{count} records without a key to {topic}" for topic, count in sorted(without.items()))


def _commit_per_record(asked: list[Asked], _: frozenset[str]) -> str:
    last: dict[tuple[str, str, int], int] = {}
    steps = [0, 0]
    for each in asked:
        if each.api != "OffsetCommit" or each.request is None:
            continue
        for topic in each.request.topics:
            for partition in topic.partitions:
                place = each.request.group_id, topic.name, partition.partition_index
                if place in last and partition.committed_offset > last[place]:
                    steps[0] += 1
                    steps[1] += partition.committed_offset - last[place]
                last[place] = partition.committed_offset
    if steps[0] < LEAST_COMMITS or steps[1] > TINY_RECORDS * steps[0]:
        return ""
    return f"{steps[0]} commits for {steps[1]} records"


def _much_metadata(asked: list[Asked], _: frozenset[str]) -> str:
    times = [each.time_ms for each in asked if each.api == "Metadata"]
    seconds = (max(times) - min(times)) / 1000 if times else 0.0
    if len(times) < LEAST_METADATA or seconds > METADATA_SECONDS * len(times):
        return ""
    return f"{len(times)} Metadata requests in {seconds:.1f} s"


def _old_versions(asked: list[Asked], _: frozenset[str]) -> str:
    least = {row.name: row.min_version for row in table.ROWS}
    old = sorted({(each.api, each.version) for each in asked if each.version < (least.get(each.api) or 0)})
    return ", ".join(f"{api} v{version}, and {least[api]} is the first that there is" for api, version in old)


Rule = Callable[[list[Asked], frozenset[str]], str]

RULES: dict[str, tuple[Rule, str]] = {
    "tiny-batches": (
        _tiny_batches,
        "let the producer wait some milliseconds (linger.ms), and do not flush each record",
    ),
    "no-keys": (_no_keys, "a compacted topic keeps the last record of each key: give each record one"),
    "commit-per-record": (_commit_per_record, "commit after many records or by time (enable.auto.commit)"),
    "much-metadata": (_much_metadata, "keep one client; for a topic that is not there, create it or stop asking"),
    "old-versions": (_old_versions, "Kafka 4.x refuses these versions (KIP-896): take a newer client"),
}
"""Rules by their names, each with what to do."""
