"""Bugs to plant where a checkpoint may say more than a log has, and where a full disk takes logs out of service."""

from __future__ import annotations

from tests.planted.plant import Plant

FOLLOWER_LOG = ("tests/log/test_follower_log.py",)
FULL_DISK = ("tests/server/test_full_disk.py",)
REPLICAS = ("tests/server/test_full_disks_of_replicas.py",)
OLD_CHECKPOINTS = ("tests/server/test_old_checkpoints.py",)

PLANTS = (
    Plant(
        "a start leaves a high watermark above the end of a log in the checkpoint",
        "server/partitions.py",
        "if loading:\n    self._correct_checkpoints()",
        "pass",
        OLD_CHECKPOINTS,
    ),
    Plant(
        "a healthy log hides that another one ends below its high watermark",
        "log/offset_checkpoints.py",
        "self._high_watermarks_exceed_logs |=",
        "self._high_watermarks_exceed_logs =",
        FOLLOWER_LOG,
    ),
    Plant(
        "a log without a segment keeps its high watermark in the checkpoint",
        "log/directory.py",
        "else:\n    self.offsets.recovered((log.topic, log.partition), None)",
        "else:\n    pass",
        FOLLOWER_LOG,
    ),
    Plant(
        "a cut leaves a high watermark above the end of a log in the checkpoint",
        "log/offset_checkpoints.py",
        "max(self.of(key)) <= end_offset",
        "max(self.of(key)[:2]) <= end_offset",
        FOLLOWER_LOG,
    ),
    Plant(
        "what was noted of a log before it was cut goes to the checkpoint",
        "log/offset_checkpoints.py",
        "self.note((log.topic, log.partition), log)",
        "pass",
        FOLLOWER_LOG,
    ),
    # Logs that could not be recovered at the start.
    Plant(
        "the checkpoint counts for a log that was recovered late",
        "log/reopening.py",
        "self._offsets.sync_fresh(self._fresh)",
        "pass",
        FULL_DISK,
    ),
    Plant(
        "that the checkpoint does not count for a log is lost with a power loss",
        "log/offset_checkpoints.py",
        'self.disk.write(path, b"")\nself.disk.sync_directory(self.path)',
        'self.disk.write(path, b"")',
        FOLLOWER_LOG,
    ),
    Plant(
        "a checkpoint that was begun before a log is back counts for it",
        "log/reopening.py",
        "self._fresh = offsets.name_fresh((log.topic, log.partition), self._known.log_start_offset)",
        "self._fresh = offsets.name_fresh((log.topic, log.partition), self._known.log_start_offset)\n"
        "offsets.fresh[self._fresh] = None",
        FOLLOWER_LOG,
    ),
    Plant(
        "no checkpoint counts again for a log that was recovered late",
        "log/reopening.py",
        "self._offsets.cut_made(log, self._fresh)",
        "pass",
        FULL_DISK,
    ),
    Plant(
        "each try to recover a log leaves a file for ever",
        "server/full_disk.py",
        "job.give_up()",
        "pass",
        FULL_DISK,
    ),
    Plant(
        "a log that could not be recovered is back before it is recovered",
        "log/log_segments.py",
        "return None if self.is_loaded or self._initial.clean else self._initial",
        "return None",
        FOLLOWER_LOG,
    ),
    Plant(
        "a directory serves with a wrong checkpoint when descriptors are lacking",
        "server/partitions.py",
        "directories.report(directory, failure.copy())",
        "directories.report(directory, failure)",
        ("tests/server/test_directories.py",),
    ),
    Plant(
        "a log that could not be recovered at the start comes back when a client asks for it",
        "server/partitions.py",
        "if log.offline is not None and log.offline.lacks_space:\n    self._commits.broker.full_disk.add(log)",
        "",
        FULL_DISK,
    ),
    Plant(
        "a log comes back after a failed sync",
        "server/full_disk.py",
        'if result.operation != "sync" and (result.lacks_space or result.is_passing):',
        "if result.lacks_space or result.is_passing:",
        FULL_DISK,
    ),
    Plant(
        "nobody notices that a sync has taken a log out of service",
        "server/housekeeping.py",
        "self.log_failed(log, failure)",
        "self._directories.report(directory, failure)",
        FULL_DISK,
    ),
    Plant(
        "nobody notices that the cleaner has taken a log out of service",
        "server/compaction.py",
        "if log.offline is not None:\n    broker.log_failed(log, failure)",
        "",
        ("tests/server/test_compaction.py",),
    ),
    Plant(
        "a log that cannot be recovered holds up all others",
        "server/full_disk.py",
        "self._waiting.pop(log, None)\nself._waiting[log] = self._broker.runtime.now + LOOK_SECONDS",
        "self._waiting = {log: self._broker.runtime.now + LOOK_SECONDS, **self._waiting}",
        FULL_DISK,
    ),
    Plant(
        "one turn looks at all logs that wait for space",
        "server/full_disk.py",
        "for _ in range(LOOKS_PER_TURN):",
        "while True:",
        FULL_DISK,
    ),
    Plant(
        "a lack of descriptors hides the lack of space",
        "server/broker.py",
        "if log.offline.lacks_space:",
        "if failure.lacks_space:",
        FULL_DISK,
    ),
    Plant(
        "a log comes back with less than was written",
        "log/reopening.py",
        "if log.is_loaded and end_offset < log.written_end_offset:",
        "if False:",
        REPLICAS,
    ),
    Plant(
        "what is left of a damaged log is cut before anybody decides",
        "log/recovery.py",
        "if is_last and before_cut is not None:\n    before_cut(end_offset)",
        "pass",
        FULL_DISK,
    ),
    Plant(
        "a log that was deleted meanwhile is recovered from the files of another",
        "log/reopening.py",
        "if log.closed or self.has_moved:",
        "if self.has_moved:",
        FULL_DISK,
    ),
    Plant(
        "a log in service counts as out of service after a failed cut",
        "server/broker.py",
        "if log.offline is None:",
        "if log.offline is None and failure.is_passing:",
        REPLICAS,
    ),
    Plant(
        "a coordinator's log that could not be opened waits for a producer",
        "server/coordinator_host.py",
        "self._broker.log_failed(self.log, error)",
        "pass",
        FULL_DISK,
    ),
    Plant(
        "a log that could not be opened for a consumer waits for a producer",
        "handlers/fetch.py",
        "self._ctx.storage_failed(log, failure)",
        "pass",
        FULL_DISK,
    ),
    Plant(
        "a log is recovered although its indexes have no space",
        "server/full_disk.py",
        "_needed_bytes(log)",
        "ROOM_BYTES",
        FULL_DISK,
    ),
    Plant(
        "each failed recovery of a log is told",
        "server/full_disk.py",
        "if is_first:",
        "if True:",
        FULL_DISK,
    ),
    Plant(
        "a node that cannot end cleanly keeps others from their end",
        "server/runtime.py",
        "failures.append(failure)",
        "raise",
        ("tests/server/test_runtime.py",),
    ),
    Plant(
        "a stop spins while a connection attempt has ended",
        "server/reactor.py",
        "self.unwatch(fileno)",
        "pass",
        ("tests/server/test_reactor.py",),
    ),
    Plant(
        "a log comes back with the high watermark of when its recovery began",
        "log/reopening.py",
        "known = known._replace(high_watermark=log.high_watermark)",
        "pass",
        REPLICAS,
    ),
    Plant(
        "a broker that is stopped goes on making partitions",
        "server/broker.py",
        "for part in (self._replication, self._other_brokers, self._full_disk, self._unmade_partitions):",
        "for part in (self._replication, self._other_brokers):",
        REPLICAS,
    ),
    Plant(
        "each try to make a partition leaves a log",
        "server/broker_parts.py",
        "self._offline_logs.discard(log)",
        "pass",
        ("tests/server/test_unmade_partitions.py",),
    ),
)
