"""Fetch: the records of an answer, the end of a delayed request, and sessions."""

import random

import pytest

from pykafkad import errors
from pykafkad.log.partition_log import VERIFIED_CLIENT
from pykafkad.wire import messages
from pykafkad.wire.batch import HEADER_SIZE_BYTES, parse_header
from tests import seeds
from tests.handlers.requests import NOW_MS, batch, fetch, produce, watch_fast_paths
from tests.handlers.test_produce import values
from tests.simulation.world import NOTHING


def batches_of(records):
    """The headers of the batches in an answer."""
    while len(records) >= HEADER_SIZE_BYTES:
        header = parse_header(records)
        yield header
        records = records[header.size_bytes :]


def rows_of(answer):
    return {row.partition_index: row for topic in answer.responses for row in topic.partitions}


def fill(world, topic, partition=0, count=1, size=100):
    peer = world.connect()
    for number in range(count):
        answer = peer.ask(produce(topic, {partition: batch(b"%06d" % number + b"x" * (size - 6))}), 8)
        assert answer.responses[0].partition_responses[0].error_code == 0


@pytest.mark.parametrize("version", range(4, 19))
def test_every_version_reads_the_written_records(world, peer, version):
    topic_id = world.create_topic("t", 2)
    fill(world, "t", 1, 3)
    answer = peer.ask(fetch("t", {1: 1, 0: 0}, topic_id=topic_id if version >= 13 else bytes(16)), version)
    rows = rows_of(answer)
    assert [value[:6] for value in values(rows[1])] == [b"000001", b"000002"]
    assert (rows[1].high_watermark, rows[1].last_stable_offset, rows[1].error_code) == (3, 3, 0)
    assert bytes(rows[0].records) == b"" and rows[0].high_watermark == 0
    assert rows[1].aborted_transactions is None, "read_uncommitted gets no list"


def test_read_committed_gets_an_empty_list_of_aborted_transactions(world, peer):
    world.create_topic("t")
    fill(world, "t")
    assert rows_of(peer.ask(fetch("t", {0: 0}, isolation_level=1), 11))[0].aborted_transactions == []


@pytest.mark.parametrize("version", [4, 5, 11, 12, 17, 18])
def test_read_committed_gets_the_aborted_transactions(world, peer, version):
    """The answer ends before the first open transaction; read_uncommitted sees all records."""
    topic_id = world.create_topic("t")
    log = world.broker.partitions.get("t", 0)
    for producer_id in (7, 8):
        records = batch(b"v", producer_id=producer_id, producer_epoch=0, base_sequence=0, is_transactional=True)
        log.append(memoryview(bytearray(records)), NOW_MS, origin=VERIFIED_CLIENT)
    log.append_end_marker(7, 0, 0, NOW_MS, is_abort=True)
    log.write_pending()
    log.advance_high_watermark(3)
    asked = {"topic_id": topic_id if version >= 13 else bytes(16)}
    row = rows_of(peer.ask(fetch("t", {0: 0}, isolation_level=1, **asked), version))[0]
    assert [(each.producer_id, each.first_offset) for each in row.aborted_transactions] == [(7, 0)]
    assert (row.last_stable_offset, row.high_watermark, len(values(row))) == (1, 3, 1)
    row = rows_of(peer.ask(fetch("t", {0: 0}, **asked), version))[0]
    assert (row.aborted_transactions, row.last_stable_offset, len(values(row))) == (None, 1, 3)
    row = rows_of(peer.ask(fetch("t", {0: 1}, isolation_level=1, **asked), version))[0]
    assert (row.aborted_transactions, bytes(row.records)) == ([], b"")


