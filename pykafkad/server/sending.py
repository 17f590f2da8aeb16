"""An outbox of several pieces onto a socket: buffers joined into one send, slices of files straight from the file where
the system does that."""

from __future__ import annotations

import socket

from pykafkad.server.connection import SCRATCH_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pykafkad.log.file_slice import FileSlice
    from pykafkad.server.connection import Chunk

    SendSlice = Callable[[socket.socket, FileSlice, int], int]

_MORE = getattr(socket, "MSG_MORE", 0)
"""Tells the system that more follows at once, where it can be told."""

_SMALL_SLICE_BYTES = 8 * 1024
"""File slices up to this size are read and joined with the header: one send is cheaper than send and sendfile."""

_SLICES_PER_FLUSH_BYTES = 4 * 1024 * 1024
"""A connection gets at most this much of a turn's writing, so that a large fetch does not starve the others."""


def send_many(sock: socket.socket, outbox: list[Chunk], send_slice: SendSlice) -> int:
    """Send buffers joined, and file slices by `send_slice(socket, slice, bytes)`, until the peer's window or the turn's
    share is full.

    What has left is taken from `outbox`. Returns how many bytes left as slices. Raises BlockingIOError or OSError as
    the socket does, StorageFailure for a slice that can't be read, and LogCut (an OSError) for one that was cut off."""
    share = _SLICES_PER_FLUSH_BYTES
    index = 0
    try:
        while index < len(outbox) and share > 0:
            chunk: Any = outbox[index]
            size = getattr(chunk, "chunk_size", None)
            if size is None or size <= _SMALL_SLICE_BYTES:
                index = _send_joined(sock, outbox, index)
                if index < 0:
                    index = -index - 1
                    break
                continue
            sent = send_slice(sock, chunk, size)
            share -= sent
            if sent < size:
                # The peer's window is full: another call would only say so.
                outbox[index] = chunk.after(sent)
                break
            index += 1
    finally:
        del outbox[:index]
    return _SLICES_PER_FLUSH_BYTES - share


def _send_joined(sock: socket.socket, outbox: list[Chunk], index: int) -> int:
    """Send a run of buffers and small slices in one call; returns the next index, or -index-1 if it blocked there."""
    last = index
    pieces: list[bytes | bytearray | memoryview] = []
    total = 0
    while last < len(outbox) and total < SCRATCH_BYTES:
        chunk: Any = outbox[last]
        size = getattr(chunk, "chunk_size", None)
        if size is None:
            pieces.append(chunk)
            total += len(chunk)
        elif size <= _SMALL_SLICE_BYTES:
            data = outbox[last] = chunk.pread()
            pieces.append(data)
            total += len(data)
        else:
            break
        last += 1
    more = _MORE if last < len(outbox) else 0
    joined = pieces[0] if len(pieces) == 1 else b"".join(pieces)
    try:
        sent = sock.send(joined, more)
    except BlockingIOError:
        return -index - 1
    if sent == total:
        return last
    outbox[last - 1] = memoryview(joined)[sent:]
    return -(last - 1) - 1
