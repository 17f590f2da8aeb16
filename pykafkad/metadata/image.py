"""The picture of the cluster that the metadata log draws, and `apply`, the only place that changes it.

Read it freely, change it never: every change is a record of `__cluster_metadata-0`, applied in offset order by the
loader at start and by the shell after each committed append. What changed since the last `take_delta()` is gathered in
a `MetadataDelta`, on which the shell acts (create and delete partition directories, update settings of open logs)."""

from __future__ import annotations

from operator import attrgetter

from pykafkad.metadata import features, voters
from pykafkad.metadata.brokers import Broker, ControllerRegistration
from pykafkad.metadata.topics import PartitionState, Topic, collision_key

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

TYPE_TOPIC = 2
TYPE_BROKER = 4

_NO_CONFIGS: dict[str, str] = {}

acl_content = attrgetter(
    "resource_type", "resource_name", "pattern_type", "principal", "host", "operation", "permission_type"
)
"""What an access control entry says, without its id: no two entries of a cluster say the same."""


def quota_entity(parts: Iterable[tuple[str, str | None]]) -> tuple:
    """The key of an entity with client quotas, of its `(type, name)` pairs; a default's name of None is the empty one
    here."""
    return tuple(sorted((kind, name or "") for kind, name in parts))


class MetadataDelta:
    """What a stretch of the log changed.

    `topics_deleted` and `topics_created` are lists of `Topic` (a topic that came and went in between is in neither;
    handle deletions first, a name may be in both with different ids); `partitions` maps `(topic name, index)` to the
    `PartitionState` that is new or changed; `configs` is a set of `(resource type, resource name)`; `brokers`,
    `features` and `others` are sets of broker ids, feature names and names of further record kinds."""

    __slots__ = ("brokers", "configs", "features", "others", "partitions", "topics_created", "topics_deleted")

    def __init__(self) -> None:
        self.topics_created: list[Topic] = []
        self.topics_deleted: list[Topic] = []
        self.partitions: dict[tuple[str, int], PartitionState] = {}
        self.configs: set[tuple[int, str]] = set()
        self.brokers: set[int] = set()
        self.features: set[str] = set()
        self.others: set[str] = set()

    def __bool__(self) -> bool:
        return any(getattr(self, name) for name in self.__slots__)


