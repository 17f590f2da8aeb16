"""Brokers come and go: the records of registering, unfencing, stopping and removing one, with what that does to
partitions.

A broker leaves every ISR when it stops, and leads again what it is eligible for when it is unfenced: a clean restart is
two new leader epochs, as in Kafka, and so is an unclean one."""

from __future__ import annotations

from pykafkad.effects import Append
from pykafkad.metadata import features, record_codec
from pykafkad.metadata.brokers import FENCED, IN_CONTROLLED_SHUTDOWN, UNFENCED
from pykafkad.metadata.partition_changes import broker_changes
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.config import Settings
    from pykafkad.metadata.events import Activate, RegisterBroker
    from pykafkad.metadata.image import Image


def controller_registration(node_id: int, event: Activate) -> object:
    """The record that says where a controller listens and what it can run."""
    record = messages.RegisterControllerRecord
    return record(
        controller_id=node_id,
        incarnation_id=event.incarnation_id,
        end_points=[
            record.ControllerEndpoint(
                name=end.name, host=end.host, port=end.port, security_protocol=end.security_protocol
            )
            for end in event.endpoints
        ],
        features=[
            record.ControllerFeature(name=name, min_supported_version=low, max_supported_version=high)
            for name, (low, high) in features.SUPPORTED.items()
        ],
    )


def register(image: Image, settings: Settings, event: RegisterBroker) -> list[Append]:
    """A new incarnation of a broker; it stays fenced until it says that it serves.

    After an unclean stop it leaves every ISR and ELR, since it may have lost records: it leads again when it is
    unfenced, in a new leader epoch that tells clients. (Kafka's controller first waits for the end of the lost session
    and fences the broker, which is one more partition epoch and the same leader epochs.) The registration stands last,
    so that an interrupted registration is made again."""
    existing = image.brokers.get(event.broker_id)
    records: list[object] = []
    if existing is not None and event.previous_broker_epoch != existing.epoch:
        records = broker_changes(image, settings, lost=event.broker_id)
    record = messages.RegisterBrokerRecord
    registration = record(
        broker_id=event.broker_id,
        incarnation_id=event.incarnation_id,
        broker_epoch=image.offset + 1 + len(records),
        end_points=[
            record.BrokerEndpoint(name=end.name, host=end.host, port=end.port, security_protocol=end.security_protocol)
            for end in event.endpoints
        ],
        features=[
            record.BrokerFeature(name=name, min_supported_version=low, max_supported_version=high)
            for name, (low, high) in features.SUPPORTED.items()
        ],
        rack=event.rack,
        fenced=True,
        log_dirs=event.log_dirs,
    )
    return in_batches([*records, record_codec.record(registration)])


def unfence(image: Image, settings: Settings, broker_id: int) -> list[Append]:
    """The broker serves: clients may see it, and it leads what it is in sync with and nobody leads."""
    broker = image.brokers[broker_id]
    change = messages.BrokerRegistrationChangeRecord(
        broker_id=broker.id, broker_epoch=broker.epoch, fenced=UNFENCED, cordoned_log_dirs=[]
    )
    return in_batches([record_codec.record(change), *broker_changes(image, settings, added=broker_id)])


def stop(image: Image, settings: Settings, broker_id: int) -> list[Append]:
    """The broker stops cleanly: what it leads goes to others, or has no leader until it is back; then it is fenced, so
    that who reads the log next need not wait until its session would have ended."""
    broker = image.brokers[broker_id]
    if not any(state.leader == broker_id for topic in image.topics.values() for state in topic.partitions):
        return fence(image, settings, broker_id)
    change = messages.BrokerRegistrationChangeRecord
    begun = change(broker_id=broker.id, broker_epoch=broker.epoch, in_controlled_shutdown=IN_CONTROLLED_SHUTDOWN)
    done = change(broker_id=broker.id, broker_epoch=broker.epoch, fenced=FENCED)
    return in_batches(
        [record_codec.record(begun), *broker_changes(image, settings, removed=broker_id), record_codec.record(done)]
    )


def fence(image: Image, settings: Settings, broker_id: int) -> list[Append]:
    """The broker is gone: it leaves the ISRs, and others lead where they can."""
    broker = image.brokers[broker_id]
    change = messages.BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=broker.epoch, fenced=FENCED)
    return in_batches([*broker_changes(image, settings, removed=broker_id), record_codec.record(change)])


def unregister(image: Image, settings: Settings, broker_id: int) -> list[Append]:
    """The broker is forgotten; it leaves ISRs and ELRs first. Nothing keeps a live one from it, as in Kafka: it serves
    nothing any more until it registers at its next start."""
    broker = image.brokers[broker_id]
    record = messages.UnregisterBrokerRecord(broker_id=broker.id, broker_epoch=broker.epoch)
    return in_batches([*broker_changes(image, settings, removed=broker_id), record_codec.record(record)])


def in_batches(records: list[object]) -> list[Append]:
    """Appends of so many records that each fits one batch: what concerns all partitions is as long as they are many."""
    step = record_codec.MAX_RECORDS_PER_CHANGE
    return [Append(record_codec.LOG, records[start : start + step]) for start in range(0, len(records), step)]
