"""One entry of `log.dirs`: its lock, its owner, its partitions, and the files that survive a restart.

The files have Kafka's names: `.lock`, `meta.properties`, `.kafka_cleanshutdown`, the three offset checkpoints, and one
folder per partition, `<topic>-<partition>`. The folder of a deleted partition is renamed to `….<32 hex>-delete` and
removed after `file.delete.delay.ms`.
"""

from __future__ import annotations

import posixpath

from pykafkad import uuids
from pykafkad.errors import ConfigError, StorageFailure
from pykafkad.log import checkpoints, retention, snapshot_store
from pykafkad.log.file_names import (
    DELETE_SUFFIX,
    FUTURE_SUFFIX,
    MAX_NAME_LENGTH,
    NOT_SERVED_SUFFIXES,
    STRAY_SUFFIX,
    parse_partition_name,
)
from pykafkad.log.log_services import LogServices
from pykafkad.log.offset_checkpoints import CheckpointJob, OffsetCheckpoints
from pykafkad.log.partition_log import PartitionLog, UnopenedLog
from pykafkad.log.recovery import NOTHING_KNOWN, Checkpointed
from pykafkad.log.segment import NEVER_MS
from pykafkad.log.syncing import SyncJob

TYPE_CHECKING = False
if TYPE_CHECKING:
    from random import Random

    from pykafkad.clock import Clock
    from pykafkad.disk import Disk
    from pykafkad.log.log_config import LogConfig
    from pykafkad.log.log_files import LogFiles

# At a stop up to this many logs are synced one by one. For more logs the whole file system is synced in one call.
MAX_SINGLE_SYNCS = 16


