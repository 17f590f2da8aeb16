"""What a replica knows of its log, beside a log that is a list of epochs."""

from hypothesis import given, settings, strategies as st

from pykafkad.raft.events import Snapshot
from pykafkad.raft.log_view import DIVERGING, SNAPSHOT, VALID, LogView
from tests.seeds import examples

EPOCHS = st.lists(st.integers(1, 5), max_size=12).map(sorted)


def view_of(epochs):
    """The view of a log whose records have these epochs."""
    view = LogView()
    for epoch in epochs:
        view.appended(view.end_offset + 1, epoch)
    view.synced_offset = view.end_offset
    return view


def common_length(one, other):
    """How many records two logs have in common, if records with the same offset and epoch are the same."""
    length = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        length += 1
    return length


@settings(max_examples=examples(300), deadline=None)
@given(EPOCHS, st.data())
def test_a_follower_cuts_its_log_to_what_the_leader_has(leader_epochs, data):
    """Two logs that can stand beside each other: where they are equal at an offset, they are equal before it."""
    kept = data.draw(st.integers(0, len(leader_epochs)))
    lost = data.draw(EPOCHS)
    follower_epochs = leader_epochs[:kept] + [
        each for each in lost if each >= (leader_epochs[kept - 1] if kept else 1) and each not in leader_epochs[kept:]
    ]
    expected = common_length(leader_epochs, follower_epochs)
    leader, follower = view_of(leader_epochs), view_of(follower_epochs)
    for _ in range(10):
        kind, epoch, end_offset = leader.validate(follower.end_offset, follower.last_epoch)
        if kind == VALID:
            break
        assert kind == DIVERGING
        cut = follower.truncation_offset(epoch, end_offset)
        assert expected <= cut < follower.end_offset
        follower.truncated(cut)
    assert follower.end_offset == expected
    assert follower.epochs == view_of(follower_epochs[:expected]).epochs


@settings(max_examples=examples(300), deadline=None)
@given(EPOCHS, st.integers(0, 14), st.integers(0, 6))
def test_end_of_an_epoch(epochs, offset, epoch):
    view = view_of(epochs)
    found, end_offset = view.end_of(epoch)
    below = [each for each in epochs if each <= epoch]
    if below or not epochs:
        assert (found, end_offset) == ((below[-1], len(below)) if below else (0, 0))
    else:
        assert end_offset == 0
    kind, *_ = view.validate(offset, epoch)
    is_there = offset == 0 or (offset <= len(epochs) and epochs[offset - 1] == epoch)
    if is_there:
        assert kind == VALID


def test_a_log_that_begins_at_a_snapshot_sends_those_before_it_to_the_snapshot():
    view = view_of([1, 1, 2, 2, 4])
    snapshot = Snapshot(3, 2, 10)
    view.snapshot = snapshot
    view.pruned(snapshot)
    assert (view.start_offset, view.epochs) == (3, [(2, 3), (4, 4)])
    for offset, epoch in ((0, 0), (2, 1), (3, 1), (4, 1)):
        assert view.validate(offset, epoch) == (SNAPSHOT, 3, 2)
    assert view.validate(3, 2) == (VALID, 3, 2)
    assert view.validate(4, 2) == (VALID, 4, 2)
    assert view.validate(5, 3) == (DIVERGING, 2, 4)


def test_a_log_that_is_all_in_a_snapshot():
    view = view_of([1, 1, 2])
    snapshot = Snapshot(3, 2, 10)
    view.snapshot = snapshot
    view.pruned(snapshot)
    assert (view.epochs, view.last_epoch, view.end_offset) == ([], 2, 3)
    assert view.validate(3, 2) == (VALID, 3, 2)
    view.appended(4, 5)
    assert view.validate(3, 2) == (VALID, 3, 2)


def test_a_snapshot_takes_the_place_of_the_log():
    view = view_of([1, 3])
    view.replaced(Snapshot(7, 2, 10))
    assert (view.start_offset, view.end_offset, view.synced_offset, view.last_epoch) == (7, 7, 7, 2)


def test_whoever_has_nothing_gets_the_snapshot():
    view = view_of([1, 1])
    assert view.validate(0, 0) == (VALID, 0, 0)
    view.snapshot = Snapshot(1, 1, 10)
    assert view.validate(0, 0) == (SNAPSHOT, 1, 1)
    assert view.validate(1, 1) == (VALID, 1, 1)
