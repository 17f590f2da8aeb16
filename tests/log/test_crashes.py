"""Logs under random operations, faults and crashes: 500 seeds in `make test`.

`python -m tests.log.crashes --seeds 20000` runs more."""

from __future__ import annotations

import pytest

from tests.log import crashes
from tests.seeds import seed_of_the_code

SEEDS, QUICK_SEEDS = 500, 40


@pytest.mark.timeout(600)
def test_a_log_keeps_its_promises_under_random_faults_and_crashes(pytestconfig):
    """A failure names the command that repeats it."""
    seeds = QUICK_SEEDS if pytestconfig.getoption("--quick") else SEEDS
    report = crashes.run(range(first := seed_of_the_code(), first + seeds))
    assert report.failures == []
    assert report.seeds == seeds
    # Every operation must happen, or it is not tested. In a few seeds the rare ones may not.
    for name in (
        "append",
        "append_idempotent",
        "repeat",
        "retention",
        "delete_records",
        "stop",
        "kill",
        "lose_power",
        "failed",
    ):
        assert report.counts[name] > seeds / 20 or seeds == QUICK_SEEDS, (name, report.counts)
