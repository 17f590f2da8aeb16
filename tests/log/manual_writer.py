"""A writer of large batches whose thread is the test."""

from __future__ import annotations

from types import SimpleNamespace

from pykafkad.server.frame_buffers import FrameBuffers
from pykafkad.server.log_writer import LogWriter
from tests.simulation.world import ManualWrites


def end_turn(log):
    """Write what is gathered, as at the end of a turn: not what stands behind a write under way."""
    if not log.writes_under_way:
        log.write_pending()


def manual_writer(from_bytes, limit_bytes=1 << 30, told=None):
    """A writer; None if `from_bytes` is None. `told` gets each log of which a write has ended."""
    if from_bytes is None:
        return None
    written = (lambda log: None) if told is None else told.append
    writer = LogWriter(
        SimpleNamespace(wake=lambda: None),
        written,
        FrameBuffers(),
        from_bytes=from_bytes,
        limit_bytes=limit_bytes,
    )
    writer.writes = ManualWrites(writer)
    return writer
