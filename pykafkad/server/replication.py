"""Partitions with several replicas: what this broker does for them as leader and as follower.

Made when the first such partition comes here. The rules are in `log/replica.py` and `log/follower.py`; what is fetched
from other leaders is in `replica_fetchers.py`. Here are the leader's parts that need the world around: followers that
fetch, the look at those that lag (every half `replica.lag.time.max.ms`), and the proposals of another ISR. The
controller gets them as AlterPartition requests, one at a time, each with all proposals that wait."""

from __future__ import annotations

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.log.replica import FOLLOWER, LEADER
from pykafkad.metadata.events import AlterPartition
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from pykafkad.log.partition_log import PartitionLog
    from pykafkad.log.replica import ProposeIsr
    from pykafkad.metadata.topics import PartitionState
    from pykafkad.server.broker import Broker
    from pykafkad.server.follower_cuts import FollowerCuts
    from pykafkad.server.replica_fetchers import ReplicaFetchers
    from pykafkad.server.replication_throttles import ReplicationThrottles
    from pykafkad.server.strange_replicas import StrangeReplicas

_TICK = "look at followers"
_SEND = "send proposals"
_RETRY_SECONDS = 0.05
"""The pause before a proposal is sent again that nobody has answered."""

# The controller has refused, and says that the leader knows the partition as it is.
_REFUSED = frozenset((errors.INELIGIBLE_REPLICA, errors.OPERATION_NOT_ATTEMPTED))
# The leader does not know the partition as it is: the metadata will tell.
_OUTDATED = frozenset(
    (
        errors.UNKNOWN_TOPIC_OR_PARTITION,
        errors.UNKNOWN_TOPIC_ID,
        errors.FENCED_LEADER_EPOCH,
        errors.INVALID_UPDATE_VERSION,
        errors.INVALID_REQUEST,
        errors.NEW_LEADER_ELECTED,
    )
)
_Proposals = dict["PartitionLog", "ProposeIsr"]


