"""A follower's side of one partition: what it asks its leader, and what follows from the answer.

Pure. The follower is told where its log ends, and of each answer; it returns effects: `AppendBatches`, `TruncateTo`,
`BeginAt`, `TakeWatermarks`, `AskOffsets`, `Pause`. The rules are Kafka's (`AbstractFetcherThread` of 4.3):

* Every question names the leader epoch that the follower knows, and the epoch of its last batch. An answer to a
  question of another epoch, or from another offset, changes nothing.
* A leader whose log differs says so with the end of the last epoch that both may share (KIP-595). The follower cuts its
  log there before it takes anything else of that leader, its high watermark included.
* An offset that the leader does not have: the follower asks where the leader's log begins and ends. Behind the end it
  cuts its log, before the start it begins anew there.
* Batches are taken as they are, with their offsets and epochs. What is not whole, has a wrong checksum, goes back in
  offsets or epochs, or is of an epoch above the one that was asked with (KAFKA-18723), is refused."""

from __future__ import annotations

from collections import namedtuple

from pykafkad import errors
from pykafkad.wire.batch import (
    ATTRIBUTES_POSITION,
    HEADER_SIZE_BYTES,
    LENGTH_OVERHEAD_BYTES,
    MAGIC,
    BatchHeader,
    crc32c,
    parse_header,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    class Epochs(Protocol):
        """The leader epochs of a log (`leader_epochs.py`)."""

        @property
        def latest(self) -> int: ...

        def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]: ...

    class Answer(Protocol):
        """The row of a Fetch response."""

        error_code: int
        high_watermark: int
        log_start_offset: int

    Effects = tuple[object, ...]

UNKNOWN = -1
NOTHING: Effects = ()

Question = namedtuple("Question", ("leader_epoch", "fetch_offset", "last_fetched_epoch"))
Question.__doc__ = "What the follower asks with; the answer counts only for the same question."
AppendBatches = namedtuple("AppendBatches", ("headers", "size_bytes"))
AppendBatches.__doc__ = "Append the batches with these headers: the first `size_bytes` of the records of the answer."
TruncateTo = namedtuple("TruncateTo", ("end_offset",))
TruncateTo.__doc__ = "Cut the log: it is to end at `end_offset`."
BeginAt = namedtuple("BeginAt", ("offset",))
BeginAt.__doc__ = "Drop all records: the log is to begin and end at `offset`."
TakeWatermarks = namedtuple("TakeWatermarks", ("high_watermark", "log_start_offset"))
TakeWatermarks.__doc__ = "Follow the leader's high watermark and log start, as far as the own log goes."
AskOffsets = namedtuple("AskOffsets", ("leader_epoch",))
AskOffsets.__doc__ = "Ask the leader where its log ends, and where it begins (ListOffsets); `offsets_answered` is told."
Pause = namedtuple("Pause", ("reason", "is_usual"))
Pause.__doc__ = "Ask again after a while. `is_usual`: leader and follower have not heard of each other yet."

# The leader may not have heard of its leadership yet, or the follower not of another one.
_TRANSIENT = frozenset(
    (
        errors.NOT_LEADER_OR_FOLLOWER,
        errors.UNKNOWN_LEADER_EPOCH,
        errors.FENCED_LEADER_EPOCH,
        errors.UNKNOWN_TOPIC_OR_PARTITION,
        errors.UNKNOWN_TOPIC_ID,
        errors.INCONSISTENT_TOPIC_ID,
        errors.KAFKA_STORAGE_ERROR,
        errors.OFFSET_NOT_AVAILABLE,
    )
)


class RefusedBatches(ValueError):
    """What a leader sent can't be taken; the message says why."""


