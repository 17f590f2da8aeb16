"""The operations on each kind of resource, and which of them a caller may do, as bit fields; checks that several
handlers share."""

from __future__ import annotations

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.handlers.authorization import CLUSTER_NAME, may, refusal
from pykafkad.handlers.authorization_rules import RULES
from pykafkad.metadata.configs import TYPE_BROKER_LOGGER, TYPE_CLIENT_METRICS, TYPE_GROUP
from pykafkad.metadata.image import TYPE_BROKER, TYPE_TOPIC
from pykafkad.uuids import ZERO

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.handlers.authorization import Caller, Rule
    from pykafkad.handlers.context import Context
    from pykafkad.handlers.controller_context import ControllerContext
    from pykafkad.wire import messages

NOT_ASKED = -(2**31)

# Resource type: (operation, its number in ACLs and bit fields).
OPERATIONS = {
    "Topic": (
        ("Read", 3),
        ("Write", 4),
        ("Create", 5),
        ("Delete", 6),
        ("Alter", 7),
        ("Describe", 8),
        ("DescribeConfigs", 10),
        ("AlterConfigs", 11),
    ),
    "Group": (("Read", 3), ("Delete", 6), ("Describe", 8), ("DescribeConfigs", 10), ("AlterConfigs", 11)),
    "Cluster": (
        ("Create", 5),
        ("Alter", 7),
        ("Describe", 8),
        ("ClusterAction", 9),
        ("DescribeConfigs", 10),
        ("AlterConfigs", 11),
        ("IdempotentWrite", 12),
    ),
}

# Type of a config resource: the resource type of its authorization.
CONFIG_RESOURCES = {
    TYPE_TOPIC: "Topic",
    TYPE_BROKER: "Cluster",
    TYPE_BROKER_LOGGER: "Cluster",
    TYPE_CLIENT_METRICS: "Cluster",
    TYPE_GROUP: "Group",
}


def authorized_operations(ctx: Context | ControllerContext, resource_type: str, name: str) -> int:
    """A bit field with one bit per operation that the caller may do on the resource."""
    release = ctx.settings.release
    known = OPERATIONS[resource_type]
    if resource_type == "Group" and release is not None and "configs.without_groups" in release.answers:
        known = tuple(each for each in known if not each[0].endswith("Configs"))
    return sum(1 << number for operation, number in known if ctx.could(operation, resource_type, name))


def cluster_operations(ctx: Context | ControllerContext) -> int:
    """As `authorized_operations` for the cluster; 0 for a caller that may not describe it."""
    if not may(ctx, RULES["DescribeCluster"][0]):
        return 0
    return authorized_operations(ctx, "Cluster", CLUSTER_NAME)


def node_id_in(name: str, subject: str) -> int:
    """The node id in the name of a broker resource, parsed as Java parses an int. Raises `KafkaError` with a message
    about `subject`."""
    digits = name[1:] if name[:1] in ("-", "+") else name
    # int() would accept surrounding spaces and underscores too.
    if not digits.isdecimal() or len(digits) > 20 or not -(2**31) <= int(name) < 2**31:
        raise KafkaError(errors.INVALID_REQUEST, f"{subject} must be an integer, but it is: {name}")
    return int(name)


def config_refusal(ctx: Caller, rules: tuple[Rule, ...], resource_type: int, name: str) -> int:
    """The error of a caller that does not fulfil the API's `rules` for a resource of a known type, or NONE."""
    kind = CONFIG_RESOURCES[resource_type]
    rule = next(rule for rule in rules if rule.resource_type == kind)
    return refusal(ctx, rule) if kind == "Cluster" else refusal(ctx, rule, name)


def voter_refusal(
    ctx: ControllerContext, request: messages.AddRaftVoterRequest | messages.RemoveRaftVoterRequest, verb: str
) -> tuple[int, str | None] | None:
    """The checks that AddRaftVoter (`verb` "Add") and RemoveRaftVoter share, in Kafka's order. Returns (code, text or
    None), or None if all pass."""
    if request.cluster_id is not None and request.cluster_id != ctx.cluster_id:
        return (
            errors.INCONSISTENT_CLUSTER_ID,
            f'The given id "{request.cluster_id}" doesn\'t match the cluster id "{ctx.cluster_id}"',
        )
    if request.voter_id < 0 or request.voter_directory_id == ZERO:
        return errors.INVALID_REQUEST, f"{verb} voter request didn't include a valid voter"
    return None
