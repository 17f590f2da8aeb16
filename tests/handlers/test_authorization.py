"""Every API follows its authorization rules.

It refuses a caller without permissions, serves one with exactly the permissions of the rules, and refuses one with
fewer.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from pykafkad.config import STANDARD_AUTHORIZER
from pykafkad.handlers import table
from pykafkad.handlers.authorization import CLUSTER_NAME, ERRORS, OTHERWISE, Rule
from pykafkad.wire import messages
from tests import seeds
from tests.handlers.authorization_walk import (
    CASES,
    GROUP,
    NEW_TOPIC,
    SHARE_GROUP,
    TOPIC,
    TRANSACTIONAL_ID,
    UNREACHABLE,
    cases,
    codes,
    is_refused,
    pairs,
    request,
)
from tests.handlers.requests import batch, produce
from tests.rows import in_turn
from tests.simulation.world import NOTHING, Peer, World

WALK = [(row, *case) for row in table.ROWS for case in cases(row)]
# With --quick only the last version.
ENDS = [
    pytest.param(row, *case, marks=() if case[0] == row.max_version else pytest.mark.long)
    for row in table.ROWS
    for case in cases(row, every=False)
]
REFUSALS = set(ERRORS.values())
WALKED = {TOPIC, GROUP, SHARE_GROUP, TRANSACTIONAL_ID, NEW_TOPIC, CLUSTER_NAME, "__consumer_offsets", None}


class Authorizer:
    """Allows the permissions that the test sets, for any principal, and records the questions."""

    def __init__(self) -> None:
        self.allowed: set[tuple[str, str]] | None = None
        self.asked: list[tuple[str, str]] = []
        self.names: set[str | None] = set()

    def authorize(
        self, principal: str, client_address: str, operation: str, resource_type: str, resource_name: str | None
    ) -> bool:
        """Everything is allowed while `allowed` is None."""
        assert (principal, client_address) == ("User:ANONYMOUS", "127.0.0.1")
        self.asked.append((operation, resource_type))
        self.names.add(resource_name)
        return self.allowed is None or (operation, resource_type) in self.allowed


class Cluster:
    """A broker with a topic, records in it, and a group with offsets, for one walk."""

    def __init__(self, path: Path, authorizer: Authorizer | None = None) -> None:
        self.authorizer = authorizer or Authorizer()
        self.world = World(
            path,
            authorizer=self.authorizer,
            authorizer_class_name=STANDARD_AUTHORIZER,
            offsets_topic_num_partitions=1,
        )
        self.world.create_topic(TOPIC)
        self.topic_id = self.world.broker.image.topics[TOPIC].id
        peer = self.world.connect()
        # FindCoordinator creates the topic of the group's coordinator.
        peer.ask(messages.FindCoordinatorRequest(key=GROUP), 0)
        peer.ask(produce(TOPIC, {0: batch(b"x")}), 8)
        commit = messages.OffsetCommitRequest
        partition = commit.OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
        peer.ask(
            commit(group_id=GROUP, topics=[commit.OffsetCommitRequestTopic(name=TOPIC, partitions=[partition])]), 8
        )

    def ask(
        self, row: table.Api, version: int, values: dict[str, object], allowed: set[tuple[str, str]] | None
    ) -> object:
        """The answer on a new connection, whose caller has the permissions `allowed` (None: all)."""
        self.authorizer.allowed = allowed
        self.authorizer.asked.clear()
        self.authorizer.names.clear()
        peer: Peer = self.world.connect()
        answer = peer.ask(request(row, version, values, self.topic_id), version)
        assert peer.closed is None
        assert self.world.runtime.metrics.unexpected_errors == 0
        return answer

    def state(self) -> object:
        """Everything that a request could change: the end offsets of all logs, the metadata log included."""
        node = self.world.broker
        logs = sorted((log.topic, log.partition, log.end_offset, log.log_start_offset) for log in node.partitions)
        return node.image.offset, logs, node.logs.level


@pytest.fixture(scope="module")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> Cluster:
    """A cluster for refused requests, which change nothing."""
    return Cluster(tmp_path_factory.mktemp("walk"))


def case_id(value: object) -> str:
    if isinstance(value, table.Api):
        return value.name
    return str(value) if isinstance(value, int) else ""


ASK_NOTHING = {name for name in UNREACHABLE if name not in CASES}
# APIs that check more permissions, as their answers list the caller's operations, or as the walk's answer does
# not show the topics.
TELL_OPERATIONS = {"Metadata", "DescribeCluster", "DescribeTopicPartitions", "DeleteShareGroupOffsets"}


@in_turn(
    "row, version, values, rules", seeds.sampled(WALK, 3), name_of=lambda case: f"{case[0].name} {case[1]} {case[2]}"
)
def test_a_caller_without_permissions_is_refused_and_changes_nothing(
    untouched: Cluster, row: table.Api, version: int, values: dict[str, object], rules: tuple[Rule, ...]
) -> None:
    """The answer shows each refusal as the rule says."""
    before = untouched.state()
    answer = untouched.ask(row, version, values, set())
    assert untouched.state() == before
    if not rules or row.name in ASK_NOTHING:
        assert untouched.authorizer.asked == []
    else:
        assert any(is_refused(answer, rule) for rule in rules), answer


@pytest.mark.parametrize(("row", "version", "values", "rules"), ENDS, ids=case_id)
def test_exactly_the_permissions_of_the_rules_are_needed(
    tmp_path: Path,
    untouched: Cluster,
    row: table.Api,
    version: int,
    values: dict[str, object],
    rules: tuple[Rule, ...],
) -> None:
    """The handler asks for no other permission, and for each of these."""
    if row.name in ASK_NOTHING:
        return
    for number, rule in enumerate(rules):
        others = pairs(tuple(each for each in rules if each != rule)) - pairs((rule,))
        # A caller that only gets fewer details is served.
        cluster = Cluster(tmp_path / f"less-{number}") if rule.answer == OTHERWISE else untouched
        answer = cluster.ask(row, version, values, others)
        assert is_refused(answer, rule), (rule, answer)
        if rule.instead is not None:
            answer = Cluster(tmp_path / f"instead-{number}").ask(row, version, values, {rule.instead} | others)
            assert not codes(answer) & REFUSALS, (rule, answer)
    cluster = Cluster(tmp_path / "all")
    answer = cluster.ask(row, version, values, pairs(rules))
    assert answer is NOTHING or not codes(answer) & REFUSALS, answer
    assert set(cluster.authorizer.asked) >= pairs(rules)
    assert set(cluster.authorizer.asked) == pairs(rules) or row.name in TELL_OPERATIONS
    assert cluster.authorizer.names <= WALKED


def test_every_rule_has_a_case() -> None:
    """A rule without a case has a written reason why no request reaches it."""
    reached = {(row.name, rule) for row, _, _, rules in WALK for rule in rules}
    left = {row.name for row in table.ROWS for rule in row.authorization if (row.name, rule) not in reached}
    assert left <= set(UNREACHABLE)
    assert set(CASES) <= {row.name for row in table.ROWS}
