"""Bugs to plant in replication: in followers, in the leader's part of a fetch, and in the controller's decisions."""

from __future__ import annotations

from tests.planted.plant import Plant

SEEDS = ("tests/simulation/test_replication_seeds.py",)
FOLLOWER = ("tests/log/test_follower.py",)
LOG = ("tests/log/test_follower_log.py",)
REASSIGNMENTS = ("tests/metadata/test_reassignments.py",)
CONTROLLER = ("tests/metadata/test_alter_partition.py",)
LOSSES = ("tests/simulation/test_replication_losses.py",)
BROKERS = ("tests/server/test_replicated_brokers.py",)
THROTTLES = ("tests/server/test_replication_throttles.py", "tests/quotas/test_replication_throttle.py")
HANDLERS = ("tests/handlers/test_fetch_by_followers.py",)

FOUND_BY_SEEDS = (
    Plant(
        "what the leader alone has counts as committed",
        "log/replica.py",
        "end_offset = follower.end_offset\nreturn self._rise(end_offset)",
        "pass\nreturn self._rise(end_offset)",
        SEEDS,
    ),
    Plant(
        "an answer to acks=all does not wait for followers",
        "server/commits.py",
        "if log.high_watermark < end_offset:\n    behind.setdefault(log, False)",
        "pass",
        SEEDS,
    ),
    Plant(
        "a follower that differs from its leader cuts nothing",
        "log/follower.py",
        "if diverging[0] >= 0:",
        "if False:",
        SEEDS,
    ),
    Plant(
        "a leader does not tell where the logs part",
        "handlers/fetch_replicas.py",
        "if epoch < asked or end_offset < partition.fetch_offset:",
        "if False:",
        SEEDS,
    ),
    Plant(
        "a follower asks without the epoch of its last batch",
        "log/follower.py",
        "return Question(self.leader_epoch, self.end_offset, self._epochs.latest)",
        "return Question(self.leader_epoch, self.end_offset, -1)",
        SEEDS,
    ),
    Plant(
        "a follower keeps no leader epochs",
        "log/follower_log.py",
        "log.epochs.assign(header.leader_epoch, header.base_offset)",
        "pass",
        SEEDS,
    ),
    Plant(
        "a broker that may have lost records stays in sync",
        "metadata/registrations.py",
        "records = broker_changes(image, settings, lost=event.broker_id)",
        "pass",
        SEEDS,
    ),
    Plant(
        "a replica out of sync is elected",
        "metadata/partition_changes.py",
        "if self.election == UNCLEAN:\n    for replica in self.replicas:",
        "if True:\n    for replica in self.replicas:",
        SEEDS,
    ),
    Plant(
        "the last known leader leads although another replica has everything",
        "metadata/partition_changes.py",
        "self._elr_kept and not source and",
        "self._elr_kept and",
        LOSSES,
    ),
    Plant(
        "who is a replica no longer stays an eligible leader",
        "metadata/partition_changes.py",
        "{*self._state.elr, *self._state.isr} & {*self.replicas}",
        "{*self._state.elr, *self._state.isr}",
        REASSIGNMENTS,
    ),
    Plant(
        "who stops uncleanly stays an eligible leader",
        "metadata/partition_changes.py",
        "if replica not in self.isr and replica != self.lost",
        "if replica not in self.isr",
        LOSSES,
    ),
    Plant(
        "consumers read what is not committed",
        "handlers/fetch.py",
        "return log.last_stable_offset if self._read_committed else log.high_watermark",
        "return log.written_end_offset",
        SEEDS,
    ),
    Plant(
        "a follower goes on asking in its old epoch",
        "server/replica_fetchers.py",
        "if known is not None and known.leader_epoch == leader_epoch:",
        "if known is not None:",
        SEEDS,
    ),
)

