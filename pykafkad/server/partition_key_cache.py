"""The bytes from a topic count to a partition index, which Produce and Fetch repeat in their answers.

In a request for one topic and one partition these bytes name the log, and the answer begins with the same bytes. So the
fast paths (`produce_fast_path.py`, `fetch_fast_path.py`) find the log by them and send them back as they came."""

from __future__ import annotations

from struct import Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from pykafkad.log.partition_log import PartitionLog
    from pykafkad.server.partitions import Partitions

# How the topic stands between the counts: a string, a compact string, an id.
NAME, COMPACT_NAME, ID = range(3)

_COUNT_AND_INDEX = Struct(">ii")
_MAX_REMEMBERED = 20_000


class PartitionKeyCache:
    """Remembers which log the bytes of a key name, until told to forget."""

    __slots__ = ("_accepts", "_partitions", "logs")

    def __init__(self, partitions: Callable[[], Partitions], accepts: Callable[[PartitionLog], bool]) -> None:
        """`partitions()` gives the logs of this broker; `accepts(log)` whether a log may be used without further
        checks."""
        self._partitions = partitions
        self._accepts = accepts
        self.logs: dict[bytes, PartitionLog] = {}
        """What is remembered; `log` looks it up and finds the rest."""

    def forget(self) -> None:
        """Topics, leaders or settings changed."""
        self.logs.clear()

    def log(self, key: bytes, form: int) -> PartitionLog | None:
        """The log that `key` names; None if it is not of one partition, not here, or not accepted."""
        log = self.logs.get(key)
        if log is None:
            log = self._look_up(key, form)
            if log is None or not self._accepts(log):
                return None
            if len(self.logs) >= _MAX_REMEMBERED:
                self.logs.clear()
            self.logs[key] = log
        return log

    def _look_up(self, key: bytes, form: int) -> PartitionLog | None:
        if form == NAME:
            count, index = _COUNT_AND_INDEX.unpack_from(key, len(key) - 8)
            return self._partitions().get(key[6:-8].decode("utf-8", "replace"), index) if count == 1 else None
        index = int.from_bytes(key[-4:], "big", signed=True)
        # A compact count of one is 2.
        if key[-5] != 2:
            return None
        if form == ID:
            return self._partitions().get_by_id(key[1:17], index)
        return self._partitions().get(key[2:-5].decode("utf-8", "replace"), index)


def end_of_partition_key(view: memoryview, start: int, form: int) -> int:
    """Where a key of one topic that starts at `start` (with the topic count) ends; -1 for a name that is none.

    Reads beyond the frame raise IndexError or struct.error, or give a position that the caller finds to be beyond its
    end."""
    if form == ID:
        return start + 22
    if form == COMPACT_NAME:
        # One length byte: topic names have at most 249 characters, longer than 126 ones take the general path.
        length = view[start + 1]
        return start + length + 6 if 1 < length < 128 else -1
    length = view[start + 4] << 8 | view[start + 5]
    return start + 14 + length if length < 0x8000 else -1
