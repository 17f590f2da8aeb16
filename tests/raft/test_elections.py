"""One replica by hand: elections, votes, and starts."""

from pykafkad import errors
from pykafkad.effects import Persist
from pykafkad.metadata.quorum import format_state, parse_state
from pykafkad.raft import events, forms
from pykafkad.uuids import ZERO
from pykafkad.wire import messages
from tests.raft.member import Member, batch, directory, fetch_request, vote_request, voter_records
from tests.rows import in_turn


def row_of(reply):
    return forms.only_partition(reply.message)


# Elections.


def test_one_voter_leads_at_once_and_commits_what_is_on_disk():
    member = Member([1])
    assert member.state == "leader"
    assert [type(each).__name__ for each in member.effects] == ["Persist", "AppendControl", "Sync"]
    assert parse_state(member.effects[0].value) == (1, 1, -1, ZERO)
    assert member.high_watermark == -1
    member.sync()
    assert member.high_watermark == 1
    member.step(events.Appended(3))
    assert member.high_watermark == 1
    member.sync()
    assert [each.end_offset for each in member.of(events.Committed)] == [1, 3]


def test_a_voter_asks_for_pre_votes_before_it_begins_an_epoch():
    """A pre-vote writes nothing. The vote is written before it is asked for."""
    member = Member()
    member.wait_for("prospective")
    assert member.of(Persist) == []
    asked = [each for each in member.sent if type(each.request) is messages.VoteRequest]
    assert [(each.peer, forms.only_partition(each.request).pre_vote) for each in asked] == [(2, True), (3, True)]
    made = []
    member.answer(2, forms.vote_response(0, -1, 0, granted=True))
    made = member.effects[-3:]
    assert (member.state, member.epoch) == ("candidate", 1)
    assert [type(each).__name__ for each in made] == ["Persist", "Send", "Send"]
    assert not forms.only_partition(made[1].request).pre_vote
    member.answer(3, forms.vote_response(0, -1, 1, granted=True))
    assert (member.state, member.leader_id) == ("leader", 1)
    (control,) = member.of(events.AppendControl)
    assert [each.voter_id for each in control.records[0].value.granting_voters] == [1, 3]
    begun = [each.peer for each in member.sent if type(each.request) is messages.BeginQuorumEpochRequest]
    assert begun == [2, 3]


def test_a_voter_begins_an_epoch_without_pre_votes_where_one_does_not_know_them():
    """Kafka before 4.0 does not. Such an answer to a vote, and one that comes too late, begin no other epoch."""
    unknown = messages.VoteResponse(error_code=errors.UNSUPPORTED_VERSION)
    member = Member()
    member.wait_for("prospective")
    member.answer(2, unknown)
    assert (member.state, member.epoch) == ("candidate", 1)
    asked = [each for each in member.sent if type(each.request) is messages.VoteRequest][2:]
    assert [(each.peer, forms.only_partition(each.request).pre_vote) for each in asked] == [(2, False), (3, False)]
    member.answer(2, unknown)
    assert (member.state, member.epoch) == ("candidate", 1)
    member.answer(3, forms.vote_response(0, -1, 1, granted=True))
    assert member.state == "leader"


def test_a_voter_asks_for_votes_when_its_records_are_on_disk():
    """It would be elected for records that it can still lose, and which may be committed."""
    member = Member().follow()
    response = forms.fetch_response(0, 2, 1, 0)
    response.responses[0].partitions[0].records = batch(0, 1, 2)
    member.answer(2, response)
    member.wait_for("prospective")
    assert not any(type(each.request) is messages.VoteRequest for each in member.sent)
    member.sync()
    asked = [each for each in member.sent if type(each.request) is messages.VoteRequest]
    assert [(each.peer, forms.only_partition(each.request).last_offset) for each in asked] == [(2, 2), (3, 2)]


def test_a_lost_pre_vote_ends_at_once_and_a_lost_vote_with_its_timeout():
    member = Member()
    member.wait_for("prospective")
    for peer in (2, 3):
        member.answer(peer, forms.vote_response(0, -1, 0, granted=False))
    assert member.state == "unattached"
    member.wait_for("prospective")
    member.answer(2, forms.vote_response(0, -1, 0, granted=True))
    for peer in (2, 3):
        member.answer(peer, forms.vote_response(0, -1, 1, granted=False))
    assert member.state == "candidate"
    member.wait_for("prospective")
    assert member.epoch == 1


