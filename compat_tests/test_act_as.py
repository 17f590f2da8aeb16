"""`--act-as`: what pykafkad then offers is what that release's own broker offers, in whole.

The broker of each release comes from Maven Central. Both sides have the same settings.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from confluent_kafka import Producer
from kafka import KafkaConsumer

from compat_tests.brokers.release_sides import FIRST_WITHOUT_ZOOKEEPER, running_sides
from compat_tests.scenarios.exchange import Exchange, part
from compat_tests.setup.kafka_jars import OTHER_BROKERS
from pykafkad.testing import Broker

# The others are compared with --whole-suites.
IN_EVERY_RUN = ("3.9", "4.4")
# What brokers that ZooKeeper coordinates ask each other: ApiVersions lists it, and no client uses it.
AMONG_BROKERS = {4, 5, 6, 7, 56}
TOPIC, BROKER, CLIENT_METRICS, GROUP = 2, 4, 16, 32
RESOURCES = ((BROKER, "1"), (BROKER, ""), (TOPIC, "events"), (GROUP, "readers"), (CLIENT_METRICS, "watched"))
# Settings that name a place of the machine or the process, and those that one of the two alone has.
OWN = {
    "advertised.listeners",
    "controller.listener.names",
    "controller.quorum.bootstrap.servers",
    "controller.quorum.voters",
    "inter.broker.listener.name",
    "listener.security.protocol.map",
    "listeners",
    "log.dir",
    "log.dirs",
    "pykafkad.act.as",
    "broker.id",
    "node.id",
    "zookeeper.connect",
}


class Sides(NamedTuple):
    release: str
    kafka: Exchange
    pykafkad: Exchange


@pytest.fixture(scope="module", params=OTHER_BROKERS)
def sides(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sides]:
    """A broker of the release, and pykafkad that acts as one."""
    release = request.param
    if release not in IN_EVERY_RUN:
        request.getfixturevalue("whole_suites")
    clients = []
    with running_sides(release, tmp_path_factory.mktemp("sides")) as brokers:
        try:
            for each in brokers:
                clients.append(Exchange(each.bootstrap, "act-as"))
                row = part("CreateTopics", "CreatableTopic", name="events", num_partitions=1, replication_factor=1)
                created = clients[-1].quietly("CreateTopics", 5, topics=[row], timeout_ms=30_000)
                assert created.topics[0].error_code == 0
            yield Sides(release, *clients)
        finally:
            for client in clients:
                client.close()


@pytest.mark.parametrize("release", OTHER_BROKERS)
def test_clients_write_and_read(release: str) -> None:
    """In a group and in a transaction; what a client may use depends on what the broker says that it has."""
    with Broker(topics=["events"], settings={"pykafkad.act.as": release}) as broker:
        producer = Producer({**broker.client_config("confluent"), "transactional.id": "writer"})
        producer.init_transactions(100)
        producer.begin_transaction()
        producer.produce("events", "one")
        producer.commit_transaction(100)
        settings = {"bootstrap_servers": broker.bootstrap, "auto_offset_reset": "earliest", "group_id": "readers"}
        consumer = KafkaConsumer("events", isolation_level="read_committed", **settings)
        assert next(consumer).value == b"one"
        if release >= FIRST_WITHOUT_ZOOKEEPER:
            assert broker.groups() == ["readers"] and broker.group("readers").type == "classic"
        consumer.close()


def test_apis_and_their_versions(sides: Sides) -> None:
    """Each API with its range."""
    theirs, ours = (_ranges(each) for each in sides[1:])
    if sides.release < FIRST_WITHOUT_ZOOKEEPER:
        theirs = {key: versions for key, versions in theirs.items() if key not in AMONG_BROKERS}
    assert ours == theirs


def test_features(sides: Sides) -> None:
    """What is supported, and what a new cluster has."""
    theirs, ours = (_features(each) for each in sides[1:])
    assert ours == theirs


@pytest.mark.parametrize(("kind", "name"), RESOURCES)
def test_settings(sides: Sides, kind: int, name: str) -> None:
    """Every setting with its value, type, source and synonyms."""
    theirs, ours = (_settings(each, kind, name) for each in sides[1:])
    if sides.release < "3.9" and kind in (GROUP, CLIENT_METRICS):
        # Such resources came later, and an empty answer says as much as the error that Kafka gives.
        assert ours == {}
    else:
        assert ours == theirs


def _ranges(client: Exchange) -> dict[int, tuple[int, int]]:
    return {row.api_key: (row.min_version, row.max_version) for row in _versions(client).api_keys}


def _features(client: Exchange) -> tuple[dict[str, tuple[int, int]], dict[str, int]]:
    answer = _versions(client)
    return (
        {row.name: (row.min_version, row.max_version) for row in answer.supported_features},
        {row.name: row.max_version_level for row in answer.finalized_features},
    )


def _versions(client: Exchange) -> Any:
    names = {"client_software_name": "test", "client_software_version": "1"}
    highest = {row.api_key: row.max_version for row in client.quietly("ApiVersions", 0).api_keys}
    return client.quietly("ApiVersions", min(4, highest[18]), **names)


def _settings(client: Exchange, kind: int, name: str) -> dict[str, object]:
    fields = {"resource_type": kind, "resource_name": name, "configuration_keys": None}
    resources = [part("DescribeConfigs", "DescribeConfigsResource", **fields)]
    (result,) = client.quietly("DescribeConfigs", 4, resources=resources, include_synonyms=True).results
    return {
        row.name: (
            row.value,
            row.config_type,
            row.read_only,
            row.is_sensitive,
            row.config_source,
            [(each.name, each.value, each.source) for each in row.synonyms],
        )
        for row in result.configs
        # A broker shows what it does not know, too, without a type.
        if row.name not in OWN and row.config_type
    }
