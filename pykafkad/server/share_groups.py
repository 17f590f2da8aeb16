"""What a broker has of share groups (KIP-932): the share coordinator's shards, the share partitions that it leads, and
the share sessions of consumers. The broker makes it when the first share group is met.

A `LedSharePartition` is a share partition with its log. Its state is stored by the share coordinator, whose events
`store` submits; a share partition and its coordinator exchange only the rows of requests and responses, so that they
could be on different brokers."""

from __future__ import annotations

from pykafkad import errors, uuids
from pykafkad.coordinator import share_codec, share_state
from pykafkad.coordinator.group_settings import BOUNDS, TYPE_GROUP
from pykafkad.coordinator.share_acknowledgement import acknowledge, release_member
from pykafkad.coordinator.share_partition import SharePartition
from pykafkad.coordinator.share_state_events import DeleteState, InitializeState, ReadState, WriteState
from pykafkad.effects import DELETE_STATE
from pykafkad.handlers.share_sessions import ShareSessions
from pykafkad.server.coordinator_host import CoordinatorHost
from pykafkad.server.incremental_tasks import IncrementalTask
from pykafkad.settings.durations import milliseconds
from pykafkad.wire import messages

_BY_DURATION = "by_duration:"
"""The form of `share.auto.offset.reset` that names a time instead of an end of the log."""

RETRIES = 20
"""How often the share coordinator is asked again while it is being loaded or moves, or its topic is created: for 27
seconds, of which a broker's session is 9. Kafka asks five times again, in 15 to 31 seconds."""
RETRY_SECONDS = 0.1

_PERSISTER_ERRORS = {
    errors.NOT_COORDINATOR: errors.COORDINATOR_NOT_AVAILABLE,
    errors.COORDINATOR_LOAD_IN_PROGRESS: errors.COORDINATOR_NOT_AVAILABLE,
    errors.COORDINATOR_NOT_AVAILABLE: errors.COORDINATOR_NOT_AVAILABLE,
    errors.GROUP_ID_NOT_FOUND: errors.GROUP_ID_NOT_FOUND,
    errors.UNKNOWN_TOPIC_OR_PARTITION: errors.UNKNOWN_TOPIC_OR_PARTITION,
    errors.FENCED_LEADER_EPOCH: errors.NOT_LEADER_OR_FOLLOWER,
    errors.FENCED_STATE_EPOCH: errors.NOT_LEADER_OR_FOLLOWER,
}
"""What consumers are told of the share coordinator's errors. Every other one is UNKNOWN_SERVER_ERROR."""
_ASKED_AGAIN = (
    errors.NOT_COORDINATOR,
    errors.COORDINATOR_LOAD_IN_PROGRESS,
    errors.COORDINATOR_NOT_AVAILABLE,
)
"""Answers of a share coordinator, here or at another broker, after which it is looked for and asked again."""
_FENCING = (errors.NOT_LEADER_OR_FOLLOWER, errors.GROUP_ID_NOT_FOUND, errors.UNKNOWN_TOPIC_OR_PARTITION)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from typing import Any

    from pykafkad.coordinator.share_acknowledgement import Acknowledgement
    from pykafkad.coordinator.share_group_events import Failures
    from pykafkad.coordinator.share_in_flight import Transition
    from pykafkad.coordinator.share_state_events import Key
    from pykafkad.effects import AskShareState
    from pykafkad.log.partition_log import PartitionLog
    from pykafkad.metadata.image import MetadataDelta
    from pykafkad.server.broker import Broker

    Then = Callable[[int, str | None], object]
    """Takes an error code and its text."""


class _Stored:
    """A reply token of the share coordinator that takes the row of its answer itself."""

    __slots__ = ("_then",)

    def __init__(self, then: Callable[[Any], object]) -> None:
        self._then = then

    def deliver(self, message: object) -> None:
        """The share coordinator has answered."""
        self._then(message)

    def abandon(self, reason: str) -> None:
        """The write of the state has failed."""
        self._then(messages.WriteShareGroupStateResponse.PartitionResult(error_code=errors.COORDINATOR_NOT_AVAILABLE))


