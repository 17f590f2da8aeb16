"""ACLs, client quotas, SCRAM credentials, client-metrics subscriptions and group settings survive restarts.

They are stored as Kafka's own records.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from compat_tests.brokers.broker import Broker
from compat_tests.brokers.kafka_process import KafkaProcess
from compat_tests.brokers.pykafkad_process import PykafkadProcess
from compat_tests.conftest import AGAINST
from compat_tests.scenarios import acls, configs, credentials, quotas
from compat_tests.scenarios.exchange import Exchange
from compat_tests.scenarios.normalise import normalised
from compat_tests.scenarios.registry import CONFIGURED

PREFIX = "stored"


def exchange(broker: Broker) -> Exchange:
    """A connection whose names are the same in every run."""
    made = Exchange(broker.bootstrap, "stored_entities")
    made.prefix = PREFIX
    return made


def store(broker: Broker) -> None:
    """Store two of everything, then remove or change one of each."""
    with_names = exchange(broker)
    ask = with_names.quietly
    topic, user = with_names.name("topic"), with_names.name("user")
    rows = [
        acls.acl(topic, principal="User:x"),
        acls.acl(topic, principal="User:y", resource_pattern_type=4, host="h", permission_type=2),
        acls.acl("gone"),
    ]
    ask("CreateAcls", 3, creations=rows)
    ask(
        "DeleteAcls",
        3,
        filters=[acls.part("DeleteAcls", "DeleteAclsFilter", **acls.chosen(resource_name_filter="gone"))],
    )
    entries = [
        quotas.entry({"user": user}, (quotas.PRODUCER, 1e9), (quotas.CONSUMER, 2e9)),
        quotas.entry({"user": user, "client-id": None}, (quotas.REQUEST, 99.5)),
        quotas.entry({"ip": "10.9.8.7"}, (quotas.CONNECTIONS, 1000.0)),
    ]
    ask("AlterClientQuotas", 1, entries=entries)
    ask("AlterClientQuotas", 1, entries=[quotas.entry({"user": user}, (quotas.CONSUMER,))])
    # When Kafka loads a removal, a fault of its own may forget other users of the mechanism, so the removed user has
    # its own mechanism.
    ask(
        "AlterUserScramCredentials",
        0,
        deletions=[],
        upsertions=[credentials.credential(user), credentials.credential("other", mechanism=2)],
    )
    ask(
        "AlterUserScramCredentials",
        0,
        deletions=[credentials.removal("other", 2)],
        upsertions=[credentials.credential(user, iterations=8192)],
    )
    for kind, name, key, value in (
        (configs.CLIENT_METRICS, with_names.name("metrics"), "interval.ms", "1234"),
        (configs.CLIENT_METRICS, with_names.name("gone"), "interval.ms", "1234"),
        (configs.GROUP, with_names.name("group"), "consumer.session.timeout.ms", "50000"),
    ):
        ask(
            "IncrementalAlterConfigs",
            1,
            resources=[configs.changed("IncrementalAlterConfigs", kind, name, (key, 0, value))],
        )
    ask("AlterConfigs", 2, resources=[configs.changed("AlterConfigs", configs.CLIENT_METRICS, with_names.name("gone"))])
    with_names.close()


def described(broker: Broker) -> list[tuple[str, Any]]:
    """The description of all entities."""
    with_names = exchange(broker)
    ask = with_names.ask
    ask("DescribeAcls", 3, **acls.chosen(resource_name_filter=with_names.name("topic")))
    ask("DescribeAcls", 3, note="gone", **acls.chosen(resource_name_filter="gone"))
    for kind, name in (("user", with_names.name("user")), ("ip", "10.9.8.7")):
        ask("DescribeClientQuotas", 1, note=kind, components=[quotas.component(kind, quotas.EXACT, name)], strict=False)
    ask("DescribeUserScramCredentials", 0, users=credentials.users(with_names.name("user"), "other"))
    for kind, name in ((configs.CLIENT_METRICS, "metrics"), (configs.CLIENT_METRICS, "gone"), (configs.GROUP, "group")):
        configs.describe(with_names, 4, configs.resource(kind, with_names.name(name)), include_synonyms=True, note=name)
    answer = with_names.quietly("ListConfigResources", 1, resource_types=[configs.CLIENT_METRICS, configs.GROUP])
    with_names.record(
        "listed",
        " ".join(sorted(row.resource_name for row in answer.config_resources if row.resource_name.startswith(PREFIX))),
    )
    with_names.close()
    return normalised(with_names)


def settled(broker: Broker, expected: Callable[[list[tuple[str, Any]]], bool]) -> list[tuple[str, Any]]:
    """The broker's description once it is as expected: Kafka shows changes a moment after the answer."""
    deadline = time.monotonic() + 120
    while not expected(found := described(broker)) and time.monotonic() < deadline:
        time.sleep(0.1)
    return found


def is_whole(found: list[tuple[str, Any]]) -> bool:
    """Whether everything that `store` set is there, and nothing that it removed."""
    answers = dict(found)
    resources = answers["DescribeAcls v3"]["resources"]
    values = [value for entry in answers["DescribeClientQuotas v1 user"]["entries"] for value in entry["values"]]
    counts = [len(row["credential_infos"]) for row in answers["DescribeUserScramCredentials v0"]["results"]]
    listed = answers["listed"] == f"{PREFIX}.group {PREFIX}.metrics"
    return (
        len(resources) == 2
        and not answers["DescribeAcls v3 gone"]["resources"]
        and len(values) == 2
        and sorted(counts) == [0, 1]
        and listed
    )


def test_restarts_keep_them(request: pytest.FixtureRequest, pytestconfig: pytest.Config) -> None:
    """After a stop and after a SIGKILL a broker shows the same entities, and both brokers show the same."""
    shown = []
    for name in AGAINST[pytestconfig.getoption("--against")]:
        broker = request.getfixturevalue(f"configured_{name}")
        store(broker)
        before = settled(broker, is_whole)
        assert is_whole(before)
        broker.restart()
        assert settled(broker, lambda found, before=before: found == before) == before
        if name == "pykafkad":
            broker.kill()
            broker.start()
            assert described(broker) == before
        shown.append(before)
    assert shown[0] == shown[-1]


def test_a_real_kafka_shows_what_pykafkad_stored(kafka_jars: Path, tmp_path: Path) -> None:
    """A real Kafka on pykafkad's directory describes the same ACLs, quotas, credentials and settings."""
    (tmp_path / "ours").mkdir()
    ours = PykafkadProcess(tmp_path / "ours", CONFIGURED)
    try:
        ours.start()
        store(ours)
        before = described(ours)
        assert is_whole(before)
    finally:
        ours.close()
    for directory in ours.data_directory.parent.glob("data*"):
        shutil.copytree(directory, tmp_path / "theirs" / directory.name)
    successor = KafkaProcess(kafka_jars, tmp_path / "theirs", CONFIGURED)
    try:
        successor.start()
        assert settled(successor, lambda found: found == before) == before
    finally:
        successor.close()
