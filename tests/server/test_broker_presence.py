"""Brokers whose processes end: the controller hears of it from the system that refuses connections to them."""

import errno

import pytest

from pykafkad.server.broker_presence import LOOK_SECONDS
from tests.simulation.broker_processes import CONTROLLER, BrokerProcesses
from tests.simulation.network import Link


@pytest.fixture
def world():
    made = BrokerProcesses(brokers=(2, 3))
    made.until_serving()
    made.until_read()
    made.advance(3.0)
    yield made
    made.close()


def registered(world, node_id):
    return world.controller.image.brokers[node_id]


def leader(world, name, index=0):
    return world.controller.image.topics[name].partitions[index].leader


def test_others_lead_soon_after_a_broker_was_killed(world):
    """Long before the end of its session, and its next life is registered at once."""
    world.create_topic(2, "t", [[2, 3]])
    world.advance(1.0)
    assert leader(world, "t") == 2
    world.kill(2)
    world.advance(0.2)
    assert registered(world, 2).fenced and leader(world, "t") == 3
    world.start(2)
    world.until(lambda: world.state(2) == "running", seconds=2.0)


def test_a_listener_that_goes_after_the_connections_is_looked_at_again(world):
    network = world.network
    kept = network.listeners["broker2", 9092]
    world.kill(2)
    network.listeners["broker2", 9092] = kept
    world.advance(LOOK_SECONDS[0] + 0.01)
    assert not registered(world, 2).fenced
    del network.listeners["broker2", 9092]
    world.advance(sum(LOOK_SECONDS))
    assert registered(world, 2).fenced


def test_a_broker_that_lost_a_connection_is_left_alone(world):
    epoch = registered(world, 2).epoch
    world.network.reset("broker2", CONTROLLER)
    world.advance(5.0)
    assert not registered(world, 2).fenced and registered(world, 2).epoch == epoch
    assert world.state(2) == "running"


def test_a_network_that_is_cut_says_nothing(world):
    """Nobody refuses a connection: the session's time decides, as in Kafka."""
    for ends in (("broker2", CONTROLLER), (CONTROLLER, "broker2")):
        world.network.cut(*ends)
    world.network.reset("broker2", CONTROLLER)
    world.advance(5.0)
    assert not registered(world, 2).fenced
    world.advance(8.0)
    assert registered(world, 2).fenced
    for ends in (("broker2", CONTROLLER), (CONTROLLER, "broker2")):
        world.network.mend(*ends)
    world.until(lambda: not registered(world, 2).fenced)


def test_a_refusal_at_an_address_that_was_never_reached_says_nothing():
    """As of an address that is meant for clients elsewhere."""
    world = BrokerProcesses(brokers=(2,))
    listener = world.network.listeners.pop(("broker2", 9092))
    world.until_serving()
    world.network.reset("broker2", CONTROLLER)
    world.advance(sum(LOOK_SECONDS) + 0.1)
    assert not registered(world, 2).fenced
    world.network.listeners["broker2", 9092] = listener
    world.close()


def test_one_connection_of_two_that_ends_says_nothing(world):
    presence = world.controller._presence
    (first,) = [each for each, life in presence._heard.items() if life[0] == 2]
    other = object()
    presence._heard[other] = presence._heard[first]
    listener = world.network.listeners.pop(("broker2", 9092))
    presence.lost(other)
    world.advance(1.5)
    assert not registered(world, 2).fenced
    world.network.listeners["broker2", 9092] = listener


def test_a_system_without_descriptors_leaves_it_to_the_session(world):
    network = world.controller.runtime.reactor.network

    def connect(host, port):
        raise OSError(errno.EMFILE, "Too many open files")

    network.connect = connect
    world.kill(2)
    world.advance(2.0)
    assert not registered(world, 2).fenced
    world.advance(10.0)
    assert registered(world, 2).fenced


def test_a_slow_network_is_waited_for(world):
    world.network.set_link("broker2", CONTROLLER, Link(delay=0.3))
    world.network.set_link(CONTROLLER, "broker2", Link(delay=0.3))
    world.kill(2)
    world.advance(2.0)
    assert registered(world, 2).fenced
