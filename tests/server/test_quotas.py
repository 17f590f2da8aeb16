"""Client quotas of a broker: who is throttled, what the answers say, and for how long connections are muted."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pykafkad import errors
from pykafkad.clock import ManualClock
from pykafkad.config import STANDARD_AUTHORIZER
from pykafkad.server import quota_fast_paths
from pykafkad.server.fault_injection import FaultInjection
from pykafkad.server.injected_fault import Fault
from pykafkad.server.listeners import Listener
from pykafkad.wire import messages
from tests import certificates
from tests.handlers.requests import batch, fetch, produce
from tests.metadata.test_client_quotas import entry
from tests.rows import in_turn
from tests.server.tls_client import TlsPeer
from tests.simulation.world import NOTHING, World

PRODUCER, CONSUMER, REQUEST, MUTATION = (
    "producer_byte_rate",
    "consumer_byte_rate",
    "request_percentage",
    "controller_mutation_rate",
)
USER = {"user": "ANONYMOUS"}
CLIENT = {"client-id": "test"}
# With ten samples more than the one that grows, a second lets through a tenth of what all windows do.
BURST = 10


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World(tmp_path)
    made.create_topic("t")
    return made


def set_quota(world: World, entity: dict, key: str, value: float | None) -> None:
    answer = world.connect().ask(messages.AlterClientQuotasRequest(entries=[entry(entity, (key, value))]), 1, "admin")
    assert answer.entries[0].error_code == errors.NONE


def produced(peer, size: int = 1000, version: int = 8, client_id: str = "test", acks: int = 1):
    """The answer to a batch of about that size."""
    return peer.ask(produce("t", {0: batch(b"x" * size)}, acks=acks), version, client_id)


def fetched(peer, version: int = 6, client_id: str = "test", **fields):
    return peer.ask(fetch("t", {0: 0}, **fields), version, client_id)


def records(answer) -> bytes:
    return b"".join(bytes(row.records or b"") for topic in answer.responses for row in topic.partitions)


def is_muted(peer) -> bool:
    return peer.connection.muted


def test_a_producer_within_its_quota_is_not_throttled(world: World) -> None:
    set_quota(world, USER, PRODUCER, 1000.0)
    peer = world.connect()
    assert [produced(peer, 3000).throttle_time_ms for _ in range(3)] == [0, 0, 0]
    assert not is_muted(peer)


def asked_for(world: World, *names: str):
    """The error codes of topics that come by being asked for, and the throttle time."""
    topics = [messages.MetadataRequest.MetadataRequestTopic(name=name) for name in names]
    answer = world.connect().ask(messages.MetadataRequest(topics=topics, allow_auto_topic_creation=True), 12)
    for _ in names:
        world.turn()
    return [row.error_code for row in answer.topics], answer.throttle_time_ms


def test_topics_that_come_by_being_asked_for_count_as_changes(tmp_path: Path) -> None:
    """Once the quota is used up none comes, and nobody is throttled; later they come. Other clients' do."""
    world = World(tmp_path, num_partitions=6)
    set_quota(world, CLIENT, MUTATION, 1.0)
    unknown = errors.UNKNOWN_TOPIC_OR_PARTITION
    assert asked_for(world, "one", "two", "three") == ([unknown] * 3, 0)
    assert asked_for(world, "four") == ([unknown], 0)
    # Ten partitions at once, and what takes the bucket below zero.
    assert {"one", "two"} == set(world.broker.image.topics)
    world.advance(8)
    assert asked_for(world, "four") == ([unknown], 0)
    assert set(world.broker.image.topics) == {"one", "two", "four"}
    set_quota(world, CLIENT, MUTATION, None)
    asked_for(world, "three")
    assert "three" in world.broker.image.topics


