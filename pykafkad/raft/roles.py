"""What a replica remembers in each of its states, but for the leader's part (`leader.py`).

`state` is one of `metadata/quorum_states.py`. `deadline` is when the state's timeout ends. For an observer it ends
nothing, until it becomes a voter."""

from __future__ import annotations

from pykafkad.metadata import quorum_states as states
from pykafkad.raft.control_records import SnapshotHead

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.raft.events import Snapshot

NOBODY = -1
# No quorum comes to an epoch above this one by its elections. Whoever says so is wrong, and is not followed to the end
# of the numbers, behind which there is no election.
MAX_EPOCH = 2**30


class Unattached:
    """No leader is known. A voter asks for votes when its election timeout has passed."""

    __slots__ = ("deadline",)
    state = states.UNATTACHED

    def __init__(self, deadline: float) -> None:
        self.deadline = deadline


class Nominee:
    """The replica asks for votes: `granted` and `rejected` are the voters that have answered."""

    __slots__ = ("deadline", "granted", "rejected")
    state = states.UNATTACHED

    def __init__(self, deadline: float, granted: set[int]) -> None:
        self.deadline = deadline
        self.granted = granted
        self.rejected: set[int] = set()

    def recorded(self, voter_id: int, granted: bool) -> None:
        """A voter has answered. Its last answer counts."""
        (self.granted if granted else self.rejected).add(voter_id)
        (self.rejected if granted else self.granted).discard(voter_id)


class Prospective(Nominee):
    """It asks whether it would win a vote (pre-vote, KIP-996). Nothing durable changes by that."""

    __slots__ = ()
    state = states.PROSPECTIVE


class Candidate(Nominee):
    """It has begun an epoch, and votes for itself."""

    __slots__ = ()
    state = states.CANDIDATE


class Follower:
    """It fetches from the leader. `has_fetched` says that the leader has answered: then it is alive, and no pre-vote is
    granted. `snapshot` is the one that it fetches, which it has up to `position`; `head` is its beginning.
    From `change_at` it may tell the leader of itself, or ask to become a voter. `has_told` says that the leader of
    kraft.version 0 knows what it has to tell."""

    __slots__ = ("change_at", "deadline", "has_fetched", "has_told", "head", "leader_id", "position", "snapshot")
    state = states.FOLLOWER

    def __init__(self, leader_id: int, deadline: float) -> None:
        self.leader_id = leader_id
        self.deadline = deadline
        # A few fetches come first, as in Kafka: for so long as the leader may be silent.
        self.change_at = deadline
        self.has_told = False
        self.has_fetched = False
        self.snapshot: Snapshot | None = None
        self.position = 0
        self.head = SnapshotHead()

    def heard_of_leader(self, deadline: float) -> None:
        """The leader is alive. It may be silent until `deadline`."""
        self.has_fetched = True
        self.deadline = deadline

    def begin_snapshot(self, snapshot: Snapshot) -> None:
        """Fetch this snapshot from its beginning."""
        self.snapshot = snapshot
        self.position = 0
        self.head = SnapshotHead()


class Resigned:
    """It was the leader and is not any more. `unacknowledged` are the voters that do not know yet; `successors` are
    those that should ask for votes, the most suitable first."""

    __slots__ = ("deadline", "successors", "unacknowledged")
    state = states.RESIGNED

    def __init__(self, deadline: float, unacknowledged: list[int], successors: list[tuple[int, bytes]]) -> None:
        self.deadline = deadline
        self.unacknowledged = unacknowledged
        self.successors = successors
