"""The share coordinator: the delivery state of the share partitions in one partition of `__share_group_state`.

A pure state machine as `shard.py` describes it (KIP-932). A share partition's state is one snapshot record and the
updates after it. After `share.coordinator.snapshot.update.records.per.snapshot` updates the next one is a snapshot. The
share partitions that were not written for a while get a new snapshot too, so that the log can be cut off before the
oldest snapshot that is still needed (`Prune`)."""

from __future__ import annotations

from pykafkad import errors
from pykafkad.coordinator import events, share_codec, share_state_events
from pykafkad.coordinator.share_batches import NO_START_OFFSET, StateBatch, combine, of_message
from pykafkad.effects import Append, Prune, Reply, SetTimer, StoredRecord, TimerFired
from pykafkad.wire import messages

TOPIC = "__share_group_state"
TIMER_PRUNE = ("prune",)
TIMER_SNAPSHOT = ("snapshot",)

NO_EPOCH = -1
"""A caller's epoch that is not checked."""
NO_COUNT = -1

RECORDS_PER_STEP = 200
"""The number of records that are loaded in one step."""
RECORDS_PER_APPEND = 1_000
"""The most tombstones or snapshots in one batch. They need not be written together."""

NEGATIVE_PARTITION = "The partition id cannot be a negative number."
WRITE_UNINITIALIZED = "Write operation on uninitialized share partition not allowed."
READ_UNINITIALIZED = "Read operation on uninitialized share partition not allowed."

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from random import Random
    from typing import Any

    from pykafkad.config import Settings
    from pykafkad.coordinator.share_state_events import Key
    from pykafkad.wire.batch import BatchHeader
    from pykafkad.wire.records import Record


def coordinator_key(group_id: str, topic_id_text: str, partition: int) -> str:
    """What names a share partition to find its coordinator."""
    return f"{group_id}:{topic_id_text}:{partition}"


class SharePartitionState:
    """What is known of one share partition.

    `leader_epoch` is that of the last record, `highest_leader_epoch` and `highest_state_epoch` fence older callers.
    `snapshot_offset` is the offset of the last snapshot in the log: records before it are not needed any more."""

    __slots__ = (
        "batches",
        "create_timestamp_ms",
        "delivery_complete_count",
        "highest_leader_epoch",
        "highest_state_epoch",
        "leader_epoch",
        "snapshot_epoch",
        "snapshot_offset",
        "start_offset",
        "state_epoch",
        "updates",
        "write_timestamp_ms",
    )

    def __init__(self) -> None:
        self.snapshot_epoch = 0
        self.state_epoch = 0
        self.leader_epoch = 0
        self.highest_leader_epoch: int | None = None
        self.highest_state_epoch: int | None = None
        self.start_offset = NO_START_OFFSET
        self.delivery_complete_count = NO_COUNT
        self.batches: list[StateBatch] = []
        self.create_timestamp_ms = 0
        self.write_timestamp_ms = 0
        self.snapshot_offset: int | None = None
        self.updates = 0

    def adopt_snapshot(self, value: messages.ShareSnapshotValue, offset: int, updates_per_snapshot: int) -> None:
        """Take over a snapshot, whatever was known before."""
        self.highest_state_epoch = _higher(self.highest_state_epoch, value.state_epoch)
        self.highest_leader_epoch = _higher(self.highest_leader_epoch, value.leader_epoch)
        self.snapshot_epoch = value.snapshot_epoch
        self.state_epoch = value.state_epoch
        self.leader_epoch = value.leader_epoch
        self.start_offset = value.start_offset
        self.delivery_complete_count = value.delivery_complete_count
        self.batches = [of_message(row) for row in value.state_batches]
        self.create_timestamp_ms = value.create_timestamp
        self.write_timestamp_ms = value.write_timestamp
        self.snapshot_offset = offset
        if self.updates >= updates_per_snapshot:
            self.updates = 0

    def adopt_update(self, value: messages.ShareUpdateValue) -> None:
        """Take over an update."""
        self.highest_leader_epoch = _higher(self.highest_leader_epoch, value.leader_epoch)
        if value.start_offset != NO_START_OFFSET:
            self.start_offset = value.start_offset
        if value.leader_epoch != NO_EPOCH:
            self.leader_epoch = value.leader_epoch
        self.delivery_complete_count = value.delivery_complete_count
        self.batches = combine(self.batches, map(of_message, value.state_batches), self.start_offset)
        self.updates += 1

    def snapshot(self, key: Key) -> StoredRecord:
        """The state as the record that begins with it."""
        value = messages.ShareSnapshotValue(
            snapshot_epoch=self.snapshot_epoch,
            state_epoch=self.state_epoch,
            leader_epoch=self.leader_epoch,
            start_offset=self.start_offset,
            delivery_complete_count=self.delivery_complete_count,
            create_timestamp=self.create_timestamp_ms,
            write_timestamp=self.write_timestamp_ms,
            state_batches=_rows(messages.ShareSnapshotValue.StateBatch, self.batches),
        )
        return StoredRecord(_key(messages.ShareSnapshotKey, key), value)

    def copy(self) -> SharePartitionState:
        """The same state, to be changed into that of a next snapshot."""
        other = SharePartitionState()
        for name in self.__slots__:
            setattr(other, name, getattr(self, name))
        return other


