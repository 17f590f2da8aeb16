"""The only registry of APIs: one row per API key, in one of four states.

`ROWS` are the APIs that a broker's listener answers (`OFFERED`). All are advertised, except those that Kafka hides too.
`CONTROLLER_ROWS` are those that a controller's listener alone answers (`CONTROLLER`). ApiVersions, the dispatcher's
checks, the README and the tests read them. Each has a module `handlers/<module>.py` with one public
`handle(ctx, request)`.

`NEWER_ROWS` are the APIs that came after 4.3.1 (`NEWER`). A broker answers them that acts as a release which has them.

`UNANSWERED` are the other keys (`REMOVED`): Kafka keeps each so that no new API gets it, and has no valid version of
it. They close the connection here as they do with Kafka.

`pykafkad describe-apis --all` prints all of them.
"""

from __future__ import annotations

from collections import namedtuple
from functools import cache
from sys import modules

from pykafkad.handlers.authorization_rules import CLUSTER_ACTION, RULES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from pykafkad.settings.release import Release

    Handler = Callable[[Any, Any], object]

OFFERED = "offered"
CONTROLLER = "controller"
REMOVED = "removed"
NEWER = "newer"


class Api(
    namedtuple(
        "Api",
        (
            "key",
            "name",
            "min_version",
            "max_version",
            "kafka_versions",
            "state",
            "authorization",
            "gaps",
            "advertised_min",
            "listeners",
            "is_forwarded",
        ),
    )
):
    """One API of Kafka.

    `min_version` and `max_version` are the versions that are answered here (None: none), `kafka_versions` those of
    Kafka 4.3.1 as text, `advertised_min` the lowest version in ApiVersions (None: not advertised). `state` is one of
    the four of this module, `authorization` the rules (`authorization.py`), `gaps` the missing parts. `listeners` are
    the kinds of listener that answer it (`listeners` of Kafka's message files). `is_forwarded` says whether a broker
    forwards the request to the controller unchanged (`forwardToController` in Kafka).
    """

    __slots__ = ()

    @property
    def carries_records(self) -> bool:
        """Whether requests contain record batches. These are views of the receive buffer, so the request may be long
        and must not be kept."""
        return self.name in _CARRY_RECORDS

    @property
    def waits_for_others(self) -> bool:
        """Whether the answer waits for the requests of other group members. Such a request must not hold up another."""
        return self.name in _WAIT_FOR_OTHERS

    @property
    def has_untagged_response(self) -> bool:
        """Whether responses have response header 0 in every version, so that every client can parse them."""
        return self.name in _UNTAGGED_RESPONSES

    @property
    def answers_unknown_versions(self) -> bool:
        """Whether a request of a version that is not answered here is told so, in version 0 and with the module's
        `unsupported`; such a request of any other API closes the connection."""
        return self.name in _ANSWER_UNKNOWN_VERSIONS

    @property
    def has_fast_path(self) -> bool:
        """Whether the server may serve the commonest shape of the request from its bytes, without a message."""
        return self.name in _HAVE_FAST_PATHS

    @property
    def login_stages(self) -> tuple[str, ...]:
        """The stages of a login in which the API is answered, besides the one after it."""
        return _LOGIN_STAGES.get(self.name, ())


VERSIONS_STAGE = "versions"
HANDSHAKE_STAGE = "handshake"
AUTHENTICATE_STAGE = "authenticate"
EXPIRED_STAGE = "expired"

_ANSWER_UNKNOWN_VERSIONS = ("ApiVersions",)
_CARRY_RECORDS = ("Produce",)
_HAVE_FAST_PATHS = ("Produce", "Fetch", "ConsumerGroupHeartbeat")
_LOGIN_STAGES = {
    "ApiVersions": (VERSIONS_STAGE,),
    "SaslHandshake": (VERSIONS_STAGE, HANDSHAKE_STAGE, EXPIRED_STAGE),
    "SaslAuthenticate": (AUTHENTICATE_STAGE,),
}
_WAIT_FOR_OTHERS = ("JoinGroup", "SyncGroup")
_UNTAGGED_RESPONSES = ("ApiVersions",)
# Before Kafka 4.0, Fetch refuses topics with zstd below this version.
_NO_ZSTD_BELOW = 10

