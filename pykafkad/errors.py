"""Kafka's error codes as a table, and the four kinds of error that pykafkad knows.

The constants are the table: one line per code of Apache Kafka 4.3.1, named as Kafka names it
(`errors.UNKNOWN_TOPIC_OR_PARTITION == 3`).

The four kinds. Each says whose fault it is, and one place translates it:

* `ProtocolError`: the peer broke framing or schema. The connection is closed.
* `KafkaError`: an expected error. Its code goes into the row of the response that it concerns.
* `StorageFailure`: the disk failed under a log. That log goes offline, and clients get `KAFKA_STORAGE_ERROR`.
* Any other exception is a bug in pykafkad. It is logged, counted and answered with `UNKNOWN_SERVER_ERROR`.

`ConfigError` is raised before a broker runs: a setting is invalid.
"""

from __future__ import annotations

import errno

UNKNOWN_SERVER_ERROR = -1
NONE = 0
OFFSET_OUT_OF_RANGE = 1
CORRUPT_MESSAGE = 2
UNKNOWN_TOPIC_OR_PARTITION = 3
INVALID_FETCH_SIZE = 4
LEADER_NOT_AVAILABLE = 5
NOT_LEADER_OR_FOLLOWER = 6
REQUEST_TIMED_OUT = 7
BROKER_NOT_AVAILABLE = 8
REPLICA_NOT_AVAILABLE = 9
MESSAGE_TOO_LARGE = 10
STALE_CONTROLLER_EPOCH = 11
OFFSET_METADATA_TOO_LARGE = 12
NETWORK_EXCEPTION = 13
COORDINATOR_LOAD_IN_PROGRESS = 14
COORDINATOR_NOT_AVAILABLE = 15
NOT_COORDINATOR = 16
INVALID_TOPIC_EXCEPTION = 17
RECORD_LIST_TOO_LARGE = 18
NOT_ENOUGH_REPLICAS = 19
NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20
INVALID_REQUIRED_ACKS = 21
ILLEGAL_GENERATION = 22
INCONSISTENT_GROUP_PROTOCOL = 23
INVALID_GROUP_ID = 24
UNKNOWN_MEMBER_ID = 25
INVALID_SESSION_TIMEOUT = 26
REBALANCE_IN_PROGRESS = 27
INVALID_COMMIT_OFFSET_SIZE = 28
TOPIC_AUTHORIZATION_FAILED = 29
GROUP_AUTHORIZATION_FAILED = 30
CLUSTER_AUTHORIZATION_FAILED = 31
INVALID_TIMESTAMP = 32
UNSUPPORTED_SASL_MECHANISM = 33
ILLEGAL_SASL_STATE = 34
UNSUPPORTED_VERSION = 35
TOPIC_ALREADY_EXISTS = 36
INVALID_PARTITIONS = 37
INVALID_REPLICATION_FACTOR = 38
INVALID_REPLICA_ASSIGNMENT = 39
INVALID_CONFIG = 40
NOT_CONTROLLER = 41
INVALID_REQUEST = 42
UNSUPPORTED_FOR_MESSAGE_FORMAT = 43
POLICY_VIOLATION = 44
OUT_OF_ORDER_SEQUENCE_NUMBER = 45
DUPLICATE_SEQUENCE_NUMBER = 46
INVALID_PRODUCER_EPOCH = 47
INVALID_TXN_STATE = 48
INVALID_PRODUCER_ID_MAPPING = 49
INVALID_TRANSACTION_TIMEOUT = 50
CONCURRENT_TRANSACTIONS = 51
TRANSACTION_COORDINATOR_FENCED = 52
TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53
SECURITY_DISABLED = 54
OPERATION_NOT_ATTEMPTED = 55
KAFKA_STORAGE_ERROR = 56
LOG_DIR_NOT_FOUND = 57
SASL_AUTHENTICATION_FAILED = 58
UNKNOWN_PRODUCER_ID = 59
REASSIGNMENT_IN_PROGRESS = 60
DELEGATION_TOKEN_AUTH_DISABLED = 61
DELEGATION_TOKEN_NOT_FOUND = 62
DELEGATION_TOKEN_OWNER_MISMATCH = 63
DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = 64
DELEGATION_TOKEN_AUTHORIZATION_FAILED = 65
DELEGATION_TOKEN_EXPIRED = 66
INVALID_PRINCIPAL_TYPE = 67
NON_EMPTY_GROUP = 68
GROUP_ID_NOT_FOUND = 69
FETCH_SESSION_ID_NOT_FOUND = 70
INVALID_FETCH_SESSION_EPOCH = 71
LISTENER_NOT_FOUND = 72
TOPIC_DELETION_DISABLED = 73
FENCED_LEADER_EPOCH = 74
UNKNOWN_LEADER_EPOCH = 75
UNSUPPORTED_COMPRESSION_TYPE = 76
STALE_BROKER_EPOCH = 77
OFFSET_NOT_AVAILABLE = 78
MEMBER_ID_REQUIRED = 79
PREFERRED_LEADER_NOT_AVAILABLE = 80
GROUP_MAX_SIZE_REACHED = 81
FENCED_INSTANCE_ID = 82
ELIGIBLE_LEADERS_NOT_AVAILABLE = 83
ELECTION_NOT_NEEDED = 84
NO_REASSIGNMENT_IN_PROGRESS = 85
GROUP_SUBSCRIBED_TO_TOPIC = 86
INVALID_RECORD = 87
UNSTABLE_OFFSET_COMMIT = 88
THROTTLING_QUOTA_EXCEEDED = 89
PRODUCER_FENCED = 90
RESOURCE_NOT_FOUND = 91
DUPLICATE_RESOURCE = 92
UNACCEPTABLE_CREDENTIAL = 93
INCONSISTENT_VOTER_SET = 94
INVALID_UPDATE_VERSION = 95
FEATURE_UPDATE_FAILED = 96
PRINCIPAL_DESERIALIZATION_FAILURE = 97
SNAPSHOT_NOT_FOUND = 98
POSITION_OUT_OF_RANGE = 99
UNKNOWN_TOPIC_ID = 100
DUPLICATE_BROKER_REGISTRATION = 101
BROKER_ID_NOT_REGISTERED = 102
INCONSISTENT_TOPIC_ID = 103
INCONSISTENT_CLUSTER_ID = 104
TRANSACTIONAL_ID_NOT_FOUND = 105
FETCH_SESSION_TOPIC_ID_ERROR = 106
INELIGIBLE_REPLICA = 107
NEW_LEADER_ELECTED = 108
OFFSET_MOVED_TO_TIERED_STORAGE = 109
FENCED_MEMBER_EPOCH = 110
UNRELEASED_INSTANCE_ID = 111
UNSUPPORTED_ASSIGNOR = 112
STALE_MEMBER_EPOCH = 113
MISMATCHED_ENDPOINT_TYPE = 114
UNSUPPORTED_ENDPOINT_TYPE = 115
UNKNOWN_CONTROLLER_ID = 116
UNKNOWN_SUBSCRIPTION_ID = 117
TELEMETRY_TOO_LARGE = 118
INVALID_REGISTRATION = 119
TRANSACTION_ABORTABLE = 120
INVALID_RECORD_STATE = 121
SHARE_SESSION_NOT_FOUND = 122
INVALID_SHARE_SESSION_EPOCH = 123
FENCED_STATE_EPOCH = 124
INVALID_VOTER_KEY = 125
DUPLICATE_VOTER = 126
VOTER_NOT_FOUND = 127
INVALID_REGULAR_EXPRESSION = 128
REBOOTSTRAP_REQUIRED = 129
STREAMS_INVALID_TOPOLOGY = 130
STREAMS_INVALID_TOPOLOGY_EPOCH = 131
STREAMS_TOPOLOGY_FENCED = 132
SHARE_SESSION_LIMIT_REACHED = 133
# Since Kafka 4.4.
GROUP_DELETION_FAILED = 134
STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED = 135
CONTROLLER_ID_NOT_REGISTERED = 136

