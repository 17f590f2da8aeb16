"""One replica by hand: leaders, followers, snapshots, and peers that break the rules."""

import pytest

from pykafkad import errors
from pykafkad.metadata.quorum import format_state
from pykafkad.raft import events, forms
from pykafkad.raft.leader import MAX_PARKED_FETCHES
from pykafkad.raft.roles import MAX_EPOCH
from pykafkad.uuids import ZERO
from pykafkad.wire import messages
from tests.raft.member import CLUSTER, Member, batch, directory, fetch_request, vote_request
from tests.rows import in_turn


def row_of(reply):
    return forms.only_partition(reply.message)


# Leaders.


def test_a_leader_commits_what_a_majority_has_once_a_record_of_its_epoch_is_among_it():
    """Records of older epochs are not committed by their number alone."""
    member = Member(log=(0, 5, [(1, 0)]), state_file=format_state(1, -1, -1, ZERO)).become_leader()
    assert member.log.end_offset == 6
    member.ask(fetch_request(2, 1, 5))
    assert (member.high_watermark, row_of(member.replies[-1]).high_watermark) == (-1, -1)
    member.ask(fetch_request(2, 2, 6))
    assert member.high_watermark == 6
    assert row_of(member.replies[-1]).high_watermark == 6


def test_a_fetch_waits_for_records_or_for_its_time():
    member = Member().become_leader()
    member.ask(fetch_request(1, 1, 1))
    assert member.ask(fetch_request(1, 1, 1, high_watermark=1, replica=3)) is None
    member.step(events.Appended(2))
    reply = member.replies[-1]
    assert (type(reply), reply.offset) == (events.ReplyWithRecords, 1)
    member.sync()
    assert member.ask(fetch_request(1, 1, 2, high_watermark=1)) is not None
    assert member.ask(fetch_request(1, 1, 2, high_watermark=2)) is None
    member.wait()
    assert row_of(member.replies[-1]).high_watermark == 2
    assert member.ask(fetch_request(1, 1, 2, high_watermark=2, max_wait_ms=0)) is not None


def test_a_limited_number_of_fetches_waits():
    member = Member().become_leader()
    member.ask(fetch_request(1, 1, 1, replica=9))
    for number in range(MAX_PARKED_FETCHES):
        member.step(events.Received(number, fetch_request(1, 1, 1, replica=9)))
    assert len(member.role.parked) == MAX_PARKED_FETCHES
    assert member.ask(fetch_request(1, 1, 1, replica=9)) is not None


def test_fetches_that_wait_are_refused_when_the_leader_goes():
    member = Member().become_leader()
    member.ask(fetch_request(1, 1, 1, replica=3))
    member.ask(fetch_request(1, 1, 1, 1, replica=3))
    member.ask(vote_request(2, 1, 9))
    refused = [row_of(each) for each in member.replies if row_of(each).error_code == errors.NOT_LEADER_OR_FOLLOWER]
    assert [(each.current_leader.leader_id, each.current_leader.leader_epoch) for each in refused] == [(-1, 2)]


def test_a_leader_without_fetches_of_a_majority_resigns_and_those_that_it_hears_of_are_its_successors():
    member = Member((1, 2, 3, 4, 5)).become_leader()
    elected_at = member.now
    for _ in range(30):
        if member.state != "leader":
            break
        member.ask(fetch_request(1, 1, 1, replica=4, max_wait_ms=0))
        member.wait()
    assert member.state == "resigned"
    assert 3.0 <= member.now - elected_at < 3.5
    request = member.sent[-1].request
    assert [each.candidate_id for each in forms.only_partition(request).preferred_candidates] == [4, 2, 3, 5]


def test_a_leader_that_a_majority_follows_stays():
    member = Member().become_leader()
    for _ in range(30):
        member.ask(fetch_request(1, 1, 1, replica=3, max_wait_ms=0))
        member.wait()
    assert (member.state, member.epoch) == ("leader", 1)
    told = {each.peer for each in member.sent if type(each.request) is messages.BeginQuorumEpochRequest and each}
    assert told == {2, 3}