_GONE = "gone since Kafka 4.0, with the brokers that ZooKeeper coordinated"


BROKER_LISTENER = "broker"
CONTROLLER_LISTENER = "controller"

# The APIs that Kafka's brokers forward to the controller.
_FORWARDED = frozenset((19, 20, 30, 31, 37, 43, 45, 46, 49, 51, 55, 57, 64, 80, 81, 94))
# The APIs that brokers and controllers answer. Kafka's controllers also have two APIs that they refuse (41, 50).
_ON_BOTH = _FORWARDED | {1, 17, 18, 29, 32, 33, 36, 38, 39, 40, 44, 60}


def _row(
    key: int, name: str, versions: str, gaps: str = "", *, advertised: bool = True, advertised_min: int | None = None
) -> Api:
    low, _, high = versions.partition("-")
    listeners = (BROKER_LISTENER, CONTROLLER_LISTENER) if key in _ON_BOTH else (BROKER_LISTENER,)
    first = None if not advertised else int(low) if advertised_min is None else advertised_min
    rules, is_forwarded = RULES.get(name, ()), key in _FORWARDED
    return Api(key, name, int(low), int(high or low), versions, OFFERED, rules, gaps, first, listeners, is_forwarded)


def _on_controllers(key: int, name: str, versions: str, gaps: str = "") -> Api:
    low, _, high = versions.partition("-")
    low_version = int(low)
    rules, on = RULES.get(name, (CLUSTER_ACTION,)), (CONTROLLER_LISTENER,)
    return Api(key, name, low_version, int(high or low), versions, CONTROLLER, rules, gaps, low_version, on, False)


def _newer(key: int, name: str, versions: str, gaps: str = "") -> Api:
    return _row(key, name, versions, gaps)._replace(kafka_versions="none", state=NEWER)


def _removed(key: int, name: str) -> Api:
    return Api(key, name, None, None, "none", REMOVED, (), _GONE, None, (), False)


