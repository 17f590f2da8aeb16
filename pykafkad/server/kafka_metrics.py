"""Counters and gauges of a process as Prometheus' text, for `GET /metrics` of the control API.

Names are those that the JMX exporter makes of Kafka's beans in lower case; what Kafka does not have begins with
`pykafkad_`. A row of `METRICS` is all that is known of a metric. They read what the broker counts anyway. One differs
from Kafka's: `requests_total` is not divided by request. Of several brokers of one process each has samples of its own,
with the label `broker`, but for what is counted of the process or the cluster."""

from __future__ import annotations

from collections import Counter, namedtuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from pykafkad.server.broker import Broker
    from pykafkad.server.wiring import Process

MOST_PARTITIONS = 10_000
"""So many logs have samples of their own; they are read between two turns of the loop."""

RUNNING = 3
"""Kafka's number for the state of a broker that serves."""


class _Reading:
    """What the rows read, gathered once for all of them."""

    def __init__(self, process: Process, broker: Broker) -> None:
        self.broker = broker
        self.image = process.controller.image
        self.counts = process.runtime.metrics
        self.states = [state for topic in self.image.topics.values() for state in topic.partitions]
        self.led = [state for state in self.states if state.leader == self.broker.node_id]
        # To read a log that nobody has asked for would open it.
        opened = [log for log in self.broker.partitions if log.is_loaded][:MOST_PARTITIONS]
        self.logs = [({"topic": log.topic, "partition": log.partition}, log) for log in opened]

    def groups(self) -> Samples:
        """How many groups there are of each protocol."""
        found = Counter(row.group_type.lower() for shard in self.broker.groups.shards() for row in shard.listed())
        return [({"protocol": name}, found[name]) for name in sorted(found)]

    def records(self) -> Samples:
        """How many records were appended to each topic, of all partitions, whether they are still there or not."""
        found: Counter[str] = Counter()
        for log in self.broker.partitions:
            found[log.topic] += log.messages_in
        return [({"topic": name}, found[name]) for name in sorted(found)]


if TYPE_CHECKING:
    Samples = Iterable[tuple[dict[str, Any], int]]

Metric = namedtuple("Metric", ("name", "kind", "help", "read", "is_of_broker"), defaults=(True,))
Metric.__doc__ = """A metric: its name, "counter" or "gauge", a line for people, and `read(reading)`, which gives its
value, or (labels, value) for each of its samples. It is of one broker, or of the process or the cluster."""

