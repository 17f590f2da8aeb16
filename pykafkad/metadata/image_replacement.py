"""A snapshot takes the place of everything that an image has: the records that lead from one image to another.

The image stays the same object, and its delta has what is different. What both have alike is left as it is."""

from __future__ import annotations

from pykafkad.metadata import features, record_codec
from pykafkad.metadata.image import Image
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from pykafkad.effects import StoredRecord


def replace(image: Image, content: Iterable[StoredRecord], end_offset: int, epoch: int) -> None:
    """Make `image` what the records of a snapshot say, which has everything before `end_offset`; the last of that is of
    `epoch`. Raises what `content` raises, and then the image is as it was."""
    fresh = Image()
    for record in content:
        fresh.apply(record, end_offset - 1, epoch)
    image.transaction = None
    for message in _difference(image, fresh):
        image.apply(record_codec.record(message))
    image.voters, image.kraft_version = fresh.voters, fresh.kraft_version
    if fresh.kraft_version:
        image.features[features.KRAFT_VERSION] = fresh.kraft_version
    image.unknown_records = fresh.unknown_records
    image.offset, image.epoch = end_offset - 1, epoch


def _difference(old: Image, new: Image) -> Iterator[messages.Struct]:
    for name in [name for name in old.features if name not in new.features and name != features.KRAFT_VERSION]:
        yield messages.FeatureLevelRecord(name=name, feature_level=0)
    for name, level in new.features.items():
        if old.features.get(name) != level and name != features.KRAFT_VERSION:
            yield messages.FeatureLevelRecord(name=name, feature_level=level)
    yield from _nodes(old, new)
    yield from _topics(old, new)
    yield from _configs(old, new)
    yield from _entries(old, new)


def _nodes(old: Image, new: Image) -> Iterator[messages.Struct]:
    for broker in list(old.brokers.values()):
        if broker.id not in new.brokers:
            yield messages.UnregisterBrokerRecord(broker_id=broker.id, broker_epoch=broker.epoch)
    for broker in new.brokers.values():
        known = old.brokers.get(broker.id)
        record = broker.to_record()
        if known is None or known.to_record() != record:
            yield record
    # Controllers never go.
    for controller in new.controllers.values():
        before = old.controllers.get(controller.id)
        registration = controller.to_record()
        if before is None or before.to_record() != registration:
            yield registration


def _topics(old: Image, new: Image) -> Iterator[messages.Struct]:
    for topic in list(old.topics.values()):
        if new.topic_by_id(topic.id) is None:
            yield messages.RemoveTopicRecord(topic_id=topic.id)
    for topic in new.topics.values():
        known = old.topic_by_id(topic.id)
        if known is None:
            yield messages.TopicRecord(name=topic.name, topic_id=topic.id)
        for state in topic.partitions:
            record = state.to_record(topic.id)
            before = None if known is None else old.partition(topic.name, state.index)
            if before is None or before.to_record(topic.id) != record:
                yield record


def _configs(old: Image, new: Image) -> Iterator[messages.Struct]:
    wanted = new.all_configs()
    found = old.all_configs()
    for resource_type, resource_name in {**found, **wanted}:
        key = resource_type, resource_name
        before, after = found.get(key, {}), wanted.get(key, {})
        for name in {**before, **after}:
            if before.get(name) != after.get(name):
                yield messages.ConfigRecord(
                    resource_type=resource_type, resource_name=resource_name, name=name, value=after.get(name)
                )


def _entries(old: Image, new: Image) -> Iterator[messages.Struct]:
    """What is kept as the records that set it."""
    if old.next_producer_id != new.next_producer_id:
        yield messages.ProducerIdsRecord(broker_id=-1, broker_epoch=-1, next_producer_id=new.next_producer_id)
    for key, quota in list(old.client_quotas.items()):
        if key not in new.client_quotas:
            yield messages.ClientQuotaRecord(entity=quota.entity, key=quota.key, remove=True)
    for acl_id in list(old.acls):
        if acl_id not in new.acls:
            yield messages.RemoveAccessControlEntryRecord(id=acl_id)
    for name, mechanism in list(old.scram_credentials):
        if (name, mechanism) not in new.scram_credentials:
            yield messages.RemoveUserScramCredentialRecord(name=name, mechanism=mechanism)
    for token_id in list(old.delegation_tokens):
        if token_id not in new.delegation_tokens:
            yield messages.RemoveDelegationTokenRecord(token_id=token_id)
    for name_of_kind in ("client_quotas", "acls", "scram_credentials", "delegation_tokens"):
        before: dict[Any, Any] = getattr(old, name_of_kind)
        after: dict[Any, Any] = getattr(new, name_of_kind)
        for key, record in after.items():
            if before.get(key) != record:
                yield record
