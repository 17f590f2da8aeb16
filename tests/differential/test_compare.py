"""Two brokers side by side: the same answers are told to be the same, and each other one is found."""

from __future__ import annotations

import json
import sys
from unittest.mock import patch

import pytest

from pykafkad.__main__ import main
from pykafkad.differential import links, tee
from pykafkad.differential.tee import Tee
from pykafkad.testing import Broker, wire_client
from pykafkad.testing.waits import until
from pykafkad.testing.wire_client import WireClient
from pykafkad.wire import frames, messages
from pykafkad.wire.batch import build_batch

LONG = 30
VERSIONS = {"Produce": 13, "Fetch": 17, "Metadata": 12, "InitProducerId": 3, "JoinGroup": 5, "SyncGroup": 3,
            "Heartbeat": 3, "EndTxn": 3, "AddPartitionsToTxn": 3, "CreateTopics": 7}  # fmt: skip


class Client(WireClient):
    """One that asks in versions with ids."""

    def ask(self, api, **fields):
        with patch.dict(wire_client.VERSIONS, VERSIONS):
            return super().ask(api, **fields)


@pytest.fixture
def pair():
    """Two brokers that are alike."""
    with Broker() as first, Broker() as second:
        yield first, second


@pytest.fixture
def client(between):
    """Its requests go to both."""
    found = Client("127.0.0.1", between.port, LONG, client_id="app")
    yield found
    found.close()


def create(client, name="orders", partitions=1):
    request = messages.CreateTopicsRequest
    topic = request.CreatableTopic(name=name, num_partitions=partitions, replication_factor=-1)
    answer = client.ask("CreateTopics", topics=[topic], timeout_ms=5000)
    return answer.topics[0].topic_id


def produce(client, topic_id, *values, transactional_id=None, **fields):
    request = messages.ProduceRequest
    batch = build_batch([(None, each, [], 1) for each in values], **fields)
    data = request.PartitionProduceData(index=0, records=bytes(batch))
    row = request.TopicProduceData(topic_id=topic_id, partition_data=[data])
    answer = client.ask("Produce", acks=-1, timeout_ms=1000, topic_data=[row], transactional_id=transactional_id)
    return answer.responses[0].partition_responses[0].error_code


def fetch(client, topic_id, offset=0, **fields):
    request = messages.FetchRequest
    row = request.FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=100_000)
    return client.ask(
        "Fetch", topics=[request.FetchTopic(topic_id=topic_id, partitions=[row])], max_wait_ms=0, **fields
    )


def coordinator(client):
    """That of a group, once it is there."""
    return until(
        lambda: client.ask("FindCoordinator", key_type=0, coordinator_keys=["g"]).coordinators[0],
        lambda row: row.error_code == 0,
        "coordinator",
        LONG,
    )


def told(between):
    return [line for each in between.differences for line in each.lines(("a", "b"))]


def test_ids_of_topics_producers_and_sessions_are_translated(pair, between, client):
    """Another topic and another producer of the second broker alone shift its ids."""
    second = WireClient(*links.address(pair[1].bootstrap), client_id="before")
    for _ in range(3):
        with patch.dict(wire_client.VERSIONS, VERSIONS):
            made = second.ask("InitProducerId", transactional_id=None)
    second.close()
    topic_id = create(client)
    mine = client.ask("InitProducerId", transactional_id=None)
    assert mine.producer_id != made.producer_id + 1
    who = {"producer_id": mine.producer_id, "producer_epoch": mine.producer_epoch}
    assert produce(client, topic_id, b"a", b"b", base_sequence=0, **who) == 0
    assert produce(client, topic_id, b"c", base_sequence=2, **who) == 0
    session = fetch(client, topic_id, session_epoch=0).session_id
    assert fetch(client, topic_id, 3, session_id=session, session_epoch=1).error_code == 0
    assert told(between) == [] and between.requests == 6
    values = [[each.value for each in broker.records("orders")] for broker in pair]
    assert values == [[b"a", b"b", b"c"]] * 2


def test_transactions_are_translated(pair, between, client):
    """AddPartitionsToTxn names its producer by another word."""
    shift = Client(*links.address(pair[1].bootstrap), client_id="before")
    shift.ask("InitProducerId", transactional_id=None)
    shift.close()
    topic_id = create(client)
    client.ask("FindCoordinator", key_type=1, coordinator_keys=["t"])
    made = until(
        lambda: client.ask("InitProducerId", transactional_id="t", transaction_timeout_ms=10_000),
        lambda answer: answer.error_code == 0,
        "producer id",
        LONG,
    )
    who = {"transactional_id": "t", "producer_id": made.producer_id, "producer_epoch": made.producer_epoch}
    topics = [messages.AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name="orders", partitions=[0])]
    fields = {**who, "topics": topics}
    added = client.ask("AddPartitionsToTxn", **{f"v3_and_below_{name}": value for name, value in fields.items()})
    (row,) = added.results_by_topic_v3_and_below
    assert row.results_by_partition[0].partition_error_code == 0
    batch = {"producer_id": made.producer_id, "producer_epoch": made.producer_epoch, "base_sequence": 0}
    assert produce(client, topic_id, b"a", transactional_id="t", is_transactional=True, **batch) == 0
    assert client.ask("EndTxn", **who, committed=True).error_code == 0
    assert told(between) == []


