"""Bugs to plant in what the controller and the followers make of replicas, which the checks of the metadata and of who
is in sync find (`tests/simulation/metadata_checkers.py`)."""

from __future__ import annotations

from tests.planted.plant import Plant

SEEDS = ("tests/simulation/test_replication_seeds.py",)

FOUND_BY_SEEDS = (
    Plant(
        "the eligible leader replicas stay when the ISR is large enough",
        "metadata/partition_changes.py",
        "if not self._elr_kept or len(self.isr) >= self._minimum_isr:",
        "if not self._elr_kept:",
        SEEDS,
    ),
    Plant(
        "a broker that is fenced stays in the ISR",
        "metadata/registrations.py",
        "changes = yield from broker_changes_in_steps(image, settings, removed=broker_id)\n"
        "return [*in_batches([*changes, record_codec.record(change)])]",
        "changes = yield from broker_changes_in_steps(image, settings, removed=-2)\n"
        "return [*in_batches([*changes, record_codec.record(change)])]",
        SEEDS,
    ),
    Plant(
        "a broker that registers again keeps its epoch",
        "metadata/registrations.py",
        "broker_epoch=image.offset + 1 + len(records),",
        "broker_epoch=image.offset + 1 if existing is None else existing.epoch,",
        SEEDS,
    ),
    Plant(
        "a replica is elected that has not everything while another one has",
        "metadata/partition_changes.py",
        "if replica in source and self.acceptable(replica):",
        "if (replica in source or not self.isr) and self.acceptable(replica):",
        SEEDS,
    ),
)
