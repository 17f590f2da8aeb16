"""The image: the metadata of the cluster, as the records of the metadata log describe it.

Every change is a record of `__cluster_metadata-0`, and only `apply` changes the image. The loader applies the records
of the log in offset order at start, and the shell applies each committed append. All other code only reads. A
`MetadataDelta` collects the changes since the last `take_delta()`. The shell acts on it: it creates and deletes
partition directories, and updates the settings of open logs."""

from __future__ import annotations

from operator import attrgetter

from pykafkad.metadata import features, voters
from pykafkad.metadata.brokers import Broker, ControllerRegistration
from pykafkad.metadata.topics import PartitionState, Topic, collision_key

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, TypeVar

    from pykafkad.effects import StoredRecord
    from pykafkad.metadata.topic_askers import TopicAskers
    from pykafkad.wire import messages

    T = TypeVar("T")
    QuotaEntity = tuple[tuple[str, str], ...]
    QuotaKey = tuple[tuple[str, str] | str, ...]

TYPE_TOPIC = 2
TYPE_BROKER = 4

_NO_CONFIGS: dict[str, str] = {}

acl_content = attrgetter(
    "resource_type", "resource_name", "pattern_type", "principal", "host", "operation", "permission_type"
)
"""The content of an access control entry without its id. No two entries that a controller created have the same
content."""


def quota_entity(parts: Iterable[tuple[str, str | None]]) -> QuotaEntity:
    """The key of an entity with client quotas, made of its `(type, name)` pairs. The name of a default entity, which is
    None in requests, is the empty text."""
    return tuple(sorted((kind, name or "") for kind, name in parts))


class MetadataDelta:
    """The changes of the image by a range of records.

    `topics_deleted` and `topics_created` are lists of `Topic`. A topic that was created and deleted within the range is
    in neither. A name can be in both with different ids, so deletions must be handled first. `partitions` maps `(topic
    name, index)` to each new or changed `PartitionState`. `configs` has `(resource type, resource name)` as keys;
    `brokers`, `features` and `others` have broker ids, feature names and names of further kinds of records. These four
    are dicts without values: unlike sets, they iterate in the order of the changes. `acls` has `(entry, whether it was
    added)` for each access control entry that was added or removed, in their order."""

    __slots__ = ("acls", "brokers", "configs", "features", "others", "partitions", "topics_created", "topics_deleted")

    def __init__(self) -> None:
        self.topics_created: list[Topic] = []
        self.topics_deleted: list[Topic] = []
        self.partitions: dict[tuple[str, int], PartitionState] = {}
        self.configs: dict[tuple[int, str], None] = {}
        self.brokers: dict[int, None] = {}
        self.features: dict[str, None] = {}
        self.others: dict[str, None] = {}
        self.acls: list[tuple[messages.AccessControlEntryRecord, bool]] = []

    def __bool__(self) -> bool:
        return any(getattr(self, name) for name in self.__slots__)