class LogDirectory:
    """See the module.

    `clean` says whether the last broker that used the directory stopped cleanly; `broker_epoch` is the epoch that it
    wrote then, else -1. `meta` is the content of `meta.properties`, empty in a new directory. `futures` maps a
    partition to the folder of an unfinished move into this directory. `failure` is the failure that took the directory
    out of service, else None.

    The constructor takes the lock and reads the small files; it opens no partition. It raises `StartFailure` when
    another broker holds the lock."""

    __slots__ = (
        "_leaving",
        "_lock",
        "_on_disk",
        "broker_epoch",
        "clean",
        "clock",
        "disk",
        "failure",
        "futures",
        "logs",
        "meta",
        "offsets",
        "path",
        "services",
    )

    def __init__(self, path: str, *, disk: Disk, clock: Clock, random: Random, failed_logs: list[LogFiles]) -> None:
        self.path = path
        self.disk = disk
        self.clock = clock
        if not disk.exists(path):
            disk.make_directories(path)
            disk.sync_directory(posixpath.dirname(path) or ".")
        self._lock = disk.lock(f"{path}/{checkpoints.LOCK_FILE}")
        self.services = LogServices(disk, clock, random, [], [], failed_logs)
        self.logs: dict[tuple[str, int], PartitionLog] = {}
        self.meta = checkpoints.decode_properties(disk.read(f"{path}/{checkpoints.META_PROPERTIES_FILE}") or b"")
        self.offsets = OffsetCheckpoints(disk, path)
        self._take_clean_marker()
        self._on_disk: set[tuple[str, int]] = set()
        # Deleted partitions whose folders are not renamed yet, with the delay in ms after which the folder is removed.
        self._leaving: dict[tuple[str, int], int] = {}
        self.futures: dict[tuple[str, int], str] = {}
        self.failure: StorageFailure | None = None
        self._find_partitions()
        self.offsets.forget_all_but(self._on_disk)

    def __repr__(self) -> str:
        return f"LogDirectory({self.path})"

    @property
    def absolute_path(self) -> str:
        """The path that DescribeLogDirs reports."""
        return self.disk.absolute_path(self.path)

    # -- opening -------------------------------------------------------------------------------------------------------

    def _take_clean_marker(self) -> None:
        # The marker is removed at once: a broker that is killed from here on has not stopped cleanly.
        path = f"{self.path}/{checkpoints.CLEAN_SHUTDOWN_FILE}"
        marker = self.disk.read(path)
        self.clean = marker is not None
        self.broker_epoch = checkpoints.decode_clean_shutdown(marker)
        if self.clean:
            self.disk.unlink(path)
            # A power loss must not bring it back under what is written from here on.
            self.disk.sync_directory(self.path)

    def _find_partitions(self) -> None:
        now_ms = self.clock.now_ms()
        names = self.disk.listdir(self.path)
        for name in names:
            if name.endswith(DELETE_SUFFIX):
                self.services.scheduled_deletions.append((now_ms, f"{self.path}/{name}", True))
            elif name.endswith(FUTURE_SUFFIX):
                key = parse_partition_name(name.removesuffix(FUTURE_SUFFIX).rpartition(".")[0])
                if key is not None and self.disk.is_directory(f"{self.path}/{name}"):
                    self.futures[key] = name
            elif not name.endswith(NOT_SERVED_SUFFIXES):
                key = parse_partition_name(name)
                if key is not None and self.disk.is_directory(f"{self.path}/{name}"):
                    self._on_disk.add(key)
        self.offsets.take_fresh(names, self._on_disk, is_clean=self.clean)
        if self._on_disk and not self.clean:
            # The broker that made the folders may have been killed before it synced their names.
            self.disk.sync_directory(self.path)

    def write_meta(self, *, cluster_id: str, node_id: int, directory_id: str) -> None:
        """Write `meta.properties`, version 1: the directory belongs to this broker from now on."""
        self.meta = {"version": "1", "cluster.id": cluster_id, "node.id": str(node_id), "directory.id": directory_id}
        self.disk.replace(f"{self.path}/{checkpoints.META_PROPERTIES_FILE}", checkpoints.encode_properties(self.meta))

    def check_meta(self, *, cluster_id: str | None, node_id: int) -> None:
        """Raise `ConfigError` if the directory belongs to another broker or cluster, or if its owner is unknown."""
        path = f"{self.path}/{checkpoints.META_PROPERTIES_FILE}"
        if not self.meta and not self._on_disk and not self.disk.size(path):
            return
        lacking = [name for name in ("cluster.id", "node.id", "directory.id") if not self.meta.get(name)]
        try:
            uuids.from_text(self.meta.get("directory.id", ""))
        except ValueError:
            lacking = sorted({*lacking, "directory.id"})
        if lacking and not (lacking == ["node.id"] and "broker.id" in self.meta):
            state = (
                "is missing, and partitions are there"
                if not self.disk.exists(path)
                else f"is damaged: it lacks {', '.join(lacking)}"
            )
            raise ConfigError(f"log.dirs: {path} {state}; bring it back, or the directory cannot be served")
        if self.meta.get("node.id", self.meta.get("broker.id")) != str(node_id):
            raise ConfigError(
                f"log.dirs: {self.path} belongs to node.id {self.meta.get('node.id')}, this broker is {node_id}"
            )
        if cluster_id is not None and self.meta.get("cluster.id") != cluster_id:
            raise ConfigError(
                f"log.dirs: {self.path} belongs to the cluster {self.meta.get('cluster.id')}, not to {cluster_id}"
            )

    def _metadata_path(self, topic: str, partition: int) -> str:
        return f"{self.path}/{topic}-{partition}/{checkpoints.PARTITION_METADATA_FILE}"

    def open_partition(
        self, topic: str, partition: int, topic_id: bytes, settings: LogConfig, *, is_created: bool = False
    ) -> PartitionLog:
        """The log of a partition, whose folder is made if it is missing. `is_created` says that the partition is new.

        After a clean stop nothing is read before the first use of the log. After an unclean stop the log is recovered
        here, before the broker says that it is ready, and then closed until its first use. A log that cannot be
        recovered is returned with `offline` set."""
        key = topic, partition
        log = self.logs.get(key)
        if log is not None:
            return log
        known = NOTHING_KNOWN
        self._rename_deleted_folder(key)
        if is_created and key in self._on_disk:
            self._rename_stray(key, topic_id)
        if key in self._on_disk:
            known = Checkpointed(self.clean, *self.offsets.of(key))
        else:
            self.offsets.begin_anew(key)
            self.disk.make_directories(f"{self.path}/{topic}-{partition}")
            self.disk.write(self._metadata_path(topic, partition), checkpoints.encode_partition_metadata(topic_id))
        log = UnopenedLog(
            topic, partition, topic_id, settings, f"{self.path}/{topic}-{partition}", self.services, known
        )
        log.is_new = key not in self._on_disk
        if key in self._on_disk and not self.clean:
            self._recover(log)
        self._on_disk.add(key)
        self.logs[key] = log
        return log

    def _rename_stray(self, key: tuple[str, int], topic_id: bytes) -> None:
        """Rename the folder of a deleted topic of the same name, left by a kill in the middle of the deletion."""
        stored_id = checkpoints.decode_partition_metadata(self.disk.read(self._metadata_path(*key)))
        if stored_id is not None and stored_id != topic_id:
            self._rename_for_removal(key, STRAY_SUFFIX)

    def put_strays_aside(self, known: dict[tuple[str, int], bytes]) -> list[str]:
        """At a start, rename the folders of partitions that the cluster does not know; returns their new paths.

        `known` maps (topic, partition) to the topic's id. The renamed folders are never removed, as in Kafka. After a
        clean stop the topic ids are not compared, because they cannot have changed. Raises StorageFailure.
        """
        strays = []
        for key in sorted(self._on_disk - self.logs.keys()):
            stored_id = None
            if key in known and not self.clean:
                stored_id = checkpoints.decode_partition_metadata(self.disk.read(self._metadata_path(*key)))
            if key not in known or stored_id not in (None, known[key]):
                strays.append(self._rename_for_removal(key, STRAY_SUFFIX))
        return strays

    def _recover(self, log: PartitionLog) -> None:
        try:
            if log.count_segment_files():
                log.load()
                self.offsets.recovered((log.topic, log.partition), log)
                log.unload()
            else:
                self.offsets.recovered((log.topic, log.partition), None)
        except StorageFailure as failure:
            # Requests for this partition get an error; the other partitions are served.
            log.offline = log.offline or failure.copy()

    def checkpointed(self, key: tuple[str, int]) -> tuple[int, int, int]:
        """(recovery point, log start offset, high watermark) of a partition, from the checkpoints."""
        return self.offsets.of(key)

    def holds(self, topic: str, partition: int) -> bool:
        """Whether the partition's folder is here."""
        return (topic, partition) in self._on_disk and (topic, partition) not in self._leaving

    # -- moves between directories -------------------------------------------------------------------------------------

    def release(self, log: PartitionLog) -> str:
        """Remove a log that has moved to another directory; returns the path of its old folder, renamed for removal."""
        key = log.topic, log.partition
        self.logs.pop(key, None)
        return self._rename_for_removal(key)

    def adopt(self, log: PartitionLog, name: str) -> None:
        """Take over a log that has moved here: the folder `name` becomes the partition's folder. The new name is not
        synced."""
        key = log.topic, log.partition
        self._rename_deleted_folder(key)
        self.offsets.begin_anew(key, log.log_start_offset)
        self.disk.rename(f"{self.path}/{name}", f"{self.path}/{log.topic}-{log.partition}")
        self._on_disk.add(key)
        self.logs[key] = log

    def promote_future(self, topic: str, partition: int) -> None:
        """Finish a move that was complete when the broker was killed: the copy becomes the partition."""
        key = topic, partition
        self.offsets.begin_anew(key)
        self.disk.rename(f"{self.path}/{self.futures.pop(key)}", f"{self.path}/{topic}-{partition}")
        self.disk.sync_directory(self.path)
        self._on_disk.add(key)

    def remove_copy(self, topic: str, partition: int) -> None:
        """Remove the folder of a partition that is served from another directory."""
        self.delete_directory_later(self._rename_for_removal((topic, partition)), 0)

    def discard_future(self, name: str) -> None:
        """Remove the folder of a move that is given up."""
        target = self._removal_name(name)
        self.disk.rename(f"{self.path}/{name}", target)
        self.delete_directory_later(target, 0)

    def delete_directory_later(self, path: str, delay_ms: int) -> None:
        """Schedule the removal of a renamed folder after a delay."""
        self.services.scheduled_deletions.append((self.clock.now_ms() + delay_ms, path, True))

    def _removal_name(self, name: str, suffix: str = DELETE_SUFFIX) -> str:
        suffix = f".{self.services.random.getrandbits(128):032x}{suffix}"
        return f"{self.path}/{name[: MAX_NAME_LENGTH - len(suffix)]}{suffix}"

    def _rename_for_removal(self, key: tuple[str, int], suffix: str = DELETE_SUFFIX) -> str:
        name = f"{key[0]}-{key[1]}"
        target = self._removal_name(name, suffix)
        # The rename comes first: if it fails, the partition must stay in `_on_disk`, or a new topic of the same name
        # would start with the old records.
        self.disk.rename(f"{self.path}/{name}", target)
        self._on_disk.discard(key)
        self.offsets.forget(key)
        return target

    def fail(self, failure: StorageFailure) -> list[PartitionLog]:
        """Take the directory out of service, as Kafka does after one failed access; returns its logs, now closed."""
        self.failure = failure.copy()
        for log in self.logs.values():
            log.offline = log.offline or self.failure
            log.close()
        return list(self.logs.values())

    def prepare_rewind(self, name: str, log: PartitionLog) -> snapshot_store.PreparedRewind:
        """Make a folder with the partition's content in the snapshot `name`; empty if that has no such partition.

        After a kill, the recovery point of the replaced log would truncate the new one, so from now on the checkpoints
        do not count. The names must be synced before `finish_rewind`. The folder has the name of a deleted partition,
        so the next start removes it if the rewind is interrupted. It gets the present topic id, because the snapshot
        may hold an earlier topic of the same name. Raises StorageFailure."""
        topic, partition = log.topic, log.partition
        path = self._removal_name(f"{topic}-{partition}")
        log_start_offset = 0
        if snapshot_store.has_partition(self.disk, self.path, name, topic, partition):
            log_start_offset = snapshot_store.materialize_partition(self.disk, self.path, name, topic, partition, path)
            self.disk.unlink(f"{path}/{checkpoints.PARTITION_METADATA_FILE}")
        else:
            self.disk.make_directories(path)
        self.disk.write(
            f"{path}/{checkpoints.PARTITION_METADATA_FILE}", checkpoints.encode_partition_metadata(log.topic_id)
        )
        fresh = self.offsets.write_fresh((topic, partition), log_start_offset)
        return snapshot_store.PreparedRewind(self, log, path, log_start_offset, fresh)

    def discard_rewind(self, prepared: snapshot_store.PreparedRewind) -> None:
        """Give up what was prepared. Raises StorageFailure."""
        self.delete_directory_later(prepared.path, 0)
        self.offsets.remove_fresh([prepared.fresh])

    def finish_rewind(self, prepared: snapshot_store.PreparedRewind) -> PartitionLog:
        """Replace a log, which is closed and removed, by the folder of `prepare_rewind`; returns the new log.

        After a disk failure the new log is offline."""
        _, log, path, log_start_offset, fresh = prepared
        key = log.topic, log.partition
        log.close()
        self.offsets.fresh[fresh] = None
        new = UnopenedLog(
            *key, log.topic_id, log.settings, log.directory, self.services, Checkpointed(True, 0, log_start_offset, 0)
        )
        self.logs[key] = new
        try:
            self.delete_directory_later(self._rename_for_removal(key), 0)
            self.offsets.log_starts[key] = log_start_offset
            self.disk.rename(path, log.directory)
            self._on_disk.add(key)
            new.load()
        except StorageFailure as failure:
            new.offline = failure.copy()
            new.close()
        else:
            # The snapshot's files and their names may not have reached the device.
            new.recovery_point = new.log_start_offset
            new.name_changes += 1
            new.is_new = True
        return new

    # -- deletion ------------------------------------------------------------------------------------------------------

    def delete_partition(self, topic: str, partition: int, *, later: bool = False) -> None:
        """Take a partition out of service. Its folder is removed after `file.delete.delay.ms`.

        The folder is renamed now, or with `later` by a call of `rename_deleted`."""
        key = topic, partition
        log = self.logs.pop(key, None)
        delay_ms = 0
        if log is not None:
            delay_ms = log.settings.file_delete_delay_ms
            log.close()
        if key in self._on_disk:
            self._leaving[key] = delay_ms
            if not later:
                self._rename_deleted_folder(key)

    @property
    def is_leaving(self) -> bool:
        """Whether `rename_deleted` has a folder to rename."""
        return bool(self._leaving)

    def rename_deleted(self) -> None:
        """Rename the folder of one deleted partition. Raises StorageFailure; the next start renames it then."""
        self._rename_deleted_folder(next(iter(self._leaving)))

    def _rename_all_deleted(self) -> None:
        while self._leaving and self.failure is None:
            try:
                self.rename_deleted()
            except StorageFailure:
                # The next start finds a partition that the cluster does not know, and renames it as a stray.
                pass

    def _rename_deleted_folder(self, key: tuple[str, int]) -> None:
        delay_ms = self._leaving.pop(key, None)
        if delay_ms is not None:
            self.delete_directory_later(self._rename_for_removal(key), delay_ms)

    def run_retention_at_rest(self, log: PartitionLog, now_ms: int) -> None:
        """Run retention on an unopened log: it is opened only if a segment may be due, and unloaded afterwards."""
        if now_ms < log.due_ms:
            return
        if not log.size_bytes:
            log.due_ms = NEVER_MS
            return
        log.load()
        gone = log.run_retention(now_ms)
        self.offsets.note((log.topic, log.partition), log)
        if gone:
            # The log stays loaded so that the next sync brings the change to the device.
            log.release_file()
        else:
            log.due_ms = retention.next_due_ms(log)
            log.unload()

    @property
    def next_deletion_ms(self) -> int | None:
        """The time in ms of the earliest scheduled deletion, None when there is none."""
        return min((due_ms for due_ms, _, _ in self.services.scheduled_deletions), default=None)

    def take_due_deletions(self, now_ms: int) -> list[tuple[str, bool]]:
        """`(path, is_directory)` of the deletions that are due; the caller passes each to `remove`, on any thread."""
        scheduled_deletions = self.services.scheduled_deletions
        due = [(path, is_directory) for due_ms, path, is_directory in scheduled_deletions if due_ms <= now_ms]
        scheduled_deletions[:] = [row for row in scheduled_deletions if row[0] > now_ms]
        return due

    def remove(self, path: str, is_directory: bool) -> None:
        """Remove a path of `take_due_deletions`. Raises `StorageFailure`; the next start then removes it."""
        if is_directory:
            self.disk.remove_directory(path)
        else:
            self.disk.unlink(path)

    def sync_jobs(self) -> list[SyncJob]:
        """One job per log that syncs the segments sealed since the log's last sync; for another thread."""
        jobs = (log.sync_job() for log in self.logs.values())
        return [job for job in jobs if job is not None]

    # -- checkpoints and close -----------------------------------------------------------------------------------------

    def checkpoint(self) -> None:
        """Write the three offset checkpoints and changed leader epochs. Unchanged files are not written."""
        recovery_points, log_starts, high_watermarks = {}, {}, {}
        for key, log in self.logs.items():
            if log.is_loaded:
                self.offsets.note(key, log)
                if log.offline is None:
                    log.write_epochs()
            recovery_points[key], log_starts[key], high_watermarks[key] = self.offsets.of(key)
        self.offsets.write(recovery_points, log_starts, high_watermarks)

    def note_offsets(self, log: PartitionLog) -> None:
        """Take a log's offsets for the next checkpoint; of one that left the directory, nothing."""
        if log.is_loaded and self.logs.get((log.topic, log.partition)) is log:
            self.offsets.note((log.topic, log.partition), log)

    def checkpoint_job(self) -> CheckpointJob:
        """`checkpoint` with the offsets that were noted, without leader epochs; for another thread."""
        return CheckpointJob(self.offsets, self.logs)

    @property
    def departed_count(self) -> int:
        """How many partitions that are not here any more the checkpoints may name."""
        return len(self.offsets.departed)

    def close(self, *, clean: bool = True, broker_epoch: int = -1) -> None:
        """Close every log and release the lock. With `clean`, first write all that a clean start reads, and the marker.

        The marker is left out when a log is offline, when a write failed, or when logs of an unclean start were never
        opened. The next start then recovers the logs."""
        try:
            self._rename_all_deleted()
            if clean and self.failure is None and self._settle():
                self.disk.replace(
                    f"{self.path}/{checkpoints.CLEAN_SHUTDOWN_FILE}", checkpoints.encode_clean_shutdown(broker_epoch)
                )
        finally:
            for log in self.logs.values():
                log.close()
            self._lock.close()

    def _settle(self) -> bool:
        """Write all that a clean start reads; returns whether the directory may be marked clean."""
        whole = self.clean or self._on_disk <= self.logs.keys()
        logs = self.logs.values()
        # A log that was only read needs a write too, because each start begins a new leader epoch.
        one_by_one = sum(log.needs_sync or (log.is_loaded and log.epochs.changed) for log in logs) <= MAX_SINGLE_SYNCS
        for log in logs:
            try:
                log.settle(sync=one_by_one)
            except StorageFailure:
                whole = False
            whole = whole and log.offline is None
        if not one_by_one:
            # This call syncs everything but does not report failed writes, so each log asks its files afterwards.
            self.disk.sync_all()
            for log in logs:
                try:
                    log.synced()
                except StorageFailure:
                    whole = False
        self.checkpoint()
        return whole
