"""Faults: what each kind does to a request, which requests meet one, and how it is counted and awaited."""

from __future__ import annotations

import threading
import time

import pytest

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.server.fault_injection import MAX_FAULTS
from pykafkad.server.injected_fault import KINDS
from pykafkad.testing import Broker, NewRecord, NotInTime
from pykafkad.testing.wire_client import VERSIONS, WireClient
from pykafkad.wire import messages
from pykafkad.wire.batch import build_batch, validate

LONG = 30
"""Seconds that no answer takes, however busy the machine is."""


@pytest.fixture
def client(broker):
    """A client that meets faults."""
    host, port = broker.bootstrap.split(":")
    connected = WireClient(host, int(port), LONG, client_id="app")
    yield connected
    connected.close()


def produce(client, partitions, topic="orders", acks=-1):
    """The error codes of a Produce of one record to each partition."""
    request = messages.ProduceRequest
    data = [
        request.PartitionProduceData(index=index, records=bytes(build_batch([(None, b"new")]))) for index in partitions
    ]
    answer = client.ask(
        "Produce", acks=acks, timeout_ms=1000, topic_data=[request.TopicProduceData(name=topic, partition_data=data)]
    )
    return {row.index: row.error_code for row in answer.responses[0].partition_responses}


def fetch(client, topic="orders", partition=0, **fields):
    """The answer to a Fetch of one partition."""
    request = messages.FetchRequest
    asked = request.FetchPartition(partition=partition, fetch_offset=0, partition_max_bytes=1000)
    return client.ask("Fetch", topics=[request.FetchTopic(topic=topic, partitions=[asked])], **fields)


def count_new(broker):
    """How many records `produce` has written."""
    return [each.value for each in broker.records("orders")].count(b"new")


def test_an_error_is_answered_so_many_times(broker, client):
    """And nothing is written then."""
    fault = broker.faults.answer("Produce", "NOT_LEADER_OR_FOLLOWER", times=2)
    codes = [produce(client, [0])[0] for _ in range(3)]
    assert codes == [errors.NOT_LEADER_OR_FOLLOWER] * 2 + [0]
    assert fault.count == 2 and fault.has_ended and count_new(broker) == 1


def test_a_partition_is_refused_and_the_others_are_served(broker, client):
    """As a broker does that leads some of them."""
    with broker.faults.answer("Produce", "NOT_LEADER_OR_FOLLOWER", topic="orders", partition=1, times=None):
        assert produce(client, [0, 1, 2]) == {0: 0, 1: errors.NOT_LEADER_OR_FOLLOWER, 2: 0}
        assert produce(client, [1]) == {1: errors.NOT_LEADER_OR_FOLLOWER}
        assert produce(client, [0, 2]) == {0: 0, 2: 0}
    assert produce(client, [1]) == {1: 0}
    assert count_new(broker) == 5


def test_a_refused_fetch_has_no_records_as_from_a_broker(broker, client):
    """Not null, which librdkafka can't read."""
    with broker.faults.answer("Fetch", "OFFSET_OUT_OF_RANGE"):
        row = fetch(client).responses[0].partitions[0]
    assert (row.error_code, row.records, row.aborted_transactions) == (errors.OFFSET_OUT_OF_RANGE, b"", None)


def test_other_topics_clients_versions_and_groups_pass(broker, client):
    """A fault is met by what it names and by nothing else."""
    broker.create_topic("others")
    for filters in (
        {"topic": "orders", "partition": 2},
        {"topic": "others"},
        {"client_id": "another"},
        {"versions": 3},
        {"versions": (10, 13)},
        {"transactional_id": "t"},
    ):
        with broker.faults.answer("Produce", "KAFKA_STORAGE_ERROR", **filters) as fault:
            assert produce(client, [0]) == {0: 0}, filters
            assert fault.count == 0
    with broker.faults.answer(["Fetch", "Produce"], 56, client_id="app", versions=(3, 9), topic="orders") as fault:
        assert produce(client, [0]) == {0: 56}
    with broker.faults.answer("FindCoordinator", "COORDINATOR_NOT_AVAILABLE", group="mine", times=None):
        for group, code in (("mine", errors.COORDINATOR_NOT_AVAILABLE), ("yours", 0)):
            rows = client.ask("FindCoordinator", coordinator_keys=[group]).coordinators
            if code:
                assert [row.error_code for row in rows] == [code]
            else:
                assert rows[0].error_code != errors.COORDINATOR_NOT_AVAILABLE or broker.groups() == []


