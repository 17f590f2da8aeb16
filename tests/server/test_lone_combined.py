"""A node that is a broker and a controller, whose settings name nobody else: a cluster that others can join."""

from __future__ import annotations

import pytest

from pykafkad import errors
from pykafkad.errors import ConfigError, KafkaError
from pykafkad.metadata import events, quorum, snapshots
from pykafkad.metadata.brokers import Endpoint
from pykafkad.metadata.voters import Voter
from pykafkad.raft import forms
from pykafkad.server.start_token import StartToken
from pykafkad.wire import messages
from tests.server.test_kraft_version import submit
from tests.simulation.combined import CombinedNodes
from tests.simulation.controllers import CLUSTER_ID, DIRECTORY, PORT, controller_of, directory_id, host_of
from tests.simulation.disk import MemoryDisk

AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


def alone(seed=1, **settings):
    """The first node, which serves."""
    world = CombinedNodes(seed, (1,), dynamic=True, min_insync_replicas=1, **settings)
    world.until_serving()
    return world


def test_a_node_that_was_killed_is_back_at_once():
    """Its own controller knows that its earlier life has ended; others wait until the session is over."""
    world = alone()
    world.create_topic("t")
    for loses_power in (False, True):
        world.kill(1, loses_power=loses_power)
        world.start(1)
        began = world.clock.now()
        world.until_serving()
        assert world.clock.now() - began < 1.0
    assert world.image().topics["t"].partitions[0].leader == 1


def test_others_join_and_the_first_can_go():
    """Two more are observers first, and then voters; they serve on without the first one."""
    world = alone(2)
    for each in (2, 3):
        world.format(each)
        world.node_ids = [*world.node_ids, each] if each not in world.node_ids else world.node_ids
        world.start(each)
        world.until_serving()
        voter = Voter(each, directory_id(each), [Endpoint("CONTROLLER", host_of(each), PORT)])
        added = submit(world, 80, 1, forms.add_voter_request(CLUSTER_ID, voter, 10_000, ack_when_committed=True))
        assert (added.error_code, added.error_message) == (0, None)
    world.create_topic("t")
    with pytest.raises(KafkaError) as refused:
        world.processes[2]._data_snapshots()
    assert "as other nodes have the same metadata;" in str(refused.value)
    world.kill(1)
    assert world.elect() in (2, 3)
    world.until(lambda: world.image().topics["t"].partitions[0].leader in (2, 3))
    told = []
    world.produce("t", b"v", told.append)
    world.until(lambda: bool(told))


def test_an_id_in_use_is_refused():
    """A broker of another process with the id of a living one, from a copy of its directory."""
    world = alone(3)
    own = world.image().brokers[1]
    form = messages.BrokerRegistrationRequest
    request = form(
        broker_id=1,
        cluster_id=CLUSTER_ID,
        incarnation_id=b"x" * 16,
        listeners=[form.Listener(name="PLAINTEXT", host="h", port=1, security_protocol=0)],
        features=[
            form.Feature(name=name, min_supported_version=low, max_supported_version=high)
            for name, (low, high) in own.features.items()
        ],
        log_dirs=[b"d" * 16],
    )
    assert submit(world, 62, 4, request).error_code == errors.DUPLICATE_BROKER_REGISTRATION
    assert world.image().brokers[1].incarnation_id == own.incarnation_id


def test_what_a_start_asks_for_is_answered_by_whoever_is_active():
    world = alone(4, authorizer_class_name=AUTHORIZER)
    process = world.processes[1]
    topic = messages.CreateTopicsRequest.CreatableTopic(name="t", num_partitions=2, replication_factor=-1)
    token = StartToken()
    process.controller.submit(events.CreateTopics(token, [topic]))
    world.until(lambda: token.message is not None)
    assert token.message.topics[0].error_code == 0
    acl = messages.CreateAclsRequest.AclCreation(
        resource_type=2, resource_name="t", resource_pattern_type=3, principal="User:a", host="*", operation=3,
        permission_type=3,
    )  # fmt: skip
    token = StartToken()
    process.controller.submit(events.CreateAcls(token, [acl]))
    world.until(lambda: token.message is not None)
    assert token.message.results[0].error_code == 0
    token = StartToken()
    process.controller.submit(events.DeleteTopics(token, {world.image().topics["t"].id: "t"}))
    world.until(lambda: token.message is not None)
    assert token.message.responses[0].error_code == 0 and not world.image().topics


