"""A coordinator's place in the shell: one shard for each partition of its topic that this broker leads.

`CoordinatorHost` follows leadership. A shard is loaded when its partition is led here, in steps, so that a long log
does not hold the loop. It resigns when the partition is no longer led here, or in another epoch, or cannot be written,
also while it is being loaded. Each leadership has a `ShardRunner` of its own. An answer, a timer or a step of loading
that comes late for one that has resigned changes nothing."""

from __future__ import annotations

from pykafkad import effects, errors
from pykafkad.coordinator import events
from pykafkad.coordinator.partitioning import GROUP_TOPIC, partition_for
from pykafkad.errors import KafkaError, ProtocolError, StorageFailure
from pykafkad.handlers.context import DEFERRED
from pykafkad.log.replay import batches
from pykafkad.log.replica import LEADER
from pykafkad.server.incremental_tasks import IncrementalTask
from pykafkad.server.logs import BoundedLines
from pykafkad.server.machine_runner import CompositeReply, MachineRunner

RETRY_SECONDS = 5.0
"""After a load that lacked descriptors, the next one begins so much later."""

_GONE = (errors.NOT_LEADER_OR_FOLLOWER, errors.UNKNOWN_TOPIC_OR_PARTITION)
"""What a log is told that another broker leads or that was deleted."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Mapping
    from random import Random
    from typing import Any, Protocol

    from pykafkad.config import Settings
    from pykafkad.coordinator.shard import GroupShard
    from pykafkad.log.partition_log import PartitionLog
    from pykafkad.metadata.image import MetadataDelta
    from pykafkad.server.broker import Broker
    from pykafkad.wire.batch import BatchHeader
    from pykafkad.wire.records import Record

    class Shard(Protocol):
        """One partition's machine (`coordinator/shard.py`)."""

        def step(self, event: object, now: float, now_ms: int) -> list[object]: ...

        def apply(self, record: effects.StoredRecord, offset: int, *producer_id: int) -> None: ...

        def load_in_steps(self, batches: Iterable[tuple[BatchHeader, list[Record]]]) -> Generator[None, None, None]: ...

    ShardClass = Callable[[int, Settings, Random], Any]
    Encode = Callable[[effects.StoredRecord], tuple[bytes | None, bytes | None]]


