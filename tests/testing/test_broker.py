"""A broker in a test: set up, looked into, reset and closed."""

from __future__ import annotations

import logging
import os
import socket
import threading
import unittest
from concurrent.futures import ThreadPoolExecutor

import pytest

from pykafkad import errors
from pykafkad.errors import ConfigError, StartFailure
from pykafkad.metadata import events
from pykafkad.testing import Broker, BrokerEnded, KafkaMixin, NewRecord, Refused, Topic, operations
from pykafkad.testing.client_configs import CLIENTS
from pykafkad.testing.failure_report import MOST
from pykafkad.testing.partitioner import partition_of
from pykafkad.testing.waits import until
from pykafkad.testing.wire_client import VERSIONS, WireClient
from pykafkad.wire import messages


def connects(bootstrap):
    """Whether somebody listens there."""
    host, port = bootstrap.split(":")
    try:
        socket.create_connection((host, int(port)), 5).close()
    except OSError:
        return False
    return True


def test_topics_records_and_offsets_of_the_constructor_are_there(broker):
    """They are seeded before anybody can look."""
    with Broker(
        topics={"one": 1, "two": Topic(2, {"cleanup.policy": "compact"})},
        records={"one": ["a", ("k", b"v"), None], "made": [NewRecord("x", "k", {"h": "1"}, timestamp_ms=77)]},
        group_offsets={"readers": {("one", 0): 2}},
    ) as own:
        assert own.topics() == {"one": 1, "two": 2, "made": 1}
        assert [(each.key, each.value) for each in own.records("one")] == [(None, b"a"), (b"k", b"v"), (None, None)]
        (made,) = own.records("made")
        assert (made.key, made.value, made.headers, made.timestamp_ms) == (b"k", b"x", (("h", b"1"),), 77)
        group = own.group("readers")
        assert (group.offsets, group.lag, group.state) == ({("one", 0): 2}, {("one", 0): 1}, "Empty")
        assert own.groups() == ["readers"]


def test_records_are_written_and_read_by_partition(broker):
    """Those without a key take turns, those with one lie where a Java client puts them."""
    written = broker.produce("orders", "a", "b", "c", ("key", "d"), NewRecord("e", partition=1))
    assert [record.partition for record in written] == [0, 1, 2, partition_of(b"key", 3), 1]
    assert broker.records("orders", 1)[-1] == written[-1]
    with pytest.raises(ValueError, match="partitions 0 to 2, not 3"):
        broker.produce("orders", NewRecord("f", partition=3))
    with pytest.raises(ValueError, match="partitions 0 to 2, not 3"):
        broker.records("orders", 3)
    with pytest.raises(Refused, match="UNKNOWN_TOPIC_OR_PARTITION") as refused:
        broker.records("elsewhere")
    assert refused.value.code == 3


def test_keys_go_where_java_puts_them():
    """Values of `Utils.murmur2` in Kafka's own UtilsTest, as partitions of a thousand."""
    hashes = {b"21": -973932308, b"foobar": -790332482, b"a-little-bit-long-string": -985981536, b"abc": 479470107}
    for key, expected in hashes.items():
        assert partition_of(key, 1000) == (expected & 0x7FFFFFFF) % 1000


def test_many_records_are_written_in_batches_of_a_bounded_size(broker):
    """A topic takes no batch above its max.message.bytes, and here are two megabytes."""
    broker.produce("orders", *[NewRecord(b"x" * 100_000, partition=0) for _ in range(20)])
    assert len(broker.records("orders", 0)) >= 20


def test_reset_goes_back_to_the_start_with_connections_open(broker):
    """Topics, groups, settings and faults are gone; who was connected still is."""
    host, port = broker.bootstrap.split(":")
    with socket.create_connection((host, int(port))) as connected:
        broker.create_topic("more", 2, {"retention.ms": 1000})
        broker.produce("orders", "late")
        broker.commit("readers", {("orders", 0): 1})
        fault = broker.faults.close_before("Fetch")
        broker.reset()
        assert broker.topics() == {"orders": 3}
        assert sorted(each.value for each in broker.records("orders")) == [b"alone", b"value"]
        assert broker.groups() == [] and broker.faults.every == [] and fault.count == 0
        connected.setblocking(False)
        with pytest.raises(BlockingIOError):
            connected.recv(1)


