"""StreamsGroupTopologyDescriptionUpdate: answered by a broker that acts as Kafka 4.4, as by one without a plug-in."""

from __future__ import annotations

from pathlib import Path

import pytest

from pykafkad.errors import name
from pykafkad.handlers import streams_group_topology_description_update as update
from pykafkad.wire import messages
from tests.handlers.streams_requests import Streams
from tests.metadata.cluster import Cluster
from tests.metadata.context import ask
from tests.simulation.world import World

Request = messages.StreamsGroupTopologyDescriptionUpdateRequest
PUSH = Request(group_id="g", member_id="m", topology_epoch=1)


def test_there_is_no_plug_in(tmp_path: Path) -> None:
    answer = World(tmp_path / "data", pykafkad_act_as="4.4").connect().ask(PUSH, 0)
    assert name(answer.error_code) == "UNSUPPORTED_VERSION"
    assert answer.error_message == "The broker has no streams group topology description plugin configured."


def test_a_caller_without_permission_is_refused() -> None:
    answer = ask(Cluster(), update, PUSH, 0, denied={("Read", "Group", "g")})
    assert name(answer.error_code) == "GROUP_AUTHORIZATION_FAILED"


def test_while_streams_groups_are_off_the_api_is(tmp_path: Path) -> None:
    world = World(tmp_path / "data", pykafkad_act_as="4.4", group_coordinator_rebalance_protocols="classic,consumer")
    answer = world.connect().ask(PUSH, 0)
    assert (name(answer.error_code), answer.error_message) == ("UNSUPPORTED_VERSION", None)


def test_kafka_4_3_does_not_have_it(world: World) -> None:
    peer = world.connect()
    peer.send(PUSH, 0)
    assert "is not answered here" in peer.closed


@pytest.mark.parametrize(("asked", "status"), [(False, 0), (True, 1)])
def test_a_description_shows_that_nothing_is_stored(tmp_path: Path, asked: bool, status: int) -> None:
    """And the assignor by name; a heartbeat is told how far behind a warm-up task may be."""
    streams = Streams(World(tmp_path / "data", pykafkad_act_as="4.4")).find()
    answer = streams.peer.ask(messages.StreamsGroupHeartbeatRequest(**streams.fields()), 1)
    assert (answer.task_offset_interval_ms, answer.acceptable_recovery_lag_offsets) == (60_000, 10_000)
    assert not answer.topology_description_required
    request = messages.StreamsGroupDescribeRequest(group_ids=["g", "none"], include_topology_description=asked)
    found, absent = streams.peer.ask(request, 1).groups
    assert (found.topology_description_status, found.topology_description) == (status, None)
    assert (found.assignor_name, absent.assignor_name) == ("sticky", None)
