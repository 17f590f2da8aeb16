"""The events of the controller: one class per request. Events are values, so they can be sent to another process.

`token` is answered with the response; it is None when nobody waits for one (auto-creation). Handlers check the
authorization and the form of a request first. `refused` are the rows of the response that a handler has refused; the
controller puts them after its own. `asker` says who asked, for the log. `mutations` counts the partitions that a
request creates or deletes; it is None where no quota counts."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol

    from pykafkad.effects import StoredRecord
    from pykafkad.metadata.brokers import Endpoint
    from pykafkad.metadata.topic_askers import Asker
    from pykafkad.metadata.voters import Voter
    from pykafkad.wire import messages

    class MutationQuota(Protocol):
        """Counts the partitions that a request creates or deletes (KIP-599)."""

        def record(self, partitions: int) -> None:
            """Raises `KafkaError` if no more may be changed."""


class Activate:
    """This node is the leader of the quorum, and its image has all committed records. The controller writes the first
    records of a new leader.

    `endpoints` are the controller's listeners. `incarnation_id` (16 bytes) is new with every start of the process.
    `bootstrap` are the first records of an empty cluster."""

    __slots__ = ("bootstrap", "endpoints", "epoch", "incarnation_id")

    def __init__(
        self, epoch: int, incarnation_id: bytes, endpoints: list[Endpoint], bootstrap: list[StoredRecord]
    ) -> None:
        self.epoch = epoch
        self.incarnation_id = incarnation_id
        self.endpoints = endpoints
        self.bootstrap = bootstrap


class RegisterBroker:
    """A broker started. `previous_broker_epoch` is the epoch in its clean-shutdown marker, -1 without one. If it equals
    the registered epoch, the broker has lost no records. `log_dirs` are the 16-byte ids of its directories."""

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


class BrokerRegistration:
    """A broker asks for its registration, by a request of `version`. `now` is the turn, in monotonic seconds, `address`
    where the request came from. `is_own` says that the broker is in the controller's process: who had its id before is
    an earlier life of it, which has ended."""

    __slots__ = ("address", "is_own", "now", "request", "token", "version")

    def __init__(self, token: object, request: messages.BrokerRegistrationRequest, version: int, now: float) -> None:
        self.token, self.request, self.version = token, request, version
        self.now = now
        self.address, self.is_own = "", False


class BrokerHeartbeat:
    """A broker of another process says that it lives. `now` is the turn in which that came, in monotonic seconds."""

    __slots__ = ("now", "request", "token")

    def __init__(self, token: object, request: messages.BrokerHeartbeatRequest, now: float) -> None:
        self.token = token
        self.request = request
        self.now = now


class CheckSessions:
    """Look at `now`, in monotonic seconds, which brokers have been silent for too long."""

    __slots__ = ("now",)

    def __init__(self, now: float) -> None:
        self.now = now


class BeginSessions:
    """This controller is active from `now` on, in monotonic seconds: every unfenced broker has a fresh session."""

    __slots__ = ("now",)

    def __init__(self, now: float) -> None:
        self.now = now


class RegisterController:
    """Another controller of the quorum tells its listeners and features."""

    __slots__ = ("request", "token")

    def __init__(self, token: object, request: messages.ControllerRegistrationRequest) -> None:
        self.token = token
        self.request = request


class UnfenceBroker:
    """A registered broker has applied the metadata log and is ready to serve clients."""

    __slots__ = ("broker_epoch", "broker_id")

    def __init__(self, broker_id: int, broker_epoch: int) -> None:
        self.broker_id = broker_id
        self.broker_epoch = broker_epoch


class StopBroker:
    """A broker stops cleanly."""

    __slots__ = ("broker_id",)

    def __init__(self, broker_id: int) -> None:
        self.broker_id = broker_id


class FenceBroker:
    """A broker has failed."""

    __slots__ = ("broker_epoch", "broker_id")

    def __init__(self, broker_id: int, broker_epoch: int) -> None:
        self.broker_id = broker_id
        self.broker_epoch = broker_epoch


class BrokerGone(FenceBroker):
    """The process of a broker has ended, in this life of it: its session is over."""

    __slots__ = ()


class CreateTopics:
    """Create topics. `describable` are the names of those whose settings the caller may see, None for all."""

    __slots__ = ("asker", "describable", "mutations", "refused", "token", "topics", "validate_only")

    def __init__(
        self,
        token: object,
        topics: list[messages.CreateTopicsRequest.CreatableTopic],
        *,
        validate_only: bool = False,
        describable: frozenset[str] | None = None,
        refused: list[messages.CreateTopicsResponse.CreatableTopicResult] | None = None,
        mutations: MutationQuota | None = None,
        asker: Asker | None = None,
    ) -> None:
        self.token, self.topics, self.validate_only = token, topics, validate_only
        self.asker = asker
        self.describable = describable
        self.refused = refused or []
        self.mutations = mutations


class AutoCreateTopics:
    """Create topics that clients asked for and that do not exist, with the broker's default settings.

    Names that exist by now, invalid names, and those over the client's quota are ignored. The clients ask again.
    `askers` has who asked for each name first, where that is known.
    """

    __slots__ = ("askers", "mutations", "names")

    def __init__(
        self, names: list[str], mutations: MutationQuota | None = None, askers: dict[str, Asker] | None = None
    ) -> None:
        self.names, self.mutations, self.askers = names, mutations, askers or {}


class DeleteTopics:
    """Delete topics. `topics` maps the 16-byte id to the name in the response, which is None when it must not show."""

    __slots__ = ("asker", "mutations", "refused", "token", "topics")

    def __init__(
        self,
        token: object,
        topics: dict[bytes, str | None],
        *,
        refused: list[messages.DeleteTopicsResponse.DeletableTopicResult] | None = None,
        mutations: MutationQuota | None = None,
        asker: Asker | None = None,
    ) -> None:
        self.token, self.topics = token, topics
        self.refused = refused or []
        self.mutations, self.asker = mutations, asker


class CreatePartitions:
    """Grow topics to new numbers of partitions."""

    __slots__ = ("mutations", "refused", "token", "topics", "validate_only")

    def __init__(
        self,
        token: object,
        topics: list[messages.CreatePartitionsRequest.CreatePartitionsTopic],
        *,
        validate_only: bool = False,
        refused: list[messages.CreatePartitionsResponse.CreatePartitionsTopicResult] | None = None,
        mutations: MutationQuota | None = None,
    ) -> None:
        self.token, self.topics, self.validate_only = token, topics, validate_only
        self.refused = refused or []
        self.mutations = mutations


class AlterPartition:
    """The leader of partitions proposes other ISRs. The `request` is as it travels (`version` says how)."""

    __slots__ = ("request", "token", "version")

    def __init__(self, token: object, request: messages.AlterPartitionRequest, version: int = 3) -> None:
        self.token = token
        self.request = request
        self.version = version


class AlterPartitionReassignments:
    """Move partitions to other brokers, or cancel such moves."""

    __slots__ = ("request", "token")

    def __init__(self, token: object, request: messages.AlterPartitionReassignmentsRequest) -> None:
        self.token = token
        self.request = request


class ElectLeaders:
    """Elect leaders. `topics` is None for all partitions. `election` is PREFERRED or UNCLEAN of `partition_changes.py`.
    `version` is that of the request."""

    __slots__ = ("election", "token", "topics", "version")

    def __init__(
        self,
        token: object,
        election: str,
        topics: list[messages.ElectLeadersRequest.TopicPartitions] | None,
        version: int,
    ) -> None:
        self.token = token
        self.election = election
        self.topics = topics
        self.version = version


MAX_ELECTIONS_PER_CHANGE = 1000
"""Those of `ElectByItself`, as in Kafka's controller: what is left is elected in a change of its own."""


