"""The leader of an epoch: how far each voter has fetched, what is committed by that, and the fetches that wait.

A record is committed when a majority of the voters has it on disk, and a record of the leader's own epoch with it: only
then does every later leader have the records of older epochs, too (KIP-595).

The voters are those of the newest set in the log. A leader that has removed itself counts the others alone."""

from __future__ import annotations

from pykafkad.metadata import quorum_states as states
from pykafkad.metadata.voters import majority
from pykafkad.uuids import ZERO

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.metadata.voters import Voter
    from pykafkad.raft.voter_changes import PendingChange
    from pykafkad.wire import messages

# A majority must fetch within this many fetch timeouts, or the leader resigns.
CHECK_QUORUM_FACTOR = 1.5
# A voter that has not fetched for this part of a fetch timeout is told again who leads.
BEGIN_QUORUM_FACTOR = 0.5
MAX_PARKED_FETCHES = 1_000
# So many observers are known at a time. One that has not fetched for so many seconds is forgotten.
MAX_OBSERVERS = 1_000
OBSERVER_SESSION = 300.0
# Who has not fetched for so many seconds has not caught up, however near it was.
CAUGHT_UP_SESSION = 3600.0

UNKNOWN = -1
NEVER = float("-inf")


class ParkedFetch:
    """A fetch that waits for records or for a higher high watermark until `deadline`."""

    __slots__ = ("deadline", "request", "token")

    def __init__(self, token: object, request: messages.FetchRequest, deadline: float) -> None:
        self.token = token
        self.request = request
        self.deadline = deadline


class Progress:
    """What the leader knows of another replica: the offset that it last fetched from, when that was, and when it last
    had all that the leader had then."""

    __slots__ = ("_own_end_offset", "caught_up_at", "directory_id", "end_offset", "fetched_at")

    def __init__(self, directory_id: bytes) -> None:
        self.directory_id = directory_id
        self.end_offset = UNKNOWN
        self.fetched_at = self.caught_up_at = NEVER
        self._own_end_offset = 0

    def fetched(self, offset: int, own_end_offset: int, now: float) -> None:
        """It has everything before `offset`, where the leader has everything before `own_end_offset`."""
        if offset >= own_end_offset:
            self.caught_up_at = now
        elif 0 < self._own_end_offset <= offset:
            self.caught_up_at = max(self.caught_up_at, self.fetched_at)
        self._own_end_offset = own_end_offset
        self.end_offset = offset
        self.fetched_at = now

    def is_caught_up(self, now: float) -> bool:
        """Whether it has had everything once, and has fetched within an hour: what Kafka asks of a new voter."""
        return self.caught_up_at > NEVER and self.fetched_at > now - CAUGHT_UP_SESSION


