"""Client lint: each rule sees what it is for, and nothing else."""

from __future__ import annotations

import pytest

from pykafkad.server.trace import Exchange
from pykafkad.testing import Broker, Topic, lint, wire_client
from pykafkad.testing.lint import RULES
from pykafkad.testing.wire_client import WireClient
from pykafkad.wire import frames, messages
from pykafkad.wire.batch import build_batch
from tests.control.http_client import Client


@pytest.fixture
def broker():
    """With a compacted topic."""
    with Broker(topics={"orders": 1, "kept": Topic(1, {"cleanup.policy": "compact"})}, control=True) as found:
        found.create_topic("gone")
        yield found


@pytest.fixture
def client(broker):
    """Its requests are traced."""
    broker.trace()
    host, port = broker.bootstrap.split(":")
    found = WireClient(host, int(port), client_id="app")
    yield found
    found.close()


def produce(client, records, topic="orders"):
    """Records, each a value or (key, value), as one batch."""
    request = messages.ProduceRequest
    rows = [(each[0], each[1], [], 1) if isinstance(each, tuple) else (None, each, [], 1) for each in records]
    data = request.PartitionProduceData(index=0, records=bytes(build_batch(rows)))
    client.ask(
        "Produce", acks=-1, timeout_ms=1000, topic_data=[request.TopicProduceData(name=topic, partition_data=[data])]
    )


def commit(client, offset):
    """For a group without members."""
    request = messages.OffsetCommitRequest
    row = request.OffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="")
    client.ask("OffsetCommit", group_id="g", topics=[request.OffsetCommitRequestTopic(name="orders", partitions=[row])])


def seen(broker):
    """Rules and what they saw."""
    return {each.rule: each.seen for each in broker.lint()}


def test_tiny_batches(broker, client):
    """Enough of them to tell; larger ones are fine."""
    for _ in range(lint.LEAST_BATCHES - 1):
        produce(client, [b"x"])
    assert seen(broker) == {}
    produce(client, [b"x"])
    assert seen(broker) == {"tiny-batches": f"{lint.LEAST_BATCHES} batches with {lint.LEAST_BATCHES} records"}
    produce(client, [b"x"] * 100)
    assert seen(broker) == {}


def test_records_without_a_key(broker, client):
    """Only to compacted topics; one that is gone is none."""
    produce(client, [b"x"])
    produce(client, [b"x"], "gone")
    produce(client, [(b"k", b"x")], "kept")
    broker.delete_topic("gone")
    assert seen(broker) == {}
    request = messages.ProduceRequest
    data = request.PartitionProduceData(index=0, records=bytes(build_batch([(None, b"x", [], 1)] * 2)))
    client.ask(
        "Produce", acks=-1, timeout_ms=1000, topic_data=[request.TopicProduceData(name="kept", partition_data=[data])]
    )
    assert seen(broker) == {"no-keys": "2 records without a key to kept"}


def test_a_commit_per_record(broker, client):
    """Many records a commit are fine."""
    broker.commit("g", {("orders", 0): 0})
    for offset in range(0, 100 * lint.LEAST_COMMITS, 100):
        commit(client, offset)
    assert seen(broker) == {}
    broker.recorded().clear()
    for offset in range(lint.LEAST_COMMITS + 1):
        commit(client, offset)
    assert seen(broker) == {"commit-per-record": f"{lint.LEAST_COMMITS} commits for {lint.LEAST_COMMITS} records"}


def test_much_metadata_and_old_versions():
    """By API, version and time alone: such requests may not be whole."""

    def exchange(key, version, time_ms):
        return Exchange(1, "p", ("h", 1), time_ms, 1.0, key, version, 1, "", b"", 0, b"", 0)

    slow = [exchange(3, 9, number * 2000.0) for number in range(lint.LEAST_METADATA)]
    assert lint.look(slow, frozenset()) == []
    fast = [exchange(3, 9, number * 10.0) for number in range(lint.LEAST_METADATA)]
    (found,) = lint.look(fast, frozenset())
    assert (found.rule, found.seen) == ("much-metadata", f"{lint.LEAST_METADATA} Metadata requests in 0.2 s")
    (found,) = lint.look([exchange(0, 2, 0.0)], frozenset())
    assert (found.rule, found.seen) == ("old-versions", "Produce v2, and 3 is the first that there is")


