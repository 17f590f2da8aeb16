"""Access control entries: their checks, filters, duplicates, limits, and restarts."""

from __future__ import annotations

import pytest

from pykafkad import errors
from pykafkad.metadata import acls, record_codec
from pykafkad.metadata.acls import ANY, LITERAL, MATCH, PREFIXED
from pykafkad.metadata.events import CreateAcls, DeleteAcls
from pykafkad.wire import messages
from tests.metadata.cluster import Cluster, count_made, facts

TOPIC, GROUP = 2, 3


def entry(name="t", **fields):
    wanted = {
        "resource_type": TOPIC,
        "resource_pattern_type": LITERAL,
        "principal": "User:a",
        "host": "*",
        "operation": 3,
        "permission_type": 3,
    }
    return messages.CreateAclsRequest.AclCreation(resource_name=name, **{**wanted, **fields})


def chosen(**fields):
    anything = {"resource_type_filter": ANY, "pattern_type_filter": ANY, "operation": ANY, "permission_type": ANY}
    nothing = {"resource_name_filter": None, "principal_filter": None, "host_filter": None}
    return messages.DeleteAclsRequest.DeleteAclsFilter(**{**anything, **nothing, **fields})


def create(cluster, *entries):
    answer = cluster.submit(CreateAcls("token", entries))
    return [row.error_code for row in answer.results]


def delete(cluster, *filters):
    answer = cluster.submit(DeleteAcls("token", filters))
    return [(row.error_code, [found.resource_name for found in row.matching_acls]) for row in answer.filter_results]


def names(cluster, **fields):
    return [found.resource_name for found in acls.Filter(chosen(**fields)).matching(cluster.image.acls.values())]


def test_an_entry_that_exists_is_not_created_again():
    cluster = Cluster()
    assert create(cluster, entry(), entry(), entry(operation=4)) == [0, 0, 0]
    batches = len(cluster.disk.batches)
    assert create(cluster, entry(operation=4), entry()) == [0, 0]
    assert len(cluster.disk.batches) == batches and len(cluster.image.acls) == 2
    assert delete(cluster, chosen(operation=4)) == [(0, ["t"])]
    assert create(cluster, entry(operation=4)) == [0]
    assert len(cluster.image.acls) == len(cluster.image.acl_contents) == 2


@pytest.mark.parametrize(
    "fields",
    [
        {"name": ""}, {"resource_type": 4}, {"resource_type": 8}, {"resource_type": -1}, {"resource_pattern_type": 5},
        {"operation": 16},
        {"permission_type": 4}, {"principal": "a"}, {"principal": ""},
    ],
)  # fmt: skip
def test_an_invalid_entry_does_not_fail_the_others(fields):
    cluster = Cluster()
    assert create(cluster, entry("x"), entry(**fields), entry("y")) == [0, errors.INVALID_REQUEST, 0]
    assert names(cluster) == ["x", "y"]


def test_match_selects_the_entries_that_apply_to_a_resource_name():
    cluster = Cluster()
    prefixes = [
        entry("or", resource_pattern_type=PREFIXED),
        entry("orders-", resource_pattern_type=PREFIXED),
        entry("*", resource_pattern_type=PREFIXED),
    ]
    create(cluster, entry("orders"), entry("*"), entry("order"), entry("orders", resource_type=GROUP), *prefixes)
    asked = {"resource_name_filter": "orders", "resource_type_filter": TOPIC}
    assert names(cluster, pattern_type_filter=MATCH, **asked) == ["orders", "*", "or"]
    assert names(cluster, pattern_type_filter=ANY, **asked) == ["orders"]
    assert names(cluster, pattern_type_filter=LITERAL, **asked) == ["orders"]
    assert names(cluster, pattern_type_filter=PREFIXED, **asked) == []
    assert names(cluster, pattern_type_filter=PREFIXED, resource_name_filter="*") == ["*"]
    assert names(cluster, pattern_type_filter=MATCH) == names(cluster) and len(names(cluster)) == 7
    assert names(cluster, pattern_type_filter=99, **asked) == names(cluster, resource_type_filter=99) == []


def test_an_entry_that_two_filters_match_is_listed_twice_and_deleted_once():
    cluster = Cluster()
    create(cluster, entry("x"), entry("y"))
    rows = delete(
        cluster, chosen(), chosen(resource_name_filter="x"), chosen(operation=99), chosen(resource_type_filter=9)
    )
    assert rows == [(0, ["x", "y"]), (0, ["x"]), (errors.INVALID_REQUEST, []), (errors.INVALID_REQUEST, [])]
    assert not cluster.image.acls and not cluster.image.acl_contents


