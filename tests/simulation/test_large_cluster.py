"""Many brokers with many partitions, in virtual time: what they send to each other grows as in Kafka's design."""

import pytest

from tests.simulation.large_cluster import figures


def check(rows, *, failover_seconds, healing_seconds):
    """What is sent stays near to Kafka's design, and nobody waits for long."""
    seconds = {what: row[0] for what, *row in rows}
    assert seconds["failover"] < failover_seconds and seconds["healing"] < healing_seconds
    for what, _, count, size, messages, size_bytes in rows:
        assert count <= 1.2 * messages, (what, count, messages)
        assert size <= 1.5 * size_bytes, (what, size, size_bytes)


@pytest.mark.long
def test_ten_brokers_of_a_thousand_partitions():
    """A broker's session of three seconds ends, and others lead half a second later."""
    check(figures(10, 1000), failover_seconds=4.0, healing_seconds=2.0)
