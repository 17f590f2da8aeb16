"""Percentiles of the generator's latency buckets, and the medians of several rounds."""

from __future__ import annotations


def percentile_ns(buckets, fraction):
    """The latency (ns) below which `fraction` (0..1) of the samples lie, or None without samples.

    `buckets` is an ascending list of `[lowest_ns, width_ns, count]`; inside its bucket a percentile is interpolated.
    """
    total = sum(count for _, _, count in buckets)
    if not total:
        return None
    rank = fraction * total
    seen = 0
    for lowest_ns, width_ns, count in buckets:
        if seen + count >= rank:
            return lowest_ns + width_ns * (rank - seen) / count
        seen += count
    lowest_ns, width_ns, _ = buckets[-1]
    return lowest_ns + width_ns


def median(values):
    """The median of the values that are not None, or None when there are none."""
    known = sorted(value for value in values if value is not None)
    if not known:
        return None
    middle = len(known) // 2
    return known[middle] if len(known) % 2 else (known[middle - 1] + known[middle]) / 2
