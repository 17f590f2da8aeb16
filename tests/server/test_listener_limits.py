"""How many connections each listener takes, and which of them make room for those between brokers."""

import socket

import pytest

from pykafkad.config import Settings
from pykafkad.errors import ConfigError
from pykafkad.server.connection_limits import ConnectionLimits
from pykafkad.server.listeners import Listener
from tests.server.echo import EchoNode, connect, frame, received, turns, turns_until

CLIENTS, BETWEEN = Listener("CLIENTS", "127.0.0.1", 0), Listener("BETWEEN", "127.0.0.1", 0)


def settings(**texts):
    """Those of a broker with two listeners; names that begin with two underscores are those of CLIENTS."""

    def name_of(word):
        return f"{'listener.name.clients' if word.startswith('__') else ''}{word.replace('__', '_').replace('_', '.')}"

    texts = {"inter_broker_listener_name": "BETWEEN", **texts}
    return Settings.from_properties({name_of(word): (text, "test") for word, text in texts.items()})


class TwoListeners(EchoNode):
    """A node with one listener for clients and one between brokers."""

    def limit(self, **texts):
        """Take these settings."""
        self.socket_server.settings_changed(settings(**texts), are_own=False)

    def listen_at(self, *listeners):
        """Listen at each; their ports."""
        return [
            self.socket_server.listen("127.0.0.1", 0, each, send_buffer_bytes=None, backlog=10) for each in listeners
        ]

    def ports(self):
        """Of the peers that are connected."""
        return {int(each.peer.rpartition(":")[2]) for each in self.connections}


@pytest.fixture
def node():
    node = TwoListeners()
    node.open()
    yield node
    node.close()


@pytest.fixture
def clients():
    """Sockets that are closed in the end."""
    found = []
    yield found
    for each in found:
        each.close()


def waiting(node, clients, port):
    """A client that the system has accepted and the node has not, though it had its turns."""
    client = socket.create_connection(("127.0.0.1", port))
    client.sendall(frame(b"patient"))
    client.setblocking(False)
    clients.append(client)
    turns(node, 3)
    assert client.getsockname()[1] not in node.ports()
    return client


def joined(node, clients, port):
    """One that the node has accepted, a second later than the one before."""
    node.now += 1.0
    clients.append(connect(node, port=port))
    return clients[-1]


def port_of(client):
    return client.getsockname()[1]


def test_the_listener_between_brokers_is_not_held_up(node, clients):
    """Beyond the limit in all, who comes there ends the client that was idle for longest; clients wait meanwhile."""
    node.limit(max_connections="2")
    of_clients, between = node.listen_at(CLIENTS, BETWEEN)
    first = joined(node, clients, of_clients)
    joined(node, clients, of_clients)
    node.now += 1.0
    first.sendall(frame(b"busy"))
    assert received(node, first, 8) == frame(b"busy")
    late = waiting(node, clients, of_clients)
    broker = joined(node, clients, between)
    turns_until(node, lambda: node.lost)
    assert [reason for _, reason in node.lost] == ["more than max.connections 2"]
    assert node.ports() == {port_of(first), port_of(broker)}
    second_broker = joined(node, clients, between)
    turns_until(node, lambda: len(node.lost) == 2)
    assert node.ports() == {port_of(broker), port_of(second_broker)}
    # The limit in all is that of each listener too.
    waiting(node, clients, between)
    broker.close()
    second_broker.close()
    turns_until(node, lambda: port_of(late) in node.ports())
    assert received(node, late, 11) == frame(b"patient")
    assert node.metrics.connections_refused == 0


def test_a_single_listener_is_held_up_whatever_its_name(node, clients):
    """There is nobody who could make room."""
    node.limit(max_connections="1")
    (port,) = node.listen_at(BETWEEN)
    first = joined(node, clients, port)
    late = waiting(node, clients, port)
    first.close()
    assert received(node, late, 11) == frame(b"patient")


def test_a_listener_has_a_limit_of_its_own(node, clients):
    """Which does not count for others, and may change live."""
    node.limit(__max_connections="1", max_connections="9")
    of_clients, between = node.listen_at(CLIENTS, BETWEEN)
    joined(node, clients, of_clients)
    late = waiting(node, clients, of_clients)
    for _ in range(3):
        joined(node, clients, between)
    node.limit(__max_connections="2", max_connections="9")
    assert received(node, late, 11) == frame(b"patient")
    waiting(node, clients, of_clients)


def test_a_lowered_limit_ends_those_that_were_idle_for_longest(node, clients):
    """But nobody on the listener between brokers."""
    of_clients, between = node.listen_at(CLIENTS, BETWEEN)
    node.limit()
    broker = joined(node, clients, between)
    several = [joined(node, clients, of_clients) for _ in range(4)]
    node.limit(max_connections="3")
    assert node.ports() == {port_of(each) for each in (broker, *several[2:])}
    node.limit(max_connections="0")
    assert node.ports() == {port_of(broker)}
    waiting(node, clients, of_clients)


def test_a_listener_has_a_rate_of_its_own(node, clients):
    """Beyond it only that one pauses; the rate in all does not count between brokers."""
    node.limit(__max_connection_creation_rate="1", max_connection_creation_rate="100000")
    of_clients, between = node.listen_at(CLIENTS, BETWEEN)
    for _ in range(11):
        clients.append(connect(node, port=of_clients))
    late = waiting(node, clients, of_clients)
    clients.append(connect(node, port=between))
    node.now += 1.1
    assert received(node, late, 11) == frame(b"patient")
    limits = ConnectionLimits(10)
    limits.add(CLIENTS, settings(max_connection_creation_rate="1", __max_connection_creation_rate="100"))
    limits.add(BETWEEN, settings(__max_connection_creation_rate="1"))
    limits.follow(settings(max_connection_creation_rate="1", __max_connection_creation_rate="100"), None)
    assert [limits.pause_seconds(CLIENTS, 0.0) > 0 for _ in range(12)] == [False] * 10 + [True] * 2


def test_a_rate_pauses_on_while_there_is_no_room(node, clients):
    """Both must be over before anybody is taken, and other limits make neither shorter."""
    node.limit(__max_connections="11", __max_connection_creation_rate="1")
    (of_clients,) = node.listen_at(CLIENTS)
    for _ in range(11):
        clients.append(connect(node, port=of_clients))
    late = waiting(node, clients, of_clients)
    node.limit(__max_connections="12", __max_connection_creation_rate="1")
    turns(node, 3)
    assert port_of(late) not in node.ports()
    node.limit(__max_connections="11", __max_connection_creation_rate="1")
    node.now += 1.1
    turns(node, 3)
    assert port_of(late) not in node.ports()
    clients.pop(0).close()
    assert received(node, late, 11) == frame(b"patient")


def test_limits_that_are_no_numbers_are_refused(node):
    """When the broker begins to listen."""
    with pytest.raises(ConfigError, match=r"max\.connections"):
        node.limit(__max_connections="many")
        node.listen_at(CLIENTS)
