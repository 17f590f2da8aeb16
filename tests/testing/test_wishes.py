"""What people ask of a broker to test against: each wish has a test, and a line in docs/testing.md.

Tests that are named after a wish and need nothing but the broker stand here; the table names those that stand
elsewhere."""

from __future__ import annotations

import ast
import gc
import os
import threading
from pathlib import Path

import pytest

from pykafkad import config, errors, platform_calls
from pykafkad.testing import Broker, NewRecord
from pykafkad.testing.wire_client import WireClient
from pykafkad.wire import messages

PROJECT = Path(__file__).parents[2]
HERE = "tests/testing/test_wishes.py"
CLIENTS = "compat_tests/test_testing.py"
BROKER = "tests/testing/test_broker.py"
LISTENERS = "compat_tests/test_listeners.py"
WHEEL = "compat_tests/test_wheel.py"
SEVERAL = "tests/testing/test_several_brokers.py"
PORTABLE = "tests/test_platform_calls.py"
HEALTH = "tests/control/test_server.py"
CONTAINER = "compat_tests/test_container.py"

WISHES = (
    ("starts fast, and is ready when it says so", f"{HERE}::test_it_is_ready_when_it_says_so"),
    ("one address for host, container and proxy", f"{LISTENERS}::test_the_address_that_the_caller_used"),
    ("is broken on purpose", f"{CLIENTS}::test_an_idempotent_producer_survives_a_fault"),
    ("no Docker and no JVM", f"{WHEEL}::test_beside_what_others_pin"),
    ("is clean between tests", f"{HERE}::test_it_is_clean_between_tests"),
    ("no race behind the creation of a topic", f"{HERE}::test_there_is_no_race_behind_the_creation_of_a_topic"),
    ("TLS and logins in one line", "tests/testing/test_guard.py::test_clients_encrypt"),
    ("a free port without a race", f"{HERE}::test_many_at_once_get_ports_of_their_own"),
    ("no delay of the first rebalance", f"{HERE}::test_the_first_rebalance_has_no_delay"),
    ("waits for groups in place of sleeps", f"{CLIENTS}::test_groups_are_awaited"),
    ("parallel tests in one process", "tests/testing/test_tenants.py::test_the_same_topics_and_groups_do_not_meet"),
    ("runs on ARM", f"{WHEEL}::test_what_the_wheel_says_of_itself"),
    ("runs on Windows", f"{PORTABLE}::test_files_locks_and_descriptors_work_without_what_only_linux_has"),
    ("an image that is light and starts each time", f"{CONTAINER}::test_it_starts_again_and_again"),
    ("topics at the start", f"{BROKER}::test_topics_records_and_offsets_of_the_constructor_are_there"),
    ("several brokers", f"{SEVERAL}::test_one_is_killed_and_comes_back"),
    ("the newest group protocols", f"{CLIENTS}::test_groups_are_awaited"),
    ("little memory", "tests/testing/test_tenants.py::test_what_one_more_costs"),
    ("a schema registry without a container", "compat_tests/test_registry.py::test_avro_from_producer_to_consumer"),
    ("control from any language", "compat_tests/test_examples.py::test_go"),
    ("a decoded trace", "tests/testing/test_traces.py::test_requests_and_answers_have_their_fields"),
    ("PySpark's streams", "spark_it/tests/test_streams.py::test_topic_to_topic"),
    ("time that passes on command", "tests/testing/test_clocks.py::test_records_are_deleted_by_retention"),
    ("data of topics as a fixture", f"{BROKER}::test_a_saved_state_comes_back"),
    ("messages and groups without a consumer", f"{HERE}::test_messages_and_groups_show_without_a_consumer"),
    ("a check whether it is ready", f"{HEALTH}::test_health_needs_no_token_and_nothing_else_does_without"),
    ("the data of a test that failed", f"{BROKER}::test_what_a_broker_held_can_be_kept"),
    ("acts as an older or a newer release", "compat_tests/test_act_as.py::test_clients_write_and_read"),
    ("the same address after a restart", f"{SEVERAL}::test_all_start_again_at_their_addresses"),
    ("committed offsets after a restart", f"{BROKER}::test_a_restart_keeps_address_records_and_offsets"),
    ("no sync for each message", f"{HERE}::test_no_message_is_synced_by_itself"),
    ("takes nothing from what is tested", f"{CLIENTS}::test_an_idle_broker_takes_no_processor_time"),
    ("needs no root", f"{CONTAINER}::test_without_any_variable"),
    ("too cheap to be reused", f"{HERE}::test_a_cluster_for_each_test_leaves_nothing"),
    ("a coordinator that is killed in a rebalance", f"{CLIENTS}::test_a_coordinator_is_killed_in_a_rebalance"),
)  # fmt: skip
"""Each wish with the test that shows it, the most frequent first."""


