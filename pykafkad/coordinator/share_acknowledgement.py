"""How the members of a share group give records back: acknowledgements and the end of a member (KIP-932).

A request is accepted as a whole or not at all. Its records must be acquired by the member. Each type of acknowledgement
leads to a state; a gap is an offset without a record, and RENEW only begins the lock anew (KIP-1222)."""

from __future__ import annotations

from pykafkad import errors
from pykafkad.coordinator.share_batches import ACKNOWLEDGED, ACQUIRED, ARCHIVED, AVAILABLE
from pykafkad.coordinator.share_in_flight import NOBODY, Transition
from pykafkad.errors import KafkaError

GAP = 0
ACCEPT = 1
RELEASE = 2
REJECT = 3
RENEW = 4

STATES = {GAP: ARCHIVED, ACCEPT: ACKNOWLEDGED, RELEASE: AVAILABLE, REJECT: ARCHIVED}
"""Type of acknowledgement: the state of the records. RENEW leaves them acquired."""

NOT_FOUND = "Batch record not found. The request batch offsets are not found in the cache."
FIRST_PAST = "Batch record not found. The first offset in request is past acquired records."
LAST_PAST = "Batch record not found. The last offset in request is past acquired records."
BATCH_NOT_ACQUIRED = "The batch cannot be acknowledged. The batch is not in the acquired state."
SUBSET_NOT_ACQUIRED = "The batch cannot be acknowledged. The subset batch is not in the acquired state."
OFFSET_NOT_ACQUIRED = "The offset cannot be acknowledged. The offset is not acquired."
NOT_OWNER_OF_BATCH = "Member is not the owner of batch record"
NOT_OWNER_OF_OFFSET = "Member is not the owner of offset"
RENEWAL_DISABLED = "Renewing acquisition locks is not enabled for the group."

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pykafkad.coordinator.share_in_flight import InFlight, InFlightBatch
    from pykafkad.coordinator.share_partition import SharePartition

    Acknowledgement = tuple[int, int, list[int]]
    """First and last offset, both inclusive, and one type for all records or one for each."""


def acknowledge(
    of: SharePartition, member_id: str, acknowledgements: Iterable[Acknowledgement], now: float
) -> Transition:
    """Change the records of a request. The transition is empty if nothing is to be stored. Raises `KafkaError`, and
    changes nothing then but the locks that were renewed before the error."""
    transition = Transition()
    try:
        for first_offset, last_offset, types in acknowledgements:
            if any(each not in STATES and each != RENEW for each in types):
                text = ", ".join(map(str, types))
                raise KafkaError(errors.INVALID_REQUEST, f"Invalid acknowledge type: [{text}]")
            if last_offset >= of.start_offset:
                _acknowledge(of, transition, member_id, first_offset, last_offset, types, now)
    except KafkaError:
        of.complete(transition, False, now)
        raise
    return transition


def _acknowledge(
    of: SharePartition,
    transition: Transition,
    member_id: str,
    first_offset: int,
    last_offset: int,
    types: list[int],
    now: float,
) -> None:
    for batch in _batches(of, first_offset, last_offset):
        if batch.last_offset < of.start_offset:
            continue
        if not batch.is_split:
            owner = batch.whole.member_id
            if owner == NOBODY:
                raise _invalid(BATCH_NOT_ACQUIRED)
            if owner != member_id:
                raise _invalid(NOT_OWNER_OF_BATCH)
        is_whole = batch.is_within(first_offset, last_offset) and len(types) == 1
        starts_within = batch.first_offset < of.start_offset <= batch.last_offset
        if is_whole and not batch.is_split and not starts_within:
            if batch.whole.state != ACQUIRED:
                raise _invalid(BATCH_NOT_ACQUIRED)
            _change(of, transition, batch.whole, types[0], now)
            continue
        if not batch.is_split and batch.whole.state != ACQUIRED:
            raise _invalid(SUBSET_NOT_ACQUIRED)
        from_offset = max(first_offset, of.start_offset, batch.first_offset)
        for first, last, kind in _runs(from_offset, min(last_offset, batch.last_offset), first_offset, types):
            for piece in batch.between(first, last):
                if piece.state != ACQUIRED:
                    raise _invalid(OFFSET_NOT_ACQUIRED)
                if piece.member_id != member_id:
                    raise _invalid(NOT_OWNER_OF_OFFSET)
                _change(of, transition, piece, kind, now)


def _batches(of: SharePartition, first_offset: int, last_offset: int) -> list[InFlightBatch]:
    """The batches in flight that a range of offsets concerns."""
    floor = of.batches.floor(first_offset)
    if floor is None and first_offset < of.start_offset <= last_offset:
        floor = of.batches.floor(of.start_offset)
    if floor is None:
        raise _invalid(NOT_FOUND)
    batches = of.batches.beginning_between(floor.first_offset, last_offset)
    if batches[-1].last_offset < first_offset:
        raise KafkaError(errors.INVALID_REQUEST, FIRST_PAST)
    if batches[-1].last_offset < last_offset:
        raise KafkaError(errors.INVALID_REQUEST, LAST_PAST)
    return batches


def _runs(first_offset: int, last_offset: int, types_offset: int, types: list[int]) -> Iterator[tuple[int, int, int]]:
    """Ranges between the offsets, both inclusive, with one type each. `types` begins at `types_offset`."""
    if len(types) == 1:
        yield first_offset, last_offset, types[0]
        return
    at = first_offset
    for offset in range(first_offset, last_offset + 1):
        kind = types[offset - types_offset]
        if offset == last_offset or types[offset + 1 - types_offset] != kind:
            yield at, offset, kind
            at = offset + 1


def _change(of: SharePartition, transition: Transition, piece: InFlight, kind: int, now: float) -> None:
    if kind == RENEW:
        if not of.limits.is_renewal_enabled:
            raise _invalid(RENEWAL_DISABLED)
        piece.lock_deadline = of.lock(now)
    else:
        of.begin(transition, piece, STATES[kind])


def _invalid(text: str) -> KafkaError:
    return KafkaError(errors.INVALID_RECORD_STATE, text)


def release_member(of: SharePartition, member_id: str) -> Transition:
    """A member is gone: what it has acquired becomes available. Records before the start offset are given up."""
    transition = Transition()
    for batch in of.batches:
        if not any(piece.state == ACQUIRED and piece.member_id == member_id for piece in batch.pieces):
            continue
        if batch.first_offset < of.start_offset <= batch.last_offset:
            # The two parts have different states from now on.
            list(batch.between(of.start_offset, batch.last_offset))
        for piece in batch.pieces:
            if piece.state == ACQUIRED and piece.member_id == member_id:
                of.begin(transition, piece, ARCHIVED if piece.last_offset < of.start_offset else AVAILABLE)
    return transition
