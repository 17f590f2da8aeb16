"""What scenarios find beside other releases than 4.3.1: the differences that are left, and why some end early.

`python -m compat_tests.scenarios.releases` prints the tables of docs/releases.md.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import NamedTuple

RELEASES = ("3.9", "4.0", "4.1", "4.2", "4.4")


class Difference(NamedTuple):
    """Where answers differ beside some releases: the scenario, patterns for a step's label and for the dotted path of a
    field, and the reason. `is_by_chance`: they differ in some runs only."""

    releases: str
    scenario: str
    label: str
    path: str
    reason: str
    is_by_chance: bool = False

    def of_releases(self) -> list[str]:
        """The releases that it is about."""
        return _known(self.releases)


class Ending(NamedTuple):
    """A scenario that Kafka of some releases ends before anything is compared, or by another answer than 4.3.1's."""

    releases: str
    scenario: str
    reason: str

    def of_releases(self) -> list[str]:
        """The releases that it is about."""
        return _known(self.releases)


def _known(releases: str) -> list[str]:
    return [each for each in releases.split() if each in RELEASES]


_EMPTY = "A group that becomes empty has another assignment epoch in 4.4; here it has that of 4.3."
_EPOCHS = (
    "The first epoch of a consumer group is 1 before 4.3; here it is 2, as in 4.3, and those that follow are one above."
)
_OF_EPOCHS = (
    "consumer_group_assignors",
    "consumer_group_assigns_after_its_interval",
    "consumer_group_epochs",
    "consumer_group_join_and_leave",
    "consumer_group_of_a_classic_one",
    "consumer_group_offsets",
    "consumer_group_second_member",
    "consumer_group_settings",
    "consumer_group_static_member",
    "consumer_group_topics_change",
)
_REVOKED = "These describe a member without the partitions that it has to give up; here they are shown, as in 4.3."
_TWICE = "An item that a list has twice is refused; here it is taken, as in 4.3.1."
_STANDBY = "4.4 assigns and counts standby and moving tasks in another order; here they are assigned as in 4.3."
_SHARE_EPOCHS = "The first epoch of a share group is 1 in 4.2; here it is 2, as in 4.3."
_NONE_ASSIGNED = (
    "A streams group to which nothing was assigned has the assignment epoch 0 in 4.2; here it has 1, as in 4.3."
)
_LATER_EPOCH = "3.9 takes what a later epoch writes into a transaction; here it is refused, as in 4.3."
_OLD_RECORDS = "The coordinator of 3.9 writes a group when it is stable; here it is written as in 4.3."
DIFFERENCES: tuple[Difference, ...] = (
    Difference(
        "3.9",
        "client_metrics.subscription_settings",
        "IncrementalAlterConfigs v1 interval *",
        "*",
        "3.9 fails with UNKNOWN_SERVER_ERROR for an interval that is no number; here it is refused, as in 4.3.",
    ),
    Difference(
        "3.9",
        "client_metrics.subscription_settings",
        "IncrementalAlterConfigs v1 match ''",
        "*",
        "3.9 refuses an empty list of patterns; here it is taken, as in 4.3.",
    ),
    Difference(
        "3.9",
        "fenced.fetchers_without_zstd",
        "Fetch * zstd",
        "responses.*",
        "3.9 has other empty fields beside the error UNSUPPORTED_COMPRESSION_TYPE.",
    ),
    Difference(
        "3.9",
        "fetch_sessions.leader_hints",
        "Fetch *",
        "node_endpoints",
        "3.9 tells followers the addresses of leaders, too, which they know.",
    ),
    Difference(
        "3.9",
        "offsets.deleting_offsets",
        "OffsetDelete v0 empty group",
        "topics*",
        "3.9 has one row for a partition that is named twice.",
    ),
    Difference(
        "4.0",
        "quorum.feature_levels",
        "UpdateFeatures * kraft.version=* type *",
        "*",
        "4.0 does not look at the level that kraft.version has.",
    ),
    Difference(
        "3.9 4.0",
        "quorum.brokers_unregistered",
        "UnregisterBroker *",
        "error_message",
        "These have no text beside the error.",
    ),
    Difference(
        "3.9",
        "setting_values.of_a_topic",
        "message.format.version of *",
        "",
        "3.9 checks message.format.version, which has no effect; here every text is taken.",
    ),
    Difference(
        "3.9",
        "setting_values.of_the_broker",
        "advertised.listeners of *",
        "",
        "3.9 changes and checks advertised.listeners while it runs; here they stay as they were at start.",
    ),
    Difference("3.9", "stored_groups.a_group_of_two", "*", "*", _OLD_RECORDS),
    Difference("3.9", "stored_groups.life_of_a_group", "*", "*", _OLD_RECORDS),
    Difference(
        "3.9 4.0",
        "transactional_data.markers_of_administrators",
        "Produce v11 a fenced producer",
        "*.log_start_offset",
        "These tell a fenced producer the start of the log.",
    ),
    Difference("3.9", "transactional_data.refused_offsets", "TxnOffsetCommit v0 * epoch", "*", _LATER_EPOCH),
    Difference("3.9", "transactional_data.refused_offsets", "TxnOffsetCommit v0 * id", "*", _LATER_EPOCH),
    Difference(
        "3.9",
        "transactional_data.refused_offsets",
        "TxnOffsetCommit v0 long",
        "topics",
        "3.9 has one row for a topic of which partitions are refused; here there are two, as in 4.3.",
    ),
    Difference("3.9", "transactional_data.wrong_producers", "Produce v9 a later epoch, ongoing", "*", _LATER_EPOCH),
    *(Difference("4.0 4.1 4.2", f"consumer_groups.{name}", "*", "*epoch", _EPOCHS) for name in _OF_EPOCHS),
    Difference(
        "4.0 4.1 4.2",
        "consumer_groups.consumer_group_epochs",
        "ConsumerGroupHeartbeat v1 an epoch long ago",
        "*",
        _EPOCHS,
    ),
    Difference(
        "4.0 4.1 4.2",
        "transactional_data.offsets_of_consumer_group_members",
        "TxnOffsetCommit * older epoch*",
        "*",
        _EPOCHS,
    ),
    Difference(
        "4.0 4.1 4.2",
        "consumer_groups.consumer_group_second_member",
        "ConsumerGroupDescribe *",
        "*.assignment.*",
        _REVOKED,
    ),
    Difference(
        "4.0 4.1 4.2",
        "consumer_groups.consumer_group_assigns_after_its_interval",
        "ConsumerGroupDescribe *",
        "*.assignment.*",
        _REVOKED,
    ),
    Difference(
        "4.0 4.1",
        "consumer_groups.consumer_group_pattern",
        "ConsumerGroupHeartbeat v1 *pattern",
        "assignment",
        "These tell a member of the topics of its new pattern at a later heartbeat.",
    ),
    Difference(
        "4.0 4.1",
        "group_offsets.described_while_it_forms",
        "DescribeGroups v5 between",
        "*",
        "These describe a classic group as dead until its first members are in the log; here it is shown, as in 4.3.",
        is_by_chance=True,
    ),
    *(
        Difference("4.2", f"share_groups.{name}", "ShareGroup*", path, _SHARE_EPOCHS)
        for name, path in (("share_group_join_and_leave", "*epoch"), ("share_group_bad_heartbeats", "error_code"))
    ),
    Difference(
        "4.2",
        "share_groups.share_coordinator",
        "ReadShareGroupState v0 *",
        "*",
        "Brokers of 4.2 refuse older epochs among themselves, which no client sends.",
    ),
    Difference(
        "4.2",
        "share_groups.share_sessions",
        "* no group",
        "error_code",
        "4.2 fails with UNKNOWN_SERVER_ERROR where no group is named; here the error is that of 4.3.",
    ),
    Difference(
        "4.2",
        "stored_groups.committed_offsets",
        "OffsetCommit value *",
        "topic_id",
        "4.2 stores no ids of topics beside offsets.",
    ),
    Difference(
        "4.2",
        "streams_groups.streams_group_records",
        "StreamsGroupTargetAssignmentMetadata *",
        "assignment_timestamp",
        "4.2 does not store when it has assigned.",
    ),
    *(
        Difference("4.2", name, "StreamsGroupDescribe *", "groups.*.assignment_epoch", _NONE_ASSIGNED)
        for name in (
            "streams_groups.streams_group_waits_for_members",
            "streams_topologies.streams_group_bad_topologies",
        )
    ),
    Difference(
        "4.2",
        "streams_topologies.streams_group_internal_topics_that_cannot_be",
        "StreamsGroupHeartbeat v0 cannot be created",
        "status.*",
        "4.2 says in other words that a topic cannot be created.",
    ),
    Difference(
        "4.4",
        "consumer_groups.consumer_group_join_and_leave",
        "ConsumerGroupDescribe * empty",
        "groups.0.assignment_epoch",
        _EMPTY,
    ),
    Difference(
        "4.4",
        "share_groups.share_group_join_and_leave",
        "ShareGroupDescribe * empty",
        "groups.0.assignment_epoch",
        _EMPTY,
    ),
    Difference(
        "4.4",
        "streams_groups.streams_group_join_and_leave",
        "StreamsGroupDescribe * empty",
        "groups.0.assignment_epoch",
        _EMPTY,
    ),
    *(
        Difference("4.2 4.4", "setting_values.of_the_broker", f"{name} of '1'", "", _TWICE)
        for name in (
            "log.cleanup.policy",
            "sasl.enabled.mechanisms",
            "sasl.kerberos.principal.to.local.rules",
            "ssl.cipher.suites",
            "ssl.enabled.protocols",
        )
    ),
    Difference(
        "4.4",
        "setting_values.of_the_broker",
        "log.remote.copy.lag.ms of '1'",
        "",
        "4.4 refuses a lag of remote copies above the retention; here nothing is copied, and every lag is taken.",
    ),
    Difference(
        "4.4",
        "setting_values.of_a_group",
        "streams.rack.aware.assignment.tags of *",
        "",
        _TWICE,
    ),
    Difference(
        "4.4",
        "share_groups.share_coordinator",
        "ReadShareGroupState v0 *",
        "*",
        "Brokers of 4.4 refuse negative epochs among themselves, which no client sends.",
    ),
    Difference(
        "4.4",
        "streams_groups.streams_group_bad_heartbeats",
        "StreamsGroupHeartbeat *",
        "*",
        "4.4 takes static members and offsets of tasks in streams groups; here they are refused as in 4.3.",
    ),
    Difference("4.4", "streams_groups.streams_group_records", "StreamsGroup*", "*", _STANDBY),
    Difference("4.4", "streams_groups.streams_group_standby_tasks", "StreamsGroupDescribe *", "*", _STANDBY),
    Difference("4.4", "streams_lives.streams_group_lives_with_state", "*", "*", _STANDBY),
    Difference("4.4", "streams_lives.streams_group_lives_without_state", "*", "*", _STANDBY),
)
ENDS: tuple[Ending, ...] = (
    Ending("3.9 4.0 4.2", "share_groups.share_group_assigns_after_its_interval", "These have no assignment intervals."),
    *(
        Ending("4.1", name, "A cluster of 4.1 begins with share groups off, and every request of theirs is refused.")
        for name in (
            "share_groups.share_acknowledgements_of_records_never_given",
            "share_groups.share_coordinator",
            "share_groups.share_coordinators_found",
            "share_groups.share_fetch_and_acknowledge",
            "share_groups.share_fetch_modes",
            "share_groups.share_group_assigns_after_its_interval",
            "share_groups.share_group_bad_heartbeats",
            "share_groups.share_group_join_and_leave",
            "share_groups.share_group_offsets",
            "share_groups.share_sessions",
            "throttling.share_consumers",
        )
    ),
    *(
        Ending("4.1", name, "4.1 has streams groups only where unstable versions are on.")
        for name in (
            "streams_groups.streams_group_among_other_groups",
            "streams_groups.streams_group_bad_heartbeats",
            "streams_groups.streams_group_endpoints",
            "streams_groups.streams_group_join_and_leave",
            "streams_groups.streams_group_offsets",
            "streams_groups.streams_group_records",
            "streams_groups.streams_group_shutdown",
            "streams_groups.streams_group_standby_tasks",
            "streams_groups.streams_group_tasks_move",
            "streams_groups.streams_group_two_members_of_a_process",
            "streams_groups.streams_group_waits_for_members",
            "streams_lives.streams_group_endpoints_that_kafka_does_not_tell",
            "streams_lives.streams_group_lives_with_state",
            "streams_lives.streams_group_lives_without_state",
            "streams_topologies.streams_group_bad_topologies",
            "streams_topologies.streams_group_internal_topics",
            "streams_topologies.streams_group_internal_topics_that_cannot_be",
            "streams_topologies.streams_group_source_topics_come_and_go",
            "streams_topologies.streams_group_topology_changes",
        )
    ),
    Ending("3.9 4.0 4.1", "stored_groups.committed_offsets", "These have no OffsetCommit by ids of topics."),
    *(
        Ending("3.9", name, "3.9 has version 0 of ConsumerGroupHeartbeat alone, and that is off.")
        for name in (
            "consumer_groups.consumer_group_assignors",
            "consumer_groups.consumer_group_assigns_after_its_interval",
            "consumer_groups.consumer_group_epochs",
            "consumer_groups.consumer_group_of_a_classic_one",
            "consumer_groups.consumer_group_offsets",
            "consumer_groups.consumer_group_pattern",
            "consumer_groups.consumer_group_second_member",
            "consumer_groups.consumer_group_static_member",
            "consumer_groups.consumer_group_topics_change",
            "transactional_data.offsets_of_consumer_group_members",
        )
    ),
    *(
        Ending("3.9", name, "3.9 has no settings of groups.")
        for name in ("admin_limits.groups_and_metrics", "configs.of_groups", "setting_values.of_a_group")
    ),
    *(
        Ending("3.9 4.0", name, "These have no share groups.")
        for name in ("share_groups.share_fetch_and_acknowledge", "share_strangers.requests_about_no_share_group")
    ),
    *(
        Ending(releases, name, "The version that the scenario asks for is not there.")
        for releases, name in (
            ("3.9 4.0", "reassignments.other_replication_factor"),
            ("3.9", "transactional_data.implicit_batches"),
            ("3.9", "transactional_producers.aborts_of_nothing"),
            ("3.9 4.0", "transactions.patterns_of_ids"),
        )
    ),
    Ending("3.9 4.0", "append_rules.sizes_after_recompression", "These have no internal.segment.bytes."),
    *(
        Ending("3.9", name, "A transaction of 3.9 into which a later epoch has written never ends.")
        for name in ("transactional_data.refused_offsets", "transactional_data.wrong_producers")
    ),
    Ending(
        "4.1 4.2",
        "client_metrics.resources_listed",
        "These list a group whose last setting has been removed, and the scenario waits for its end.",
    ),
)