class Image:
    """The cluster's metadata at `offset`, the offset of the last applied record (-1 for none), which has leader epoch
    `epoch`.

    `topics` are by name, `brokers` and `controllers` by id. `features` maps names to finalized levels. `voters` and
    `kraft_version` come from the quorum's control records. Client quotas, ACLs, SCRAM credentials and delegation tokens
    are kept as the records that set them. `acl_contents` counts the ACLs by their `acl_content`. `brokers_generation`
    grows with every change of a broker; it is a cache key for values that are computed from the brokers.
    `before_change`, if set, is called with a `Topic` and one of its partitions before the partition changes: the writer
    of a snapshot keeps its old state."""

    __slots__ = (
        "_configs",
        "_names_by_collision_key",
        "_shared",
        "_topics_by_id",
        "acl_contents",
        "acls",
        "before_change",
        "brokers",
        "brokers_generation",
        "changed_tokens",
        "client_quotas",
        "controllers",
        "delegation_token_counts",
        "delegation_tokens",
        "delta",
        "epoch",
        "features",
        "kraft_version",
        "next_producer_id",
        "offset",
        "scram_credentials",
        "topic_askers",
        "topics",
        "transaction",
        "unknown_records",
        "voters",
    )

    def __init__(self) -> None:
        self.offset = -1
        self.epoch = 0
        self.topics: dict[str, Topic] = {}
        self._topics_by_id: dict[bytes, Topic] = {}
        self.brokers: dict[int, Broker] = {}
        self.brokers_generation = 0
        self.before_change: Callable[[Topic, PartitionState], None] | None = None
        self.controllers: dict[int, ControllerRegistration] = {}
        self.features: dict[str, int] = {}
        self.next_producer_id = 0
        self._configs: dict[tuple[int, str], dict[str, str]] = {}
        self.client_quotas: dict[QuotaKey, messages.ClientQuotaRecord] = {}
        self.acls: dict[bytes, messages.AccessControlEntryRecord] = {}
        self.acl_contents: dict[tuple[object, ...], int] = {}
        self.scram_credentials: dict[tuple[str, int], messages.UserScramCredentialRecord] = {}
        self.delegation_tokens: dict[str, messages.DelegationTokenRecord] = {}
        self.delegation_token_counts: dict[str, int] = {}
        """How many tokens each owner has."""
        self.changed_tokens: dict[str, None] | None = None
        """The ids of those that came or went since somebody looked; None as long as nobody does."""
        self.topic_askers: TopicAskers | None = None
        """Who asked for the last changes of topics; None until the controller of this process knows."""
        self.unknown_records = 0
        self.kraft_version = 0
        self.voters: list[voters.Voter] = []
        self.transaction: list[Any] | None = None
        self.delta = MetadataDelta()
        self._shared: dict[tuple[object, ...], Any] = {}
        self._names_by_collision_key: dict[str, set[str]] = {}

    # ---- reading

    def topic_by_id(self, topic_id: bytes) -> Topic | None:
        """The topic with this 16-byte id."""
        return self._topics_by_id.get(topic_id)

    def partition(self, topic: str, index: int) -> PartitionState | None:
        """The state of one partition. None when there is no such topic or partition."""
        found = self.topics.get(topic)
        if found is None or not 0 <= index < len(found.partitions):
            return None
        return found.partitions[index]

    def configs(self, resource_type: int, name: str) -> dict[str, str]:
        """The dynamic settings of a resource, name to text. The caller must not change the dict."""
        return self._configs.get((resource_type, name), _NO_CONFIGS)

    def all_configs(self) -> dict[tuple[int, str], dict[str, str]]:
        """The dynamic settings of all resources, by `(resource type, resource name)`. Later changes do not show in
        it."""
        return dict(self._configs)

    def alive_brokers(self) -> list[Broker]:
        """The brokers that are not fenced, in the order of their ids."""
        return [self.brokers[key] for key in sorted(self.brokers) if not self.brokers[key].fenced]

    def colliding_topic(self, name: str) -> str | None:
        """A topic whose name is equal to `name`, or differs only in '.' and '_'. None when there is none."""
        key = collision_key(name)
        names = None if key is None else self._names_by_collision_key.get(key)
        return min(names) if names else None

    def finalized_features(self) -> dict[str, int]:
        """Feature name to finalized level."""
        return self.features

    def features_epoch(self) -> int:
        """The epoch of the finalized features in ApiVersions: the offset of the last applied record."""
        return self.offset

    def take_delta(self) -> MetadataDelta:
        """The changes since the last call."""
        delta = self.delta
        self.delta = MetadataDelta()
        return delta

    def whole_delta(self) -> MetadataDelta:
        """What a broker that starts must look at: everything there is, as if it had just come."""
        delta = MetadataDelta()
        for topic in self.topics.values():
            for state in topic.partitions:
                delta.partitions[topic.name, state.index] = state
        delta.configs = dict.fromkeys(self._configs)
        delta.brokers = dict.fromkeys(self.brokers)
        delta.features = dict.fromkeys(self.features)
        if self.client_quotas:
            delta.others["client_quotas"] = None
        return delta

    # ---- changing

    def apply(self, record: StoredRecord, offset: int | None = None, epoch: int | None = None) -> None:
        """Apply one record of the log. `offset` is its offset, by default the next one.

        Records between BeginTransaction and EndTransaction take effect together at the end. After AbortTransaction
        they never take effect (KIP-868).
        """
        self.offset = self.offset + 1 if offset is None else offset
        if epoch is not None:
            self.epoch = epoch
        message: Any = record.value
        if self.transaction is not None and record.key is None:
            name = type(message).__name__
            if name == "EndTransactionRecord":
                pending, self.transaction = self.transaction, None
                for each in pending:
                    _APPLY.get(type(each).__name__, _unknown)(self, each)
            elif name == "AbortTransactionRecord":
                self.transaction = None
            else:
                self.transaction.append(message)
            return
        _APPLY.get(type(message).__name__, _unknown)(self, message)

    def share(self, values: Iterable[T]) -> tuple[T, ...]:
        """The values as a tuple. Equal tuples are one object: thousands of partitions have the same replicas."""
        key = tuple(values)
        shared: tuple[T, ...] = self._shared.setdefault(key, key)
        return shared


