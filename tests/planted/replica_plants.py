"""Bugs to plant in `pykafkad/log/replica.py`."""

from __future__ import annotations

from tests.planted.plant import Plant

REPLICA = ("tests/log/test_replica.py",)

PLANTS = (
    Plant(
        "a follower that is proposed for the ISR does not hold the high watermark back",
        "log/replica.py",
        "return self.isr if self._proposed is None else tuple(dict.fromkeys((*self.isr, *self._proposed)))",
        "return self.isr",
        REPLICA,
    ),
    Plant(
        "a follower joins the ISR below the start of the leader's epoch",
        "log/replica.py",
        "and offset >= self.epoch_start_offset",
        "",
        REPLICA,
    ),
    Plant(
        "a broker of an earlier life joins the ISR",
        "log/replica.py",
        "and follower.broker_epoch in (UNKNOWN, alive_epoch)",
        "",
        REPLICA,
    ),
    Plant(
        "two proposals of an ISR are under way",
        "log/replica.py",
        "broker not in self.isr\nand self._proposed is None",
        "broker not in self.isr",
        REPLICA,
    ),
    Plant(
        "a fetch of another epoch counts",
        "log/replica.py",
        "or leader_epoch != self.leader_epoch",
        "",
        REPLICA,
    ),
    Plant(
        "what is written counts before it is synced",
        "log/replica.py",
        "if is_durable:",
        "if True:",
        REPLICA,
    ),
    Plant(
        "a follower's high watermark passes its end",
        "log/replica.py",
        "self._rise(min(high_watermark, self.end_offset))",
        "self._rise(high_watermark)",
        REPLICA,
    ),
    Plant(
        "a log that is cut keeps its high watermark",
        "log/replica.py",
        "self.high_watermark = min(self.high_watermark, end_offset)\n\n# -- the rules",
        "pass\n\n# -- the rules",
        REPLICA,
    ),
    Plant(
        "a follower that was at the end at its last fetch counts as lagging",
        "log/replica.py",
        "self.caught_up_at = max(self.caught_up_at, self.fetched_at)",
        "pass",
        REPLICA,
    ),
    Plant(
        "an older state of the partition is taken over",
        "log/replica.py",
        "if (state.leader_epoch, state.partition_epoch) < (self.leader_epoch, self.partition_epoch):\n    return NOTHING",
        "",
        REPLICA,
    ),
    Plant(
        "records are committed below min.insync.replicas",
        "log/replica.py",
        "if not self.has_min_isr:\n    return NOTHING",
        "",
        REPLICA,
    ),
    Plant(
        "a topic of few replicas needs more in sync than it has",
        "log/replica.py",
        "len(self.isr) >= min(self._min_insync_replicas, self._replica_count)",
        "len(self.isr) >= self._min_insync_replicas",
        REPLICA,
    ),
    Plant(
        "a leader that a follower is about to join commits alone",
        "log/replica.py",
        "and not any(follower.end_offset != UNKNOWN for follower in self._followers.values())",
        "",
        REPLICA,
    ),
    Plant(
        "a refused proposal is never made again",
        "log/replica.py",
        "if self._proposed == proposal.isr and self.partition_epoch == proposal.partition_epoch:\n    self._proposed = None",
        "if False:\n    pass",
        REPLICA,
    ),
)
