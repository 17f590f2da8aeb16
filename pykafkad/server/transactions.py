"""The transaction coordinator's place in the shell.

A transactional id lives in the shard of the partition of `__transaction_state` that the Java hash of it names. The
machine is imported when the first partition of that topic is led here."""

from __future__ import annotations

from pykafkad import errors
from pykafkad.coordinator.partitioning import TRANSACTION_TOPIC
from pykafkad.errors import KafkaError, StorageFailure
from pykafkad.metadata.features import TRANSACTION_VERSION
from pykafkad.server.coordinator_host import CoordinatorHost

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random
    from typing import Any

    from pykafkad.config import Settings
    from pykafkad.coordinator.transaction_shard import TransactionShard
    from pykafkad.effects import StoredRecord, WriteMarkers
    from pykafkad.server.broker import Broker
    from pykafkad.server.coordinator_host import ShardRunner

    Place = tuple[str, int]

IMPLICIT_ADD = 2
"""The transaction version of the clients for which a broker adds partitions (KIP-890)."""


class Transactions(CoordinatorHost):
    """The shards of `__transaction_state` that this broker leads."""

    __slots__ = ()

    def __init__(self, broker: Broker) -> None:
        super().__init__(broker, TRANSACTION_TOPIC, self._shard, self._encode)

    def _shard(self, partition: int, settings: Settings, random: Random) -> TransactionShard:
        from pykafkad.coordinator.transaction_shard import TransactionShard

        return TransactionShard(partition, settings, self._take_producer_id, self._version)

    def _encode(self, record: StoredRecord) -> tuple[bytes, bytes | None]:
        from pykafkad.coordinator import transaction_records

        return transaction_records.encode(record, self._version())

    def _version(self) -> int:
        """The finalized transaction version."""
        return self._broker.image.features.get(TRANSACTION_VERSION, 0)

    def _take_producer_id(self) -> int | None:
        """An unused producer id, or None while the controller has given none."""
        producer_ids = self._broker.producer_ids
        producer_id = producer_ids.take()
        if producer_id is None:
            try:
                producer_ids.prepare()
            except (KafkaError, StorageFailure):
                return None
            producer_id = producer_ids.take()
        return producer_id

    # --- what handlers use -------------------------------------------------------------------------------------------

    def error_for(self, transactional_id: str) -> int:
        """NONE if this broker coordinates the id, or the error that its clients are told."""
        return self.shard_for(transactional_id)[1]

    def add_partitions(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: list[Place],
        verify_only: bool,
        then: Callable[[dict[Place, int]], object],
    ) -> None:
        """Add partitions to the producer's transaction, or ask whether they belong to it. `then` gets an error code for
        each partition, once: at once, or when the transaction's record is committed."""
        from pykafkad.coordinator.transaction_events import AddPartitions, VerifyPartitions

        error = self.error_for(transactional_id) if transactional_id else errors.INVALID_REQUEST
        producer = (transactional_id, producer_id, producer_epoch)
        if error == errors.NOT_COORDINATOR and len(self._broker.image.brokers) > 1:
            others = self._broker.other_brokers
            node_id = others.coordinator(TRANSACTION_TOPIC, transactional_id)
            if node_id >= 0:
                others.add_partitions(node_id, producer, partitions, verify_only=verify_only, then=then)
                return
        if error:
            then(dict.fromkeys(partitions, error))
            return
        token = _Waiting(partitions, then)
        if verify_only:
            self.submit(transactional_id, VerifyPartitions(token, *producer, partitions))
        else:
            self.submit(transactional_id, AddPartitions(token, *producer, partitions, IMPLICIT_ADD))

    # --- what a runner uses ------------------------------------------------------------------------------------------

    def write_markers(self, runner: ShardRunner, effect: WriteMarkers) -> None:
        """Write the markers of a transaction. A partition that does not exist (any more) needs none."""
        from pykafkad.coordinator.transaction_events import MarkersWritten
        from pykafkad.log.transactions import TransactionMarker

        image = self._broker.image
        gone = {place: errors.NONE for place in effect.partitions if image.partition(*place) is None}
        marker = TransactionMarker(
            effect.producer_id,
            effect.producer_epoch,
            runner.leader_epoch,
            effect.is_commit,
            [place for place in effect.partitions if place not in gone],
            effect.transaction_version,
        )

        def then(outcome: dict[Place, int]) -> None:
            outcome = outcome | gone
            runner.step(MarkersWritten(effect.transactional_id, effect.producer_id, effect.producer_epoch, outcome))

        if len(image.brokers) > 1:
            self._broker.other_brokers.write_markers(marker, then)
        else:
            self._broker.transaction_markers.write(marker, then)


class _Waiting:
    """The reply token of one who asked inside this process: the answer goes to `then`."""

    __slots__ = ("_partitions", "_then")

    def __init__(self, partitions: list[Place], then: Callable[[dict[Place, int]], object]) -> None:
        self._partitions = partitions
        self._then = then

    def deliver(self, message: Any) -> None:
        """The answer of the machine: an error code for all partitions, or one for each."""
        self._then(message if isinstance(message, dict) else dict.fromkeys(self._partitions, message))

    def abandon(self, reason: str) -> None:
        """The answer depends on a write that failed: the client must look for its coordinator."""
        self._then(dict.fromkeys(self._partitions, errors.NOT_COORDINATOR))
