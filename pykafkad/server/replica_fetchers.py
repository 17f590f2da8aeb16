"""The leaders of the partitions that this broker follows: each has a `LeaderFetcher`."""

from __future__ import annotations

from pykafkad.server.leader_fetcher import LeaderFetcher

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.log.partition_log import PartitionLog
    from pykafkad.server.broker import Broker


class ReplicaFetchers:
    """All leaders that this broker follows."""

    __slots__ = ("_by_leader", "_leader_of", "broker")

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self._by_leader: dict[int, LeaderFetcher] = {}
        self._leader_of: dict[PartitionLog, int] = {}

    def follow(self, log: PartitionLog, leader: int, leader_epoch: int) -> None:
        """Fetch `log` from a broker that leads it in an epoch; nothing changes if that goes on already."""
        before = self._leader_of.get(log)
        if before is not None and before != leader:
            self._by_leader[before].remove(log)
        fetcher = self._by_leader.get(leader)
        if fetcher is None:
            fetcher = self._by_leader[leader] = LeaderFetcher(self.broker, leader)
        self._leader_of[log] = leader
        fetcher.add(log, leader_epoch)

    def leave(self, log: PartitionLog) -> None:
        """Follow a partition no longer; fine if it was not followed."""
        leader = self._leader_of.pop(log, None)
        if leader is not None:
            self._by_leader[leader].remove(log)

    def log_recovered(self, log: PartitionLog) -> None:
        """A log is back in service; fine if it is not followed."""
        leader = self._leader_of.get(log)
        if leader is not None:
            self._by_leader[leader].log_recovered()

    def close(self) -> None:
        """Follow nothing more."""
        for fetcher in self._by_leader.values():
            fetcher.close()
        self._by_leader.clear()
        self._leader_of.clear()
