"""Voters by the offsets of their records: in logs, in snapshots, and in a replica."""

from hypothesis import given, settings, strategies as st

from pykafkad.metadata import record_codec
from pykafkad.metadata.quorum import STATE_FILE, format_state, format_static_state, parse_state
from pykafkad.metadata.voters import Voter, from_records, to_record
from pykafkad.raft import control_records, events, forms
from pykafkad.raft.control_records import MAX_HEAD_BYTES, SnapshotHead
from pykafkad.raft.voter_sets import FORMATTED, NOWHERE, VoterSets
from pykafkad.uuids import ZERO
from pykafkad.wire import messages
from pykafkad.wire.batch import build_batch
from tests.raft.member import CLUSTER, Member, batch, control_batch, directory, fetch_request, voter_records
from tests.rows import in_turn
from tests.seeds import examples

STATIC = [Voter(9, ZERO, [])]
FOOTER = messages.SnapshotFooterRecord(version=0)


def ids(voters):
    return [voter.id for voter in voters]


def test_levels_of_a_voter_survive_its_record():
    voter = Voter(1, directory(1), [], (0, 7))
    assert from_records(to_record([voter]).voters) == [voter]
    assert Voter(1, directory(1), [], (0, 1)) != voter


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(st.tuples(st.sampled_from("acp"), st.integers(0, 20)), max_size=20))
def test_the_newest_set_that_is_left_counts(steps):
    """Beside a list of all that is in the log."""
    sets, log, start = VoterSets(STATIC), [], 0
    for kind, number in steps:
        if kind == "a":
            for message in voter_records([number], number % 2):
                sets.added(len(log), message)
                log.append(message)
        elif kind == "c":
            end = max(start, number % (len(log) + 1))
            sets.truncated(end)
            del log[end:]
        elif log:
            start = max(start, number % len(log))
            sets.pruned(start)
    found = [(offset, each) for offset, each in enumerate(log) if type(each) is messages.VotersRecord]
    levels = [each.k_raft_version for each in log if type(each) is messages.KRaftVersionRecord]
    expected = [each.voter_id for each in found[-1][1].voters] if found else [9]
    assert (ids(sets.voters), sets.level) == (expected, levels[-1] if levels else 0)
    assert sets.offset == (found[-1][0] if found else NOWHERE)


def test_a_log_that_is_pruned_keeps_the_newest_record_before_its_start():
    sets = VoterSets(STATIC)
    for offset in (FORMATTED, 5, 9):
        for message in voter_records([offset + 10]):
            sets.added(offset, message)
    sets.pruned(8)
    assert (ids(sets.voters), sets.offset) == ([19], 9)
    sets.truncated(9)
    assert (ids(sets.voters), sets.offset, sets.level) == ([15], 5, 1)


def test_a_snapshot_has_the_voters_of_its_end():
    sets = VoterSets(STATIC)
    assert sets.before(100) == []
    for offset, voters in ((5, [1]), (9, [1, 2])):
        for message in voter_records(voters):
            sets.added(offset, message)
    assert sets.before(5) == []
    version, voters = sets.before(9)
    assert (version.k_raft_version, ids(from_records(voters.voters))) == (1, [1])
    sets.replaced(sets.before(10), 20)
    assert (ids(sets.voters), sets.offset, sets.level) == ([1, 2], 19, 1)


# Snapshots in parts.

HEADS = (
    ("one batch", lambda: [control_batch(0, 1, [FOOTER, *voter_records([3])])], [3]),
    ("two batches", lambda: [control_batch(0, 1, [FOOTER]), control_batch(1, 1, voter_records([4]))], [4]),
    ("none", lambda: [control_batch(0, 1, [FOOTER])], []),
    ("records", lambda: [batch(0, 1), control_batch(1, 1, voter_records([4]))], []),
)


@in_turn("name, content, expected", HEADS)
@in_turn("size", (1, 7, 1000))
def test_the_voters_of_a_snapshot_are_in_its_first_batches(name, content, expected, size):
    whole = b"".join([*content(), batch(9, 1)])
    head = SnapshotHead()
    for position in range(0, len(whole), size):
        head.add(whole[position : position + size])
    sets = VoterSets([])
    sets.replaced(head.messages, 10)
    assert ids(sets.voters) == expected


def test_the_beginning_of_a_snapshot_is_not_kept_without_end(monkeypatch):
    monkeypatch.setattr(control_records, "MAX_HEAD_BYTES", 100)
    assert MAX_HEAD_BYTES > 100
    head = SnapshotHead()
    whole = control_batch(0, 1, voter_records(range(1, 20)))
    head.add(whole[:200])
    head.add(whole[200:])
    assert head.messages == []


# A replica.


def test_voters_in_a_log_count_at_once_and_those_before_them_when_it_is_cut():
    member = Member((2, 3), formatted=True, bootstrap=(2,))
    assert not member.is_voter and member.next_deadline() is not None
    member.follow()
    member.fetched(control_batch(0, 1, voter_records([1, 2, 3])))
    assert member.is_voter and ids(member.voters) == [1, 2, 3]
    response = forms.fetch_response(0, 2, 1)
    response.responses[0].partitions[0].diverging_epoch = messages.FetchResponse.EpochEndOffset(epoch=0, end_offset=0)
    member.answer(2, response)
    assert [each.end_offset for each in member.of(events.Truncate)] == [0]
    assert not member.is_voter and ids(member.voters) == [2, 3]


