"""Bugs to plant in transactions and idempotent producers between brokers. Each is found by the seeds that have both."""

from __future__ import annotations

from tests.planted.plant import Plant

SEEDS = ("tests/simulation/test_replication_seeds.py",)

PLANTS = FOUND_BY_SEEDS = (
    Plant(
        "a marker counts as written before it is committed",
        "server/transaction_markers.py",
        "self._broker.commits.after(log, result.last_offset + 1, committed)",
        "committed(None)",
        SEEDS,
    ),
    Plant(
        "a coordinator that moved leaves a prepared transaction as it is",
        "coordinator/transaction_shard.py",
        "if transaction.state in PREPARED:\nself.ending[transaction.transactional_id]",
        "if False:\n    self.ending[transaction.transactional_id]",
        SEEDS,
    ),
    Plant(
        "a follower knows no producers",
        "log/follower_log.py",
        "if header.producer_id >= 0:",
        "if False:",
        SEEDS,
    ),
    Plant(
        "a follower knows no open transactions",
        "log/producers.py",
        "if header.attributes & TRANSACTIONAL_BIT and entry.transaction_offset < 0:",
        "if False:",
        SEEDS,
    ),
    Plant(
        "a follower keeps no aborted transactions",
        "log/follower_log.py",
        "if aborted is not None:",
        "if False:",
        SEEDS,
    ),
    Plant(
        "a follower that cuts its log keeps the producers of what it cut",
        "log/follower_log.py",
        "_ended_at(log, end_offset)\n_replay_producers(log)",
        "_ended_at(log, end_offset)",
        SEEDS,
    ),
    Plant(
        "the markers of a transaction do not wait for its decision",
        "server/coordinator_host.py",
        "if not self.has_resigned and failure is None:\nself._host.write_markers(self, effect)\n\n"
        "self._broker.commits.after_all(self.log, committed)",
        "self._host.write_markers(self, effect)\n\ncommitted(None)",
        SEEDS,
    ),
    Plant(
        "a coordinator answers before its record is committed",
        "server/coordinator_host.py",
        'reason = failure or "the coordinator has moved"\n'
        'self.runtime.replies.abandon(effect.token, f"its answer depends on a write that failed: {reason}")\n\n'
        "self._broker.commits.after_all(self.log, then)",
        "pass\n\nthen(None)",
        SEEDS,
    ),
    Plant(
        "a marker that a partition has refused is not written again",
        "coordinator/transaction_shard.py",
        "if code in _DONE_WITHOUT_MARKER:",
        "if True:",
        SEEDS,
    ),
    Plant(
        "a client that was replaced ends the transaction of the one after it",
        "coordinator/transaction_rules.py",
        "if not is_valid:",
        "if False:",
        SEEDS,
    ),
    Plant(
        "a follower knows no sequences of producers",
        "log/producers.py",
        "entry.add(header.producer_epoch, header.base_sequence, header.last_offset, "
        "header.last_offset_delta, header.max_timestamp_ms)",
        "pass",
        SEEDS,
    ),
    Plant(
        "a group that moved forgets the offsets of open transactions",
        "coordinator/loading.py",
        "open_transactions.setdefault(header.producer_id, {})[record.key] = record",
        "pass",
        SEEDS,
    ),
)
