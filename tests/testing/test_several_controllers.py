"""Several controllers in a test: another takes over, whoever of the nodes stops, is killed and starts again."""

from __future__ import annotations

import time

import pytest

from pykafkad.testing import Broker, NotInTime
from pykafkad.testing.wire_client import WireClient
from tests.testing.test_several_brokers import addresses, connects, leaders, log_in

REPLICATED = {"default.replication.factor": 3, "controller.quorum.fetch.timeout.ms": 1000}


@pytest.fixture(params=["thread", pytest.param("process", marks=pytest.mark.long)])
def broker(request):
    """Three brokers and three controllers, on a thread of this process or in one of their own."""
    with Broker(
        brokers=3, controllers=3, topics={"orders": 3}, records={"orders": ["a", "b", "c"]}, settings=REPLICATED,
        own_process=request.param == "process",
    ) as broker:  # fmt: skip
        yield broker
        if request.param == "thread":
            assert broker._running._process.runtime.metrics.unexpected_errors == 0


@pytest.mark.long
def test_another_controller_takes_over(broker):
    """At once after a stop, and after the time of a fetch when one was killed; what is asked meanwhile is done."""
    first = broker.active_controller
    assert first in (3000, 3001, 3002)
    broker.stop_controller(first)
    second = broker.wait_for_controller(other_than=first)
    broker.create_topic("more", 2)
    broker.start_controller(first)
    broker.kill_controller(second)
    broker.create_topic("even-more", 2)
    third = broker.active_controller
    assert len({third, second}) == 2
    broker.start_controller(second)
    broker.stop_controller(third)
    assert broker.wait_for_controller(other_than=third) != third
    assert broker.topics() == {"orders": 3, "more": 2, "even-more": 2}
    assert len(broker.records("orders")) == 3


@pytest.mark.long
def test_without_a_majority_nothing_is_decided(broker):
    """Brokers go on with what they know: records are written and read."""
    for node_id in (3000, 3001):
        broker.kill_controller(node_id)
    deadline = time.monotonic() + 10
    while broker.active_controller is not None and time.monotonic() < deadline:
        broker.produce("orders", "d")
    with pytest.raises(NotInTime, match="after 0.05 s still no active controller; there is: none"):
        broker.wait_for_controller(timeout=0.05)
    broker.produce("orders", "e")
    with pytest.raises(RuntimeError, match="broker 2 cannot leave in a controlled way: no controller is active"):
        broker.stop_broker(2)
    broker.kill_broker(2)
    with pytest.raises(RuntimeError, match="broker 2 cannot start: no controller is active that could register it"):
        broker.start_broker(2)
    broker.start_controller(3001)
    assert broker.wait_for_controller() in (3001, 3002)
    # The session of its life before ends.
    broker.clock.advance(10)
    broker.start_broker(2)
    broker.create_topic("more")


@pytest.mark.long
def test_brokers_stop_die_and_come_back(broker):
    before = leaders(broker)
    broker.stop_broker(2)
    assert not connects(addresses(broker)[1]) and addresses(broker)[1] not in leaders(broker)
    assert len(broker.records("orders")) == 3
    with pytest.raises(RuntimeError, match="broker 2 is down, not serving"):
        broker.kill_broker(2)
    broker.start_broker(2)
    broker.kill_broker(1)
    broker.clock.advance(10)
    assert addresses(broker)[0] not in leaders(broker)
    broker.produce("orders", "d", "e", "f")
    broker.start_broker(1)
    assert sorted(map(str, leaders(broker))) != [] and len(before) == 3
    assert len(broker.records("orders")) == 6


@pytest.mark.long
def test_the_clock_moves_for_all_of_them(broker):
    """However far: when it has moved all of them serve, and somebody decides."""
    for seconds in (120, 86_400):
        broker.clock.advance(seconds)
        assert broker.active_controller is not None
        assert len(broker._asked._metadata("orders").brokers) == 3
        broker.create_topic(f"after-{seconds}")