class GroupLimits:
    """The settings of a share group as they are now: its own where it has some, else the broker's."""

    __slots__ = ("_broker", "_group_id")

    def __init__(self, broker: Broker, group_id: str) -> None:
        self._broker = broker
        self._group_id = group_id

    def _own(self, name: str) -> str | None:
        own = self._broker.image.configs(TYPE_GROUP, self._group_id)
        return own.get(name.replace("_", ".")) if own else None

    def _number(self, name: str) -> int:
        """A number, moved between the broker's bounds for it."""
        settings = self._broker.settings
        text = self._own(name)
        if text is None:
            default: int = getattr(settings, f"group_{name}")
            return default
        least, most = BOUNDS[name]
        value: int = min(max(int(text), getattr(settings, least)), getattr(settings, most))
        return value

    @property
    def max_delivery_count(self) -> int:
        """How often a record is delivered at most."""
        return self._number("share_delivery_count_limit")

    @property
    def max_record_locks(self) -> int:
        """How many records of a partition may be in flight."""
        return self._number("share_partition_max_record_locks")

    @property
    def lock_duration_ms(self) -> int:
        """How long a member has a record."""
        return self._number("share_record_lock_duration_ms")

    @property
    def is_renewal_enabled(self) -> bool:
        """Whether members may prolong that."""
        return (self._own("share_renew_acknowledge_enable") or "true") == "true"

    @property
    def is_read_committed(self) -> bool:
        """Whether records of open and aborted transactions are withheld."""
        return self._own("share_isolation_level") == "read_committed"

    @property
    def auto_offset_reset(self) -> str:
        """Where a share partition without a start offset begins."""
        return self._own("share_auto_offset_reset") or "latest"


