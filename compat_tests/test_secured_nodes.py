"""Nodes of both kinds in one cluster that reach each other over TLS and log in: brokers and controllers of pykafkad
beside real ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from compat_tests.brokers.broker import BrokerFailed, ProcessBroker, free_port
from compat_tests.brokers.pykafkad_process import PykafkadProcess
from compat_tests.quorum.nodes import (
    CONTROLLER,
    KAFKA,
    OURS,
    KafkaNode,
    go_round,
    our_node,
    until,
)
from tests import certificates

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
PASSWORD = "node-secret"


def stores(directory: Path) -> dict[str, str]:
    """The settings of TLS, with files in a directory."""
    directory.mkdir(exist_ok=True)
    own = certificates.renewed("localhost")
    (directory / "keystore.pem").write_text(own.key_pem + own.pem)
    (directory / "ca.pem").write_text(certificates.authority().pem)
    return {
        "ssl_keystore_type": "PEM",
        "ssl_keystore_location": str(directory / "keystore.pem"),
        "ssl_truststore_type": "PEM",
        "ssl_truststore_location": str(directory / "ca.pem"),
    }


def logins(listener: str, mechanism: str) -> dict[str, str]:
    """The settings of logins at a listener: everybody is `node`."""
    module = PLAIN if mechanism == "PLAIN" else SCRAM
    jaas = f'{module} required username="node" password="{PASSWORD}"'
    if mechanism == "PLAIN":
        jaas += f' user_node="{PASSWORD}"'
    prefix = f"listener_name_{listener}"
    return {
        f"{prefix}_sasl_enabled_mechanisms": mechanism,
        f"{prefix}_{mechanism.lower()}_sasl_jaas_config": f"{jaas};",
    }


def secured(directory: Path, role: str, port: int, mechanism: str) -> dict[str, str]:
    """The settings of a node: controllers are reached by SASL_SSL with PLAIN, brokers reach each other by SASL_SSL with
    `mechanism` at a listener of their own, and clients come to one in plain text."""
    made = {
        "listener_security_protocol_map": "PLAINTEXT:PLAINTEXT,CONTROLLER:SASL_SSL,NODES:SASL_SSL",
        "sasl_mechanism_controller_protocol": "PLAIN",
        "sasl_mechanism_inter_broker_protocol": mechanism,
        "authorizer_class_name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super_users": "User:node",
        "allow_everyone_if_no_acl_found": "true",
        **stores(directory),
        **logins("controller", "PLAIN"),
        **logins("nodes", mechanism),
    }
    if role == "broker":
        listening = f"PLAINTEXT://localhost:{port},NODES://localhost:{free_port()}"
        made |= {"inter_broker_listener_name": "NODES", "listeners": listening, "advertised_listeners": listening}
    return made


class SecuredKafka(KafkaNode):
    """A real Kafka, formatted with the user `node` of SCRAM where it is a controller."""

    def __init__(self, jars: Path, directory: Path, role: str, node_id: int, controller_port: int, scram: str) -> None:
        port = controller_port if role == "controller" else free_port()
        mechanism = scram or "PLAIN"
        more = secured(directory.with_name(f"{directory.name}-tls"), role, port, mechanism)
        super().__init__(jars, directory, role, node_id, controller_port, port=port, **more)
        if scram and role == "controller":
            self.format_options += ["--add-scram", f"{scram}=[name=node,password={PASSWORD}]"]
        self.role = role

    def start(self, options: Sequence[str] = ()) -> None:
        if self.role == "broker":
            super().start(options)
            return
        # A controller answers nobody who does not log in.
        self.spawn(options)
        until("the controller listens", lambda: "Kafka Server started" in self.log_text() or not self.is_alive())
        if not self.is_alive():
            raise BrokerFailed(f"the controller has ended:\n{self.log_tail()}")


def our_secured(directory: Path, role: str, node_id: int, controller_port: int, scram: str) -> PykafkadProcess:
    """A pykafkad."""
    port = controller_port if role == "controller" else free_port()
    more = secured(directory.with_name(f"{directory.name}-tls"), role, port, scram or "PLAIN")
    node = our_node(directory, role, node_id, controller_port, port=port, **more)
    node.answers_strangers = role == "broker"
    return node


def complaints(process: PykafkadProcess) -> list[str]:
    """What a node says of others that are not whom they should be."""
    words = ("unexpected-error", "peer-unfit", "peer-lacks-api", "envelope-refused", "login refused")
    return [line for line in process.log_text().splitlines() if any(word in line for word in words)]


@pytest.mark.parametrize("scram", ["", "SCRAM-SHA-512"], ids=["PLAIN", "SCRAM-SHA-512"])
def test_a_broker_of_pykafkad_in_a_cluster_of_kafka(
    kafka_jars: Path, tmp_path: Path, started: Callable[[ProcessBroker], None], scram: str
) -> None:
    """The controller and the other broker are Kafka's; brokers log in at each other by PLAIN or SCRAM."""
    port = free_port()
    controller = SecuredKafka(kafka_jars, tmp_path / "controller", "controller", CONTROLLER, port, scram)
    kafka = SecuredKafka(kafka_jars, tmp_path / "kafka", "broker", KAFKA, port, scram)
    ours = our_secured(tmp_path / "ours", "broker", OURS, port, scram)
    for each in (controller, ours, kafka):
        started(each)
    go_round(kafka, ours)
    ours.stop()
    assert complaints(ours) == []


@pytest.mark.parametrize("scram", ["", "SCRAM-SHA-256"], ids=["PLAIN", "SCRAM-SHA-256"])
def test_a_broker_of_kafka_under_a_controller_of_pykafkad(
    kafka_jars: Path, tmp_path: Path, started: Callable[[ProcessBroker], None], scram: str
) -> None:
    """Beside a broker of pykafkad. Kafka's tool formats the controller's directory, with the user of SCRAM."""
    port = free_port()
    controller = our_secured(tmp_path / "controller", "controller", CONTROLLER, port, scram)
    formatter = SecuredKafka(kafka_jars, tmp_path / "formatter", "controller", CONTROLLER, port, scram)
    properties = formatter.properties_path.read_text()
    formatter.properties_path.write_text(
        properties.replace(f"log.dirs={formatter.data_directory}", f"log.dirs={controller.data_directory}")
    )
    formatter.format()
    kafka = SecuredKafka(kafka_jars, tmp_path / "kafka", "broker", KAFKA, port, scram)
    ours = our_secured(tmp_path / "ours", "broker", OURS, port, scram)
    for each in (controller, ours, kafka):
        started(each)
    go_round(kafka, ours)
    for each in (ours, controller):
        each.stop()
        assert complaints(each) == []
