"""The broker's clock: what a jump makes happen, and that nobody loses a connection by it."""

from __future__ import annotations

import pytest

from pykafkad.testing import Broker, NotInTime, Topic
from pykafkad.testing.broker_loop import CLOCK_STEPS
from pykafkad.testing.waits import TIMEOUT_SECONDS, until
from pykafkad.testing.wire_client import VERSIONS, WireClient
from pykafkad.wire import messages

HOUR = 3600.0
EXPIRING = Topic(1, {"retention.ms": str(HOUR * 1000)[:-2]})


@pytest.fixture(params=[False, True], ids=["thread", "process"])
def own(request):
    """A broker whose clock may be moved: a reset does not set it back."""
    with Broker(topics={"expiring": EXPIRING}, own_process=request.param) as broker:
        yield broker


@pytest.fixture
def client(own, monkeypatch):
    """Another program's connection."""
    for api, version in (("JoinGroup", 5), ("SyncGroup", 3), ("InitProducerId", 4), ("AddPartitionsToTxn", 3)):
        monkeypatch.setitem(VERSIONS, api, version)
    host, port = own.bootstrap.split(":")
    connected = WireClient(host, int(port), client_id="app")
    yield connected
    connected.close()


def find_coordinator(client, key, key_type):
    """Have it serve the key; the first one makes its topic."""
    until(
        lambda: client.ask("FindCoordinator", key_type=key_type, coordinator_keys=[key]).coordinators[0].error_code,
        lambda code: code == 0,
        f"coordinator of {key}",
        TIMEOUT_SECONDS,
    )


def join(client, session_ms):
    """Be the only member of the group `g`, and send no heartbeat."""
    find_coordinator(client, "g", 0)
    protocol = messages.JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"")
    fields = {
        "group_id": "g",
        "session_timeout_ms": session_ms,
        "rebalance_timeout_ms": session_ms,
        "protocol_type": "consumer",
        "protocols": [protocol],
    }
    member_id = client.ask("JoinGroup", **fields).member_id
    answer = client.ask("JoinGroup", **fields, member_id=member_id)
    assert answer.error_code == 0
    assignment = messages.SyncGroupRequest.SyncGroupRequestAssignment(member_id=member_id, assignment=b"")
    answer = client.ask(
        "SyncGroup", group_id="g", generation_id=answer.generation_id, member_id=member_id, assignments=[assignment]
    )
    assert answer.error_code == 0


def test_the_session_of_a_silent_member_ends(own, client):
    join(client, 45_000)
    own.clock.advance(20)
    assert own.group("g").state == "Stable"
    own.clock.advance(40)
    assert own.group("g").state == "Empty"
    assert own.clock.ahead_seconds == pytest.approx(60)


def test_an_open_transaction_is_aborted(own, client):
    find_coordinator(client, "x", 1)
    producer = client.ask("InitProducerId", transactional_id="x", transaction_timeout_ms=60_000)
    assert producer.error_code == 0
    topic = messages.AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name="expiring", partitions=[0])
    client.ask(
        "AddPartitionsToTxn",
        v3_and_below_transactional_id="x",
        v3_and_below_producer_id=producer.producer_id,
        v3_and_below_producer_epoch=producer.producer_epoch,
        v3_and_below_topics=[topic],
    )
    own.clock.advance(20)
    with pytest.raises(NotInTime, match="Ongoing"):
        own.wait_for_transaction("x", timeout=0.01)
    own.clock.advance(60)
    assert own.wait_for_transaction("x") == "CompleteAbort"


def test_records_are_deleted_by_retention(own):
    own.produce("expiring", "old")
    own.clock.advance(HOUR / 2)
    own.produce("expiring", "young")
    assert [each.value for each in own.records("expiring")] == [b"old", b"young"]
    own.clock.advance(2 * HOUR)
    assert own.records("expiring") == []
    own.produce("expiring", "new")
    own.clock.advance(60)
    assert [each.value for each in own.records("expiring")] == [b"new"], "it has the broker's time"


def test_a_jump_closes_no_connection(own, client):
    """Nobody was idle while no time passed."""
    client.ask("ListGroups")
    before = client._socket
    own.clock.advance(24 * HOUR)
    client.ask("ListGroups")
    assert client._socket is before and before is not None


def test_a_restart_leaves_the_clock_ahead(own):
    own.clock.advance(2 * HOUR)
    own.restart()
    own.produce("expiring", "a")
    own.clock.advance(60)
    assert len(own.records("expiring")) == 1


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf"), 1e12])
def test_an_impossible_jump_is_refused(seconds):
    broker = Broker()
    with pytest.raises(ValueError, match="seconds: "):
        broker.clock.advance(seconds)


def test_a_jump_has_a_bounded_number_of_steps(monkeypatch):
    """However much would be due in between."""
    with Broker() as own:
        running = own._running
        steps = []
        call = running.call
        monkeypatch.setattr(running, "call", lambda job: steps.append(job) or call(job))
        own.clock.advance(365 * 86400)
        assert len(steps) <= CLOCK_STEPS + 10
        assert running.clock.ahead_seconds == pytest.approx(365 * 86400)


def test_what_is_due_comes_in_its_order():
    """And each at its own time, as far as steps allow."""
    with Broker() as own:
        running = own._running
        seen = []

        def plan():
            runtime = running._process.runtime
            start = runtime.now
            for seconds in (300, 100, 200):
                runtime.call_later(seconds, lambda seconds=seconds: seen.append((seconds, runtime.now - start)))
            runtime.call_later(50, lambda: runtime.call_later(100, lambda: seen.append((150, runtime.now - start))))

        running.call(plan)
        own.clock.advance(400)
        assert [due for due, _ in seen] == [100, 150, 200, 300]
        for due, at in seen:
            assert due <= at < due + 40
