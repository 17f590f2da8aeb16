"""ShareFetch: sessions, and records that one member has at a time."""

import pytest

from pykafkad import errors
from pykafkad.errors import name
from pykafkad.handlers.share_reading import Scan
from pykafkad.wire import messages
from tests.handlers.requests import batch, produce
from tests.handlers.share_requests import Share, acquired, codes, rows_of
from tests.handlers.test_produce import values
from tests.metadata.test_client_quotas import entry
from tests.simulation.world import NOTHING

OTHER = "22222222-2222-2222-2222-222222222222"


@pytest.fixture
def share(world):
    return Share(world, partitions=2).begin_at_the_start().join()


@pytest.mark.parametrize("version", [1, 2])
def test_records_are_given_once(world, share, version):
    share.produce(b"a", b"b").produce(b"c")
    answer = share.fetch(max_wait_ms=100, version=version)
    if answer is NOTHING:
        world.turn()
        answer = share.peer.answers[-1]
    assert acquired(answer) == [(0, 2, 1)] and values(rows_of(answer)[0]) == [b"a", b"b", b"c"]
    assert answer.acquisition_lock_timeout_ms == 30_000
    share.session = 1
    other = Share(world, OTHER, topic_id=share.topic_id)
    assert acquired(other.fetch()) == []
    share.produce(b"d")
    assert acquired(other.fetch()) == [(3, 3, 1)]


def first_fetch(world, share, **fields):
    """The share partition is loaded at the first fetch."""
    share.fetch(**fields)
    world.turn()
    return share.peer.answers[-1]


def test_records_come_back_with_a_fetch(world, share):
    share.produce(b"a", b"b", b"c")
    first_fetch(world, share, max_wait_ms=100)
    share.session = 1
    answer = share.fetch(give_back={0: [(0, 0, [1]), (1, 2, [2])]})
    assert codes(answer) == {0: "NONE"} and acquired(answer) == [(1, 2, 2)]
    answer = share.fetch(give_back={0: [(0, 0, [1])], 7: [(0, 0, [1])]})
    row, missing = rows_of(answer)[0], rows_of(answer)[7]
    assert name(row.acknowledge_error_code) == "NONE", "what is behind the start offset is done with"
    assert name(missing.acknowledge_error_code) == "UNKNOWN_TOPIC_OR_PARTITION"


def test_a_fetch_waits_for_records(world, share):
    first_fetch(world, share, max_wait_ms=0)
    share.session = 1
    assert share.peer.ask(share.fetch_request(max_wait_ms=5_000), 2) is NOTHING
    Share(world, OTHER, topic_id=share.topic_id).produce(b"a")
    world.turn()
    assert acquired(share.peer.answers[-1]) == [(0, 0, 1)]
    assert share.peer.ask(share.fetch_request(max_wait_ms=500, epoch=2), 2) is NOTHING
    world.advance(1)
    assert acquired(share.peer.answers[-1]) == []


def test_a_lock_that_runs_out_wakes_others(world, share):
    share.produce(b"a")
    first_fetch(world, share, max_wait_ms=100)
    other = Share(world, OTHER, topic_id=share.topic_id)
    other.peer.send(other.fetch_request(0, max_wait_ms=60_000), 2)
    world.advance(31)
    world.turn()
    assert acquired(other.peer.answers[-1]) == [(0, 0, 2)]


def test_a_connection_that_ends_gives_its_records_back(world, share):
    share.produce(b"a")
    first_fetch(world, share, max_wait_ms=100)
    other = Share(world, OTHER, topic_id=share.topic_id)
    assert acquired(other.fetch()) == []
    share.peer.end()
    world.turn()
    assert acquired(other.fetch()) == [(0, 0, 2)]
    assert len(world.broker.share_groups.sessions) == 1


def test_the_end_of_a_session_gives_its_records_back(world, share):
    share.produce(b"a")
    first_fetch(world, share, max_wait_ms=100)
    assert share.fetch(epoch=-1).error_code == 0
    assert name(share.fetch(epoch=-1).error_code) == "SHARE_SESSION_NOT_FOUND"
    assert world.broker.share_groups.partitions == {}, "a group without sessions takes no memory"
    other = Share(world, OTHER, topic_id=share.topic_id)
    assert acquired(first_fetch(world, other, max_wait_ms=100)) == [(0, 0, 2)]


