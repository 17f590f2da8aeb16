"""The leader of an epoch: how far each voter has fetched, what is committed by that, and the fetches that wait.

A record is committed when a majority of the voters has it on disk, and a record of the leader's own epoch with it: only
then does every later leader have the records of older epochs, too (KIP-595)."""

from __future__ import annotations

from pykafkad.metadata import quorum_states as states
from pykafkad.metadata.voters import majority

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.metadata.voters import Voter
    from pykafkad.wire import messages

# A majority must fetch within this many fetch timeouts, or the leader resigns.
CHECK_QUORUM_FACTOR = 1.5
# A voter that has not fetched for this part of a fetch timeout is told again who leads.
BEGIN_QUORUM_FACTOR = 0.5
MAX_PARKED_FETCHES = 1_000

UNKNOWN = -1
_NEVER = float("-inf")


class ParkedFetch:
    """A fetch that waits for records or for a higher high watermark until `deadline`."""

    __slots__ = ("deadline", "request", "token")

    def __init__(self, token: object, request: messages.FetchRequest, deadline: float) -> None:
        self.token = token
        self.request = request
        self.deadline = deadline


class _Progress:
    """What the leader knows of another voter: the offset that it last fetched from, and when."""

    __slots__ = ("end_offset", "fetched_at")

    def __init__(self) -> None:
        self.end_offset = UNKNOWN
        self.fetched_at = _NEVER


class Leader:
    """The leader's part. `start_offset` is where its epoch begins; `has_committed` says that a record of the epoch is
    committed, so that others may be told the high watermark."""

    __slots__ = (
        "_fetch_timeout",
        "_fetched",
        "_progress",
        "begins_at",
        "check_quorum_at",
        "has_committed",
        "node_id",
        "parked",
        "start_offset",
        "voters",
    )
    state = states.LEADER
    deadline = None

    def __init__(self, node_id: int, voters: list[Voter], start_offset: int, fetch_timeout: float, now: float) -> None:
        self.node_id = node_id
        self.voters = voters
        self.start_offset = start_offset
        self.has_committed = False
        self.parked: list[ParkedFetch] = []
        self.begins_at = now
        self.check_quorum_at = now + fetch_timeout * CHECK_QUORUM_FACTOR
        self._fetch_timeout = fetch_timeout
        self._fetched: set[int] = set()
        self._progress = {voter.id: _Progress() for voter in voters if voter.id != node_id}

    def heard_of(self, voter_id: int, now: float) -> None:
        """A voter follows: it fetches records or a snapshot. With those of a majority the leader may stay."""
        progress = self._progress.get(voter_id)
        if progress is None:
            return
        progress.fetched_at = now
        self._fetched.add(voter_id)
        if len(self._fetched) >= majority(self.voters) - 1:
            self._fetched.clear()
            self.check_quorum_at = now + self._fetch_timeout * CHECK_QUORUM_FACTOR

    def fetched(self, voter_id: int, offset: int) -> bool:
        """A voter has everything before `offset` on disk, and it is as the leader has it. Whether it is a voter."""
        progress = self._progress.get(voter_id)
        if progress is None:
            return False
        progress.end_offset = offset
        return True

    def committed_offset(self, own_offset: int) -> int:
        """The offset that a majority has reached on disk, this node with `own_offset`; -1 before a record of this epoch
        is among them."""
        offsets = sorted((own_offset, *(each.end_offset for each in self._progress.values())), reverse=True)
        offset = offsets[majority(self.voters) - 1]
        return offset if offset > self.start_offset else UNKNOWN

    def must_resign(self, now: float) -> bool:
        """Whether a majority has not fetched in time. An only voter has nobody to hear of."""
        return bool(self._progress) and now >= self.check_quorum_at

    def voters_to_tell(self, now: float) -> list[int]:
        """The voters that have not fetched lately, when it is time to tell them who leads."""
        if now < self.begins_at:
            return []
        self.begins_at = now + self._fetch_timeout * BEGIN_QUORUM_FACTOR
        return [
            voter_id
            for voter_id, each in self._progress.items()
            if now - each.fetched_at >= self._fetch_timeout * BEGIN_QUORUM_FACTOR
        ]

    def successors(self) -> list[tuple[int, bytes]]:
        """The other voters, those with the longest logs first."""
        others = [voter for voter in self.voters if voter.id != self.node_id]
        others.sort(key=lambda voter: (-self._progress[voter.id].end_offset, voter.id))
        return [(voter.id, voter.directory_id) for voter in others]

    def next_deadline(self) -> float:
        """The next moment at which the leader has something to do by itself."""
        deadlines = [each.deadline for each in self.parked]
        if self._progress:
            deadlines += (self.begins_at, self.check_quorum_at)
        return min(deadlines, default=float("inf"))
