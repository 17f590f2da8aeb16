"""One log through random operations, faults and crashes: 500 seeds in `make test`; `python -m tests.log.crashes --seeds
20000` for more."""

from __future__ import annotations

import pytest

from tests.log import crashes
from tests.seeds import seed_of_the_code

SEEDS, QUICK_SEEDS = 500, 100


@pytest.mark.timeout(600)
def test_whatever_happens_the_log_holds_what_it_promised(pytestconfig):
    """A failure says how it is repeated."""
    seeds = QUICK_SEEDS if pytestconfig.getoption("--quick") else SEEDS
    report = crashes.run(range(first := seed_of_the_code(), first + seeds))
    assert report.failures == []
    assert report.seeds == seeds
    # What never happens is not tested.
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
        assert report.counts[name] > seeds / 20, (name, report.counts)
