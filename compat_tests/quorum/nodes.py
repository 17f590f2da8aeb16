"""Nodes of one role, as processes: real Kafka ones and pykafkad ones; what clients and tools see of their cluster."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from compat_tests.brokers.broker import free_port
from compat_tests.brokers.kafka_process import CLUSTER_ID, KafkaProcess
from compat_tests.brokers.pykafkad_process import PykafkadProcess
from compat_tests.brokers.settings import SHARED_SETTINGS, as_properties
from compat_tests.tools.runner import ToolRunner

CONTROLLER = 1
KAFKA = 2
OURS = 3
TOPIC = "spread"
RECORDS = 50
STEP_SECONDS = 120.0
REPLICATED = {
    f"{prefix}_{name}": value
    for prefix in ("offsets_topic", "transaction_state_log", "share_coordinator_state_topic")
    for name, value in (("replication_factor", "3"), ("num_partitions", "3"), ("min_isr", "2"))
    if (prefix, name) != ("offsets_topic", "min_isr")
}
"""What nodes get as `more` where there are three brokers: the internal topics outlive one of them."""


def of_role(role: str, node_id: int, port: int, controller_port: int) -> dict[str, str]:
    """The settings of a process with one role."""
    name = "CONTROLLER" if role == "controller" else "PLAINTEXT"
    return {
        "process.roles": role,
        "node.id": str(node_id),
        "listeners": f"{name}://localhost:{port}",
        "advertised.listeners": f"{name}://localhost:{port}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": f"localhost:{controller_port}",
        **SHARED_SETTINGS,
    }


class KafkaNode(KafkaProcess):
    """A real Kafka with one role."""

    def __init__(
        self,
        jars: Path,
        directory: Path,
        role: str,
        node_id: int,
        controller_port: int,
        *,
        port: int | None = None,
        **more: str,
    ) -> None:
        """`port` is that of a broker, a free one by default; `more` are settings, with `_` for the dots of their
        names."""
        directory.mkdir()
        super().__init__(jars, directory, port=controller_port if role == "controller" else port)
        settings = of_role(role, node_id, self.port, controller_port) | _dotted(more)
        self.properties_path.write_text(as_properties({**settings, "log.dirs": str(self.data_directory)}))
        self.format_options = ["--standalone"] if role == "controller" else []


def our_node(
    directory: Path, role: str, node_id: int, controller_port: int, *, port: int | None = None, **more: str
) -> PykafkadProcess:
    """A pykafkad with one role; `port` and `more` as for `KafkaNode`."""
    directory.mkdir()
    port = controller_port if role == "controller" else port or free_port()
    settings = of_role(role, node_id, port, controller_port)
    if role == "controller":
        # Nobody else is named, so that the first start begins the quorum.
        del settings["controller.quorum.bootstrap.servers"]
    return PykafkadProcess(directory, {**settings, "pykafkad.cluster.id": CLUSTER_ID, **_dotted(more)}, port=port)


def _dotted(settings: dict[str, str]) -> dict[str, str]:
    return {name.replace("_", "."): value for name, value in settings.items()}


def until(what: str, holds: Callable[[], object]) -> None:
    """Wait for something to be true."""
    deadline = time.monotonic() + STEP_SECONDS
    while not holds():
        assert time.monotonic() < deadline, f"waited {STEP_SECONDS} s until {what}"
        time.sleep(0.05)


def brokers_known(bootstrap: str) -> list[int]:
    """The node ids of the brokers that one of them names."""
    return list(AdminClient({"bootstrap.servers": bootstrap}).list_topics(timeout=30).brokers)


def described(bootstrap: str) -> dict[int, tuple[int, set[int]]]:
    """Leader and ISR of each partition, as a broker tells."""
    topic = AdminClient({"bootstrap.servers": bootstrap}).list_topics(TOPIC, timeout=30).topics[TOPIC]
    return {index: (each.leader, set(each.isrs)) for index, each in topic.partitions.items()}


def write(bootstrap: str, label: str) -> list[tuple[int, bytes]]:
    """Records in both partitions that all replicas in sync have."""
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 1})
    failures: list[KafkaError] = []
    written = []
    for number in range(RECORDS):
        for partition in (0, 1):
            value = f"{label}-{number}".encode()
            producer.produce(
                TOPIC, value, partition=partition, on_delivery=lambda error, _: error and failures.append(error)
            )
            written.append((partition, value))
    assert producer.flush(STEP_SECONDS) == 0 and failures == []
    return written


def read(bootstrap: str, count: int) -> list[tuple[int, bytes]]:
    """What is in both partitions, partition by partition."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "reader", "enable.auto.commit": False})
    consumer.assign([TopicPartition(TOPIC, partition, 0) for partition in (0, 1)])
    found: list[tuple[int, bytes]] = []

    def is_all() -> bool:
        for message in consumer.consume(1000, timeout=0.5):
            assert message.error() is None, message.error()
            found.append((message.partition(), message.value()))
        return len(found) >= count

    until(f"{count} records are read", is_all)
    consumer.close()
    return sorted(found, key=lambda each: each[0])


