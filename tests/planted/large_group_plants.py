"""Bugs to plant in what `pykafkad/coordinator` does in steps for large groups."""

from __future__ import annotations

from tests.planted.plant import Plant

STEPS = ("tests/coordinator/test_target_computation.py",)
OFFSETS = ("tests/coordinator/test_offsets.py",)
DELETION = ("tests/coordinator/test_offset_deletion.py",)
HOST = ("tests/server/test_coordinator_host.py",)
TARGETS = ("tests/server/test_large_groups.py",)

PLANTS = (
    Plant(
        "a target is written though a record has overtaken it",
        "coordinator/target_computation.py",
        "if former_id is None or former_id in group.members or before.get(former_id, {}) != target:\nreturn None",
        "if former_id is None:\n    continue",
        STEPS,
    ),
    Plant(
        "a static member that comes back has the target from before",
        "coordinator/target_computation.py",
        "for member_id, former_id in moved.items():",
        "for member_id, former_id in ():",
        STEPS,
    ),
    Plant(
        "a target is written for a group that has become another",
        "coordinator/target_computation.py",
        "return shard.groups.get(self.group.group_id) is self.group",
        "return True",
        STEPS,
    ),
    Plant(
        "members that are gone get a target",
        "coordinator/target_computation.py",
        "records = [record for member_id, record in changed.items() if member_id in group.members]",
        "records = [*changed.values()]",
        STEPS,
    ),
    Plant(
        "the target of an earlier epoch counts as that of the latest",
        "coordinator/target_computation.py",
        "computation.epoch_record(group_id, computation.epoch, step.now_ms)",
        "computation.epoch_record(group_id, group.epoch, step.now_ms)",
        STEPS,
    ),
    Plant(
        "every heartbeat starts a computation",
        "coordinator/target_computation.py",
        "return known is not None and known.group is group",
        "return False",
        STEPS,
    ),
    Plant(
        "who waits for a target gets no answer when the shard ends",
        "coordinator/target_computation.py",
        "step.reply(event.token, type(response)(error_code=errors.NOT_COORDINATOR))",
        "pass",
        STEPS,
    ),
    Plant(
        "a computation that nobody wants goes on",
        "coordinator/target_computation.py",
        "while not self.is_dropped:",
        "while True:",
        STEPS,
    ),
    Plant(
        "who waits is answered with what held before",
        "coordinator/target_computation.py",
        "response = group_types.rules(computation.group.type).answer_again(shard, step, event, response)",
        "pass",
        STEPS,
    ),
    Plant(
        "a computation sees the group change",
        "coordinator/consumer_target.py",
        "self.members = dict(group.members)",
        "self.members = group.members",
        STEPS,
    ),
    Plant(
        "a failed computation is never begun again",
        "server/machine_runner.py",
        "self.runtime.unexpected(error)\nthen(None)",
        "self.runtime.unexpected(error)",
        TARGETS,
    ),
    Plant(
        "a bug when a target has been computed leaves its group waiting",
        "server/machine_runner.py",
        "self.runtime.unexpected(error)\nself.step(otherwise)",
        "self.runtime.unexpected(error)",
        TARGETS,
    ),
    Plant(
        "who waits for a target that the log refuses is answered with what held before",
        "server/coordinator_host.py",
        "elif isinstance(effect, effects.Compute | effects.Later):\nself.step(effect.refused)",
        "elif type(effect) is effects.Compute:\n    self.step(effect.refused)\n"
        "elif type(effect) is effects.Later:\n    self.step(effect.event)",
        TARGETS,
    ),
    Plant(
        "a target that a bug has ended counts as one under way",
        "coordinator/target_computation.py",
        "started = shard.computations.pop(",
        "started = shard.computations.get(",
        TARGETS,
    ),
    Plant(
        "a share group does not see that a partition has no member",
        "coordinator/share_group_rules.py",
        "def _apply_states(group: ShareGroup, key: Any, value: Any) -> None:\n    group.all_assigned = False",
        "def _apply_states(group: ShareGroup, key: Any, value: Any) -> None:",
        ("tests/coordinator/test_share_group.py",),
    ),
    Plant(
        "all members of a share group that are late are removed in one step",
        "coordinator/share_group_rules.py",
        "if deadline <= step.now][:LATE_PER_STEP]",
        "if deadline <= step.now]",
        ("tests/coordinator/test_share_group.py",),
    ),
    Plant(
        "a commit with an older epoch is refused for a partition with long metadata",
        "coordinator/offsets.py",
        "taken = _without_long_metadata(request, metadata_max_bytes)",
        "taken = request",
        ("tests/coordinator/test_consumer_group.py",),
    ),
    Plant(
        "a bug of the controller leaves internal topics under way",
        "server/replies.py",
        'token.abandon("an unexpected error")',
        "pass",
        ("tests/server/test_internal_topics.py",),
    ),
    Plant(
        "all offsets of a group are deleted in one step",
        "coordinator/offset_deletion.py",
        "islice(deletion.tombstones, RECORDS_PER_STEP)",
        "deletion.tombstones",
        OFFSETS,
    ),
    Plant(
        "a group's offsets are deleted before the group is",
        "coordinator/offset_deletion.py",
        "deletion.collect(tombstones)",
        "deletion.collect(tombstones)\ntombstones and step.append(tombstones)",
        OFFSETS,
    ),
    Plant(
        "what is committed while a group is deleted outlives it",
        "coordinator/offsets.py",
        "while new := self._places(group_id, known):",
        "if new := self._places(group_id, known):",
        OFFSETS,
    ),
    Plant(
        "the tombstones of a group may be larger than a batch",
        "coordinator/offset_deletion.py",
        "if HEADER_SIZE_BYTES + len(deletion.body) > shard.settings.message_max_bytes:",
        "if False:",
        OFFSETS,
    ),
    Plant(
        "a batch whose records are known as bytes counts one too few",
        "server/coordinator_host.py",
        "log.append_encoded(effect.body, len(effect.records), now_ms)",
        "log.append_encoded(effect.body, len(effect.records) - 1, now_ms)",
        HOST,
    ),
    Plant(
        "a group that has members again is deleted",
        "coordinator/offset_deletion.py",
        "error_code = errors.NONE if group is None else group.check_delete()",
        "error_code = errors.NONE",
        OFFSETS,
    ),
    Plant(
        "what was committed since a topic's deletion goes with it",
        "coordinator/offsets.py",
        "each.topic_id in known_ids and each.record_offset <= newest",
        "each.topic_id in known_ids",
        OFFSETS,
    ),
    Plant(
        "a deleted group comes back with the offsets of a deleted topic",
        "coordinator/offsets.py",
        "return bool(found) and all(",
        "return all(",
        DELETION,
    ),
    Plant(
        "an offset that is pending since a topic's deletion goes with it",
        "coordinator/offsets.py",
        "found = [] if self.pending is None else self.pending.offsets_of(group_id, topic, partition)",
        "found = []",
        DELETION,
    ),
    Plant(
        "what is read of a group before its deletion passes for all of it",
        "handlers/offset_fetch.py",
        "return row, error_code",
        "return row, errors.NONE",
        ("tests/handlers/test_offset_fetch.py",),
    ),
    Plant(
        "a group is served while its offsets are deleted",
        "server/coordinator_host.py",
        "if runner.is_loading or key in runner.deleting:",
        "if runner.is_loading:",
        HOST,
    ),
)