class ShareStateShard:
    """The share partitions whose state is kept in one partition. `settings` are the broker's."""

    __slots__ = ("log", "partition", "settings", "states")

    def __init__(self, partition: int, settings: Settings, random: Random) -> None:
        self.partition = partition
        self.log = (TOPIC, partition)
        self.settings = settings
        self.states: dict[Key, SharePartitionState] = {}

    # Hard state.

    def apply(self, record: StoredRecord, offset: int) -> None:
        """Apply one record of the log, which stands there at `offset`, to the hard state."""
        stored_key: Any = record.key
        value: Any = record.value
        key = stored_key.group_id, bytes(stored_key.topic_id), stored_key.partition
        if value is None:
            self.states.pop(key, None)
            return
        state = self.states.get(key)
        if state is None:
            state = self.states[key] = SharePartitionState()
        if type(stored_key) is messages.ShareSnapshotKey:
            state.adopt_snapshot(value, offset, self._updates_per_snapshot)
        else:
            state.adopt_update(value)

    def load(self, batches: Iterable[tuple[BatchHeader, list[Record]]]) -> None:
        """Apply a whole log, oldest batch first. Raises `ProtocolError` for bytes that are no record of this topic."""
        for _ in self.load_in_steps(batches):
            pass

    def load_in_steps(self, batches: Iterable[tuple[BatchHeader, list[Record]]]) -> Iterator[None]:
        """Like `load`, as a generator: between its steps the shell can do other work."""
        count = 0
        for header, records in batches:
            for record in () if header.is_control else records:
                decoded = share_codec.decode(record.key, record.value)
                if decoded is not None:
                    self.apply(decoded, record.offset)
                count += 1
                if count % RECORDS_PER_STEP == 0:
                    yield

    # Events.

    def step(self, event: object, now: float, now_ms: int) -> list[object]:
        """The effects of one event of `share_state_events`, `events` or `TimerFired`."""
        return _STEPS[type(event)](self, event, now, now_ms)

    def _initialize(self, event: share_state_events.InitializeState, now: float, now_ms: int) -> list[object]:
        row, state = event.row, self.states.get(event.key)
        row_class = messages.InitializeShareGroupStateResponse.PartitionResult
        if event.key[2] < 0:
            return _refuse(event, row_class, errors.INVALID_REQUEST, NEGATIVE_PARTITION)
        if state is not None and _is_older(row.state_epoch, state.highest_state_epoch):
            return _refuse(event, row_class, errors.FENCED_STATE_EPOCH)
        if not event.is_known:
            return _refuse(event, row_class, errors.UNKNOWN_TOPIC_OR_PARTITION)
        fresh = SharePartitionState()
        if state is not None:
            fresh.snapshot_epoch = state.snapshot_epoch + 1
        fresh.state_epoch = row.state_epoch
        fresh.start_offset = row.start_offset
        # Without a start offset there is no lag yet, and so no count of what is done with.
        fresh.delivery_complete_count = NO_COUNT if row.start_offset == NO_START_OFFSET else 0
        fresh.create_timestamp_ms = fresh.write_timestamp_ms = now_ms
        return [Append(self.log, [fresh.snapshot(event.key)]), Reply(event.token, row_class(partition=event.key[2]))]

    def _write(self, event: share_state_events.WriteState, now: float, now_ms: int) -> list[object]:
        row, state = event.row, self.states.get(event.key)
        row_class = messages.WriteShareGroupStateResponse.PartitionResult
        code, text = _check(event, state, row.leader_epoch, row.state_epoch, WRITE_UNINITIALIZED)
        if code or state is None:
            return _refuse(event, row_class, code, text)
        news = [of_message(each) for each in row.state_batches]
        record = self._change(
            event.key, state, news, row.start_offset, row.delivery_complete_count, state.leader_epoch, now_ms
        )
        return [Append(self.log, [record]), Reply(event.token, row_class(partition=event.key[2]))]

    def _read(self, event: share_state_events.ReadState, now: float, now_ms: int) -> list[object]:
        row, state = event.row, self.states.get(event.key)
        row_class = messages.ReadShareGroupStateResponse.PartitionResult
        code, text = _check(event, state, row.leader_epoch, NO_EPOCH, READ_UNINITIALIZED)
        if code or state is None:
            return _refuse(event, row_class, code, text)
        effects: list[object] = []
        if row.leader_epoch not in (NO_EPOCH, state.highest_leader_epoch):
            # A new leader: what the one before it still writes is refused from now on.
            record = self._change(
                event.key, state, [], state.start_offset, state.delivery_complete_count, row.leader_epoch, now_ms
            )
            effects.append(Append(self.log, [record]))
        answer = row_class(
            partition=event.key[2],
            state_epoch=state.state_epoch,
            start_offset=state.start_offset,
            state_batches=_rows(messages.ReadShareGroupStateResponse.StateBatch, state.batches),
        )
        effects.append(Reply(event.token, answer))
        return effects

    def _change(
        self,
        key: Key,
        state: SharePartitionState,
        news: list[StateBatch],
        start_offset: int,
        delivery_complete_count: int,
        leader_epoch: int,
        now_ms: int,
    ) -> StoredRecord:
        """The record of changed ranges: an update, or a snapshot when there are enough updates."""
        if state.updates >= self._updates_per_snapshot:
            fresh = state.copy()
            fresh.snapshot_epoch += 1
            if start_offset != NO_START_OFFSET:
                fresh.start_offset = start_offset
            fresh.delivery_complete_count = delivery_complete_count
            fresh.leader_epoch = leader_epoch
            fresh.batches = combine(state.batches, news, fresh.start_offset)
            fresh.create_timestamp_ms = fresh.write_timestamp_ms = now_ms
            return fresh.snapshot(key)
        value = messages.ShareUpdateValue(
            snapshot_epoch=state.snapshot_epoch,
            leader_epoch=leader_epoch,
            start_offset=start_offset,
            delivery_complete_count=delivery_complete_count,
            state_batches=_rows(messages.ShareUpdateValue.StateBatch, combine((), news, start_offset)),
        )
        return StoredRecord(_key(messages.ShareUpdateKey, key), value)

    def _summary(self, event: share_state_events.ReadSummary, now: float, now_ms: int) -> list[object]:
        row_class = messages.ReadShareGroupStateSummaryResponse.PartitionResult
        if event.key[2] < 0:
            return _refuse(event, row_class, errors.INVALID_REQUEST, NEGATIVE_PARTITION)
        if not event.is_known:
            return _refuse(event, row_class, errors.UNKNOWN_TOPIC_OR_PARTITION)
        state = self.states.get(event.key)
        answer = row_class(partition=event.key[2], start_offset=NO_START_OFFSET)
        if state is not None:
            answer.state_epoch = state.state_epoch
            answer.leader_epoch = state.leader_epoch
            answer.start_offset = state.start_offset
            answer.delivery_complete_count = state.delivery_complete_count
        return [Reply(event.token, answer)]

    def _delete(self, event: share_state_events.DeleteState, now: float, now_ms: int) -> list[object]:
        row_class = messages.DeleteShareGroupStateResponse.PartitionResult
        if event.key[2] < 0:
            return _refuse(event, row_class, errors.INVALID_REQUEST, NEGATIVE_PARTITION)
        if not event.is_known:
            return _refuse(event, row_class, errors.UNKNOWN_TOPIC_OR_PARTITION)
        effects: list[object] = []
        if event.key in self.states:
            effects.append(Append(self.log, [_tombstone(event.key)]))
        effects.append(Reply(event.token, row_class(partition=event.key[2])))
        return effects

    def _topics_deleted(self, event: events.TopicsDeleted, now: float, now_ms: int) -> list[object]:
        deleted = {topic_id for _, topic_id in event.topics}
        return self._append_in_batches([_tombstone(key) for key in self.states if key[1] in deleted])

    def _append_in_batches(self, records: list[StoredRecord]) -> list[object]:
        starts = range(0, len(records), RECORDS_PER_APPEND)
        return [Append(self.log, records[start : start + RECORDS_PER_APPEND]) for start in starts]

    # Start, end and timers.

    def _loaded(self, event: events.Loaded, now: float, now_ms: int) -> list[object]:
        return [self._prune_timer(now), self._snapshot_timer(now)]

    def _metadata_changed(self, event: events.MetadataChanged, now: float, now_ms: int) -> list[object]:
        return []

    def _resigned(self, event: events.Resigned, now: float, now_ms: int) -> list[object]:
        return []

    def _prune_timer(self, now: float) -> SetTimer:
        return SetTimer(TIMER_PRUNE, now + self.settings.share_coordinator_state_topic_prune_interval_ms / 1000)

    def _snapshot_timer(self, now: float) -> SetTimer:
        return SetTimer(TIMER_SNAPSHOT, now + self._snapshot_interval_ms / 1000)

    def _timer_fired(self, event: TimerFired, now: float, now_ms: int) -> list[object]:
        if event.key == TIMER_PRUNE:
            offset = self.first_needed_offset()
            return [*([Prune(self.log, offset)] if offset > 0 else []), self._prune_timer(now)]
        return [*self._append_in_batches(self._cold_snapshots(now_ms)), self._snapshot_timer(now)]

    def first_needed_offset(self) -> int:
        """Records before this offset are not needed any more. Without any snapshot that is 0: nothing is known."""
        return min(
            (state.snapshot_offset for state in self.states.values() if state.snapshot_offset is not None), default=0
        )

    def _cold_snapshots(self, now_ms: int) -> list[StoredRecord]:
        """Snapshots of the share partitions whose last one is old, unless nothing was written since theirs were made
        so."""
        if all(state.create_timestamp_ms != state.write_timestamp_ms for state in self.states.values()):
            return []
        records = []
        for key, state in self.states.items():
            if now_ms - state.write_timestamp_ms >= self._snapshot_interval_ms:
                fresh = state.copy()
                fresh.snapshot_epoch += 1
                fresh.write_timestamp_ms = now_ms
                records.append(fresh.snapshot(key))
        return records

    @property
    def _updates_per_snapshot(self) -> int:
        return self.settings.share_coordinator_snapshot_update_records_per_snapshot

    @property
    def _snapshot_interval_ms(self) -> int:
        return self.settings.share_coordinator_cold_partition_snapshot_interval_ms