class Leader:
    """The leader's part. `start_offset` is where its epoch begins; `has_committed` says that a record of the epoch is
    committed, so that others may be told the high watermark. `progress` is that of the other voters by id. `observers`
    are all others that fetch, by id and directory id. `change` is the change of the voters that is under way.
    `known_voters` are the voters of kraft.version 0 with what they have told of themselves."""

    __slots__ = (
        "_fetch_timeout",
        "_fetched",
        "begins_at",
        "change",
        "check_quorum_at",
        "has_committed",
        "key",
        "known_voters",
        "observers",
        "parked",
        "progress",
        "start_offset",
        "voters",
    )
    state = states.LEADER
    deadline = None

    def __init__(
        self, key: tuple[int, bytes], voters: list[Voter], start_offset: int, fetch_timeout: float, now: float
    ) -> None:
        self.key = key
        self.start_offset = start_offset
        self.has_committed = False
        self.parked: list[ParkedFetch] = []
        self.begins_at = now
        self.change: PendingChange | None = None
        self.known_voters: list[Voter] = []
        self._fetch_timeout = fetch_timeout
        self._fetched: set[int] = set()
        self.progress: dict[int, Progress] = {}
        self.observers: dict[tuple[int, bytes], Progress] = {}
        self.set_voters(voters, now)

    def set_voters(self, voters: list[Voter], now: float) -> None:
        """Another set of voters counts. What is known of a replica stays known when it becomes a voter, or is one no
        more."""
        if not self.progress:
            # There was nobody to hear of until now.
            self.check_quorum_at = now + self._fetch_timeout * CHECK_QUORUM_FACTOR
        before, self.progress = self.progress, {}
        self.voters = voters
        for voter in voters:
            if voter.id == self.key[0]:
                continue
            known = before.get(voter.id)
            if known is not None and known.directory_id in (ZERO, voter.directory_id):
                del before[voter.id]
            else:
                known = self.observers.pop(voter.key, None) or Progress(voter.directory_id)
            known.directory_id = voter.directory_id
            self.progress[voter.id] = known
        for voter_id, known in before.items():
            self.observers[voter_id, known.directory_id] = known
        self._fetched.intersection_update(self.progress)

    @property
    def is_voter(self) -> bool:
        """Whether the leader is one of the voters: not any more when it has removed itself."""
        return any(voter.id == self.key[0] for voter in self.voters)

    def progress_of(self, key: tuple[int, bytes]) -> Progress | None:
        """What is known of a replica."""
        known = self.progress.get(key[0])
        return known if known is not None and known.directory_id in (ZERO, key[1]) else self.observers.get(key)

    def heard_of(self, key: tuple[int, bytes], now: float) -> None:
        """A replica follows: it fetches records or a snapshot. With those of a majority the leader may stay."""
        known = self.progress.get(key[0])
        if known is None or known.directory_id not in (ZERO, key[1]):
            return
        self._fetched.add(key[0])
        if len(self._fetched) >= majority(self.voters) - self.is_voter:
            self._fetched.clear()
            self.check_quorum_at = now + self._fetch_timeout * CHECK_QUORUM_FACTOR

    def fetched(self, key: tuple[int, bytes], offset: int, own_end_offset: int, now: float) -> None:
        """A replica has everything before `offset` on disk, and it is as the leader has it."""
        known = self.progress_of(key) or self._new_observer(key, now)
        if known is not None:
            known.fetched(offset, own_end_offset, now)
            self.heard_of(key, now)

    def _new_observer(self, key: tuple[int, bytes], now: float) -> Progress | None:
        if len(self.observers) >= MAX_OBSERVERS:
            self.forget_observers(now)
        if len(self.observers) >= MAX_OBSERVERS:
            return None
        known = self.observers[key] = Progress(key[1])
        return known

    def forget_observers(self, now: float) -> None:
        """Forget those that have not fetched for long."""
        gone = [key for key, known in self.observers.items() if now - known.fetched_at >= OBSERVER_SESSION]
        for key in gone:
            del self.observers[key]

    def committed_offset(self, own_offset: int) -> int:
        """The offset that a majority has reached on disk, this node with `own_offset`; -1 before a record of this epoch
        is among them."""
        offsets = [each.end_offset for each in self.progress.values()]
        if self.is_voter:
            offsets.append(own_offset)
        offsets.sort(reverse=True)
        offset = offsets[majority(self.voters) - 1]
        return offset if offset > self.start_offset else UNKNOWN

    def must_resign(self, now: float) -> bool:
        """Whether a majority has not fetched in time. An only voter has nobody to hear of."""
        return bool(self.progress) and now >= self.check_quorum_at

    def voters_to_tell(self, now: float) -> list[int]:
        """The voters that have not fetched lately, when it is time to tell them who leads."""
        if now < self.begins_at:
            return []
        self.begins_at = now + self._fetch_timeout * BEGIN_QUORUM_FACTOR
        return [
            voter_id
            for voter_id, each in self.progress.items()
            if now - each.fetched_at >= self._fetch_timeout * BEGIN_QUORUM_FACTOR
        ]

    def successors(self) -> list[tuple[int, bytes]]:
        """The other voters, those with the longest logs first."""
        others = [voter for voter in self.voters if voter.id != self.key[0]]
        others.sort(key=lambda voter: (-self.progress[voter.id].end_offset, voter.id))
        return [voter.key for voter in others]

    def next_deadline(self) -> float:
        """The next moment at which the leader has something to do by itself."""
        deadlines = [each.deadline for each in self.parked]
        if self.progress:
            deadlines += (self.begins_at, self.check_quorum_at)
        if self.change is not None:
            deadlines.append(self.change.expires_at)
        return min(deadlines, default=float("inf"))