class Image:
    """The cluster as of `offset` (the last applied record; -1 for none), written in leader epoch `epoch`.

    `topics` by name, `brokers` and `controllers` by id, `features` name to finalized level, `next_producer_id`,
    `voters` and `kraft_version` from the quorum's control records. Client quotas, ACLs, SCRAM credentials and
    delegation tokens are carried as the records that set them, by their own keys; `acl_contents` is what the ACLs say.
    `brokers_generation` grows with every change of a broker: a key for what is computed from the set of brokers.
    `before_change`, if set, is called with a `Topic` and its `PartitionState` that is about to change: a snapshot in
    the making keeps what was."""

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
        "client_quotas",
        "controllers",
        "delegation_tokens",
        "delta",
        "epoch",
        "features",
        "kraft_version",
        "next_producer_id",
        "offset",
        "scram_credentials",
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
        self.client_quotas: dict[tuple, object] = {}
        self.acls: dict[bytes, object] = {}
        self.acl_contents: set[tuple] = set()
        self.scram_credentials: dict[tuple[str, int], object] = {}
        self.delegation_tokens: dict[str, object] = {}
        self.unknown_records = 0
        self.kraft_version = 0
        self.voters: list[voters.Voter] = []
        self.transaction: list[object] | None = None
        self.delta = MetadataDelta()
        self._shared: dict[tuple, tuple] = {}
        self._names_by_collision_key: dict[str, set[str]] = {}

    # ---- reading

    def topic_by_id(self, topic_id: bytes) -> Topic | None:
        """The topic with this 16-byte id."""
        return self._topics_by_id.get(topic_id)

    def partition(self, topic: str, index: int) -> PartitionState | None:
        """The state of one partition; None when there is no such topic or partition."""
        found = self.topics.get(topic)
        if found is None or not 0 <= index < len(found.partitions):
            return None
        return found.partitions[index]

    def configs(self, resource_type: int, name: str) -> dict[str, str]:
        """What has been set dynamically for a resource, name to text. Not to be changed."""
        return self._configs.get((resource_type, name), _NO_CONFIGS)

    def all_configs(self) -> dict[tuple[int, str], dict[str, str]]:
        """Everything that has been set dynamically, by `(resource type, resource name)`, as it is now."""
        return dict(self._configs)

    def alive_brokers(self) -> list[Broker]:
        """Brokers that clients may talk to, by id."""
        return [self.brokers[key] for key in sorted(self.brokers) if not self.brokers[key].fenced]

    def colliding_topic(self, name: str) -> str | None:
        """A topic whose name differs from `name` in nothing but '.' and '_' (or not at all); None when there is none."""
        names = self._names_by_collision_key.get(collision_key(name))
        return min(names) if names else None

    def supported_features(self) -> dict[str, tuple[int, int]]:
        """Feature name to the range of levels that this release can run."""
        return features.SUPPORTED

    def finalized_features(self) -> dict[str, int]:
        """Feature name to finalized level, of what clients may rely on: a Kafka's log may hold more
        (`features.CARRIED`)."""
        return {name: level for name, level in self.features.items() if name in features.SUPPORTED}

    def features_epoch(self) -> int:
        """The epoch of the finalized features as ApiVersions gives it: the offset of the last applied record."""
        return self.offset

    def take_delta(self) -> MetadataDelta:
        """What changed since the last call."""
        delta = self.delta
        self.delta = MetadataDelta()
        return delta

    # ---- changing

    def apply(self, record: object, offset: int | None = None, epoch: int | None = None) -> None:
        """Replay one record of the log: a `StoredRecord`, at its offset (default: the next one).

        Records between BeginTransaction and EndTransaction take effect together at the end, or, after
        AbortTransaction, never (KIP-868).
        """
        self.offset = self.offset + 1 if offset is None else offset
        if epoch is not None:
            self.epoch = epoch
        message = record.value
        if self.transaction is not None and record.key is None:
            name = type(message).__name__
            if name == "EndTransactionRecord":
                held, self.transaction = self.transaction, None
                for each in held:
                    _APPLY.get(type(each).__name__, _unknown)(self, each)
            elif name == "AbortTransactionRecord":
                self.transaction = None
            else:
                self.transaction.append(message)
            return
        _APPLY.get(type(message).__name__, _unknown)(self, message)

    def share(self, values: list) -> tuple:
        """The values as a tuple; equal ones are kept once (thousands of partitions have the same replicas)."""
        key = tuple(values)
        return self._shared.setdefault(key, key)


def _topic(image: Image, record: object) -> None:
    topic = Topic(record.name, record.topic_id)
    image.topics[record.name] = topic
    image._topics_by_id[record.topic_id] = topic
    key = collision_key(record.name)
    if key is not None:
        image._names_by_collision_key.setdefault(key, set()).add(record.name)
    image.delta.topics_created.append(topic)


def _partition(image: Image, record: object) -> None:
    topic = image._topics_by_id[record.topic_id]
    state = PartitionState(record, image.share)
    topic.put(state)
    image.delta.partitions[topic.name, state.index] = state


def _partition_change(image: Image, record: object) -> None:
    topic = image._topics_by_id[record.topic_id]
    state = topic.partitions[record.partition_id]
    if image.before_change is not None:
        image.before_change(topic, state)
    state.change(record, image.share)
    topic.described = topic.pages = None
    image.delta.partitions[topic.name, state.index] = state


def _remove_topic(image: Image, record: object) -> None:
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
    delta.configs.discard((TYPE_TOPIC, topic.name))
    if topic in delta.topics_created:
        delta.topics_created.remove(topic)
    else:
        delta.topics_deleted.append(topic)


