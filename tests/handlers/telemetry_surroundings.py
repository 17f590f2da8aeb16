"""Shared by the tests of client metrics: subscriptions, requests, and a push as a client's library makes it."""

from __future__ import annotations

from pykafkad.wire import messages

ID = bytes(range(16))
CLIENT_METRICS = 16


def subscribe(peer, name, **values):
    """Set a subscription's settings; underscores stand for dots, and None deletes a setting."""
    request = messages.IncrementalAlterConfigsRequest
    configs = [
        request.AlterableConfig(name=key.replace("_", "."), config_operation=int(value is None), value=value)
        for key, value in values.items()
    ]
    resource = request.AlterConfigsResource(resource_type=CLIENT_METRICS, resource_name=name, configs=configs)
    answer = peer.ask(request(resources=[resource]), 1)
    assert answer.responses[0].error_code == 0, answer


def get(peer, instance_id=ID):
    """The answer to GetTelemetrySubscriptions."""
    return peer.ask(messages.GetTelemetrySubscriptionsRequest(client_instance_id=instance_id), 0)


def push_request(subscription_id, instance_id=ID, **fields):
    """A PushTelemetry request."""
    wanted = {"terminating": False, "compression_type": 0, "metrics": b"", **fields}
    return messages.PushTelemetryRequest(client_instance_id=instance_id, subscription_id=subscription_id, **wanted)


def push(peer, subscription_id, instance_id=ID, **fields):
    """The error code of a push that is answered at once."""
    return peer.ask(push_request(subscription_id, instance_id, **fields), 0).error_code


def otlp(metrics=(("records", 7),), **labels):
    """A MetricsData message with one sum for each `(name, value)`, as bytes."""
    from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

    message = MetricsData()
    resource = message.resource_metrics.add()
    for name, value in labels.items():
        resource.resource.attributes.add(key=name).value.string_value = value
    scope = resource.scope_metrics.add()
    for name, value in metrics:
        metric = scope.metrics.add(name=name, unit="1")
        metric.sum.aggregation_temporality = 1
        metric.sum.is_monotonic = True
        point = metric.sum.data_points.add(
            as_int=value, time_unix_nano=5_000_000_000, start_time_unix_nano=4_000_000_000
        )
        point.attributes.add(key="client").value.string_value = "a"
    return message.SerializeToString()
