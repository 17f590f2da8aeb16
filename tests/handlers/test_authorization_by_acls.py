"""The walks of `test_authorization.py` with the real authorizer: every API is refused and served by ACLs."""

from __future__ import annotations

import pytest

from pykafkad.handlers import table
from pykafkad.handlers.authorization import CLUSTER_NAME, HIDDEN, OTHERWISE, Rule
from pykafkad.metadata.image import MetadataDelta
from pykafkad.metadata.standard_authorizer import OPERATION_NUMBERS, RESOURCE_TYPES, StandardAuthorizer
from pykafkad.wire import messages
from tests import seeds
from tests.handlers.authorization_walk import cases, codes, is_refused, pairs
from tests.handlers.test_authorization import ASK_NOTHING, REFUSALS, WALK, Authorizer, Cluster
from tests.rows import in_turn
from tests.simulation.world import NOTHING

DENY, ALLOW = 2, 3


class ByAcls(Authorizer):
    """Allows what entries for these permissions allow; `denied` is a permission that an entry denies."""

    def __init__(self) -> None:
        super().__init__()
        self.denied: set[tuple[str, str]] = set()

    def authorize(
        self, principal: str, client_address: str, operation: str, resource_type: str, resource_name: str | None
    ) -> bool:
        """As the real authorizer does with those entries."""
        if super().authorize(principal, client_address, operation, resource_type, resource_name):
            if self.allowed is None:
                return True
        entries = [(*pair, ALLOW) for pair in self.allowed or ()] + [(*pair, DENY) for pair in self.denied]
        delta = MetadataDelta()
        delta.acls = [
            (
                messages.AccessControlEntryRecord(
                    resource_type=RESOURCE_TYPES[kind],
                    resource_name=CLUSTER_NAME if kind == "Cluster" else "*",
                    pattern_type=3,
                    principal="User:ANONYMOUS",
                    host="127.0.0.1",
                    operation=OPERATION_NUMBERS[name],
                    permission_type=permission,
                ),
                True,
            )
            for name, kind, permission in entries
        ]
        real = StandardAuthorizer()
        real.metadata_changed(delta)
        return real.authorize(principal, client_address, operation, resource_type, resource_name)


@pytest.fixture(scope="module")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> Cluster:
    """A cluster for refused requests, which change nothing."""
    return Cluster(tmp_path_factory.mktemp("walk"), ByAcls())


@in_turn("row, version, values, rules", WALK, name_of=lambda case: f"{case[0].name} {case[1]} {case[2]}")
def test_a_caller_without_acls_is_refused(
    untouched: Cluster, row: table.Api, version: int, values: dict[str, object], rules: tuple[Rule, ...]
) -> None:
    """Every API in every version."""
    if not rules or row.name in ASK_NOTHING:
        return
    before = untouched.state()
    answer = untouched.ask(row, version, values, set())
    assert untouched.state() == before
    assert any(is_refused(answer, rule) for rule in rules), answer


LAST = [
    (row, *case)
    for row in table.ROWS
    if row.name not in ASK_NOTHING
    for case in cases(row)
    if case[0] == row.max_version
]


@pytest.mark.long
@in_turn(
    "row, version, values, rules", seeds.sampled(LAST, 4), name_of=lambda case: f"{case[0].name} {case[1]} {case[2]}"
)
def test_acls_for_the_rules_are_needed_and_enough(
    tmp_path_factory: pytest.TempPathFactory,
    untouched: Cluster,
    row: table.Api,
    version: int,
    values: dict[str, object],
    rules: tuple[Rule, ...],
) -> None:
    """One entry for each rule. Without one of them, which then is denied, as others may include it, the caller is
    refused."""
    for rule in rules:
        if rule.answer == OTHERWISE:
            continue
        untouched.authorizer.denied = {(rule.operation, rule.resource_type)}
        try:
            answer = untouched.ask(
                row, version, values, pairs(tuple(each for each in rules if each != rule)) - pairs((rule,))
            )
        finally:
            untouched.authorizer.denied = set()
        assert is_refused(answer, rule), (rule, answer)
    answer = Cluster(tmp_path_factory.mktemp("all"), ByAcls()).ask(row, version, values, pairs(rules))
    if answer is not NOTHING:
        assert not codes(answer) & REFUSALS, answer
        assert not (codes(answer) and HIDDEN in {rule.answer for rule in rules}), answer