def names_of_tests(path):
    tree = ast.parse((PROJECT / path).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def test_every_wish_has_a_test():
    """Which is there under its name."""
    named = [test.split("::") for _, test in WISHES]
    assert [each for each in named if each[1] not in names_of_tests(each[0])] == []


def test_every_wish_has_a_line_with_its_code():
    """In the documentation, in the same order, and no other."""
    text = (PROJECT / "docs" / "testing.md").read_text(encoding="utf-8")
    _, begin, rest = text.partition("<!-- wishes: begin -->")
    rows = [line.split(" | ", 1) for line in rest.partition("<!-- wishes: end -->")[0].splitlines() if "`" in line]
    assert begin and [row[0].removeprefix("| ") for row in rows] == [wish for wish, _ in WISHES]


def client(broker):
    host, _, port = broker.bootstrap.rpartition(":")
    return WireClient(host, int(port), client_id="app")


def test_it_is_ready_when_it_says_so():
    """The first requests of clients find the topic with its leader, and write to it."""
    with Broker(topics={"orders": 3}) as broker:
        asked = client(broker)
        (topic,) = asked.ask("Metadata", topics=[messages.MetadataRequest.MetadataRequestTopic(name="orders")]).topics
        assert topic.error_code == 0 and {each.leader_id for each in topic.partitions} == {1}
        asked.close()
        assert [each.offset for each in broker.produce("orders", "one")] == [0]


def test_it_is_clean_between_tests():
    """With clients connected; in mid-test it goes back to a state that was saved."""
    with Broker(topics={"orders": 1}, records={"orders": ["first"]}) as broker:
        asked = client(broker)
        asked.ask("Metadata")
        broker.save("prepared")
        broker.produce("orders", "second")
        broker.rewind("prepared")
        assert [each.value for each in broker.records("orders")] == [b"first"]
        broker.create_topic("other")
        broker.commit("billing", {("orders", 0): 1})
        broker.reset()
        assert (broker.topics(), broker.groups()) == ({"orders": 1}, [])
        assert [each.name for each in asked.ask("Metadata", topics=None).topics] == ["orders"]
        asked.close()


def test_there_is_no_race_behind_the_creation_of_a_topic(broker):
    """Whoever asks after the answer finds the topic, and after its deletion does not; the next one of its name is
    empty."""
    other = client(broker)
    wanted = [messages.MetadataRequest.MetadataRequestTopic(name="fresh")]
    for _ in range(20):
        broker.create_topic("fresh", 2)
        (row,) = other.ask("Metadata", topics=wanted, allow_auto_topic_creation=False).topics
        assert (row.error_code, len(row.partitions)) == (0, 2)
        assert [each.offset for each in broker.produce("fresh", ("key", "one"))] == [0]
        broker.delete_topic("fresh")
        (row,) = other.ask("Metadata", topics=wanted, allow_auto_topic_creation=False).topics
        assert row.error_code == errors.UNKNOWN_TOPIC_OR_PARTITION
    other.close()


def test_many_at_once_get_ports_of_their_own():
    """Each binds port 0 and keeps what it got, also over a restart."""
    brokers = [Broker() for _ in range(8)]
    threads = [threading.Thread(target=each.start) for each in brokers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    addresses = [each.bootstrap for each in brokers]
    assert len(set(addresses)) == 8
    for each in brokers:
        each.restart()
    assert [each.bootstrap for each in brokers] == addresses
    for each in brokers:
        each.close()


def test_the_first_rebalance_has_no_delay(broker):
    """By default; a test that is about the delay sets Kafka's."""
    name = "group.initial.rebalance.delay.ms"

    resource = messages.DescribeConfigsRequest.DescribeConfigsResource
    broker_resource = 4

    def delay_ms(own):
        asked = client(own)
        wanted = [resource(resource_type=broker_resource, resource_name="1", configuration_keys=[name])]
        ((row,),) = [each.configs for each in asked.ask("DescribeConfigs", resources=wanted).results]
        asked.close()
        return row.value

    assert delay_ms(broker) == "0" and config.ROWS[config.BROKER][name].kafka_default == "3000"
    with Broker(settings={name: 3000}) as own:
        assert delay_ms(own) == "3000"


def test_messages_and_groups_show_without_a_consumer(broker):
    """And nobody else sees that they were looked at."""
    broker.produce("orders", NewRecord("more", headers=[("trace", "7")]))
    broker.commit("billing", {("orders", 0): 0})
    (found,) = [each for each in broker.records("orders") if each.value == b"more"]
    assert [(name, bytes(value)) for name, value in found.headers] == [("trace", b"7")]
    assert sum(broker.group("billing").lag.values()) >= 0 and broker.groups() == ["billing"]


@pytest.mark.parametrize("interval", [None, "1"])
def test_no_message_is_synced_by_itself(tmp_path, monkeypatch, interval):
    """As in Kafka the system writes it when it likes to, unless a setting asks for more."""
    synced = []
    original = platform_calls.fdatasync
    monkeypatch.setattr(platform_calls, "fdatasync", lambda file: (synced.append(file), original(file)))
    settings = {} if interval is None else {"log.flush.interval.messages": interval}
    with Broker(topics={"orders": 1}, data=tmp_path / "data", settings=settings) as broker:
        before = len(synced)
        for number in range(20):
            broker.produce("orders", str(number))
        assert len(synced) - before == 0 if interval is None else len(synced) - before >= 20


@pytest.mark.long
def test_a_cluster_for_each_test_leaves_nothing():
    """Neither threads nor open files; the next one knows nothing of it."""

    def one(number):
        with Broker(topics={"orders": 1}) as broker:
            assert broker.records("orders") == []
            broker.produce("orders", str(number))

    one(0)
    # What other tests have left would be closed meanwhile.
    gc.collect()
    threads, files = threading.active_count(), len(os.listdir("/proc/self/fd"))
    for number in range(20):
        one(number)
    assert (threading.active_count(), len(os.listdir("/proc/self/fd"))) == (threads, files)
