"""Several brokers: followers copy, leaders commit, and what was acknowledged outlives its leader."""

import pytest

from pykafkad import errors
from pykafkad.wire import messages
from tests.log.settings import content
from tests.simulation.replication_clients import Clients
from tests.simulation.replication_world import World


@pytest.fixture
def world():
    made = World(1)
    yield made
    assert made.unexpected_errors() == 0, made.lines


@pytest.fixture
def clients(world):
    return Clients(world)


def settle(world, topic="t", index=0, seconds=20.0):
    """Until every replica is in sync and has what the leader has."""

    def is_settled():
        state = world.state(topic, index)
        if set(state.isr) != set(state.replicas) or state.leader < 0:
            return False
        logs = [world.log(node_id, topic, index) for node_id in state.replicas]
        return len({log.end_offset for log in logs}) == 1 == len({log.high_watermark for log in logs})

    world.run(seconds, holds=is_settled)
    assert is_settled(), (world.state(topic, index).isr, world.lines[-5:])


def contents(world, topic="t", index=0):
    return [content(world.log(node_id, topic, index)) for node_id in world.state(topic, index).replicas]


def test_followers_have_what_the_leader_has(world, clients):
    world.create_topic("t", [[1, 2, 3]], min_insync_replicas=2)
    for number in range(5):
        assert clients.produce("t", b"%d" % number) == (0, number)
    settle(world)
    assert clients.fetch("t") == (0, 5, [b"0", b"1", b"2", b"3", b"4"])
    first, second, third = contents(world)
    assert first == second == third and len(first) == 5


def test_what_was_acknowledged_outlives_its_leader(world, clients):
    world.create_topic("t", [[1, 2, 3]], min_insync_replicas=2)
    for number in range(5):
        clients.produce("t", b"%d" % number)
    world.nodes[1].kill()
    world.run(10.0, holds=lambda: world.state("t").leader > 1)
    world.run(0.5)
    assert clients.fetch("t")[2][:5] == [b"0", b"1", b"2", b"3", b"4"]
    assert clients.produce("t", b"5") == (0, 5)
    world.nodes[1].start()
    settle(world)
    first, second, third = contents(world)
    assert first == second == third and len(first) == 6


def test_a_deposed_leader_cuts_what_nobody_else_has(world, clients):
    """It is cut off with records that it never committed, and finds another leader when it is back."""
    world.create_topic("t", [[1, 2, 3]], min_insync_replicas=2)
    clients.produce("t", b"0")
    settle(world)
    network = world.cluster.network
    for other in (2, 3):
        for ends in ((1, other), (other, 1)):
            network.cut(*(f"10.0.0.{each}" for each in ends))
    world.nodes[1].link.is_cut = True
    lost = []
    clients.send(1, clients.produce_request("t", 0, b"lost"), lost.append)
    world.run(10.0, holds=lambda: world.state("t").leader > 1)
    world.run(0.5)
    assert world.log(1, "t").end_offset == 2 and world.log(1, "t").high_watermark == 1
    assert clients.produce("t", b"1") == (0, 1)
    for other in (2, 3):
        for ends in ((1, other), (other, 1)):
            network.mend(*(f"10.0.0.{each}" for each in ends))
    world.nodes[1].link.is_cut = False
    settle(world)
    world.run(5.0)
    assert clients.fetch("t", to=world.state("t").leader)[2] == [b"0", b"1"]
    first, second, third = contents(world)
    assert first == second == third
    assert any("log-cut" in line for line in world.lines)
    assert not lost or getattr(lost[0], "reason", None) or lost[0].responses[0].partition_responses[0].error_code


def test_a_follower_that_lags_leaves_the_isr_and_comes_back(world, clients):
    world.create_topic("t", [[1, 2, 3]], min_insync_replicas=2)
    clients.produce("t", b"0")
    settle(world)
    network = world.cluster.network
    network.cut("10.0.0.3", "10.0.0.1")
    assert clients.produce("t", b"1", seconds=10.0) == (0, 1), "when the third has left"
    assert set(world.state("t").isr) == {1, 2}
    network.mend("10.0.0.3", "10.0.0.1")
    settle(world)
    assert set(world.state("t").isr) == {1, 2, 3}


def test_deleted_records_are_gone_everywhere_when_the_client_is_told(world, clients):
    """Without a follower that is dead."""
    world.create_topic("t", [[1, 2, 3]], min_insync_replicas=2)
    for number in range(5):
        clients.produce("t", b"%d" % number)
    settle(world)
    assert delete_records(clients, 3) == (0, 3)
    assert [world.log(node_id, "t").log_start_offset for node_id in (1, 2, 3)] == [3, 3, 3]
    world.nodes[3].kill()
    assert delete_records(clients, 4) == (0, 4), "when it is fenced"
    assert [world.log(node_id, "t").log_start_offset for node_id in (1, 2)] == [4, 4]
    world.nodes[3].start()
    settle(world)
    assert delete_records(clients, 4) == (0, 4)
    assert world.log(3, "t").log_start_offset == 4


def delete_records(clients, offset):
    """The answer's error code and low watermark."""
    request = messages.DeleteRecordsRequest
    rows = [request.DeleteRecordsPartition(partition_index=0, offset=offset)]
    asked = request(topics=[request.DeleteRecordsTopic(name="t", partitions=rows)], timeout_ms=3900)
    (row,) = clients.ask(clients.world.state("t").leader, asked).topics[0].partitions
    return row.error_code, row.low_watermark