def test_no_client_comes_first_to_a_topic_at_a_reset(broker, monkeypatch):
    """One whose request makes topics with the broker's number of partitions asks for it all the time."""
    running = broker._running
    call = running.call

    def call_and_ask(job):
        def both():
            result = job()
            running._process.controller.submit(events.AutoCreateTopics(["orders"]))
            return result

        return call(both)

    monkeypatch.setattr(running, "call", call_and_ask)
    broker.reset()
    assert broker.topics() == {"orders": 3}


def test_dynamic_settings_go_back_at_a_reset(broker):
    """To those of a new cluster, which has one of its own."""
    request = messages.IncrementalAlterConfigsRequest
    changed = request.AlterableConfig(name="log.retention.ms", config_operation=0, value="1000")
    everywhere = request.AlterConfigsResource(resource_type=4, resource_name="", configs=[changed])
    settings = broker._running._process.controller.image.all_configs
    before = settings()
    answer = broker._asked.ask("IncrementalAlterConfigs", resources=[everywhere])
    assert answer.responses[0].error_code == 0 and settings() != before
    broker.reset()
    assert settings() == before


def test_producers_of_before_a_reset_and_after_it_have_different_ids(broker, monkeypatch):
    """Or the second one's first records would be taken for duplicates."""
    monkeypatch.setitem(VERSIONS, "InitProducerId", 4)
    before = broker._asked.ask("InitProducerId", transactional_id=None, transaction_timeout_ms=1000)
    broker.reset()
    after = broker._asked.ask("InitProducerId", transactional_id=None, transaction_timeout_ms=1000)
    assert 0 <= before.producer_id < after.producer_id


def test_a_closed_broker_leaves_no_port_and_no_thread():
    """Also when it is closed twice, or was never started."""
    own = Broker()
    own.close()
    own.start()
    assert connects(own.bootstrap)
    own.close()
    own.close()
    assert not connects(own.bootstrap) and not own.is_running
    assert not [each for each in threading.enumerate() if own.bootstrap in each.name]
    with pytest.raises(OSError):
        own.topics()


def test_a_port_that_is_taken_is_named(broker):
    """Whoever asks for a port of his own is told why he does not get it."""
    host, port = broker.bootstrap.split(":")
    with pytest.raises(StartFailure, match=f"cannot listen on {host}:{port}"):
        Broker(port=int(port)).start()


def test_a_broker_that_is_not_started_says_so():
    """Not that a connection failed."""
    with pytest.raises(RuntimeError, match="not started"):
        Broker().topics()


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"settings": {"num.partition": 3}}, ValueError, "did you mean num.partitions"),
        ({"settings": {"num.partitions": "many"}}, ConfigError, "num.partitions"),
        ({"settings": {"listeners": "PLAINTEXT://:1"}}, ValueError, "arguments host, port and data"),
        ({"topics": "orders"}, TypeError, "is a text"),
        ({"topics": {"orders": 0}}, ValueError, "0 is no number from 1"),
        ({"records": {"orders": [7]}}, TypeError, "not 7"),
        ({"log_level": "inf"}, ValueError, "did you mean info"),
        ({"memory_bytes": 10}, ValueError, "below 1 MiB"),
    ],
)
def test_arguments_are_checked_when_they_are_written(arguments, error, text):
    """Not when the broker starts."""
    with pytest.raises(error, match=text):
        Broker(**arguments)


def test_every_client_gets_its_own_settings(broker):
    """By the names that its documentation uses."""
    assert broker.client_config("confluent", group="g") == {
        "bootstrap.servers": broker.bootstrap,
        "group.id": "g",
        "auto.offset.reset": "earliest",
    }
    assert broker.client_config("kafkajs") == {"brokers": [broker.bootstrap]}
    for client in CLIENTS:
        assert broker.client_config(client)
    with pytest.raises(ValueError, match="'pykafka' is none of confluent"):
        broker.client_config("pykafka")


def test_log_lines_reach_the_standard_logging(caplog):
    """So caplog has them, with the broker that spoke."""
    caplog.set_level(logging.INFO, "pykafkad")
    with Broker(settings={"remote.log.reader.threads": "5"}) as own:
        bootstrap = own.bootstrap
    lines = [record for record in caplog.records if record.name.startswith("pykafkad.")]
    assert any("remote.log.reader.threads" in record.getMessage() for record in lines)
    assert {record.bootstrap for record in lines} == {bootstrap}