@in_turn("version", range(3, 14))
def test_a_producer_over_its_quota(version: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The batch is appended and answered at once; the connection is muted for the throttle time and no longer."""
    world = World(tmp_path_factory.mktemp("world"))
    topic_id = world.create_topic("t")
    set_quota(world, USER, PRODUCER, 1000.0)
    peer = world.connect()
    request = produce("t", {0: batch(b"x" * 15_000)}, topic_id=topic_id)
    answer = peer.ask(request, version)
    row = answer.responses[0].partition_responses[0]
    assert (row.error_code, row.base_offset) == (errors.NONE, 0)
    # A little more than half again as much as ten seconds let through.
    assert 5000 < answer.throttle_time_ms < 5500
    assert is_muted(peer)
    assert peer.ask(messages.MetadataRequest(topics=[]), 9) is NOTHING
    world.advance((answer.throttle_time_ms - 5) / 1000)
    assert len(peer.answers) == 1
    world.advance(0.01)
    assert len(peer.answers) == 2 and not is_muted(peer)


def test_what_nobody_answers_mutes_too(world: World) -> None:
    set_quota(world, USER, PRODUCER, 1000.0)
    peer = world.connect()
    assert produced(peer, 15_000, acks=0) is NOTHING
    assert is_muted(peer) and peer.closed is None
    world.advance(6)
    assert not is_muted(peer)


def test_connections_of_one_user_share_its_quota_and_others_have_theirs(world: World) -> None:
    set_quota(world, USER, PRODUCER, 1000.0)
    first, second = world.connect(), world.connect()
    assert produced(first, 8000).throttle_time_ms == 0
    assert produced(second, 8000, client_id="another").throttle_time_ms > 0
    bob = world.connect()
    bob.connection.session.principal = "User:bob"
    assert produced(bob, 15_000).throttle_time_ms == 0


def test_quotas_of_client_ids_leave_others_alone(world: World) -> None:
    set_quota(world, CLIENT, PRODUCER, 1000.0)
    set_quota(world, CLIENT, CONSUMER, 10.0)
    peer, other = world.connect(), world.connect()
    assert produced(other, 50_000, client_id="other").throttle_time_ms == 0
    assert produced(other, 50_000, client_id="x" * 300).throttle_time_ms == 0
    assert produced(peer, 15_000).throttle_time_ms > 0
    assert fetched(other, client_id="other").throttle_time_ms == 0
    assert not is_muted(other)


@in_turn("version", range(4, 18))
def test_a_consumer_over_its_quota_gets_nothing(version: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    """What it did not get does not count."""
    world = World(tmp_path_factory.mktemp("world"))
    topic_id = world.create_topic("t")
    peer, ids = world.connect(), {"topic_id": topic_id} if version >= 13 else {}
    produced(peer, 3000)
    produced(peer, 3000)
    produced(peer, 3000)
    set_quota(world, USER, CONSUMER, 400.0)
    # An answer has at most what ten seconds let through: one batch.
    assert 3000 < len(records(fetched(peer, version, **ids))) < 4000
    answer = fetched(peer, version, **ids)
    assert answer.throttle_time_ms > 0 and answer.responses == [] and answer.session_id == 0
    assert is_muted(peer)
    assert fetched(world.connect(), version, **ids).throttle_time_ms == answer.throttle_time_ms
    world.advance(answer.throttle_time_ms / 1000 + 0.01)
    assert not is_muted(peer)
    world.advance(11)
    answer = fetched(peer, version, **ids)
    assert answer.throttle_time_ms == 0 and records(answer)


def session_fetch(world: World, peer, session_id: int, epoch: int, offset: int | None = None):
    topics = fetch("t", {0: offset}).topics if offset is not None else []
    request = messages.FetchRequest(
        max_wait_ms=0, min_bytes=1, max_bytes=1 << 20, session_id=session_id, session_epoch=epoch, topics=topics
    )
    return peer.ask(request, 11)


def test_a_throttled_fetch_begins_no_session(world: World) -> None:
    set_quota(world, USER, CONSUMER, 1.0)
    peer = world.connect()
    answer = session_fetch(world, peer, 0, 0, 0)
    assert (answer.error_code, answer.session_id, answer.responses) == (errors.NONE, 0, [])
    assert answer.throttle_time_ms > 0
    assert len(world.broker.fetch_sessions) == 0


def test_a_throttled_fetch_changes_nothing_that_its_session_has_told(world: World) -> None:
    """The next answer has the news that the throttled one left out: that the first record is gone."""
    peer, producer = world.connect(), world.connect()
    produced(producer)
    first = session_fetch(world, peer, 0, 0, 1)
    assert first.session_id > 0
    request = messages.DeleteRecordsRequest
    rows = [request.DeleteRecordsPartition(partition_index=0, offset=1)]
    topics = [request.DeleteRecordsTopic(name="t", partitions=rows)]
    assert producer.ask(request(topics=topics, timeout_ms=1000), 1).topics[0].partitions[0].low_watermark == 1
    set_quota(world, USER, CONSUMER, 1.0)
    throttled = session_fetch(world, peer, first.session_id, 1)
    assert (throttled.error_code, throttled.session_id, throttled.responses) == (errors.NONE, first.session_id, [])
    assert throttled.throttle_time_ms > 0
    set_quota(world, USER, CONSUMER, None)
    world.advance(throttled.throttle_time_ms / 1000 + 0.01)
    after = session_fetch(world, peer, first.session_id, 2)
    assert after.error_code == errors.NONE
    assert [row.log_start_offset for topic in after.responses for row in topic.partitions] == [1]


@pytest.mark.long
def test_a_fetch_for_thousands_of_partitions_is_throttled_as_others_are(world: World) -> None:
    world.create_topic("many", 3000)
    peer = world.connect()
    produced(peer, 3000)
    set_quota(world, USER, CONSUMER, 1000.0)
    request = fetch("many", dict.fromkeys(range(3000), 0))
    before = len(peer.answers)
    peer.send(request, 11)
    while len(peer.answers) == before:
        world.turn()
    answer = peer.answers[-1]
    assert answer.throttle_time_ms > 0 and answer.responses == []


class WorkingClock(ManualClock):
    """Each look at it takes a millisecond."""

    def now(self) -> float:
        self.advance(0.001)
        return super().now()


def test_processor_time_over_the_quota_throttles_for_a_window_at_most(tmp_path: Path) -> None:
    world = World(tmp_path, clock=WorkingClock())
    peer = world.connect()
    metadata = messages.MetadataRequest(topics=[])
    assert peer.ask(metadata, 9).throttle_time_ms == 0
    set_quota(world, CLIENT, REQUEST, 0.001)
    answer = peer.ask(metadata, 9)
    assert answer.throttle_time_ms == 1000 and is_muted(peer)
    world.advance(1.1)
    assert not is_muted(peer)
    # Before version 3 an answer has no field for it.
    assert peer.ask(metadata, 1) is not NOTHING and is_muted(peer)
    world.advance(1.1)
    assert peer.ask(metadata, 9, "another").throttle_time_ms == 0
    set_quota(world, CLIENT, REQUEST, 100.0)
    world.advance(12)
    assert peer.ask(metadata, 9).throttle_time_ms == 0


def test_processor_time_of_small_requests_counts(tmp_path: Path) -> None:
    """A fast path that took too much is told of by the next request."""
    world = World(tmp_path, clock=WorkingClock())
    world.create_topic("t")
    set_quota(world, CLIENT, REQUEST, 0.005)
    peer = world.connect()
    assert produced(peer).throttle_time_ms == 0
    answer = produced(peer)
    assert 0 < answer.throttle_time_ms <= 1000
    assert answer.responses[0].partition_responses[0].error_code == errors.NONE
    world.advance(60)
    assert fetched(peer).throttle_time_ms == 0
    throttled = fetched(peer)
    assert 0 < throttled.throttle_time_ms <= 1000 and throttled.responses == []


def create(names, partitions: int = 1):
    topic = messages.CreateTopicsRequest.CreatableTopic
    return messages.CreateTopicsRequest(
        topics=[topic(name=name, num_partitions=partitions, replication_factor=1) for name in names], timeout_ms=1000
    )


def delete(names, version: int):
    if version >= 6:
        topics = [messages.DeleteTopicsRequest.DeleteTopicState(name=name) for name in names]
        return messages.DeleteTopicsRequest(topics=topics, timeout_ms=1000)
    return messages.DeleteTopicsRequest(topic_names=list(names), timeout_ms=1000)


def grow(names, count: int):
    topic = messages.CreatePartitionsRequest.CreatePartitionsTopic
    return messages.CreatePartitionsRequest(
        topics=[topic(name=name, count=count, assignments=None) for name in names], timeout_ms=1000
    )


@pytest.mark.parametrize(("version", "is_strict"), [(5, False), (6, True), (7, True)])
def test_topics_that_are_created_over_the_quota(world: World, version: int, is_strict: bool) -> None:
    """A burst of eleven seconds; one topic more may overdraw it."""
    set_quota(world, USER, MUTATION, 1.0)
    peer = world.connect()
    answer = peer.ask(create(["a", "b", "c"], 10), version)
    assert answer.throttle_time_ms == (9000 if is_strict else 19_000) and is_muted(peer)
    refused = errors.THROTTLING_QUOTA_EXCEEDED if is_strict else errors.NONE
    assert [row.error_code for row in answer.topics] == [errors.NONE, errors.NONE, refused]
    assert ("c" in world.broker.image.topics) is not is_strict
    world.advance(answer.throttle_time_ms / 1000 + 0.01)
    assert peer.ask(create(["d"]), version).topics[0].error_code == errors.NONE


@pytest.mark.parametrize(("version", "is_strict"), [(4, False), (5, True), (6, True)])
def test_topics_that_are_deleted_over_the_quota(world: World, version: int, is_strict: bool) -> None:
    names = ["a", "b", "c"]
    for name in names:
        world.create_topic(name, 10)
    set_quota(world, USER, MUTATION, 1.0)
    answer = world.connect().ask(delete(names, version), version)
    refused = errors.THROTTLING_QUOTA_EXCEEDED if is_strict else errors.NONE
    assert {row.name: row.error_code for row in answer.responses} == {"a": 0, "b": 0, "c": refused}
    assert answer.throttle_time_ms == (9000 if is_strict else 19_000)


@pytest.mark.parametrize(("version", "is_strict"), [(2, False), (3, True)])
def test_topics_that_grow_over_the_quota(world: World, version: int, is_strict: bool) -> None:
    names = ["a", "b", "c"]
    for name in names:
        world.create_topic(name)
    set_quota(world, USER, MUTATION, 1.0)
    answer = world.connect().ask(grow(names, 11), version)
    refused = errors.THROTTLING_QUOTA_EXCEEDED if is_strict else errors.NONE
    assert [row.error_code for row in answer.results] == [0, 0, refused]
    assert answer.throttle_time_ms == (9000 if is_strict else 19_000)
    assert len(world.broker.image.topics["c"].partitions) == (1 if is_strict else 11)


def test_changed_quotas_count_at_once_and_removed_ones_no_more(world: World) -> None:
    peer = world.connect()
    assert produced(peer, 15_000).throttle_time_ms == 0
    set_quota(world, USER, PRODUCER, 1000.0)
    throttled = produced(peer, 15_000).throttle_time_ms
    assert throttled > 0
    world.advance(throttled / 1000 + 0.01)
    set_quota(world, {"user": "ANONYMOUS", "client-id": "test"}, PRODUCER, 1_000_000.0)
    assert produced(peer, 15_000).throttle_time_ms == 0
    set_quota(world, {"user": "ANONYMOUS", "client-id": "test"}, PRODUCER, None)
    set_quota(world, USER, PRODUCER, None)
    assert produced(peer, 50_000).throttle_time_ms == 0


def test_quotas_are_there_after_a_restart(world: World) -> None:
    set_quota(world, USER, PRODUCER, 1000.0)
    world.stop()
    assert produced(world.restart().connect(), 15_000).throttle_time_ms > 0


def test_a_broker_without_quotas_loads_nothing_of_them_and_keeps_its_fast_paths(world: World) -> None:
    """Nor does one whose only quotas concern other users."""
    peer = world.connect()
    assert world.broker.services.quotas is None
    assert peer.connection.session.fast_paths is world.broker.fast_paths
    set_quota(world, {"user": "bob"}, PRODUCER, 1000.0)
    assert (
        peer.connection.session.fast_paths is world.broker.fast_paths is world.connect().connection.session.fast_paths
    )
    set_quota(world, USER, MUTATION, 1.0)
    assert peer.connection.session.fast_paths is world.broker.fast_paths
    set_quota(world, {"client-id": "somebody"}, CONSUMER, 1.0)
    assert peer.connection.session.fast_paths is not world.broker.fast_paths
    set_quota(world, {"client-id": "somebody"}, CONSUMER, None)
    assert peer.connection.session.fast_paths is world.broker.fast_paths


def test_a_starting_broker_imports_nothing_of_quotas() -> None:
    code = "import sys; from pykafkad.server import wiring; print(*(each for each in sys.modules if 'quota' in each))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not [name for name in loaded if name.startswith("pykafkad.") and "client_quotas" not in name]


def test_small_requests_within_the_quotas_keep_their_fast_paths(world: World) -> None:
    set_quota(world, USER, PRODUCER, 1e6)
    set_quota(world, USER, CONSUMER, 1e6)
    set_quota(world, USER, REQUEST, 100.0)
    peer = world.connect()
    served = []
    fast_paths = peer.connection.session.fast_paths

    def watched(serve):
        def look(*arguments):
            served.append(serve(*arguments))
            return served[-1]

        return look

    for word, serve in list(fast_paths.items()):
        fast_paths[word] = watched(serve)
    assert fast_paths is not world.broker.fast_paths and fast_paths.keys() == world.broker.fast_paths.keys()
    for _ in range(3):
        assert produced(peer).throttle_time_ms == fetched(peer).throttle_time_ms == 0
    assert served == [True] * 6


def test_bytes_count_alike_on_both_paths(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A long client id takes the general path."""
    set_quota(world, USER, PRODUCER, 1000.0)
    found = []
    for limit in (255, 1):
        monkeypatch.setattr(quota_fast_paths, "MAX_CLIENT_ID_BYTES", limit)
        peer = world.connect()
        answers = [produced(peer, 3000).throttle_time_ms for _ in range(4)]
        assert answers[:3] == [0, 0, 0] and answers[3] > 0
        found.append(answers[3])
        world.advance(60)
    assert found[0] == found[1]


@pytest.mark.parametrize("frame", [b"\0\0\0\x08", b"\0\1\0\x06", b"\0\x44\0\0"])
@pytest.mark.parametrize(
    "rest", [b"", b"\0", b"\0\5", b"\0\5ab", b"\0\2\xff\xff", b"\x80\0", b"\xff\xff", b"\xff\xff\0"]
)
def test_broken_requests_end_as_without_quotas(world: World, frame: bytes, rest: bytes) -> None:
    plain, peer = world.connect(), None
    data = frame + b"\0\0\0\1" + rest
    data = len(data).to_bytes(4, "big") + data
    plain.send_bytes(data)
    set_quota(world, USER, PRODUCER, 1e6)
    set_quota(world, USER, REQUEST, 100.0)
    peer = world.connect()
    peer.send_bytes(data)
    assert peer.closed == plain.closed is not None
    assert world.runtime.metrics.unexpected_errors == 0


def test_a_connection_that_ends_while_it_is_throttled_leaves_nothing(world: World) -> None:
    set_quota(world, USER, PRODUCER, 1000.0)
    timers = len(world.runtime.timers)
    peer = world.connect()
    assert produced(peer, 15_000).throttle_time_ms > 0
    assert len(world.runtime.timers) == timers + 1
    peer.end()
    assert len(world.runtime.timers) == timers


def test_faults_on_purpose_do_not_end_the_quotas(world: World) -> None:
    set_quota(world, USER, PRODUCER, 1000.0)
    peer = world.connect()
    faults = FaultInjection(world.broker)
    fault = Fault("answer", keys=frozenset((1,)), error_code=errors.KAFKA_STORAGE_ERROR)
    faults.add(fault)
    throttled = produced(peer, 15_000).throttle_time_ms
    assert throttled > 0
    world.advance(60)
    faults.remove(fault)
    assert produced(peer, 15_000).throttle_time_ms == throttled


def test_callers_whom_an_authorizer_watches_have_quotas(tmp_path: Path) -> None:
    world = World(tmp_path, authorizer_class_name=STANDARD_AUTHORIZER, allow_everyone_if_no_acl_found="true")
    world.create_topic("t")
    set_quota(world, USER, PRODUCER, 1000.0)
    peer = world.connect()
    assert [produced(peer, 3000).throttle_time_ms for _ in range(3)] == [0, 0, 0]
    assert peer.connection.session.fast_paths
    assert produced(peer, 3000).throttle_time_ms > 0


def test_who_shows_a_certificate_has_the_quotas_of_its_name(tmp_path: Path) -> None:
    """From its first request on: those that are there count, and those of strangers count no more."""
    listening = [Listener("PLAINTEXT", "localhost", 9092), Listener("TLS", "localhost", 9093, security_protocol="SSL")]
    names = {"listener_security_protocol_map": "PLAINTEXT:PLAINTEXT,TLS:SSL"}
    rules = {"ssl_client_auth": "required", "ssl_principal_mapping_rules": "RULE:^CN=(.*?),.*$/$1/"}
    world = World(tmp_path, listening=listening, **names, **certificates.settings(**rules))
    world.create_topic("t")
    set_quota(world, {"user": "alice"}, PRODUCER, 1000.0)
    alice = TlsPeer(world, certificates.client("alice"))
    assert alice.connection.session.principal == "User:alice"
    # The first answer leaves a preamble to the fast path, which serves the others.
    assert [produced(alice, 3000).throttle_time_ms for _ in range(3)] == [0, 0, 0]
    assert produced(alice, 3000).throttle_time_ms > 0
    set_quota(world, {"user": "alice"}, PRODUCER, None)
    set_quota(world, USER, PRODUCER, 1000.0)
    bob = TlsPeer(world, certificates.client("bob"))
    assert [produced(bob, 8000).throttle_time_ms for _ in range(3)] == [0, 0, 0]
    assert bob.connection.session.fast_paths is world.broker.fast_paths