ROWS: tuple[Api, ...] = (
    # Older librdkafka compresses only if Produce 0 is advertised (KAFKA-18659). Requests below version 3 still close
    # the connection.
    _row(
        0,
        "Produce",
        "3-13",
        "a batch with a valid checksum and invalid records is accepted",
        advertised_min=0,
    ),
    _row(1, "Fetch", "4-18"),
    _row(2, "ListOffsets", "1-11", "no tiered storage: the local log is the whole log"),
    _row(
        3,
        "Metadata",
        "0-13",
        "what a broker creates whose controller is another process does not count for controller_mutation_rate",
    ),
    _row(8, "OffsetCommit", "2-10"),
    _row(9, "OffsetFetch", "1-10"),
    _row(10, "FindCoordinator", "0-6"),
    _row(11, "JoinGroup", "0-9"),
    _row(12, "Heartbeat", "0-4"),
    _row(13, "LeaveGroup", "0-5"),
    _row(14, "SyncGroup", "0-5"),
    _row(15, "DescribeGroups", "0-6"),
    _row(16, "ListGroups", "0-5"),
    _row(17, "SaslHandshake", "0-1"),
    _row(18, "ApiVersions", "0-4"),
    _row(19, "CreateTopics", "2-7"),
    _row(20, "DeleteTopics", "1-6"),
    _row(21, "DeleteRecords", "0-2", "a copy of the log that moves to another directory is not waited for"),
    _row(22, "InitProducerId", "0-5"),
    _row(23, "OffsetForLeaderEpoch", "2-4"),
    _row(24, "AddPartitionsToTxn", "0-5"),
    _row(25, "AddOffsetsToTxn", "0-4"),
    _row(26, "EndTxn", "0-5"),
    _row(27, "WriteTxnMarkers", "1-2"),
    _row(28, "TxnOffsetCommit", "0-5"),
    _row(29, "DescribeAcls", "1-3"),
    _row(30, "CreateAcls", "1-3"),
    _row(31, "DeleteAcls", "1-3"),
    _row(32, "DescribeConfigs", "1-4", "one broker logger, `root`, where Kafka has one per class"),
    _row(33, "AlterConfigs", "0-2"),
    _row(34, "AlterReplicaLogDirs", "1-2"),
    _row(35, "DescribeLogDirs", "1-5"),
    _row(36, "SaslAuthenticate", "0-2"),
    _row(37, "CreatePartitions", "0-3"),
    _row(38, "CreateDelegationToken", "1-3"),
    _row(39, "RenewDelegationToken", "1-2"),
    _row(40, "ExpireDelegationToken", "1-2"),
    _row(41, "DescribeDelegationToken", "1-3"),
    _row(42, "DeleteGroups", "0-2"),
    _row(43, "ElectLeaders", "0-2"),
    _row(44, "IncrementalAlterConfigs", "0-1", "one broker logger, `root`, where Kafka has one per class"),
    _row(45, "AlterPartitionReassignments", "0-1"),
    _row(46, "ListPartitionReassignments", "0"),
    _row(47, "OffsetDelete", "0"),
    _row(48, "DescribeClientQuotas", "0-1"),
    _row(49, "AlterClientQuotas", "0-1", "localhost is the only host name that is resolved"),
    _row(50, "DescribeUserScramCredentials", "0"),
    _row(51, "AlterUserScramCredentials", "0"),
    _row(55, "DescribeQuorum", "0-2"),
    _row(57, "UpdateFeatures", "0-2"),
    _row(60, "DescribeCluster", "0-2"),
    _row(61, "DescribeProducers", "0"),
    _row(
        64,
        "UnregisterBroker",
        "0",
        "if the only broker is unregistered, it goes on coordinating the groups of clients that know its address",
    ),
    _row(65, "DescribeTransactions", "0"),
    _row(66, "ListTransactions", "0-2", "without google-re2 every pattern is INVALID_REGULAR_EXPRESSION"),
    _row(68, "ConsumerGroupHeartbeat", "0-1", "patterns need google-re2: without it they are refused"),
    _row(69, "ConsumerGroupDescribe", "0-1"),
    # Kafka advertises these two only with a telemetry plug-in, ApiVersions with pykafkad.client.telemetry.enable.
    _row(
        71,
        "GetTelemetrySubscriptions",
        "0",
        advertised=False,
        gaps="of Java's regular expressions only those that RE2 has too, without references and look-around",
    ),
    _row(72, "PushTelemetry", "0", advertised=False),
    _row(74, "ListConfigResources", "0-1"),
    _row(75, "DescribeTopicPartitions", "0"),
    _row(76, "ShareGroupHeartbeat", "1"),
    _row(77, "ShareGroupDescribe", "1"),
    _row(78, "ShareFetch", "1-2"),
    _row(79, "ShareAcknowledge", "1-2"),
    _row(
        80,
        "AddRaftVoter",
        "0-1",
        "for clusters of more than one broker; an only voter in its broker's process never reaches a further one",
    ),
    _row(81, "RemoveRaftVoter", "0"),
    _row(83, "InitializeShareGroupState", "0"),
    _row(84, "ReadShareGroupState", "0"),
    _row(85, "WriteShareGroupState", "0-1"),
    _row(86, "DeleteShareGroupState", "0"),
    _row(87, "ReadShareGroupStateSummary", "0-1"),
    _row(88, "StreamsGroupHeartbeat", "0"),
    _row(89, "StreamsGroupDescribe", "0"),
    _row(90, "DescribeShareGroupOffsets", "0-1"),
    _row(91, "AlterShareGroupOffsets", "0"),
    _row(92, "DeleteShareGroupOffsets", "0"),
)

