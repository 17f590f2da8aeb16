"""Bugs to plant in `pykafkad/log`."""

from __future__ import annotations

from tests.planted.plant import Plant

RECOVERY = ("tests/log/test_power_loss.py", "tests/log/test_recovery.py", "tests/log/test_crashes.py")
RULES = ("tests/log/test_partition_log.py", "tests/log/test_producers.py", "tests/log/test_crashes.py")
FILES = (
    "tests/log/test_storage_failures.py",
    "tests/log/test_directory.py",
    "tests/log/test_power_loss.py",
    "tests/log/test_crashes.py",
)
INDEXES = (
    "tests/log/test_indexes.py",
    "tests/log/test_leader_epochs.py",
    "tests/log/test_power_loss.py",
    "tests/log/test_partition_log.py",
    "tests/log/test_crashes.py",
)
RETENTION = ("tests/log/test_retention.py", "tests/log/test_crashes.py")

TRANSACTIONS = ("tests/log/test_transactions.py",)

PLANTS = (
    # Ranges of aborted transactions.
    Plant(
        "reads in the middle of an aborted transaction are told of none",
        "log/partition_log.py",
        "not at & 1 and (at == len(ranges) or end <= ranges[at])",
        "not at & 1",
        TRANSACTIONS,
    ),
    Plant(
        "the range of an aborted transaction ends before an overlapping one began",
        "log/txn_index.py",
        "start = min(start, ranges.pop())",
        "ranges.pop()",
        TRANSACTIONS,
    ),
    # Offsets and reads.
    Plant(
        "an offset is left out between batches",
        "log/partition_log.py",
        "self.end_offset = last_offset + 1\nself.messages_in",
        "self.end_offset = last_offset + 2\nself.messages_in",
        RULES,
    ),
    Plant(
        "a batch that is larger than the reader's bound is never read",
        "log/segment.py",
        "elif minimum_one_batch:",
        "elif False:",
        RULES,
    ),
    Plant(
        "a read ends at the written end, not at the high watermark",
        "log/partition_log.py",
        "if end_offset >= self.written_end_offset:",
        "if True:",
        RULES,
    ),
    Plant(
        "the high watermark passes the written end",
        "log/partition_log.py",
        "if offset > self.written_end_offset:\n    offset = self.written_end_offset",
        "",
        RULES,
    ),
    Plant(
        "an index entry points after its batch",
        "log/partition_log.py",
        "segment.add_index_entries(last_offset, position,",
        "segment.add_index_entries(last_offset, position + size,",
        RULES,
    ),
    # Producers.
    Plant(
        "four batches are remembered, not five",
        "log/producers.py",
        "BATCHES_KEPT = 5",
        "BATCHES_KEPT = 4",
        RULES,
    ),
    Plant(
        "a duplicate is recognised by its last sequence alone",
        "log/producers.py",
        "kept_last_sequence == last_sequence and kept_delta == offset_delta",
        "kept_last_sequence == last_sequence",
        RULES,
    ),
    Plant(
        "an older producer epoch is accepted",
        "log/producers.py",
        (
            "if epoch < entry.epoch:\n"
            "    raise KafkaError(\n"
            "        errors.INVALID_PRODUCER_EPOCH,\n"
            '        f"producer {producer_id} of epoch'
        ),
        (
            "if epoch < entry.epoch - 1:\n"
            "    raise KafkaError(\n"
            "        errors.INVALID_PRODUCER_EPOCH,\n"
            '        f"producer {producer_id} of epoch'
        ),
        RULES,
    ),
    Plant(
        "sequences do not wrap",
        "log/producers.py",
        "self.next_sequence = (last_sequence + 1) & MAX_SEQUENCE",
        "self.next_sequence = last_sequence + 1",
        RULES,
    ),
    Plant(
        "a new epoch keeps the batches of the old one",
        "log/producers.py",
        "self.epoch = epoch\nbatches.clear()",
        "self.epoch = epoch",
        RULES,
    ),
    Plant(
        "the checksum of a producer snapshot is not checked",
        "log/producers.py",
        "or crc32c(data[_CHECKED_FROM:]) != crc:",
        ":",
        ("tests/log/test_producers.py", *RECOVERY),
    ),
    # Recovery.
    Plant(
        "recovery does not check checksums",
        "log/recovery.py",
        "if crc32c(view[at + ATTRIBUTES_POSITION : at + size]) != crc:\n    return",
        "",
        RECOVERY,
    ),
    Plant(
        "a torn tail stays in the file",
        "log/recovery.py",
        "segment.file.truncate(end)",
        "",
        RECOVERY,
    ),
    Plant(
        "segments after a broken one stay",
        "log/recovery.py",
        "for each in reversed(later):\n    remove_segment(disk, each)",
        "",
        RECOVERY,
    ),
    Plant(
        "missing offsets between segments are ignored",
        "log/recovery.py",
        'is_dense = "compact" not in settings.cleanup_policy',
        "is_dense = False",
        RECOVERY,
    ),
    Plant(
        "recovery begins after the recovery point",
        "log/recovery.py",
        "if base <= recovery_point:\n    first = at",
        "if base <= recovery_point:\n    first = min(at + 1, len(bases) - 1)",
        RECOVERY,
    ),
    Plant(
        "after a recovery everything counts as synced",
        "log/recovery.py",
        "recovery_point = end_offset if known.clean else min(known.recovery_point, end_offset)",
        "recovery_point = end_offset",
        RECOVERY,
    ),
    Plant(
        "a producer snapshot from beyond the end is used",
        "log/producer_replay.py",
        "if segments[0].base_offset <= offset <= end_offset]",
        "if segments[0].base_offset <= offset]",
        RECOVERY,
    ),
    Plant(
        "producers whose last batches are gone are kept",
        "log/producer_replay.py",
        "if has_gap or reached < min(log_start_offset, end_offset):",
        "if False:",
        RECOVERY,
    ),
    Plant(
        "producer snapshots of lost records come back",
        "log/producer_replay.py",
        "if snapshots and snapshots[-1] > end_offset:",
        "if False:",
        RECOVERY,
    ),
    Plant(
        "deleted records are back after a restart",
        "log/recovery.py",
        "log_start_offset = max(known.log_start_offset, bases[0] if bases else 0)",
        "log_start_offset = bases[0] if bases else 0",
        RECOVERY,
    ),
    Plant(
        "an epoch file of lost records is used",
        "log/recovery.py",
        "epochs.truncate_from_end(bases[first])",
        "",
        RECOVERY,
    ),
    Plant(
        "rebuilt indexes before the recovery point are not synced",
        "log/recovery.py",
        "segment.write_indexes(sync=segment.base_offset < known.recovery_point)",
        "segment.write_indexes()",
        RECOVERY,
    ),
    Plant(
        "recovery keeps batches whose offsets do not rise",
        "log/recovery.py",
        "if base_offset < end_offset:\n    break",
        "",
        RECOVERY,
    ),
    # Files, syncs, markers.
    Plant(
        "flush syncs nothing",
        "log/log_files.py",
        "job.run()",
        "pass",
        FILES,
    ),
    Plant(
        "a failed sync counts as done",
        "log/log_files.py",
        ("try:\n    job.run()\nexcept StorageFailure as failure:\n    raise self.fail(failure) from None"),
        "try:\n    job.run()\nexcept StorageFailure:\n    pass",
        FILES,
    ),
    Plant(
        "leader epochs are not synced with their batches",
        "log/syncing.py",
        "if has_new_names:\n    sync_if_there(",
        "if False:\n    sync_if_there(",
        FILES,
    ),
    Plant(
        "producer snapshots are not synced",
        "log/syncing.py",
        "for path in self._snapshots:\n    sync_if_there(disk, path)",
        "",
        FILES,
    ),
    Plant(
        "the names of synced files are not synced",
        "log/syncing.py",
        "if has_new_names: sync_names(",
        "if False:\n    sync_names(",
        FILES,
    ),
    Plant(
        "the name of a new folder is not synced",
        "log/syncing.py",
        "if self._is_new: sync_names(",
        "if False:\n    sync_names(",
        FILES,
    ),
    Plant(
        "a failed sync of names counts as done",
        "log/syncing.py",
        "if disk.is_directory(directory):\n    raise",
        "pass",
        FILES,
    ),
    Plant(
        "a sync after a failed one counts",
        "log/syncing.py",
        "if not log.closed and log.offline is None and not self._has_moved and",
        "if not log.closed and not self._has_moved and",
        FILES,
    ),
    Plant(
        "folders of a killed broker count as synced",
        "log/directory.py",
        "if self._on_disk and not self.clean:",
        "if False:",
        FILES,
    ),
    Plant(
        "files of a killed broker count as synced",
        "log/log_files.py",
        "if not self._initial.clean or not loaded.segments[-1].size:",
        "if False:",
        FILES,
    ),
    Plant(
        "a log that grew after its recovery point is not recovered",
        "log/recovery.py",
        "if header.base_offset >= recovery_point:\n    return False",
        "if header.base_offset >= recovery_point:\n    return True",
        ("tests/log/test_scale.py", *RECOVERY),
    ),
    Plant(
        "an idle log whose records are all deleted is unloaded",
        "log/log_files.py",
        "or (self._active.size and self.log_start_offset == self.end_offset)",
        "",
        RECOVERY,
    ),
    Plant(
        "an unsynced idle log is unloaded",
        "log/log_files.py",
        "or self.recovery_point != self.end_offset",
        "",
        ("tests/log/test_scale.py", *RECOVERY),
    ),
    Plant(
        "an idle log forgets batches of its producers",
        "log/log_files.py",
        "or any(len(entry.batches) > 1 for entry in self.producers.values())",
        "",
        ("tests/log/test_scale.py", *RECOVERY),
    ),
    Plant(
        "a roll right after a sync tells a recovery at once that its files are complete",
        "log/log_files.py",
        "if self.recovery_point >= end_offset > self.snapshot_offset:",
        "if False:",
        FILES,
    ),
    Plant(
        "a failed write does not move the end back",
        "log/log_files.py",
        "self.end_offset = self.written_end_offset\nactive",
        "active",
        FILES,
    ),
    Plant(
        "a failed write leaves its part in the file",
        "log/log_files.py",
        "active.file.truncate(active.written_size)",
        "pass",
        FILES,
    ),
    Plant(
        "a clean stop does not sync the indexes",
        "log/log_files.py",
        "self._write_hints(sync=sync and self.needs_sync)",
        "self._write_hints(sync=False)",
        FILES,
    ),
    Plant(
        "a start does not remove the clean marker",
        "log/directory.py",
        "if self.clean:\n    self.disk.unlink(path)",
        "if self.clean:",
        FILES,
    ),
    Plant(
        "the removal of the clean marker is not synced",
        "log/directory.py",
        "self.disk.unlink(path)\nself.disk.sync_directory(self.path)",
        "self.disk.unlink(path)",
        FILES,
    ),
    Plant(
        "a log that is offline is marked clean",
        "log/directory.py",
        "whole = whole and log.offline is None",
        "",
        FILES,
    ),
    Plant(
        "the end is checkpointed as the recovery point",
        "log/offset_checkpoints.py",
        "self.recovery_points[key] = log.recovery_point",
        "self.recovery_points[key] = log.end_offset",
        FILES,
    ),
    # Indexes and epochs.
    Plant(
        "a look-up lands one entry late",
        "log/offset_index.py",
        "return (self.offsets[at - 1], self.positions[at - 1]) if at else (0, 0)",
        (
            "at = min(at + 1, len(self.offsets))\n"
            "return (self.offsets[at - 1], self.positions[at - 1]) if at else (0, 0)"
        ),
        INDEXES,
    ),
    Plant(
        "a sealed segment lacks its last timestamp",
        "log/segment.py",
        "and self.max_timestamp_ms <= self.time_index.last()[0]:",
        ":",
        INDEXES,
    ),
    Plant(
        "a look-up by time skips the first record at that time",
        "log/lookups.py",
        "if header.max_timestamp_ms < timestamp_ms or header.last_offset",
        "if header.max_timestamp_ms <= timestamp_ms or header.last_offset",
        INDEXES,
    ),
    Plant(
        "an epoch that held no record stays",
        "log/leader_epochs.py",
        "entries[-1][0] >= epoch or entries[-1][1] >= start_offset",
        "entries[-1][0] >= epoch or entries[-1][1] > start_offset",
        INDEXES,
    ),
    Plant(
        "a torn epoch file is used",
        "log/leader_epochs.py",
        'if not text.endswith("\\n"):',
        "if False:",
        INDEXES,
    ),
    # Retention.
    Plant(
        "DeleteRecords goes beyond the high watermark",
        "log/retention.py",
        "before_offset > log.high_watermark",
        "before_offset > log.end_offset",
        RETENTION,
    ),
    Plant(
        "segments above the high watermark are removed",
        "log/retention.py",
        "if log.high_watermark < end or (next_base",
        "if (next_base",
        RETENTION,
    ),
    Plant(
        "files that cannot be renamed are forgotten",
        "log/retention.py",
        "raise log.fail(failure) from None",
        "raise failure",
        ("tests/log/test_power_loss.py",),
    ),
    Plant(
        "the log start stays below the first segment",
        "log/retention.py",
        "log.log_start_offset = start",
        "pass",
        RETENTION,
    ),
    Plant(
        "a refused batch comes back when the disk has space again",
        "log/reopening.py",
        "active.file.truncate(active.written_size)",
        "pass",
        ("tests/log/test_reopening.py",),
    ),
)
