"""The cleaner's runs: how many go on at a time, what each may use, and how long a rate limit makes it pause."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from pykafkad.log import cleaner_runs
from pykafkad.log.cleaner_runs import CleanerRuns
from pykafkad.log.producers import ProducerStates
from tests.log.cleaning import compacted, drive, keyed, roll
from tests.log.settings import NOW_MS, append


def cleaner_settings(**changes):
    settings = {
        "log_cleaner_threads": 2,
        "log_cleaner_dedupe_buffer_size": 64 << 20,
        "log_cleaner_io_buffer_size": 512 * 1024,
        "log_cleaner_io_buffer_load_factor": 0.9,
        "producer_id_expiration_ms": 86_400_000,
    }
    return SimpleNamespace(**{**settings, **changes})


def dirty(directory, topic, **keywords):
    log = compacted(directory, topic=topic)
    append(log, *[keyed(("k", "x" * 100), **keywords) for _ in range(4)])
    roll(log)
    return log


def test_as_many_logs_are_cleaned_at_a_time_as_there_are_threads(directory, disk):
    runs, settings = CleanerRuns(disk), cleaner_settings()
    logs = [dirty(directory, topic) for topic in "abc"]
    first, second = (runs.begin(logs, NOW_MS, settings) for _ in range(2))
    assert (runs.begin(logs, NOW_MS, settings), runs.busy) == (None, [first.log, second.log])
    assert len({first.log, second.log}) == len(runs) == 2 and first in runs
    runs.end(first)
    assert first not in runs
    third = runs.begin(logs, NOW_MS, settings)
    assert third.log is not second.log
    runs.close()
    assert (len(runs), runs.busy) == (0, [])


def test_no_log_is_chosen_when_none_is_dirty(directory, disk):
    log = compacted(directory)
    assert CleanerRuns(disk).begin([log], NOW_MS, cleaner_settings()) is None


@pytest.mark.parametrize(("threads", "chunk_bytes"), [(1, 256 * 1024), (4, 64 * 1024), (100, 16 * 1024)])
def test_the_runs_share_the_buffers(directory, disk, monkeypatch, threads, chunk_bytes):
    """A chunk is never so small that it holds single batches only."""
    made = []
    monkeypatch.setattr(
        cleaner_runs.LogCleaner, "clean", lambda _, candidate, now_ms, io, **buffers: made.append((io, buffers))
    )
    CleanerRuns(disk).begin([dirty(directory, "t")], NOW_MS, cleaner_settings(log_cleaner_threads=threads))
    [(io, buffers)] = made
    assert io.chunk_bytes == chunk_bytes
    assert buffers == {"buffer_bytes": (64 << 20) // threads, "load_factor": 0.9}


def test_expired_producers_are_forgotten_before_a_run(directory, disk, monkeypatch):
    """So the batch that holds their last sequence number need not be kept."""
    log, expired = dirty(directory, "t"), []
    monkeypatch.setattr(
        ProducerStates, "expire", lambda _, now_ms, expiration_ms: expired.append((now_ms, expiration_ms))
    )
    CleanerRuns(disk).begin([log], NOW_MS, cleaner_settings())
    assert expired == [(NOW_MS, 86_400_000)]


def test_a_run_pauses_for_the_bytes_that_it_moved_since_the_last_pause(directory, disk):
    runs = CleanerRuns(disk)
    run = runs.begin([dirty(directory, "t")], NOW_MS, cleaner_settings())
    cleaned, _ = drive(SimpleNamespace(send=lambda answer: (setattr(run, "answer", answer), run.step())[1]))
    moved = cleaned.read_bytes + cleaned.written_bytes
    assert run.pause_seconds(1000.0) >= moved / 1000 > 0
    assert run.pause_seconds(1000.0) == 0.0


def test_without_a_rate_there_is_no_pause(directory, disk):
    run = CleanerRuns(disk).begin([dirty(directory, "t")], NOW_MS, cleaner_settings())
    run._io.moved_bytes = 1_000_000
    assert run.pause_seconds(0) == 0.0