@pytest.mark.parametrize("version", [4, 11, 12, 17])
def test_read_committed_ends_before_what_is_not_decided(world, peer, version):
    """On the flat path, too, which serves logs in which nothing was ever aborted."""
    topic_id = world.create_topic("t")
    fill(world, "t")
    log = world.broker.partitions.get("t", 0)
    records = batch(b"v", producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True)
    log.append(memoryview(bytearray(records)), NOW_MS, origin=VERIFIED_CLIENT)
    log.write_pending()
    log.advance_high_watermark(2)
    asked = {"topic_id": topic_id if version >= 13 else bytes(16)}
    row = rows_of(peer.ask(fetch("t", {0: 0}, isolation_level=1, **asked), version))[0]
    assert (row.last_stable_offset, row.high_watermark, len(values(row))) == (1, 2, 1)
    row = rows_of(peer.ask(fetch("t", {0: 0}, **asked), version))[0]
    assert len(values(row)) == 2


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ({"fetch_offset": 4}, errors.OFFSET_OUT_OF_RANGE),
        ({"fetch_offset": -1}, errors.OFFSET_OUT_OF_RANGE),
        ({"fetch_offset": 0, "current_leader_epoch": 1}, errors.UNKNOWN_LEADER_EPOCH),
    ],
)
def test_errors_stand_on_their_partition(world, peer, asked, code):
    world.create_topic("t", 2)
    fill(world, "t", 0, 3)
    rows = rows_of(peer.ask(fetch("t", {0: asked, 1: 0}, max_wait_ms=500), 11))
    assert (rows[0].error_code, rows[0].high_watermark, rows[0].log_start_offset) == (code, -1, -1)
    assert rows[1].error_code == 0


def test_unknown_topics_and_ids_have_errors(world, peer):
    topic_id = world.create_topic("t")
    assert (
        rows_of(peer.ask(fetch("nowhere", {0: 0}, max_wait_ms=500), 12))[0].error_code
        == errors.UNKNOWN_TOPIC_OR_PARTITION
    )
    assert rows_of(peer.ask(fetch("t", {7: 0}, max_wait_ms=500), 12))[7].error_code == errors.UNKNOWN_TOPIC_OR_PARTITION
    answer = peer.ask(fetch("", {0: 0}, topic_id=b"\x09" * 16, max_wait_ms=500), 13)
    assert rows_of(answer)[0].error_code == errors.UNKNOWN_TOPIC_ID
    assert answer.responses[0].topic_id == b"\x09" * 16, "the answer echoes the id"
    assert rows_of(peer.ask(fetch("", {0: 0}, topic_id=topic_id), 13))[0].error_code == 0


def test_a_follower_is_refused(world, peer):
    """In Kafka the leader does not know the replica, and ReplicaManager answers NOT_LEADER_OR_FOLLOWER."""
    world.create_topic("t")
    assert rows_of(peer.ask(fetch("t", {0: 0}, replica_id=2), 11))[0].error_code == errors.NOT_LEADER_OR_FOLLOWER


def test_an_append_ends_the_wait(world, peer):
    world.create_topic("t")
    assert peer.ask(fetch("t", {0: 0}, max_wait_ms=500), 11) is NOTHING
    fill(world, "t")
    assert len(values(rows_of(peer.answers[-1])[0])) == 1


def test_the_deadline_ends_the_wait_without_records(world, peer):
    world.create_topic("t")
    assert peer.ask(fetch("t", {0: 0}, max_wait_ms=500), 11) is NOTHING
    world.advance(0.499)
    assert peer.answers == []
    world.advance(0.002)
    assert bytes(rows_of(peer.answers[-1])[0].records) == b""


def test_the_wait_goes_on_until_min_bytes_are_there(world, peer):
    world.create_topic("t")
    assert peer.ask(fetch("t", {0: 0}, max_wait_ms=60_000, min_bytes=500), 11) is NOTHING
    fill(world, "t", 0, 2)
    assert peer.answers == []
    fill(world, "t", 0, 2)
    assert len(values(rows_of(peer.answers[-1])[0])) == 4 - 1


