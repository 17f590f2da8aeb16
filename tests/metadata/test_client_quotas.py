"""Client quotas: entities, keys, values, filters, limits, and restarts. All errors are in
compat_tests/scenarios/quotas.py."""

from __future__ import annotations

import pytest

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.metadata import client_quotas, record_codec
from pykafkad.metadata.client_quotas import DEFAULT, EXACT, SPECIFIED
from pykafkad.metadata.events import AlterClientQuotas
from pykafkad.wire import messages
from tests.metadata.cluster import Cluster, count_made, facts

Request = messages.AlterClientQuotasRequest
RATE, MUTATION, CONNECTIONS = "producer_byte_rate", "controller_mutation_rate", "connection_creation_rate"


def entry(entity, *operations):
    return Request.EntryData(
        entity=[Request.EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()],
        ops=[Request.OpData(key=key, value=value or 0.0, remove=value is None) for key, value in operations],
    )


def alter(cluster, *entries, validate_only=False):
    answer = cluster.submit(AlterClientQuotas("token", entries, validate_only=validate_only))
    return [row.error_code for row in answer.entries]


def describe(image, *components, strict=False):
    asked = [
        messages.DescribeClientQuotasRequest.ComponentData(entity_type=kind, match_type=how, match=match)
        for kind, how, match in components
    ]
    rows = client_quotas.describe(image, asked, strict)
    return [
        ({part.entity_type: part.entity_name for part in row.entity}, {each.key: each.value for each in row.values})
        for row in rows
    ]


def test_a_quota_is_set_changed_and_removed():
    cluster = Cluster()
    assert alter(
        cluster,
        entry({"user": "a"}, (RATE, 5.0), (MUTATION, 0.5)),
        entry({"client-id": None, "user": "a"}, (RATE, 1.0)),
    ) == [0, 0]
    batches = len(cluster.disk.batches)
    # A value that does not change writes no record.
    assert alter(cluster, entry({"user": "a"}, (RATE, 5.0)), entry({"user": "b"}, (RATE, None))) == [0, 0]
    assert alter(cluster, entry({"user": "a"}, (RATE, 9.0)), validate_only=True) == [0]
    assert len(cluster.disk.batches) == batches
    alter(cluster, entry({"user": "a"}, (RATE, 6.0), (MUTATION, None)))
    assert describe(cluster.image) == [({"user": "a"}, {RATE: 6.0}), ({"client-id": None, "user": "a"}, {RATE: 1.0})]
    assert facts(cluster.restart().image.client_quotas) == facts(cluster.image.client_quotas)
    alter(cluster, entry({"user": "a", "client-id": None}, (RATE, None)), entry({"user": "a"}, (RATE, None)))
    assert not cluster.restart().image.client_quotas


@pytest.mark.parametrize(
    ("entity", "key", "value"),
    [
        ({}, RATE, 1.0), ({"group": "g"}, RATE, 1.0), ({"user": ""}, RATE, 1.0),
        ({"ip": "1.2.3.4", "user": "a"}, CONNECTIONS, 1.0), ({"ip": "no.such.host"}, CONNECTIONS, 1.0),
        ({"user": "a"}, CONNECTIONS, 1.0), ({"ip": None}, RATE, 1.0),
        ({"user": "a"}, RATE, 0.0), ({"user": "a"}, RATE, -1.0), ({"user": "a"}, RATE, 1.5),
        ({"user": "a"}, RATE, 1e19), ({"user": "a"}, RATE, float("inf")),
        ({"ip": None}, CONNECTIONS, 2.0**31),
    ],
)  # fmt: skip
def test_an_invalid_quota_fails_only_its_entity(entity, key, value):
    cluster = Cluster()
    rows = alter(
        cluster,
        entry({"user": "good"}, (RATE, 1.0)),
        entry(entity, (MUTATION, 1.0), (key, value)),
        entry({"ip": None}, (CONNECTIONS, 1.0)),
    )
    assert rows[:2] == [0, errors.INVALID_REQUEST]
    assert ({"user": "a"}, {MUTATION: 1.0}) not in describe(cluster.image)
    assert describe(cluster.image)[0] == ({"user": "good"}, {RATE: 1.0})


