"""Voters that are added, removed and updated, by hand: the checks of the leader, and what followers ask for."""

import pytest

from pykafkad import errors
from pykafkad.metadata.brokers import Endpoint
from pykafkad.metadata.voters import Voter
from pykafkad.raft import events, forms
from pykafkad.raft.leader import CAUGHT_UP_SESSION, MAX_OBSERVERS, OBSERVER_SESSION
from pykafkad.uuids import ZERO
from pykafkad.wire import messages
from tests.raft.member import CLUSTER, Member, directory, endpoints, fetch_request
from tests.rows import in_turn


def leader(voters=(1, 2, 3), *, commits=True, **options):
    """Node 1 leads these voters, whose set is at offset 2. It has committed it."""
    member = Member(voters, formatted=True, endpoints=endpoints(1), **options).become_leader()
    if commits:
        commit(member)
    return member


def commit(member):
    """All that the leader has is fetched by its voters."""
    for voter in member.voters:
        if voter.id != member.node_id:
            member.ask(fetch_request(member.epoch, member.log.last_epoch, member.log.end_offset, replica=voter.id))


def add_request(node_id=4, *, ack_when_committed=True):
    voter = Voter(node_id, directory(node_id), endpoints(node_id))
    return forms.add_voter_request(CLUSTER, voter, 1000, ack_when_committed=ack_when_committed)


def remove_request(node_id=3):
    return forms.remove_voter_request(CLUSTER, (node_id, directory(node_id)))


def update_request(node_id=2, epoch=1, ports=9):
    voter = Voter(node_id, directory(node_id), [Endpoint("CONTROLLER", "moved", ports)])
    return forms.update_voter_request(CLUSTER, voter, epoch)


def levels(low=0, high=1):
    feature = messages.ApiVersionsResponse.SupportedFeatureKey(name="kraft.version", min_version=low, max_version=high)
    return messages.ApiVersionsResponse(supported_features=[feature])


def catch_up(member, node_id=4):
    member.ask(fetch_request(member.epoch, member.log.last_epoch, member.log.end_offset, replica=node_id))


def ids(member):
    return [voter.id for voter in member.voters]


def code_of(reply):
    return None if reply is None else reply.message.error_code


def answers_to(member, kind):
    return [each.message.error_code for each in member.replies if type(each.message) is kind]


# Adding.


def test_a_replica_that_has_caught_up_becomes_a_voter_and_the_answer_waits_for_the_commit():
    member = leader()
    catch_up(member)
    assert member.ask(add_request()) is None
    (located,) = member.of(events.Locate)
    assert (located.peer, located.endpoints[0].host) == (4, "host-4")
    assert (member.sent[-1].peer, type(member.sent[-1].request)) == (4, messages.ApiVersionsRequest)
    assert member.sent[-1].request.client_software_name and member.sent[-1].request.client_software_version
    member.answer(4, levels(1, 1))
    assert ids(member) == [1, 2, 3, 4] and member.voters[3].levels == (1, 1)
    assert answers_to(member, messages.AddRaftVoterResponse) == []
    member.sync()
    commit(member)
    assert answers_to(member, messages.AddRaftVoterResponse) == [0]
    assert member.role.change is None and member.high_watermark == member.log.end_offset


def test_a_leader_alone_stays_when_it_adds_a_voter():
    """The others have a whole interval to follow, however long there was nobody to hear of."""
    member = leader((1,), commits=False)
    member.now += 1000.0
    catch_up(member, 2)
    member.ask(add_request(2))
    added_at = member.now
    member.answer(2, levels())
    assert (member.state, ids(member)) == ("leader", [1, 2])
    member.wait_for("resigned")
    assert 3.0 <= member.now - added_at < 3.5


