"""Every API does what its rules say: it refuses who may nothing, serves who may exactly what they name, and nobody who
may less."""

from __future__ import annotations

from pathlib import Path

import pytest

from pykafkad.config import STANDARD_AUTHORIZER
from pykafkad.handlers import table
from pykafkad.handlers.authorization import CLUSTER_NAME, ERRORS, OTHERWISE, Rule
from pykafkad.wire import messages
from tests.handlers.authorization_walk import (
    CASES,
    GROUP,
    NEW_TOPIC,
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
from tests.simulation.world import NOTHING, Peer, World

WALK = [(row, *case) for row in table.ROWS for case in cases(row)]
ENDS = [(row, *case) for row in table.ROWS for case in cases(row, every=False)]
REFUSALS = set(ERRORS.values())
WALKED = {TOPIC, GROUP, TRANSACTIONAL_ID, NEW_TOPIC, CLUSTER_NAME, "__consumer_offsets", None}


class Authorizer:
    """Allows what the test says, whoever asks, and remembers the questions."""

    def __init__(self) -> None:
        self.allowed: set[tuple[str, str]] | None = None
        self.asked: list[tuple[str, str]] = []
        self.names: set[str | None] = set()

    def authorize(
        self, principal: str, client_address: str, operation: str, resource_type: str, resource_name: str | None
    ) -> bool:
        """Everything while `allowed` is None."""
        assert (principal, client_address) == ("User:ANONYMOUS", "127.0.0.1")
        self.asked.append((operation, resource_type))
        self.names.add(resource_name)
        return self.allowed is None or (operation, resource_type) in self.allowed


class Cluster:
    """A broker with a topic, records in it, and a group with offsets, for one walk."""

    def __init__(self, path: Path) -> None:
        self.authorizer = Authorizer()
        self.world = World(
            path,
            authorizer=self.authorizer,
            authorizer_class_name=STANDARD_AUTHORIZER,
            offsets_topic_num_partitions=1,
        )
        self.world.create_topic(TOPIC)
        self.topic_id = self.world.broker.image.topics[TOPIC].id
        peer = self.world.connect()
        # The group's coordinator is made by being looked for.
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
        """The answer of a new connection, whose caller may do what is `allowed` (None: everything)."""
        self.authorizer.allowed = allowed
        self.authorizer.asked.clear()
        self.authorizer.names.clear()
        peer: Peer = self.world.connect()
        answer = peer.ask(request(row, version, values, self.topic_id), version)
        assert peer.closed is None
        assert self.world.runtime.metrics.unexpected_errors == 0
        return answer

    def state(self) -> object:
        """What a request could have changed: the ends of all logs, the metadata's included."""
        node = self.world.broker
        logs = sorted((log.topic, log.partition, log.end_offset, log.log_start_offset) for log in node.partitions)
        return node.image.offset, logs, node.logs.level


@pytest.fixture(scope="module")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> Cluster:
    """For those who may nothing, or too little: they change nothing."""
    return Cluster(tmp_path_factory.mktemp("walk"))


def case_id(value: object) -> str:
    if isinstance(value, table.Api):
        return value.name
    return str(value) if isinstance(value, int) else ""


# A feature that is switched off says so before anything is asked.
SWITCHED_OFF = {row.name for row in table.ROWS if row.state == table.REFUSED and "Txn" not in row.name}
ASK_NOTHING = SWITCHED_OFF | {name for name in UNREACHABLE if name not in CASES}
# APIs that ask more, as their answers tell what else the caller may.
TELL_OPERATIONS = {"Metadata", "DescribeCluster", "DescribeTopicPartitions"}


@pytest.mark.parametrize(("row", "version", "values", "rules"), WALK, ids=case_id)
def test_who_may_nothing_is_refused_and_changes_nothing(
    untouched: Cluster, row: table.Api, version: int, values: dict[str, object], rules: tuple[Rule, ...]
) -> None:
    """Each API says of it what its rules say."""
    before = untouched.state()
    answer = untouched.ask(row, version, values, set())
    assert untouched.state() == before
    if not rules or row.name in ASK_NOTHING:
        assert untouched.authorizer.asked == []
    else:
        assert any(is_refused(answer, rule) for rule in rules), answer


@pytest.mark.parametrize(("row", "version", "values", "rules"), ENDS, ids=case_id)
def test_who_may_what_the_rules_name_is_served_and_who_may_less_is_not(
    tmp_path: Path,
    untouched: Cluster,
    row: table.Api,
    version: int,
    values: dict[str, object],
    rules: tuple[Rule, ...],
) -> None:
    """Nothing else is asked, and no rule is forgotten."""
    if row.name in ASK_NOTHING:
        return
    for number, rule in enumerate(rules):
        others = pairs(tuple(each for each in rules if each != rule)) - pairs((rule,))
        # Who is only told less is served all the same.
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


def test_every_rule_is_in_a_case() -> None:
    """Or no request reaches it, for the reason that is written there."""
    reached = {(row.name, rule) for row, _, _, rules in WALK for rule in rules}
    left = {row.name for row in table.ROWS for rule in row.authorization if (row.name, rule) not in reached}
    assert left - SWITCHED_OFF <= set(UNREACHABLE)
    assert set(CASES) <= {row.name for row in table.ROWS}