def test_a_pre_vote_that_is_granted_late_is_no_vote():
    member = Member()
    member.wait_for("prospective")
    late = member.sent[-1]
    member.answer(2, forms.vote_response(0, -1, 0, granted=True))
    member.step(late.then(forms.vote_response(0, -1, 1, granted=True)))
    assert member.state == "candidate"


def test_a_follower_that_loses_its_pre_vote_goes_back_to_its_leader():
    member = Member().follow()
    member.wait_for("prospective")
    for peer in (2, 3):
        member.answer(peer, forms.vote_response(0, 2, 1, granted=False))
    assert (member.state, member.role.leader_id) == ("follower", 2)


def test_an_observer_asks_for_no_votes_and_finds_the_leader():
    member = Member(node_id=9)
    assert member.next_deadline() is not None and not member.is_voter
    asked = member.sent[-1]
    member.step(asked.then(forms.fetch_response(errors.NOT_LEADER_OR_FOLLOWER, 3, 4)))
    assert (member.state, member.epoch, member.sent[-1].peer) == ("follower", 4, 3)
    for _ in range(20):
        member.wait()
    assert member.state == "follower"


def test_an_observer_refuses_pre_votes_while_its_leader_is_not_silent_for_too_long():
    """It may be a voter that does not know of it yet, and never asks for votes itself: without it there may be no
    majority."""
    member = Member(node_id=9)
    member.step(member.sent[-1].then(forms.fetch_response(errors.NOT_LEADER_OR_FOLLOWER, 3, 4)))
    member.fetched(leader_id=3)
    deadline = member.role.deadline
    member.now = deadline - 0.001
    request = {"candidate": 3, "voter": 9, "pre_vote": True}
    assert not row_of(member.ask(vote_request(4, **request))).vote_granted
    member.now = deadline
    assert row_of(member.ask(vote_request(4, **request))).vote_granted
    assert not row_of(member.ask(vote_request(4, candidate=3, voter=9))).vote_granted
    assert row_of(member.ask(vote_request(5, candidate=3, voter=9))).vote_granted


# Votes. Node 1 has a log that ends with offset 5 in epoch 2, and is in epoch 3.

VOTES = (
    ("the same log", {}, errors.NONE, True),
    ("a shorter log", {"last_offset": 4}, errors.NONE, False),
    ("a longer log of an older epoch", {"last_epoch": 1, "last_offset": 9}, errors.NONE, False),
    ("a shorter log of a newer epoch", {"last_epoch": 3, "last_offset": 4}, errors.NONE, True),
    ("an older epoch", {"epoch": 2, "last_epoch": 1}, errors.FENCED_LEADER_EPOCH, False),
    ("a log of the epoch that it asks for", {"last_epoch": 4}, errors.INVALID_REQUEST, False),
    ("an impossible offset", {"last_offset": -1}, errors.INVALID_REQUEST, False),
    ("nobody", {"candidate": -1}, errors.INVALID_REQUEST, False),
    ("this node itself", {"candidate": 1}, errors.NONE, False),
    ("another voter's vote", {"voter": 2}, errors.INVALID_VOTER_KEY, False),
    ("the vote of another directory", {"voter_directory": b"x" * 16}, errors.INVALID_VOTER_KEY, False),
    ("the vote of this directory", {"voter_directory": directory(1)}, errors.NONE, True),
)


@in_turn("name, fields, error_code, granted", VOTES)
def test_a_vote_is_given_to(name, fields, error_code, granted):
    for pre_vote in (False, True):
        if pre_vote and fields.get("last_epoch") == 4:
            continue
        member = Member(state_file=format_state(3, -1, -1, ZERO), log=(0, 5, [(1, 0), (2, 3)]))
        request = {"epoch": 4, "last_epoch": 2, "last_offset": 5, "pre_vote": pre_vote} | fields
        if fields.get("candidate") == -1:
            asked = vote_request(**(request | {"candidate": 2}))
            forms.only_partition(asked).replica_id = -1
        else:
            asked = vote_request(**request)
        reply = row_of(member.ask(asked))
        assert (reply.error_code, reply.vote_granted) == (error_code, granted), pre_vote
        assert (member.voted_id == 2) == (granted and not pre_vote)
        if granted and not pre_vote:
            kinds = [type(each).__name__ for each in member.effects if type(each).__name__ != "Send"]
            assert kinds == ["Persist", "Reply"]
            # With kraft.version 0 the file has no directories.
            assert parse_state(member.of(Persist)[-1].value) == (4, -1, 2, ZERO)
            assert member.voted_directory_id == directory(2)


