"""Percentiles and medians: the arithmetic behind every figure."""

from tests.bench.histogram import median, percentile_ns


def test_percentile_lies_in_the_bucket_of_its_rank():
    """Of 100 samples, 90 near 1 us and 10 near 1 ms, p50 is in the first bucket and p99 in the last."""
    buckets = [[1000, 16, 90], [1_000_000, 16384, 10]]
    assert 1000 <= percentile_ns(buckets, 0.5) <= 1016
    assert 1_000_000 <= percentile_ns(buckets, 0.99) <= 1_016_384


def test_percentile_interpolates_inside_a_bucket():
    """Half of one bucket's samples lie below its middle."""
    assert percentile_ns([[100, 10, 4]], 0.5) == 105
    assert percentile_ns([[100, 10, 4]], 1.0) == 110


def test_a_percentile_without_samples_is_unknown():
    """A run without samples has no latency, not a latency of zero."""
    assert percentile_ns([], 0.5) is None


def test_the_median_ignores_unknown_figures():
    """Rounds that lack a figure do not count as zero."""
    assert median([3, None, 1, 2]) == 2
    assert median([1, 2]) == 1.5
    assert median([None]) is None
