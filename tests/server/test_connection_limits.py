"""How many connections a node takes, and what becomes of those that are too many."""

import socket
from types import SimpleNamespace

import pytest

from pykafkad.config import Settings
from pykafkad.metadata.image import TYPE_BROKER
from pykafkad.server.connection_limits import ConnectionLimits, ConnectionRate
from pykafkad.wire import messages
from tests.server.echo import EchoNode, connect, frame, received, turns, turns_until
from tests.server.sasl_world import log_in, sasl_world
from tests.server.tls_client import Client, endpoint
from tests.simulation.world import World


@pytest.fixture
def node():
    node = EchoNode()
    node.open()
    yield node
    node.close()


def follow(limits, **texts):
    """Take these settings; "host" is two addresses, and other names are not known."""

    def addresses(name, port):
        if name == "host":
            return ["10.0.0.1", "fe80::1"]
        if name[-1].isdigit():
            return [name]
        raise OSError("unknown")

    settings = Settings.from_properties({name.replace("_", "."): (text, "test") for name, text in texts.items()})
    return limits.follow(settings, addresses)


def test_an_address_has_its_limit():
    limits = ConnectionLimits(10)

    def opened(address):
        limits.opened(SimpleNamespace(peer=f"{address}:1", listener=None))

    for _ in range(100):
        assert limits.refusal("10.0.0.9") is None
        opened("10.0.0.9")
    unknown = follow(
        limits, max_connections_per_ip="2", max_connections_per_ip_overrides="10.0.0.2:3, host:1,::1:0,nowhere:5"
    )
    assert unknown == ["nowhere"] and limits.max_connections == 2**31 - 1
    for address, limit in (("10.0.0.3", 2), ("10.0.0.2", 3), ("10.0.0.1", 1), ("[fe80::1]", 1), ("[::1]", 0)):
        for _ in range(limit):
            assert limits.refusal(address) is None
            opened(address)
        assert limits.refusal(address) == {"reason": "max.connections.per.ip", "limit": limit}


def test_names_are_looked_up_when_the_overrides_change_only():
    """It holds the loop. A name that is not found keeps the addresses that it had."""
    limits, asked, known = ConnectionLimits(10), [], {"host": ["10.0.0.1"], "other": ["10.0.0.2"]}

    def take(overrides, per_ip="2"):
        def addresses(name, port):
            asked.append(name)
            if name not in known:
                raise OSError("temporary failure in name resolution")
            return known[name]

        texts = {"max.connections.per.ip": per_ip, "max.connections.per.ip.overrides": overrides}
        settings = Settings.from_properties({name: (text, "test") for name, text in texts.items()})
        return limits.follow(settings, addresses)

    def limit_of(address):
        return limits._limits.get(address, limits._per_address)

    assert take("host:0") == [] and asked == ["host"]
    del known["host"]
    assert take("host:0", "5") == [] and asked == ["host"]
    assert (limit_of("10.0.0.1"), limit_of("10.0.0.2")) == (0, 5)
    assert take("host:1,other:3,nowhere:4") == ["nowhere"]
    assert (limit_of("10.0.0.1"), limit_of("10.0.0.2")) == (1, 3)
    assert take("") == [] and limit_of("10.0.0.1") == 2
    assert take("host:1") == ["host"] and limit_of("10.0.0.1") == 2


def test_who_is_one_too_many_of_its_address_is_closed(node):
    node.listen()
    follow(node.socket_server.limits, max_connections_per_ip="2")
    clients = [connect(node) for _ in range(3)]
    assert len(node.connections) == 2 and node.metrics.connections_refused == 1
    refused = clients.pop()
    assert received(node, refused, 1) == b""
    refused.close()
    clients.pop().close()
    turns_until(node, lambda: len(node.connections) == 1)
    clients.append(connect(node))
    assert len(node.connections) == 2
    for client in clients:
        client.close()
    turns_until(node, lambda: not node.connections)
    assert node.socket_server.limits._counts == {}