def test_its_broker_needs_no_permission_at_its_own_controller():
    """Everybody else does who comes by the listener."""
    world = alone(5, authorizer_class_name=AUTHORIZER, super_users="User:admin")
    refused = submit(world, 62, 4, messages.BrokerRegistrationRequest(broker_id=2, cluster_id=CLUSTER_ID))
    assert refused.error_code == errors.CLUSTER_AUTHORIZATION_FAILED


OWN = {
    "listeners": f"PLAINTEXT://{host_of(1)}:9092,CONTROLLER://{host_of(1)}:{PORT}",
    "controller_quorum_bootstrap_servers": f"{host_of(1)}:{PORT}",
}
"""Kafka's usual file names the node itself as the only bootstrap server."""


@pytest.mark.parametrize("name", [snapshots.BOOTSTRAP_FILE, quorum.STATE_FILE])
def test_a_node_that_was_formatted_to_join_begins_no_second_cluster(name):
    """Its disk was replaced, and formatted without voters: the others have the cluster with this id."""
    world = alone(6, **OWN)
    world.kill(1)
    world.wipe(1)
    disk = world.disks[1]
    disk.make_directories(f"{DIRECTORY}/__cluster_metadata-0")
    disk.write(f"{DIRECTORY}/{name}", b"", sync=True)
    with pytest.raises(ConfigError, match="/data was formatted without voters, to join a cluster, and no other"):
        world.start(1)


@pytest.mark.parametrize("has_begun", [False, True])
def test_a_new_directory_begins_a_cluster(has_begun):
    """Also where an earlier start came to its end before it listened, such as by a port that was taken."""
    world = alone(7, **OWN)
    world.kill(1)
    if has_begun:
        world.wipe(1)
    else:
        world.disks[1] = MemoryDisk()
    world.start(1)
    world.until_serving()
    assert [voter.id for voter in world.machine(1).voters] == [1]
    world.kill(1, loses_power=True)
    world.start(1)
    world.until_serving()


def test_the_loop_waits_for_no_sync_while_the_broker_leaves():
    """It gives turns to the quorum until the controlled shutdown has ended."""
    world = alone(8)
    process = world.processes[1]
    controller, found = process.source, []
    process.lifecycle.resign = lambda: found.append((controller.syncs_beside_loop, controller._is_stopping))
    world.stop(1)
    assert found == [(True, False)]
    assert (controller.syncs_beside_loop, controller._is_stopping) == (False, True)


def test_nobody_looks_for_a_broker_that_ends_with_its_controller():
    world = alone()
    world.run(world.clock.now() + 5.0)
    controller = controller_of(world.processes[1])
    assert controller.image.brokers[1].active and not len(controller._presence)


def test_a_cluster_with_an_id_that_was_given_is_told_of_when_it_begins(capfd):
    """After the loss of a disk it would be a second one with that id. A new id is no other cluster's."""
    for given in ({}, {"pykafkad_cluster_id": CLUSTER_ID}):
        world = alone(8, **OWN, **given)
        for _ in range(2):
            world.kill(1)
            world.start(1)
            world.until_serving()
        world.kill(1)
        world.disks[1] = MemoryDisk()
        capfd.readouterr()
        for _ in range(2):
            world.start(1)
            world.until_serving()
            world.kill(1)
        found = [each for each in capfd.readouterr().err.splitlines() if "quorum-begun" in each]
        assert len(found) == len(given)
    assert " WARNING " in found[0] and f"directory={DIRECTORY}" in found[0] and f"cluster={CLUSTER_ID}" in found[0]