def test_what_a_broker_held_can_be_kept(tmp_path, broker):
    """As a data directory that a broker can be started on."""
    broker.keep(tmp_path / "kept")
    with Broker(data=tmp_path / "kept") as again:
        assert again.topics() == {"orders": 3}
        assert sorted(each.value for each in again.records("orders")) == [b"alone", b"value"]


def test_a_data_directory_outlives_its_broker(tmp_path):
    """As that of any broker."""
    for expected in ([], [b"a"]):
        with Broker(topics=[] if expected else ["kept"], data=tmp_path / "data") as own:
            assert [each.value for each in own.records("kept")] == expected
            own.produce("kept", "a")


@pytest.mark.long
@pytest.mark.parametrize("own_process", [False, True])
@pytest.mark.parametrize("is_killed", [False, True])
def test_a_restart_keeps_address_records_and_offsets(own_process, is_killed):
    """Whether it stops or is killed; faults are gone."""
    with Broker(topics=["orders"], own_process=own_process) as own:
        bootstrap = own.bootstrap
        own.produce("orders", "a", "b")
        own.commit("readers", {("orders", 0): 1})
        own.faults.drop_request("Heartbeat")
        own.restart(is_killed=is_killed)
        assert own.bootstrap == bootstrap and own.faults.every == []
        assert [each.value for each in own.records("orders")] == [b"a", b"b"]
        own.wait_for_lag("readers", 1)
        own.produce("orders", "c")
        own.reset()
        assert own.records("orders") == []


@pytest.mark.long
def test_a_directory_is_left_in_an_instant_by_a_process_of_its_own_alone(tmp_path):
    """A thread can't be killed with what it holds open."""
    with Broker(data=tmp_path / "one") as own:
        own.produce("orders", "a")
        with pytest.raises(ValueError, match="own_process=True"):
            own.restart(is_killed=True)
        own.restart()
        assert [each.value for each in own.records("orders")] == [b"a"]
    with Broker(data=tmp_path / "two", own_process=True) as own:
        own.produce("orders", "a")
        bootstrap = own.bootstrap
        own.restart(is_killed=True)
        assert own.bootstrap == bootstrap and [each.value for each in own.records("orders")] == [b"a"]


def test_a_saved_state_comes_back(broker):
    """Of one topic, or of everything."""
    with Broker(topics=["orders", "others"]) as own:
        own.produce("orders", "a")
        own.save("prepared")
        for topic in ("orders", None):
            own.produce("orders", "b")
            own.produce("others", "c")
            own.commit("readers", {("others", 0): 1})
            own.rewind("prepared", topic)
            assert [each.value for each in own.records("orders")] == [b"a"]
            assert len(own.records("others")) == (1 if topic else 0)
        assert own.groups() == [] and own.is_running
        with pytest.raises(Refused, match="there is no snapshot other; there are: prepared"):
            own.rewind("other")


def test_connections_go_on_after_the_way_back_of_everything():
    """Those that are idle, have said half of a request, or wait in a Fetch or for a group, which are answered."""
    request = messages.JoinGroupRequest
    protocol = request.JoinGroupRequestProtocol(name="range", metadata=b"")
    joining = {"session_timeout_ms": 10_000, "rebalance_timeout_ms": 60_000, "protocol_type": "consumer"}
    joining |= {"group_id": "g", "member_id": "", "protocols": [protocol]}
    topic = messages.FetchRequest.FetchTopic
    fetching = [topic(topic="orders", partitions=[messages.FetchRequest.FetchPartition(partition=0, fetch_offset=1)])]
    with Broker(topics=["orders"], settings={"group.initial.rebalance.delay.ms": "60000"}) as own:
        own.produce("orders", "a")
        own.commit("readers", {("orders", 0): 1})
        own.save("prepared")
        host, port = own.bootstrap.split(":")
        idle, waiting, other = (WireClient(host, int(port)) for _ in range(3))
        clients = idle, waiting, other
        for client in clients:
            client.ask("ListGroups")
        sockets = [client._socket for client in clients]
        with ThreadPoolExecutor(2) as pool, socket.create_connection((host, int(port)), 10) as half:
            half.sendall(b"\0\0\0\x0a\0\x12\0\0")
            fetched = pool.submit(waiting.ask, "Fetch", topics=fetching, max_wait_ms=20_000, min_bytes=1)
            joined = pool.submit(other._ask, "JoinGroup", 2, joining)
            server = own._running._process.broker.socket_server
            until(
                lambda: [each for each in server.connections() if each.in_service], lambda seen: len(seen) == 2, "2", 30
            )
            own.rewind("prepared")
            assert fetched.result(10).responses[0].partitions[0].high_watermark == 1
            assert joined.result(10).error_code == errors.NOT_COORDINATOR
            half.sendall(b"\0\0\0\7\xff\xff")
            assert half.recv(10)[4:10] == b"\0\0\0\7\0\0"
        own.produce("orders", "b")
        assert [client.ask("ListGroups").error_code for client in clients] == [0, 0, 0]
        assert [client._socket for client in clients] == sockets
        for client in clients:
            client.close()