def test_who_asks_to_join_has_the_answer_before_the_commit():
    member = leader()
    catch_up(member)
    member.ask(add_request(ack_when_committed=False))
    member.answer(4, levels())
    assert answers_to(member, messages.AddRaftVoterResponse) == [0]
    assert code_of(member.ask(remove_request())) == errors.REQUEST_TIMED_OUT
    member.sync()
    commit(member)
    assert answers_to(member, messages.AddRaftVoterResponse) == [0]


ABORTED = (
    ("it has never fetched", False, levels, errors.REQUEST_TIMED_OUT),
    ("it supports only newer levels", True, lambda: levels(2, 3), errors.INVALID_REQUEST),
    ("it supports no levels", True, lambda: messages.ApiVersionsResponse(), errors.INVALID_REQUEST),
    ("it refuses", True, lambda: messages.ApiVersionsResponse(error_code=errors.UNSUPPORTED_VERSION), 7),
    ("it cannot be reached", True, lambda: None, errors.REQUEST_TIMED_OUT),
)


@in_turn("name, has_fetched, answer, error_code", ABORTED)
def test_a_replica_is_not_added_when(name, has_fetched, answer, error_code):
    member = leader()
    if has_fetched:
        catch_up(member)
    member.ask(add_request())
    member.answer(4, answer())
    assert answers_to(member, messages.AddRaftVoterResponse) == [error_code]
    assert ids(member) == [1, 2, 3] and member.role.change is None


def test_a_replica_that_has_fetched_long_ago_has_not_caught_up():
    member = leader((1,), commits=False)
    catch_up(member)
    member.now += CAUGHT_UP_SESSION
    member.ask(add_request())
    member.answer(4, levels())
    assert answers_to(member, messages.AddRaftVoterResponse) == [errors.REQUEST_TIMED_OUT]


def test_a_replica_catches_up_with_what_the_leader_had_when_it_fetched():
    """What was appended meanwhile does not count against it."""
    member = leader()
    member.ask(fetch_request(1, 1, 3, replica=4))
    known = member.role.observers[4, directory(4)]
    known.caught_up_at = float("-inf")
    at = member.now
    member.now += 1
    member.step(events.Appended(5))
    member.now += 1
    member.ask(fetch_request(1, 1, 3, 9, replica=4, max_wait_ms=0))
    assert (known.caught_up_at, known.fetched_at) == (at, at + 2)


def test_a_change_that_takes_too_long_is_given_up():
    member = leader()
    member.ask(add_request())
    for _ in range(50):
        if member.role.change is not None:
            commit(member)
            member.wait()
    assert answers_to(member, messages.AddRaftVoterResponse) == [errors.REQUEST_TIMED_OUT]
    member.ask(remove_request())
    commit_before = member.log.end_offset
    member.now += 2.0
    member.step(events.Tick())
    assert answers_to(member, messages.RemoveRaftVoterResponse) == [errors.REQUEST_TIMED_OUT]
    assert ids(member) == [1, 2] and member.log.end_offset == commit_before


def test_who_leads_no_more_does_not_know_what_becomes_of_the_change():
    for request in (add_request(), remove_request()):
        member = leader()
        member.ask(request)
        member.step(events.Resign())
        assert code_of(member.replies[-1]) == errors.NOT_LEADER_OR_FOLLOWER


# What refuses a change.


def not_committed(member):
    pass


def pending(member):
    commit(member)
    member.ask(add_request(5))


def uncommitted(member):
    """An update needs no answer of its own, but it is not committed yet."""
    commit(member)
    assert code_of(member.ask(update_request())) == 0


REFUSED = (
    ("another cluster", lambda request: setattr(request, "cluster_id", "other"), commit, 104),
    ("no directory", lambda request: setattr(request, "voter_directory_id", ZERO), commit, errors.INVALID_REQUEST),
    ("no id", lambda request: setattr(request, "voter_id", -1), commit, errors.INVALID_REQUEST),
    ("no commit in the epoch", lambda request: None, not_committed, errors.REQUEST_TIMED_OUT),
    ("another change", lambda request: None, pending, errors.REQUEST_TIMED_OUT),
    ("voters that are not committed", lambda request: None, uncommitted, errors.REQUEST_TIMED_OUT),
)