def allowing(release: str, scenario: str, label: str, path: str) -> list[Difference]:
    """The rows that allow this difference; none if it is not allowed."""
    return [
        row for row in of_scenario(release, scenario) if fnmatchcase(label, row.label) and fnmatchcase(path, row.path)
    ]


def of_scenario(release: str, scenario: str) -> list[Difference]:
    """The rows of one scenario beside one release. Its run fails if a difference has gone."""
    return [row for row in DIFFERENCES if row.scenario == scenario and release in row.of_releases()]


def ending(release: str, scenario: str) -> Ending | None:
    """Why the scenario ends early beside the release, if it does."""
    return next((row for row in ENDS if row.scenario == scenario and release in row.of_releases()), None)


def as_markdown() -> str:
    """Both tables, with the scenarios of one reason in one row."""
    differing: dict[tuple[str, str], list[str]] = {}
    ending: dict[tuple[str, str], list[str]] = {}
    for rows, found in ((DIFFERENCES, differing), (ENDS, ending)):
        for row in rows:
            names = found.setdefault((row.releases, row.reason), [])
            if row.scenario not in names:
                names.append(row.scenario)
    lines = []
    for head, found in (("what differs", differing), ("why a scenario ends early", ending)):
        if not found:
            continue
        lines += [f"| releases | {head} | scenarios |", "|---|---|---|"]
        lines += [
            f"| {', '.join(of.split())} | {why} | {', '.join(f'`{each}`' for each in names)} |"
            for (of, why), names in found.items()
        ]
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    print(as_markdown(), end="")
