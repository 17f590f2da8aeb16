"""The end of transactions in the partitions that this broker leads.

A transaction coordinator ends a transaction by a control batch, the *marker*, in every partition of it. The request
WriteTxnMarkers brings markers of other nodes; the coordinator of the same process calls `TransactionMarkers.write`
directly."""

from __future__ import annotations

from pykafkad import errors
from pykafkad.coordinator import shard
from pykafkad.errors import KafkaError, StorageFailure
from pykafkad.server.incremental_tasks import IncrementalTask

AT_ONCE = 100
"""The most markers of one transaction that are written in one turn in any case."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from pykafkad.log.partition_log import PartitionLog
    from pykafkad.log.transactions import TransactionMarker
    from pykafkad.server.broker import Broker

    Place = tuple[str, int]


class TransactionMarkers:
    """Writes markers. The broker has one."""

    __slots__ = ("_broker",)

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def write(self, marker: TransactionMarker, then: Callable[[dict[Place, int]], object]) -> None:
        """Write the marker into its partitions. `then` gets an error code for each partition, once, when every marker
        that was written is committed.

        The codes are Kafka's: UNKNOWN_TOPIC_OR_PARTITION for a partition that is not here, NOT_LEADER_OR_FOLLOWER for
        one that another broker leads or whose offsets are still being loaded, NOT_ENOUGH_REPLICAS,
        KAFKA_STORAGE_ERROR, INVALID_PRODUCER_EPOCH for a marker that comes too late, and
        TRANSACTION_COORDINATOR_FENCED for one of an older coordinator."""
        places = dict.fromkeys(marker.partitions)
        outcome: dict[Place, int] = {}

        def settle(place: Place, code: int) -> None:
            outcome[place] = code
            if len(outcome) == len(places):
                then({each: outcome[each] for each in places})

        if not places:
            then(outcome)
        elif len(places) <= AT_ONCE:
            for place in places:
                self._write(marker, place, settle)
        else:
            runtime = self._broker.runtime
            steps = self._write_in_steps(marker, list(places), settle)
            runtime.tasks.begin(IncrementalTask(None, steps, lambda _: None, runtime.unexpected))

    def _write_in_steps(
        self, marker: TransactionMarker, places: list[Place], settle: Callable[[Place, int], None]
    ) -> Generator[None, None, None]:
        """The markers of a large transaction get a little of each turn."""
        for place in places:
            self._write(marker, place, settle)
            yield

    def _write(self, marker: TransactionMarker, place: Place, settle: Callable[[Place, int], None]) -> None:
        try:
            self._append(marker, place, settle)
        except KafkaError as error:
            settle(place, error.code)
        except StorageFailure as failure:
            log = self._broker.partitions.get(*place)
            assert log is not None
            self._broker.log_failed(log, failure)
            settle(place, errors.KAFKA_STORAGE_ERROR)

    def _append(self, marker: TransactionMarker, place: Place, settle: Callable[[Place, int], None]) -> None:
        log = self._log(*place)
        topic, partition = place
        runner = self._broker.groups.runner_of(partition) if topic == shard.TOPIC else None
        if runner is None and topic == shard.TOPIC:
            raise KafkaError(errors.NOT_LEADER_OR_FOLLOWER)
        result = log.append_end_marker(
            marker.producer_id,
            marker.producer_epoch,
            marker.coordinator_epoch,
            self._broker.runtime.now_ms,
            is_abort=not marker.is_commit,
            transaction_version=marker.transaction_version,
        )

        if runner is not None:
            runner.transaction_ended(marker.producer_id, marker.is_commit)

        def committed(failure: Exception | None) -> None:
            if isinstance(failure, KafkaError):
                settle(place, failure.code)
            else:
                settle(place, errors.NONE if failure is None else errors.KAFKA_STORAGE_ERROR)

        self._broker.commits.mark(log)
        self._broker.commits.after(log, result.last_offset + 1, committed)

    def _log(self, topic: str, partition: int) -> PartitionLog:
        """The log to write to. Raises `KafkaError` or `StorageFailure`."""
        partitions = self._broker.partitions
        log = partitions.get(topic, partition)
        if log is None:
            raise KafkaError(errors.UNKNOWN_TOPIC_OR_PARTITION)
        if log in partitions.not_led_here:
            raise KafkaError(errors.NOT_LEADER_OR_FOLLOWER)
        if log.offline is not None:
            raise log.offline.copy()
        if not log.replica.has_min_isr:
            raise KafkaError(errors.NOT_ENOUGH_REPLICAS)
        return log
