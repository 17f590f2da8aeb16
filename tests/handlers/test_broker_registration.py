"""BrokerRegistration and BrokerHeartbeat on the listener of a controller that is alone."""

from __future__ import annotations

import pytest

from pykafkad import errors
from pykafkad.metadata import features
from pykafkad.server.logs import Logs
from pykafkad.wire import messages
from tests.handlers.broker_requests import (
    controller_world,
    create_topic,
    heartbeat,
    incarnation,
    join,
    partitions,
    registration,
)


@pytest.fixture
def world():
    made = controller_world()
    yield made
    assert made.runtime.metrics.unexpected_errors == 0
    made.stop()


@pytest.fixture
def peer(world):
    return world.connect()


class Lines:
    """The lines of a log, as (event, fields)."""

    def __init__(self):
        self.all = []

    def line(self, level, name, event, fields):
        self.all.append((event, dict(fields)))


@pytest.mark.parametrize("version", range(2, 5))
def test_a_broker_registers_and_is_unfenced_when_it_has_read_of_that(world, peer, version):
    answer = peer.ask(registration(world, rack="r", previous_broker_epoch=-1), version)
    broker = world.controller.image.brokers[2]
    assert (answer.error_code, answer.broker_epoch) == (0, broker.epoch)
    assert broker.epoch == world.controller.image.offset, "the offset of the record"
    assert (broker.fenced, broker.rack, broker.incarnation_id) == (True, "r", incarnation(2))
    assert repr(broker.endpoints["PLAINTEXT"]) == "Endpoint(PLAINTEXT://broker2:9092)"
    assert broker.features == features.SUPPORTED and broker.log_dirs == [bytes([102]) * 16]
    behind = peer.ask(heartbeat(world, current_metadata_offset=broker.epoch - 1), 2)
    assert (behind.error_code, behind.is_caught_up, behind.is_fenced) == (0, False, True)
    waiting = peer.ask(heartbeat(world, want_fence=True), 2)
    assert (waiting.error_code, waiting.is_caught_up, waiting.is_fenced) == (0, True, True)
    served = peer.ask(heartbeat(world), 2)
    assert (served.error_code, served.is_fenced, served.should_shut_down) == (0, False, False)
    assert world.controller.image.brokers[2].active


@pytest.mark.parametrize("version", [0, 1])
def test_versions_without_directories_are_for_older_levels(world, peer, version):
    assert peer.ask(registration(world), version).error_code == errors.INVALID_REGISTRATION
    world.controller.image.features[features.METADATA_VERSION] = 16
    assert peer.ask(registration(world), version).error_code == 0
    assert world.controller.image.brokers[2].log_dirs == []


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"cluster_id": "other"}, errors.INCONSISTENT_CLUSTER_ID),
        ({"is_migrating_zk_broker": True}, errors.BROKER_ID_NOT_REGISTERED),
        ({"log_dirs": []}, errors.INVALID_REGISTRATION),
        ({"log_dirs": [b"\0" * 15 + b"\x63"]}, errors.INVALID_REGISTRATION),
        ({"log_dirs": [b"d" * 16, b"d" * 16]}, errors.INVALID_REGISTRATION),
        ({"log_dirs": [bytes([103]) * 16]}, errors.INVALID_REGISTRATION),
        ({"features": []}, errors.INVALID_REGISTRATION),
    ],
)
def test_what_is_no_registration_is_refused(world, peer, changes, code):
    join(world, peer, 3)
    assert peer.ask(registration(world, **changes), 4).error_code == code
    assert 2 not in world.controller.image.brokers


@pytest.mark.parametrize(
    ("name", "levels", "reason"),
    [
        ("metadata.version", (7, 29), "does not support finalized version 30 of metadata.version"),
        ("group.version", (0, 0), "does not support finalized version 1 of group.version"),
        ("share.version", None, "does not support finalized version 1 of share.version"),
        ("kraft.version", (0, 0), "does not support finalized version 1 of kraft.version"),
        ("of.tomorrow", (1, 2), "does not support finalized version 0 of of.tomorrow"),
        ("of.tomorrow", (0, 2), None),
    ],
)
def test_a_broker_must_support_the_levels_of_the_clusters_features(world, peer, name, levels, reason):
    """The answer has a code alone, so a line of the log says which."""
    world.controller.logs = Logs("info", lines := Lines())
    request = registration(world)
    request.features = [row for row in request.features if row.name != name]
    if levels is not None:
        row = messages.BrokerRegistrationRequest.Feature
        request.features.append(row(name=name, min_supported_version=levels[0], max_supported_version=levels[1]))
    answer = peer.ask(request, 4)
    assert answer.error_code == (errors.UNSUPPORTED_VERSION if reason else 0)
    told = [fields for event, fields in lines.all if event == "broker-registration-refused"]
    assert len(told) == bool(reason)
    assert all(reason in each["reason"] and each["error"] == "UNSUPPORTED_VERSION" for each in told)
    assert all(each["address"] for each in told), "who it was"