class ShardRunner(MachineRunner):
    """A shard with its log, for one leadership. The machine's `apply` sees a record right after the local append;
    answers leave when everything that was appended before them is committed."""

    __slots__ = (
        "_broker",
        "_changed_topics",
        "_deleted_topics",
        "_has_created_topics",
        "_host",
        "deleting",
        "has_resigned",
        "is_loading",
        "leader_epoch",
        "log",
    )

    machine: Shard

    def __init__(self, broker: Broker, host: CoordinatorHost, shard: Shard, log: PartitionLog) -> None:
        super().__init__(broker.runtime, shard)
        self._broker = broker
        self._host = host
        # What has changed in the metadata while the shard was being loaded: each topic is here once.
        self._deleted_topics: dict[tuple[str, bytes], None] = {}
        self._changed_topics: dict[str, None] = {}
        self._has_created_topics = False
        self.log = log
        self.leader_epoch = log.replica.leader_epoch
        self.is_loading = True
        self.has_resigned = False
        # Keys that are deleted in several steps: nobody is served for them meanwhile.
        self.deleting: Mapping[str, object] = getattr(shard, "deleting", {})

    # --- loading -----------------------------------------------------------------------------------------------------

    def load(self) -> None:
        """Replay the whole partition, as long as each turn has time for it; then the shard serves."""
        self.runtime.tasks.begin(IncrementalTask(None, self._replay(), self._loaded, self._load_failed))

    def _replay(self) -> Generator[None, None, None]:
        log = self.log
        # The shard before this one may have appended in this very turn.
        log.write_pending()
        for _ in self.machine.load_in_steps(batches(log, log.log_start_offset)):
            yield
            if self.has_resigned:
                return

    def _loaded(self, _: object) -> None:
        if self.has_resigned:
            return
        self.is_loading = False
        log = self.log
        if log.high_watermark < log.end_offset:
            # What the leader before this one did not commit may still be lost, so answers wait for it, too.
            self._broker.commits.after(log, log.end_offset, self._committed)
        self.step(events.Loaded(self._broker.image))
        if self._deleted_topics:
            self.step(events.TopicsDeleted(list(self._deleted_topics)))
        if self._changed_topics:
            self.step(events.MetadataChanged(list(self._changed_topics), self._has_created_topics))
        self._deleted_topics.clear()
        self._changed_topics.clear()

    def _load_failed(self, error: Exception) -> None:
        if self.has_resigned:
            return
        if not isinstance(error, StorageFailure | KafkaError | ProtocolError):
            self.runtime.unexpected(error)
        log = self.log
        if isinstance(error, StorageFailure) and not error.is_passing and log.offline is None and not log.closed:
            # A failed read, which takes no log out of service, but its directory.
            self._broker.log_failed(log, error)
        self._host.shard_failed(self, error)

    # --- serving -----------------------------------------------------------------------------------------------------

    def step(self, event: object) -> object:
        """Feed the shard, if it still serves."""
        return DEFERRED if self.has_resigned else super().step(event)

    def tell(self, event: events.TopicsDeleted | events.MetadataChanged) -> None:
        """Feed the shard a change of the metadata. One that is being loaded gets all of them as one afterwards."""
        if not self.is_loading:
            self.step(event)
        elif isinstance(event, events.TopicsDeleted):
            self._deleted_topics.update(dict.fromkeys(event.topics))
        else:
            self._changed_topics.update(dict.fromkeys(event.topics))
            self._has_created_topics |= event.has_created

    def append(self, effect: effects.Append) -> None:
        log = self.log
        encode = self._host.encode
        now_ms = self.runtime.now_ms
        if effect.body is None:
            records = [encode(record) for record in effect.records]
            appended = log.append_records(records, now_ms, producer=effect.producer)
        else:
            appended = log.append_encoded(effect.body, len(effect.records), now_ms)
        self._broker.commits.mark(log)
        self._broker.commits.after(log, log.end_offset, self._committed)
        transaction = () if effect.producer is None else (effect.producer[0],)
        for offset, record in enumerate(effect.records, appended.base_offset):
            self.machine.apply(record, offset, *transaction)

    def transaction_ended(self, producer_id: int, is_commit: bool) -> None:
        """The last batch of the log is a marker."""
        self._broker.commits.after(self.log, self.log.end_offset, self._committed)
        machine: Any = self.machine
        machine.end_transaction(producer_id, is_commit)

    def prune(self, effect: effects.Prune) -> None:
        """Cut the log off; records that are not committed yet stay."""
        self.log.delete_records(min(effect.offset, self.log.high_watermark))

    def _committed(self, failure: Exception | None) -> None:
        if failure is not None:
            self.failed(failure)

    def reply(self, effect: effects.Reply) -> None:
        if self.has_resigned:
            super().reply(effect)
            return

        def then(failure: Exception | None) -> None:
            if failure is None and not self.has_resigned:
                self.runtime.replies.reply(effect.token, effect.message)
            else:
                # What the machine has done can't be turned into an error: the client must ask again.
                reason = failure or "the coordinator has moved"
                self.runtime.replies.abandon(effect.token, f"its answer depends on a write that failed: {reason}")

        self._broker.commits.after_all(self.log, then)

    def write_markers(self, effect: effects.WriteMarkers) -> None:
        """The markers follow the record of the decision, when that is committed."""

        def committed(failure: Exception | None) -> None:
            if not self.has_resigned and failure is None:
                self._host.write_markers(self, effect)

        self._broker.commits.after_all(self.log, committed)

    def ask_share_state(self, effect: effects.AskShareState) -> None:
        """The share coordinator is asked when the record that says so is committed."""

        def answered(failures: dict[tuple[bytes, int], tuple[int, str | None]]) -> None:
            event: Any = effect.then(failures)
            if self.has_resigned:
                self.runtime.replies.abandon(event.token, "the coordinator has moved")
            else:
                self.step(event)

        def committed(failure: Exception | None) -> None:
            if failure is None and not self.has_resigned:
                self._broker.share_groups.ask(effect, answered)
            else:
                answered({})

        self._broker.commits.after_all(self.log, committed)

    def create_internal_topics(self, effect: effects.CreateInternalTopics) -> None:
        """The topics of a group are created when the record of its topology is committed."""

        def committed(failure: Exception | None) -> None:
            if failure is None and not self.has_resigned:
                self._broker.internal_topics.perform(effect)

        self._broker.commits.after_all(self.log, committed)

    def log_line(self, effect: effects.Tell) -> None:
        self._host.lines.info(effect.event, effect.fields)

    def hold_until_committed(self, token: object) -> None:
        """The answer to `token` follows from records that may not be committed yet."""
        connection = self.runtime.replies.connection_of(token)
        if connection is not None:
            self._broker.commits.hold_for(self.log, connection)

    def resign(self) -> None:
        """Send everybody who waits in the shard away; from now on nothing reaches it."""
        if self.has_resigned:
            return
        self.has_resigned = True
        if not self.is_loading:
            wanted = self.machine.step(events.Resigned(), self.runtime.now, self.runtime.now_ms)
            self.perform([effect for effect in wanted if type(effect) is effects.Reply])

    def failed(self, failure: Exception) -> None:
        if not self.has_resigned:
            self._host.shard_failed(self, failure)

    def refused(self, left: Iterable[object], error: KafkaError) -> None:
        """Records are larger than a batch of the log may be. The shard goes on without them; who has asked is told
        UNKNOWN_SERVER_ERROR, as in Kafka."""
        log = self.log
        self._broker.logs.error(
            "coordinator", "records-refused", topic=log.topic, partition=log.partition, reason=error
        )
        for effect in left:
            if type(effect) is effects.Reply:
                self.runtime.replies.refuse(effect.token, errors.UNKNOWN_SERVER_ERROR)
            elif isinstance(effect, effects.Compute | effects.Later):
                self.step(effect.refused)
            elif type(effect) in (effects.SetTimer, effects.CancelTimer):
                self.perform([effect])