_NAMES = {value: key for key, value in list(globals().items()) if key.isupper() and type(value) is int}


def name(code: int) -> str:
    """Kafka's name of an error code, or `ERROR_` and the number of an unknown code."""
    return _NAMES.get(code) or f"ERROR_{code}"


def message(code: int) -> str:
    """A general error message, for answers without a more precise one."""
    return name(code).replace("_", " ").capitalize() + "."


def codes() -> dict[int, str]:
    """The whole table as code to name, for documentation and tests."""
    return dict(_NAMES)


class ProtocolError(Exception):
    """The peer broke framing or schema. The connection is closed, and the text goes to the log."""


class KafkaError(Exception):
    """An expected error of one row of a request.

    `code` is one of the constants above. `text` is the error message (None leaves it null in the answer).
    `record_errors` is a list of `(index in the batch, text)` for produce errors of single records.
    """

    def __init__(self, code: int, text: str | None = None, record_errors: list[tuple[int, str]] | None = None) -> None:
        super().__init__(f"{name(code)}: {text}" if text else name(code))
        self.code = code
        self.text = text
        self.record_errors = record_errors or []


class StorageFailure(Exception):
    """The disk refused an operation or lost data. The text has the operation, the path and the system's reason."""

    def __init__(self, operation: str, path: str, reason: BaseException | str) -> None:
        # The text of an OSError repeats the path and begins with a number.
        super().__init__(f"{operation} {path}: {getattr(reason, 'strerror', None) or reason}")
        self.operation = operation
        self.path = path
        self.reason = reason
        self.lacks_space = getattr(reason, "errno", None) in (errno.ENOSPC, errno.EDQUOT)
        """Whether the disk works, and is full."""

    @property
    def is_passing(self) -> bool:
        """Whether the disk works and only descriptors ran out, which may be free again soon."""
        return getattr(self.reason, "errno", None) in (errno.EMFILE, errno.ENFILE)

    def copy(self) -> StorageFailure:
        """A new exception with the same text.

        Code that keeps or re-raises the failure uses a copy. A raised exception holds its stack, and with it the bytes
        of the request.
        """
        twin = StorageFailure(self.operation, self.path, getattr(self.reason, "strerror", None) or str(self.reason))
        twin.lacks_space = self.lacks_space
        return twin


class ConfigError(Exception):
    """A setting is invalid. The text has its origin, its name and what is allowed."""


class StartFailure(ConfigError):
    """The settings are valid, but the broker cannot start now: its port or directory is in use."""