def upgrades(*asked):
    """What the upgrade lens alone sees of requests of a client: rows of API key, version, message."""
    exchanges = []
    for key, version, message in asked:
        first = messages.flexible_from(messages.request_class(key))
        chunks = [frames.start_request(key, version, 1, "app", first is not None and version >= first)]
        if message is not None:
            messages.encoder(type(message), version)(message, chunks)
        frame = b"".join(chunks)[4:]
        exchanges.append(Exchange(1, "p", ("h", 1), 0.0, 1.0, key, version, 1, "", frame, len(frame), b"", 0))
    assert lint.look(exchanges, frozenset()) == [
        each for each in lint.look(exchanges, frozenset()) if each.rule in RULES
    ]
    return {each.rule: each.seen for each in lint.look(exchanges, frozenset(), upgrade=True) if each.rule not in RULES}


def test_old_message_formats():
    assert upgrades((0, 3, None), (1, 4, None)) == {}
    seen = "Fetch v3 carries message format v0 or v1, Produce v2 carries message format v0 or v1"
    assert upgrades((0, 2, None), (1, 3, None), (1, 3, None)) == {"upgrade-message-format": seen}


def test_classic_groups():
    """Of consumers: Connect's workers have no other protocol."""
    request = messages.JoinGroupRequest
    protocols = [request.JoinGroupRequestProtocol(name=name, metadata=b"") for name in ("range", "sticky")]
    join = request(group_id="g", protocol_type="consumer", protocols=protocols)
    assert upgrades((11, 5, join)) == {
        "upgrade-classic-groups": "joins group g by the classic protocol (range, sticky)"
    }
    assert upgrades((11, 5, request(group_id="g", protocol_type="connect", protocols=protocols))) == {}


def test_commits_with_a_retention_of_their_own():
    request = messages.OffsetCommitRequest
    seen = {"upgrade-commit-retention": "1 commits ask for a retention of their own"}
    assert upgrades((8, 3, request(retention_time_ms=5)), (8, 3, request())) == seen
    assert upgrades((8, 3, request()), (8, 5, request())) == {}


def test_transactions():
    request = messages.TxnOffsetCommitRequest
    assert upgrades((28, 3, request(generation_id=1, member_id="m")), (26, 5, messages.EndTxnRequest())) == {}
    seen = {"upgrade-offsets-in-transactions": "2 commits of offsets in a transaction do not name the group's member"}
    assert upgrades((28, 3, request()), (28, 2, request())) == seen
    assert upgrades((26, 3, messages.EndTxnRequest())) == {"upgrade-transactions": "EndTxn v3"}


def test_settings_that_are_written_whole():
    assert upgrades((33, 1, messages.AlterConfigsRequest())) == {"upgrade-alter-configs": "1 AlterConfigs"}
    assert upgrades((44, 1, messages.IncrementalAlterConfigsRequest())) == {}


def test_the_report_of_a_failed_test_tells_it(broker, client):
    for _ in range(lint.LEAST_BATCHES):
        produce(client, [b"x"])
    count = lint.LEAST_BATCHES
    (line,) = [each for each in broker.report().splitlines() if each.startswith("lint: ")]
    assert line.startswith(f"lint: app: {count} batches with {count} records: let the producer wait")
    broker.recorded().stop()
    assert "lint:" not in broker.report()


def test_the_control_api_tells_the_same(broker, client, monkeypatch):
    """With what to do."""
    for _ in range(lint.LEAST_BATCHES):
        produce(client, [b"x"])
    found = Client(broker.control_url, broker.control_token).get("/lint").body["findings"]
    assert [(each["rule"], each["client_id"]) for each in found] == [("tiny-batches", "app")] and found[0]["advice"]
    monkeypatch.setitem(wire_client.VERSIONS, "JoinGroup", 5)
    request = messages.JoinGroupRequest
    protocols = [request.JoinGroupRequestProtocol(name="range", metadata=b"")]
    client.ask("JoinGroup", group_id="g", protocol_type="consumer", protocols=protocols, session_timeout_ms=6000)
    api = Client(broker.control_url, broker.control_token)
    assert len(api.get("/lint").body["findings"]) == 1
    found = api.get("/lint?upgrade=true").body["findings"]
    assert [each["rule"] for each in found] == ["tiny-batches", "upgrade-classic-groups"]
