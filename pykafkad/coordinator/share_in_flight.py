"""The records of a share partition that are in flight, as ranges (KIP-932).

An `InFlightBatch` is what was acquired together. It is one `InFlight` range as long as all its records have the same
state, and is split only where they differ. A change that must first be stored is a `Transition`: its ranges have their
new state already, keep the one before it, and take part in nothing until the change is stored or taken back."""

from __future__ import annotations

from bisect import bisect_right

from pykafkad.coordinator.share_batches import ACQUIRED, ARCHIVED, AVAILABLE, TERMINAL, StateBatch

NEVER = float("inf")
NOBODY = ""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


class InFlight:
    """The records from `first_offset` to `last_offset`, both inclusive. `member_id` has acquired them until the
    monotonic second `lock_deadline`. `previous` is `(state, member_id)` from before `transition`."""

    __slots__ = (
        "delivery_count",
        "first_offset",
        "is_archived",
        "last_offset",
        "lock_deadline",
        "member_id",
        "previous",
        "state",
        "transition",
    )

    def __init__(
        self,
        first_offset: int,
        last_offset: int,
        state: int,
        delivery_count: int,
        member_id: str = NOBODY,
        lock_deadline: float = NEVER,
    ) -> None:
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.state = state
        self.delivery_count = delivery_count
        self.member_id = member_id
        self.lock_deadline = lock_deadline
        self.transition: Transition | None = None
        self.previous: tuple[int, str] = (AVAILABLE, NOBODY)
        self.is_archived = False

    def __repr__(self) -> str:
        moving = " moving" if self.transition is not None else ""
        return (
            f"InFlight({self.first_offset}-{self.last_offset}, state={self.state}, count={self.delivery_count}, "
            f"member={self.member_id!r}{moving})"
        )

    def __len__(self) -> int:
        return self.last_offset - self.first_offset + 1

    @property
    def is_available(self) -> bool:
        """Whether a member may acquire the records."""
        return self.state == AVAILABLE and self.transition is None

    @property
    def is_done(self) -> bool:
        """Whether the records are never delivered again, and that is stored."""
        return self.state in TERMINAL and self.transition is None

    def acquire(self, member_id: str, lock_deadline: float) -> None:
        """Give the records to a member once more."""
        self.state = ACQUIRED
        self.delivery_count += 1
        self.member_id = member_id
        self.lock_deadline = lock_deadline

    def release(self, start_offset: int, max_delivery_count: int) -> None:
        """Take the records from their member. Those that were delivered often enough are given up."""
        self.state = self._state_after(AVAILABLE, max_delivery_count)
        if self.last_offset < start_offset:
            self.state = ARCHIVED
        self.member_id = NOBODY
        self.lock_deadline = NEVER

    def begin(self, transition: Transition, state: int, max_delivery_count: int) -> None:
        """Change the state as a part of `transition`."""
        self.previous = self.state, self.member_id
        self.state = self._state_after(state, max_delivery_count)
        self.member_id = NOBODY
        self.transition = transition
        transition.pieces.append(self)

    def _state_after(self, state: int, max_delivery_count: int) -> int:
        return ARCHIVED if state == AVAILABLE and self.delivery_count >= max_delivery_count else state

    def archive(self) -> None:
        """Give the records up, whatever becomes of a transition that is under way."""
        self.is_archived = True
        self.state = ARCHIVED
        self.member_id = NOBODY
        self.lock_deadline = NEVER

    def complete(self, is_stored: bool, max_delivery_count: int, now: float) -> None:
        """End the transition: keep the new state, or go back to the one before. A lock that ran out meanwhile is
        released."""
        self.transition = None
        if is_stored or self.is_archived:
            self.lock_deadline = NEVER
            return
        if self.lock_deadline <= now:
            self.state = self._state_after(AVAILABLE, max_delivery_count)
            self.member_id = NOBODY
            self.lock_deadline = NEVER
        else:
            self.state, self.member_id = self.previous

    def split(self, last_offset: int) -> InFlight:
        """End this range at `last_offset`; the rest is a range of its own with the same state."""
        rest = InFlight(
            last_offset + 1, self.last_offset, self.state, self.delivery_count, self.member_id, self.lock_deadline
        )
        rest.previous = self.previous
        rest.is_archived = self.is_archived
        if self.transition is not None:
            rest.transition = self.transition
            self.transition.pieces.append(rest)
        self.last_offset = last_offset
        return rest

    def is_like(self, other: InFlight) -> bool:
        """Whether both ranges have the same state, so that they can be one."""
        return (
            self.transition is None is other.transition
            and self.state == other.state
            and self.delivery_count == other.delivery_count
            and self.member_id == other.member_id
            and self.lock_deadline == other.lock_deadline
        )


