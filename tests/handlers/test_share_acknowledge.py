"""ShareAcknowledge: records come back."""

import pytest

from pykafkad.errors import name
from tests.handlers.share_requests import Share, acquired, codes, rows_of

OTHER = "22222222-2222-2222-2222-222222222222"


@pytest.fixture
def share(world):
    made = Share(world).begin_at_the_start().join().produce(*b"abcdef".split(b"c")).produce(b"x", b"y", b"z")
    made.fetch(max_wait_ms=100)
    world.turn()
    assert acquired(made.peer.answers[-1]) == [(0, 4, 1)]
    made.session = 1
    return made


@pytest.mark.parametrize("version", [1, 2])
def test_records_are_accepted_released_and_rejected(share, version):
    assert codes(share.acknowledge((0, 1, [1]), (2, 2, [3]), (3, 4, [2]), version=version)) == {0: "NONE"}
    assert acquired(share.fetch()) == [(3, 4, 2)]
    assert codes(share.acknowledge((3, 4, [0, 1]), version=version)) == {0: "NONE"}
    assert acquired(share.fetch()) == []


def test_what_is_accepted_stays_so_after_a_restart(world, share):
    assert codes(share.acknowledge((0, 2, [1]))) == {0: "NONE"}
    world.stop()
    again = world.restart()
    other = Share(again, OTHER, topic_id=share.topic_id).find()
    other.fetch(max_wait_ms=1_000)
    for _ in range(10):
        again.advance(0.1)
    assert acquired(other.peer.answers[-1]) == [(3, 4, 1)]
    assert again.runtime.metrics.unexpected_errors == 0


def test_a_lock_is_renewed(world, share):
    world.advance(20)
    answer = share.acknowledge((0, 4, [4]), is_renew_ack=True)
    assert codes(answer) == {0: "NONE"} and answer.acquisition_lock_timeout_ms == 30_000
    world.advance(20)
    assert codes(share.acknowledge((0, 4, [1]))) == {0: "NONE"}


BAD_BATCHES = [
    ([(3, 2, [1])], "INVALID_REQUEST"),
    ([(3, 4, [1]), (0, 1, [1])], "INVALID_REQUEST"),
    ([(0, 1, [])], "INVALID_REQUEST"),
    ([(0, 2, [1, 1])], "INVALID_REQUEST"),
    ([(0, 1, [5])], "INVALID_REQUEST"),
    ([(0, 1, [4])], "INVALID_REQUEST"),
    ([(0, 1, [-1])], "INVALID_REQUEST"),
    ([(7, 8, [1])], "INVALID_REQUEST"),
    ([(0, 8, [1])], "INVALID_REQUEST"),
]


@pytest.mark.parametrize(("batches", "error"), BAD_BATCHES)
def test_bad_batches(share, batches, error):
    assert codes(share.acknowledge(*batches)) == {0: error}
    assert codes(share.acknowledge((0, 4, [1]))) == {0: "NONE"}, "nothing has changed"


def test_somebody_elses_records(world, share):
    other = Share(world, OTHER, topic_id=share.topic_id)
    other.fetch()
    row = rows_of(other.acknowledge((0, 4, [1])))[0]
    assert (name(row.error_code), row.error_message) == (
        "INVALID_RECORD_STATE",
        "Member is not the owner of batch record",
    )


def test_bad_sessions(world, share):
    assert name(share.acknowledge((0, 0, [1]), epoch=0).error_code) == "INVALID_SHARE_SESSION_EPOCH"
    assert name(share.acknowledge((0, 0, [1]), epoch=5).error_code) == "INVALID_SHARE_SESSION_EPOCH"
    assert name(share.acknowledge((0, 0, [1]), member_id=OTHER).error_code) == "SHARE_SESSION_NOT_FOUND"
    assert name(share.acknowledge((0, 0, [1]), member_id="").error_code) == "INVALID_REQUEST"


def test_unknown_partitions(share):
    assert codes(share.acknowledge((0, 0, [1]), topic_id=bytes(range(16)))) == {0: "UNKNOWN_TOPIC_ID"}
    assert codes(share.acknowledge((0, 0, [1]), partition=3)) == {3: "UNKNOWN_TOPIC_OR_PARTITION"}


def test_the_last_request_releases_the_rest(world, share):
    assert codes(share.acknowledge((0, 1, [1]), epoch=-1)) == {0: "NONE"}
    other = Share(world, OTHER, topic_id=share.topic_id)
    assert acquired(other.fetch()) == [(2, 4, 2)]