class ElectByItself:
    """The controller elects leaders where that is due. `election` is PREFERRED or UNCLEAN of `partition_changes.py`.
    The token is told of how many partitions."""

    __slots__ = ("election", "token")

    def __init__(self, token: object, election: str) -> None:
        self.token = token
        self.election = election


class AssignReplicasToDirs:
    """A broker placed replicas in directories. `replicas` maps (topic id, partition) to the directory's 16-byte id."""

    __slots__ = ("broker_id", "replicas")

    def __init__(self, broker_id: int, replicas: dict[tuple[bytes, int], bytes]) -> None:
        self.broker_id = broker_id
        self.replicas = replicas


class AssignReplicas:
    """The same by a broker of another process, which gets an answer for each replica."""

    __slots__ = ("request", "token")

    def __init__(self, token: object, request: messages.AssignReplicasToDirsRequest) -> None:
        self.token = token
        self.request = request


class ChangeLogDirs:
    """A broker's directories changed. `online` and `cordoned` are directory ids; None for no change."""

    __slots__ = ("broker_id", "cordoned", "online")

    def __init__(self, broker_id: int, online: list[bytes] | None, cordoned: list[bytes] | None) -> None:
        self.broker_id = broker_id
        self.online = online
        self.cordoned = cordoned


class AlterConfigs:
    """Change dynamic settings. `changes` is a list of `(resource type, resource name, operations)` in the order of the
    response.

    For the incremental API `operations` is a list of `(name, operation, text)`. For the legacy API (`incremental` is
    false) it is a dict of name to text with all new settings. `refused` maps a position in the response to its row.
    """

    __slots__ = ("changes", "incremental", "refused", "token", "validate_only")

    def __init__(
        self,
        token: object,
        changes: list[tuple[int, str, Any]],
        *,
        incremental: bool,
        validate_only: bool = False,
        refused: dict[int, Any] | None = None,
    ) -> None:
        self.token = token
        self.changes = changes
        self.incremental = incremental
        self.validate_only = validate_only
        self.refused = refused or {}