def test_exactly_the_least_bytes_are_enough(world, peer):
    world.create_topic("t", 2)
    size = len(batch(b"x" * 100))
    request = fetch("t", {0: 0, 1: 0}, max_wait_ms=60_000, min_bytes=2 * size)
    assert peer.ask(request, 11) is NOTHING
    fill(world, "t", 0)
    assert peer.answers == []
    fill(world, "t", 1)
    assert [len(values(row)) for row in rows_of(peer.answers[-1]).values()] == [1, 1]
    assert peer.ask(request, 11) is not NOTHING
    fill(world, "t", 0)
    assert peer.ask(fetch("t", {0: 0}, max_wait_ms=60_000, min_bytes=2 * size), 11) is not NOTHING
    assert peer.ask(fetch("t", {1: 0}, max_wait_ms=60_000, min_bytes=2 * size), 11) is NOTHING


@pytest.mark.parametrize("partitions", [{0: 0}, {0: 0, 1: 0}])
def test_the_wait_never_exceeds_the_limit_of_the_answer(world, peer, partitions):
    """Also if `min_bytes` is above `max_bytes`."""
    world.create_topic("t", 2)
    fill(world, "t", 0)
    answer = peer.ask(fetch("t", partitions, max_wait_ms=60_000, min_bytes=1 << 20, max_bytes=50), 11)
    assert len(values(rows_of(answer)[0])) == 1


@pytest.mark.parametrize(
    ("asked", "offset", "told"),
    [(0, 3, None), (0, 4, (0, 3)), (3, 3, (0, 3)), (5, 4, None), (5, 6, (5, 5)), (6, 4, errors.OFFSET_OUT_OF_RANGE)],
)
def test_a_caller_with_diverging_records_gets_the_diverging_epoch(world, peer, asked, offset, told):
    """Epoch 0 ended at offset 3, and 5 is the present one."""
    topic_id = world.create_topic("t")
    fill(world, "t", 0, 3)
    world.broker.image.partition("t", 0).leader_epoch = 5
    world.broker.partitions.get("t", 0).lead(5, sole_replica=True)
    fill(world, "t", 0, 2)
    request = fetch("t", {0: {"fetch_offset": offset, "last_fetched_epoch": asked}}, topic_id=topic_id)
    row = rows_of(peer.ask(request, 13))[0]
    diverging = row.diverging_epoch
    if told == errors.OFFSET_OUT_OF_RANGE:
        assert row.error_code == told
        return
    assert row.error_code == 0
    assert (diverging.epoch, diverging.end_offset) == (told or (-1, -1))
    assert bool(bytes(row.records)) is (told is None)


def test_the_next_request_of_the_connection_ends_a_delayed_fetch(world, peer):
    """Spark sends ListOffsets on the connection of its delayed prefetch. Kafka lets it wait, this broker does not."""
    world.create_topic("t")
    assert peer.ask(fetch("t", {0: 0}, max_wait_ms=500), 11) is NOTHING
    peer.send(messages.ApiVersionsRequest(), 0)
    assert [type(answer).__name__ for answer in peer.answers] == ["FetchResponse", "ApiVersionsResponse"]


def test_a_request_that_arrives_together_with_the_fetch_ends_it(world, peer):
    """The second of two requests that come in one read is there before the first is delayed."""
    world.create_topic("t")
    two = [peer.encode(fetch("t", {0: 0}, max_wait_ms=500), 11), peer.encode(messages.ApiVersionsRequest(), 0)]
    peer.send_bytes(b"".join(two))
    assert [type(answer).__name__ for answer in peer.answers] == ["FetchResponse", "ApiVersionsResponse"]


def test_each_of_several_delayed_fetches_ends_for_the_next(world, peer):
    world.create_topic("t")
    frame = [peer.encode(fetch("t", {0: 0}, max_wait_ms=500), 11) for _ in range(3)]
    peer.send_bytes(b"".join(frame))
    assert len(peer.answers) == 2


def test_half_a_request_does_not_end_a_delayed_fetch(world, peer):
    world.create_topic("t")
    assert peer.ask(fetch("t", {0: 0}, max_wait_ms=500), 11) is NOTHING
    frame = peer.encode(messages.ApiVersionsRequest(), 0)
    peer.send_bytes(frame[:-1])
    assert peer.answers == []
    peer.send_bytes(frame[-1:])
    assert len(peer.answers) == 2


