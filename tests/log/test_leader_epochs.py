"""Leader epochs and their start offsets."""

from __future__ import annotations

import pytest

from pykafkad.log.leader_epochs import LeaderEpochs


def epochs(*entries):
    made = LeaderEpochs()
    for epoch, offset in entries:
        made.assign(epoch, offset)
    return made


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        (-1, (-1, -1)),
        (-2, (-2, 0)),
        (0, (0, 0)),
        (1, (1, 0)),
        (2, (2, 10)),
        (3, (2, 10)),
        (4, (4, 20)),
        (5, (4, 20)),
        (7, (7, 33)),
        (8, (-1, -1)),
    ],
)
def test_an_epoch_ends_where_the_next_one_starts(asked, answer):
    """The answer is the largest known epoch at or below the given one.

    For an epoch older than all it is that epoch with the first start offset. A newer epoch is unknown."""
    assert epochs((2, 0), (4, 10), (7, 20)).end_offset_for(asked, 33) == answer


def test_an_empty_log_has_no_epoch():
    assert LeaderEpochs().end_offset_for(0, 5) == (-1, -1)
    assert LeaderEpochs().latest == LeaderEpochs().epoch_for(3) == -1


def test_an_epoch_without_records_is_replaced():
    """After two elections without a record in between, only the later epoch begins at that offset."""
    assert epochs((1, 0), (2, 5), (3, 5)).entries == [(1, 0), (3, 5)]


def test_assigning_the_same_epoch_again_changes_nothing():
    made = epochs((1, 0))
    made.changed = False
    assert not made.assign(1, 9)
    assert not made.changed


def test_truncation_at_either_end_removes_epochs():
    made = epochs((1, 0), (2, 10), (3, 20))
    made.truncate_from_end(20)
    assert made.entries == [(1, 0), (2, 10)]
    made.truncate_from_start(5)
    assert made.entries == [(1, 5), (2, 10)]
    made.truncate_from_start(10)
    assert made.entries == [(2, 10)]
    made.truncate_from_start(50)
    assert made.entries == [(2, 50)]


def test_the_epoch_of_an_offset_is_found():
    made = epochs((1, 5), (3, 20))
    assert [made.epoch_for(offset) for offset in (4, 5, 19, 20, 99)] == [-1, 1, 1, 3, 3]


def test_the_file_has_kafkas_format():
    made = epochs((0, 0), (5, 100))
    assert made.to_text() == "0\n2\n0 0\n5 100\n"
    assert LeaderEpochs.from_text(made.to_text()).entries == made.entries
    assert LeaderEpochs.from_text("0\n0\n").entries == []


@pytest.mark.parametrize(
    "text", ["", "1\n0\n", "0\n2\n0 0\n", "0\n1\n0\n", "0\n2\n1 0\n1 5\n", "0\n2\n1 5\n2 3\n", "x\n0\n"]
)
def test_a_damaged_file_is_not_read(text):
    assert LeaderEpochs.from_text(text) is None
