"""Nodes of one cluster that reach each other over TLS and log in, over the simulated network."""

import ssl

import pytest

from pykafkad.config import Settings
from pykafkad.errors import ConfigError
from pykafkad.metadata import credentials, events
from pykafkad.sasl import client
from pykafkad.sasl.scram import usual_salt
from pykafkad.server import peer_greeting, peer_security
from pykafkad.server.peer_types import PLAIN_TEXT
from pykafkad.server.tls_client import TlsClient
from pykafkad.wire import messages
from tests import certificates
from tests.handlers.requests import batch, produce
from tests.simulation.broker_processes import BrokerProcesses

HOSTS = ("controller", "broker2", "broker3")
PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
LISTENERS = ("controller", "nodes")


class OnlyNodes:
    """An authorizer that lets one principal do what nodes do, and keeps who asked for it."""

    def __init__(self, principal):
        self.principal = principal
        self.nodes = set()

    def authorize(self, principal, client_address, operation, resource_type, resource_name):
        if operation != "ClusterAction":
            return True
        self.nodes.add(principal)
        return principal == self.principal


def secured(protocol, mechanism="PLAIN", *, user="node", password="secret", known="secret", hosts=HOSTS, **more):
    """The settings of all nodes: they log in as `user` with `password`, and `known` is what PLAIN knows of it."""
    made = {
        "listener.security.protocol.map": f"PLAINTEXT:PLAINTEXT,CONTROLLER:{protocol},NODES:{protocol}",
        "inter.broker.listener.name": "NODES",
    }
    if protocol.endswith("SSL"):
        own = certificates.renewed("node", hosts=hosts)
        made |= certificates.settings()
        made |= {"ssl.keystore.key": own.key_pem, "ssl.keystore.certificate.chain": own.pem}
    if protocol.startswith("SASL"):
        made |= dict.fromkeys(
            ("sasl.mechanism.inter.broker.protocol", "sasl.mechanism.controller.protocol", "sasl.enabled.mechanisms"),
            mechanism,
        )
        module = PLAIN_MODULE if mechanism == "PLAIN" else SCRAM_MODULE
        who = f'{module} required username="{user}" password="{password}"'
        if mechanism == "PLAIN":
            who += f' user_node="{known}"'
        for each in LISTENERS:
            made[f"listener.name.{each}.{mechanism.lower()}.sasl.jaas.config"] = f"{who};"
    return made | {name.replace("_", "."): text for name, text in more.items()}


class Nobody:
    """A token for which nobody waits."""

    def deliver(self, message):
        assert not any(row.error_code for row in message.results)


def add_user(controller, mechanism, password="secret"):
    """As an administrator adds the user `node`."""
    import hashlib

    salt = usual_salt(bytes(range(18)))
    name = mechanism.removeprefix("SCRAM-").replace("-", "").lower()
    row = messages.AlterUserScramCredentialsRequest.ScramCredentialUpsertion(
        name="node",
        mechanism=credentials.NUMBERS[mechanism],
        iterations=4096,
        salt=salt,
        salted_password=hashlib.pbkdf2_hmac(name, password.encode(), salt, 4096),
    )
    controller.submit(events.AlterUserScramCredentials(Nobody(), [], [row]))


@pytest.fixture
def begin():
    """Begins a world without brokers; it ends with the test."""
    worlds = []

    def make(protocol, authorizer=None, **settings):
        made = BrokerProcesses((), protocol=protocol, authorizer=authorizer, **settings)
        worlds.append(made)
        return made

    yield make
    for each in worlds:
        each.close()


def start_both(world):
    for node_id in (2, 3):
        world.start(node_id)


def replicated(world):
    """Whether a record that a client wrote is on both brokers, and known to be committed."""
    logs = [world.broker(each).partitions.get("t", 0) for each in (2, 3)]
    return all(log is not None and log.high_watermark == 1 for log in logs)


