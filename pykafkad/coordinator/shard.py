"""The groups of one partition of `__consumer_offsets`, as a pure state machine.

`step(event, now, now_ms)` returns effects and changes only soft state. State that must survive a restart changes only
in `apply(record)`. The shell calls `apply` for every record of an `Append` right after the local write and before the
next step. The loader calls it for every record of the log. Replies that follow an `Append` are sent when the append is
durable. When a write fails, the shell drops the shard: `step(Resigned())` answers all waiting requests, and the
partition is loaded again.

Reads (`describe`, `listed`, `fetch_offsets`) answer at once from the applied state.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.coordinator import assignment, events, group_types, loading, membership, offsets, rebalance, record_codec
from pykafkad.coordinator.classic_group import ClassicGroup
from pykafkad.coordinator.group_types import CLASSIC, SHARE
from pykafkad.coordinator.offsets import NO_PRODUCER_ID
from pykafkad.coordinator.partitioning import GROUP_TOPIC
from pykafkad.coordinator.record_codec import NO_TIMESTAMP
from pykafkad.coordinator.step import TIMER_DELETION, TIMER_JOIN, TIMER_SESSION, TIMER_SYNC, Step
from pykafkad.effects import Append, SetTimer, StoredRecord, TimerFired
from pykafkad.wire import messages

TOPIC = GROUP_TOPIC
TIMER_EXPIRY = ("expiry",)
RECORDS_PER_STEP = 200
"""The number of records that are loaded in one step."""

RECORDS_PER_APPEND = 1_000
"""The most tombstones of an expiry check in one batch; they need not be written together. A group with more offsets is
deleted in several steps."""
EXPIRY_PAUSE_SECONDS = 0.05
"""The pause before an expiry check goes on that has found so many: other work is done meanwhile."""

_GIVE_WAY = (group_types.CONSUMER, group_types.STREAMS)

_GROUP_TIMERS = {
    TIMER_SESSION: membership.session_timer_fired,
    TIMER_JOIN: rebalance.join_timer_fired,
    TIMER_SYNC: rebalance.sync_timer_fired,
}

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from random import Random
    from typing import Any

    from pykafkad.config import Settings
    from pykafkad.coordinator.group_news import Rebalance
    from pykafkad.coordinator.group_types import ClusterView, Group
    from pykafkad.coordinator.offset_deletion import GroupDeletion
    from pykafkad.coordinator.offsets import AskedTopic, TopicRow
    from pykafkad.coordinator.target_computation import TargetComputation
    from pykafkad.wire.batch import BatchHeader
    from pykafkad.wire.records import Record


class GroupShard:
    """The groups and committed offsets of one partition. `settings` are the broker's; `random` makes member ids.
    `metadata` is None until the shard is loaded. `topic_hashes` caches those of `metadata_hash.py` by topic name.
    `computations` are the targets of large groups that are being computed, by group id. `deleting` are groups with many
    offsets that are being deleted, and `topic_deletions` what is left to delete of topics' offsets. `rebalances` are
    those under way in groups that are not classic ones: people are told how long they took."""

    __slots__ = (
        "computations",
        "deleting",
        "groups",
        "log",
        "metadata",
        "offsets",
        "partition",
        "random",
        "rebalances",
        "settings",
        "topic_deletions",
        "topic_hashes",
    )

    def __init__(self, partition: int, settings: Settings, random: Random) -> None:
        self.partition = partition
        self.log = (TOPIC, partition)
        self.settings = settings
        self.random = random
        self.groups: dict[str, Group] = {}
        self.metadata: ClusterView | None = None
        self.topic_hashes: dict[str, int] = {}
        self.computations: dict[str, TargetComputation] = {}
        self.deleting: dict[str, GroupDeletion] = {}
        self.topic_deletions: list[Iterator[StoredRecord | None]] = []
        self.offsets = offsets.Offsets()
        self.rebalances: dict[str, Rebalance] = {}

    # Hard state.

    def apply(self, record: StoredRecord, offset: int = -1, producer_id: int = NO_PRODUCER_ID) -> None:
        """Apply one record of the log, which stands there at `offset`, to the hard state. With a producer id it is a
        record of that producer's transaction."""
        key: Any = record.key
        value: Any = record.value
        if type(key) is messages.OffsetCommitKey:
            self.offsets.apply(key, value, offset, producer_id)
            if key.group not in self.groups:
                # The first commit of an unknown group creates a "simple" group, which has no members and no protocol.
                # The group outlives its offsets, so even a tombstone of an offset shows that the group exists. A later
                # tombstone of the group itself deletes it.
                self.groups[key.group] = ClassicGroup(
                    key.group, NO_TIMESTAMP if value is None else value.commit_timestamp
                )
        elif type(key) is not messages.GroupMetadataKey:
            group_types.rules(record_codec.group_type(key)).RECORDS[type(key)](self, key, value)
        elif value is None:
            if isinstance(self.groups.get(key.group), ClassicGroup):
                del self.groups[key.group]
        else:
            group = self.groups.get(key.group)
            if group is None or group.type is not CLASSIC:
                group = self.groups[key.group] = ClassicGroup(key.group, value.current_state_timestamp)
            assert isinstance(group, ClassicGroup)
            group.adopt(value)

    def end_transaction(self, producer_id: int, is_commit: bool) -> None:
        """Apply a marker of the log, which ends the producer's transaction, to the hard state."""
        self.offsets.end_transaction(producer_id, is_commit)

    def load(self, batches: Iterable[tuple[BatchHeader, list[Record]]]) -> None:
        """Apply a whole log, oldest batch first. The shell sends the event `Loaded` afterwards.

        Only the last record of each key is decoded, because a log that has not been compacted yet holds every commit of
        a group. Raises `ProtocolError` for bytes that are no record of this topic.
        """
        for _ in self.load_in_steps(batches):
            pass

    def load_in_steps(self, batches: Iterable[tuple[BatchHeader, list[Record]]]) -> Iterator[None]:
        """Like `load`, as a generator: between its steps the shell can do other work."""
        latest = loading.LatestByKey()
        open_transactions: loading.OpenTransactions = {}
        for count, record in enumerate(loading.committed_records(batches, open_transactions)):
            if record is not None:
                latest.add(record)
            if count % RECORDS_PER_STEP == 0:
                yield
        for count, (key, value) in enumerate(latest.items()):
            decoded = record_codec.decode(key, value)
            if decoded is not None:
                self.apply(decoded, latest.offset_of(key))
            if count % RECORDS_PER_STEP == 0:
                yield
        for producer_id, transaction in open_transactions.items():
            for count, record in enumerate(transaction.values()):
                decoded = record_codec.decode(record.key, record.value)
                if decoded is not None:
                    self.apply(decoded, record.offset, producer_id)
                if count % RECORDS_PER_STEP == 0:
                    yield

    # Events.

    def step(self, event: object, now: float, now_ms: int) -> list[object]:
        """The effects of one event of `events`, of an event of a group type's own, or of `TimerFired`."""
        step = Step(self.log, self.settings, self.random, now, now_ms)
        serve: Any = _STEPS.get(type(event))
        if serve is None:
            own: Any = event
            serve = group_types.rules(own.group_type).STEPS[type(event)]
        serve(self, step, event)
        if step.has_written and type(event) not in _OF_OFFSETS:
            from pykafkad.coordinator import group_news

            group_news.tell(self, step, event)
        return step.effects

    def _classic(self, step: Step, event: Any) -> tuple[ClassicGroup | None, bool]:
        """The classic group that a request names, and whether it is left to do here. If the group is of another type,
        the rules of that type have served the request, or it is treated as one of no group."""
        group = self.groups.get(event.request.group_id)
        if group is None or isinstance(group, ClassicGroup):
            return group, True
        serve = group_types.rules(group.type).STEPS.get(type(event))
        if serve is None:
            return None, True
        serve(self, step, event)
        return None, False

    def _join(self, step: Step, event: events.JoinGroup) -> None:
        group_id = event.request.group_id
        other = self.groups.get(group_id)
        if other is not None and other.type in _GIVE_WAY and other.is_empty and not event.request.member_id:
            # An empty group of these types becomes a classic one when a classic member joins.
            step.append(other.tombstones())
            other.cancel_timers(step)
            del self.groups[group_id]
        group, is_ours = self._classic(step, event)
        if not is_ours:
            return
        if group is not None:
            membership.join(step, group, event)
        elif group_id in self.groups:
            step.reply(event.token, rebalance.join_error(errors.INCONSISTENT_GROUP_PROTOCOL))
        elif event.request.member_id:
            step.reply(event.token, rebalance.join_error(errors.UNKNOWN_MEMBER_ID, event.request.member_id))
        else:
            group = self.groups[group_id] = ClassicGroup(group_id, step.now_ms)
            membership.join(step, group, event)
            step.append([record_codec.new_group(group)])

    def _sync(self, step: Step, event: events.SyncGroup) -> None:
        group, is_ours = self._classic(step, event)
        if is_ours:
            assignment.sync(step, group, event.token, event.request)

    def _heartbeat(self, step: Step, event: events.Heartbeat) -> None:
        group, is_ours = self._classic(step, event)
        if is_ours:
            error_code = membership.heartbeat(step, group, event.request)
            step.reply(event.token, messages.HeartbeatResponse(error_code=error_code))

    def _leave(self, step: Step, event: events.LeaveGroup) -> None:
        group, is_ours = self._classic(step, event)
        if is_ours:
            step.reply(event.token, membership.leave(step, group, event.request))

    def _commit(self, step: Step, event: events.OffsetCommit) -> None:
        request = event.request
        group = self.groups.get(request.group_id)
        max_bytes = self.settings.offset_metadata_max_bytes
        release = self.settings.release
        tells_more = event.group_id_not_found and not (release is not None and release.has_old_coordinator)
        error_code = offsets.check_commit(group, request, tells_more, max_bytes)
        if error_code:
            step.reply(event.token, offsets.refused(request, error_code))
            return
        if isinstance(group, ClassicGroup) and request.member_id in group.members:
            # Like a heartbeat, a commit keeps the member's session alive.
            step.expect_heartbeat(group, group.members[request.member_id])
        records, response = offsets.commit(request, max_bytes, step.now_ms)
        if records and not self._fits(records):
            step.reply(event.token, offsets.refused(request, errors.UNKNOWN_SERVER_ERROR))
            return
        if records:
            step.append(records)
        step.reply(event.token, response)

    def _commit_transactional(self, step: Step, event: events.TxnOffsetCommit) -> None:
        from pykafkad.coordinator import pending_offsets

        request = event.request
        metadata_max_bytes = self.settings.offset_metadata_max_bytes
        group = self.groups.get(request.group_id)
        error_code = pending_offsets.check_commit(
            group, request, metadata_max_bytes, self.metadata, tells_more=event.tells_more
        )
        if error_code:
            step.reply(event.token, pending_offsets.refused(request, error_code))
            return
        records, response = pending_offsets.commit(request, metadata_max_bytes, step.now_ms)
        if records and not self._fits(records):
            step.reply(event.token, pending_offsets.refused(request, errors.UNKNOWN_SERVER_ERROR))
            return
        if records:
            step.effects.append(Append(self.log, records, (request.producer_id, request.producer_epoch)))
        step.reply(event.token, response)

    def _fits(self, records: list[StoredRecord]) -> bool:
        """Whether the records of a commit fit into one batch. They are encoded only when an estimate does not tell."""
        limit = self.settings.message_max_bytes
        key: Any = records[0].key
        longest = len(key.group) + 250 + 4 * self.settings.offset_metadata_max_bytes
        return longest * len(records) <= limit or record_codec.fits(records, limit)

    def _delete_offsets(self, step: Step, event: events.OffsetDelete) -> None:
        group = self.groups.get(event.request.group_id)
        if group is None:
            step.reply(event.token, messages.OffsetDeleteResponse(error_code=errors.GROUP_ID_NOT_FOUND))
        elif error_code := group.check_offset_delete():
            step.reply(event.token, messages.OffsetDeleteResponse(error_code=error_code))
        else:
            from pykafkad.coordinator import offset_deletion

            records, response = offset_deletion.asked(self.offsets, group, event.request)
            if records:
                step.append(records)
            step.reply(event.token, response)

    def _delete_group(self, step: Step, event: events.DeleteGroup) -> None:
        group = self.groups.get(event.group_id)
        rules = None if group is None or group.type is CLASSIC else group_types.rules(group.type)
        if rules is not None and events.DeleteGroup in rules.STEPS:
            rules.STEPS[events.DeleteGroup](self, step, event)
        else:
            self.delete_group(step, event.group_id, event.token)

    def delete_group(self, step: Step, group_id: str, token: object) -> None:
        """Delete a group of any type with its offsets, and answer `token`."""
        group = self.groups.get(group_id)
        error_code = errors.NONE
        if group is None:
            error_code = errors.GROUP_ID_NOT_FOUND
        else:
            error_code = group.check_delete()
            if not error_code and self.offsets.count(group_id) > RECORDS_PER_APPEND:
                from pykafkad.coordinator import offset_deletion

                offset_deletion.begin(self, step, group_id, token)
                return
            if not error_code:
                step.append([*self.offsets.tombstones(group.group_id), *group.tombstones()])
                group.cancel_timers(step)
        step.reply(token, messages.DeleteGroupsResponse.DeletableGroupResult(group_id=group_id, error_code=error_code))

    def _topics_deleted(self, step: Step, event: events.TopicsDeleted) -> None:
        from pykafkad.coordinator import offset_deletion

        offset_deletion.topics_deleted(self, step, self.offsets.tombstones_of_topics(event.topics))

    def _metadata_changed(self, step: Step, event: events.MetadataChanged) -> None:
        for name in event.topics:
            self.topic_hashes.pop(name, None)
        for group in list(self.groups.values()):
            if group.type is not CLASSIC:
                group_types.rules(group.type).metadata_changed(self, step, group, event)

    def _target_computed(self, step: Step, event: events.TargetComputed) -> None:
        from pykafkad.coordinator import target_computation

        target_computation.finish(self, step, event)

    def _target_refused(self, step: Step, event: events.TargetRefused) -> None:
        from pykafkad.coordinator import target_computation

        target_computation.refused(self, step, event)

    def _target_written(self, step: Step, event: events.TargetWritten) -> None:
        from pykafkad.coordinator import target_computation

        target_computation.answer(self, step, event)

    def _append_in_batches(self, step: Step, records: list[StoredRecord]) -> None:
        for start in range(0, len(records), RECORDS_PER_APPEND):
            step.append(records[start : start + RECORDS_PER_APPEND])

    # Start, end and timers.

    def _loaded(self, step: Step, event: events.Loaded) -> None:
        self.metadata = event.metadata
        for group in list(self.groups.values()):
            if not isinstance(group, ClassicGroup):
                group_types.rules(group.type).loaded(self, step, group)
                continue
            for member in group.members.values():
                step.expect_heartbeat(group, member)
            if len(group.members) > self.settings.group_max_size:
                # The limit was lowered. Members can commit before the rebalance removes those above the limit.
                rebalance.begin(step, group, "group.max.size is lower than before")
        self._set_expiry_timer(step)

    def _resigned(self, step: Step, event: events.Resigned) -> None:
        for group in self.groups.values():
            if not isinstance(group, ClassicGroup):
                group_types.rules(group.type).resigned(step, group)
                continue
            for member in group.members.values():
                rebalance.answer_join(step, member, rebalance.join_error(errors.NOT_COORDINATOR, member.member_id))
                if member.sync_token is not None:
                    step.reply(member.sync_token, messages.SyncGroupResponse(error_code=errors.NOT_COORDINATOR))
                    member.sync_token = None
        if self.computations:
            from pykafkad.coordinator import target_computation

            target_computation.resigned(self, step)
        if self.deleting or self.topic_deletions:
            from pykafkad.coordinator import offset_deletion

            offset_deletion.resigned(self, step)

    def _timer_fired(self, step: Step, event: TimerFired) -> None:
        if event.key == TIMER_EXPIRY:
            self._expire(step)
            return
        if event.key == TIMER_DELETION:
            from pykafkad.coordinator import offset_deletion

            offset_deletion.go_on(self, step)
            return
        key: Any = event.key
        group = self.groups.get(key[1])
        if isinstance(group, ClassicGroup):
            if key[0] in _GROUP_TIMERS:
                _GROUP_TIMERS[key[0]](step, group)
        elif group is not None and (fired := group_types.rules(group.type).TIMERS.get(key[0])) is not None:
            fired(self, step, group, key)

    def _set_expiry_timer(self, step: Step, is_behind: bool = False) -> None:
        seconds = EXPIRY_PAUSE_SECONDS if is_behind else self.settings.offsets_retention_check_interval_ms / 1000
        step.effects.append(SetTimer(TIMER_EXPIRY, step.now + seconds))

    def _expire(self, step: Step) -> None:
        """Delete expired offsets, and groups that have neither members nor offsets. If there are many, later steps go
        on."""
        retention_ms = self.settings.offsets_retention_minutes * 60_000
        records: list[StoredRecord] = []
        is_behind = False
        for group in self.groups.values():
            is_behind = len(records) >= RECORDS_PER_APPEND
            if is_behind:
                break
            tombstones, nothing_left = self.offsets.expired(group, step.now_ms, retention_ms)
            records.extend(tombstones)
            if nothing_left and group.is_empty and group.type != SHARE:
                records.extend(group.tombstones())
                group.cancel_timers(step)
        self._append_in_batches(step, records)
        self._set_expiry_timer(step, is_behind)

    # Reads.

    def describe(self, group_id: str) -> messages.DescribeGroupsResponse.DescribedGroup | None:
        """The description of a classic group, or None when there is no such group."""
        group = self.groups.get(group_id)
        return group.described() if isinstance(group, ClassicGroup) else None

    def check_fetch(self, group_id: str, member_id: str | None, member_epoch: int) -> int:
        """The error code that refuses a member's OffsetFetch, or NONE."""
        group = self.groups.get(group_id)
        return errors.NONE if group is None else group.check_fetch(member_id, member_epoch)

    def has_group(self, group_id: str) -> bool:
        """Whether there is a group of any type with this id."""
        return group_id in self.groups

    def listed(self) -> list[messages.ListGroupsResponse.ListedGroup]:
        """A row of ListGroups for every group."""
        return [
            messages.ListGroupsResponse.ListedGroup(
                group_id=group.group_id,
                protocol_type=group.protocol_type or "",
                group_state=group.state,
                group_type=group.type,
            )
            for group in self.groups.values()
        ]

    def fetch_offsets(
        self, group_id: str, topics: Sequence[AskedTopic] | None, require_stable: bool = False
    ) -> list[TopicRow]:
        """The rows of OffsetFetch for `topics`. With None, for all topics in which the group has committed offsets.
        With `require_stable`, partitions with an offset of an open transaction are refused."""
        if topics is None:
            return self.offsets.fetch_all(group_id, require_stable)
        return self.offsets.fetch(group_id, topics, require_stable)


_OF_OFFSETS = (events.OffsetCommit, events.TxnOffsetCommit)
"""What changes no group, so that there is nothing to tell people."""

_STEPS: dict[type, Callable[[GroupShard, Step, Any], None]] = {
    events.JoinGroup: GroupShard._join,
    events.SyncGroup: GroupShard._sync,
    events.Heartbeat: GroupShard._heartbeat,
    events.LeaveGroup: GroupShard._leave,
    events.OffsetCommit: GroupShard._commit,
    events.TxnOffsetCommit: GroupShard._commit_transactional,
    events.OffsetDelete: GroupShard._delete_offsets,
    events.DeleteGroup: GroupShard._delete_group,
    events.TopicsDeleted: GroupShard._topics_deleted,
    events.MetadataChanged: GroupShard._metadata_changed,
    events.TargetComputed: GroupShard._target_computed,
    events.TargetRefused: GroupShard._target_refused,
    events.TargetWritten: GroupShard._target_written,
    events.Loaded: GroupShard._loaded,
    events.Resigned: GroupShard._resigned,
    TimerFired: GroupShard._timer_fired,
}
