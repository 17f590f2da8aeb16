"""When a snapshot of the metadata is made, and which may go."""

from __future__ import annotations

import pytest

from pykafkad.config import Settings
from pykafkad.metadata import snapshot_policy


def settings(**values: int) -> Settings:
    return Settings.from_properties({name.replace("_", "."): (str(value), "") for name, value in values.items()})


def test_bytes_and_age_ask_for_a_snapshot() -> None:
    """Each at its setting; an interval of 0 asks for none by age."""
    bytes_between = settings(metadata_log_max_record_bytes_between_snapshots=100)
    assert [snapshot_policy.is_due(bytes_between, size) for size in (99, 100)] == [False, True]
    hourly = settings(metadata_log_max_snapshot_interval_ms=3_600_000)
    assert [snapshot_policy.is_due_by_age(hourly, age) for age in (3599.0, 3600.0)] == [False, True]
    never = settings(metadata_log_max_snapshot_interval_ms=0)
    assert not snapshot_policy.is_due_by_age(never, 1e9)
    assert [snapshot_policy.check_seconds(each) for each in (hourly, never)] == [60.0, 60.0]
    assert snapshot_policy.check_seconds(settings(metadata_log_max_snapshot_interval_ms=5000)) == 5.0


def test_a_stop_makes_one_only_where_it_spares_reading() -> None:
    """More than a snapshot itself, and more than what is read at once."""
    least = snapshot_policy.LEAST_BYTES_AT_STOP
    assert not snapshot_policy.is_worth_it_at_stop(least - 1, 0)
    assert snapshot_policy.is_worth_it_at_stop(least, least)
    assert not snapshot_policy.is_worth_it_at_stop(least, least + 1)


@pytest.mark.parametrize(
    ("retention_bytes", "retention_ms", "may_go"),
    [(-1, -1, False), (1000, -1, False), (999, -1, True), (-1, 50, False), (-1, 49, True), (0, -1, True)],
)
def test_the_oldest_goes_by_size_or_age(retention_bytes: int, retention_ms: int, may_go: bool) -> None:
    """-1 keeps everything; 1000 bytes of 50 milliseconds ago are judged."""
    limits = Settings.from_properties({})
    limits.metadata_max_retention_bytes, limits.metadata_max_retention_ms = retention_bytes, retention_ms
    assert snapshot_policy.may_go(limits, 1000, lambda: 50) is may_go
