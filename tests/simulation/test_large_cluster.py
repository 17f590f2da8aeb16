"""Many brokers with many partitions, in virtual time: what they send to each other grows as in Kafka's design.

`python -m tests.simulation.large_cluster` prints the figures, of more brokers and partitions as well."""

import pytest

from tests.simulation.large_cluster import Figures, figures


@pytest.mark.long
def test_thirty_brokers_of_three_thousand_partitions():
    rows = list(figures(30, 3000))
    assert [row.what for row in rows] == ["creation", "idle", "failover", "healing"]
    assert [row.excess() for row in rows] == [None] * 4


@pytest.mark.parametrize(
    "row",
    [
        Figures("idle", 4.0, 121, 100, 100, 100, 1),
        Figures("healing", 1.0, 100, 151, 100, 100, 1),
        Figures("failover", 5.1, 100, 100, 100, 100, 1),
    ],
)
def test_what_is_beyond_the_limits_is_told(row):
    assert row.what in row.excess()
    assert row._replace(seconds=1.0, messages=120, bytes=150).excess() is None