def test_the_rate_is_kafkas():
    """Eleven windows of a second: ten seconds' worth may come at once, then each waits for its share."""
    rate = ConnectionRate(11, 1)
    assert [rate.record(0.0, 2) for _ in range(20)] == [0.0] * 20
    # 21 in ten seconds are 2.1 a second: half a second brings them back to 2.
    assert rate.record(0.0, 2) == pytest.approx(0.5)
    assert rate.record(0.0, 2) == pytest.approx(1.0)
    assert rate.record(0.0, 2) == 1.0, "a window at most"
    # After 12 seconds nothing of it counts.
    assert rate.record(12.0, 2) == 0.0
    assert len(rate._samples) == 1


def test_a_rate_of_0_lets_in_one_in_each_window():
    """As in Kafka, which allows it at start; the arithmetic would divide by it."""
    rate = ConnectionRate(11, 1)
    assert [rate.record(now, 0) for now in (0.0, 1.0, 100.0)] == [1.0] * 3


def test_a_steady_rate_is_kept_to():
    rate = ConnectionRate(11, 1)
    now, count = 0.0, 0
    while now < 100:
        now += rate.record(now, 5) or 0.001
        count += 1
    assert 500 <= count <= 560
    assert len(rate._samples) <= 12


def test_listeners_pause_when_connections_come_too_fast(node):
    node.listen()
    follow(node.socket_server.limits, max_connection_creation_rate="1")
    clients = [connect(node) for _ in range(11)]
    # The eleventh was one too many for ten seconds: the others wait in the system's backlog, and are not lost.
    late = socket.create_connection(("127.0.0.1", node.port))
    late.setblocking(False)
    turns(node, 3)
    assert len(node.connections) == 11 and node.metrics.connections_refused == 0
    assert clients[-1].send(frame(b"served")) and received(node, clients[-1], 10) == frame(b"served")
    node.now = 0.9
    turns(node, 3)
    assert len(node.connections) == 11
    node.now = 1.1
    turns_until(node, lambda: len(node.connections) == 12)
    for client in (*clients, late):
        client.close()


def test_strangers_of_an_address_make_room_for_newcomers(node):
    """The oldest goes. Who has finished the handshake is none."""
    node.listen(tls=endpoint())
    node.socket_server.limits.strangers_per_address = 3
    known = [Client(node).open() for _ in range(2)]
    strangers = [connect(node) for _ in range(3)]
    first = {each.id for each in node.connections}
    assert not node.lost
    newcomer = connect(node)
    turns_until(node, lambda: node.lost)
    ((gone, reason),) = node.lost
    assert reason == "more than 3 connections of its address have not logged in"
    assert gone.peer.endswith(f":{strangers[0].getsockname()[1]}") and gone.id in first
    assert all(each.ask(b"here") == frame(b"here") for each in known)
    again = Client(node).open()
    assert again.ask(b"and I") == frame(b"and I")
    for client in (*known, *strangers, newcomer, again):
        client.close()
    turns_until(node, lambda: not node.connections)
    assert node.socket_server.limits._strangers == {}


def test_who_has_not_logged_in_is_a_stranger(tmp_path):
    world = sasl_world(tmp_path, "PLAIN", pykafkad_unauthenticated_connections_max_per_ip="2")
    alice = world.connect()
    assert log_in(alice).error_code == 0
    first, second = world.connect(), world.connect()
    assert (alice.closed, first.closed, second.closed) == (None, None, None)
    third = world.connect()
    assert (alice.closed, second.closed, third.closed) == (None, None, None)
    assert first.closed == "more than 2 connections of its address have not logged in"
    world.stop()


def test_limits_change_live(tmp_path):
    world = World(tmp_path)
    request = messages.IncrementalAlterConfigsRequest

    def alter(name, text, resource_name=""):
        configs = [request.AlterableConfig(name=name, config_operation=0, value=text)]
        resource = request.AlterConfigsResource(resource_type=TYPE_BROKER, resource_name=resource_name, configs=configs)
        return world.connect().ask(request(resources=[resource]), 1).responses[0].error_code

    limits = world.broker.socket_server.limits
    assert alter("max.connections", "7") == alter("max.connections.per.ip", "5", "1") == 0
    assert (limits.max_connections, limits._per_address) == (7, 5)
    assert alter("max.connection.creation.rate", "3") == alter("max.connections", "9", "1") == 0
    assert (limits.max_connections, limits._rate_limit) == (9, 3)
    world.stop()