PLANTS = (
    Plant(
        "a leader throttles replicas that are in sync",
        "server/replication_throttles.py",
        "follower not in log.replica.isr\nand self._is_counted(self._led)",
        "self._is_counted(self._led)",
        THROTTLES,
    ),
    Plant(
        "a leader gives a throttled follower its records",
        "handlers/fetch.py",
        "if self._follower and records is not None and self._ctx.replication.withholds(log, self._replica_id):",
        "if False:",
        THROTTLES,
    ),
    Plant(
        "what a leader sends to throttled followers does not count",
        "server/replication_throttles.py",
        "self._led.record(size_bytes, self._now_ms)",
        "pass",
        THROTTLES,
    ),
    Plant(
        "a follower fetches above its throttle",
        "server/replica_fetchers.py",
        "if due <= now and throttles is not None and throttles.delays(followed.log, followed.lag):",
        "if False:",
        THROTTLES,
    ),
    Plant(
        "a follower throttles what it has all of",
        "server/replication_throttles.py",
        "(lag is None or lag > 0)\nand self._is_counted(self._followed)",
        "self._is_counted(self._followed)",
        THROTTLES,
    ),
    Plant(
        "the throttles of other brokers' replicas count",
        "quotas/replication_throttle.py",
        "frozenset(int(partition) for partition, broker in pairs if int(broker) == broker_id)",
        "frozenset(int(partition) for partition, broker in pairs)",
        THROTTLES,
    ),
    Plant(
        "a throttle's rate is that of a client's quota",
        "quotas/rate_sensor.py",
        "return max(elapsed_ms, self._window_ms)",
        "return super()._measured_ms(elapsed_ms)",
        THROTTLES,
    ),
    *FOUND_BY_SEEDS,
    Plant(
        "a follower that is fetched anew takes what is above its leader's epoch",
        "log/follower.py",
        "if header.leader_epoch > asked.leader_epoch:",
        "if False:",
        FOLLOWER,
    ),
    Plant(
        "a late answer to a follower counts",
        "log/follower.py",
        "if asked != self.question():\n    return NOTHING",
        "pass",
        FOLLOWER,
    ),
    Plant(
        "a replica that is removed keeps its log",
        "server/partitions.py",
        "if not loading:\n    gone += self._delete(",
        "if False:\n    gone += self._delete(",
        BROKERS,
    ),
    Plant(
        "a cut log keeps the epochs of what was cut",
        "log/follower_log.py",
        "log.epochs.truncate_from_end(end_offset)\nlog.epochs.changed = True",
        "log.epochs.changed = True",
        LOG,
    ),
    Plant(
        "a follower fetches from a leader of another epoch",
        "handlers/fetch.py",
        "if asked >= 0 and asked != epoch:",
        "if False:",
        HANDLERS,
    ),
    Plant(
        "a proposal of an old partition epoch is taken",
        "metadata/alter_partition.py",
        "if asked.partition_epoch < state.partition_epoch:\n    return errors.INVALID_UPDATE_VERSION",
        "pass",
        CONTROLLER,
    ),
    Plant(
        "a proposal of an old leader epoch is taken",
        "metadata/alter_partition.py",
        "if asked.leader_epoch < state.leader_epoch:\n    return errors.FENCED_LEADER_EPOCH\nif broker_id != state.leader:\n    return errors.INVALID_REQUEST",
        "if broker_id != state.leader:\n    return errors.INVALID_REQUEST",
        CONTROLLER,
    ),
    Plant(
        "the high watermark is taken before the log is cut",
        "log/follower.py",
        "return (TruncateTo(end_offset),)\neffects: list[object] = []",
        "return (TakeWatermarks(row.high_watermark, row.log_start_offset), TruncateTo(end_offset))\neffects: list[object] = []",
        FOLLOWER,
    ),
    Plant(
        "a broken batch of a leader is taken",
        "log/follower.py",
        "if crc32c(data[position + ATTRIBUTES_POSITION : position + length]) != header.crc:",
        "if False:",
        FOLLOWER,
    ),
    Plant(
        "a batch that goes back is taken",
        "log/follower.py",
        "if header.base_offset < end_offset and (headers or header.end_offset <= end_offset):",
        "if False:",
        FOLLOWER,
    ),
    Plant(
        "a sync that a cut has overtaken counts",
        "log/syncing.py",
        "and log.segments is self._segments:",
        "and True:",
        LOG,
    ),
    Plant(
        "a cut is not on the device before what follows",
        "log/follower_log.py",
        "segment.file.truncate(position)\nsegment.file.sync()",
        "segment.file.truncate(position)",
        LOG,
    ),
    Plant(
        "producers of what was cut are remembered",
        "log/follower_log.py",
        "log.producers, log.snapshot_offset = replayed.states, replayed.snapshot_offset",
        "pass",
        LOG,
    ),
    Plant(
        "an aborted transaction is forgotten by followers",
        "log/follower_log.py",
        "segment.add_aborted(aborted)",
        "pass",
        LOG,
    ),
    Plant(
        "a fenced broker gets into the ISR",
        "metadata/alter_partition.py",
        "if broker is None or not broker.active or",
        "if broker is None or",
        CONTROLLER,
    ),
    Plant(
        "a broker of another life gets into the ISR",
        "metadata/alter_partition.py",
        "or epoch not in (_UNKNOWN, broker.epoch):",
        "or False:",
        CONTROLLER,
    ),
    Plant(
        "a leader that was elected uncleanly recovers for ever",
        "metadata/partition_changes.py",
        "if self.recovered and state.leader_recovery_state == RECOVERING and",
        "if False and",
        CONTROLLER,
    ),
    Plant(
        "a stranger fetches as a follower",
        "server/replication.py",
        "if not replica.knows(broker):",
        "if False:",
        HANDLERS,
    ),
    Plant(
        "a follower of an earlier life is served",
        "server/replication.py",
        "if replica.is_of_earlier_life(broker, broker_epoch):",
        "if False:",
        HANDLERS,
    ),
    Plant(
        "a follower is told of records only when they are committed",
        "server/commits.py",
        "# Followers wait for what is written, not for what is committed.\nself.broker.purgatory.touch(log)",
        "pass",
        HANDLERS,
    ),
)