def test_another_incarnation_waits_until_the_session_of_the_first_has_ended(world, peer):
    join(world, peer, 2)
    first = world.controller.image.brokers[2].epoch
    again = peer.ask(registration(world), 4)
    assert (again.error_code, again.broker_epoch) == (0, first), "the same incarnation keeps its epoch"
    assert world.controller.image.brokers[2].active
    world.advance(8.9)
    assert peer.ask(registration(world, life=2), 4).error_code == errors.DUPLICATE_BROKER_REGISTRATION
    world.advance(0.2)
    later = peer.ask(registration(world, life=2), 4)
    assert later.error_code == 0 and later.broker_epoch > first
    assert world.controller.image.brokers[2].fenced
    assert peer.ask(heartbeat(world, broker_epoch=first), 2).error_code == errors.STALE_BROKER_EPOCH


def test_who_has_never_sent_a_heartbeat_is_replaced_at_once(world, peer):
    assert peer.ask(registration(world), 4).error_code == 0
    assert peer.ask(registration(world, life=2), 4).error_code == 0


def test_a_heartbeat_of_another_epoch_is_stale(world, peer):
    assert peer.ask(heartbeat(world), 2).error_code == errors.STALE_BROKER_EPOCH
    join(world, peer, 2)
    stale = peer.ask(heartbeat(world, broker_epoch=world.controller.image.brokers[2].epoch + 1), 2)
    assert (stale.error_code, stale.is_fenced) == (errors.STALE_BROKER_EPOCH, True)


def test_a_silent_broker_is_fenced_and_another_leads(world, peer):
    join(world, peer, 2, 3)
    create_topic(world, peer, "t", [[2, 3], [3, 2]])
    for _ in range(3):
        world.advance(4.0)
        assert peer.ask(heartbeat(world, 3), 2).error_code == 0
    assert world.controller.image.brokers[2].fenced and world.controller.image.brokers[3].active
    assert partitions(world, "t") == [(3, (3,)), (3, (3,))]
    # It comes back in the same life.
    assert not peer.ask(heartbeat(world, 2), 2).is_fenced
    assert world.controller.image.brokers[2].active


def test_all_brokers_that_are_silent_are_fenced_one_after_the_other(world, peer):
    join(world, peer, 2, 3, 4)
    create_topic(world, peer, "t", [[2, 3, 4]])
    world.advance(10.2)
    assert [world.controller.image.brokers[number].fenced for number in (2, 3, 4)] == [True, False, False]
    world.advance(0.0, steps=1)
    world.advance(0.0, steps=1)
    assert [world.controller.image.brokers[number].fenced for number in (2, 3, 4)] == [True] * 3
    assert partitions(world, "t") == [(-1, ())]
    world.advance(100.0)
    assert world.runtime.next_turn_at() is None or world.runtime.next_turn_at() > world.runtime.now


def test_a_broker_that_wants_to_shut_down_leads_nothing_first(world, peer):
    join(world, peer, 2, 3)
    create_topic(world, peer, "t", [[2, 3]])
    assert not peer.ask(heartbeat(world, 3), 2).is_fenced
    begun = peer.ask(heartbeat(world, 2, want_shut_down=True), 2)
    assert (begun.error_code, begun.is_fenced, begun.should_shut_down) == (0, False, False)
    assert partitions(world, "t") == [(3, (3,))]
    assert world.controller.image.brokers[2].in_controlled_shutdown
    waits = peer.ask(heartbeat(world, 2, want_shut_down=True), 2)
    assert not waits.should_shut_down, "3 has not read of it"
    assert peer.ask(heartbeat(world, 3), 2).error_code == 0
    done = peer.ask(heartbeat(world, 2, want_shut_down=True), 2)
    assert (done.is_fenced, done.should_shut_down) == (True, True)
    assert world.controller.image.brokers[2].fenced
    # The next life of it need not wait for the end of a session, and has lost nothing.
    epoch = world.controller.image.brokers[2].epoch
    assert peer.ask(registration(world, life=2, previous_broker_epoch=epoch), 4).error_code == 0


