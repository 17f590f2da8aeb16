"""The group coordinator's place in the shell: one shard for each partition of `__consumer_offsets` that this broker
leads."""

from __future__ import annotations

from pykafkad import effects, errors
from pykafkad.coordinator import events, record_codec
from pykafkad.coordinator.partitioning import partition_for
from pykafkad.coordinator.shard import GroupShard
from pykafkad.errors import KafkaError, ProtocolError, StorageFailure
from pykafkad.handlers.context import DEFERRED
from pykafkad.log.replay import batches
from pykafkad.server.logs import logger
from pykafkad.server.machine_runner import CompositeReply, MachineRunner

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from pykafkad.log.partition_log import PartitionLog
    from pykafkad.server.broker import Broker

log_lines = logger("groups")

TOPIC = "__consumer_offsets"


class ShardRunner(MachineRunner):
    """A shard with its log. The machine's `apply` sees a record right after the local append; answers leave when
    everything that was appended before them is committed."""

    __slots__ = ("_broker", "_groups", "_is_resigning", "_log")

    def __init__(self, broker: Broker, groups: Groups, shard: GroupShard, log: PartitionLog) -> None:
        super().__init__(broker.runtime, shard)
        self._broker = broker
        self._groups = groups
        self._is_resigning = False
        self._log = log

    def load(self) -> None:
        """Replay the whole partition, then let the shard serve."""
        log = self._log
        try:
            self.machine.load(batches(log, log.log_start_offset))
        except (KafkaError, ProtocolError) as error:
            raise StorageFailure("load", f"{log.topic}-{log.partition}", error) from error
        self.step(events.Loaded())

    def append(self, effect: effects.Append) -> None:
        log = self._log
        log.append_records([record_codec.encode(record) for record in effect.records], self.runtime.now_ms)
        self._broker.commits.mark(log)
        self._broker.commits.after(log, log.end_offset, self._committed)
        for record in effect.records:
            self.machine.apply(record)

    def _committed(self, failure: Exception | None) -> None:
        if failure is not None:
            self.failed(failure)

    def reply(self, effect: effects.Reply) -> None:
        if self._is_resigning:
            super().reply(effect)
            return

        def then(failure: Exception | None) -> None:
            if failure is None:
                self.runtime.replies.reply(effect.token, effect.message)
            else:
                # What the machine has done can't be turned into an error: the client must ask again.
                self.runtime.replies.abandon(effect.token, f"its answer depends on a write that failed: {failure}")

        self._broker.commits.after_all(self._log, then)

    def hold_until_committed(self, token: object) -> None:
        """The answer to `token` follows from records that may not be committed yet."""
        connection = self.runtime.replies.connection_of(token)
        if connection is not None:
            self._broker.commits.hold_for(self._log, connection)

    def resign(self) -> None:
        """Send everybody who waits in the shard away."""
        self._is_resigning = True
        self.step(events.Resigned())

    def failed(self, failure: Exception) -> None:
        log_lines.error("shard-offline", partition=self._log.partition, reason=failure)
        self._groups.drop(self._log.partition)


class Groups:
    """Routes events to shards. A group lives in the shard that the Java hash of its id names."""

    __slots__ = ("_broker", "_hosts", "_offline")

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._hosts: dict[int, ShardRunner] = {}
        self._offline: set[int] = set()

    # --- what handlers use ----------------------------------------------------------------------------------------

    def shard_for(self, group_id: str) -> tuple[GroupShard | None, int]:
        """The shard of a group and NONE, or None and the error that its clients are told."""
        host, error = self._host(group_id)
        return (None if host is None else host.machine), error

    def submit(self, group_id: str, event: object) -> object:
        """Hand an event to the group's shard; the caller has made sure by `shard_for` that there is one."""
        return self._host(group_id)[0].step(event)

    def read(self, group_id: str, token: object) -> None:
        """The answer to `token` tells of the group what may not be committed yet: then it leaves after that."""
        host = self._host(group_id)[0]
        if host is not None:
            host.hold_until_committed(token)

    def submit_many(
        self, entries: list[tuple[str, object]], combine: Callable[[list[object]], object], token: object
    ) -> object:
        """Several events of one request: each gets a token of its own, `combine(messages)` makes the answer."""
        if not entries:
            self._broker.runtime.replies.reply(token, combine([]))
            return DEFERRED
        composite = CompositeReply(len(entries), combine, token, self._broker.runtime.replies.reply)
        for index, (group_id, event) in enumerate(entries):
            event.token = composite.part(index)
            self._host(group_id)[0].step(event)
        return DEFERRED

    def shards(self) -> list[GroupShard]:
        """All shards that serve, in the order of their partitions."""
        return [self._hosts[partition].machine for partition in sorted(self._hosts)]

    # --- what the broker uses ---------------------------------------------------------------------------------------

    def take_over(self) -> None:
        """Load the shards of partitions of `__consumer_offsets` that are here and not yet served."""
        broker = self._broker
        topic = broker.image.topics.get(TOPIC)
        if topic is None:
            return
        for partition in range(len(topic.partitions)):
            if partition in self._hosts or partition in self._offline:
                continue
            log = broker.partitions.get(TOPIC, partition)
            if log is None:
                continue
            shard = GroupShard(partition, broker.settings, broker.runtime.random)
            host = ShardRunner(broker, self, shard, log)
            self._hosts[partition] = host
            try:
                host.load()
            except StorageFailure as failure:
                host.failed(failure)

    def drop(self, partition: int) -> None:
        """The partition can't be written or read: send everybody who waits away, and refuse from now on."""
        host = self._hosts.pop(partition, None)
        if host is not None:
            self._offline.add(partition)
            host.resign()

    def resign(self) -> None:
        """The broker stops: everybody who waits is sent to look for the next coordinator."""
        for partition in list(self._hosts):
            self.drop(partition)

    def topics_deleted(self, topics: list[tuple[str, bytes]]) -> None:
        """Committed offsets of deleted topics go."""
        if any(name == TOPIC for name, _ in topics):
            for partition in list(self._hosts):
                self.drop(partition)
            self._offline.clear()
        for host in list(self._hosts.values()):
            host.step(events.TopicsDeleted(topics))

    def _host(self, group_id: str) -> tuple[ShardRunner | None, int]:
        topic = self._broker.image.topics.get(TOPIC)
        if topic is None:
            return None, errors.NOT_COORDINATOR
        host = self._hosts.get(partition_for(group_id, len(topic.partitions)))
        return (host, errors.NONE) if host is not None else (None, errors.NOT_COORDINATOR)