def test_an_epoch_has_one_vote():
    """The same candidate gets it again, also after a restart; another does not, nor one with another directory."""
    member = Member(formatted=True)
    assert row_of(member.ask(vote_request(1))).vote_granted
    state_file = member.of(Persist)[-1].value
    for voter in (member, Member(state_file=state_file, formatted=True)):
        assert row_of(voter.ask(vote_request(1))).vote_granted
        assert not row_of(voter.ask(vote_request(1, candidate=3))).vote_granted
        elsewhere = vote_request(1)
        forms.only_partition(elsewhere).replica_directory_id = b"x" * 16
        assert not row_of(voter.ask(elsewhere)).vote_granted
        assert row_of(voter.ask(vote_request(1, candidate=3, pre_vote=True))).vote_granted


def test_who_knows_a_leader_gives_no_vote_in_its_epoch_and_no_pre_vote_while_it_lives():
    member = Member().follow(epoch=1)
    assert row_of(member.ask(vote_request(1, candidate=3, pre_vote=True))).vote_granted
    assert not row_of(member.ask(vote_request(1, candidate=3))).vote_granted
    member.fetched()
    assert not row_of(member.ask(vote_request(1, candidate=3, pre_vote=True))).vote_granted
    member.wait_for("prospective")
    assert not row_of(member.ask(vote_request(1, candidate=3))).vote_granted
    assert row_of(member.ask(vote_request(2, candidate=3))).vote_granted


def test_a_leader_gives_no_vote_and_a_higher_epoch_ends_it():
    member = Member().become_leader()
    assert not row_of(member.ask(vote_request(1, candidate=3, pre_vote=True, last_offset=9))).vote_granted
    assert row_of(member.ask(vote_request(2, 1, 9))).vote_granted
    assert (member.state, member.epoch, member.voted_id) == ("unattached", 2, 2)


# Restarts.


def test_a_leader_does_not_continue_its_epoch_after_a_restart():
    member = Member(state_file=format_state(3, 1, -1, ZERO), log=(0, 2, [(3, 0)]))
    assert member.state == "resigned"
    reply = row_of(member.ask(fetch_request(3, 3, 2)))
    assert reply.error_code == errors.NOT_LEADER_OR_FOLLOWER
    told = [each.peer for each in member.sent if type(each.request) is messages.EndQuorumEpochRequest]
    assert told == [2, 3]
    member.answer(2, forms.end_response(0, 1, 3))
    assert member.role.unacknowledged == [3]
    member.wait_for("prospective")
    assert (member.epoch, member.leader_id) == (4, -1)


@in_turn(
    "state, expected",
    (
        (format_state(3, -1, 1, directory(1)), ("candidate", 3)),
        (format_state(3, 2, -1, ZERO), ("follower", 3)),
        (format_state(3, 2, 1, directory(1)), ("follower", 3)),
        (format_state(3, -1, 2, directory(2)), ("unattached", 3)),
        (format_state(1, 2, -1, ZERO), ("unattached", 2)),
        (None, ("unattached", 2)),
    ),
)
def test_a_start(state, expected):
    """From what is in quorum-state, unless the log is of a higher epoch."""
    member = Member(state_file=state, log=(0, 2, [(2, 0)]))
    assert (member.state, member.epoch) == expected


def test_the_last_voter_does_not_lead_the_epoch_that_another_has_led():
    """Node 1 has lost the election of an epoch. Its leader removes node 3, and then itself, and both start again: an
    epoch that node 1 leads is the next one."""
    log = (0, 6, [(3, 0)])
    removals = [(4, voter_records([1, 2])[1]), (5, voter_records([1])[1])]
    state = format_state(3, 2, 1, directory(1))
    member = Member(state_file=state, log=log, formatted=True, control_records=removals)
    assert (member.state, member.epoch, member.leader_id) == ("leader", 4, 1)
    (persisted,) = member.of(Persist)
    assert parse_state(persisted.value) == (4, 1, -1, ZERO)
    state = format_state(3, 2, -1, ZERO)
    other = Member(node_id=2, state_file=state, log=log, formatted=True, control_records=removals)
    assert (other.state, other.epoch) == ("resigned", 3)