def test_who_leads_nothing_may_shut_down_at_once(world, peer):
    join(world, peer, 2)
    answer = peer.ask(heartbeat(world, want_shut_down=True), 2)
    assert answer.should_shut_down and world.controller.image.brokers[2].fenced


@pytest.mark.parametrize(("version", "epoch", "elr"), [(4, 0, (2,)), (4, -1, ()), (2, 0, ())])
def test_a_new_life_has_lost_records_unless_it_stopped_cleanly(world, peer, version, epoch, elr):
    join(world, peer, 2)
    create_topic(world, peer, "t", [[2]])
    known = world.controller.image.brokers[2].epoch
    world.advance(10.2)
    assert world.controller.image.topics["t"].partitions[0].elr == (2,)
    changes = {"previous_broker_epoch": known + epoch}
    assert peer.ask(registration(world, life=2, **changes), version).error_code == 0
    assert world.controller.image.topics["t"].partitions[0].elr == elr


def test_a_directory_that_failed_leads_no_more(world, peer):
    assert peer.ask(registration(world, log_dirs=[b"a" * 16, b"b" * 16]), 4).error_code == 0
    assert not peer.ask(heartbeat(world), 2).is_fenced
    join(world, peer, 3)
    topic_id = create_topic(world, peer, "t", [[2, 3], [2, 3]])
    request = messages.AssignReplicasToDirsRequest
    rows = [
        request.DirectoryData(
            id=directory,
            topics=[request.TopicData(topic_id=topic_id, partitions=[request.PartitionData(partition_index=index)])],
        )
        for index, directory in enumerate((b"a" * 16, b"b" * 16))
    ]
    epoch = world.controller.image.brokers[2].epoch
    placed = peer.ask(request(broker_id=2, broker_epoch=epoch, directories=rows), 0)
    assert placed.error_code == 0
    assert [part.error_code for row in placed.directories for part in row.topics[0].partitions] == [0, 0]
    assert not peer.ask(heartbeat(world, offline_log_dirs=[b"b" * 16, b"unknown directory"[:16]]), 1).error_code
    assert partitions(world, "t") == [(2, (2, 3)), (3, (3,))]
    assert world.controller.image.brokers[2].log_dirs == [b"a" * 16]
    offset = world.controller.image.offset
    assert not peer.ask(heartbeat(world, offline_log_dirs=[b"b" * 16]), 1).error_code
    assert world.controller.image.offset == offset, "told once"
    assert not peer.ask(heartbeat(world, cordoned_log_dirs=[b"a" * 16]), 2).error_code
    assert world.controller.image.brokers[2].cordoned_log_dirs == [b"a" * 16]
    assert not peer.ask(heartbeat(world, cordoned_log_dirs=None), 2).error_code
    assert world.controller.image.brokers[2].cordoned_log_dirs == [b"a" * 16]


def test_a_new_active_controller_gives_brokers_a_sessions_time(world, peer):
    join(world, peer, 2, 3)
    world.stop()
    again = world.restart(process_roles="controller")
    assert again.controller.image.brokers[2].active
    other = again.connect()
    again.advance(8.0)
    assert other.ask(heartbeat(again, 3), 2).error_code == 0
    assert other.ask(registration(again, 2, life=2), 4).error_code == errors.DUPLICATE_BROKER_REGISTRATION
    again.advance(2.2)
    assert again.controller.image.brokers[2].fenced and again.controller.image.brokers[3].active
    world.runtime = again.runtime


def test_a_session_lasts_as_long_as_the_setting_says():
    world = controller_world(broker_session_timeout_ms=60_000)
    peer = world.connect()
    join(world, peer, 2)
    world.advance(59.0)
    assert world.controller.image.brokers[2].active
    world.advance(8.6)
    assert world.controller.image.brokers[2].fenced
    world.stop()
