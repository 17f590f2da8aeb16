"""`GET /metrics`: Prometheus' text with Kafka's names."""

from __future__ import annotations

import re

from pykafkad.server.kafka_metrics import METRICS
from pykafkad.testing import Broker
from tests.control.http_client import Client

_SAMPLE = re.compile(r'(\w+)(?:\{((?:\w+="[^"\\\n]*",?)*)\})? (-?\d+)')


def samples(api):
    """Name and labels to value."""
    answer = api.get("/metrics")
    assert answer.status == 200 and answer.type == "text/plain; version=0.0.4; charset=utf-8"
    found = {}
    for line in answer.body.decode().splitlines():
        if not line.startswith("#"):
            name, labels, value = _SAMPLE.fullmatch(line).groups()
            assert (name, labels) not in found
            found[name, labels] = int(value)
    return found


def test_every_row_has_help_type_and_a_fitting_name(api):
    """A counter's name ends with _total, a gauge's does not; each is described once."""
    lines = api.get("/metrics").body.decode().splitlines()
    for row in METRICS:
        assert lines.count(f"# HELP {row.name} {row.help}") == lines.count(f"# TYPE {row.name} {row.kind}") == 1
        assert row.name.endswith("_total") == (row.kind == "counter")
    assert len({row.name for row in METRICS}) == len(METRICS)


def test_the_values_follow_what_happens(api, broker):
    """Records, offsets, sizes, topics, groups and requests."""
    before = samples(api)
    broker.produce("orders", "a", "b", "c")
    broker.create_topic("more", 2)
    broker.commit("readers", {("orders", 0): 1})
    after = samples(api)

    def grew(name, labels=None):
        return after[name, labels] - before.get((name, labels), 0)

    assert grew("kafka_server_brokertopicmetrics_messagesin_total", 'topic="orders"') == 3
    ends = [
        value for (name, labels), value in after.items() if name == "kafka_log_log_logendoffset" and "orders" in labels
    ]
    assert sum(ends) == after["kafka_server_brokertopicmetrics_messagesin_total", 'topic="orders"'] == 5
    assert grew("kafka_log_log_size", 'topic="orders",partition="0"') > 0
    assert after["kafka_log_log_numlogsegments", 'topic="orders",partition="0"'] == 1
    # With the topic of the groups' offsets.
    assert grew("kafka_controller_kafkacontroller_globaltopiccount") == 2
    assert grew("kafka_controller_kafkacontroller_globalpartitioncount") == 3
    assert grew("kafka_server_replicamanager_leadercount") == grew("kafka_server_replicamanager_partitioncount") == 3
    assert after["kafka_controller_kafkacontroller_offlinepartitionscount", None] == 0
    assert after["kafka_server_replicamanager_underreplicatedpartitions", None] == 0
    assert grew("kafka_server_group_coordinator_metrics_group_count", 'protocol="classic"') == 1
    assert grew("kafka_network_requestmetrics_requests_total") >= 3
    assert after["kafka_server_socket_server_metrics_connection_count", None] >= 1
    assert after["kafka_server_kafkaserver_brokerstate", None] == 3
    assert after["pykafkad_unexpected_errors_total", None] == 0


def test_messages_are_counted_as_they_come_in():
    """Not as they are there: what is deleted was counted, what was there at the start of a broker was not."""
    name = "kafka_server_brokertopicmetrics_messagesin_total", 'topic="orders"'
    with Broker(control=True, topics=["orders"]) as own:
        asked = Client(own.control_url, own.control_token)
        own.produce("orders", "a", "b", "c")
        own.restart()
        assert samples(asked)[name] == 0
        own.produce("orders", "d")
        found = samples(asked)
        assert found[name] == 1
        assert found["kafka_log_log_logendoffset", 'topic="orders",partition="0"'] == 4