@in_turn("name, change, prepare, error_code", REFUSED)
def test_a_change_is_refused(name, change, prepare, error_code):
    for request in (add_request(), remove_request()):
        member = leader(commits=False)
        prepare(member)
        change(request)
        assert code_of(member.ask(request)) == error_code
        assert member.replies[-1].message.error_message


def test_other_refusals():
    member = leader()
    assert code_of(member.ask(add_request(2))) == errors.DUPLICATE_VOTER
    no_listener = add_request()
    no_listener.listeners.clear()
    assert code_of(member.ask(no_listener)) == errors.INVALID_REQUEST
    assert code_of(member.ask(remove_request(9))) == errors.VOTER_NOT_FOUND
    elsewhere = remove_request(3)
    elsewhere.voter_directory_id = b"x" * 16
    assert code_of(member.ask(elsewhere)) == errors.VOTER_NOT_FOUND
    follower = Member(formatted=True).follow()
    assert code_of(follower.ask(add_request())) == errors.NOT_LEADER_OR_FOLLOWER
    alone = leader((1,), commits=False)
    assert code_of(alone.ask(remove_request(1))) == errors.VOTER_NOT_FOUND
    static = Member((1,)).become_leader()
    assert code_of(static.ask(add_request())) == errors.UNSUPPORTED_VERSION
    assert code_of(static.ask(remove_request(1))) == errors.UNSUPPORTED_VERSION


# Removing.


def test_a_leader_that_removes_itself_leads_until_that_is_committed():
    member = leader()
    member.ask(remove_request(1))
    member.sync()
    assert (member.state, ids(member), member.is_voter) == ("leader", [2, 3], False)
    end = member.log.end_offset
    member.ask(fetch_request(1, 1, end, replica=2))
    assert (member.state, member.high_watermark) == ("leader", end - 1)
    member.ask(fetch_request(1, 1, end, replica=3))
    assert (member.state, member.high_watermark) == ("resigned", end)
    assert answers_to(member, messages.RemoveRaftVoterResponse) == [0]
    # It is told as the leader's last word who comes next.
    asked = forms.only_partition(member.sent[-1].request).preferred_candidates
    assert [each.candidate_id for each in asked] == [2, 3]
    for _ in range(20):
        member.wait()
    assert member.state == "unattached"


def test_a_voter_whose_removal_may_not_be_committed_asks_for_votes_without_its_own():
    member = leader((1, 2))
    member.ask(remove_request(1))
    member.sync()
    member.step(events.Resign())
    member.wait_for("prospective")
    assert member.role.granted == set()
    for _ in range(2):
        member.answer(2, forms.vote_response(0, -1, member.epoch, granted=True))
    assert (member.state, member.epoch, ids(member)) == ("leader", 3, [2])
    assert len(member.of(events.AppendControl)[-1].records) == 1


# Updating.


def test_a_voter_that_has_moved_is_in_the_log_with_its_new_endpoints():
    member = leader()
    reply = member.ask(update_request())
    assert code_of(reply) == 0
    assert (reply.message.current_leader.leader_id, reply.message.current_leader.leader_epoch) == (1, 1)
    assert [voter.endpoints[0].host for voter in member.voters] == ["host-1", "moved", "host-3"]
    assert code_of(member.ask(update_request())) == errors.REQUEST_TIMED_OUT


