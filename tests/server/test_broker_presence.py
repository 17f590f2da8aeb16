"""Brokers whose processes end: the controller hears of it from the system that refuses connections to them."""

import errno
from types import SimpleNamespace

import pytest

from pykafkad import errors
from pykafkad.server.broker_presence import AGAIN_SECONDS, LOOK_SECONDS
from pykafkad.wire import messages
from tests.simulation.broker_processes import CONTROLLER, BrokerProcesses, Client
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


def stays(world, node_id, seconds):
    """Whether a broker is never fenced for so long; a heartbeat would soon undo it."""
    until = world.clock.now() + seconds
    while world.clock.now() < until:
        world.advance(0.01)
        if registered(world, node_id).fenced:
            return False
    return True


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
    world.advance(sum(LOOK_SECONDS) + AGAIN_SECONDS)
    assert registered(world, 2).fenced


def test_a_broker_that_is_heard_again_is_not_looked_at(world):
    """As behind a proxy that is away for longer: it has sent a heartbeat on another connection."""
    network = world.controller.runtime.reactor.network
    network.connect = lambda *address: pytest.fail(f"it is looked for at {address}")
    world.network.reset("broker2", CONTROLLER)
    world.turn()
    presence = world.controller._presence
    presence._heard[object()] = presence._known[2].life
    assert stays(world, 2, 1.0)


def test_a_refusal_that_comes_after_the_next_heartbeat_says_nothing(world):
    """It was on its way when the heartbeat came."""
    for ends in (("broker2", CONTROLLER), (CONTROLLER, "broker2")):
        world.network.set_link(*ends, Link(delay=0.02))
    world.network.reset("broker2", CONTROLLER)
    listener = world.network.listeners.pop(("broker2", 9092))
    assert stays(world, 2, LOOK_SECONDS[0] + 2 * 0.02 + AGAIN_SECONDS)
    presence = world.controller._presence
    assert presence._known[2].was_refused and presence._connecting
    presence._heard[object()] = presence._known[2].life
    assert stays(world, 2, 1.0)
    world.network.listeners["broker2", 9092] = listener


def test_refusals_with_an_answer_between_them_are_not_enough(world):
    """As of a proxy that begins anew: at the second look the broker is there."""
    world.network.reset("broker2", CONTROLLER)
    place = "broker2", 9092
    listener = world.network.listeners.pop(place)
    world.advance(LOOK_SECONDS[0] + 0.01)
    world.network.listeners[place] = listener
    assert stays(world, 2, AGAIN_SECONDS)
    del world.network.listeners[place]
    assert stays(world, 2, LOOK_SECONDS[1])
    world.network.listeners[place] = listener
    assert stays(world, 2, 1.0)


def test_only_the_address_that_was_reached_counts(world):
    """A name that means another machine by now says nothing of the broker."""
    network = world.controller.runtime.reactor.network
    network.addresses = lambda host, port: ["elsewhere"]
    world.network.reset("broker2", CONTROLLER)
    assert stays(world, 2, 1.0)
    world.kill(2)
    assert not stays(world, 2, 0.2)


def test_a_heartbeat_whose_connection_has_ended_meanwhile_is_not_kept(world):
    """Nobody would tell of the end of the connection again."""
    presence = world.controller._presence
    before = len(presence)
    request = messages.BrokerHeartbeatRequest(broker_id=2, broker_epoch=registered(world, 2).epoch)
    presence.answered(SimpleNamespace(id=-1), request, 0)
    assert len(presence) == before


def test_one_that_was_fenced_by_mistake_is_back_at_once(world, capfd):
    """As by a proxy that refuses for longer than the looks take: it hears of that from the metadata, and does not wait
    for its next heartbeat."""
    world.create_topic(2, "t", [[2, 3]])
    world.advance(1.0)
    world.until(lambda: len(world.controller.image.topics["t"].partitions[0].isr) == 2)
    place = "broker2", 9092
    world.network.reset("broker2", CONTROLLER)
    listener = world.network.listeners.pop(place)
    world.until(lambda: registered(world, 2).fenced, seconds=0.5)
    world.network.listeners[place] = listener
    world.until(lambda: not registered(world, 2).fenced, seconds=0.2)
    assert world.state(2) == "running" and "fenced-while-running" in capfd.readouterr().err
    epoch = registered(world, 2).epoch
    world.advance(5.0)
    assert (registered(world, 2).epoch, registered(world, 2).fenced) == (epoch, False)


@pytest.mark.parametrize("is_allowed", [True, False])
def test_only_heartbeats_that_the_controller_accepts_count(world, is_allowed):
    """Not those of somebody else in the broker's name, and not those of an earlier life."""
    presence, controller = world.controller._presence, world.controller
    before = len(presence)
    broker = registered(world, 2)
    stranger = Client(world, SimpleNamespace(broker=None, controller=controller), controller.listeners[0])
    controller.services.authorizer = SimpleNamespace(authorize=lambda *_: is_allowed)
    request = messages.BrokerHeartbeatRequest(broker_id=2, broker_epoch=broker.epoch - is_allowed)
    code = stranger.ask(request, 1).error_code
    controller.services.authorizer = None
    assert code == (errors.STALE_BROKER_EPOCH if is_allowed else errors.CLUSTER_AUTHORIZATION_FAILED)
    assert len(presence) == before


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
    assert stays(world, 2, sum(LOOK_SECONDS) + 0.1)
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


def test_a_broker_is_looked_for_while_a_sync_takes_its_time(world):
    """Its name is looked up on another thread, which is held up by no sync and holds up none."""
    offload = world.cluster.runtimes[CONTROLLER].offload
    offload.submit = lambda job, then: None
    world.kill(2)
    world.advance(0.2)
    assert registered(world, 2).fenced
    world.start(2)
    world.until(lambda: not registered(world, 2).fenced)
    world.advance(0.5)
    known = world.controller._presence._known[2]
    assert known.life == (2, registered(world, 2).epoch) and known.address == ("broker2", 9092)
    del offload.submit
