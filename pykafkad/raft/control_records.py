"""The control records in batches of the metadata log and at the beginning of its snapshots."""

from __future__ import annotations

from pykafkad.metadata import record_codec
from pykafkad.wire import batch
from pykafkad.wire.records import iterate_records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

# The voters of a snapshot are in its first batch. What is longer is not looked for them any further.
MAX_HEAD_BYTES = 1024 * 1024


def in_batch(view: memoryview) -> Iterator[tuple[int, object]]:
    """The offset and the message of each record of a control batch. Raises `KafkaError` or `ProtocolError` for bytes
    that are none."""
    for record in iterate_records(view):
        yield record.offset, record_codec.decode(record.key or b"", record.value or b"").value


class SnapshotHead:
    """Reads the control records at the beginning of a snapshot that comes in parts. `messages` are those so far."""

    __slots__ = ("_content", "_is_whole", "messages")

    def __init__(self) -> None:
        self._content = bytearray()
        self._is_whole = False
        self.messages: list[object] = []

    def add(self, part: bytes | memoryview) -> None:
        """The next bytes. Raises `KafkaError` or `ProtocolError` for bytes that are no batches."""
        if self._is_whole:
            return
        self._content += part
        content = bytes(self._content)
        position = 0
        while not self._is_whole and len(content) - position >= batch.HEADER_SIZE_BYTES:
            header = batch.parse_header(content, position)
            end = position + header.size_bytes
            if not header.is_control or end - position > MAX_HEAD_BYTES:
                self._is_whole = True
            elif end > len(content):
                break
            else:
                view = memoryview(content)[position:end]
                batch.validate(view)
                self.messages += [message for _, message in in_batch(view)]
                position = end
        self._content = bytearray() if self._is_whole else bytearray(content[position:])