def test_a_leader_that_steps_down_is_succeeded_in_the_order_that_it_proposes():
    """The first asks at once, the others later, those that are not named last."""
    waits = []
    for successors in ([1, 2, 3], [2, 1, 3], [2, 3, 1], [2, 3]):
        member = Member((1, 2, 3, 4)).follow(4)
        member.fetched(leader_id=4)
        member.ask(forms.end_request(CLUSTER, 4, 1, [(each, directory(each)) for each in successors]))
        before = member.now
        member.wait_for("prospective")
        waits.append(member.now - before)
    assert waits == [0.0, 0.25, 0.5, 1.0]


def test_resign():
    member = Member().become_leader()
    member.step(events.Resign())
    assert member.state == "resigned"
    member.step(events.Resign())
    assert member.state == "resigned"


# Bad requests.

REFUSED = (
    ("another cluster", lambda request: setattr(request, "cluster_id", "other"), errors.INCONSISTENT_CLUSTER_ID),
    ("no topic", lambda request: request.topics.clear(), errors.INVALID_REQUEST),
    ("another partition", lambda request: _set_partition(request), errors.INVALID_REQUEST),
)


def _set_partition(request):
    row = request.topics[0].partitions[0]
    for name in ("partition", "partition_index"):
        if hasattr(row, name):
            setattr(row, name, 1)


def requests():
    """One of each kind."""
    return (
        vote_request(1),
        forms.begin_request(CLUSTER, (1, ZERO), 2, 1),
        forms.end_request(CLUSTER, 2, 1, []),
        fetch_request(1, 0, 0),
        forms.snapshot_request(CLUSTER, (2, ZERO), 1, (3, 1), 0, 100),
    )


@in_turn("name, change, error_code", REFUSED)
def test_a_request_is_refused_as_a_whole_for(name, change, error_code):
    for request in requests():
        member = Member()
        change(request)
        assert member.ask(request).message.error_code == error_code
        assert (member.epoch, member.state) == (0, "unattached")


@in_turn(
    "epoch, last_epoch, offset, error_code",
    (
        (0, 0, 0, errors.FENCED_LEADER_EPOCH),
        (2, 0, 0, errors.UNKNOWN_LEADER_EPOCH),
        (1, 2, 0, errors.INVALID_REQUEST),
        (1, -1, 0, errors.INVALID_REQUEST),
        (1, 1, -1, errors.INVALID_REQUEST),
    ),
)
def test_a_fetch_is_refused(epoch, last_epoch, offset, error_code):
    member = Member().become_leader()
    assert row_of(member.ask(fetch_request(epoch, last_epoch, offset))).error_code == error_code
    assert member.high_watermark == -1


def test_a_follower_beyond_the_leaders_end_is_told_to_cut_and_counts_for_nothing():
    member = Member().become_leader()
    diverging = row_of(member.ask(fetch_request(1, 1, 100))).diverging_epoch
    assert (diverging.epoch, diverging.end_offset) == (1, 1)
    assert member.high_watermark == -1


@pytest.mark.parametrize("request_of", (forms.begin_request, forms.end_request))
def test_a_second_leader_of_an_epoch_is_refused(request_of):
    member = Member().follow(2, 1)
    last = (1, ZERO) if request_of is forms.begin_request else 3
    request = request_of(CLUSTER, last, 3, 1) if request_of is forms.begin_request else request_of(CLUSTER, 3, 1, [])
    assert row_of(member.ask(request)).error_code == errors.INVALID_REQUEST
    assert (member.leader_id, member.epoch) == (2, 1)


def test_nobody_makes_this_node_the_leader():
    for epoch in (0, 5):
        member = Member()
        assert (
            row_of(member.ask(forms.begin_request(CLUSTER, (1, ZERO), 1, epoch))).error_code == errors.INVALID_REQUEST
        )
        member.answer(member.sent[-1].peer, forms.fetch_response(errors.NOT_LEADER_OR_FOLLOWER, 1, epoch))
        assert (member.epoch, member.leader_id) == (0, -1)