def test_below_the_least_isr_nothing_is_committed_nor_shown(world, clients):
    world.create_topic("t", [[1, 2, 3]], min_insync_replicas=2)
    clients.produce("t", b"0")
    settle(world)
    world.nodes[2].kill()
    world.nodes[3].kill()
    world.run(15.0, holds=lambda: world.state("t").isr == (1,))
    world.run(0.5)
    assert clients.produce("t", b"1") == (errors.NOT_ENOUGH_REPLICAS, -1)
    assert clients.produce("t", b"1", acks=1) == (0, 1)
    assert clients.fetch("t") == (0, 1, [b"0"])
    world.nodes[2].start()
    world.run(15.0, holds=lambda: set(world.state("t").isr) == {1, 2})
    world.run(1.0)
    assert clients.fetch("t") == (0, 2, [b"0", b"1"])


def test_a_follower_gives_up_a_connection_that_is_half_open(world, clients):
    """Nobody tells it that nothing arrives any more: its request ends after `replica.socket.timeout.ms`."""
    world.create_topic("t", [[1, 2, 3]], min_insync_replicas=2)
    clients.produce("t", b"0")
    settle(world)
    for other in (2, 3):
        world.cluster.network.half_open("10.0.0.1", f"10.0.0.{other}")
    assert clients.produce("t", b"1", acks=1) == (0, 1)
    world.run(0.5)
    assert world.log(1, "t").high_watermark == 1, "nothing arrives"
    settle(world, seconds=8.0)
    assert clients.fetch("t") == (0, 2, [b"0", b"1"])


def test_a_machine_that_vanishes_is_found_again_when_it_is_back(world, clients):
    """Its followers get no answer, and no refusal, until it is there again and knows nothing of their connections."""
    world.create_topic("t", [[1, 2, 3]], min_insync_replicas=2)
    clients.produce("t", b"0")
    settle(world)
    world.nodes[1].kill(vanishes=True)
    world.run(10.0, holds=lambda: world.state("t").leader > 1)
    world.run(0.5)
    assert clients.produce("t", b"1") == (0, 1)
    world.nodes[1].start()
    settle(world)
    first, second, third = contents(world)
    assert first == second == third and len(first) == 2


@pytest.mark.parametrize("days", [1, -1])
def test_clocks_that_jump_change_nothing_between_brokers(world, clients, days):
    """Leaders, ISRs and requests that wait depend on time that only goes on: a day forward or back is nothing to it."""
    world.create_topic("t", [[1, 2, 3]], min_insync_replicas=2)
    clients.produce("t", b"0")
    settle(world)
    before = world.state("t").partition_epoch
    for clock in (world.controller_clock, *(each.clock for each in world.nodes.values())):
        clock.off_ms = days * 86_400_000
        world.run(3.0)
    if days > 0:
        assert clients.produce("t", b"1") == (0, 1)
    else:
        # As by Kafka's message.timestamp.after.max.ms: to the broker the client's records are of tomorrow.
        assert clients.produce("t", b"1") == (errors.INVALID_TIMESTAMP, -1)
    world.run(5.0)
    assert world.state("t").partition_epoch == before
    for each in world.nodes.values():
        each.clock.off_ms = 0
    assert clients.produce("t", b"2")[0] == 0
    settle(world)
    assert world.state("t").partition_epoch == before


@pytest.mark.parametrize("rate", [0.5, 2.0])
def test_a_clock_that_drifts_changes_nothing_between_brokers(world, clients, rate):
    """A leader with such a clock keeps its followers, and a follower with one keeps up."""
    world.create_topic("t", [[1, 2, 3]], min_insync_replicas=2)
    for number, node in enumerate((world.nodes[1], world.nodes[2])):
        clients.produce("t", b"%d" % number)
        settle(world)
        before, began, own = world.state("t").partition_epoch, world.now, node.clock.now()
        node.clock.set_rate(rate)
        world.run(10.0)
        assert node.clock.now() - own == pytest.approx((world.now - began) * rate)
        assert world.state("t").partition_epoch == before
    assert clients.produce("t", b"2") == (0, 2)


def test_a_run_whose_machine_takes_longer_to_stop_does_not_turn_time_back(world, clients, monkeypatch):
    """Its stop lasts three seconds and begins at the end of the run. Nobody takes it for alive meanwhile."""
    world.create_topic("t", [[1, 2, 3]], min_insync_replicas=2)
    node, seen = world.nodes[1], []
    close = node.runtime.close

    def slowly():
        seen.append(node.is_there)
        world.cluster.clock.advance(3.0)
        close()

    monkeypatch.setattr(node.runtime, "close", slowly)
    began = world.now
    world.cluster.network.at(began + 0.9, node.stop)
    world.run(1.0)
    assert world.now >= began + 3.9 and seen == [False]


def test_a_replaced_disk_waits_for_a_leader_to_copy_from(world, clients):
    """Nobody led while the broker with the new disk started: the replica begins anew when somebody leads again."""
    world.create_topic("t", [[1, 2]], min_insync_replicas=2)
    for number in range(5):
        clients.produce("t", b"%d" % number)
    settle(world)
    world.nodes[2].stop()
    world.run(0.1)
    world.nodes[1].kill(wiped=True)
    world.run(8.0, holds=lambda: world.state("t").leader < 0)
    world.nodes[1].start()
    world.run(2.0)
    assert world.state("t").leader < 0 and world.log(1, "t").offline is not None
    world.nodes[2].start()
    settle(world)
    assert world.state("t").leader == 2
    first, second = contents(world)
    assert first == second and len(first) == 5
