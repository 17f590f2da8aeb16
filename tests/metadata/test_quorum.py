"""The quorum machine: one voter, three voters, restarts."""

from __future__ import annotations

import json
import sys
from random import Random

import pytest

from pykafkad.effects import Append, Persist
from pykafkad.metadata import quorum_states as states, record_codec
from pykafkad.metadata.brokers import Endpoint
from pykafkad.metadata.quorum import (
    STATE_FILE,
    Durable,
    Quorum,
    Resign,
    Start,
    Tick,
    VoteAnswer,
    format_state,
    parse_state,
)
from pykafkad.metadata.voters import Voter, from_records, majority, to_record

DIRECTORY = bytes(range(16))


def voters(*numbers):
    return [
        Voter(number, DIRECTORY if number == 1 else bytes([number]) * 16, [Endpoint("C", "h", 9)]) for number in numbers
    ]


def member(*numbers, state_file=None, voters_in_log=False, node_id=1):
    return Quorum(node_id, DIRECTORY, voters(*numbers), Random(1), voters_in_log=voters_in_log, state_file=state_file)


def start(machine, end_offset=0, epoch=0):
    return machine.step(Start(end_offset, epoch), 0.0, 0)


def test_one_voter_leads_at_once():
    """Its own vote is the majority. The vote is stored before the leadership, and both before the epoch's first
    records."""
    machine = member(1)
    effects = start(machine)
    assert machine.state == states.LEADER
    assert (machine.epoch, machine.leader_id) == (1, 1)
    assert [type(effect) for effect in effects] == [Persist, Persist, Append]
    voted, led, append = effects
    assert parse_state(voted.value) == (1, -1, 1, DIRECTORY)
    assert parse_state(led.value) == (1, 1, -1, b"\0" * 16)
    assert voted.name == led.name == STATE_FILE
    assert [type(record.value).__name__ for record in append.records] == [
        "LeaderChangeMessage",
        "KRaftVersionRecord",
        "VotersRecord",
    ]
    assert append.log == record_codec.LOG
    assert from_records(append.records[2].value.voters) == voters(1)
    assert machine.next_deadline() is None


def test_every_start_begins_a_new_epoch():
    """A node never continues an epoch in which it was the leader. It may have lost records that were not synced, and
    others with the same offset and epoch could take their place."""
    machine = member(1, state_file=format_state(7, 1, -1, b"\0" * 16), voters_in_log=True)
    effects = start(machine, 100, 7)
    assert machine.epoch == 8
    assert [type(record.value).__name__ for record in effects[-1].records] == ["LeaderChangeMessage"]


def test_the_next_epoch_is_above_those_of_the_log_and_of_the_state_file():
    """The log has a later epoch than the file."""
    machine = member(1, state_file=format_state(2, -1, -1, b"\0" * 16))
    start(machine, 100, 9)
    assert machine.epoch == 10


def test_high_watermark_waits_for_the_leaders_own_epoch():
    """Records of older epochs are committed only together with a record of the new epoch."""
    machine = member(1)
    start(machine, 50, 3)
    machine.step(Durable(1, 50), 0.0, 0)
    assert machine.high_watermark == -1
    machine.step(Durable(1, 53), 0.0, 0)
    assert machine.high_watermark == 53
    machine.step(Durable(1, 52), 0.0, 0)
    assert machine.high_watermark == 53


def test_three_voters_need_two_votes():
    """It waits for its timeout, begins a pre-vote that changes no durable state, and leads with one further vote."""
    machine = member(1, 2, 3)
    assert start(machine) == []
    assert machine.state == states.UNATTACHED
    deadline = machine.next_deadline()
    assert 1.0 <= deadline <= 2.0
    assert machine.step(Tick(), deadline - 0.01, 0) == []
    assert machine.step(Tick(), deadline, 0) == []
    assert (machine.state, machine.epoch) == (states.PROSPECTIVE, 0)
    assert machine.step(VoteAnswer(2, 0, False, True), 2.0, 0) == []
    effects = machine.step(VoteAnswer(3, 0, True, True), 2.0, 0)
    assert (machine.state, machine.epoch, machine.voted_id) == (states.CANDIDATE, 1, 1)
    assert parse_state(effects[0].value) == (1, -1, 1, DIRECTORY)
    assert machine.step(VoteAnswer(3, 1, True, True), 2.0, 0) == []
    effects = machine.step(VoteAnswer(2, 1, True, False), 2.0, 0)
    assert machine.state == states.LEADER
    change = effects[-1].records[0].value
    assert [voter.voter_id for voter in change.granting_voters] == [1, 2]
    machine.step(Durable(1, 5), 2.0, 0)
    assert machine.high_watermark == -1
    machine.step(Durable(3, 4), 2.0, 0)
    assert machine.high_watermark == 4


def test_votes_of_observers_do_not_count():
    """A node that is not in the voter set cannot vote."""
    machine = member(1, 2, 3)
    start(machine)
    machine.step(Tick(), 2.0, 0)
    machine.step(VoteAnswer(9, 0, True, True), 2.0, 0)
    assert machine.state == states.PROSPECTIVE