def test_a_replica_that_becomes_a_voter_asks_for_votes_when_the_leader_is_gone():
    member = Member((2, 3), formatted=True).follow()
    member.fetched()
    assert member.next_deadline() < 10
    for _ in range(20):
        member.wait()
    assert member.state == "follower"
    member.follow(3, 2)
    member.fetched(control_batch(0, 2, voter_records([1, 2, 3])), leader_id=3)
    member.wait_for("prospective")


def test_a_snapshot_brings_its_voters():
    member = Member((2, 3), formatted=True).follow(2, 3)
    response = forms.fetch_response(0, 2, 3)
    response.responses[0].partitions[0].snapshot_id = messages.FetchResponse.SnapshotId(end_offset=7, epoch=2)
    member.answer(2, response)
    content = control_batch(0, 1, voter_records([1, 4, 5])) + batch(3, 1)
    for position in (0, 50):
        answer = forms.snapshot_response(0, 2, 3, (7, 2), len(content), position)
        answer.topics[0].partitions[0].unaligned_records = content[position:][:50] if not position else content[50:]
        member.answer(2, answer)
    assert (ids(member.voters), member.voter_sets.offset, member.is_voter) == ([1, 4, 5], 6, True)


def test_a_snapshot_that_is_not_made_of_batches_is_given_up():
    member = Member((2, 3), formatted=True).follow(2, 3)
    response = forms.fetch_response(0, 2, 3)
    response.responses[0].partitions[0].snapshot_id = messages.FetchResponse.SnapshotId(end_offset=7, epoch=2)
    member.answer(2, response)
    content = bytearray(control_batch(0, 1, voter_records([1, 4, 5])))
    content[-1] ^= 1
    answer = forms.snapshot_response(0, 2, 3, (7, 2), len(content), 0)
    answer.topics[0].partitions[0].unaligned_records = bytes(content)
    member.answer(2, answer)
    assert (member.of(events.StoreSnapshot), member.role.snapshot, ids(member.voters)) == ([], None, [2, 3])


def test_a_control_batch_that_cannot_be_read_is_not_appended():
    member = Member((2, 3), formatted=True).follow()
    member.fetched(batch(0, 1))
    key, value = record_codec.encode(record_codec.control_record(voter_records([1, 2])[1]))
    broken = bytes(build_batch([(key, value[:-3])], base_offset=1, leader_epoch=1, is_control=True))
    member.fetched(broken)
    assert (member.log.end_offset, ids(member.voters)) == (1, [2, 3])


def test_the_first_leader_of_a_formatted_quorum_writes_its_voters():
    member = Member((1, 2, 3), formatted=True).become_leader()
    (written,) = member.of(events.AppendControl)
    assert [type(each.value) for each in written.records] == [
        messages.LeaderChangeMessage,
        messages.KRaftVersionRecord,
        messages.VotersRecord,
    ]
    assert (member.log.end_offset, member.voter_sets.offset, member.voter_sets.level) == (3, 2, 1)
    member.ask(fetch_request(1, 1, 3))
    assert member.high_watermark == 3


def test_a_later_leader_writes_the_voters_only_with_new_endpoints_of_its_own():
    for endpoints, count in ((None, 1), ([], 3)):
        known = voter_records([1, 2, 3])
        own = from_records(known[1].voters)[0].endpoints
        member = Member(
            (1, 2, 3),
            formatted=True,
            control_records=[(1, known[0]), (2, known[1])],
            log=(0, 3, [(1, 0)]),
            state_file=format_state(1, -1, -1, ZERO),
            endpoints=own if endpoints is None else endpoints,
        ).become_leader()
        (written,) = member.of(events.AppendControl)
        assert len(written.records) == count


def test_a_leader_counts_a_voter_that_has_another_directory_as_an_observer():
    member = Member((1, 2, 3), formatted=True).become_leader()
    request = fetch_request(1, 1, 3)
    forms.only_partition(request).replica_directory_id = b"x" * 16
    member.ask(request)
    assert member.high_watermark == -1
    assert (2, b"x" * 16) in member.role.observers
    member.ask(fetch_request(1, 1, 3))
    assert member.high_watermark == 3


def test_a_successor_in_another_directory_does_not_hurry():
    """Only the voter that the leader names asks for votes at once."""
    waits = []
    for directory_id in (directory(1), ZERO, b"x" * 16):
        member = Member((1, 2, 3), formatted=True).follow(3)
        member.fetched(leader_id=3)
        member.ask(forms.end_request(CLUSTER, 3, 1, [(1, directory_id), (2, directory(2))]))
        before = member.now
        member.wait_for("prospective")
        waits.append(member.now - before)
    assert waits == [0.0, 0.0, 1.0]


def test_a_replica_without_voters_learns_of_the_leader_by_its_bootstrap_servers():
    member = Member((), bootstrap=(7, 8))
    assert {each.peer for each in member.sent} <= {7, 8}
    member.answer(member.sent[-1].peer, forms.fetch_response(6, 5, 4))
    assert (member.state, member.leader_id, member.epoch) == ("follower", 5, 4)


def test_the_form_of_the_state_follows_the_level():
    (written,) = [each for each in Member().follow().effects if getattr(each, "name", "") == STATE_FILE]
    assert written.value == format_static_state(1, 2, -1, [1, 2, 3])
    assert b'"currentVoters":[{"voterId":1},{"voterId":2},{"voterId":3}],"data_version":0' in written.value
    assert parse_state(written.value) == (1, 2, -1, ZERO)
    (written,) = [each for each in Member(formatted=True).follow().effects if getattr(each, "name", "") == STATE_FILE]
    assert written.value == format_state(1, 2, -1, ZERO)