def _topic(image: Image, record: messages.TopicRecord) -> None:
    topic = Topic(record.name, record.topic_id)
    image.topics[record.name] = topic
    image._topics_by_id[record.topic_id] = topic
    key = collision_key(record.name)
    if key is not None:
        image._names_by_collision_key.setdefault(key, set()).add(record.name)
    image.delta.topics_created.append(topic)


def _partition(image: Image, record: messages.PartitionRecord) -> None:
    topic = image._topics_by_id[record.topic_id]
    state = PartitionState(record, image.share)
    topic.put(state)
    image.delta.partitions[topic.name, state.index] = state


def _partition_change(image: Image, record: messages.PartitionChangeRecord) -> None:
    topic = image._topics_by_id[record.topic_id]
    state = topic.partitions[record.partition_id]
    if image.before_change is not None:
        image.before_change(topic, state)
    state.change(record, image.share)
    topic.described = topic.pages = None
    image.delta.partitions[topic.name, state.index] = state


def _remove_topic(image: Image, record: messages.RemoveTopicRecord) -> None:
    topic = image._topics_by_id.pop(record.topic_id)
    del image.topics[topic.name]
    image._configs.pop((TYPE_TOPIC, topic.name), None)
    key = collision_key(topic.name)
    if key is not None:
        names = image._names_by_collision_key[key]
        names.discard(topic.name)
        if not names:
            del image._names_by_collision_key[key]
    delta = image.delta
    for index in range(len(topic.partitions)):
        delta.partitions.pop((topic.name, index), None)
    delta.configs.pop((TYPE_TOPIC, topic.name), None)
    if topic in delta.topics_created:
        delta.topics_created.remove(topic)
    else:
        delta.topics_deleted.append(topic)


def _clear_elr(image: Image, record: messages.ClearElrRecord) -> None:
    chosen = [image.topics[record.topic_name]] if record.topic_name else image.topics.values()
    for topic in chosen:
        for state in topic.partitions:
            if image.before_change is not None:
                image.before_change(topic, state)
            state.elr = state.last_known_elr = ()


def _config(image: Image, record: messages.ConfigRecord) -> None:
    key = (record.resource_type, record.resource_name)
    # A new dict each time: a snapshot that is being written holds the old one.
    values = dict(image._configs.get(key, _NO_CONFIGS))
    if record.value is None:
        values.pop(record.name, None)
    else:
        values[record.name] = record.value
    if values:
        image._configs[key] = values
    else:
        image._configs.pop(key, None)
    image.delta.configs[key] = None


def _register_broker(image: Image, record: messages.RegisterBrokerRecord) -> None:
    image.brokers[record.broker_id] = Broker(record)
    _brokers_changed(image, record.broker_id)


def _unregister_broker(image: Image, record: messages.UnregisterBrokerRecord) -> None:
    image.brokers.pop(record.broker_id, None)
    _brokers_changed(image, record.broker_id)


def _change_broker(image: Image, record: messages.BrokerRegistrationChangeRecord) -> None:
    image.brokers[record.broker_id].change(record)
    _brokers_changed(image, record.broker_id)


def _fence_broker(image: Image, record: messages.FenceBrokerRecord) -> None:
    image.brokers[record.id].fenced = True
    _brokers_changed(image, record.id)


def _unfence_broker(image: Image, record: messages.UnfenceBrokerRecord) -> None:
    image.brokers[record.id].fenced = False
    _brokers_changed(image, record.id)


def _brokers_changed(image: Image, broker_id: int) -> None:
    image.brokers_generation += 1
    image.delta.brokers[broker_id] = None


def _register_controller(image: Image, record: messages.RegisterControllerRecord) -> None:
    image.controllers[record.controller_id] = ControllerRegistration(record)
    image.delta.others["controllers"] = None


def _unregister_controller(image: Image, record: messages.UnregisterControllerRecord) -> None:
    image.controllers.pop(record.controller_id, None)
    image.delta.others["controllers"] = None


def _feature_level(image: Image, record: messages.FeatureLevelRecord) -> None:
    if record.name == features.KRAFT_VERSION:
        # This level is in control records. Some logs have it here too; Kafka ignores it (KAFKA-18979).
        return
    if record.feature_level:
        image.features[record.name] = record.feature_level
    else:
        image.features.pop(record.name, None)
    image.delta.features[record.name] = None


def _producer_ids(image: Image, record: messages.ProducerIdsRecord) -> None:
    image.next_producer_id = record.next_producer_id
    image.delta.others["producer_ids"] = None