def test_entries_survive_a_restart():
    cluster = Cluster()
    create(
        cluster, entry("x"), entry("y", host="h", principal="User:b", permission_type=2, resource_pattern_type=PREFIXED)
    )
    delete(cluster, chosen(resource_name_filter="x"))
    before = facts(cluster.image.acls)
    again = cluster.restart()
    assert facts(again.image.acls) == before and names(again) == ["y"]
    assert again.image.acl_contents == cluster.image.acl_contents


@pytest.mark.long
def test_a_request_that_does_not_fit_one_batch_changes_nothing():
    """The limits are 10 000 entries and 8 MiB."""
    cluster = Cluster()
    too_many = [entry(f"t{number}") for number in range(record_codec.MAX_RECORDS_PER_CHANGE + 1)]
    assert set(create(cluster, *too_many)) == {errors.POLICY_VIOLATION}
    long = [entry("n" * 30_000 + str(number)) for number in range(300)]
    assert set(create(cluster, *long)) == {errors.POLICY_VIOLATION}
    assert not cluster.image.acls
    assert set(create(cluster, *too_many[1:])) == {0}
    create(cluster, too_many[0])
    assert delete(cluster, chosen(), chosen(resource_name_filter="t1")) == [(errors.INVALID_REQUEST, [])] * 2
    assert len(cluster.image.acls) == record_codec.MAX_RECORDS_PER_CHANGE + 1


@pytest.mark.parametrize("bound", ["MAX_COMPARISONS", "MAX_SHOWN"])
def test_the_work_of_one_deletion_is_bounded(monkeypatch, bound):
    """Many filters that each match many entries would block the broker for minutes, or make a response that does not
    fit into memory."""
    cluster = Cluster()
    create(cluster, *(entry(f"t{number}") for number in range(10)))
    monkeypatch.setattr(acls, bound, 25)
    assert delete(cluster, *[chosen()] * 3) == [(errors.INVALID_REQUEST, [])] * 3
    assert len(cluster.image.acls) == 10
    assert delete(cluster, *[chosen()] * 2) == [(0, [f"t{number}" for number in range(10)])] * 2


def test_filters_by_name_or_principal_are_compared_only_with_entries_that_have_the_same(monkeypatch):
    cluster = Cluster()
    create(cluster, *(entry(f"t{number}", principal=f"User:{number}") for number in range(10)))
    monkeypatch.setattr(acls, "MAX_COMPARISONS", 10)
    by_name = [chosen(resource_name_filter=f"t{number}") for number in range(4)]
    by_principal = [
        chosen(principal_filter=f"User:{number}", resource_name_filter=f"t{number}", pattern_type_filter=MATCH)
        for number in range(4, 10)
    ]
    assert delete(cluster, *by_name, *by_principal) == [(0, [f"t{number}"]) for number in range(10)]
    assert not cluster.image.acls


def test_a_creation_makes_no_records_beyond_the_limit(monkeypatch):
    """A row with an invalid resource name says so all the same, because Kafka's broker checks the names first."""
    cluster = Cluster()
    made = count_made(monkeypatch, 10)
    codes = create(
        cluster,
        *(entry(f"t{number}") for number in range(1000)),
        entry(""),
        entry("t", resource_type=acls.CLUSTER),
        entry(operation=99),
    )
    assert codes == [errors.POLICY_VIOLATION] * 1000 + [errors.INVALID_REQUEST] * 2 + [errors.POLICY_VIOLATION]
    assert len(made) == 11 and not cluster.image.acls


def test_a_deletion_with_too_many_comparisons_makes_none(monkeypatch):
    """Comparisons are counted before the first of them. Matching entries are counted as they are found."""
    cluster = Cluster()
    create(cluster, *(entry(f"t{number}") for number in range(10)))
    compared = []
    real = acls.Filter.matching
    monkeypatch.setattr(
        acls.Filter, "matching", lambda self, entries: compared.append(len(entries)) or real(self, entries)
    )
    monkeypatch.setattr(acls, "MAX_COMPARISONS", 25)
    assert delete(cluster, *[chosen()] * 3) == [(errors.INVALID_REQUEST, [])] * 3
    assert not compared
    assert delete(cluster, chosen(), chosen(operation=99), chosen()) == [
        (0, [f"t{n}" for n in range(10)]),
        (errors.INVALID_REQUEST, []),
        (0, [f"t{n}" for n in range(10)]),
    ]
    create(cluster, *(entry(f"t{number}") for number in range(10)))
    compared.clear()
    monkeypatch.setattr(acls, "MAX_COMPARISONS", 1000)
    monkeypatch.setattr(record_codec, "MAX_RECORDS_PER_CHANGE", 9)
    assert delete(cluster, *[chosen()] * 5) == [(errors.INVALID_REQUEST, [])] * 5
    assert compared == [10]
