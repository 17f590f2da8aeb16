"""What the controller is asked, one slotted class per question. Each is a value: it could be sent to another process.

`token` is the request that waits for the answer; None when nobody does (auto-creation). Handlers check authorization
and the form of the request first: `refused` are the rows that they already answered, which the controller puts behind
its own."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.metadata.brokers import Endpoint
    from pykafkad.metadata.voters import Voter


class Activate:
    """This node leads the quorum and its image holds everything committed: write what a new leader has to write.

    `endpoints` are the controller's listeners; `incarnation_id` (16 bytes) is new with every start of the process;
    `bootstrap` are the stored records that an empty cluster begins with."""

    __slots__ = ("bootstrap", "endpoints", "epoch", "incarnation_id")

    def __init__(self, epoch: int, incarnation_id: bytes, endpoints: list[Endpoint], bootstrap: list[object]) -> None:
        self.epoch = epoch
        self.incarnation_id = incarnation_id
        self.endpoints = endpoints
        self.bootstrap = bootstrap


class RegisterBroker:
    """A broker started. `previous_broker_epoch` is the epoch that its clean-shutdown marker names, -1 without one: when
    it is the registered one, nothing of the broker's logs can be lost. `log_dirs` are the 16-byte ids of its
    directories."""

    __slots__ = ("broker_id", "endpoints", "incarnation_id", "log_dirs", "previous_broker_epoch", "rack")

    def __init__(
        self,
        broker_id: int,
        incarnation_id: bytes,
        endpoints: list[Endpoint],
        log_dirs: list[bytes],
        *,
        rack: str | None = None,
        previous_broker_epoch: int = -1,
    ) -> None:
        self.broker_id = broker_id
        self.incarnation_id = incarnation_id
        self.endpoints = endpoints
        self.log_dirs = log_dirs
        self.rack = rack
        self.previous_broker_epoch = previous_broker_epoch


class UnfenceBroker:
    """A registered broker has caught up with the metadata log and serves: clients may see it."""

    __slots__ = ("broker_epoch", "broker_id")

    def __init__(self, broker_id: int, broker_epoch: int) -> None:
        self.broker_id = broker_id
        self.broker_epoch = broker_epoch


class StopBroker:
    """A broker stops cleanly, now."""

    __slots__ = ("broker_id",)

    def __init__(self, broker_id: int) -> None:
        self.broker_id = broker_id


class FenceBroker:
    """A broker is gone without a word."""

    __slots__ = ("broker_epoch", "broker_id")

    def __init__(self, broker_id: int, broker_epoch: int) -> None:
        self.broker_id = broker_id
        self.broker_epoch = broker_epoch


class CreateTopics:
    """Create `topics` (CreatableTopic messages). `describable` are the names whose settings the caller may see, None
    for all."""

    __slots__ = ("describable", "refused", "token", "topics", "validate_only")

    def __init__(
        self,
        token: object,
        topics: list[object],
        *,
        validate_only: bool = False,
        describable: frozenset[str] | None = None,
        refused: list[object] | None = None,
    ) -> None:
        self.token = token
        self.topics = topics
        self.validate_only = validate_only
        self.describable = describable
        self.refused = refused or []


class AutoCreateTopics:
    """Create topics that were asked for and do not exist, with the settings that the broker has for them.

    Names that exist by now, or that cannot be, are passed over: whoever wanted them asks again.
    """

    __slots__ = ("names",)

    def __init__(self, names: list[str]) -> None:
        self.names = names


class DeleteTopics:
    """Delete topics by 16-byte id; `topics` maps the id to the name that the answer shows (None: not to be shown)."""

    __slots__ = ("refused", "token", "topics")

    def __init__(self, token: object, topics: dict[bytes, str | None], *, refused: list[object] | None = None) -> None:
        self.token = token
        self.topics = topics
        self.refused = refused or []


class CreatePartitions:
    """Grow `topics` (CreatePartitionsTopic messages) to their new counts."""

    __slots__ = ("refused", "token", "topics", "validate_only")

    def __init__(
        self, token: object, topics: list[object], *, validate_only: bool = False, refused: list[object] | None = None
    ) -> None:
        self.token = token
        self.topics = topics
        self.validate_only = validate_only
        self.refused = refused or []


class AlterPartitionReassignments:
    """Move partitions, or stop moving them, as the AlterPartitionReassignments `request` says."""

    __slots__ = ("request", "token")

    def __init__(self, token: object, request: object) -> None:
        self.token = token
        self.request = request


class ElectLeaders:
    """Elect leaders of `topics` (TopicPartitions messages, None for all partitions); `election` is PREFERRED or UNCLEAN
    of `partition_changes.py`; `version` is the request's."""

    __slots__ = ("election", "token", "topics", "version")

    def __init__(self, token: object, election: int, topics: list[object] | None, version: int) -> None:
        self.token = token
        self.election = election
        self.topics = topics
        self.version = version


