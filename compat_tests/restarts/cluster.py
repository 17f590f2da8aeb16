"""The cluster over restarts: nodes, quorum epochs, producer ids, settings, quotas, log directories, fetch sessions."""

from __future__ import annotations

import time
from typing import Any

from compat_tests.restarts.partitions import Partitions
from compat_tests.scenarios.exchange import Connection, Exchange, part
from compat_tests.scenarios.fetch import LIMIT, from_topic, row
from compat_tests.scenarios.group_life import send
from compat_tests.scenarios.produce import new_producer
from compat_tests.scenarios.quorum import described
from compat_tests.scenarios.quotas import EXACT, PRODUCER, component, entry, settled

TOPIC, BROKER = 2, 4
FETCH_VERSION = 17
WAIT_MS = 60_000


class Cluster:
    """Settings and quotas changed before the first restart, and one fetch session for each run of the broker."""

    def __init__(self, broker: Exchange, partitions: Partitions) -> None:
        self.partitions = partitions
        self.user = broker.name("user")
        self.session_id = 0
        self.waiting: dict[str, Connection] = {}
        changes = [
            self.changed(TOPIC, partitions.name, "max.message.bytes", "54321"),
            self.changed(BROKER, "", "log.retention.ms", "54321000"),
            self.changed(BROKER, "1", "message.max.bytes", "765432"),
        ]
        answer = broker.quietly("IncrementalAlterConfigs", 1, resources=changes)
        assert not any(each.error_code for each in answer.responses), answer
        broker.quietly("AlterClientQuotas", 1, entries=[entry({"user": self.user}, (PRODUCER, 1024.0))])
        settled(broker, self.user, 1)

    def changed(self, kind: int, resource: str, name: str, value: str) -> Any:
        config = part("IncrementalAlterConfigs", "AlterableConfig", name=name, value=value)
        return part(
            "IncrementalAlterConfigs",
            "AlterConfigsResource",
            resource_type=kind,
            resource_name=resource,
            configs=[config],
        )

    def record_state(self, broker: Exchange, note: str) -> None:
        """Record what the broker says about the cluster."""
        broker.ask("DescribeCluster", 2, note=note, include_fenced_brokers=True)
        broker.record(f"epoch of the quorum {note}", str(described(broker).leader_epoch))
        broker.record(f"block of producer ids {note}", str(new_producer(broker)[0] // 1000))
        resources = [
            part(
                "DescribeConfigs",
                "DescribeConfigsResource",
                resource_type=kind,
                resource_name=resource,
                configuration_keys=keys,
            )
            for kind, resource, keys in (
                (TOPIC, self.partitions.name, ["max.message.bytes", "retention.ms", "segment.bytes"]),
                (BROKER, "", ["log.retention.ms"]),
                (BROKER, "1", ["message.max.bytes", "log.retention.ms"]),
            )
        ]
        broker.ask("DescribeConfigs", 4, note=note, resources=resources, include_synonyms=True)
        broker.ask("DescribeClientQuotas", 1, note=note, components=[component("user", EXACT, self.user)], strict=True)
        asked = [part("DescribeLogDirs", "DescribableLogDirTopic", topic=self.partitions.name, partitions=[0, 1])]
        broker.ask("DescribeLogDirs", 4, note=note, topics=asked)
        self.record_sessions(broker, note)

    def fields(self, partition: int, offset: int, **more: Any) -> dict[str, Any]:
        """The fields of a Fetch request that does not wait."""
        topic = from_topic(self.partitions.name, self.partitions.topic_id, row(partition, offset))
        return {"max_wait_ms": 0, "min_bytes": 0, "max_bytes": LIMIT, "topics": [topic], **more}

    def record_sessions(self, broker: Exchange, note: str) -> None:
        """The fetch session of the run before is not found; a new one counts its epochs."""
        if self.session_id:
            old = {"session_id": self.session_id, "session_epoch": 1}
            broker.ask("Fetch", FETCH_VERSION, note=f"session of before {note}", **self.fields(1, 0, **old))
        opened = broker.ask(
            "Fetch", FETCH_VERSION, note=f"new session {note}", **self.fields(1, 0, session_id=0, session_epoch=0)
        )
        self.session_id = opened.session_id
        for epoch in (2, 1):
            session = {"session_id": self.session_id, "session_epoch": epoch, "topics": []}
            broker.ask("Fetch", FETCH_VERSION, note=f"epoch {epoch} {note}", **self.fields(1, 0, **session))

    def wait(self, broker: Exchange) -> None:
        """Before a stop: let a consumer wait for records, and leave one connection idle."""
        waiting, knowing, idle = broker.connect(), broker.connect(), broker.connect()
        more = {"session_id": 0, "session_epoch": -1, "max_wait_ms": WAIT_MS, "min_bytes": 1}
        send(waiting, "Fetch", FETCH_VERSION, self.fields(1, 0, **more))
        asked = [part("Metadata", "MetadataRequestTopic", name=self.partitions.name)]
        epoch = broker.quietly("Metadata", 12, topics=asked).topics[0].partitions[1].leader_epoch
        topics = [from_topic(self.partitions.name, self.partitions.topic_id, row(1, 0, current_leader_epoch=epoch))]
        send(knowing, "Fetch", FETCH_VERSION, {**self.fields(1, 0, **more), "topics": topics})
        idle.expect("Fetch", FETCH_VERSION, -1)
        # The broker accepts a connection a moment after the client's connect returns.
        time.sleep(0.2)
        self.waiting = {"long poll": waiting, "long poll with the epoch": knowing, "idle connection": idle}

    def record_waiting_answers(self, broker: Exchange, note: str) -> None:
        """Record the answers that the waiting requests got at the stop."""
        for what, connection in self.waiting.items():
            broker.record(f"{what} {note}", connection.receive(), FETCH_VERSION)
        self.waiting.clear()
