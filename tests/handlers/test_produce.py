"""Produce: appends and answers, and that the fast path and the handler behave alike."""

import struct

import pytest

from pykafkad import errors
from pykafkad.errors import StorageFailure
from pykafkad.wire.records import iterate_records
from tests.handlers.requests import NOW_MS, batch, fetch, produce, watch_fast_paths
from tests.simulation.world import NOTHING


def values(row):
    """The values of all records in a fetch answer's row."""
    found, data = [], memoryview(bytes(row.records))
    while data:
        size = int.from_bytes(data[8:12], "big") + 12
        found += [record.value for record in iterate_records(data[:size])]
        data = data[size:]
    return found


def row_of(answer):
    return answer.responses[0].partition_responses[0]


@pytest.mark.parametrize("version", range(3, 14))
@pytest.mark.parametrize("acks", [1, -1])
def test_every_version_appends_and_answers_the_base_offset(world, peer, version, acks):
    topic_id = world.create_topic("t", 2)
    names = {"topic_id": topic_id} if version >= 13 else {}
    first = row_of(peer.ask(produce("t", {1: batch(b"a", b"b")}, acks=acks, **names), version))
    second = row_of(peer.ask(produce("t", {1: batch(b"c")}, acks=acks, **names), version))
    assert (first.index, first.error_code, first.base_offset, first.log_append_time_ms) == (1, 0, 0, -1)
    assert (second.error_code, second.base_offset) == (0, 2)
    assert second.log_start_offset == (0 if version >= 5 else -1)
    answer = peer.ask(fetch("t", {1: 0}), 11)
    assert values(answer.responses[0].partitions[0]) == [b"a", b"b", b"c"]


@pytest.mark.parametrize("version", range(3, 14))
def test_the_fast_path_and_the_handler_answer_the_same_bytes(tmp_path, version, monkeypatch):
    from tests.simulation.world import World

    sent = []
    for fast in (True, False):
        world = World(tmp_path / str(fast))
        topic_id = world.create_topic("topic", 3)
        served = watch_fast_paths(world, fast, monkeypatch)
        peer = world.connect()
        raw = []
        peer.take = raw.append
        for index in (0, 2):
            peer.send(
                produce("topic", {index: batch(b"x" * 300)}, topic_id=topic_id if version >= 13 else bytes(16)), version
            )
        monkeypatch.undo()
        assert served == [fast, fast]
        sent.append(b"".join(raw).replace(topic_id, b"*" * 16))
    assert sent[0] == sent[1]


@pytest.mark.parametrize("version", (8, 13))
def test_a_frame_that_is_cut_is_not_completed_from_the_previous_frame(world, peer, version):
    """The buffer still holds the bytes of the previous frame behind the short one."""
    topic_id = world.create_topic("topic")
    request = produce("topic", {0: batch(b"x")}, topic_id=topic_id if version >= 13 else bytes(16))
    whole = peer.encode(request, version)
    peer.send_bytes(whole)
    assert peer.answers[0].responses[0].partition_responses[0].error_code == 0
    for end in range(12, len(whole)):
        other = world.connect()
        other.take = bytes
        other.send_bytes(whole)
        other.send_bytes(struct.pack(">i", end - 4) + whole[4:end])
        assert other.closed, f"a frame of {end} of {len(whole)} bytes was served"


def test_the_fast_path_remembers_a_limited_number_of_short_names(world, peer):
    """Clients may send long names, or a new one each time."""
    from pykafkad.server import produce_fast_path

    world.create_topic("topic")
    (fast,) = {serve.__self__ for word, serve in world.broker.fast_paths.items() if word >> 16 == 0}
    peer.send(produce("topic", {0: batch(b"x")}), 8, client_id="c" * 5000)
    assert peer.answers[-1].responses[0].partition_responses[0].error_code == 0
    assert fast._preambles[8] == {}
    for number in range(produce_fast_path._MAX_REMEMBERED + 10):
        fast._preambles[8][b"%d" % number] = None
    peer.send(produce("topic", {0: batch(b"x")}), 8, client_id="short")
    assert len(fast._preambles[8]) == 1


def test_acks_0_has_no_answer_and_is_written(world, peer):
    world.create_topic("t")
    assert peer.ask(produce("t", {0: batch(b"quiet")}, acks=0), 8) is NOTHING
    assert values(peer.ask(fetch("t", {0: 0}), 11).responses[0].partitions[0]) == [b"quiet"]
    assert peer.closed is None


def test_acks_0_with_an_error_closes_the_connection(world, peer):
    """No answer can carry the error; the client asks for metadata again."""
    assert peer.ask(produce("nowhere", {0: batch(b"lost")}, acks=0), 8) is NOTHING
    assert "acks=0" in peer.closed


def test_one_bad_partition_does_not_fail_the_others(world, peer):
    world.create_topic("t", 2)
    damaged = bytearray(batch(b"damaged"))
    damaged[-1] ^= 1
    rows = (
        peer.ask(produce("t", {0: bytes(damaged), 1: batch(b"good"), 9: batch(b"none")}), 9)
        .responses[0]
        .partition_responses
    )
    assert [row.error_code for row in rows] == [errors.CORRUPT_MESSAGE, 0, errors.UNKNOWN_TOPIC_OR_PARTITION]
    assert rows[0].base_offset == -1
    assert rows[1].base_offset == 0