def test_members_of_groups_are_translated(between, client):
    """Their names end with an id of the broker's."""
    request = messages.JoinGroupRequest
    protocols = [request.JoinGroupRequestProtocol(name="range", metadata=b"m")]
    join = {"group_id": "g", "protocol_type": "consumer", "protocols": protocols, "session_timeout_ms": 10_000,
            "rebalance_timeout_ms": 10_000}  # fmt: skip
    coordinator(client)
    first = until(lambda: client.ask("JoinGroup", **join), lambda answer: answer.member_id, "member id", LONG)
    member = first if not first.error_code else client.ask("JoinGroup", **join, member_id=first.member_id)
    assert member.error_code == 0
    row = messages.SyncGroupRequest.SyncGroupRequestAssignment(member_id=member.member_id, assignment=b"mine")
    who = {"group_id": "g", "member_id": member.member_id, "generation_id": member.generation_id}
    assert client.ask("SyncGroup", **who, assignments=[row]).assignment == b"mine"
    assert client.ask("Heartbeat", **who).error_code == 0
    assert told(between) == []


def test_clients_come_back_to_the_tee(between, client):
    create(client)
    (broker,) = client.ask("Metadata", topics=None).brokers
    assert (broker.host, broker.port) == ("127.0.0.1", between.port)
    found = coordinator(client)
    assert (found.port, told(between)) == (between.port, [])


def test_another_error_is_told(pair, between, client):
    topic_id = create(client)
    with pair[1].faults.answer("Produce", "INVALID_RECORD", topic="orders"):
        assert produce(client, topic_id, b"a") == 0
    (found,) = between.differences
    assert (found.api, found.version, found.client_id, found.number) == ("Produce", 13, "app", 2)
    path = "responses.orders.partition_responses.0"
    assert f"Produce v13 of client 'app': {path}.error_code: a 0, b 87" in told(between)[0]


def test_other_records_and_other_rows_are_told(pair, between, client):
    topic_id = create(client)
    pair[0].produce("orders", "one")
    pair[1].produce("orders", "two")
    fetch(client, topic_id)
    (line,) = told(between)
    assert "request 2: Fetch v17 of client 'app': responses.orders.partitions.0.records.0: a " in line
    assert "one" in line.partition(", b ")[0] and "two" in line.partition(", b ")[2]
    pair[1].create_topic("more")
    client.ask("Metadata", topics=None)
    assert told(between)[1:] == ["request 3: Metadata v12 of client 'app': topics.more: a 'not there', b 'there'"]


def test_a_connection_that_is_closed_is_told(pair, between, client):
    with pair[1].faults.close_before("ListGroups"):
        client.ask("ListGroups")
    assert told(between) == [
        "request 1: ListGroups v5 of client 'app': answer: a 'answered', b 'closed the connection'"
    ]


def test_a_broker_that_is_not_ready_yet_is_asked_again(pair, between, client):
    coordinator(client)
    with pair[1].faults.answer("FindCoordinator", "COORDINATOR_NOT_AVAILABLE", times=2) as fault:
        client.ask("FindCoordinator", key_type=0, coordinator_keys=["g"])
        assert fault.count == 2
    # Also the first one, so that both have served it as often.
    with pair[0].faults.answer("FindCoordinator", "COORDINATOR_NOT_AVAILABLE", times=2) as fault:
        assert client.ask("FindCoordinator", key_type=0, coordinator_keys=["g"]).coordinators[0].error_code == 0
        assert fault.count == 2
    # Both have the same error: it is none.
    for broker in pair:
        broker.faults.answer("FindCoordinator", "COORDINATOR_NOT_AVAILABLE")
    client.ask("FindCoordinator", key_type=0, coordinator_keys=["g"])
    assert told(between) == []


def test_produce_without_an_answer_goes_to_both(pair, between, client):
    topic_id = create(client)
    request = messages.ProduceRequest
    data = request.PartitionProduceData(index=0, records=bytes(build_batch([(None, b"a", [], 1)])))
    rows = [request.TopicProduceData(topic_id=topic_id, partition_data=[data])]
    chunks = [frames.start_request(0, 13, 1, "app", True)]
    messages.encoder(request, 13)(request(acks=0, timeout_ms=1000, topic_data=rows), chunks)
    sender = links.connect(("127.0.0.1", between.port))
    sender.send(b"".join(chunks)[4:])
    for broker in pair:
        broker.wait_for_records("orders", 1)
    sender.close()


