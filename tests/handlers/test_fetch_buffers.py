"""Fetch's fast path: which answers leave in one buffer."""

from types import SimpleNamespace

import pytest

from pykafkad.server.fetch_fast_path import JOINED_UP_TO_BYTES
from tests.handlers.requests import fetch
from tests.handlers.test_fetch import fill


@pytest.mark.parametrize("version", [11, 12])
def test_few_records_leave_with_their_answer_in_one_buffer(world, version):
    """More records, or an answer behind another one, stay a slice of the file, which holds no memory."""
    world.create_topic("topic")
    fill(world, "topic", count=3, size=JOINED_UP_TO_BYTES // 2)
    peer = world.connect()
    (serve,) = {serve for word, serve in world.broker.fast_paths.items() if word == 1 << 16 | version}
    outbox = []

    def chunks(max_bytes):
        """How many chunks the answer adds to the outbox."""
        frame = peer.encode(fetch("topic", {0: 0}, partition_max_bytes=max_bytes), version)
        before = len(outbox)
        assert serve(SimpleNamespace(outbox=outbox), memoryview(frame), 4, len(frame), version, 1)
        return len(outbox) - before

    in_parts = 3 if version >= 12 else 2
    assert chunks(2 * JOINED_UP_TO_BYTES) == in_parts
    assert chunks(JOINED_UP_TO_BYTES) == in_parts
    sliced = b"".join(chunk if isinstance(chunk, bytes) else chunk.pread() for chunk in outbox[in_parts:])
    outbox.clear()
    assert chunks(JOINED_UP_TO_BYTES) == 1
    assert outbox == [sliced]