@pytest.mark.parametrize(
    ("protocol", "mechanism", "principal"),
    [
        ("SSL", "PLAIN", "User:CN=node"),
        ("SASL_PLAINTEXT", "PLAIN", "User:node"),
        ("SASL_SSL", "PLAIN", "User:node"),
        ("SASL_SSL", "SCRAM-SHA-256", "User:node"),
        ("SASL_PLAINTEXT", "SCRAM-SHA-512", "User:node"),
    ],
)
def test_nodes_know_each_other(begin, protocol, mechanism, principal):
    """Brokers register, forward, replicate and commit; and each is known to the others by its certificate or login."""
    authorizer = OnlyNodes(principal)
    more = {"ssl_client_auth": "required"} if protocol == "SSL" else {}
    world = begin(protocol, authorizer, **secured(protocol, mechanism, **more))
    if mechanism != "PLAIN":
        add_user(world.controller, mechanism)
    start_both(world)
    world.until_serving()
    world.create_topic(2, "t", [[2, 3]])
    (row,) = world.connect(2).ask(produce("t", {0: batch(b"v")}), 9).responses[0].partition_responses
    assert row.error_code == 0
    world.until(lambda: replicated(world))
    assert authorizer.nodes == {principal}


def of_file(path, **more):
    """The settings of nodes that show each other the certificate of a file."""
    made = secured("SSL", ssl_client_auth="required", **more)
    del made["ssl.keystore.key"], made["ssl.keystore.certificate.chain"]
    return made | {"ssl.keystore.location": str(path)}


@pytest.mark.long
def test_certificates_that_are_renewed_count_from_the_next_connection(begin, tmp_path, capfd):
    """Of a file, which is looked at before each; one that is not fit is told of, and the one before stays."""
    old, new = certificates.renewed("node", hosts=HOSTS), certificates.renewed("renewed", hosts=HOSTS)
    path = tmp_path / "node.pem"
    path.write_text(old.key_pem + old.pem)
    authorizer = OnlyNodes("User:CN=node")
    world = begin("SSL", authorizer, **of_file(path, ssl_allow_dn_changes="true"))
    start_both(world)
    world.until_serving()
    world.create_topic(2, "t", [[2, 3]])
    world.advance(1.0)
    assert authorizer.nodes == {"User:CN=node"}
    capfd.readouterr()

    def reconnect():
        for one, other in (("broker2", "broker3"), ("broker3", "broker2")):
            world.network.reset(one, other)
        for each in ("broker2", "broker3"):
            world.network.reset(each, "controller")
        world.advance(5.0)
        return [line for line in capfd.readouterr().err.splitlines() if "peer-certificates" in line]

    path.write_text("half of it")
    told = reconnect()
    assert told and all("peer-certificates-not-renewed" in each for each in told)
    assert reconnect() == [] and authorizer.nodes == {"User:CN=node"}, "it is told once"
    authorizer.principal = "User:CN=renewed"
    path.write_text(new.key_pem + new.pem)
    told = reconnect()
    assert told and all("peer-certificates-renewed" in each for each in told)
    assert "User:CN=renewed" in authorizer.nodes
    world.until_serving()
    (row,) = world.connect(2).ask(produce("t", {0: batch(b"v")}), 9).responses[0].partition_responses
    assert row.error_code == 0
    world.until(lambda: replicated(world))


@pytest.mark.long
def test_a_renewed_certificate_is_for_the_same_name(begin, tmp_path, capfd):
    """As at a listener, and in Kafka: the others would not know the node any more."""
    path = tmp_path / "node.pem"
    write = lambda made: path.write_text(made.key_pem + made.pem)  # noqa: E731
    write(certificates.renewed("node", hosts=HOSTS))
    authorizer = OnlyNodes("User:CN=node")
    world = begin("SSL", authorizer, **of_file(path))
    start_both(world)
    world.until_serving()
    world.create_topic(2, "t", [[2, 3]])
    world.advance(1.0)
    capfd.readouterr()
    write(certificates.renewed("other", hosts=HOSTS))
    world.network.reset("broker3", "broker2")
    world.advance(5.0)
    told = [line for line in capfd.readouterr().err.splitlines() if "peer-certificates" in line]
    assert len(told) == 1 and "the certificate is for CN=other" in told[0] and authorizer.nodes == {"User:CN=node"}


