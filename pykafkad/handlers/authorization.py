"""Authorization: what a rule is, and the functions that enforce rules.

Each row of `table.py` lists the rules of its API. A handler takes its rules from `authorization_rules.RULES` and calls
`refusal` or `may`. So the operation that an API needs, and the error of its refusal, are written once. The facts are
those of Kafka's `KafkaApis`, `ControllerApis` and `AclApis`.
"""

from __future__ import annotations

from collections import namedtuple

from pykafkad import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    class Caller(Protocol):
        """The caller of a request, which a handler's context stands for."""

        def allowed(self, operation: str, resource_type: str, resource_name: str | None) -> bool:
            """Whether the caller may do `operation` on the resource, which he does then."""

        def could(self, operation: str, resource_type: str, resource_name: str | None) -> bool:
            """The same, where he is only told."""

        def refused(self, rule: Rule, resource_name: str | None) -> None:
            """He may not, and what he asked for is refused."""


CLUSTER_NAME = "kafka-cluster"
"""The name of the one resource of type Cluster."""

# How the answer shows that the caller may not use a resource.
ROW = "row"  # the rows that name the resource carry the error
WHOLE = "whole"  # the whole request is refused; a response without a top-level error carries it in each row
HIDDEN = "hidden"  # the resource is left out of the answer
OTHERWISE = "otherwise"  # the answer leaves out details, without an error

_UNTOLD = (HIDDEN, OTHERWISE)

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
    """One thing that an API needs: `operation` on resources of `resource_type`.

    `names` are the fields of the request with the names or topic ids of the resources, as paths with dots. It is empty
    for the cluster, and for names that are not in the request. `answer` is how the answer shows a refusal, `error` its
    code. `instead` is a pair (operation, resource type) that suffices too: on the cluster, on any topic, or on the user
    whom the handler names. `when` says in words for which requests the rule counts (empty: all).
    """

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
            other = f"{self.instead[0]} on any topic" if self.instead[1] == "Topic" else words(*self.instead)
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
    """A rule. A rule for the cluster refuses the whole request unless `answer` says otherwise."""
    if resource_type == "Cluster" and answer == ROW:
        answer = WHOLE
    return Rule(operation, resource_type, names, answer, instead, error or ERRORS[resource_type], when)


def may(ctx: Caller, rule: Rule, name: str | None = CLUSTER_NAME, user: str | None = None) -> bool:
    """Whether the caller may do what `rule` needs on the resource of that name, or what suffices too; on `user`, if
    that is on a user."""
    if ctx.allowed(rule.operation, rule.resource_type, name):
        return True
    if rule.instead is not None:
        operation, resource_type = rule.instead
        if ctx.allowed(operation, resource_type, CLUSTER_NAME if resource_type == "Cluster" else user):
            return True
    if rule.answer not in _UNTOLD:
        ctx.refused(rule, name)
    return False


def refusal(ctx: Caller, rule: Rule, name: str | None = CLUSTER_NAME) -> int:
    """The error for a caller that may not do what `rule` needs; NONE for one that may."""
    return errors.NONE if may(ctx, rule, name) else rule.error
