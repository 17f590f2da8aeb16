"""The directories of `log.dirs`: which of them serve, where partitions go, and what happens when one fails.

Every directory has an id of its own (KIP-858), which the broker registers and the metadata names for each replica. A
directory that fails is given up as a whole: its partitions answer KAFKA_STORAGE_ERROR, the controller is told, and it
comes back with the next start. Without the directory of the metadata log there is no broker."""

from __future__ import annotations

from pykafkad import uuids
from pykafkad.errors import ConfigError, StorageFailure
from pykafkad.log.directory import LogDirectory
from pykafkad.metadata.events import AssignReplicasToDirs, ChangeLogDirs
from pykafkad.metadata.placement import LOST_DIRECTORY, names_directory
from pykafkad.server.runtime import RuntimeNode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pykafkad.config import Settings
    from pykafkad.log.log_files import LogFiles
    from pykafkad.log.partition_log import PartitionLog
    from pykafkad.server.broker import Broker
    from pykafkad.server.runtime import Runtime


_ASSIGN = "assign replicas to directories"
_CORDON = "tell the cordoned directories"
_FAIL = "give up directories"
_ALL = "*"


class Directories(RuntimeNode):
    """All of a process. `paths` are those of `log.dirs`, in their order; `metadata` is the one with the metadata log,
    which need not be among them. Fires its own timer to tell the controller where replicas were put."""

    __slots__ = (
        "_by_id",
        "_failing",
        "_pending",
        "_preferred",
        "_quiet_until",
        "_runtime",
        "_settings",
        "_unused",
        "are_kept",
        "broker",
        "epoch_at_close",
        "failed",
        "failed_logs",
        "logs",
        "metadata",
        "online",
        "paths",
    )

    broker: Broker
    """Who is told of a directory that failed, and whose controller learns where replicas are; set by the broker."""

    metadata: LogDirectory
    """Set by `open`."""

    def __init__(self, runtime: Runtime, settings: Settings, paths: Sequence[str]) -> None:
        self._runtime = runtime
        self.logs = runtime.logs
        self._settings = settings
        self.epoch_at_close = -1
        """The broker epoch that `close` writes into every directory."""
        self.are_kept = True
        """Whether anybody reads them again. If not, `close` writes nothing that the next start would need."""
        self.paths = list(paths)
        self.online: list[LogDirectory] = []
        self.failed: dict[str, StorageFailure] = {}
        self._preferred: dict[tuple[str, int], str] = {}
        self._pending: dict[tuple[bytes, int], bytes] = {}
        self._unused: list[LogDirectory] = []
        self._by_id: dict[bytes, LogDirectory] = {}
        self._failing: list[tuple[LogDirectory, StorageFailure]] = []
        self.failed_logs: list[LogFiles] = []
        """Logs that went out of service and of which nobody may have told the broker yet."""
        self._quiet_until = 0.0

    # -- start and stop ------------------------------------------------------------------------------------------------

    def open(self, metadata_path: str, cluster_id: str | None = None, *, must_be_formatted: bool = False) -> None:
        """Lock and look at all of them. One that cannot be used is put aside; without that of the metadata log, or
        without any other, StorageFailure, and ConfigError for one that belongs to somebody else, or that
        `must_be_formatted` and is not. Without a `cluster_id` new directories begin a cluster of their own."""
        self.metadata = self._open_one(metadata_path)
        self.metadata.check_meta(cluster_id=cluster_id, node_id=self._settings.node_id)
        if must_be_formatted and cluster_id is None and not self.metadata.meta:
            raise ConfigError(
                f"{metadata_path} is not formatted, and the quorum has other members, whose cluster id it needs: use "
                "pykafkad format or kafka-storage.sh format, or set pykafkad.cluster.id"
            )
        if not self.metadata.meta:
            self._write_meta(self.metadata, cluster_id or uuids.to_text(uuids.random_uuid(self._runtime.random)))
        cluster_id = self.metadata.meta["cluster.id"]
        for path in self.paths:
            if path == metadata_path:
                self.online.append(self.metadata)
                continue
            try:
                directory = self._open_one(path)
                directory.check_meta(cluster_id=cluster_id, node_id=self._settings.node_id)
                if not directory.meta:
                    self._write_meta(directory, cluster_id)
            except StorageFailure as failure:
                self.failed[path] = failure.copy()
                self.logs.error("storage", "directory-offline", directory=path, reason=failure)
            else:
                self.online.append(directory)
        if not self.online:
            raise next(iter(self.failed.values()))
        known = [directory.meta.get("directory.id") for directory in self.every()]
        if len(set(known)) != len(known):
            raise ConfigError(
                "log.dirs: two directories have the same directory.id in their meta.properties: "
                f"{', '.join(map(str, known))}"
            )
        self._by_id = {directory_id(directory): directory for directory in self.online}

    def _open_one(self, path: str) -> LogDirectory:
        runtime = self._runtime
        return LogDirectory(
            path, disk=runtime.disk, clock=runtime.clock, random=runtime.random, failed_logs=self.failed_logs
        )

    def _write_meta(self, directory: LogDirectory, cluster_id: str) -> None:
        self._check_is_of_one(directory.path)
        directory_id = uuids.to_text(uuids.random_uuid(self._runtime.random))
        directory.write_meta(cluster_id=cluster_id, node_id=self._settings.node_id, directory_id=directory_id)

    def _check_is_of_one(self, path: str) -> None:
        """Raises ConfigError for a new directory in which several brokers have theirs."""
        from pykafkad.server import cluster_settings

        own = {*self.paths, self.metadata.path}
        others = [
            name
            for name in cluster_settings.folders_of_several(self._runtime.disk, path)
            if f"{path}/{name}" not in own
        ]
        if others:
            raise ConfigError(
                f"log.dirs: {path} holds the data of several brokers ({', '.join(others)}); start them with --brokers, "
                "or give a single broker a directory of its own"
            )

    def close(self) -> None:
        """Close every directory cleanly, as far as it can be."""
        self._close(is_clean=self.are_kept)

    def abandon(self) -> None:
        """Close every directory as a process leaves it that is killed."""
        self._close(is_clean=False)

    def _close(self, *, is_clean: bool) -> None:
        for job in (_ASSIGN, _CORDON, _FAIL):
            self._runtime.timers.cancel((self, job))
        of_metadata: StorageFailure | None = None
        for directory in [*self.every(), *self._unused]:
            try:
                directory.close(clean=is_clean, broker_epoch=self.epoch_at_close)
            except StorageFailure as failure:
                if directory is self.metadata:
                    of_metadata = failure.copy()
                    continue
                self.logs.error("storage", "directory-offline", directory=directory.path, reason=failure)
        if of_metadata is not None:
            raise of_metadata

    @property
    def broker_epoch(self) -> int:
        """What the last clean stop wrote into all of them; -1 when one was not left cleanly."""
        epochs = {directory.broker_epoch for directory in self.every()}
        return epochs.pop() if len(epochs) == 1 else -1

    # -- reading -------------------------------------------------------------------------------------------------------

    def every(self) -> Iterator[LogDirectory]:
        """Those that serve, that of the metadata log included."""
        yield from self.online
        if self.metadata not in self.online:
            yield self.metadata

    def ids(self) -> list[bytes]:
        """The ids of those that serve partitions."""
        return list(self._by_id)

    def at(self, path: str) -> LogDirectory | None:
        """The serving directory with this absolute path."""
        for directory in self.online:
            if directory.absolute_path == path:
                return directory
        return None

    def of(self, log: PartitionLog) -> LogDirectory | None:
        """Where a log lies."""
        for directory in self.every():
            if directory.logs.get((log.topic, log.partition)) is log:
                return directory
        return None

    def is_cordoned(self, path: str) -> bool:
        """Whether `cordoned.log.dirs` keeps new partitions away from the directory."""
        cordoned = self._settings.cordoned_log_dirs
        return path in cordoned or _ALL in cordoned

    def cordoned_ids(self) -> list[bytes]:
        """The ids of those that take no new replicas."""
        return [each for each, directory in self._by_id.items() if self.is_cordoned(directory.path)]

    # -- placing replicas ----------------------------------------------------------------------------------------------

    def prefer(self, topic: str, partition: int, path: str) -> None:
        """The replica is not here yet; when it comes it goes there."""
        if len(self._preferred) < 10_000:
            self._preferred[topic, partition] = path

    def place(
        self, topic: str, partition: int, topic_id: bytes, named: bytes, *, can_copy: bool = False
    ) -> LogDirectory | None:
        """Where a replica of this broker lies or is to be made; `named` is the id that the metadata has for it.

        None when it can only be in a directory that failed or is not configured any more; but one that `can_copy`
        everything from a leader elsewhere begins anew, unless a directory failed, as its disk was replaced. A folder in
        another directory than the named one counts. If there is none, a killed broker was renaming the folders of a
        move: its copy in the named directory becomes the partition.
        """
        wanted = self._by_id.get(named)
        if wanted is not None and len(self.online) == 1:
            return wanted
        holders = [directory for directory in self.online if directory.holds(topic, partition)]
        key = topic, partition
        if wanted is not None and not holders and key in wanted.futures:
            wanted.promote_future(topic, partition)
            holders.append(wanted)
        chosen = wanted if wanted in holders else holders[0] if holders else None
        for other in holders:
            if other is not chosen:
                self.logs.warning(
                    "storage", "second-copy-removed", topic=topic, partition=partition, directory=other.path
                )
                other.remove_copy(topic, partition)
        if chosen is None:
            if wanted is None and names_directory(named) and (self.failed or not can_copy):
                return None
            preferred = self.at(self._preferred.pop(key, ""))
            chosen = preferred or wanted or self._with_fewest()
        if chosen is not wanted:
            self._pending[topic_id, partition] = directory_id(chosen)
            self._runtime.timers.set((self, _ASSIGN), self._runtime.now)
        return chosen

    def _with_fewest(self) -> LogDirectory:
        free = [directory for directory in self.online if not self.is_cordoned(directory.path)]
        return min(free, key=lambda directory: len(directory.logs)) if free else self.online[0]

    def assign(self, replicas: dict[tuple[bytes, int], bytes]) -> None:
        """Have the metadata name the directories of replicas of this broker: (topic id, partition) to directory id."""
        self.broker.controller.submit(AssignReplicasToDirs(self._settings.node_id, replicas))

    def name_again(self, log: PartitionLog, *, is_lost: bool) -> None:
        """Soon the metadata names the directory of a replica; none if the replica is lost, so that another one leads.
        For the metadata directory only: others are told as a whole when they fail."""
        if self.of(log) is self.metadata:
            named = LOST_DIRECTORY if is_lost else directory_id(self.metadata)
            self._pending[log.topic_id, log.partition] = named
            self._runtime.timers.set((self, _ASSIGN), self._runtime.now)

    def settings_changed(self) -> None:
        """`cordoned.log.dirs` may be another: the controller is told soon."""
        self._runtime.timers.set((self, _CORDON), self._runtime.now)

    def fired(self, job: str) -> None:
        """What had to wait for the end of a change of the metadata, or of a write."""
        if job == _ASSIGN:
            pending, self._pending = self._pending, {}
            self.assign(pending)
        elif job == _CORDON:
            self.tell_cordoned()
        else:
            failing, self._failing = self._failing, []
            for directory, failure in failing:
                self._fail(directory, failure)

    def tell_lost(self, before: list[bytes]) -> None:
        """Directories with these ids were registered before this start: what lies in one that is gone has no leader
        here."""
        if not set(before) <= self._by_id.keys():
            self.broker.controller.submit(ChangeLogDirs(self._settings.node_id, self.ids(), None))

    def tell_cordoned(self) -> None:
        """Have the metadata name the directories that take no new replicas."""
        self.broker.controller.submit(ChangeLogDirs(self._settings.node_id, None, self.cordoned_ids()))

    # -- failures ------------------------------------------------------------------------------------------------------

    def report(self, directory: LogDirectory | None, failure: StorageFailure, *, is_in_service: bool = False) -> None:
        """An access to a directory failed: it is given up at the end of what goes on now, unless it holds the metadata
        log.

        There Kafka ends. Here one partition's log goes out of service and the others go on, so that what is there stays
        readable on a full disk. That is told of the log; of one that stays in service only here, once a second. A lack
        of descriptors is no fault of the directory's.
        """
        if (failure.is_passing or is_in_service) and self._runtime.now >= self._quiet_until:
            self._quiet_until = self._runtime.now + 1.0
            self.logs.error("storage", "no-descriptors" if failure.is_passing else "access-failed", reason=failure)
        if not failure.is_passing and directory is not None and directory is not self.metadata:
            self._failing.append((directory, failure))
            self._runtime.timers.set((self, _FAIL), self._runtime.now)

    def _fail(self, directory: LogDirectory, failure: StorageFailure) -> None:
        if directory not in self.online:
            return
        self.online.remove(directory)
        del self._by_id[directory_id(directory)]
        self._unused.append(directory)
        self.failed[directory.path] = failure
        self.logs.error(
            "storage", "directory-offline", directory=directory.path, partitions=len(directory.logs), reason=failure
        )
        self.broker.directory_failed(directory, directory.fail(failure))
        if self.online:
            self.broker.controller.submit(ChangeLogDirs(self._settings.node_id, self.ids(), None))
        else:
            self._runtime.fail("the last directory of log.dirs failed")


def directory_id(directory: LogDirectory) -> bytes:
    """The 16 bytes of a directory's id."""
    return uuids.from_text(directory.meta["directory.id"])