class Replication:
    """See the module."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._led: dict[PartitionLog, None] = {}
        """Partitions with followers that this broker leads."""
        self._fetchers: ReplicaFetchers | None = None
        self._cuts: FollowerCuts | None = None
        self._throttles: ReplicationThrottles | None = None
        self._strange: StrangeReplicas | None = None
        self._proposals: _Proposals = {}
        self._asking: _Asking | None = None
        self._is_closed = False

    @property
    def fetchers(self) -> ReplicaFetchers:
        """What fetches from the leaders of partitions that this broker follows."""
        if self._fetchers is None:
            from pykafkad.server.replica_fetchers import ReplicaFetchers

            self._fetchers = ReplicaFetchers(self._broker)
        return self._fetchers

    @property
    def cuts(self) -> FollowerCuts:
        """What cuts logs that differ from their leaders'."""
        if self._cuts is None:
            from pykafkad.server.follower_cuts import FollowerCuts

            self._cuts = FollowerCuts(self._broker)
        return self._cuts

    @property
    def throttles(self) -> ReplicationThrottles | None:
        """What limits the rate of replication; None on a broker without live settings, which has no limit."""
        settings = self._broker.settings
        if self._throttles is None and (settings.dynamic_broker or settings.dynamic_default):
            from pykafkad.server.replication_throttles import ReplicationThrottles

            self._throttles = ReplicationThrottles(self._broker)
        return self._throttles

    @property
    def strange(self) -> StrangeReplicas:
        """What names brokers that ask or answer what cannot be."""
        if self._strange is None:
            from pykafkad.server.strange_replicas import StrangeReplicas

            self._strange = StrangeReplicas(self._broker)
        return self._strange

    def role_changed(self, log: PartitionLog, state: PartitionState) -> None:
        """The metadata says something new of a partition; its replica knows that already."""
        replica = log.replica
        if replica.role == LEADER and len(state.replicas) > 1:
            if not self._led:
                self._plan_tick()
            self._led[log] = None
        else:
            self._led.pop(log, None)
            self._proposals.pop(log, None)
        if replica.role == FOLLOWER and not self._is_closed:
            self.fetchers.follow(log, state.leader, state.leader_epoch)
        elif self._fetchers is not None:
            self._fetchers.leave(log)

    def log_recovered(self, log: PartitionLog) -> None:
        """A log is back in service: what it missed is fetched, if it is followed."""
        if self._fetchers is not None:
            self._fetchers.log_recovered(log)

    def forget(self, log: PartitionLog) -> None:
        """The partition is gone from this broker."""
        self._led.pop(log, None)
        self._proposals.pop(log, None)
        if self._fetchers is not None:
            self._fetchers.leave(log)
        if self._cuts is not None:
            self._cuts.forget(log)

    def close(self) -> None:
        """The broker stops: fetch nothing more."""
        self._is_closed = True
        if self._fetchers is not None:
            self._fetchers.close()
        if self._cuts is not None:
            self._cuts.close()

    # --- followers that fetch ---------------------------------------------------------------------------------------

    def check_follower(self, log: PartitionLog, broker: int, broker_epoch: int, leader_epoch: int) -> None:
        """Raises KafkaError, with Kafka's code, unless the broker may fetch the partition as a follower."""
        replica = log.replica
        if not replica.knows(broker):
            # With its leader epoch the follower may have heard of a reassignment that is not known here yet.
            raise KafkaError(errors.UNKNOWN_LEADER_EPOCH if leader_epoch >= 0 else errors.NOT_LEADER_OR_FOLLOWER)
        if replica.is_of_earlier_life(broker, broker_epoch):
            raise KafkaError(errors.NOT_LEADER_OR_FOLLOWER)

    def follower_refused(
        self, peer: str, broker: int, log: PartitionLog, code: int, fetch_offset: int, last_fetched_epoch: int
    ) -> None:
        """A follower did not get what it asked for; it is named if that cannot be."""
        self.strange.refused(peer, broker, log, code, fetch_offset, last_fetched_epoch)

    def fetched(
        self, log: PartitionLog, broker: int, offset: int, broker_epoch: int, log_start_offset: int = -1
    ) -> None:
        """A follower has everything from `log_start_offset` on below `offset`."""
        commits, replica, now = self._broker.commits, log.replica, self._broker.runtime.now
        was_alone, known = replica.commits_alone, replica.start_of(broker)
        commits.tell_end(log)
        commits.perform(log, replica.fetched(broker, offset, replica.leader_epoch, now, broker_epoch, log_start_offset))
        if replica.start_of(broker) != known:
            # Whoever deletes records waits for that.
            self._broker.purgatory.touch(log)
        if was_alone and not replica.commits_alone:
            # What takes appends without asking must ask from now on.
            log.lead(replica.leader_epoch, sole_replica=False)
            self._broker.forget_topics()

    def withholds(self, log: PartitionLog, broker: int) -> bool:
        """Whether a follower gets no records of the partition now (KIP-73)."""
        throttles = self.throttles
        return throttles is not None and throttles.withholds(log, broker)

    def sent(self, rows: Iterable[tuple[PartitionLog, int]]) -> None:
        """A follower is answered: each partition's log, and the size of its records in bytes."""
        throttles = self.throttles
        if throttles is not None:
            throttles.sent(rows)

    def _plan_tick(self) -> None:
        runtime = self._broker.runtime
        runtime.timers.set((self, _TICK), runtime.now + self._broker.settings.replica_lag_time_max_ms / 2000)

    def fired(self, key: str) -> None:
        """A timer is due."""
        if self._is_closed:
            return
        if key == _SEND:
            if self._asking is not None:
                # The controller has not answered in time: it may have heard of it, or not.
                self.answered(self._asking, None)
            else:
                self._send()
            return
        now = self._broker.runtime.now
        for log in list(self._led):
            if log.offline is None:
                self._broker.commits.perform(log, log.replica.tick(now))
        if self._led:
            self._plan_tick()

    # --- proposals of another ISR -----------------------------------------------------------------------------------

    def propose(self, log: PartitionLog, proposal: ProposeIsr) -> None:
        """Ask the controller for another ISR, soon: together with what others propose in this turn."""
        self._proposals[log] = proposal
        if self._asking is None:
            self._broker.runtime.timers.set((self, _SEND), self._broker.runtime.now)

    def _send(self) -> None:
        if self._asking is not None or not self._proposals:
            return
        broker = self._broker
        registered = broker.image.brokers.get(broker.node_id)
        proposals = {
            log: proposal
            for log, proposal in self._proposals.items()
            if log in self._led and proposal.partition_epoch == log.replica.partition_epoch
        }
        self._proposals = {}
        if registered is None or not proposals:
            return
        self._asking = _Asking(self, proposals)
        request = _request(broker.node_id, registered.epoch, proposals)
        runtime = broker.runtime
        try:
            broker.controller.submit(AlterPartition(self._asking, request))
        except KafkaError as error:
            broker.logs.warning("server", "alter-partition-failed", reason=error)
            self.answered(self._asking, None)
        runtime.timers.set((self, _SEND), runtime.now + broker.settings.controller_socket_timeout_ms / 1000)

    def answered(self, asking: _Asking, answer: messages.AlterPartitionResponse | None) -> None:
        """The controller's answer; None if there is none, and it is not known whether it was asked."""
        if asking is not self._asking:
            return
        self._asking = None
        rows = {} if answer is None or answer.error_code else _rows(answer)
        again = False
        for log, proposal in asking.proposals.items():
            row = rows.get((log.topic_id, log.partition))
            code = None if row is None else row.error_code
            if code in _OUTDATED:
                continue
            if row is not None and code == errors.NONE and row.partition_epoch > log.replica.partition_epoch:
                # It is made, and the metadata will say so: until then whoever joins by it is asked for each record.
                continue
            if code == errors.NONE or code in _REFUSED:
                # Had it changed something, the metadata has said so already, and this changes nothing.
                log.replica.isr_refused(proposal)
                if code != errors.NONE:
                    self._broker.logs.info(
                        "server", "isr-refused", topic=log.topic, partition=log.partition, isr=proposal.isr
                    )
            else:
                again = True
                self._proposals.setdefault(log, proposal)
        runtime = self._broker.runtime
        if self._proposals:
            runtime.timers.set((self, _SEND), runtime.now + (_RETRY_SECONDS if again else 0.0))
        else:
            runtime.timers.cancel((self, _SEND))


