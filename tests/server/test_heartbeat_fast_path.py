"""Repeated heartbeats of consumer groups are answered from their bytes, as long as nothing has changed."""

from __future__ import annotations

import pytest

from pykafkad.coordinator import consumer_heartbeat
from pykafkad.coordinator.reconciled_group import SESSION
from pykafkad.server import heartbeat_fast_path
from pykafkad.wire import messages
from tests.simulation.disk import MemoryDisk
from tests.simulation.world import World

Request = messages.ConsumerGroupHeartbeatRequest
KEY = 68


class Member:
    """A member of the group `g` on a connection of its own."""

    def __init__(self, world, member_id="m", version=1):
        self.world = world
        self.peer = world.connect()
        self.version = version
        self.member_id = member_id
        self.epoch = 0
        self.owned = []

    def beat(self, **fields):
        """A heartbeat that says nothing new, but for `fields`."""
        request = Request(**{"group_id": "g", "member_id": self.member_id, "member_epoch": self.epoch, **fields})
        answer = self.peer.ask(request, self.version)
        if not answer.error_code:
            self.epoch = answer.member_epoch
            if answer.assignment is not None:
                self.owned = [
                    Request.TopicPartitions(topic_id=row.topic_id, partitions=row.partitions)
                    for row in answer.assignment.topic_partitions
                ]
        return answer

    def join(self):
        assert not self.beat(rebalance_timeout_ms=60_000, subscribed_topic_names=["t"], topic_partitions=[]).error_code
        assert not self.beat(topic_partitions=self.owned).error_code
        return self


@pytest.fixture
def world():
    made = World("/d", disk=MemoryDisk(), offsets_topic_num_partitions=1)
    made.create_topic("t")
    peer = made.connect()
    peer.ask(messages.FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]), 4)
    for _ in range(5):
        made.turn()
    yield made
    assert made.runtime.metrics.unexpected_errors == 0
    made.stop()


@pytest.fixture
def built(monkeypatch):
    """Requests for which a message was built."""
    found = []
    real = consumer_heartbeat.heartbeat

    def noting(shard, step, event):
        found.append(event.request)
        return real(shard, step, event)

    monkeypatch.setattr("pykafkad.coordinator.consumer_rules.heartbeat", noting, raising=False)
    from pykafkad.coordinator import consumer_rules
    from pykafkad.coordinator.events import ConsumerGroupHeartbeat

    monkeypatch.setitem(consumer_rules.STEPS, ConsumerGroupHeartbeat, noting)
    return found


@pytest.mark.parametrize("version", [0, 1])
def test_a_repeated_heartbeat_is_answered_from_its_bytes_with_the_same_answer(world, built, version):
    member = Member(world, version=version).join()
    usual = member.beat()
    again = [member.beat() for _ in range(3)]
    assert again == [usual] * 3 and usual.member_epoch == member.epoch and usual.assignment is None
    # Two to join, and the first of its kind.
    assert len(built) == 3


def test_it_extends_the_session(world, built):
    member = Member(world).join()
    for _ in range(10):
        world.advance(20)
        assert not member.beat().error_code
    group = world.broker.groups.shards()[0].groups["g"]
    assert group.deadlines[SESSION, "m"] == world.runtime.now + 45 and len(built) < 10
    world.advance(50)
    assert member.beat().error_code != 0, "its session has ended"


def test_what_has_changed_is_served_as_all_others(world, built):
    member = Member(world).join()
    for _ in range(3):
        member.beat()
    before = len(built)
    other = Member(world, "n").join()
    # The group has another epoch, in which this member gives something up or not.
    answer = member.beat()
    assert len(built) > before + 2 and answer.member_epoch == other.epoch


def test_another_connection_is_another_address(world, built):
    member = Member(world).join()
    for _ in range(3):
        member.beat()
    before = len(built)
    member.peer = world.connect()
    assert not member.beat().error_code and len(built) == before + 1


def test_a_member_that_another_client_has_changed_is_looked_up_again(world, built):
    """The coordinator notes under which client id its member comes, with no new epoch."""
    member = Member(world).join()
    for _ in range(3):
        member.beat()
    before = len(built)
    request = Request(group_id="g", member_id="m", member_epoch=member.epoch)
    assert not world.connect().ask(request, 1, "another").error_code
    assert not member.beat().error_code and len(built) == before + 2
    group = world.broker.groups.shards()[0].groups["g"]
    assert group.members["m"].client_id == "test"


def test_new_settings_count_at_once(world):
    member = Member(world).join()
    for _ in range(3):
        assert member.beat().heartbeat_interval_ms == 5000
    change = messages.IncrementalAlterConfigsRequest
    config = change.AlterableConfig(name="consumer.heartbeat.interval.ms", config_operation=0, value="6000")
    resource = change.AlterConfigsResource(resource_type=32, resource_name="g", configs=[config])
    assert not world.connect().ask(change(resources=[resource]), 1).responses[0].error_code
    assert member.beat().heartbeat_interval_ms == 6000


def test_a_deleted_topic_is_taken_away_from_its_member(world):
    member = Member(world).join()
    for _ in range(3):
        member.beat()
    epoch = member.epoch
    world.connect().ask(messages.DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000), 4)
    # A new target waits for the assignment interval.
    world.advance(2)
    answer = member.beat()
    assert answer.assignment.topic_partitions == []
    assert member.beat(topic_partitions=[]).member_epoch > epoch


def test_a_coordinator_that_resigned_answers_nothing(world, built):
    member = Member(world).join()
    for _ in range(3):
        member.beat()
    world.broker.groups.resign()
    assert member.beat().error_code == 16


def test_an_answer_waits_for_what_is_not_committed(world, built):
    """The general path holds it."""
    member = Member(world).join()
    for _ in range(3):
        member.beat()
    before = len(built)
    log = world.broker.partitions.get("__consumer_offsets", 0)
    world.broker.commits._waits[log] = [(10**6, lambda failure: None)]
    member.peer.send(Request(group_id="g", member_id="m", member_epoch=member.epoch), 1)
    world.turn()
    assert len(built) == before + 1
    del world.broker.commits._waits[log]


def test_what_is_remembered_is_bounded(world, monkeypatch):
    monkeypatch.setattr(heartbeat_fast_path, "_MAX_REMEMBERED", 3)
    path = world.broker._fast_paths[KEY]
    for number in range(8):
        member = Member(world, f"m{number}").join()
        for _ in range(3):
            member.beat()
        for each in (*path._known, *path._seen):
            assert len(each) <= 3
    long = Member(world, "x" * 500)
    long.beat()
    long.beat()
    assert not any(b"x" * 500 in request for each in path._seen for request in each)


def test_broken_requests_are_left_to_the_general_path(world):
    member = Member(world).join()
    path = world.broker._fast_paths[KEY]
    connection = next(iter(world.broker.socket_server.connections()))
    start = b"\0\x44\0\1\0\0\0\1"
    for frame in (b"", start, start + b"\xff\xff\0\x05g", start + b"\xff" * 40):
        for correlation_id in range(3):
            assert not path.serve(connection, memoryview(frame), 0, len(frame), 1, correlation_id)
    assert not member.beat().error_code