def test_neither_a_node_that_is_no_voter_nor_an_impossible_epoch_is_believed():
    for leader_id, epoch in ((9, 5), (2, MAX_EPOCH + 1), (-1, MAX_EPOCH + 1)):
        member = Member()
        reply = row_of(member.ask(forms.begin_request(CLUSTER, (1, ZERO), leader_id, epoch)))
        assert reply.error_code == errors.INVALID_REQUEST
        response = forms.fetch_response(errors.FENCED_LEADER_EPOCH, leader_id, epoch)
        member.answer(member.sent[-1].peer, response)
        assert (member.epoch, member.leader_id) == (0, -1)
    assert row_of(Member().ask(vote_request(MAX_EPOCH + 1))).error_code == errors.INVALID_REQUEST


def test_a_leader_of_an_older_epoch_is_fenced():
    member = Member().follow(2, 5)
    reply = row_of(member.ask(forms.begin_request(CLUSTER, (1, ZERO), 3, 4)))
    assert (reply.error_code, reply.leader_id, reply.leader_epoch) == (errors.FENCED_LEADER_EPOCH, 2, 5)


# Followers.


def test_a_follower_fetches_again_when_what_it_has_is_on_disk():
    member = Member().follow()
    response = forms.fetch_response(0, 2, 1, 5)
    response.responses[0].partitions[0].records = batch(0, 1, 2) + batch(2, 1) + batch(3, 1)[:-1]
    count = len(member.sent)
    member.answer(2, response)
    assert (member.log.end_offset, member.high_watermark, len(member.sent)) == (3, 3, count)
    (append,) = member.of(events.AppendFetched)
    assert (append.end_offset, len(append.records)) == (3, len(batch(0, 1, 2) + batch(2, 1)))
    member.sync()
    asked = forms.only_partition(member.sent[-1].request)
    assert (asked.fetch_offset, asked.last_fetched_epoch, asked.current_leader_epoch) == (3, 1, 1)


def flipped(records):
    return records[:-1] + bytes([records[-1] ^ 1])


@in_turn(
    "name, records",
    (
        ("a gap", batch(2, 1)),
        ("an overlap", batch(0, 1)),
        ("an epoch that is not yet", batch(1, 2)),
        ("an epoch before the last", batch(1, 0)),
        ("a wrong checksum", flipped(batch(1, 1))),
        ("no batch at all", b"\0" * 100),
    ),
)
def test_what_does_not_continue_the_log_is_not_appended(name, records):
    """The batches before it are. The connection backs off."""
    member = Member().follow()
    member.fetched(batch(0, 1) + records)
    assert (member.log.end_offset, member.state) == (1, "follower")
    assert not member.role.has_fetched


def diverging(member, epoch, end_offset):
    response = forms.fetch_response(0, 2, member.epoch)
    response.responses[0].partitions[0].diverging_epoch = messages.FetchResponse.EpochEndOffset(
        epoch=epoch, end_offset=end_offset
    )
    member.answer(2, response)


def test_a_follower_cuts_what_the_leader_does_not_have():
    member = Member(log=(0, 9, [(1, 0), (3, 6)]), state_file=format_state(3, -1, -1, ZERO)).follow(2, 4)
    diverging(member, 2, 8)
    diverging(member, 1, 4)
    assert [each.end_offset for each in member.of(events.Truncate)] == [6, 4]
    assert member.log.epochs == [(1, 0)]


def test_what_is_committed_is_never_cut():
    member = Member().follow()
    member.fetched(batch(0, 1, 3), 2)
    diverging(member, 1, 1)
    assert (member.log.end_offset, member.of(events.Truncate)) == (3, [])


@in_turn(
    "outcome",
    (
        (None,),
        (messages.FetchResponse(error_code=errors.CLUSTER_AUTHORIZATION_FAILED),),
        (messages.FetchResponse(),),
        (messages.VoteResponse(),),
    ),
)
def test_after_a_failure_a_follower_asks_the_others(outcome):
    member = Member().follow()
    member.answer(2, outcome)
    assert member.sent[-1].peer == 3


def test_an_answer_that_comes_too_late_counts_for_nothing():
    member = Member().follow()
    late = member.sent[-1]
    member.wait_for("prospective")
    for peer in (2, 3):
        member.answer(peer, forms.vote_response(0, 2, 1, granted=False))
    assert member.state == "follower"
    response = forms.fetch_response(0, 2, 1)
    response.responses[0].partitions[0].records = batch(0, 1)
    member.step(late.then(response))
    assert member.log.end_offset == 0


