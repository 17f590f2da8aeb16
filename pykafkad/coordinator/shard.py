"""The groups of one partition of `__consumer_offsets`, as a pure state machine.

The contract: `step(event, now, now_ms)` reads state and returns effects; what must survive a restart changes only in
`apply(record)`, which the shell calls for every record of an `Append` right after the local write, before the next
step, and which the loader calls for every record of the log. Replies that stand after an `Append` leave when it is
durable. If a write fails the shard is dropped: `step(Resigned())` sends everybody away, and the partition is loaded
again.

Reads (`describe`, `listed`, `fetch_offsets`) answer at once from what has been applied.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.coordinator import assignment, events, loading, membership, offsets, rebalance, record_codec
from pykafkad.coordinator.classic_group import ClassicGroup
from pykafkad.coordinator.group_states import EMPTY, STABLE, TYPE_CLASSIC
from pykafkad.coordinator.record_codec import NO_TIMESTAMP
from pykafkad.coordinator.step import TIMER_JOIN, TIMER_SESSION, TIMER_SYNC, Step
from pykafkad.effects import SetTimer, StoredRecord, TimerFired
from pykafkad.wire import messages

TOPIC = "__consumer_offsets"
TIMER_EXPIRY = ("expiry",)
RECORDS_PER_APPEND = 1_000
"""Tombstones of one expiry round or topic deletion go in batches of this many: together they need no atomicity."""

_GROUP_TIMERS = {
    TIMER_SESSION: membership.session_timer_fired,
    TIMER_JOIN: rebalance.join_timer_fired,
    TIMER_SYNC: rebalance.sync_timer_fired,
}

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from random import Random

    from pykafkad.wire.batch import BatchHeader
    from pykafkad.wire.records import Record


class GroupShard:
    """`settings` are the broker's; `random` makes member ids."""

    __slots__ = ("groups", "log", "offsets", "partition", "random", "settings")

    def __init__(self, partition: int, settings: object, random: Random) -> None:
        self.partition = partition
        self.log = (TOPIC, partition)
        self.settings = settings
        self.random = random
        self.groups: dict[str, ClassicGroup] = {}
        self.offsets = offsets.Offsets()

    # Hard state.

    def apply(self, record: StoredRecord) -> None:
        """Change the hard state by one record of the log."""
        key, value = record.key, record.value
        if type(key) is messages.OffsetCommitKey:
            self.offsets.apply(key, value)
            if key.group not in self.groups:
                # A commit without a group makes one, without members and without a protocol: a "simple" group. It stays
                # when its offsets go, so a tombstone says that there was one; the group's own tombstone comes after.
                self.groups[key.group] = ClassicGroup(
                    key.group, NO_TIMESTAMP if value is None else value.commit_timestamp
                )
        elif value is None:
            self.groups.pop(key.group, None)
        else:
            group = self.groups.get(key.group)
            if group is None:
                group = self.groups[key.group] = ClassicGroup(key.group, value.current_state_timestamp)
            group.adopt(value)

    def load(self, batches: Iterable[tuple[BatchHeader, list[Record]]]) -> None:
        """Apply a whole log, oldest batch first; afterwards the shell sends the event `Loaded`.

        Only the last record of each key is opened: a log that has not been compacted yet holds a group's every commit.
        Raises `ProtocolError` for bytes that are no record of this topic.
        """
        for key, value in loading.latest(loading.decided(batches)).items():
            record = record_codec.decode(key, value)
            if record is not None:
                self.apply(record)

    # Events.

    def step(self, event: object, now: float, now_ms: int) -> list[object]:
        """What follows from an event: see `events` and `effects`."""
        step = Step(self.log, self.settings, self.random, now, now_ms)
        _STEPS[type(event)](self, step, event)
        return step.effects

    def _join(self, step: Step, event: events.JoinGroup) -> None:
        group_id = event.request.group_id
        group = self.groups.get(group_id)
        if group is not None:
            membership.join(step, group, event)
        elif event.request.member_id:
            step.reply(event.token, rebalance.join_error(errors.UNKNOWN_MEMBER_ID, event.request.member_id))
        else:
            group = self.groups[group_id] = ClassicGroup(group_id, step.now_ms)
            membership.join(step, group, event)
            step.append([record_codec.new_group(group)])

    def _sync(self, step: Step, event: events.SyncGroup) -> None:
        assignment.sync(step, self.groups.get(event.request.group_id), event.token, event.request)

    def _heartbeat(self, step: Step, event: events.Heartbeat) -> None:
        error_code = membership.heartbeat(step, self.groups.get(event.request.group_id), event.request)
        step.reply(event.token, messages.HeartbeatResponse(error_code=error_code))

    def _leave(self, step: Step, event: events.LeaveGroup) -> None:
        response = membership.leave(step, self.groups.get(event.request.group_id), event.request)
        step.reply(event.token, response)

    def _commit(self, step: Step, event: events.OffsetCommit) -> None:
        request = event.request
        group = self.groups.get(request.group_id)
        error_code = offsets.check_commit(group, request, event.group_id_not_found)
        if error_code:
            step.reply(event.token, offsets.refused(request, error_code))
            return
        if group is not None and request.member_id in group.members:
            # A commit keeps the member's session alive, like a heartbeat.
            step.expect_heartbeat(group, group.members[request.member_id])
        records, response = offsets.commit(request, self.settings.offset_metadata_max_bytes, step.now_ms)
        if records and not self._fits(records):
            step.reply(event.token, offsets.refused(request, errors.UNKNOWN_SERVER_ERROR))
            return
        if records:
            step.append(records)
        step.reply(event.token, response)

    def _fits(self, records: list[StoredRecord]) -> bool:
        """Whether the records of a commit go into one batch; only commits that might not are measured."""
        limit = self.settings.message_max_bytes
        record = records[0]
        longest = len(record.key.group) + 250 + 4 * self.settings.offset_metadata_max_bytes
        return longest * len(records) <= limit or record_codec.fits(records, limit)

    def _delete_offsets(self, step: Step, event: events.OffsetDelete) -> None:
        group = self.groups.get(event.request.group_id)
        if group is None:
            step.reply(event.token, messages.OffsetDeleteResponse(error_code=errors.GROUP_ID_NOT_FOUND))
        elif group.state is not EMPTY and not group.uses_consumer_protocol():
            step.reply(event.token, messages.OffsetDeleteResponse(error_code=errors.NON_EMPTY_GROUP))
        else:
            records, response = self._offset_deletion(group, event.request)
            if records:
                step.append(records)
            step.reply(event.token, response)

    def _offset_deletion(self, group: ClassicGroup, request: object) -> tuple[list[StoredRecord], object]:
        records, rows = [], []
        for topic in request.topics:
            subscribed = group.is_subscribed_to(topic.name)
            row = messages.OffsetDeleteResponse.OffsetDeleteResponseTopic(name=topic.name)
            for partition in topic.partitions:
                index = partition.partition_index
                row.partitions.append(
                    messages.OffsetDeleteResponse.OffsetDeleteResponsePartition(
                        partition_index=index,
                        error_code=errors.GROUP_SUBSCRIBED_TO_TOPIC if subscribed else errors.NONE,
                    )
                )
                if not subscribed and self.offsets.get(group.group_id, topic.name, index) is not None:
                    records.append(record_codec.offset_commit(group.group_id, topic.name, index, None))
            rows.append(row)
        return records, messages.OffsetDeleteResponse(topics=rows)

    def _delete_group(self, step: Step, event: events.DeleteGroup) -> None:
        group = self.groups.get(event.group_id)
        error_code = errors.NONE
        if group is None:
            error_code = errors.GROUP_ID_NOT_FOUND
        elif group.state is not EMPTY:
            error_code = errors.NON_EMPTY_GROUP
        else:
            self._append_in_batches(
                step, [*self.offsets.tombstones(group.group_id), record_codec.group_tombstone(group.group_id)]
            )
            step.cancel_timers(group)
        step.reply(
            event.token,
            messages.DeleteGroupsResponse.DeletableGroupResult(group_id=event.group_id, error_code=error_code),
        )

    def _topics_deleted(self, step: Step, event: events.TopicsDeleted) -> None:
        self._append_in_batches(step, self.offsets.tombstones_of_topics(event.topics))

    def _append_in_batches(self, step: Step, records: list[StoredRecord]) -> None:
        for start in range(0, len(records), RECORDS_PER_APPEND):
            step.append(records[start : start + RECORDS_PER_APPEND])

    # Beginning, end and time.

    def _loaded(self, step: Step, event: events.Loaded) -> None:
        for group in self.groups.values():
            for member in group.members.values():
                step.expect_heartbeat(group, member)
            if len(group.members) > self.settings.group_max_size:
                # The limit was lowered: a rebalance lets those who stay commit, and sheds the rest.
                rebalance.begin(step, group)
        self._set_expiry_timer(step)

    def _resigned(self, step: Step, event: events.Resigned) -> None:
        for group in self.groups.values():
            for member in group.members.values():
                rebalance.answer_join(step, member, rebalance.join_error(errors.NOT_COORDINATOR, member.member_id))
                if member.sync_token is not None:
                    step.reply(member.sync_token, messages.SyncGroupResponse(error_code=errors.NOT_COORDINATOR))
                    member.sync_token = None

    def _timer_fired(self, step: Step, event: TimerFired) -> None:
        if event.key == TIMER_EXPIRY:
            self._expire(step)
            return
        kind, group_id = event.key
        group = self.groups.get(group_id)
        if group is not None:
            _GROUP_TIMERS[kind](step, group)

    def _set_expiry_timer(self, step: Step) -> None:
        interval_ms = self.settings.offsets_retention_check_interval_ms
        step.effects.append(SetTimer(TIMER_EXPIRY, step.now + interval_ms / 1000))

    def _expire(self, step: Step) -> None:
        """Forget offsets that nobody came back for, and groups that have nobody and nothing."""
        retention_ms = self.settings.offsets_retention_minutes * 60_000
        records: list[StoredRecord] = []
        for group in self.groups.values():
            tombstones, nothing_left = self.offsets.expired(group, step.now_ms, retention_ms)
            records.extend(tombstones)
            if nothing_left and group.state is EMPTY:
                records.append(record_codec.group_tombstone(group.group_id))
                step.cancel_timers(group)
        self._append_in_batches(step, records)
        self._set_expiry_timer(step)

    # Reads.

    def describe(self, group_id: str) -> object | None:
        """A DescribedGroup, or None when there is no such group. Members' metadata is shown while the group is stable."""
        group = self.groups.get(group_id)
        if group is None:
            return None
        stable = group.state is STABLE
        return messages.DescribeGroupsResponse.DescribedGroup(
            group_id=group_id,
            group_state=group.state,
            protocol_type=group.protocol_type or "",
            protocol_data=(group.protocol_name or "") if stable else "",
            members=[
                messages.DescribeGroupsResponse.DescribedGroupMember(
                    member_id=member.member_id,
                    group_instance_id=member.instance_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    member_metadata=member.metadata(group.protocol_name) if stable else b"",
                    member_assignment=member.assignment,
                )
                for member in group.members.values()
            ],
        )

    def listed(self) -> list:
        """A ListedGroup for every group."""
        return [
            messages.ListGroupsResponse.ListedGroup(
                group_id=group.group_id,
                protocol_type=group.protocol_type or "",
                group_state=group.state,
                group_type=TYPE_CLASSIC,
            )
            for group in self.groups.values()
        ]

    def fetch_offsets(self, group_id: str, topics: list | None) -> list:
        """OffsetFetchResponseTopics for the asked topics (objects with `name`, `topic_id` and `partition_indexes`), or
        with None for all that the group has committed."""
        if topics is None:
            return self.offsets.fetch_all(group_id)
        return self.offsets.fetch(group_id, topics)


_STEPS = {
    events.JoinGroup: GroupShard._join,
    events.SyncGroup: GroupShard._sync,
    events.Heartbeat: GroupShard._heartbeat,
    events.LeaveGroup: GroupShard._leave,
    events.OffsetCommit: GroupShard._commit,
    events.OffsetDelete: GroupShard._delete_offsets,
    events.DeleteGroup: GroupShard._delete_group,
    events.TopicsDeleted: GroupShard._topics_deleted,
    events.Loaded: GroupShard._loaded,
    events.Resigned: GroupShard._resigned,
    TimerFired: GroupShard._timer_fired,
}