class AssignReplicasToDirs:
    """A broker put replicas into directories: `replicas` maps (topic id, partition) to the 16-byte id of the directory."""

    __slots__ = ("broker_id", "replicas")

    def __init__(self, broker_id: int, replicas: dict[tuple[bytes, int], bytes]) -> None:
        self.broker_id = broker_id
        self.replicas = replicas


class ChangeLogDirs:
    """A broker's directories changed: the ids of those `online`, of those `cordoned`; None says nothing about them."""

    __slots__ = ("broker_id", "cordoned", "online")

    def __init__(self, broker_id: int, online: list[bytes] | None, cordoned: list[bytes] | None) -> None:
        self.broker_id = broker_id
        self.online = online
        self.cordoned = cordoned


class AlterConfigs:
    """Change dynamic settings. `changes` is a list of `(resource type, resource name, operations)` in the order of the
    answer.

    `operations` is a dict of name to text, the whole new state, for the legacy API (`incremental` false), or a list of
    `(name, operation, text)` for the incremental one. `refused` maps a position in the answer to its finished row.
    """

    __slots__ = ("changes", "incremental", "refused", "token", "validate_only")

    def __init__(
        self,
        token: object,
        changes: list[tuple[int, str, object]],
        *,
        incremental: bool,
        validate_only: bool = False,
        refused: dict[int, object] | None = None,
    ) -> None:
        self.token = token
        self.changes = changes
        self.incremental = incremental
        self.validate_only = validate_only
        self.refused = refused or {}


class AllocateProducerIds:
    """Give a broker the next block of producer ids. The reply is an AllocateProducerIdsResponse."""

    __slots__ = ("broker_epoch", "broker_id", "token")

    def __init__(self, token: object, broker_id: int, broker_epoch: int) -> None:
        self.token = token
        self.broker_id = broker_id
        self.broker_epoch = broker_epoch


class UpdateFeatures:
    """Bring features to other levels: `updates` maps a name to (level, upgrade type)."""

    __slots__ = ("names", "token", "updates", "validate_only", "voters")

    def __init__(
        self,
        token: object,
        updates: dict[str, tuple[int, int]],
        *,
        names: list[str],
        voters: list[Voter],
        validate_only: bool = False,
    ) -> None:
        """`names` are those of the answer's rows, repetitions included; `voters` are the quorum's, for the log when
        `kraft.version` becomes 1."""
        self.names = names
        self.token = token
        self.updates = updates
        self.voters = voters
        self.validate_only = validate_only


class UnregisterBroker:
    """Forget a broker."""

    __slots__ = ("broker_id", "token")

    def __init__(self, token: object, broker_id: int) -> None:
        self.token = token
        self.broker_id = broker_id


class CreateAcls:
    """Add ACLs: `creations` are AclCreation messages."""

    __slots__ = ("creations", "token")

    def __init__(self, token: object, creations: list[object]) -> None:
        self.token = token
        self.creations = creations


class DeleteAcls:
    """Delete the ACLs that match: `filters` are DeleteAclsFilter messages."""

    __slots__ = ("filters", "token")

    def __init__(self, token: object, filters: list[object]) -> None:
        self.token = token
        self.filters = filters


class AlterClientQuotas:
    """Change the quotas of clients: `entries` are EntryData messages."""

    __slots__ = ("entries", "token", "validate_only")

    def __init__(self, token: object, entries: list[object], *, validate_only: bool = False) -> None:
        self.token = token
        self.entries = entries
        self.validate_only = validate_only


class AlterUserScramCredentials:
    """Change the SCRAM credentials of users: `deletions` and `upsertions` are messages of the request's classes."""

    __slots__ = ("deletions", "token", "upsertions")

    def __init__(self, token: object, deletions: list[object], upsertions: list[object]) -> None:
        self.token = token
        self.deletions = deletions
        self.upsertions = upsertions
