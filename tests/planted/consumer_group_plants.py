"""Bugs to plant in the consumer groups (KIP-848) of `pykafkad/coordinator`."""

from __future__ import annotations

from tests.planted.plant import Plant

RULES = ("tests/coordinator/test_consumer_group.py",)
LIVES = ("tests/coordinator/test_consumer_properties.py",)
MIGRATION = ("tests/coordinator/test_consumer_migration.py",)

PLANTS = (
    Plant(
        "a partition is given away while another member has it",
        "coordinator/reconciliation.py",
        "if partition in own_revoking or self.is_free(topic_id, partition):",
        "if True:",
        RULES,
    ),
    Plant(
        "a member that still has what it must give up goes on",
        "coordinator/reconciliation.py",
        "if revoking and self._has_any(revoking):",
        "if False:",
        LIVES,
    ),
    Plant(
        "what a member is giving up counts as free",
        "coordinator/consumer_group.py",
        "for partitions in (member.assigned, member.revoking):\n            for topic_id, epochs in partitions.items():\n"
        "                self.owners",
        "for partitions in (member.assigned,):\n    for topic_id, epochs in partitions.items():\n        self.owners",
        LIVES,
    ),
    Plant(
        "any older epoch of a member is accepted",
        "coordinator/consumer_change.py",
        "elif epoch == member.previous_epoch and _is_within(owned, member.assigned):",
        "elif epoch < member.epoch:",
        RULES,
    ),
    Plant(
        "a later epoch than the member's is accepted",
        "coordinator/consumer_change.py",
        'kind = "greater"',
        "return",
        RULES,
    ),
    Plant(
        "an instance id is taken over while its member is there",
        "coordinator/consumer_change.py",
        "if known.classic is None and known.epoch != STATIC_LEAVE_EPOCH:",
        "if False:",
        RULES,
    ),
    Plant(
        "a new target does not wait for the assignment interval",
        "coordinator/consumer_change.py",
        "return not since_ms or not interval_ms or self.step.now_ms >= since_ms + interval_ms",
        "return True",
        RULES,
    ),
    Plant(
        "a change of topics begins no new epoch",
        "coordinator/consumer_change.py",
        "if must_bump or found != group.metadata_hash:",
        "if must_bump:",
        RULES,
    ),
    Plant(
        "a heartbeat of a consumer group extends no session",
        "coordinator/consumer_heartbeat.py",
        'group.expect(step, SESSION, member_id, group_settings.number(shard, group_id, "consumer_session_timeout_ms"))',
        "if (SESSION, member_id) not in group.deadlines:\n    group.expect(step, SESSION, member_id, 45_000)",
        RULES,
    ),
    Plant(
        "a heartbeat that says nothing new is not looked at for another epoch of its group",
        "coordinator/consumer_heartbeat.py",
        "and member.is_reconciled_to(group.target_epoch)",
        "",
        LIVES,
    ),
    Plant(
        "a member has any time to give partitions up",
        "coordinator/consumer_change.py",
        "group.expect(self.step, REVOCATION, following.member_id, following.rebalance_timeout_ms)",
        "pass",
        RULES,
    ),
    Plant(
        "a group may set intervals beyond the broker's bounds",
        "coordinator/group_settings.py",
        "min(max(int(text), getattr(settings, least)), getattr(settings, most))",
        "int(text)",
        RULES,
    ),
    Plant(
        "a commit with an older epoch counts for partitions that came later",
        "coordinator/consumer_group.py",
        "if all(each is not None and each <= epoch for each in since):",
        "if since:",
        RULES,
    ),
    Plant(
        "uniform gives a member more than its share",
        "coordinator/assignors.py",
        "if left and has_extra and len(members) - index > extra_count:",
        "if False:",
        RULES,
    ),
    Plant(
        "range gives the last members the extra partitions",
        "coordinator/assignors.py",
        "end = start + quota + (taken < extra_count)",
        "end = start + quota + (taken >= subscribers[topic_id] - extra_count)",
        RULES,
    ),
    Plant(
        "patterns are held against the topics at every heartbeat",
        "coordinator/consumer_patterns.py",
        "if last_ms is not None and step.now_ms <= last_ms + MIN_REFRESH_MS:",
        "if False:",
        RULES,
    ),
    Plant(
        "a member's targets outlive it",
        "coordinator/consumer_records.py",
        "StoredRecord(messages.ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), None),",
        "",
        LIVES,
    ),
    Plant(
        "those who wait in a classic group get no answer when it changes",
        "coordinator/consumer_migration.py",
        "rebalance.answer_join(step, member, rebalance.join_error(errors.REBALANCE_IN_PROGRESS, member.member_id))",
        "pass",
        MIGRATION,
    ),
    Plant(
        "a group becomes classic while a member of the consumer protocol is left",
        "coordinator/consumer_migration.py",
        "classic == left > 0",
        "left > 0",
        MIGRATION,
    ),
    Plant(
        "a classic member is not told that it may have more",
        "coordinator/consumer_classic_members.py",
        "or (member.state == UNRELEASED_PARTITIONS and not _waits_for_others(group, member))",
        "",
        MIGRATION,
    ),
)
