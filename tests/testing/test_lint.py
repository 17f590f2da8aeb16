"""Client lint: each rule sees what it is for, and nothing else."""

from __future__ import annotations

import pytest

from pykafkad.server.trace import Exchange
from pykafkad.testing import Broker, Topic, lint
from pykafkad.testing.wire_client import WireClient
from pykafkad.wire import messages
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


def test_the_control_api_tells_the_same(broker, client):
    """With what to do."""
    for _ in range(lint.LEAST_BATCHES):
        produce(client, [b"x"])
    found = Client(broker.control_url, broker.control_token).get("/lint").body["findings"]
    assert [(each["rule"], each["client_id"]) for each in found] == [("tiny-batches", "app")] and found[0]["advice"]