def test_an_entity_or_key_that_is_named_twice_is_an_error():
    """Of two entries for one entity the first takes effect, and the response is an error. Of two values for one key
    none takes effect."""
    cluster = Cluster()
    assert alter(cluster, entry({"user": "a"}, (RATE, 1.0)), entry({"user": "a"}, (RATE, 2.0))) == [
        errors.INVALID_REQUEST
    ]
    assert alter(cluster, entry({"user": "b"}, (RATE, 1.0), (RATE, 2.0))) == [errors.INVALID_REQUEST]
    assert describe(cluster.image) == [({"user": "a"}, {RATE: 1.0})]


def test_filters_select_entities():
    cluster = Cluster()
    entities = [{"user": "a"}, {"user": None}, {"user": "a", "client-id": "c"}, {"client-id": None}]
    alter(cluster, *(entry(entity, (RATE, 1.0)) for entity in entities), entry({"ip": None}, (CONNECTIONS, 1.0)))

    def found(*components, strict=False):
        return [entity for entity, _ in describe(cluster.image, *components, strict=strict)]

    assert found(("user", EXACT, "a")) == [{"user": "a"}, {"user": "a", "client-id": "c"}]
    assert found(("user", EXACT, "a"), strict=True) == [{"user": "a"}]
    assert found(("user", DEFAULT, None)) == [{"user": None}]
    assert found(("client-id", SPECIFIED, None)) == [{"user": "a", "client-id": "c"}, {"client-id": None}]
    assert found(("client-id", SPECIFIED, None), ("user", SPECIFIED, None)) == [{"user": "a", "client-id": "c"}]
    assert len(found()) == 5 and found(strict=True) == []
    for wrong in (
        [("", EXACT, "a")], [("user", EXACT, None)], [("user", DEFAULT, "a")], [("user", SPECIFIED, "a")],
        [("user", 3, None)],
        [("user", EXACT, "a"), ("user", DEFAULT, None)], [("ip", DEFAULT, None), ("user", DEFAULT, None)],
    ):  # fmt: skip
        with pytest.raises(KafkaError) as raised:
            found(*wrong)
        assert raised.value.code == errors.INVALID_REQUEST
    with pytest.raises(KafkaError) as raised:
        found(("group", DEFAULT, None))
    assert raised.value.code == errors.UNSUPPORTED_VERSION


@pytest.mark.long
def test_a_request_that_does_not_fit_one_batch_changes_nothing():
    cluster = Cluster()
    entries = [entry({"user": f"u{number}"}, (RATE, 1.0)) for number in range(record_codec.MAX_RECORDS_PER_CHANGE + 1)]
    assert set(alter(cluster, *entries)) == {errors.POLICY_VIOLATION}
    assert not cluster.image.client_quotas
    assert set(alter(cluster, *entries[1:])) == {0}


def test_a_request_makes_no_records_beyond_the_limit(monkeypatch):
    """Each entry has a row with the entity of the request, also one that comes twice."""
    cluster = Cluster()
    made = count_made(monkeypatch, 10)
    entries = [entry({"user": f"u{number}"}, (RATE, 1.0)) for number in range(1000)] + [
        entry({"user": "u1"}, (RATE, 2.0)),
        entry({}, (RATE, 1.0)),
    ]
    answer = cluster.submit(AlterClientQuotas("token", entries))
    assert len(made) == 11 and not cluster.image.client_quotas
    assert [(row.error_code, row.error_message) for row in answer.entries] == [
        (errors.POLICY_VIOLATION, errors.message(errors.POLICY_VIOLATION))
    ] * 1002
    assert [[part.entity_name for part in row.entity] for row in answer.entries[-3:]] == [["u999"], ["u1"], []]
    messages.encode(answer, 1)