def _clear_elr(image: Image, record: object) -> None:
    chosen = [image.topics[record.topic_name]] if record.topic_name else image.topics.values()
    for topic in chosen:
        for state in topic.partitions:
            if image.before_change is not None:
                image.before_change(topic, state)
            state.elr = state.last_known_elr = ()


def _config(image: Image, record: object) -> None:
    key = (record.resource_type, record.resource_name)
    # A new dict each time: who holds the old one (a snapshot in the making) has what was.
    values = dict(image._configs.get(key, _NO_CONFIGS))
    if record.value is None:
        values.pop(record.name, None)
    else:
        values[record.name] = record.value
    if values:
        image._configs[key] = values
    else:
        image._configs.pop(key, None)
    image.delta.configs.add(key)


def _register_broker(image: Image, record: object) -> None:
    image.brokers[record.broker_id] = Broker(record)
    _brokers_changed(image, record.broker_id)


def _unregister_broker(image: Image, record: object) -> None:
    image.brokers.pop(record.broker_id, None)
    _brokers_changed(image, record.broker_id)


def _change_broker(image: Image, record: object) -> None:
    image.brokers[record.broker_id].change(record)
    _brokers_changed(image, record.broker_id)


def _fence_broker(image: Image, record: object) -> None:
    image.brokers[record.id].fenced = True
    _brokers_changed(image, record.id)


def _unfence_broker(image: Image, record: object) -> None:
    image.brokers[record.id].fenced = False
    _brokers_changed(image, record.id)


def _brokers_changed(image: Image, broker_id: int) -> None:
    image.brokers_generation += 1
    image.delta.brokers.add(broker_id)


def _register_controller(image: Image, record: object) -> None:
    image.controllers[record.controller_id] = ControllerRegistration(record)
    image.delta.others.add("controllers")


def _feature_level(image: Image, record: object) -> None:
    if record.name == features.KRAFT_VERSION:
        # It lives in control records; some logs have it here too, which Kafka passes over (KAFKA-18979).
        return
    if record.feature_level:
        image.features[record.name] = record.feature_level
    else:
        image.features.pop(record.name, None)
    image.delta.features.add(record.name)


def _producer_ids(image: Image, record: object) -> None:
    image.next_producer_id = record.next_producer_id
    image.delta.others.add("producer_ids")


def _client_quota(image: Image, record: object) -> None:
    key = (*quota_entity((part.entity_type, part.entity_name) for part in record.entity), record.key)
    if record.remove:
        image.client_quotas.pop(key, None)
    else:
        image.client_quotas[key] = record
    image.delta.others.add("client_quotas")


def _acl(image: Image, record: object) -> None:
    image.acls[record.id] = record
    image.acl_contents.add(acl_content(record))
    image.delta.others.add("acls")


def _remove_acl(image: Image, record: object) -> None:
    removed = image.acls.pop(record.id, None)
    if removed is not None:
        image.acl_contents.discard(acl_content(removed))
    image.delta.others.add("acls")


def _scram(image: Image, record: object) -> None:
    image.scram_credentials[record.name, record.mechanism] = record
    image.delta.others.add("scram_credentials")


def _remove_scram(image: Image, record: object) -> None:
    image.scram_credentials.pop((record.name, record.mechanism), None)
    image.delta.others.add("scram_credentials")


def _delegation_token(image: Image, record: object) -> None:
    image.delegation_tokens[record.token_id] = record
    image.delta.others.add("delegation_tokens")


def _remove_delegation_token(image: Image, record: object) -> None:
    image.delegation_tokens.pop(record.token_id, None)
    image.delta.others.add("delegation_tokens")


def _begin_transaction(image: Image, record: object) -> None:
    image.transaction = []


def _kraft_version(image: Image, record: object) -> None:
    image.kraft_version = record.k_raft_version
    image.features[features.KRAFT_VERSION] = record.k_raft_version


def _voters(image: Image, record: object) -> None:
    image.voters = voters.from_records(record.voters)


def _no_effect(image: Image, record: object) -> None:
    """A record that moves the offset and nothing else."""


def _unknown(image: Image, record: object) -> None:
    image.unknown_records += 1


_APPLY = {
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