def _client_quota(image: Image, record: messages.ClientQuotaRecord) -> None:
    key: QuotaKey = (*quota_entity((part.entity_type, part.entity_name) for part in record.entity), record.key)
    if record.remove:
        image.client_quotas.pop(key, None)
    else:
        image.client_quotas[key] = record
    image.delta.others["client_quotas"] = None


def _acl(image: Image, record: messages.AccessControlEntryRecord) -> None:
    _forget_acl(image, record.id)
    image.acls[record.id] = record
    content = acl_content(record)
    count = image.acl_contents.get(content, 0)
    image.acl_contents[content] = count + 1
    if not count:
        image.delta.acls.append((record, True))


def _remove_acl(image: Image, record: messages.RemoveAccessControlEntryRecord) -> None:
    _forget_acl(image, record.id)


def _forget_acl(image: Image, acl_id: bytes) -> None:
    removed = image.acls.pop(acl_id, None)
    if removed is None:
        return
    content = acl_content(removed)
    image.acl_contents[content] -= 1
    # Another entry with the same content goes on to count.
    if not image.acl_contents[content]:
        del image.acl_contents[content]
        image.delta.acls.append((removed, False))


def _scram(image: Image, record: messages.UserScramCredentialRecord) -> None:
    image.scram_credentials[record.name, record.mechanism] = record
    image.delta.others["scram_credentials"] = None


def _remove_scram(image: Image, record: messages.RemoveUserScramCredentialRecord) -> None:
    image.scram_credentials.pop((record.name, record.mechanism), None)
    image.delta.others["scram_credentials"] = None


def _delegation_token(image: Image, record: messages.DelegationTokenRecord) -> None:
    if record.token_id not in image.delegation_tokens:
        _count_token(image, record, 1)
    image.delegation_tokens[record.token_id] = record
    image.delta.others["delegation_tokens"] = None


def _remove_delegation_token(image: Image, record: messages.RemoveDelegationTokenRecord) -> None:
    removed = image.delegation_tokens.pop(record.token_id, None)
    if removed is not None:
        _count_token(image, removed, -1)
    image.delta.others["delegation_tokens"] = None


def _count_token(image: Image, token: messages.DelegationTokenRecord, change: int) -> None:
    count = image.delegation_token_counts.pop(token.owner, 0) + change
    if count:
        image.delegation_token_counts[token.owner] = count
    if image.changed_tokens is not None:
        image.changed_tokens[token.token_id] = None


def _begin_transaction(image: Image, record: messages.BeginTransactionRecord) -> None:
    image.transaction = []


def _kraft_version(image: Image, record: messages.KRaftVersionRecord) -> None:
    image.kraft_version = record.k_raft_version
    image.features[features.KRAFT_VERSION] = record.k_raft_version


def _voters(image: Image, record: messages.VotersRecord) -> None:
    image.voters = voters.from_records(record.voters)


def _no_effect(image: Image, record: object) -> None:
    """A record that changes nothing but the offset."""


def _unknown(image: Image, record: object) -> None:
    image.unknown_records += 1


_APPLY: dict[str, Callable[[Image, Any], None]] = {
    "TopicRecord": _topic,
    "PartitionRecord": _partition,
    "PartitionChangeRecord": _partition_change,
    "RemoveTopicRecord": _remove_topic,
    "ClearElrRecord": _clear_elr,
    "ConfigRecord": _config,
    "RegisterBrokerRecord": _register_broker,
    "UnregisterBrokerRecord": _unregister_broker,
    "BrokerRegistrationChangeRecord": _change_broker,
    "FenceBrokerRecord": _fence_broker,
    "UnfenceBrokerRecord": _unfence_broker,
    "RegisterControllerRecord": _register_controller,
    "UnregisterControllerRecord": _unregister_controller,
    "FeatureLevelRecord": _feature_level,
    "ProducerIdsRecord": _producer_ids,
    "ClientQuotaRecord": _client_quota,
    "AccessControlEntryRecord": _acl,
    "RemoveAccessControlEntryRecord": _remove_acl,
    "UserScramCredentialRecord": _scram,
    "RemoveUserScramCredentialRecord": _remove_scram,
    "DelegationTokenRecord": _delegation_token,
    "RemoveDelegationTokenRecord": _remove_delegation_token,
    "BeginTransactionRecord": _begin_transaction,
    "EndTransactionRecord": _no_effect,
    "AbortTransactionRecord": _no_effect,
    "NoOpRecord": _no_effect,
    "ZkMigrationStateRecord": _no_effect,
    "KRaftVersionRecord": _kraft_version,
    "VotersRecord": _voters,
    "LeaderChangeMessage": _no_effect,
    "SnapshotHeaderRecord": _no_effect,
    "SnapshotFooterRecord": _no_effect,
}
