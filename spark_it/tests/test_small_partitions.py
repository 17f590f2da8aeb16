"""The measurement on a few partitions: it fills, counts and refuses a wrong count."""

from __future__ import annotations

import pytest

from spark_it import small_partitions
from spark_it.tests.topics import Topics


def test_counts_what_it_filled(spark: object, bootstrap: str, topics: Topics) -> None:
    """All records of all partitions are counted; the result is a time in seconds."""
    topic = topics.name()
    small_partitions.fill(bootstrap, topic, records=100, partitions=5)
    assert [record.partition for record in topics.read(topic)] == [number for number in range(5) for _ in range(20)]
    assert 0 < small_partitions.measure(bootstrap, topic, expected=100) < 300
    with pytest.raises(ValueError, match="counted 100 records"):
        small_partitions.measure(bootstrap, topic, expected=101)