METRICS = (
    Metric("kafka_server_kafkaserver_brokerstate", "gauge", "3: the broker serves", lambda _: RUNNING),
    Metric(
        "kafka_server_brokertopicmetrics_messagesin_total",
        "counter",
        "records appended to a topic since the start of the broker, control records too",
        _Reading.records,
    ),
    Metric(
        "kafka_network_requestmetrics_requests_total",
        "counter",
        "requests of all APIs",
        lambda now: now.counts.requests,
        False,
    ),
    Metric(
        "kafka_server_socket_server_metrics_connection_count",
        "gauge",
        "connections of clients",
        lambda now: len(now.broker.socket_server),
    ),
    Metric(
        "kafka_server_socket_server_metrics_connection_creation_total",
        "counter",
        "connections that were accepted",
        lambda now: now.counts.connections_accepted,
        False,
    ),
    Metric(
        "kafka_server_socket_server_metrics_connection_close_total",
        "counter",
        "connections that have ended",
        lambda now: now.counts.connections_closed,
        False,
    ),
    Metric(
        "kafka_server_socket_server_metrics_failed_authentication_total",
        "counter",
        "connections whose login failed",
        lambda now: now.counts.failed_authentications,
        False,
    ),
    Metric(
        "kafka_server_replicamanager_partitioncount",
        "gauge",
        "replicas of partitions on this broker",
        lambda now: len(now.broker.partitions),
    ),
    Metric(
        "kafka_server_replicamanager_leadercount",
        "gauge",
        "partitions that this broker leads",
        lambda now: len(now.led),
    ),
    Metric(
        "kafka_server_replicamanager_underreplicatedpartitions",
        "gauge",
        "partitions that this broker leads and that lack replicas in sync",
        lambda now: sum(len(state.isr) < len(state.replicas) for state in now.led),
    ),
    Metric(
        "kafka_controller_kafkacontroller_activebrokercount",
        "gauge",
        "brokers that are not fenced",
        lambda now: len(now.image.alive_brokers()),
        False,
    ),
    Metric(
        "kafka_controller_kafkacontroller_globaltopiccount", "gauge", "topics", lambda now: len(now.image.topics), False
    ),
    Metric(
        "kafka_controller_kafkacontroller_globalpartitioncount",
        "gauge",
        "partitions",
        lambda now: len(now.states),
        False,
    ),
    Metric(
        "kafka_controller_kafkacontroller_offlinepartitionscount",
        "gauge",
        "partitions without a leader",
        lambda now: sum(state.leader < 0 for state in now.states),
        False,
    ),
    Metric(
        "kafka_server_group_coordinator_metrics_group_count",
        "gauge",
        "groups that this broker coordinates, by protocol",
        _Reading.groups,
    ),
    Metric(
        "kafka_log_log_logstartoffset",
        "gauge",
        "the first offset of a partition",
        lambda now: [(labels, log.log_start_offset) for labels, log in now.logs],
    ),
    Metric(
        "kafka_log_log_logendoffset",
        "gauge",
        "the offset after the last record of a partition",
        lambda now: [(labels, log.end_offset) for labels, log in now.logs],
    ),
    Metric(
        "kafka_log_log_size",
        "gauge",
        "bytes of a partition's segments",
        lambda now: [(labels, log.size_bytes) for labels, log in now.logs],
    ),
    Metric(
        "kafka_log_log_numlogsegments",
        "gauge",
        "segments of a partition",
        lambda now: [(labels, len(log.segments)) for labels, log in now.logs],
    ),
    Metric(
        "pykafkad_connections_refused_total",
        "counter",
        "connections that were closed at once, for a limit",
        lambda now: now.counts.connections_refused,
        False,
    ),
    Metric(
        "pykafkad_frames_refused_total",
        "counter",
        "connections that were closed for what their client sent",
        lambda now: now.counts.frames_refused,
        False,
    ),
    Metric(
        "pykafkad_writes_failed_total",
        "counter",
        "writes that the disk refused",
        lambda now: now.counts.writes_failed,
        False,
    ),
    Metric(
        "pykafkad_unexpected_errors_total",
        "counter",
        "bugs that were logged",
        lambda now: now.counts.unexpected_errors,
        False,
    ),
)


def text(process: Process) -> str:
    """All metrics as text, for `Content-Type: text/plain; version=0.0.4`. To be called on the loop."""
    readings = [_Reading(process, each) for each in process.brokers]
    assert process.broker is not None
    # Where all brokers are down, the last one that served stands for them.
    of_process = readings[:1] or [_Reading(process, process.broker)]
    several = len(process.node_ids) > 1
    lines = []
    for row in METRICS:
        lines += [f"# HELP {row.name} {row.help}", f"# TYPE {row.name} {row.kind}"]
        for reading in readings if row.is_of_broker else of_process:
            found = row.read(reading)
            samples = [({}, found)] if isinstance(found, int) else found
            own = {"broker": reading.broker.node_id} if several and row.is_of_broker else {}
            lines += [f"{row.name}{_labels({**labels, **own})} {value}" for labels, value in samples]
    return "\n".join([*lines, ""])


def _labels(labels: dict[str, Any]) -> str:
    """Of topics, partitions and protocols: no value holds a character that would have to be escaped."""
    return "{" + ",".join(f'{name}="{value}"' for name, value in labels.items()) + "}" if labels else ""