def test_the_test_itself_meets_no_fault(broker):
    """What it asks by `Broker` always works."""
    with broker.faults.close_before(["Produce", "Metadata", "Fetch", "ListOffsets"], times=None) as fault:
        broker.produce("orders", "x")
        assert len(broker.records("orders")) == 3
    assert fault.count == 0


def test_metadata_refuses_a_topic_and_knows_the_others(broker, client):
    """And tells the brokers, without which no client could ask again."""
    broker.create_topic("others")
    with broker.faults.answer("Metadata", "LEADER_NOT_AVAILABLE", topic="orders"):
        answer = client.ask("Metadata", topics=None)
    assert answer.brokers and {row.name: row.error_code for row in answer.topics} == {"orders": 5, "others": 0}
    assert {row.error_code for row in client.ask("Metadata", topics=None).topics} == {0}


def test_errors_stand_where_each_api_has_them(broker, client):
    """In the rows of partitions, or at the top."""
    with broker.faults.answer("Fetch", "OFFSET_OUT_OF_RANGE"):
        answer = fetch(client)
        assert answer.error_code == 0 and answer.responses[0].partitions[0].error_code == errors.OFFSET_OUT_OF_RANGE
    with broker.faults.answer("ListGroups", "COORDINATOR_NOT_AVAILABLE"):
        assert client.ask("ListGroups").error_code == errors.COORDINATOR_NOT_AVAILABLE
    with broker.faults.answer("DescribeGroups", "NOT_COORDINATOR", group="g"):
        assert client.ask("DescribeGroups", groups=["g"]).groups[0].error_code == errors.NOT_COORDINATOR


def test_a_fetch_session_is_unknown_while_there_is_a_fault_on_fetch(broker, client):
    """A request of a session names no partitions, so no fault could be for them."""
    session = fetch(client, session_epoch=0).session_id
    assert session
    with broker.faults.answer("Fetch", "KAFKA_STORAGE_ERROR", topic="orders") as fault:
        answer = client.ask("Fetch", session_id=session, session_epoch=1)
        assert answer.error_code == errors.FETCH_SESSION_ID_NOT_FOUND and fault.count == 0
        assert fetch(client, session_epoch=0).responses[0].partitions[0].error_code == errors.KAFKA_STORAGE_ERROR


def test_a_delayed_request_is_served_later(broker, client):
    """Others on other connections are not."""
    with broker.faults.delay("Produce", 80):
        begin = time.monotonic()
        assert produce(client, [0]) == {0: 0}
        assert time.monotonic() - begin >= 0.08
    assert count_new(broker) == 1


def test_a_delayed_answer_belongs_to_a_request_that_is_served(broker, client):
    """Which others see at once."""
    broker.faults.delay_answer("Produce", 150)
    begin = time.monotonic()
    waiting = threading.Thread(target=produce, args=(client, [0]))
    waiting.start()
    broker.wait_for_records("orders", 3)
    seen = time.monotonic() - begin
    waiting.join()
    assert seen < time.monotonic() - begin and time.monotonic() - begin >= 0.15


@pytest.mark.parametrize(
    ("kind", "written", "error"),
    [
        ("drop_request", 0, TimeoutError),
        ("drop_answer", 1, TimeoutError),
        ("close_before", 0, ConnectionError),
        ("close_after", 1, ConnectionError),
    ],
)
def test_requests_and_answers_are_lost(broker, kind, written, error):
    """A lost request is not served, a lost answer belongs to one that is; the connection hangs or is closed."""
    host, port = broker.bootstrap.split(":")
    client = WireClient(host, int(port), 0.2 if error is TimeoutError else LONG, client_id="app")
    fault = broker.faults.set(kind, "Produce")
    with pytest.raises(error):
        produce(client, [0])
    fault.wait()
    client._timeout_seconds = LONG
    assert (fault.count, count_new(broker)) == (1, written)
    # A new connection works.
    assert produce(client, [1]) == {1: 0}
    client.close()