class LedSharePartition:
    """A share partition with the log of its partition. `error` is NONE, or why it cannot be used; it is then replaced
    when the next request asks for it. Delayed fetches watch it as a key."""

    __slots__ = (
        "_share",
        "_timer_at",
        "error",
        "error_text",
        "is_loading",
        "key",
        "leader_epoch",
        "limits",
        "log",
        "of",
    )

    def __init__(self, share: ShareGroups, key: Key, log: PartitionLog) -> None:
        self._share = share
        self.key = key
        self.log = log
        self.leader_epoch = log.replica.leader_epoch
        self.limits = GroupLimits(share.broker, key[0])
        self.of = SharePartition(self.limits, self.leader_epoch)
        self.is_loading = True
        self.error = errors.NONE
        self.error_text: str | None = None
        self._timer_at = float("inf")
        row = messages.ReadShareGroupStateRequest.PartitionData(partition=key[2], leader_epoch=self.leader_epoch)
        share.store(ReadState, key, row, self._loaded)

    def __repr__(self) -> str:
        return f"LedSharePartition({self.key[0]}, {self.log.topic}-{self.log.partition})"

    @property
    def is_active(self) -> bool:
        """Whether records can be acquired and given back."""
        return not self.is_loading and not self.error

    def _loaded(self, row: Any) -> None:
        """The share coordinator has answered with the state."""
        reset = self.limits.auto_offset_reset
        if row.error_code or row.start_offset >= 0 or not reset.startswith(_BY_DURATION):
            self._begin(row)
        else:
            # The lookup reads the log. Those of many share partitions get a little of each turn.
            lookup = self._look_up(row, milliseconds(reset.removeprefix(_BY_DURATION)))
            self._share.broker.runtime.tasks.add(IncrementalTask(None, lookup, self._begin, self._lookup_failed))

    def _look_up(self, row: Any, duration_ms: int) -> Generator[None, None, Any]:
        """The state with the start offset that the duration leads to."""
        yield
        log = self.log
        if log.closed:
            raise errors.KafkaError(errors.NOT_LEADER_OR_FOLLOWER)
        found = log.offset_for_timestamp(self._share.broker.runtime.now_ms - duration_ms)
        if found is None or found[0] >= log.high_watermark:
            text = f"Offset for a timestamp not found for topic partition: {log.topic}-{log.partition}"
            raise errors.KafkaError(errors.OFFSET_NOT_AVAILABLE, text)
        row.start_offset = found[0]
        return row

    def _lookup_failed(self, error: Exception) -> None:
        self.is_loading = False
        broker = self._share.broker
        if isinstance(error, errors.KafkaError):
            self.fail(error.code, error.text)
        elif isinstance(error, errors.StorageFailure):
            broker.log_failed(self.log, error)
            self.fail(errors.KAFKA_STORAGE_ERROR, None)
        else:
            broker.runtime.unexpected(error)
            self.fail(errors.UNKNOWN_SERVER_ERROR, None)

    def _begin(self, row: Any) -> None:
        """Begin with the state."""
        self.is_loading = False
        if row.error_code:
            self.fail(_PERSISTER_ERRORS.get(row.error_code, errors.UNKNOWN_SERVER_ERROR), row.error_message)
        elif not self.error:
            try:
                start = row.start_offset if row.start_offset >= 0 else self._first_offset()
                self.of.load(row.state_epoch, start, row.state_batches)
            except ValueError as problem:
                self.fail(errors.UNKNOWN_SERVER_ERROR, str(problem))
            except errors.StorageFailure as failure:
                self._lookup_failed(failure)
        self._share.broker.purgatory.touch(self)

    def _first_offset(self) -> int:
        """Where a group begins that has never read the partition, if that is one of its ends."""
        log = self.log
        return log.log_start_offset if self.limits.auto_offset_reset == "earliest" else log.high_watermark

    def fail(self, code: int, text: str | None) -> None:
        """It cannot be used any more."""
        self.error, self.error_text = code, text
        self._share.forget(self)

    # --- what members do ---------------------------------------------------------------------------------------------

    def acknowledge(self, member_id: str, rows: list[Acknowledgement], then: Then) -> None:
        """Records come back; `then` is told when that is stored, or why it is not."""
        now = self._share.broker.runtime.now
        try:
            transition = acknowledge(self.of, member_id, rows, now)
        except errors.KafkaError as error:
            self._share.broker.purgatory.touch(self)
            then(error.code, error.text)
            return
        self._store(transition, then)
        self.plan()

    def release(self, member_id: str) -> None:
        """A member is gone."""
        if self.is_active:
            self._store(release_member(self.of, member_id), lambda code, text: None)

    def _store(self, transition: Transition, then: Then) -> None:
        if not transition.pieces:
            then(errors.NONE, None)
            return

        def stored(row: Any) -> None:
            code = row.error_code
            self.of.complete(transition, not code, self._share.broker.runtime.now)
            self.plan()
            self._share.broker.purgatory.touch(self)
            if code:
                code = _PERSISTER_ERRORS.get(code, errors.UNKNOWN_SERVER_ERROR)
                if code in _FENCING:
                    self.fail(code, row.error_message)
            then(code, row.error_message)

        self._write(transition.batches(), stored)

    def _write(self, batches: list[Any], then: Callable[[Any], object]) -> None:
        of = self.of
        row = messages.WriteShareGroupStateRequest.PartitionData(
            partition=self.key[2],
            state_epoch=of.state_epoch,
            leader_epoch=of.leader_epoch,
            start_offset=of.start_offset,
            delivery_complete_count=of.delivery_complete_count,
            state_batches=[
                messages.WriteShareGroupStateRequest.StateBatch(
                    first_offset=first, last_offset=last, delivery_state=state, delivery_count=count
                )
                for first, last, state, count in batches
            ],
        )
        self._share.store(WriteState, self.key, row, then)

    # --- locks -------------------------------------------------------------------------------------------------------

    def plan(self) -> None:
        """Set the timer of the next lock that runs out."""
        at = self.of.next_deadline
        if at < self._timer_at:
            self._timer_at = at
            self._share.broker.runtime.timers.set((self, "locks"), at)

    def fired(self, key: object) -> None:
        """Locks may have run out."""
        self._timer_at = float("inf")
        if not self.is_active:
            return
        changed = self.of.expire_locks(self._share.broker.runtime.now)
        self.plan()
        if changed:
            self._write(changed, lambda row: self.of.advance())
            self._share.broker.purgatory.touch(self)


