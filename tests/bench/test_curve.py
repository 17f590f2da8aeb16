"""The arithmetic of the curve: sizes, places, the table. Measuring a broker is not tested here."""

from __future__ import annotations

import argparse
import itertools
from types import SimpleNamespace

import pytest

from tests.bench import curve, wire_bytes
from tests.bench.request_loads import encoded_batch


def figures(us: float) -> dict:
    return {name: {"p50_us": us, "p99_us": us, "requests_per_s": 1.0} for name in curve.MEASURES}


def test_sizes_grow_threefold_and_end_with_the_limit():
    assert curve.sizes_up_to(curve.size_of("10MB")) == [10 * curve.MB]
    assert curve.sizes_up_to(curve.size_of("200MB")) == [each * curve.MB for each in (10, 30, 90, 200)]
    sizes = curve.sizes_up_to(curve.size_of("20GB"))
    assert sizes[-1] == 20_000 * curve.MB and len(sizes) == 8
    assert all(1.5 < after / before <= 4.5 for before, after in itertools.pairwise(sizes))


@pytest.mark.parametrize("text", ["", "5MB", "20", "20TB", "1.5GB", "-20GB"])
def test_an_invalid_size_is_refused(text):
    with pytest.raises(argparse.ArgumentTypeError, match="200MB"):
        curve.size_of(text)


def test_old_places_are_first_offsets_of_large_batches(monkeypatch, tmp_path):
    """The fetch template asks at such offsets of a mixed log. The look-up by time stays within the time of the fill."""
    log = object.__new__(curve.Log)
    log.broker, log.topic, log.topic_id = SimpleNamespace(port=0), "t", bytes(16)
    log.bench = SimpleNamespace(scratch=tmp_path, options=SimpleNamespace(produce_version=7, seconds=0.1))
    log.regions, log.end_offset, log.size_bytes, log.chance = [], 0, 0, curve.random.Random(1)
    monkeypatch.setattr(curve.loadgen, "run", lambda *_, **__: figures(1.0)["head"])
    asked = []
    log._ask = lambda templates: asked.append(templates) or figures(1.0)["head"]
    log.grow(3 * curve.MB)
    log.measure()
    log.grow(9 * curve.MB)
    assert log.size_bytes <= 9 * curve.MB < log.size_bytes + curve.FILL_BATCH_BYTES
    log.measure()
    each = wire_bytes.record_count(encoded_batch(curve.FILL_BATCH_BYTES))
    small = wire_bytes.record_count(encoded_batch(curve.PRODUCED_BATCH_BYTES))
    first, second = log.regions[0].batches * each, log.regions[0].batches * each + curve.PRODUCED_BATCHES * small
    (head,), old, times = asked[-3:]
    assert head.value == log.end_offset - small
    assert len(old) == len(times) == curve.PLACES
    for template in old:
        at = template.value
        assert (at < first and at % each == 0) or (second <= at and (at - second) % each == 0)
    assert {at.value < first for at in old} == {True, False}


def test_flatness_is_the_ratio_of_the_extreme_medians():
    points = [(10 * curve.MB, figures(50.0)), (100 * curve.MB, figures(60.0))]
    assert curve.spread(points, "old") == 1.2
    assert curve.markdown_of({"pykafkad": points}).splitlines()[-1].startswith("| pykafkad | 100 MB | 60 µs |")
    assert curve.table_of("pykafkad", points).row_count == 3
