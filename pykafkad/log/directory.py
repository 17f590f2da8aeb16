"""One entry of `log.dirs`: who may use it, whose it is, which partitions it holds, and what survives a restart.

Files, named as Kafka names them: `.lock`, `meta.properties`, `.kafka_cleanshutdown`, the three offset checkpoints, and
one directory per partition, `<topic>-<partition>`; deleted ones wait as `….<32 hex>-delete` for `file.delete.delay.ms`.
"""

from __future__ import annotations

import posixpath

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
from pykafkad.log.log_files import LogServices
from pykafkad.log.offset_checkpoints import OffsetCheckpoints
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

# Up to this many logs are synced one by one at a stop; for more the whole file system is, which takes one call.
MAX_SINGLE_SYNCS = 16


class LogDirectory:
    """See the module. `clean` says how the last user of the directory left; `meta` is `meta.properties` (empty: new).

    `futures` maps a partition to the folder of a move into this directory that a start found unfinished; `failure` is
    what took the directory out of service, else None.

    Constructing takes the lock (`StartFailure` names the directory when another broker holds it) and reads the small
    files; no partition is opened. `broker_epoch` is what the last clean shutdown wrote, -1 without one."""

    __slots__ = (
        "_leaving",
        "_lock",
        "_offsets",
        "_on_disk",
        "broker_epoch",
        "clean",
        "clock",
        "disk",
        "failure",
        "futures",
        "logs",
        "meta",
        "path",
        "services",
    )

    def __init__(self, path: str, *, disk: Disk, clock: Clock, random: Random) -> None:
        self.path = path
        self.disk = disk
        self.clock = clock
        if not disk.exists(path):
            disk.make_directories(path)
            disk.sync_directory(posixpath.dirname(path) or ".")
        self._lock = disk.lock(f"{path}/{checkpoints.LOCK_FILE}")
        self.services = LogServices(disk, clock, random, [], [])
        self.logs: dict[tuple[str, int], PartitionLog] = {}
        self.meta = checkpoints.decode_properties(disk.read(f"{path}/{checkpoints.META_PROPERTIES_FILE}") or b"")
        self._offsets = OffsetCheckpoints(disk, path)
        self._take_clean_marker()
        self._on_disk: set[tuple[str, int]] = set()
        # Deleted partitions whose folders have their names still, and the delay after which they are to be removed.
        self._leaving: dict[tuple[str, int], int] = {}
        self.futures: dict[tuple[str, int], str] = {}
        self.failure: StorageFailure | None = None
        self._find_partitions()
        self._offsets.forget_all_but(self._on_disk)

    def __repr__(self) -> str:
        return f"LogDirectory({self.path})"

    @property
    def absolute_path(self) -> str:
        """How DescribeLogDirs names the directory."""
        return self.disk.absolute_path(self.path)

    # -- opening -------------------------------------------------------------------------------------------------------

    def _take_clean_marker(self) -> None:
        # Read and removed at once: a broker that dies from here on has not stopped cleanly.
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
        for name in self.disk.listdir(self.path):
            if name.endswith(DELETE_SUFFIX):
                self.services.doomed.append((now_ms, f"{self.path}/{name}", True))
            elif name.endswith(FUTURE_SUFFIX):
                key = parse_partition_name(name.removesuffix(FUTURE_SUFFIX).rpartition(".")[0])
                if key is not None and self.disk.is_directory(f"{self.path}/{name}"):
                    self.futures[key] = name
            elif not name.endswith(NOT_SERVED_SUFFIXES):
                key = parse_partition_name(name)
                if key is not None and self.disk.is_directory(f"{self.path}/{name}"):
                    self._on_disk.add(key)
        if self._on_disk and not self.clean:
            # The life that made the folders may have ended before it came to sync their names.
            self.disk.sync_directory(self.path)

    def write_meta(self, *, cluster_id: str, node_id: int, directory_id: str) -> None:
        """Make the directory a broker's own: `meta.properties` version 1."""
        self.meta = {"version": "1", "cluster.id": cluster_id, "node.id": str(node_id), "directory.id": directory_id}
        self.disk.replace(f"{self.path}/{checkpoints.META_PROPERTIES_FILE}", checkpoints.encode_properties(self.meta))

    def check_meta(self, *, cluster_id: str | None, node_id: int) -> None:
        """Refuse a directory that belongs to another broker or cluster, or of which cannot be told whose it is:
        `ConfigError` says which."""
        path = f"{self.path}/{checkpoints.META_PROPERTIES_FILE}"
        if not self.meta and not self._on_disk and not self.disk.size(path):
            return
        lacking = [name for name in ("cluster.id", "node.id", "directory.id") if not self.meta.get(name)]
        try:
            checkpoints.decode_uuid(self.meta.get("directory.id", ""))
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
        """The log of a partition; its directory is made when it is not there. `is_created`: the partition has just come
        to be.

        After a clean stop nothing is read before the first use. After any other, what is behind the recovery point is
        recovered here, so that the time it takes lies before the broker says that it is ready; until it is used the log
        then holds no descriptor. A log that cannot be recovered is returned with `offline` set."""
        key = topic, partition
        log = self.logs.get(key)
        if log is not None:
            return log
        known = NOTHING_KNOWN
        self._let_go(key)
        if is_created and key in self._on_disk:
            self._put_stray_aside(key, topic_id)
        if key in self._on_disk:
            known = Checkpointed(self.clean, *self._offsets.of(key))
        else:
            self._offsets.clear_departed(key)
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

    def _put_stray_aside(self, key: tuple[str, int], topic_id: bytes) -> None:
        """What a deleted topic of the same name left, as a death in the middle of its deletion does, gets Kafka's name
        for such."""
        stored_id = checkpoints.decode_partition_metadata(self.disk.read(self._metadata_path(*key)))
        if stored_id is not None and stored_id != topic_id:
            self._rename_for_removal(key, STRAY_SUFFIX)

    def put_strays_aside(self, known: dict[tuple[str, int], bytes]) -> list[str]:
        """At a start: folders of partitions that are not among `known` (their topic's id by topic and partition) get
        Kafka's name for such, and nobody removes them; the paths. Raises StorageFailure.

        What a clean stop left has the ids that it had, so they are read after any other end alone.
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
            # Where no segment is, nothing can be recovered.
            if log.count_segment_files():
                log.load()
                self._offsets.note((log.topic, log.partition), log)
                log.unload()
        except StorageFailure as failure:
            # Its clients are told, the other partitions go on.
            log.offline = log.offline or failure.copy()

    def checkpointed(self, key: tuple[str, int]) -> tuple[int, int, int]:
        """What the checkpoints say of a partition: (recovery point, log start offset, high watermark)."""
        return self._offsets.of(key)

    def holds(self, topic: str, partition: int) -> bool:
        """Whether the partition's folder is here."""
        return (topic, partition) in self._on_disk and (topic, partition) not in self._leaving

    # -- moves between directories -------------------------------------------------------------------------------------

    def release(self, log: PartitionLog) -> str:
        """The log moves away: take it out of this directory's books; the path of what is left of it, renamed for
        removal."""
        key = log.topic, log.partition
        self.logs.pop(key, None)
        return self._rename_for_removal(key)

    def adopt(self, log: PartitionLog, name: str) -> None:
        """The folder `name` becomes the partition's, and `log` one of this directory's."""
        key = log.topic, log.partition
        self._let_go(key)
        self._offsets.clear_departed(key)
        self.disk.rename(f"{self.path}/{name}", f"{self.path}/{log.topic}-{log.partition}")
        self.disk.sync_directory(self.path)
        self._on_disk.add(key)
        self.logs[key] = log

    def promote_future(self, topic: str, partition: int) -> None:
        """Finish a move whose end was decided before the broker died: the copy becomes the partition."""
        key = topic, partition
        self._offsets.clear_departed(key)
        self.disk.rename(f"{self.path}/{self.futures.pop(key)}", f"{self.path}/{topic}-{partition}")
        self.disk.sync_directory(self.path)
        self._on_disk.add(key)

    def remove_copy(self, topic: str, partition: int) -> None:
        """The partition lives in another directory: what is here goes."""
        self.doom_directory(self._rename_for_removal((topic, partition)), 0)

    def discard_future(self, name: str) -> None:
        """The folder of a move that is not to be finished goes."""
        target = self._removal_name(name)
        self.disk.rename(f"{self.path}/{name}", target)
        self.doom_directory(target, 0)

    def doom_directory(self, path: str, delay_ms: int) -> None:
        """A renamed folder is to be removed when the delay is over."""
        self.services.doomed.append((self.clock.now_ms() + delay_ms, path, True))

    def _removal_name(self, name: str, suffix: str = DELETE_SUFFIX) -> str:
        suffix = f".{self.services.random.getrandbits(128):032x}{suffix}"
        return f"{self.path}/{name[: MAX_NAME_LENGTH - len(suffix)]}{suffix}"

    def _rename_for_removal(self, key: tuple[str, int], suffix: str = DELETE_SUFFIX) -> str:
        name = f"{key[0]}-{key[1]}"
        target = self._removal_name(name, suffix)
        # First: a folder that keeps its name must be known, or a new topic of that name would begin with what is in it.
        self.disk.rename(f"{self.path}/{name}", target)
        self._on_disk.discard(key)
        self._offsets.forget(key)
        return target

    def fail(self, failure: StorageFailure) -> list[PartitionLog]:
        """Take the directory out of service, as Kafka does after one failed access: its logs are closed, and returned."""
        self.failure = failure.copy()
        for log in self.logs.values():
            log.offline = log.offline or self.failure
            log.close()
        return list(self.logs.values())

    def prepare_rewind(self, name: str, log: PartitionLog) -> tuple[str, int]:
        """Make a folder beside the partition's with its content in the snapshot `name`, or an empty one: (its path, log
        start offset).

        Its name is that of a deleted partition, so that nothing is left of a rewind that does not come to its end. The
        topic's id is the present one: in the snapshot the topic may have been an earlier one of the same name. Raises
        StorageFailure."""
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
        return path, log_start_offset

    def checkpoint_rewinds(self, log_starts: dict[tuple[str, int], int]) -> None:
        """Before the folders of `prepare_rewind` take their places: what was promised of what they replace would cut
        them after a kill. Raises StorageFailure."""
        nothing = dict.fromkeys(log_starts, 0)
        known = self._offsets
        known.write(
            {**known.recovery_points, **nothing},
            {**known.log_starts, **log_starts},
            {**known.high_watermarks, **nothing},
        )

    def finish_rewind(self, log: PartitionLog, path: str, log_start_offset: int) -> PartitionLog:
        """Put the folder of `prepare_rewind` in the place of the log's, which is closed and goes. A disk that fails
        leaves the new log offline."""
        key = log.topic, log.partition
        log.close()
        new = UnopenedLog(
            *key, log.topic_id, log.settings, log.directory, self.services, Checkpointed(True, 0, log_start_offset, 0)
        )
        self.logs[key] = new
        try:
            self.doom_directory(self._rename_for_removal(key), 0)
            self._offsets.log_starts[key] = log_start_offset
            self.disk.rename(path, log.directory)
            self._on_disk.add(key)
            new.load()
        except StorageFailure as failure:
            new.offline = failure.copy()
            new.close()
        else:
            # Nobody knows whether the snapshot's files have reached the device, and their names.
            new.recovery_point = new.log_start_offset
            new.names += 1
            new.is_new = True
        return new

    # -- deletion ------------------------------------------------------------------------------------------------------

    def delete_partition(self, topic: str, partition: int, *, later: bool = False) -> None:
        """Take a partition out of service: its directory is renamed now, or by `rename_deleted`, and removed after
        `file.delete.delay.ms`."""
        key = topic, partition
        log = self.logs.pop(key, None)
        delay_ms = 0
        if log is not None:
            delay_ms = log.settings.file_delete_delay_ms
            log.close()
        if key in self._on_disk:
            self._leaving[key] = delay_ms
            if not later:
                self._let_go(key)

    @property
    def is_leaving(self) -> bool:
        """Whether `rename_deleted` has something to do."""
        return bool(self._leaving)

    def rename_deleted(self) -> None:
        """Rename the folder of one deleted partition. Raises StorageFailure; then the next start finds that nobody
        knows it."""
        self._let_go(next(iter(self._leaving)))

    def _rename_all_deleted(self) -> None:
        while self._leaving and self.failure is None:
            try:
                self.rename_deleted()
            except StorageFailure:
                # The next start finds that nobody knows it.
                pass

    def _let_go(self, key: tuple[str, int]) -> None:
        delay_ms = self._leaving.pop(key, None)
        if delay_ms is not None:
            self.doom_directory(self._rename_for_removal(key), delay_ms)

    def run_retention_at_rest(self, log: PartitionLog, now_ms: int) -> None:
        """Retention of a log that nobody has opened: it is opened when something may be due, and let go of again."""
        if now_ms < log.due_ms:
            return
        if not log.size_bytes:
            log.due_ms = NEVER_MS
            return
        log.load()
        gone = log.run_retention(now_ms)
        self._offsets.note((log.topic, log.partition), log)
        if gone:
            # What that changed is synced with the next sync.
            log.release_file()
        else:
            log.due_ms = retention.next_due_ms(log)
            log.unload()

    @property
    def next_deletion_ms(self) -> int | None:
        """When `take_due_deletions` has something to give, None when nothing waits."""
        return min((due_ms for due_ms, _, _ in self.services.doomed), default=None)

    def take_due_deletions(self, now_ms: int) -> list[tuple[str, bool]]:
        """`(path, is_directory)` of what may be removed now; the caller hands each to `remove`, on any thread."""
        doomed = self.services.doomed
        due = [(path, is_directory) for due_ms, path, is_directory in doomed if due_ms <= now_ms]
        doomed[:] = [row for row in doomed if row[0] > now_ms]
        return due

    def remove(self, path: str, is_directory: bool) -> None:
        """Remove one of `take_due_deletions`. Raises `StorageFailure`; then it goes at the next start."""
        if is_directory:
            self.disk.remove_directory(path)
        else:
            self.disk.unlink(path)

    def sync_jobs(self) -> list[SyncJob]:
        """The syncs of segments that rolled since the last call to each log's job; run them off the loop."""
        jobs = (log.sync_job() for log in self.logs.values())
        return [job for job in jobs if job is not None]

    # -- checkpoints and close -----------------------------------------------------------------------------------------

    def checkpoint(self) -> None:
        """Write the three offset checkpoints and changed leader epochs; files whose content is the same are left alone."""
        recovery_points, log_starts, high_watermarks = {}, {}, {}
        for key, log in self.logs.items():
            if log.is_loaded:
                self._offsets.note(key, log)
                if log.offline is None:
                    log.write_epochs()
            recovery_points[key], log_starts[key], high_watermarks[key] = self._offsets.of(key)
        self._offsets.write(recovery_points, log_starts, high_watermarks)

    def close(self, *, clean: bool = True, broker_epoch: int = -1) -> None:
        """Close every log and release the lock. Clean: write all that a clean start reads, then the marker.

        Without a marker, because a log was offline, because something could not be written, or because logs of an
        unclean start were never opened, the next start recovers."""
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
        """Write what a clean start reads; whether everything is known to be there."""
        whole = self.clean or self._on_disk <= self.logs.keys()
        logs = self.logs.values()
        # Each start is a new leader epoch, which is written for what was only read, too.
        one_by_one = sum(log.needs_sync or (log.is_loaded and log.epochs.changed) for log in logs) <= MAX_SINGLE_SYNCS
        for log in logs:
            try:
                log.settle(sync=one_by_one)
            except StorageFailure:
                whole = False
            whole = whole and log.offline is None
        if not one_by_one:
            # One call brings everything to the device, and says of nothing that it failed: that is asked of each file.
            self.disk.sync_all()
            for log in logs:
                try:
                    log.synced()
                except StorageFailure:
                    whole = False
        self.checkpoint()
        return whole
