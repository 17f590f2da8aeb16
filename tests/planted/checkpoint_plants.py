"""Bugs to plant where a checkpoint may say more than a log has."""

from __future__ import annotations

from tests.planted.plant import Plant

FOLLOWER_LOG = ("tests/log/test_follower_log.py",)
FULL_DISK = ("tests/server/test_full_disk.py",)
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
        'if log.offline is not None and result.operation == "sync":',
        "if False:",
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
)
