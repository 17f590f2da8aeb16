"""Checks the authorization rules (`handlers/authorization_rules.py`) against a real Kafka with its own authorizer.

The cases of `tests/handlers/test_authorization.py`, which pykafkad passes by construction, go to Kafka from a caller
without ACLs, and from a caller with ACLs for all rules but one. Kafka's answers must match the rules. Kafka has two
listeners: PLAINTEXT, where every client is anonymous, and one with SASL for its own requests and for the super user who
creates the ACLs.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from compat_tests.brokers.broker import free_port
from compat_tests.brokers.kafka_process import KafkaProcess
from compat_tests.scenarios.exchange import CLOSED, Connection, Exchange, part
from pykafkad import errors
from pykafkad.config import STANDARD_AUTHORIZER
from pykafkad.handlers import table
from pykafkad.handlers.authorization import ERRORS, HIDDEN, OTHERWISE, Rule
from pykafkad.handlers.operations import OPERATIONS
from tests.handlers.authorization_walk import (
    GROUP,
    NEW_TOPIC,
    TOPIC,
    UNREACHABLE,
    cases,
    codes,
    is_refused,
    pairs,
    request,
)

_LOGIN = (
    'org.apache.kafka.common.security.plain.PlainLoginModule required username="root" password="root" user_root="root";'
)
_RESOURCE_TYPES = {"Topic": 2, "Group": 3, "Cluster": 4, "TransactionalId": 5}
_NUMBERS = {name: number for operations in OPERATIONS.values() for name, number in operations}
_EVERYTHING, _LITERAL, _ALLOW, _DENY, _ANY = "*", 3, 3, 2, 1
# A member that waits for other members of its group gets no answer.
_ANSWER_SECONDS = 10.0
NOTHING = "no answer"
TURN_USER = "whose-quota-tells-the-turn"
REFUSALS = set(ERRORS.values())
# APIs for which the cases show only that a caller without ACLs is refused, each with the reason.
REFUSED_ONLY = {"ShareAcknowledge": "topics are looked at within an open session only"}


class Guarded:
    """A Kafka with an authorizer: `root` may do everything, anonymous callers only what the ACLs allow."""

    def __init__(self, jars: Path, directory: Path) -> None:
        port, sasl_port, controller_port = free_port(), free_port(), free_port()
        listeners = f"PLAINTEXT://localhost:{port},GUARDED://localhost:{sasl_port}"
        protocols = "PLAINTEXT:PLAINTEXT,GUARDED:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT"
        self.broker = KafkaProcess(
            jars,
            directory,
            {
                "listeners": f"{listeners},CONTROLLER://localhost:{controller_port}",
                "advertised.listeners": listeners,
                "listener.security.protocol.map": protocols,
                "controller.quorum.bootstrap.servers": f"localhost:{controller_port}",
                "inter.broker.listener.name": "GUARDED",
                "sasl.enabled.mechanisms": "PLAIN",
                "sasl.mechanism.inter.broker.protocol": "PLAIN",
                "sasl.mechanism.controller.protocol": "PLAIN",
                "listener.name.guarded.plain.sasl.jaas.config": _LOGIN,
                "listener.name.controller.plain.sasl.jaas.config": _LOGIN,
                "authorizer.class.name": STANDARD_AUTHORIZER,
                "super.users": "User:root",
                # Nobody commits an offset for the group until the member that a request has added is lost.
                "group.consumer.min.session.timeout.ms": "1000",
                "group.consumer.session.timeout.ms": "1000",
                "group.consumer.min.heartbeat.interval.ms": "500",
                "group.consumer.heartbeat.interval.ms": "500",
            },
            port,
        )
        self._sasl = f"localhost:{sasl_port}"
        self._turn = 0

    def start(self) -> None:
        """Start it and create the topic and the group."""
        self.broker.start()
        self.root = Exchange(self._sasl, "authorization")
        assert self.root.quietly("SaslHandshake", 1, mechanism="PLAIN").error_code == 0
        assert self.root.quietly("SaslAuthenticate", 2, auth_bytes=b"\0root\0root").error_code == 0
        self.root.coordinator(GROUP)
        self.prepare()

    def prepare(self) -> bytes:
        """Wait until the topic and the group with its offset exist and the other topic does not; returns the topic's
        id.
        """
        topic = part("CreateTopics", "CreatableTopic", name=TOPIC, num_partitions=1, replication_factor=1)
        answer = self.root.quietly("CreateTopics", 7, topics=[topic], timeout_ms=60_000)
        assert codes(answer) <= {errors.TOPIC_ALREADY_EXISTS}
        answer = self.root.quietly("DeleteTopics", 5, topic_names=[NEW_TOPIC], timeout_ms=60_000)
        assert codes(answer) <= {errors.UNKNOWN_TOPIC_OR_PARTITION}
        topic_id = self.root.topic_id(TOPIC)
        partition = part("OffsetCommit", "OffsetCommitRequestPartition", partition_index=0, committed_offset=1)
        topic = part("OffsetCommit", "OffsetCommitRequestTopic", name=TOPIC, partitions=[partition])

        def is_committed(answer: Any) -> bool:
            if codes(answer):
                self._remove_members()
            return not codes(answer)

        self.root.until(lambda: self.root.quietly("OffsetCommit", 8, group_id=GROUP, topics=[topic]), is_committed)
        return topic_id

    def _remove_members(self) -> None:
        """Remove those that JoinGroup has added: otherwise they stay until their sessions are over."""
        (group,) = self.root.quietly("DescribeGroups", 4, groups=[GROUP]).groups
        left = [part("LeaveGroup", "MemberIdentity", member_id=each.member_id) for each in group.members]
        self.root.quietly("LeaveGroup", 4, group_id=GROUP, members=left)

    def ask(self, row: table.Api, version: int, values: dict[str, object], topic_id: bytes) -> Any:
        """The answer to an anonymous caller."""
        connection = Connection(self.broker.bootstrap)
        try:
            connection.socket.settimeout(_ANSWER_SECONDS)
            connection.send(row.name, version, request(row, version, values, topic_id))
            return connection.receive()
        except TimeoutError:
            return NOTHING
        finally:
            connection.close()

    def allow(self, wanted: set[tuple[str, str]], denied: Rule | None = None) -> None:
        """Allow every caller exactly these operations, on resources of any name.

        The `denied` rule gets an explicit denial, because operations imply others (Delete implies Describe).
        """
        names = dict.fromkeys(("resource_name_filter", "principal_filter", "host_filter"))
        everything = {
            **names,
            "resource_type_filter": _ANY,
            "pattern_type_filter": _ANY,
            "operation": _ANY,
            "permission_type": _ANY,
        }
        answer = self.root.quietly("DeleteAcls", 3, filters=[part("DeleteAcls", "DeleteAclsFilter", **everything)])
        assert not codes(answer)
        entries = [(*pair, _ALLOW) for pair in sorted(wanted)]
        if denied is not None:
            entries.append((denied.operation, denied.resource_type, _DENY))
        creations = [
            part("CreateAcls", "AclCreation", resource_type=_RESOURCE_TYPES[kind], resource_pattern_type=_LITERAL,
                 host="*",
                 resource_name="kafka-cluster" if kind == "Cluster" else _EVERYTHING, principal="User:ANONYMOUS",
                 operation=_NUMBERS[operation], permission_type=permission)
            for operation, kind, permission in entries
        ]  # fmt: skip
        if creations:
            assert not codes(self.root.quietly("CreateAcls", 3, creations=creations))
        self._await_effect()

    def _await_effect(self) -> None:
        """Wait until the ACLs are in effect: a later change that is visible proves it, as for `Exchange.in_effect`, and
        this one leaves its entry for the next.
        """
        self._turn += 1
        entity = [part("AlterClientQuotas", "EntityData", entity_type="user", entity_name=TURN_USER)]
        change = part("AlterClientQuotas", "OpData", key="producer_byte_rate", value=float(self._turn))
        entry = part("AlterClientQuotas", "EntryData", entity=entity, ops=[change])
        assert not codes(self.root.quietly("AlterClientQuotas", 1, entries=[entry]))
        asked = [part("DescribeClientQuotas", "ComponentData", entity_type="user", match_type=0, match=TURN_USER)]
        self.root.until(
            lambda: self.root.quietly("DescribeClientQuotas", 1, components=asked, strict=False),
            lambda answer: [value.value for each in answer.entries or () for value in each.values] == [self._turn],
        )


@pytest.fixture(scope="module")
def guarded(kafka_jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """One Kafka for all tests of this file."""
    made = Guarded(kafka_jars, tmp_path_factory.mktemp("guarded"))
    try:
        made.start()
        yield made
        made.root.close()
    finally:
        made.broker.close()


def walk(*, every: bool) -> Iterator[tuple[table.Api, int, dict[str, object], tuple[Rule, ...]]]:
    """The cases that a caller without a login can reach."""
    for row in table.ROWS:
        if row.name in UNREACHABLE and row.name not in ("Produce", "DescribeTransactions"):
            continue
        for version, values, rules in cases(row, every=every):
            if rules and (every or row.name not in REFUSED_ONLY):
                yield row, version, values, rules


def test_a_caller_without_acls_is_answered_as_the_rules_say(guarded: Guarded) -> None:
    """Every API in every version."""
    guarded.allow(set())
    topic_id = guarded.prepare()
    wrong = []
    for row, version, values, rules in walk(every=True):
        answer = guarded.ask(row, version, values, topic_id)
        if answer in (CLOSED, NOTHING) or not any(is_refused(answer, rule) for rule in rules):
            wrong.append(f"{row.name} {version} {values}: {rules} {answer}")
    assert not wrong, "\n".join(wrong)


def test_each_rule_is_needed_and_all_rules_are_enough(guarded: Guarded) -> None:
    """Every rule is needed and all together are enough: every API in its first and last version."""
    wrong = []
    topic_id = guarded.prepare()
    for row, version, values, rules in walk(every=False):
        for rule in rules:
            if rule.answer == OTHERWISE:
                continue
            guarded.allow(pairs(tuple(each for each in rules if each != rule)) - pairs((rule,)), rule)
            answer = guarded.ask(row, version, values, topic_id)
            if answer in (CLOSED, NOTHING) or not is_refused(answer, rule):
                wrong.append(f"{row.name} {version} {values}: without {rule} {answer}")
        for enough in [
            pairs(rules),
            *(pairs(rules) - pairs((rule,)) | {rule.instead} for rule in rules if rule.instead),
        ]:
            guarded.allow(enough)
            answer = guarded.ask(row, version, values, topic_id)
            # What was refused has changed nothing.
            topic_id = guarded.prepare()
            if (
                answer == CLOSED
                or codes(answer) & REFUSALS
                or (HIDDEN in {rule.answer for rule in rules} and codes(answer))
            ):
                wrong.append(f"{row.name} {version} {values}: with {enough} {answer}")
    assert not wrong, "\n".join(wrong)