CONTROLLER_ROWS: tuple[Api, ...] = (
    _on_controllers(52, "Vote", "0-2"),
    _on_controllers(53, "BeginQuorumEpoch", "0-1"),
    _on_controllers(54, "EndQuorumEpoch", "0-1"),
    _on_controllers(56, "AlterPartition", "2-3"),
    _on_controllers(58, "Envelope", "0", "controller_mutation_rate does not count for forwarded requests"),
    _on_controllers(59, "FetchSnapshot", "0-1"),
    _on_controllers(62, "BrokerRegistration", "0-4"),
    _on_controllers(63, "BrokerHeartbeat", "0-2"),
    _on_controllers(67, "AllocateProducerIds", "0"),
    _on_controllers(70, "ControllerRegistration", "0"),
    _on_controllers(73, "AssignReplicasToDirs", "0"),
    _on_controllers(82, "UpdateRaftVoter", "0"),
)

UNANSWERED: tuple[Api, ...] = (
    _removed(4, "LeaderAndIsr"),
    _removed(5, "StopReplica"),
    _removed(6, "UpdateMetadata"),
    _removed(7, "ControlledShutdown"),
)


NEWER_ROWS: tuple[Api, ...] = (
    _newer(93, "StreamsGroupTopologyDescriptionUpdate", "0", "descriptions of topologies are not kept: no plug-in"),
    _newer(94, "UnregisterController", "0"),
)


def every_row() -> list[Api]:
    """The rows of all API keys that Kafka 4.3.1 knows, in the order of the keys."""
    return sorted(ROWS + CONTROLLER_ROWS + UNANSWERED)


def answered_on(listener: str, release: Release | None = None) -> list[Api]:
    """The rows that a kind of listener answers, in the order of the keys; with the versions of another release."""
    rows = ROWS if listener == BROKER_LISTENER else sorted(ROWS + CONTROLLER_ROWS)
    answered = [row for row in rows if listener in row.listeners]
    if release is None:
        return answered
    answered += [row for row in NEWER_ROWS if row.name in release.apis and listener in row.listeners]
    return [row for each in answered for row in _in(release, each)]


@cache
def _by_key(listener: str) -> Mapping[int, Api]:
    return {row.key: row for row in answered_on(listener)}


def answered_by_key(listener: str, release: Release | None = None) -> Mapping[int, Api]:
    """The same by their keys. Those of Kafka 4.3.1 are gathered once for all brokers of a process."""
    return _by_key(listener) if release is None else {row.key: row for row in answered_on(listener, release)}


def _in(release: Release, row: Api) -> list[Api]:
    """The row with the versions of the release; none if it does not have the API."""
    if row.name not in release.apis:
        return [row]
    found = release.apis[row.name]
    if found is None:
        return []
    first, low, high = found
    advertised = None if row.advertised_min is None else first
    return [row._replace(min_version=low, max_version=high, advertised_min=advertised)]


def fast_versions(row: Api, known: Iterable[int], release: Release | None) -> list[int]:
    """The versions, of those that a fast path knows, in which the release answers as Kafka 4.3.1 does."""
    least = _NO_ZSTD_BELOW if row.name == "Fetch" and release is not None and release.has_old_formats else 0
    return [version for version in known if least <= version <= row.max_version]


def module_name(row: Api) -> str:
    """The handler module's name: Kafka's API name in snake case (`OffsetForLeaderEpoch`: `offset_for_leader_epoch`)."""
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in row.name).lstrip("_")


def handler(row: Api) -> Handler:
    """The `handle` function of an API; the module is imported now."""
    from importlib import import_module

    handle: Handler = import_module(f"pykafkad.handlers.{module_name(row)}").handle
    return handle


def long_handler(row: Api) -> Handler | None:
    """The handler of the API's long requests, `handle_long`, if the module has its own."""
    return getattr(modules[handler(row).__module__], "handle_long", None)


def unsupported_answer(row: Api) -> object:
    """What an API that `answers_unknown_versions` says to one, in version 0."""
    return modules[handler(row).__module__].unsupported(row)


def by_key(key: int, release: Release | None = None) -> Api | None:
    """The row of an API key that some listener answers, with the versions of another release; None for any other
    key."""
    for rows in (ROWS, CONTROLLER_ROWS, NEWER_ROWS):
        for row in rows:
            if row.key == key:
                return row if release is None else next(iter(_in(release, row)), None)
    return None