def test_an_answer_is_cut_off(broker):
    """After so many bytes, and its request was served."""
    host, port = broker.bootstrap.split(":")
    client = WireClient(host, int(port), LONG, client_id="app")
    got = []
    receive = client._receive
    client._receive = lambda size: got.append(receive(size)) or got[-1]
    fault = broker.faults.cut_answer("Produce", 4)
    with pytest.raises(ConnectionError):
        produce(client, [0])
    assert [len(each) for each in got] == [4] and (fault.count, count_new(broker)) == (1, 1)
    client.close()


def test_records_are_corrupted_for_one_reader(broker, client):
    """The topic itself is as it was."""
    broker.produce("orders", NewRecord("whole", partition=2))
    with broker.faults.corrupt_records(topic="orders", partition=2) as fault:
        records = fetch(client, partition=2).responses[0].partitions[0].records
        with pytest.raises(KafkaError, match="CORRUPT_MESSAGE"):
            validate(memoryview(bytearray(records)))
        assert fault.count == 1
    validate(memoryview(bytearray(fetch(client, partition=2).responses[0].partitions[0].records)))
    assert broker.records("orders", 2)[-1].value == b"whole"


def test_a_silent_connection_stays_silent_when_the_fault_has_ended(broker):
    """Its client would take the next answer for the lost one."""
    host, port = broker.bootstrap.split(":")
    client = WireClient(host, int(port), LONG, client_id="app")
    client.ask("Metadata", topics=[])
    fault = broker.faults.drop_answer("ListGroups")
    client._timeout_seconds = 0.1
    connected = client._socket
    client.close = lambda: None
    for _ in range(2):
        with pytest.raises(TimeoutError):
            client.ask("ListGroups")
        fault.wait()
        assert client._socket is connected
    connected.close()


def test_a_produce_without_answer_is_refused_by_a_close(broker):
    """With acks=0 there is nothing that could carry the error."""
    host, port = broker.bootstrap.split(":")
    client = WireClient(host, int(port), LONG, client_id="app")
    for kind, parameter, written in (("answer", "KAFKA_STORAGE_ERROR", 0), ("close_after", None, 1)):
        broker.faults.set(kind, "Produce", parameter)
        with pytest.raises(ConnectionError):
            produce(client, [0], acks=0)
        assert count_new(broker) == written


def test_a_probability_is_drawn_from_a_seed(broker, client):
    """The same requests meet it in every run."""
    runs = []
    for _ in range(2):
        with broker.faults.answer("ListGroups", 15, times=None, probability=0.5, seed=7) as fault:
            runs.append([client.ask("ListGroups").error_code for _ in range(20)])
            assert fault.count + fault.passed == 20
    assert runs[0] == runs[1] and set(runs[0]) == {0, 15}


def test_a_fault_is_awaited(broker, client):
    """And what did not happen in time is told."""
    fault = broker.faults.answer("ListGroups", 15, times=2)
    timer = threading.Timer(0.03, client.ask, ["ListGroups"])
    timer.start()
    fault.wait()
    timer.join()
    with pytest.raises(NotInTime, match="still no request number 2 that met the fault .* there is: 1 did"):
        fault.wait(2, timeout=0.02)


def test_the_first_of_two_faults_is_met_and_then_the_second(broker, client):
    """In the order in which they were set."""
    broker.faults.answer("ListGroups", 15)
    broker.faults.answer("ListGroups", 16)
    assert [client.ask("ListGroups").error_code for _ in range(3)] == [15, 16, 0]