def test_the_connection_of_a_delayed_fetch_may_end(world, peer):
    world.create_topic("t")
    assert peer.ask(fetch("t", {0: 0}, max_wait_ms=500), 11) is NOTHING
    world.broker.connection_lost(peer.connection)
    assert world.broker.purgatory.count == 0
    fill(world, "t")


def test_deleting_the_topic_ends_a_delayed_fetch(world, peer):
    world.create_topic("t")
    assert peer.ask(fetch("t", {0: 0}, max_wait_ms=60_000), 11) is NOTHING
    delete = messages.DeleteTopicsRequest(
        topics=[messages.DeleteTopicsRequest.DeleteTopicState(name="t")], timeout_ms=1000
    )
    world.connect().ask(delete, 6)
    assert rows_of(peer.answers[-1])[0].error_code == errors.UNKNOWN_TOPIC_OR_PARTITION


def test_deleting_one_of_several_topics_ends_a_delayed_fetch(world, peer):
    """As in Kafka, which ends a wait if one of its partitions is gone."""
    for name in ("t", "u"):
        world.create_topic(name)
    waiting = world.connect()
    request = fetch("t", {0: 0}, max_wait_ms=60_000)
    request.topics += fetch("u", {0: 0}).topics
    assert waiting.ask(request, 8) is NOTHING
    peer.ask(messages.DeleteTopicsRequest(topic_names=["u"], timeout_ms=1000), 5)
    world.turn()
    (answer,) = waiting.answers
    rows = [
        (topic.topic, row.error_code, row.aborted_transactions)
        for topic in answer.responses
        for row in topic.partitions
    ]
    assert rows == [("t", 0, None), ("u", errors.UNKNOWN_TOPIC_OR_PARTITION, None)]


def test_limits_cut_at_whole_batches_but_one_batch_is_always_given(world, peer):
    world.create_topic("t", 2)
    fill(world, "t", 0, 20, size=1000)
    fill(world, "t", 1, 20, size=1000)
    row = rows_of(peer.ask(fetch("t", {0: 0}, partition_max_bytes=3500), 11))[0]
    assert 1 <= len(values(row)) <= 3
    rows = rows_of(peer.ask(fetch("t", {0: 0, 1: 0}, max_bytes=10), 11))
    assert len(values(rows[0])) == 1, "one batch above the limit, so that the consumer gets on"
    assert bytes(rows[1].records) == b"", "and only one"


@pytest.mark.parametrize("isolation_level", [0, 1])
@pytest.mark.parametrize("version", range(4, 18))
def test_the_fast_path_and_the_handler_answer_the_same_bytes(world, version, isolation_level, monkeypatch):
    topic_id = world.create_topic("topic", 2)
    fill(world, "topic", 1, 30, size=1000)
    sent = []
    for fast in (True, False):
        served = watch_fast_paths(world, fast, monkeypatch)
        peer = world.connect()
        raw = []
        peer.take = raw.append
        ids = {"topic_id": topic_id} if version >= 13 else {}
        peer.send(
            fetch(
                "topic",
                {1: 3},
                max_bytes=9000,
                isolation_level=isolation_level,
                rack_id="r" if version >= 11 else "",
                **ids,
            ),
            version,
        )
        peer.send(
            fetch(
                "topic",
                {1: 0},
                partition_max_bytes=5000,
                max_wait_ms=500,
                min_bytes=10,
                isolation_level=isolation_level,
                **ids,
            ),
            version,
        )
        monkeypatch.undo()
        assert served == [fast, fast]
        assert len(b"".join(raw)) > 9_000, "both requests got records"
        sent.append(b"".join(raw))
    assert sent[0] == sent[1]