UPDATES = (
    ("another cluster", lambda request: setattr(request, "cluster_id", "other"), 104),
    ("an old epoch", lambda request: setattr(request, "current_leader_epoch", 0), errors.FENCED_LEADER_EPOCH),
    ("a later epoch", lambda request: setattr(request, "current_leader_epoch", 2), errors.UNKNOWN_LEADER_EPOCH),
    ("no directory", lambda request: setattr(request, "voter_directory_id", ZERO), errors.INVALID_REQUEST),
    ("no listener", lambda request: request.listeners.clear(), errors.INVALID_REQUEST),
    ("levels", lambda request: set_levels(request, 1, 0), errors.INVALID_REQUEST),
    ("other levels", lambda request: set_levels(request, 0, 0), errors.INVALID_REQUEST),
    ("no voter", lambda request: setattr(request, "voter_id", 9), errors.VOTER_NOT_FOUND),
    ("another directory", lambda request: setattr(request, "voter_directory_id", b"x" * 16), errors.VOTER_NOT_FOUND),
)


def set_levels(request, low, high):
    request.k_raft_version_feature.min_supported_version = low
    request.k_raft_version_feature.max_supported_version = high


@in_turn("name, change, error_code", UPDATES)
def test_an_update_is_refused(name, change, error_code):
    member = leader()
    request = update_request()
    change(request)
    assert code_of(member.ask(request)) == error_code
    assert member.log.end_offset == 3


def test_an_update_waits_for_its_leader_to_commit():
    assert code_of(leader(commits=False).ask(update_request())) == errors.REQUEST_TIMED_OUT


# The upgrade.


def upgrade(member, level=1, **options):
    member.step(events.UpgradeVersion("upgrade", level, **options))
    return member.of(events.Upgraded)[-1].error_code


def test_kraft_version_rises_when_all_voters_have_told_of_themselves():
    member = Member(endpoints=endpoints(1)).become_leader()
    member.ask(fetch_request(1, 1, 1))
    assert upgrade(member) == errors.INVALID_UPDATE_VERSION
    for node_id in (2, 3):
        assert code_of(member.ask(update_request(node_id))) == 0
    assert member.log.end_offset == 1
    assert (upgrade(member, validate_only=True), member.voter_sets.level) == (0, 0)
    assert (upgrade(member, 2), upgrade(member, 0)) == (errors.INVALID_UPDATE_VERSION, 0)
    assert upgrade(member) == 0
    assert [voter.key for voter in member.voters] == [(each, directory(each)) for each in (1, 2, 3)]
    assert (member.voter_sets.level, member.log.end_offset) == (1, 3)
    assert (upgrade(member), member.log.end_offset) == (0, 3)
    assert upgrade(member, 0) == errors.INVALID_UPDATE_VERSION
    member.step(events.Resign())
    assert upgrade(member) == errors.NOT_LEADER_OR_FOLLOWER


# Followers.


def next_request(member, kind, limit=20):
    """The next request of a kind that a follower sends by itself, while its fetches find nothing."""
    before = len(member.sent)
    for _ in range(limit):
        last = member.sent[-1]
        if type(last.request) is messages.FetchRequest:
            member.now += 0.5
            member.answer(last.peer, forms.fetch_response(0, member.leader_id, member.epoch))
        else:
            member.wait()
        found = [each.request for each in member.sent[before:] if type(each.request) is kind]
        if found:
            return found[0]
    return None


def test_a_voter_tells_each_leader_of_kraft_version_0_of_itself_once():
    member = Member(endpoints=endpoints(1)).follow()
    request = next_request(member, messages.UpdateRaftVoterRequest)
    assert (request.voter_id, request.voter_directory_id, request.current_leader_epoch) == (1, directory(1), 1)
    response = messages.UpdateRaftVoterResponse
    leader_row = response.CurrentLeader(leader_id=2, leader_epoch=1, host="", port=0)
    member.answer(2, response(error_code=0, current_leader=leader_row))
    assert next_request(member, messages.UpdateRaftVoterRequest) is None
    member.follow(3, 2)
    assert next_request(member, messages.UpdateRaftVoterRequest) is not None