def test_without_faults_the_broker_is_as_before(broker, client):
    """Connections have their fast paths again, old ones and new ones."""
    inside = broker._running._broker
    usual = inside.socket_server.serve, inside.sessions.fast_paths
    produce(client, [0])
    (connection,) = [each for each in inside.socket_server.connections() if each.session.fast_paths is usual[1]][-1:]
    with broker.faults.answer("Fetch", 56):
        assert connection.session.fast_paths == {} and connection.serve != usual[0]
        assert produce(client, [0]) == {0: 0}
    assert connection.session.fast_paths is usual[1] and connection.serve == usual[0]
    assert (inside.socket_server.serve, inside.sessions.fast_paths) == usual


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda faults: faults.answer("Prodcue", 6), "there is no API 'Prodcue'; did you mean Produce"),
        (lambda faults: faults.answer([], 6), "at least one API"),
        (
            lambda faults: faults.answer("Produce", "NOT_LEADER_OF"),
            "there is no error 'NOT_LEADER_OF'; did you mean NOT_LEADER_OR_FOLLOWER",
        ),
        (lambda faults: faults.answer("Produce", 0), "there is no error 0"),
        (lambda faults: faults.answer("Produce", 6, topics="x"), "there is no filter 'topics'; did you mean topic"),
        (lambda faults: faults.answer("Produce", 6, times=0), "times: 0"),
        (lambda faults: faults.answer("Produce", 6, versions=99), "versions: Produce has 3 to 13"),
        (lambda faults: faults.answer("Produce", 6, versions=(9, 5)), r"versions: \(9, 5\) is no version"),
        (lambda faults: faults.answer("Produce", 6, versions=(3, 5, 7)), "and no first and last one"),
        (lambda faults: faults.answer("Produce", 6, versions="3"), "versions: '3' is no version"),
        (lambda faults: faults.answer("Heartbeat", 6, topic="x"), "requests of Heartbeat name no topics"),
        (lambda faults: faults.answer("Metadata", 6, partition=1), "can't be for one partition"),
        (lambda faults: faults.answer("OffsetCommit", "NOT_COORDINATOR", topic=""), "'' is no topic's name"),
        (lambda faults: faults.answer("Produce", 6, probability=0), "probability: 0"),
        (lambda faults: faults.delay("Produce", -1), "delay_ms: -1"),
        (lambda faults: faults.cut_answer("Produce", -1), "at_byte: -1"),
        (lambda faults: faults.corrupt_records("Produce"), "only answers to Fetch"),
        (lambda faults: faults.set("dely", "Produce"), "there is no kind of fault 'dely'; did you mean delay"),
        (lambda faults: faults.set("delay", "Produce"), "delay takes delay_ms"),
        (lambda faults: faults.set("drop_answer", "Produce", 3), "drop_answer takes nothing"),
    ],
)
def test_a_fault_that_could_never_be_met_is_refused_when_it_is_written(broker, call, text):
    """With what is allowed."""
    with pytest.raises((ValueError, TypeError), match=text):
        call(broker.faults)
    assert broker.faults.every == []


def test_there_is_a_limit_of_faults():
    """That nobody reaches by hand."""
    with Broker() as own:
        for _ in range(MAX_FAULTS):
            own.faults.drop_request("Heartbeat")
        with pytest.raises(ValueError, match="release some"):
            own.faults.drop_request("Heartbeat")
        own.faults.release_all()
        own.faults.drop_request("Heartbeat")


def test_every_kind_has_a_method_and_every_api_of_the_client_a_version_that_is_served():
    """The tables of both sides are one."""
    from pykafkad.handlers import table
    from pykafkad.testing import Faults

    assert all(callable(getattr(Faults, kind)) for kind in KINDS)
    rows = {row.name: row for row in table.ROWS}
    assert all(rows[name].min_version <= version <= rows[name].max_version for name, version in VERSIONS.items())


def test_a_fault_of_before_a_reset_counts_no_other(broker, client):
    """Its number is never given again."""
    before = broker.faults.answer("ListGroups", "COORDINATOR_NOT_AVAILABLE")
    broker.reset()
    after = broker.faults.answer("ListGroups", "COORDINATOR_NOT_AVAILABLE", times=None)
    client.ask("ListGroups")
    assert after.count == 1 and before.count == 0
    before.release()
    client.ask("ListGroups")
    assert after.count == 2
