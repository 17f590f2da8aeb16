"""Quorums of the product's own processes."""

import pytest

from pykafkad import errors
from tests.simulation.controllers import Controllers


def test_three_controllers_elect_commit_and_agree():
    world = Controllers(1, (1, 2, 3))
    leader = world.elect()
    token = world.change(leader, 7)
    world.until(lambda: token.outcome is not None)
    assert token.outcome == 0
    world.until(world.in_step)
    logs = [world.log_of(each) for each in world.node_ids]
    assert len(logs[0]) >= 3 and logs[0] == logs[1] == logs[2]
    assert {world.value_of(each.controller.image) for each in world.processes.values()} == {"7"}


def test_only_the_leader_decides():
    world = Controllers(2, (1, 2, 3))
    leader = world.elect()
    others = [each for each in world.node_ids if each != leader]
    assert world.change(others[0], 7).outcome == errors.NOT_CONTROLLER


@pytest.mark.parametrize("loses_power", [False, True])
def test_a_leader_that_is_killed_is_replaced_and_comes_back(loses_power):
    world = Controllers(3, (1, 2, 3))
    leader = world.elect()
    token = world.change(leader, 7)
    world.until(lambda: token.outcome is not None)
    world.kill(leader, loses_power=loses_power)
    second = world.elect()
    assert second != leader
    assert world.value_of(world.processes[second].controller.image) == "7"
    token = world.change(second, 8)
    world.until(lambda: token.outcome is not None)
    assert token.outcome == 0
    world.start(leader)
    world.until(world.in_step)
    assert {world.value_of(each.controller.image) for each in world.processes.values()} == {"8"}


def test_every_controller_registers_with_the_leader():
    world = Controllers(4, (1, 2, 3))
    world.until(
        lambda: all(sorted(each.controller.image.controllers) == [1, 2, 3] for each in world.processes.values())
    )
    image = world.processes[world.elect()].controller.image
    places = {each.id: each.endpoints["CONTROLLER"] for each in image.controllers.values()}
    assert {(key, each.host, each.port) for key, each in places.items()} == {
        (each, f"10.0.0.{each}", 9093) for each in (1, 2, 3)
    }
