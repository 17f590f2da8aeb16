"""PushTelemetry: the times of pushes, and the stored metrics."""

from __future__ import annotations

import json

import pytest

from pykafkad import errors
from pykafkad.server import client_metrics
from pykafkad.wire import compression
from tests.handlers.telemetry_surroundings import ID, get, otlp, push, push_request, subscribe
from tests.simulation.world import NOTHING, World


@pytest.fixture
def world(tmp_path):
    """A broker that stores the metrics of clients."""
    made = World(tmp_path / "data", pykafkad_client_telemetry_enable="true", telemetry_max_bytes="50000")
    yield made
    assert made.runtime.metrics.unexpected_errors == 0


@pytest.fixture
def subscription_id(peer):
    """A subscription with an interval of one second."""
    subscribe(peer, "one", metrics="*", interval_ms="1000")
    return get(peer).subscription_id


def kept(world):
    """The lines of the file, after all pushes are decoded."""
    world.runtime.offload.close()
    world.turn()
    path = f"{world.path}/{client_metrics.FILE_NAME}"
    return (
        [json.loads(line) for line in world.runtime.disk.read(path).decode().splitlines()]
        if world.runtime.disk.exists(path)
        else []
    )


@pytest.mark.parametrize("codec", range(5))
def test_pushed_metrics_are_stored(world, peer, subscription_id, codec):
    data = otlp([("org.apache.kafka.producer.records", 7)], client_rack="r")
    data = compression.compress(codec, data) if codec else data
    assert peer.ask(push_request(subscription_id, metrics=data, compression_type=codec), 0) is NOTHING
    (line,) = kept(world)
    assert peer.answers[-1].error_code == 0
    assert (line["client_id"], line["client_instance_id"], line["labels"]) == (
        "test",
        "AAECAwQFBgcICQoLDA0ODw",
        {"client_rack": "r"},
    )
    (metric,) = line["metrics"]
    assert metric == {
        "name": "org.apache.kafka.producer.records",
        "type": "sum",
        "unit": "1",
        "monotonic": True,
        "temporality": "delta",
        "points": [{"attributes": {"client": "a"}, "time_ms": 5000, "start_ms": 4000, "value": 7}],
    }


def test_all_kinds_of_metrics_are_stored(world, peer, subscription_id):
    from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

    message = MetricsData()
    metrics = message.resource_metrics.add().scope_metrics.add().metrics
    metrics.add(name="gauge").gauge.data_points.add(as_double=0.5)
    histogram = metrics.add(name="histogram").histogram
    histogram.aggregation_temporality = 2
    histogram.data_points.add(count=3, sum=6.0, bucket_counts=[1, 2], explicit_bounds=[5.0])
    metrics.add(name="summary").summary.data_points.add(count=2, sum=4.0)
    metrics.add(name="exponential").exponential_histogram.data_points.add(count=1, sum=1.0)
    metrics.add(name="nothing")
    point = metrics.add(name="values").gauge.data_points.add()
    point.attributes.add(key="b").value.bytes_value = b"\xff"
    point.attributes.add(key="l").value.array_value.values.add().int_value = 1
    point.attributes.add(key="m").value.kvlist_value.values.add(key="x").value.bool_value = True
    point.attributes.add(key="n")
    peer.send(push_request(subscription_id, metrics=message.SerializeToString()), 0)
    (line,) = kept(world)
    by_name = {metric["name"]: metric for metric in line["metrics"]}
    assert by_name["gauge"]["points"][0]["value"] == 0.5
    point = by_name["histogram"]["points"][0]
    assert by_name["histogram"]["temporality"] == "cumulative" and (
        point["count"],
        point["sum"],
        point["bucket_counts"],
    ) == (3, 6.0, [1, 2])
    assert by_name["summary"]["points"][0]["count"] == 2 and by_name["exponential"]["temporality"] == "unspecified"
    assert by_name["nothing"] == {"name": "nothing", "type": None, "points": []}
    assert by_name["values"]["points"][0] == {
        "attributes": {"b": "ff", "l": [1], "m": {"x": True}, "n": None},
        "time_ms": 0,
        "value": None,
    }


@pytest.mark.parametrize(
    "fields",
    [{"metrics": b"\xff\xff"}, {"metrics": b"x", "compression_type": 1}, {"metrics": b"x", "compression_type": 4}],
)
def test_invalid_metrics_are_refused(world, peer, subscription_id, fields):
    peer.send(push_request(subscription_id, **fields), 0)
    assert kept(world) == [] and peer.answers[-1].error_code == errors.INVALID_RECORD


def test_metrics_that_decompress_to_too_much_are_refused(world, peer, subscription_id):
    bomb = compression.compress(1, otlp([("n" * 50_000, 1)]))
    peer.send(push_request(subscription_id, metrics=bomb, compression_type=1), 0)
    assert kept(world) == [] and peer.answers[-1].error_code == errors.INVALID_RECORD


def test_a_push_needs_its_time_and_a_valid_id(world, peer, subscription_id):
    assert (
        push(peer, subscription_id, bytes(16))
        == push(peer, subscription_id, bytes(15) + b"\1")
        == errors.INVALID_REQUEST
    )
    assert push(peer, subscription_id) == 0
    assert push(peer, subscription_id) == errors.THROTTLING_QUOTA_EXCEEDED
    world.advance(1)
    assert push(peer, subscription_id + 1) == errors.UNKNOWN_SUBSCRIPTION_ID
    world.advance(1)
    assert push(peer, subscription_id, compression_type=5) == errors.UNSUPPORTED_COMPRESSION_TYPE
    world.advance(1)
    assert push(peer, subscription_id, metrics=bytes(50_001)) == errors.TELEMETRY_TOO_LARGE
    # The last push may come at any time; no push may follow it.
    assert push(peer, subscription_id, terminating=True) == 0
    assert push(peer, subscription_id, terminating=True) == errors.INVALID_REQUEST
    # An instance is forgotten after a minute without requests.
    world.advance(60)
    assert push(peer, subscription_id) == 0


def test_nothing_is_stored_by_default(tmp_path):
    world = World(tmp_path / "data")
    peer = world.connect()
    assert push(peer, get(peer).subscription_id, metrics=b"whatever") == 0
    assert kept(world) == []


def test_the_number_of_waiting_pushes_is_limited(world, peer, subscription_id, monkeypatch):
    monkeypatch.setattr(client_metrics, "MAX_PENDING", 1)
    other = world.connect()
    jobs = []
    monkeypatch.setattr(type(world.runtime.offload), "submit", lambda _self, job, then: jobs.append((job, then)))
    peer.send(push_request(subscription_id, metrics=otlp()), 0)
    second = b"\7" * 16
    assert push(other, get(other, second).subscription_id, second, metrics=otlp()) == errors.THROTTLING_QUOTA_EXCEEDED
    ((job, then),) = jobs
    then(job())
    world.turn()
    assert peer.answers[-1].error_code == 0
    world.advance(1)
    assert other.ask(push_request(get(other, second).subscription_id, second, metrics=otlp()), 0) is NOTHING
    assert len(jobs) == 2 and second != ID
