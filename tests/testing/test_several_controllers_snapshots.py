"""Saved states of brokers under several controllers: what is beside that of `test_several_brokers_snapshots.py`."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from pykafkad.log import snapshot_store
from pykafkad.server import binding, data_snapshots, quorum_snapshots
from pykafkad.testing import Broker, Refused, wire_client
from pykafkad.testing.waits import until
from pykafkad.testing.wire_client import WireClient
from pykafkad.wire import messages

REPLICATED = {"default.replication.factor": 3}


@pytest.fixture
def broker():
    with Broker(brokers=3, controllers=3, topics={"orders": 6}, settings=REPLICATED) as broker:
        yield broker
        assert process_of(broker).runtime.metrics.unexpected_errors == 0


def process_of(broker):
    return broker._running._process


def in_loop(broker, job):
    """What `job()` returns in a turn of the loop."""
    return broker._running.call(job)


def controller_ports(broker):
    return [each.listeners[0].port for each in process_of(broker).controller_places.values()]


def values(broker):
    return [each.value for each in broker.records("orders")]


@pytest.mark.long
def test_the_quorum_goes_back_and_decides_again(broker):
    """All directories of all nodes, on the same ports; whoever led before, one of the controllers leads."""
    broker.produce("orders", "a")
    broker.save("first")
    before = broker.bootstrap, controller_ports(broker)
    paths = process_of(broker).snapshot_paths
    assert [path.rpartition("/")[2] for path in paths] == [
        *("controller3000", "controller3001", "controller3002"), *("broker1", "broker2", "broker3"),
    ]  # fmt: skip
    for path in paths:
        assert snapshot_store.names(process_of(broker).runtime.disk, path) == ["first"]
    for _ in range(2):
        broker.stop_controller(broker.active_controller)
        broker.wait_for_controller()
        for node_id, place in process_of(broker).controller_places.items():
            if place.state == "down":
                broker.start_controller(node_id)
    broker.create_topic("later")
    broker.rewind("first")
    assert (broker.bootstrap, controller_ports(broker)) == before
    assert broker.topics() == {"orders": 6} and values(broker) == [b"a"]
    broker.create_topic("again", 2)
    first = broker.active_controller
    broker.stop_controller(first)
    assert broker.wait_for_controller(other_than=first)
    assert broker.topics() == {"orders": 6, "again": 2}


def test_nobody_waits_for_the_end_of_a_session(broker, caplog):
    """The brokers that the metadata tells of have ended with the process."""
    broker.save("first")
    with caplog.at_level("INFO"):
        broker.rewind("first")
    assert "DUPLICATE_BROKER_REGISTRATION" not in caplog.text
    assert len([each for each in caplog.messages if "its process has ended" in each]) == 3


def test_votes_are_those_of_the_moment(broker, monkeypatch):
    """`quorum-state` changes without the log beside it: it is saved before anything else happens."""
    monkeypatch.setattr(data_snapshots, "BUDGET_SECONDS", -1.0)
    process = process_of(broker)

    def begun():
        snapshots = process.open_data_snapshots()
        assert not snapshots.create("first")
        found = [
            process.runtime.disk.read(f"{path}.snapshots/first.partial/__cluster_metadata-0/quorum-state")
            for path in process.snapshot_paths
        ]
        now = [
            process.runtime.disk.read(f"{path}/__cluster_metadata-0/quorum-state") for path in process.snapshot_paths
        ]
        snapshots._abandon()
        return found, now

    found, now = in_loop(broker, begun)
    assert found == now and len(found) == 6 and None not in found


@pytest.mark.long
def test_what_the_nodes_asked_each_other_ends(broker):
    """A request of a follower that is not served yet must not be served after the way back."""
    client = WireClient(*address(broker, 0))
    client.ask("Metadata", topics=[])
    process = process_of(broker)

    def handed_over():
        # The stop is put off, so that the nodes end as they are.
        snapshots = process.open_data_snapshots()
        snapshots.restore_to = "first"
        own = process.runtime.reactor.local_addresses()
        between = [
            connection.peer for each in process.brokers for connection in each.socket_server.connections()
            if connection.peer in own
        ]  # fmt: skip
        taken = snapshots.hand_over()
        snapshots.restore_to = None
        peers = [binding.address_text(each.socket.getpeername()) for each in taken.connections]
        taken.close()
        return between, peers

    between, peers = in_loop(broker, handed_over)
    assert len(between) >= 6 and peers and not set(between) & set(peers)
    client.close()


def address(broker, index):
    host, _, port = broker.bootstrap.split(",")[index].rpartition(":")
    return host, int(port)


@pytest.mark.long
def test_every_node_is_needed(broker):
    """Also each controller."""
    broker.save("first")
    broker.stop_controller(3001)
    for call in (broker.save, broker.rewind, broker.delete_saved):
        name = "first" if call != broker.save else "second"
        with pytest.raises(Refused, match="needs every broker and controller, and controller 3001 does not serve"):
            call(name)
    broker.start_controller(3001)
    broker.rewind("first")


@pytest.mark.long
def test_with_a_broker_of_another_process_there_is_none(broker, monkeypatch):
    """It would know records and epochs of which the others have forgotten that they have told it."""
    broker.save("first")
    active = process_of(broker).controller_places[broker.active_controller]
    request = messages.BrokerRegistrationRequest
    monkeypatch.setitem(wire_client.VERSIONS, "BrokerRegistration", 4)
    monkeypatch.setitem(wire_client.VERSIONS, "UnregisterBroker", 0)
    client = WireClient("127.0.0.1", active.listeners[0].port)
    own = process_of(broker).active_controller.image.features
    answer = client.ask(
        "BrokerRegistration",
        broker_id=7, cluster_id=process_of(broker).broker.cluster_id, incarnation_id=bytes(range(16)),
        listeners=[request.Listener(name="PLAINTEXT", host="localhost", port=1, security_protocol=0)],
        features=[request.Feature(name=name, min_supported_version=0, max_supported_version=99) for name in own],
        log_dirs=[bytes(range(1, 17))], previous_broker_epoch=-1,
    )  # fmt: skip
    assert answer.error_code == 0
    for call in (broker.save, broker.rewind, broker.delete_saved):
        name = "first" if call != broker.save else "second"
        with pytest.raises(Refused, match="all nodes of the cluster in this process, and broker 7 is elsewhere"):
            call(name)
    client.ask("UnregisterBroker", broker_id=7)
    client.close()
    # The broker that is asked hears of it a moment later.
    until(
        lambda: [each for each in process_of(broker).brokers if 7 in each.image.brokers],
        lambda who_has_it: not who_has_it,
        "broker 7 is gone everywhere",
        10,
    )
    broker.rewind("first")


def test_whoever_takes_part_is_seen():
    """Brokers and controllers that are registered, voters, and whoever reads the metadata from the leader."""
    role = SimpleNamespace(observers={(1, b"1"): None, (8, b"8"): None}, forget_observers=lambda now: None)
    leader = SimpleNamespace(is_leader=True, role=role, voters=[SimpleNamespace(id=each) for each in (3000, 3007)])
    image = SimpleNamespace(brokers={1: None, 7: None}, controllers={3000: None, 3008: None})
    assert quorum_snapshots.others({1, 3000}, image, leader, 0.0) == {
        7: "broker 7", 8: "observer 8", 3007: "controller 3007", 3008: "controller 3008",
    }  # fmt: skip
    leader.is_leader = False
    assert 8 not in quorum_snapshots.others({1, 3000}, image, leader, 0.0)