def _higher(known: int | None, value: int) -> int:
    return value if known is None or known < value else known


def _is_older(epoch: int, highest: int | None) -> bool:
    """Whether a caller's epoch is fenced. NO_EPOCH never is."""
    return epoch != NO_EPOCH and highest is not None and highest > epoch


def _check(
    event: Any, state: SharePartitionState | None, leader_epoch: int, state_epoch: int, uninitialized: str
) -> tuple[int, str | None]:
    """NONE, or the error code and text for one who reads or writes a state. `uninitialized` is the text where there is
    no state."""
    if event.key[2] < 0:
        return errors.INVALID_REQUEST, NEGATIVE_PARTITION
    if state is None:
        return errors.INVALID_REQUEST, uninitialized
    if _is_older(leader_epoch, state.highest_leader_epoch):
        return errors.FENCED_LEADER_EPOCH, None
    if _is_older(state_epoch, state.highest_state_epoch):
        return errors.FENCED_STATE_EPOCH, None
    return (errors.NONE if event.is_known else errors.UNKNOWN_TOPIC_OR_PARTITION), None


def _key(key_class: Any, key: Key) -> Any:
    return key_class(group_id=key[0], topic_id=key[1], partition=key[2])


def _tombstone(key: Key) -> StoredRecord:
    return StoredRecord(_key(messages.ShareSnapshotKey, key), None)


def _rows(row_class: Any, batches: list[StateBatch]) -> list[Any]:
    return [
        row_class(first_offset=first, last_offset=last, delivery_state=state, delivery_count=count)
        for first, last, state, count in batches
    ]


def _refuse(event: Any, row_class: Any, code: int, text: str | None = None) -> list[object]:
    row = row_class(partition=event.key[2], error_code=code, error_message=text or errors.message(code))
    return [Reply(event.token, row)]


_STEPS: dict[type, Callable[[ShareStateShard, Any, float, int], list[object]]] = {
    share_state_events.InitializeState: ShareStateShard._initialize,
    share_state_events.ReadState: ShareStateShard._read,
    share_state_events.WriteState: ShareStateShard._write,
    share_state_events.DeleteState: ShareStateShard._delete,
    share_state_events.ReadSummary: ShareStateShard._summary,
    events.TopicsDeleted: ShareStateShard._topics_deleted,
    events.MetadataChanged: ShareStateShard._metadata_changed,
    events.Loaded: ShareStateShard._loaded,
    events.Resigned: ShareStateShard._resigned,
    TimerFired: ShareStateShard._timer_fired,
}