def test_a_vote_of_an_older_epoch_does_not_count():
    machine = member(1, 2, 3)
    start(machine)
    machine.step(Tick(), 2.0, 0)
    machine.step(VoteAnswer(2, 0, True, True), 2.0, 0)
    machine.step(Tick(), 9.0, 0)
    assert (machine.state, machine.epoch) == (states.PROSPECTIVE, 1)
    assert machine.step(VoteAnswer(3, 0, True, True), 9.0, 0) == []
    assert (machine.state, machine.epoch) == (states.PROSPECTIVE, 1)


def test_a_higher_epoch_ends_an_election():
    """The new epoch is stored, and the vote of the old epoch no longer counts."""
    machine = member(1, 2, 3)
    start(machine)
    machine.step(Tick(), 2.0, 0)
    machine.step(VoteAnswer(2, 0, True, True), 2.0, 0)
    effects = machine.step(VoteAnswer(2, 5, False, False), 2.0, 0)
    assert (machine.state, machine.epoch, machine.voted_id) == (states.UNATTACHED, 5, -1)
    assert parse_state(effects[0].value) == (5, -1, -1, b"\0" * 16)


def test_an_election_without_answers_is_tried_again():
    """A prospective node and a candidate both begin a new pre-vote. The epoch grows only with a vote."""
    machine = member(1, 2, 3)
    start(machine)
    for now in (2.0, 4.0, 6.0):
        assert machine.step(Tick(), now, 0) == []
        assert (machine.state, machine.epoch) == (states.PROSPECTIVE, 0)
    machine.step(VoteAnswer(2, 0, True, True), 6.0, 0)
    assert (machine.state, machine.epoch) == (states.CANDIDATE, 1)
    machine.step(Tick(), 9.0, 0)
    assert (machine.state, machine.epoch) == (states.PROSPECTIVE, 1)


def test_a_restarted_leader_begins_as_resigned():
    """When there are other voters it does not vote in the epoch in which it was the leader."""
    machine = member(1, 2, 3, state_file=format_state(4, 1, -1, b"\0" * 16))
    start(machine, 10, 4)
    assert machine.state == states.RESIGNED
    machine.step(Tick(), 2.0, 0)
    assert machine.state == states.UNATTACHED


def test_an_observer_never_asks_for_votes():
    """A node is an observer when it is not in the voter set, or when its directory id is not that of the voter."""
    machine = member(2, 3)
    assert start(machine) == []
    assert machine.next_deadline() is None
    assert machine.step(Tick(), 100.0, 0) == []
    other = Quorum(1, b"x" * 16, voters(1), Random(1), voters_in_log=True)
    assert start(other) == []
    assert other.state == states.UNATTACHED


def test_resigning_ends_leadership():
    machine = member(1)
    start(machine)
    assert machine.step(Resign(), 1.0, 0) == []
    assert machine.state == states.RESIGNED
    assert machine.step(Resign(), 1.0, 0) == []


def test_transitions_outside_the_table_are_refused():
    """All states of the table can be reached by its transitions."""
    with pytest.raises(AssertionError, match="may not become"):
        states.check(states.FOLLOWER, states.LEADER)
    assert set(states.TRANSITIONS) == {state for row in states.TRANSITIONS.values() for state in row}


def test_state_file_of_kafka_is_read():
    """Both data versions are as real nodes write them."""
    new = b'{"leaderId":1,"leaderEpoch":1,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}'
    assert parse_state(new) == (1, 1, -1, b"\0" * 16)
    assert format_state(1, 1, -1, b"\0" * 16) == new
    old = (
        b'{"clusterId":"","leaderId":3,"leaderEpoch":12,"votedId":2,"appliedOffset":0,'
        b'"currentVoters":[{"voterId":1}],"data_version":0}'
    )
    assert parse_state(old) == (12, 3, 2, b"\0" * 16)
    spaced = b'{ "votedDirectoryId" : "AAAAAAAAAAAAAAAAAAAAAQ", "leaderEpoch" : 5 }'
    assert parse_state(spaced) == (5, -1, -1, bytes(15) + b"\1")
    assert parse_state(None) == (0, -1, -1, b"\0" * 16)
    for damaged in (
        b'{"leaderEpoch":12',
        b"",
        bytes(20),
        b"\xff\xfe",
        b'{"leaderEpoch":1x2}',
        b"[1]",
        b'{"leaderEpoch":"1"}',
    ):
        with pytest.raises(ValueError):
            parse_state(damaged)


def test_what_we_wrote_ourselves_is_read_without_a_json_module(monkeypatch):
    """Importing one takes as long as a tenth of a start; what is written is what it would write."""
    monkeypatch.setitem(sys.modules, "json", None)
    for state in ((7, 1, -1, b"\0" * 16), (0, -1, 3, b"abcdefghijklmnop")):
        assert parse_state(format_state(*state)) == state
    monkeypatch.undo()
    content = format_state(7, 1, -1, b"abcdefghijklmnop")
    assert json.dumps(json.loads(content), separators=(",", ":")).encode() == content


def test_a_majority_is_more_than_half():
    assert [majority(voters(*range(1, count + 1))) for count in (1, 2, 3, 4, 5)] == [1, 2, 2, 3, 3]


def test_a_voters_record_survives_encoding():
    record = to_record(voters(1, 2))
    key, value = record_codec.encode(record_codec.control_record(record))
    assert from_records(record_codec.decode(key, value).value.voters) == voters(1, 2)