class ShareGroups:
    """See the module. `partitions` are the share partitions of the groups that have sessions, by group id, and by topic
    id and index."""

    __slots__ = ("broker", "partitions", "sessions", "states")

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.states = CoordinatorHost(broker, share_state.TOPIC, share_state.ShareStateShard, share_codec.encode)
        self.partitions: dict[str, dict[tuple[bytes, int], LedSharePartition]] = {}
        self.sessions = ShareSessions(broker.settings.group_share_max_share_sessions)

    def follow(self) -> None:
        """Load the share coordinator's partitions that are led here."""
        self.states.follow()

    # --- the share coordinator ---------------------------------------------------------------------------------------

    def store(self, event_class: Any, key: Key, row: Any, then: Callable[[Any], object], tries: int = 0) -> None:
        """Submit an event to the share coordinator; `then` gets the row of its answer."""
        name = share_state.coordinator_key(key[0], uuids.to_text(key[1]), key[2])

        def again(row_of_error: Any) -> None:
            if tries == RETRIES:
                then(row_of_error)
                return
            if share_state.TOPIC not in self.broker.image.topics:
                self.create_topic()
            seconds = RETRY_SECONDS * 2 ** min(tries, 4)
            self.broker.runtime.call_later(seconds, lambda: self.store(event_class, key, row, then, tries + 1))

        def answered(got: Any) -> None:
            (again if got.error_code in _ASKED_AGAIN else then)(got)

        error = self.states.shard_for(name)[1]
        if not error:
            self.states.submit(name, event_class(key, row, self.is_known(key), _Stored(answered)))
            return
        if error == errors.NOT_COORDINATOR and len(self.broker.image.brokers) > 1:
            others = self.broker.other_brokers
            node_id = others.coordinator(share_state.TOPIC, name)
            if node_id >= 0:
                others.ask_share_state(node_id, event_class, key, row, answered)
                return
        again(messages.WriteShareGroupStateResponse.PartitionResult(error_code=error))

    def has_state_elsewhere(self, key: Key) -> bool:
        """Whether another broker, which can be asked, has the state of a share partition."""
        name = share_state.coordinator_key(key[0], uuids.to_text(key[1]), key[2])
        broker = self.broker
        return len(broker.image.brokers) > 1 and broker.other_brokers.coordinator(share_state.TOPIC, name) >= 0

    def find_end_elsewhere(self, topic: str, partition: int, then: Callable[[tuple[int, int]], object]) -> bool:
        """Ask the leader of a partition at another broker for its high watermark; `then` gets an error code and the
        offset. Whether there is one to be asked."""
        leader = self.broker.other_brokers.leader(topic, partition)
        if leader >= 0:
            self.broker.other_brokers.find_end(leader, topic, partition, then)
        return leader >= 0

    def ask(self, effect: AskShareState, then: Callable[[Failures], object]) -> None:
        """Ask the share coordinator for what a share group wants; `then` gets the partitions for which it failed."""
        failures: Failures = {}
        left = sum(len(partitions) for partitions in effect.topics.values())

        def taker(place: tuple[bytes, int]) -> Callable[[Any], object]:
            def take(row: Any) -> None:
                nonlocal left
                left -= 1
                if row.error_code:
                    failures[place] = row.error_code, row.error_message
                if not left:
                    then(failures)

            return take

        if not left:
            # A log of Kafka may name a topic without partitions.
            then(failures)
        for topic_id, partitions in effect.topics.items():
            for index, start_offset in partitions.items():
                key = effect.group_id, topic_id, index
                if effect.action == DELETE_STATE:
                    deleted = messages.DeleteShareGroupStateRequest.PartitionData(partition=index)
                    self.store(DeleteState, key, deleted, taker((topic_id, index)))
                else:
                    begun = messages.InitializeShareGroupStateRequest.PartitionData(
                        partition=index, state_epoch=effect.state_epoch, start_offset=start_offset
                    )
                    self.store(InitializeState, key, begun, taker((topic_id, index)))

    def create_topic(self) -> None:
        """Make the topic of the share coordinator, if it is not there."""
        from pykafkad.metadata.events import AutoCreateTopics
        from pykafkad.metadata.topic_askers import Asker

        name = share_state.TOPIC
        self.broker.controller.submit(AutoCreateTopics([name], askers={name: Asker(is_automatic=True)}))

    def is_known(self, key: Key) -> bool:
        """Whether the partition of a share partition exists."""
        topic = self.broker.image.topic_by_id(key[1])
        return topic is not None and key[2] < len(topic.partitions)

    # --- share partitions --------------------------------------------------------------------------------------------

    def limits(self, group_id: str) -> GroupLimits:
        """The settings of a group."""
        return GroupLimits(self.broker, group_id)

    def get(self, key: Key) -> LedSharePartition | None:
        """A share partition that was used before and is still led here."""
        led = self.partitions.get(key[0], {}).get(key[1:])
        if led is not None and (led.log.closed or led.leader_epoch != led.log.replica.leader_epoch):
            led.fail(errors.NOT_LEADER_OR_FOLLOWER, None)
            return None
        return led

    def open(self, key: Key, log: PartitionLog) -> LedSharePartition:
        """The same, made if it is new."""
        led = self.get(key)
        if led is None:
            led = LedSharePartition(self, key, log)
            if not led.error:
                self.partitions.setdefault(key[0], {})[key[1:]] = led
        return led

    def forget(self, led: LedSharePartition) -> None:
        """A share partition cannot be used any more; whoever waits for it is woken."""
        group = self.partitions.get(led.key[0], {})
        if group.get(led.key[1:]) is led:
            del group[led.key[1:]]
            if not group:
                del self.partitions[led.key[0]]
        self.broker.purgatory.touch(led)

    def release(self, group_id: str, member_id: str) -> bool:
        """End a member's session and take its records back. Whether it had a session.

        A group without any session forgets its share partitions: what its coordinator knows is read again when they are
        used again."""
        session = self.sessions.remove(group_id, member_id)
        if session is None:
            return False
        for topic_id, index in session.partitions:
            led = self.get((group_id, topic_id, index))
            if led is not None:
                led.release(member_id)
        if not self.sessions.has_group(group_id):
            for led in list(self.partitions.get(group_id, {}).values()):
                led.fail(errors.NOT_LEADER_OR_FOLLOWER, None)
        return True

    def touch(self, key: object) -> None:
        """Try the delayed operations that watch a key."""
        self.broker.purgatory.touch(key)

    # --- what the broker tells ---------------------------------------------------------------------------------------

    def connection_lost(self, connection_id: int) -> None:
        """The members of a connection that is gone have no sessions any more."""
        for group_id, member_id in self.sessions.of_connection(connection_id):
            self.release(group_id, member_id)

    def metadata_changed(self, delta: MetadataDelta) -> None:
        """Follow the leaders of the coordinator's partitions, and forget share partitions that are led elsewhere."""
        self.states.metadata_changed(delta)
        if delta.partitions or delta.topics_deleted:
            for led in [led for group in self.partitions.values() for led in group.values()]:
                self.get(led.key)

    def resign(self) -> None:
        """The broker stops."""
        self.states.resign()