class Follower:
    """One partition in one leader epoch. `end_offset` and `epochs` are those of the own log; the shell keeps them true
    by `log_changed`. While it `asks_offsets`, the leader is asked where its log begins and ends."""

    __slots__ = ("_epochs", "asks_offsets", "end_offset", "leader_epoch")

    def __init__(self, leader_epoch: int, end_offset: int, epochs: Epochs) -> None:
        self.leader_epoch = leader_epoch
        self.end_offset = end_offset
        self._epochs = epochs
        self.asks_offsets = False

    def fits(self, end_offset: int, epochs: Epochs) -> bool:
        """Whether the own log is as it was left: it may have been loaded again, after a full disk."""
        return self.end_offset == end_offset and self._epochs is epochs

    def log_changed(self, end_offset: int) -> None:
        """The own log ends at `end_offset` now."""
        self.end_offset = end_offset

    def question(self) -> Question | None:
        """What to fetch next; None while the leader is asked where its log begins."""
        if self.asks_offsets:
            return None
        return Question(self.leader_epoch, self.end_offset, self._epochs.latest)

    def asks_again(self, asked: Question) -> bool:
        """Whether the next question is the same."""
        return (
            asked.fetch_offset == self.end_offset
            and asked.last_fetched_epoch == self._epochs.latest
            and asked.leader_epoch == self.leader_epoch
            and not self.asks_offsets
        )

    def answered(
        self, asked: Question, row: Answer, records: memoryview | bytes | None, diverging: tuple[int, int]
    ) -> Effects:
        """The leader's answer to `asked`. `diverging` is the epoch and end offset at which the logs part, (-1, -1) if
        they do not."""
        if asked != self.question():
            return NOTHING
        if row.error_code == errors.OFFSET_OUT_OF_RANGE:
            self.asks_offsets = True
            return (AskOffsets(self.leader_epoch),)
        if row.error_code != errors.NONE:
            return (_paused_by(row.error_code),)
        if diverging[0] >= 0:
            end_offset = truncation_point(self._epochs, self.end_offset, *diverging)
            return (TruncateTo(end_offset),)
        effects: list[object] = []
        if records:
            try:
                headers, size_bytes = whole_batches(records, asked, self._epochs.latest)
            except RefusedBatches as refusal:
                return (Pause(str(refusal), False),)
            if headers:
                effects.append(AppendBatches(headers, size_bytes))
        effects.append(TakeWatermarks(row.high_watermark, row.log_start_offset))
        return tuple(effects)

    def offsets_answered(self, leader_epoch: int, error_code: int, start_offset: int, end_offset: int) -> Effects:
        """The leader's log begins and ends there, or it has refused to say so."""
        if leader_epoch != self.leader_epoch or not self.asks_offsets:
            return NOTHING
        self.asks_offsets = False
        if error_code != errors.NONE:
            return (_paused_by(error_code),)
        if end_offset < self.end_offset:
            return (TruncateTo(end_offset),)
        if start_offset > self.end_offset:
            return (BeginAt(start_offset),)
        return (Pause("the leader has the offset by now", True),)


def _paused_by(error_code: int) -> Pause:
    return Pause(errors.name(error_code), error_code in _TRANSIENT)


def truncation_point(epochs: Epochs, log_end_offset: int, epoch: int, end_offset: int) -> int:
    """Where a follower cuts its log whose leader ends `epoch` at `end_offset` and has nothing of the follower's later
    epochs.

    If the follower does not know that epoch itself, it cuts at the end of the largest one below: the next answer then
    tells of an epoch further back."""
    known, known_end = epochs.end_offset_for(epoch, log_end_offset)
    if known in (UNKNOWN, epoch):
        return min(end_offset, log_end_offset, known_end if known == epoch else log_end_offset)
    return min(known_end, log_end_offset)


def whole_batches(data: memoryview | bytes, asked: Question, latest_epoch: int) -> tuple[list[BatchHeader], int]:
    """The headers of the whole batches at the start of `data`, and their size in bytes. A batch that is cut at the end
    of an answer is left out. Raises RefusedBatches."""
    headers: list[BatchHeader] = []
    position, size = 0, len(data)
    end_offset, epoch = asked.fetch_offset, latest_epoch
    while size - position >= HEADER_SIZE_BYTES:
        header = parse_header(data, position)
        length = header.length + LENGTH_OVERHEAD_BYTES
        where = f"at offset {header.base_offset}, where {end_offset} is next"
        if header.magic != MAGIC or length < HEADER_SIZE_BYTES or header.last_offset_delta < 0:
            raise RefusedBatches(f"an impossible batch {where}")
        if position + length > size:
            break
        if header.base_offset < end_offset and (headers or header.end_offset <= end_offset):
            raise RefusedBatches(f"a batch that goes back {where}")
        if crc32c(data[position + ATTRIBUTES_POSITION : position + length]) != header.crc:
            raise RefusedBatches(f"a batch with a wrong checksum {where}")
        if header.leader_epoch > asked.leader_epoch:
            # The leader was deposed, cut its log and took over another's while the answer was on its way.
            break
        if header.leader_epoch < epoch:
            raise RefusedBatches(f"a batch of epoch {header.leader_epoch} behind epoch {epoch} {where}")
        headers.append(header)
        end_offset, epoch = header.end_offset, header.leader_epoch
        position += length
    return headers, position
