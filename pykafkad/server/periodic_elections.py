"""Elections that the active controller begins by itself, as Kafka's does from time to time.

Every `leader.imbalance.check.interval.seconds` the first replica of a partition, where it is in sync, leads it again
(`auto.leader.rebalance.enable`). Every `unclean.leader.election.interval.ms` a partition without a leader gets one that
may lack records, where its topic allows that.

A controller that is not active refuses the event, and nobody hears of that. Its intervals go on, so that the first
check of a new active controller comes after an interval at the latest.
"""

from __future__ import annotations

from pykafkad.metadata.events import MAX_ELECTIONS_PER_CHANGE, ElectByItself
from pykafkad.metadata.partition_changes import PREFERRED, UNCLEAN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.server.controller_node import ControllerNode

LONGEST_PAUSE_SECONDS = 86_400.0
"""The system cannot be asked to wait for the longest intervals that the settings allow."""


def begin(node: ControllerNode) -> None:
    """Look after each interval, from now on."""
    settings = node.settings
    if settings.auto_leader_rebalance_enable:
        PeriodicElection(node, PREFERRED, settings.leader_imbalance_check_interval_seconds).wait()
    PeriodicElection(node, UNCLEAN, settings.unclean_leader_election_interval_ms / 1000).wait()


class PeriodicElection:
    """One kind of election of one controller. It is also the token of its events."""

    __slots__ = ("_election", "_interval_seconds", "_node")

    def __init__(self, node: ControllerNode, election: str, interval_seconds: float) -> None:
        self._node = node
        self._election = election
        self._interval_seconds = min(float(interval_seconds), LONGEST_PAUSE_SECONDS)

    def wait(self) -> None:
        """Look after the interval."""
        self._node.runtime.call_later(self._interval_seconds, self._look)

    def _look(self) -> None:
        if not self._node.serving:
            # It has stopped, and others of its process go on.
            return
        self.wait()
        self._elect()

    def _elect(self) -> None:
        self._node.submit(ElectByItself(self, self._election))

    def deliver(self, count: int) -> None:
        """So many partitions have another leader. One change has a bounded number, and the next follows at once."""
        if count:
            self._node.logs.info("metadata", "leaders-elected", election=self._election, partitions=count)
        if count == MAX_ELECTIONS_PER_CHANGE:
            self._elect()