class AllocateProducerIds:
    """Assign the next block of producer ids to a broker."""

    __slots__ = ("broker_epoch", "broker_id", "token")

    def __init__(self, token: object, broker_id: int, broker_epoch: int) -> None:
        self.token = token
        self.broker_id = broker_id
        self.broker_epoch = broker_epoch


class UpdateFeatures:
    """Change the levels of features. `updates` maps a name to (level, upgrade type)."""

    __slots__ = ("names", "refusal", "token", "updates", "validate_only", "voters")

    def __init__(
        self,
        token: object,
        updates: dict[str, tuple[int, int]],
        *,
        names: list[str],
        voters: list[Voter],
        validate_only: bool = False,
    ) -> None:
        """`names` are those of the response's rows; a name may come twice. `voters` are those of the quorum: they are
        written to the log when `kraft.version` becomes 1."""
        self.names = names
        self.refusal: str | None = None  # why the quorum does not raise kraft.version
        self.token = token
        self.updates = updates
        self.voters = voters
        self.validate_only = validate_only


class UnregisterBroker:
    """Remove a broker from the cluster; with `is_controller` the controller with that id."""

    __slots__ = ("broker_id", "is_controller", "token")

    def __init__(self, token: object, broker_id: int, is_controller: bool = False) -> None:
        self.token = token
        self.broker_id = broker_id
        self.is_controller = is_controller


class CreateAcls:
    """Create ACLs."""

    __slots__ = ("creations", "token")

    def __init__(self, token: object, creations: list[messages.CreateAclsRequest.AclCreation]) -> None:
        self.token = token
        self.creations = creations


class DeleteAcls:
    """Delete the ACLs that match a filter."""

    __slots__ = ("filters", "token")

    def __init__(self, token: object, filters: list[messages.DeleteAclsRequest.DeleteAclsFilter]) -> None:
        self.token = token
        self.filters = filters


class AlterClientQuotas:
    """Change client quotas."""

    __slots__ = ("entries", "token", "validate_only")

    def __init__(
        self, token: object, entries: list[messages.AlterClientQuotasRequest.EntryData], *, validate_only: bool = False
    ) -> None:
        self.token = token
        self.entries = entries
        self.validate_only = validate_only


class AlterUserScramCredentials:
    """Change the SCRAM credentials of users."""

    __slots__ = ("deletions", "token", "upsertions")

    def __init__(
        self,
        token: object,
        deletions: list[messages.AlterUserScramCredentialsRequest.ScramCredentialDeletion],
        upsertions: list[messages.AlterUserScramCredentialsRequest.ScramCredentialUpsertion],
    ) -> None:
        self.token = token
        self.deletions = deletions
        self.upsertions = upsertions


class CreateDelegationToken:
    """Make a delegation token at `now_ms`, in milliseconds since 1970.

    `owner` and each of `renewers` are pairs of type and name, `requester` is who asks ("User:alice"). A
    `max_lifetime_ms` that is not positive means the longest that the settings allow. `names_requester` says whether the
    version of the response has the requester."""

    __slots__ = ("max_lifetime_ms", "names_requester", "now_ms", "owner", "renewers", "requester", "token")

    def __init__(
        self,
        token: object,
        now_ms: int,
        owner: tuple[str, str],
        requester: str,
        renewers: list[tuple[str, str]],
        max_lifetime_ms: int,
        names_requester: bool,
    ) -> None:
        self.token = token
        self.now_ms = now_ms
        self.owner = owner
        self.requester = requester
        self.renewers = renewers
        self.max_lifetime_ms = max_lifetime_ms
        self.names_requester = names_requester


class RenewDelegationToken:
    """Move the expiry of the delegation token with this HMAC to `period_ms` after `now_ms`, or by the settings."""

    __slots__ = ("hmac", "now_ms", "period_ms", "requester", "token")

    def __init__(self, token: object, now_ms: int, requester: str, hmac: bytes, period_ms: int) -> None:
        self.token = token
        self.now_ms = now_ms
        self.requester = requester
        self.hmac = hmac
        self.period_ms = period_ms


class ExpireDelegationToken:
    """Let the delegation token with this HMAC expire `period_ms` after `now_ms`; a negative period ends it at once."""

    __slots__ = ("hmac", "now_ms", "period_ms", "requester", "token")

    def __init__(self, token: object, now_ms: int, requester: str, hmac: bytes, period_ms: int) -> None:
        self.token = token
        self.now_ms = now_ms
        self.requester = requester
        self.hmac = hmac
        self.period_ms = period_ms


class RemoveExpiredTokens:
    """Remove delegation tokens that have expired at `now_ms`. The token is told how many."""

    __slots__ = ("now_ms", "token")

    def __init__(self, token: object, now_ms: int) -> None:
        self.token = token
        self.now_ms = now_ms
