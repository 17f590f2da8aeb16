"""The control API of several brokers of one process: what is asked and done concerns all of them."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

from pykafkad.__main__ import main
from pykafkad.control.page_calls import CONNECTION
from pykafkad.testing import Broker, NewRecord
from pykafkad.testing.wire_client import WireClient
from tests.control.http_client import Client
from tests.control.test_metrics import samples

SETTINGS = {"default.replication.factor": 3, "min.insync.replicas": 2}


@pytest.fixture(
    scope="module",
    params=[
        pytest.param((1, False), id="one-controller"),
        pytest.param((3, False), id="three", marks=pytest.mark.long),
        pytest.param((1, True), id="process", marks=pytest.mark.long),
    ],
)
def shared(request):
    """Three brokers with a topic that all of them lead, with one controller, three, and in a process of their own."""
    controllers, own_process = request.param
    with Broker(
        brokers=3, controllers=controllers, own_process=own_process, control=True, topics={"orders": 6},
        settings=SETTINGS,
    ) as made:  # fmt: skip
        yield made
        if not own_process:
            assert made._running._process.runtime.metrics.unexpected_errors == 0


@pytest.fixture
def broker(shared):
    """The same, as they were at their start."""
    shared.reset()
    return shared


@pytest.fixture
def api(broker):
    """Asks their control API."""
    return Client(broker.control_url, broker.control_token)


def clients(broker):
    """A client of each broker."""
    addresses = [each.rpartition(":") for each in broker.bootstrap.split(",")]
    return [WireClient(host, int(port), client_id="someone") for host, _, port in addresses]


def test_topics_records_and_groups_of_all_of_them(api, broker):
    """Whoever leads or coordinates is asked."""
    status = api.get("/status").body
    assert (status["bootstrap"], status["topics"], status["partitions"]) == (broker.bootstrap, 1, 6)
    api.post(
        "/topics/orders/records", records=[{"value": str(number), "partition": number % 6} for number in range(18)]
    )
    found = api.get("/topics/orders/records").body["records"]
    assert sorted(int(each["value"]) for each in found) == list(range(18))
    topic = api.get("/topics/orders").body
    assert {each["leader"] for each in topic["partitions"]} == {1, 2, 3}
    # As the leader has it: a replica knows what is committed a moment later.
    assert [each["high_watermark"] for each in topic["partitions"]] == [3] * 6
    assert [sorted(each["replicas"]) for each in topic["partitions"]] == [[1, 2, 3]] * 6
    # Each record is counted once, though three brokers have it.
    found = broker.look(["topics", "counts"])
    (orders,) = (each for each in found["topics"] if each["name"] == "orders")
    assert orders["records"] == 18 and orders["bytes"] == sum(each["bytes"] for each in topic["partitions"])
    for number in range(6):
        broker.commit(f"group {number}", {("orders", index): 1 for index in range(6)})
    rows = {each["name"]: each["lag"] for each in broker.look(["groups"])["groups"]}
    assert rows == {f"group {number}": 12 for number in range(6)}
    assert api.get("/groups").body["groups"] == sorted(rows)
    api.delete("/topics/orders")
    assert api.get("/topics").body == {"topics": []}
    assert api.send("POST", "/reset").body == {"done": True}
    assert api.get("/topics").body == {"topics": [{"name": "orders", "partitions": 6}]}


def test_messages_are_counted_once(broker):
    """Replicas copy what their leader has counted."""
    before = broker.look(["counts"])["counts"]["messages_in"]
    broker.produce("orders", *(NewRecord("v", partition=index) for index in range(6)))
    assert broker.look(["counts"])["counts"]["messages_in"] == before + 6


def test_connections_name_their_broker(api, broker):
    every = clients(broker)
    for each in every:
        each.ask("Metadata", topics=[])
    rows = api.get("/connections").body["connections"]
    assert "broker" in CONNECTION["properties"]
    assert {each["broker"] for each in rows} == {1, 2, 3}
    for each in every:
        each.close()


def test_metrics_of_each_broker(api, broker):
    """With its node id; what is of the cluster or the process is there once."""
    broker.produce("orders", *(NewRecord("v", partition=index) for index in range(6)))
    found = samples(api)

    def of_brokers(name, labels=""):
        return [found[name, f'{labels}broker="{node_id}"'] for node_id in (1, 2, 3)]

    assert of_brokers("kafka_server_kafkaserver_brokerstate") == [3, 3, 3]
    led = of_brokers("kafka_server_replicamanager_leadercount")
    assert sum(led) == found["kafka_controller_kafkacontroller_globalpartitioncount", None] and 0 not in led
    assert found["kafka_controller_kafkacontroller_activebrokercount", None] == 3
    assert ("kafka_network_requestmetrics_requests_total", None) in found
    assert sum(of_brokers("kafka_server_brokertopicmetrics_messagesin_total", 'topic="orders",')) == 6
    assert of_brokers("kafka_log_log_logendoffset", 'topic="orders",partition="0",') == [1, 1, 1]


def test_a_fault_is_met_by_clients_at_every_broker_or_at_one(api, broker):
    """Requests of replicas, which are under way all the time, meet none, unless a fault names them."""
    broker.produce("orders", *(NewRecord("v", partition=index) for index in range(6)))
    every = clients(broker)

    def codes():
        return [bool(client.ask("Metadata", topics=None).topics[0].error_code) for client in every]

    fetch = api.post("/faults", kind="answer", apis=["Fetch"], error="UNKNOWN_SERVER_ERROR").body
    one = api.post("/faults", kind="answer", apis=["Metadata"], error="UNKNOWN_SERVER_ERROR", broker=2, times=2).body
    assert [codes(), codes(), codes()] == [[False, True, False], [False, True, False], [False] * 3]
    assert api.get(f"/faults/{one['number']}").body["has_ended"]
    api.post("/faults", kind="answer", apis=["Metadata"], error="UNKNOWN_SERVER_ERROR")
    assert [codes(), codes()] == [[True, False, False], [False] * 3]
    # Some fetches of replicas later.
    broker.produce("orders", *(NewRecord("v", partition=index) for index in range(6)))
    assert api.get(f"/faults/{fetch['number']}").body["count"] == 0
    named = api.post("/faults", kind="delay_answer", apis=["Fetch"], delay_ms=1, client_id="broker-2-fetcher-0").body
    broker.produce("orders", *(NewRecord("v", partition=index) for index in range(6)))
    assert api.post(f"/faults/{named['number']}/wait", count=1).body["count"] == 1
    assert api.get(f"/faults/{fetch['number']}").body["count"] == 0
    refused = api.post("/faults", kind="answer", apis=["Metadata"], error="UNKNOWN_SERVER_ERROR", broker=7)
    assert refused.status == 400 and refused.error["what"] == "broker: there is no broker 7, but 1, 2, 3"
    events = api.get("/timeline").body["events"]
    assert [each["fields"]["api"] for each in events if each["event"] == "fault-fired"][-4:-1] == ["Metadata"] * 3
    for each in every:
        each.close()


def test_a_trace_has_the_requests_of_clients_to_all_of_them(api, broker):
    """What the brokers ask of each other is not among them."""
    with broker.trace() as trace:
        trace.clear()
        every = clients(broker)
        for each in every:
            each.ask("ListGroups")
        # The replicas fetch it.
        broker.produce("orders", *(NewRecord("v", partition=index) for index in range(6)))
        found = trace.requests()
        assert [each["client_id"] for each in found] == ["someone"] * 3
        assert len({each["connection"] for each in found}) == 3 and all(each["is_answered"] for each in found)
        assert broker.lint() == []
        assert "ListGroups" in broker.report() and "ListGroups" in api.get("/report").body.decode()
        for each in every:
            each.close()


def test_a_broker_that_starts_again_is_traced_and_has_the_faults(api, broker):
    """Also what was recorded before stays."""
    with broker.trace() as trace:
        trace.clear()
        fault = broker.faults.answer("Metadata", "UNKNOWN_SERVER_ERROR", broker=3, times=None)
        broker.stop_broker(3)
        broker.start_broker(3)
        every = clients(broker)
        answers = [each.ask("Metadata", topics=None) for each in every]
        assert [bool(each.topics[0].error_code) for each in answers] == [False, False, True]
        assert fault.count == 1 and [each["api"] for each in trace.requests()] == ["Metadata"] * 3
        for each in every:
            each.close()


def test_what_is_asked_while_no_broker_serves(api, broker):
    """A trace that begins then has what is asked later; the metrics of the process are there."""
    broker.stop_broker(1)
    for node_id in (2, 3):
        broker.kill_broker(node_id)
    with broker.trace() as trace:
        trace.clear()
        found = samples(api)
        assert found["kafka_controller_kafkacontroller_globaltopiccount", None] == 1
        assert not [name for name, labels in found if labels and "broker=" in labels]
        for node_id in (1, 2, 3):
            broker.start_broker(node_id)
        for each in (every := clients(broker)):
            each.ask("ListGroups")
            each.close()
        assert len(every) == 3 and [each["api"] for each in trace.requests()] == ["ListGroups"] * 3


def test_the_clock_moves_for_all_of_them(api, broker):
    before = api.get("/clock").body["ahead_seconds"]
    assert api.post("/clock/advance", seconds=30).body["ahead_seconds"] == pytest.approx(before + 30)
    broker.produce("orders", *(NewRecord("v", partition=index) for index in range(6)))
    assert len(broker.records("orders")) == 6


def test_a_trace_goes_on_when_all_of_them_start_again(broker):
    with broker.trace() as trace:
        trace.clear()
        for _ in range(2):
            for each in (every := clients(broker)):
                each.ask("ListGroups")
                each.close()
            broker.restart()
        assert len(every) == 3 and [each["api"] for each in trace.requests()] == ["ListGroups"] * 6


class Served:
    """Three brokers that `pykafkad serve` has in one process, with a control API."""

    def __init__(self, *options):
        words = ["serve", "--brokers", "3", "--listen", "127.0.0.1:0", "--memory", "64MB", "--control", "0", *options]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "pykafkad", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.line = self.process.stdout.readline()
        url, token = re.search(r"control=(\S+) control\.token=(\S+)", self.line).groups()
        self.bootstrap = self.line.split()[-1]
        self.api = Client(url, token)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()

    def stop(self):
        """What it has logged."""
        self.process.terminate()
        _, log = self.process.communicate(timeout=60)
        assert self.process.returncode == 0 and "Traceback" not in log, log
        return log


SECURED = ["--user", "alice:secret:PLAIN", "--acl", "alice read topic orders"]


@pytest.mark.long
@pytest.mark.parametrize(
    "options", [[], SECURED, ["--controllers", "3"]], ids=["plain", "secured", "three-controllers"]
)
def test_served_brokers_have_it_too(tmp_path, options):
    """With a trace that is written at the end, and what the readiness line says; --user and --acl do not stand in the
    way."""
    trace = tmp_path / "trace.jsonl"
    with Served(
        "--topic", "orders:6", "--set", "default.replication.factor=3", "--trace", str(trace), *options
    ) as served:
        api = served.api
        assert len(served.bootstrap.split(",")) == 3
        status = api.get("/status").body
        assert (status["bootstrap"], status["topics"], status["partitions"]) == (served.bootstrap, 1, 6)
        records = [{"value": str(number), "partition": number} for number in range(6)]
        assert api.post("/topics/orders/records", records=records).status == 200
        assert len(api.get("/topics/orders/records").body["records"]) == 6
        assert (
            api.put("/groups/readers/offsets", offsets=[{"topic": "orders", "partition": 1, "offset": 1}]).status == 200
        )
        assert api.get("/groups").body == {"groups": ["readers"]}
        assert sorted({each["leader"] for each in api.get("/topics/orders").body["partitions"]}) == [1, 2, 3]
        assert api.post("/topics", name="more").status == 201
        assert api.post("/clock/advance", seconds=20).body["ahead_seconds"] == pytest.approx(20)
        assert api.send("POST", "/reset").body == {"done": True}
        assert api.get("/topics").body == {"topics": [{"name": "orders", "partitions": 6}]}
        assert api.get("/topics/orders/records").body["records"] == []
        if "--user" not in options:
            for each in served.bootstrap.split(","):
                host, _, port = each.rpartition(":")
                client = WireClient(host, int(port), client_id="someone")
                client.ask("ListGroups")
                client.close()
        served.stop()
    traced = [json.loads(line) for line in trace.read_text().splitlines()]
    assert [each["client_id"] for each in traced] == ([] if "--user" in options else ["someone"] * 3)


@pytest.mark.parametrize("options", [(), ("--controllers", "3")], ids=["one-controller", "three"])
@pytest.mark.long
def test_served_brokers_go_back_to_a_snapshot(options):
    """All of them; calls find those that serve next."""
    with Served("--topic", "orders:6", "--set", "default.replication.factor=3", *options) as served:
        api = served.api
        records = [{"value": str(number), "partition": number} for number in range(6)]
        api.post("/topics/orders/records", records=records)
        assert api.post("/snapshots", name="before").status == 201
        api.post("/topics/orders/records", records=records)
        api.send("POST", "/trace/start")
        assert api.post("/snapshots/before/restore").body == {"done": True}
        assert api.get("/status").body["bootstrap"] == served.bootstrap
        assert len(api.get("/topics/orders/records").body["records"]) == 6
        assert api.get("/trace").body["is_on"]
        refused = api.post("/snapshots/before/restore", topic="orders")
        assert "a single topic (orders) does not go back alone" in refused.error["what"]
        served.stop()


@pytest.mark.parametrize("option", ["control", "registry", "trace"])
def test_with_processes_there_is_none(option, capsys, tmp_path):
    """It would have to be in all of them; the sentence says what there is in its place."""
    value = {"control": "0", "registry": "0", "trace": str(tmp_path / "trace.txt")}[option]
    words = ["serve", "--brokers", "2", "--processes", "--memory", "32MB", f"--{option}", value]
    assert main(words) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"pykafkad: --{option}: it is a part of the process of the brokers, and with --processes")
    assert error.endswith(f"leave out --processes: all brokers are in one process then, which can have --{option}\n")


def test_a_tenant_is_one_broker(capsys):
    assert main(["serve", "--brokers", "2", "--tenant", "a", "--memory", "32MB"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("pykafkad: --brokers: each --tenant is a cluster of one broker")
