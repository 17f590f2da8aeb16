"""What a loss of power may cost, and what not: the last known leader of KIP-966 comes back with less."""

import pytest

from pykafkad.metadata.partition_changes import RECOVERED, RECOVERING
from tests.simulation.machine_faults import disk_fails, wipe
from tests.simulation.replication_checkers import Violation
from tests.simulation.replication_faults import FAULTS, FaultyWorld

PLACE = ("b", 1)


@pytest.fixture
def world():
    """Producers write to all partitions, and nothing fails but what a test does. ("b", 1) is on brokers 2 and 3."""
    made = FaultyWorld(1, FAULTS)
    made.look()
    made.run(1.5)
    return made


def ends(world):
    """What broker 2 knows as committed, and the end of its log."""
    log = world.log(2, *PLACE)
    return log.high_watermark, log.written_end_offset


def unsynced_power_loss(world, node):
    """The machine keeps what was synced, which of these logs is nothing."""

    class Nothing:
        def randrange(self, start, stop):
            return start

    world.chance, chance = Nothing(), world.chance
    node.kill(power=True)
    world.chance = chance


@pytest.mark.long
def test_no_other_machine_is_down_when_a_disk_is_replaced(world):
    """Nor is one killed until the controller knows of it."""
    first, *_ = world.nodes.values()
    first.kill()
    assert not wipe(world)
    first.start()
    world.run(8.0, holds=world.is_settled)
    assert wipe(world)
    others = [each for each in world.nodes.values() if each is not world.wiped]
    assert not any(world.may_stop_uncleanly(each) for each in others)
    world.run(8.0, holds=lambda: world.wiped.is_running)
    world.run(8.0, holds=world.is_settled)
    assert any(world.may_stop_uncleanly(each) for each in others)


@pytest.mark.long
def test_a_replaced_disk_is_like_the_others_once_it_has_everything(world):
    """Until then the last machine that has what it lacks is not killed, nor does its disk fail."""
    assert wipe(world)
    others = [each for each in world.nodes.values() if each is not world.wiped]

    def may_be_killed():
        return [world.losses.can_lose(each.node_id, beside=world.wiped.node_id) for each in others]

    assert not all(may_be_killed())
    for _ in range(10):
        disk_fails(world)
    assert not world.failing
    world.run(8.0, holds=lambda: world.wiped.is_running)
    world.run(8.0, holds=world.is_settled)
    world.wiped.kill()
    assert all(may_be_killed())


def test_a_machine_that_fails_is_no_other_that_has_everything(world):
    """A log that is out of service there leads nothing until the machine is killed."""
    assert world.losses.can_lose(2)
    world.failing.add(world.nodes[3])
    assert not world.losses.can_lose(2)


@pytest.mark.long
def test_the_last_known_leader_comes_back_with_less_than_was_committed(world):
    """Both replicas stopped uncleanly, the leader without power: nobody is known to have everything."""
    world.nodes[3].kill()
    world.run(8.0, holds=lambda: world.state(*PLACE).isr == (2,))
    committed, _ = ends(world)
    assert committed > 10
    unsynced_power_loss(world, world.nodes[2])
    world.run(8.0, holds=lambda: world.state(*PLACE).leader < 0)
    assert world.state(*PLACE).elr == (2, 3) and world.state(*PLACE).last_known_elr == (2,)
    world.nodes[3].start()
    world.run(3.0)
    assert world.state(*PLACE).leader < 0, "it may have lost records, too, and is not the last known leader"
    world.nodes[2].start()
    assert world.state(*PLACE).leader == 2 and world.state(*PLACE).leader_recovery_state == RECOVERING
    world.run(8.0, holds=lambda: len(world.state(*PLACE).isr) == 2)
    assert world.state(*PLACE).leader_recovery_state == RECOVERED
    world.run(1.0)
    world.finish()
    assert list(world.checkers.lost) == [PLACE] and world.checkers.lost[PLACE][0] == 0
    assert world.losses.unclean_elections == world.losses.losses == 1


@pytest.mark.long
def test_a_killed_leader_comes_back_with_everything(world):
    """Both replicas stopped uncleanly, none without power: the last known leader lost nothing."""
    world.nodes[3].kill()
    world.run(8.0, holds=lambda: world.state(*PLACE).isr == (2,))
    world.nodes[2].kill()
    world.run(8.0, holds=lambda: world.state(*PLACE).leader < 0)
    world.nodes[3].start()
    world.nodes[2].start()
    assert world.state(*PLACE).leader_recovery_state == RECOVERING
    world.finish()
    assert not world.checkers.lost and not world.losses.losses


def test_a_leader_without_power_loses_nothing_while_another_replica_has_it(world):
    """Its follower takes over."""
    unsynced_power_loss(world, world.nodes[2])
    world.run(8.0, holds=lambda: world.state(*PLACE).leader == 3)
    world.nodes[2].start()
    world.finish()
    assert not world.checkers.lost and not world.losses.unclean_elections


@pytest.mark.long
def test_a_stopped_replica_with_everything_is_waited_for(world):
    """A clean stop loses nothing: who stopped so leads when it is back, and the last known leader does not."""
    world.nodes[3].stop()
    world.run(8.0, holds=lambda: world.state(*PLACE).isr == (2,))
    unsynced_power_loss(world, world.nodes[2])
    world.run(8.0, holds=lambda: world.state(*PLACE).leader < 0)
    world.nodes[2].start()
    world.run(3.0)
    assert world.state(*PLACE).leader < 0 and world.state(*PLACE).elr == (3,)
    world.nodes[3].start()
    world.run(1.0)
    assert world.state(*PLACE).leader == 3
    world.finish()
    assert not world.checkers.lost and not world.losses.unclean_elections


def test_a_loss_that_is_not_allowed_is_noticed(world):
    """A leader that forgets what it had, and goes on as if it had lost nothing."""
    world.losses.stopped_uncleanly = lambda node_id, power: None
    world.nodes[3].kill()
    world.run(8.0, holds=lambda: world.state(*PLACE).isr == (2,))
    unsynced_power_loss(world, world.nodes[2])
    world.nodes[3].start()
    world.nodes[2].start()
    noticed = []
    world.fail = noticed.append
    with pytest.raises(Violation, match="2 leads in epoch 2 and ends at 0, where .* is committed"):
        world.finish()
    assert "at 3: a cut to 0 takes" in noticed[0] and "which is committed" in noticed[0]


def test_a_leader_that_has_not_heard_of_its_successor_may_come_late(world):
    """As one whose log was out of service until now: what its successor committed is not lost."""
    old, network = world.nodes[2], world.cluster.network
    epoch = world.state(*PLACE).leader_epoch
    old.link.is_cut = True
    for other in (world.nodes[1], world.nodes[3]):
        network.cut(old.name, other.name)
        network.cut(other.name, old.name)
    world.run(8.0, holds=lambda: (*PLACE, epoch + 1) in world.checkers.leaders)
    assert world.state(*PLACE).leader == 3 and world.log(2, *PLACE).replica.leader_epoch == epoch
    world.checkers.ends[PLACE] = ends(world)[1] + 1
    world.checkers._leaderships.remove((PLACE, epoch))
    world.checkers.look()
