"""An outbox of several pieces leaves in order and once, however little the peer takes at a time."""

from __future__ import annotations

from pathlib import Path

import pytest

from pykafkad.disk import Disk
from pykafkad.log.file_slice import FileSlice
from pykafkad.server.sending import send_many


class Socket:
    """Takes so many bytes of each call, and then none until it is asked again."""

    def __init__(self, taken: int) -> None:
        self.taken = taken
        self.left = taken
        self.received = b""

    def send(self, data: bytes, flags: int = 0) -> int:
        if not self.left:
            raise BlockingIOError
        part = bytes(data[: self.left])
        self.left -= len(part)
        self.received += part
        return len(part)


def send_slice(socket: Socket, piece: FileSlice, size: int) -> int:
    """As the system's call: nothing where it would block."""
    try:
        return socket.send(piece.pread())
    except BlockingIOError:
        return 0


@pytest.mark.parametrize("taken", [1, 7, 100, 1000, 9_999, 100_000])
def test_everything_arrives_once_and_in_order(tmp_path: Path, taken: int) -> None:
    content = bytes(range(250)) * 80
    (tmp_path / "log").write_bytes(content)
    file = Disk().open(str(tmp_path / "log"))
    outbox = [b"a" * 10, b"b" * 20, FileSlice(file, 0, 500), b"c" * 30, FileSlice(file, 0, 20_000), b"d" * 40]
    expected = b"a" * 10 + b"b" * 20 + content[:500] + b"c" * 30 + content + b"d" * 40
    socket = Socket(taken)
    calls = 0
    while outbox:
        socket.left = taken
        send_many(socket, outbox, send_slice)
        calls += 1
        assert len(socket.received) == min(calls * taken, len(expected))
    assert socket.received == expected