@pytest.mark.parametrize(
    ("request_changes", "version", "code"),
    [
        ({"acks": 2}, 9, errors.INVALID_REQUIRED_ACKS),
        ({"acks": -2}, 3, errors.INVALID_REQUIRED_ACKS),
        ({"topic": "__consumer_offsets"}, 9, errors.INVALID_TOPIC_EXCEPTION),
        ({"topic": "nowhere"}, 9, errors.UNKNOWN_TOPIC_OR_PARTITION),
        ({"topic_id": b"\x07" * 16}, 13, errors.UNKNOWN_TOPIC_ID),
    ],
)
def test_each_refusal_has_its_code(world, peer, request_changes, version, code):
    world.create_topic("t")
    topic = request_changes.pop("topic", "t")
    row = row_of(peer.ask(produce(topic, {0: batch(b"v")}, **request_changes), version))
    assert (row.error_code, row.base_offset) == (code, -1)


def test_a_transactional_id_matters_only_to_batches_of_a_transaction(world, peer):
    """As in Kafka, the id of a request with other batches changes nothing."""
    world.create_topic("t")
    plain = row_of(peer.ask(produce("t", {0: batch(b"v")}, transactional_id="tx"), 9))
    assert (plain.error_code, plain.base_offset) == (0, 0)


def test_a_sole_replica_satisfies_any_min_insync_replicas(world, peer):
    """Kafka caps min.insync.replicas at the number of replicas: with one, acks=all is served."""
    world.create_topic("t", 1, min_insync_replicas=2)
    for acks in (-1, 1):
        assert row_of(peer.ask(produce("t", {0: batch(b"v")}, acks=acks), 9)).error_code == 0


def test_pipelined_requests_are_answered_in_order(world, peer):
    world.create_topic("t", 1)
    peer.send_bytes(b"".join(peer.encode(produce("t", {0: batch(b"%d" % number)}), 7) for number in range(5)))
    assert [row_of(answer).base_offset for answer in peer.answers] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("fast", [True, False])
def test_the_answer_has_the_error_of_a_failed_write(world, peer, fast, monkeypatch, capfd):
    """The answer is encoded when the batch is gathered. If the write at the end of the turn fails, it must not leave as
    a success."""
    world.create_topic("t", 2)
    good = world.broker.partitions.get("t", 1)
    log = world.broker.partitions.get("t", 0)
    assert good.end_offset == log.end_offset == 0
    kind = type(log._active.file)
    pwrite = kind.pwrite

    def broken(self, data, position):
        if self is log._active.file:
            raise StorageFailure("write", self.path, OSError(28, "No space left on device"))
        return pwrite(self, data, position)

    monkeypatch.setattr(kind, "pwrite", broken)
    partitions = {0: batch(b"lost")} if fast else {0: batch(b"lost"), 1: batch(b"kept")}
    rows = peer.ask(produce("t", partitions), 9).responses[0].partition_responses
    assert (rows[0].error_code, rows[0].base_offset) == (errors.KAFKA_STORAGE_ERROR, -1)
    if not fast:
        assert (rows[1].error_code, rows[1].base_offset) == (0, 0)
    again = peer.ask(produce("t", {0: batch(b"again")}), 9).responses[0].partition_responses[0]
    assert again.error_code == errors.KAFKA_STORAGE_ERROR, "the log stays offline until a restart has recovered it"
    read = peer.ask(fetch("t", {0: 0}), 11).responses[0].partitions[0]
    assert (read.error_code, read.high_watermark, bytes(read.records)) == (0, 0, b""), (
        "the written records can still be read"
    )
    assert world.runtime.metrics.writes_failed == 1
    assert capfd.readouterr().err.count("partition-offline topic=t partition=0") == 1


def test_a_new_topic_of_the_same_name_is_not_the_deleted_one(world, peer):
    """The fast path must not remember the deleted topic."""
    from pykafkad.wire import messages

    world.create_topic("t")
    assert row_of(peer.ask(produce("t", {0: batch(b"old", b"old")}), 9)).base_offset == 0
    delete = messages.DeleteTopicsRequest(
        topics=[messages.DeleteTopicsRequest.DeleteTopicState(name="t")], timeout_ms=1000
    )
    assert peer.ask(delete, 6).responses[0].error_code == 0
    assert row_of(peer.ask(produce("t", {0: batch(b"none")}), 9)).error_code == errors.UNKNOWN_TOPIC_OR_PARTITION
    world.create_topic("t")
    assert row_of(peer.ask(produce("t", {0: batch(b"new")}), 9)).base_offset == 0


def test_a_failed_write_of_a_large_batch_is_answered_and_logged_once(world, peer, monkeypatch, capfd):
    """Large batches are not written at the end of the turn."""
    world.create_topic("t")
    log = world.broker.partitions.get("t", 0)
    assert log.end_offset == 0

    def broken(self, data, position):
        raise StorageFailure("write", self.path, OSError(28, "No space left on device"))

    monkeypatch.setattr(type(log._active.file), "pwrite", broken)
    for _ in range(2):
        row = row_of(peer.ask(produce("t", {0: batch(b"x" * 50_000)}), 9))
        assert (row.error_code, row.base_offset) == (errors.KAFKA_STORAGE_ERROR, -1)
    logged = capfd.readouterr().err
    assert logged.count("partition-offline topic=t partition=0") == 1 and "No space left" in logged


def test_the_clock_of_a_broker_that_stamps_records(world, peer):
    world.create_topic("t", 1, message_timestamp_type="LogAppendTime")
    assert row_of(peer.ask(produce("t", {0: batch(b"v", timestamp_ms=5)}), 9)).log_append_time_ms == NOW_MS


def test_null_records_are_an_error_of_their_partition(world, peer):
    """In Kafka the append fails unexpectedly, and the partition has the error."""
    world.create_topic("t", partitions=2)
    for version in (3, 9):
        answer = peer.ask(produce("t", {0: None, 1: batch(b"v")}), version)
        assert [row.error_code for row in answer.responses[0].partition_responses] == [errors.UNKNOWN_SERVER_ERROR, 0]
