"""One log through random operations, faults and crashes: 500 seeds on each run; `python -m tests.log.crashes --seeds 20000` for more."""

from __future__ import annotations

import secrets

import pytest

from tests.log import crashes

SEEDS = 500


@pytest.mark.timeout(600)
def test_whatever_happens_the_log_holds_what_it_promised():
    """New seeds on each run; a failure says how it is repeated."""
    report = crashes.run(range(first := secrets.randbelow(1 << 40), first + SEEDS))
    assert report.failures == []
    assert report.seeds == SEEDS
    # What never happens is not tested.
    for name in ("append", "append_idempotent", "repeat", "retention", "delete_records", "stop", "kill", "lose_power", "failed"):
        assert report.counts[name] > SEEDS / 20, (name, report.counts)