@pytest.mark.long
@pytest.mark.parametrize("is_killed", [False, True])
def test_all_start_again_at_their_addresses(broker, is_killed):
    """Also those that were killed before. No node is taken for another."""
    before = addresses(broker)
    broker.kill_controller(3000)
    broker.kill_broker(3)
    broker.restart(is_killed=is_killed)
    assert addresses(broker) == before and all(map(connects, before))
    assert len(broker.records("orders")) == 3
    assert broker.active_controller is not None
    broker.create_topic("more", 3)


@pytest.mark.long
def test_a_reset_is_known_to_every_broker(broker):
    broker.create_topic("more", 3)
    broker.produce("orders", "x")
    broker.reset()
    assert broker.topics() == {"orders": 3} and len(broker.records("orders")) == 3
    fault = broker.faults.answer("Metadata", "UNKNOWN_SERVER_ERROR", times=1)
    broker.stop_broker(3)
    broker.start_broker(3)
    codes = []
    for address in addresses(broker)[::-1]:
        host, port = address.split(":")
        client = WireClient(host, int(port), client_id="someone")
        codes += [row.error_code for row in client.ask("Metadata", topics=None).topics[:1]]
        client.close()
    assert codes == [-1, 0, 0] and fault.count == 1


def test_a_reset_needs_a_controller_that_decides(broker):
    for node_id in (3000, 3001, 3002):
        broker.stop_controller(node_id)
    with pytest.raises(Exception, match="no controller is active; start one"):
        broker.reset()
    assert broker.topics() == {"orders": 3}


@pytest.mark.long
@pytest.mark.parametrize("own_process", [False, True], ids=["thread", "process"])
def test_all_of_them_ask_for_tls_and_a_login(own_process):
    """Users and ACLs are known to each broker when it is started."""
    with Broker(
        brokers=3,
        controllers=3,
        topics={"t": 3},
        settings=REPLICATED,
        tls=True,
        users={"alice": "secret"},
        acls=["alice read topic t"],
        own_process=own_process,
    ) as broker:
        for address in addresses(broker):
            log_in(broker, address, "secret")
        broker.stop_controller(broker.active_controller)
        broker.wait_for_controller()
        broker.restart()
        log_in(broker, addresses(broker)[2], "secret")
        broker.produce("t", "a", "b", "c")
        assert len(broker.records("t")) == 3


@pytest.mark.long
def test_the_data_is_a_directory(tmp_path):
    """Single nodes can be killed there too, and what they had is served by the same number of controllers."""
    settings = {"broker.session.timeout.ms": 1000}
    with Broker(
        brokers=2, controllers=3, data=tmp_path, topics=["t"], records={"t": ["a"]}, settings=settings
    ) as broker:
        killed = broker.active_controller
        broker.kill_controller(killed)
        broker.wait_for_controller(other_than=killed)
        broker.start_controller(killed)
        broker.kill_broker(2)
        broker.start_broker(2)
    folders = {"broker1", "broker2", "controller3000", "controller3001", "controller3002"}
    assert {each.name for each in tmp_path.iterdir()} == folders
    with Broker(brokers=2, controllers=3, data=tmp_path) as again:
        assert len(again.records("t")) == 1
    with pytest.raises(Exception, match="its metadata is in controller3000, controller3001, controller3002"):
        Broker(brokers=2, controllers=2, data=tmp_path).start()


def test_what_cannot_be():
    with pytest.raises(ValueError, match="controllers: 3 are those of several brokers; give brokers, too"):
        Broker(controllers=3)
    with pytest.raises(ValueError, match="controllers: 0 is not from 1 to 9"):
        Broker(brokers=2, controllers=0)
    with Broker(brokers=2, controllers=2) as two:
        with pytest.raises(RuntimeError, match="controller 7: there are 3000, 3001"):
            two.stop_controller(7)
        with pytest.raises(RuntimeError, match="controller 3000 is serving, not down or killed"):
            two.start_controller(3000)
    with Broker(brokers=2) as one:
        assert one.active_controller == 3000
        with pytest.raises(RuntimeError, match="there is one controller"):
            one.stop_controller(3000)
    with Broker() as alone, pytest.raises(RuntimeError, match="there is one controller"):
        alone.kill_controller(1)