@pytest.mark.parametrize("version", seeds.sampled(range(4, 18), 5))
def test_both_ways_list_the_same_aborted_transactions(world, version, monkeypatch):
    """Of a log with transactions in several segments; some answers overlap several aborted ones, some none."""
    topic_id = world.create_topic("topic", segment_bytes=1 << 20)
    log = world.broker.partitions.get("topic", 0)
    for number in range(40):
        for producer_id in (1, 2):
            records = batch(
                b"v" * 300, producer_id=producer_id, producer_epoch=0, base_sequence=number, is_transactional=True
            )
            log.append(memoryview(bytearray(records)), NOW_MS, origin=VERIFIED_CLIENT)
        log.append_end_marker(1, 0, 0, NOW_MS, is_abort=number % 3 == 0)
        log.append_end_marker(2, 0, 0, NOW_MS, is_abort=number == 20)
        if number in (10, 30):
            log.write_pending()
            log.roll(NOW_MS)
    log.write_pending()
    log.advance_high_watermark(log.end_offset)
    sent, counts = [], set()
    for fast in (True, False):
        served = watch_fast_paths(world, fast, monkeypatch)
        peer = world.connect()
        raw = []
        peer.take = raw.append
        ids = {"topic_id": topic_id} if version >= 13 else {}
        for offset in range(0, log.end_offset, 3):
            for size in (1, 2000, 8000):
                asked = fetch("topic", {0: offset}, partition_max_bytes=size, isolation_level=1, **ids)
                peer.send(asked, version)
        monkeypatch.undo()
        assert set(served) == {fast}
        sent.append(b"".join(raw))
    assert sent[0] == sent[1]
    reader = world.connect()
    everything = {entry for segment in log.segments for entry in segment.aborted}
    for offset in range(log.end_offset):
        row = rows_of(reader.ask(fetch("topic", {0: offset}, isolation_level=1, **ids), version))[0]
        told = {(each.producer_id, each.first_offset) for each in row.aborted_transactions}
        last = max((header.last_offset for header in batches_of(bytes(row.records))), default=-1)
        needed = {entry[:2] for entry in everything if entry.first_offset <= last and entry.last_offset > offset}
        assert needed <= told
        counts.add(len(told))
    assert max(counts) > 1 and min(counts) == 0


@pytest.mark.parametrize("seed", range(5))
def test_a_damaged_frame_has_the_same_answer_with_and_without_the_fast_path(world, seed, monkeypatch):
    """A flipped byte gives the same answer, or the same end of the connection."""
    generator = random.Random(seed)
    topic_id = world.create_topic("topic", 2)
    fill(world, "topic", 0, 3)
    for _ in range(60):
        version = generator.randrange(4, 18)
        frame = bytearray(
            world.connect().encode(fetch("topic", {0: 1}, topic_id=topic_id if version >= 13 else bytes(16)), version)
        )
        for _ in range(generator.randrange(1, 4)):
            frame[generator.randrange(8, len(frame))] = generator.choice(
                (0, 1, 2, 3, 127, 128, 255, generator.randrange(256))
            )
        outcomes = []
        for fast in (True, False):
            if not fast:
                watch_fast_paths(world, False, monkeypatch)
            peer = world.connect()
            raw = []
            peer.take = raw.append
            peer.send_bytes(bytes(frame))
            outcomes.append((b"".join(raw), peer.closed is None, peer.connection.delayed is None))
            if not outcomes[-1][2]:
                peer.end()
            monkeypatch.undo()
        assert outcomes[0] == outcomes[1], bytes(frame)


