"""How nodes of one command reach each other where clients log in: what the settings of each come to."""

import random

from pykafkad.cli import certificates
from pykafkad.config import Settings
from pykafkad.disk import Disk
from pykafkad.server import cluster_settings, node_links, peer_security, tls_client
from pykafkad.server.run import parse_listeners

CLIENTS = {
    "listeners": "SASL_SSL://localhost:0,SSL://localhost:0",
    "listener.security.protocol.map": "SASL_SSL:SASL_SSL,SSL:SSL",
    "security.inter.broker.protocol": "SSL",
    "ssl.keystore.type": "PKCS12",
    "ssl.keystore.location": "/etc/clients.p12",
    "ssl.keystore.password": "secret",
    "listener.name.ssl.ssl.keystore.location": "/etc/others.p12",
    "ssl.client.auth": "requested",
    "super.users": "User:admin",
    "log.dirs": "/data",
    "pykafkad.memory.max.bytes": "1000000",
}


def nodes(identity):
    """Two controllers and two brokers."""
    settings = Settings(CLIENTS)
    brokers = cluster_settings.of_brokers(settings, 2)
    return cluster_settings.of_quorum(settings, brokers, [5, 6], Disk(), random.Random(1), identity)


def test_brokers_have_a_listener_for_each_other():
    """And what the clients' listeners share counts for these alone."""
    identity = certificates.for_nodes("--processes")
    _, brokers = nodes(identity)
    for broker in brokers:
        listening = parse_listeners(broker)
        assert [(each.name, each.host, each.security_protocol) for each in listening] == [
            ("SASL_SSL", "localhost", "SASL_SSL"),
            ("SSL", "localhost", "SSL"),
            ("PYKAFKAD_NODES", "127.0.0.1", "SSL"),
        ]
        assert [node_links.is_for_nodes(each) for each in listening] == [False, False, True]
        assert broker.inter_broker_listener_name == "PYKAFKAD_NODES"
        assert "ssl.keystore.location" not in broker.static
        assert broker.static["listener.name.sasl_ssl.ssl.keystore.location"] == "/etc/clients.p12"
        assert broker.static["listener.name.ssl.ssl.keystore.location"] == "/etc/others.p12"
        assert broker.static["listener.name.pykafkad_nodes.ssl.client.auth"] == "required"
        assert broker.static["ssl.client.auth"] == "requested"
        assert broker.static["super.users"] == f"User:admin;{identity.principal}"
        assert cluster_settings.address_between(broker, ["a", "b", "c"]) == "c"


def test_controllers_encrypt_and_want_certificates():
    identity = certificates.for_nodes("--controllers")
    controllers, brokers = nodes(identity)
    for controller in controllers:
        (listener,) = parse_listeners(controller)
        assert listener.security_protocol == "SSL"
        assert controller.static["listener.name.controller.ssl.client.auth"] == "required"
        assert not [name for name in controller.static if name.startswith("ssl.keystore")]
        assert identity.principal in controller.static["super.users"]
    for node in (*controllers, *brokers):
        for security in (peer_security.of_controllers(node), peer_security.of_brokers(brokers[0])):
            assert isinstance(security.tls, tls_client.TlsClient) and security.credentials is None
            assert security.tls.context.check_hostname


def test_each_start_has_an_authority_of_its_own():
    """Nobody guesses the principal, and no secret is in what is written of an identity's owner."""
    first, second = certificates.for_nodes("--processes"), certificates.for_nodes("--processes")
    assert first.trusted != second.trusted and first.principal != second.principal
    assert "PRIVATE KEY" in first.key and "PRIVATE KEY" not in first.certificate + first.trusted


def test_without_an_identity_nothing_changes():
    controllers, brokers = nodes(None)
    assert [each.security_protocol for each in parse_listeners(controllers[0])] == ["PLAINTEXT"]
    assert [each.name for each in parse_listeners(brokers[0])] == ["SASL_SSL", "SSL"]
