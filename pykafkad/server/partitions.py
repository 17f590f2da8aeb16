"""The logs that this broker holds, by topic and partition, kept in step with the metadata image."""

from __future__ import annotations

from pykafkad import config, errors
from pykafkad.errors import KafkaError, StorageFailure
from pykafkad.log import snapshot_store
from pykafkad.log.partition_log import PartitionLog, UnopenedLog
from pykafkad.log.replica import LEADER, Replica
from pykafkad.metadata import record_codec
from pykafkad.metadata.topics import NO_LEADER
from pykafkad.server import pending_partitions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    from pykafkad.config import Settings, TopicSettings
    from pykafkad.log.snapshot_store import PreparedRewind
    from pykafkad.metadata.image import Image, MetadataDelta
    from pykafkad.metadata.topics import PartitionState, Topic
    from pykafkad.server.commits import Commits
    from pykafkad.server.directories import Directories
    from pykafkad.server.log_writer import LogWriter


_TOPIC_CONFIG = 2


class Partitions:
    """`get` and `get_by_id` answer None for a partition that is not here. `plan` and `now` are those of
    `PendingPartitions`. `commits` hears what a change of the metadata commits, and what can no longer be committed."""

    __slots__ = (
        "_by_id",
        "_by_name",
        "_commits",
        "_held",
        "_image",
        "_loading",
        "_log_writer",
        "_node_id",
        "_now",
        "_settings",
        "_without_leader",
        "changes",
        "directories",
        "not_led_here",
        "pending",
        "roles",
    )

    def __init__(
        self,
        directories: Directories,
        node_id: int,
        settings: Settings,
        plan: Callable[[object], None],
        now: Callable[[], float],
        commits: Commits,
        log_writer: LogWriter,
    ) -> None:
        self.directories = directories
        self.pending = pending_partitions.PendingPartitions(plan, now, self._open_waiting)
        self.roles = pending_partitions.PendingPartitions(
            plan, now, self._adopt_waiting, pending_partitions.ROLES_PER_TURN
        )
        """Partitions with a log that have not adopted the newest state of the metadata yet."""
        self.not_led_here: dict[PartitionLog, int] = {}
        """Logs of partitions that another broker leads, or nobody, with the leader epoch: they are not written."""
        self.changes = 0
        """How often the metadata of partitions or brokers has changed."""
        self._image: Image | None = None
        self._loading = True
        self._node_id = node_id
        self._now = now
        self._commits = commits
        self._log_writer = log_writer
        self._settings = settings
        self._by_name: dict[tuple[str, int], PartitionLog] = {}
        self._by_id: dict[tuple[bytes, int], PartitionLog] = {}
        # Logs that take no other role now, and the last state of the metadata that waits for them.
        self._held: dict[PartitionLog, PartitionState | None] = {}
        # Out of service, with nothing on any disk here, until there is a leader elsewhere to copy from.
        self._without_leader: set[PartitionLog] = set()

    def __len__(self) -> int:
        return len(self._by_name)

    def __iter__(self) -> Iterator[PartitionLog]:
        return iter(self._by_name.values())

    def get(self, topic: str, partition: int) -> PartitionLog | None:
        log = self._by_name.get((topic, partition))
        if log is None:
            if self.pending.take(topic, partition):
                log = self._open_waiting(topic, partition)
        elif self.roles.waiting and self.roles.take(topic, partition):
            # Nobody sees what the metadata says no longer.
            self._adopt_waiting(topic, partition)
        return log

    def get_by_id(self, topic_id: bytes, partition: int) -> PartitionLog | None:
        log = self._by_id.get((topic_id, partition))
        if (log is None and self.pending) or self.roles.waiting:
            assert self._image is not None
            topic = self._image.topic_by_id(topic_id)
            log = None if topic is None else self.get(topic.name, partition)
        return log

    def apply(self, delta: MetadataDelta, image: Image, *, loading: bool) -> list[PartitionLog]:
        """Create, delete and reconfigure logs as the metadata changed; the logs that went are returned.

        `loading`: the broker starts, every log is opened now, and a StorageFailure is raised. Later, those beyond the
        first few are made when somebody asks for them, or in a later turn; what cannot be made is offline. So is it
        with new states of partitions that have a log: what waits adopts the newest one."""
        gone: list[PartitionLog] = []
        self.changes += 1
        if loading and self._image is None:
            self._put_strays_aside(image)
        self._image, self._loading = image, loading
        at_once = len(delta.partitions) if loading else pending_partitions.AT_ONCE
        for deleted in delta.topics_deleted:
            gone += self._delete_topic(deleted, pending_partitions.AT_ONCE - len(gone))
        waiting, roles = self.pending, self.roles
        roles_at_once = len(delta.partitions) if loading else pending_partitions.ROLES_AT_ONCE
        for (topic, index), state in delta.partitions.items():
            if topic not in image.topics:
                continue
            if self._node_id not in state.replicas:
                # A reassignment has moved it to other brokers.
                if not loading:
                    gone += self._delete(
                        topic, index, image.topics[topic].id, later=len(gone) >= pending_partitions.AT_ONCE
                    )
                continue
            if (topic, index) in self._by_name:
                if roles_at_once:
                    roles_at_once -= 1
                    roles.take(topic, index)
                    self._take(image, topic, index, state)
                else:
                    roles.add(topic, index)
            elif at_once and not waiting:
                at_once -= 1
                self._take(image, topic, index, state)
            else:
                waiting.add(topic, index)
        for kind, name in delta.configs:
            if kind == _TOPIC_CONFIG and name in image.topics:
                self.reconfigure(image, name)
        if loading:
            self._correct_checkpoints()
            # Those that could not be recovered were told of.
            self.directories.failed_logs.clear()
        return gone

    def _correct_checkpoints(self) -> None:
        directories = self.directories
        for directory in list(directories.every()):
            try:
                directory.offsets.correct()
            except StorageFailure as failure:
                if directory is directories.metadata:
                    raise
                directories.logs.error("storage", "checkpoint-failed", directory=directory.path, reason=failure)
                # Whatever failed, nothing may be appended there, so a failure that passes does not count as one.
                directories.report(directory, failure.copy())

    def not_led_among(self, places: Iterable[tuple[str, int]]) -> list[PartitionLog]:
        """The logs of these partitions, given by topic and index, that another broker leads, or nobody."""
        logs = (self._by_name.get(place) for place in places)
        return [log for log in logs if log is not None and log in self.not_led_here]

    def finish_pending(self) -> None:
        """Bring all partitions in step with the metadata."""
        self.pending.finish()
        self.roles.finish()

    @property
    def postponed(self) -> int:
        """How often a partition was put off to a later turn."""
        return self.pending.asked + self.roles.asked

    def after_pending(self, answer: Callable[[], object]) -> None:
        """Call `answer` when all partitions that wait now are in step with the metadata."""
        self.pending.after(lambda: self.roles.after(answer))

    def _put_strays_aside(self, image: Image) -> None:
        """Folders that the metadata knows nothing of, as of topics that were deleted while their directory was out of
        service."""
        known = {
            (topic.name, state.index): topic.id
            for topic in image.topics.values()
            for state in topic.partitions
            if self._node_id in state.replicas
        }
        known[record_codec.LOG] = record_codec.TOPIC_ID
        for directory in list(self.directories.every()):
            try:
                for path in directory.put_strays_aside(known):
                    self.directories.logs.warning("storage", "stray-put-aside", folder=path)
            except StorageFailure as failure:
                self.directories.logs.error("storage", "stray-left", directory=directory.path, reason=failure)

    def reconfigure(self, image: Image, topic: str) -> None:
        """Give the logs of a topic its current settings."""
        settings = config.topic_settings(self._settings, image.configs(_TOPIC_CONFIG, topic))
        for index in range(len(image.topics[topic].partitions)):
            log = self._by_name.get((topic, index))
            if log is not None:
                log.update_settings(settings)
                log.replica.settings_changed(min_insync_replicas=settings.min_insync_replicas)
                if log.replica.role == LEADER:
                    self._lead(log)

    def reconfigure_all(self, image: Image) -> None:
        """The broker's defaults changed: every topic may see it."""
        for topic in image.topics:
            self.reconfigure(image, topic)

    def prepare_rewind(self, topic: Topic, name: str) -> list[PreparedRewind]:
        """Make everything ready to give every partition of a topic the content that it has in the snapshot `name`.

        What can fail fails here, before anything is changed. Raises StorageFailure."""
        prepared: list[PreparedRewind] = []
        self.finish_pending()
        try:
            for index in range(len(topic.partitions)):
                log = self._by_name.get((topic.name, index))
                if log is None:
                    raise StorageFailure("rewind", f"{topic.name}-{index}", "it is another broker's")
                directory = self.directories.of(log)
                if directory is None or log.offline is not None:
                    raise StorageFailure("rewind", log.directory, f"the partition is out of service: {log.offline}")
                others = (each for each in self.directories.every() if each is not directory)
                if any(snapshot_store.has_partition(each.disk, each.path, name, topic.name, index) for each in others):
                    raise StorageFailure(
                        "rewind",
                        log.directory,
                        "the partition was moved to another directory since; go back with everything",
                    )
                prepared.append(directory.prepare_rewind(name, log))
        except StorageFailure:
            discard_rewind(prepared)
            raise
        return prepared

    def finish_rewind(self, topic: Topic, prepared: list[PreparedRewind]) -> list[PartitionLog]:
        """Give every partition what was prepared; the logs that went are returned.

        Raises StorageFailure, and changes nothing, if one of them is not what it was or out of service."""
        for each in prepared:
            log: PartitionLog = each.log
            if self.get_by_id(topic.id, log.partition) is not log or self.directories.of(log) is not each.directory:
                raise StorageFailure("rewind", log.directory, "the partition was deleted or moved meanwhile")
            if log.offline is not None:
                raise StorageFailure("rewind", log.directory, f"the partition is out of service: {log.offline}")
        for each in prepared:
            log, new = each.log, each.directory.finish_rewind(each)
            state = topic.partitions[log.partition]
            self._by_name[topic.name, log.partition] = self._by_id[topic.id, log.partition] = new
            new.replica = self._replica(new)
            self.changes += 1
            new.writer = self._log_writer
            if log in self.not_led_here:
                del self.not_led_here[log]
            if new.offline is None:
                self._adopt(new, state)
        return [each.log for each in prepared]

    def _open_waiting(self, topic: str, index: int) -> PartitionLog:
        image = self._image
        assert image is not None
        self._take(image, topic, index, image.topics[topic].partitions[index])
        return self._by_name[topic, index]

    def _adopt_waiting(self, topic: str, index: int) -> None:
        image = self._image
        assert image is not None
        self._take(image, topic, index, image.topics[topic].partitions[index])
        log = self._by_name[topic, index]
        if log in self.not_led_here:
            self._commits.broker.purgatory.touch(log)

    def _take(self, image: Image, topic: str, index: int, state: PartitionState) -> None:
        log = self._by_name.get((topic, index))
        topic_id = image.topics[topic].id
        if log is not None and log in self._without_leader and self._can_copy(state):
            # Its disk was replaced, and whoever has everything leads again.
            self._drop(log)
            log = None
        if log is None:
            settings = config.topic_settings(self._settings, image.configs(_TOPIC_CONFIG, topic))
            log = self._open(topic, index, topic_id, settings, state)
            if log.offline is not None:
                self.directories.logs.error(
                    "storage", "partition-offline", topic=topic, partition=index, reason=log.offline
                )
            self._place(log)
        self._adopt(log, state)

    def _place(self, log: PartitionLog) -> None:
        """The log is that of its partition from now on."""
        log.replica = self._replica(log)
        log.writer = self._log_writer
        self._by_name[log.topic, log.partition] = log
        self._by_id[log.topic_id, log.partition] = log
        if log.offline is not None and log.offline.lacks_space:
            self._commits.broker.full_disk.add(log)

    def make_again(self, log: PartitionLog) -> PartitionLog | None:
        """Make a partition that could not be made, and for which `log` stands; None if the partition is gone, or if the
        new log is out of service for another reason. Raises StorageFailure, and nothing has changed."""
        image = self._image
        assert image is not None
        topic = image.topic_by_id(log.topic_id)
        if topic is None or self._by_name.get((log.topic, log.partition)) is not log:
            return None
        state = topic.partitions[log.partition]
        settings = config.topic_settings(self._settings, image.configs(_TOPIC_CONFIG, log.topic))
        made = self._make(log.topic, log.partition, log.topic_id, settings, state)
        if made is None:
            return None
        self._drop(log)
        self._place(made)
        self.changes += 1
        self._adopt(made, state)
        return made if made.offline is None else None

    def _drop(self, log: PartitionLog) -> None:
        """Another log takes the place of one that stands for nothing on any disk."""
        self._without_leader.discard(log)
        self.not_led_here.pop(log, None)
        self._commits.broker.replica_gone(log)

    def _can_copy(self, state: PartitionState) -> bool:
        return state.leader not in (self._node_id, NO_LEADER)

    def _replica(self, log: PartitionLog) -> Replica:
        return Replica(
            self._node_id,
            self._alive_epoch,
            lag_seconds=self._settings.replica_lag_time_max_ms / 1000,
            min_insync_replicas=log.settings.min_insync_replicas,
        )

    def _alive_epoch(self, broker_id: int) -> int | None:
        assert self._image is not None
        broker = self._image.brokers.get(broker_id)
        return broker.epoch if broker is not None and broker.active else None

    def _adopt(self, log: PartitionLog, state: PartitionState) -> None:
        """The log takes the role that the metadata gives to this broker."""
        if log in self._held:
            self._held[log] = state
            return
        replica = log.replica
        was_leader = replica.role == LEADER
        if len(state.replicas) > 1 and log.is_loaded:
            if was_leader and state.leader_epoch == replica.leader_epoch:
                self._commits.tell_end(log)
            else:
                replica.opened(log.written_end_offset, log.high_watermark)
        effects = replica.image_changed(state, self._now())
        if replica.role == LEADER:
            self.not_led_here.pop(log, None)
            self._lead(log)
            self._commits.perform(log, effects)
        else:
            self.not_led_here[log] = state.leader_epoch
            log.follow()
            if was_leader:
                self._commits.fail(log, KafkaError(errors.NOT_LEADER_OR_FOLLOWER))
        self._commits.broker.role_changed(log, state)

    def hold(self, log: PartitionLog) -> None:
        """Whatever the metadata says from now on, the log keeps its role. It is not cleaned, and ends no move."""
        self._held[log] = None

    @property
    def held(self) -> Collection[PartitionLog]:
        """The logs between `hold` and `release`."""
        return self._held.keys()

    def release(self, log: PartitionLog) -> bool:
        """The log takes the role that it has been given meanwhile; whether there was one."""
        state = self._held.pop(log, None)
        self.changes += 1
        if state is None or log.closed or self._by_name.get((log.topic, log.partition)) is not log:
            return False
        self._adopt(log, state)
        return True

    def _lead(self, log: PartitionLog) -> None:
        if not log.replica.has_min_isr:
            # Nothing is committed until replicas come back; Kafka lets the waiting requests run into their time-outs.
            self._commits.fail(log, KafkaError(errors.NOT_ENOUGH_REPLICAS_AFTER_APPEND))
        alone = log.replica.commits_alone and not self._commits.is_waiting(log)
        try:
            log.lead(log.replica.leader_epoch, sole_replica=alone)
        except StorageFailure as failure:
            self.directories.logs.error(
                "storage", "partition-offline", topic=log.topic, partition=log.partition, reason=failure
            )

    def _open(
        self, topic: str, index: int, topic_id: bytes, settings: TopicSettings, state: PartitionState
    ) -> PartitionLog:
        directories, may_pass = self.directories, False
        try:
            made = self._make(topic, index, topic_id, settings, state)
            if made is not None:
                return made
            # In a directory that failed: known, and out of service until a start finds the directory again.
            failures = list(directories.failed.values())
            failure = (
                failures[0]
                if failures
                else StorageFailure("find", f"{topic}-{index}", "its directory is not in log.dirs any more")
            )
        except StorageFailure as error:
            if self._loading:
                raise
            failure, failures = error.copy(), [error]
            may_pass = error.is_passing or error.lacks_space
        log = UnopenedLog(topic, index, topic_id, settings, failure.path, directories.metadata.services)
        log.offline = failure
        log.close()
        if not failures:
            self._without_leader.add(log)
        if may_pass:
            self._commits.broker.unmade_partitions.add(log)
        return log

    def _make(
        self, topic: str, index: int, topic_id: bytes, settings: TopicSettings, state: PartitionState
    ) -> PartitionLog | None:
        """The log of a partition, in a new folder or in the one that it has; None if that can only be in a directory
        that failed or is not configured any more. Raises StorageFailure."""
        directories = self.directories
        named = dict(zip(state.replicas, state.directories, strict=False)).get(self._node_id, b"")
        directory = directories.place(topic, index, topic_id, named, can_copy=self._can_copy(state))
        if directory is None:
            return None
        try:
            return directory.open_partition(topic, index, topic_id, settings, is_created=not self._loading)
        except StorageFailure as error:
            if not self._loading:
                directories.report(directory, error if error.is_passing else error.copy())
            raise

    def _delete_topic(self, topic: Topic, at_once: int) -> list[PartitionLog]:
        """The logs that went; the folders of all but the first few get their new names in later turns."""
        gone: list[PartitionLog] = []
        for index in range(len(topic.partitions)):
            gone += self._delete(topic.name, index, topic.id, later=len(gone) >= at_once)
        return gone

    def _delete(self, topic: str, index: int, topic_id: bytes, *, later: bool) -> list[PartitionLog]:
        """The log that went, if there was one; with `later` its folder gets its new name in a later turn."""
        self.pending.take(topic, index)
        self.roles.take(topic, index)
        log = self._by_id.pop((topic_id, index), None)
        if log is None:
            return []
        self.not_led_here.pop(log, None)
        self._without_leader.discard(log)
        if self._by_name.get((topic, index)) is log:
            del self._by_name[(topic, index)]
        self._commits.broker.replica_gone(log)
        try:
            directory = self.directories.of(log)
            if directory is not None:
                directory.delete_partition(topic, index, later=later)
        except StorageFailure as failure:
            self.directories.logs.error("storage", "delete-failed", topic=topic, partition=index, reason=failure)
        # Whoever waits for its followers is told, as by Kafka, and not left to run into a time-out.
        is_moved = self._image is not None and self._image.topic_by_id(topic_id) is not None
        code = errors.NOT_LEADER_OR_FOLLOWER if is_moved else errors.UNKNOWN_TOPIC_OR_PARTITION
        self._commits.fail(log, KafkaError(code))
        return [log]


def discard_rewind(prepared: list[PreparedRewind]) -> None:
    """Give up what `prepare_rewind` has made. What cannot be removed is removed at the next start."""
    for each in prepared:
        try:
            each.directory.discard_rewind(each)
        except StorageFailure:
            pass