def test_a_partition_can_be_fetched_as_soon_as_it_has_state(world):
    """An error of the first attempt does not stay."""
    Share(world, OTHER, group="other", partitions=2).join()
    share = Share(world, topic_id=world.broker.image.topics["t"].id).begin_at_the_start()
    assert codes(first_fetch(world, share, max_wait_ms=100)) == {0: "UNKNOWN_SERVER_ERROR"}
    share.produce(b"a").join()
    share.session = 0
    assert acquired(first_fetch(world, share, max_wait_ms=100)) == [(0, 0, 1)]


def test_sessions_know_their_partitions(world, share):
    first_fetch(world, share)
    share.session = 1
    assert rows_of(share.fetch()) == {}
    assert codes(share.fetch(1)) == {1: "NONE"}
    share.produce(b"x", partition=1)
    answer = share.fetch(max_wait_ms=0)
    assert acquired(answer, 1) == [(0, 0, 1)]
    share.produce(b"y", partition=1)
    assert acquired(share.fetch(forget=[1]), 1) == []
    assert codes(share.fetch(9)) == {9: "UNKNOWN_TOPIC_OR_PARTITION"}


def test_an_exact_number_of_records(world, share):
    share.produce(b"a", b"b", b"c")
    assert acquired(share.fetch(max_records=2, share_acquire_mode=1)) == [(0, 1, 1)]
    assert acquired(share.fetch(max_records=2, share_acquire_mode=1)) == [(2, 2, 1)]


BAD = [
    ({"group_id": None}, "INVALID_REQUEST"),
    ({"member_id": ""}, "INVALID_REQUEST"),
    ({"member_id": "x" * 37}, "INVALID_REQUEST"),
    ({"epoch": 3}, "SHARE_SESSION_NOT_FOUND"),
    ({"epoch": -1}, "SHARE_SESSION_NOT_FOUND"),
    ({"give_back": {0: [(0, 0, [1])]}}, "INVALID_REQUEST"),
    ({"is_renew_ack": True}, "INVALID_REQUEST"),
    ({"share_acquire_mode": 2}, "UNKNOWN_SERVER_ERROR"),
]


@pytest.mark.parametrize(("fields", "error"), BAD)
def test_bad_requests(share, fields, error):
    assert name(share.fetch(**fields).error_code) == error


def test_wrong_epochs_and_unknown_topics(world, share):
    first_fetch(world, share)
    share.session = 1
    assert name(share.fetch(epoch=7).error_code) == "INVALID_SHARE_SESSION_EPOCH"
    other = Share(world, OTHER, topic_id=bytes(range(16)))
    assert codes(other.fetch()) == {0: "UNKNOWN_TOPIC_ID"}


def test_there_is_a_limit_of_sessions(tmp_path):
    from tests.simulation.world import World

    world = World(tmp_path, group_share_max_share_sessions=1)
    one = Share(world)
    one.fetch()
    two = Share(world, OTHER, topic_id=one.topic_id)
    two.peer.send(two.fetch_request(0, max_wait_ms=500), 2)
    assert not two.peer.answers
    world.advance(1)
    assert name(two.peer.answers[0].error_code) == "SHARE_SESSION_LIMIT_REACHED"


def test_records_before_the_log_start_are_passed_over(world, share):
    share.produce(b"a").produce(b"b").produce(b"c")
    first_fetch(world, share, max_records=1, max_wait_ms=100)
    share.session = 1
    world.broker.partitions.get("t", 0).delete_records(2)
    share.fetch()
    assert acquired(share.fetch(max_wait_ms=1)) == [(2, 2, 1)]


def late_fetch(world, share, session=0):
    """The answer to a fetch that waits for the share partition to be loaded."""
    share.peer.send(share.fetch_request(0, epoch=session, max_wait_ms=1000), 2)
    world.advance(0.1)
    return share.peer.answers[-1]