@pytest.mark.long
def test_live_settings_count_from_the_next_connection(begin, capfd):
    """Those of the listener which is reached, of the broker that reaches others."""
    authorizer = OnlyNodes("User:CN=node")
    world = begin("SSL", authorizer, **secured("SSL", ssl_client_auth="required", ssl_allow_dn_changes="true"))
    start_both(world)
    world.until_serving()
    world.create_topic(2, "t", [[2, 3]])
    world.advance(1.0)
    assert authorizer.nodes == {"User:CN=node"}
    request = messages.IncrementalAlterConfigsRequest
    other = certificates.renewed("other", hosts=HOSTS)
    changes = [
        request.AlterableConfig(name=f"listener.name.nodes.ssl.keystore.{name}", config_operation=0, value=value)
        for name, value in (("key", other.key_pem), ("certificate.chain", other.pem))
    ]
    asked = request(resources=[request.AlterConfigsResource(resource_type=4, resource_name="3", configs=changes)])
    assert world.connect(3).ask(asked, 1).responses[0].error_code == 0
    world.advance(1.0)
    capfd.readouterr()
    authorizer.principal = "User:CN=other"
    world.network.reset("broker3", "broker2")
    world.advance(5.0)
    told = [line for line in capfd.readouterr().err.splitlines() if "peer-certificates" in line]
    assert len(told) == 1 and "peer-certificates-renewed" in told[0] and "User:CN=other" in authorizer.nodes


def refused(begin, capfd, protocol, *, seconds=20, **settings):
    """What a broker logs that the others do not take; it never serves."""
    world = begin(protocol, **settings)
    process = world.start(2)
    world.advance(seconds)
    assert process.lifecycle.state != "running" and not process.source.image.brokers
    return [line.partition("peer-unfit ")[2] for line in capfd.readouterr().err.splitlines() if "peer-unfit" in line]


def test_a_certificate_for_another_name_is_not_taken(begin, capfd):
    """It is told of once, however often it is tried."""
    told = refused(begin, capfd, "SSL", **secured("SSL", hosts=("elsewhere", "broker2", "broker3")))
    assert len(told) == 1 and told[0].startswith("peer=controller:9093 ") and "Hostname mismatch" in told[0]


@pytest.mark.long
def test_the_name_does_not_count_where_the_settings_say_so(begin):
    """ssl.endpoint.identification.algorithm is empty, for the listener or for all."""
    settings = secured("SSL", hosts=("elsewhere",))
    for name in (
        "ssl.endpoint.identification.algorithm",
        "listener.name.controller.ssl.endpoint.identification.algorithm",
    ):
        world = begin("SSL", **settings, **{name: ""})
        world.start(2)
        world.until_serving()


@pytest.mark.long
def test_a_certificate_of_an_unknown_authority_is_not_taken(begin, capfd):
    """The trust store does not have it."""
    settings = secured("SSL") | {"ssl.truststore.certificates": certificates.authority("Others").pem}
    (told,) = refused(begin, capfd, "SSL", **settings)
    assert "certificate is not trusted" in told


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        (secured("SASL_PLAINTEXT", password="wrong"), "refuses the login of node by PLAIN: Authentication failed"),
        (secured("SASL_PLAINTEXT", user="nobody"), "refuses the login of nobody by PLAIN: Authentication failed"),
        (secured("SASL_PLAINTEXT", "SCRAM-SHA-256"), "refuses the login of node by SCRAM-SHA-256"),
        (secured("SASL_PLAINTEXT", sasl_enabled_mechanisms="SCRAM-SHA-512"), "offers no login by PLAIN, but by"),
    ],
    ids=["wrong password", "unknown user", "unknown user of SCRAM", "other mechanism"],
)  # fmt: skip
def test_a_login_that_is_refused_is_told_of(begin, capfd, settings, reason):
    """Once, and tried again after pauses."""
    told = refused(begin, capfd, "SASL_PLAINTEXT", **settings)
    assert len(told) == 1 and reason in told[0]


@pytest.mark.long
@pytest.mark.parametrize(
    ("place", "limit", "value", "reason"),
    [
        (client, "ITERATIONS_MIN", 5000, "it asks for 4096 iterations of SCRAM; 5000 to 1000000 may be"),
        (peer_greeting, "STEPS_MAX", 0, "its login goes on where it should end"),
    ],
    ids=["iterations", "steps"],
)
def test_a_server_whose_side_of_the_login_is_not_right_is_told_of(
    begin, capfd, monkeypatch, place, limit, value, reason
):
    """Also when that is found beside the loop."""
    monkeypatch.setattr(place, limit, value)
    world = begin("SASL_PLAINTEXT", **secured("SASL_PLAINTEXT", "SCRAM-SHA-256"))
    add_user(world.controller, "SCRAM-SHA-256")
    process = world.start(2)
    world.advance(20)
    assert process.lifecycle.state != "running"
    told = [line for line in capfd.readouterr().err.splitlines() if "peer-unfit" in line]
    assert len(told) == 1 and "peer=controller:9093" in told[0] and reason in told[0]