class _Asking:
    """One AlterPartition on its way: the token of its answer."""

    __slots__ = ("_replication", "proposals")

    def __init__(self, replication: Replication, proposals: _Proposals) -> None:
        self._replication = replication
        self.proposals = proposals

    def deliver(self, answer: messages.AlterPartitionResponse) -> None:
        """The controller's answer."""
        self._replication.answered(self, answer)

    def abandon(self, reason: str) -> None:
        """There is no answer."""
        self._replication.answered(self, None)


def _request(broker_id: int, broker_epoch: int, proposals: _Proposals) -> messages.AlterPartitionRequest:
    row = messages.AlterPartitionRequest
    topics: dict[bytes, messages.AlterPartitionRequest.TopicData] = {}
    for log, proposal in proposals.items():
        replica = log.replica
        isr = [
            row.BrokerState(
                broker_id=each, broker_epoch=broker_epoch if each == broker_id else replica.broker_epoch_of(each)
            )
            for each in proposal.isr
        ]
        data = row.PartitionData(
            partition_index=log.partition,
            leader_epoch=proposal.leader_epoch,
            new_isr_with_epochs=isr,
            partition_epoch=proposal.partition_epoch,
        )
        topic = topics.get(log.topic_id)
        if topic is None:
            topic = topics[log.topic_id] = row.TopicData(topic_id=log.topic_id, partitions=[])
        topic.partitions.append(data)
    return row(broker_id=broker_id, broker_epoch=broker_epoch, topics=list(topics.values()))


def _rows(
    answer: messages.AlterPartitionResponse,
) -> dict[tuple[bytes, int], messages.AlterPartitionResponse.PartitionData]:
    return {(topic.topic_id, row.partition_index): row for topic in answer.topics for row in topic.partitions}