def test_a_voter_that_is_in_the_log_as_it_is_has_nothing_to_tell():
    assert (
        next_request(Member(formatted=True, endpoints=endpoints(1)).follow(), messages.UpdateRaftVoterRequest) is None
    )
    moved = Member(formatted=True, endpoints=endpoints(7)).follow()
    assert next_request(moved, messages.UpdateRaftVoterRequest).listeners[0].host == "host-7"


@pytest.mark.parametrize("error_code", [0, errors.REQUEST_TIMED_OUT, errors.NOT_LEADER_OR_FOLLOWER])
def test_a_replica_joins_by_itself_and_asks_again(error_code):
    member = Member((2, 3), formatted=True, endpoints=endpoints(1), joins=True).follow()
    request = next_request(member, messages.AddRaftVoterRequest)
    assert (request.voter_id, request.voter_directory_id, request.ack_when_committed) == (1, directory(1), False)
    member.answer(2, messages.AddRaftVoterResponse(error_code=error_code))
    assert next_request(member, messages.AddRaftVoterRequest) is not None


def test_a_replica_with_a_new_directory_removes_what_it_was():
    member = Member((1, 2), formatted=True, endpoints=endpoints(1), joins=True, directory_id=b"n" * 16).follow()
    request = next_request(member, messages.RemoveRaftVoterRequest)
    assert (request.voter_id, request.voter_directory_id) == (1, directory(1))


def test_a_replica_that_is_not_to_join_does_not():
    member = Member((2, 3), formatted=True, endpoints=endpoints(1)).follow()
    assert next_request(member, messages.AddRaftVoterRequest) is None


# Observers, and DescribeQuorum.


def test_a_limited_number_of_observers_is_known_and_the_silent_are_forgotten():
    member = leader((1,), commits=False)
    for number in range(MAX_OBSERVERS + 1):
        member.ask(fetch_request(1, 1, 3, replica=100 + number % 100 + 100 * (number // 100), max_wait_ms=0))
        if number == 0:
            member.now += OBSERVER_SESSION
    assert len(member.role.observers) == MAX_OBSERVERS
    member.ask(fetch_request(1, 1, 3, replica=2, max_wait_ms=0))
    assert len(member.role.observers) == MAX_OBSERVERS


def described(member, version=2):
    answer = member.describe(version=version, now=member.now, now_ms=1_000_000)
    (row,) = answer.topics[0].partitions
    return answer, row


def test_the_quorum_as_its_leader_knows_it():
    member = leader()
    catch_up(member, 9)
    member.now += 2
    member.step(events.Appended(5))
    member.ask(fetch_request(1, 1, 4, 9, replica=2, max_wait_ms=0))
    answer, row = described(member)
    assert (row.leader_id, row.leader_epoch, row.high_watermark) == (1, 1, 3)
    states = [*row.current_voters, *row.observers]
    assert [(each.replica_id, each.replica_directory_id, each.log_end_offset) for each in states] == [
        (1, directory(1), 5),
        (2, directory(2), 4),
        (3, directory(3), 3),
        (9, directory(9), 3),
    ]
    times = [(each.last_fetch_timestamp, each.last_caught_up_timestamp) for each in states]
    assert times == [(1_000_000, 1_000_000), (1_000_000, 998_000), (998_000, 998_000), (998_000, 998_000)]
    assert [node.listeners[0].host for node in answer.nodes] == ["host-1", "host-2", "host-3"]
    older, row = described(member, 1)
    assert (older.nodes, {each.replica_directory_id for each in row.current_voters}) == ([], {ZERO})


def test_a_quorum_before_its_first_commit():
    _, row = described(leader(commits=False))
    assert row.high_watermark == -1
    assert [(each.log_end_offset, each.last_fetch_timestamp) for each in row.current_voters[1:]] == [(-1, -1)] * 2


def test_only_the_leader_describes_the_quorum():
    _, row = described(Member(formatted=True).follow())
    assert (row.error_code, bool(row.error_message)) == (errors.NOT_LEADER_OR_FOLLOWER, True)
