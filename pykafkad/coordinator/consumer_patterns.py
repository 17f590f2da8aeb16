"""Subscriptions by pattern (KIP-848, KIP-1082): which topics the patterns of a group match.

A heartbeat with a new pattern is answered before the pattern is held against the topics. That happens in later steps,
so that many topics do not hold up the loop. Their result begins a new epoch of the group. Patterns are held against the
topics again when topics were created, and from time to time (`group.consumer.regex.refresh.interval.ms`).
"""

from __future__ import annotations

from pykafkad.coordinator import consumer_records, metadata_hash
from pykafkad.coordinator.consumer_group import ConsumerGroup
from pykafkad.coordinator.consumer_member import ConsumerMember
from pykafkad.effects import SetTimer
from pykafkad.errors import INVALID_REGULAR_EXPRESSION, KafkaError
from pykafkad.settings.regular_expressions import LibraryMissing, compiled

TIMER_PATTERNS = "patterns"
MIN_REFRESH_MS = 10_000
"""How long a group's patterns stay as they are at least, even if topics are created."""
NAMES_PER_STEP = 2_000
"""How many pairs of a pattern and a topic's name are looked at in one step."""

_DESCRIPTIONS = {
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "unexpected )": "unexpected )",
    "no argument for repetition operator": "missing argument to repetition operator",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid repetition size": "invalid repeat count",
    "trailing \\": "trailing backslash at end of expression",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
}
"""The descriptions of RE2 as its twin in Java, which Kafka uses, words them."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pykafkad.coordinator.consumer_change import Change
    from pykafkad.coordinator.shard import GroupShard
    from pykafkad.coordinator.step import Step
    from pykafkad.effects import StoredRecord


class Matching:
    """Patterns that are being held against the topics of one version of the metadata. Only topics that the caller whose
    request began this may know of match (`may_describe`; None: all)."""

    __slots__ = ("found", "may_describe", "names", "place", "since_ms", "version")

    def __init__(
        self,
        regexes: list[str],
        names: list[str],
        version: int,
        since_ms: int,
        may_describe: Callable[[str], bool] | None,
    ) -> None:
        self.may_describe = may_describe
        self.found: dict[str, list[str]] = {regex: [] for regex in regexes}
        self.names = names
        self.place = 0
        self.version = version
        self.since_ms = since_ms


def update(change: Change, member: ConsumerMember, updated: ConsumerMember) -> tuple[bool, bool]:
    """Whether the member's pattern has changed, and whether the group needs a new epoch for it now. Raises `KafkaError`
    (INVALID_REGULAR_EXPRESSION) for a new pattern that RE2 refuses."""
    group = change.group
    old, new = member.topic_regex or "", updated.topic_regex or ""
    changed = member.topic_regex != updated.topic_regex
    is_resolved = must_refresh = False
    if changed:
        if old and group.regexes.get(old, 0) == 1:
            change.records.append(consumer_records.pattern_tombstone(group.group_id, old))
        if not new:
            is_resolved = bool(old)
        elif not group.regexes.get(new, 0):
            check(new)
            must_refresh = True
        else:
            is_resolved = new in group.patterns
    regexes = change.regexes(member, updated) if changed else group.regexes
    if regexes and (must_refresh or group.regexes) and group.matching is None:
        _refresh_if_due(change, regexes, must_refresh)
    return changed, is_resolved


def check(regex: str) -> None:
    """Raises `KafkaError` unless RE2 knows the expression."""
    try:
        compiled(regex)
    except LibraryMissing as error:
        raise KafkaError(INVALID_REGULAR_EXPRESSION, str(error)) from None
    except ValueError as error:
        kind = str(error).partition(": ")[0]
        description = _DESCRIPTIONS.get(kind, kind)
        text = f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {description}."
        raise KafkaError(INVALID_REGULAR_EXPRESSION, text) from None


def _refresh_if_due(change: Change, regexes: dict[str, int], must_refresh: bool) -> None:
    shard, step, group = change.shard, change.step, change.group
    last_ms = next((pattern.timestamp_ms for pattern in group.patterns.values()), None)
    if last_ms is not None and step.now_ms <= last_ms + MIN_REFRESH_MS:
        return
    if (
        must_refresh
        or len(regexes) != len(group.patterns)
        or group.topics_created
        or (last_ms is not None and step.now_ms > last_ms + shard.settings.group_consumer_regex_refresh_interval_ms)
    ):
        assert shard.metadata is not None
        group.topics_created = False
        metadata = shard.metadata
        group.matching = Matching(
            list(regexes), list(metadata.topics), metadata.offset, step.now_ms, change.may_describe
        )
        step.effects.append(SetTimer((TIMER_PATTERNS, group.group_id), step.now))


def timer_fired(shard: GroupShard, step: Step, group: ConsumerGroup, key: tuple[Any, ...]) -> None:
    """Hold the patterns against some more topics, and write the result when all have been looked at."""
    matching = group.matching
    if matching is None:
        return
    count = max(1, NAMES_PER_STEP // len(matching.found))
    names = matching.names[matching.place : matching.place + count]
    matching.place += len(names)
    for regex, found in matching.found.items():
        try:
            match = compiled(regex).fullmatch
        except (LibraryMissing, ValueError):
            # A log of another broker may have a pattern that this one cannot read. It matches nothing.
            continue
        matched = [name for name in names if match(name) is not None]
        if matching.may_describe is not None:
            matched = list(filter(matching.may_describe, matched))
        found += matched
    if matching.place < len(matching.names):
        step.effects.append(SetTimer((TIMER_PATTERNS, group.group_id), step.now))
        return
    group.matching = None
    _finish(shard, step, group, matching)


def _finish(shard: GroupShard, step: Step, group: ConsumerGroup, matching: Matching) -> None:
    """Write which topics the patterns match, and begin a new epoch if that has changed. Patterns that nobody subscribes
    to any more are left out."""
    records: list[StoredRecord] = []
    topics = set(group.topic_counts)
    for regex, pattern in group.patterns.items():
        if regex not in matching.found:
            topics |= pattern.topics
    must_bump = False
    for regex, names in matching.found.items():
        if not group.regexes.get(regex, 0):
            continue
        known = group.patterns.get(regex)
        must_bump |= (frozenset() if known is None else known.topics) != set(names)
        topics.update(names)
        records.append(consumer_records.pattern(group.group_id, regex, names, matching.version, matching.since_ms))
    assert shard.metadata is not None
    found = metadata_hash.of_topics(shard.metadata, topics, shard.topic_hashes)
    if must_bump or found != group.metadata_hash:
        records.append(consumer_records.group_epoch(group.group_id, group.epoch + 1, found))
        group.topics_changed = False
    if records:
        step.append(records)
