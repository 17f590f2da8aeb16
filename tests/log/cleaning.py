"""Compacted logs for tests of the cleaner: building them, cleaning them in one run, and reading the rest."""

from __future__ import annotations

from pykafkad.log.cleaner import LogCleaner
from pykafkad.log.compaction import Io
from pykafkad.wire.batch import build_batch
from tests.log.settings import NOW_MS, content, open_log, topic_settings

COMPACT = frozenset(("compact",))
ROOMY = {"buffer_bytes": 128 << 20, "load_factor": 0.9}


def change_settings(log, **changes):
    """Change some settings of the log's topic."""
    log.update_settings(topic_settings(**{**vars(log.settings), **changes}))


def compacted(directory, **changes):
    return open_log(directory, **{"cleanup_policy": COMPACT, "min_cleanable_dirty_ratio": 0.0, **changes})


def keyed(*pairs, timestamp_ms=NOW_MS, **keywords):
    """A batch of (key, value), each text or None."""
    records = [tuple(None if each is None else each.encode() for each in pair) for pair in pairs]
    return memoryview(build_batch(records, timestamp_ms=timestamp_ms, **keywords))


def drive(steps):
    """Run a cleaning to its end as the broker does, with its jobs; returns its result and the number of steps."""
    answer, count = None, 0
    while True:
        try:
            job = steps.send(answer)
        except StopIteration as end:
            return end.value, count
        count += 1
        answer = None
        if job is not None:
            try:
                answer = job()
            except Exception as error:
                answer = error


def start(cleaner, log, now_ms=NOW_MS, chunk_bytes=256 * 1024, **options):
    """The steps of cleaning one log."""
    return cleaner.clean(cleaner.pick([log], now_ms), now_ms, Io(chunk_bytes), **{**ROOMY, **options})


def clean(log, cleaner=None, *, now_ms=NOW_MS, **options):
    """Pick and clean one log; returns the result, None when no log is due."""
    cleaner = cleaner or LogCleaner(log.segments[0].disk)
    if cleaner.pick([log], now_ms) is None:
        return None
    cleaned, _ = drive(start(cleaner, log, now_ms, **options))
    cleaner.note_cleaned(log, cleaned.end_offset, [log])
    return cleaned


def roll(log):
    """Seal the active segment, so that it can be cleaned."""
    log.roll(NOW_MS)


def left(log):
    """(offset, key, value) of every record of the log, as text."""
    text = lambda each: None if each is None else each.decode()  # noqa: E731 - shorter here
    return [(record.offset, text(record.key), text(record.value)) for _, records in content(log) for record in records]
