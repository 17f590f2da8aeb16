"""A follower by hand: what it asks, what it takes, what it refuses, and where it cuts its log."""

from types import SimpleNamespace

import pytest

from pykafkad import errors
from pykafkad.log.follower import (
    AskOffsets,
    BeginAt,
    Follower,
    Pause,
    Question,
    TakeWatermarks,
    TruncateTo,
    truncation_point,
)
from pykafkad.log.leader_epochs import LeaderEpochs
from pykafkad.wire.batch import PREFIX, build_batch

SAME = (-1, -1)


def stored(base_offset, epoch=5, count=1):
    """A batch as it lies in a leader's log."""
    batch = build_batch([(None, b"v")] * count, timestamp_ms=1)
    PREFIX.pack_into(batch, 0, base_offset, len(batch) - 12, epoch)
    return batch


def row(error_code=0, high_watermark=90, log_start_offset=10):
    return SimpleNamespace(error_code=error_code, high_watermark=high_watermark, log_start_offset=log_start_offset)


@pytest.fixture
def machine():
    """It ends at 100; its last batches are of epoch 3, and its leader's epoch is 5."""
    return Follower(5, 100, LeaderEpochs([(1, 0), (3, 50)]))


def answered(machine, data=b"", *, error_code=0, diverging=SAME):
    return machine.answered(machine.question(), row(error_code), bytes(data), diverging)


def test_it_asks_from_its_end_with_the_epoch_of_its_last_batch(machine):
    assert machine.question() == Question(5, 100, 3)
    machine.log_changed(120)
    assert machine.question() == Question(5, 120, 3)


def test_it_takes_whole_batches_and_then_the_watermarks(machine):
    first, second = stored(100, count=3), stored(103)
    for cut in (0, 1, 61, len(second) - 1):
        batches, marks = answered(machine, first + second[:cut])
        assert ([each.base_offset for each in batches.headers], batches.size_bytes) == ([100], len(first)), cut
        assert marks == TakeWatermarks(90, 10)
    batches, _ = answered(machine, first + second)
    assert [each.end_offset for each in batches.headers] == [103, 104]
    assert answered(machine) == (TakeWatermarks(90, 10),)


def test_offsets_may_be_missing_as_in_a_compacted_log(machine):
    batches, _ = answered(machine, stored(105) + stored(200))
    assert [each.base_offset for each in batches.headers] == [105, 200]


def test_the_first_batch_may_begin_before_the_offset(machine):
    """The leader's log start, or the follower's end, lies within a batch."""
    batches, _ = answered(machine, stored(99, count=2))
    assert [each.base_offset for each in batches.headers] == [99]


def corrupt(batch):
    batch[-1] ^= 1
    return batch


@pytest.mark.parametrize(
    "data",
    [
        stored(98),
        stored(99, count=1),
        stored(100, count=3) + stored(102),
        stored(103) + stored(100),
        corrupt(stored(100)),
        stored(100) + corrupt(stored(101)),
        stored(100, epoch=2),
        stored(100, epoch=4) + stored(101, epoch=3),
        stored(100)[:16] + b"\1" + stored(100)[17:],
        stored(100)[:8] + b"\0\0\0\1" + stored(100)[12:],
        stored(100)[:8] + b"\xff\xff\xff\xff" + stored(100)[12:],
        stored(100)[:23] + b"\xff\xff\xff\xff" + stored(100)[27:],
    ],
    ids=["before", "below", "overlap", "back", "crc", "second crc", "old epoch", "epochs fall", "magic", "short",
         "negative", "delta"],
)  # fmt: skip
def test_batches_of_a_hostile_leader_are_refused_whole(machine, data):
    """Nothing of the answer counts, its high watermark neither."""
    (pause,) = answered(machine, data)
    assert type(pause) is Pause and not pause.is_usual
    assert machine.question() == Question(5, 100, 3)


def test_batches_above_the_epoch_of_the_question_are_left_out(machine):
    """The leader was deposed and took over another's log while the answer was on its way (KAFKA-18723)."""
    batches, _ = answered(machine, stored(100, epoch=5) + stored(101, epoch=6))
    assert [each.base_offset for each in batches.headers] == [100]
    assert answered(machine, stored(100, epoch=6)) == (TakeWatermarks(90, 10),)


def test_a_late_answer_changes_nothing(machine):
    asked = machine.question()
    machine.log_changed(120)
    assert machine.answered(asked, row(), bytes(stored(100)), SAME) == ()
    machine.log_changed(100)
    assert machine.answered(Question(4, 100, 3), row(errors.OFFSET_OUT_OF_RANGE), None, SAME) == ()


def test_logs_that_differ_are_cut_before_anything_else(machine):
    """Neither records nor the high watermark of the same answer count."""
    assert answered(machine, stored(100), diverging=(3, 80)) == (TruncateTo(80),)
    assert answered(machine, diverging=(1, 70)) == (TruncateTo(50),)
    assert answered(machine, diverging=(2, 70)) == (TruncateTo(50),), "the own epoch 1 ends there"


@pytest.mark.parametrize(
    ("diverging", "expected"),
    [((3, 80), 80), ((3, 130), 100), ((1, 30), 30), ((1, 60), 50), ((2, 45), 50), ((0, 5), 0), ((4, 70), 70)],
)
def test_where_a_log_is_cut(diverging, expected):
    assert truncation_point(LeaderEpochs([(1, 0), (3, 50)]), 100, *diverging) == expected


def test_a_follower_without_epochs_cuts_where_the_leader_says():
    assert truncation_point(LeaderEpochs(), 100, 4, 70) == 70
    assert truncation_point(LeaderEpochs(), 100, 4, 170) == 100


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [(0, 60, TruncateTo(60)), (150, 200, BeginAt(150)), (100, 200, None), (50, 100, None)],
)
def test_out_of_range_the_ends_of_the_leaders_log_decide(machine, start, end, expected):
    assert answered(machine, error_code=errors.OFFSET_OUT_OF_RANGE) == (AskOffsets(5),)
    assert machine.question() is None, "nothing is fetched meanwhile"
    (effect,) = machine.offsets_answered(5, 0, start, end)
    assert effect == expected or (expected is None and type(effect) is Pause)
    assert machine.question() is not None
    assert machine.offsets_answered(5, 0, start, end) == (), "it was not asked any more"


def test_an_error_of_the_ends_pauses_and_one_of_another_epoch_says_nothing(machine):
    answered(machine, error_code=errors.OFFSET_OUT_OF_RANGE)
    assert machine.offsets_answered(4, 0, 0, 60) == ()
    (pause,) = machine.offsets_answered(5, errors.NOT_LEADER_OR_FOLLOWER, -1, -1)
    assert pause.is_usual and machine.question() is not None


@pytest.mark.parametrize("code", [errors.NOT_LEADER_OR_FOLLOWER, errors.FENCED_LEADER_EPOCH, errors.UNKNOWN_TOPIC_ID])
def test_errors_of_a_change_of_leaders_pause(machine, code):
    assert answered(machine, stored(100), error_code=code) == (Pause(errors.name(code), True),)
    (pause,) = answered(machine, error_code=errors.UNKNOWN_SERVER_ERROR)
    assert not pause.is_usual
