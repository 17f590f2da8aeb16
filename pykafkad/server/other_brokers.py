"""What a broker asks of the other brokers of its cluster, as a request of Kafka's protocol to the one that it concerns.

Markers of transactions go to the leaders of their partitions (WriteTxnMarkers), questions about a transaction to the
broker that coordinates it (AddPartitionsToTxn from version 4, KIP-890), the state of share partitions to the share
coordinator (KIP-932). The requests go to the listener between brokers, `inter.broker.listener.name` or the first of
`security.inter.broker.protocol`. A broker that cannot be reached is an error of the code that its caller names: all of
these callers ask again."""

from __future__ import annotations

from pykafkad import errors
from pykafkad.coordinator.partitioning import partition_for
from pykafkad.coordinator.share_state_events import DeleteState, InitializeState, ReadState, ReadSummary, WriteState
from pykafkad.log.transactions import TransactionMarker
from pykafkad.server import node_names
from pykafkad.server.peer import Limits, Peers
from pykafkad.server.peer_security import endpoint_of
from pykafkad.server.peer_types import Failure
from pykafkad.wire import messages

NOBODY = -1

# The request of an event of the share coordinator, and the class of its topics.
_SHARE_STATE_REQUESTS: dict[type, tuple[Any, str]] = {
    ReadState: (messages.ReadShareGroupStateRequest, "ReadStateData"),
    ReadSummary: (messages.ReadShareGroupStateSummaryRequest, "ReadStateSummaryData"),
    WriteState: (messages.WriteShareGroupStateRequest, "WriteStateData"),
    InitializeState: (messages.InitializeShareGroupStateRequest, "InitializeStateData"),
    DeleteState: (messages.DeleteShareGroupStateRequest, "DeleteStateData"),
}

MAX_LOOKING_UP = 1000
"""Requests that wait until the address of a broker's name is known; beyond, they fail."""

NAMES_SECONDS = 60.0
"""For so long the address of a name counts."""

_DIGITS = frozenset("0123456789.")

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pykafkad.coordinator.share_state_events import Key
    from pykafkad.server.broker import Broker

    Place = tuple[str, int]
    Outcome = dict[Place, int]
    Sending = tuple[int, messages.Struct, Callable[[Any], object]]


def _is_address(host: str) -> bool:
    """Whether it is digits already."""
    return ":" in host or set(host) <= _DIGITS