class CoordinatorHost:
    """The shards of one topic. A key (a group's id) lives in the shard that the Java hash of it names.

    `shard_class(partition, settings, random)` makes a shard; `encode(record)` gives key and value of a record."""

    __slots__ = ("_broker", "_failed", "_runners", "_shard_class", "_topic", "encode", "lines")

    def __init__(self, broker: Broker, topic: str, shard_class: ShardClass, encode: Encode) -> None:
        self._broker = broker
        self._topic = topic
        self._shard_class = shard_class
        self.encode = encode
        self.lines = BoundedLines(broker.logs, "coordinator", broker.runtime.clock)
        """What people are told of groups and transactions."""
        self._runners: dict[int, ShardRunner] = {}
        # Leaderships that ended with a failure. They are tried again only when the log is recovered.
        self._failed: dict[int, tuple[PartitionLog, int]] = {}

    # --- what handlers use -------------------------------------------------------------------------------------------

    def shard_for(self, key: str) -> tuple[Any, int]:
        """The shard of a key and NONE, or None and the error that its clients are told."""
        runner, error = self.runner_for(key)
        return (None if runner is None else runner.machine), error

    def submit(self, key: str, event: object) -> object:
        """Hand an event to the key's shard; the caller has made sure by `shard_for` that there is one."""
        runner, _ = self.runner_for(key)
        assert runner is not None
        return runner.step(event)

    def submit_if_served(self, key: str, event: object) -> tuple[object, int]:
        """`submit` and NONE; or None and the error that clients are told if the key's shard is not served here."""
        runner, error = self.runner_for(key)
        return (None if runner is None else runner.step(event)), error

    def read(self, key: str, token: object) -> None:
        """The answer to `token` tells of the key what may not be committed yet: then it leaves after that."""
        runner, _ = self.runner_for(key)
        if runner is not None:
            runner.hold_until_committed(token)

    def submit_many(
        self, entries: list[tuple[str, Any]], combine: Callable[[list[object]], object], token: object
    ) -> object:
        """Several events of one request: each gets a token of its own, `combine(messages)` makes the answer."""
        composite = self.composite_reply(combine, token)
        for key, event in entries:
            event.token = composite.part()
            self.submit(key, event)
        composite.close()
        return DEFERRED

    def composite_reply(self, combine: Callable[[list[Any]], object], token: Any) -> CompositeReply:
        """Collects the answers to events that are submitted one after another, for the request of `token`."""
        return CompositeReply(combine, token, self._broker.runtime.replies.reply)

    def shards(self) -> list[Any]:
        """All shards that serve, in the order of their partitions."""
        runners = (self._runners[partition] for partition in sorted(self._runners))
        return [runner.machine for runner in runners if not runner.is_loading]

    @property
    def is_loading(self) -> bool:
        """Whether a shard is being loaded."""
        return any(runner.is_loading for runner in self._runners.values())

    def runner_of(self, partition: int) -> ShardRunner | None:
        """The runner of a partition's shard if that serves."""
        runner = self._runners.get(partition)
        return None if runner is None or runner.is_loading else runner

    # --- what the broker uses ----------------------------------------------------------------------------------------

    def follow(self) -> None:
        """Bring the shards in step with who leads: call it when partitions have changed, in any order and any time."""
        broker = self._broker
        topic = broker.image.topics.get(self._topic)
        count = 0 if topic is None else len(topic.partitions)
        for partition in [each for each in self._runners if each >= count]:
            self._resign(partition)
        for partition in range(count):
            log = broker.partitions.get(self._topic, partition)
            runner = self._runners.get(partition)
            if log is None or not log.replica.has_min_isr or log.offline is not None:
                self._resign(partition)
                continue
            if runner is not None and (runner.log is not log or runner.leader_epoch != log.replica.leader_epoch):
                self._resign(partition)
                runner = None
            if runner is None and self._failed.get(partition) != (log, log.replica.leader_epoch):
                self._failed.pop(partition, None)
                shard = self._shard_class(partition, broker.settings, broker.runtime.random)
                runner = self._runners[partition] = ShardRunner(broker, self, shard, log)
                runner.load()

    def _resign(self, partition: int) -> None:
        runner = self._runners.pop(partition, None)
        if runner is not None:
            runner.resign()

    def shard_failed(self, runner: ShardRunner, failure: Exception) -> None:
        """The shard can't be loaded or written: send everybody who waits away. It is refused until its partition is led
        here in another epoch or its log is recovered. It is loaded again at once if only an append has failed that may
        go better, and `RETRY_SECONDS` after a load that may."""
        partition = runner.log.partition
        tell = self._broker.logs.error
        if (runner.log.closed and runner.log.offline is None) or getattr(failure, "code", None) in _GONE:
            # It was moved to another broker, or deleted, as somebody wanted: who waits goes to the next coordinator.
            tell = self._broker.logs.info
        tell("coordinator", "shard-offline", topic=self._topic, partition=partition, reason=failure)
        is_passing = isinstance(failure, StorageFailure) and failure.is_passing
        may_go_better = runner.log.offline is None and (is_passing or not runner.is_loading)
        if self._runners.get(partition) is runner:
            del self._runners[partition]
            if not may_go_better:
                self._failed[partition] = runner.log, runner.leader_epoch
        runner.resign()
        if may_go_better and not runner.log.closed:
            if runner.is_loading:
                self._broker.runtime.call_later(RETRY_SECONDS, self._follow_again)
            else:
                self.follow()

    def _follow_again(self) -> None:
        if self._broker.serving:
            self.follow()

    def log_recovered(self, log: PartitionLog) -> None:
        """A log can be written again: if it is of this topic, its shard is loaded."""
        if log.topic == self._topic:
            self._failed.pop(log.partition, None)
            self.follow()

    def write_markers(self, runner: ShardRunner, effect: effects.WriteMarkers) -> None:
        """Write the markers of a transaction for the shard of `runner`."""
        raise NotImplementedError(f"the shards of {self._topic} have no transactions")

    def resign(self) -> None:
        """The broker stops: everybody who waits is sent to look for the next coordinator."""
        for partition in list(self._runners):
            self._resign(partition)

    def abandon(self) -> None:
        """The broker is gone: nothing reaches the shards any more, and nobody is told."""
        for runner in self._runners.values():
            runner.has_resigned = True
        self._runners.clear()

    def metadata_changed(self, delta: MetadataDelta) -> None:
        """Follow the partitions of the topic; what concerns deleted topics goes."""
        if delta.partitions or delta.topics_deleted or delta.configs:
            self.follow()
        if delta.topics_deleted:
            deleted = events.TopicsDeleted([(topic.name, topic.id) for topic in delta.topics_deleted])
            for runner in list(self._runners.values()):
                runner.tell(deleted)
        if delta.topics_deleted or delta.topics_created or delta.partitions:
            names = [topic.name for topic in (*delta.topics_deleted, *delta.topics_created)]
            names += [topic for topic, _ in delta.partitions]
            changed = events.MetadataChanged(list(dict.fromkeys(names)), bool(delta.topics_created))
            for runner in list(self._runners.values()):
                runner.tell(changed)

    def runner_for(self, key: str) -> tuple[ShardRunner | None, int]:
        """The runner that serves a key and NONE, or None and the error for its clients."""
        topic = self._broker.image.topics.get(self._topic)
        if topic is None:
            return None, errors.NOT_COORDINATOR
        partition = partition_for(key, len(topic.partitions))
        runner = self._runners.get(partition)
        if runner is None:
            log = self._broker.partitions.get(self._topic, partition)
            if log is not None and log.replica.role == LEADER and not log.replica.has_min_isr:
                # Kafka would still read, and refuse what has to be written.
                return None, errors.COORDINATOR_NOT_AVAILABLE
            return None, errors.NOT_COORDINATOR
        if runner.is_loading or key in runner.deleting:
            return None, errors.COORDINATOR_LOAD_IN_PROGRESS
        return runner, errors.NONE


class Groups(CoordinatorHost):
    """The shards of `__consumer_offsets` that this broker leads. The machine is imported when the first partition of
    that topic is led here."""

    __slots__ = ()

    def __init__(self, broker: Broker) -> None:
        super().__init__(broker, GROUP_TOPIC, self._shard, _encode_nothing)

    def _shard(self, partition: int, settings: Settings, random: Random) -> GroupShard:
        from pykafkad.coordinator import record_codec, shard

        self.encode = record_codec.encode
        return shard.GroupShard(partition, settings, random)


def _encode_nothing(record: effects.StoredRecord) -> tuple[bytes | None, bytes | None]:
    raise AssertionError(f"{record}: no partition is led here")