def _created(admin: AdminClient, topic: NewTopic) -> bool:
    """Whether another attempt comes through."""
    try:
        admin.create_topics([topic])[TOPIC].result(60)
    except KafkaException:
        return False
    return True


def _create(bootstrap: str) -> None:
    """A partition that each leads."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    # librdkafka gives up what it has asked of a broker whose handle it replaces when it learns of all of them.
    admin.list_topics(timeout=30)
    topic = NewTopic(TOPIC, num_partitions=2, replica_assignment=[[KAFKA, OURS], [OURS, KAFKA]])
    try:
        admin.create_topics([topic])[TOPIC].result(60)
    except KafkaException as error:
        assert error.args[0].code() == KafkaError._DESTROY_BROKER, error
        until("the topic is created", lambda: TOPIC in admin.list_topics(timeout=30).topics or _created(admin, topic))


def go_round(
    kafka: KafkaNode, ours: PykafkadProcess, create: Callable[[], None] | None = None
) -> list[tuple[int, bytes]]:
    """Each of two brokers leads and follows the other, and takes over when the other leaves. `create` creates the topic
    in the place of librdkafka. Returns what is in both partitions."""
    both = f"{kafka.bootstrap},{ours.bootstrap}"
    for bootstrap in (kafka.bootstrap, ours.bootstrap):
        until("all brokers are known", lambda at=bootstrap: set(brokers_known(at)) == {KAFKA, OURS})
    if create is None:
        _create(ours.bootstrap)
    else:
        create()
    everything = {0: (KAFKA, {KAFKA, OURS}), 1: (OURS, {KAFKA, OURS})}
    for each in (kafka, ours):
        until(f"{each.name} knows both leaders", lambda each=each: described(each.bootstrap) == everything)
    written = write(both, "both lead")
    kafka.stop()
    until("ours leads alone", lambda: described(ours.bootstrap) == {0: (OURS, {OURS}), 1: (OURS, {OURS})})
    written += write(both, "ours leads")
    kafka.start()
    until("Kafka is in sync", lambda: all(isr == {KAFKA, OURS} for _, isr in described(ours.bootstrap).values()))
    ours.stop()
    until("Kafka leads alone", lambda: described(kafka.bootstrap) == {0: (KAFKA, {KAFKA}), 1: (KAFKA, {KAFKA})})
    written += write(both, "Kafka leads")
    ours.start()
    until("ours is in sync", lambda: all(isr == {KAFKA, OURS} for _, isr in described(kafka.bootstrap).values()))
    everything_written = sorted(written, key=lambda each: each[0])
    assert read(both, len(written)) == everything_written
    return everything_written


def tool(runner: ToolRunner, name: str, bootstrap: str, *arguments: str) -> str:
    """What a tool of Kafka's prints."""
    outcome = runner.run(name, ["--bootstrap-server", bootstrap, *arguments])
    assert outcome.code == 0, outcome
    return outcome.output


def unexpected_errors(process: PykafkadProcess) -> list[str]:
    return [line for line in process.log_text().splitlines() if "unexpected-error" in line]