class Transition:
    """A change of several ranges that is stored as one, or not at all."""

    __slots__ = ("pieces",)

    def __init__(self) -> None:
        self.pieces: list[InFlight] = []

    def batches(self) -> list[StateBatch]:
        """What is to be stored. Neighbours with the same state are one batch."""
        result: list[StateBatch] = []
        for piece in self.pieces:
            append_batch(result, piece)
        return result


def append_batch(result: list[StateBatch], piece: InFlight) -> None:
    """Add a range to what is to be stored."""
    batch = StateBatch(piece.first_offset, piece.last_offset, piece.state, piece.delivery_count)
    if result and result[-1].last_offset + 1 == batch.first_offset and result[-1].rank == batch.rank:
        batch = batch._replace(first_offset=result.pop().first_offset)
    result.append(batch)


class InFlightBatch:
    """Records that were acquired together, or loaded as one range. `is_split` says that their states are kept apart,
    even if they are the same again."""

    __slots__ = ("first_offset", "is_split", "last_offset", "pieces")

    def __init__(self, piece: InFlight) -> None:
        self.first_offset = piece.first_offset
        self.last_offset = piece.last_offset
        self.pieces = [piece]
        self.is_split = False

    def __repr__(self) -> str:
        return f"InFlightBatch({self.pieces!r}{', split' if self.is_split else ''})"

    def __len__(self) -> int:
        return self.last_offset - self.first_offset + 1

    @property
    def whole(self) -> InFlight:
        """The only range of a batch that is not split."""
        return self.pieces[0]

    def is_within(self, first_offset: int, last_offset: int) -> bool:
        """Whether all its records lie between the two offsets, both inclusive."""
        return self.first_offset >= first_offset and self.last_offset <= last_offset

    def between(self, first_offset: int, last_offset: int) -> Iterator[InFlight]:
        """The ranges between the two offsets, both inclusive, cut off at them. The consumer may cut a range further
        while it has it."""
        self.is_split = True
        index = 0
        while index < len(self.pieces):
            piece = self.pieces[index]
            if piece.first_offset > last_offset:
                return
            if piece.last_offset >= first_offset:
                if piece.first_offset < first_offset:
                    self.pieces.insert(index + 1, piece.split(first_offset - 1))
                    index += 1
                    piece = self.pieces[index]
                if piece.last_offset > last_offset:
                    self.cut(piece, last_offset)
                yield piece
            index += 1

    def cut(self, piece: InFlight, last_offset: int) -> None:
        """End a range of the batch at `last_offset`, and keep the rest as the next one."""
        self.pieces.insert(self.pieces.index(piece) + 1, piece.split(last_offset))

    def coalesce(self) -> None:
        """Make neighbours one range where they have the same state."""
        pieces = self.pieces
        kept = [pieces[0]]
        for piece in pieces[1:]:
            if kept[-1].is_like(piece):
                kept[-1].last_offset = piece.last_offset
            else:
                kept.append(piece)
        self.pieces = kept


class InFlightBatches:
    """The batches of a share partition in the order of their offsets. They do not overlap, and may have gaps between
    them."""

    __slots__ = ("items",)

    def __init__(self) -> None:
        self.items: list[InFlightBatch] = []

    def __bool__(self) -> bool:
        return bool(self.items)

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[InFlightBatch]:
        return iter(self.items)

    def index_after(self, offset: int) -> int:
        """The index of the first batch that begins after `offset`."""
        return bisect_right(self.items, offset, key=_first_offset)

    def floor(self, offset: int) -> InFlightBatch | None:
        """The last batch that begins at or before `offset`, or None."""
        index = self.index_after(offset)
        return self.items[index - 1] if index else None

    def beginning_between(self, first_offset: int, last_offset: int) -> list[InFlightBatch]:
        """The batches whose first offsets lie between the two, both inclusive."""
        return self.items[self.index_after(first_offset - 1) : self.index_after(last_offset)]

    def add(self, batch: InFlightBatch) -> None:
        """Add a batch where no other is."""
        self.items.insert(self.index_after(batch.first_offset), batch)


def _first_offset(batch: InFlightBatch) -> int:
    return batch.first_offset