def test_a_group_begins_by_duration(world):
    share = Share(world).begin_at("by_duration:PT1H").produce(b"a")
    world.advance(2 * 3600)
    now_ms = world.runtime.now_ms
    for age_ms in (3_500_000, 1):
        share.peer.ask(produce("t", {0: batch(b"b", timestamp_ms=now_ms - age_ms)}), 8)
    assert acquired(late_fetch(world, share.join())) == [(1, 2, 1)]


@pytest.mark.parametrize(
    ("failure", "told"),
    [
        (None, "OFFSET_NOT_AVAILABLE"),
        (errors.StorageFailure("read", "x", "a broken disk"), "KAFKA_STORAGE_ERROR"),
        (errors.KafkaError(errors.CORRUPT_MESSAGE, "it cannot be decompressed"), "CORRUPT_MESSAGE"),
    ],
)
def test_a_duration_that_leads_nowhere_is_told_and_tried_again(world, monkeypatch, failure, told):
    """Without an answer the members would wait for ever."""
    share = Share(world).begin_at("by_duration:PT1H").produce(b"a").join()

    def find(log, timestamp_ms):
        if failure is not None:
            raise failure
        return None

    with monkeypatch.context() as patch:
        patch.setattr("pykafkad.log.lookups.offset_for_timestamp", find)
        assert codes(late_fetch(world, share)) == {0: told}
    assert acquired(late_fetch(world, share, session=1)) == [(0, 0, 1)]


def test_no_more_of_the_log_is_looked_at_than_can_be_acquired(world, share, monkeypatch):
    """However much a request asks for: the locks of a share partition are limited."""
    for _ in range(200):
        share.produce(b"x")
    seen = []
    scan = Scan.__init__

    def look(self, records, enough_offset):
        scan(self, records, enough_offset)
        seen.append(len(self.batches))

    monkeypatch.setattr(Scan, "__init__", look)
    monkeypatch.setattr("pykafkad.server.share_groups.GroupLimits.max_record_locks", 100)
    first_fetch(world, share, max_records=1 << 30, max_wait_ms=100)
    assert seen == [101] and acquired(share.peer.answers[-1]) == [(0, 99, 1)]


def set_quota(world, *value):
    change = messages.AlterClientQuotasRequest(entries=[entry({"client-id": "test"}, ("consumer_byte_rate", *value))])
    assert world.connect().ask(change, 1, "admin").entries[0].error_code == errors.NONE


def test_a_member_over_its_quota_gets_no_records(world, share):
    """They stay acquired, until they are given back or the lock runs out. What was not given does not count."""
    share.produce(b"x" * 20_000)
    set_quota(world, 1000.0)
    first_fetch(world, share, max_wait_ms=100)
    answer = share.peer.answers[-1]
    assert answer.error_code == errors.NONE and answer.responses == [] and answer.throttle_time_ms > 0
    assert share.peer.connection.muted
    world.advance(answer.throttle_time_ms / 1000 + 0.01)
    assert not share.peer.connection.muted
    set_quota(world, None)
    share.session = 1
    answer = share.fetch(give_back={0: [(0, 0, [2])]})
    assert acquired(answer) == [(0, 0, 2)] and answer.throttle_time_ms == 0


def test_a_throttled_member_learns_what_became_of_what_it_gave_back(world, share):
    share.produce(b"a")
    first_fetch(world, share, max_wait_ms=100)
    share.session = 1
    share.produce(b"x" * 20_000)
    set_quota(world, 1000.0)
    answer = share.fetch(give_back={0: [(0, 0, [1])]})
    assert codes(answer) == {0: "NONE"} and acquired(answer) == [] and answer.throttle_time_ms > 0


def test_an_answer_has_no_more_than_the_quota_lets_through(world, share):
    """As for Fetch: more would be throttled each time."""
    for _ in range(4):
        share.produce(b"x" * 6_000)
    set_quota(world, 1000.0)
    assert acquired(first_fetch(world, share, max_wait_ms=100)) == [(0, 0, 1)]