def test_calls_wait_for_the_way_back_to_a_saved_state(monkeypatch):
    """It has a connection of its own, since the next broker knows that one as nobody's; theirs is made anew."""
    with Broker(topics=["orders"]) as own:
        own.save("prepared")
        act, seen = operations.snapshots.act, []

        def watched(client, action, value):
            assert client is not own._asked and own._asked._turn.locked() and own._asked._socket is None
            act(client, action, value)
            seen.append((action, value))

        monkeypatch.setattr(operations.snapshots, "act", watched)
        for topic in ("orders", None):
            own.rewind("prepared", topic)
            assert own.topics() == {"orders": 1}
    assert seen == [("restore", "prepared:orders"), ("restore", "prepared")]


def test_a_forked_child_neither_has_the_broker_nor_disturbs_it(broker):
    """The child's copies of the sockets are closed, and closing the broker there does nothing."""
    host, port = broker.bootstrap.split(":")
    connected = socket.create_connection((host, int(port)))
    broker.produce("orders", "before")
    child = os.fork()
    if child == 0:
        code = 1
        try:
            # Over a connection of its own, as any process.
            broker.produce("orders", "from the child")
            broker.close()
            try:
                broker.reset()
            except BrokerEnded:
                code = 0
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    values = [each.value for each in broker.records("orders")]
    assert b"before" in values and b"from the child" in values
    connected.close()


def test_threads_may_share_a_broker(broker):
    """Their requests take turns."""
    failures = []

    def work(number):
        try:
            for turn in range(10):
                broker.produce("orders", f"{number}-{turn}")
                broker.topics()
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == [] and len(broker.records("orders")) == 42


def test_a_unittest_case_has_a_broker_that_each_test_finds_fresh():
    """By a mixin in front of TestCase."""

    class Orders(KafkaMixin, unittest.TestCase):
        kafka_arguments = {"topics": {"orders": 1}}  # noqa: RUF012 - as a user writes it

        def test_one(self):
            self.kafka.produce("orders", "x")
            self.assertEqual(len(self.kafka.records("orders")), 1)

        test_two = test_one

    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(Orders).run(result)
    assert result.testsRun == 2 and result.wasSuccessful(), result.errors + result.failures
    assert not Orders.kafka.is_running


def test_a_report_tells_of_topics_groups_and_faults(broker):
    """And of the first of many only."""
    assert "topic orders, offsets by partition: 0: 0 to 1, 1: 0 to 1, 2: 0 to 0" in broker.report()
    broker.commit("readers", {("orders", 0): 0})
    broker.faults.delay("Fetch", 5, topic="orders")
    told = broker.report()
    assert "group readers: Empty, members: none, lag: orders-0 1" in told
    assert "fault delay Fetch 5 ms topic='orders': fired 0 times" in told
    for number in range(MOST):
        broker.create_topic(f"another-{number:02}")
    lines = broker.report("orders").splitlines()
    assert lines[1].startswith("topic orders") and lines[MOST + 1] == "and 1 more" and "another-29" not in str(lines)


def test_the_end_of_a_broker_in_memory_writes_nothing_for_a_next_start():
    """A restart reads the memory again, and is a clean start; nobody reads it after `close`."""
    with Broker(topics={"orders": 1}, records={"orders": ["one"]}) as broker:
        disk = broker._running._disk
        broker.restart()
        assert [record.value for record in broker.records("orders")] == [b"one"]
        written = []
        disk_class = type(disk)

        class Watched(disk_class):
            __slots__ = ()

            def write(self, path, data, *, sync=False):
                written.append(path)
                super().write(path, data, sync=sync)

        disk.__class__ = Watched
        broker.restart()
        assert any("clean" in path for path in written)
        written.clear()
    assert written == []