@pytest.mark.long
def test_it_keeps_so_many_differences(pair, between, client, monkeypatch):
    monkeypatch.setattr(tee, "MOST_DIFFERENCES", 1)
    with pair[1].faults.answer("ListGroups", "CLUSTER_AUTHORIZATION_FAILED", times=None):
        for _ in range(2):
            client.ask("ListGroups")
    assert (len(between.differences), between.different) == (1, 2)


def test_it_has_so_many_connections(between, client, monkeypatch):
    client.ask("ListGroups")
    monkeypatch.setattr(tee, "MOST_CONNECTIONS", 1)
    refused = links.connect(("127.0.0.1", between.port))
    assert refused.receive() is None
    refused.close()
    client.ask("ListGroups")


PROGRAM = """
import os, sys
from pykafkad.testing.wire_client import WireClient
host, port = os.environ["PYKAFKAD_BOOTSTRAP"].split(":")
assert host == "127.0.0.1"
assert sys.argv[1] == os.environ["PYKAFKAD_BOOTSTRAP"]
client = WireClient(host, int(port), client_id="app")
print(client.ask("ListGroups").error_code, file=sys.stderr)
client.close()
sys.exit(int(sys.argv[2]))
"""


def run(*words):
    return main(["compare", *words[:-1], "--", sys.executable, "-c", PROGRAM, "{bootstrap}", words[-1]])


@pytest.mark.long
def test_the_command(pair, capsys):
    """It ends with 1 for a difference, else as its program does."""
    real = pair[0]
    assert run("--with", real.bootstrap, "0") == 0
    assert capsys.readouterr().out == "0 of 1 requests were answered in different ways\n"
    assert run("--with", real.bootstrap, "3") == 3
    with real.faults.answer("ListGroups", "CLUSTER_AUTHORIZATION_FAILED", times=None):
        assert run("--with", real.bootstrap, "--set", "num.partitions=2", "0") == 1
        text = capsys.readouterr().out
        assert "ListGroups v5 of client 'app': error_code: pykafkad 0, kafka 31\n" in text
        assert text.endswith("1 of 1 requests were answered in different ways\n")
        assert run("--with", real.bootstrap, "--json", "--answer-from", "kafka", "0") == 1
        found = json.loads(capsys.readouterr().out)
        assert (found["api"], found["client_id"]) == ("ListGroups", "app")
        assert {"path": "error_code", "kafka": 31, "pykafkad": 0} in found["differences"]


def test_what_cannot_be_compared_is_said(pair, capsys):
    where = pair[0].bootstrap
    for words, code, text in (
        (["--with", "nowhere"], 2, "'nowhere' is no HOST:PORT, such as localhost:9092"),
        (["--with", where, "--set", "x"], 2, "--set x: a setting is NAME=VALUE"),
        (["--with", where, "--set", "num.partition=3"], 2, "there is no setting 'num.partition'; did you mean num.par"),
        (["--with", where, "--", "no-such-program"], 2, "no-such-program: No such file"),
    ):
        assert main(["compare", *words]) == code
        assert text in capsys.readouterr().err
    with Broker(brokers=3) as several:
        assert main(["compare", "--with", several.bootstrap.split(",")[0]]) == 1
    assert "this Kafka has 3 brokers; requests are compared with one alone" in capsys.readouterr().err
    address = pair[1].bootstrap
    pair[1].close()
    assert main(["compare", "--with", address]) == 1
    assert f"--with {address}: no Kafka answers there: Connection refused" in capsys.readouterr().err


def test_at_every_address_clients_are_told_the_one_that_they_have_reached(pair):
    """127.0.0.2 is this machine, too."""
    between = Tee(("0.0.0.0", 0), *(links.address(each.bootstrap) for each in pair))
    between.start()
    try:
        assert between.reached_here == ("127.0.0.1", between.port)
        for host in ("127.0.0.1", "127.0.0.2"):
            client = Client(host, between.port, LONG, client_id="app")
            (broker,) = client.ask("Metadata", topics=None).brokers
            assert (broker.host, broker.port) == (host, between.port)
            client.close()
    finally:
        between.close()
    assert told(between) == []


def test_a_program_is_told_an_address_of_this_machine(pair, capsys):
    assert run("--with", pair[0].bootstrap, "--listen", "0.0.0.0:0", "0") == 0
    assert capsys.readouterr().out == "0 of 1 requests were answered in different ways\n"