class TestSessions:
    """KIP-227."""

    @pytest.fixture
    def opened(self, world, peer):
        world.create_topic("t", 3)
        fill(world, "t", 0)
        answer = peer.ask(fetch("t", {0: 0, 1: 0, 2: 0}, session_epoch=0), 11)
        assert answer.session_id > 0
        assert len(rows_of(answer)) == 3, "the first answer names every partition"
        return answer.session_id

    def test_an_incremental_answer_has_only_news(self, world, peer, opened):
        quiet = peer.ask(fetch("t", {0: 1}, session_id=opened, session_epoch=1), 11)
        assert quiet.responses == [] and quiet.session_id == opened
        fill(world, "t", 2)
        news = peer.ask(fetch("t", {}, session_id=opened, session_epoch=2), 11)
        assert list(rows_of(news)) == [2]

    def test_a_forgotten_partition_is_left_out(self, world, peer, opened):
        peer.ask(fetch("t", {}, session_id=opened, session_epoch=1, forget=[1]), 11)
        fill(world, "t", 1)
        assert 1 not in rows_of(peer.ask(fetch("t", {}, session_id=opened, session_epoch=2), 11))

    def test_a_wrong_session_or_epoch_is_an_error(self, world, peer, opened):
        assert (
            peer.ask(fetch("t", {}, session_id=opened + 1, session_epoch=1), 11).error_code
            == errors.FETCH_SESSION_ID_NOT_FOUND
        )
        assert (
            peer.ask(fetch("t", {}, session_id=opened, session_epoch=5), 11).error_code
            == errors.INVALID_FETCH_SESSION_EPOCH
        )
        assert (
            peer.ask(fetch("t", {}, session_id=opened, session_epoch=1), 13).error_code
            == errors.FETCH_SESSION_TOPIC_ID_ERROR
        )

    def test_an_incremental_fetch_waits_when_there_is_no_news(self, world, peer, opened):
        assert peer.ask(fetch("t", {0: 1}, session_id=opened, session_epoch=1, max_wait_ms=500), 11) is NOTHING
        fill(world, "t", 1)
        assert list(rows_of(peer.answers[-1])) == [1]

    def test_epoch_minus_one_closes_the_session(self, world, peer, opened):
        answer = peer.ask(fetch("t", {0: 0}, session_id=opened, session_epoch=-1), 11)
        assert answer.session_id == 0
        assert (
            peer.ask(fetch("t", {}, session_id=opened, session_epoch=1), 11).error_code
            == errors.FETCH_SESSION_ID_NOT_FOUND
        )

    def test_a_full_cache_gives_no_session(self, tmp_path):
        from tests.simulation.world import World

        world = World(tmp_path, max_incremental_fetch_session_cache_slots=2)
        world.create_topic("t")
        peer = world.connect()
        ids = [peer.ask(fetch("t", {0: 0}, session_epoch=0), 11).session_id for _ in range(3)]
        assert ids[0] > 0 and ids[1] > 0 and ids[2] == 0
        assert len(world.broker.fetch_sessions) == 2
        world.advance(121)
        assert peer.ask(fetch("t", {0: 0}, session_epoch=0), 11).session_id > 0, (
            "a session that was unused for two minutes is replaced"
        )

    def test_epochs_wrap_to_one(self, world, opened):
        session = world.broker.fetch_sessions.get(opened)
        session.epoch = 2**31 - 1
        session.next_epoch()
        assert session.epoch == 1


@pytest.mark.parametrize("version", [4, 11, 13, 18])
def test_an_unknown_isolation_level_is_refused(world, peer, version):
    """Kafka refuses the whole request; before version 13 each row has the error too."""
    topic_id = world.create_topic("t")
    fill(world, "t", 0, 3)
    asked = {"topic_id": topic_id} if version >= 13 else {}
    answer = peer.ask(fetch("t", {0: 0}, isolation_level=2, **asked), version)
    assert answer.error_code == (errors.UNKNOWN_SERVER_ERROR if version >= 7 else 0)
    rows = [row for topic in answer.responses for row in topic.partitions]
    assert [row.error_code for row in rows] == ([] if version >= 13 else [errors.UNKNOWN_SERVER_ERROR])


@pytest.mark.parametrize("limits", [{"max_bytes": -1}, {"partition_max_bytes": -1}, {"partition_max_bytes": -(2**31)}])
def test_a_negative_limit_is_an_error(world, peer, limits):
    """Only if there are records to read; at the end of the log nothing is read."""
    world.create_topic("t", 2)
    fill(world, "t", 0, 3)
    rows = rows_of(peer.ask(fetch("t", {0: 0, 1: 0}, **limits), 11))
    assert (rows[0].error_code, rows[0].high_watermark, rows[0].log_start_offset) == (
        errors.UNKNOWN_SERVER_ERROR,
        -1,
        -1,
    )
    assert (rows[1].error_code, rows[1].high_watermark) == (0, 0)