# Snapshots.


def part(member, end_offset, epoch, size, position, content):
    response = forms.snapshot_response(0, 2, member.epoch, (end_offset, epoch), size, position)
    response.topics[0].partitions[0].unaligned_records = content
    member.answer(2, response)


def fetching_snapshot(end_offset=7, epoch=2):
    member = Member().follow(2, 3)
    response = forms.fetch_response(0, 2, 3)
    response.responses[0].partitions[0].snapshot_id = messages.FetchResponse.SnapshotId(
        end_offset=end_offset, epoch=epoch
    )
    member.answer(2, response)
    return member


def test_a_follower_fetches_a_snapshot_in_parts():
    member = fetching_snapshot()
    for position, content in ((0, b"abc"), (3, b"de")):
        assert forms.only_partition(member.sent[-1].request).position == position
        part(member, 7, 2, 5, position, content)
    assert [(each.position, each.content, each.is_last) for each in member.of(events.StoreSnapshot)] == [
        (0, b"abc", False),
        (3, b"de", True),
    ]
    assert (member.log.start_offset, member.log.end_offset, member.log.last_epoch) == (7, 7, 2)
    assert (member.high_watermark, type(member.sent[-1].request)) == (7, messages.FetchRequest)


@in_turn(
    "end_offset, epoch, size, position, content",
    (
        (8, 2, 5, 0, b"abc"),
        (7, 3, 5, 0, b"abc"),
        (7, 2, 5, 1, b"abc"),
        (7, 2, 2, 0, b"abc"),
        (7, 2, 5, 0, b""),
        (7, 2, 2**31, 0, b"abc"),
    ),
)
def test_a_part_of_a_snapshot_that_does_not_fit_ends_the_fetch_of_it(end_offset, epoch, size, position, content):
    member = fetching_snapshot()
    part(member, end_offset, epoch, size, position, content)
    assert (member.of(events.StoreSnapshot), member.role.snapshot) == ([], None)


def test_a_snapshot_before_what_is_committed_is_not_fetched():
    member = Member().follow()
    member.fetched(batch(0, 1, 3), 3)
    response = forms.fetch_response(0, 2, 1)
    response.responses[0].partitions[0].snapshot_id = messages.FetchResponse.SnapshotId(end_offset=2, epoch=1)
    member.answer(2, response)
    assert member.role.snapshot is None


def test_a_leader_serves_its_snapshot_and_no_other():
    snapshot = events.Snapshot(4, 1, 10)
    log = (4, 6, [(1, 4)])
    member = Member(log=log, snapshot=snapshot, state_file=format_state(1, -1, -1, ZERO)).become_leader()
    reply = row_of(member.ask(fetch_request(2, 0, 0)))
    assert (reply.snapshot_id.end_offset, reply.snapshot_id.epoch) == (4, 1)

    def ask(end_offset=4, epoch=2, position=0):
        return member.ask(forms.snapshot_request(CLUSTER, (2, ZERO), epoch, (end_offset, 1), position, 100))

    assert type(ask(position=3)) is events.ReplyWithSnapshot
    assert (row_of(ask()).size, row_of(ask(position=3)).position) == (10, 3)
    assert row_of(ask(end_offset=3)).error_code == errors.SNAPSHOT_NOT_FOUND
    assert row_of(ask(position=10)).error_code == errors.POSITION_OUT_OF_RANGE
    assert row_of(ask(position=-1)).error_code == errors.POSITION_OUT_OF_RANGE
    assert row_of(ask(epoch=1)).error_code == errors.FENCED_LEADER_EPOCH


def test_a_snapshot_that_the_leader_has_no_more_is_given_up():
    member = fetching_snapshot()
    response = forms.snapshot_response(errors.SNAPSHOT_NOT_FOUND, 2, 3)
    member.answer(2, response)
    assert type(member.sent[-1].request) is messages.FetchRequest


def test_a_log_that_begins_at_a_snapshot():
    member = Member([1], log=(0, 6, [(1, 0), (2, 3)]), state_file=format_state(2, -1, -1, ZERO))
    member.sync()
    member.step(events.Snapshot(4, 2, 10))
    assert (member.log.start_offset, member.log.epochs[0]) == (4, (2, 4))
