"""The records that register, unfence, stop and remove a broker, with the changes of its partitions.

A broker leaves every ISR when it stops. When it is unfenced it leads the partitions again that it is eligible for. So a
restart, clean or unclean, is two new leader epochs, as in Kafka."""

from __future__ import annotations

from pykafkad.effects import Append
from pykafkad.metadata import features, record_codec
from pykafkad.metadata.brokers import FENCED, IN_CONTROLLED_SHUTDOWN, UNFENCED
from pykafkad.metadata.partition_changes import broker_changes, broker_changes_in_steps
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator

    from pykafkad.config import Settings
    from pykafkad.effects import StoredRecord
    from pykafkad.metadata.events import Activate, RegisterBroker
    from pykafkad.metadata.image import Image

RECORDS_AT_ONCE = 500
"""Records of one append of a change of all partitions."""


def controller_registration(node_id: int, settings: Settings, event: Activate) -> messages.RegisterControllerRecord:
    """The record with a controller's listeners and the feature levels that it supports."""
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
            for name, (low, high) in features.supported(settings).items()
        ],
    )


def register(image: Image, settings: Settings, event: RegisterBroker) -> list[Append]:
    """Register a broker that has started. It stays fenced until it is ready to serve.

    After an unclean stop the broker leaves every ISR and ELR, because it may have lost records. When it is unfenced it
    leads again, in a new leader epoch, from which clients learn of the change. (Kafka's controller first waits until
    the old session ends and fences the broker. That is one more partition epoch, and the same leader epochs.) The
    registration record comes last: if the broker fails before it is written, it registers again."""
    existing = image.brokers.get(event.broker_id)
    records: list[StoredRecord] = []
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
            for name, (low, high) in features.supported(settings).items()
        ],
        rack=event.rack,
        fenced=True,
        log_dirs=event.log_dirs,
    )
    return in_batches([*records, record_codec.record(registration)])


def unfence(image: Image, settings: Settings, broker_id: int) -> list[Append]:
    """Unfence a broker that is ready to serve. Clients see it, and it leads partitions that have no leader and that it
    is in sync with."""
    broker = image.brokers[broker_id]
    change = messages.BrokerRegistrationChangeRecord(
        broker_id=broker.id, broker_epoch=broker.epoch, fenced=UNFENCED, cordoned_log_dirs=[]
    )
    return in_batches([record_codec.record(change), *broker_changes(image, settings, added=broker_id)])


def stop(image: Image, settings: Settings, broker_id: int) -> Generator[None, None, list[object]]:
    """Stop a broker cleanly, in steps. Other replicas lead its partitions, or nobody does until it is back. Then it is
    fenced, so that the next controller need not wait until its session ends."""
    broker = image.brokers[broker_id]
    if not any(state.leader == broker_id for topic in image.topics.values() for state in topic.partitions):
        return (yield from fence(image, settings, broker_id))
    change = messages.BrokerRegistrationChangeRecord
    begun = change(broker_id=broker.id, broker_epoch=broker.epoch, in_controlled_shutdown=IN_CONTROLLED_SHUTDOWN)
    done = change(broker_id=broker.id, broker_epoch=broker.epoch, fenced=FENCED)
    changes = yield from broker_changes_in_steps(image, settings, removed=broker_id)
    return [*in_batches([record_codec.record(begun), *changes, record_codec.record(done)])]


def fence(image: Image, settings: Settings, broker_id: int) -> Generator[None, None, list[object]]:
    """Fence a broker that failed, in steps. It leaves all ISRs, and other replicas lead its partitions where they can.

    The record that fences it comes last: if the controller fails before that, the next one fences it again."""
    broker = image.brokers[broker_id]
    change = messages.BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=broker.epoch, fenced=FENCED)
    changes = yield from broker_changes_in_steps(image, settings, removed=broker_id)
    return [*in_batches([*changes, record_codec.record(change)])]


def unregister(image: Image, settings: Settings, broker_id: int) -> list[Append]:
    """Remove a broker from the cluster. It leaves all ISRs first. As in Kafka this works for a running broker too,
    which then serves no partitions until it registers at its next start."""
    broker = image.brokers[broker_id]
    record = messages.UnregisterBrokerRecord(broker_id=broker.id, broker_epoch=broker.epoch)
    return in_batches([*broker_changes(image, settings, removed=broker_id), record_codec.record(record)])


def in_batches(records: list[StoredRecord]) -> list[Append]:
    """The records as appends of a few each. A change of all partitions can have any number of records, and each append
    is written, committed and applied in a turn of its own. Kafka's controller writes up to 10 000 at once."""
    step = RECORDS_AT_ONCE
    return [Append(record_codec.LOG, records[start : start + step]) for start in range(0, len(records), step)]
