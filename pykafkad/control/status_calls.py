"""Routes that say how the broker is."""

from __future__ import annotations

from typing import Any

import pykafkad
from pykafkad.control import schemas
from pykafkad.control.api_errors import UNAVAILABLE, ApiError
from pykafkad.control.route import Content, Control, Route

METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def health(control: Control, _: dict[str, Any]) -> dict[str, Any]:
    """Whether the broker answers; else ApiError with a status that a health check understands."""
    if not control.operations.is_running:
        raise ApiError(UNAVAILABLE, "the broker does not run")
    # Anybody may ask: it must cost as much with many topics as with none.
    control.operations.check_answers()
    return {"status": "ok"}


def status(control: Control, _: dict[str, Any]) -> dict[str, Any]:
    """The broker in numbers."""
    operations = control.operations
    topics = operations.topics()
    return {
        "version": pykafkad.__version__,
        "bootstrap": operations.bootstrap,
        "topics": len(topics),
        "partitions": sum(topics.values()),
        "groups": len(operations.groups()),
        "faults": sum(not fault.has_ended for fault in list(operations.faults.every)),
        "waits": control.waits,
        "clock_ahead_seconds": operations.clock.ahead_seconds,
    }


def metrics(control: Control, _: dict[str, Any]) -> Content:
    """Prometheus' text."""
    return Content(METRICS_TYPE, control.operations.metrics().encode())


ROUTES = (
    Route(
        "health",
        "GET",
        "/health",
        "whether the broker answers; asks for no token",
        health,
        schemas.record({"status": schemas.text(enum=["ok"])}),
        is_open=True,
    ),
    Route(
        "status",
        "GET",
        "/status",
        "the broker in numbers",
        status,
        schemas.record(
            {
                "version": schemas.text("of pykafkad"),
                "bootstrap": schemas.text("HOST:PORT for Kafka clients"),
                "topics": schemas.integer("without Kafka's own"),
                "partitions": schemas.integer("of these topics"),
                "groups": schemas.integer(),
                "faults": schemas.integer("that requests may still meet"),
                "waits": schemas.integer("requests to this API that wait"),
                "clock_ahead_seconds": schemas.number("how far the broker's clock was moved"),
            }
        ),
    ),
    Route(
        "metrics",
        "GET",
        "/metrics",
        "counters and gauges for Prometheus, named as Kafka's by its JMX exporter",
        metrics,
        METRICS_TYPE,
    ),
)