class OtherBrokers:
    """The connections of one broker to the others; each is opened when there is something to send."""

    __slots__ = ("_broker", "_found", "_is_closed", "_looking_up", "_peers")

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._peers = Peers(
            broker.runtime,
            node_names.of_requests(broker.node_id),
            Limits(request_timeout_ms=broker.settings.request_timeout_ms, waits_for_connection=False),
            security=broker.peer_security,
            connector=broker.local_links,
        )
        self._found: dict[str, str] = {}
        """The addresses of host names."""
        self._looking_up: dict[str, list[Sending]] = {}
        """By host name: what waits for its address, at most `MAX_LOOKING_UP` requests each."""
        self._is_closed = False

    def close(self) -> None:
        """Ask nobody any more."""
        self._is_closed = True
        self._peers.close()

    def leader(self, topic: str, partition: int) -> int:
        """The node id of a partition's leader, if that is another broker that can be asked; else NOBODY."""
        state = self._broker.image.partition(topic, partition)
        return NOBODY if state is None or self._address(state.leader) is None else state.leader

    def coordinator(self, topic: str, key: str) -> int:
        """The node id of the broker that coordinates `key` by its partition of `topic`, if that is another one that can
        be asked; else NOBODY."""
        found = self._broker.image.topics.get(topic)
        return NOBODY if found is None else self.leader(topic, partition_for(key, len(found.partitions)))

    def _address(self, node_id: int) -> tuple[str, int] | None:
        if node_id == self._broker.node_id:
            return None
        registered = self._broker.image.brokers.get(node_id)
        if registered is None or registered.fenced:
            return None
        endpoint = endpoint_of(self._broker, registered)
        return None if endpoint is None else (endpoint.host, endpoint.port)

    def send(self, node_id: int, request: messages.Struct, then: Callable[[Any], object]) -> None:
        """Send a request to another broker. `then` gets its answer or a `Failure`, in a later turn."""
        address = self._address(node_id)
        if address is None or self._is_closed:
            self._peers.forget(node_id)
            self._peers.send(node_id, request, then)
            return
        host, port = address
        digits = "127.0.0.1" if host == "localhost" else host if _is_address(host) else self._found.get(host)
        if digits is None:
            self._look_up(host, port, (node_id, request, then))
            return
        self._peers.set_address(node_id, digits, port, host)
        self._peers.send(node_id, request, then)

    def _look_up(self, host: str, port: int, sending: Sending) -> None:
        """A name server may take its time: it is asked beside the loop, and not on the thread of the syncs."""
        waiting = self._looking_up.get(host)
        if waiting is not None:
            if len(waiting) < MAX_LOOKING_UP:
                waiting.append(sending)
            else:
                self._peers.send(NOBODY, sending[1], sending[2])
            return
        self._looking_up[host] = [sending]
        runtime = self._broker.runtime
        addresses = runtime.reactor.network.addresses
        runtime.cpu_offload.submit(lambda: addresses(host, port), lambda found: self._looked_up(host, found))

    def _looked_up(self, host: str, found: object) -> None:
        waiting = self._looking_up.pop(host)
        if isinstance(found, list) and found:
            self._found[host] = found[0]
            # It may be another one next time.
            self._broker.runtime.call_later(NAMES_SECONDS, lambda: self._found.pop(host, None))
        else:
            self._broker.logs.warning("server", "broker-address-unknown", host=host, reason=found)
        for node_id, request, then in waiting:
            if host in self._found:
                self.send(node_id, request, then)
            else:
                self._peers.send(NOBODY, request, then)

    # --- transactions -------------------------------------------------------------------------------------------------

    def write_markers(self, marker: TransactionMarker, then: Callable[[Outcome], object]) -> None:
        """Write the marker into its partitions, wherever they are led. `then` gets an error code for each partition,
        once; of those that have no leader now, or whose leader did not answer, NOT_LEADER_OR_FOLLOWER."""
        by_leader: dict[int, list[Place]] = {}
        for place in marker.partitions:
            by_leader.setdefault(self.leader(*place), []).append(place)
        outcome: Outcome = {}
        waiting = len(by_leader)

        def settled(codes: Outcome) -> None:
            nonlocal waiting
            outcome.update(codes)
            waiting -= 1
            if not waiting:
                then(outcome)

        if not by_leader:
            then(outcome)
        for node_id, places in by_leader.items():
            part = TransactionMarker(
                marker.producer_id, marker.producer_epoch, marker.coordinator_epoch, marker.is_commit, places,
                marker.transaction_version,
            )  # fmt: skip
            if node_id == NOBODY:
                # This broker's own, and those that nobody leads, which it refuses.
                self._broker.transaction_markers.write(part, settled)
            else:
                self._send_marker(node_id, part, settled)

    def _send_marker(self, node_id: int, marker: TransactionMarker, then: Callable[[Outcome], object]) -> None:
        asked = messages.WriteTxnMarkersRequest
        topics: dict[str, list[int]] = {}
        for name, index in marker.partitions:
            topics.setdefault(name, []).append(index)
        request = asked(
            markers=[
                asked.WritableTxnMarker(
                    producer_id=marker.producer_id,
                    producer_epoch=marker.producer_epoch,
                    transaction_result=marker.is_commit,
                    topics=[
                        asked.WritableTxnMarkerTopic(name=name, partition_indexes=indexes)
                        for name, indexes in topics.items()
                    ],
                    coordinator_epoch=marker.coordinator_epoch,
                    transaction_version=marker.transaction_version,
                )
            ]
        )

        def answered(answer: Any) -> None:
            codes = dict.fromkeys(marker.partitions, errors.NOT_LEADER_OR_FOLLOWER)
            if type(answer) is not Failure:
                for producer in answer.markers:
                    for topic in producer.topics:
                        for row in topic.partitions:
                            codes[topic.name, row.partition_index] = row.error_code
            then(codes)

        self.send(node_id, request, answered)

    def add_partitions(
        self,
        node_id: int,
        producer: tuple[str, int, int],
        partitions: list[Place],
        *,
        verify_only: bool,
        then: Callable[[Outcome], object],
    ) -> None:
        """Add partitions to the transaction of `producer` (transactional id, producer id, epoch) at its coordinator, or
        ask whether they belong to it. `then` gets an error code for each partition: NETWORK_EXCEPTION if the
        coordinator did not answer."""
        asked = messages.AddPartitionsToTxnRequest
        topics: dict[str, list[int]] = {}
        for name, index in partitions:
            topics.setdefault(name, []).append(index)
        transactional_id, producer_id, epoch = producer
        request = asked(
            transactions=[
                asked.AddPartitionsToTxnTransaction(
                    transactional_id=transactional_id,
                    producer_id=producer_id,
                    producer_epoch=epoch,
                    verify_only=verify_only,
                    topics=[
                        asked.AddPartitionsToTxnTopic(name=name, partitions=indexes) for name, indexes in topics.items()
                    ],
                )
            ]
        )

        def answered(answer: Any) -> None:
            if type(answer) is Failure or answer.error_code:
                code = errors.NETWORK_EXCEPTION if type(answer) is Failure else answer.error_code
                then(dict.fromkeys(partitions, code))
                return
            codes = dict.fromkeys(partitions, errors.NETWORK_EXCEPTION)
            for transaction in answer.results_by_transaction:
                for topic in transaction.topic_results:
                    for row in topic.results_by_partition:
                        codes[topic.name, row.partition_index] = row.partition_error_code
            then(codes)

        self.send(node_id, request, answered)

    # --- share groups -------------------------------------------------------------------------------------------------

    def ask_share_state(
        self, node_id: int, event_class: type[Any], key: Key, row: Any, then: Callable[[Any], object]
    ) -> None:
        """Ask the share coordinator at another broker; `then` gets the row of its answer. One that could not be asked
        is NOT_COORDINATOR."""
        asked, name = _SHARE_STATE_REQUESTS[event_class]
        group_id, topic_id, _ = key
        topic = getattr(asked, name)(topic_id=topic_id, partitions=[row])

        def answered(answer: Any) -> None:
            rows = () if type(answer) is Failure else [each for topic in answer.results for each in topic.partitions]
            refused = messages.WriteShareGroupStateResponse.PartitionResult(error_code=errors.NOT_COORDINATOR)
            then(rows[0] if rows else refused)

        self.send(node_id, asked(group_id=group_id, topics=[topic]), answered)

    def find_end(self, node_id: int, topic: str, partition: int, then: Callable[[tuple[int, int]], object]) -> None:
        """Ask the leader of a partition for its high watermark; `then` gets an error code and the offset."""
        asked = messages.ListOffsetsRequest
        row = asked.ListOffsetsPartition(partition_index=partition, timestamp=-1)
        request = asked(replica_id=-1, topics=[asked.ListOffsetsTopic(name=topic, partitions=[row])])

        def answered(answer: Any) -> None:
            if type(answer) is Failure:
                then((errors.NOT_LEADER_OR_FOLLOWER, -1))
            else:
                (found,) = answer.topics[0].partitions
                then((found.error_code, found.offset))

        self.send(node_id, request, answered)