def test_a_host_name_that_no_certificate_has_is_told_of(begin, capfd, monkeypatch):
    """TLS does not begin at all."""
    first = TlsClient.transport
    monkeypatch.setattr(TlsClient, "transport", lambda self, name, logs: first(self, f".{name}", logs))
    told = refused(begin, capfd, "SSL", **secured("SSL"))
    assert len(told) == 1 and "'.controller' is no name that a certificate may have" in told[0]


def test_a_handshake_that_cannot_begin_is_told_of(begin, capfd, monkeypatch):
    """In OpenSSL's words: no version of TLS is left."""
    first = TlsClient.transport

    def transport(self, host_name, logs):
        self.context.minimum_version = ssl.TLSVersion.TLSv1_3
        self.context.maximum_version = ssl.TLSVersion.TLSv1_2
        return first(self, host_name, logs)

    monkeypatch.setattr(TlsClient, "transport", transport)
    told = refused(begin, capfd, "SSL", **secured("SSL"))
    assert len(told) == 1 and "the TLS handshake cannot begin: " in told[0]


def test_one_who_does_not_log_in_is_no_broker(begin):
    """In plain text, at a listener that asks for a login; and nothing is answered but the versions."""
    world = begin("SASL_PLAINTEXT", **secured("SASL_PLAINTEXT"))
    world.settings |= {
        "listener.security.protocol.map": ("PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,NODES:PLAINTEXT", "test")
    }
    process = world.start(2)
    world.advance(20)
    assert process.lifecycle.state != "running" and not world.controller.image.brokers


@pytest.mark.long
def test_logins_are_renewed_before_they_expire(begin):
    """Over the same connections: a broker that was to log in within a second goes on for minutes."""
    world = begin("SASL_SSL", **secured("SASL_SSL", connections_max_reauth_ms="2000"))
    start_both(world)
    world.until_serving()
    world.create_topic(2, "t", [[2, 3], [3, 2]])
    world.advance(3)
    accepted = [world.controller.metrics.connections_accepted]
    accepted += [world.broker(each).metrics.connections_accepted for each in (2, 3)]
    epochs = [each.epoch for each in world.controller.image.brokers.values()]
    world.advance(120)
    assert not any(each.fenced for each in world.controller.image.brokers.values())
    assert [each.epoch for each in world.controller.image.brokers.values()] == epochs
    now = [world.controller.metrics.connections_accepted]
    now += [world.broker(each).metrics.connections_accepted for each in (2, 3)]
    assert now == accepted


def of(**settings):
    return Settings.from_properties({name: (text, "test") for name, text in settings.items()})


def test_plain_text_needs_nothing():
    settings = of(**{"controller.listener.names": "CONTROLLER"})
    assert peer_security.of_controllers(settings) is PLAIN_TEXT and peer_security.of_brokers(settings) is PLAIN_TEXT


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ({"sasl.mechanism.controller.protocol": "GSSAPI"}, "sasl.mechanism.controller.protocol: GSSAPI: nodes log in"),
        ({"listener.name.controller.plain.sasl.jaas.config": f"{PLAIN_MODULE} required;"}, "no username and"),
        (
            {"listener.name.controller.plain.sasl.jaas.config": f'{PLAIN_MODULE} required username="a";'},
            "listener.name.controller.plain.sasl.jaas.config: this node logs in at others by PLAIN, and has no pass",
        ),
        ({"ssl.endpoint.identification.algorithm": "ldaps"}, "identification.algorithm: 'ldaps' is neither"),
        ({"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT"}, "CONTROLLER has no security protocol"),
    ],
)  # fmt: skip
def test_settings_that_lack_something_are_refused_at_the_start(more, problem):
    settings = of(**{**secured("SASL_SSL"), "controller.listener.names": "CONTROLLER", **more})
    with pytest.raises(ConfigError) as caught:
        peer_security.of_controllers(settings)
    assert problem in str(caught.value) and "secret" not in str(caught.value)
