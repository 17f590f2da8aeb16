"""Whether a caller may: the rules of the APIs as rows, and the few functions that enforce them.

Each row of `table.py` lists the rules of its API. A handler takes its rules from there (`table.rules`) and asks
`refusal` or `may`; so which operation an API needs, and which error its refusal is, is written once. Facts are those
of Kafka's `KafkaApis`, `ControllerApis` and `AclApis`.
"""

from __future__ import annotations

from collections import namedtuple

from pykafkad import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    class Caller(Protocol):
        """What knows who asks: a handler's context."""

        def allowed(self, operation: str, resource_type: str, resource_name: str | None) -> bool:
            """Whether the caller may do `operation` on the resource."""


CLUSTER_NAME = "kafka-cluster"
"""The name of the one resource of type Cluster."""

# What the answer says of a resource that the caller may not use.
ROW = "row"  # the error stands in the rows that the resource was named in
WHOLE = "whole"  # the whole request is refused; answers that only have rows carry the error in each
HIDDEN = "hidden"  # the resource is left out of the answer
OTHERWISE = "otherwise"  # the answer tells less, without an error

ERRORS = {
    "Topic": errors.TOPIC_AUTHORIZATION_FAILED,
    "Group": errors.GROUP_AUTHORIZATION_FAILED,
    "Cluster": errors.CLUSTER_AUTHORIZATION_FAILED,
    "TransactionalId": errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    "DelegationToken": errors.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
    "User": errors.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
}
"""The error of a refusal, by the type of the resource, unless a rule has its own."""


class Rule(namedtuple("Rule", ("operation", "resource_type", "names", "answer", "instead", "error", "when"))):
    """What an API needs: `operation` on resources of `resource_type`.

    `names` are the places of their names or topic ids in the request, as field names with dots (none: the cluster, or
    names that the request does not have). `answer` is what the answer says of a refusal, `error` its code. `instead` is
    (operation, resource type) of what does as well: on the cluster, or with another type on any resource of that type.
    `when` is text: in which requests the rule counts (empty: in all)."""

    __slots__ = ()

    operation: str
    resource_type: str
    names: tuple[str, ...]
    answer: str
    instead: tuple[str, str] | None
    error: int
    when: str

    def __str__(self) -> str:
        def words(operation: str, resource_type: str) -> str:
            return f"{operation} on the {_WORDS[resource_type]}"

        text = words(self.operation, self.resource_type)
        if self.instead is not None:
            other = words(*self.instead) if self.instead[1] == "Cluster" else f"{self.instead[0]} on any topic"
            text += f" or {other}"
        return f"{text} ({self.when})" if self.when else text


_WORDS = {
    "Topic": "topic",
    "Group": "group",
    "Cluster": "cluster",
    "TransactionalId": "transactional id",
    "DelegationToken": "token",
    "User": "user",
}


def needs(
    operation: str,
    resource_type: str,
    *names: str,
    answer: str = ROW,
    instead: tuple[str, str] | None = None,
    error: int | None = None,
    when: str = "",
) -> Rule:
    """A rule; what is asked of the cluster refuses the whole request unless it says otherwise."""
    if resource_type == "Cluster" and answer == ROW:
        answer = WHOLE
    return Rule(operation, resource_type, names, answer, instead, error or ERRORS[resource_type], when)


def may(ctx: Caller, rule: Rule, name: str | None = CLUSTER_NAME) -> bool:
    """Whether the caller may do what `rule` needs, on the resource of that name."""
    if ctx.allowed(rule.operation, rule.resource_type, name):
        return True
    if rule.instead is None:
        return False
    operation, resource_type = rule.instead
    return ctx.allowed(operation, resource_type, CLUSTER_NAME if resource_type == "Cluster" else None)


def refusal(ctx: Caller, rule: Rule, name: str | None = CLUSTER_NAME) -> int:
    """The error for a caller who may not do what `rule` needs; NONE for one who may."""
    return errors.NONE if may(ctx, rule, name) else rule.error
