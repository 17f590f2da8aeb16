"""Quorums whose voters move from the settings into the log (kraft.version 0 to 1, KIP-853), and change there."""

from __future__ import annotations

import pytest

from pykafkad import errors
from pykafkad.handlers.controller_context import ControllerRequest
from pykafkad.metadata.brokers import Endpoint
from pykafkad.metadata.voters import Voter
from pykafkad.raft import forms
from pykafkad.wire import messages
from tests.simulation.combined import CombinedNodes
from tests.simulation.controllers import CLUSTER_ID, PORT, Controllers, controller_of, directory_id, host_of


class Answer:
    """Takes the answer to a request."""

    def __init__(self):
        self.message = None

    def deliver(self, message):
        self.message = message


def submit(world, key, version, message, node_id=None):
    """What the active controller, or another, answers to a request."""
    controller = controller_of(world.processes[node_id or world.elect()])
    answer = Answer()
    found = controller.submit(ControllerRequest(key, version, message, "User:a", "10.0.0.9", "CONTROLLER", answer))
    if isinstance(found, messages.Struct):
        return found
    world.until(lambda: answer.message is not None)
    return answer.message


def upgrade(world, level=1, *, validate_only=False):
    """UpdateFeatures of kraft.version."""
    form = messages.UpdateFeaturesRequest
    update = form.FeatureUpdateKey(feature="kraft.version", max_version_level=level, upgrade_type=1)
    return submit(world, 57, 2, form(timeout_ms=1000, feature_updates=[update], validate_only=validate_only))


def until_voters_are_known(world):
    """Each has told the leader of its directory, and has registered."""

    def are_known():
        leader = world.elect()
        role = world.machine(leader).role
        registered = sorted(controller_of(world.processes[leader]).image.controllers)
        return all(any(voter.directory_id) for voter in role.known_voters) and registered == list(world.node_ids)

    world.until(are_known)


def levels(world):
    return {controller_of(each).image.kraft_version for each in world.processes.values()}


@pytest.mark.parametrize("kind", [Controllers, CombinedNodes])
def test_the_voters_move_into_the_log(kind):
    """Every node has them there, with their directories, and after a restart, also of all at the same time."""
    world = kind(1, (1, 2, 3))
    until_voters_are_known(world)
    assert levels(world) == {0}
    assert upgrade(world, validate_only=True).error_code == 0
    assert levels(world) == {0}
    answer = upgrade(world)
    assert (answer.error_code, answer.error_message) == (0, None)
    world.until(world.in_step)
    assert levels(world) == {1}
    keys = [(each, directory_id(each)) for each in (1, 2, 3)]
    for each in (1, 2, 3):
        assert [voter.key for voter in world.machine(each).voters] == keys
        assert [voter.key for voter in controller_of(world.processes[each]).image.voters] == keys
    assert upgrade(world).error_code == 0
    assert upgrade(world, 0).error_code == errors.INVALID_UPDATE_VERSION
    for each in (1, 2, 3):
        world.kill(each, loses_power=True)
    for each in (1, 2, 3):
        world.start(each)
    world.until(world.in_step)
    assert levels(world) == {1}
    assert [voter.key for voter in world.machine(world.elect()).voters] == keys


def test_a_voter_alone_whose_disk_syncs_at_once():
    """Its records are committed before it knows that it waits for them."""
    world = Controllers(7, (1,))
    until_voters_are_known(world)
    controller_of(world.processes[1]).syncs_beside_loop = False
    world.disks[1].refuses_syncs = False
    answer = upgrade(world)
    assert (answer.error_code, answer.error_message) == (0, None)
    assert levels(world) == {1}


def test_voters_that_have_not_told_their_directories_stay_in_the_settings():
    """One of three is away from the begin on: nobody knows its directory, or what it supports."""
    world = Controllers(2, (1, 2, 3))
    away = next(each for each in (1, 2, 3) if each != world.elect())
    world.kill(away)
    leader = world.elect()
    world.run(world.clock.now() + 5.0)
    answer = upgrade(world)
    assert answer.error_code == errors.INVALID_UPDATE_VERSION
    assert f"controller {away} has not registered" in answer.error_message
    assert world.elect() == leader and levels(world) == {0}
    world.start(away)
    until_voters_are_known(world)
    assert upgrade(world).error_code == 0


def test_a_new_leader_learns_of_the_voters_first():
    """What voters told the leader before it, it does not know; all have registered with the cluster."""
    world = Controllers(3, (1, 2, 3))
    until_voters_are_known(world)
    first = world.elect()
    world.kill(first)
    second = world.elect()
    assert second != first
    answer = upgrade(world)
    assert answer.error_code == errors.INVALID_UPDATE_VERSION
    assert "kraft.version to 1 because not all of the voters support it" in answer.error_message
    assert levels(world) == {0}


def test_another_voter_comes_and_one_goes_after_the_upgrade():
    world = Controllers(4, (1, 2, 3))
    until_voters_are_known(world)
    assert upgrade(world).error_code == 0
    world.format(4)
    world.node_ids.append(4)
    settings, world.dynamic = world.dynamic, True
    world.start(4)
    world.dynamic = settings
    world.until(world.in_step)
    assert not world.machine(4).is_voter
    voter = Voter(4, directory_id(4), [Endpoint("CONTROLLER", host_of(4), PORT)])
    request = forms.add_voter_request(CLUSTER_ID, voter, 10_000, ack_when_committed=True)
    added = submit(world, 80, 1, request)
    assert (added.error_code, added.error_message) == (0, None)
    world.until(lambda: world.machine(4).is_voter)
    gone = next(each for each in (1, 2, 3) if each != world.elect())
    removed = submit(world, 81, 0, forms.remove_voter_request(CLUSTER_ID, (gone, directory_id(gone))))
    assert removed.error_code == 0
    world.until(lambda: not world.machine(gone).is_voter)
    left = sorted({1, 2, 3, 4} - {gone})
    assert [voter.id for voter in world.machine(world.elect()).voters] == left


def test_a_level_that_a_broker_or_a_controller_does_not_have():
    """It is named."""
    world = CombinedNodes(5, (1, 2, 3))
    world.until_serving()
    until_voters_are_known(world)
    leader = world.elect()
    image = controller_of(world.processes[leader]).image
    other = next(each for each in (1, 2, 3) if each != leader)
    own = image.brokers[other].features
    image.brokers[other].features = {**own, "kraft.version": (0, 0)}
    assert f"Broker {other} does not support this feature." in upgrade(world).error_message
    image.brokers[other].features = own
    image.controllers[other].features = {**own, "kraft.version": (2, 3)}
    assert f"Controller {other} only supports versions 2-3" in upgrade(world).error_message
