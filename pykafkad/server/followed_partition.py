"""One partition that a broker follows, as its fetcher knows it."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.log.follower import Follower, Question
    from pykafkad.log.partition_log import PartitionLog


class Followed:
    """One partition that is followed. It is not asked for before `paused_until`."""

    __slots__ = ("follower", "lag", "leader_epoch", "log", "offsets", "paused_until", "round", "sent", "session")

    def __init__(self, log: PartitionLog, leader_epoch: int) -> None:
        self.log = log
        self.leader_epoch = leader_epoch
        self.follower: Follower | None = None
        self.paused_until = 0.0
        self.lag: int | None = None
        """How many offsets were missing up to the leader's high watermark when records came last; None before."""
        self.sent: tuple[Question, int] | None = None
        """What the leader's session has of the partition: the question and the log's start; None if nothing."""
        self.session = -1
        """The number of the session that has that; negative if none."""
        self.round = 0
        """The number of the last request that was about it."""
        self.offsets: dict[int, int] = {}
        """What the leader has said of the ends of its log."""

    @property
    def is_to_load(self) -> bool:
        """Whether the next question opens the log."""
        log = self.log
        return not log.is_loaded and log.offline is None and not log.closed

    @property
    def asks_offsets(self) -> bool:
        """Whether the leader is asked where its log begins and ends; nothing is fetched until it answers."""
        return self.follower is not None and self.follower.asks_offsets

    def is_as_sent(self, now: float) -> bool:
        """Whether there is nothing else to ask than what the session has. It says no where that is not plain."""
        sent, log, follower = self.sent, self.log, self.follower
        return (
            sent is not None
            and follower is not None
            and self.paused_until <= now
            # Nothing is missing that a throttle could hold back.
            and self.lag == 0
            and not log.closed
            and log.offline is None
            and log.end_offset == sent[0].fetch_offset
            and log.log_start_offset == sent[1]
            and follower.fits(log.end_offset, log.epochs)
            and follower.asks_again(sent[0])
        )


def key_of(log: PartitionLog) -> tuple[bytes, int]:
    """What names a partition in a session."""
    return log.topic_id, log.partition
