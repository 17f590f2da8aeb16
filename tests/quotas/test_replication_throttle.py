"""Which replicas a throttle of replication is for, and when it is exceeded (KIP-73)."""

from __future__ import annotations

import pytest

from pykafkad.quotas.rate_sensor import SimpleRateSensor
from pykafkad.quotas.replication_throttle import MAX_TOPICS, ReplicationThrottle

NAME = "leader.replication.throttled.rate"


def throttle(rate=None):
    made = ReplicationThrottle(NAME, 2, 11, 1000)
    if rate is not None:
        made.follow({NAME: str(rate)})
    return made


@pytest.mark.parametrize(
    "replicas, partitions",
    [
        ((), []),
        (("*",), [0, 1, 2, 3]),
        (("1:2",), [1]),
        (("1:2", "2:3", "003:02"), [1, 3]),
        (("1:3",), []),
    ],
)
def test_a_topic_names_its_throttled_replicas(replicas, partitions):
    assert [index for index in range(4) if throttle().concerns("t", index, replicas)] == partitions


def test_a_list_that_changes_counts_at_once():
    made = throttle()
    assert made.concerns("t", 0, ("0:2",))
    assert not made.concerns("t", 0, ("1:2",))
    assert made.concerns("u", 0, ("0:2",))


def test_the_lists_of_so_many_topics_are_kept():
    made = throttle()
    for number in range(2 * MAX_TOPICS + 1):
        assert made.concerns(f"t{number}", 0, ("0:2",))
    assert len(made._parsed) <= MAX_TOPICS


def test_the_first_layer_with_a_rate_gives_it():
    made = throttle()
    assert not made.follow({}, {})
    assert made.follow({}, {NAME: "5"})
    made.record(6, 0.0)
    assert made.is_exceeded(1.0)
    assert made.follow({NAME: "7"}, {NAME: "5"})
    assert not made.is_exceeded(1.0)
    assert not made.follow({NAME: str(2**63 - 1)}, {NAME: "5"})
    made.record(10**12, 1.0)
    assert not made.is_exceeded(1.0)


def test_a_burst_counts_for_one_window_and_later_for_the_time_since_it():
    made = throttle(100)
    made.record(100, 0.0)
    assert not made.is_exceeded(0.0)
    made.record(200, 0.0)
    assert made.is_exceeded(1000.0)
    assert made.is_exceeded(2999.0)
    assert not made.is_exceeded(3000.0)


def test_what_lies_behind_all_windows_is_forgotten():
    made = throttle(100)
    made.record(10**9, 0.0)
    assert made.is_exceeded(10_999.0)
    assert not made.is_exceeded(11_000.0)


def test_a_rate_of_nothing_lets_nothing_more_through():
    made = throttle(0)
    assert not made.is_exceeded(0.0)
    made.record(1, 0.0)
    assert made.is_exceeded(1.0)


def test_a_simple_rate_is_over_the_time_that_has_passed():
    """A client's quota counts all windows but one from the start; a throttle counts one."""
    sensor = SimpleRateSensor(11, 1000, 100.0)
    assert sensor.most_at_once == 100
    sensor.record(1000, 0.0)
    assert sensor.throttle_ms(0.0) == 9000
    assert sensor.throttle_ms(5000.0) == 5000
